#!/usr/bin/env python3
"""Draws docs/pictures/crash.svg: runs the commands of the picture, and draws what they print.

usage: docs/pictures/crash.py            after cargo build --release --workspace --bin ringmark
                                         and cargo build --release -p ringmark --example shop
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
COMMANDS = ["ringmark run -- ./shop"]
COLUMNS = 108
CHARACTER = 8.43  # Width of a character of 14 px, in px.
LINE = 19
MARGIN = 16
STYLE = """
  text { font: 14px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #d7dce2; white-space: pre }
  .command { fill: #ffffff; font-weight: bold }
  .bad { fill: #ff9d8a }
  .open { fill: #ffd479 }
"""


def printed(command: str, place: Path) -> list[str]:
    """The lines that a command prints, as on a terminal."""
    environment = {"PATH": f"{place}:/usr/bin:/bin", "HOME": str(place), "RINGMARK_DIR": str(place / "rings")}
    done = subprocess.run(
        command.split(),
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


def svg(lines: list[str]) -> str:
    """The picture of the lines."""
    width, height = COLUMNS * CHARACTER + 2 * MARGIN, len(lines) * LINE + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" '
        f'viewBox="0 0 {width:.0f} {height}">',
        f"<style>{STYLE}</style>",
        f'<rect width="{width:.0f}" height="{height}" rx="8" fill="#1c2128"/>',
    ]
    for number, line in enumerate(lines):
        y = MARGIN + (number + 1) * LINE - 5
        text = html.escape(line[:COLUMNS])
        parts.append(f'<text x="{MARGIN}" y="{y}" class="{look(line)}" xml:space="preserve">{text}</text>')
    return "\n".join([*parts, "</svg>", ""])


def main() -> None:
    """Runs the commands in a directory of their own, and writes the picture."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        (place / "rings").mkdir(mode=0o700)
        for program, path in [("ringmark", TARGET / "ringmark"), ("shop", TARGET / "examples/shop")]:
            if not path.exists():
                sys.exit(f"{path}: not there; see the top of {Path(__file__).name}")
            shutil.copy(path, place / program)
        lines: list[str] = []
        for command in COMMANDS:
            lines += [f"$ {command}", *printed(command, place), ""]
    picture = ROOT / "docs/pictures/crash.svg"
    picture.write_text(svg(lines[:-1]))
    print(f"{picture.relative_to(ROOT)}: {len(lines) - 1} lines")


main()
