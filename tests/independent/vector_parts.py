"""Bytes of the format, written by hand from SPEC.md: what the test vectors are made of."""

import struct
import zlib

from ringmark_codec import ESCAPE, KINDS, LANES, M64, PLACES, SYMBOLS_MAX, leading_zeros
from ringmark_codec import lz4_encode, next_piece

PAGE_BYTES = 4096
PAD, BUSY, CANCELLED, TIME_EXTEND = 1, 2, 3, 4


def pad8(data):
    return data + bytes(-len(data) % 8)


def attribute(tag, value):
    return struct.pack("<HHI", tag, 0, len(value)) + pad8(value)


def session_content(uuid, mode=1, clock=2, zero=(0, 0, 0), rate=(1, 0), attributes=b"", minor=0):
    """A SESSION block's content: 320 bytes of header, then the attributes."""
    return struct.pack(
        "<8sHHI9Q6I16s16sIIQQQQQQIIII13Q",
        *(b"RINGMARK", 1, minor, 0x0A0B0C0D),
        *(8192, 1 << 20, 8192, 0, 0, 12288, 16384, 0, 0),
        *(64, mode, clock, PAGE_BYTES, 4 * PAGE_BYTES, len(attributes)),
        *(uuid, bytes(range(16)), 4711, 1000, 987654, 4026531836),
        *(*zero, *rate, 0, 1, 0),
        *[0] * 13,
    ) + attributes


def field(name, kind, offset, size, count=0, extra=b"", flags=0):
    entry = struct.pack("<BBHIII", kind, flags, count, offset, size, 0)
    return attribute(7, entry + attribute(1, name.encode()) + extra)


def event_type(ident, name, fixed_payload, *fields, shape=1, more_fixed=b"", extra=b""):
    fixed = struct.pack("<BBHI", 3, shape, 0, fixed_payload) + more_fixed
    body = pad8(fixed) + attribute(1, name.encode()) + b"".join(fields) + extra
    return struct.pack("<IHHII", 16 + len(body), 1, len(fixed), ident, 0) + body


def block(kind, content, uuid, codec=0, flags=0, raw_bytes=None, page=(0, 0, 0, 0)):
    ring, number, extent, page_bytes = page
    raw = len(content) if raw_bytes is None else raw_bytes
    head = struct.pack("<4sHBB16sQQ", b"RMKB", kind, codec, flags, uuid, ring, number)
    head += struct.pack("<5I", extent, page_bytes, len(content), raw, zlib.crc32(content))
    return head + struct.pack("<I", zlib.crc32(head)) + pad8(content)


def record(ticks, kind, payload=b""):
    payload = pad8(payload)
    words = len(payload) // 8
    head = struct.pack("<Q", ticks | kind << 32 | min(words, 255) << 56)
    return head + (struct.pack("<Q", words) if words >= 255 else b"") + payload


def span_word(kind, words):
    return struct.pack("<Q", words | kind << 32)


def extended(tick, kind, payload=b""):
    return record(0, TIME_EXTEND, struct.pack("<Q", tick)) + record(0, kind, payload)


class PageBytes:
    """A page under construction."""

    def __init__(self, uuid, ring, number, base=0, mono=0, first_event=0, lost=0, slot=0, flags=0):
        self.id = (uuid, ring, number)
        self.data = struct.pack("<6Q", number + 1, ring, base, mono, first_event, lost)
        self.data += struct.pack("<IIII16sQQ", 100 + slot, slot, 0, flags, b"worker", 0, 0)

    def add(self, *records):
        self.data += b"".join(records)
        return self

    def block(self, sealed=False, whole=True):
        """PAGE block; a sealed page ends at its end, or (not whole) behind the PAD's header."""
        data = self.data
        left = (PAGE_BYTES - len(data)) // 8
        if sealed and left:
            data += span_word(PAD, left) + bytes(8 * (left - 1) if whole else 0)
        uuid, ring, number = self.id
        return block(3, data, uuid, flags=int(sealed), page=(ring, number, len(data), PAGE_BYTES))


def counters(uuid, slots, lost=(0,) * 8, sample=(0, 0, 0), final=True, schema_bytes=0):
    """slots: (slot, tid, ring, produced, consumed, events, lost by cause)"""
    data = struct.pack("<3QII8QQ", *sample, len(slots), int(final), *lost, schema_bytes)
    for slot, tid, ring, produced, consumed, events, causes in slots:
        data += struct.pack("<II12Q", slot, tid, ring, produced, consumed, events, *causes)
    return block(4, data, uuid)


def container(uuid, codec, raw):
    if codec == 1:
        stored = lz4_encode(raw)
    elif codec == 2:
        filtered = apply_filter(raw)
        stored = struct.pack("<I", len(filtered)) + lz4_encode(filtered)
    else:
        stored = raw
    return block(5, stored, uuid, codec=codec, raw_bytes=len(raw))


def zigzag(difference, bits):
    difference &= (1 << bits) - 1
    negative = difference >> (bits - 1)
    return (difference << 1 ^ -negative) & (1 << bits) - 1


def planes(values, width):
    groups = len(values) // 8
    out = bytearray()
    for bit in range(8 * width):
        for g in range(groups):
            out.append(sum((v >> bit & 1) << i for i, v in enumerate(values[8 * g : 8 * g + 8])))
    return bytes(out) + b"".join(v.to_bytes(width, "little") for v in values[8 * groups :])


class Filter:
    """The filter of codec 2, forwards."""

    def __init__(self):
        self.raw, self.symbols, self.ticks = bytearray(), [], []
        self.lanes, self.state = [[] for _ in range(LANES)], [[0, 0] for _ in range(LANES)]
        self.numbers = {}

    def header(self, word, before):
        low, half = word & 0xFFFFFFFF, word >> 32
        self.ticks.append(zigzag(low - before, 32))
        if half in self.numbers:
            symbol = self.numbers[half]
            self.symbols.append(symbol)
            return symbol
        self.symbols.append(ESCAPE)
        self.raw += struct.pack("<I", half)
        if len(self.numbers) == SYMBOLS_MAX:
            return ESCAPE
        self.numbers[half] = len(self.numbers)
        return self.numbers[half]

    def lane(self, index, word):
        previous, score = self.state[index]
        folded = zigzag(word - previous, 64)
        self.lanes[index].append(word if score > 0 else folded)
        score += leading_zeros(word) - leading_zeros(folded) - int(score / 16)
        self.state[index] = [word & M64, score]

    def records(self, words):
        at, before = 0, 0
        while at < len(words):
            word = words[at]
            symbol, before = self.header(word, before), word & 0xFFFFFFFF
            at += 1
            kind, length, left = word >> 32 & 0xFFFFFF, word >> 56, len(words) - at
            lane_words, raw_words = 0, left + 1  # does not fit, unless told otherwise
            if kind in (BUSY, CANCELLED) and before:
                raw_words = before - 1
            elif word and kind not in (PAD, BUSY, CANCELLED):
                if length == 255 and left:
                    length = words[at]
                    self.raw += struct.pack("<Q", length)
                    at, left = at + 1, left - 1
                    lane_words, raw_words = min(length, PLACES), max(0, length - PLACES)
                elif length < 255:
                    lane_words, raw_words = min(length, PLACES), max(0, length - PLACES)
            if lane_words + raw_words > left:
                lane_words, raw_words = 0, left
                self.raw += struct.pack(f"<{left}Q", *words[at:])
                return
            for place in range(lane_words):
                self.lane(symbol % KINDS * PLACES + place, words[at + place])
            at += lane_words
            self.raw += struct.pack(f"<{raw_words}Q", *words[at : at + raw_words])
            at += raw_words


def apply_filter(raw):
    streams, at = Filter(), 0
    while at < len(raw):
        count, words = next_piece(raw[at : at + 64], len(raw) - at)
        streams.raw += raw[at : at + count]
        at += count
        streams.records(struct.unpack_from(f"<{words}Q", raw, at))
        at += 8 * words
    lengths = [len(streams.raw), len(streams.symbols), *map(len, streams.lanes)]
    out = struct.pack("<130I", *lengths) + bytes(streams.raw)
    out += planes(streams.symbols, 2) + planes(streams.ticks, 4)
    return out + b"".join(planes(lane, 8) for lane in streams.lanes)
