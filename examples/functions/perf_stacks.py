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
    """By thread: moments in ns, and the calls that are open from each on, outermost first: function and caller."""
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
        stacks.append(now + ((event["name"], event["args"]["caller"]),) if entered else now[:-1])
    if cat.wait() > 1:
        sys.exit(f"{trace}: it cannot be read")
    return threads


def near(threads, tid, ns, wanted):
    """The open calls of a thread around a moment, where there are as many as wanted; the nearest first."""
    moments, stacks = threads.get(tid, ([], [()]))
    place = bisect.bisect_right(moments, ns)
    for step in (0, -1, 1, -2, 2):
        if 0 <= place + step < len(stacks) and len(stacks[place + step]) == wanted:
            yield stacks[place + step]


def symbol(frame):
    """The function of a frame: `401136 name (module)`."""
    return frame.strip().partition(" ")[2].rsplit(" (", 1)[0].split("+0x")[0]


def agrees(calls, frames, replaced):
    """Whether these are the calls that the sample saw: the frame within a replaced one is of the function called."""
    inner = zip(replaced, reversed(calls))
    return all(place == 0 or place - 1 in replaced or symbol(frames[place - 1]) == name for place, (name, _) in inner)


def put_right(head, frames, threads):
    """The lines of a sample with callers in place of the frames that are `ringmark_return`."""
    words = head.split()
    tid = next(int(word) for word in words if word.isdigit())
    seconds, fraction = next(word for word in words if word.endswith(":"))[:-1].split(".")
    ns = int(seconds) * 10**9 + int(fraction.ljust(9, "0"))
    replaced = [place for place, frame in enumerate(frames) if symbol(frame) == RETURN]
    found = list(near(threads, tid, ns, len(replaced)))
    # The clocks of both differ a little: around a call's begin and end, the sample itself says which it is.
    calls = next((calls for calls in found if agrees(calls, frames, replaced)), found[0] if found else None)
    if replaced and calls is None:
        return [head] + frames + ["\t(callers are not in the trace)"], False
    for place, (_, caller) in zip(replaced, reversed(calls or ())):
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
