// Draws the timeline: slices as pixels of their own, in time that grows with the pixels and not with
// the slices; then texts and lines.

const LABEL_MIN = 26, LABEL_HEIGHT_MIN = 10, OPEN_EDGE = 14;
// What is too narrow to be told apart stands in the lower part of its row.
const LOW_PART = 0.6, LOW_HEIGHT_MIN = 8;
// Slices of a pixel of which the longest gives the colour.
const COMPARED_MAX = 16;

// A place that scrolls, but stays in sight as long as what it names.
function stuck(y, least, most) {
  return Math.max(y, Math.min(least, most));
}

class Timeline {
  constructor(canvas, state) {
    this.canvas = canvas;
    this.state = state;
    this.context = canvas.getContext("2d", { alpha: false });
    this.labels = [];
    this.edges = [];
  }

  // Takes the size of the canvas on the screen.
  resize() {
    const ratio = window.devicePixelRatio || 1;
    const { clientWidth, clientHeight } = this.canvas;
    this.ratio = ratio;
    setGutter(clientWidth);
    this.width = Math.max(clientWidth, GUTTER + 50);
    this.height = Math.max(clientHeight, RULER + 20);
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.image = this.context.createImageData(this.canvas.width, this.canvas.height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.context.font = FONT;
    this.letter = this.context.measureText("m").width;
  }

  // Pixels of the canvas per ns, and the first one of the rows.
  get scale() {
    return (this.canvas.width - this.left) / (this.state.to - this.state.from);
  }

  get left() {
    return Math.round(GUTTER * this.ratio);
  }

  xOf(time) {
    return GUTTER + (time - this.state.from) / (this.state.to - this.state.from) * (this.width - GUTTER);
  }

  timeAt(x) {
    return this.state.from + (x - GUTTER) / (this.width - GUTTER) * (this.state.to - this.state.from);
  }

  draw() {
    const { state, pixels } = this;
    const theme = THEMES[state.theme];
    this.theme = theme;
    this.labels.length = 0;
    pixels.fill(pixel(theme.bg));
    this.fill(0, this.left, 0, this.canvas.height, pixel(theme.head));
    this.drawOutside();
    this.drawGrid();
    const shown = state.layout.blocks.filter((block) => this.isSeen(block.y, block.height));
    for (const block of shown) {
      this.fillLine(block.y, HEAD, pixel(theme.head));
      for (const line of block.lines) {
        if (this.isSeen(line.y, line.height)) this.drawRow(line);
      }
      for (const loss of block.losses) this.drawLoss(block, loss);
    }
    this.fill(0, this.canvas.width, 0, Math.round(RULER * this.ratio), pixel(theme.head));
    this.context.putImageData(this.image, 0, 0);
    this.context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    this.drawTexts(shown);
    this.drawRuler();
    this.drawMarks();
    if (state.layout.blocks.length === 0) this.drawNothing();
  }

  // Before and after the trace.
  drawOutside() {
    const { width, height } = this.canvas, colour = pixel(this.theme.head);
    this.fill(this.left, Math.min(Math.round(this.pixelOf(0)), width), 0, height, colour);
    this.fill(Math.max(Math.round(this.pixelOf(this.state.trace.length)), this.left), width, 0, height, colour);
  }

  pixelOf(time) {
    return this.left + (time - this.state.from) * this.scale;
  }

  isSeen(y, height) {
    const top = RULER + y - this.state.top;
    return top + height > RULER && top < this.height;
  }

  // Fills pixels of the canvas.
  fill(x0, x1, y0, y1, colour) {
    const { width, height } = this.canvas;
    x0 = Math.max(x0, 0);
    x1 = Math.min(x1, width);
    y0 = Math.max(y0, 0);
    y1 = Math.min(y1, height);
    if (x1 <= x0) return;
    for (let y = y0; y < y1; y++) this.pixels.fill(colour, y * width + x0, y * width + x1);
  }

  rowsOf(y, height) {
    const top = (RULER + y - this.state.top) * this.ratio;
    return [Math.max(Math.round(top), Math.round(RULER * this.ratio)), Math.round(top + height * this.ratio)];
  }

  fillLine(y, height, colour) {
    const [y0, y1] = this.rowsOf(y, height);
    this.fill(0, this.canvas.width, y0, y1, colour);
  }

  // That of the longest slice, or of the first one that is found.
  colourOf(from, to) {
    const { state } = this;
    const { trace } = state;
    const found = trace.isState(from) ? null : state.found;
    let slice = from;
    if (found) {
      if (found.before[to] === found.before[from]) return pixel(this.theme.dim);
      while (found.before[slice + 1] === found.before[from]) slice++;
    } else {
      const last = Math.min(to, from + COMPARED_MAX);
      for (let next = from + 1, most = trace.end[from] - trace.start[from]; next < last; next++) {
        const long = trace.end[next] - trace.start[next];
        if (long > most) [most, slice] = [long, next];
      }
    }
    return trace.isState(slice) ? pixel(this.theme.does[trace.name[slice]]) : state.colours.pixel[trace.name[slice]];
  }

  // The colour of text on a slice.
  inkOf(slice) {
    const { state, theme } = this, name = state.trace.name[slice];
    if (state.trace.isState(slice)) return inkOn(theme.does[name]);
    return this.isDimmed(slice) ? theme.soft : state.colours.ink[name];
  }

  // Draws two lines of pixels of the row, copies them to the others, and then the edges, which differ.
  drawRow(line) {
    const { width, height } = this.canvas;
    const [y0, end] = this.rowsOf(line.y + 1, line.height - 2);
    const y1 = Math.min(end, height);
    if (y0 >= y1) return;
    if (line.row.track.value && this.state.trace.valuesOf(line.row)) return drawCounter(this, line);
    this.edges.length = 0;
    const { isEvents, isStates } = line.row.track;
    const isHigh = y1 - y0 >= LOW_HEIGHT_MIN && !isEvents && !isStates;
    const low = isHigh ? Math.round(y1 - (y1 - y0) * LOW_PART) : y0;
    this.drawSlices(line.row, y0, y1, low);
    for (let y = y0 + 1; y < y1; y++) {
      const from = (y < low ? y0 : low) * width;
      if (y !== low) this.pixels.copyWithin(y * width, from, from + width);
    }
    for (const edge of this.edges) this.dissolve(edge, y0, y1);
  }

  // Slices narrower than a pixel are one block per pixel; the next one is found by bisection.
  drawSlices(row, y0, y1, low) {
    const { trace, from, to } = this.state;
    const { scale, left } = this;
    const { isEvents } = row.track;
    let slice = trace.firstLasting(row, from - (isEvents ? 2 / scale : 0));
    while (slice < row.to && trace.start[slice] < to) {
      const x = left + (trace.start[slice] - from) * scale;
      const end = left + (trace.end[slice] - from) * scale;
      if (end - x >= 2 || trace.flags[slice] & OPEN) {
        this.drawSlice(slice, Math.min(x, this.canvas.width - 3), Math.max(end, x + 3), y0, y1, low);
        slice++;
        continue;
      }
      const column = Math.max(Math.floor(x), left);
      const over = from + (column + 1 - left) / scale;
      let next = this.after(row, slice, over);
      this.fill(column, column + (isEvents ? Math.round(2 * this.ratio) : 1), low, low + 1, this.colourOf(slice, next));
      if (isEvents && next === slice + 1) this.eventLabel(row, slice, x, y0, y1);
      slice = next;
    }
  }

  // The first slice after this one that is wide, or begins at or after a time. It goes on in steps that
  // double: most pixels hold few slices.
  after(row, slice, over) {
    const { trace } = this.state;
    let low = slice + 1, step = 1;
    while (low < row.to && trace.start[low] < over) {
      low = Math.min(low + step, row.to);
      step *= 2;
    }
    const next = trace.firstAt(over, Math.max(slice + 1, low - step), low);
    return next - 1 > slice && trace.end[next - 1] > over ? next - 1 : next;
  }

  // An open slice goes on beyond the end of the trace, and fades there.
  drawSlice(slice, x, end, y0, y1, low) {
    const { left, canvas, state, theme } = this, edge = Math.round(OPEN_EDGE * this.ratio);
    const x0 = Math.max(Math.round(x), left), x1 = Math.min(Math.round(end), canvas.width);
    const colour = this.colourOf(slice, slice + 1);
    const isOpen = state.trace.isOpen(slice), isBefore = state.trace.flags[slice] & BEFORE;
    const last = isOpen ? x1 + edge : x1 - (x1 - x0 > 3 ? 1 : 0);
    for (const y of y0 === low ? [y0] : [y0, low]) this.fill(x0, last, y, y + 1, colour);
    if (isOpen) this.edges.push([x1, x1 + edge, theme.head]);
    if (isBefore) this.edges.push([x0, Math.min(x1, x0 + edge), theme.bg]);
    const wide = (x1 - x0) / this.ratio - (isBefore ? OPEN_EDGE : 0);
    if (wide < LABEL_MIN || y1 - y0 < LABEL_HEIGHT_MIN * this.ratio) return;
    const name = state.trace.labelOf(slice) + (isOpen ? " (open)" : "");
    const shift = isBefore ? OPEN_EDGE : 0;
    this.label(name, x0 / this.ratio + 3 + shift, y0, y1, wide - 6, this.inkOf(slice));
  }

  // Whether there is a search, and the slice does not match it.
  isDimmed(slice) {
    const { found } = this.state;
    return found && found.before[slice + 1] === found.before[slice];
  }

  eventLabel(row, slice, x, y0, y1) {
    const { trace, to } = this.state;
    const next = slice + 1 < row.to ? trace.start[slice + 1] : to;
    const wide = (Math.min(next, to) - trace.start[slice]) * this.scale / this.ratio;
    if (wide > 2 * LABEL_MIN && x >= this.left) this.label(trace.nameOf(slice), x / this.ratio + 5, y0, y1, wide - 9, this.isDimmed(slice) ? this.theme.soft : this.theme.fg);
  }

  // As much of a text as fits is drawn later.
  label(text, x, y0, y1, wide, ink) {
    const letters = Math.floor(wide / this.letter);
    if (letters < 2) return;
    const shown = text.length <= letters ? text : text.slice(0, letters - 1) + "…";
    this.labels.push([shown, x, (y0 + y1) / 2 / this.ratio, wide, ink]);
  }

  // How many more slices begin in the pixel of this one; 0 if it is wide enough to be seen.
  besides(slice) {
    const { trace } = this.state, row = trace.rowOf(slice), pixelNs = 1 / this.scale;
    if (trace.end[slice] - trace.start[slice] >= 2 * pixelNs) return 0;
    return trace.firstAt(trace.start[slice] + pixelNs, slice + 1, row.to) - slice - 1;
  }

  // An end that is no end: every other square is missing.
  dissolve([x0, x1, paper], y0, y1) {
    const { width, height } = this.canvas, side = Math.max(2, Math.round(3 * this.ratio));
    const bg = pixel(paper);
    for (let y = y0; y < Math.min(y1, height); y++) {
      for (let x = Math.round(x0); x < Math.min(x1, width); x++) {
        if ((Math.floor((x - x0) / side) + Math.floor((y - y0) / side)) % 2) this.pixels[y * width + x] = bg;
      }
    }
  }

  // Hatched over the whole block, at least three pixels wide. Before the trace all of it is a loss that
  // is earlier.
  drawLoss(block, loss) {
    const { from, to } = this.state, { left, scale, theme } = this;
    const first = isBeforeAll(loss) ? Math.min(from, 0) : loss.from;
    if (loss.to < from || first > to) return;
    const x = left + (first - from) * scale;
    const x0 = Math.max(Math.floor(x), left);
    const x1 = Math.min(Math.max(Math.ceil(left + (loss.to - from) * scale), Math.floor(x) + 3), this.canvas.width);
    const [y0, y1] = this.rowsOf(block.y, block.height - GAP);
    const { width, height } = this.canvas;
    const ink = pixel(theme.hatch), paper = pixel(theme.hatchBg), bg = pixel(theme.bg), head = pixel(theme.head), line = pixel(theme.line);
    for (let y = Math.max(y0, 0); y < Math.min(y1, height); y++) {
      for (let x = x0; x < x1; x++) {
        const at = y * width + x;
        if ((x + y & 7) < 2) this.pixels[at] = ink;
        else if (this.pixels[at] === bg || this.pixels[at] === head || this.pixels[at] === line) this.pixels[at] = paper;
      }
    }
    const wide = (x1 - x0) / this.ratio, number = count(loss.events);
    const fits = (text) => (text.length + 1) * this.letter <= wide;
    const words = [number + " not here: " + loss.cause, number + " not here", number].find(fits);
    if (words) this.labels.push([words, x0 / this.ratio + 3, RULER + block.y - this.state.top + HEAD / 2, wide - 6, theme.fg, paper]);
  }

  drawTexts(blocks) {
    const { context, theme, state } = this;
    context.save();
    context.beginPath();
    context.rect(GUTTER, RULER, this.width - GUTTER, this.height - RULER);
    context.clip();
    context.font = FONT;
    context.textBaseline = "middle";
    for (const [text, x, y, wide, ink, paper] of this.labels) {
      if (paper !== undefined) {
        context.fillStyle = css(theme.hatchBg);
        context.fillRect(x - 2, y - 7, Math.min(wide, text.length * this.letter + 4), 14);
      }
      context.fillStyle = css(ink);
      context.fillText(text, x, y, wide);
    }
    context.restore();
    context.save();
    context.beginPath();
    context.rect(0, RULER, this.width, this.height - RULER);
    context.clip();
    context.font = FONT;
    context.textBaseline = "middle";
    for (const block of blocks) this.drawGutter(block, state, theme);
    context.restore();
  }

  drawGutter(block, state, theme) {
    const top = RULER - state.top, context = this.context;
    context.fillStyle = css(theme.soft);
    for (const line of block.lines) {
      if (!line.label || !this.isSeen(line.y, line.end - line.y)) continue;
      const height = Math.max(line.height, LINE), y = stuck(top + line.y, RULER + HEAD, top + line.end - height);
      const texts = line.range ? [line.label, line.range] : [line.label];
      texts.forEach((text, place) => context.fillText(this.cut(text, GUTTER - 24), 18, y + height * (place + 0.5) / texts.length));
    }
    const y = stuck(top + block.y, RULER, top + block.y + block.height - GAP - HEAD);
    context.fillStyle = css(theme.head);
    context.fillRect(0, y, GUTTER - 1, HEAD);
    const isPanicked = state.trace.meta.panicked.includes(block.thread);
    context.fillStyle = css(isPanicked ? theme.hatch : theme.fg);
    const label = block.label + (isPanicked ? ", panicked" : ""), isLong = label.length * this.letter > GUTTER - 12;
    context.fillText(this.cut(isLong && isPanicked ? label.replace(/ \[\d+\]/, "") : label, GUTTER - 12), 6, y + HEAD / 2);
    context.fillStyle = css(theme.line);
    context.fillRect(0, top + block.y + block.height - 1, this.width, 1);
  }

  // A name that is too wide keeps its end where that is an id in brackets: others may begin alike.
  cut(text, wide) {
    const letters = Math.floor(wide / this.letter);
    if (text.length <= letters) return text;
    const id = text.match(/ \[\d+\]$/)?.[0] ?? "";
    const end = id.length + 3 < letters ? id.trimStart() : "";
    return text.slice(0, letters - 1 - end.length) + "…" + end;
  }

  // Times between the lines of the grid: 1, 2 or 5 of a power of ten.
  get step() {
    const wanted = (this.state.to - this.state.from) / ((this.width - GUTTER) / 110);
    const power = 10 ** Math.floor(Math.log10(wanted));
    return [1, 2, 5, 10].map((n) => n * power).find((step) => step >= wanted);
  }

  eachTick(each) {
    const step = this.step, first = Math.ceil(this.state.from / step), last = Math.floor(this.state.to / step);
    for (let n = first; n <= last; n++) each(n * step, this.xOf(n * step), step);
  }

  drawGrid() {
    const line = pixel(this.theme.line);
    this.eachTick((time, x) => {
      const column = Math.round(x * this.ratio);
      this.fill(column, column + 1, 0, this.canvas.height, line);
    });
  }

  drawRuler() {
    const { context, theme, state } = this;
    context.font = FONT;
    context.textBaseline = "middle";
    context.fillStyle = css(theme.soft);
    context.fillText(this.cut(duration(state.to - state.from) + " shown", GUTTER - 12), 6, RULER / 2);
    const free = this.drawEndLabel();
    this.eachTick((time, x, step) => {
      context.fillStyle = css(theme.line);
      context.fillRect(Math.round(x), RULER - 7, 1, 7);
      context.fillStyle = css(theme.soft);
      if (x < free - 60) context.fillText(timeSince(time, step), x + 3, RULER / 2);
    });
    context.fillStyle = css(theme.line);
    context.fillRect(0, RULER - 1, this.width, 1);
    context.fillRect(GUTTER - 1, 0, 1, this.height);
  }

  // Says that the empty space is no fault.
  drawNothing() {
    const { context, theme, state } = this;
    context.fillStyle = css(theme.soft);
    const text = state.trace.meta.part ? "No span, call or event matches." : "The trace has no spans, calls and events.";
    context.fillText(this.cut(text, this.width - GUTTER - 24), GUTTER + 12, RULER + 24);
  }

  get endColour() {
    return this.state.trace.meta.ends.length > 0 ? this.theme.hatch : this.theme.soft;
  }

  // What the end of the trace is, in the ruler, if that leaves its times to be read. Returns where it begins.
  drawEndLabel() {
    const { trace } = this.state, x = this.xOf(trace.length), { context } = this;
    if (x < GUTTER || x > this.width) return this.width;
    const [end] = trace.meta.ends, how = end && end.slice(end.indexOf("]: ") + 3);
    const all = [how && "end of the trace: " + how, "end of the trace", "end"];
    const text = all.find((text) => text && text.length * this.letter < Math.min(0.25 * (this.width - GUTTER), x - GUTTER));
    if (!text) return x;
    context.fillStyle = css(this.endColour);
    context.fillText(text, x - text.length * this.letter - 4, RULER / 2);
    return x - text.length * this.letter - 4;
  }

  drawEnd() {
    this.context.fillStyle = css(this.endColour);
    this.context.fillRect(Math.round(this.xOf(this.state.trace.length)), 0, 2, this.height);
  }

  // The end of the trace, the stretch that is selected, and the slice.
  drawMarks() {
    const { context, theme, state } = this;
    context.save();
    context.beginPath();
    context.rect(GUTTER, 0, this.width - GUTTER, this.height);
    context.clip();
    this.drawEnd();
    if (state.stretch) {
      const x0 = this.xOf(state.stretch[0]), x1 = this.xOf(state.stretch[1]);
      context.fillStyle = css(theme.accent) + "26";
      context.fillRect(x0, 0, x1 - x0, this.height);
      context.fillStyle = css(theme.accent);
      context.fillRect(x0, 0, 1, this.height);
      context.fillRect(x1 - 1, 0, 1, this.height);
    }
    const line = state.slice >= 0 && state.layout.lineOf.get(state.trace.rowOf(state.slice));
    if (line && this.isSeen(line.y, line.height)) {
      const x0 = this.xOf(state.trace.start[state.slice]);
      const x1 = Math.max(this.xOf(state.trace.end[state.slice]), x0 + 4);
      context.strokeStyle = css(theme.bg);
      context.lineWidth = 4;
      const box = [x0, RULER + line.y - state.top + 1, x1 - x0, line.height - 2];
      context.strokeRect(...box);
      context.strokeStyle = css(theme.fg);
      context.lineWidth = 2;
      context.strokeRect(...box);
    }
    context.restore();
  }

  // The slice at a place of the canvas, or -1; it may be a few pixels beside.
  sliceAt(x, y) {
    const { state } = this, { trace } = state;
    if (x < GUTTER || y < RULER) return -1;
    const { line } = lineAt(state.layout, y - RULER + state.top);
    if (!line) return -1;
    const time = this.timeAt(x), slack = 3 * (state.to - state.from) / (this.width - GUTTER);
    const next = trace.firstAt(time + 1e-6, line.row.from, line.row.to);
    const before = next - 1;
    if (line.row.values && before >= line.row.from) return before;
    if (before >= line.row.from && trace.end[before] + slack >= time) return before;
    return next < line.row.to && trace.start[next] - slack <= time ? next : -1;
  }
}
