#!/usr/bin/env python3
"""Puts the callers back into stacks that `perf` took by frame pointers of a traced program.

usage: perf script -F comm,tid,time,ip,sym,dso | stacks.py TRACE.rmk

Where a function's exits are no patch sites, its return address is replaced while it runs, and a frame
pointer leads to `ringmark_return` in the place of the caller. The trace knows the caller of each call
that was open then: record it with `--kind graph -A 1`, and the samples with `-k CLOCK_REALTIME`.
"""
import bisect
import json
import os
import subprocess
import sys

RETURN = "ringmark_return"


def open_calls(trace):
    """By thread: moments in ns, and the callers of the calls that are open from each on, outermost first."""
    ringmark = os.environ.get("RINGMARK_COMMAND", "ringmark")
    cat = subprocess.Popen([ringmark, "cat", trace, "--json"], stdout=subprocess.PIPE, text=True)
    threads = {}
    for line in cat.stdout:
        event = json.loads(line)
        if event["kind"] not in ("function_entry", "function_exit"):
            continue
        moments, stacks = threads.setdefault(event["tid"], ([], [()]))
        moments.append(int(event["ts_ns"]))
        now = stacks[-1]
        entered = event["kind"] == "function_entry"
        stacks.append(now + (event["args"]["caller"],) if entered else now[:-1])
    if cat.wait() > 1:
        sys.exit(f"{trace}: it cannot be read")
    return threads


def at(threads, tid, ns, wanted):
    """The callers of the calls that were open in a thread; the nearest moment with as many as wanted."""
    moments, stacks = threads.get(tid, ([], [()]))
    place = bisect.bisect_right(moments, ns)
    for step in (0, -1, 1, -2, 2):
        near = place + step
        if 0 <= near < len(stacks) and len(stacks[near]) == wanted:
            return stacks[near]
    return None


def put_right(head, frames, threads):
    """The lines of a sample with callers in place of the frames that are `ringmark_return`."""
    words = head.split()
    tid = next(int(word) for word in words if word.isdigit())
    seconds, fraction = next(word for word in words if word.endswith(":"))[:-1].split(".")
    ns = int(seconds) * 10**9 + int(fraction.ljust(9, "0"))
    replaced = [place for place, frame in enumerate(frames) if RETURN in frame.split()]
    callers = at(threads, tid, ns, len(replaced))
    if replaced and callers is None:
        return [head] + frames + ["\t(callers are not in the trace)"], False
    for place, caller in zip(replaced, reversed(callers or ())):
        frames[place] = f"\t{'':>16} {caller} (from the trace)"
    return [head] + frames, True


def main():
    threads = open_calls(sys.argv[1])
    head, frames, missing = None, [], 0
    for line in [*sys.stdin, "\n"]:
        line = line.rstrip("\n")
        if line and head is None:
            head = line
        elif line:
            frames.append(line)
        elif head is not None:
            lines, is_right = put_right(head, frames, threads)
            missing += not is_right
            print("\n".join(lines), end="\n\n")
            head, frames = None, []
    if missing:
        print(f"{missing} samples have callers that are not in the trace", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
