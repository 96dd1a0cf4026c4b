"""What threads did, from SPEC.md, section 11 (SWITCHES)."""

from open_stacks import DURATION, SPAN, number
from ringmark_codec import Damaged
from ringmark_format import SWITCH, SWITCHES

RUNS, READY, WAITS, ENDED, SEEN = 1, 2, 3, 4, 5
SLACK_NS = 100_000
NO_CLOCK = 4


class Switched:
    """The SWITCHES blocks of a session."""

    def __init__(self):
        self.blocks = []

    def add(self, content):
        if len(content) < SWITCHES.size:
            raise Damaged(f"a SWITCHES block of {len(content)} bytes")
        head = SWITCHES.read(content)
        start, end = head["from_mono_ns"], head["to_mono_ns"]
        if len(content) != SWITCHES.size + head["switches"] * SWITCH.size:
            raise Damaged(f"a SWITCHES block of {len(content)} bytes")
        places = range(SWITCHES.size, len(content), SWITCH.size)
        found = [tuple(SWITCH.read(content, at).values())[:3] for at in places]
        times = [start, *(at for at, _, _ in found)]
        if end < start or end >= 1 << 61 or times != sorted(times) or any(at >= end for at in times[1:]):
            raise Damaged("the times of a SWITCHES block")
        self.blocks.append((start, end, head["lost"], found))

    def stretches(self):
        """(start, end, switches) of each."""
        found, taken = [], None
        for start, end, lost, switches in sorted(self.blocks, key=lambda b: (b[0], -b[1])):
            if taken is not None and start < taken:
                continue
            taken = end
            if lost:
                continue
            if found and found[-1][1] == start:
                found[-1] = (found[-1][0], end, found[-1][2] + switches)
            else:
                found.append((start, end, switches))
        return found

    def states(self, tid, start, end):
        """(running, ready, waiting) of a thread between two of its records; None: unknown."""
        for first, last, switches in self.stretches():
            if first <= start and end <= last:
                own = [(at, turn) for at, owner, turn in switches if owner == tid]
                return states(own, start, end)
        return None


def share(sessions):
    """Gives the sessions of one process the blocks of all of them."""
    by_process = {}
    for session in sessions:
        process = tuple(session.header[n] for n in ("boot_id", "pid_namespace", "pid", "start_time"))
        shared = by_process.setdefault(process, Switched())
        shared.blocks += session.switched.blocks
        session.switched = shared


def states(own, start, end):
    if not own or own[0][0] > start + SLACK_NS:
        return None
    own = [switch for switch in own if switch[1] != SEEN]
    before = [s for s in own if s[0] <= start]
    after = [s for s in own if s[0] >= end and s not in before]
    inside = own[len(before) : len(own) - len(after)]
    now = before[-1][1] if before else RUNS
    early = inside and inside[0][1] == RUNS and inside[0][0] - start <= SLACK_NS
    if early and (now != RUNS or not before):
        now, inside = RUNS, inside[1:]
    elif now != RUNS and not (now in (READY, WAITS) and start - before[-1][0] <= SLACK_NS):
        return None
    sums, at = {RUNS: 0, READY: 0, WAITS: 0}, start
    follows = {RUNS: (READY, WAITS), READY: (RUNS,), WAITS: (RUNS,)}
    for moment, turn in inside:
        if turn not in follows[now]:
            return None
        sums[now] += moment - at
        at, now = moment, turn
    if now != RUNS and end - at > SLACK_NS:
        if not after or after[0][1] != RUNS or after[0][0] - end > SLACK_NS:
            return None
        sums[now] += end - at
        at = end
    sums[RUNS] += end - at
    return sums[RUNS], sums[READY], sums[WAITS]


def did_lines(session, spans, time):
    """`spans`: (ring, seq, tid, tick, type, payload) of every event of the session."""
    for ring, seq, tid, tick, kind, payload in sorted(spans):
        _, fields, shape = session.schema.types.get(kind, ("", [], 0))
        duration = number(fields, DURATION, payload) if shape == SPAN else None
        if duration is None or not session.switched.blocks:
            continue
        start, end = time.mono(max(0, tick - duration)), time.mono(tick)
        has_times = session.header["clock"] != NO_CLOCK
        found = session.switched.states(tid, start, end) if has_times else None
        text = "unknown" if found is None else " ".join(str(ns) for ns in found)
        yield f"# did {session.name} {ring} {seq} {text}"
