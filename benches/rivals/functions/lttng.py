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
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
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
    has_spans = False

    SWITCH = "the commands `lttng start` and `lttng stop`"

    @property
    def config(self):
        preload = f", LD_PRELOAD={self.preload}" if self.preload else ""
        return (f"{self.binary}{preload}, {self.events}, 8 sub-buffers of 4 MiB per core, "
                f"discard mode{'' if self.is_on else ', session stopped'}")

    def start(self, stage):
        self.session = f"ringmark-{self.name.replace(' ', '-')}"
        self.trace = stage.directory / "ctf"
        stage.daemons.setdefault(NAME, daemon())
        subprocess.run(["lttng", "destroy", self.session], capture_output=True, check=False)
        run(["lttng", "create", self.session, f"--output={self.trace}"])
        run(["lttng", "enable-channel", "-s", self.session, "-u", "--subbuf-size", "4M",
             "--num-subbuf", "8", "calls"])
        run(["lttng", "enable-event", "-s", self.session, "-u", "-c", "calls",
             self.events])
        if self.is_on:
            self.switch(True)
        env = {"LTTNG_UST_REGISTER_TIMEOUT": "30000"}
        if self.preload:
            env["LD_PRELOAD"] = self.preload
        return stage.worker([stage.binary(self.binary)], env)

    def switch(self, is_on):
        return run(["lttng", "start" if is_on else "stop", self.session])

    def account(self, _worker):
        said = run(["lttng", "stop", self.session]) if self.is_on else ""
        said += run(["lttng", "destroy", self.session])
        if not self.is_on:
            return None
        lost = re.search(r"(\d+) events? (?:were )?discarded", said)
        count = f"babeltrace2 '{self.trace}' | grep -c {self.marker}"
        delivered = int(run(["sh", "-c", count]).split()[0])
        lost = int(lost[1]) if lost else 0
        if self.marker == "func_entry":
            lost //= 2  # of entries and exits together
        return delivered, lost, tree_bytes(self.trace)


ON = [Lttng("LTTng cyg-profile-fast", True)]
OFF = [
    Plain("-finstrument-functions, nothing loaded", "instrument"),
    Lttng("LTTng cyg-profile-fast, stopped", False),
]
