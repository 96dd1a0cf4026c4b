"""What is kept of a run: conditions, figures, bars, as Markdown and as CSV."""

import csv
import datetime
import functools
import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path

import own
import plot
import race


def load():
    return " ".join(f"{value:.1f}" for value in os.getloadavg())


@functools.cache
def revision():
    """The commit that is measured, if it is one. Asked once: the records change the tree."""
    try:
        said = race.run(["git", "-C", Path(__file__).parent, "describe", "--always", "--dirty"])
    except race.NotMeasured:
        return "unknown"
    return said.strip()


def is_clean():
    """Whether all that is measured is committed. Without git nothing is known, and it is not."""
    return "unknown" not in revision() and "dirty" not in revision()


def processor():
    """Its name, which of a virtual machine says little, with family and model by number."""
    text = Path("/proc/cpuinfo").read_text()
    name, family, model = (re.search(rf"^{field}\s*: (.*)", text, re.MULTILINE)
                           for field in ("model name", "cpu family", "model"))
    if not (name and family and model):
        return "unknown"
    return f"{name[1]} family {family[1]} model {model[1]}{zen(int(family[1]), int(model[1]))}"


def zen(family, model):
    """What AMD calls it."""
    if family == 26:
        return " (Zen 5)"
    is_fourth = family == 25 and (0x10 <= model <= 0x1f or 0x60 <= model <= 0xaf)
    if family == 25:
        return " (Zen 4)" if is_fourth else " (Zen 3)"
    return ""


def now():
    return datetime.datetime.now(datetime.timezone.utc)


def place():
    """Processor, day and revision of a bar that is found now."""
    return processor(), now().strftime("%Y-%m-%d"), revision()


def conditions(tracers):
    """Machine, versions and load, as they are now."""
    memory = re.search(r"MemTotal: *(\d+)", Path("/proc/meminfo").read_text())
    found = {
        "date": now().strftime("%Y-%m-%d %H:%M UTC"),
        "machine": f"{processor()}, {os.cpu_count()} cores, {int(memory[1]) >> 20} GiB",
        "kernel": platform.release(),
        "cores": f"traced programs on {race.CORE}, everything else on {sorted(race.OTHERS)}",
        "load before": load(),
        "revision": revision(),
    }
    for tracer in tracers:
        try:
            found[tracer.NAME] = tracer.version()
        except race.NotMeasured as reason:
            found[tracer.NAME] = f"NOT MEASURED: {reason}"
    return found


def table(heads, lines, texts=1):
    """A Markdown table, numbers to the right of the columns that are `texts`."""
    yield "| " + " | ".join(heads) + " |"
    yield "|" + " --- |" * texts + " ---: |" * (len(heads) - texts)
    for line in lines:
        yield "| " + " | ".join(line) + " |"


def three(values, scale=1):
    """Median, then p10 and p90."""
    if not values:
        return ""
    values = (value / scale for value in race.percentiles(values))
    low, median, high = (f"{value:.{2 if value < 10 else 1}f}" for value in values)
    return f"{median} ({low}–{high})"


def number(value):
    return "" if value is None else f"{value:,}"


def unaccounted(row):
    """Neither delivered nor reported as lost."""
    return "" if row.delivered is None else number(row.emitted - row.delivered - row.lost)


def per_second(row):
    """Millions, by the median."""
    return f"{1e3 / race.percentiles(row.ns)[1]:.1f}" if row.ns else ""


def each(row):
    """Bytes per call or event."""
    return f"{row.bytes / row.delivered:.1f}" if row.bytes and row.delivered else ""


@dataclass
class Table:
    """What is shown of a race."""

    title: str
    columns: list
    # Title of the plot of the first column; without one there is no plot.
    plot: str = ""

    def svg(self, rows):
        return plot.bars(self.plot, rows) if self.plot else None

    def table(self, rows):
        lines = ([row.name, *(value(row) for _, value in self.columns)] for row in rows)
        return table(["", *(head for head, _ in self.columns)],
                     ([name, first or "NOT MEASURED", *rest] for name, first, *rest in lines))


@dataclass
class Curve:
    """A race whose contestants are points of curves."""

    title: str
    unit: str
    shown_x: object
    figure: str = "long_ns"
    is_log: bool = False

    def svg(self, rows):
        """Low, median and high of each point, or None without any."""
        series = {}
        for row in rows:
            if values := getattr(row, self.figure):
                series.setdefault(row.name, []).append((row.x, *race.percentiles(values)))
        return plot.curves(self.title, self.unit, series, self.shown_x, self.is_log) \
            if series else None

    def table(self, rows):
        """A line for each x, a column for each curve."""
        names = list(dict.fromkeys(row.name for row in rows))
        figures = {(row.x, row.name): getattr(row, self.figure) for row in rows}
        each_bytes = {row.x: row.each_bytes for row in rows if row.each_bytes}
        heads = ["", *(f"{name}: {self.unit}, median (p10–p90)" for name in names)]
        heads += ["bytes per event in the dump"] if each_bytes else []
        lines = []
        for x in dict.fromkeys(row.x for row in rows):
            lines.append([self.shown_x(x), *(three(figures.get((x, name))) or "NOT MEASURED"
                                             for name in names)])
            lines[-1] += [three(each_bytes.get(x))] if each_bytes else []
        return table(heads, lines)


def times(head, figure="ns", scale=1):
    return head, lambda row: three(getattr(row, figure), scale)


def whole(program):
    """A command that records all functions of a program from start to end."""
    return Table(f"{program}, all functions recorded from start to end: ms", [
        times("wall: median (p10–p90)", scale=1e6), times("CPU of all processes", "long_ns", 1e6),
        ("lost in the worst round", lambda row: number(row.lost)),
        ("bytes of the file", lambda row: number(row.bytes))])


def summed_up(program):
    """A command that sums up all calls of a program."""
    return Table(f"{program}, all calls summed up by function: ms", [
        times("wall: median (p10–p90)", scale=1e6), times("CPU of all processes", "long_ns", 1e6)])


CALLS = [("delivered", lambda row: number(row.delivered)),
         ("reported lost", lambda row: number(row.lost))]
TABLES = {
    "on": Table("Everything on, recorded to a file: ns per call, entry and exit", [
        times("windows: median (p10–p90)"), times("long runs, CPU time", "long_ns"),
        ("calls", lambda row: number(row.emitted)), *CALLS, ("bytes per call", each)],
        "Everything on, recorded to a file: ns per call, entry and exit"),
    "off": Table("Nothing on: ns per call, and ns per round of a program of small functions", [
        times("empty functions: median (p10–p90)"), times("program, round", "program_ns")],
        "Nothing on: ns per call of an empty function"),
    "lua": whole("Lua"),
    "lua report": summed_up("Lua"),
    "sqlite3": whole("SQLite's shell"),
    "sqlite3 report": summed_up("SQLite's shell"),
    "redis": Table("Redis, all functions traced: CPU µs of its main thread for a request", [
        times("median (p10–p90)", scale=1e3)]),
    "event": Table("One event with one u64, and a span of two such: ns", [
        times("event: median (p10–p90)"), times("long runs, CPU time", "long_ns"),
        times("span", "span_ns"), ("events", lambda row: number(row.emitted)), *CALLS,
        ("bytes per event", each)], "One event with one u64: ns"),
    "flight": Table("The same into 32 MiB in memory, the oldest overwritten, for snapshots: ns", [
        times("event: median (p10–p90)"), times("long runs, CPU time", "long_ns")]),
    "switch": Table("From asking for a start or stop of everything to the answer: ms",
                    [times("median (p10–p90)", scale=1e6)]),
    "decode": Table("The same events decoded by each: CPU ns per event", [
        times("median (p10–p90)"), ("million events per CPU second", per_second),
        ("events", lambda row: number(row.delivered))],
        "The same events decoded by each: CPU ns per event"),
    "snapshot": Table("A snapshot of 8 MiB while the program writes, the whole command: ms",
                      [times("median (p10–p90)", scale=1e6)]),
    "threads": Curve("An event with one u64, by threads", "CPU ns", str),
    "ring": Curve("An event with one u64, by the size of the ring", "CPU ns", plot.size),
    "payload": Curve("An event, by the bytes of its payload", "CPU ns", plot.size, is_log=True),
    "page": Curve("An event with one u64, by the size of the page", "CPU ns", plot.size),
    "loss by ring": Curve("Lost of a thread that writes flat out beside a recorder, by the ring",
                          "%", plot.size, "lost_percent"),
    "loss by page": Curve("Lost of a thread that writes flat out beside a recorder, by the page",
                          "%", plot.size, "lost_percent"),
    "killed": Table("A healthy program after others were killed while they wrote: its events", [
        ("emitted", lambda row: number(row.emitted)), *CALLS,
        ("neither", lambda row: unaccounted(row))]),
}


def races(rows):
    """One table per race."""
    for race_name in dict.fromkeys(row.race for row in rows):
        of_race = [row for row in rows if row.race == race_name]
        shown = TABLES[race_name]
        yield from ("", f"## {shown.title}", "")
        yield from shown.table(of_race)
        yield ""
        yield from dict.fromkeys(f"- {row.name.split(':')[0]}: {row.config}" for row in of_race)
        yield from (f"- NOT MEASURED or in part: {row.name}: {row.reason}"
                    for row in of_race if row.reason)


def markdown(title, found, rows, found_bars):
    lines = [f"# {title}", "", "Written by `benches/compare`.", ""]
    lines += [f"- {name}: {value}" for name, value in found.items()]
    if isinstance(rows, list):
        lines += races(rows)
    else:
        lines += (line for name, text in rows.items()
                  for line in ("", f"## {name}", "", "```text", text.strip(), "```"))
    lines += ["", "## Bars", "", "```text", *map(str, found_bars), "```", ""]
    return "\n".join(lines)


def write(directory, name, text, rows):
    """Keeps a run; what is there is replaced."""
    directory.mkdir(exist_ok=True)
    (directory / f"{name}.md").write_text(text)
    if not isinstance(rows, list):
        write_texts_csv(directory / f"{name}.csv", list(own.rows_of(rows)))
        return
    for race_name, shown in TABLES.items():
        picture = shown.svg([row for row in rows if row.race == race_name])
        if picture:
            (directory / f"{race_name.replace(' ', '-')}.svg").write_text(picture)
    write_csv(directory / f"{name}.csv", rows)


def write_texts_csv(path, rows):
    """The rows of benches that print tables; without any there is no file."""
    if not rows:
        path.unlink(missing_ok=True)
        return
    with open(path, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["race", "name", "figure", "p10", "median", "p90"])
        out.writerows(rows)


def write_csv(path, rows):
    with open(path, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["race", "name", "x", "figure", "p10", "median", "p90", "emitted",
                      "delivered", "lost", "bytes", "config", "reason"])
        for row in rows:
            account = [row.emitted, row.delivered, row.lost, row.bytes, row.config]
            for figure in ("ns", "long_ns", "program_ns", "span_ns", "lost_percent", "each_bytes"):
                if values := getattr(row, figure):
                    figures = (f"{value:.3f}" for value in race.percentiles(values))
                    out.writerow([row.race, row.name, row.x, figure, *figures, *account, ""])
            if row.reason or not row.ns:
                out.writerow([row.race, row.name, row.x, "", "", "", "", *account, row.reason])
