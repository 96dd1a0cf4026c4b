"""Ringmark itself, and the same program without any tracer."""

import json
import os
import re

from race import NotMeasured, run, tree_bytes

NAME = "Ringmark"


def version():
    return run([tool(), "--version"]).strip()


def tool():
    """The binary `ringmark`; benches/compare builds it."""
    return os.environ["RINGMARK_TOOL"]


def report(dump):
    """What `ringmark report` says of functions and of event types."""
    lines = run([tool(), "report", "--json", dump], accept=(0, 1)).splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


def calls(records):
    return records / 2 if records % 2 else records // 2


def lost(worker):
    """Events that `ringmark record` has reported as lost."""
    found = re.search(r"([\d,]+) lost", worker.said())
    if found is None:
        raise NotMeasured(f"no count of losses: {worker.said()}")
    return int(found[1].replace(",", ""))


class Plain:
    """No tracer: what everything else is compared with."""

    def __init__(self, name, binary):
        self.name, self.binary = name, binary
        self.config = f"{binary}: no tracer"

    def start(self, stage):
        return stage.worker([stage.binary(self.binary)])

    def account(self, _worker):
        return None


class Recorded:
    """Recorded to a file by `ringmark record`; `options` say what is traced."""

    def __init__(self, name, options, settings="", has_calls=True):
        self.name, self.options, self.has_calls = name, options, has_calls
        self.settings = f"mode=discard,ring=32M{settings}"
        self.config = f"sleds: RINGMARK={self.settings} ringmark record {' '.join(options)}"

    def start(self, stage):
        self.dump = stage.directory / "calls.rmk"
        command = [tool(), "record", *self.options, "-o", self.dump, "--", stage.binary("sleds")]
        return stage.worker(command, {"RINGMARK": self.settings})

    def account(self, worker):
        if not self.has_calls:
            return None
        # A call is two records; one of them may be lost.
        verified = json.loads(run([tool(), "verify", "--json", self.dump], accept=(0, 1)))
        return calls(verified["events"]), calls(lost(worker)), tree_bytes(self.dump)


class Loaded:
    """The library is loaded and a session there; all functions were on once and are off again."""

    name = "Ringmark, loaded, off again"
    SWITCH = "the commands `ringmark trace start --all-functions` and `ringmark trace stop`"
    config = "sleds: LD_PRELOAD, started and stopped by `ringmark trace`"

    def start(self, stage):
        library = os.environ["RINGMARK_LIB"]
        env = {"LD_PRELOAD": f"{library}/libringmark_functions.so", "RINGMARK": "1"}
        worker = stage.worker([stage.binary("sleds")], env)
        self.pid = worker.process.pid
        worker.order("c", 8)  # it runs, so its session is there
        self.switch(True)
        self.switch(False)
        return worker

    def switch(self, is_on):
        what = ["start", "--all-functions", "--detach"] if is_on else ["stop"]
        return run([tool(), "trace", *what, "-p", self.pid])

    def account(self, _worker):
        return None


ON = [
    Plain("plain", "plain"),
    Recorded("Ringmark", ["--kind", "graph", "--all-functions"]),
    Recorded("Ringmark, monotonic clock", ["--kind", "graph", "--all-functions"],
             ",clock=monotonic"),
]
OFF = [
    Plain("plain", "plain"),
    Plain("Ringmark, not loaded", "sleds"),
    Loaded(),
    Recorded("Ringmark, another function on", ["--kind", "graph", "-F", "never_called"],
             has_calls=False),
]
