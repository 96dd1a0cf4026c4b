"""What an event costs by threads, by sizes of ring, page and payload; and what is lost by the size of
the ring. A process for each point, in turn, several times."""

import random
import re
from dataclasses import dataclass

import prepare
import race
from contest import Row
from functions import ringmark
from functions.ringmark import tool
from race import NotMeasured, run, tree_bytes

TRACERS = [ringmark]
KIB = 1024
TURNS = 3
EVENTS, RECORDED_EVENTS = 200_000, 2_000_000


@dataclass
class Curve:
    """One plot: what varies, over what, and the rest as a session has it if nothing is said."""

    race: str
    option: str
    values: list
    clocks: list
    defaults: dict


DEFAULTS = {"threads": 1, "ring": 256 * KIB, "page": 64 * KIB, "payload": 8}
CLOCKS = ["tsc", "none"]
CURVES = [
    Curve("threads", "threads", [1, 2, 4, 8, 16], CLOCKS, DEFAULTS),
    Curve("ring", "ring", [KIB << n for n in range(6, 17, 2)], CLOCKS, DEFAULTS),
    Curve("payload", "payload", [0, 8, *(1 << n for n in range(4, 13))], CLOCKS, DEFAULTS),
    Curve("page", "page", [KIB << n for n in range(2, 9)], CLOCKS,
          {**DEFAULTS, "ring": 4096 * KIB}),
]
RECORDED = [
    Curve("loss by ring", "ring", [KIB << n for n in range(6, 17, 2)], ["tsc"], DEFAULTS),
    Curve("loss by page", "page", [KIB << n for n in range(2, 9)], ["tsc"],
          {**DEFAULTS, "ring": 4096 * KIB}),
]


@dataclass
class Point:
    """A place on a curve."""

    curve: Curve
    value: int
    clock: str

    @property
    def set_to(self):
        return {**self.curve.defaults, self.curve.option: self.value}

    def settings(self, mode):
        """A session in which every thread gets a ring of the wanted size, made before it asks."""
        point = self.set_to
        return {"RINGMARK": f"mode={mode},clock={self.clock},ring={point['ring']},"
                            f"page={point['page']},warm={point['threads']},"
                            f"session={(2 * point['threads'] + 2) * point['ring']}"}

    def words(self, program):
        """The command that measures it; half of its events go before what counts."""
        point = self.set_to
        record = 16 + (point["payload"] + 7) // 8 * 8
        events = max(EVENTS // (1 + record // 256), 2 * point["ring"] // record + 1000)
        if self.curve.race == "threads":
            events //= point["threads"]
        return [program, point["threads"], point["payload"], events]

    def row(self):
        config = ", ".join(f"{key} {value:,}" for key, value in self.curve.defaults.items()
                           if key != self.curve.option)
        name = "counter clock" if self.clock == "tsc" else "no clock"
        return Row(self.curve.race, name, config, x=self.value)


def run_all(place, size, _daemons):
    """All curves; their rows, one for each point."""
    program = prepare.target() / "release/scaling"
    turns = TURNS if size.rounds == race.ROUNDS else 1
    return costs(program, turns) + losses(program, place, turns)


def costs(program, turns):
    """The median of the windows of each process, and CPU time."""
    points = [Point(curve, value, clock) for curve in CURVES for value in curve.values
              for clock in curve.clocks]
    rows = [point.row() for point in points]
    dice = random.Random(1)
    for turn in range(turns):
        race.progress(f"scaling: turn {turn + 1} of {turns}, {len(points)} points")
        for point, row in dice.sample(list(zip(points, rows)), len(points)):
            try:
                said = run(point.words(program), env=point.settings("overwrite")).split()
                row.ns.append(float(said[1]))
                row.long_ns.append(float(said[3]))
            except NotMeasured as reason:
                row.reason = str(reason)
    return rows


def losses(program, place, turns):
    """Per cent of the events of a program that writes flat out which are lost beside a recorder."""
    points = [Point(curve, value, "tsc") for curve in RECORDED for value in curve.values]
    rows = [point.row() for point in points]
    dice, dump = random.Random(2), place / "scaling.rmk"
    for turn in range(turns):
        race.progress(f"scaling: recorded, turn {turn + 1} of {turns}")
        for point, row in dice.sample(list(zip(points, rows)), len(points)):
            try:
                said = run([tool(), "record", "-o", dump, "--", *point.words(program)[:-1],
                            RECORDED_EVENTS], accept=(0, 1), env=point.settings("lossless"))
                emitted = int(said.split()[4])
                lost = int(re.search(r"([\d,]+) lost", said)[1].replace(",", ""))
                row.lost_percent.append(100 * lost / emitted)
                row.each_bytes.append(tree_bytes(dump) / (emitted - lost))
            except (NotMeasured, TypeError, IndexError) as reason:
                row.reason = str(reason)
    return rows
