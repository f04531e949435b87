//! Tables for people: aligned, and on a terminal no wider than it.

use std::io::IsTerminal as _;

const GAP: &str = "  ";
/// No column is cut to fewer characters.
const COLUMN_CHARS_MIN: usize = 8;
/// What stands for what was cut off.
const CUT: char = '…';

/// Characters that a line may have: the terminal's; where the output goes elsewhere, any number.
pub fn width() -> usize {
    let out = std::io::stdout();
    if !out.is_terminal() {
        return usize::MAX;
    }
    match rustix::termios::tcgetwinsize(&out) {
        Ok(size) if size.ws_col > 0 => size.ws_col.into(),
        _ => 80,
    }
}

/// A table with its heads, and the rows below them. Where it is too wide, the widest columns are cut.
pub fn table<const N: usize>(heads: [&str; N], rows: &[[String; N]], width: usize) -> String {
    let mut widths = heads.map(chars);
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(chars(cell));
        }
    }
    let gaps = GAP.len() * N.saturating_sub(1);
    loop {
        let all: usize = widths.iter().sum::<usize>() + gaps;
        let Some(widest) = widths
            .iter_mut()
            .max()
            .filter(|widest| all > width && **widest > COLUMN_CHARS_MIN)
        else {
            break;
        };
        *widest -= 1;
    }
    let head = heads.map(str::to_owned);
    let mut lines = vec![line(&head, &widths)];
    lines.extend(rows.iter().map(|row| line(row, &widths)));
    lines.join("\n")
}

fn line<const N: usize>(cells: &[String; N], widths: &[usize; N]) -> String {
    let mut line = String::new();
    for (cell, width) in cells.iter().zip(widths) {
        let shown = cut(cell, *width);
        let missing = width.saturating_sub(chars(&shown));
        line.push_str(&shown);
        line.push_str(&" ".repeat(missing));
        line.push_str(GAP);
    }
    line.trim_end().to_owned()
}

/// The beginning of a text that is longer than so many characters. What would move the cursor is left out.
pub fn cut(text: &str, chars_max: usize) -> String {
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    if chars(&text) <= chars_max {
        return text;
    }
    let kept = text.chars().take(chars_max.saturating_sub(1));
    kept.chain([CUT]).collect()
}

fn chars(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<[String; 3]> {
        vec![
            [
                "a".to_owned(),
                "a rather long cell of words".to_owned(),
                "1 s".to_owned(),
            ],
            [
                "bb".to_owned(),
                "ü\u{1b}[2J".to_owned(),
                "22 min".to_owned(),
            ],
        ]
    }

    #[test]
    fn columns_are_aligned_and_nothing_moves_the_cursor() {
        assert_eq!(
            table(["ID", "WORDS", "AGE"], &rows(), usize::MAX),
            "\
ID  WORDS                        AGE
a   a rather long cell of words  1 s
bb  ü[2J                         22 min"
        );
    }

    #[test]
    fn on_a_narrow_terminal_the_widest_column_is_cut() {
        let shown = table(["ID", "WORDS", "AGE"], &rows(), 26);
        assert_eq!(
            shown,
            "\
ID  WORDS           AGE
a   a rather long…  1 s
bb  ü[2J            22 min"
        );
        assert!(shown.lines().all(|line| line.chars().count() <= 26));
    }
}
