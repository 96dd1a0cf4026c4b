"""What threads were seen waiting for, from SPEC.md, section 11 (WAITS)."""

from ringmark_codec import Damaged
from ringmark_format import SEEN_WAIT, SEEN_WAITS


class SeenWaits:
    """The WAITS blocks of a session."""

    def __init__(self):
        self.found = []

    def add(self, content):
        if len(content) < SEEN_WAITS.size:
            raise Damaged(f"a WAITS block of {len(content)} bytes")
        head = SEEN_WAITS.read(content)
        texts_at = SEEN_WAITS.size + head["waits"] * SEEN_WAIT.size
        if len(content) != texts_at + head["texts_bytes"]:
            raise Damaged(f"a WAITS block of {len(content)} bytes")
        texts, found = content[texts_at:], []
        for at in range(SEEN_WAITS.size, texts_at, SEEN_WAIT.size):
            wait = SEEN_WAIT.read(content, at)
            start, end, text = wait["from_mono_ns"], wait["to_mono_ns"], wait["text"]
            if end < start or end >= 1 << 61 or text + wait["text_bytes"] > len(texts):
                raise Damaged("a wait in a WAITS block")
            found.append((wait["tid"], start, end, texts[text : text + wait["text_bytes"]]))
        self.found += found

    def lines(self, name, quoted):
        """A line for each wait that counts."""
        kept, ends = [], {}
        for tid, start, end, text in sorted(self.found):
            if start >= ends.get(tid, 0):
                kept.append(f"# saw {name} {tid} {start} {end} {quoted(text)}")
            ends[tid] = max(end, ends.get(tid, 0))
        return kept


def share(sessions):
    """Gives the sessions of one process the waits of all of them."""
    by_process = {}
    for session in sessions:
        process = tuple(session.header[n] for n in ("boot_id", "pid_namespace", "pid", "start_time"))
        shared = by_process.setdefault(process, SeenWaits())
        shared.found += session.waits.found
        session.waits = shared
