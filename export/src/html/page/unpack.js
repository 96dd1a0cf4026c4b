// The data of the page: base64 of raw deflate, in two elements. `packed.rs` describes them.

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

const PIECE = 1 << 18;

// Raw deflate, unpacked by the browser, which is given a piece at a time: it stays responsive.
async function inflated(bytes) {
  let at = 0;
  const packed = new ReadableStream({
    pull(pieces) {
      if (at >= bytes.length) return pieces.close();
      pieces.enqueue(bytes.subarray(at, at += PIECE));
    },
  });
  return new Uint8Array(await new Response(packed.pipeThrough(new DecompressionStream("deflate-raw"))).arrayBuffer());
}

// The data in an element, which is not needed any more.
async function unpack(element) {
  if (!element) throw new Error("the end of this page is missing");
  const bytes = fromBase64(element.textContent);
  element.remove();
  return new Reader(await inflated(bytes));
}
