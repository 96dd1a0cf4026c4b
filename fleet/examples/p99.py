#!/usr/bin/env python3
"""Compares p99 per function: `ringmark scan p99 --by name` over the segments of a store, and DuckDB's exact quantile
over its tables. They take turns, seven times. The whole command of the former is measured, and the query alone of the latter.

    cargo run --release --example generate -- /tmp/spans.rmk 2000000 19
    cargo run --release --example store -- /tmp/spans.rmk /tmp/store
    ringmark compact /tmp/store
    examples/p99.py ringmark /tmp/store
"""

import os
import statistics
import subprocess
import sys
import time

ROUNDS = 7
DUCKDB = """
import duckdb, os, sys, time
files = sys.argv[1:]
db = duckdb.connect(config={"threads": 2})
db.sql("SET enable_progress_bar = false")
db.read_parquet(files).create_view("spans")
before, begun = os.times(), time.monotonic()
rows = db.sql("SELECT name, quantile_disc(dur_ns, 0.99) FROM spans GROUP BY name").fetchall()
took, after = time.monotonic() - begun, os.times()
print(took, after.user + after.system - before.user - before.system)
for row in rows:
    print(*row, sep="\\t")
"""


def scan(ringmark, store):
    before, begun = os.times(), time.monotonic()
    command = [ringmark, "scan", "p99", "--by", "name", store]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    took, after = time.monotonic() - begun, os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    rows = [line.split(",") for line in text.splitlines()]
    at = rows[0].index("p99_ns")
    return (took, cpu), {row[0]: int(row[at]) for row in rows[1:]}


def duckdb(files):
    command = [sys.executable, "-c", DUCKDB, *files]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    first, *rows = text.splitlines()
    took, cpu = first.split()
    answers = (row.split("\t") for row in rows)
    return (float(took), float(cpu)), {name: int(p99) for name, p99 in answers}


def main():
    ringmark, store = sys.argv[1:]
    command = [ringmark, "store", "files", store]
    files = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    ours, theirs = [], []
    for _ in range(ROUNDS):
        took, near = scan(ringmark, store)
        ours.append(took)
        took, exact = duckdb(files)
        theirs.append(took)
    assert near.keys() == exact.keys(), "they found other names"
    worst = max(abs(near[name] / exact[name] - 1) for name in exact)
    print(f"{len(exact)} names, p99 {100 * worst:.2f} % off at most, load {os.getloadavg()[0]:.1f}")
    for which, what in enumerate(["wall", "CPU"]):
        for name, all_took in [("ringmark scan p99", ours), ("DuckDB, exact", theirs)]:
            took = sorted(one[which] for one in all_took)
            median = statistics.median(took)
            print(f"{name}: {what} {median:.3f} s ({took[0]:.3f}..{took[-1]:.3f})")
        ratio = statistics.median(a[which] / b[which] for a, b in zip(ours, theirs))
        print(f"{what}: {ratio:.2f} times")


main()
