"""Why a target is missed, as far as that is known, by promise and target."""

REASONS = {
    ("P2", "event: event, clock coarse, ns"):
        "The coarse clock is a function of the kernel's. Nothing was tried.",
    ("P4", "tracing: Subscriber span / (Registry + no-op Layer)"):
        "Two clock reads and `tracing` itself leave no room for four records below the target.",
    ("P9", "record: bare GB/s / recorder GB/s"):
        "Both wait for memory of the file cache, which stops a write of 16 MiB for 40 to 180 ms, at random.",
    ("P11", "decode only: times the speed of babeltrace2"):
        "Whole commands are compared, with start and file. After this row an event took 40 ns in place of 57: pages stay "
        "in their file, and spans are not looked for where none is recorded.",
    ("P11", "text: times the speed of babeltrace2"):
        "As above. Thin LTO over decoder and command had no effect.",
    ("P12", "snapshot: snapshot of a live 8 MiB session, ms"):
        "It waits for memory of the file cache, as P9 does.",
    ("F1", "times faster than XRay FDR, all on, windows"):
        "XRay takes about 100 ns; two clock reads alone are what five times less would leave.",
    ("F1", "times faster than XRay FDR, all on, long runs, CPU time"):
        "As above. Nothing was tried that would leave out a clock read.",
    ("F1", "funtrace: at most 1.1 of its time"):
        "It cannot be switched while a program runs.",
    ("F3", "20,000 sites switched next to six threads: the first, the cores shared with them, ms"):
        "The switching thread waits for a processor; the switch itself takes 2.5 ms of one.",
    ("W1", "footprint: added text, KiB"):
        "The start counts and removes dead sessions, looks for room and for a consumer, and takes requests: cold code. "
        "Heaps in place of sorts and maps saved 49 KiB after this row.",
    ("G4", "pause: event, old page / fresh, pages of 1024 KiB"):
        "The burst writes twice as much cold memory as one without a pause. That this is the reason was not proved.",
    ("G4", "pause: C event, old page / fresh, pages of 1024 KiB"):
        "As above.",
    **{("F1", f"{name}, whole command: lost in the worst round"):
       "Another program had the recorder's core for longer than the rings of 8 MiB last. With `--wait 1s` 0 are lost."
       for name in ("lua", "sqlite3")},
}
