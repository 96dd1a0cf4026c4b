"""F1, F2, F4, P5, P12: what tracing functions costs, on and off, beside the rivals."""

import time

import race
from contest import Row, enter, leave
from functions import lttng, ringmark, uftrace, xray
from race import NotMeasured

PROGRAM_ROUNDS = 64
TRACERS = [ringmark, uftrace, lttng, xray]


def switches(entered, times):
    """P12: how long it takes until a start or a stop of everything is answered."""
    rows = []
    for name, contestant in entered.contestants.items():
        if not hasattr(contestant, "switch"):
            continue
        pair = {on: Row("switch", f"{name}: {'start' if on else 'stop'}", contestant.SWITCH)
                for on in (True, False)}
        rows += pair.values()
        try:
            for on in [True, False] * times:
                begin = time.perf_counter_ns()
                contestant.switch(on)
                pair[on].ns.append(time.perf_counter_ns() - begin)
        except NotMeasured as reason:
            pair[True].reason = pair[False].reason = str(reason)
    return rows


def run_all(place, size, daemons):
    """All races of functions; their rows."""
    on = enter("on", [c for t in TRACERS for c in t.ON], place, daemons)
    on.store("ns", race.windows(on, "c", size.rounds))
    on.store("long_ns", race.long_runs(on, size.long_calls))
    rows = leave(on)
    off_rows, switch_rows = {}, []
    # Where the loader puts a program decides about a percent: several processes of each.
    for _ in range(size.processes):
        off = enter("off", [c for t in TRACERS for c in t.OFF], place, daemons, off_rows)
        off_rows = off.rows
        off.store("ns", race.windows(off, "c", size.rounds // size.processes))
        off.store("program_ns", race.windows(off, "p", size.rounds // size.processes,
                                             same=PROGRAM_ROUNDS))
        switch_rows = switch_rows or switches(off, size.switches)
        leave(off)
    return rows + list(off_rows.values()) + switch_rows
