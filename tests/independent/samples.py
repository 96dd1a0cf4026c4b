"""Where threads ran, from SPEC.md, section 11 (SAMPLES)."""

from ringmark_codec import Damaged
from ringmark_format import SAMPLE, SAMPLES


class Samples:
    """The SAMPLES blocks of a session."""

    def __init__(self):
        self.found, self.lost = [], 0

    def add(self, content):
        if len(content) < SAMPLES.size:
            raise Damaged(f"a SAMPLES block of {len(content)} bytes")
        head = SAMPLES.read(content)
        texts_at = SAMPLES.size + head["samples"] * SAMPLE.size
        if len(content) != texts_at + head["texts_bytes"]:
            raise Damaged(f"a SAMPLES block of {len(content)} bytes")
        if head["period_ns"] >= 1 << 32:
            raise Damaged("the period of a SAMPLES block")
        texts, found = content[texts_at:], []
        for at in range(SAMPLES.size, texts_at, SAMPLE.size):
            sample = SAMPLE.read(content, at)
            text, end = sample["text"], sample["text"] + sample["text_bytes"]
            if sample["mono_ns"] >= 1 << 61 or end > len(texts):
                raise Damaged("a sample in a SAMPLES block")
            found.append((sample["tid"], sample["mono_ns"], head["period_ns"], texts[text:end]))
        self.found += found
        self.lost += head["lost"]

    def lines(self, name, quoted):
        """A line for each sample that counts, and one for those that had no room."""
        kept = {}
        for tid, at, ns, text in sorted(self.found):
            kept.setdefault((tid, at), f"# ran {name} {tid} {at} {ns} {quoted(text)}")
        lost = [f"# samples lost {name} {self.lost}"] if self.lost else []
        return [*kept.values(), *lost]


def share(sessions):
    """Gives the sessions of one process the samples of all of them."""
    by_process = {}
    for session in sessions:
        process = tuple(session.header[n] for n in ("boot_id", "pid_namespace", "pid", "start_time"))
        shared = by_process.setdefault(process, Samples())
        shared.found += session.ran.found
        shared.lost += session.ran.lost
        session.ran = shared
