// Takes pictures of a page of `report --html`, light and dark, wide and narrow, for people to look at.
//
// usage: node page_pictures.mjs CHROMIUM PROFILE PAGE FOLDER

import { writeFileSync } from "node:fs";
import { close, errors, open, picture, press, resize, setTheme } from "./chromium.mjs";

const folder = process.argv[5];

// What is shown, and the keys that show it.
const VIEWS = {
  summary: ["0", "1"], spans: ["3"], flame: ["4"], threads: ["5"], slowest: ["x"], open: ["0", "o"], loss: ["1", "l"],
};

async function take(name, width, height, views) {
  await resize(width, height);
  for (const [view, keys] of Object.entries(views)) {
    for (const key of keys) await press(key);
    writeFileSync(`${folder}/${name}-${view}.png`, await picture());
  }
}

for (const theme of ["light", "dark"]) {
  await setTheme(theme);
  await open();
  await take(theme, 1280, 800, VIEWS);
  await take(theme + "-narrow", 390, 844, VIEWS);
  await press("Escape");
}
if (errors.length > 0) console.error(errors.join("\n"));
await close();
