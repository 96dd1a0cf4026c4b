// The data of the page: base64 of LZ4 of three sections. `packed.rs` describes them.

function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }

  number() {
    const bytes = this.bytes;
    let byte = bytes[this.at++];
    if (byte < 0x80) return byte;
    let value = byte & 0x7f, factor = 128;
    do {
      byte = bytes[this.at++];
      value += (byte & 0x7f) * factor;
      factor *= 128;
    } while (byte >= 0x80);
    return value;
  }

  take(length) {
    if (!(this.at + length <= this.bytes.length)) throw new Error("the data of this page is cut off");
    this.at += length;
    return this.bytes.subarray(this.at - length, this.at);
  }

  section() {
    return new Reader(this.take(this.number()));
  }
}

// One LZ4 block: runs of bytes as they are, each before a copy of bytes that came earlier.
function unpackLz4(from, at, to) {
  let out = 0;
  const longer = (length) => {
    for (let byte = 255; byte === 255; length += byte) byte = from[at++];
    return length;
  };
  while (at < from.length) {
    const token = from[at++];
    const plain = token >> 4 === 15 ? longer(15) : token >> 4;
    if (plain > 16) {
      to.set(from.subarray(at, at + plain), out);
      out += plain;
      at += plain;
    } else {
      for (let i = 0; i < plain; i++) to[out++] = from[at++];
    }
    if (at >= from.length) break;
    let source = out - (from[at] | from[at + 1] << 8);
    at += 2;
    const length = ((token & 15) === 15 ? longer(15) : token & 15) + 4;
    for (const end = out + length; out < end;) to[out++] = to[source++];
  }
  if (out !== to.length) throw new Error("the data of this page is cut off");
}

function unpack(text) {
  const reader = new Reader(fromBase64(text));
  const bytes = new Uint8Array(reader.number());
  unpackLz4(reader.bytes, reader.at, bytes);
  const sections = new Reader(bytes);
  const meta = JSON.parse(new TextDecoder().decode(sections.section().bytes));
  return { meta, rows: sections.section(), texts: sections.section() };
}
