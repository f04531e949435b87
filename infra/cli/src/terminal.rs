//! Terminal output, as opposed to a file or a pipe: width, colours, and a progress line.

use std::io::{BufRead as _, IsTerminal as _, Read as _, Write as _};
use std::time::{Duration, Instant};

use crate::columns::{cut, visible};
use crate::time::clock;

/// Width of a terminal that reports none.
const COLUMNS: usize = 80;
/// After this pause in the text the line is broken, so that the progress line shows again.
const PAUSE: Duration = Duration::from_secs(2);
/// Most bytes of an answer.
const ANSWER_BYTES_MAX: u64 = 4_096;
/// Moves to the start of the line and clears it.
const EMPTY_LINE: &str = "\r\u{1b}[2K";

/// Most columns per line: the terminal's, or unlimited for other outputs.
pub fn width() -> usize {
    let out = std::io::stdout();
    if out.is_terminal() { columns_of(&out) } else { usize::MAX }
}

fn columns_of(out: impl std::os::fd::AsFd) -> usize {
    match rustix::termios::tcgetwinsize(&out) {
        Ok(size) if size.ws_col > 0 => size.ws_col.into(),
        _ => COLUMNS,
    }
}

/// Meaning of a colour; text never relies on it alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// A head or a name.
    Strong,
    Good,
    /// Worth attention, though nothing is wrong.
    Notice,
    Bad,
    /// Less important than the rest.
    Faint,
}

impl Tone {
    const fn code(self) -> &'static str {
        match self {
            Self::Strong => "1",
            Self::Bad => "31",
            Self::Good => "32",
            Self::Notice => "33",
            Self::Faint => "2",
        }
    }

    /// The text in this tone, if colours are on.
    pub fn paint(self, text: &str, colours: bool) -> String {
        if colours && !text.is_empty() {
            format!("\u{1b}[{}m{text}\u{1b}[0m", self.code())
        } else {
            text.to_owned()
        }
    }
}

/// Whether standard output takes colours: a terminal that is not dumb, unless `NO_COLOR` is set and not empty
/// (no-color.org).
pub fn colours() -> bool {
    std::io::stdout().is_terminal() && wanted()
}

fn wanted() -> bool {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    set("NO_COLOR").is_none() && set("TERM").is_none_or(|term| term != "dumb")
}

/// Whether prompts are possible: standard input and standard error are terminals.
pub fn can_ask() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Prompts and reads one line; `None` for an empty one.
///
/// # Errors
/// The terminal cannot be read.
pub fn answer(question: &str) -> Result<Option<String>, String> {
    tell_part!("{question}: ");
    let mut line = String::new();
    let mut input = std::io::stdin().lock().take(ANSWER_BYTES_MAX);
    let read = input.read_line(&mut line);
    read.map_err(|e| format!("The terminal cannot be read: {e}. Give it in the command."))?;
    let line = line.trim();
    Ok((!line.is_empty()).then(|| line.to_owned()))
}

/// Text on standard output and progress on standard error; on a shared terminal they are kept apart.
pub struct Screen {
    /// Standard error is a terminal and can redraw a line.
    draws: bool,
    /// Standard output is a terminal too, so both share the screen.
    is_shared: bool,
    colours: bool,
    columns: usize,
    /// The progress line is on the screen.
    drawn: bool,
    /// The last progress that was printed.
    told: String,
    /// The text stopped in the middle of a line, since this time.
    open: Option<Instant>,
    said: bool,
}

impl Screen {
    pub fn new() -> Self {
        let err = std::io::stderr();
        let draws = err.is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        Self {
            draws,
            is_shared: draws && std::io::stdout().is_terminal(),
            colours: draws && wanted(),
            columns: columns_of(&err),
            drawn: false,
            told: String::new(),
            open: None,
            said: false,
        }
    }

    /// Shows progress: redrawn in a terminal; elsewhere a new line when the shorter `step` changes.
    pub fn progress(&mut self, line: &str, step: &str, elapsed: Duration) {
        let elapsed = clock(elapsed);
        if !self.draws {
            if self.told != step {
                step.clone_into(&mut self.told);
                tell!("{elapsed}  {}", visible(step));
            }
            return;
        }
        if let Some(since) = self.open.filter(|_| self.is_shared) {
            if since.elapsed() < PAUSE {
                return;
            }
            self.newline();
        }
        let line = cut(&format!("{elapsed}  {line}"), self.columns.saturating_sub(1));
        if self.drawn && self.told == line {
            return;
        }
        self.told.clone_from(&line);
        tell_part!("{EMPTY_LINE}{}", Tone::Faint.paint(&line, self.colours));
        self.drawn = true;
    }

    /// Prints text as it arrives. A closed pipe is ignored.
    pub fn words(&mut self, words: &str) {
        let words = visible(words);
        if words.is_empty() {
            return;
        }
        self.clear();
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(words.as_bytes()).and_then(|()| out.flush());
        self.open = (!words.ends_with('\n')).then(Instant::now);
        self.said = true;
    }

    /// Prints a sentence beside the text.
    pub fn note(&mut self, words: &str) {
        self.clear();
        if self.is_shared && self.open.is_some() {
            self.newline();
        }
        tell!("{}", visible(words));
    }

    /// Removes the progress line.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            tell_part!("{EMPTY_LINE}");
        }
    }

    /// Ends the text with a line break.
    pub fn finish(&mut self) {
        self.clear();
        if self.said && self.open.is_some() {
            self.newline();
        }
    }

    fn newline(&mut self) {
        show!("");
        self.open = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tone_needs_colours() {
        assert_eq!(Tone::Bad.paint("error", false), "error");
        assert_eq!(Tone::Bad.paint("error", true), "\u{1b}[31merror\u{1b}[0m");
        assert_eq!(Tone::Bad.paint("", true), "");
    }
}
