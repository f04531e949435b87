//! What a terminal is given and a file or a pipe is not: its width, colours, and a line that is drawn again.

use std::io::{BufRead as _, IsTerminal as _, Read as _, Write as _};
use std::time::{Duration, Instant};

use crate::columns::{cut, visible};
use crate::time::clock;

/// Columns of a terminal that does not say how many it has.
const COLUMNS: usize = 80;
/// Words that stop in the middle of a line are broken off after this time, so that the progress is seen again.
const PAUSE: Duration = Duration::from_secs(2);
/// Bytes of an answer.
const ANSWER_BYTES_MAX: u64 = 4_096;
/// Goes to the beginning of the line and empties it.
const EMPTY_LINE: &str = "\r\u{1b}[2K";

/// Columns that a line may have: the terminal's; where the output goes elsewhere, any number.
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

/// What a colour says; it never says anything alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// A head, or a name.
    Strong,
    Good,
    /// Somebody should look at it, though nothing is wrong.
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

    /// The text in this tone, where there are colours.
    pub fn paint(self, text: &str, colours: bool) -> String {
        if colours && !text.is_empty() {
            format!("\u{1b}[{}m{text}\u{1b}[0m", self.code())
        } else {
            text.to_owned()
        }
    }
}

/// Whether standard output takes colours: a terminal that is not dumb, unless `NO_COLOR` says otherwise (no-color.org: it
/// is set, to anything but nothing).
pub fn colours() -> bool {
    std::io::stdout().is_terminal() && wanted()
}

fn wanted() -> bool {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    set("NO_COLOR").is_none() && set("TERM").is_none_or(|term| term != "dumb")
}

/// Whether somebody can be asked: they read what is said beside the output, and type.
pub fn can_ask() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks, and reads one line; nothing for Enter alone.
///
/// # Errors
/// That the terminal cannot be read.
pub fn answer(question: &str) -> Result<Option<String>, String> {
    tell_part!("{question}: ");
    let mut line = String::new();
    let mut input = std::io::stdin().lock().take(ANSWER_BYTES_MAX);
    let read = input.read_line(&mut line);
    read.map_err(|e| format!("The terminal cannot be read: {e}. Say it in the command."))?;
    let line = line.trim();
    Ok((!line.is_empty()).then(|| line.to_owned()))
}

/// Words on standard output, and how far something is on standard error; where both are the same terminal, neither is
/// written into the other.
pub struct Screen {
    /// Standard error is a terminal, which takes a line that is drawn again.
    draws: bool,
    /// Standard output is a terminal too: what is written to one of them is seen beside the other.
    is_shared: bool,
    colours: bool,
    columns: usize,
    /// The progress line stands there.
    drawn: bool,
    /// The progress that was told last.
    told: String,
    /// The words end in the middle of a line, since then.
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

    /// How far it is: drawn again in a terminal; elsewhere a line when `step`, which holds less, has changed.
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

    /// Words as they come. Whoever reads them may have gone: that ends nothing.
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

    /// A sentence beside the words.
    pub fn note(&mut self, words: &str) {
        self.clear();
        if self.is_shared && self.open.is_some() {
            self.newline();
        }
        tell!("{}", visible(words));
    }

    /// Takes the progress line away.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            tell_part!("{EMPTY_LINE}");
        }
    }

    /// Nothing comes any more: the words end in a line break.
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
