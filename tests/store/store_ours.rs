//! Promise: a collector and a streamer remove, replace and open nothing that they did not make, whatever their command
//! lines name; what a collector makes is its user's alone.

use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use ringmark_reader::Codec;
use ringmark_tests::collecting::{segments, stream};
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::recording::record;
use ringmark_tests::store_contents::{ended_session, store_id};
use ringmark_tests::{Running, binary, require_tools, run, wait_until};
use rustix::process::{Signal, geteuid};

const EMIT: &str = ringmark_tests::program!("emit");
const SESSION: &str = "00112233-4455-6677-8899-aabbccddeeff";
const NOBODY: &str = "65534";

/// A place for a collector, and what it says.
struct Scene {
    fixture: Fixture,
    socket: PathBuf,
    store: PathBuf,
    said: PathBuf,
}

impl Scene {
    fn new(label: &str) -> Self {
        let fixture = Fixture::new(label);
        Self {
            socket: fixture.path("socket"),
            store: fixture.path("store"),
            said: fixture.path("said"),
            fixture,
        }
    }

    /// Starts a collector under this umask, with options that are separated by spaces; it listens,
    /// or has ended.
    fn collect(&self, umask: &str, prefix: &[&str], options: &str) -> (Running, String) {
        let mut command = self.fixture.command("sh");
        let script = "umask $1; f=$2; shift 2; exec \"$@\" 2>$f";
        command.args(["-c", script, "sh", umask]).arg(&self.said);
        command.args(prefix).arg(binary::path());
        let listen = format!("unix://{}", self.socket.display());
        command.args(["collect", "--listen", &listen, "--store"]);
        command.arg(&self.store);
        let _ = fs::remove_file(&self.said);
        let started = Running::start(command.args(options.split_ascii_whitespace()));
        let mut collector = started.unwrap();
        let said = wait_until(SOON, "it listens, or ends", || {
            let ended = collector.child().try_wait().unwrap().is_some();
            let said = fs::read_to_string(&self.said).unwrap_or_default();
            (ended || said.contains("listening at")).then_some(said)
        });
        (collector, said)
    }

    /// One that listens.
    fn listening(&self, options: &str) -> (Running, String) {
        let (collector, said) = self.collect("022", &[], options);
        assert!(said.contains("listening at"), "{said}");
        (collector, said)
    }

    /// One that does not start says why.
    fn refused(&self, options: &str) -> String {
        let (collector, said) = self.collect("022", &[], options);
        let listened = said.contains("listening at");
        let ended = match listened {
            true => collector.kill().unwrap(),
            false => collector.finish(SOON),
        };
        assert_eq!((ended.code(), listened), (2, false), "{said}");
        said
    }
}

/// As a service is ended.
fn end(collector: Running) {
    collector.signal(Signal::TERM).unwrap();
    let _ = collector.finish(SOON).expect_code(0);
}

fn make(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, "precious").unwrap();
}

fn is_there(path: &Path) -> bool {
    fs::read_to_string(path).is_ok_and(|text| text == "precious")
}

#[test]
fn what_lies_where_a_socket_should_be_stays() {
    let scene = Scene::new("listen");
    let at = &scene.socket;
    let expect = |what: &str| {
        let said = scene.refused("");
        assert!(said.contains(what), "expected {what:?}: {said}");
    };
    make(at);
    expect("found a regular file");
    assert!(is_there(at));
    fs::remove_file(at).unwrap();

    fs::create_dir(at).unwrap();
    expect("found a directory");
    fs::remove_dir(at).unwrap();

    // Links are not followed: whose is what they lead to?
    let elsewhere = scene.fixture.path("elsewhere");
    drop(UnixListener::bind(&elsewhere).unwrap());
    symlink(&elsewhere, at).unwrap();
    expect("found a symbolic link");
    assert!(fs::symlink_metadata(&elsewhere).is_ok() && fs::read_link(at).is_ok());
    fs::remove_file(at).unwrap();

    // A process answers, or could.
    let listener = UnixListener::bind(at).unwrap();
    expect("a process listens there");
    assert!(UnixStream::connect(at).is_ok());
    drop(listener);
    fs::remove_file(at).unwrap();
    let datagrams = UnixDatagram::bind(at).unwrap();
    expect("found a socket");
    assert!(UnixDatagram::unbound().unwrap().connect(at).is_ok());
    drop(datagrams);

    // No collector does any more.
    let (collector, _) = scene.listening("");
    assert!(UnixStream::connect(at).is_ok());
    // What was put in its place since then is not its socket.
    fs::remove_file(at).unwrap();
    make(at);
    end(collector);
    assert!(is_there(at), "removed at its end");
    let left = fs::read_dir(at.parent().unwrap()).unwrap().flatten();
    let mut left: Vec<_> = left.map(|entry| entry.file_name()).collect();
    left.sort();
    assert_eq!(left, ["elsewhere", "said", "socket", "store"]);
}

#[test]
fn a_directory_that_is_no_store_stays_as_it_is() {
    let scene = Scene::new("no-store");
    let precious = [
        "thesis.new",
        "etc/a/nginx.conf.new",
        "2026-11-21/service/host/thesis.new",
        "2026-11-21/service/host/thesis.1.new",
        &format!("2026-11-21/service/host/{SESSION}.new"),
        &format!("2026-11-21/service/host/{SESSION}.01.new"),
        &format!("2026-11-21/service/host/{SESSION}.0.idx.new.new"),
        &format!("2026-11-21/service/{SESSION}.0.new"),
        &format!("2026-11-21/service/host/deep/{SESSION}.0.new"),
        &format!("21.11.2026/service/host/{SESSION}.0.new"),
        &format!("lost+found/service/host/{SESSION}.0.new"),
    ];
    let precious = precious.map(|name| scene.store.join(name));
    precious.iter().for_each(|path| make(path));
    let said = scene.refused("");
    assert!(
        said.contains("store.id") && said.contains("--init"),
        "{said}"
    );
    assert!(!scene.store.join("store.id").exists());
    let expect_all = || {
        let gone = precious.iter().find(|path| !is_there(path));
        assert_eq!(gone, None);
    };
    expect_all();
    // Where it is to be one, what is there stays, too.
    let (collector, _) = scene.listening("--init");
    end(collector);
    expect_all();
    // From then on it is one. What a collector left that was killed has no owner.
    let host = scene.store.join("2026-11-21/service/host");
    let left = [".0.new", ".1.idx.new"].map(|rest| host.join(format!("{SESSION}{rest}")));
    left.iter().for_each(|path| make(path));
    let (collector, _) = scene.listening("");
    end(collector);
    expect_all();
    assert!(left.iter().all(|path| !path.exists()), "{left:?}");
}

#[test]
fn what_is_called_store_id_and_is_none_stays() {
    let scene = Scene::new("id");
    let id = scene.store.join("store.id");
    make(&id);
    make(&scene.store.join("other"));
    let said = scene.refused("");
    assert!(said.contains("found 8 bytes"), "{said}");
    assert!(is_there(&id));
    let elsewhere = scene.fixture.path("elsewhere");
    fs::rename(&id, &elsewhere).unwrap();
    symlink(&elsewhere, &id).unwrap();
    let _ = scene.refused("");
    assert!(is_there(&elsewhere));
}

/// A store at the root of a file system, whose `lost+found` is root's alone.
#[test]
fn a_directory_that_may_not_be_read_is_no_day() {
    assert!(geteuid().is_root(), "needs root: to be two users");
    if !require_tools(&["setpriv", "chown"]) {
        return;
    }
    let scene = Scene::new("mount");
    let lost = scene.store.join("lost+found");
    fs::create_dir_all(&lost).unwrap();
    fs::set_permissions(&lost, Permissions::from_mode(0o700)).unwrap();
    let place = scene.socket.parent().unwrap();
    for path in [place, &scene.store] {
        let mut chown = scene.fixture.command("chown");
        let _ = run(chown.arg(NOBODY).arg(path), SOON).unwrap();
    }
    let nobody = [
        "setpriv",
        "--reuid",
        NOBODY,
        "--regid",
        NOBODY,
        "--clear-groups",
    ];
    let (collector, said) = scene.collect("022", &nobody, "");
    assert!(said.contains("listening at"), "{said}");
    end(collector);
    // Who reads it is stopped by it no more.
    let mut read = scene.fixture.command("setpriv");
    read.args(&nobody[1..]).arg(binary::path());
    let read = run(read.arg("cat").arg(&scene.store), SOON).unwrap();
    let text = read.stderr_text();
    assert!(
        text.contains("is a store in which nothing is yet"),
        "{text}"
    );
}

/// Modes of the store, of what lies below it, and of `store.id`.
fn modes(store: &Path) -> (Vec<u32>, Vec<u32>, u32) {
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    let (mut directories, mut files) = (vec![mode(store)], Vec::new());
    let mut left = vec![store.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                directories.push(mode(&path));
                left.push(path);
            } else if path.file_name().unwrap() != "store.id" {
                files.push(mode(&path));
            }
        }
    }
    directories.dedup();
    files.dedup();
    (directories, files, mode(&store.join("store.id")))
}

#[test]
fn what_is_stored_is_its_users_alone() {
    let fixture = Fixture::new("modes-session");
    let ring_file = ended_session(&fixture, EMIT);
    for (umask, options, expected) in [
        ("000", "", (0o700, 0o600)),
        ("077", "", (0o700, 0o600)),
        ("277", "", (0o700, 0o600)),
        ("000", "--group-readable", (0o750, 0o640)),
        ("077", "--group-readable", (0o750, 0o640)),
    ] {
        let scene = Scene::new("modes");
        // Small segments: some are closed, and get an index.
        let options = format!("{options} --segment-size 24K --segment-age 100ms");
        let (collector, said) = scene.collect(umask, &[], &options);
        assert!(said.contains("listening at"), "{said}");
        let _ = stream(&ring_file, &scene.socket, Codec::None);
        let first = segments(&scene.store).swap_remove(0).with_extension("idx");
        wait_until(SOON, "an index", || first.exists().then_some(()));
        end(collector);
        let expected = (vec![expected.0], vec![expected.1], 0o600);
        assert_eq!(modes(&scene.store), expected, "umask {umask}, {options}");
    }
}

/// A user who can open `store.id` can hold its lock, and keep every collector from starting.
#[test]
fn a_store_that_was_open_to_others_is_closed() {
    let scene = Scene::new("open");
    let mut builder = DirBuilder::new();
    builder.mode(0o755).create(&scene.store).unwrap();
    fs::set_permissions(&scene.store, Permissions::from_mode(0o755)).unwrap();
    let id = scene.store.join("store.id");
    fs::write(&id, store_id()).unwrap();
    fs::set_permissions(&id, Permissions::from_mode(0o644)).unwrap();
    let (collector, _) = scene.listening("");
    end(collector);
    let said = fs::read_to_string(&scene.said).unwrap();
    assert!(
        said.contains("755") && said.contains("--group-readable"),
        "{said}"
    );
    assert_eq!(modes(&scene.store), (vec![0o700], vec![], 0o600));
    assert_eq!(fs::read(&id).unwrap(), store_id());
    // It is said once, since it is so once.
    let (collector, _) = scene.listening("");
    end(collector);
    let said = fs::read_to_string(&scene.said).unwrap();
    assert!(!said.contains("--group-readable"), "{said}");
}

/// Files that only look like those of a spill.
#[test]
fn what_no_streamer_made_stays() {
    let scene = Scene::new("not-ours");
    let (collector, _) = scene.listening("");
    let spill = scene.fixture.path("spill");
    let session = "00112233-4455-6677-8899-aabbccddeeff";
    let names = [
        "2026.1.rmk",
        "dead.beef.rmk",
        "a-b.1.rmk",
        &format!("{session}.01.rmk"),
        // Named as ours are, but nothing that can be read.
        &format!("{session}.1.rmk"),
    ];
    let files = names.map(|name| spill.join(name));
    fs::create_dir(&spill).unwrap();
    let dump = {
        let fixture = Fixture::new("a-dump");
        let program = fixture.start(EMIT, "mode=discard,ring=64K,page=4K,keep=always", "1 100");
        let _ = program.finish(SOON).expect_code(0);
        let dump = fixture.path("dump.rmk");
        record(&fixture.ring_file(), &dump);
        fs::read(dump).unwrap()
    };
    for path in &files[..4] {
        fs::write(path, &dump).unwrap();
    }
    fs::write(&files[4], "precious".repeat(1000)).unwrap();
    let mut command = scene.fixture.command(binary::path());
    let to = format!("unix://{}", scene.socket.display());
    command.args(["stream", "--all", "--to", &to, "--spill"]);
    let streamer = Running::start(command.arg(&spill)).unwrap();
    // It takes up nothing of them: it has none to send.
    streamer.wait_for_sleeps(50);
    streamer.signal(Signal::INT).unwrap();
    let said = streamer.finish(SOON).stderr_text();
    let gone: Vec<_> = files.iter().filter(|path| !path.exists()).collect();
    assert!(gone.is_empty(), "{gone:?} of what is not ours: {said}");
    assert!(said.contains(&format!("{session}.1.rmk")), "{said}");
    assert!(segments(&scene.store).is_empty());
    drop(collector);
}

/// Before anything is acknowledged the names that lead to it are there for good.
#[test]
fn a_new_store_is_on_the_disk() {
    if !require_tools(&["strace"]) {
        return;
    }
    let mut scene = Scene::new("durable");
    let above = scene.socket.parent().unwrap().to_owned();
    scene.store = above.join("new");
    let log = scene.fixture.path("log").display().to_string();
    let strace = ["strace", "-f", "-y", "-e", "trace=fsync", "-o", &log];
    let (collector, said) = scene.collect("022", &strace, "");
    assert!(said.contains("listening at"), "{said}");
    drop(collector);
    let log = fs::read_to_string(log).unwrap();
    let id = scene.store.join("store.id");
    for name in [&above, &scene.store, &id] {
        let synced = format!("<{}>", name.display());
        assert!(log.contains(&synced), "{synced}: {log}");
    }
}

/// A directory in a store that is a link would be written through, and passed over by all that reads and
/// removes: neither does anything with such a store.
#[test]
fn a_link_in_a_store_is_refused_by_all() {
    let scene = Scene::new("link");
    let (collector, _) = scene.listening("");
    let ended = ended_session(&scene.fixture, EMIT);
    let _ = stream(&ended, &scene.socket, Codec::None);
    let stored = segments(&scene.store);
    let day = stored[0].ancestors().nth(3).unwrap().to_owned();
    let (elsewhere, words) = (scene.fixture.path("elsewhere"), "found a symbolic link");
    fs::rename(&day, &elsewhere).unwrap();
    symlink(&elsewhere, &day).unwrap();
    let tree = || files_below(&elsewhere);
    let before = tree();
    // While it runs, the next session of this day is not stored through the link.
    let more = scene
        .fixture
        .start(EMIT, "mode=discard,ring=64K,page=4K", "2 1300");
    let _ = more.finish(SOON).expect_code(0);
    let mut command = scene.fixture.command(binary::path());
    let to = format!("unix://{}", scene.socket.display());
    command.args(["stream", "--all", "--to", &to]);
    let streamer = Running::start(&mut command).unwrap();
    wait_until(SOON, "a refusal", || {
        let said = fs::read_to_string(&scene.said).unwrap();
        said.contains(words).then_some(())
    });
    drop((streamer.kill().unwrap(), collector.kill().unwrap()));
    assert_eq!(tree(), before);
    for more in ["", "--check"] {
        assert!(scene.refused(more).contains(words), "{more}");
    }
    for command in ["cat", "verify", "report", "store hosts", "store ls"] {
        let mut reader = scene.fixture.command(binary::path());
        reader.args(command.split(' ')).arg(&scene.store);
        let said = run(&mut reader, SOON).unwrap();
        let text = said.stderr_text();
        assert!(
            said.code() != 0 && text.contains(words),
            "{command}: {text}"
        );
    }
    assert_eq!(tree(), before);
}

/// The files below a directory, with their bytes.
fn files_below(directory: &Path) -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    let mut left = vec![directory.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            match entry.file_type().unwrap().is_dir() {
                true => left.push(entry.path()),
                false => found.push((entry.path(), entry.metadata().unwrap().len())),
            }
        }
    }
    found.sort();
    found
}
