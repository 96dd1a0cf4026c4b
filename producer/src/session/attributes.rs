//! Who is traced: the session attributes.

use std::fs;
use std::os::unix::ffi::OsStrExt;

use ringmark_format::attribute::{self, tag};
use ringmark_ring::{environment, small_file};

use crate::setup::{Options, reference};

/// Gathers the attributes of this process. `groups`: its control groups; `notices` are for people who wonder.
pub(super) fn gather(options: &Options, groups: &str, notices: &[String]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut push = |tag, value: &[u8]| {
        if !value.is_empty() {
            attribute::push(&mut out, tag, &value[..value.len().min(1024)]);
        }
    };
    let (name, version) = service();
    push(tag::SERVICE_NAME, name.as_bytes());
    push(tag::SERVICE_VERSION, version.as_bytes());
    let uname = rustix::system::uname();
    push(tag::HOST, uname.nodename().to_bytes());
    push(tag::KERNEL, uname.release().to_bytes());
    push(
        tag::MACHINE_ID,
        small_file::text("/etc/machine-id").as_bytes(),
    );
    push(tag::CONTAINER_ID, container_id(groups).as_bytes());
    push(tag::PROCESS_NAME, process_name().as_bytes());
    let executable = fs::read_link("/proc/self/exe").unwrap_or_default();
    push(tag::EXECUTABLE, executable.as_os_str().as_bytes());
    let command_line = small_file::read("/proc/self/cmdline").unwrap_or_default();
    push(tag::COMMAND_LINE, &command_line);
    push(tag::RINGMARK_VERSION, reference::version().as_bytes());
    for text in &options.tags {
        push(tag::TAG, text.as_bytes());
    }
    for notice in notices {
        push(tag::NOTICE, notice.as_bytes());
    }
    out
}

/// Name of the process: that of its first thread, which mostly is this one.
fn process_name() -> String {
    let is_first = rustix::thread::gettid() == rustix::process::getpid();
    let own = is_first.then(rustix::thread::name).and_then(Result::ok);
    let own = own.and_then(|name| name.into_string().ok());
    own.unwrap_or_else(|| small_file::text("/proc/self/comm"))
}

/// Service name and version, as OpenTelemetry's variables say.
fn service() -> (String, String) {
    let resource = environment::text("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
    let of = |key: &str| {
        let pairs = resource.split(',').filter_map(|pair| pair.split_once('='));
        pairs
            .filter(|(k, _)| k.trim() == key)
            .map(|(_, v)| v.trim().to_owned())
            .next()
    };
    let name = environment::text("OTEL_SERVICE_NAME").or_else(|| of("service.name"));
    (
        name.unwrap_or_default(),
        of("service.version").unwrap_or_default(),
    )
}

/// The 64 hex digits that container runtimes put into the cgroup path.
fn container_id(groups: &str) -> String {
    let parts = groups.split(|c: char| !c.is_ascii_hexdigit());
    parts
        .filter(|part| part.len() == 64)
        .map(str::to_owned)
        .next()
        .unwrap_or_default()
}
