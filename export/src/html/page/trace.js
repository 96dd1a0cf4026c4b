// The trace: columns of slices, rows of slices, the texts of arguments.

const OPEN = 1, BEFORE = 2, ENTERED = 4, FLAGS = 8;

class Columns {
  constructor(length) {
    this.start = new Float64Array(length);
    this.end = new Float64Array(length);
    this.name = new Uint32Array(length);
    this.flags = new Uint8Array(length);
    this.text = new Int32Array(length);
    // The slice that is around a span over threads, or that a thread was in; -1: none.
    this.link = new Int32Array(length).fill(-1);
  }
}

// Reads one row into the columns from `from` on. Texts that were not met yet have the next numbers.
function readRow(reader, columns, from, length, met, hasLinks) {
  const to = from + length;
  for (let i = from, at = 0; i < to; i++) columns.start[i] = at += reader.number();
  for (let i = from; i < to; i++) columns.end[i] = columns.start[i] + reader.number();
  for (let i = from; i < to; i++) {
    const word = reader.number();
    columns.flags[i] = word % FLAGS;
    columns.name[i] = Math.floor(word / FLAGS);
  }
  for (let i = from; i < to; i++) {
    const word = reader.number();
    columns.text[i] = word > 1 ? word - 2 : word === 1 ? met++ : -1;
  }
  for (let i = from; hasLinks && i < to; i++) columns.link[i] = reader.number() - 1;
  return met;
}

function readTexts(reader) {
  const number = reader.number();
  const ends = new Uint32Array(number + 1);
  for (let i = 0, end = 0; i < number; i++) ends[i + 1] = end += reader.number();
  return { ends, bytes: reader.bytes.subarray(reader.at) };
}

// Whether a loss lies before everything that is here.
function isBeforeAll(loss) {
  return loss.from <= 0 && loss.to <= 0;
}

class Trace {
  // The texts of arguments come later: a picture needs none of them.
  constructor(meta, rows) {
    this.meta = meta;
    this.length = Math.max(meta.length, 1);
    this.texts = null;
    this.tracks = meta.tracks.map(([process, thread, label, depth, isEvents, value, unit, hasLinks]) => ({ process, thread, label, depth, isEvents, value, unit, hasLinks, rows: [] }));
    this.states = meta.states.map((thread) => ({ process: meta.threads.find(([number]) => number === thread)[1], thread, label: "what it did", depth: 1, isEvents: 0, value: "", unit: "", hasLinks: 0, isStates: 1, rows: [] }));
    this.readRows(rows);
    this.losses = meta.losses.map(([process, thread, from, to, events, cause]) => ({ process, thread, from, to, events, cause }));
    this.processes = new Map(meta.processes.map(([number, name, pid]) => [number, { name, pid }]));
    this.threads = new Map(meta.threads.map(([number, process, name, tid]) => [number, { process, name, tid }]));
    this.decoder = new TextDecoder();
  }

  readRows(reader) {
    this.rows = [];
    this.stateRows = [];
    // A slice has at least four bytes.
    const columns = new Columns(Math.ceil(reader.bytes.length / 4));
    let number = 0, met = 0;
    for (const track of this.tracks) {
      for (let depth = 0; depth < track.depth; depth++) {
        const length = reader.number();
        met = readRow(reader, columns, number, length, met, track.hasLinks);
        track.rows.push(this.rows.length);
        this.rows.push({ from: number, to: number + length, track, depth });
        number += length;
      }
    }
    // What threads did comes after all spans, calls and events.
    this.size = number;
    for (const track of this.states) {
      const length = reader.number();
      met = readRow(reader, columns, number, length, met, false);
      this.stateRows.push({ from: number, to: number + length, track, depth: 0 });
      number += length;
    }
    this.start = columns.start.subarray(0, number);
    this.end = columns.end.subarray(0, number);
    this.name = columns.name.subarray(0, number);
    this.flags = columns.flags.subarray(0, number);
    this.text = columns.text.subarray(0, number);
    this.link = columns.link.subarray(0, number);
  }

  nameOf(slice) {
    return (this.isState(slice) ? this.meta.does : this.meta.names)[this.name[slice]];
  }

  // Its name on the timeline: of a wait with what for.
  labelOf(slice) {
    const text = this.isState(slice) && this.texts ? this.textOf(slice) : "";
    return this.nameOf(slice) + (text ? " for " + text : "");
  }

  textOf(slice) {
    const text = this.text[slice];
    if (text < 0) return "";
    if (!this.texts) return "(being read)";
    return this.decoder.decode(this.texts.bytes.subarray(this.texts.ends[text], this.texts.ends[text + 1]));
  }

  // Whether records of a slice's thread were lost while it lasted: then its own time is not known.
  isTorn(slice, track) {
    if (!this.lossesOf) {
      this.lossesOf = new Map();
      for (const loss of this.losses) {
        const key = loss.thread >= 0 ? loss.thread : "p" + loss.process;
        if (!this.lossesOf.has(key)) this.lossesOf.set(key, []);
        this.lossesOf.get(key).push(loss);
      }
    }
    const touches = (loss) => loss.from <= this.end[slice] && loss.to >= this.start[slice] && !isBeforeAll(loss);
    const keys = [track.thread, "p" + track.process];
    return keys.some((key) => (this.lossesOf.get(key) || []).some(touches));
  }

  // The values of a counter's row with the least and the most; null: one of them is no number.
  valuesOf(row) {
    if (!this.texts) return null;
    if (row.values !== undefined) return row.values;
    const all = new Float64Array(row.to - row.from), mark = " " + row.track.value + "=";
    let least = Infinity, most = -Infinity;
    for (let i = 0; i < all.length; i++) {
      const text = " " + this.textOf(row.from + i), at = text.indexOf(mark);
      all[i] = at < 0 ? NaN : parseFloat(text.slice(at + mark.length));
      if (!isFinite(all[i])) return row.values = null;
      least = Math.min(least, all[i]);
      most = Math.max(most, all[i]);
    }
    return row.values = { all, least, most };
  }

  rowOf(slice) {
    const rows = this.isState(slice) ? this.stateRows : this.rows;
    let low = 0, high = rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (rows[middle].to <= slice) low = middle + 1;
      else high = middle;
    }
    return rows[low];
  }

  // Whether it is a time in which a thread ran, was ready or waited.
  isState(slice) {
    return slice >= this.size;
  }

  // How long a thread did what in [from, to): by number of what it does. Null: nothing is known of it.
  statesOf(thread, [from, to]) {
    const row = this.stateRows.find((row) => row.track.thread === thread);
    if (!row) return null;
    const sums = this.meta.does.map(() => 0);
    for (let slice = this.firstLasting(row, from); slice < row.to && this.start[slice] < to; slice++) {
      sums[this.name[slice]] += Math.min(this.end[slice], to) - Math.max(this.start[slice], from);
    }
    return sums;
  }

  // What the thread of a slice waited for while it lasted, as far as it was seen: lines, the longest wait first.
  waitsIn(slice) {
    const { track } = this.rowOf(slice), from = this.start[slice], to = this.end[slice], sums = new Map();
    const row = track.isStates ? null : this.stateRows.find((row) => row.track.thread === track.thread);
    for (let at = row ? this.firstLasting(row, from) : 0; row && at < row.to && this.start[at] < to; at++) {
      const text = this.textOf(at), time = Math.min(this.end[at], to) - Math.max(this.start[at], from);
      if (text) sums.set(text, (sums.get(text) || 0) + time);
    }
    return [...sums].sort((a, b) => b[1] - a[1]).map(([text, time]) => duration(time) + " " + text);
  }

  // The same in words, for what a thread did while a slice lasted; empty: it is not known.
  statesIn(slice) {
    const { track } = this.rowOf(slice), took = this.end[slice] - this.start[slice];
    const sums = track.isStates || track.isEvents || track.thread < 0 ? null : this.statesOf(track.thread, [this.start[slice], this.end[slice]]);
    const known = sums ? sums.reduce((a, b) => a + b, 0) : 0;
    if (known === 0) return "";
    const words = sums.flatMap((time, does) => time > 0 ? [duration(time) + " " + this.meta.does[does]] : []);
    return words.join(", ") + (known < took ? ", " + duration(took - known) + " not known" : "");
  }

  isOpen(slice) {
    return (this.flags[slice] & OPEN) !== 0;
  }

  // Whether both ends are known, so that it has a duration.
  isWhole(slice) {
    return (this.flags[slice] & (OPEN | BEFORE)) === 0;
  }

  // Whether it is a time in which a thread was in a span over threads, which is a slice of its own.
  isEntered(slice) {
    return (this.flags[slice] & ENTERED) !== 0;
  }

  isEvent(slice) {
    return this.rowOf(slice).track.isEvents === 1;
  }

  threadLabel(track) {
    const thread = this.threads.get(track.thread);
    if (!thread) return this.processLabel(track.process) + ", over threads";
    return (thread.name || this.processLabel(thread.process)) + " [" + thread.tid + "]";
  }

  processLabel(number) {
    const process = this.processes.get(number);
    return process ? process.name + " [" + process.pid + "]" : "?";
  }

  // The first slice of [from, to) that starts at or after a time.
  firstAt(time, from, to) {
    const start = this.start;
    while (from < to) {
      const middle = (from + to) >> 1;
      if (start[middle] < time) from = middle + 1;
      else to = middle;
    }
    return from;
  }

  // The first slice of a row that is not over at a time.
  firstLasting(row, time) {
    const next = this.firstAt(time, row.from, row.to);
    return next > row.from && this.end[next - 1] > time ? next - 1 : next;
  }

  // The slice around another one in its track, or -1. Spans over threads, and the times in them, say it.
  parentOf(slice) {
    const row = this.rowOf(slice);
    if (row.track.hasLinks) return this.link[slice];
    if (row.depth === 0) return -1;
    const around = this.rows[row.track.rows[row.depth - 1]];
    const place = this.firstAt(this.start[slice] + 0.5, around.from, around.to) - 1;
    return place >= around.from && this.end[place] >= this.end[slice] ? place : -1;
  }
}
