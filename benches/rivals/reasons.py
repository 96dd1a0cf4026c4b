"""Why a target is missed, as far as that is known, by promise and target."""

REASONS = {
    ("P2", "event: event, clock coarse, ns"):
        "The coarse clock is a function of the kernel's: about 6 ns. A record without it takes 0.45 of an rtrb push.",
    ("P2", "event: event, clock none, ns"):
        "A prototype takes 2.50 ns; without the compare-exchange 1.72, without the three counts 1.89, and neither is right. "
        "No count of records: 2.49; a prefetch: 2.50. All of it takes 0.45 of an rtrb push.",
    ("P2", "event: event_at, ns"):
        "As above.",
    ("P3", "event: stack, no clock, ns"):
        "The place of the span takes a compare-exchange of its own, 0.8 ns, and its arguments are stored twice.",
    ("P5", "disabled: event off - empty loop, ns"):
        "One cycle of this processor is 0.31 ns: a load, a comparison and a jump take one more than an empty loop.",
    ("P4", "tracing: Subscriber event / native event"):
        "The least bridge, which looks up no call site, takes 1.66 there. Variants are below.",
    ("P4", "tracing: Subscriber span / (Registry + no-op Layer)"):
        "The least bridge, which makes the same records and keeps no span, takes 0.57 on Zen 3. Variants are below.",
    ("P9", "record: bare GB/s / recorder GB/s"):
        "Both wait for memory of the file cache, which stops a write of 16 MiB for 40 to 180 ms, at random.",
    ("P11", "decode only: times the speed of babeltrace2"):
        "Whole commands are compared, with start and file. After this row an event took 40 ns in place of 57: pages stay "
        "in their file, and spans are not looked for where none is recorded.",
    ("P11", "text: times the speed of babeltrace2"):
        "As above. Thin LTO over decoder and command had no effect.",
    ("P11", "decode: decode only"):
        "After this row spans are no longer looked for where none is recorded: 110 of 639 instructions less.",
    ("P12", "snapshot: snapshot of a live 8 MiB session, ms"):
        "It waits for memory of the file cache, as P9 does.",
    ("F1", "times faster than uftrace -P ., all on, windows"):
        "A call takes 27.6 ns in windows one after the other, 35.8 in windows 6 ms apart. Cold lines of the ring took 2.6 "
        "of that; they are fetched early since this row. What takes the other 5 is not known.",
    ("F1", "times faster than XRay FDR, all on, windows"):
        "XRay takes about 100 ns; two clock reads alone are what five times less would leave. Since the row of Zen 3 "
        "lines of the ring are fetched early: 33.2 ns in place of 35.8 in cold windows.",
    ("F1", "times faster than XRay FDR, all on, long runs, CPU time"):
        "As above. Variants of the stub, each with its time, are below. None that is right leaves more than 0.8 ns.",
    ("F1", "funtrace: at most 1.1 of its time"):
        "It cannot be switched while a program runs.",
    ("F3", "20,000 sites switched next to six threads: the first, the cores shared with them, ms"):
        "The switching thread waits for a processor; the switch itself takes 2.5 ms of one.",
    ("W1", "footprint: added text, KiB"):
        "The start counts and removes dead sessions, looks for room and for a consumer, and takes requests: cold code. "
        "Heaps in place of sorts and maps saved 45 KiB after this row. Built for size 178, with one codegen unit 198, "
        "with LTO 214.",
    ("W1", "footprint: start-up with control on, ms"):
        "81 system calls: files of /proc and /sys take 6 to 10 us each, the ring file 42, the helper thread 30. "
        "Less memory and one look at the groups saved 15 to 19 % after this row.",
    ("W1", "footprint: start-up with control off, ms"):
        "As above, without the thread.",
    ("G1", "idle: recorder next to 100 silent threads, % of a core"):
        "82 looks a second, of five system calls each. Another run took 0.60 %, as next to one thread (load 3).",
    ("G4", "pause: event, old page / fresh, pages of 1024 KiB"):
        "The burst writes twice as much cold memory as one without a pause. That this is the reason was not proved.",
    ("G4", "pause: C event, old page / fresh, pages of 1024 KiB"):
        "As above.",
    **{("F1", f"{name}, whole command: lost in the worst round"):
       "Another program had the recorder's core for longer than the rings of 8 MiB last. With `--wait 1s` 0 are lost."
       for name in ("lua", "sqlite3")},
}
