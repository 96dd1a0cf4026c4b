"""Open spans, from SPEC.md, section 4 (stacks of open spans) and section 11 (OPEN_SPANS)."""

from ringmark_codec import Damaged
from ringmark_format import FRAME, FRAME_BYTES, FRAMES, OPEN_SPANS

FILLED = 1 << 63
SPAN, SPAN_NEW, SPAN_EXIT, SPAN_CLOSE = 2, 3, 5, 6
DURATION, SPAN_ID, PARENT_ID = 1, 4, 5
STRUCTURE = (DURATION, SPAN_ID, PARENT_ID)


class Stacks:
    """The stacks of a session that were copied last."""

    def __init__(self):
        self.tick, self.by_ring = 0, {}

    def add(self, content):
        if len(content) < OPEN_SPANS.size:
            raise Damaged(f"an OPEN_SPANS block of {len(content)} bytes")
        header = OPEN_SPANS.read(content)
        frames = content[OPEN_SPANS.size :]
        if header["frames"] > FRAMES or len(frames) < header["frames"] * FRAME_BYTES:
            raise Damaged(f"an OPEN_SPANS block of {len(content)} bytes")
        if header["tick"] < self.tick:
            return
        if header["tick"] > self.tick:
            self.tick, self.by_ring = header["tick"], {}
        starts = [i * FRAME_BYTES for i in range(header["frames"])]
        self.by_ring[header["ring_id"]] = header, [frames[at : at + FRAME_BYTES] for at in starts]

    def in_order(self):
        found = [stack for ring, stack in self.by_ring.items() if ring]
        return sorted(found, key=lambda stack: stack[0]["slot"])


def number(fields, semantic, payload):
    """The number in the field with this meaning."""
    for field in fields:
        if field.semantic == semantic:
            return int.from_bytes(payload[field.offset : field.offset + field.size], "little")
    return None


def open_lines(session, records, time):
    """`records`: (tid, tick, type, payload) of every event of the session."""
    types = session.schema.types
    ended, left, made = set(), [], {}
    for tid, tick, kind, payload in records:
        _, fields, shape = types.get(kind, ("", [], 0))
        if shape == SPAN:
            duration = number(fields, DURATION, payload)
            if duration is not None:
                ended.add((tid, kind, tick - duration))
        elif shape == SPAN_NEW:
            made[number(fields, SPAN_ID, payload)] = kind, payload
        elif shape == SPAN_EXIT:
            left.append((tid, number(fields, SPAN_ID, payload), tick))
        elif shape == SPAN_CLOSE:
            left.append((None, number(fields, SPAN_ID, payload), tick))
    for header, frames in session.stacks.in_order():
        for frame in frames:
            head, tick = FRAME.read(frame).values()
            kind, words = head >> 32 & 0xFFFFFF, head >> 56 & 7
            if not head & FILLED or kind not in types:
                continue
            name, fields, shape = types[kind]
            payload = frame[16 : 16 + 8 * words]
            if shape == SPAN:
                payload = bytes(8) + payload
                finished = (header["tid"], kind, tick) in ended
            else:
                span = int.from_bytes(frame[16:24], "little")
                own = [(t, i) for t, i, at in left if at >= tick]
                finished = (header["tid"], span) in own or (None, span) in own
                if shape == SPAN_NEW and span in made:
                    kind, payload = made[span]
                    name, fields, _ = types[kind]
            if not finished:
                shown = [f for f in fields if f.semantic not in STRUCTURE]
                text = " ".join([name, *(f"{f.name}={f.show(payload)}" for f in shown)])
                yield f"# open {session.name} {header['ring_id']} {time.wall(tick)} {text}"
        if header["over"]:
            yield f"# deeper {session.name} {header['ring_id']} {header['over']}"
