"""Codecs of containers, from SPEC.md, section 12: LZ4 blocks and the filter of codec 2."""

import struct

NONE, LZ4, DELTA_SHUFFLE_LZ4 = 0, 1, 2
CONTENT_BYTES_MAX = 4 << 20
ESCAPE, SYMBOLS_MAX, KINDS, PLACES = 0xFFFF, 4095, 32, 4
LANES = KINDS * PLACES
M32, M64 = (1 << 32) - 1, (1 << 64) - 1


class Damaged(Exception):
    """Something is not as the specification says; the text says what."""


def decode(codec, stored, raw_bytes):
    """The content before its codec, exactly `raw_bytes` bytes."""
    if codec == NONE:
        raw = bytes(stored)
    elif codec == LZ4:
        raw = lz4_decode(stored, raw_bytes)
    elif codec == DELTA_SHUFFLE_LZ4:
        if len(stored) < 4:
            raise Damaged("no size of the filtered bytes")
        (size,) = struct.unpack_from("<I", stored)
        if size > 520 + raw_bytes + raw_bytes // 4:
            raise Damaged(f"{size} filtered bytes for {raw_bytes}")
        raw = unfilter(lz4_decode(stored[4:], size), raw_bytes)
    else:
        raise Damaged(f"unknown codec {codec}")
    if len(raw) != raw_bytes:
        raise Damaged(f"content decodes to {len(raw)} bytes, expected {raw_bytes}")
    return raw


def lz4_decode(stored, size_max):
    """An LZ4 block; more than `size_max` bytes are damage."""
    out, at = bytearray(), 0
    try:
        while True:
            token = stored[at]
            at += 1
            literals, at = lz4_length(stored, at, token >> 4)
            if at + literals > len(stored):
                raise Damaged("LZ4 literals reach past the input")
            out += stored[at : at + literals]
            at += literals
            if len(out) > size_max:
                raise Damaged("LZ4 expands past the declared size")
            if at == len(stored):
                return bytes(out)
            (distance,) = struct.unpack_from("<H", stored, at)
            match, at = lz4_length(stored, at + 2, token & 15)
            lz4_copy(out, distance, match + 4, size_max)
    except (IndexError, struct.error):
        raise Damaged("LZ4 input ends in the middle") from None


def lz4_length(stored, at, length):
    if length == 15:
        while True:
            more = stored[at]
            at += 1
            length += more
            if more != 255:
                break
    return length, at


def lz4_copy(out, distance, length, size_max):
    if not 1 <= distance <= len(out):
        raise Damaged(f"LZ4 distance {distance} with {len(out)} bytes written")
    if len(out) + length > size_max:
        raise Damaged("LZ4 expands past the declared size")
    start = len(out) - distance
    while length > 0:  # ranges may overlap: copy what is there, then again
        piece = out[start : start + min(length, len(out) - start)]
        out += piece
        length -= len(piece)


def lz4_literals(raw):
    """An LZ4 block that holds `raw` as literals alone: valid, if not short."""
    if len(raw) < 15:
        return bytes([len(raw) << 4]) + raw
    more = len(raw) - 15
    return bytes([0xF0]) + b"\xff" * (more // 255) + bytes([more % 255]) + raw


def lz4_encode(raw):
    """A greedy encoder with a table of four bytes: short enough to be right, good enough to match."""
    out, seen, start, at = bytearray(), {}, 0, 0
    while at + 12 <= len(raw):  # the format's own rule: the last bytes are literals
        key = raw[at : at + 4]
        match = seen.get(key)
        seen[key] = at
        if match is None or at - match > 0xFFFF:
            at += 1
            continue
        length = 4
        while at + length < len(raw) - 5 and raw[match + length] == raw[at + length]:
            length += 1
        lz4_sequence(out, raw[start:at], at - match, length - 4)
        at += length
        start = at
    return bytes(out) + lz4_literals(raw[start:])


def lz4_sequence(out, literals, distance, length):
    out.append(min(len(literals), 15) << 4 | min(length, 15))
    lz4_put_length(out, len(literals))
    out += literals + struct.pack("<H", distance)
    lz4_put_length(out, length)


def lz4_put_length(out, length):
    if length >= 15:
        length -= 15
        out += b"\xff" * (length // 255) + bytes([length % 255])


def unzigzag(folded):
    return folded >> 1 ^ -(folded & 1)


def leading_zeros(word):
    return 64 - word.bit_length()


class Lane:
    """The words of one place of one kind of record, each predicted by the one before."""

    def __init__(self, codes):
        self.codes, self.next, self.previous, self.score = codes, 0, 0, 0

    def take(self):
        if self.next == len(self.codes):
            raise Damaged("a lane ran out")
        code = self.codes[self.next]
        self.next += 1
        word = code if self.score > 0 else (unzigzag(code) + self.previous) & M64
        difference = (word - self.previous) & M64
        folded = (difference << 1 ^ (M64 if difference >> 63 else 0)) & M64
        gain = leading_zeros(word) - leading_zeros(folded)
        decay = abs(self.score) // 16 * (1 if self.score >= 0 else -1)
        self.score += gain - decay
        self.previous = word
        return word


def unplanes(data, at, count, width):
    """`count` elements of `width` bytes out of their bit planes; and where they end."""
    groups = count // 8
    end = at + count * width
    if end > len(data):
        raise Damaged("bit planes reach past the filtered bytes")
    values = [0] * (groups * 8)
    for plane in range(8 * width):
        for group, bits in enumerate(data[at + plane * groups : at + (plane + 1) * groups]):
            for i in range(8):
                values[8 * group + i] |= (bits >> i & 1) << plane
    tail = data[at + groups * 8 * width : end]
    values += [int.from_bytes(tail[i : i + width], "little") for i in range(0, len(tail), width)]
    return values, end


class Streams:
    """The streams of the filtered bytes, taken from the front."""

    def __init__(self, data):
        if len(data) < 520:
            raise Damaged("filtered bytes end within their table")
        raw_bytes, headers, *lengths = struct.unpack_from("<130I", data)
        at = 520 + raw_bytes
        if at > len(data):
            raise Damaged("the raw stream reaches past the filtered bytes")
        self.raw, self.raw_at = data[520:at], 0
        self.symbols, at = unplanes(data, at, headers, 2)
        self.ticks, at = unplanes(data, at, headers, 4)
        self.lanes = []
        for length in lengths:
            codes, at = unplanes(data, at, length, 8)
            self.lanes.append(Lane(codes))
        if at != len(data):
            raise Damaged("bytes behind the last lane")
        self.header_at, self.dictionary = 0, []

    def take_raw(self, count):
        piece = self.raw[self.raw_at : self.raw_at + count]
        if len(piece) != count:
            raise Damaged("the raw stream ran out")
        self.raw_at += count
        return piece

    def take_header(self, before):
        if self.header_at == len(self.symbols):
            raise Damaged("the symbols ran out")
        symbol, folded = self.symbols[self.header_at], self.ticks[self.header_at]
        self.header_at += 1
        low = (before + unzigzag(folded)) & M32
        if symbol != ESCAPE:
            if symbol >= len(self.dictionary):
                raise Damaged(f"symbol {symbol} is not in the dictionary")
            return low, self.dictionary[symbol], symbol
        half = int.from_bytes(self.take_raw(4), "little")
        if len(self.dictionary) < SYMBOLS_MAX:
            symbol = len(self.dictionary)
            self.dictionary.append(half)
        return low, half, symbol

    def used_up(self):
        lanes = all(lane.next == len(lane.codes) for lane in self.lanes)
        return lanes and self.raw_at == len(self.raw) and self.header_at == len(self.symbols)


def unfilter(data, raw_bytes):
    """The `raw_bytes` bytes that the filtered bytes were made of."""
    streams, out = Streams(data), bytearray()
    while len(out) < raw_bytes:
        rest = raw_bytes - len(out)
        front = streams.raw[streams.raw_at : streams.raw_at + 64]
        raw, words = next_piece(front, rest)
        out += streams.take_raw(raw)
        unfilter_records(streams, words, out)
    if not streams.used_up():
        raise Damaged("the streams are not used up")
    return bytes(out)


def next_piece(front, rest):
    """Bytes for the raw stream, then words that are records."""
    if rest < 64 or len(front) < 64 or front[:4] != b"RMKB":
        return rest, 0
    kind, codec = struct.unpack_from("<HB", front, 4)
    extent, _, stored, raw = struct.unpack_from("<4I", front, 40)
    whole = 64 + (stored + 7) // 8 * 8
    if whole > rest:
        return rest, 0
    plain = codec == NONE and stored == raw == extent and extent % 8 == 0
    if kind == 3 and plain and extent >= 96:
        return 160, (extent - 96) // 8
    return whole, 0


def unfilter_records(streams, left, out):
    before = 0
    while left > 0:
        before, half, symbol = streams.take_header(before)
        out += struct.pack("<II", before, half)
        left -= 1
        kind, length = half & 0xFFFFFF, half >> 24
        if (before == 0 and half == 0) or kind == 1:
            out += streams.take_raw(8 * left)
            return
        lane_words = raw_words = 0
        if kind in (2, 3):
            raw_words = before - 1
        else:
            if length == 255:
                if left == 0:
                    return
                word = streams.take_raw(8)
                out += word
                left -= 1
                length = int.from_bytes(word, "little")
            lane_words, raw_words = min(length, PLACES), max(0, length - PLACES)
        if raw_words < 0 or lane_words + raw_words > left:
            out += streams.take_raw(8 * left)
            return
        for place in range(lane_words):
            lane = streams.lanes[symbol % KINDS * PLACES + place]
            out += struct.pack("<Q", lane.take())
        out += streams.take_raw(8 * raw_words)
        left -= lane_words + raw_words
