//! What a profile may see of a process on this host.

use ringmark_attach::Permission;
use ringmark_profile::samples_allowed;
use ringmark_reader::host::Finding;

/// What may be seen of processes of this user.
pub(crate) fn findings() -> Vec<Finding> {
    vec![waits(Permission::own()), samples()]
}

/// Times of threads are for everybody, what they wait for is for who may attach.
fn waits(own: Permission) -> Finding {
    const ABOUT: &str = "waits";
    match (own.may_trace_others, own.scope) {
        (true, _) => Finding::works(ABOUT, "call, file, lock and stack, of all processes"),
        (false, None | Some(0)) => {
            Finding::works(ABOUT, "call, file, lock and stack, of your processes")
        }
        (false, Some(scope)) => Finding::absent(
            ABOUT,
            format!("kernel.yama.ptrace_scope={scope}: of running processes only how they wait"),
            "'ringmark profile -- CMD' sees the waits of the program that it starts",
        ),
    }
}

fn samples() -> Finding {
    const ABOUT: &str = "samples";
    match samples_allowed() {
        Ok(true) => Finding::works(ABOUT, "functions that run, and who called the kernel"),
        Ok(false) => Finding::works(ABOUT, "functions that run, and the kernel's time as a sum"),
        Err(error) => Finding::absent(
            ABOUT,
            format!("perf_event_open: {error}: functions that run are not known"),
            "'sudo setcap cap_perfmon+ep' on the ringmark binary, or '--cap-add PERFMON' for a container",
        ),
    }
}
