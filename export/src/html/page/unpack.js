// The data of the page: base64 of deflate of three sections. `packed.rs` describes them.

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

// Raw deflate, unpacked by the browser.
async function inflated(bytes) {
  const packed = new Blob([bytes]).stream();
  return new Uint8Array(await new Response(packed.pipeThrough(new DecompressionStream("deflate-raw"))).arrayBuffer());
}

async function unpack(text) {
  const sections = new Reader(await inflated(fromBase64(text)));
  const meta = JSON.parse(new TextDecoder().decode(sections.section().bytes));
  return { meta, rows: sections.section(), texts: sections.section() };
}
