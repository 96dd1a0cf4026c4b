"""XRay's flight data recorder (LLVM): sleds at entry and exit, buffers inside of the process."""

from race import run, tree_bytes

NAME = "XRay"
PACKAGES = ["clang-19", "libclang-rt-19-dev", "llvm-19"]
# No recorder beside the process: buffers that hold the whole race, written at its end.
FDR = "buffer_size=1048576:buffer_max=1024:func_duration_threshold_us=0"


def version():
    return run(["clang-19", "--version"]).splitlines()[0]


class Xray:
    SWITCH = "__xray_patch and __xray_unpatch, called by the program itself: it has no control"

    def __init__(self, name, is_on):
        self.name, self.is_on = name, is_on
        self.config = "xray: clang-19 -fxray-instrument -fxray-instruction-threshold=1"
        self.config += f", {FDR}, written when the program ends" if is_on else ", sleds at rest"

    def start(self, stage):
        self.directory = stage.directory
        env = {"XRAY_OPTIONS": f"xray_logfile_base={stage.directory}/log-"}
        self.binary = stage.binary("xray")
        self.worker = stage.worker([self.binary], {**env, "FDR": FDR} if self.is_on else env)
        return self.worker

    def switch(self, _is_on):
        self.worker.order("x", 1)

    def account(self, _worker):
        if not self.is_on:
            return None
        [log] = self.directory.glob("log-*")
        # Numbers are given in the order of the source: the first eight are the empty functions.
        entries = run(["sh", "-c", f"llvm-xray-19 fdr-dump '{log}' | grep -c 'Enter: #[1-8] '"])
        return int(entries.split()[0]), 0, tree_bytes(log)


ON = [Xray("XRay FDR", True)]
OFF = [Xray("XRay sleds at rest", False)]
