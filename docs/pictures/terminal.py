#!/usr/bin/env python3
"""Draws the pictures of terminals: runs the commands of each, and draws what they print.

usage: docs/pictures/terminal.py [NAME]...    after ./test build; without NAME all of them
"""

import html
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
# Of each picture its columns, what it shows, and programs that run beside it.
PICTURES = {
    "crash": (108, ["ringmark run -- ./shop"], None),
    "profile": (92, ["ringmark profile -p $(pidof clerks) --for 2s -n 4"], "clerks"),
    "report": (92, ["ringmark run -- ./requests", "ringmark report"], None),
}
PROGRAMS = {"ringmark": TARGET / "ringmark", "shop": TARGET / "examples/shop", "requests": TARGET / "examples/requests"}
CHARACTER = 8.43  # Width of a character of 14 px, in px.
LINE = 19
MARGIN = 16
STYLE = """
  text { font: 14px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #d7dce2; white-space: pre }
  .command { fill: #ffffff; font-weight: bold }
  .bad { fill: #ff9d8a }
  .open { fill: #ffd479 }
"""


def printed(command: str, place: Path, columns: int) -> list[str]:
    """The lines that a command prints, as on a terminal."""
    environment = {
        "PATH": f"{place}:/usr/bin:/bin",
        "HOME": str(place),
        "RINGMARK_DIR": str(place / "rings"),
        "COLUMNS": str(columns),
    }
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=place,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        text=True,
    )
    lines = done.stdout.splitlines()
    return [line for line in lines if "RUST_BACKTRACE" not in line]


def look(line: str) -> str:
    """The class of a line."""
    if line.startswith("$ "):
        return "command"
    if "panicked" in line or "ended by" in line:
        return "bad"
    if "open" in line.split(":")[0] or line.lstrip().startswith("open"):
        return "open"
    return ""


def svg(lines: list[str], columns: int) -> str:
    """The picture of the lines."""
    width, height = columns * CHARACTER + 2 * MARGIN, len(lines) * LINE + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" '
        f'viewBox="0 0 {width:.0f} {height}">',
        f"<style>{STYLE}</style>",
        f'<rect width="{width:.0f}" height="{height}" rx="8" fill="#1c2128"/>',
    ]
    for number, line in enumerate(lines):
        y = MARGIN + (number + 1) * LINE - 5
        text = html.escape(line[:columns])
        parts.append(f'<text x="{MARGIN}" y="{y}" class="{look(line)}" xml:space="preserve">{text}</text>')
    return "\n".join([*parts, "</svg>", ""])


def draw(name: str) -> None:
    """Runs the commands of a picture in a directory of their own, and writes it."""
    columns, commands, beside = PICTURES[name]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "rings").mkdir(mode=0o700)
        for program, path in PROGRAMS.items():
            if not path.exists():
                sys.exit(f"{path}: not there; see the top of {Path(__file__).name}")
            shutil.copy(path, place / program)
        subprocess.run(["gcc", "-O2", ROOT / "tests/programs/c/shop.c", "-o", place / "clerks", "-lpthread"], check=True)
        running = subprocess.Popen([place / beside], cwd=place) if beside else None
        lines: list[str] = []
        for command in commands:
            lines += [f"$ {command}", *printed(command, place, columns), ""]
        if running:
            running.kill()
            running.wait()
    picture = ROOT / f"docs/pictures/{name}.svg"
    picture.write_text(svg(lines[:-1], columns))
    print(f"{picture.relative_to(ROOT)}: {len(lines) - 1} lines")


def main() -> None:
    """Draws the pictures that are named."""
    for name in sys.argv[1:] or PICTURES:
        if name not in PICTURES:
            sys.exit(f"{name}: expected one of {', '.join(PICTURES)}")
        draw(name)


main()
