//! The tool killed at each of its system calls: the server answers on, rightly, and its sites are
//! closed again.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use ringmark_reader::{Access, Session, control};
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::functions::{LIMIT, compile, library, ringmark, tool};
use ringmark_tests::random::Random;
use ringmark_tests::{Running, is_long, require_tools, run, wait_until};

use super::load::{Load, ask_some};
use super::server::{SLEDS, Server};
use super::text::sites;

/// Most servers whose sites may still be open: they take a lease's time.
const PENDING: usize = 8;
const START: &str = "trace start --all-functions --for 60ms -p";
const STOP: &str = "trace stop -p";

/// A place for many servers, and where to kill their tools.
struct Scene {
    fixture: Fixture,
    program: PathBuf,
    killer: PathBuf,
    pending: VecDeque<Server>,
    kills: usize,
    /// Tools that died while sites were open.
    open: usize,
}

impl Scene {
    fn new(label: &str) -> Self {
        let fixture = Fixture::new(label);
        let program = compile(&fixture, "attach_workers.c", "workers", SLEDS);
        let killer = compile(&fixture, "kill_at.c", "kill_at", "-O1");
        // Built before anything waits for it.
        let _ = tool(&fixture);
        let (pending, kills, open) = (VecDeque::new(), 0, 0);
        Self {
            fixture,
            program,
            killer,
            pending,
            kills,
            open,
        }
    }

    fn server(&self, is_prepared: bool) -> Server {
        let preload = is_prepared.then(library);
        Server::run(&self.fixture, &self.program, 3, preload)
    }

    /// Runs the tool on a server under load and kills it at this call; false if it was done before.
    fn kill_at(&mut self, call: u64, words: &str, server: &Server) -> bool {
        let load = Load::start(&server.socket, 2, Duration::from_micros(200));
        load.goes_on(4);
        let mut command = self.fixture.command(&self.killer);
        command.env("RINGMARK_LIB", library());
        command
            .arg(call.to_string())
            .arg(tool(&self.fixture).get_program());
        command.args(words.split(' ')).arg(server.pid().to_string());
        let ended = run(&mut command, LIMIT).expect("the tool");
        let code = ended.code();
        assert!(matches!(code, 0 | 137), "call {call}: {ended:?}");
        self.settle_requests(server);
        load.goes_on(4);
        let _ = load.finish();
        self.kills += usize::from(code == 137);
        self.open += usize::from(sites(server.pid(), &self.program).1 > 0);
        code == 137
    }

    /// Whatever the tool has asked for before it died is done now. Without a session it has asked
    /// for nothing, and no other process may load one here.
    fn settle_requests(&self, server: &Server) {
        let own = format!("{}-", server.pid());
        for path in self.fixture.ring_files() {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if !name.contains(&own) {
                continue;
            }
            let session = Session::open(&path, Access::Control).expect("a session");
            let answer = control::request(&session, "trace status", LIMIT).expect("an answer");
            assert!(answer.status == 0 || is_early(&answer.text), "{answer:?}");
        }
    }

    /// The server's sites come to rest, now or when its turn comes.
    fn put_aside(&mut self, server: Server) {
        self.pending.push_back(server);
        if self.pending.len() > PENDING {
            self.settle();
        }
    }

    fn settle(&mut self) {
        for server in std::mem::take(&mut self.pending) {
            self.closed(&server);
            ask_some(&server.socket, 20).expect("right answers");
            server.finish();
        }
    }

    fn closed(&self, server: &Server) {
        wait_until(SOON, "every NOP back", || {
            let (all, open) = sites(server.pid(), &self.program);
            // None are found in a process that has died.
            (all >= 6 && open == 0).then_some(())
        });
    }

    /// Another tool finds nothing in its way.
    fn next_tool(&self, server: &Server) {
        let words = format!("{START} {}", server.pid());
        let said = ringmark(&self.fixture, &words, &[]).expect_code(0);
        assert!(said.stdout_text().contains(" matched, "), "{said:?}");
    }
}

/// The session is there, and its tracers are not yet: no request has come.
fn is_early(text: &str) -> bool {
    text.starts_with("unknown request")
}

/// The calls to kill at: each, or some that are spread over about as many as there are.
fn calls(about: u64, some: u64) -> impl Iterator<Item = u64> {
    let stride = if is_long() { 1 } else { about / some };
    let first = 1 + Random::seeded().below(stride);
    (first..).step_by(stride as usize)
}

#[test]
fn while_it_starts_in_a_server_that_was_not_prepared() {
    if !require_tools(&["gcc"]) {
        return;
    }
    killed_starts("attach-killed", false, calls(1200, 10));
}

#[test]
fn while_it_starts_in_a_server_that_was_prepared() {
    if !require_tools(&["gcc"]) {
        return;
    }
    killed_starts("attach-killed-prepared", true, calls(280, 6));
}

fn killed_starts(label: &str, is_prepared: bool, calls: impl Iterator<Item = u64>) {
    let mut scene = Scene::new(label);
    for (round, call) in calls.enumerate() {
        let server = scene.server(is_prepared);
        let was_killed = scene.kill_at(call, START, &server);
        if round % 2 == 1 {
            scene.next_tool(&server);
        }
        scene.put_aside(server);
        if !was_killed {
            break;
        }
    }
    scene.settle();
    let (kills, open) = (scene.kills, scene.open);
    println!("{label}: {kills} kills, {open} of them with sites open");
    assert!(kills >= 5, "{kills} kills");
}

/// While another tool holds a start, which is killed then.
#[test]
fn while_it_stops() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let mut scene = Scene::new("attach-killed-stop");
    for call in calls(190, 5) {
        let server = scene.server(true);
        let mut holder = tool(&scene.fixture);
        holder.args(["trace", "start", "--all-functions", "-p"]);
        holder.arg(server.pid().to_string()).stdin(Stdio::null());
        let holder = Running::start(&mut holder).expect("it starts");
        wait_until(SOON, "open sites", || {
            (sites(server.pid(), &scene.program).1 > 0).then_some(())
        });
        let was_killed = scene.kill_at(call, STOP, &server);
        // It may have ended: the start was stopped.
        let _ = holder.kill();
        scene.put_aside(server);
        if !was_killed {
            break;
        }
    }
    scene.settle();
    let (kills, open) = (scene.kills, scene.open);
    println!("stop: {kills} kills, {open} of them with sites open");
    assert!(kills >= 3, "{kills} kills");
}
