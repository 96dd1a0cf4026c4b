// What slices say together: a tree of stacks, sums by name, a histogram, search.

// Stacks of names with their time within [from, to]: nodes in columns, node 0 around all. `self` is the time
// of their own, `torn` that of slices during which records were lost, so that it is not known how much of it
// was spent inside. `total` is what is in them. `whole` and `took` are the number and the durations of the
// slices of which both ends are known, `max` the longest of these, `lasted` the durations of spans over threads.
function makeTree(trace, from, to) {
  const columns = ["self", "torn", "count", "tornCount", "whole", "took", "max", "lasted"];
  const tree = { parent: [-1], name: [-1] };
  columns.forEach((column) => tree[column] = [0]);
  const places = new Map(), lives = new Map();
  const nodeOf = (parent, name) => {
    const key = parent * trace.meta.names.length + name;
    let node = places.get(key);
    if (node === undefined) {
      node = tree.parent.length;
      places.set(key, node);
      tree.parent.push(parent);
      tree.name.push(name);
      columns.forEach((column) => tree[column].push(0));
    }
    return node;
  };
  // The node of a span over threads: below that of the span around it.
  const lifeOf = (slice) => {
    const unknown = [];
    for (let at = slice; at >= 0 && !lives.has(at); at = trace.link[at]) unknown.push(at);
    while (unknown.length > 0) {
      const at = unknown.pop(), around = trace.link[at];
      lives.set(at, nodeOf(around >= 0 ? lives.get(around) : 0, trace.name[at]));
    }
    return lives.get(slice);
  };
  const threads = new Map();
  for (const track of trace.tracks) {
    if (track.isEvents) continue;
    if (track.thread < 0) addLives(trace, track, [from, to], tree, lifeOf);
    else threads.set(track.thread, [...(threads.get(track.thread) || []), track]);
  }
  for (const tracks of threads.values()) addThread(trace, tracks, [from, to], tree, nodeOf, lifeOf);
  tree.total = tree.self.map((time, node) => time + tree.torn[node]);
  // What is inside was met later.
  for (let node = tree.total.length - 1; node > 0; node--) tree.total[tree.parent[node]] += tree.total[node];
  return tree;
}

// Counts a slice at its node.
function countSlice(trace, tree, node, slice) {
  tree.count[node]++;
  if (!trace.isWhole(slice)) return;
  const took = trace.end[slice] - trace.start[slice];
  tree.whole[node]++;
  tree.took[node] += took;
  tree.max[node] = Math.max(tree.max[node], took);
}

// Spans over threads: their time is that in which threads were in them.
function addLives(trace, track, [from, to], tree, lifeOf) {
  for (const number of track.rows) {
    const row = trace.rows[number];
    for (let slice = trace.firstLasting(row, from); slice < row.to && trace.start[slice] < to; slice++) {
      const node = lifeOf(slice);
      countSlice(trace, tree, node, slice);
      tree.lasted[node] += Math.min(trace.end[slice], to) - Math.max(trace.start[slice], from);
    }
  }
}

// What a thread did: spans, calls and the times in spans over threads lie in each other by their times.
function addThread(trace, tracks, [from, to], tree, nodeOf, lifeOf) {
  const stack = [], hasLosses = trace.losses.length > 0;
  for (const [slice, track] of inOrder(trace, tracks, [from, to])) {
    while (stack.length > 0 && (stack.at(-1).end < trace.end[slice] || stack.at(-1).end <= trace.start[slice])) stack.pop();
    const around = stack.at(-1), isEntered = trace.isEntered(slice);
    const node = isEntered ? lifeOf(trace.link[slice]) : nodeOf(around ? around.node : 0, trace.name[slice]);
    const time = Math.min(trace.end[slice], to) - Math.max(trace.start[slice], from);
    const isTorn = hasLosses && trace.isTorn(slice, track);
    tree[isTorn ? "torn" : "self"][node] += time;
    if (isTorn && !isEntered) tree.tornCount[node]++;
    if (around) tree[around.isTorn ? "torn" : "self"][around.node] -= time;
    if (!isEntered) countSlice(trace, tree, node, slice);
    stack.push({ end: trace.end[slice], node, isTorn });
  }
}

// The slices of a thread's tracks in the order of their starts. Of those that start together, the ones without a duration
// come first, as they do in each row; then the longer ones, and of equal ones that of the outer row.
function* inOrder(trace, tracks, [from, to]) {
  const cursors = [];
  for (const track of tracks) {
    for (const number of track.rows) {
      const row = trace.rows[number], at = trace.firstLasting(row, from);
      if (at < row.to && trace.start[at] < to) cursors.push({ at, end: row.to, track, order: cursors.length });
    }
  }
  const took = (cursor) => trace.end[cursor.at] - trace.start[cursor.at];
  const isBefore = (a, b) => trace.start[a.at] - trace.start[b.at] || (took(a) > 0) - (took(b) > 0) || took(b) - took(a)
    || a.order - b.order;
  cursors.sort(isBefore);
  while (cursors.length > 0) {
    const first = cursors[0];
    yield [first.at, first.track];
    if (++first.at >= first.end || trace.start[first.at] >= to) {
      cursors.shift();
      continue;
    }
    // There are few rows: the first one sinks to its place.
    let place = 0;
    while (place + 1 < cursors.length && isBefore(cursors[place + 1], first) < 0) {
      cursors[place] = cursors[place + 1];
      place++;
    }
    cursors[place] = first;
  }
}

// Sums by name, the one with the most time of its own first.
function sumsByName(tree) {
  const sums = new Map();
  for (let node = 1; node < tree.name.length; node++) {
    const name = tree.name[node];
    let sum = sums.get(name);
    if (!sum) sums.set(name, sum = { name, count: 0, whole: 0, total: 0, self: 0, torn: 0, took: 0, max: 0 });
    sum.count += tree.count[node];
    sum.whole += tree.whole[node];
    sum.took += tree.took[node];
    sum.self += tree.self[node];
    sum.torn += tree.tornCount[node];
    sum.max = Math.max(sum.max, tree.max[node]);
    if (!isInside(tree, node, name)) sum.total += tree.lasted[node] || tree.total[node];
  }
  return [...sums.values()].sort((a, b) => b.self - a.self);
}

// Whether a node lies in another one of its name, whose total has it already.
function isInside(tree, node, name) {
  for (let around = tree.parent[node]; around > 0; around = tree.parent[around]) {
    if (tree.name[around] === name) return true;
  }
  return false;
}

// Calls `each` for the spans and calls that lie in [from, to] in part; `name` < 0: of all names.
function eachSlice(trace, name, [from, to], each) {
  for (const row of trace.rows) {
    if (row.track.isEvents || (row.track.hasLinks && row.track.thread >= 0)) continue;
    for (let slice = trace.firstLasting(row, from); slice < row.to && trace.start[slice] < to; slice++) {
      if (name < 0 || trace.name[slice] === name) each(slice);
    }
  }
}

// What lies directly in a slice: names with their time and number, the one with the most time first.
function inside(trace, slice) {
  const row = trace.rowOf(slice), number = row.track.rows[row.depth + 1], sums = new Map();
  if (number === undefined || row.track.thread < 0) return [];
  const within = trace.rows[number];
  for (let inner = trace.firstAt(trace.start[slice], within.from, within.to); inner < within.to && trace.start[inner] < trace.end[slice]; inner++) {
    const name = trace.name[inner], sum = sums.get(name) || { name, count: 0, total: 0 };
    sum.count++;
    sum.total += trace.end[inner] - trace.start[inner];
    sums.set(name, sum);
  }
  return [...sums.values()].sort((a, b) => b.total - a.total);
}

// Durations by name, the shortest first. Slices without a known beginning or end have no duration.
function durationsByName(trace, stretch) {
  const counts = new Uint32Array(trace.meta.names.length), durations = [];
  const whole = (each) => eachSlice(trace, -1, stretch, (slice) => { if (trace.isWhole(slice)) each(trace.name[slice], slice); });
  whole((name) => counts[name]++);
  counts.forEach((count, name) => durations[name] = new Float64Array(count));
  counts.fill(0);
  whole((name, slice) => durations[name][counts[name]++] = trace.end[slice] - trace.start[slice]);
  durations.forEach((found) => found.sort());
  return durations;
}

// The duration that `percent` of these do not exceed, by nearest rank, as `ringmark report` has it.
function percentile(sorted, percent) {
  return sorted[Math.max(Math.ceil(sorted.length * percent / 100), 1) - 1];
}

// Buckets by powers of two of the duration: smallest duration of each, and how many.
function histogram(sorted) {
  const counts = new Map();
  for (const took of sorted) {
    const power = Math.floor(Math.log2(Math.max(took, 1)));
    counts.set(power, (counts.get(power) || 0) + 1);
  }
  const powers = [...counts.keys()].sort((a, b) => a - b);
  const buckets = [];
  for (let power = powers[0]; power <= powers.at(-1); power++) {
    buckets.push({ from: 2 ** power, count: counts.get(power) || 0 });
  }
  return buckets;
}

// The slowest slices, the slowest first. Those that have not ended, or whose beginning is not known,
// are only as long as they are seen.
function slowest(trace, name, stretch, most) {
  let found = [], least = -1;
  const long = (slice) => trace.end[slice] - trace.start[slice];
  const cut = () => {
    found.sort((a, b) => long(b) - long(a));
    found.length = Math.min(found.length, most);
    if (found.length === most) least = long(found[most - 1]);
  };
  eachSlice(trace, name, stretch, (slice) => {
    if (long(slice) <= least) return;
    found.push(slice);
    if (found.length >= 8 * most) cut();
  });
  cut();
  return found;
}

// Which texts hold the words, without regard to the case of ASCII letters. As Horspool has it: what
// stands under the last letter of the words says how far the next place may be.
function textsWith(texts, words) {
  const { ends, bytes } = texts, found = new Uint8Array(ends.length);
  const wanted = new TextEncoder().encode(words).map(lowered), last = wanted.length - 1;
  const steps = stepsOf(wanted), end = wanted[last], other = end >= 97 && end <= 122 ? end - 32 : end;
  for (let at = 0, text = 0; at + last < bytes.length;) {
    const byte = bytes[at + last];
    if ((byte === end || byte === other) && isAt(bytes, at, wanted)) {
      text = textAt(ends, text, at);
      if (at + last < ends[text + 1]) {
        found[text] = 1;
        at = ends[text + 1];
        continue;
      }
    }
    at += steps[byte];
  }
  return found;
}

// By byte: from its last place in the words, but for the end, to the end.
function stepsOf(wanted) {
  const steps = new Uint32Array(256).fill(wanted.length), last = wanted.length - 1;
  for (let byte = 0; byte < 256; byte++) {
    const place = wanted.subarray(0, last).lastIndexOf(lowered(byte));
    if (place >= 0) steps[byte] = last - place;
  }
  return steps;
}

function isAt(bytes, at, wanted) {
  let place = wanted.length - 1;
  while (place >= 0 && lowered(bytes[at + place]) === wanted[place]) place--;
  return place < 0;
}

function lowered(byte) {
  return byte >= 65 && byte <= 90 ? byte + 32 : byte;
}

// The text that a byte lies in; it is not before `text`.
function textAt(ends, text, at) {
  let step = 1;
  while (text + step < ends.length && ends[text + step] <= at) step *= 2;
  let low = text, high = Math.min(text + step, ends.length - 1);
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ends[middle + 1] <= at) low = middle + 1;
    else high = middle;
  }
  return low;
}

// The slices whose name or arguments hold the words: how many there are before each one. Texts that
// are still being read are left out.
function search(trace, words) {
  const wanted = words.toLowerCase();
  const names = Uint8Array.from(trace.meta.names, (name) => name.toLowerCase().includes(wanted) ? 1 : 0);
  const texts = trace.texts ? textsWith(trace.texts, words) : null;
  const before = new Uint32Array(trace.size + 1);
  for (let slice = 0, sum = 0; slice < trace.size; slice++) {
    const text = trace.text[slice];
    sum += names[trace.name[slice]] | (text < 0 || !texts ? 0 : texts[text]);
    before[slice + 1] = sum;
  }
  return { words, before, total: before[trace.size] };
}
