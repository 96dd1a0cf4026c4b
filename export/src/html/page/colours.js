// Font and colours: a slice's by its name, told apart by all eyes; the others by theme. `does`: what threads did.

const FONT = "11px ui-monospace, 'DejaVu Sans Mono', monospace";

const PALETTE = [
  "#88ccee", "#44aa99", "#117733", "#999933", "#ddcc77", "#cc6677", "#882255", "#aa4499",
  "#5566bb", "#77aadd", "#ee8866", "#bbcc33", "#4477aa", "#ffaabb", "#99ddff", "#b8860b",
].map((text) => parseInt(text.slice(1), 16));

const THEMES = {
  light: { bg: 0xffffff, fg: 0x1a1c20, soft: 0x565c66, line: 0xd4d8df, head: 0xf3f5f8, hatch: 0xc4313b, hatchBg: 0xfbdcdc, dim: 0xe2e5ea, accent: 0x0b5cad, does: [0x2e8b57, 0xe08a00, 0xc3cad4] },
  dark: { bg: 0x14171c, fg: 0xe6e9ee, soft: 0xa2abb8, line: 0x343b46, head: 0x1e232b, hatch: 0xe0605c, hatchBg: 0x45211f, dim: 0x2c323c, accent: 0x7cbcff, does: [0x3fae73, 0xe6a23c, 0x465060] },
};

function css(colour) {
  return "#" + colour.toString(16).padStart(6, "0");
}

// As a pixel of a canvas: its bytes are red, green, blue, alpha.
function pixel(colour) {
  return (0xff000000 | (colour & 0xff) << 16 | (colour & 0xff00) | colour >> 16) >>> 0;
}

function hashOf(text) {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return (hash ^ hash >>> 15) >>> 0;
}

// The part of its light that a colour gives back, as WCAG counts it.
function luminance(colour) {
  const parts = [colour >> 16, colour >> 8 & 0xff, colour & 0xff].map((byte) => {
    const part = byte / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
}

function contrast(a, b) {
  const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (light + 0.05) / (dark + 0.05);
}

// Black or white: one of them has a contrast of at least 4.5 with any colour.
function inkOn(colour) {
  return contrast(colour, 0) >= contrast(colour, 0xffffff) ? 0 : 0xffffff;
}

// By number of the name: colour, pixel, and the colour of text on it.
class Colours {
  constructor(names) {
    this.colour = Uint32Array.from(names, (name) => PALETTE[hashOf(name) % PALETTE.length]);
    this.pixel = this.colour.map(pixel);
    this.ink = this.colour.map(inkOn);
  }
}
