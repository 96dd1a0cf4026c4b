// Opens a page of `report --html` and prints what it holds after its scripts ran, as one line of JSON:
// its HTML, what it asked the network for, what went wrong, and whether a text of the trace ran.
//
// usage: node page_shown.mjs CHROMIUM PROFILE PAGE

import { close, errors, inPage, open, requests } from "./chromium.mjs";

await open();
const html = await inPage("document.documentElement.outerHTML");
const ran = await inPage("window.ran === true");
console.log(JSON.stringify({ html, ran, requests, errors }));
await close();
