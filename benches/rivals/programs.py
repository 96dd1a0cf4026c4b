"""F1 for whole programs: Lua and SQLite, all their functions recorded from start to end and summed up by
function, beside uftrace."""

import os
import re
import subprocess
import time
from dataclasses import dataclass

import prepare
import race
from contest import Row
from functions import ringmark, uftrace
from own import ROOT
from race import NotMeasured, run

TRACERS = [ringmark, uftrace]
ROUNDS = 10
FLAGS = ["-O2", "-fpatchable-function-entry=5"]
OURS, WAITING, THEIRS = "ringmark record", "ringmark record --wait 1s", "uftrace record -P ."
REPORT, RUN, THEIR_REPORT = "ringmark report", "ringmark run --kind graph", "uftrace report"
FUNCTIONS = ROOT / "tests/programs/functions"


@dataclass
class Program:
    """Sources of the distribution, how they are compiled, and the arguments of the work."""

    name: str
    flags: list
    work: list

    def build(self, place):
        sources, program = prepare.target() / "tmp/sources", place / self.name
        run(["sh", FUNCTIONS / "fetch.sh", sources, self.name])
        files = sorted((sources / self.name).glob("*.c"))
        run(["gcc", *FLAGS, *self.flags, *files, "-o", program, "-lm", "-ldl"])
        return [program, *self.work]


PROGRAMS = [
    Program("lua", ["-DLUA_USE_LINUX", "-Wl,-E"], [FUNCTIONS / "real_work.lua", "1000", "plain"]),
    Program("sqlite3", ["-DSQLITE_THREADSAFE=0"],
            ["-batch", "-init", "/dev/null", "-cmd", ".parameter set :n 25", ":memory:",
             f".read {FUNCTIONS / 'real_work.sql'}"]),
]


def recorders():
    """Words before the program, by name; the file to write stands where FILE is."""
    graph = [ringmark.tool(), "record", "--kind", "graph", "-o", "FILE"]
    return {
        "plain": [],
        OURS: [*graph, "--"],
        WAITING: [*graph, "--wait", "1s", "--"],
        THEIRS: ["uftrace", "record", "-P", ".", "-d", "FILE"],
    }


def readers():
    """Words that sum up by function: what the recorder of this name has written, or `None`: what they
    record themselves."""
    return {
        REPORT: (WAITING, [ringmark.tool(), "report", "FILE"]),
        RUN: (None, [ringmark.tool(), "run", "--kind", "graph", "--wait", "1s", "-o", "FILE", "--"]),
        THEIR_REPORT: (THEIRS, ["uftrace", "report", "-d", "FILE"]),
    }


def once(words, file, row):
    """Runs a command one time, and adds wall and CPU time and losses to the row."""
    log = file.with_name("log")
    command = [str(file if word == "FILE" else word) for word in words]
    begin = time.perf_counter_ns()
    with open(log, "w") as said:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=said, cwd=file.parent, env=environment())
        _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter_ns() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    text = log.read_text(errors="replace")
    lost = lost_in(text)
    # Ringmark ends with 1 after a loss.
    if process.returncode != 0 and not lost:
        raise NotMeasured(f"it ended with {process.returncode}: {text.strip()[-300:]}")
    row.ns.append(wall)
    row.long_ns.append((usage.ru_utime + usage.ru_stime) * 1e9)
    if row.name != "plain":
        row.lost = max(row.lost or 0, lost)
        row.bytes = race.tree_bytes(file)


def environment():
    """Ringmark finds the tracer's library that was built; it has no other settings."""
    return race.environment(RINGMARK_LIB=os.environ["RINGMARK_LIB"])


def lost_in(text):
    """Events that a recorder has reported as lost."""
    found = re.search(r"([\d,]+) lost", text) or re.search(r"LOST (\d+)", text)
    return int(found[1].replace(",", "")) if found else 0


def recorded(program, work, place, rounds):
    """All recorders of a program, in turn: a row for each."""
    entered = recorders()
    rows = {name: Row(program.name, name, " ".join(os.path.basename(str(word)) for word in words)
                      or "no tracer") for name, words in entered.items()}
    for turn in range(rounds):
        race.progress(f"{program.name}: round {turn + 1} of {rounds}")
        for name in [name for name in entered if not rows[name].reason]:
            try:
                run(["rm", "-rf", place / "recorded"])
                once([*entered[name], *work], place / "recorded", rows[name])
            except NotMeasured as reason:
                rows[name].reason = str(reason)
    return list(rows.values())


def summed_up(program, work, place, rounds):
    """All readers of a program's calls, in turn: a row for each."""
    entered, recorders_of, title = readers(), recorders(), f"{program.name} report"
    rows = {name: Row(title, name, " ".join(os.path.basename(str(word)) for word in words))
            for name, (_, words) in entered.items()}
    files = {name: place / f"of {source or name}" for name, (source, _) in entered.items()}
    for name, (source, _) in entered.items():
        if source:
            once([*recorders_of[source], *work], files[name], Row("", source, ""))
    for turn in range(rounds):
        race.progress(f"{program.name}, summed up: round {turn + 1} of {rounds}")
        for name, (source, words) in entered.items():
            try:
                once([*words, *([] if source else work)], files[name], rows[name])
            except NotMeasured as reason:
                rows[name].reason = str(reason)
    run(["rm", "-rf", *files.values()])
    return list(rows.values())


def run_all(place, size, _daemons):
    """Rows of both programs."""
    rounds = max(2, ROUNDS * size.rounds // race.ROUNDS)
    rows = []
    for program in PROGRAMS:
        work = program.build(place)
        rows += recorded(program, work, place, rounds) + summed_up(program, work, place, rounds)
    return rows
