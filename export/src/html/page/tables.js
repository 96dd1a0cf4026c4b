// Tables of spans: sums by name, the histogram of one name, its slowest.

const SLOWEST_SHOWN = 40, NAMES_SHOWN = 300;
// Letters of a slice's arguments in a table; its details have all.
const ARGS_SHOWN = 200;
// Columns of the table of spans that are numbers.
const NUMBERS = [1, 2, 3, 4, 5, 6, 7];

function chip(app, name) {
  const chip = element("span", { className: "chip" });
  chip.style.background = css(app.state.colours.colour[name]);
  return chip;
}

function spansPanel(app) {
  const { state } = app;
  const sums = sumsByName(app.tree()), durations = app.durations();
  if (sums.length === 0) return element("p", { className: "soft", textContent: "No span or call is in this stretch." });
  if (!sums.some((sum) => sum.name === state.name)) state.name = sums[0].name;
  const isCut = sums.some((sum) => sum.whole < sum.count);
  const rows = sums.slice(0, NAMES_SHOWN).map((sum) => {
    const button = element("button", { textContent: state.trace.meta.names[sum.name] || "(no name)" });
    button.addEventListener("click", () => app.chooseName(sum.name));
    const cell = element("span", {}, chip(app, sum.name), button);
    const known = sum.whole > 0, cut = sum.count - sum.whole;
    const times = known ? [sum.took / sum.whole, percentile(durations[sum.name], 99), sum.max].map(duration) : ["-", "-", "-"];
    const row = tableRow([cell, count(sum.count), ...(isCut ? [cut ? count(cut) : ""] : []), duration(sum.self), duration(sum.total), ...times], NUMBERS);
    if (sum.name === state.name) row.className = "chosen";
    return row;
  });
  const table = tableOf(["name", "count", ...(isCut ? ["cut"] : []), "self", "total", "mean", "P99", "longest"], rows, NUMBERS);
  const left = element("div", { className: "narrow" }, table);
  const torn = sums.reduce((sum, of) => sum + of.torn, 0);
  if (torn > 0) left.append(element("p", { className: "soft", textContent: "self is without " + counted(torn, "span or call").replace("span or calls", "spans and calls") + " during which records were lost" }));
  if (isCut) left.append(element("p", { className: "soft", textContent: "cut: no known beginning or end, so no duration; mean, P99 and longest are without them" }));
  if (sums.length > rows.length) left.append(element("p", { className: "soft", textContent: "and " + counted(sums.length - rows.length, "more name") }));
  return element("div", { className: "columns" }, left, histogramOf(app, isCut), slowestOf(app));
}

function histogramOf(app, isCut) {
  const { trace, name } = app.state;
  const sorted = app.durations()[name], buckets = histogram(sorted);
  const most = Math.max(...buckets.map((bucket) => bucket.count), 1);
  const rows = buckets.map((bucket) => {
    const bar = element("span", { className: "bar" });
    bar.style.width = bucket.count ? Math.max(1, Math.round(60 * bucket.count / most)) + "px" : "0";
    if (bucket.count === 0) bar.style.minWidth = "0";
    return tableRow([duration(bucket.from) + " - " + duration(2 * bucket.from), count(bucket.count), bar], [0, 1]);
  });
  const heading = element("h2", {}, "Durations of ", chip(app, name), trace.meta.names[name]);
  const without = isCut ? [element("p", { className: "soft", textContent: "without those that are cut" })] : [];
  const parts = [50, 90, 99].map((percent) => "P" + percent + " " + duration(percentile(sorted, percent)));
  const percentiles = sorted.length > 0 ? [element("p", { className: "soft", textContent: parts.join(", ") })] : [];
  return element("div", { className: "narrow" }, heading, ...percentiles, tableOf(["from - to", "count", ""], rows, [0, 1]), ...without);
}

function slowestOf(app) {
  const { trace, name } = app.state;
  const rows = slowest(trace, name, app.stretch(), SLOWEST_SHOWN).map((slice) => {
    const jump = element("button", { textContent: duration(trace.end[slice] - trace.start[slice]) + (trace.isOpen(slice) ? ", open" : "") });
    jump.addEventListener("click", () => app.goTo(slice));
    const text = trace.textOf(slice);
    const args = element("span", { textContent: text.length > ARGS_SHOWN ? text.slice(0, ARGS_SHOWN - 1) + "…" : text, title: text });
    return tableRow([jump, duration(trace.start[slice]), trace.threadLabel(trace.rowOf(slice).track), args], [0, 1]);
  });
  const table = tableOf(["took", "at", "thread", "arguments"], rows, [0, 1]);
  return element("div", { className: "slowest" }, element("h2", { textContent: "Its slowest" }), table);
}
