#!/usr/bin/env python3
"""Makes stream.txt: messages of section 18 as they stand on the wire, packed with Python's own tools."""

import struct
import zlib

ZERO = bytes(16)
SESSION = bytes(range(16))


def block(kind, content, session=ZERO):
    """A whole block: header with both checksums, content, padding."""
    head = b"RMKB" + struct.pack("<HBB", kind, 0, 0) + session
    head += struct.pack("<QQIIIII", 0, 0, 0, 0, len(content), len(content), zlib.crc32(content))
    head += struct.pack("<I", zlib.crc32(head))
    return head + content + bytes(-len(content) % 8)


def attribute(tag, value):
    return struct.pack("<HHI", tag, 0, len(value)) + value + bytes(-len(value) % 8)


HOST, TOKEN = 66, 96
ATTRIBUTES = attribute(HOST, b"web-1") + attribute(TOKEN, b"secret")
MESSAGES = {
    "hello": block(32, struct.pack("<HHI", 1, 0, len(ATTRIBUTES)) + b"H" * 16 + b"B" * 16
                   + struct.pack("<Q", 1_700_000_000_000_000_001) + ATTRIBUTES),
    "welcome": block(33, struct.pack("<HHI", 1, 0, 0) + b"S" * 16
                     + struct.pack("<QQ", 1_700_000_000_000_000_002, 8 << 20)),
    "refused": block(34, struct.pack("<II", 1, 0) + b"the token is not ours"),
    "resume": block(35, struct.pack("<QII", 640, 2, 0) + struct.pack("<IIQ", 0, 0, 17)
                    + struct.pack("<IIQ", 3, 0, 1 << 40), SESSION),
    "ack": block(36, struct.pack("<QQ", 4160, 4160 + (8 << 20))),
    "ping": block(37, struct.pack("<QQ", 1, 1_700_000_000_000_000_003)),
    "pong": block(38, struct.pack("<QQQQ", 1, 1_700_000_000_000_000_003, 1_700_000_010_000_000_004, 5_000)),
    "drain": block(39, b""),
    "bye": block(40, b""),
    "later_message": block(60, b"of a later version"),
    "later_block": block(20, b"of a later version", SESSION),
    "host_clock": block(6, struct.pack("<QqQQ", 1_700_000_000_000_000_005, -10_000_000_000, 70_000, 6_000), SESSION),
}

if __name__ == "__main__":
    print("# Messages of streams, section 18: name, then the bytes on the wire in hexadecimal. Made by stream.py.")
    for name, message in MESSAGES.items():
        print(name, message.hex())
