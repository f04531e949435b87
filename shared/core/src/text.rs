//! Text: answers cut at the platforms' limits, and made fit for what a platform can show.
//!
//! Promised: a cut never lies inside a code point, and lies inside a code block, table, link or word only where a
//! whole one does not fit; a cut code block is closed and opened again; nothing but white space is lost. Lengths are
//! UTF-16 units, the strictest reading of the platforms' "characters". Deliberately absent: HTML, and any change of
//! words.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

/// Smallest part that [`split`] makes: below it a code fence would leave no room for code.
pub const PART_UNITS_MIN: usize = 40;
/// A column of a table is padded to at most this width, so that one long cell does not blow up every row.
const COLUMN_CHARS_MAX: usize = 40;
/// Names of code fences longer than this share of a part are not repeated, and fences longer than half of it are text.
const FENCE_SHARE: usize = 4;

/// The length in UTF-16 units.
#[must_use]
pub fn units(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

/// At most `chars` characters (and UTF-16 units): cut at a word where one ends in the last third, with `…` at the end.
#[must_use]
pub fn shorten(text: &str, chars: usize) -> String {
    let text = text.trim();
    if units(text) <= chars {
        return text.to_owned();
    }
    let Some(room) = chars.checked_sub(1) else {
        return String::new();
    };
    let end = prefix_within(text, room);
    let word = text[..end]
        .rfind(char::is_whitespace)
        .filter(|at| *at >= end - end / 3);
    format!("{}…", text[..word.unwrap_or(end)].trim_end())
}

/// One line of text: every run of white space and control characters becomes one space.
#[must_use]
pub fn one_line(text: &str) -> String {
    text.split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Cuts Markdown into parts of at most `units_max` UTF-16 units ([`PART_UNITS_MIN`] at least). No part is blank.
#[must_use]
pub fn split(markdown: &str, units_max: usize) -> Vec<String> {
    let max = units_max.max(PART_UNITS_MIN);
    let map = Map::read(markdown, max);
    let mut parts = Vec::new();
    let mut from = 0;
    while from < markdown.len() {
        let to = map.next_cut(from, max);
        if !markdown[from..to].trim().is_empty() {
            parts.push(map.part(from..to));
        }
        from = to;
    }
    parts
}

/// Headings under which an answer says what it comes to, in lower case.
const GIST_HEADINGS: [&str; 6] = [
    "summary",
    "in short",
    "conclusion",
    "tl;dr",
    "result",
    "outcome",
];

/// What stands for a long text where only so many UTF-16 units fit: its last section that sums it up, if it has one that
/// fits, else its beginning, cut as [`split`] cuts.
#[must_use]
pub fn gist(markdown: &str, units_max: usize) -> String {
    if units(markdown) <= units_max {
        return markdown.to_owned();
    }
    let section = sections(markdown).into_iter().rev().find(|(title, body)| {
        let title = title.to_lowercase();
        let sums_up = GIST_HEADINGS.iter().any(|word| title.starts_with(word));
        sums_up && units(body) <= units_max
    });
    match section {
        Some((_, body)) => body.trim().to_owned(),
        None => split(markdown, units_max)
            .into_iter()
            .next()
            .unwrap_or_default(),
    }
}

/// The sections under headings that stand by themselves: the heading's words, and everything up to the next one of its
/// level or above, the heading included.
fn sections(markdown: &str) -> Vec<(String, &str)> {
    let mut heads: Vec<(usize, HeadingLevel, String)> = Vec::new();
    let (mut depth, mut inside) = (0usize, false);
    for (event, range) in Parser::new_ext(markdown, options()).into_offset_iter() {
        match event {
            Event::Start(Tag::Heading { level, .. }) if depth == 0 => {
                heads.push((range.start, level, String::new()));
                inside = true;
                depth += 1;
            }
            Event::Start(_) => depth += 1,
            Event::End(end) => {
                depth = depth.saturating_sub(1);
                inside &= !matches!(end, TagEnd::Heading(_));
            }
            Event::Text(words) | Event::Code(words) if inside => {
                if let Some((_, _, title)) = heads.last_mut() {
                    title.push_str(&words);
                }
            }
            _ => {}
        }
    }
    let end = |at: usize| {
        let (_, level, _) = &heads[at];
        let next = heads[at + 1..].iter().find(|(_, other, _)| other <= level);
        next.map_or(markdown.len(), |(start, _, _)| *start)
    };
    (0..heads.len())
        .map(|at| (heads[at].2.clone(), &markdown[heads[at].0..end(at)]))
        .collect()
}

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

/// How good a place is for a cut; lower is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Block,
    Item,
    Line,
    Word,
}

#[derive(Debug, Clone, Copy)]
struct Cut {
    at: usize,
    rank: Rank,
    /// UTF-16 units before it.
    units: usize,
}

/// A fenced code block that can be closed and opened again.
#[derive(Debug)]
struct Fence {
    /// Places strictly inside of it: a cut here needs the fence again.
    inside: Range<usize>,
    /// What comes before the fence on its line, as blanks and `>`.
    indent: String,
    /// The characters that open and close the fence.
    marks: String,
    /// The info string, if it is short enough to be repeated.
    info: String,
    /// It has a closing line. One without ends with its list or quote, which is not opened again with it.
    closed: bool,
}

impl Fence {
    fn opening(&self) -> String {
        format!("{}{}{}\n", self.quote(), self.marks, self.info)
    }

    fn closing(&self) -> String {
        format!("{}{}", self.indent, self.marks)
    }

    /// The indent as far as it is a quote: list items are not opened again, so their indent is dropped.
    fn quote(&self) -> &str {
        self.indent
            .rfind('>')
            .map_or("", |at| &self.indent[..(at + 2).min(self.indent.len())])
    }
}

/// Where a text may be cut.
struct Map<'a> {
    text: &'a str,
    cuts: Vec<Cut>,
    fences: Vec<Fence>,
}

impl<'a> Map<'a> {
    fn read(text: &'a str, max: usize) -> Self {
        let mut starts: Vec<(usize, Rank)> = Vec::new();
        let mut whole: Vec<Range<usize>> = Vec::new();
        let mut fences = Vec::new();
        let mut depth = 0usize;
        for (event, range) in Parser::new_ext(text, options()).into_offset_iter() {
            match event {
                Event::Start(tag) => {
                    match &tag {
                        Tag::Link { .. } | Tag::Image { .. } => whole.push(range.clone()),
                        Tag::CodeBlock(CodeBlockKind::Fenced(_)) => {
                            fences.extend(fence(text, &range, max))
                        }
                        _ => {}
                    }
                    match (depth, &tag) {
                        (0, _) => starts.push((line_start(text, range.start), Rank::Block)),
                        (_, Tag::Item | Tag::Paragraph | Tag::CodeBlock(_) | Tag::List(_)) => {
                            starts.push((line_start(text, range.start), Rank::Item));
                        }
                        _ => {}
                    }
                    depth += 1;
                }
                Event::End(_) => depth = depth.saturating_sub(1),
                Event::Code(_) | Event::InlineMath(_) | Event::FootnoteReference(_) => {
                    whole.push(range)
                }
                Event::Rule | Event::Html(_) if depth == 0 => {
                    starts.push((line_start(text, range.start), Rank::Block))
                }
                _ => {}
            }
        }
        whole.retain(|range| units(&text[range.clone()]) <= max);
        starts.sort();
        starts.dedup_by_key(|(at, _)| *at);
        let cuts = cuts(text, &starts, &whole, &fences);
        Self { text, cuts, fences }
    }

    fn fence_at(&self, at: usize) -> Option<&Fence> {
        let index = self.fences.partition_point(|fence| fence.inside.end <= at);
        self.fences
            .get(index)
            .filter(|fence| fence.inside.contains(&at))
    }

    /// The fence that a part ending here has to close; `open` is the one that it opened again.
    fn closes<'f>(&'f self, open: Option<&'f Fence>, at: usize) -> Option<&'f Fence> {
        let ended = || open.filter(|fence| !fence.closed && at >= fence.inside.end);
        self.fence_at(at).or_else(ended)
    }

    /// The part between two places, with the fences that it needs.
    fn part(&self, range: Range<usize>) -> String {
        let body = &self.text[range.clone()];
        let open = self.fence_at(range.start);
        let close = self.closes(open, range.end);
        let mut part = String::with_capacity(body.len() + 16);
        match open {
            None => part.push_str(body.trim_start_matches(['\n', '\r'])),
            Some(fence) => {
                part.push_str(&fence.opening());
                part.push_str(&dedented(body, fence, range.start));
            }
        }
        part.truncate(part.trim_end().len());
        if let Some(fence) = close {
            part.push('\n');
            match open {
                // Opened here without its list's indent, so closed likewise.
                Some(same) if same.inside == fence.inside => {
                    part.push_str(&format!("{}{}", fence.quote(), fence.marks))
                }
                _ => part.push_str(&fence.closing()),
            }
        }
        part
    }

    /// Where the part that begins at `from` ends. Always behind `from`.
    fn next_cut(&self, from: usize, max: usize) -> usize {
        let open = self.fence_at(from);
        let opening = open.map_or(0, |fence| units(&fence.opening()));
        let closing = |at: usize| {
            self.closes(open, at)
                .map_or(0, |fence| units(&fence.closing()) + 1)
        };
        // What comes after a block that has no closing line must not be drawn into it.
        let end = open
            .filter(|fence| !fence.closed)
            .map_or(self.text.len(), |fence| {
                fence.inside.end.min(self.text.len())
            });
        let rest = &self.text[from..end];
        let within = prefix_within(rest, max);
        if within == rest.len() && opening + units(rest) + closing(end) <= max {
            return end;
        }
        let first = self.cuts.partition_point(|cut| cut.at <= from);
        let reach = first + self.cuts[first..].partition_point(|cut| cut.at <= from + within);
        let before = units_before(&self.cuts, first, self.text, from);
        let fits = |cut: &&Cut| opening + (cut.units - before) + closing(cut.at) <= max;
        for rank in [Rank::Block, Rank::Item, Rank::Line, Rank::Word] {
            let Some(best) = self.cuts[first..reach]
                .iter()
                .rev()
                .filter(|cut| cut.rank <= rank)
                .find(fits)
            else {
                continue;
            };
            // A small part is worth it when what follows then stays whole.
            let next = self.cuts[first..]
                .iter()
                .find(|cut| cut.rank <= rank && cut.at > best.at);
            let following = next.map_or_else(
                || units(&self.text[best.at..]),
                |next| next.units - best.units,
            );
            if best.units - before >= max / 3 || following <= max || rank == Rank::Word {
                return best.at;
            }
        }
        self.hard_cut(from..end, max.saturating_sub(opening), closing)
    }

    /// A word longer than a part: cut between characters, not before a mark that belongs to the one before it.
    fn hard_cut(&self, range: Range<usize>, max: usize, closing: impl Fn(usize) -> usize) -> usize {
        let from = range.start;
        let rest = &self.text[range];
        let mut used = 0;
        let (mut any, mut clean) = (None, None);
        let mut previous = None;
        for (offset, c) in rest.char_indices().chain([(rest.len(), ' ')]) {
            if used > max {
                break;
            }
            if offset > 0 && used + closing(from + offset) <= max {
                any = Some(from + offset);
                if !joins(c) && previous != Some('\u{200d}') && !would_open_block(&rest[offset..]) {
                    clean = any;
                }
            }
            used += c.len_utf16();
            previous = Some(c);
        }
        let step = rest.chars().next().map_or(1, char::len_utf8);
        clean.or(any).unwrap_or(from + step)
    }
}

fn options() -> Options {
    Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_FOOTNOTES
}

/// Marks within a line that would open a block of code if a part began with them.
fn would_open_block(rest: &str) -> bool {
    rest.starts_with("```") || rest.starts_with("~~~")
}

/// Characters that change the one before them.
fn joins(c: char) -> bool {
    matches!(c, '\u{200d}' | '\u{fe00}'..='\u{fe0f}' | '\u{0300}'..='\u{036f}' | '\u{1f3fb}'..='\u{1f3ff}' | '\u{20d0}'..='\u{20ff}')
}

/// The longest prefix with at most this many units, as a byte index.
fn prefix_within(text: &str, units_max: usize) -> usize {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += c.len_utf16();
        if used > units_max {
            return at;
        }
    }
    text.len()
}

/// The start of the line, if only blanks and quote marks lie between; else the place itself.
fn line_start(text: &str, at: usize) -> usize {
    let start = text[..at].rfind('\n').map_or(0, |nl| nl + 1);
    if text[start..at]
        .chars()
        .all(|c| matches!(c, ' ' | '\t' | '>'))
    {
        start
    } else {
        at
    }
}

fn fence(text: &str, range: &Range<usize>, max: usize) -> Option<Fence> {
    let body = &text[range.clone()];
    let mark = body.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let marks: String = body.chars().take_while(|c| *c == mark).collect();
    let first_line = body.lines().next().unwrap_or(body);
    let start = text[..range.start].rfind('\n').map_or(0, |nl| nl + 1);
    let indent: String = text[start..range.start]
        .chars()
        .map(|c| if matches!(c, '>' | '\t') { c } else { ' ' })
        .collect();
    if units(&indent) + units(&marks) > max / FENCE_SHARE / 2 {
        return None;
    }
    let info = first_line[marks.len()..].trim();
    let info = if units(info) <= max / FENCE_SHARE {
        info
    } else {
        ""
    };
    let content = range.start + first_line.len() + 1;
    // The last line is the closing fence, unless the block never was closed: then the end of the text lies inside.
    let trimmed = body.trim_end();
    let last_line = trimmed.rfind('\n').map(|nl| nl + 1);
    let closed = last_line.filter(|at| {
        let line = trimmed[*at..].trim_start_matches([' ', '\t', '>']);
        line.len() >= marks.len() && line.chars().all(|c| c == mark)
    });
    let end = closed.map_or(
        if range.end >= text.trim_end().len() {
            text.len() + 1
        } else {
            range.end
        },
        |at| range.start + at,
    );
    (content < end).then(|| Fence {
        inside: content..end,
        indent,
        marks,
        info: info.to_owned(),
        closed: closed.is_some(),
    })
}

/// A fence that is opened again without its list's indent holds code without that indent; quotes keep theirs.
fn dedented(body: &str, fence: &Fence, from: usize) -> String {
    let blanks = if fence.quote().is_empty() {
        fence.indent.len()
    } else {
        0
    };
    if blanks == 0 {
        return body.to_owned();
    }
    let mut at = from;
    let mut out = String::with_capacity(body.len());
    for line in body.split_inclusive('\n') {
        // The closing line belongs to the block; what comes after it does not.
        let belongs = at <= fence.inside.end;
        let cut = if belongs {
            line.bytes().take(blanks).take_while(|b| *b == b' ').count()
        } else {
            0
        };
        out.push_str(&line[cut..]);
        at += line.len();
    }
    out
}

/// Every place where a cut is allowed, in order.
fn cuts(
    text: &str,
    starts: &[(usize, Rank)],
    whole: &[Range<usize>],
    fences: &[Fence],
) -> Vec<Cut> {
    let mut cuts = Vec::new();
    let (mut next_start, mut next_whole, mut next_fence) = (0, 0, 0);
    let mut units = 0;
    let mut previous = None;
    for (at, c) in text.char_indices() {
        while whole.get(next_whole).is_some_and(|range| range.end <= at) {
            next_whole += 1;
        }
        while fences
            .get(next_fence)
            .is_some_and(|fence| fence.inside.end < at)
        {
            next_fence += 1;
        }
        while starts.get(next_start).is_some_and(|(start, _)| *start < at) {
            next_start += 1;
        }
        let kept_whole = whole.get(next_whole).is_some_and(|range| range.start < at);
        // An empty block before or after a cut helps nobody: neither right behind the opening line nor before the closing one.
        let edge = fences
            .get(next_fence)
            .is_some_and(|fence| at == fence.inside.start || at == fence.inside.end);
        let block = starts
            .get(next_start)
            .filter(|(start, _)| *start == at)
            .map(|(_, rank)| *rank);
        let rank = block.or(match previous {
            Some('\n') => Some(Rank::Line),
            Some(p)
                if p.is_whitespace() && !c.is_whitespace() && !would_open_block(&text[at..]) =>
            {
                Some(Rank::Word)
            }
            _ => None,
        });
        if let Some(rank) = rank
            && at > 0
            && !kept_whole
            && !edge
        {
            cuts.push(Cut { at, rank, units });
        }
        units += c.len_utf16();
        previous = Some(c);
    }
    cuts
}

/// UTF-16 units before a place: those before the nearest earlier cut, and what lies between.
fn units_before(cuts: &[Cut], first: usize, text: &str, from: usize) -> usize {
    match first.checked_sub(1).map(|index| cuts[index]) {
        Some(cut) => cut.units + units(&text[cut.at..from]),
        None => units(&text[..from]),
    }
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

/// A number with its thousands apart: `12,345`.
#[must_use]
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A span of time as a person says it.
#[must_use]
pub fn span(ms: u64) -> String {
    let s = ms / 1000;
    match s {
        0..60 => format!("{s} s"),
        60..3600 => format!("{} min {} s", s / 60, s % 60),
        _ => format!("{} h {} min", s / 3600, s % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ink(text: &str) -> String {
        text.chars().filter(|c| !c.is_whitespace()).collect()
    }

    fn is_subsequence(needle: &str, hay: &str) -> bool {
        let mut hay = hay.chars();
        needle.chars().all(|c| hay.any(|h| h == c))
    }

    /// The code of every fenced block, as a Markdown reader sees it.
    fn code(markdown: &str) -> String {
        let mut inside = false;
        let mut out = String::new();
        for event in Parser::new_ext(markdown, options()) {
            match event {
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))) => inside = true,
                Event::End(TagEnd::CodeBlock) => inside = false,
                Event::Text(text) if inside => out.push_str(&text),
                _ => {}
            }
        }
        ink(&out)
    }

    #[test]
    fn marks_of_a_block_within_a_line_never_begin_a_part() {
        let text = format!(
            "{} ```no block``` {}",
            "word ".repeat(20),
            "word ".repeat(20)
        );
        for max in 20..140 {
            let parts = split(&text, max);
            assert!(
                parts.iter().all(|part| !part.starts_with("```")),
                "{max}: {parts:?}"
            );
        }
    }

    #[test]
    fn a_long_text_is_stood_for_by_its_summary_else_by_its_beginning() {
        let long = "words of it ".repeat(100);
        let with = format!(
            "# Report\n\n{long}\n\n## Summary of all\n\nIt **works**.\n\n### More\n\nA detail.\n\n## Appendix\n\n{long}"
        );
        assert_eq!(
            gist(&with, 200),
            "## Summary of all\n\nIt **works**.\n\n### More\n\nA detail."
        );
        let without = format!("# Report\n\nFirst.\n\n```\n# Summary\n```\n\n{long}");
        let begins = gist(&without, 60);
        assert!(
            begins.starts_with("# Report\n\nFirst.") && units(&begins) <= 60,
            "{begins}"
        );
        let too_long = format!("# A\n\n{long}\n\n# Summary\n\n{long}");
        assert!(gist(&too_long, 100).starts_with("# A"));
        assert_eq!(gist("short", 100), "short");
    }

    #[test]
    fn a_short_answer_stays_as_it_is_and_a_blank_one_has_no_parts() {
        assert_eq!(split("Done.\n\n- a\n- b", 2000), ["Done.\n\n- a\n- b"]);
        assert!(split("", 2000).is_empty());
        assert!(split(" \n\n\t", 2000).is_empty());
    }

    #[test]
    fn a_long_code_block_is_closed_and_opened_again_with_its_language() {
        let code: String = (0..200)
            .map(|n| format!("    let value_{n} = {n};\n"))
            .collect();
        let answer = format!("Here it is:\n\n```rust\n{code}```\n\nThat was it.");
        let parts = split(&answer, 500);
        assert!(parts.len() > 5);
        for part in &parts {
            assert!(units(part) <= 500);
            assert_eq!(part.matches("```").count() % 2, 0, "unbalanced: {part}");
        }
        assert!(parts[1].starts_with("```rust\n    let value_"));
        assert!(parts.last().expect("parts").ends_with("That was it."));
        let lines: Vec<&str> = parts
            .iter()
            .flat_map(|p| p.lines())
            .filter(|l| l.contains("value_"))
            .collect();
        assert_eq!(lines.len(), 200, "a line was cut or lost");
    }

    #[test]
    fn a_code_block_in_a_nested_list_is_code_in_every_part() {
        let code: String = (0..80).map(|n| format!("       step_{n}();\n")).collect();
        let answer = format!("1. First\n\n   - Then\n\n       ```js\n{code}       ```\n\n2. Last");
        let original: String = (0..80).map(|n| format!("step_{n}();")).collect();
        let parts = split(&answer, 300);
        assert!(parts.len() > 3);
        assert_eq!(
            parts
                .iter()
                .map(|p| super::tests::code(p))
                .collect::<String>(),
            original
        );
    }

    #[test]
    fn a_code_block_in_a_quote_is_quoted_in_every_part() {
        let code: String = (0..80).map(|n| format!("> step_{n}();\n")).collect();
        let answer = format!("> Look:\n>\n> ```js\n{code}> ```\n> Good?");
        let parts = split(&answer, 300);
        assert!(parts.iter().all(|p| p.lines().all(|l| l.starts_with('>'))));
        let original: String = (0..80).map(|n| format!("step_{n}();")).collect();
        assert_eq!(
            parts
                .iter()
                .map(|p| super::tests::code(p))
                .collect::<String>(),
            original
        );
    }

    #[test]
    fn a_code_block_that_was_never_closed_is_closed_in_every_part() {
        let answer = format!("```sh\n{}", "echo one two three\n".repeat(40));
        for part in split(&answer, 200) {
            assert!(
                part.starts_with("```sh\n") && part.ends_with("\n```"),
                "{part}"
            );
        }
    }

    #[test]
    fn a_code_block_that_ends_with_its_list_swallows_nothing_after_it() {
        let code = "  step();\n".repeat(60);
        let answer = format!("- x\n\n  ```py\n{code}Words after the list.");
        let parts = split(&answer, 300);
        let last = parts.last().expect("parts");
        assert_eq!(last, "Words after the list.");
        assert!(parts[1..parts.len() - 1].iter().all(|part| {
            part.starts_with("```py\n") && part.ends_with("\n```") && units(part) <= 300
        }));
    }

    #[test]
    fn a_table_that_fits_is_not_cut() {
        let table = format!("| a | b |\n|---|---|\n{}", "| one | two |\n".repeat(20));
        let answer = format!("{}\n\n{table}\nAfterwards.", "Words before. ".repeat(5));
        let parts = split(&answer, units(&table) + 10);
        assert!(
            parts.iter().any(|part| part.contains(table.trim())),
            "{parts:#?}"
        );
    }

    #[test]
    fn links_and_words_stay_whole_where_they_fit() {
        let link = "[the words of it](https://example.com/a/very/long/path?with=query)";
        let answer = format!("{} {link} {}", "word ".repeat(12), "word ".repeat(30));
        for part in split(&answer, 100) {
            assert_eq!(part.contains("[the"), part.contains(link), "{part}");
            assert!(
                part.split_whitespace()
                    .all(|w| w == "word" || link.contains(w)),
                "{part}"
            );
        }
    }

    #[test]
    fn a_word_without_end_is_cut_between_characters() {
        let answer = "👩‍👩‍👧".repeat(100);
        let parts = split(&answer, 50);
        assert_eq!(parts.concat(), answer);
        assert!(parts.iter().all(|part| units(part) <= 50
            && !part.starts_with('\u{200d}')
            && !part.ends_with('\u{200d}')));
    }

    #[test]
    fn a_table_becomes_an_aligned_code_block_and_the_rest_stays() {
        let markdown = "Before\n\n| Name | n |\n|:--|--:|\n| `a` | 1 |\n| 漢字 | [x](https://e.org) |\n\nAfter | not a table\n";
        let expected = "Before\n\n```\nName | n\n-----|------------------\na    | 1\n漢字 | x (https://e.org)\n```\n\nAfter | not a table\n";
        assert_eq!(discord_markdown(markdown), expected);
        assert_eq!(discord_markdown(expected), expected);
    }

    #[test]
    fn a_table_inside_code_is_left_alone() {
        let markdown = "```\n| a |\n|---|\n| b |\n```";
        assert_eq!(discord_markdown(markdown), markdown);
    }

    #[test]
    fn shortened_text_keeps_to_its_length_and_ends_at_a_word() {
        assert_eq!(shorten("  short ", 10), "short");
        assert_eq!(shorten("one two three", 10), "one two…");
        assert_eq!(shorten("😀😀😀", 5), "😀😀…");
        assert_eq!(shorten("abc", 0), "");
    }

    fn markdown() -> impl Strategy<Value = String> {
        let block = prop_oneof![
            "[a-z é漢😀]{1,200}",
            "(- [a-z ]{1,60}\n){1,8}",
            "(```|~~~~|````)(rust|js|)\n([a-z(){};` ]{0,40}\n){0,30}(```|~~~~|````)?",
            "> ```\n(> [a-z]{1,30}\n){1,20}> ```",
            "- x\n\n  ```py\n(  [a-z]{1,30}\n){1,20}  ```",
            "\\| a \\| b \\|\n\\|---\\|---\\|\n(\\| [a-z]{1,9} \\| [a-z]{1,9} \\|\n){1,12}",
            "\\[[a-z ]{1,30}\\]\\(https://[a-z]{1,40}\\)",
            "#{1,4} [a-z]{1,30}",
            "[a-z]{100,400}",
            "<div>[a-z\n]{1,40}</div>",
            "\\[ref\\]: https://e.org",
        ];
        prop::collection::vec(block, 1..10).prop_map(|blocks| blocks.join("\n\n"))
    }

    proptest! {
        #[test]
        fn no_part_is_too_long_and_nothing_is_lost(text in markdown(), max in 40usize..400) {
            let parts = split(&text, max);
            let joined = ink(&parts.concat());
            prop_assert!(parts.iter().all(|part| units(part) <= max && !part.trim().is_empty()));
            prop_assert!(is_subsequence(&ink(&text), &joined));
            let fences = text.contains("```") || text.contains("~~~");
            prop_assert!(fences || ink(&text) == joined);
        }

        #[test]
        fn any_text_is_split_within_its_bound(text in any::<String>(), max in 0usize..100) {
            let parts = split(&text, max);
            prop_assert!(parts.iter().all(|part| units(part) <= max.max(PART_UNITS_MIN)));
            prop_assert!(is_subsequence(&ink(&text), &ink(&parts.concat())));
        }

        #[test]
        fn hostile_punctuation_is_split_within_its_bound(text in "[`~>\\-|\\[\\]()* \n\ta:0.<😀]{0,600}", max in 40usize..120) {
            let parts = split(&text, max);
            prop_assert!(parts.iter().all(|part| units(part) <= max));
            prop_assert!(is_subsequence(&ink(&text), &ink(&parts.concat())));
            let _ = discord_markdown(&text);
        }
    }
}
