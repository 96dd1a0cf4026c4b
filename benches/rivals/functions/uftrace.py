"""uftrace: patches functions when the program starts; a recorder takes buffers from memory."""

import re

from race import run, tree_bytes

NAME = "uftrace"
PACKAGES = ["uftrace"]


def version():
    return run(["uftrace", "--version"]).split("(")[0].strip()


class Uftrace:
    """`binary` is what it traces and `options` how."""

    def __init__(self, name, binary, options, is_on=True):
        self.name, self.binary, self.is_on = name, binary, is_on
        self.options = [*options, "--no-libcall", "--no-event"]
        self.config = f"{binary}: uftrace record {' '.join(self.options)}"

    def start(self, stage):
        self.data = stage.directory / "uftrace.data"
        command = ["uftrace", "record", *self.options, "-d", self.data, stage.binary(self.binary)]
        return stage.worker(command)

    def account(self, worker):
        """Calls delivered and lost, and bytes, once the worker has ended."""
        if not self.is_on:
            return None
        report = run(["uftrace", "report", "-d", self.data, "-f", "call", "--no-pager"])
        delivered = sum(int(line.split()[0]) for line in report.splitlines() if " leaf_" in line)
        lost = re.search(r"LOST (\d+)", worker.said())
        return delivered, int(lost[1]) if lost else 0, tree_bytes(self.data)


ON = [
    Uftrace("uftrace -P .", "sleds", ["-P", "."]),
    Uftrace("uftrace, -pg -mfentry", "fentry", []),
]
OFF = [
    Uftrace("uftrace, another function patched", "sleds", ["-P", "never_called"], False),
    Uftrace("uftrace, all patched, filtered", "sleds", ["-P", ".", "-F", "never_called"], False),
]
