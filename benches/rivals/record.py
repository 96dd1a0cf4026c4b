"""What is kept of a run: conditions, figures, bars, as Markdown and as CSV."""

import csv
import datetime
import os
import platform
import re
from pathlib import Path

import plot
import race


def load():
    return " ".join(f"{value:.1f}" for value in os.getloadavg())


def revision():
    """The commit that was measured, if it was one."""
    try:
        said = race.run(["git", "-C", Path(__file__).parent, "describe", "--always", "--dirty"])
    except race.NotMeasured:
        return "unknown"
    return said.strip()


def conditions(tracers):
    """Machine, versions and load, as they are now."""
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    memory = re.search(r"MemTotal: *(\d+)", Path("/proc/meminfo").read_text())
    found = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": f"{cpu[1] if cpu else 'unknown'}, {os.cpu_count()} cores, "
                   f"{int(memory[1]) >> 20} GiB",
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


def table(heads, lines):
    """A Markdown table, numbers to the right."""
    yield "| " + " | ".join(heads) + " |"
    yield "| --- |" + " ---: |" * (len(heads) - 1)
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


def each(row):
    """Bytes per call or event."""
    return f"{row.bytes / row.delivered:.1f}" if row.bytes and row.delivered else ""


TITLES = {
    "on": "Everything on, recorded to a file: ns per call, entry and exit",
    "off": "Nothing on: ns per call, and ns per round of a program of small functions",
    "event": "One event with one u64, and a span of two such: ns",
    "switch": "From asking for a start or stop of everything to the answer: ms",
}


def races(rows):
    """One table per race."""
    for race_name in dict.fromkeys(row.race for row in rows):
        of_race = [row for row in rows if row.race == race_name]
        yield from ("", f"## {TITLES[race_name]}", "")
        if race_name == "on":
            heads = ["", "windows: median (p10–p90)", "long runs, CPU time", "calls", "delivered",
                     "reported lost", "bytes per call"]
            lines = ([row.name, three(row.ns) or "NOT MEASURED", three(row.long_ns),
                      number(row.emitted), number(row.delivered), number(row.lost),
                      each(row)]
                     for row in of_race)
        elif race_name == "event":
            heads = ["", "event: median (p10–p90)", "long runs, CPU time", "span", "events",
                     "delivered", "reported lost", "bytes per event"]
            lines = ([row.name, three(row.ns) or "NOT MEASURED", three(row.long_ns),
                      three(row.span_ns), number(row.emitted), number(row.delivered),
                      number(row.lost),
                      each(row)]
                     for row in of_race)
        elif race_name == "off":
            heads = ["", "empty functions: median (p10–p90)", "program, round"]
            lines = ([row.name, three(row.ns) or "NOT MEASURED", three(row.program_ns)]
                     for row in of_race)
        else:
            heads = ["", "median (p10–p90)"]
            lines = ([row.name, three(row.ns, 1e6)] for row in of_race)
        yield from table(heads, lines)
        yield ""
        yield from dict.fromkeys(f"- {row.name.split(':')[0]}: {row.config}" for row in of_race)
        yield from (f"- NOT MEASURED or in part: {row.name}: {row.reason}"
                    for row in of_race if row.reason)


def markdown(title, found, rows, found_bars):
    lines = [f"# {title}, beside rivals", "", "Written by `benches/compare`.", ""]
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
        return
    for race_name, title in TITLES.items():
        picture = plot.svg(title, [row for row in rows if row.race == race_name])
        if picture and race_name != "switch":
            (directory / f"{race_name}.svg").write_text(picture)
    write_csv(directory / f"{name}.csv", rows)


def write_csv(path, rows):
    with open(path, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["race", "name", "figure", "p10", "median", "p90", "emitted", "delivered",
                      "lost", "bytes", "config", "reason"])
        for row in rows:
            for figure in ("ns", "long_ns", "program_ns", "span_ns"):
                if values := getattr(row, figure):
                    three = (f"{value:.3f}" for value in race.percentiles(values))
                    out.writerow([row.race, row.name, figure, *three,
                                  row.emitted, row.delivered, row.lost, row.bytes, row.config, ""])
            if row.reason:
                out.writerow([row.race, row.name, "", "", "", "", "", "", "", "", row.config,
                              row.reason])
