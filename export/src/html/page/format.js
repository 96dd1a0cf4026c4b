// Numbers, durations and times as text.

function count(n) {
  return String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, ",");
}

function counted(n, what) {
  return count(n) + " " + what + (n === 1 ? "" : "s");
}

const UNITS = [["ns", 1], ["us", 1e3], ["ms", 1e6], ["s", 1e9], ["m", 60e9], ["h", 3600e9]];

// Three digits that count, and the unit: 48.2 us.
function duration(ns) {
  let unit = UNITS[0];
  for (const next of UNITS) {
    if (Math.abs(ns) >= next[1]) unit = next;
  }
  const value = ns / unit[1];
  const digits = unit[1] === 1 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return value.toFixed(digits) + " " + unit[0];
}

// A time since the beginning of the trace, fine enough that `step` can be told apart.
function timeSince(ns, step) {
  const unit = ns === 0 ? UNITS[0] : UNITS.findLast(([, size]) => Math.abs(ns) >= size && size <= 1e9) || UNITS[0];
  const digits = Math.max(0, Math.ceil(Math.log10(unit[1] / step) - 1e-9));
  return (ns / unit[1]).toFixed(Math.min(digits, 9)) + " " + unit[0];
}

// A wall time: 2026-11-22T08:45:37.333152045Z.
function wallTime(first, ns) {
  const at = BigInt(first) + BigInt(Math.round(ns));
  const seconds = at / 1000000000n;
  const date = new Date(Number(seconds) * 1000);
  if (isNaN(date)) return String(at) + " ns";
  return date.toISOString().slice(0, 19) + "." + String(at % 1000000000n).padStart(9, "0") + "Z";
}

// An element with text and children. Text is only ever set as text.
function element(tag, properties, ...children) {
  const made = document.createElement(tag);
  Object.assign(made, properties);
  made.append(...children);
  return made;
}

function tableRow(cells, numbers) {
  const row = element("tr", {});
  cells.forEach((cell, place) => {
    row.append(element("td", { className: numbers.includes(place) ? "number" : "" }, cell));
  });
  return row;
}

function tableOf(heads, rows, numbers) {
  const head = element("tr", {});
  heads.forEach((text, place) => head.append(element("th", { textContent: text, className: numbers.includes(place) ? "number" : "" })));
  return element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows));
}
