"""Who runs in a race, and what is known of them."""

from dataclasses import dataclass, field

from race import NotMeasured
from stage import Stage


@dataclass
class Row:
    """What is known of a contestant. Times are ns, one for each window."""

    race: str
    name: str
    config: str
    ns: list = field(default_factory=list)
    long_ns: list = field(default_factory=list)
    program_ns: list = field(default_factory=list)
    span_ns: list = field(default_factory=list)
    lost_percent: list = field(default_factory=list)
    each_bytes: list = field(default_factory=list)
    # Where on a curve this is, if it is a point of one.
    x: int | None = None
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
