"""The bars that Ringmark's own benches state: `cargo bench`, one run of each."""

import re
from pathlib import Path

import race
from bars import MISSED, Bar

# "P1   what  0.993  bar 1.15  met", or with "p10 140.0 median 156.0 p90 160.0 M events/s".
LINE = re.compile(r"^([A-Z]\d+) +(.*?) +(?:p10 .*?median +)?(-?[\d.]+)(?: p90 .*?)?  bar +([\d.]+)"
                  r"  (met|MISSED)$", re.MULTILINE)
# "A title (300 interleaved windows of 1000)", then a line of heads with the unit, then rows.
TITLE = re.compile(r"^(\S.*) \(\d+ interleaved .*\)$")
HEADS = re.compile(r"^ +p10 +median +p90  (.+)$")
ROW = re.compile(r"^(\S.*?) +(-?[\d.]+) +(-?[\d.]+) +(-?[\d.]+)$")
ROOT = Path(__file__).resolve().parent.parent.parent
# Silences and pauses: they wait more than they work, so they have a record of their own.
SILENCES = ["idle", "pause"]
NAMES = sorted({path.stem for path in (ROOT / "benches/benches").glob("*.rs")} - set(SILENCES))
LIMIT_S = 600


def run_all(_place, _size, _daemons):
    """What every bench but those of silences has printed, by its name."""
    return run(NAMES)


def run_silences(_place, _size, _daemons):
    """What the benches of silences have printed, by their names."""
    return run(SILENCES)


def run(names):
    """What these benches have printed, by their names."""
    printed = {}
    for name in names:
        race.progress(f"benches/benches/{name}.rs")
        command = ["cargo", "bench", "-q", "-p", "ringmark-benches", "--bench", name]
        said, is_done = race.finished(command, LIMIT_S, ROOT, race.environment())
        printed[name] = said if is_done else ""
    return printed


def rows_of(printed):
    """Title, name, unit, p10, median and p90 of each row in what was printed."""
    for text in printed.values():
        title = unit = None
        for line in text.splitlines():
            if found := TITLE.match(line):
                title, unit = found[1], None
            elif found := HEADS.match(line):
                unit = found[1]
            elif title and unit and (found := ROW.match(line)):
                yield title, found[1], unit, *found.groups()[1:]


def of_benches(printed):
    """The bars in what was printed. A bench that printed none was not measured."""
    for name, text in printed.items():
        found = LINE.findall(text)
        if not found:
            yield Bar("", f"benches/benches/{name}.rs", None, 0, False, "it failed or states none")
        for bar, what, figure, limit, verdict in found:
            figure, limit = float(figure), float(limit)
            is_least = (figure > limit) == (verdict != MISSED)
            yield Bar(bar, f"{name}: {what}", figure, limit, is_least)
