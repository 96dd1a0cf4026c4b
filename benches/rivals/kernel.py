"""The kernel's own ways to record an event of a program: trace_marker and uprobes, each in a ftrace
instance of its own."""

import os
import platform
import re
import subprocess
from pathlib import Path

from race import NotMeasured, run

NAME = "kernel tracing"
GROUP = "ringmark_compare"
BUFFER_KIB = 65536
SYSTEM = Path("/sys/kernel/tracing")


def version():
    return f"ftrace of Linux {platform.release()}"


def tracefs(daemons):
    """Where tracefs is; mounted if it was not, and unmounted again with the daemons."""
    if not (SYSTEM / "instances").is_dir():
        try:
            run(["mount", "-t", "tracefs", "nodev", SYSTEM])
        except NotMeasured as error:
            raise NotMeasured(f"no tracefs: {error}") from None
        daemons[NAME] = Mounted()
    return SYSTEM


class Mounted:
    """Ends like a process."""

    def terminate(self):
        subprocess.run(["umount", SYSTEM], check=False)

    def wait(self, _limit_s=None):
        pass


def put(path, text):
    """Writes what a file of tracefs takes; the reason if the kernel does not want it. Appended:
    truncating the list of probes would remove those of others."""
    try:
        file = os.open(path, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(file, text.encode())
        finally:
            os.close(file)
    except OSError as error:
        raise NotMeasured(f"{path}: {text}: {error.strerror}") from None


class Instance:
    """A ftrace instance with buffers that hold the whole race."""

    has_spans = False

    def open(self, stage):
        self.root = tracefs(stage.daemons)
        self.path = self.root / "instances" / f"{GROUP}_{os.getpid()}_{self.binary}"
        try:
            self.path.mkdir()
        except OSError as error:
            raise NotMeasured(f"{self.path}: {error.strerror}") from None
        put(self.path / "buffer_size_kb", str(BUFFER_KIB))

    def account(self, _worker):
        """Events that are in the buffers, and those that newer ones replaced."""
        said = "".join(file.read_text() for file in self.path.glob("per_cpu/cpu*/stats"))
        count = {key: sum(map(int, re.findall(rf"^{key}: (\d+)", said, re.MULTILINE)))
                 for key in ("entries", "overrun", "commit overrun", "dropped events", "bytes")}
        self.close()
        lost = count["overrun"] + count["commit overrun"] + count["dropped events"]
        return count["entries"], lost, count["bytes"]

    def close(self):
        self.path.rmdir()


class Marker(Instance):
    name, binary = "kernel trace_marker_raw", "trace_marker"
    config = f"a write of 16 bytes each, buffers of {BUFFER_KIB >> 10} MiB per core, overwritten"

    def start(self, stage):
        self.open(stage)
        program = stage.emitter(self.binary, ["trace_marker.c"], [], [])
        return stage.worker([program], {"MARKER": str(self.path / "trace_marker_raw")})


class Uprobe(Instance):
    name, binary = "kernel uprobe", "uprobe"
    config = f"a function with a probe that records its argument, buffers of {BUFFER_KIB >> 10} " \
             "MiB per core, overwritten"

    def start(self, stage):
        self.open(stage)
        program = stage.emitter(self.binary, ["uprobe.c"], [], [])
        self.probe = f"{GROUP}_{os.getpid()}"
        put(self.root / "uprobe_events",
            f"p:{self.probe}/bench_event {program}:{offset(program, 'bench_event'):#x} value=%di")
        put(self.path / "events" / self.probe / "bench_event" / "enable", "1")
        return stage.worker([program])

    def close(self):
        put(self.path / "events" / self.probe / "bench_event" / "enable", "0")
        super().close()
        put(self.root / "uprobe_events", f"-:{self.probe}/bench_event")


def offset(program, symbol):
    """Where a function stands in its file."""
    address = re.search(rf"^([0-9a-f]+) \w {symbol}$", run(["nm", program]), re.MULTILINE)
    text = re.search(r" \.text +PROGBITS +([0-9a-f]+) ([0-9a-f]+) ",
                     run(["readelf", "-SW", program]))
    start, at = (int(word, 16) for word in text.groups())
    return int(address[1], 16) - start + at
