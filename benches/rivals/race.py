"""What all races share: traced processes that work when told to, short interleaved windows."""

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

ROUNDS = 300
WINDOW_NS = 20_000
WARM = 64  # calls before each window: as in functions/worker.c and src/lib.rs
LIMIT_S = 120


class NotMeasured(Exception):
    """A rival that is not there or does not work, and why."""


# Where the traced programs run, one at a time, and where everything else does.
ALL = sorted(os.sched_getaffinity(0))
CORE, OTHERS = ALL[-1], set(ALL[:-1]) or set(ALL)


BEGIN = time.monotonic()


def progress(text):
    """Says what is being done, for the user who waits."""
    print(f"compare: {time.monotonic() - BEGIN:4.0f} s: {text}", file=sys.stderr, flush=True)


def environment(**more):
    """This process's, without settings of Ringmark that are not meant for whom it is given to."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("RINGMARK")}
    return {**clean, **more}


class Worker:
    """A traced process. It is told what to do through one pipe and answers through another."""

    def __init__(self, directory, command, env=None):
        self.directory = Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        orders, answers = self.directory / "orders", self.directory / "answers"
        for pipe in (orders, answers):
            pipe.unlink(missing_ok=True)
            os.mkfifo(pipe)
        # Open for both, so that no open waits for the other side, which may never come.
        self.orders = os.open(orders, os.O_RDWR)
        self.answers = os.open(answers, os.O_RDWR)
        self.calls = 0
        self.log = open(self.directory / "log", "w")
        try:
            self.process = subprocess.Popen(
                [*map(str, command), orders, answers, str(CORE)], stdout=self.log,
                stderr=self.log, stdin=subprocess.DEVNULL, cwd=self.directory,
                env={**os.environ, **(env or {})})
        except OSError as error:
            raise NotMeasured(f"{command[0]}: {error.strerror}") from None

    def begin(self, verb, n):
        """Has the process do `n` of something, and does not wait for it."""
        os.write(self.orders, f"{verb} {n}\n".encode())

    def order(self, verb, n):
        """Has the process do `n` of something; the time it took in ns."""
        self.begin(verb, n)
        text = b""
        deadline = time.monotonic() + LIMIT_S
        while not text.endswith(b"\n"):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise NotMeasured(f"the traced program ended or hung: {self.said()}")
            if select.select([self.answers], [], [], 0.2)[0]:
                text += os.read(self.answers, 100)
        if verb in "ct":
            self.calls += n + WARM
        return int(text)

    def end(self):
        """Ends the process, and whatever it runs under."""
        if self.process.poll() is None:
            os.write(self.orders, b"q 0\n")
        try:
            self.process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        os.close(self.orders)
        os.close(self.answers)

    def said(self):
        """The end of what was printed."""
        return (self.directory / "log").read_text(errors="replace").strip()[-300:]


def percentiles(values):
    """p10, median, p90."""
    values = sorted(values)
    return tuple(values[len(values) * p // 100] for p in (10, 50, 90))


def windows(entered, verb, rounds=ROUNDS, same=None, only=None):
    """Short windows in turn; for each worker the ns per call of each. All windows have the
    `same` size where it matters what is worked on, or else take the same time."""
    if same:
        return in_turn(entered, verb, lambda _: same, rounds)
    first = in_turn(entered, verb, lambda _: 64, 5, only)
    sizes = {name: max(8, int(WINDOW_NS / max(min(ns), 0.1)) // 8 * 8)
             for name, ns in first.items()}
    return in_turn(entered, verb, sizes.get, rounds, only)


def long_runs(entered, calls, turns=3, only=None):
    """Long runs in turn; for each worker the thread CPU ns per call of each."""
    return in_turn(entered, "t", lambda _: calls, turns, only)


def in_turn(entered, verb, size, rounds, only=None):
    """ns per call of every window; workers that fail leave the race."""
    taken = {name: [] for name in entered.workers if only is None or name in only}
    for _ in range(rounds):
        for name in [name for name in taken if name in entered.workers]:
            try:
                took = entered.workers[name].order(verb, size(name))
                taken[name].append(took / size(name))
            except NotMeasured as reason:
                entered.drop(name, reason)
    return {name: ns for name, ns in taken.items() if name in entered.workers}


def run(command, accept=(0,), limit_s=LIMIT_S, env=None):
    """Runs a tool to its end; what it printed. NotMeasured if it failed."""
    command = [str(word) for word in command]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s,
                              stdin=subprocess.DEVNULL, check=False,
                              env={**os.environ, **(env or {})})
    except FileNotFoundError:
        raise NotMeasured(f"{command[0]} is not installed") from None
    except subprocess.TimeoutExpired:
        raise NotMeasured(f"{' '.join(command[:3])} did not end in {limit_s} s") from None
    if done.returncode not in accept:
        said = (done.stderr or done.stdout).strip()[-300:]
        raise NotMeasured(f"{' '.join(command[:3])} failed: {said}")
    return done.stdout + done.stderr


def finished(command, limit_s, directory, env):
    """What a command has printed by its end, and whether that was a good one. One that takes too
    long is ended with all that it has started."""
    process = subprocess.Popen([str(word) for word in command], cwd=directory, env=env, text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, start_new_session=True)
    try:
        said, _ = process.communicate(timeout=limit_s)
    except BaseException as error:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        if isinstance(error, subprocess.TimeoutExpired):
            progress(f"{' '.join(map(str, command[:8]))} did not end within {limit_s} s")
            return "", False
        raise
    if process.returncode != 0:
        progress(f"{' '.join(map(str, command[:8]))} failed: {said.strip()[-1000:]}")
    return said, process.returncode == 0


def tree_bytes(path):
    """Bytes of a file, or of all files below a directory."""
    path = Path(path)
    files = [path] if path.is_file() else path.rglob("*")
    return sum(file.stat().st_size for file in files if file.is_file())
