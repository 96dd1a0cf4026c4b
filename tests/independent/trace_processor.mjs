// Asks Perfetto's trace processor about a trace: node trace_processor.mjs FOLDER FILE SQL...
//
// FOLDER holds engine.mjs, engine_bundle.node.js and trace_processor.wasm. Each answer is a line of
// JSON: an array of rows, each an array of values. Integers are texts of digits.

import fs from "node:fs";
import path from "node:path";
import vm from "node:vm";
import { pathToFileURL } from "node:url";

const [folder, file, ...queries] = process.argv.slice(2);

// The bundle believes that it runs in a browser's worker, which loads by XMLHttpRequest.
globalThis.self = globalThis;
globalThis.WorkerGlobalScope = Object;
globalThis.location = { href: "file:///" };
globalThis.XMLHttpRequest = class {
  open(method, url) {
    this.name = path.basename(url);
  }
  send() {
    const bytes = fs.readFileSync(path.join(folder, this.name));
    this.response = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
  }
};

// It asks whether 64-bit memory works by compiling 23 bytes, but only the 32-bit build is there.
const Module = WebAssembly.Module;
WebAssembly.Module = class extends Module {
  constructor(bytes) {
    if (bytes[bytes.byteLength - 2] === 1 && bytes.byteLength === 23) throw new Error("no 64-bit memory");
    super(bytes);
  }
};

const complain = console.warn;
console.warn = (line) => complain(String(line).slice(0, 300));

const bundle = path.join(folder, "engine_bundle.node.js");
vm.runInThisContext(fs.readFileSync(bundle, "utf8"), { filename: bundle });

const { EngineBase } = await import(pathToFileURL(path.resolve(folder, "engine.mjs")));

class Engine extends EngineBase {
  id = "test";
  mode = "WASM";
  constructor(port) {
    super();
    this.port = port;
    port.onmessage = (message) => this.onRpcResponseBytes(message.data);
  }
  rpcSendRequestBytes(bytes) {
    this.port.postMessage(bytes.slice());
  }
}

const { port1, port2 } = new MessageChannel();
globalThis.onmessage({ data: port2 });
// The module is ready after a turn of the loop.
await new Promise((done) => setTimeout(done, 50));
const engine = new Engine(port1);
const input = fs.openSync(file);
const piece = Buffer.alloc(8 << 20);
for (;;) {
  const bytes = fs.readSync(input, piece);
  if (bytes === 0) break;
  await engine.parse(new Uint8Array(piece.subarray(0, bytes)));
}
await engine.notifyEof();
for (const sql of queries) {
  const result = await engine.query(sql);
  const names = result.columns();
  const row = Object.fromEntries(names.map((name) => [name, null]));
  const rows = [];
  for (const it = result.iter(row); it.valid(); it.next()) {
    rows.push(names.map((name) => it.get(name)));
  }
  const shown = (key, value) => (typeof value === "bigint" ? value.toString() : value);
  print(JSON.stringify(rows, shown));
}
process.exit(0);

// All of a line, whatever the pipe takes at once: the process ends right after the last one.
function print(line) {
  const bytes = Buffer.from(line + "\n");
  for (let at = 0; at < bytes.length;) {
    try {
      at += fs.writeSync(1, bytes, at);
    } catch (error) {
      if (error.code !== "EAGAIN") throw error;
    }
  }
}
