//! The loop of a live screen: looks at the sessions, draws, and does what keys say.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use anyhow::Context;
use signal_hook::consts::SIGTSTP;
use signal_hook::low_level::emulate_default_handler;

use super::keys::{Key, keys};
use super::model::Model;
use super::names::Order;
use super::requests::Requests;
use super::terminal::Terminal;
use super::ui::{Ui, Wish};
use super::view::lines;
use super::wakes::{Caught, Wakes};
use super::watch::Watch;
use ringmark_console::Style;

/// Time from the first look to the second, so that there are figures at once.
const FIRST_AFTER: Duration = Duration::from_millis(200);

/// Why the screen ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// A key or a signal asked for it.
    Wanted,
    /// The process has ended.
    ProcessEnded,
}

/// Shows the sessions until a key or a signal asks for the end, or the process ends.
///
/// # Errors
/// There is no terminal, or it cannot be written to.
pub(crate) fn run(watch: &mut Watch, every: Duration, order: Order) -> anyhow::Result<Left> {
    let wakes = Wakes::watch().context("watching signals")?;
    let requests = Requests::new(wakes.bell()?);
    let terminal = Terminal::take().context("the terminal")?;
    let mut screen = Screen {
        watch,
        wakes,
        requests,
        terminal,
        model: Model::default(),
        ui: Ui::new(order),
        every,
        drawn: Vec::new(),
    };
    screen.run()
}

struct Screen<'w> {
    watch: &'w mut Watch,
    wakes: Wakes,
    requests: Requests,
    terminal: Terminal,
    model: Model,
    ui: Ui,
    every: Duration,
    /// What is on the terminal; empty: it has to be drawn again.
    drawn: Vec<String>,
}

impl Screen<'_> {
    fn run(&mut self) -> anyhow::Result<Left> {
        let mut next = Instant::now();
        let mut looks = 0_u32;
        loop {
            if self.watch.has_ended() {
                return Ok(Left::ProcessEnded);
            }
            if Instant::now() >= next {
                self.look();
                looks = looks.saturating_add(1);
                let after = if looks == 1 { FIRST_AFTER } else { self.every };
                next = Instant::now() + after;
            }
            self.draw()?;
            if !self.wait(next.saturating_duration_since(Instant::now())) {
                return Ok(Left::Wanted);
            }
            while let Some(caught) = self.wakes.caught() {
                match caught {
                    Caught::End => return Ok(Left::Wanted),
                    Caught::Stop => self.stand_still()?,
                    Caught::GoOn => self.come_back()?,
                    Caught::Resized => self.drawn.clear(),
                }
            }
            if let Some(answer) = self.requests.answer() {
                self.ui.message = Some(answer);
            }
            if self.press_keys()? == Wish::Quit {
                return Ok(Left::Wanted);
            }
        }
    }

    fn look(&mut self) {
        let mut tick = self.watch.look();
        if let Some(gone) = tick.gone.pop() {
            self.ui.message = Some(gone);
        }
        if !self.ui.is_paused {
            self.model.take(tick);
            self.ui.has_sessions |= self.model.sessions().len() != 1;
        }
    }

    fn draw(&mut self) -> io::Result<()> {
        let lines = lines(&self.model, &self.ui, self.terminal.size(), Style::detect());
        if lines != self.drawn {
            self.terminal.draw(&lines)?;
            self.drawn = lines;
        }
        Ok(())
    }

    /// Waits for something to do. Returns whether the terminal is still there.
    fn wait(&self, time: Duration) -> bool {
        let ends = self.watch.ends();
        let ends: Vec<_> = ends.iter().map(|fd| fd.as_fd()).collect();
        self.wakes.wait(self.terminal.keys(), &ends, time)
    }

    /// Ctrl-Z, until this process is told to go on, which is a signal, too.
    fn stand_still(&mut self) -> anyhow::Result<()> {
        self.terminal.leave();
        emulate_default_handler(SIGTSTP).context("Ctrl-Z")
    }

    fn come_back(&mut self) -> anyhow::Result<()> {
        self.terminal.enter().context("the terminal")?;
        self.drawn.clear();
        Ok(())
    }

    /// Does what the keys say that were pressed.
    fn press_keys(&mut self) -> io::Result<Wish> {
        let mut bytes = [0; 256];
        let number = match rustix::io::read(self.terminal.keys(), &mut bytes) {
            Ok(number) => number,
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => 0,
            Err(error) => return Err(error.into()),
        };
        for key in keys(&bytes[..number]) {
            if self.press(key) == Wish::Quit {
                return Ok(Wish::Quit);
            }
        }
        Ok(Wish::Nothing)
    }

    fn press(&mut self, key: Key) -> Wish {
        let wish = self.ui.press(key);
        let said = match wish {
            Wish::SwitchTracers => self.requests.switch_tracers(self.watch.pids()),
            Wish::Snapshot => self.requests.snapshot(self.watch.target()),
            Wish::Draw | Wish::Nothing | Wish::Quit => return wish,
        };
        self.ui.message = Some(said);
        wish
    }
}
