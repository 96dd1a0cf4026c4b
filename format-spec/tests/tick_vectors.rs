//! `vectors/ticks.txt`, computed elsewhere with big integers, equals what [`TickMap`] computes.

use std::path::Path;

use ringmark_format::clock::{Rate, Sample, TickMap};

struct Vectors {
    zero: Sample,
    rate: Rate,
    samples: Vec<Sample>,
    ticks: Vec<[u64; 2]>,
    spans: Vec<[u64; 3]>,
}

fn numbers<const N: usize>(line: &str) -> [u64; N] {
    let parsed: Vec<u64> = line
        .split_whitespace()
        .skip(1)
        .map(|n| n.parse().unwrap_or_else(|e| panic!("{line}: {e}")))
        .collect();
    parsed
        .try_into()
        .unwrap_or_else(|_| panic!("{line}: expected {N} numbers"))
}

fn parse(text: &str) -> Vec<Vectors> {
    let mut maps: Vec<Vectors> = Vec::new();
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        let word = line.split(' ').next().unwrap_or_default();
        if word == "map" {
            let [tick, mono_ns, mult, shift] = numbers(line);
            let shift = shift as u32;
            maps.push(Vectors {
                zero: Sample { tick, mono_ns },
                rate: Rate { mult, shift },
                samples: Vec::new(),
                ticks: Vec::new(),
                spans: Vec::new(),
            });
            continue;
        }
        let map = maps.last_mut().expect("a map comes first");
        match word {
            "sample" => {
                let [tick, mono_ns] = numbers(line);
                map.samples.push(Sample { tick, mono_ns });
            }
            "tick" => map.ticks.push(numbers(line)),
            "span" => map.spans.push(numbers(line)),
            _ => panic!("{line}: unknown"),
        }
    }
    maps
}

fn vectors() -> Vec<Vectors> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors/ticks.txt");
    parse(&std::fs::read_to_string(path).expect("vectors/ticks.txt"))
}

/// What does not agree, as text.
fn disagreements(vectors: &Vectors) -> Vec<String> {
    let map = TickMap::new(vectors.zero, vectors.rate, vectors.samples.clone());
    let mut found = Vec::new();
    for [tick, expected] in &vectors.ticks {
        let got = map.mono_ns(*tick);
        if got != *expected {
            found.push(format!("tick {tick}: {got}, expected {expected}"));
        }
    }
    for [end, duration, expected] in &vectors.spans {
        let got = map.mono_ns(*end) - map.mono_ns(end.saturating_sub(*duration));
        if got != *expected {
            found.push(format!(
                "span {duration} to {end}: {got}, expected {expected}"
            ));
        }
    }
    found
}

#[test]
fn every_vector_agrees() {
    let all = vectors();
    assert!(all.len() >= 20, "{} maps", all.len());
    let ticks: usize = all.iter().map(|v| v.ticks.len()).sum();
    let spans: usize = all.iter().map(|v| v.spans.len()).sum();
    assert!(ticks >= 400 && spans >= 400, "{ticks} ticks, {spans} spans");
    for (i, map) in all.iter().enumerate() {
        assert_eq!(disagreements(map), Vec::<String>::new(), "map {i}");
    }
}

#[test]
fn a_wrong_vector_is_seen() {
    let mut map = vectors().swap_remove(3);
    map.ticks[0][1] += 1;
    assert_eq!(disagreements(&map).len(), 1);
    let mut map = vectors().swap_remove(3);
    map.samples.remove(1);
    assert!(!disagreements(&map).is_empty(), "a used sample is gone");
}
