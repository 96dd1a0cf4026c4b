"""Sums up spans from the lines of `ringmark cat --json --raw`, without any code of Ringmark's.

Prints a JSON object: name of the span -> [count, sum, min, max] of its durations in ns. A native
span says its duration; one of several records lasts from the one that makes it to its close; a
call lasts from the entry of its function to the next exit of its thread.
"""

import json
import sys


def durations(lines):
    """Yields (name, duration) of every span or call with a beginning and an end."""
    made, calls = {}, {}
    for line in lines:
        event = json.loads(line)
        key = (event["session"], event["span"])
        inside = calls.setdefault((event["session"], event["ring"]), [])
        if event["kind"] == "span":
            yield event["name"], event["dur_ns"]
        elif event["kind"] == "span_new":
            made[key] = (event["name"], event["t_ns"])
        elif event["kind"] == "span_close" and key in made:
            name, began = made.pop(key)
            yield name, event["t_ns"] - began
        elif event["kind"] == "function_entry":
            inside.append((event["name"], event["t_ns"]))
        elif event["kind"] == "function_exit":
            name, began = inside.pop()
            assert name == event["name"], (name, event)
            yield name, event["t_ns"] - began


def main():
    sums = {}
    for name, took in durations(sys.stdin):
        count, total, least, most = sums.get(name, (0, 0, took, took))
        sums[name] = (count + 1, total + took, min(least, took), max(most, took))
    json.dump(sums, sys.stdout)


main()
