//! No test fails for the machine's sake: how busy it is, which ports others take, what is installed.
//!
//! A test waits for a state and takes any time to reach it; counts and orders of events take the place of bars in time.
//! Benches may measure.

use super::scan::{Scanned, closing, is_ident, line_of, words};
use super::sources::Source;

/// Names of times that end a hang and say nothing of speed.
const LIMITS: [&str; 6] = ["SOON", "LONG", "LIMIT", "WITHIN", "SECONDS", "within"];

/// What a test may not do, by the name that exceptions give it, and what to do instead.
const ADVICE: [(&str, &str); 5] = [
    (
        "bar",
        "a bar in time: count, compare with a control of the same run, or measure in benches/",
    ),
    (
        "sleep",
        "a sleep in front of an assertion or a signal: wait for a state or a later event",
    ),
    (
        "silence",
        "silence as a proof: end at an answer, or at an event that comes later",
    ),
    (
        "port",
        "a port that was free a moment ago: have the program bind port 0, or hold it by ReservedPlace",
    ),
    (
        "version",
        "a program probed by its name: have it do in small what the test needs",
    ),
];

/// Each such place in test code, unless `allowed` lists it as (path, name, reason).
#[must_use]
pub fn check(source: &Source, allowed: &[(&str, &str, &str)]) -> Vec<String> {
    let code = test_code(source);
    let mut found = Vec::new();
    found.extend(bars(&code).map(|at| (at, "bar")));
    found.extend(sleeps(&code).map(|at| (at, "sleep")));
    found.extend(silences(&code).map(|at| (at, "silence")));
    found.extend(ports(&code, &source.text).map(|at| (at, "port")));
    found.extend(versions(&code, &source.text).map(|at| (at, "version")));
    let is_allowed = |name: &str| {
        let of_place = |(path, of, _): &&(&str, &str, &str)| *path == source.path && *of == name;
        allowed.iter().any(|entry| of_place(&entry))
    };
    found.retain(|(_, name)| !is_allowed(name));
    let told = found.into_iter().map(|(at, name)| {
        let advice = ADVICE.iter().find(|(of, _)| *of == name);
        let advice = advice.map_or("", |(_, text)| text);
        format!("{}:{}: {name}: {advice}", source.path, line_of(&code, at))
    });
    told.collect()
}

/// Exceptions of places that are fine by now.
#[must_use]
pub fn unused(sources: &[&Source], allowed: &[(&str, &str, &str)]) -> Vec<String> {
    let is_used = |path: &str, name: &str| {
        let source = sources.iter().find(|source| source.path == path);
        let found = source.map_or_else(Vec::new, |source| check(source, &[]));
        found
            .iter()
            .any(|line| line.contains(&format!(": {name}: ")))
    };
    let stale = allowed
        .iter()
        .filter(|(path, name, _)| !is_used(path, name));
    stale
        .map(|(path, name, _)| format!("{path}: {name}: an exception that nothing needs"))
        .collect()
}

/// The code that only tests run, each byte in its place.
fn test_code(source: &Source) -> String {
    let scanned = Scanned::new(&source.text);
    if source.is_test() || source.path.starts_with("tests/src/") {
        return scanned.code;
    }
    let bytes = scanned.code.bytes().zip(scanned.product.bytes());
    let kept = bytes.map(|(code, product)| {
        if code == product && code != b'\n' {
            b' '
        } else {
            code
        }
    });
    String::from_utf8_lossy(&kept.collect::<Vec<_>>()).into_owned()
}

/// The statement around a place: from behind the one before it to its end.
fn statement(code: &str, at: usize) -> &str {
    let begin = code[..at]
        .rfind([';', '{', '}'])
        .map_or(0, |before| before + 1);
    let mut end = at;
    while let Some(next) = code[end..].find([';', '{', '}', '(', '[']) {
        end += next;
        match code.as_bytes()[end] {
            b'(' | b'[' | b'{' => end = closing(code, end),
            _ => break,
        }
    }
    &code[begin..end.min(code.len())]
}

/// What `let` names in a statement that binds one name.
fn bound(statement: &str) -> Option<&str> {
    let name = statement.trim_start().strip_prefix("let ")?;
    let name = name.strip_prefix("mut ").unwrap_or(name);
    let name = &name[..name.find(|c| !is_ident(c))?];
    (!name.is_empty()).then_some(name)
}

/// Names that are bound to a value of `what`.
fn names_of<'c>(code: &'c str, what: &'c str) -> Vec<&'c str> {
    let statements = words(code, what).map(|at| statement(code, at));
    statements.filter_map(bound).collect()
}

/// Contents of the assertions, with their places.
fn assertions(code: &str) -> impl Iterator<Item = (usize, &str)> {
    words(code, "assert").filter_map(|at| {
        let open = at + "assert!".len();
        let is_call = code[at..].starts_with("assert!(");
        is_call.then(|| (at, &code[open..closing(code, open)]))
    })
}

fn bars(code: &str) -> impl Iterator<Item = usize> {
    let times = names_of(code, "elapsed");
    let found = assertions(code).filter(move |(_, content)| {
        let is_above = |of: &str| {
            words(content, of).any(|at| is_below_bar(content[at + of.len()..].trim_start()))
        };
        is_above("elapsed") || times.iter().any(|name| is_above(name))
    });
    found.map(|(at, _)| at)
}

/// Whether a time is compared with what follows as an upper bound that is no limit.
fn is_below_bar(behind: &str) -> bool {
    let behind = behind.strip_prefix("()").unwrap_or(behind).trim_start();
    let Some(bar) = behind.strip_prefix('<').filter(|bar| !bar.starts_with('<')) else {
        return false;
    };
    let bar = bar.trim_start_matches('=').trim_start();
    !LIMITS.iter().any(|limit| bar.starts_with(limit))
}

fn sleeps(code: &str) -> impl Iterator<Item = usize> {
    words(code, "sleep").filter(|&at| {
        if !code[at..].starts_with("sleep(") {
            return false;
        }
        let end = closing(code, at + "sleep".len());
        let Some(next) = code[end..]
            .trim_start()
            .trim_start_matches(".await")
            .strip_prefix(';')
        else {
            return false;
        };
        let next = next.trim_start();
        let next = &next[..next.find([';', '}']).unwrap_or(next.len())];
        let is_signal = [".signal(", ".kill(", "kill_process("]
            .iter()
            .any(|call| next.contains(call));
        next.starts_with("assert") || is_signal
    })
}

fn silences(code: &str) -> impl Iterator<Item = usize> {
    const WAITS: [&str; 2] = ["timeout", "recv_timeout"];
    const NOTHING: [&str; 2] = ["is_err", "unwrap_err"];
    // What is expected to come is no silence, whatever it is.
    let is_nothing = |text: &str| {
        let mut at = NOTHING.iter().filter_map(|of| words(text, of).next());
        at.any(|at| !text[..at].contains(".expect(") && !text[..at].contains(".unwrap()"))
    };
    let waits = WAITS
        .iter()
        .flat_map(|of| words(code, of).filter(|at| code[at + of.len()..].starts_with('(')));
    let found = waits.filter(move |&at| {
        let whole = statement(code, at);
        let of_name = bound(whole).is_some_and(|name| {
            let mut checks =
                assertions(code).filter(|(_, content)| words(content, name).next().is_some());
            checks.any(|(_, content)| is_nothing(content))
        });
        is_nothing(whole) || of_name
    });
    found.collect::<Vec<_>>().into_iter()
}

/// `text` has the strings that are blank in `code`.
fn ports(code: &str, text: &str) -> impl Iterator<Item = usize> {
    words(code, "TcpListener").filter(|&at| {
        let whole = statement(code, at);
        let open = at + "TcpListener::bind".len();
        if !code[open..].starts_with('(') || !text[open..closing(code, open)].contains(":0") {
            return false;
        }
        let is_dropped = |name: &str| {
            let behind = &code[at..];
            let mut uses = words(behind, name);
            uses.all(|at| {
                let is_asked = behind[at + name.len()..].starts_with(".local_addr");
                is_asked || behind[..at].ends_with("drop(")
            })
        };
        whole.contains(".local_addr()") || bound(whole).is_some_and(is_dropped)
    })
}

/// `text` has the strings that are blank in `code`.
fn versions<'c>(code: &'c str, text: &'c str) -> impl Iterator<Item = usize> + 'c {
    text.match_indices("\"--version\"")
        .map(|(at, _)| at)
        .filter(|&at| {
            let is_code = code.as_bytes().get(at) == Some(&b'"');
            let begin = text[..at]
                .rfind([';', '{', '}'])
                .map_or(0, |before| before + 1);
            is_code && text[begin..at].contains("Command::new(")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        check(&Source::new("tests/area/a.rs", text), &[])
    }

    /// Name of what is wrong, and test code that does it.
    const WRONG: [(&str, &str); 14] = [
        ("bar", "assert!(begun.elapsed() < Duration::from_secs(2));"),
        (
            "bar",
            "assert!(is_on && begun.elapsed() <= MOST, \"late\");",
        ),
        (
            "bar",
            "let took = begun.elapsed();\nassert!(took < BAR, \"{took:?}\");",
        ),
        (
            "bar",
            "let found = shown(|| at.elapsed());\nassert!(found <= Duration::from_millis(50));",
        ),
        ("sleep", "thread::sleep(A_WHILE);\nassert_eq!(pages(), 0);"),
        (
            "sleep",
            "sleep(Duration::from_millis(5)).await;\nassert!(is_quiet());",
        ),
        (
            "sleep",
            "std::thread::sleep(A_WHILE);\nrecorder.signal(Signal::INT).unwrap();",
        ),
        (
            "sleep",
            "thread::sleep(A_WHILE);\ndrop(program.kill().unwrap());",
        ),
        (
            "silence",
            "assert!(timeout(A_WHILE, peer.hear()).await.is_err());",
        ),
        (
            "silence",
            "let said = timeout(A_WHILE, peer.hear()).await;\nassert!(said.is_err());",
        ),
        (
            "silence",
            "let error = notices.recv_timeout(A_WHILE).unwrap_err();",
        ),
        (
            "port",
            "let free = TcpListener::bind(\"127.0.0.1:0\").unwrap();\nlet at = free.local_addr().unwrap();\ndrop(free);",
        ),
        (
            "port",
            "let at = TcpListener::bind(\"127.0.0.1:0\").unwrap().local_addr().unwrap();",
        ),
        (
            "version",
            "if Command::new(\"clang\").arg(\"--version\").output().is_err() { return }",
        ),
    ];

    #[test]
    fn what_depends_on_the_machine_is_found() {
        for (name, text) in WRONG {
            let found = found(&format!("fn f() {{\n{text}\n}}\n"));
            assert_eq!(found.len(), 1, "{text}: {found:?}");
            assert!(found[0].contains(&format!(": {name}: ")), "{found:?}");
        }
        let in_product = "fn f() {}\n#[cfg(test)]\nmod tests {\n    fn g() { assert!(at.elapsed() < BAR); }\n}\n";
        let found = check(&Source::new("reader/src/a.rs", in_product), &[]);
        assert!(
            found.len() == 1 && found[0].starts_with("reader/src/a.rs:4:"),
            "{found:?}"
        );
    }

    #[test]
    fn what_does_not_is_fine() {
        for text in [
            "assert!(begun.elapsed() >= LEAST);",
            "assert!(begun.elapsed() < SOON, \"it hangs\");",
            "let took = begun.elapsed();\nassert!(took >= least && bytes < MOST);",
            "let took = begun.elapsed();\nprintln!(\"{took:?}\");\nassert!(1 << took.as_secs() > 2);",
            "loop {\n    sleep(A_WHILE);\n}\nassert!(true);",
            "sleep(A_WHILE);\nlet found = look();\nassert!(found);",
            "let listener = TcpListener::bind(\"127.0.0.1:0\").unwrap();\nlet at = listener.local_addr().unwrap();\nlet one = listener.accept();",
            "timeout(LONG, peer.hear()).await.expect(\"in time\");",
            "assert!(timeout(LONG, peer.say()).await.expect(\"in time\").is_err());",
            "fn g(timeout: Duration) { assert!(run(timeout).is_err()) }",
            "let one = TcpListener::bind(place.address()).unwrap();\ndrop(one);",
            "let told = run(ringmark().arg(\"--version\"), LIMIT);",
            "// assert!(begun.elapsed() < BAR);",
        ] {
            let found = found(&format!("fn f() {{\n{text}\n}}\n"));
            assert!(found.is_empty(), "{text}: {found:?}");
        }
        let product = "fn f() { assert!(at.elapsed() < BAR); }";
        assert!(check(&Source::new("reader/src/a.rs", product), &[]).is_empty());
    }

    #[test]
    fn an_exception_is_for_one_file_and_is_needed() {
        let wrong = Source::new("tests/area/a.rs", "fn f() { assert!(at.elapsed() < BAR); }");
        let right = Source::new("tests/area/b.rs", "fn f() {}");
        let allowed = |path| [(path, "bar", "a reason")];
        assert!(check(&wrong, &allowed("tests/area/a.rs")).is_empty());
        assert_eq!(check(&wrong, &allowed("tests/area/b.rs")).len(), 1);
        let both = [&wrong, &right];
        assert!(unused(&both, &allowed("tests/area/a.rs")).is_empty());
        assert_eq!(unused(&both, &allowed("tests/area/b.rs")).len(), 1);
    }
}
