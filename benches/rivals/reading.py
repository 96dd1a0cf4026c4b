"""P11 and P12 beside babeltrace2 and LTTng: the same trace decoded by both, CPU time, and a snapshot
of a program that goes on writing."""

import os
import subprocess
import threading
import time

import prepare
import race
from contest import Row
from emit import FULL_RING, Recorded
from functions import lttng, ringmark
from functions.ringmark import tool
from race import NotMeasured, run
from stage import Stage

TRACERS = [ringmark, lttng]
EVENTS = 1_000_000
TURNS = 5
SNAPSHOTS = 20
OURS = "Ringmark"
THEIRS = "babeltrace2"


class Snapshot:
    """Overwrite mode, a ring of 8 MiB."""

    name, has_spans = OURS, False
    settings = "mode=overwrite,ring=8M"
    config = f"RINGMARK={settings}, `ringmark snapshot`"

    def start(self, stage):
        self.dump = stage.directory / "snapshot.rmk"
        self.worker = stage.worker([stage.rival("ours")], {"RINGMARK": self.settings})
        return self.worker

    def snapshot(self):
        run([tool(), "snapshot", "-p", self.worker.process.pid, "-o", self.dump])

    def account(self, _worker):
        return None


def snapshots(place, size, daemons):
    """How long a snapshot takes while the program writes; by whole commands."""
    rows = []
    for contestant in (Snapshot(), lttng.events("LTTng", sub_buffer=1, is_snapshot=True)):
        race.progress(f"snapshot: {contestant.name}")
        row = Row("snapshot", contestant.name, contestant.config)
        rows.append(row)
        stage = Stage(place / f"snapshot-{len(rows)}", place / "programs", daemons)
        try:
            worker = contestant.start(stage)
            row.ns = while_writing(worker, contestant.snapshot, max(3, size.rounds * SNAPSHOTS
                                                                    // race.ROUNDS))
            worker.end()
            contestant.account(worker)
        except NotMeasured as reason:
            row.reason = str(reason)
    return rows


def while_writing(worker, job, times):
    """Times a job again and again while the worker emits."""
    stop, failed = threading.Event(), []

    def emit():
        try:
            while not stop.is_set():
                worker.order("c", 1_000_000)
        except NotMeasured as reason:
            failed.append(reason)

    writer = threading.Thread(target=emit)
    writer.start()
    took = []
    try:
        time.sleep(0.5)
        for _ in range(times):
            begin = time.perf_counter_ns()
            job()
            took.append(time.perf_counter_ns() - begin)
            time.sleep(0.02)
    finally:
        stop.set()
        writer.join()
    if failed:
        raise failed[0]
    return took


def traces(place, size, daemons):
    """The same events recorded by both; where they are, and how many of them."""
    found = {}
    events = EVENTS * size.rounds // race.ROUNDS
    for contestant in (Recorded(OURS, FULL_RING),
                       lttng.events(THEIRS)):
        race.progress(f"decode: a trace for {contestant.name}")
        stage = Stage(place / f"decode-{contestant.name}", place / "programs", daemons)
        try:
            worker = contestant.start(stage)
            for _ in range(20):  # in pieces, so that the recorder keeps up
                worker.order("c", events // 20)
                time.sleep(0.02)
            worker.end()
            delivered, _lost, _bytes = contestant.account(worker)
            path = contestant.dump if contestant.name == OURS else contestant.trace
            found[contestant.name] = (path, delivered)
        except NotMeasured as reason:
            found[contestant.name] = (None, str(reason))
    return found


def decoding(place, size, daemons):
    """CPU ns per event of each way to decode, in turn."""
    found = traces(place, size, daemons)
    ours, theirs = found[OURS][0], found[THEIRS][0]
    rows, commands = [], {
        f"{OURS}, decode only": (OURS, [prepare.target() / "release/decode", ours]),
        f"{THEIRS}, decode only": (THEIRS, ["babeltrace2", theirs, "--output-format=dummy"]),
        f"{OURS}, text": (OURS, [tool(), "cat", ours]),
        f"{THEIRS}, text": (THEIRS, ["babeltrace2", theirs]),
        f"{OURS}, JSON": (OURS, [tool(), "cat", "--json", ours]),
    }
    for name, (side, command) in commands.items():
        words = (os.path.basename(str(word)) for word in command)
        rows.append(Row("decode", name, " ".join(words)))
        path, count = found[side]
        if path is None:
            rows[-1].reason = count
        else:
            rows[-1].emitted = rows[-1].delivered = count
    for turn in range(TURNS):
        race.progress(f"decode: turn {turn + 1} of {TURNS}")
        for row in rows:
            if not row.reason:
                try:
                    row.ns.append(cpu_ns(commands[row.name][1]) / row.delivered)
                except NotMeasured as reason:
                    row.reason = str(reason)
    return rows


def cpu_ns(command):
    """CPU time of a command whose output goes nowhere."""
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise NotMeasured(f"{command[0]} failed with {process.returncode}")
    return (usage.ru_utime + usage.ru_stime) * 1e9


def run_all(place, size, daemons):
    return decoding(place, size, daemons) + snapshots(place, size, daemons)
