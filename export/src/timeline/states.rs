//! What threads did: when they ran, were ready and waited.

use std::collections::HashSet;
use std::io;

use crate::timeline::plan::Plan;
use crate::timeline::viewer::Viewer;

/// Gives a viewer what each thread of a plan did, where that is known.
pub(super) fn show<'a>(plan: &Plan<'a>, viewer: &mut impl Viewer<'a>) -> io::Result<()> {
    let mut met = HashSet::new();
    for (number, thread) in &plan.threads {
        // Switches tell threads apart by their ids alone.
        let id = (thread.session.process, thread.tid);
        let is_known = thread.session.has_switches() || thread.session.has_waits();
        if !is_known || !met.insert(id) {
            continue;
        }
        let mut done = Ok(());
        let filter = &plan.cut.filter;
        filter.thread_states(thread.session, (thread.tid, &thread.ran_ns), |state| {
            if done.is_ok() {
                done = viewer.state((*number, thread.session), &state);
            }
        });
        done?;
    }
    Ok(())
}
