"""P1, P2, P3: what an event and a span cost, beside the rivals, and what comes out."""

import re
from dataclasses import dataclass, field
from pathlib import Path

import kernel
import race
from contest import enter, leave
from functions import lttng, ringmark
from functions.ringmark import tool

TITLE = "event"
FULL_RING = "mode=discard,ring=32M"
# The program of each in src/bin, by its feature.
RUST = ["floor", "ours", "queue", "grants", "dial9", "fastrace", "tracy", "perfetto", "logger",
        "tracing_fmt", "tracing_chrome"]


class Crates:
    """Versions of the rivals that Cargo builds."""

    NAME = "crates"

    @staticmethod
    def version():
        lock = (Path(__file__).parent / "Cargo.lock").read_text()
        found = re.findall(r'name = "(.*)"\nversion = "(.*)"', lock)
        wanted = {"bbqueue", "dial9", "env_logger", "fastrace", "log", "perfetto-sdk", "rtrb", "tracing",
                  "tracing-appender", "tracing-chrome", "tracing-subscriber", "tracy-client"}
        return ", ".join(f"{name} {version}" for name, version in found if name in wanted)


class DpdkVersion:
    NAME = "DPDK"

    @staticmethod
    def version():
        return race.run(["pkg-config", "--modversion", "libdpdk"]).strip()


TRACERS = [ringmark, lttng, Crates, DpdkVersion, kernel]


@dataclass
class Program:
    """A program of src/bin. It says itself what came out."""

    name: str
    program: str
    config: str
    has_spans: bool = True
    env: dict = field(default_factory=dict)

    def start(self, stage):
        return stage.worker([stage.rival(self.program)], self.env)

    def account(self, worker):
        found = re.search(r"account (\d+) (\d+) (\d+)", worker.said())
        return tuple(map(int, found.groups())) if found else None


@dataclass
class Recorded:
    """Ringmark, recorded to a file as it comes."""

    name: str
    settings: str
    has_spans: bool = True

    @property
    def config(self):
        return f"RINGMARK={self.settings} ringmark record"

    def start(self, stage):
        self.dump = stage.directory / "events.rmk"
        command = [tool(), "record", "-o", self.dump, "--", stage.rival("ours")]
        return stage.worker(command, {"RINGMARK": self.settings})

    def account(self, worker):
        rows = ringmark.report(self.dump)
        events = sum(row["count"] for row in rows if row.get("name") == "bench.event")
        # Spans are in the dump, too: bytes per event would be of both.
        return events, ringmark.lost(worker), None


class Dpdk:
    name, has_spans = "DPDK rte_trace", False
    config = "--no-huge, buffer of 1 MiB, older events are overwritten and not counted"

    def start(self, stage):
        flags = race.run(["pkg-config", "--cflags", "libdpdk"]).split()
        libraries = race.run(["pkg-config", "--libs", "libdpdk"]).split()
        program = stage.emitter("dpdk", ["dpdk_event.c", "dpdk_register.c"], flags, libraries)
        env = {"LCORES": f"0@{race.CORE}", "HOME": str(stage.directory)}
        return stage.worker([program], env)

    def account(self, _worker):
        return None


CONTESTANTS = [
    Program("rdtsc", "floor", "the bare clock; a span is two"),
    Recorded("Ringmark, lossless", FULL_RING),
    Program("Ringmark, overwrite", "ours", "RINGMARK=mode=overwrite",
            env={"RINGMARK": "mode=overwrite"}),
    Recorded("Ringmark, monotonic clock", f"{FULL_RING},clock=monotonic"),
    Program("Ringmark, no clock", "ours", "RINGMARK=mode=overwrite,clock=none",
            env={"RINGMARK": "mode=overwrite,clock=none"}),
    Program("Ringmark, off", "ours", "no session"),
    Program("rtrb push", "queue", "a queue of 16 bytes, no clock", has_spans=False),
    Program("bbqueue grant", "grants", "reserve and commit of 16 bytes in a queue, no clock",
            has_spans=False),
    Dpdk(),
    Program("Tracy", "tracy", "no profiler connected: all stays in memory; an event is a plotted "
            "number"),
    Program("fastrace", "fastrace", "events and spans without a value, the cost of "
            "their root included, counted by its reporter"),
    Program("dial9", "dial9", "segments on disk; a span is two events"),
    lttng.events("LTTng-UST"),
    Program("Perfetto SDK", "perfetto", "service in the process, buffer of 64 MiB; losses are not "
            "read here"),
    Program("tracing + fmt + appender", "tracing_fmt", "non_blocking, drops when it is behind; "
            "spans are not written"),
    Program("tracing + chrome", "tracing_chrome", "with arguments, queue without a bound"),
    Program("log + env_logger", "logger", "to a file", has_spans=False),
    kernel.Marker(),
    kernel.Uprobe(),
]
# In a race of its own: LTTng records an event in all its sessions.
FLIGHT = [
    Program("rdtsc", "floor", "the bare clock"),
    Program("Ringmark, overwrite", "ours", "RINGMARK=mode=overwrite,ring=32M",
            env={"RINGMARK": "mode=overwrite,ring=32M"}),
    lttng.events("LTTng-UST, snapshot mode", is_snapshot=True),
]
# They are emptied between windows, and hold no long run.
QUEUES = ["rtrb push", "bbqueue grant"]


def run_all(place, size, daemons):
    """The races of events; their rows."""
    entered = enter(TITLE, CONTESTANTS, place, daemons)
    entered.store("ns", race.windows(entered, "c", size.rounds))
    with_spans = [contestant.name for contestant in CONTESTANTS if contestant.has_spans]
    entered.store("span_ns", race.windows(entered, "s", size.rounds, only=with_spans))
    lasting = [contestant.name for contestant in CONTESTANTS if contestant.name not in QUEUES]
    entered.store("long_ns", race.long_runs(entered, size.long_calls // 4, only=lasting))
    rows = leave(entered)
    flight = enter("flight", FLIGHT, place, daemons)
    flight.store("ns", race.windows(flight, "c", size.rounds // 3))
    flight.store("long_ns", race.long_runs(flight, size.long_calls // 4))
    return rows + leave(flight)
