#!/usr/bin/env python3
"""Compares p99 per function: `ringmark report --by name` over the segments of a store, `ringmark query` over its tables,
and DuckDB's exact quantile over the same tables. They take turns, seven times. The whole command of the first two is
measured, and the query alone of the last.

    cargo run --release --example generate -- /tmp/spans.rmk 2000000 19
    cargo run --release --example store -- /tmp/spans.rmk /tmp/store
    ringmark compact file:///tmp/store
    examples/p99.py ringmark /tmp/store
"""

import csv
import os
import statistics
import subprocess
import sys
import time

ROUNDS = 7
SQL = "SELECT name, {} FROM spans GROUP BY name"
DUCKDB = """
import csv, duckdb, os, sys, time
question, *files = sys.argv[1:]
db = duckdb.connect(config={"threads": 2})
db.sql("SET enable_progress_bar = false")
db.read_parquet(files).create_view("spans")
before, begun = os.times(), time.monotonic()
rows = db.sql(question).fetchall()
took, after = time.monotonic() - begun, os.times()
print(took, after.user + after.system - before.user - before.system)
csv.writer(sys.stdout).writerows(rows)
"""


def printed(command):
    """What a command prints, and the seconds that it took: of the clock, and of CPUs."""
    before, begun = os.times(), time.monotonic()
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    took, after = time.monotonic() - begun, os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return text, (took, cpu)


def by_name(rows, *places):
    """The numbers at these places of each row, by its name."""
    return {row[0]: [int(row[place]) for place in places] for row in rows}


class Report:
    def __init__(self, ringmark, store):
        self.command = [ringmark, "report", "--by", "name", "--csv", "--sort", "p99", store]

    def rows(self):
        text, took = printed(self.command)
        header, *rows = csv.reader(text.splitlines())
        return header, rows, took

    def counts(self):
        header, rows, _ = self.rows()
        return by_name(rows, header.index("count"))

    def p99(self):
        header, rows, took = self.rows()
        return by_name(rows, header.index("p99_ns")), took


class Query:
    def __init__(self, ringmark, store):
        self.ringmark = ringmark
        self.store = store

    def ask(self, what):
        text, took = printed([self.ringmark, "query", SQL.format(what), self.store, "--format", "csv"])
        return by_name(list(csv.reader(text.splitlines()))[1:], 1), took

    def counts(self):
        return self.ask("count(dur_ns)")[0]

    def p99(self):
        return self.ask("p99(dur_ns)")


class DuckDB:
    def __init__(self, files):
        self.files = files

    def ask(self, what):
        text, _ = printed([sys.executable, "-c", DUCKDB, SQL.format(what), *self.files])
        first, *rows = text.splitlines()
        return by_name(csv.reader(rows), 1), tuple(float(took) for took in first.split())

    def counts(self):
        return self.ask("count(dur_ns)")[0]

    def p99(self):
        return self.ask("quantile_disc(dur_ns, 0.99)")


def main():
    ringmark, store = sys.argv[1:]
    files, _ = printed([ringmark, "store", "files", store])
    all_of = {
        "ringmark report --by": Report(ringmark, store),
        "ringmark query": Query(ringmark, store),
        "DuckDB, exact": DuckDB(files.split()),
    }
    *ours, theirs = all_of
    counts = {name: one.counts() for name, one in all_of.items()}
    assert all(found == counts[theirs] for found in counts.values()), "they counted other calls"
    times = {name: [] for name in all_of}
    p99 = {}
    for _ in range(ROUNDS):
        for name, one in all_of.items():
            p99[name], took = one.p99()
            times[name].append(took)
    calls = sum(count for [count] in counts[theirs].values())
    print(f"{calls} calls of {len(counts[theirs])} names, load {os.getloadavg()[0]:.1f}")
    exact = p99[theirs]
    for name in ours:
        assert p99[name].keys() == exact.keys(), "they found other names"
        worst = max(abs(p99[name][key][0] / exact[key][0] - 1) for key in exact)
        print(f"{name}: p99 {100 * worst:.2f} % off at most")
    for which, what in enumerate(["wall", "CPU"]):
        for name, all_took in times.items():
            took = sorted(one[which] for one in all_took)
            ratios = (a[which] / b[which] for a, b in zip(all_took, times[theirs]))
            print(
                f"{name}: {what} {statistics.median(took):.3f} s ({took[0]:.3f}..{took[-1]:.3f}), "
                f"{statistics.median(ratios):.2f} times"
            )


main()
