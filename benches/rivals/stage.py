"""Where a race takes place: its files, its core, the traced program built for each tracer."""

import os
import signal
import subprocess
from pathlib import Path

from race import NotMeasured, Worker, run

HERE = Path(__file__).parent / "functions"
EVENTS = Path(__file__).parent / "events"
CLANG = "clang-19 -O2"
# How the traced functions are compiled; the loop around them never is instrumented.
BUILDS = {
    "plain": "gcc -O2",
    "sleds": "gcc -O2 -fpatchable-function-entry=5",
    "fentry": "gcc -O2 -pg -mfentry",
    "instrument": "gcc -O2 -finstrument-functions",
    "plain-clang": CLANG,
    "xray": f"{CLANG} -fxray-instrument -fxray-instruction-threshold=1",
}


class Stage:
    """Files of one contestant."""

    def __init__(self, directory, binaries, daemons):
        self.directory = directory
        self.binaries, self.daemons = binaries, daemons

    def binary(self, build):
        """The traced program as `build` wants it."""
        if build == "lttng_event":
            return self.emitter(build, ["lttng_event.c"], [], ["-llttng-ust", "-ldl"])
        self.binaries.mkdir(parents=True, exist_ok=True)
        program = self.binaries / build
        work, main = (self.binaries / f"{build}.{part}.o" for part in ("work", "main"))
        run([*BUILDS[build].split(), "-c", HERE / "work.c", "-o", work])
        run(["gcc", "-O2", "-c", HERE / "worker.c", "-o", main])
        objects = [work, main]
        link = ["gcc", "-pg"] if build == "fentry" else ["gcc"]
        if build == "xray":
            hooks = self.binaries / "hooks.o"
            run(["clang++-19", "-O2", "-c", HERE / "xray_hooks.cc", "-o", hooks])
            objects.append(hooks)
            link = ["clang++-19", "-fxray-instrument"]
        run([*link, *objects, "-o", program])
        return program

    def rival(self, name):
        """A program of src/bin, which benches/compare has built."""
        program = self.binaries.parent / "built" / name
        if not program.exists():
            raise NotMeasured(f"{name} was not built")
        return program

    def emitter(self, name, sources, flags, libraries):
        """A C program that emits events."""
        self.binaries.mkdir(parents=True, exist_ok=True)
        program = self.binaries / name
        sources = [*(EVENTS / source for source in sources), HERE / "worker.c", HERE / "work.c"]
        run(["gcc", "-O2", f"-I{EVENTS}", *flags, *sources, "-o", program, *libraries])
        return program

    def worker(self, command, env=None):
        return Worker(self.directory, command, env)


def end_daemons(daemons, limit_s=20):
    """Ends what contestants have started for themselves: by force, if it does not want to."""
    for process in daemons.values():
        if process is None:
            continue
        process.terminate()
        try:
            process.wait(limit_s)
        except subprocess.TimeoutExpired:
            # And what it has started itself.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    daemons.clear()


def installed(packages):
    """Which of Debian's packages are missing."""
    found = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${Status}\n", *packages],
                           capture_output=True, text=True, check=False).stdout
    there = {line.split()[0] for line in found.splitlines() if line.endswith(" installed")}
    return [package for package in packages if package not in there]
