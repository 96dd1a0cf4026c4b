"""Blocks to events, from SPEC.md, sections 4, 7 and 11."""

import struct
import zlib

import ringmark_codec as codec
from open_stacks import Stacks, open_lines
from ringmark_codec import Damaged
from ringmark_format import (
    BLOCK_HEADER,
    CAUSES,
    COUNTERS_HEADER,
    ENDING as ENDING_BLOCK,
    PAGE_HEADER,
    PAGE_HEADER_BYTES,
    SESSION_HEADER,
    SESSION_HEADER_BYTES,
    SLOT_COUNTERS,
    Page,
    Schema,
    Time,
    align8,
    attributes,
    check_session_header,
    merge_pages,
    quote,
    show_uuid,
)
import samples
import seen_waits
from thread_states import Switched, did_lines, share

SESSION, SCHEMA, PAGE, COUNTERS, CONTAINER = 1, 2, 3, 4, 5
ENDING, OPEN_SPANS, SWITCHES, WAITS, SAMPLES = 9, 10, 13, 14, 15
GONE, UNTOLD = 5, 6


def header_at(data, at):
    """The valid block header at `at`, or None."""
    if data[at : at + 4] != b"RMKB" or at + 64 > len(data):
        return None
    header = BLOCK_HEADER.read(data, at)
    if zlib.crc32(data[at : at + 60]) != header["header_crc"]:
        return None
    if max(header["stored_bytes"], header["raw_bytes"]) > codec.CONTENT_BYTES_MAX:
        return None
    return header


def blocks(data, damage):
    """(header, content) of every good block; what is not good goes to `damage` as text."""
    at, lost_from = 0, None
    while at < len(data):
        header = header_at(data, at)
        if header is None:
            if lost_from is None:
                lost_from = at
            at = data.find(b"RMKB", at + 1)
            at = len(data) if at < 0 else at
            continue
        if lost_from is not None:
            damage.append(f"no block in bytes {lost_from}..{at}")
            lost_from = None
        start, end = at + 64, at + 64 + header["stored_bytes"]
        content = data[start:end]
        if end > len(data):
            damage.append(f"block at {at} is cut")
            at = start  # a dump may have been appended to a cut one
            lost_from = None
            at = next_header(data, at)
        elif zlib.crc32(content) != header["content_crc"]:
            damage.append(f"block at {at}: wrong content checksum")
            at = next_header(data, start)
        else:
            at = align8(end - at) + at
            yield from unpacked(header, content, damage)
    if lost_from is not None:
        damage.append(f"no block in bytes {lost_from}..{len(data)}")


def next_header(data, at):
    """Where the next valid header starts."""
    while True:
        at = data.find(b"RMKB", at)
        if at < 0:
            return len(data)
        if header_at(data, at) is not None:
            return at
        at += 1


def unpacked(header, content, damage):
    if header["kind"] == CONTAINER:
        try:
            raw = codec.decode(header["codec"], content, header["raw_bytes"])
        except Damaged as found:
            damage.append(f"container: {found}")
            return
        for inner, inside in blocks(raw, damage):
            if inner["kind"] == CONTAINER:
                damage.append("a container in a container")
            else:
                yield inner, inside
    elif header["codec"] != codec.NONE or header["raw_bytes"] != len(content):
        damage.append(f"block of kind {header['kind']} under codec {header['codec']}")
    else:
        yield header, content


class SessionDump:
    """What a dump says about one session."""

    def __init__(self, content):
        if len(content) < SESSION_HEADER_BYTES:
            raise Damaged(f"a SESSION of {len(content)} bytes")
        self.header = SESSION_HEADER.read(content)
        check_session_header(self.header)
        self.content, self.damage = content, []
        end = SESSION_HEADER_BYTES + self.header["attributes_bytes"]
        self.attributes, whole = attributes(content[SESSION_HEADER_BYTES:end])
        if not whole or end > len(content):
            self.damage.append("an attribute reaches past the session's attributes")
        self.name = show_uuid(self.header["session"])
        self.stream, self.schema = bytearray(), Schema()
        self.pages, self.samples, self.counters, self.lost = {}, set(), {}, [0] * 8
        self.final = False
        self.stacks, self.ending = Stacks(), None
        self.switched = Switched()
        self.waits = seen_waits.SeenWaits()
        self.ran = samples.Samples()

    def add(self, block, content):
        kind = block["kind"]
        if kind == SESSION and content != self.content:
            self.damage.append("two different SESSION blocks")
        elif kind == SCHEMA:
            self._schema(block["page_number"], content)
        elif kind == PAGE:
            self._page(block, content)
        elif kind == COUNTERS:
            self._counters(content)
        elif kind == OPEN_SPANS:
            self.stacks.add(content)
        elif kind == SWITCHES:
            self.switched.add(content)
        elif kind == WAITS:
            self.waits.add(content)
        elif kind == SAMPLES:
            self.ran.add(content)
        elif kind == ENDING:
            self._ending(content)

    def _ending(self, content):
        if len(content) < ENDING_BLOCK.size:
            raise Damaged(f"an ENDING block of {len(content)} bytes")
        found = ENDING_BLOCK.read(content)
        known = found["how"] not in (GONE, UNTOLD)
        before_known = self.ending is not None and self.ending["how"] not in (GONE, UNTOLD)
        if known or not before_known:
            self.ending = found

    def _schema(self, offset, content):
        known = len(self.stream)
        if offset > known:
            self.damage.append(f"schema from {known} to {offset} is missing")
            return
        common = self.stream[offset:][: len(content)]
        if common != content[: len(common)]:
            self.damage.append(f"two different schemas at {offset}")
            return
        self.stream += content[len(common) :]
        self.schema.extend(bytes(self.stream))

    def _page(self, block, content):
        size, number, ring = block["page_bytes"], block["page_number"], block["ring_id"]
        name = f"page {number} of ring {ring}"
        right = size & (size - 1) == 0 and 4096 <= size <= 1 << 20
        if not right or len(content) != block["extent"] or len(content) % 8:
            self.damage.append(f"{name}: {len(content)} bytes of {size}")
            return
        if not PAGE_HEADER_BYTES <= len(content) <= size:
            self.damage.append(f"{name}: extent {len(content)}")
            return
        header = PAGE_HEADER.read(content)
        if header["generation"] != number + 1 or header["ring_id"] != ring:
            self.damage.append(f"{name}: the page says {header['generation'] - 1}")
            return
        if header["mono_base_ns"]:
            self.samples.add((header["tick_base"], header["mono_base_ns"]))
        sealed = bool(block["flags"] & 1)
        before = self.pages.get((ring, number))
        if before is not None:
            merged = merge_pages(before[0], content)
            if merged is None:
                self.damage.append(f"{name}: two copies contradict each other")
                return
            content, sealed = merged, sealed or before[1]
        self.pages[ring, number] = (content, sealed)

    def _counters(self, content):
        if len(content) < COUNTERS_HEADER.size:
            self.damage.append(f"a COUNTERS block of {len(content)} bytes")
            return
        header = COUNTERS_HEADER.read(content)
        if header["sample_tick"] or header["sample_mono_ns"]:
            self.samples.add((header["sample_tick"], header["sample_mono_ns"]))
        self.final |= bool(header["flags"] & 1)
        self.lost = [max(pair) for pair in zip(self.lost, header["lost"])]
        for i in range(header["slots"]):
            at = COUNTERS_HEADER.size + i * SLOT_COUNTERS.size
            if at + SLOT_COUNTERS.size > len(content):
                self.damage.append("a COUNTERS block ends too early")
                return
            slot = SLOT_COUNTERS.read(content, at)
            before = self.counters.get(slot["slot"])
            if before is not None:
                lost = [max(pair) for pair in zip(before["lost"], slot["lost"])]
                slot = {**slot, **{k: max(slot[k], before[k]) for k in ("produced", "consumed", "events")}}
                slot["lost"] = lost
            self.counters[slot["slot"]] = slot


class Decoded:
    """Events of all sessions in order, and everything that was counted."""

    def __init__(self, data):
        self.damage, self.sessions = [], {}
        for block, content in blocks(data, self.damage):
            self._add(block, content)
        share(self.sessions.values())
        seen_waits.share(self.sessions.values())
        samples.share(self.sessions.values())
        self.cancelled = self.uncommitted = 0
        self.events, self.missing, self.ends = [], [], {}
        for number, session in enumerate(self.sessions.values()):
            self._decode(number, session)
            self.damage += session.damage + session.schema.damage
        self.events.sort(key=lambda event: event[:6])

    def _add(self, block, content):
        key = block["session"]
        known = (SESSION, SCHEMA, PAGE, COUNTERS, ENDING, OPEN_SPANS, SWITCHES, WAITS, SAMPLES)
        if block["kind"] not in known:
            return
        try:
            if key not in self.sessions:
                if block["kind"] != SESSION:
                    raise Damaged(f"a block of the unknown session {show_uuid(key)}")
                session = SessionDump(content)
                if session.header["session"] != key:
                    raise Damaged("SESSION and its block name different sessions")
                self.sessions[key] = session
            else:
                self.sessions[key].add(block, content)
        except Damaged as damage:
            self.damage.append(str(damage))

    def _decode(self, session_number, session):
        time = Time(session.header, session.samples)
        slots, records, spans = {}, [], []
        for (ring, number), (content, sealed) in session.pages.items():
            page = Page(content, sealed)
            slots.setdefault(page.header["slot"], {})[number] = page
            if page.damage:
                session.damage.append(f"page {number} of ring {ring}: {page.damage}")
            self.cancelled += page.cancelled
            self.uncommitted += page.uncommitted
            for index, tick, kind, payload in page.events:
                seq = page.header["first_event"] + index
                wall = time.wall(tick)
                key = (wall, tick, session_number, page.header["slot"], number, index)
                self.events.append((*key, ring, seq, session, kind, payload))
                records.append((page.header["tid"], tick, kind, payload))
                spans.append((ring, seq, *records[-1]))
        for slot, pages in sorted(slots.items()):
            self._missing(session, slot, [page for _, page in sorted(pages.items())])
        lines = list(open_lines(session, records, time))
        if session.ending is not None:
            how, code, flags = (session.ending[name] for name in ("how", "code", "flags"))
            lines.append(f"# ended {session.name} {how} {code} {flags}")
        lines += did_lines(session, spans, time)
        lines += session.waits.lines(session.name, quote)
        lines += session.ran.lines(session.name, quote)
        self.ends[session.name] = lines

    def _missing(self, session, slot, pages):
        count, expected = 0, 0
        for page in pages:
            count += max(0, page.header["first_event"] - expected)
            expected = page.header["first_event"] + page.reservations
        if session.final and slot in session.counters:
            count += max(0, session.counters[slot]["events"] - expected)
        if count:
            self.missing.append((session.name, slot, count))

    def lines(self):
        for wall, *_, ring, seq, session, kind, payload in self.events:
            yield f"{session.name} {ring} {seq} {wall} {session.schema.show(kind, payload)}"
        for session in sorted(self.sessions.values(), key=lambda s: s.name):
            yield from lost_lines(session.name, session.lost, session.counters)
        for name, slot, count in sorted(self.missing):
            yield f"# missing {name} {slot} {count}"
        for _, lines in sorted(self.ends.items()):
            yield from lines
        yield f"# discarded {self.cancelled}"
        yield f"# uncommitted {self.uncommitted}"
        yield f"# damaged {len(self.damage)}"


def lost_lines(name, session_lost, slots):
    rows = [("-", session_lost)] + [(slot, slots[slot]["lost"]) for slot in sorted(slots)]
    for slot, lost in rows:
        for cause, count in zip(CAUSES, lost):
            if count:
                yield f"# lost {name} {slot} {cause} {count}"


def make_block(kind, content, session=bytes(16), raw_bytes=None, **fields):
    """A whole block, padded: for tests and vectors."""
    values = {name: 0 for name in BLOCK_HEADER.names}
    values |= {"magic": b"RMKB", "kind": kind, "session": session, "stored_bytes": len(content)}
    values |= {"raw_bytes": len(content) if raw_bytes is None else raw_bytes, **fields}
    values["content_crc"] = zlib.crc32(content)
    head = BLOCK_HEADER.format.pack(*values.values())[:60]
    head += struct.pack("<I", zlib.crc32(head))
    return head + content + bytes(align8(len(content)) - len(content))
