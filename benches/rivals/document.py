"""Tables and figures of the documents, made from the records: the two cannot disagree."""

import csv
import re
from pathlib import Path

import bars as targets
import board
from reasons import REASONS
from record import table

ROOT = Path(__file__).resolve().parent.parent.parent
DOCUMENTS = [ROOT / name for name in ("PERFORMANCE.md", "PROMISES.md", "DESIGN.md", "README.md")]
RECORD = ROOT / "benches/record"
BLOCK = re.compile(r"(<!-- record: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
# A figure in a sentence: `target; ID; WHAT`, the range of the runs, or `PART; RACE; NAME; FIGURE`, a
# median, with `; ms` or `; us` where the record has nanoseconds. `NAME/X` is that of size X.
FIGURE = re.compile(r"(<!-- figure: (.*?) -->)(.*?)(<!-- end -->)")
# A row of PROMISES.md that holds if its bars are met.
PROMISE = re.compile(r"^(\| ([A-Z]\d+) \|.*\| <!-- verdict -->).*?(\|[^|]*\|)$", re.MULTILINE)
PER_UNIT = {"ms": 1e6, "us": 1e3}
FACTS = ("date", "load before", "load after", "revision", "machine", "kernel")


class Records:
    """Medians and accounts by race, name and figure."""

    def __init__(self, part, x=""):
        """Reads those of a part; from a race over sizes, those of size `x`."""
        self.rows = {}
        path = RECORD / f"{part}.csv"
        if path.exists():
            with open(path, newline="") as file:
                for row in (row for row in csv.DictReader(file) if x in ("", row.get("x"))):
                    self.rows.setdefault(row["race"], {}).setdefault(
                        row["name"], {})[row["figure"]] = row

    def of(self, race_name):
        return self.rows.get(race_name, {})


def median(figures, figure):
    row = figures.get(figure)
    return float(row["median"]) if row else None


def short(value):
    """Three digits."""
    return "" if value is None else f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def account(figures, key):
    value = next(iter(figures.values()))[key]
    return f"{int(value):,}" if value else ""


def faster(figures, ours, figure):
    """How many times the time of ours."""
    theirs, mine = median(figures, figure), median(ours, figure)
    return short(theirs / mine) if theirs and mine else ""


def each(figures):
    """Bytes of a delivered one."""
    row = next(iter(figures.values()))
    if not (row["bytes"] and row["delivered"] and int(row["delivered"]) and int(row["bytes"])):
        return ""
    return f"{int(row['bytes']) / int(row['delivered']):.1f}"


def neither(figures):
    """Events that are neither delivered nor reported as lost."""
    row = next(iter(figures.values()))
    if not row["delivered"]:
        return ""
    return f"{int(row['emitted']) - int(row['delivered']) - int(row['lost'] or 0):,}"


def functions():
    on = Records("functions").of("on")
    ours = on.get("Ringmark", {})
    heads = ["", "ns per call", "of Ringmark's", "long runs, CPU ns", "of Ringmark's",
             "reported lost", "bytes per call"]
    lines = ([name, short(median(row, "ns")), faster(row, ours, "ns"),
              short(median(row, "long_ns")), faster(row, ours, "long_ns"), account(row, "lost"),
              each(row)] for name, row in on.items())
    return table(heads, lines)


def programs():
    """Whole commands: median seconds of wall and CPU time, and what uftrace takes of ours."""
    kept = Records("programs")
    of_both = [kept.of(name) for name in ("lua", "sqlite3")]
    heads = ["", *(head for name in ("Lua", "SQLite") for head in (
        f"{name}, wall s", "of Ringmark's", f"{name}, CPU s", "of Ringmark's", "lost"))]
    lines = ([name, *(cell for rows in of_both for cell in whole(rows, name))]
             for name in of_both[0])
    return table(heads, lines)


def whole(rows, name):
    """The cells of one recorder of a program."""
    row, ours = rows.get(name, {}), rows.get("ringmark record", {})
    for figure in ("ns", "long_ns"):
        value = median(row, figure)
        yield short(value and value / 1e9)
        yield faster(row, ours, figure)
    yield account(row, "lost") if row else ""


def off():
    rows = Records("functions").of("off")
    lines = ([name, short(median(row, "ns")), short(median(row, "program_ns"))]
             for name, row in rows.items())
    return table(["", "ns per call", "ns per round of a program"], lines)


def events():
    rows = Records("events").of("event")
    ours = rows.get("Ringmark, lossless", {})
    heads = ["", "event, ns", "of Ringmark's", "span, ns", "of Ringmark's", "delivered",
             "reported lost", "neither"]
    lines = ([name, short(median(row, "ns")), faster(row, ours, "ns"),
              short(median(row, "span_ns")), faster(row, ours, "span_ns"),
              account(row, "delivered"), account(row, "lost"), neither(row)]
             for name, row in rows.items())
    return table(heads, lines)


def flight():
    rows = Records("events").of("flight")
    lines = ([name, short(median(row, "ns")), short(median(row, "long_ns"))]
             for name, row in rows.items())
    return table(["", "event, ns", "long runs, CPU ns"], lines)


def reading():
    rows = Records("reading").of("decode")
    lines = ([name, short(median(row, "ns")), short(1e3 / (median(row, "ns") or float("inf")))]
             for name, row in rows.items())
    return table(["", "CPU ns per event", "million events per CPU second"], lines)


def snapshots():
    rows = Records("reading").of("snapshot")
    lines = ([name, short((median(row, "ns") or 0) / 1e6)] for name, row in rows.items())
    return table(["", "ms"], lines)


def killed():
    rows = Records("killed").of("killed")
    lines = ([name, account(row, "emitted"), account(row, "delivered"), account(row, "lost"),
              neither(row)] for name, row in rows.items())
    return table(["", "emitted", "delivered", "reported lost", "neither"], lines)


# Whom a stream is compared with: who sends the same bytes to the same peer or disk.
BARE = {"streamer": "send loop", "streamer --zero-copy": "sendfile loop",
        "streamer, TLS": "TLS send loop", "streamer, synced disk": "dd conv=fdatasync"}


def streams():
    rows = Records("benches").of("Streams and bare loops")
    heads = ["", "MB/s: median (p10–p90)", "of the bare one's", "sender's CPU, ms per GB",
             "of the bare one's"]
    lines = []
    for name, row in rows.items():
        bare, line = rows.get(BARE.get(name), {}), [name]
        for unit in ("MB/s", "ms CPU of the sender per GB"):
            line += [three(row.get(unit)), ratio(row, bare, unit)]
        lines.append(line)
    return table(heads, lines)


def three(row):
    """Median, then p10 and p90."""
    if not row:
        return ""
    low, middle, high = (f"{float(row[key]):.0f}" for key in ("p10", "median", "p90"))
    return f"{middle} ({low}–{high})"


def ratio(row, bare, unit):
    mine, theirs = median(row, unit), median(bare, unit)
    return f"{mine / theirs:.2f}" if mine and theirs else ""


def target_lines(bar_id):
    """The lines of a promise, those of a target together, the last processor measured first."""
    found = [line for line in board.read(RECORD / "bars.csv") if line.id == bar_id]
    names = list(dict.fromkeys(line.what for line in found))
    newest_first = sorted(found, key=lambda line: line.date, reverse=True)
    return sorted(newest_first, key=lambda line: names.index(line.what))


def target_table():
    """A row for each target, those first that are missed somewhere: what was found on each processor, the last one
    measured first, and why a target is missed as far as that is known."""
    groups = {}
    for line in board.read(RECORD / "bars.csv"):
        groups.setdefault((line.id, line.what), []).append(line)
    rows = sorted(groups.values(), key=lambda lines: not any(map(is_failed, lines)))
    cells = ([f"{lines[0].id}, {escaped(lines[0].what)}", lines[0].bar,
              ", ".join(map(found_there, sorted(lines, key=lambda line: line.date, reverse=True))),
              why(lines)] for lines in rows)
    return table(["", "target", "found", "why missed"], cells, texts=4)


def is_failed(line):
    return line.verdict != targets.PASS


def why(lines):
    return REASONS.get((lines[0].id, lines[0].what), "Not known.") if any(map(is_failed, lines)) else ""


def found_there(line):
    """The range of the runs, bold where it is outside the target, and the processor."""
    name = re.search(r"\((.*)\)", line.processor)
    text = "not measured" if line.verdict == targets.NOT_MEASURED else run_range(line.figures)
    return f"{f'**{text}**' if is_failed(line) else text} ({name[1] if name else line.processor})"


def escaped(text):
    return text.replace("|", "\\|")


def facts(path):
    """What a record says of its run."""
    return dict(re.findall(r"^- ([\w ]+): (.*)$", path.read_text(), re.MULTILINE))


def conditions():
    """When each part ran, and beside what."""
    lines = []
    for path in sorted(RECORD.glob("*.md")):
        found = facts(path)
        lines.append([path.stem, *(found.get(fact, "") for fact in FACTS)])
    return table(["", *FACTS], lines, texts=len(FACTS) + 1)


MAKERS = {maker.__name__: maker for maker in (functions, programs, off, events, flight, reading, snapshots,
                                              killed, streams, target_table, conditions)}


def run_range(figures):
    """Least and largest of the runs of a bar, as they stand in the table of bars."""
    values = [value.replace(",", "") for value in figures.split(" / ") if value != "–"]
    low, high = (rounded(pick(map(float, values))) for pick in (min, max))
    return low if low == high else f"{low}–{high}"


def rounded(value):
    """Three digits, and nothing below a hundredth."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}" if abs(value) >= 0.005 else "0"


def figure(key):
    """The figure that a mark in a sentence names."""
    first, *rest = (part.strip() for part in key.split(";"))
    if first == "target":
        bar_id, what = rest
        return next(run_range(line.figures) for line in target_lines(bar_id) if line.what == what)
    race, name, column, *unit = rest
    name, _, x = name.partition("/")
    value = median(Records(first, x).of(race)[name], column)
    return short(value / PER_UNIT[unit[0]] if unit else value)


def promised(found):
    """A promise's row, with how many of its targets are met, each on all processors."""
    lines = target_lines(found[2])
    failed = {line.what for line in lines if line.verdict != targets.PASS}
    text = f"missed: {len(failed)} of {len({line.what for line in lines})} targets" if failed else "holds"
    text = text if lines else "pending"
    return f"{found[1]} {text} {found[3]}"


def made(text):
    """A document with its tables and figures as the records have them."""
    text = BLOCK.sub(lambda found: "\n".join(
        [found[1], *MAKERS[found[2]](), "", found[3]]), text)
    text = PROMISE.sub(promised, text)
    return FIGURE.sub(lambda found: found[1] + figure(found[2]) + found[4], text)


def write():
    for path in DOCUMENTS:
        path.write_text(made(path.read_text()))


def stale():
    """Documents that do not say what the records say."""
    return [path for path in DOCUMENTS if path.read_text() != made(path.read_text())]
