//! What the person at the screen has chosen.

use super::keys::Key;
use super::names::Order;

/// The tables of a screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Panel {
    Sessions,
    Names,
    Open,
    Rings,
}

impl Panel {
    /// All of them, from the top.
    pub(crate) const ALL: [Self; 4] = [Self::Sessions, Self::Names, Self::Open, Self::Rings];
}

/// What a key asks of the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Another screen of the same figures.
    Draw,
    /// Nothing.
    Nothing,
    Quit,
    SwitchTracers,
    Snapshot,
}

/// What is shown, and how.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ui {
    pub(crate) order: Order,
    /// Text that shown rows have in their names.
    pub(crate) filter: String,
    /// The filter is being written; the text is what it was before.
    pub(super) editing: Option<String>,
    /// The only table that is shown; `None`: all are.
    pub(crate) only: Option<Panel>,
    /// Rows of that table above the first one that is shown.
    pub(crate) scrolled: usize,
    pub(crate) has_help: bool,
    /// Figures stay as they are.
    pub(crate) is_paused: bool,
    /// What was said last.
    pub(crate) message: Option<String>,
    /// The program has more than one session, so that these have a table.
    pub(crate) has_sessions: bool,
}

impl Ui {
    /// Everything, in this order.
    pub(crate) fn new(order: Order) -> Self {
        Self {
            order,
            ..Self::default()
        }
    }

    /// Whether the filter is being written.
    pub(crate) const fn is_editing(&self) -> bool {
        self.editing.is_some()
    }

    /// Whether a row with these names is shown.
    pub(crate) fn passes<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> bool {
        let wanted = self.filter.to_lowercase();
        let mut names = names.into_iter();
        wanted.is_empty() || names.any(|name| name.to_lowercase().contains(&wanted))
    }

    /// Takes a key.
    pub(crate) fn press(&mut self, key: Key) -> Wish {
        if self.is_editing() {
            return self.edit(key);
        }
        if std::mem::take(&mut self.has_help) && key != Key::Char('q') {
            return Wish::Draw;
        }
        match key {
            Key::Char('q') => return Wish::Quit,
            Key::Char('t') => return Wish::SwitchTracers,
            Key::Char('w') => return Wish::Snapshot,
            Key::Char('?' | 'h') => self.has_help = true,
            Key::Char('s') => self.order = self.order.next(),
            Key::Char(' ') => self.is_paused = !self.is_paused,
            Key::Char('/') => self.editing = Some(self.filter.clone()),
            Key::Tab => self.turn(true),
            Key::BackTab => self.turn(false),
            Key::Escape => (self.only, self.scrolled, self.message) = (None, 0, None),
            Key::Up | Key::Char('k') => self.scrolled = self.scrolled.saturating_sub(1),
            Key::Down | Key::Char('j') => self.scrolled += usize::from(self.only.is_some()),
            Key::PageUp => self.scrolled = self.scrolled.saturating_sub(10),
            Key::PageDown if self.only.is_some() => self.scrolled += 10,
            Key::Home => self.scrolled = 0,
            _ => return Wish::Nothing,
        }
        Wish::Draw
    }

    fn edit(&mut self, key: Key) -> Wish {
        match key {
            Key::Char(c) => self.filter.push(c),
            Key::Backspace => _ = self.filter.pop(),
            Key::Enter => self.editing = None,
            Key::Escape => self.filter = self.editing.take().unwrap_or_default(),
            _ => return Wish::Nothing,
        }
        self.scrolled = 0;
        Wish::Draw
    }

    /// Shows the table after the one that is shown alone, or before it.
    fn turn(&mut self, is_forward: bool) {
        let panels = Panel::ALL.into_iter();
        let panels = panels.filter(|panel| self.has_sessions || *panel != Panel::Sessions);
        let all: Vec<_> = [None].into_iter().chain(panels.map(Some)).collect();
        let at = all
            .iter()
            .position(|panel| *panel == self.only)
            .unwrap_or(0);
        let step = if is_forward { 1 } else { all.len() - 1 };
        (self.only, self.scrolled) = (all[(at + step) % all.len()], 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_written_and_taken_back() {
        let mut ui = Ui::default();
        for key in [Key::Char('/'), Key::Char('D'), Key::Char('b'), Key::Enter] {
            assert_eq!(ui.press(key), Wish::Draw);
        }
        assert!(ui.passes(["http", "db.query"]) && !ui.passes(["http"]));
        for key in [Key::Char('/'), Key::Char('q'), Key::Escape] {
            assert_eq!(ui.press(key), Wish::Draw);
        }
        assert_eq!(ui.filter, "Db");
        for key in [
            Key::Char('/'),
            Key::Backspace,
            Key::Backspace,
            Key::Backspace,
        ] {
            let _ = ui.press(key);
        }
        assert!(ui.is_editing() && ui.passes(["http"]));
    }

    #[test]
    fn tables_come_round() {
        let mut ui = Ui::default();
        let mut seen = Vec::new();
        for _ in 0..4 {
            let _ = ui.press(Key::Tab);
            seen.push(ui.only);
        }
        use Panel::{Names, Open, Rings};
        assert_eq!(seen, [Some(Names), Some(Open), Some(Rings), None]);
        ui.has_sessions = true;
        let _ = ui.press(Key::Tab);
        assert_eq!(ui.only, Some(Panel::Sessions));
        let _ = ui.press(Key::BackTab);
        assert_eq!(ui.only, None);
    }

    #[test]
    fn any_key_ends_the_help_and_q_ends_all() {
        let mut ui = Ui::default();
        let _ = ui.press(Key::Char('?'));
        assert!(ui.has_help);
        assert_eq!(ui.press(Key::Char('t')), Wish::Draw);
        assert!(!ui.has_help);
        let _ = ui.press(Key::Char('?'));
        assert_eq!(ui.press(Key::Char('q')), Wish::Quit);
    }
}
