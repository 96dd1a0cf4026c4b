"""LTTng's cyg-profile-fast: the compiler's calls at entry and exit lead to LTTng-UST."""

import re
import subprocess
from dataclasses import dataclass

from functions.ringmark import Plain
from race import NotMeasured, run, tree_bytes

NAME = "LTTng"
PACKAGES = ["lttng-tools", "liblttng-ust-dev", "babeltrace2"]
LIBRARY = "liblttng-ust-cyg-profile-fast.so"


def version():
    ust = run(["dpkg-query", "-W", "-f", "${Version}", "liblttng-ust-dev"])
    return run(["lttng", "--version"]).split(" -")[0].strip() + f", UST {ust}"


def daemon():
    """LTTng's daemon, if none runs; it ends with this process."""
    if subprocess.run(["lttng", "list"], capture_output=True, check=False).returncode == 0:
        return None
    try:
        started = subprocess.Popen(["lttng-sessiond", "--no-kernel"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   start_new_session=True)
    except FileNotFoundError:
        raise NotMeasured("lttng-sessiond is not installed") from None
    run(["timeout", "10", "sh", "-c", "until lttng list >/dev/null 2>&1; do sleep 0.1; done"])
    return started


@dataclass
class Lttng:
    """`is_on`: a session records everything. Otherwise it is stopped."""

    name: str
    is_on: bool
    binary: str = "instrument"
    preload: str = LIBRARY
    events: str = "lttng_ust_cyg_profile_fast:*"
    marker: str = "func_entry"
    # MiB of each of the 8 sub-buffers of a core.
    sub_buffer: int = 4
    context: str = ""
    # Kept in memory, the oldest overwritten, and written when asked.
    is_snapshot: bool = False
    has_spans = False

    SWITCH = "the commands `lttng start` and `lttng stop`"

    @property
    def config(self):
        preload = f", LD_PRELOAD={self.preload}" if self.preload else ""
        mode = "snapshot mode" if self.is_snapshot else "discard mode"
        return (f"{self.binary}{preload}, {self.events}, 8 sub-buffers of {self.sub_buffer} MiB "
                f"per core, {mode}{'' if self.is_on else ', session stopped'}")

    def start(self, stage):
        self.session = "ringmark-" + re.sub(r"\W+", "-", self.name)
        self.trace = stage.directory / "ctf"
        stage.daemons.setdefault(NAME, daemon())
        subprocess.run(["lttng", "destroy", self.session], capture_output=True, check=False)
        snapshot = ["--snapshot"] if self.is_snapshot else []
        run(["lttng", "create", self.session, f"--output={self.trace}", *snapshot])
        mode = "--overwrite" if self.is_snapshot else "--discard"
        run(["lttng", "enable-channel", "-s", self.session, "-u", mode, "--subbuf-size",
             f"{self.sub_buffer}M", "--num-subbuf", "8", "calls"])
        run(["lttng", "enable-event", "-s", self.session, "-u", "-c", "calls",
             self.events])
        if self.context:
            run(["lttng", "add-context", "-s", self.session, "-u", "-c", "calls", "-t",
                 self.context])
        if self.is_on:
            self.switch(True)
        return self.begin(stage)

    def begin(self, stage):
        """The traced program; the session is there."""
        env = {"LTTNG_UST_REGISTER_TIMEOUT": "30000"}
        if self.preload:
            env["LD_PRELOAD"] = self.preload
        return stage.worker([stage.binary(self.binary)], env)

    def switch(self, is_on):
        return run(["lttng", "start" if is_on else "stop", self.session])

    def snapshot(self):
        run(["lttng", "snapshot", "record", "-s", self.session])

    def account(self, _worker):
        said = run(["lttng", "stop", self.session]) if self.is_on else ""
        said += run(["lttng", "destroy", self.session])
        if not self.is_on or self.is_snapshot:
            return None
        lost = re.search(r"(\d+) events? (?:were )?discarded", said)
        count = f"babeltrace2 '{self.trace}' | grep -c {self.marker}"
        delivered = int(run(["sh", "-c", count]).split()[0])
        lost = int(lost[1]) if lost else 0
        if self.marker == "func_entry":
            lost //= 2  # of entries and exits together
        return delivered, lost, tree_bytes(self.trace)


def events(name, **options):
    """A program that emits events, recorded."""
    return Lttng(name, True, "lttng_event", "", "ringmark_rival:*", "bench_event", **options)


ON = [Lttng("LTTng cyg-profile-fast", True)]
OFF = [
    Plain("-finstrument-functions, nothing loaded", "instrument"),
    Lttng("LTTng cyg-profile-fast, stopped", False),
]
