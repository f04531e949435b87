//! Tables as aligned text, for platforms without tables.

use unicode_width::UnicodeWidthStr as _;

use super::plain::one_line;

/// Widest padded column: one long cell must not widen every row.
const COLUMN_CHARS_MAX: usize = 40;

/// Rows of cells as aligned lines; the first row is the header.
pub(super) fn aligned(rows: &[Vec<String>]) -> String {
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| one_line(cell)).collect()).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.width()).filter(|w| *w <= COLUMN_CHARS_MAX).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for (index, row) in rows.iter().enumerate() {
        let cells = row.iter().zip(&widths).map(|(cell, width)| {
            let blanks = width.saturating_sub(cell.width());
            format!("{cell}{}", " ".repeat(blanks))
        });
        out.push_str(cells.collect::<Vec<_>>().join(" | ").trim_end());
        out.push('\n');
        if index == 0 {
            let rule = widths.iter().map(|w| "-".repeat((*w).max(1)));
            out.push_str(&rule.collect::<Vec<_>>().join("-|-"));
            out.push('\n');
        }
    }
    out
}
