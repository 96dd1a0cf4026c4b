//! Some collectors of one bucket, each with a bad way to it, that are started again when they end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, kill_process};

use super::fault_proxy::{Fault, FaultProxy};
use super::proxy::Proxy;
use super::scene::{Running, Scene};

/// The collectors, and one address of them all: the socket [`Fleet::WAY`].
pub(crate) struct Fleet {
    sockets: Vec<String>,
    running: Arc<Vec<Mutex<Option<Running>>>>,
    pub(crate) faulty: FaultProxy,
    pub(crate) way: Proxy,
    /// How often one was started.
    pub(crate) starts: usize,
}

impl Fleet {
    pub(crate) const WAY: &str = "way";

    /// Starts collectors. Their requests to a server meet a plan.
    pub(crate) fn start(scene: &Scene, count: usize, to: &str, plan: Vec<Option<Fault>>) -> Self {
        let running: Vec<Mutex<Option<Running>>> = (0..count).map(|_| Mutex::default()).collect();
        let running = Arc::new(running);
        let ended = running.clone();
        let faulty = FaultProxy::of_clients(to, count, plan, move |client, how| {
            end_one(&mut lock(&ended[client]), how);
        });
        let sockets: Vec<_> = (0..count)
            .map(|number| format!("socket-{number}"))
            .collect();
        let paths: Vec<_> = sockets.iter().map(|socket| scene.path(socket)).collect();
        let mut fleet = Self {
            sockets,
            running,
            faulty,
            way: Proxy::in_turn(&scene.path(Self::WAY), &paths),
            starts: 0,
        };
        fleet.revive(scene);
        fleet
    }

    /// Starts those that do not run.
    pub(crate) fn revive(&mut self, scene: &Scene) {
        for (number, running) in self.running.iter().enumerate() {
            let mut running = lock(running);
            let ran = running.as_mut();
            if ran.is_some_and(|collector| collector.0.try_wait().unwrap().is_none()) {
                continue;
            }
            self.starts += 1;
            let mut command =
                scene.collector(&self.sockets[number], &self.faulty.addresses()[number]);
            *running = Some(Running(command.spawn().unwrap()));
        }
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.running.iter().for_each(|of| *lock(of) = None);
    }
}

fn lock(running: &Mutex<Option<Running>>) -> MutexGuard<'_, Option<Running>> {
    running.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kills a collector, and waits until it is gone, or tells it to end.
fn end_one(running: &mut Option<Running>, how: Fault) {
    let Some(collector) = running else { return };
    if how == Fault::Ended {
        let pid = Pid::from_raw(collector.0.id().cast_signed()).unwrap();
        let _ = kill_process(pid, Signal::TERM);
    } else {
        *running = None;
    }
}
