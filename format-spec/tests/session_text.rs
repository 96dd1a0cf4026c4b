//! Requests to a session and their answers, and the names of modes and clocks: each is read as it
//! was written, and no text makes a reader panic.

use proptest::prelude::*;
use ringmark_format::schema::Level;
use ringmark_format::session::{Clock, Mode};
use ringmark_format::session_text::{
    SessionAnswer, SessionRequest, Switch, TypePattern, WrongRequest,
};

/// Patterns, categories and directives: words, whatever else is in them.
const WORDS: [&str; 5] = ["*", "request.*", "a=b,c", "level=info", "é:"];

fn requests(word: &'static str) -> Vec<SessionRequest<'static>> {
    let levels = Level::ALL.iter().copied().map(Some).chain([None]);
    let patterns = levels.flat_map(|level| {
        [None, Some(word)].map(|category| TypePattern {
            name: word,
            level,
            category,
            inside: category,
        })
    });
    let switched = patterns
        .flat_map(|pattern| Switch::ALL.map(|switch| SessionRequest::Switch(switch, pattern)));
    let others = [SessionRequest::Ping, SessionRequest::Filter(word)];
    switched.chain(others).collect()
}

#[test]
fn a_request_is_read_as_it_was_written() {
    for request in WORDS.into_iter().flat_map(requests) {
        let text = request.to_string();
        assert_eq!(SessionRequest::parse(&text), Ok(Some(request)), "{text}");
    }
}

#[test]
fn an_answer_is_read_as_it_was_written() {
    let none = SessionAnswer::NoneMatches;
    for answer in [
        SessionAnswer::Pong,
        SessionAnswer::Enabled(0),
        SessionAnswer::Enabled(u64::MAX),
        SessionAnswer::Matched(1),
        none(vec![]),
        none(vec!["one", "two words", "three=3"]),
    ] {
        let text = answer.to_string();
        assert_eq!(SessionAnswer::parse(&text), Some(answer), "{text}");
    }
    let later = SessionAnswer::parse("matched=3 of=9");
    assert_eq!(later, Some(SessionAnswer::Matched(3)));
    assert_eq!(SessionAnswer::parse("unheard=of"), None);
    assert_eq!(SessionAnswer::parse("matched=many"), None);
}

/// Spelled out, since programs of earlier versions are at the other end.
#[test]
fn the_words_are_those_of_the_specification() {
    let pattern = TypePattern {
        name: "request.*",
        level: Some(Level::Info),
        category: Some("noise"),
        inside: Some("order[id=42]"),
    };
    for (request, text) in [
        (SessionRequest::Ping, "ping"),
        (
            SessionRequest::Filter("info,hyper=debug"),
            "filter info,hyper=debug",
        ),
        (
            SessionRequest::Switch(Switch::Enable, pattern),
            "enable request.* level=info category=noise inside=order[id=42]",
        ),
        (
            SessionRequest::Switch(Switch::Disable, pattern),
            "disable request.* level=info category=noise inside=order[id=42]",
        ),
    ] {
        assert_eq!(request.to_string(), text);
    }
    let spaced = "  disable \t request.*  category=noise inside=order[id=42] level=info ";
    assert_eq!(
        SessionRequest::parse(spaced),
        Ok(Some(SessionRequest::Switch(Switch::Disable, pattern)))
    );
    let none = SessionAnswer::NoneMatches(vec!["a", "b"]).to_string();
    assert_eq!(none, "matched=0 closest=a,b");
    assert_eq!(
        SessionRequest::parse("filter"),
        Ok(Some(SessionRequest::Filter("")))
    );
}

#[test]
fn half_a_request_is_refused() {
    let refused = |text: &str| SessionRequest::parse(text).unwrap_err();
    assert_eq!(refused("enable"), WrongRequest::NoPattern);
    assert_eq!(
        refused("disable * level=loud").to_string(),
        "level: found \"loud\", expected error, warn, info, debug or trace"
    );
    let option = WrongRequest::Option("colour=red".into());
    assert_eq!(refused("disable * colour=red"), option);
    for other in ["", "trace start", "Ping", "enabled *"] {
        assert_eq!(SessionRequest::parse(other), Ok(None), "{other}");
    }
}

#[test]
fn modes_and_clocks_are_found_by_their_names_and_numbers() {
    for mode in Mode::ALL {
        assert_eq!(Mode::parse(mode.name()), Some(mode));
        assert_eq!(Mode::from_u32(mode as u32), Some(mode));
    }
    for clock in Clock::ALL {
        assert_eq!(Clock::parse(clock.name()), Some(clock));
        assert_eq!(Clock::from_u32(clock as u32), Some(clock));
    }
    assert_eq!((Mode::parse("Discard"), Clock::parse("")), (None, None));
}

proptest! {
    #[test]
    fn no_text_makes_a_reader_panic(
        verb in prop_oneof![Just("enable "), Just("filter "), Just(""), Just("matched=")],
        text in ".{0,60}",
    ) {
        let text = format!("{verb}{text}");
        let _ = SessionRequest::parse(&text);
        let _ = SessionAnswer::parse(&text);
    }
}
