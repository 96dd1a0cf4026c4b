"""LTTng's cyg-profile-fast: the compiler's calls at entry and exit lead to LTTng-UST."""

import re
import subprocess

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


class Lttng:
    """`is_on`: a session records everything. Otherwise only the library is loaded."""

    SWITCH = "the commands `lttng start` and `lttng stop`"

    def __init__(self, name, is_on):
        self.name, self.is_on = name, is_on
        self.config = (f"instrument: -finstrument-functions, LD_PRELOAD={LIBRARY}, 8 sub-buffers "
                       f"of 4 MiB per core, discard mode{'' if is_on else ', session stopped'}")

    def start(self, stage):
        self.session, self.trace = f"ringmark-{self.name.replace(' ', '-')}", stage.directory / "ctf"
        stage.daemons.setdefault(NAME, daemon())
        subprocess.run(["lttng", "destroy", self.session], capture_output=True, check=False)
        run(["lttng", "create", self.session, f"--output={self.trace}"])
        run(["lttng", "enable-channel", "-s", self.session, "-u", "--subbuf-size", "4M",
             "--num-subbuf", "8", "calls"])
        run(["lttng", "enable-event", "-s", self.session, "-u", "-c", "calls",
             "lttng_ust_cyg_profile_fast:*"])
        if self.is_on:
            self.switch(True)
        env = {"LD_PRELOAD": LIBRARY, "LTTNG_UST_REGISTER_TIMEOUT": "30000"}
        return stage.worker([stage.binary("instrument")], env)

    def switch(self, is_on):
        return run(["lttng", "start" if is_on else "stop", self.session])

    def account(self, _worker):
        said = run(["lttng", "stop", self.session]) if self.is_on else ""
        said += run(["lttng", "destroy", self.session])
        if not self.is_on:
            return None
        lost = re.search(r"(\d+) events? (?:were )?discarded", said)
        events = run(["sh", "-c", f"babeltrace2 '{self.trace}' | grep -c 'func_entry\\|func_exit'"])
        lost = int(lost[1]) if lost else 0
        return int(events.split()[0]) // 2, lost // 2, tree_bytes(self.trace)


ON = [Lttng("LTTng cyg-profile-fast", True)]
OFF = [
    Plain("-finstrument-functions, nothing loaded", "instrument"),
    Lttng("LTTng cyg-profile-fast, stopped", False),
]
