"""All bars of all parts in one table: printed at the end of a run, and kept beside its records, a line for
each processor."""

import csv
from dataclasses import dataclass

from bars import MISSED, NOT_MEASURED, PASS, shown

# What must be there. A bar that no part has stated is NOT MEASURED.
IDS = [*(f"P{n}" for n in range(1, 13)), "F1", "F2", "F3", "F4", "R1", "R2", "R4", "W1", "S1", "G1", "G4",
       "G6"]
COLUMNS = ["part", "id", "what", "bar", "figures", "verdict", "reason", "processor", "date", "revision"]


@dataclass
class Line:
    """One bar, with its figure in each of some runs, and where and when they ran."""

    part: str
    id: str
    what: str
    bar: str
    figures: str
    verdict: str
    reason: str = ""
    processor: str = ""
    date: str = ""
    revision: str = ""

    @property
    def order(self):
        return IDS.index(self.id) if self.id in IDS else len(IDS)


def lines(part, runs, place):
    """The lines of a part: `runs` holds the bars of each of its runs, `place` processor, day and revision."""
    by_name = {}
    for number, bars in enumerate(runs):
        for bar in bars:
            by_name.setdefault((bar.id, bar.what), [None] * len(runs))[number] = bar
    for (bar_id, what), found in by_name.items():
        one = next(bar for bar in found if bar)
        sign = "≥" if one.is_least else "≤"
        verdicts = {bar.verdict if bar else NOT_MEASURED for bar in found}
        verdict = next(v for v in (MISSED, NOT_MEASURED, PASS) if v in verdicts)
        figures = " / ".join("–" if not bar or bar.figure is None else shown(bar.figure)
                             for bar in found)
        reason = next((bar.reason for bar in found if bar and bar.figure is None), "")
        yield Line(part, bar_id, what, f"{sign} {shown(one.limit)}", figures, verdict, reason, *place)


def missing(found):
    """A line for each bar of the list that no part has stated."""
    there = {line.id for line in found}
    return [Line("", bar_id, "", "", "", NOT_MEASURED, "no part of this run states it")
            for bar_id in IDS if bar_id not in there]


def ordered(found):
    return sorted(found, key=lambda line: line.order)


def text(found):
    """The table for a terminal."""
    widths = [max((len(getattr(line, column)) for line in found), default=0)
              for column in ("what", "figures", "bar")]
    for line in found:
        what, figures, bar = (value.ljust(width) for value, width in
                              zip((line.what, line.figures, line.bar), widths))
        reason = f": {line.reason}" if line.verdict == NOT_MEASURED else ""
        yield f"{line.id:3} {what}  {figures}  {bar}  {line.verdict}{reason}"


def summary(found):
    count = {verdict: sum(line.verdict == verdict for line in found)
             for verdict in (PASS, MISSED, NOT_MEASURED)}
    return ", ".join(f"{number} {verdict}" for verdict, number in count.items())


def keep(path, found, parts, processor):
    """Writes the table. What other parts have stated before stays, and what was found on other processors."""
    kept = [line for line in read(path) if line.part not in parts or line.processor != processor]
    with open(path, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(COLUMNS)
        for line in ordered([*kept, *(line for line in found if line.part)]):
            out.writerow([getattr(line, column) for column in COLUMNS])


def read(path):
    if not path.exists():
        return []
    with open(path, newline="") as file:
        return [Line(**row) for row in csv.DictReader(file)]
