"""G6: Redis with all of its functions traced, beside uftrace: CPU time of the server's main thread for a
request. The servers stay; they take turns in answering."""

import os
import re
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import prepare
import race
from contest import Row
from functions import ringmark, uftrace
from own import ROOT
from race import NotMeasured, run

TRACERS = [ringmark, uftrace]
ROUNDS = 15
# A round of each: uftrace writes 6 KB for a request.
REQUESTS = 20_000
FLAGS = "-fpatchable-function-entry=5"
WORK = ["-t", "set", "-P", "16", "-c", "20", "-q"]
PLAIN, OURS, PROFILE, THEIRS = "plain", "Ringmark, graph of all", "Ringmark, profile of all", "uftrace -P ."


def built():
    """The folder of redis-server and redis-benchmark, made once."""
    sources = prepare.target() / "tmp/sources"
    run(["sh", ROOT / "tests/programs/functions/fetch.sh", sources, "redis"])
    run(["make", "-s", "-C", sources / "redis", "MALLOC=libc", "OPTIMIZATION=-O2", f"REDIS_CFLAGS={FLAGS}",
         "redis-server", "redis-benchmark"], limit_s=900)
    return sources / "redis/src"


def free_port():
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return place.getsockname()[1]


@dataclass
class Server:
    """A Redis that answers on `port`, under what `before` and `env` make of it."""

    name: str
    config: str
    before: list = field(default_factory=list)
    env: dict = field(default_factory=dict)
    kind: str = ""

    def start(self, programs, place):
        place.mkdir()
        self.port, self.log = free_port(), place / "log"
        words = [*self.before, programs / "redis-server", "--port", self.port, "--save", ""]
        with open(self.log, "w") as said:
            self.process = subprocess.Popen([str(word) for word in words], cwd=place, stdout=said, stderr=said,
                                            stdin=subprocess.DEVNULL, env=race.environment(**self.env))
        self.pid = int(re.search(r"process_id:(\d+)", self.ask("INFO server"))[1])
        os.sched_setaffinity(self.pid, {race.CORE})
        if self.kind:
            run([ringmark.tool(), "trace", "start", "-p", self.pid, "--tracer", "all", "--kind", self.kind,
                 "--all-functions", "--detach"])

    def ask(self, command):
        """Its answer, once it runs."""
        end = time.monotonic() + race.LIMIT_S
        while True:
            try:
                with socket.create_connection(("127.0.0.1", self.port), 10) as peer:
                    peer.sendall(f"{command}\r\n".encode())
                    return peer.recv(1 << 16).decode()
            except ConnectionRefusedError:
                if self.process.poll() is not None or time.monotonic() > end:
                    raise NotMeasured(f"no server: {self.log.read_text()[-300:]}") from None
                time.sleep(0.05)

    def cpu_ns(self):
        """CPU time of its main thread."""
        return int(Path(f"/proc/{self.pid}/task/{self.pid}/schedstat").read_text().split()[0])

    def serve(self, programs, requests):
        """CPU ns for a request."""
        before = self.cpu_ns()
        run([programs / "redis-benchmark", "-p", self.port, *WORK, "-n", requests])
        return (self.cpu_ns() - before) / requests

    def end(self):
        if self.process.poll() is None:
            try:
                self.ask("SHUTDOWN NOSAVE")
                self.process.wait(race.LIMIT_S)
            except (OSError, NotMeasured, subprocess.TimeoutExpired):
                self.process.kill()
                self.process.wait()


def servers():
    library = {"LD_PRELOAD": f"{os.environ['RINGMARK_LIB']}/libringmark_functions.so", "RINGMARK": "mode=overwrite"}
    traced = "LD_PRELOAD, mode=overwrite, no reader, ringmark trace start --all-functions --kind"
    options = ["record", "-P", ".", "--no-libcall", "--no-event", "-d", "uftrace.data"]
    return [
        Server(PLAIN, "no tracer"),
        Server(OURS, f"{traced} graph", env=library, kind="graph"),
        Server(PROFILE, f"{traced} profile", env=library, kind="profile"),
        Server(THEIRS, f"uftrace {' '.join(options)}", ["uftrace", *options]),
    ]


def run_all(place, size, _daemons):
    """A row for each server."""
    programs, rounds = built(), max(2, ROUNDS * size.rounds // race.ROUNDS)
    rows, running = [], []
    try:
        for number, server in enumerate(servers()):
            rows.append(Row("redis", server.name, server.config))
            try:
                running.append((server, rows[-1]))
                server.start(programs, place / f"redis-{number}")
                server.serve(programs, REQUESTS)
            except NotMeasured as reason:
                rows[-1].reason = str(reason)
        for turn in range(rounds):
            race.progress(f"redis: round {turn + 1} of {rounds}")
            for server, row in running:
                if not row.reason:
                    row.ns.append(server.serve(programs, REQUESTS))
    finally:
        for server, _ in running:
            server.end()
        shutil.rmtree(place / "redis-3", ignore_errors=True)
    return rows
