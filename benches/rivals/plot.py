"""Medians with p10 and p90 as an SVG: one line for each contestant, a logarithmic scale."""

import math
from html import escape

import race

WIDTH, LEFT, LINE, TOP = 760, 250, 22, 40


def svg(title, rows, figure="ns"):
    """A plot of the rows that have this figure, or None."""
    rows = [row for row in rows if getattr(row, figure)]
    if not rows:
        return None
    figures = {row.name: race.percentiles(getattr(row, figure)) for row in rows}
    low = math.floor(math.log10(min(three[0] for three in figures.values())))
    high = math.ceil(math.log10(max(three[2] for three in figures.values())))

    def x(value):
        return LEFT + (math.log10(value) - low) / (high - low) * (WIDTH - LEFT - 90)

    height = TOP + LINE * (len(rows) + 1)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
           'font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
           f'<text x="10" y="20" font-size="14">{escape(title)}</text>']
    for power in range(low, high + 1):
        out.append(f'<line x1="{x(10**power):.1f}" x2="{x(10**power):.1f}" y1="{TOP - 8}" '
                   f'y2="{height - LINE}" stroke="#ddd"/>'
                   f'<text x="{x(10**power):.1f}" y="{height - 6}" text-anchor="middle" '
                   f'fill="#666">{10**power:g}</text>')
    for at, (name, (p10, median, p90)) in enumerate(figures.items()):
        y = TOP + LINE * at + 10
        colour = "#b3261e" if name.startswith("Ringmark") else "#33608f"
        out.append(f'<text x="{LEFT - 10}" y="{y + 4}" text-anchor="end">{escape(name)}</text>'
                   f'<line x1="{x(p10):.1f}" x2="{x(p90):.1f}" y1="{y}" y2="{y}" '
                   f'stroke="{colour}" stroke-width="2"/>'
                   f'<circle cx="{x(median):.1f}" cy="{y}" r="4" fill="{colour}"/>'
                   f'<text x="{x(p90) + 8:.1f}" y="{y + 4}">{median:.3g}</text>')
    return "\n".join([*out, "</svg>", ""])
