"""R1, R2, R4, F3, and hackbench with functions that are off (F2): figures of the system tests, which
state the same bars. A test that fails has no figure, but where all it states is the bar."""

import re
from dataclasses import dataclass

import race
from bars import Bar
from own import ROOT

LIMIT_S = 300


@dataclass
class Claim:
    """A bar, the test that proves it, and where its figure stands in what the test prints."""

    id: str
    what: str
    test: str
    # One test, or several whose figures are added.
    functions: str
    figure: str
    limit: float
    is_least: bool = True
    # What is printed divided by the unit of the bar; of several matches the sum.
    unit: float = 1
    # Full size, and what it asserts is the bar alone.
    is_long: bool = False


SWITCH = "twenty_thousand_sites_in_one_switch"
LATE = "late_start_beside_six_threads_and_whatever_rests_inside_a_site"
CLAIMS = [
    *(Claim("R1", f"{writers} writers killed in mid-write: events of a healthy one, of 400,000",
            "kill9", "after_killed_writers_a_healthy_one_has_everything",
            rf"^{writers} writers killed: .*; then (\d+) of", 400_000) for writers in (10, 30)),
    *(Claim("R1", f"{writers} writers killed in mid-write: every committed event read, writers",
            "kill9", "after_killed_writers_a_healthy_one_has_everything",
            rf"^{writers} writers killed: Hits {{ kills: (\d+)", writers)
      for writers in (10, 30)),
    *(Claim("F3", f"20,000 sites switched next to six threads: {what}, ms", "function_patching",
            SWITCH, rf'^preload false: .*"{key}": ([\d.]+)', 10, False, 1000)
      for what, key in (("fastest", "fastest_us"), ("CPU time", "cpu_us"),
                        ("the first, the cores shared with them", "first_us"))),
    Claim("F3", "sites switched next to six threads, nothing wrong, 12 builds", "function_patching",
          f"{SWITCH} {LATE}", r'"site_switches": ([\d.]+)', 1_000_000),
    *(Claim("F2", f"hackbench's descendant, {what}: CPU time, of one without sites",
            "functions_off", "hackbench", rf"^ +([\d.]+) {way}", 1.03, False, is_long=True)
      for what, way in (("with sites", "Sites"),
                        ("loaded, without helper thread", r'Loaded\("control=off"\)'),
                        ("loaded, ready to be switched on", r'Loaded\("1"\)'))),
    Claim("R2", "overload, reader starved, killed or late: runs exact to the event, of 100",
          "discard", "overloaded_and_still_exact", r"^(\d+) of \d+ exact", 100),
    Claim("R4", "4 MiB, 501,000 events, process killed: newest events, without a gap",
          "flight_recorder", "four_mebibytes_hold_the_newest_quarter_of_a_million",
          r"^(\d+) newest events", 250_000),
]


def run_all(_place, _size, _daemons):
    """What every test has printed, by its name; nothing if it failed."""
    printed = {}
    for claim in CLAIMS:
        for function in claim.functions.split():
            if function not in printed:
                race.progress(f"{claim.test}: {function}")
                printed[function] = output(claim, function)
    return printed


def output(claim, function):
    command = ["cargo", "nextest", "run", "--cargo-quiet", "-p", "ringmark-tests", "--no-capture",
               "--filterset", f"test(={claim.test}::{function})"]
    env = race.environment(**({"RINGMARK_LONG": "1"} if claim.is_long else {}))
    said, is_passed = race.finished(command, LIMIT_S, ROOT, env)
    return said if is_passed or claim.is_long else ""


def of_tests(printed):
    """The bars: a test that has failed has no figure."""
    for claim in CLAIMS:
        said = [printed[function] for function in claim.functions.split()]
        found = re.findall(claim.figure, "\n".join(said), re.MULTILINE)
        figure = sum(map(float, found)) / claim.unit if found and all(said) else None
        yield Bar(claim.id, claim.what, figure, claim.limit, claim.is_least, f"the test {claim.test} failed or did not print it")
