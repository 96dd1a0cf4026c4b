//! The queue of the job: directories to read and files to count, shared by the workers.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// One step of the job. Paths are relative to the indexed directory; the empty path is itself.
#[derive(Debug)]
pub(super) enum Task {
    Directory(PathBuf),
    File(PathBuf),
}

/// A task that a worker has taken from the queue.
#[derive(Debug)]
pub(super) struct TakenTask {
    pub(super) task: Task,
    /// Number of tasks that are still in the queue.
    pub(super) waiting: usize,
}

/// Tasks in the order of their discovery. The job is over when none is left and no worker has one that
/// could bring more.
#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    files_max: u64,
}

#[derive(Debug)]
struct State {
    tasks: VecDeque<Task>,
    busy: usize,
    /// Files queued in this pass.
    files: u64,
    passes: u64,
    over: bool,
}

impl Queue {
    /// A queue that holds the directory itself; each pass takes at most `files_max` files from it.
    pub(super) fn new(files_max: u64) -> Self {
        let tasks = VecDeque::from([Task::Directory(PathBuf::new())]);
        let state = State {
            tasks,
            busy: 0,
            files: 0,
            passes: 0,
            over: false,
        };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
            files_max,
        }
    }

    /// The next task. `None`: the job is over.
    pub(super) fn take(&self) -> Option<TakenTask> {
        let mut state = self.lock();
        loop {
            if state.over {
                return None;
            }
            if let Some(task) = state.tasks.pop_front() {
                state.busy += 1;
                return Some(TakenTask {
                    task,
                    waiting: state.tasks.len(),
                });
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Adds the tasks that a directory holds.
    pub(super) fn add(&self, tasks: Vec<Task>) {
        let mut state = self.lock();
        for task in tasks {
            let is_file = matches!(task, Task::File(_));
            if state.files < self.files_max {
                state.files += u64::from(is_file);
                state.tasks.push_back(task);
            }
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Ends a task. After the last one, a new pass begins if `again` says so.
    pub(super) fn done(&self, again: impl FnOnce() -> bool) {
        let mut state = self.lock();
        state.busy -= 1;
        if state.busy > 0 || !state.tasks.is_empty() {
            return;
        }
        state.passes += 1;
        state.files = 0;
        if again() {
            state.tasks.push_back(Task::Directory(PathBuf::new()));
        } else {
            state.over = true;
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Drops the tasks that are left.
    pub(super) fn cut(&self) {
        self.lock().tasks.clear();
    }

    /// Number of passes that were completed.
    pub(super) fn passes(&self) -> u64 {
        self.lock().passes
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> Task {
        Task::File("file".into())
    }

    /// Whether the next task is a directory, and how many wait after it.
    fn taken(queue: &Queue) -> (bool, usize) {
        let taken = queue.take().expect("a task");
        (matches!(taken.task, Task::Directory(_)), taken.waiting)
    }

    #[test]
    fn ends_after_the_last_task_of_the_last_pass() {
        let queue = Queue::new(u64::MAX);
        assert_eq!(taken(&queue), (true, 0));
        queue.add(vec![file(), file()]);
        queue.done(|| unreachable!("files are left"));
        assert_eq!(taken(&queue), (false, 1));
        queue.done(|| unreachable!("a file is left"));
        assert!(queue.take().is_some());
        queue.done(|| true);
        assert_eq!(taken(&queue), (true, 0));
        queue.done(|| false);
        assert!(queue.take().is_none());
        assert_eq!(queue.passes(), 2);
    }

    #[test]
    fn takes_no_more_files_than_it_may() {
        let queue = Queue::new(2);
        queue.take();
        queue.add(vec![file(), file(), file()]);
        assert_eq!(taken(&queue).1, 1);
    }
}
