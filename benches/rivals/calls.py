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
    """What is known of a contestant. Times are p10, median and p90 in ns."""

    race: str
    name: str
    config: str
    ns: tuple = ()
    long_ns: tuple = ()
    program_ns: tuple = ()
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
            setattr(self.rows[name], what, values)


def enter(title, contestants, place, daemons):
    """Starts all contestants; those that do not start are out, with the reason."""
    entered = Field()
    for contestant in contestants:
        name = contestant.name
        entered.rows[name] = Row(title, name, contestant.config)
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
        taken = {on: [] for on in pair}
        try:
            for on in [True, False] * times:
                begin = time.perf_counter_ns()
                contestant.switch(on)
                taken[on].append(time.perf_counter_ns() - begin)
            for on, row in pair.items():
                row.ns = race.percentiles(taken[on])
        except NotMeasured as reason:
            pair[True].reason = pair[False].reason = str(reason)
    return rows


def run_all(place, size, daemons):
    """All races of functions; their rows."""
    on = enter("on", [c for t in TRACERS for c in t.ON], place, daemons)
    on.store("ns", race.windows(on, "c", size.rounds))
    on.store("long_ns", race.long_runs(on, size.long_calls))
    rows = leave(on)
    off = enter("off", [c for t in TRACERS for c in t.OFF], place, daemons)
    off.store("ns", race.windows(off, "c", size.rounds))
    off.store("program_ns", race.windows(off, "p", size.rounds, same=PROGRAM_ROUNDS))
    rows += switches(off, size.switches)
    return rows + leave(off)
