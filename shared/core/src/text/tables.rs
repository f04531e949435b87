//! Tables of Markdown, for a platform that shows none.

use std::ops::Range;

use pulldown_cmark::{Event, Parser, Tag, TagEnd};

use super::markdown::options;
use super::plain::{joins, one_line};

/// A column of a table is padded to at most this width, so that one long cell does not blow up every row.
const COLUMN_CHARS_MAX: usize = 40;

/// Discord shows no tables: each becomes an aligned code block. Everything else stays as it is.
#[must_use]
pub fn discord_markdown(markdown: &str) -> String {
    let mut out = String::with_capacity(markdown.len());
    let mut copied = 0;
    for (range, rows) in tables(markdown) {
        out.push_str(&markdown[copied..range.start]);
        let body = &markdown[range.clone()];
        out.push_str("```\n");
        out.push_str(&aligned(&rows));
        out.push_str("```");
        out.push_str(&body[body.trim_end().len()..]);
        copied = range.end;
    }
    out.push_str(&markdown[copied..]);
    out
}

type Rows = Vec<Vec<String>>;

/// The tables that stand by themselves (not in a list or quote), with the plain text of their cells.
fn tables(markdown: &str) -> Vec<(Range<usize>, Rows)> {
    let mut found = Vec::new();
    let mut depth = 0usize;
    let mut table: Option<(Range<usize>, Rows)> = None;
    let mut link: Vec<(String, usize)> = Vec::new();
    for (event, range) in Parser::new_ext(markdown, options()).into_offset_iter() {
        if let Some((_, rows)) = table.as_mut() {
            let cell = rows.last_mut().and_then(|row| row.last_mut());
            match (&event, cell) {
                (Event::Start(Tag::TableHead | Tag::TableRow), _) => rows.push(Vec::new()),
                (Event::Start(Tag::TableCell), _) => rows
                    .last_mut()
                    .into_iter()
                    .for_each(|row| row.push(String::new())),
                (
                    Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }),
                    Some(cell),
                ) => {
                    link.push((dest_url.to_string(), cell.len()));
                }
                (Event::End(TagEnd::Link | TagEnd::Image), Some(cell)) => {
                    if let Some((url, start)) = link.pop()
                        && cell.get(start..) != Some(url.as_str())
                    {
                        cell.push_str(&format!(" ({url})"));
                    }
                }
                (Event::Text(text) | Event::Code(text) | Event::InlineHtml(text), Some(cell)) => {
                    // A fence inside of the block would end it.
                    cell.push_str(&text.replace("```", "`\u{200b}`\u{200b}`"));
                }
                _ => {}
            }
        }
        match event {
            Event::Start(tag) => {
                if depth == 0 && matches!(tag, Tag::Table(_)) {
                    table = Some((range, Vec::new()));
                }
                depth += 1;
            }
            Event::End(end) => {
                depth = depth.saturating_sub(1);
                if end == TagEnd::Table && depth == 0 {
                    found.extend(table.take());
                }
            }
            _ => {}
        }
    }
    found
}

fn aligned(rows: &Rows) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells
            .map(|cell| columns_of(cell))
            .filter(|w| *w <= COLUMN_CHARS_MAX)
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for (index, row) in rows.iter().enumerate() {
        let cells = row.iter().zip(&widths).map(|(cell, width)| {
            let cell = one_line(cell);
            let blanks = width.saturating_sub(columns_of(&cell));
            format!("{cell}{}", " ".repeat(blanks))
        });
        out.push_str(cells.collect::<Vec<_>>().join(" | ").trim_end());
        out.push('\n');
        if index == 0 {
            out.push_str(
                &widths
                    .iter()
                    .map(|w| "-".repeat((*w).max(1)))
                    .collect::<Vec<_>>()
                    .join("-|-"),
            );
            out.push('\n');
        }
    }
    out
}

/// Columns in a fixed-width font: East Asian wide characters and emoji take two.
fn columns_of(text: &str) -> usize {
    let wide = |c: char| {
        matches!(c, '\u{1100}'..='\u{115f}' | '\u{2e80}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}'
            | '\u{fe30}'..='\u{fe6f}' | '\u{ff00}'..='\u{ff60}' | '\u{1f300}'..='\u{1faff}' | '\u{20000}'..='\u{3fffd}')
    };
    text.chars()
        .map(|c| {
            if joins(c) {
                0
            } else {
                1 + usize::from(wide(c))
            }
        })
        .sum()
}
