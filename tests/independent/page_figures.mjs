// Uses a page of `report --html` as a person would, and prints what was found as one line of JSON.
//
// usage: node page_figures.mjs CHROMIUM PROFILE PAGE WORDS
//
// Keys are given one a frame; a frame is the time between two calls of requestAnimationFrame.

import { close, errors, inPage, open, press, requests } from "./chromium.mjs";

const words = process.argv[5];

// Presses keys, one a frame, and gives the ms between the frames.
const FRAMES = `async (keys) => {
  const nextFrame = () => new Promise(requestAnimationFrame), times = [await nextFrame()];
  for (const key of keys) {
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    times.push(await nextFrame());
  }
  return times.slice(1).map((time, place) => time - times[place]);
}`;

async function frames(keys) {
  const ms = await inPage(`(${FRAMES})(${JSON.stringify(keys)})`);
  ms.sort((a, b) => a - b);
  return { frames: ms.length, p50: ms[ms.length >> 1], p95: ms[Math.floor(ms.length * 0.95)], worst: ms.at(-1) };
}

const times = (number, key) => Array(number).fill(key);

const found = { open_ms: await open() };
found.whole_ms = await inPage(`performance.getEntriesByName("whole")[0].startTime`);
found.facts = await inPage(`Object.fromEntries([...document.querySelectorAll("[data-fact]")].map((cell) => [cell.dataset.fact, cell.textContent]))`);

// In and out again over 10^5: 33 presses at 0.7 each.
const zoomed = [...times(33, "w"), ...times(33, "s")];
await press("0");
found.zoom = await frames([...zoomed, ...zoomed, ...zoomed]);
await press("0");
found.pan = await frames([...times(60, "d"), ...times(60, "a")]);
await press("0");
for (const key of times(13, "w")) await press(key);
found.pan_one_percent = await frames([...times(90, "d"), ...times(90, "a")]);

// A search, from the letter to the frame that shows it.
found.search_ms = await inPage(`(async () => {
  const field = document.getElementById("search"), from = performance.now();
  field.value = ${JSON.stringify(words)};
  field.dispatchEvent(new Event("input"));
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  return performance.now() - from;
})()`);
found.matches = await inPage(`document.getElementById("found").textContent`);

// The slowest span, by keys alone.
await press("Escape");
await press("0");
await press("x");
found.slowest = await inPage(`Object.fromEntries([...document.querySelectorAll("#content [data-fact]")].map((cell) => [cell.dataset.fact, cell.textContent]))`);
found.requests = requests;
found.errors = errors;
console.log(JSON.stringify(found));
await close();
