"""SVG: one line for each contestant on a logarithmic scale, and curves."""

import math
from html import escape

import race

WIDTH, LEFT, LINE, TOP = 860, 260, 24, 58
OURS, THEIRS, FLOOR = "#b3261e", "#33608f", "#6a6a6a"
# What a figure is compared with, and is no tracer.
FLOORS = ("plain", "rdtsc", "rtrb", "bbqueue")


def size(value):
    """Bytes as a person writes them."""
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if value >= unit:
            return f"{value // unit} {name}"
    return str(value)


def head(width, height, title):
    return [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" '
            'font-family="DejaVu Sans, Verdana, sans-serif" font-size="12">',
            f'<rect width="{width}" height="{height}" fill="white"/>',
            f'<text x="12" y="22" font-size="14" font-weight="bold">{escape(title)}</text>']


def colour(name):
    if name.startswith("Ringmark"):
        return OURS
    return FLOOR if name.startswith(FLOORS) else THEIRS


def bars(title, rows, figure="ns"):
    """A plot of the rows that have this figure, fastest first, or None."""
    rows = [row for row in rows if getattr(row, figure)]
    if not rows:
        return None
    found = {row.name: race.percentiles(getattr(row, figure)) for row in rows}
    figures = sorted(found.items(), key=lambda pair: pair[1][1])
    marks = log_marks(min(three[0] for three in found.values()),
                      max(three[2] for three in found.values()))
    low, high = math.log10(marks[0]), math.log10(marks[-1])

    def x(value):
        return LEFT + (math.log10(value) - low) / (high - low) * (WIDTH - LEFT - 80)

    height = TOP + LINE * len(figures) + 34
    out = head(WIDTH, height, title)
    out.append('<text x="12" y="40" fill="#666">median, line from p10 to p90, logarithmic; '
               f'<tspan fill="{OURS}">Ringmark</tspan>, <tspan fill="{THEIRS}">rivals</tspan>, '
               f'<tspan fill="{FLOOR}">floors</tspan></text>')
    for value in marks:
        at, is_power = x(value), math.log10(value).is_integer()
        out.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{TOP - 6}" y2="{height - 26}" '
                   f'stroke="{"#bbb" if is_power else "#eee"}"/>')
        if is_power or len(marks) < 10:
            out.append(f'<text x="{at:.1f}" y="{height - 10}" text-anchor="middle" '
                       f'fill="#666">{value:g}</text>')
    for at, (name, (p10, median, p90)) in enumerate(figures):
        y = TOP + LINE * at + 10
        out.append(f'<text x="{LEFT - 12}" y="{y + 4}" text-anchor="end">{escape(name)}</text>'
                   f'<line x1="{x(p10):.1f}" x2="{x(p90):.1f}" y1="{y}" y2="{y}" '
                   f'stroke="{colour(name)}" stroke-width="3" stroke-opacity="0.45"/>'
                   f'<circle cx="{x(median):.1f}" cy="{y}" r="4.5" fill="{colour(name)}"/>'
                   f'<text x="{max(x(p90), x(median) + 5) + 7:.1f}" y="{y + 4}" '
                   f'stroke="white" stroke-width="4" paint-order="stroke">{median:.3g}</text>')
    return "\n".join([*out, "</svg>", ""])


def curves(title, unit, series, shown_x, is_log=False):
    """Lines over values that double or so: `series` gives (x, low, median, high) by name."""
    width, height, left, right, top, bottom = 640, 330, 58, 150, 56, 34
    every = sorted({point[0] for points in series.values() for point in points})
    most = max(point[3] for points in series.values() for point in points)
    least = min(point[1] for points in series.values() for point in points)
    marks = log_marks(least, most) if is_log else even_marks(most)
    low, high = marks[0], marks[-1]

    def x(value):
        return left + 14 + every.index(value) / max(len(every) - 1, 1) * (width - left - right - 28)

    def y(value):
        share = (math.log10(max(value, low)) - math.log10(low)) / \
            (math.log10(high) - math.log10(low)) if is_log else (value - low) / (high - low)
        return height - bottom - share * (height - top - bottom)

    out = head(width, height, title)
    for mark in marks:
        out.append(f'<line x1="{left}" x2="{width - right}" y1="{y(mark):.1f}" '
                   f'y2="{y(mark):.1f}" stroke="#ddd"/><text x="{left - 8}" '
                   f'y="{y(mark) + 4:.1f}" text-anchor="end" fill="#666">{mark:g}</text>')
    out.append(f'<text x="{left - 8}" y="{top - 20}" text-anchor="end" fill="#666">'
               f'{escape(unit)}</text>')
    for value in every:
        out.append(f'<text x="{x(value):.1f}" y="{height - bottom + 18}" text-anchor="middle" '
                   f'fill="#666">{escape(shown_x(value))}</text>')
    # The highest has its figure above, the others below: lines that meet stay readable.
    highest = {value: max(point[2] for points in series.values() for point in points
                          if point[0] == value) for value in every}
    ends = []
    for (name, points), line in zip(series.items(), (OURS, THEIRS, FLOOR, "#2e7d32")):
        path = " ".join(f"{x(at):.1f},{y(median):.1f}" for at, _, median, _ in points)
        out.append(f'<polyline points="{path}" fill="none" stroke="{line}" stroke-width="2"/>')
        for at, p10, median, p90 in points:
            below = 0 if median == highest[at] else 25
            out.append(f'<line x1="{x(at):.1f}" x2="{x(at):.1f}" y1="{y(p10):.1f}" '
                       f'y2="{y(p90):.1f}" stroke="{line}" stroke-width="3" '
                       f'stroke-opacity="0.4"/><circle cx="{x(at):.1f}" cy="{y(median):.1f}" '
                       f'r="3.5" fill="{line}"/><text x="{x(at):.1f}" y="{y(median) - 9 + below:.1f}" '
                       f'text-anchor="middle" font-size="11" stroke="white" stroke-width="3" '
                       f'paint-order="stroke">{median:.3g}</text>')
        ends.append((y(points[-1][2]), name, line))
    place = top - 20
    for end, name, line in sorted(ends):
        place = max(end + 4, place + 16)
        out.append(f'<text x="{width - right + 10}" y="{place:.1f}" fill="{line}">'
                   f'{escape(name)}</text>')
    return "\n".join([*out, "</svg>", ""])


def even_marks(most):
    """From 0 on, round numbers up to what is above the most."""
    step = 10 ** math.floor(math.log10(most or 1))
    for part in (0.2, 0.5, 1, 2):
        if most / (step * part) <= 6:
            step *= part
            break
    return [round(step * n, 6) for n in range(math.floor(most / step) + 2)]


def log_marks(least, most):
    """1, 2, 5 and so on, from below the least to above the most."""
    powers = range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)
    marks = [float(f"{step}e{power}") for power in powers for step in (1, 2, 5)]
    first = max(i for i, mark in enumerate(marks) if mark <= least)
    last = min(i for i, mark in enumerate(marks) if mark >= most)
    return marks[first:last + 1]
