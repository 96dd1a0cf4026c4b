#!/usr/bin/env python3
"""Draws the pictures of docs/src/concepts.md: ring-file.svg, event.svg and survives.svg.

usage: docs/pictures/concepts.py [--check]    --check: whether the files are as this program draws them
"""

import html
import sys
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
WIDTH = 860
FONT = 'font-family="ui-sans-serif, DejaVu Sans, Verdana, sans-serif"'
INK, PALE = "#1c2128", "#57606a"
BLUE, GREEN, AMBER, RED, GREY = "#ddeafc", "#ddf3e0", "#fdf0cf", "#fbdcd8", "#eceff2"
EDGE = {BLUE: "#4a7fc1", GREEN: "#3d9155", AMBER: "#b98a1d", RED: "#c0564a", GREY: "#9aa4ae"}


@dataclass
class Drawing:
    """Shapes of one picture, from the top to the bottom."""

    title: str
    height: int
    parts: list[str] = field(default_factory=list)

    def box(self, x, y, width, height, color, *lines, bold=True):
        """A box with lines of text in its middle, the first one bold."""
        self.parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="5" '
                          f'fill="{color}" stroke="{EDGE[color]}"/>')
        top = y + height / 2 - (len(lines) - 1) * 8 + 5
        for number, line in enumerate(lines):
            is_bold = bold and number == 0
            self.text(x + width / 2, top + 16 * number, line, size=13 if is_bold else 12,
                      bold=is_bold, anchor="middle", color=INK if is_bold else PALE)

    def text(self, x, y, text, size=13, bold=False, anchor="start", color=INK):
        """One line of text."""
        weight = ' font-weight="bold"' if bold else ""
        self.parts.append(f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{color}" '
                          f'text-anchor="{anchor}"{weight}>{html.escape(text)}</text>')

    def arrow(self, *points, color=INK):
        """A line through points, with a head at its end."""
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        self.parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" '
                          'stroke-width="1.5" marker-end="url(#head)"/>')

    def frame(self, x, y, width, height, title):
        """A dashed frame around a part."""
        self.parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="8" '
                          f'fill="none" stroke="{PALE}" stroke-dasharray="5 4"/>')
        self.text(x + 10, y + 19, title, color=PALE)

    def svg(self):
        """The whole picture."""
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{self.height}" '
            f'viewBox="0 0 {WIDTH} {self.height}" role="img" {FONT}>',
            f"<title>{html.escape(self.title)}</title>",
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" '
            f'markerHeight="8" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="{INK}"/></marker></defs>',
            f'<rect width="{WIDTH}" height="{self.height}" rx="8" fill="#ffffff"/>',
            *self.parts, "</svg>", ""])


def ring_file():
    """The regions of a ring file, a ring, a page, a record."""
    drawing = Drawing("A ring file: header, ring directory, schema, and a ring of pages for each thread", 490)
    drawing.text(20, 32, "The ring file of a process, in /dev/shm", bold=True, size=15)
    x = 20
    for width, color, lines in [
            (118, GREY, ("header", "who, clock")), (118, GREY, ("directory", "a slot per ring")),
            (118, GREY, ("schema", "event types")), (118, AMBER, ("open spans", "a stack per ring")),
            (112, BLUE, ("ring", "thread 1")), (112, BLUE, ("ring", "thread 2")), (104, BLUE, ("…", "thread n"))]:
        drawing.box(x, 48, width, 56, color, *lines)
        x += width + 3
    drawing.arrow((550, 104), (550, 128), (430, 128), (430, 156))
    drawing.text(20, 150, "A ring", bold=True, size=15)
    drawing.text(78, 150, "is made of pages; the writer fills one at a time", color=PALE)
    states = [("page 4", "sealed", GREEN), ("page 5", "sealed", GREEN), ("page 6", "open", AMBER),
              ("page 3", "oldest", RED)]
    for number, (name, state, color) in enumerate(states):
        drawing.box(20 + 207 * number, 164, 200, 56, color, name, state)
    drawing.text(641, 240, "overwrite: reused next", size=12, color=PALE)
    drawing.text(641, 256, "discard: waits for the reader", size=12, color=PALE)
    drawing.arrow((534, 220), (534, 272), (430, 272), (430, 300))
    drawing.text(20, 296, "A page", bold=True, size=15)
    drawing.text(86, 296, "holds records, one after another", color=PALE)
    x = 20
    for width, color, lines in [
            (150, GREY, ("page header", "number, thread")), (165, GREEN, ("record", "committed")),
            (165, GREEN, ("record", "committed")), (165, AMBER, ("record", "BUSY: being written")),
            (163, GREY, ("free", "zeros"))]:
        drawing.box(x, 310, width, 56, color, *lines)
        x += width + 3
    drawing.arrow((256, 366), (256, 388), (430, 388), (430, 420))
    drawing.text(20, 412, "A record", bold=True, size=15)
    drawing.text(98, 412, "is readable from the store of its header word on", color=PALE)
    x = 20
    for width, color, lines in [
            (330, GREEN, ("header word, 8 bytes", "length, type, time: stored last")),
            (484, BLUE, ("payload", "arguments, in words of 8 bytes"))]:
        drawing.box(x, 424, width, 52, color, *lines)
        x += width + 6
    return drawing


def event():
    """The way of an event from the macro to the screen."""
    drawing = Drawing("The life of an event, from the macro to a line of text", 400)
    drawing.frame(14, 14, 270, 372, "traced program: no system call")
    steps = [("event!(…)", "is its type enabled?"), ("reserve", "clock, compare-exchange"),
             ("write", "arguments into the page"), ("commit", "one store: it is there")]
    for number, step in enumerate(steps):
        drawing.box(36, 46 + 84 * number, 226, 56, BLUE, *step)
        if number:
            drawing.arrow((149, 18 + 84 * number), (149, 46 + 84 * number))
    drawing.frame(300, 14, 170, 372, "shared memory")
    drawing.box(318, 214, 134, 140, GREEN, "ring file", "outlives the", "program, also", "kill -9")
    drawing.arrow((262, 326), (318, 326))
    drawing.frame(486, 14, 360, 372, "ringmark, in a process of its own")
    drawing.box(504, 256, 146, 56, AMBER, "copy of pages", "checked twice")
    drawing.arrow((452, 284), (504, 284))
    outputs = [(46, "trace file", ".rmk"), (116, "collector", "store of many hosts"), (186, "at once", "cat -p PID")]
    for y, *lines in outputs:
        drawing.box(694, y, 136, 54, GREY, *lines)
    drawing.arrow((577, 256), (577, 73), (694, 73))
    drawing.arrow((577, 143), (694, 143))
    drawing.arrow((577, 213), (694, 213))
    drawing.box(694, 282, 136, 72, GREEN, "decoder", "schema applied,", "threads merged")
    drawing.arrow((762, 240), (762, 282))
    drawing.text(504, 336, "consumed: the page is", size=12, color=PALE)
    drawing.text(504, 352, "free again (discard mode)", size=12, color=PALE)
    drawing.arrow((504, 340), (452, 340))
    return drawing


def survives():
    """Which part is still readable after which failure."""
    columns = ["ring file", "trace file", "record --sync", "collector's store"]
    rows = [
        ("panic, signal, exit(1), kill -9", ["all committed", "what was recorded", "what was recorded", "what was sent"], "GGGG"),
        ("out of memory, container ends", ["all, unless its /dev/shm goes", "what was recorded", "what was recorded", "what was sent"], "AGGG"),
        ("the recorder is killed", ["all committed", "a valid prefix", "a valid prefix", "—"], "GGG-"),
        ("disk full, write errors", ["what no reader took", "a valid prefix", "a valid prefix", "what it acknowledged"], "GAAG"),
        ("network or collector gone", ["waits, then counts losses", "—", "—", "each page once"], "A--G"),
        ("power loss, kernel crash", ["nothing", "what the kernel wrote", "what was released", "what it acknowledged"], "RAGG"),
    ]
    drawing = Drawing("What is still readable after which failure", 66 + 58 * len(rows) + 14)
    drawing.text(20, 38, "After …", bold=True)
    colors = {"G": GREEN, "A": AMBER, "R": RED, "-": GREY}
    for number, column in enumerate(columns):
        drawing.text(309 + 154 * number, 38, column, bold=True, anchor="middle")
    for at, (failure, cells, marks) in enumerate(rows):
        y = 56 + 58 * at
        drawing.text(20, y + 30, failure)
        for number, (cell, mark) in enumerate(zip(cells, marks)):
            drawing.box(236 + 154 * number, y, 148, 50, colors[mark], *halves(cell), bold=False)
    return drawing


def halves(text):
    """A text in one line, or in two where it is long."""
    if len(text) <= 20:
        return [text]
    words = text.split()
    best = min(range(1, len(words)), key=lambda at: abs(len(" ".join(words[:at])) - len(" ".join(words[at:]))))
    return [" ".join(words[:best]), " ".join(words[best:])]


PICTURES = {"ring-file.svg": ring_file, "event.svg": event, "survives.svg": survives}


def main():
    """Writes the pictures, or compares them."""
    stale = []
    for name, draw in PICTURES.items():
        path, text = HERE / name, draw().svg()
        if "--check" not in sys.argv:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            stale.append(name)
    if stale:
        sys.exit(f"docs/pictures: {', '.join(stale)}: not as concepts.py draws them: run it")


if __name__ == "__main__":
    main()
