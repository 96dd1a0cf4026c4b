// The line of a counter.

const COMPACT = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 4 });

// A value of a counter, as short as it can be read: 812, 48.25, 123,456, 12.35M.
function figure(n) {
  if (Math.abs(n) >= 1e6) return COMPACT.format(n);
  return Number.isInteger(n) ? count(n) : String(Number(n.toPrecision(4)));
}

// Draws the values of a row: each holds until the next one. A pixel with several of them is filled from the
// least to the most. The bottom is 0, or the least of them if that is less.
function drawCounter(timeline, line) {
  const { trace, from, colours } = timeline.state, { scale, left, ratio } = timeline, { row } = line;
  const { all, least, most } = trace.valuesOf(row);
  const bottom = Math.min(least, 0), span = Math.max(most, 0) - bottom || 1;
  line.range = (least === most ? figure(least) : figure(least) + " to " + figure(most)) + (row.track.unit ? " " + row.track.unit : "");
  const base = Math.round((RULER + line.y + line.height - 1 - timeline.state.top) * ratio);
  const high = (line.height - 4) * ratio / span;
  const ink = colours.pixel[trace.name[row.from]], shade = pixel(timeline.theme.dim);
  let slice = trace.firstAt(from, row.from, row.to);
  let value = slice > row.from ? all[slice - 1 - row.from] : NaN;
  const end = Math.min(timeline.canvas.width, Math.round(timeline.pixelOf(trace.length)));
  for (let column = left; column < end; column++) {
    const over = from + (column + 1 - left) / scale;
    let low = value, top = value;
    for (; slice < row.to && trace.start[slice] < over; slice++) {
      value = all[slice - row.from];
      if (!(low <= value)) low = value;
      if (!(top >= value)) top = value;
    }
    if (isNaN(top)) continue;
    const y0 = Math.round(base - (top - bottom) * high) - 2, y1 = Math.round(base - (low - bottom) * high);
    timeline.fill(column, column + 1, y0, y1, ink);
    timeline.fill(column, column + 1, y1, base, shade);
  }
}
