//! Screens of made-up sessions, on terminals of many sizes.

use std::time::{Duration, Instant};

use ringmark_decoder::{Sampled, SampledKind, SampledName};
use ringmark_format::Uuid;
use ringmark_format::session::Mode;
use ringmark_format::slot::state;
use ringmark_reader::info::RingInfo;
use ringmark_reader::{Look, RingLook};

use super::keys::Key;
use super::model::Model;
use super::names::Order;
use super::ui::{Panel, Ui};
use super::view::{Size, lines};
use super::watch::{About, OpenThreadText, Sample, SessionTick, Tick};
use ringmark_console::Style;
use ringmark_console::json::Head;
use ringmark_console::width::width;

const NAMES: [&str; 5] = [
    "要求を処理する.とても長い名前の区間です.それでも終わらない",
    "cafe\u{301}.re\u{301}sume\u{301}",
    "queue.🚀🚀🚀",
    "a_name_that_is_longer_than_what_any_column_has_for_names_on_screens",
    "db",
];

fn ring(slot: u32, events: u64, lost: u64) -> RingLook {
    let info = RingInfo {
        slot,
        ring_id: u64::from(slot) + 1,
        state: state::ACTIVE,
        tid: 4_194_000 + slot,
        thread_name: NAMES[slot as usize % NAMES.len()].to_owned(),
        page_bytes: 65_536,
        pages: 4,
        produced: 9,
        consumed: 0,
        pages_filled: 4,
        claims: 1,
        wait_ns: 0,
        lost: [lost, 0, 0, 0, 0, 0, 0, 0],
    };
    RingLook {
        info,
        events,
        window_ns: Some(3_200_000_000),
    }
}

/// A look at a session with `rings` rings, of which each has had `events` events.
fn session(number: u8, rings: u32, events: u64, at: Instant) -> SessionTick {
    let about = About {
        uuid: Uuid([number; 16]),
        pid: 4_194_300 + u32::from(number),
        name: format!("shop-{number}-{}", NAMES[0]),
        mode: Some(Mode::Overwrite),
        head: Head {
            host: Some("web-1.example.com".to_owned()),
            ..Head::default()
        },
    };
    let name = |place: usize, name: &str| {
        let mut found = SampledName::new(SampledKind::Span, name.as_bytes(), b"shop");
        found.add(50.0, Some(1_000_000 * (9 - place as u64)), Some(900_000));
        found
    };
    let sampled = Sampled {
        names: NAMES
            .iter()
            .enumerate()
            .map(|(n, text)| name(n, text))
            .collect(),
        events: u64::from(rings) * 1000,
        looked_at: 64,
    };
    let open = OpenThreadText {
        tid: 17,
        thread: NAMES[0].to_owned(),
        spans: NAMES
            .iter()
            .map(|name| ((*name).to_owned(), 1_300_000))
            .collect(),
        deeper: 3,
    };
    SessionTick {
        about,
        look: Look {
            rings: (0..rings)
                .map(|slot| ring(slot, events, events / 10))
                .collect(),
            lost: 0,
        },
        at,
        sample: Some(Sample {
            sampled: Some(sampled),
            over: Duration::from_secs(1),
            open: vec![open; 6],
        }),
    }
}

fn model(sessions: u8, rings: u32) -> Model {
    let mut model = Model::default();
    let begin = Instant::now();
    for look in 0..30 {
        let at = begin + Duration::from_secs(look);
        let sessions = (0..sessions).map(|n| session(n, rings, look * 1000, at));
        model.take(Tick {
            sessions: sessions.collect(),
            gone: Vec::new(),
        });
    }
    model
}

fn screen(model: &Model, ui: &Ui, rows: usize, columns: usize) -> Vec<String> {
    lines(model, ui, Size { rows, columns }, Style::none())
}

#[test]
fn a_screen_is_never_larger_than_the_terminal() {
    let (none, one, many) = (Model::default(), model(1, 64), model(5, 3));
    let mut uis = vec![Ui::default()];
    for only in Panel::ALL {
        uis.push(Ui {
            only: Some(only),
            scrolled: 3,
            has_sessions: true,
            message: Some(NAMES[0].repeat(9)),
            ..Ui::default()
        });
    }
    let mut help = Ui::default();
    let _ = help.press(Key::Char('?'));
    let mut editing = Ui::default();
    let _ = (
        editing.press(Key::Char('/')),
        editing.press(Key::Char('要')),
    );
    uis.extend([help, editing]);
    for model in [&none, &one, &many] {
        for ui in &uis {
            for columns in [1, 10, 40, 80, 120, 200] {
                for rows in [1, 2, 3, 5, 10, 24, 60] {
                    let screen = screen(model, ui, rows, columns);
                    let widest = screen.iter().map(|line| width(line)).max();
                    assert!(screen.len() <= rows, "{rows}: {screen:#?}");
                    assert!(widest <= Some(columns), "{columns}: {screen:#?}");
                    assert!(!screen.iter().any(|line| line.contains('\x1b')));
                }
            }
        }
    }
}

#[test]
fn what_matters_is_on_a_screen_of_80_by_24() {
    let screen = screen(&model(1, 64), &Ui::default(), 24, 80);
    let text = screen.join("\n");
    assert_eq!(screen.len(), 24, "{text}");
    assert!(screen[0].starts_with("shop-0-"), "{text}");
    assert!(
        screen[0].contains("[4194300] on web-1.example.com"),
        "{text}"
    );
    assert!(
        screen[1].starts_with("64,000 events/s, 185,600 lost, 6,400 a second"),
        "{text}"
    );
    assert!(screen[1].ends_with('█'), "{text}");
    for wanted in [
        "estimated from 0.1 % of the events",
        "open spans in 6 threads",
        "64 rings",
        " 4.5 %  30.0 %         50  6.00 ms  6.00 ms  ████████  a_name",
        "1.30 ms  要求を処…終わらない  要求を処",
        " 1,000  100 %   3.20 s   9.67 s   2,900  ████████  ",
    ] {
        assert!(text.contains(wanted), "{wanted:?} in\n{text}");
    }
    assert!(screen[23].starts_with("q end"), "{text}");
}

#[test]
fn rows_that_pass_a_filter_are_shown_in_the_order_that_was_chosen() {
    let model = model(1, 2);
    let mut ui = Ui {
        only: Some(Panel::Names),
        ..Ui::new(Order::Name)
    };
    let names = |ui: &Ui| {
        let screen = screen(&model, ui, 24, 200);
        let names = screen.iter().filter(|line| line.contains(" ms "));
        let names = names.filter_map(|line| line.split("  ").last());
        names.map(|name| name.trim().to_owned()).collect::<Vec<_>>()
    };
    let mut sorted: Vec<_> = NAMES.iter().map(|name| (*name).to_owned()).collect();
    sorted.sort();
    assert_eq!(names(&ui), sorted);
    ui.order = Order::Total;
    assert_eq!(names(&ui), NAMES, "the first has the most time");
    ui.filter = "QUEUE".to_owned();
    assert_eq!(names(&ui), [NAMES[2]]);
}

#[test]
fn sessions_that_are_gone_are_forgotten() {
    let mut model = model(2, 1);
    assert_eq!((model.sessions().len(), model.open().len()), (2, 12));
    model.take(Tick::default());
    assert_eq!((model.sessions().len(), model.open().len()), (0, 0));
    assert!(model.names(Order::Own).is_empty());
    let screen = screen(&model, &Ui::default(), 24, 80);
    assert_eq!(screen[0], "no sessions");
}

#[test]
fn new_rings_count_from_nothing_and_old_sessions_from_the_first_look() {
    let mut model = Model::default();
    let begin = Instant::now();
    let take = |model: &mut Model, rings: u32, events: u64, second: u64| {
        let sessions = vec![session(
            0,
            rings,
            events,
            begin + Duration::from_secs(second),
        )];
        model.take(Tick {
            sessions,
            gone: Vec::new(),
        });
    };
    take(&mut model, 1, 5000, 0);
    assert_eq!(model.events_per_s(), 0.0, "it is not known yet");
    take(&mut model, 2, 5001, 1);
    let per_s: Vec<_> = model.rings().iter().map(|ring| ring.events.per_s).collect();
    assert_eq!(per_s, [5001.0, 1.0]);
    assert_eq!(model.sessions()[0].events.total, 10_002);
}
