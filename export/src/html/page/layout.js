// Where the rows of the trace stand: blocks of threads from top to bottom, each with its lines.

const RULER = 26, HEAD = 20, LINE = 18, EVENT_LINE = 16, STATE_LINE = 14, COUNTER_LINE = 32, GAP = 6;
// Lanes of one name that are more than these are thin, so that threads stay in sight.
const LANES_MAX = 8, THIN_LINE = 5;
// Width of the names at the left.
let GUTTER = 210;

function setGutter(width) {
  GUTTER = width < 640 ? 104 : 210;
}

function layOut(trace) {
  const blocks = new Map();
  const blockOf = (process, thread, label) => {
    const key = thread >= 0 ? "t" + thread : "p" + process;
    if (!blocks.has(key)) blocks.set(key, { process, thread, label, lines: [] });
    return blocks.get(key);
  };
  for (const [number, thread] of trace.threads) {
    blockOf(thread.process, number, trace.threadLabel({ thread: number, process: thread.process }));
  }
  for (const row of trace.stateRows) {
    blockOf(row.track.process, row.track.thread, trace.threadLabel(row.track)).lines.push({ row, label: row.track.label });
  }
  for (const track of trace.tracks) {
    const block = blockOf(track.process, track.thread, trace.threadLabel(track));
    for (const row of track.rows) block.lines.push({ row: trace.rows[row], label: row === track.rows[0] ? track.label : "" });
  }
  for (const loss of trace.losses.filter((loss) => loss.thread < 0 || !trace.threads.has(loss.thread))) {
    blockOf(loss.process, -1, trace.processLabel(loss.process));
  }
  const all = [...blocks.values()];
  all.sort((a, b) => a.process - b.process || (a.thread < 0) - (b.thread < 0) || a.thread - b.thread);
  return place(trace, all);
}

// Threads of which nothing is shown have no block.
function place(trace, all) {
  const lineOf = new Map(), blocks = [];
  let y = 0;
  for (const block of all) {
    const isOwn = (loss) => block.thread >= 0 ? loss.thread === block.thread : loss.process === block.process && !trace.threads.has(loss.thread);
    block.losses = trace.losses.filter(isOwn);
    if (block.lines.length + block.losses.length === 0) continue;
    blocks.push(block);
    block.y = y;
    y += HEAD;
    let first = null;
    for (const line of block.lines) {
      line.y = y;
      line.height = heightOf(line.row.track);
      y += line.height;
      lineOf.set(line.row, line);
      if (line.label) first = line;
      first.end = y;
    }
    y += GAP;
    block.height = y - block.y;
  }
  return { blocks, lineOf, height: y };
}

function heightOf({ isEvents, isStates, value, thread, depth }) {
  if (isStates) return STATE_LINE;
  if (value) return COUNTER_LINE;
  if (isEvents) return EVENT_LINE;
  return thread < 0 && depth > LANES_MAX ? THIN_LINE : LINE;
}

// The line at a height, or nothing.
function lineAt(layout, y) {
  for (const block of layout.blocks) {
    if (y < block.y || y >= block.y + block.height) continue;
    return { block, line: block.lines.find((line) => y >= line.y && y < line.y + line.height) };
  }
  return {};
}
