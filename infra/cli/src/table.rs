//! Tables for people: aligned by terminal columns, and no wider than the terminal.

pub use crate::columns::CUT;
use crate::columns::{columns, cut, cut_middle, one_line};
use crate::terminal::Tone;

const GAP: &str = "  ";
/// Least width of a column.
const COLUMN_MIN: usize = 8;
/// Prefixes of thread and sandbox keys.
const KEYS: [&str; 3] = ["discord:", "slack:", "sandbox:"];

/// How a table is shown.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// Most columns per line.
    pub width: usize,
    /// Colour heads and states.
    pub colours: bool,
}

impl Style {
    /// The style for standard output.
    pub fn of_output() -> Self {
        Self { width: crate::terminal::width(), colours: crate::terminal::colours() }
    }
}

/// Formats a table. If it is too wide, the widest columns are cut. State words are coloured by their meaning.
pub fn table<const N: usize>(heads: [&str; N], rows: &[[String; N]], style: Style) -> String {
    let mut widths = heads.map(columns);
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(columns(&one_line(cell)));
        }
    }
    let gaps = GAP.len() * N.saturating_sub(1);
    loop {
        let all: usize = widths.iter().sum::<usize>() + gaps;
        let Some(widest) =
            widths.iter_mut().max().filter(|widest| all > style.width && **widest > COLUMN_MIN)
        else {
            break;
        };
        *widest -= 1;
    }
    let head = heads.map(str::to_owned);
    let mut lines = vec![line(&head, &widths, |text| Tone::Strong.paint(text, style.colours))];
    let shown = |text: &str| match tone(text) {
        Some(tone) => tone.paint(text, style.colours),
        None => text.to_owned(),
    };
    lines.extend(rows.iter().map(|row| line(row, &widths, shown)));
    lines.join("\n")
}

/// Tone of a cell whose first word is a state.
fn tone(cell: &str) -> Option<Tone> {
    match cell.split(' ').next().unwrap_or_default() {
        "active" | "live" | "running" | "started" | "sent" => Some(Tone::Good),
        "error" | "orphan" | "failed" | "lost" | "unreadable" => Some(Tone::Bad),
        "asks" | "unknown" | "open" => Some(Tone::Notice),
        "paused" | "stopped" | "destroyed" | "-" => Some(Tone::Faint),
        _ => None,
    }
}

fn line<const N: usize>(
    cells: &[String; N],
    widths: &[usize; N],
    shown: impl Fn(&str) -> String,
) -> String {
    let mut line = String::new();
    let mut gap = 0;
    for (cell, width) in cells.iter().zip(widths) {
        // Keys of one tenant share a beginning and differ at the end.
        let is_key = KEYS.iter().any(|begin| cell.starts_with(begin));
        let cell = if is_key { cut_middle(cell, *width) } else { cut(cell, *width) };
        if !cell.is_empty() {
            line.push_str(&" ".repeat(std::mem::take(&mut gap)));
            line.push_str(&shown(&cell));
        }
        gap += width.saturating_sub(columns(&cell)) + GAP.len();
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(width: usize) -> Style {
        Style { width, colours: false }
    }

    fn rows(cells: [[&str; 3]; 2]) -> Vec<[String; 3]> {
        cells.map(|row| row.map(str::to_owned)).to_vec()
    }

    #[test]
    fn columns_align_without_control_characters() {
        let rows = rows([
            ["a", "a rather long cell of words", "1 s"],
            ["bb", "ü\u{1b}[2J\u{202e}x", "22 min"],
        ]);
        assert_eq!(
            table(["ID", "WORDS", "AGE"], &rows, plain(usize::MAX)),
            "\
ID  WORDS                        AGE
a   a rather long cell of words  1 s
bb  ü[2Jx                        22 min"
        );
        let shown = table(["ID", "WORDS", "AGE"], &rows, plain(26));
        assert_eq!(
            shown,
            "\
ID  WORDS           AGE
a   a rather long…  1 s
bb  ü[2Jx           22 min"
        );
    }

    #[test]
    fn narrow_tables_keep_key_ends() {
        let row = |end: &str| {
            let key = format!("discord:1575350328751030272:15753604666396{end}");
            [key, "active 3 s".to_owned(), "22 min ago".to_owned()]
        };
        let rows = [row("50816"), row("06016")];
        let shown = table(["THREAD", "SANDBOX", "ACTIVE"], &rows, plain(46));
        assert_eq!(
            shown,
            "\
THREAD                  SANDBOX     ACTIVE
discord…60466639650816  active 3 s  22 min ago
discord…60466639606016  active 3 s  22 min ago"
        );
    }

    #[test]
    fn wide_characters_are_never_cut() {
        let rows =
            rows([["田中さん", "修正する 👩‍💻 テスト", "1 s"], ["Anna", "e\u{301}tat", "22 min"]]);
        assert_eq!(
            table(["BY", "WORDS", "AGE"], &rows, plain(usize::MAX)),
            "\
BY        WORDS               AGE
田中さん  修正する 👩‍💻 テスト  1 s
Anna      e\u{301}tat                22 min"
        );
        // One column short for the wide emoji: it goes as a whole.
        assert_eq!(cut("修正する 👩‍💻 テスト", 11), "修正する …");
        assert_eq!(cut("修正する 👩‍💻 テスト", 12), "修正する 👩‍💻…");
        assert_eq!(cut("e\u{301}e\u{301}e\u{301}", 2), "e\u{301}…");
        for width in 20..40 {
            let shown = table(["BY", "WORDS", "AGE"], &rows, plain(width));
            let widest = shown.lines().map(columns).max().unwrap_or_default();
            assert!(widest <= width.max(26), "{width}: {shown}");
        }
    }

    #[test]
    fn colours_do_not_change_alignment() {
        let rows = rows([["active 3 s", "x", "-"], ["error 1 min", "yy", "running 2 s"]]);
        let coloured = Style { width: usize::MAX, colours: true };
        let shown = table(["SANDBOX", "ID", "TURN"], &rows, coloured);
        assert_eq!(
            shown,
            "\u{1b}[1mSANDBOX\u{1b}[0m      \u{1b}[1mID\u{1b}[0m  \u{1b}[1mTURN\u{1b}[0m
\u{1b}[32mactive 3 s\u{1b}[0m   x   \u{1b}[2m-\u{1b}[0m
\u{1b}[31merror 1 min\u{1b}[0m  yy  \u{1b}[32mrunning 2 s\u{1b}[0m"
        );
        let without = table(["SANDBOX", "ID", "TURN"], &rows, plain(usize::MAX));
        let mut bare = shown;
        for code in ["1", "2", "31", "32", "0"] {
            bare = bare.replace(&format!("\u{1b}[{code}m"), "");
        }
        assert_eq!(bare, without);
    }
}
