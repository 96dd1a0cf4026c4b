// The panel below the timeline: what is there, what a slice is, the keys.

const TABS = ["Summary", "Details", "Spans", "Flame graph", "Threads"];

const NAMES_INSIDE = 12, WAITS_SHOWN = 3;

const KEYS = [
  ["W  S", "zoom in, out"],
  ["A  D  or  Left  Right", "go back, on in time"],
  ["Up  Down", "scroll"],
  ["0", "the whole trace"],
  ["low bars", "spans too narrow to see one by one: zoom in"],
  ["green  orange  grey", "a thread runs, is ready to run, waits, where that was recorded"],
  [",  .", "the slice before, after, in its row"],
  ["P  C", "the slice around, the first one inside"],
  ["F", "zoom to the selected slice or stretch"],
  ["M", "select the slice's time as a stretch"],
  ["X", "the slowest span, of the chosen name if there is one"],
  ["O", "the next open span"],
  ["L", "the next loss"],
  ["/", "search; then Enter and Shift+Enter, or N and Shift+N: next match, the one before"],
  ["1 - 5", "the tabs below"],
  ["H", "hide or show the panel"],
  ["T", "light or dark"],
  ["Escape", "select nothing"],
  ["mouse", "drag: move; Shift and drag, or drag in the ruler: select a stretch; Ctrl and wheel: zoom"],
];

function fact(name, value, isAlarm) {
  const cell = element("td", { textContent: value });
  cell.dataset.fact = name;
  if (isAlarm) cell.className = "alarm";
  return element("tr", {}, element("th", { textContent: name }), cell);
}

function facts(trace) {
  const { meta } = trace;
  let open = 0, events = 0, entered = 0;
  for (let slice = 0; slice < trace.size; slice++) {
    entered += trace.isEntered(slice) ? 1 : 0;
    open += trace.isOpen(slice) && !trace.isEntered(slice) ? 1 : 0;
  }
  for (const row of trace.rows) events += row.track.isEvents ? row.to - row.from : 0;
  const missing = trace.losses.reduce((sum, loss) => sum + loss.events, 0);
  return element("table", {},
    ...(meta.part ? [fact("a part", meta.part, true)] : []),
    fact("begins", wallTime(meta.first, 0)),
    fact("lasts", duration(meta.length)),
    fact("processes", count(trace.processes.size)),
    fact("threads", count(trace.threads.size)),
    fact("spans and calls", count(trace.size - events - entered)),
    fact("events", count(events)),
    ...meta.panicked.map((thread) => fact("panicked", trace.threadLabel({ thread }), true)),
    fact("open at the end", count(open), open > 0),
    fact("events not here", count(missing), missing > 0));
}

function linesOf(heading, lines) {
  if (lines.length === 0) return [];
  return [element("h2", { textContent: heading }), element("pre", { textContent: lines.join("\n") })];
}

function summaryPanel(app) {
  const { trace } = app.state, { meta } = trace;
  const left = element("div", { className: "narrow" }, facts(trace));
  const right = element("div", { className: "first" });
  if (meta.ends.length > 0) {
    right.append(element("h2", { textContent: "How it ended" }));
    meta.ends.forEach((line) => right.append(element("p", { className: "alarm mono", textContent: line })));
    meta.whose.forEach((line) => right.append(element("p", { className: "soft", textContent: line })));
  }
  right.append(...linesOf("Last words", meta.last_words), ...linesOf("What is covered", meta.covers));
  left.append(...lossTable(app));
  return element("div", { className: "columns" }, left, right);
}

function lossTable(app) {
  const { trace } = app.state;
  if (trace.losses.length === 0) return [];
  const rows = trace.losses.slice(0, 200).map((loss) => {
    const isBefore = isBeforeAll(loss);
    const jump = element("button", { textContent: isBefore ? "before all" : duration(loss.from) });
    jump.addEventListener("click", () => app.goToLoss(loss));
    return tableRow([jump, isBefore ? "" : duration(loss.to), count(loss.events), trace.threadLabel(loss), loss.cause], [0, 1, 2]);
  });
  const more = trace.losses.length - rows.length;
  const table = tableOf(["from", "to", "events", "thread", "cause"], rows, [0, 1, 2]);
  const after = more > 0 ? [element("p", { className: "soft", textContent: "and " + counted(more, "more loss") })] : [];
  return [element("h2", { textContent: "Losses" }), table, ...after];
}

function detailsPanel(app) {
  const { trace, slice } = app.state;
  if (slice < 0) {
    const words = "Nothing is selected. Click a slice, or press X for the slowest span, O for an open one, ? for all keys.";
    return element("p", { className: "soft", textContent: words });
  }
  const row = trace.rowOf(slice), flags = trace.flags[slice];
  const took = trace.end[slice] - trace.start[slice];
  const since = (flags & OPEN ? "open at the end of the trace, for " : "") + duration(took) + " (" + count(took) + " ns)" + (flags & BEFORE ? ", or longer: it began before the first record" : "");
  const table = element("table", {}, fact("name", trace.nameOf(slice)));
  if (!row.track.isEvents) table.append(fact("duration", since, flags & OPEN));
  const states = trace.statesIn(slice);
  if (states) table.append(fact("its thread", states));
  for (const line of trace.waitsIn(slice).slice(0, WAITS_SHOWN)) table.append(fact("waited for", line));
  table.append(
    fact("begins", wallTime(trace.meta.first, trace.start[slice])),
    fact("since the start", duration(trace.start[slice])),
    fact("on", trace.threadLabel(row.track) + ", " + row.track.label));
  const around = [];
  for (let outer = trace.parentOf(slice); outer >= 0; outer = trace.parentOf(outer)) around.unshift(trace.nameOf(outer));
  if (around.length > 0) table.append(fact("inside", around.join(" > ")));
  if (row.track.isStates) {
    if (trace.textOf(slice)) table.append(fact("waits for", trace.textOf(slice)));
    return element("div", { className: "columns" }, element("div", {}, table));
  }
  const text = trace.textOf(slice) || "none";
  const args = element("pre", { textContent: text });
  args.dataset.fact = "arguments";
  const right = element("div", {}, element("h2", { textContent: flags & OPEN ? "Arguments, as they were at its beginning" : "Arguments" }), args, ...insideOf(app, slice));
  return element("div", { className: "columns" }, element("div", {}, table), right);
}

// What a slice spent its time in.
function insideOf(app, slice) {
  const { trace } = app.state, sums = inside(trace, slice);
  if (sums.length === 0) return [];
  const rows = sums.slice(0, NAMES_INSIDE).map(({ name, count: number, total }) => {
    const cell = element("span", {}, chip(app, name), trace.meta.names[name]);
    return tableRow([duration(total), count(number), cell], [0, 1]);
  });
  return [element("h2", { textContent: "Inside it" }), tableOf(["time", "count", "name"], rows, [0, 1])];
}

function keysText() {
  const rows = KEYS.map(([keys, what]) => element("tr", {}, element("td", { className: "mono", textContent: keys }), element("td", { textContent: what })));
  return element("div", {}, element("h2", { textContent: "Keys" }), element("table", {}, ...rows));
}
