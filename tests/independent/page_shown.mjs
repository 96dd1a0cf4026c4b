// Opens a page of `report --html` and prints what it holds after its scripts ran, as one line of JSON:
// its HTML, the cells of the tables of spans and threads, what it asked the network for, what went wrong, and whether a text of the trace ran.
//
// usage: node page_shown.mjs CHROMIUM PROFILE PAGE

import { close, errors, inPage, open, press, requests } from "./chromium.mjs";

await open();
const html = await inPage("document.documentElement.outerHTML");
const ran = await inPage("window.ran === true");

// The cells of the first table behind a tab.
async function table(key) {
  await press(key);
  return inPage(`[...document.querySelector("#content table")?.rows ?? []].map((row) => [...row.cells].map((cell) => cell.textContent))`);
}

const spans = await table("3"), threads = await table("5");
console.log(JSON.stringify({ html, spans, threads, ran, requests, errors }));
await close();
