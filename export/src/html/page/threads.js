// The table of threads: how long each was in a span or call, the busiest first.

const THREADS_SHOWN = 300;

// The threads, with what of them lies in the stretch. Of a span over threads that is the time in which they
// were in it.
function sumsByThread(trace, stretch) {
  const sums = new Map();
  for (const number of trace.threads.keys()) sums.set(number, { number, outermost: [], busy: 0, spans: 0, events: 0, lost: 0 });
  for (const row of trace.rows) {
    const sum = sums.get(row.track.thread);
    if (!sum) continue;
    const first = trace.firstLasting(row, stretch[0]), last = trace.firstAt(stretch[1], row.from, row.to);
    sum[row.track.isEvents ? "events" : "spans"] += Math.max(last - first, 0);
    if (!row.track.isEvents && row.depth === 0) sum.outermost.push({ first, last });
  }
  for (const loss of trace.losses) {
    const sum = sums.get(loss.thread), isIn = loss.to >= stretch[0] && loss.from < stretch[1];
    if (sum && isIn) sum.lost += loss.events;
  }
  for (const sum of sums.values()) sum.busy = covered(trace, sum.outermost, stretch);
  return [...sums.values()].sort((a, b) => b.busy - a.busy || b.events - a.events);
}

// How much of the stretch slices cover. A thread has one row of outermost slices by kind of span; those
// of several rows may be at the same time.
function covered(trace, parts, [from, to]) {
  const slices = parts.length === 1 ? rangeOf(parts[0]) : parts.flatMap((part) => [...rangeOf(part)]).sort((a, b) => trace.start[a] - trace.start[b]);
  let sum = 0, until = from;
  for (const slice of slices) {
    const begin = Math.max(trace.start[slice], until), end = Math.min(trace.end[slice], to);
    if (end <= begin) continue;
    sum += end - begin;
    until = end;
  }
  return sum;
}

function* rangeOf({ first, last }) {
  for (let slice = first; slice < last; slice++) yield slice;
}

function threadsPanel(app) {
  const { trace } = app.state, [from, to] = app.stretch();
  const all = sumsByThread(trace, [from, to]), sums = all.filter((sum) => sum.spans + sum.events + sum.lost > 0);
  const time = Math.max(Math.min(to, trace.length) - Math.max(from, 0), 1);
  const numbers = [1, 2, 3, 4, 5, 6, 7, 8];
  const does = trace.states.length > 0 ? trace.meta.does : [];
  // Where waits were seen, and no switches recorded, it is not known how long a thread ran.
  const statesOf = (number) => {
    const sums = trace.statesOf(number, [from, to]) ?? does.map(() => 0);
    return sums.map((time) => time > 0 || sums[0] > 0 ? duration(time) : "-");
  };
  const rows = sums.slice(0, THREADS_SHOWN).map((sum) => {
    const show = element("button", { textContent: trace.threadLabel({ thread: sum.number }) });
    show.addEventListener("click", () => app.showThread(sum.number));
    const percent = 100 * Math.min(sum.busy / time, 1), part = percent > 0 && percent < 0.1 ? "< 0.1 %" : percent.toFixed(1) + " %";
    const states = does.length > 0 ? statesOf(sum.number) : [];
    return tableRow([show, duration(sum.busy), part, ...states, ...[sum.spans, sum.events, sum.lost].map(count)], numbers);
  });
  const table = tableOf(["thread", "busy", "of the time", ...does, "spans and calls", "events", "events not here"], rows, numbers);
  const about = [element("p", { className: "soft", textContent: "busy: within a span or call that is here; one over threads counts as often as the thread was in it" })];
  if (sums.length > rows.length) about.push(element("p", { className: "soft", textContent: "and " + counted(sums.length - rows.length, "more thread") }));
  if (all.length > sums.length) about.push(element("p", { className: "soft", textContent: "and " + counted(all.length - sums.length, "thread") + " with nothing in this stretch" }));
  return element("div", {}, table, ...about);
}
