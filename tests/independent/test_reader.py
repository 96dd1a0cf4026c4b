"""Self-tests of the independent reader, over bytes made by hand: no producer is needed."""

import io
import mmap
import os
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

import make_vectors
import ringmark_codec as codec
import vector_parts as parts
from ringmark_dump import Decoded
from ringmark_live import Follower, RingFile, lock_request

HERE = Path(__file__).resolve().parent


class Vectors(unittest.TestCase):
    def test_every_vector_decodes_to_its_text(self):
        count = 0
        for name, dump, text in make_vectors.made():
            committed = make_vectors.OUT / f"{name}.rmk"
            self.assertEqual(committed.read_bytes(), dump, name)
            self.assertEqual((make_vectors.OUT / f"{name}.txt").read_text(), text, name)
            self.assertEqual("".join(f"{x}\n" for x in Decoded(dump).lines()), text, name)
            count += 1
        self.assertEqual(len(list(make_vectors.OUT.glob("*.rmk"))), count)

    def test_a_changed_byte_is_never_silent(self):
        """Each byte of a dump is covered by a checksum or is padding; and nothing crashes."""
        dump, text = make_vectors.two_rings()
        wanted = "".join(f"{x}\n" for x in text)
        padding = 0
        for at in range(len(dump)):
            changed = bytearray(dump)
            changed[at] ^= 0x41
            shown = Decoded(bytes(changed))
            if not shown.damage:
                padding += 1
                self.assertEqual("".join(f"{x}\n" for x in shown.lines()), wanted, at)
        self.assertEqual(padding, 0, "this dump has no padding")

    def test_a_cut_dump_shows_a_prefix(self):
        dump, _ = make_vectors.two_rings()
        for end in range(0, len(dump), 7):
            decoded = Decoded(dump[:end])
            list(decoded.lines())
            self.assertLessEqual(len(decoded.damage), 1, end)

    def test_a_newer_major_is_refused_by_name(self):
        content = bytearray(parts.session_content(make_vectors.A))
        content[8:10] = b"\x02\x00"
        decoded = Decoded(parts.block(1, bytes(content), make_vectors.A))
        self.assertEqual(decoded.damage, ["version 2.0, this reader knows 1.0"])


class Codecs(unittest.TestCase):
    def test_lz4_by_hand(self):
        self.assertEqual(codec.lz4_decode(bytes([0]), 0), b"")
        self.assertEqual(codec.lz4_decode(b"\x30abc", 3), b"abc")
        overlapping = b"\x1fa\x01\x00\x05\x10z"  # "a", then 15 + 5 + 4 times one byte back
        self.assertEqual(codec.lz4_decode(overlapping, 26), b"a" * 25 + b"z")

    def test_lz4_round_trips(self):
        for raw in [b"", b"x", bytes(5000), bytes(range(256)) * 9, os.urandom(1000) * 3]:
            self.assertEqual(codec.lz4_decode(codec.lz4_encode(raw), len(raw)), raw)
            self.assertEqual(codec.lz4_decode(codec.lz4_literals(raw), len(raw)), raw)

    def test_bad_lz4_is_damage(self):
        for stored in [b"", b"\x30ab", b"\x10a\x00\x00", b"\x10a\x02\x00\x00", b"\x1fa\x01\x00", b"\xf0"]:
            with self.assertRaises(codec.Damaged, msg=stored):
                codec.lz4_decode(stored, 100)
        with self.assertRaises(codec.Damaged):
            codec.lz4_decode(b"\x1fa\x01\x00\x05\x10z", 25)

    def test_the_filter_gives_everything_back(self):
        dumps = [dump for _, dump, _ in make_vectors.made()] + [b"", b"short", os.urandom(700)]
        for raw in dumps:
            self.assertEqual(codec.unfilter(parts.apply_filter(raw), len(raw)), raw)
        filtered = parts.apply_filter(dumps[2])
        for at in range(0, len(filtered), 3):
            changed = bytearray(filtered)
            changed[at] ^= 0x11
            try:
                codec.unfilter(bytes(changed), len(dumps[2]))
            except codec.Damaged:
                pass


class FakeProducer:
    """A producer of one discard slot in this process: SPEC.md, section 6, word by word."""

    STATE, CONSUMED, DIRECTORY, EXTENT, PAGES, SIZE, PAGE_COUNT = 4096, 8192, 12288, 16384, 20480, 36864, 4

    def __init__(self, path, mode=1, pid=None):
        self.mode, self.produced, self.reservations, self.lost = mode, 0, 0, 0
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.posix_fallocate(self.fd, 0, self.SIZE)
        self.map = mmap.mmap(self.fd, self.SIZE)
        self.words = memoryview(self.map).cast("Q")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", "")
        stat = Path("/proc/self/stat").read_bytes()
        start = int(stat[stat.rindex(b")") + 2 :].split()[19])
        header = bytearray(parts.session_content(make_vectors.A, mode=mode, zero=make_vectors.ZERO))
        struct.pack_into("<QQQQQQQQQQI", header, 16, 4096, self.SIZE, self.STATE, 0, 0, self.CONSUMED, self.DIRECTORY, 0, 0, 0, 1)
        struct.pack_into("<II", header, 88, 1, mode)
        header[128:144] = bytes.fromhex(boot)
        namespace = os.stat("/proc/self/ns/pid").st_ino
        struct.pack_into("<IIQQ", header, 144, pid or os.getpid(), os.getuid(), start, namespace)
        self.map[: len(header)] = bytes(header)
        schema = make_vectors.TICK
        self.map[self.EXTENT : self.EXTENT + len(schema)] = schema
        self.put(self.STATE + 256, self.EXTENT, 4096)
        self.put(self.DIRECTORY + 8, 1, self.PAGES, 4096 | self.PAGE_COUNT << 32)
        self.put(self.STATE + 8, len(schema), 1)
        self.put(self.DIRECTORY, 3)
        self.put(self.STATE, 1)

    def put(self, at, *values):
        for i, value in enumerate(values):
            self.words[at // 8 + i] = value

    def turn(self):
        number = self.produced
        if self.mode == 1 and number - self.words[self.CONSUMED // 8] >= self.PAGE_COUNT:
            return False
        self.at = self.PAGES + number % self.PAGE_COUNT * 4096
        self.put(self.at, 2**64 - 1)
        self.map[self.at + 96 : self.at + 4096] = bytes(4000)
        self.put(self.at + 8, 1, make_vectors.ZERO[0], 0, self.reservations, self.lost, 0, 0)
        self.put(self.at, number + 1)
        self.produced, self.at, self.end = number + 1, self.at + 96, self.at + 4096
        self.put(self.DIRECTORY + 64, self.produced)
        return True

    def event(self, value):
        if self.produced == 0 or self.at + 16 > self.end:
            if not self.turn():
                self.lost += 1
                self.put(self.DIRECTORY + 72, self.lost)
                return
        self.put(self.at, 2 | 2 << 32)
        self.put(self.at + 8, value)
        self.put(self.at, value & 0xFFFF | 16 << 32 | 1 << 56)
        self.at, self.reservations = self.at + 16, self.reservations + 1

    def close(self):
        if self.at < self.end:
            self.put(self.at, (self.end - self.at) // 8 | 1 << 32)
        self.put(self.DIRECTORY + 136, self.reservations)
        self.put(self.DIRECTORY, 4)
        self.put(self.STATE, 2)


def numbers(text):
    return [int(line.rsplit("n=", 1)[1]) for line in text.splitlines() if " tick n=" in line]


class Live(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.dir.name, "fake.ring")

    def tearDown(self):
        self.dir.cleanup()

    def follow(self, consume, seconds=None):
        out = io.StringIO()
        follower = Follower(self.path, consume, out)
        follower.run(seconds)
        self.assertEqual(follower.damage + follower.file.schema.damage, [])
        return numbers(out.getvalue()), follower

    def test_a_consumer_gets_everything_that_was_not_lost(self):
        producer = FakeProducer(self.path)

        def write():
            for value in range(20_000):
                producer.event(value)
                if value % 200 == 0:
                    time.sleep(0.001)
            producer.close()

        thread = threading.Thread(target=write)
        thread.start()
        got, follower = self.follow(consume=True, seconds=60)
        thread.join()
        self.assertEqual(len(got) + producer.lost, 20_000)
        self.assertEqual(got, sorted(got))
        self.assertGreater(len(got), 4 * 250, "pages were released and used again")
        self.assertEqual(producer.words[producer.CONSUMED // 8], producer.produced)
        self.assertNotIn("missing", "\n".join(follower.summary()))

    def test_without_a_consumer_the_newest_are_lost(self):
        producer = FakeProducer(self.path)
        for value in range(1200):
            producer.event(value)
        got, follower = self.follow(consume=False, seconds=0)
        self.assertEqual(got, list(range(1000)))
        self.assertIn(f"# lost {make_vectors.A_TEXT} 0 RingFull 200", list(follower.summary()))

    def test_an_open_page_is_read_but_not_released(self):
        producer = FakeProducer(self.path)
        for value in range(260):
            producer.event(value)
        self.assertEqual(self.follow(consume=False, seconds=0)[0], list(range(260)))
        self.assertEqual(self.follow(consume=True, seconds=0)[0], list(range(250)))
        self.assertEqual(producer.words[producer.CONSUMED // 8], 1)

    def test_overwritten_pages_are_counted(self):
        producer = FakeProducer(self.path, mode=2)
        for value in range(2100):
            producer.event(value)
        got, follower = self.follow(consume=False, seconds=0)
        self.assertEqual(got, list(range(1250, 2100)))
        self.assertIn(f"# missing {make_vectors.A_TEXT} 0 1250", list(follower.summary()))

    def test_a_dead_producer_is_drained_to_its_last_record(self):
        child = subprocess.Popen([sys.executable, "-c", "pass"])
        child.wait()
        producer = FakeProducer(self.path, pid=child.pid)
        for value in range(300):
            producer.event(value)
        producer.put(producer.at, 2 | 2 << 32)  # it died with a record in flight
        got, follower = self.follow(consume=True)
        self.assertEqual(got, list(range(300)))
        self.assertEqual(follower.uncommitted, 1)

    def test_a_second_consumer_is_refused(self):
        FakeProducer(self.path)
        first = RingFile(self.path, consume=True)
        with self.assertRaises(SystemExit):
            RingFile(self.path, consume=True)
        self.assertEqual(len(lock_request(0, 0)), 32)
        os.close(first.fd)

    def test_a_file_that_is_no_ring_file_is_refused(self):
        Path(self.path).write_bytes(b"\x7fELF" + bytes(400))
        with self.assertRaises(codec.Damaged):
            RingFile(self.path, consume=False)


class CommandLine(unittest.TestCase):
    def test_exit_codes(self):
        def status(name):
            command = [sys.executable, HERE / "ringmark_reader.py", "dump", make_vectors.OUT / name]
            return subprocess.run(command, capture_output=True).returncode

        self.assertEqual(status("two_rings.rmk"), 0)
        self.assertEqual(status("damaged.rmk"), 1)
        self.assertEqual(status("nowhere.rmk"), 3)


if __name__ == "__main__":
    unittest.main()
