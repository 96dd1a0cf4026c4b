//! Promise: a function whose compiler left no patch site is traced only where each byte that changes is
//! understood. Each reason against it is found, the instructions are those that another disassembler sees,
//! and no file brings the analysis down.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ringmark_movable::{Form, Function, LeadKind, Movable, Refusal, functions};
use ringmark_tests::fixture::Fixture;
use ringmark_tests::functions::{LIMIT, compile};
use ringmark_tests::random::Random;
use ringmark_tests::{is_long, log_skip, require_tools, run};

const SHARED: &str = "-shared -nostdlib -Wl,-z,notext -Wl,--no-warn-rwx-segments";

fn traps(fixture: &Fixture) -> PathBuf {
    compile(fixture, "traps.S", "traps.so", SHARED)
}

fn by_name(file: &Path) -> BTreeMap<String, Function> {
    let found = functions(&fs::read(file).expect("a file"), None).expect("an ELF file");
    let named = found.into_iter().filter_map(|function| {
        let name = String::from_utf8(function.names.first()?.clone()).ok()?;
        Some((name, function))
    });
    named.collect()
}

#[test]
fn what_can_be_moved_has_its_form() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("movable-forms");
    let found = by_name(&traps(&fixture));
    let form = |name: &str| found[name].judged.expect(name).form;
    assert_eq!(form("one_store"), Form::OneStore);
    assert_eq!(form("one_store_of_a_return"), Form::OneStore);
    assert!(matches!(form("hop"), Form::Hop { .. }));
    assert_eq!(form("several"), Form::Several);
    assert_eq!(form("flags_of_its_own"), Form::Several);
    assert_eq!(form("calls_last"), Form::Call);
    let keeps = |name: &str| found[name].keeps_return_address;
    assert!(keeps("reads_return_address") && keeps("jumps_to_a_reader") && !keeps("hop"));
}

#[test]
fn whatever_leads_into_the_first_bytes_is_seen() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("movable-leads");
    let found = by_name(&traps(&fixture));
    for (name, kind) in [
        ("jumped_into", LeadKind::Jump),
        ("called_into", LeadKind::Call),
        ("table_into", LeadKind::Table),
        ("pointed_into", LeadKind::Pointer),
    ] {
        let expected = (kind, found[name].at + 1);
        match found[name].judged.expect_err(name) {
            Refusal::LeadsInto { kind, to, .. } => assert_eq!((kind, to), expected, "{name}"),
            other => panic!("{name}: {other}"),
        }
    }
    let symbol = found["symbol_into"].at + 1;
    let kind = LeadKind::Symbol;
    let expected = Refusal::LeadsInto {
        kind,
        from: symbol,
        to: symbol,
    };
    assert_eq!(found["symbol_into"].judged, Err(expected));
    // A label is computed inside the function; distances may count from it.
    for (name, from, to) in [("computed_into", 3, 1), ("distances_from_a_label", 4, 23)] {
        let at = found[name].at;
        let expected = Refusal::Label {
            from: at + from,
            to: at + to,
        };
        assert_eq!(found[name].judged, Err(expected), "{name}");
    }
    let from = found["loops"].at + 3;
    let refused = found["loops"].judged.expect_err("a loop");
    assert_eq!(refused, Refusal::Loop { from });
}

#[test]
fn each_trap_is_seen() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("movable-traps");
    let found = by_name(&traps(&fixture));
    let at = |name: &str| found[name].at;
    let second = |name: &str| at(name) + 1;
    let (call, fixed) = (second("call_inside"), second("call_fixed"));
    let (trap, undefined, outer) = (at("traps"), at("undefined"), at("outer"));
    for (name, expected) in [
        ("call_inside", Refusal::CallInside { at: call }),
        ("call_fixed", Refusal::CallFixed { at: fixed }),
        ("transaction", Refusal::Transaction),
        ("traps", Refusal::Trap { at: trap }),
        ("reads_flags", Refusal::ReadsFlags),
        ("pops", Refusal::PopsReturnAddress),
        ("short_jump", Refusal::ShortJump),
        ("undefined", Refusal::Undefined { at: undefined }),
        ("too_short", Refusal::Short { bytes: 2 }),
        ("no_frame", Refusal::NoFrame),
        ("not_called", Refusal::NotCalled),
        ("of_a_signal", Refusal::Signal),
        ("outermost", Refusal::Outermost),
        ("inside", Refusal::Inside { around: outer }),
        ("part.cold", Refusal::Part),
        ("resolver", Refusal::Resolver),
        ("relocated", Refusal::Relocated),
        ("SafeFetch32", Refusal::KnownPlaces),
        ("restartable", Refusal::KnownPlaces),
        ("writable", Refusal::Writable),
    ] {
        assert_eq!(found[name].judged, Err(expected), "{name}");
    }
}

/// Libraries and programs as the distribution has them, as far as they are here.
fn packaged() -> Vec<PathBuf> {
    let maps = fs::read_to_string("/proc/self/maps").expect("maps");
    let mut paths = maps.lines().filter_map(|line| line.get(line.find('/')?..));
    let libc = paths.find(|path| path.contains("/libc.so") || path.contains("/libc-2"));
    let libc = PathBuf::from(libc.expect("the C library"));
    let folder = libc.parent().expect("a folder").to_owned();
    let mut files = vec![libc];
    files.extend(["libcrypto.so.3", "libstdc++.so.6"].map(|name| folder.join(name)));
    // Its functions are in the program or in a library of its own.
    let maps = "print(open('/proc/self/maps').read())";
    if require_tools(&["python3"]) {
        let python = run(Command::new("python3").args(["-c", maps]), LIMIT).expect("python3");
        let text = python.stdout_text();
        let paths = text.lines().filter_map(|line| line.get(line.find('/')?..));
        let is_python = |path: &&str| {
            path.rsplit('/')
                .next()
                .is_some_and(|name| name.contains("python3."))
        };
        let mut found: Vec<PathBuf> = paths.filter(is_python).map(PathBuf::from).collect();
        found.dedup();
        files.append(&mut found);
    }
    files.retain(|file| {
        let is_there = file.exists();
        if !is_there {
            log_skip(&format!("{} is not here", file.display()));
        }
        is_there
    });
    files
}

/// The addresses of instructions that objdump sees where it begins with each function's first byte. Each
/// function is written with a label of its own, because objdump begins anew at each.
fn seen_by_objdump(fixture: &Fixture, code: &[(u64, Vec<u8>)]) -> BTreeMap<u64, Vec<u64>> {
    let mut source = String::from(".text\n");
    for (at, bytes) in code {
        let _ = writeln!(source, ".type f{at:x}, @function\nf{at:x}:");
        let bytes: Vec<_> = bytes.iter().map(u8::to_string).collect();
        let _ = writeln!(source, ".byte {}", bytes.join(","));
    }
    let (text, object) = (fixture.path("code.s"), fixture.path("code.o"));
    fs::write(&text, source).expect("a file");
    let mut assemble = Command::new("gcc");
    let assemble = assemble.arg("-c").arg(&text).arg("-o").arg(&object);
    let _ = run(assemble, LIMIT).expect("gcc").expect_code(0);
    let mut objdump = Command::new("objdump");
    let objdump = objdump
        .args(["-d", "-z", "--no-show-raw-insn"])
        .arg(&object);
    let text = objdump.output().expect("objdump").stdout;
    let (mut seen, mut function, mut begin) = (BTreeMap::<_, Vec<_>>::new(), 0, 0);
    for line in String::from_utf8_lossy(&text).lines() {
        let number = |text: &str| u64::from_str_radix(text.trim(), 16).ok();
        let label = line
            .strip_suffix(">:")
            .and_then(|line| line.split_once(" <f"));
        if let Some((at, name)) = label {
            (function, begin) = (number(name).unwrap_or(0), number(at).unwrap_or(0));
        } else if let Some(at) = line.split_once(":\t").and_then(|(at, _)| number(at)) {
            seen.entry(function)
                .or_default()
                .push(function + (at - begin));
        }
    }
    seen
}

/// The bytes of a file's code at an address.
fn code_at(file: &[u8], at: u64, length: usize) -> Vec<u8> {
    use object::{Object, ObjectSegment};
    let elf = object::File::parse(file).expect("an ELF file");
    let inside = |segment: &object::Segment<'_, '_>| {
        segment
            .data_range(at, length as u64)
            .ok()
            .flatten()
            .map(<[u8]>::to_vec)
    };
    elf.segments()
        .find_map(|segment| inside(&segment))
        .unwrap_or_default()
}

/// That no byte is changed for two functions.
fn changed_once<'m>(path: &Path, accepted: impl Iterator<Item = &'m Movable>) {
    let mut changed: Vec<_> = accepted
        .flat_map(|movable| {
            let at = movable.site;
            match movable.form {
                Form::Hop { at: hop, .. } => vec![(at, at + 2), (hop, hop + 5)],
                _ => vec![(at, at + 5)],
            }
        })
        .collect();
    changed.sort_unstable();
    for two in changed.windows(2) {
        assert!(two[0].1 <= two[1].0, "{}: {two:x?}", path.display());
    }
}

#[test]
fn another_disassembler_sees_the_same_instructions() {
    if !require_tools(&["gcc", "objdump"]) {
        return;
    }
    let fixture = Fixture::new("movable-objdump");
    for path in packaged() {
        let file = fs::read(&path).expect("a file");
        let found = functions(&file, None).expect("an ELF file");
        let accepted: Vec<_> = found
            .iter()
            .filter_map(|function| Some((function.at, function.judged.ok()?)))
            .collect();
        let code: Vec<_> = accepted
            .iter()
            .map(|(at, movable)| {
                let length = movable.site + u64::from(movable.bytes) - at;
                (*at, code_at(&file, *at, length as usize + 16))
            })
            .filter(|(_, code)| !code.is_empty())
            .collect();
        assert_eq!(code.len(), accepted.len(), "{}", path.display());
        let seen = seen_by_objdump(&fixture, &code);
        let mut wrong = Vec::new();
        for (at, movable) in &accepted {
            let boundaries = [movable.site, movable.site + u64::from(movable.bytes)];
            let seen = seen.get(at).map_or(&[][..], Vec::as_slice);
            if !boundaries.iter().all(|boundary| seen.contains(boundary)) {
                wrong.push(format!("{at:x}: {movable:x?}, seen {seen:x?}"));
            }
        }
        println!("{}: {} accepted", path.display(), accepted.len());
        assert!(wrong.is_empty(), "{}: {wrong:#?}", path.display());
        changed_once(&path, accepted.iter().map(|(_, movable)| movable));
        let functions = found
            .iter()
            .filter(|one| !matches!(one.judged, Err(Refusal::NotCalled)));
        let all = functions.count();
        let share = accepted.len() as f64 / all.max(1) as f64;
        assert!(all < 100 || share > 0.9, "{}: {share}", path.display());
    }
}

#[test]
fn any_file_ends_in_a_list_or_an_error() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("movable-hostile");
    let sound = fs::read(traps(&fixture)).expect("a file");
    let mut random = Random::seeded();
    let mut lists = 0;
    for round in 0..if is_long() { 20_000 } else { 1_500 } {
        let mut file = sound.clone();
        for _ in 0..1 + random.below(8) {
            let at = random.below(file.len() as u64) as usize;
            // In headers and tables, extremes do more harm than noise.
            file[at] = match random.below(3) {
                0 => 0,
                1 => 0xff,
                _ => random.below(256) as u8,
            };
        }
        if round % 7 == 0 {
            file.truncate(random.below(file.len() as u64) as usize);
        }
        lists += usize::from(functions(&file, Some(&sound)).is_ok());
        let _ = functions(&sound, Some(&file));
    }
    assert!(lists > 0, "no file was read at all");
}
