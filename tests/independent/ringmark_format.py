"""Structs, records, schema, payload and time, from SPEC.md, sections 3 to 10."""

import struct
import uuid

from ringmark_codec import Damaged

PAD, BUSY, CANCELLED, TIME_EXTEND, FIRST_TYPE, LONG = 1, 2, 3, 4, 16, 255
FUNCTION_BIT = 1 << 23
PAGE_HEADER_BYTES, SESSION_HEADER_BYTES = 96, 320
SAMPLE_SPACING_TICKS = 1 << 26
M64 = (1 << 64) - 1
CAUSES = "RingFull NoRing Oversize Nested NoMemory ThreadExited NoSchema Reserved".split()
TAG_NAME, TAG_FIELD, TAG_SEMANTIC = 1, 7, 11


class Struct:
    """A struct of the format: names and codes of its fields in order."""

    def __init__(self, text):
        pairs = [pair.split(":") for pair in text.split()]
        self.names = [name for name, _ in pairs]
        self.codes = [code for _, code in pairs]
        self.format = struct.Struct("<" + "".join(self.codes))
        self.size = self.format.size

    def read(self, data, at=0):
        flat = iter(self.format.unpack_from(data, at))
        fields = {}
        for name, code in zip(self.names, self.codes):
            count = int(code[:-1]) if len(code) > 1 and code[-1] != "s" else 0
            fields[name] = [next(flat) for _ in range(count)] if count else next(flat)
        return fields


SESSION_HEADER = Struct(
    "magic:8s version_major:H version_minor:H endian:I header_bytes:Q file_bytes:Q"
    " state_offset:Q mailbox_offset:Q mailbox_bytes:Q consumed_offset:Q directory_offset:Q"
    " enabled_offset:Q enabled_bytes:Q slots:I mode:I clock:I page_bytes:I ring_bytes:I"
    " attributes_bytes:I session:16s boot_id:16s pid:I uid:I start_time:Q pid_namespace:Q"
    " tick_zero:Q mono_zero_ns:Q real_zero_ns:Q tick_mult:Q tick_shift:I flags:I parent_pid:I"
    " keep:I reserved:13Q"
)
PAGE_HEADER = Struct(
    "generation:Q ring_id:Q tick_base:Q mono_base_ns:Q first_event:Q lost_before:Q tid:I slot:I"
    " depth:I flags:I thread_name:16s reserved:2Q"
)
COUNTERS_HEADER = Struct(
    "sample_tick:Q sample_mono_ns:Q sample_real_ns:Q slots:I flags:I lost:8Q schema_bytes:Q"
)
SLOT_COUNTERS = Struct("slot:I tid:I ring_id:Q produced:Q consumed:Q events:Q lost:8Q")
BLOCK_HEADER = Struct(
    "magic:4s kind:H codec:B flags:B session:16s ring_id:Q page_number:Q extent:I page_bytes:I"
    " stored_bytes:I raw_bytes:I content_crc:I header_crc:I"
)
OPEN_SPANS = Struct(
    "ring_id:Q tick:Q over:Q tid:I slot:I thread_name:16s frames:I flags:I reserved:Q"
)
FRAME = Struct("head:Q tick:Q")
ENDING = Struct("how:I code:I flags:I reserved:3I")
SWITCHES = Struct("from_mono_ns:Q to_mono_ns:Q lost:Q switches:I reserved:I")
SWITCH = Struct("mono_ns:Q tid:I turn:H cpu:H")
SEEN_WAITS = Struct("waits:I texts_bytes:I")
SEEN_WAIT = Struct("from_mono_ns:Q to_mono_ns:Q tid:I text:I text_bytes:I reserved:I")
SAMPLES = Struct("period_ns:Q lost:Q samples:I texts_bytes:I flags:I reserved:I")
SAMPLE = Struct("mono_ns:Q tid:I text:I text_bytes:I reserved:I")
SLOT = Struct(
    "state:Q ring_id:Q pages_offset:Q page_bytes:I pages:I tid:I claims:I thread_name:16s"
    " first_page:Q produced:Q lost:8Q events_sealed:Q reserved:14Q"
)
assert SESSION_HEADER.size == 320 and PAGE_HEADER.size == 96 and BLOCK_HEADER.size == 64
FRAME_BYTES, FRAMES = 64, 63
assert OPEN_SPANS.size == 64 and ENDING.size == 24
assert SWITCHES.size == 32 and SWITCH.size == 16
assert SEEN_WAITS.size == 8 and SEEN_WAIT.size == 32
assert SAMPLES.size == 32 and SAMPLE.size == 24
assert COUNTERS_HEADER.size == 104 and SLOT_COUNTERS.size == 104 and SLOT.size == 256


def align8(count):
    return (count + 7) // 8 * 8


def check_session_header(header):
    """Refuses what this reader cannot read."""
    if header["magic"] != b"RINGMARK":
        raise Damaged(f"magic {header['magic']!r}, expected b'RINGMARK'")
    if header["endian"] != 0x0A0B0C0D:
        raise Damaged(f"endian mark {header['endian']:#x}: another byte order")
    if header["version_major"] > 1:
        version = f"{header['version_major']}.{header['version_minor']}"
        raise Damaged(f"version {version}, this reader knows 1.0")
    if header["mode"] not in (1, 2) or header["clock"] not in (1, 2, 3, 4):
        raise Damaged(f"unknown mode {header['mode']} or clock {header['clock']}")


class Time:
    """Ticks to nanoseconds."""

    def __init__(self, header, samples):
        self.zero = (header["tick_zero"], header["mono_zero_ns"])
        self.real_zero = header["real_zero_ns"]
        self.mult, self.shift = header["tick_mult"], header["tick_shift"] & 63
        self.used = [self.zero]
        for tick, ns in sorted(samples):
            last = self.used[-1]
            if tick >= last[0] + SAMPLE_SPACING_TICKS and ns >= last[1]:
                self.used.append((tick, ns))

    def nominal(self, ticks):
        return min(ticks * self.mult >> self.shift, M64)

    def mono(self, tick):
        low, high = 0, len(self.used)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self.used[middle][0] <= tick else (low, middle)
        if low == 0:
            return max(0, self.zero[1] - self.nominal(self.zero[0] - tick))
        tick0, ns0 = self.used[low - 1]
        if low == len(self.used):
            return min(ns0 + self.nominal(tick - tick0), M64)
        tick1, ns1 = self.used[low]
        return ns0 + (tick - tick0) * (ns1 - ns0) // (tick1 - tick0)

    def wall(self, tick):
        return min(max(0, self.real_zero + self.mono(tick) - self.zero[1]), M64)


class Page:
    """The records of one page, walked once."""

    def __init__(self, content, sealed):
        self.header = PAGE_HEADER.read(content)
        self.events = []  # (index of the reservation in the page, tick, type, payload)
        self.cancelled = self.uncommitted = self.reservations = 0
        self.damage = None
        try:
            self._walk(content, sealed)
        except Damaged as damage:
            self.damage = str(damage)

    def _walk(self, content, sealed):
        end = len(content) // 8
        words = struct.unpack_from(f"<{end}Q", content)
        at, extended = PAGE_HEADER_BYTES // 8, None
        while at < end:
            word = words[at]
            if word == 0:
                if sealed or extended is not None:
                    raise Damaged(f"a zero word at offset {8 * at}")
                return
            low, kind, length = word & 0xFFFFFFFF, word >> 32 & 0xFFFFFF, word >> 56
            if kind in (PAD, BUSY, CANCELLED):
                if extended is not None:
                    raise Damaged(f"no record behind the TIME_EXTEND at offset {8 * at}")
                if kind == PAD:
                    return
                if low == 0 or at + low > end:
                    raise Damaged(f"{low} words at offset {8 * at}")
                self.reservations += 1
                self.uncommitted += kind == BUSY
                self.cancelled += kind == CANCELLED
                at += low
                continue
            payload = at + 1
            if length == LONG:
                if payload == end:
                    raise Damaged(f"no length word at offset {8 * at}")
                length = words[payload]
                payload += 1
            if kind == 0 or payload + length > end:
                raise Damaged(f"type {kind}, {length} payload words at offset {8 * at}")
            if kind == TIME_EXTEND:
                if length != 1 or extended is not None:
                    raise Damaged(f"a TIME_EXTEND of {length} words at offset {8 * at}")
                extended = words[payload]
            else:
                if extended is not None and kind < FIRST_TYPE:
                    raise Damaged(f"type {kind} behind the TIME_EXTEND at offset {8 * at}")
                tick = (self.header["tick_base"] + low) & M64 if extended is None else extended
                if kind >= FIRST_TYPE:
                    body = content[8 * payload : 8 * (payload + length)]
                    self.events.append((self.reservations, tick, kind, body))
                self.reservations += 1
                extended = None
            at = payload + length
        if extended is not None:
            raise Damaged("a TIME_EXTEND at the end")


def record_spans(content):
    """(offset, words, header word) of each record, for merging; a TIME_EXTEND and its record are one."""
    at, end, spans = PAGE_HEADER_BYTES // 8, len(content) // 8, []
    while at < end:
        (word,) = struct.unpack_from("<Q", content, 8 * at)
        kind, length = word >> 32 & 0xFFFFFF, word >> 56
        if word == 0:
            break
        if kind == PAD:
            spans.append((8 * at, end - at, word))
            break
        words = word & 0xFFFFFFFF if kind in (BUSY, CANCELLED) else 1 + length
        if kind not in (BUSY, CANCELLED) and length == LONG and at + 1 < end:
            words = 2 + struct.unpack_from("<Q", content, 8 * at + 8)[0]
        if words == 0 or at + words > end:
            break
        spans.append((8 * at, words, word))
        at += words
    joined = []
    for span in spans:
        if joined and joined[-1][2] >> 32 & 0xFFFFFF == TIME_EXTEND:
            offset, words, word = joined.pop()
            span = (offset, words + span[1], word & ~(0xFFFFFF << 32) | FIRST_TYPE << 32)
        joined.append(span)
    return joined


def merge_pages(first, second):
    """Both copies of a page as one; None: they contradict each other."""
    if first[:PAGE_HEADER_BYTES] != second[:PAGE_HEADER_BYTES]:
        return None
    ours, theirs = record_spans(first), record_spans(second)
    out = bytearray(first[:PAGE_HEADER_BYTES])
    for i in range(max(len(ours), len(theirs))):
        mine = ours[i] if i < len(ours) else None
        other = theirs[i] if i < len(theirs) else None
        choice = choose(first, mine, second, other)
        if choice is None:
            return None
        out += choice
    return bytes(out)


def choose(first, mine, second, other):
    def piece(content, span):
        return content[span[0] : span[0] + 8 * span[1]]

    def kind(span):
        return span[2] >> 32 & 0xFFFFFF

    if mine is None or other is None:
        return piece(second, other) if mine is None else piece(first, mine)
    if kind(mine) == PAD and kind(other) == PAD:
        return max(piece(first, mine), piece(second, other), key=len)
    a, b = piece(first, mine), piece(second, other)
    if a == b:
        return a
    if mine[1] == other[1] and kind(mine) == BUSY:
        return b
    if mine[1] == other[1] and kind(other) == BUSY:
        return a
    return None


def attributes(data):
    """(tag, value) of each attribute; whether the end was reached without damage."""
    found, at = [], 0
    while at < len(data):
        if at + 8 > len(data):
            return found, False
        tag, _, count = struct.unpack_from("<HHI", data, at)
        if at + 8 + count > len(data):
            return found, False
        found.append((tag, bytes(data[at + 8 : at + 8 + count])))
        at += 8 + align8(count)
    return found, True


def first(found, tag):
    return next((value for t, value in found if t == tag), None)


KINDS = {
    1: ("<B", 1), 2: ("<H", 2), 3: ("<I", 4), 4: ("<Q", 8), 5: ("u128", 16),
    6: ("<b", 1), 7: ("<h", 2), 8: ("<i", 4), 9: ("<q", 8), 10: ("i128", 16),
    11: ("<f", 4), 12: ("<d", 8), 13: ("bool", 1), 14: ("char", 4), 15: ("str", 8), 16: ("bytes", 8),
}  # fmt: skip


class Field:
    def __init__(self, value):
        if len(value) < 16:
            raise Damaged(f"a FIELD of {len(value)} bytes")
        self.kind, flags, self.count, self.offset, self.size, _ = struct.unpack_from("<BBHIII", value)
        self.optional = bool(flags & 1) and self.count == 0
        found, whole = attributes(value[16:])
        if not whole:
            raise Damaged("an attribute of a FIELD reaches past it")
        self.name = show_name(first(found, TAG_NAME))
        self.semantic = int.from_bytes(first(found, TAG_SEMANTIC) or b"", "little")

    def show(self, payload):
        values = [self._show_one(payload, self.offset + i * self.size) for i in range(self.count or 1)]
        return "[" + ",".join(values) + "]" if self.count else values[0]

    def _show_one(self, payload, at):
        raw = payload[at : at + self.size]
        if len(raw) != self.size:
            return "<invalid>"
        code, size = KINDS.get(self.kind, (None, None))
        if size is None or size * (1 + self.optional) != self.size:
            return "0x" + raw.hex()
        if self.optional:
            raw, presence = raw[:size], raw[size:]
            if not any(presence):
                return "none"
        if code in ("u128", "i128"):
            return str(int.from_bytes(raw, "little", signed=code == "i128"))
        if code == "bool":
            return "true" if raw[0] else "false"
        if code == "char":
            return show_char(int.from_bytes(raw, "little"))
        if code in ("str", "bytes"):
            offset, count = struct.unpack("<II", raw)
            value = b"" if count == 0 else payload[offset : offset + count]
            if len(value) != count:
                return "<invalid>"
            return quote(value) if code == "str" else "0x" + value.hex()
        (value,) = struct.unpack(code, raw)
        return show_float(value, code) if isinstance(value, float) else str(value)


def show_char(scalar):
    if scalar > 0x10FFFF or 0xD800 <= scalar <= 0xDFFF:
        return "<invalid>"
    return quote(chr(scalar).encode())


def show_float(value, code):
    if value != value:
        return "NaN"
    if code == "<f" and abs(value) != float("inf"):
        for digits in range(1, 10):  # the shortest that reads back as the same f32
            text = f"{value:.{digits}g}"
            if struct.pack("<f", float(text)) == struct.pack("<f", value):
                return repr(float(text))
    return repr(value)


def quote(value):
    return '"' + escape(value, '"\\') + '"'


def escape(value, special):
    out = []
    for char in value.decode("utf-8", "surrogateescape"):
        point = ord(char)
        if 0xDC80 <= point <= 0xDCFF:
            out.append(f"\\x{point - 0xDC00:02x}")
        elif char in special:
            out.append("\\" + char)
        elif 0x20 <= point < 0x7F:
            out.append(char)
        else:
            out.append(f"\\u{{{point:x}}}")
    return "".join(out)


def show_name(value):
    return "?" if value is None else escape(value, "")


class Schema:
    """Event types by id, from the schema stream."""

    def __init__(self):
        self.types, self.damage, self.done = {}, [], 0

    def extend(self, stream):
        """Looks at what is new in the stream, which only grows."""
        while self.done < len(stream) and not (self.damage and self.damage[-1].startswith("end")):
            if self.done + 16 > len(stream):
                self.damage.append(f"end: half an entry at {self.done}")
                return
            size, kind, fixed, ident, _ = struct.unpack_from("<IHHII", stream, self.done)
            if size < 16 or size % 8 or self.done + size > len(stream):
                self.damage.append(f"end: an entry of {size} bytes at {self.done}")
                return
            if kind == 1:
                self._event(stream[self.done : self.done + size], fixed, ident)
            self.done += size

    def _event(self, entry, fixed, ident):
        if fixed < 8 or 16 + fixed > len(entry) or not FIRST_TYPE <= ident < FUNCTION_BIT:
            self.damage.append(f"event type {ident} with a fixed part of {fixed} bytes")
            return
        found, whole = attributes(entry[16 + align8(fixed) :])
        fields = []
        if not whole:
            self.damage.append(f"event type {ident}: an attribute reaches past the entry")
        for tag, value in found:
            if tag == TAG_FIELD:
                try:
                    fields.append(Field(value))
                except Damaged as damage:
                    self.damage.append(f"event type {ident}: {damage}")
        shape = entry[17]
        self.types.setdefault(ident, (show_name(first(found, TAG_NAME)), fields, shape))

    def show(self, kind, payload):
        """An event's name and fields as text."""
        described = self.types.get(kind)
        if described is None:
            return f"#{kind} payload=0x{bytes(payload).hex()}"
        name, fields, _ = described
        return " ".join([name, *(f"{field.name}={field.show(payload)}" for field in fields)])


def show_uuid(value):
    return str(uuid.UUID(bytes=value))
