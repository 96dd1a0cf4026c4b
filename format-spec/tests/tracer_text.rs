//! Requests to tracers and their answers: each line is read as it was written, whatever its texts
//! hold, and no text makes a reader panic.

use std::borrow::Cow;

use proptest::prelude::*;
use ringmark_format::function::TracerKind;
use ringmark_format::tracer_text::{
    AnswerLine, Count, Exits, Gathered, GivenUp, Histogram, LeaseState, MovedJump, MovedSite,
    NamedLine, ProfileEvent, Request, RequestLine, Site, Syntax, TracerLine, TracerState,
    TrampolineRange, TriggerLine, Untraceable, Verb, WrongLine, count, starts,
};

/// Texts as they come from symbol tables and users.
const TEXTS: [&str; 5] = [
    "parse_*",
    "ns::f<int, char>(a b)",
    "x=y filter=z",
    "on 12 3 sleds é",
    "a\tb: c,1:2",
];

fn request_lines(text: &str, number: u64) -> Vec<RequestLine<'_>> {
    let mut lines = vec![
        RequestLine::Tracer(text),
        RequestLine::Filter(text),
        RequestLine::Notrace(text),
        RequestLine::MinBytes(number),
        RequestLine::Args((number % 7) as u8),
        RequestLine::Result(true),
        RequestLine::Result(false),
        RequestLine::MinNs(number),
        RequestLine::MaxDepth(number as u32),
        RequestLine::Inside(text),
        RequestLine::Caller(text),
        RequestLine::Trigger(text),
        RequestLine::NoTriggers,
        RequestLine::BudgetPpm(number),
        RequestLine::LeaseMs(number),
        RequestLine::From(number),
        RequestLine::Refused,
        RequestLine::Module {
            base: number,
            build_id: "00ff",
        },
        RequestLine::More,
        RequestLine::Put,
        RequestLine::Anew,
        RequestLine::Await(7),
    ];
    let site = MovedSite {
        function: number,
        bytes: number,
        site: number,
        jump: MovedJump::OneStore,
        keeps_return_address: true,
        code: "b801000000",
        name: text,
    };
    let with_hop = MovedSite {
        jump: MovedJump::Hop(number, "cccccccccc"),
        keeps_return_address: false,
        ..site
    };
    let over_several = MovedSite {
        jump: MovedJump::Several,
        ..site
    };
    lines.extend([site, with_hop, over_several].map(RequestLine::Moved));
    lines.extend([Syntax::Glob, Syntax::Regex].map(RequestLine::Match));
    lines.extend(TracerKind::ALL.iter().copied().map(RequestLine::Kind));
    lines
}

/// A tracer without any optional word, and one with all of them.
fn tracer_lines<'a>(word: &'a str, rest: &'a str, n: u64) -> [TracerLine<'a>; 2] {
    let plain = TracerLine {
        name: word,
        number: n,
        kind: "graph",
        state: TracerState::Leased.name(),
        is_default: n.is_multiple_of(2),
        functions: n,
        args: n % 7,
        result: n % 2 == 1,
        min_ns: None,
        max_depth: None,
        is_paused: false,
        wants_snapshot: false,
        budget_ppm: None,
        cost_ppm: None,
        filter: rest,
    };
    let full = TracerLine {
        min_ns: Some(n),
        max_depth: Some(n),
        is_paused: true,
        wants_snapshot: true,
        budget_ppm: Some(n),
        cost_ppm: Some(0),
        ..plain
    };
    [plain, full]
}

/// What belongs to a tracer and has patterns.
fn lines_with_patterns<'a>(word: &'a str, rest: &'a str, n: u64) -> [AnswerLine<'a>; 3] {
    let named = NamedLine {
        tracer: word,
        functions: n,
        patterns: rest,
    };
    let trigger = TriggerLine {
        tracer: word,
        functions: n,
        trigger: rest,
    };
    [
        AnswerLine::Trigger(trigger),
        AnswerLine::Inside(named),
        AnswerLine::Caller(named),
    ]
}

/// Every kind of line. `field` has no tab, `word` no space either.
fn answer_lines<'a>(word: &'a str, field: &'a str, rest: &'a str, n: u64) -> Vec<AnswerLine<'a>> {
    let site = |exits| Site {
        is_on: n.is_multiple_of(2),
        address: n,
        bytes: n / 3,
        exits,
        name: rest,
    };
    let gathered = Gathered {
        calls: n,
        open: 1,
        unwound: 2,
        total: n / 2,
        own: n / 3,
        sum: n / 5,
        min: 3,
        max: n / 7,
        histogram: Histogram::default(),
        function: Cow::Borrowed(field),
        module: Cow::Borrowed(rest),
    };
    let mut lines = vec![
        AnswerLine::Note(rest),
        AnswerLine::Refusal(rest),
        AnswerLine::ShadowStack(true),
        AnswerLine::ShadowStack(false),
        AnswerLine::GivenUp(GivenUp {
            tracer: word,
            ppm: n,
            function: rest,
        }),
        AnswerLine::Snapshot(rest),
        AnswerLine::Trampolines(TrampolineRange {
            at: n,
            count: n,
            bytes: n,
            entry: n,
            site: n,
        }),
        AnswerLine::Module(rest),
        AnswerLine::Untraceable(Untraceable {
            address: n,
            name: field,
            reason: rest,
        }),
        AnswerLine::Gathered(gathered.clone()),
        AnswerLine::Gathered(Gathered {
            histogram: Histogram(vec![(96, n), (192, 1)]),
            ..gathered
        }),
    ];
    lines.extend(lines_with_patterns(word, rest, n));
    lines.extend(tracer_lines(word, rest, n).map(AnswerLine::Tracer));
    lines.extend(LeaseState::ALL.map(AnswerLine::State));
    lines.extend(Count::ALL.map(|count| AnswerLine::Count(count, n)));
    lines.extend([Exits::Address, Exits::Sleds, Exits::None].map(|e| AnswerLine::Site(site(e))));
    lines
}

#[test]
fn a_request_is_read_as_it_was_written() {
    for (text, verb) in TEXTS.iter().flat_map(|t| Verb::ALL.map(|verb| (t, verb))) {
        let lines = request_lines(text, 1 << 40);
        let request = Request { verb, lines };
        assert_eq!(Request::parse(&request.to_string()), Ok(request));
    }
}

#[test]
fn an_answer_is_read_as_it_was_written() {
    for rest in TEXTS {
        let field = rest.replace('\t', "-");
        let lines = answer_lines("graph", &field, rest, u64::MAX);
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let read: Vec<_> = AnswerLine::all(&text).collect();
        assert_eq!(read, lines);
        for wanted in Count::ALL {
            assert_eq!(count(&text, wanted), Some(u64::MAX));
        }
    }
}

#[test]
fn what_a_later_version_adds_is_passed_over() {
    let text = "unheard=of\nwhatever\nmaybe 12 x\nmatched=3\ntracer=t number=1 kind=odd colour=red \
                state=new default=true functions=2 filter=a b\n";
    let [AnswerLine::Count(Count::Matched, 3), AnswerLine::Tracer(t)] =
        &AnswerLine::all(text).collect::<Vec<_>>()[..]
    else {
        panic!("{:?}", AnswerLine::all(text).collect::<Vec<_>>());
    };
    assert_eq!(
        (t.name, t.kind, t.state, t.filter),
        ("t", "odd", "new", "a b")
    );
    let more = "function=1 0 0 9 8 7 6 5 4:1 3 2 1\tf\tm";
    let Some(AnswerLine::Gathered(gathered)) = AnswerLine::parse(more) else {
        panic!("more numbers than are known");
    };
    assert_eq!((gathered.max, gathered.histogram.0), (5, vec![(4, 1)]));
    let Some(AnswerLine::Site(site)) = AnswerLine::parse("on ff 8 otherwise f") else {
        panic!("another kind of exit");
    };
    assert_eq!((site.address, site.exits), (255, Exits::Address));
}

#[test]
fn half_an_order_is_refused() {
    let refused = |text: &str| Request::parse(text).unwrap_err();
    assert_eq!(refused(""), WrongLine::Verb(String::new()));
    assert_eq!(refused("trace halt\n"), WrongLine::Verb("halt".into()));
    let said = refused("trace halt\n").to_string();
    assert!(
        said.ends_with(", renew, profile, functions or sites"),
        "{said}"
    );
    let key = WrongLine::Key("fliter".into());
    assert_eq!(refused("trace start\nfilter=a\nfliter=b\n"), key);
    for (line, expected) in [
        ("args=7", "a number up to 6"),
        ("kind=tree", "function, graph, callback or profile"),
        ("match=sed", "glob or regex"),
        ("lease_ms=-1", "a number"),
        ("result=false", "on or off"),
        ("refused=off", "on"),
        ("from=18446744073709551616", "a number"),
    ] {
        let said = refused(&format!("trace start\n{line}\n")).to_string();
        assert!(said.contains("found") && said.ends_with(expected), "{said}");
    }
}

#[test]
fn starts_are_told_apart() {
    let two = vec![
        vec!["tracer=graph", "filter=a;b"],
        vec!["tracer=t", "args=1"],
    ];
    assert_eq!(
        starts("tracer=graph\n filter=a;b\n\ntracer=t\nargs=1\n"),
        two
    );
    let nameless = vec![vec!["filter=*"], vec!["tracer=t"]];
    assert_eq!(starts(" filter=* ;; tracer=t;"), nameless);
    assert!(starts(" ; ").is_empty() && starts(" \n").is_empty());
}

/// Every verb, key and word stands in the specification.
#[test]
fn the_specification_lists_all_of_it() {
    let spec = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/SPEC.md")).unwrap();
    let (_, section) = spec.split_once("### Requests to tracers").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let lines = request_lines("t", 1)
        .into_iter()
        .map(|line| line.to_string());
    let answers = answer_lines("t", "t", "t", 1).into_iter();
    let mut words: Vec<_> = Verb::ALL.map(|verb| verb.name().to_owned()).into();
    for line in lines.chain(answers.map(|line| line.to_string())) {
        let keys = line.split(' ').filter_map(|word| word.split_once('='));
        words.extend(keys.map(|(key, _)| key.to_owned()));
    }
    assert!(words.len() > 60, "{words:?}");
    for word in words {
        let is_there = [format!("`{word}`"), format!("`{word}=")];
        let is_there = is_there.iter().any(|text| section.contains(text));
        assert!(is_there, "{word:?} is not in SPEC.md");
    }
}

/// Text with what lines, fields and words are made of.
fn hostile() -> impl Strategy<Value = String> {
    let pieces = prop_oneof![
        Just("\n"),
        Just("\r"),
        Just("\t"),
        Just(" "),
        Just("="),
        Just(","),
        Just(":"),
        Just("-"),
        Just(" filter="),
        Just("tracer"),
        Just("function="),
        Just("trigger="),
        Just("given_up="),
        Just("on "),
        Just("no "),
        Just("18446744073709551616"),
        Just("7"),
        Just("é"),
        Just("trace "),
        Just("start"),
        Just("number="),
        Just("kind="),
        Just("state="),
        Just("default="),
    ];
    proptest::collection::vec(pieces, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_text_makes_a_reader_panic(text in prop_oneof![hostile(), any::<String>()]) {
        let _ = Request::parse(&text);
        let _ = Request::parse(&format!("trace start\n{text}"));
        for line in AnswerLine::all(&text) {
            prop_assert_eq!(AnswerLine::parse(&line.to_string()).is_some(), true);
        }
        let _ = (starts(&text), Histogram::parse(&text));
    }

    #[test]
    fn no_text_makes_two_lines_or_other_fields(text in hostile(), number in any::<u64>()) {
        for line in request_lines(&text, number) {
            prop_assert_eq!(line.to_string().lines().count(), 1);
        }
        for line in answer_lines(&text, &text, &text, number) {
            let written = line.to_string();
            prop_assert_eq!(written.lines().count(), 1);
            let read = AnswerLine::parse(&written);
            let same = read.as_ref().map(std::mem::discriminant);
            prop_assert_eq!(same, Some(std::mem::discriminant(&line)), "{}", &written);
            prop_assert_eq!(read.map(|line| line.to_string()), Some(written));
        }
    }
}

/// Stands in for the producer's `event!`: names and values of the fields, as texts.
macro_rules! fields {
    (target: $target:literal, $name:literal, $($field:ident = $value:expr,)*) => {
        (($name, $target), [$((stringify!($field), $value.to_string())),*])
    };
}

#[test]
fn a_profile_event_is_read_as_it_was_written() {
    let line = "10 1 2 5000 4000 6000 100 3000 96:4,192:5,3072:1\tf(int, char)\tprogram";
    let gathered = Gathered::parse(line).unwrap().into_owned();
    let (names, fields) = ringmark_format::emit_function_profile!([fields] "calls", 7, gathered);
    assert_eq!(names, (ProfileEvent::NAME, ProfileEvent::TARGET));
    let mut read = ProfileEvent::default();
    for (field, value) in &fields {
        let before = read.clone();
        match value.parse() {
            Ok(number) => read.take_number(field.as_bytes(), number),
            Err(_) => read.take_text(field.as_bytes(), value),
        }
        assert_ne!(read, before, "{field} is not read");
    }
    assert_eq!(
        (read.tracer.as_deref(), read.id, read.gathered),
        (Some("calls"), 7, gathered)
    );
    let (names, fields) = ringmark_format::emit_function_profile!([fields] begin "calls");
    assert_eq!(names, (ProfileEvent::BEGIN, ProfileEvent::TARGET));
    assert_eq!(fields, [("tracer", "calls".to_owned())]);
    let (names, fields) = ringmark_format::emit_function_profile!([fields] end "calls", 3);
    assert_eq!(names, (ProfileEvent::END, ProfileEvent::TARGET));
    let mut end = ProfileEvent::default();
    end.take_number(fields[1].0.as_bytes(), 3);
    assert_eq!(end.uncounted, 3);
}
