"""Installs rivals and builds both sides, before anything is measured."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import emit
import own
import race
import stage

ROOT = own.ROOT
WITH_RIVALS = {"events", "reading", "killed"}


def install(packages):
    """Installs what is missing, where that is possible; what is not there is NOT MEASURED."""
    missing = stage.installed(packages)
    if not missing:
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        print(f"compare: not installed: {' '.join(missing)} (Debian, as root)", file=sys.stderr)
        return
    race.progress(f"installing {' '.join(missing)}")
    apt("update", "-qq")
    for package in missing:  # one that is not there takes no other with it
        apt("install", "-y", "-qq", "--no-install-recommends", package)


def apt(*words):
    done = subprocess.run(["apt-get", *words], capture_output=True, text=True, check=False,
                          env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
    if done.returncode != 0:
        print(f"compare: apt-get {words[0]} failed: {done.stderr.strip()[-300:]}",
              file=sys.stderr)


def target():
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()


def build(parts, built):
    """Builds what the parts need. Where the tool and the library are that a user would run: they
    are built too, if they are not `built`."""
    race.progress("building Ringmark")
    cargo, more = ["cargo", "build", "-q", "--release"], []
    if not built:
        subprocess.run([*cargo, "-p", "ringmark-cli", "-p", "ringmark-functions"], cwd=ROOT,
                       check=True)
    if "scaling" in parts or "reading" in parts:
        more.append([*cargo, "-p", "ringmark-benches", "--bins"])
    if "benches" in parts:
        more.append(["cargo", "bench", "-q", "--no-run", "-p", "ringmark-benches"])
    if "silences" in parts:
        more.append(["cargo", "bench", "-q", "--no-run", "-p", "ringmark-benches",
                     *(word for name in own.SILENCES for word in ("--bench", name))])
    if "tests" in parts:
        more.append(["tests/steps/build"])
        more.append(["cargo", "nextest", "run", "--cargo-quiet", "--no-run", "-p", "ringmark-tests"])
        # Hackbench's descendant, of which a package is fetched: not while something is measured.
        more.append(["sh", "tests/programs/functions/fetch.sh", target() / "tmp/sources",
                     "messaging"])
    for command in more:
        # What does not build fails again where it is run, and is not measured.
        subprocess.run(command, cwd=ROOT, check=False)
    return (built or target() / "release").resolve()


def build_rivals():
    """Builds the programs of src/bin; those that do not build are not measured."""
    race.progress("building rivals")
    done = subprocess.run(["cargo", "build", "-q", "--release", "--locked", "--keep-going",
                           "--target-dir", target() / "rivals", "--features", ",".join(emit.RUST)],
                          cwd=ROOT / "benches/rivals", stderr=subprocess.PIPE, text=True,
                          check=False)
    if done.returncode != 0:
        print(f"compare: a rival did not build: {done.stderr.strip()[-1000:]}", file=sys.stderr)


def rivals():
    """Where they are."""
    return target() / "rivals/release"
