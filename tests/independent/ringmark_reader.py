#!/usr/bin/env python3
"""Reads Ringmark dumps and live sessions as SPEC.md says; shares no code with the Rust crates.

    ringmark_reader.py dump FILE
    ringmark_reader.py live RINGFILE [--consume] [--seconds N]

Prints one line per event as SPEC.md, section 17, says: by time for a dump, as they come for a
live session. Then lines that start with "# ". Damage is told on stderr; the exit status is 1 then.
"""

import argparse
import sys
from pathlib import Path

from ringmark_codec import Damaged
from ringmark_dump import Decoded
from ringmark_live import Follower


def dump(path):
    data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    decoded = Decoded(data)
    for line in decoded.lines():
        print(line)
    return decoded.damage


def live(path, consume, seconds):
    follower = Follower(path, consume, sys.stdout)
    follower.run(seconds)
    for line in follower.summary():
        print(line)
    return follower.damage + follower.file.schema.damage


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("dump").add_argument("file")
    follow = verbs.add_parser("live")
    follow.add_argument("file")
    follow.add_argument("--consume", action="store_true", help="release pages (discard)")
    follow.add_argument("--seconds", type=float, help="stop after this time at the latest")
    args = parser.parse_args()
    try:
        if args.verb == "dump":
            damage = dump(args.file)
        else:
            damage = live(args.file, args.consume, args.seconds)
    except (Damaged, OSError) as error:
        print(f"{args.file}: {error}", file=sys.stderr)
        return 3
    for text in damage:
        print(f"{args.file}: {text}", file=sys.stderr)
    return 1 if damage else 0


if __name__ == "__main__":
    sys.exit(main())
