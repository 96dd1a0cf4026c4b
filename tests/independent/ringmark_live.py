"""A live session followed through its mapped ring file, from SPEC.md, sections 3 to 7 and 14.

Python has no atomic loads of its own: an aligned element of a memoryview cast to "Q" is loaded
and stored by one 8-byte access, which on x86-64 is an acquire load and a release store. On other
processors this module refuses to run.
"""

import fcntl
import mmap
import os
import platform
import struct
import time
from pathlib import Path

from ringmark_codec import Damaged
from ringmark_dump import lost_lines
from ringmark_format import (
    SESSION_HEADER,
    SLOT,
    Page,
    Schema,
    Time,
    check_session_header,
    show_uuid,
)

STARTING, LIVE, CLOSED = 0, 1, 2
FREE, CLAIMING, WARM, ACTIVE, SEALED, ABANDONED = range(6)
DISCARD = 1
PAD, BUSY, CANCELLED, LONG = 1, 2, 3, 255


def lock_request(kind, at):
    return struct.pack("hhqqi4x", kind, os.SEEK_SET, at, 1, 0)


class RingFile:
    """A mapped ring file; everything is loaded as whole words and checked before it is used."""

    def __init__(self, path, consume):
        if platform.machine() != "x86_64":
            raise SystemExit("live needs x86-64: see the module's documentation")
        mode = os.O_RDWR if consume else os.O_RDONLY
        self.fd = os.open(path, mode | os.O_NOFOLLOW | os.O_CLOEXEC)
        self.size = os.fstat(self.fd).st_size
        if self.size < SESSION_HEADER.size:
            raise Damaged(f"{self.size} bytes, a header has {SESSION_HEADER.size}")
        self.map = mmap.mmap(self.fd, self.size, mmap.MAP_SHARED, mmap.PROT_READ)
        self.words = memoryview(self.map)[: self.size // 8 * 8].cast("Q")
        self._check()
        while self.phase() == STARTING:
            time.sleep(0.01)
        self._check()  # from now on the header is constant
        self.name = show_uuid(self.header["session"])
        self.schema, self.stream, self.samples = Schema(), bytearray(), set()
        self.consumed = self._map_consumed() if consume else None

    def _check(self):
        self.header = header = SESSION_HEADER.read(self.map[: SESSION_HEADER.size])
        check_session_header(header)
        if not 1 <= header["slots"] <= 65536:
            raise Damaged(f"{header['slots']} slots")
        regions = {"state": 512, "consumed": 8 * header["slots"], "directory": 256 * header["slots"]}
        for name, size in regions.items():
            offset = header[f"{name}_offset"]
            if offset % 8 or offset + size > self.size:
                raise Damaged(f"{name}_offset {offset} in a file of {self.size} bytes")

    def _map_consumed(self):
        if self.header["mode"] != DISCARD:
            raise SystemExit("only a discard session is consumed")
        offset = self.header["consumed_offset"]
        try:
            fcntl.fcntl(self.fd, fcntl.F_OFD_SETLK, lock_request(fcntl.F_WRLCK, offset))
        except OSError as error:
            raise SystemExit(f"another consumer holds the session: {error}") from None
        start = offset // mmap.PAGESIZE * mmap.PAGESIZE
        size = offset - start + 8 * self.header["slots"]
        writable = mmap.PROT_READ | mmap.PROT_WRITE
        self.consumed_map = mmap.mmap(self.fd, size, mmap.MAP_SHARED, writable, offset=start)
        words = memoryview(self.consumed_map).cast("Q")
        return words[(offset - start) // 8 :]

    def state_word(self, offset):
        return self.words[(self.header["state_offset"] + offset) // 8]

    def phase(self):
        return self.state_word(0)

    def slots_used(self):
        return min(self.state_word(16), self.header["slots"])

    def slot_words(self, index):
        at = (self.header["directory_offset"] + 256 * index) // 8
        return self.words[at : at + 32]

    def slot(self, index):
        return SLOT.read(struct.pack("<32Q", *self.slot_words(index)))

    def lost(self):
        return [self.state_word(48 + 8 * i) for i in range(8)]

    def load_schema(self):
        """Reads what is new in the schema stream: after a page, before its records are shown."""
        end = self.state_word(8)
        if end <= len(self.stream):
            return
        self.stream.clear()
        for i in range(16):
            offset, size = self.state_word(256 + 16 * i), self.state_word(264 + 16 * i)
            if size == 0 or offset % 8 or offset + size > self.size:
                break
            self.stream += self.map[offset : offset + min(size, end - len(self.stream))]
        self.schema.extend(bytes(self.stream))

    def dead(self):
        """Whether the producer is gone, as section 14 says."""
        header = self.header
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", "")
        if bytes.fromhex(boot) != header["boot_id"]:
            return True
        if os.stat("/proc/self/ns/pid").st_ino == header["pid_namespace"]:
            try:
                stat = Path(f"/proc/{header['pid']}/stat").read_bytes()
            except OSError:
                return True
            fields = stat[stat.rindex(b")") + 2 :].split()
            if int(fields[22 - 3]) != header["start_time"] or fields[0] in (b"Z", b"X"):
                return True
        answer = fcntl.fcntl(self.fd, fcntl.F_GETLK, lock_request(fcntl.F_WRLCK, 0))
        if struct.unpack_from("h", answer)[0] != fcntl.F_UNLCK:
            return False
        return not self._mapped_by_producer()

    def _mapped_by_producer(self):
        inode = str(os.fstat(self.fd).st_ino)
        try:
            lines = Path(f"/proc/{self.header['pid']}/maps").read_text().splitlines()
        except OSError:
            return False
        return any(line.split()[4] == inode for line in lines)


class Ring:
    """One slot as this reader follows it."""

    def __init__(self, file, index):
        self.file, self.index = file, index
        slot = file.slot(index)
        self.page_words, self.pages = slot["page_bytes"] // 8, slot["pages"]
        size, at = slot["page_bytes"], slot["pages_offset"]
        right = size & (size - 1) == 0 and 4096 <= size <= 1 << 20 and self.pages >= 2
        if not right or at % 8 or at + size * self.pages > file.size:
            raise Damaged(f"slot {index}: {self.pages} pages of {size} bytes at {at}")
        self.first_word = at // 8
        self.live = file.slot_words(index)
        produced = self.live[8]
        self.next = max(0, produced - self.pages)
        if file.consumed is not None:
            self.next = min(file.consumed[index], produced)
        self.expected = None  # number of the next reservation if nothing is missing
        self.missing = 0

    def sealed_up_to(self, dead):
        """First page number that is not sealed, and *produced*: produced is loaded first."""
        produced = self.live[8]
        state = self.live[0]
        ended = dead or state in (SEALED, ABANDONED)
        return (produced if ended else max(produced - 1, 0)), produced

    def page(self, number):
        at = self.first_word + number % self.pages * self.page_words
        return self.file.words[at : at + self.page_words]

    def copy(self, number):
        """A validated copy of a page, sealed or open; None: it is not there."""
        page = self.page(number)
        if page[0] != number + 1:
            return None
        words = list(page[:12])
        self._walk(page, words)
        if page[0] != number + 1:
            return None
        return struct.pack(f"<{len(words)}Q", *words)

    def _walk(self, page, words):
        at, end = 12, len(page)
        while at < end:
            header = page[at]
            kind, length = header >> 32 & 0xFFFFFF, header >> 56
            if header == 0:
                return
            words.append(header)
            if kind == PAD:
                return
            if kind in (BUSY, CANCELLED):
                left = (header & 0xFFFFFFFF) - 1
                copied = [0] * min(left, end - at - 1)
            else:
                left = length
                if length == LONG and at + 1 < end:
                    left = 1 + page[at + 1]
                copied = list(page[at + 1 : min(at + 1 + left, end)])
            words += copied
            at += 1 + len(copied)
            if left != len(copied):
                return  # damage: the walk of the copy will say so


class Follower:
    """Follows all rings of a session and prints their events."""

    def __init__(self, path, consume, out):
        self.file, self.out, self.rings = RingFile(path, consume), out, {}
        self.events = self.cancelled = self.uncommitted = 0
        self.damage = []

    def run(self, seconds):
        deadline = None if seconds is None else time.monotonic() + seconds
        while True:
            dead = self.file.dead()
            ended = dead or self.file.phase() == CLOSED
            moved = self.step(dead)
            if ended and not moved:
                break
            if deadline is not None and time.monotonic() >= deadline:
                ended = False
                break
            if not moved:
                time.sleep(0.005)
        if ended or self.file.consumed is None:
            self.open_pages()

    def step(self, dead):
        moved = False
        for index in range(self.file.slots_used()):
            ring = self._ring(index)
            if ring is not None:
                moved |= self._sealed_pages(ring, dead)
        return moved

    def _ring(self, index):
        if index not in self.rings:
            if self.file.slot_words(index)[0] < WARM:
                return None
            try:
                self.rings[index] = Ring(self.file, index)
            except Damaged as damage:
                self.damage.append(str(damage))
                self.rings[index] = None
        return self.rings[index]

    def _sealed_pages(self, ring, dead):
        end, produced = ring.sealed_up_to(dead)
        if self.file.consumed is None:
            ring.next = max(ring.next, min(end, produced - ring.pages))
        moved = ring.next < end
        while ring.next < end:
            copy = ring.copy(ring.next)
            if copy is not None:
                self._show(ring, ring.next, copy, sealed=not dead)
            elif self.file.consumed is not None:
                self.damage.append(f"slot {ring.index}: page {ring.next} is not there")
            ring.next += 1
            if self.file.consumed is not None:
                self.file.consumed[ring.index] = ring.next
        return moved

    def open_pages(self):
        for ring in filter(None, self.rings.values()):
            for number in range(ring.next, ring.live[8]):
                copy = ring.copy(number)
                if copy is not None:
                    self._show(ring, number, copy, sealed=False)

    def _show(self, ring, number, copy, sealed):
        # The copy ends at PAD or at the first zero word; a zero word before the end of a sealed
        # page is damage, so what the walk left out comes back as one zero word.
        if sealed and len(copy) < 8 * ring.page_words and not ends_in_pad(copy):
            copy += bytes(8)
        page = Page(copy, sealed)
        header = page.header
        self.file.load_schema()
        if header["mono_base_ns"]:
            self.file.samples.add((header["tick_base"], header["mono_base_ns"]))
        time_map = Time(self.file.header, self.file.samples)
        if page.damage:
            self.damage.append(f"slot {ring.index}, page {number}: {page.damage}")
        if ring.expected is None and self.file.consumed is not None:
            ring.expected = header["first_event"]  # what came before was another consumer's
        ring.missing += max(0, header["first_event"] - (ring.expected or 0))
        ring.expected = header["first_event"] + page.reservations
        self.events += len(page.events)
        self.cancelled += page.cancelled
        self.uncommitted += page.uncommitted
        for index, tick, kind, payload in page.events:
            seq = header["first_event"] + index
            shown = self.file.schema.show(kind, payload)
            self.out.write(f"{self.file.name} {header['ring_id']} {seq} {time_map.wall(tick)} {shown}\n")
        self.out.flush()

    def summary(self):
        slots = {i: self.file.slot(i) for i in range(self.file.slots_used())}
        yield from lost_lines(self.file.name, self.file.lost(), slots)
        for index, ring in sorted(self.rings.items()):
            if ring is not None and ring.missing:
                yield f"# missing {self.file.name} {index} {ring.missing}"
        yield f"# discarded {self.cancelled}"
        yield f"# uncommitted {self.uncommitted}"
        yield f"# damaged {len(self.damage) + len(self.file.schema.damage)}"


def ends_in_pad(copy):
    """Whether the last word of a copy is the header word that the walk stopped at."""
    (word,) = struct.unpack_from("<Q", copy, len(copy) - 8)
    return word >> 32 & 0xFFFFFF == PAD and word >> 56 == 0
