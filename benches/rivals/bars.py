"""The bars, each with its figure, and whether it is met. What was not measured is no pass."""

from dataclasses import dataclass
from operator import sub, truediv

import race

PASS, MISSED, NOT_MEASURED = "met", "MISSED", "NOT MEASURED"


def shown(figure):
    """Four digits, or a whole number."""
    return f"{figure:,.0f}" if abs(figure) >= 1000 else f"{figure:.4g}"


@dataclass
class Bar:
    id: str
    what: str
    figure: float | None
    limit: float
    is_least: bool = False
    reason: str = ""

    @property
    def verdict(self):
        if self.figure is None:
            return NOT_MEASURED
        is_met = self.figure >= self.limit if self.is_least else self.figure <= self.limit
        return PASS if is_met else MISSED

    def __str__(self):
        sign = "≥" if self.is_least else "≤"
        figure = "" if self.figure is None else shown(self.figure)
        text = f"{self.id:4} {self.what:68} {figure:>8}  bar {sign} {shown(self.limit):<5} {self.verdict}"
        return f"{text}: {self.reason}" if self.figure is None else text


class Rows:
    """Finds figures by the name of the race and of who ran in it."""

    def __init__(self, rows):
        self.rows = {(row.race, row.name): row for row in rows}

    def median(self, title, name, what="ns"):
        row = self.rows.get((title, name))
        figures = getattr(row, what) if row else ()
        return race.percentiles(figures)[1] if figures else None

    def ratio(self, title, name, to, what="ns"):
        of, base = self.median(title, name, what), self.median(title, to, what)
        return of / base if of and base else None

    def paired(self, title, name, to, of_both, what="ns"):
        """Median over the rounds of what both windows of a round give: on a busy machine windows
        come in two speeds, and two medians may fall on one each."""
        mine, base = (self.rows.get((title, other)) for other in (name, to))
        if not mine or not base or not getattr(mine, what) or not getattr(base, what):
            return None
        both = zip(getattr(mine, what), getattr(base, what))
        return race.percentiles([of_both(*pair) for pair in both])[1]

    def reason(self, title, name):
        row = self.rows.get((title, name))
        return row.reason if row else "not part of this run"

    def losses(self, title, name):
        """Emitted less delivered less reported as lost."""
        row = self.rows.get((title, name))
        if row is None or row.delivered is None:
            return None
        return abs(row.emitted - row.delivered - row.lost)


def of_functions(all_rows):
    """F1, F2, F4, P5, P12 for function sites."""
    rows = Rows(all_rows)
    for rival, least in (("uftrace -P .", 3.5), ("XRay FDR", 5), ("LTTng cyg-profile-fast", 3)):
        for what, kind in (("ns", "windows"), ("long_ns", "long runs, CPU time")):
            yield Bar("F1", f"times faster than {rival}, all on, {kind}",
                      rows.ratio("on", rival, "Ringmark", what), least, True,
                      rows.reason("on", rival))
    yield Bar("F1", "funtrace: at most 1.1 of its time", None, 1.1, False,
              "it cannot be switched while a program runs")
    ours = rows.rows.get(("on", "Ringmark"))
    yield Bar("F1", "calls neither delivered nor counted as lost", rows.losses("on", "Ringmark"), 0)
    off = ["Ringmark, not loaded", "Ringmark, loaded, off again", "Ringmark, another function on"]
    for name in off:
        yield Bar("F2", f"{name}: of plain, empty functions",
                  rows.paired("off", name, "plain", truediv), 1.03, False,
                  rows.reason("off", name))
    for name in off:
        yield Bar("F2", f"{name}: ns per call more than plain",
                  rows.paired("off", name, "plain", sub), 0.5, False, rows.reason("off", name))
    for name in off:
        yield Bar("P5", f"{name}: of plain, a program of small functions",
                  rows.paired("off", name, "plain", truediv, "program_ns"), 1.02, False,
                  rows.reason("off", name))
    has_bytes = ours and ours.bytes and ours.delivered
    yield Bar("F4", "bytes per call in the dump: 16 raw, at most 1 % of pages as in P10",
              ours.bytes / ours.delivered if has_bytes else None, 16.16)
    for verb in ("start", "stop"):
        took = rows.median("switch", f"Ringmark, loaded, off again: {verb}")
        yield Bar("P12", f"{verb} answered, ms, command included", took and took / 1e6, 5)


def of_programs(all_rows):
    """F1 for whole programs: times of the whole command, and what was lost; and of summing up the calls."""
    rows = Rows(all_rows)
    ours, rival = "ringmark record", "uftrace record -P ."
    for name in ("lua", "sqlite3"):
        for what, kind in (("ns", "wall time"), ("long_ns", "CPU time")):
            yield Bar("F1", f"{name}, whole command: times faster than {rival}, {kind}",
                      rows.ratio(name, rival, ours, what), 3, True, rows.reason(name, rival))
        row = rows.rows.get((name, ours))
        yield Bar("F1", f"{name}, whole command: lost in the worst round", row and row.lost, 0,
                  False, rows.reason(name, ours))
        yield from of_reports(rows, name)


def of_reports(rows, name):
    """F1: calls summed up by function, alone and with recording them; CPU time of all processes."""
    read = f"{name} report"
    recorded = rows.median(name, "uftrace record -P .", "long_ns")
    for ours, theirs, before in (("ringmark report", "report", 0),
                                 ("ringmark run --kind graph", "record and report", recorded)):
        mine, report = (rows.median(read, who, "long_ns") for who in (ours, "uftrace report"))
        is_there = mine and report and before is not None
        yield Bar("F1", f"{name}, {ours}: of uftrace's {theirs}, CPU time",
                  mine / (before + report) if is_there else None, 1, False,
                  rows.reason(read, ours))


def of_servers(all_rows):
    """G6: what tracing all functions costs a server, by the rounds of both."""
    rows, ours = Rows(all_rows), "Ringmark, graph of all"
    yield Bar("G6", f"Redis, {ours}: CPU time for a request, of plain",
              rows.paired("redis", ours, "plain", truediv), 6, False, rows.reason("redis", ours))


def of_events(all_rows):
    """P1, P2, P3 beside the rivals."""
    rows = Rows(all_rows)
    for ours in ("Ringmark, lossless", "Ringmark, overwrite"):
        yield Bar("P1", f"{ours}: of rdtsc", rows.ratio("event", ours, "rdtsc"), 1.15)
    ours = "Ringmark, lossless"
    for rival, least in (("LTTng-UST", 5), ("Perfetto SDK", 10), ("dial9", 4),
                         ("tracing + chrome", 20)):
        yield Bar("P1", f"event, times faster than {rival}", rows.ratio("event", rival, ours),
                  least, True, rows.reason("event", rival))
    yield Bar("P1", "events neither delivered nor counted as lost", rows.losses("event", ours), 0,
              False, rows.reason("event", ours))
    yield Bar("P2", "no clock: of an rtrb push", rows.ratio("event", "Ringmark, no clock",
              "rtrb push"), 2.2)
    yield Bar("P3", "span: of rdtsc, two of which are needed",
              rows.ratio("event", ours, "rdtsc", "span_ns") and
              2 * rows.ratio("event", ours, "rdtsc", "span_ns"), 2.3)
    for rival, least in (("Tracy", 2), ("fastrace", 2), ("Perfetto SDK", 7)):
        yield Bar("P3", f"span, times faster than {rival}",
                  rows.ratio("event", rival, ours, "span_ns"), least, True,
                  rows.reason("event", rival))


def of_reading(all_rows):
    """P11 beside babeltrace2."""
    rows = Rows(all_rows)
    for what in ("decode only", "text"):
        rival = f"babeltrace2, {what}"
        yield Bar("P11", f"{what}: times the speed of babeltrace2",
                  rows.ratio("decode", rival, f"Ringmark, {what}"), 10, True,
                  rows.reason("decode", rival))


def of_killed(all_rows):
    """R1: what the healthy program emitted is there, and nothing of it is uncounted."""
    ours = [row for row in all_rows if row.name.startswith("Ringmark")]
    delivered = [row.delivered for row in ours]
    worst = None if None in delivered or not ours else min(delivered)
    yield Bar("R1", "after killed writers: events of a healthy one, worst of all runs", worst,
              400_000, True, next((row.reason for row in ours if row.reason), "not run"))
