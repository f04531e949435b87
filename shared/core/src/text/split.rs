//! Splits Markdown into parts: where it may be cut, and what a part needs before and after its text.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag};

use super::markdown::options;
use super::plain::{clusters, prefix_within, units};

/// Smallest part that [`split`] makes; in a smaller one a code fence would leave no room for code.
pub const PART_UNITS_MIN: usize = 40;
/// Info strings longer than this share of a part are not repeated, and fences longer than half of that are treated as
/// text.
const FENCE_SHARE: usize = 4;

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

/// Quality of a place for a cut; lower is better.
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
    /// UTF-16 units before this place.
    units: usize,
}

/// A block that can be closed and opened again: fenced code, or a table.
#[derive(Debug)]
struct Block {
    /// Places strictly inside it; a part that begins there repeats its head.
    inside: Range<usize>,
    /// The text before the block on its line, as blanks and `>`.
    indent: String,
    /// Its opening lines, without indent: the fence, with its info string if that is short enough to be repeated; or a
    /// table's header and rule.
    head: Vec<String>,
    /// Its closing line, without indent; `None` for a table.
    tail: Option<String>,
    /// Where that line stands; empty if the block has none.
    last_line: Range<usize>,
    /// It has its own end. A fence without a closing line ends with its list or quote, which is not opened again with
    /// it.
    closed: bool,
}

impl Block {
    fn opening(&self) -> String {
        let lines = self.head.iter();
        lines.map(|line| format!("{}{line}\n", self.quote())).collect()
    }

    fn closing(&self) -> String {
        format!("{}{}", self.indent, self.tail.as_deref().unwrap_or_default())
    }

    /// The quote part of the indent: list items are not opened again, so their indent is dropped.
    fn quote(&self) -> &str {
        self.indent.rfind('>').map_or("", |at| &self.indent[..(at + 2).min(self.indent.len())])
    }
}

/// The places where a text may be cut.
struct Map<'a> {
    text: &'a str,
    cuts: Vec<Cut>,
    blocks: Vec<Block>,
}

impl<'a> Map<'a> {
    fn read(text: &'a str, max: usize) -> Self {
        let mut starts: Vec<(usize, Rank)> = Vec::new();
        let mut whole: Vec<Range<usize>> = Vec::new();
        let mut blocks = Vec::new();
        let mut depth = 0usize;
        for (event, range) in Parser::new_ext(text, options()).into_offset_iter() {
            match event {
                Event::Start(tag) => {
                    match &tag {
                        Tag::Link { .. } | Tag::Image { .. } => whole.push(range.clone()),
                        Tag::CodeBlock(CodeBlockKind::Fenced(_)) => {
                            blocks.extend(fence(text, &range, max));
                        }
                        Tag::Table(_) => blocks.extend(table(text, &range, max)),
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
        let cuts = cuts(text, &starts, &whole, &blocks);
        Self { text, cuts, blocks }
    }

    /// Whether a part that ends here would end a block with less than its closing line.
    fn is_in_last_line(&self, at: usize) -> bool {
        let index = self.blocks.partition_point(|block| block.last_line.end <= at);
        self.blocks.get(index).is_some_and(|block| block.last_line.contains(&at))
    }

    fn block_at(&self, at: usize) -> Option<&Block> {
        let index = self.blocks.partition_point(|block| block.inside.end <= at);
        self.blocks.get(index).filter(|block| block.inside.contains(&at))
    }

    /// The block that a part ending at `at` has to close; `open` is the block that the part opened again.
    fn closes<'f>(&'f self, open: Option<&'f Block>, at: usize) -> Option<&'f Block> {
        let ended = || open.filter(|block| !block.closed && at >= block.inside.end);
        self.block_at(at).or_else(ended).filter(|block| block.tail.is_some())
    }

    /// The part between two places, with the lines that its blocks need.
    fn part(&self, range: Range<usize>) -> String {
        let body = &self.text[range.clone()];
        let open = self.block_at(range.start);
        let close = self.closes(open, range.end);
        let mut part = String::with_capacity(body.len() + 16);
        match open {
            None => part.push_str(body.trim_start_matches(['\n', '\r'])),
            Some(block) => {
                part.push_str(&block.opening());
                part.push_str(&dedented(body, block, range.start));
            }
        }
        part.truncate(part.trim_end().len());
        if let Some(block) = close {
            part.push('\n');
            match open {
                // It was opened here without its list's indent, so it is closed without it too.
                Some(same) if same.inside == block.inside => {
                    part.push_str(block.quote());
                    part.extend(block.tail.as_deref());
                }
                _ => part.push_str(&block.closing()),
            }
        }
        part
    }

    /// The end of the part that begins at `from`; always after `from`.
    fn next_cut(&self, from: usize, max: usize) -> usize {
        let open = self.block_at(from);
        let opening = open.map_or(0, |block| units(&block.opening()));
        let closing =
            |at: usize| self.closes(open, at).map_or(0, |block| units(&block.closing()) + 1);
        // Text after a block without a closing line must not become part of it.
        let end = open
            .filter(|block| !block.closed)
            .map_or(self.text.len(), |block| block.inside.end.min(self.text.len()));
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
            let Some(best) =
                self.cuts[first..reach].iter().rev().filter(|cut| cut.rank <= rank).find(fits)
            else {
                continue;
            };
            // A small part is worth it if the following text then stays whole.
            let next = self.cuts[first..].iter().find(|cut| cut.rank <= rank && cut.at > best.at);
            let following =
                next.map_or_else(|| units(&self.text[best.at..]), |next| next.units - best.units);
            if best.units - before >= max / 3 || following <= max || rank == Rank::Word {
                return best.at;
            }
        }
        self.hard_cut(from..end, max.saturating_sub(opening), closing)
    }

    /// Cuts a word longer than a part, between units that are seen as one character each.
    fn hard_cut(&self, range: Range<usize>, max: usize, closing: impl Fn(usize) -> usize) -> usize {
        let from = range.start;
        let rest = &self.text[range];
        let mut used = 0;
        let (mut any, mut clean) = (None, None);
        // A closing fence needs room after the text.
        let longest = max.saturating_sub(PART_UNITS_MIN / 2);
        for (offset, cluster) in clusters(rest, longest).chain([(rest.len(), " ")]) {
            if used > max {
                break;
            }
            let at = from + offset;
            if offset > 0 && used + closing(at) <= max && !self.is_in_last_line(at) {
                any = Some(at);
                // An escaped mark stays escaped.
                let escaped = rest[..offset].ends_with('\\');
                if !escaped && !would_open_block(&rest[offset..]) {
                    clean = any;
                }
            }
            used += units(cluster);
        }
        let step = rest.chars().next().map_or(1, char::len_utf8);
        clean.or(any).unwrap_or(from + step)
    }
}

/// Whether the text starts with marks that would open a code block at the start of a part.
fn would_open_block(rest: &str) -> bool {
    rest.starts_with("```") || rest.starts_with("~~~")
}

/// The start of the line if there are only blanks and quote marks in between; otherwise the place itself.
fn line_start(text: &str, at: usize) -> usize {
    let start = text[..at].rfind('\n').map_or(0, |nl| nl + 1);
    if text[start..at].chars().all(|c| matches!(c, ' ' | '\t' | '>')) { start } else { at }
}

fn fence(text: &str, range: &Range<usize>, max: usize) -> Option<Block> {
    let body = &text[range.clone()];
    let mark = body.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let marks: String = body.chars().take_while(|c| *c == mark).collect();
    let first_line = body.lines().next().unwrap_or(body);
    let indent = indent(text, range.start);
    if units(&indent) + units(&marks) > max / FENCE_SHARE / 2 {
        return None;
    }
    let info = first_line[marks.len()..].trim();
    let info = if units(info) <= max / FENCE_SHARE { info } else { "" };
    let content = range.start + first_line.len() + 1;
    // The last line is the closing fence, unless the block was never closed: then the end of the text is inside it.
    let trimmed = body.trim_end();
    let last_line = trimmed.rfind('\n').map(|nl| nl + 1);
    let closed = last_line.filter(|at| {
        let line = trimmed[*at..].trim_start_matches([' ', '\t', '>']);
        line.len() >= marks.len() && line.chars().all(|c| c == mark)
    });
    let end = closed.map_or(
        if range.end >= text.trim_end().len() { text.len() + 1 } else { range.end },
        |at| range.start + at,
    );
    let last_line = end..closed.map_or(end, |_| range.start + trimmed.len());
    (content < end).then(|| Block {
        inside: content..end,
        indent,
        head: vec![format!("{marks}{info}")],
        tail: Some(marks),
        last_line,
        closed: closed.is_some(),
    })
}

/// A table whose header and rule are short enough to be repeated in every part.
fn table(text: &str, range: &Range<usize>, max: usize) -> Option<Block> {
    let body = text[range.clone()].trim_end();
    let mut lines = body.split_inclusive('\n').take(2);
    let (header, rule) = (lines.next()?, lines.next()?);
    let rows = range.start + header.len() + rule.len();
    let end = range.start + body.len();
    let head = [header, rule].map(|line| line.trim_start_matches([' ', '\t', '>']).trim_end());
    let indent = indent(text, range.start);
    let length = units(&indent) * 2 + units(head[0]) + units(head[1]) + 2;
    (rows < end && length <= max / FENCE_SHARE).then(|| Block {
        inside: rows..end,
        indent,
        head: head.map(str::to_owned).into(),
        tail: None,
        last_line: end..end,
        closed: true,
    })
}

/// The text before a block on its line; list marks count as blanks.
fn indent(text: &str, at: usize) -> String {
    let start = text[..at].rfind('\n').map_or(0, |nl| nl + 1);
    text[start..at].chars().map(|c| if matches!(c, '>' | '\t') { c } else { ' ' }).collect()
}

/// The lines of a block that is opened again without its list's indent, without that indent; quotes keep theirs.
fn dedented(body: &str, block: &Block, from: usize) -> String {
    let blanks = if block.quote().is_empty() { block.indent.len() } else { 0 };
    if blanks == 0 {
        return body.to_owned();
    }
    let mut at = from;
    let mut out = String::with_capacity(body.len());
    for line in body.split_inclusive('\n') {
        // The closing line belongs to the block; later lines do not.
        let belongs = at <= block.inside.end;
        let cut =
            if belongs { line.bytes().take(blanks).take_while(|b| *b == b' ').count() } else { 0 };
        out.push_str(&line[cut..]);
        at += line.len();
    }
    out
}

/// All places where a cut is allowed, in order.
fn cuts(
    text: &str,
    starts: &[(usize, Rank)],
    whole: &[Range<usize>],
    blocks: &[Block],
) -> Vec<Cut> {
    let mut cuts = Vec::new();
    let (mut next_start, mut next_whole, mut next_block) = (0, 0, 0);
    let mut units = 0;
    let mut previous = None;
    for (at, cluster) in clusters(text, usize::MAX) {
        let c = cluster.chars().next().unwrap_or(' ');
        while whole.get(next_whole).is_some_and(|range| range.end <= at) {
            next_whole += 1;
        }
        while blocks.get(next_block).is_some_and(|block| block.inside.end < at) {
            next_block += 1;
        }
        while starts.get(next_start).is_some_and(|(start, _)| *start < at) {
            next_start += 1;
        }
        let kept_whole = whole.get(next_whole).is_some_and(|range| range.start < at);
        // No cut right after the opening line or right before the closing line: it would leave an empty block.
        let edge = blocks
            .get(next_block)
            .is_some_and(|block| at == block.inside.start || at == block.inside.end);
        let block = starts.get(next_start).filter(|(start, _)| *start == at).map(|(_, rank)| *rank);
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
        units += cluster.chars().map(char::len_utf16).sum::<usize>();
        previous = cluster.chars().next_back();
    }
    cuts
}

/// UTF-16 units before a place: those before the nearest earlier cut, plus those after that cut.
fn units_before(cuts: &[Cut], first: usize, text: &str, from: usize) -> usize {
    match first.checked_sub(1).map(|index| cuts[index]) {
        Some(cut) => cut.units + units(&text[cut.at..from]),
        None => units(&text[..from]),
    }
}
