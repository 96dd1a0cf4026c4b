#!/usr/bin/env python3
"""Writes format-spec/vectors/v1: dumps made by hand, each with the text it must decode to.

The expected text is written beside the bytes, from the same numbers; no decoder is involved.
Vectors that were released never change: `--check` (what the test runs) only compares.
"""

import struct
import sys
from pathlib import Path

from vector_parts import BUSY, CANCELLED, PageBytes, attribute, block, container, counters
from vector_parts import event_type, extended, field, record, session_content, span_word

OUT = Path(__file__).resolve().parents[2] / "format-spec" / "vectors" / "v1"
A = bytes.fromhex("00112233445566778899aabbccddeeff")
B = bytes.fromhex("f0e1d2c3b4a5968778695a4b3c2d1e0f")
A_TEXT, B_TEXT = "00112233-4455-6677-8899-aabbccddeeff", "f0e1d2c3-b4a5-9687-7869-5a4b3c2d1e0f"
ZERO = (1_000_000, 1_000_000, 1_700_000_000_000_000_000)
REAL = ZERO[2] - ZERO[1]
NO_LOSS = (0,) * 8


def tail(cancelled=0, uncommitted=0, damaged=0):
    return [f"# discarded {cancelled}", f"# uncommitted {uncommitted}", f"# damaged {damaged}"]


def session(uuid=A, **more):
    attributes = attribute(64, b"vectors") + attribute(66, b"host") + attribute(73, b"zone=1")
    return block(1, session_content(uuid, zero=ZERO, attributes=attributes, **more), uuid)


def schema(stream, uuid=A, offset=0):
    return block(2, stream, uuid, page=(0, offset, 0, 0))


TICK = event_type(16, "tick", 8, field("n", 4, 0, 8))
NOTE = event_type(17, "note", 16, field("text", 15, 8, 8), field("id", 3, 0, 4))
MARK = event_type(18, "mark", 0)


def u64(value):
    return struct.pack("<Q", value)


def note(ident, text):
    return struct.pack("<IIII", ident, 0, 16, len(text)) + text


def line(ring, seq, tick, text, uuid=A_TEXT):
    return f"{uuid} {ring} {seq} {REAL + tick} {text}"


def empty():
    return session() + counters(A, []), tail()


def kinds():
    rows = [
        ("u8", 1, "<B", 255, "255"),
        ("u16", 2, "<H", 65535, "65535"),
        ("u32", 3, "<I", 2**32 - 1, "4294967295"),
        ("u64", 4, "<Q", 2**64 - 1, "18446744073709551615"),
        ("u128", 5, "16s", (2**128 - 1).to_bytes(16, "little"), str(2**128 - 1)),
        ("i8", 6, "<b", -128, "-128"),
        ("i16", 7, "<h", -32768, "-32768"),
        ("i32", 8, "<i", -(2**31), "-2147483648"),
        ("i64", 9, "<q", -(2**63), "-9223372036854775808"),
        ("i128", 10, "16s", (2**127).to_bytes(16, "little"), str(-(2**127))),
        ("f32", 11, "<f", 0.1, "0.1"),
        ("f64", 12, "<d", -2.5, "-2.5"),
        ("nan", 12, "<d", float("nan"), "NaN"),
        ("inf", 11, "<f", float("-inf"), "-inf"),
        ("yes", 13, "<B", 1, "true"),
        ("no", 13, "<B", 0, "false"),
        ("char", 14, "<I", ord("é"), '"\\u{e9}"'),
        ("future", 200, "3s", b"\x01\x02\x03", "0x010203"),
    ]
    payload, fields, shown = b"\xee" * 3, [], []  # fields need no alignment, gaps are allowed
    for name, kind, code, value, text in rows:
        raw = struct.pack(code, value)
        fields.append(field(name, kind, len(payload), len(raw)))
        payload += raw
        shown.append(f"{name}={text}")
    fields.append(field("array", 7, len(payload), 2, count=3))
    payload += struct.pack("<3h", 1, -2, 3)
    shown.append("array=[1,-2,3]")
    strings = [
        ("str", 15, b'a"b\\c\n\xff\xc3\xa9', '"a\\"b\\\\c\\u{a}\\xff\\u{e9}"'),
        ("empty", 15, b"", '""'),
        ("bytes", 16, b"\x00\xff", "0x00ff"),
        ("nothing", 16, b"", "0x"),
    ]
    fixed = len(payload) + 8 * len(strings) + 8 + 16
    dynamic = b""
    for name, kind, value, text in strings:
        fields.append(field(name, kind, len(payload), 8))
        payload += struct.pack("<II", fixed + len(dynamic), len(value))
        dynamic += value
        shown.append(f"{name}={text}")
    fields.append(field("outside", 15, len(payload), 8))
    payload += struct.pack("<II", 2**32 - 1, 2)
    shown.append("outside=<invalid>")
    fields.append(field("pair", 15, len(payload), 8, count=2))
    payload += struct.pack("<4I", fixed, 1, fixed, 1)
    shown.append('pair=["a","a"]')
    fields.append(field("behind", 4, 60000, 8))
    shown.append("behind=<invalid>")
    kind = event_type(16, "all kinds", fixed, *fields)
    page = PageBytes(A, 1, 0, base=ZERO[0], flags=1).add(record(5, 16, payload + dynamic))
    text = [line(1, 0, ZERO[0] + 5, "all kinds " + " ".join(shown))]
    lost = [(0, 100, 1, 1, 0, 1, NO_LOSS)]
    return session() + schema(kind) + page.block() + counters(A, lost), text + tail()


def rings_blocks():
    """Two rings of a discard session: sealed and open pages, every kind of record."""
    t = ZERO[0]
    long_text = "note text=\"" + "A" * 2056 + "\" id=9"
    first = PageBytes(A, 1, 0, base=t, flags=1).add(
        record(10, 16, u64(1)),
        record(20, 16, u64(2)),
        record(30, 16, u64(3)),
        span_word(CANCELLED, 3) + u64(7) * 2,
        record(40, 17, note(9, b"A" * 2056)),  # 259 words: LONG
        record(40, 18),
        extended(t + 50, 17, note(5, b"extended")),
        extended(t + 2**33, 16, u64(4)),
        span_word(CANCELLED, 4) + bytes(24),
        span_word(BUSY, 2) + bytes(8),
    )
    second = PageBytes(A, 1, 1, base=t + 2**33 + 1, first_event=10, lost=2)
    second.add(record(0, 18), record(2**32 - 1, 16, u64(5)))
    other = PageBytes(A, 2, 0, base=t + 15, slot=1, flags=1)
    other.add(record(0, 18), record(25, 16, u64(6)), span_word(BUSY, 2) + bytes(8))
    events = [
        (t + 10, 1, 0, "tick n=1"),
        (t + 15, 2, 0, "mark"),
        (t + 20, 1, 1, "tick n=2"),
        (t + 30, 1, 2, "tick n=3"),
        (t + 40, 1, 4, long_text),
        (t + 40, 1, 5, "mark"),
        (t + 40, 2, 1, "tick n=6"),
        (t + 50, 1, 6, 'note text="extended" id=5'),
        (t + 2**33, 1, 7, "tick n=4"),
        (t + 2**33 + 1, 1, 10, "mark"),
        (t + 2**33 + 2**32, 1, 11, "tick n=5"),
    ]
    text = [line(ring, seq, tick, shown) for tick, ring, seq, shown in events]
    text += [f"# lost {A_TEXT} - NoRing 7", f"# lost {A_TEXT} 0 RingFull 2"]
    text += [f"# lost {A_TEXT} 0 Nested 1"]
    slots = [
        (0, 100, 1, 2, 1, 12, (2, 0, 0, 1, 0, 0, 0, 0)),
        (1, 101, 2, 1, 0, 3, NO_LOSS),
    ]
    pages = first.block(sealed=True), second.block(), other.block()
    end = counters(A, slots, lost=(0, 7, 0, 0, 0, 0, 0, 0))
    return session(), schema(TICK + NOTE + MARK), pages, end, text + tail(2, 2)


def two_rings():
    head, types, pages, end, text = rings_blocks()
    return head + types + b"".join(pages) + end, text


def lz4_container():
    head, types, pages, end, text = rings_blocks()
    return container(A, 1, head + types + b"".join(pages[:2])) + container(A, 0, pages[2] + end), text


def delta_shuffle():
    head, types, pages, end, text = rings_blocks()
    t, more, events = ZERO[0], [], []
    for number in range(2, 5):  # many records alike: lanes, bit planes and dictionary at work
        page = PageBytes(A, 1, number, base=t + 2**40 + 1000 * number, first_event=12 + 100 * (number - 2), lost=2)
        for i in range(100):
            value = (number * 100 + i) * 1000 if i % 3 else 2**64 - 1 - i
            page.add(record(7 * i, 16, u64(value)))
            tick = t + 2**40 + 1000 * number + 7 * i
            events.append(line(1, 12 + 100 * (number - 2) + i, tick, f"tick n={value}"))
        more.append(page.block(sealed=number < 4, whole=number == 2))
    at = next(i for i, shown in enumerate(text) if shown.startswith("#"))
    text = text[:at] + events + text[at:]
    raw = types + b"".join(pages) + b"".join(more)
    return head + container(A, 2, raw) + end, text


def merged():
    """The same page read three times, ever fuller; then the dump once more behind itself."""
    t = ZERO[0]
    page = PageBytes(A, 1, 0, base=t, flags=1).add(record(1, 16, u64(1)))
    early = PageBytes(A, 1, 0, base=t, flags=1).add(record(1, 16, u64(1)), span_word(BUSY, 4) + bytes(24))
    late = page.add(extended(t + 2, 16, u64(2)), record(3, 18))
    first = session() + schema(TICK + NOTE) + early.block() + schema(MARK, offset=len(TICK + NOTE))
    second = late.block() + late.add(span_word(CANCELLED, 1)).block(sealed=True, whole=False)
    end = counters(A, [(0, 100, 1, 1, 1, 4, NO_LOSS)])
    text = [line(1, 0, t + 1, "tick n=1"), line(1, 1, t + 2, "tick n=2")]
    text += [line(1, 2, t + 3, "mark")]
    dump = first + second + end
    return dump + dump + early.block(), text + tail(1)


def unknown():
    """What a newer minor may bring: everything unknown is skipped by its length."""
    t = ZERO[0]
    entry = struct.pack("<IHHII", 40, 77, 4, 16, 0) + b"\xaa" * 24
    future = attribute(999, b"unknown")
    tick = event_type(16, "tick", 8, future, field("n", 4, 0, 8, extra=future), more_fixed=b"\xbb" * 5, shape=99)
    page = PageBytes(A, 1, 0, base=t, flags=1).add(
        record(2, 16, u64(1) + b"more than needed"),
        record(3, 4000, u64(0x0807060504030201)),  # not described
        record(4, 1 << 23 | 5),  # a function site
    )
    blocks = session(minor=9) + block(900, b"what is this", A) + schema(entry + tick)
    blocks += page.block() + block(901, b"", bytes(16)) + counters(A, [(0, 100, 1, 1, 0, 3, NO_LOSS)])
    text = [
        line(1, 0, t + 2, "tick n=1"),
        line(1, 1, t + 3, "#4000 payload=0x0102030405060708"),
        line(1, 2, t + 4, f"#{1 << 23 | 5} payload=0x"),
    ]
    return blocks, text + tail()


def one_page(types, *records):
    """A session with one open page of these records."""
    page = PageBytes(A, 1, 0, base=ZERO[0], flags=1).add(*records)
    end = counters(A, [(0, 100, 1, 1, 0, len(records), NO_LOSS)])
    return session() + schema(types) + page.block() + end


def time_back():
    """A signal handler came between clock and reservation: sorted by time, stably."""
    t = ZERO[0]
    dump = one_page(TICK, record(10, 16, u64(1)), record(30, 16, u64(3)), record(20, 16, u64(2)))
    text = [line(1, 0, t + 10, "tick n=1"), line(1, 2, t + 20, "tick n=2")]
    return dump, text + [line(1, 1, t + 30, "tick n=3")] + tail()


def before_start():
    """A time before the session's first clock sample is not the sample's time."""
    t = ZERO[0]
    dump = one_page(TICK, extended(t - 7, 16, u64(1)), record(1, 16, u64(2)))
    return dump, [line(1, 0, t - 7, "tick n=1"), line(1, 1, t + 1, "tick n=2")] + tail()


def odd_fields():
    """A char that is none, a known kind of a wrong size, an empty text that points nowhere."""
    fields = field("char", 14, 0, 4) + field("odd", 3, 4, 2) + field("text", 15, 8, 8)
    payload = struct.pack("<IHHII", 0xD800, 0x0201, 0, 2**32 - 1, 0)
    dump = one_page(event_type(16, "odd", 16, fields), record(1, 16, payload))
    return dump, [line(1, 0, ZERO[0] + 1, 'odd char=<invalid> odd=0x0102 text=""')] + tail()


def optional():
    """Values that may be absent, there and not; a present zero."""
    rows = [
        ("status", 3, struct.pack("<II", 503, 1), "503"),
        ("no_status", 3, bytes(8), "none"),
        ("zero", 4, struct.pack("<QQ", 0, 1), "0"),
        ("text", 15, struct.pack("<IIQ", 72, 2, 1), '"ok"'),
        ("no_text", 15, bytes(16), "none"),
        ("flag", 13, b"\x00\x01", "false"),
    ]
    payload, fields, shown = b"", [], []
    for name, kind, raw, text in rows:
        fields.append(field(name, kind, len(payload), len(raw), flags=1))
        payload += raw
        shown.append(f"{name}={text}")
    payload += bytes(72 - len(payload)) + b"ok"
    dump = one_page(event_type(16, "optional", 72, *fields), record(1, 16, payload))
    return dump, [line(1, 0, ZERO[0] + 1, "optional " + " ".join(shown))] + tail()


def reserved_type():
    """A reserved record type of the future: skipped, but it has a number."""
    dump = one_page(MARK, record(1, 7, u64(1) * 2), record(2, 18))
    return dump, [line(1, 1, ZERO[0] + 2, "mark")] + tail()


def described_twice():
    """The first of two entries for one type counts."""
    dump = one_page(MARK + event_type(18, "second", 0), record(1, 18))
    return dump, [line(1, 0, ZERO[0] + 1, "mark")] + tail()


def overwrite():
    """A snapshot: the oldest pages are gone; ticks of half a nanosecond, corrected by samples."""
    spacing = 1 << 26
    zero = (1000, 5_000, REAL + 5_000)
    content = session_content(B, mode=2, clock=1, zero=zero, rate=(1, 1))
    pages = [
        PageBytes(B, 3, 8, base=1000 + spacing, mono=5_000 + spacing, first_event=80, lost=1),
        PageBytes(B, 3, 9, base=1000 + spacing + 10, mono=77, first_event=81, lost=1),
        PageBytes(B, 4, 11, base=1000 + 3 * spacing, mono=5_000 + 2 * spacing, first_event=95, lost=3),
    ]
    for i, page in enumerate(pages):
        page.add(record(100, 16, u64(i)))
    blocks = block(1, content, B) + schema(TICK, uuid=B)
    blocks += b"".join(page.block(sealed=i < 2) for i, page in enumerate(pages))
    blocks += counters(B, [(0, 100, 4, 12, 0, 96, (0, 0, 3, 1, 0, 0, 0, 0))], final=False)
    # Between the first two samples a tick is one nanosecond, then half of one.
    times = [5_000 + spacing + 50, 5_000 + spacing + 55, 5_000 + 2 * spacing + 50]
    text = [
        line(3, 80, times[0], "tick n=0", B_TEXT),
        line(3, 81, times[1], "tick n=1", B_TEXT),
        line(4, 95, times[2], "tick n=2", B_TEXT),
        f"# lost {B_TEXT} 0 Oversize 3",
        f"# lost {B_TEXT} 0 Nested 1",
        f"# missing {B_TEXT} 0 {80 + 95 - 82}",
    ]
    return blocks, text + tail()


def two_sessions():
    """Dumps of two sessions behind one another, the second one's pages in the wrong order."""
    t = ZERO[0]
    one = PageBytes(A, 1, 0, base=t, flags=1).add(record(5, 18))
    late = PageBytes(B, 1, 1, base=t + 5, first_event=1).add(record(5, 18))
    early = PageBytes(B, 1, 0, base=t, flags=1).add(record(5, 18))
    blocks = session() + schema(MARK) + one.block() + counters(A, [(0, 100, 1, 1, 0, 1, NO_LOSS)])
    blocks += session(B) + schema(MARK, uuid=B) + late.block() + early.block(sealed=True)
    blocks += counters(B, [(0, 100, 1, 2, 1, 2, NO_LOSS)])
    text = [line(1, 0, t + 5, "mark"), line(1, 0, t + 5, "mark", B_TEXT)]
    return blocks, text + [line(1, 1, t + 10, "mark", B_TEXT)] + tail()


def damaged():
    """One flipped bit in a page, noise between blocks, a cut block at the end."""
    t = ZERO[0]
    pages = [PageBytes(A, 1, n, base=t + n, first_event=n).add(record(0, 18)) for n in range(4)]
    flipped = bytearray(pages[1].block(sealed=True))
    flipped[64 + 2000] ^= 1
    blocks = session() + schema(MARK) + pages[0].block(sealed=True) + bytes(flipped)
    blocks += pages[2].block(sealed=True) + b"noise RMKB noise"
    blocks += counters(A, [(0, 100, 1, 4, 0, 4, NO_LOSS)]) + pages[3].block(sealed=True)[:-1]
    text = [line(1, 0, t, "mark"), line(1, 2, t + 2, "mark")]
    return blocks, text + [f"# missing {A_TEXT} 0 2"] + tail(damaged=3)


def open_spans(ring, slot, tick, over, *frames):
    """An OPEN_SPANS block; a frame: (type, tick, words that are kept)."""
    content = struct.pack("<3QII16sIIQ", ring, tick, over, 100 + slot, slot, b"worker", len(frames), 0, 0)
    for serial, (kind, begun, kept) in enumerate(frames):
        head = 1 << 63 | len(kept) // 8 << 56 | kind << 32 | serial
        content += struct.pack("<QQ", head, begun) + kept + bytes(48 - len(kept))
    return block(10, content, A)


def ending(how, code=0, flags=0):
    return block(9, struct.pack("<6I", how, code, flags, 0, 0, 0), A)


def meant(name, kind, offset, size, semantic):
    return field(name, kind, offset, size, extra=attribute(11, struct.pack("<I", semantic)))


def query(rows, text, kept=40):
    """What a frame keeps of a span: its payload without the duration."""
    return (struct.pack("<IIII", rows, 0, 24, len(text)) + text + bytes(kept))[:kept]


def last_words():
    """Spans that were open when the process was killed: finished, cut, made elsewhere, too deep."""
    t = ZERO[0]
    types = TICK + event_type(
        19, "query", 24, meant("took", 4, 0, 8, 1), field("rows", 3, 8, 4), field("sql", 15, 16, 8), shape=2
    )
    types += event_type(
        20, "request", 24, meant("id", 4, 0, 8, 4), meant("in", 4, 8, 8, 5), field("order", 3, 16, 4), shape=3
    )
    types += event_type(21, "exit", 8, meant("id", 4, 0, 8, 4), shape=5)
    finished = struct.pack("<QIIII", 20, 5, 0, 24, 2) + b"ok"
    request = struct.pack("<QQII", 7, 0, 42, 0)
    one = PageBytes(A, 1, 0, base=t, flags=1).add(
        record(5, 20, request),
        record(10, 16, u64(1)),
        record(40, 19, finished),
        record(45, 21, u64(9)),
    )
    two = PageBytes(A, 2, 0, base=t, slot=1, flags=1).add(record(12, 16, u64(2)))
    stacks = [
        # An earlier copy, which does not count.
        open_spans(1, 0, t + 11, 0, (19, t + 11, query(1, b"old"))),
        open_spans(
            *(1, 0, 2**64 - 1, 2),
            (19, t + 10, query(3, b"select")),
            (19, t + 20, query(5, b"ok")),
            (19, t + 30, query(4, b"x" * 100)),
            (20, t + 35, u64(7)),
            (20, t + 36, u64(8)),
            (20, t + 37, u64(9)),
        ),
        open_spans(2, 1, 2**64 - 1, 0, (19, t + 11, query(6, b"", kept=8))),
    ]
    ends = [ending(6), ending(2, 11, 1), ending(5)]
    end = counters(A, [(0, 100, 1, 1, 0, 4, NO_LOSS), (1, 101, 2, 1, 0, 1, NO_LOSS)])
    dump = session() + schema(types) + one.block() + two.block() + b"".join(stacks + ends) + end
    text = [
        line(1, 0, t + 5, "request id=7 in=0 order=42"),
        line(1, 1, t + 10, "tick n=1"),
        line(2, 0, t + 12, "tick n=2"),
        line(1, 2, t + 40, 'query took=20 rows=5 sql="ok"'),
        line(1, 3, t + 45, "exit id=9"),
        f'# open {A_TEXT} 1 {REAL + t + 10} query rows=3 sql="select"',
        f"# open {A_TEXT} 1 {REAL + t + 30} query rows=4 sql=<invalid>",
        f"# open {A_TEXT} 1 {REAL + t + 35} request order=42",
        f"# open {A_TEXT} 1 {REAL + t + 36} request order=<invalid>",
        f"# deeper {A_TEXT} 1 2",
        f"# open {A_TEXT} 2 {REAL + t + 11} query rows=6 sql=<invalid>",
        f"# ended {A_TEXT} 2 11 1",
    ]
    return dump, text + tail()


def no_span():
    """A span without a parent and an event in no span, while their thread is in another span."""
    t = ZERO[0]
    none = 2**64 - 1
    types = event_type(
        20, "request", 24, meant("id", 4, 0, 8, 4), meant("in", 4, 8, 8, 5), field("order", 3, 16, 4), shape=3
    )
    types += event_type(21, "enter", 8, meant("id", 4, 0, 8, 4), shape=4)
    types += event_type(22, "said", 16, meant("in", 4, 0, 8, 4), field("n", 4, 8, 8))
    page = PageBytes(A, 1, 0, base=t, flags=1).add(
        record(5, 20, struct.pack("<QQII", 7, 0, 42, 0)),
        record(10, 21, u64(7)),
        record(20, 20, struct.pack("<QQII", 9, none, 43, 0)),
        record(30, 22, struct.pack("<QQ", 0, 1)),
        record(40, 22, struct.pack("<QQ", none, 2)),
    )
    end = counters(A, [(0, 100, 1, 1, 0, 5, NO_LOSS)])
    text = [
        line(1, 0, t + 5, "request id=7 in=0 order=42"),
        line(1, 1, t + 10, "enter id=7"),
        line(1, 2, t + 20, f"request id=9 in={none} order=43"),
        line(1, 3, t + 30, "said in=0 n=1"),
        line(1, 4, t + 40, f"said in={none} n=2"),
    ]
    return session() + schema(types) + page.block() + end, text + tail()


def switches(start, end, *found, lost=0, uuid=A):
    """A SWITCHES block; a switch: (time, thread, turn). Each thread has a processor of its own."""
    content = struct.pack("<3QII", start, end, lost, len(found), 0)
    cpu = lambda tid, turn: 0xFFFF if turn == 5 else tid - 100
    packed = (struct.pack("<QIHH", at, tid, turn, cpu(tid, turn)) for at, tid, turn in found)
    return block(13, content + b"".join(packed), uuid)


def work(ring, seq, end, took, did, uuid=A_TEXT):
    """The lines of a span, and of what its thread did."""
    return line(ring, seq, end, f"work took={took}", uuid), f"# did {uuid} {ring} {seq} {did}"


def switched():
    """What threads did while spans lasted, in two sessions of one process."""
    ms, t = 1_000_000, ZERO[0]
    runs, ready, waits, ended, seen = 1, 2, 3, 4, 5
    types = event_type(19, "work", 8, meant("took", 4, 0, 8, 1), shape=2)

    def page(ring, slot, uuid, *spans):
        found = PageBytes(uuid, ring, 0, base=t, slot=slot, flags=1)
        return found.add(*(record(end - t, 19, u64(took)) for end, took in spans))

    one = [
        (t + 9 * ms, 8 * ms, f"{8 * ms} 0 0"),  # no switch
        (t + 60 * ms, 50 * ms, f"{26 * ms} {4 * ms} {20 * ms}"),
        (t + 61 * ms, 60 * ms, f"{36 * ms} {4 * ms} {20 * ms}"),
        (t + 70 * ms + 9, ms, f"{ms} 0 0"),  # it waits from 9 ns before its record on
        (t + 91 * ms, 21 * ms - 9, f"{ms} 0 {20 * ms - 9}"),
        (t + 120 * ms, 10 * ms, "unknown"),  # some are lost
        (t + 135 * ms, 3 * ms, "unknown"),  # not seen since
        (t + 148 * ms, 4 * ms, f"{4 * ms} 0 0"),
        (t + 158 * ms, ms, "unknown"),  # it has ended
        (t + 210 * ms, 2 * ms, "unknown"),  # after the last one
    ]
    two = [
        (t + 50 * ms, 5 * ms, f"{5 * ms} 0 0"),  # a new thread, first met 1 us after its record
        (t + 52 * ms, ms, "unknown"),  # it got a processor twice
        (t + 60 * ms, ms, "unknown"),  # a turn of a later version
    ]
    none = [(t + 10 * ms, 5 * ms, "unknown")]  # no clock
    pages = page(1, 0, A, *(s[:2] for s in one)), page(2, 1, A, *(s[:2] for s in two))
    pages = [pages[0].block(), pages[1].block(), page(1, 0, B, *(s[:2] for s in none)).block()]
    first = [
        (t + 1, 100, seen),
        (t + 20 * ms, 100, waits),
        (t + 40 * ms, 100, runs),
        (t + 45 * ms + 1000, 101, runs),
        (t + 50 * ms, 100, ready),
    ]
    second = [
        (t + 51 * ms + 500_000, 101, runs),
        (t + 54 * ms, 100, runs),
        (t + 59 * ms + 500_000, 101, 6),
        (t + 70 * ms, 100, waits),
        (t + 90 * ms, 100, runs),
    ]
    third = [(t + 140 * ms, 100, seen), (t + 150 * ms, 100, ended)]
    blocks = [
        switches(t + 130 * ms, t + 200 * ms, *third),
        switches(t, t + 51 * ms, *first),
        switches(t, t + 50 * ms),  # holds what the one before holds, and counts less
        switches(t + 51 * ms, t + 110 * ms, *second, uuid=B),  # of the same process
        switches(t + 110 * ms, t + 130 * ms, lost=3),
    ]
    ends = counters(A, [(0, 100, 1, 1, 0, 10, NO_LOSS), (1, 101, 2, 1, 0, 3, NO_LOSS)])
    ends += counters(B, [(0, 100, 1, 1, 0, 1, NO_LOSS)])
    dump = session() + schema(types) + session(B, clock=4) + schema(types, B)
    dump += b"".join(pages + blocks) + ends
    shown = [(t + end, 0, work(1, i, end, took, did)) for i, (end, took, did) in enumerate(one)]
    shown += [(t + end, 1, work(2, i, end, took, did)) for i, (end, took, did) in enumerate(two)]
    shown += [(t + end, 2, work(1, i, end, took, did, B_TEXT)) for i, (end, took, did) in enumerate(none)]
    events = [event for _, _, (event, _) in sorted(shown)]
    return dump, events + [did for _, _, (_, did) in shown] + tail()


def waits(*found, uuid=A):
    """A WAITS block; a wait: (first look, last look, thread, text)."""
    texts = b"".join(text for *_, text in found)
    content, at = struct.pack("<II", len(found), len(texts)), 0
    for start, end, tid, text in found:
        content += struct.pack("<QQIIII", start, end, tid, at, len(text), 0)
        at += len(text)
    return block(14, content + texts, uuid)


def seen_waits():
    """What threads were seen waiting for, in two sessions of one process."""
    ms, t = 1_000_000, ZERO[0]
    types = event_type(19, "work", 8, meant("took", 4, 0, 8, 1), shape=2)
    page = PageBytes(A, 1, 0, base=t, slot=0, flags=1).add(record(50 * ms, 19, u64(40 * ms)))
    lock, odd = b"mutex of worker[101]\nsell\nseller", b"read \xff\"x\""
    blocks = [
        waits((t + 12 * ms, t + 30 * ms, 100, lock), (t + 5 * ms, t + 5 * ms, 101, odd)),
        waits((t + 30 * ms, t + 40 * ms, 100, lock), (t + 35 * ms, t + 60 * ms, 100, odd), uuid=B),
        waits(),
    ]
    saw = [
        (100, t + 12 * ms, t + 30 * ms, "mutex of worker[101]\\u{a}sell\\u{a}seller"),
        (100, t + 30 * ms, t + 40 * ms, "mutex of worker[101]\\u{a}sell\\u{a}seller"),
        (101, t + 5 * ms, t + 5 * ms, 'read \\xff\\"x\\"'),
    ]
    dump = session() + schema(types) + session(B, clock=4) + page.block() + b"".join(blocks)
    dump += counters(A, [(0, 100, 1, 1, 0, 1, NO_LOSS)]) + counters(B, [])
    lines = [line(1, 0, t + 50 * ms, f"work took={40 * ms}")]
    for name in (A_TEXT, B_TEXT):
        lines += [f'# saw {name} {tid} {start} {end} "{text}"' for tid, start, end, text in saw]
    return dump, lines + tail()


def ran(period, *found, uuid=A, lost=0, kernel=False):
    """A SAMPLES block; a sample: (time, thread, text)."""
    texts = b"".join(text for *_, text in found)
    content = struct.pack("<QQIIII", period, lost, len(found), len(texts), int(kernel), 0)
    at = 0
    for mono, tid, text in found:
        content += struct.pack("<QIIII", mono, tid, at, len(text), 0)
        at += len(text)
    return block(15, content + texts, uuid)


def samples():
    """Where threads ran, in two sessions of one process."""
    ms, t = 1_000_000, ZERO[0]
    types = event_type(19, "work", 8, meant("took", 4, 0, 8, 1), shape=2)
    page = PageBytes(A, 1, 0, base=t, slot=0, flags=1).add(record(50 * ms, 19, u64(40 * ms)))
    knead, read = b"knead\nbaker", b"[kernel]\nread\n\xff\"x\""
    blocks = [
        ran(10 * ms, (t + 22 * ms, 100, knead), (t + 12 * ms, 100, read), lost=2, kernel=True),
        ran(2 * ms, (t + 12 * ms, 100, knead), (t + 5 * ms, 101, b""), uuid=B),
        ran(2 * ms, lost=1),
    ]
    counted = [
        f'100 {t + 12 * ms} {2 * ms} "knead\\u{{a}}baker"',
        f'100 {t + 22 * ms} {10 * ms} "knead\\u{{a}}baker"',
        f'101 {t + 5 * ms} {2 * ms} ""',
    ]
    dump = session() + schema(types) + session(B, clock=4) + page.block() + b"".join(blocks)
    dump += counters(A, [(0, 100, 1, 1, 0, 1, NO_LOSS)]) + counters(B, [])
    lines = [line(1, 0, t + 50 * ms, f"work took={40 * ms}")]
    for name in (A_TEXT, B_TEXT):
        lines += [f"# ran {name} {sample}" for sample in counted] + [f"# samples lost {name} 3"]
    return dump, lines + tail()


VECTORS = [
    *(empty, kinds, two_rings, lz4_container, delta_shuffle, merged, unknown, overwrite),
    *(two_sessions, damaged, time_back, before_start, odd_fields, reserved_type, described_twice),
    *(optional, last_words, no_span, switched, seen_waits, samples),
]


def made():
    for vector in VECTORS:
        dump, text = vector()
        yield vector.__name__, dump, "".join(f"{shown}\n" for shown in text)


def main():
    wrong = 0
    for name, dump, text in made():
        paths = OUT / f"{name}.rmk", OUT / f"{name}.txt"
        if "--check" not in sys.argv:
            OUT.mkdir(parents=True, exist_ok=True)
            paths[0].write_bytes(dump)
            paths[1].write_text(text)
        elif paths[0].read_bytes() != dump or paths[1].read_text() != text:
            wrong += 1
            print(f"{name}: the committed vector is not what this script makes", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
