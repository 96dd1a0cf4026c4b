// Opens a page of `profile --html` and prints what it shows, as one line of JSON: its title, its drawings, its tables, the
// tables after a search, the text of a frame under the mouse, what it asked the network for, what went wrong.
//
// usage: node profile_shown.mjs CHROMIUM PROFILE PAGE SEARCH

import { close, errors, inPage, open, requests } from "./chromium.mjs";

const TABLES = `[...document.querySelectorAll("#content table")].map((table) => ({
  heading: table.previousElementSibling.textContent,
  rows: [...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent)),
}))`;

await open();
const title = await inPage("document.title");
const flames = await inPage(`[...document.querySelectorAll("canvas.flame")].map((canvas) => [canvas.width, canvas.height])`);
const tables = await inPage(TABLES);
const hovered = await inPage(`(() => {
  const canvas = document.querySelector("canvas.flame"), box = canvas.getBoundingClientRect();
  canvas.dispatchEvent(new MouseEvent("mousemove", { clientX: box.x + 3, clientY: box.y + 27, bubbles: true }));
  return document.getElementById("tip").textContent;
})()`);
const searched = await inPage(`(() => {
  const search = document.getElementById("search");
  search.value = ${JSON.stringify(process.argv[5])};
  search.dispatchEvent(new Event("input"));
  return ${TABLES};
})()`);
console.log(JSON.stringify({ title, flames, tables, hovered, searched, requests, errors }));
await close();
