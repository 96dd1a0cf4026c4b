"""R1: programs that write flat out are killed, then a healthy one emits. What of it comes out, with
Ringmark and with LTTng."""

import random
import re
import subprocess
import time
from dataclasses import dataclass, field

import race
from contest import Row
from emit import FULL_RING, Recorded
from functions import lttng, ringmark
from race import NotMeasured, run
from stage import Stage, end_daemons

TRACERS = [ringmark, lttng]
# Programs that are killed in each run.
KILLS = [10, 10, 30]
EVENTS = 400_000
LIMIT_S = 8


@dataclass
class Ours:
    """A session for each program: the healthy one's is recorded."""

    name: str = "Ringmark"
    said: str = ""
    config: str = f"RINGMARK=mode=discard, killed; then RINGMARK={FULL_RING} ringmark record"

    def open(self, stage):
        self.stage = stage

    def victim(self):
        # Where what they leave goes with the stage.
        env = {"RINGMARK": "mode=discard", "RINGMARK_DIR": str(self.stage.directory / "rings")}
        return self.stage.worker([self.stage.rival("ours")], env)

    def healthy(self):
        self.recorded = Recorded("healthy", FULL_RING)
        return self.recorded.start(self.stage)

    def account(self, worker):
        delivered, lost, _ = self.recorded.account(worker)
        return delivered, lost


@dataclass
class Theirs:
    """One session for all programs of a user, as LTTng has it: they share the rings of each core."""

    name: str = "LTTng-UST"
    said: str = ""
    inner: lttng.Lttng = field(
        default_factory=lambda: lttng.events("LTTng-UST killed", context="vpid"))

    @property
    def config(self):
        return self.inner.config

    def open(self, stage):
        self.stage = stage
        self.inner.start(stage).end()  # the session, and a program that emits nothing
        if stage.daemons[lttng.NAME] is None:
            raise NotMeasured("another session daemon runs, which this would harm")

    def victim(self):
        return self.inner.begin(self.stage)

    def healthy(self):
        return self.inner.begin(self.stage)

    def account(self, worker):
        for verb in ("stop", "destroy"):
            try:
                run(["lttng", verb, self.inner.session], limit_s=LIMIT_S)
            except NotMeasured as reason:
                self.said = str(reason)
        command = ["babeltrace2", self.inner.trace]
        done = subprocess.run(command, capture_output=True, text=True, timeout=race.LIMIT_S,
                              check=False)
        if done.returncode != 0:
            raise NotMeasured(f"babeltrace2: {done.stderr.strip()[-300:]}")
        # It says of each gap how many events the tracer has discarded there.
        lost = sum(map(int, re.findall(r"discarded (\d+) event", done.stderr)))
        return done.stdout.count(f"vpid = {worker.process.pid} "), lost


def one_run(contestant, kills, stage, seed):
    """Events of the healthy program: emitted, delivered, reported lost."""
    dice = random.Random(seed)
    contestant.open(stage)
    for _ in range(kills):
        victim = contestant.victim()
        victim.order("c", 64)
        victim.begin("c", 1_000_000_000)
        time.sleep(dice.uniform(0.001, 0.02))
        victim.process.kill()
        victim.end()
    worker = contestant.healthy()
    for _ in range(20):
        worker.order("c", EVENTS // 20 - race.WARM)
    worker.end()
    delivered, lost = contestant.account(worker)
    return worker.calls, delivered, lost, contestant.said


def run_all(place, size, _daemons):
    """One row for each run."""
    rows, own = [], {}
    for number, kills in enumerate(KILLS if size.rounds == race.ROUNDS else KILLS[:1]):
        for kind in (Ours, Theirs):
            contestant = kind()
            race.progress(f"killed: {contestant.name}, run {number + 1}, {kills} kills")
            row = Row("killed", f"{contestant.name}: run {number + 1}, {kills} killed",
                      contestant.config)
            rows.append(row)
            # A daemon of its own: this one may be of no use afterwards.
            stage = Stage(place / f"killed-{len(rows)}", place / "programs", own)
            try:
                row.emitted, row.delivered, row.lost, row.reason = one_run(
                    contestant, kills, stage, seed=number)
            except NotMeasured as reason:
                row.reason = str(reason)
            finally:
                end_daemons(own, limit_s=2)
    return rows
