"""F1, F2, F4, P5, P12: what tracing functions costs, on and off, beside the rivals."""

import time
from dataclasses import dataclass, field

import race
from functions import lttng, ringmark, uftrace, xray
from race import NotMeasured
from stage import Stage

PROGRAM_ROUNDS = 64
TRACERS = [ringmark, uftrace, lttng, xray]


@dataclass
class Row:
    """What is known of a contestant. Times are ns, one for each window."""

    race: str
    name: str
    config: str
    ns: list = field(default_factory=list)
    long_ns: list = field(default_factory=list)
    program_ns: list = field(default_factory=list)
    emitted: int | None = None
    delivered: int | None = None
    lost: int | None = None
    bytes: int | None = None
    reason: str = ""


@dataclass
class Field:
    """Contestants of one race that are running."""

    rows: dict = field(default_factory=dict)
    workers: dict = field(default_factory=dict)
    contestants: dict = field(default_factory=dict)

    def drop(self, name, reason):
        """Takes one out of the race."""
        self.rows[name].reason = str(reason)
        self.contestants.pop(name, None)
        worker = self.workers.pop(name, None)
        if worker:
            worker.process.kill()
            worker.end()

    def store(self, what, figures):
        for name, values in figures.items():
            getattr(self.rows[name], what).extend(values)


def enter(title, contestants, place, daemons, rows=None):
    """Starts all contestants; those that do not start are out, with the reason. Figures are
    added to `rows`, if there are some."""
    entered = Field()
    for contestant in contestants:
        name = contestant.name
        entered.rows[name] = (rows or {}).get(name) or Row(title, name, contestant.config)
        stage = Stage(place / f"{title}-{len(entered.rows)}", place / "programs", daemons)
        try:
            worker = entered.workers[name] = contestant.start(stage)
            entered.contestants[name] = contestant
            worker.order("c", 8)
        except NotMeasured as reason:
            entered.drop(name, reason)
    return entered


def leave(entered):
    """Ends all, and asks each how much of it was delivered."""
    for name, worker in entered.workers.items():
        row = entered.rows[name]
        worker.end()
        row.emitted = worker.calls
        try:
            account = entered.contestants[name].account(worker)
        except NotMeasured as reason:
            row.reason = f"speed measured, account not: {reason}"
            continue
        if account:
            row.delivered, row.lost, row.bytes = account
    return list(entered.rows.values())


def switches(entered, times):
    """P12: how long it takes until a start or a stop of everything is answered."""
    rows = []
    for name, contestant in entered.contestants.items():
        if not hasattr(contestant, "switch"):
            continue
        pair = {on: Row("switch", f"{name}: {'start' if on else 'stop'}", contestant.SWITCH)
                for on in (True, False)}
        rows += pair.values()
        try:
            for on in [True, False] * times:
                begin = time.perf_counter_ns()
                contestant.switch(on)
                pair[on].ns.append(time.perf_counter_ns() - begin)
        except NotMeasured as reason:
            pair[True].reason = pair[False].reason = str(reason)
    return rows


def run_all(place, size, daemons):
    """All races of functions; their rows."""
    on = enter("on", [c for t in TRACERS for c in t.ON], place, daemons)
    on.store("ns", race.windows(on, "c", size.rounds))
    on.store("long_ns", race.long_runs(on, size.long_calls))
    rows = leave(on)
    off_rows, switch_rows = {}, []
    # Where the loader puts a program decides about a percent: several processes of each.
    for _ in range(size.processes):
        off = enter("off", [c for t in TRACERS for c in t.OFF], place, daemons, off_rows)
        off_rows = off.rows
        off.store("ns", race.windows(off, "c", size.rounds // size.processes))
        off.store("program_ns", race.windows(off, "p", size.rounds // size.processes,
                                             same=PROGRAM_ROUNDS))
        switch_rows = switch_rows or switches(off, size.switches)
        leave(off)
    return rows + list(off_rows.values()) + switch_rows
