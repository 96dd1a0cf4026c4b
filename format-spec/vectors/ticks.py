#!/usr/bin/env python3
"""Writes ticks.txt: tick to time, computed with big integers from SPEC.md, section 10."""

import random

SPACING = 1 << 26
TOP = (1 << 64) - 1


class Map:
    def __init__(self, zero, mult, shift, samples):
        self.mult, self.shift, self.used = mult, shift, [zero]
        for tick, ns in sorted(samples):
            if tick >= self.used[-1][0] + SPACING and ns >= self.used[-1][1]:
                self.used.append((tick, ns))

    def nominal(self, ticks):
        return min((ticks * self.mult) >> self.shift, TOP)

    def mono(self, tick):
        known = [i for i, (t, _) in enumerate(self.used) if t <= tick]
        if not known:
            tick0, ns0 = self.used[0]
            return max(0, ns0 - self.nominal(tick0 - tick))
        i = known[-1]
        tick0, ns0 = self.used[i]
        if i + 1 == len(self.used):
            return min(ns0 + self.nominal(tick - tick0), TOP)
        tick1, ns1 = self.used[i + 1]
        return ns0 + (tick - tick0) * (ns1 - ns0) // (tick1 - tick0)

    def span(self, end, duration):
        return self.mono(end) - self.mono(max(0, end - duration))


def maps():
    yield (0, 0), 1, 0, []
    yield (1000, 500), 1, 0, []
    rate = (5 << 32) // 16  # 3.2 GHz
    yield (10**12, 7 * 10**12), rate, 32, []
    yield (10**12, 7 * 10**12), rate, 32, [
        (10**12 + SPACING - 1, 7 * 10**12 + 9),  # one tick too near
        (10**12 + SPACING, 7 * 10**12 + 20_971_000),
        (10**12 + SPACING, 7 * 10**12 + 20_972_000),  # same tick, later time: too near then
        (10**12 + 2 * SPACING, 7 * 10**12 + 20_970_999),  # time steps back
        (10**12 + 3 * SPACING, 7 * 10**12 + 62_914_561),
        (10**12 - SPACING, 1),  # before zero
    ]
    yield (0, 0), 1, 0, [(SPACING, 5), (2 * SPACING, 5), (3 * SPACING, TOP)]
    yield (5, TOP - 10), TOP, 0, []
    yield (TOP - 5, 100), TOP, 63, [(TOP, 7)]
    yield (3, 9), 3, 64 - 1, [(TOP - SPACING, TOP - 1), (TOP, TOP)]
    rng = random.Random(20240607)
    for _ in range(12):
        zero = (rng.getrandbits(rng.randint(1, 62)), rng.getrandbits(62))
        mult, shift = rng.getrandbits(rng.randint(1, 40)) + 1, rng.randint(0, 40)
        samples, (tick, ns) = [], zero
        for _ in range(rng.randint(0, 9)):
            tick += rng.getrandbits(28)
            ns = max(0, ns + rng.getrandbits(27) - rng.getrandbits(22))
            samples.append((tick, ns))
        rng.shuffle(samples)
        yield zero, mult, shift, samples


def ticks_for(zero, samples, rng):
    near = [t for t, _ in samples] + [zero[0]]
    ticks = {0, TOP, *(t + d for t in near for d in (-1, 0, 1, 12345, SPACING // 3, SPACING))}
    low, high = min(near), max(near)
    ticks |= {rng.randint(low, high) for _ in range(6)}
    return sorted(t for t in ticks if 0 <= t <= TOP)


def main():
    rng = random.Random(7)
    print("# Tick to nanoseconds, SPEC.md section 10. Written by ticks.py; do not edit.")
    print("# map ZERO_TICK ZERO_NS MULT SHIFT, then: sample TICK NS · tick TICK MONO_NS ·")
    print("# span END_TICK DURATION_TICKS DURATION_NS")
    for zero, mult, shift, samples in maps():
        print("map", *zero, mult, shift)
        for sample in samples:
            print("sample", *sample)
        made = Map(zero, mult, shift, samples)
        ticks = ticks_for(zero, samples, rng)
        for tick in ticks:
            print("tick", tick, made.mono(tick))
        for end in ticks[:: max(1, len(ticks) // 5)]:
            for duration in (0, 1, 1000, SPACING + 1, TOP):
                print("span", end, duration, made.span(end, duration))


main()
