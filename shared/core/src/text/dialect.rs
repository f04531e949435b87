//! Converts CommonMark to the dialect that a chat reads.
//!
//! Promised: a reader of the dialect sees code as the author wrote it, line by line, whatever surrounds it. Everything
//! that the dialect shares with CommonMark stays as written.

use std::ops::Range;

use pulldown_cmark::{
    CodeBlockKind, Event, HeadingLevel, LinkType, OffsetIter, Parser, Tag, TagEnd,
};

use super::markdown::options;
use super::split::split;
use super::tables::aligned;
use super::terminal::without_controls;

/// Dialects that chats read. Neither supports HTML, footnotes, or links that are defined elsewhere in a text that is
/// cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// CommonMark with tables and task lists, in which a bare `<` starts something else, and entities are decoded in
    /// code, too.
    Entities,
    /// Paragraphs, lists, one level of quotes, emphasis, links, headings to the third level, code spans. Code blocks
    /// start with exactly three backticks at the start of a line or quoted line, and end at the next three, wherever
    /// those are.
    Backticks,
}

/// A horizontal rule, for a dialect without rules.
const RULE: &str = "──────────";
/// Deepest heading of [`Dialect::Backticks`].
const HEADINGS_MAX: usize = 3;
/// Between two backticks this is invisible, and keeps them from forming a fence.
const APART: char = '\u{2060}';
/// Bytes of the longest entity name.
const ENTITY_BYTES_MAX: usize = 40;
/// Bytes of the longest tag, comment and address that are searched for, so that the time stays linear in the text's
/// length.
const TAG_BYTES_MAX: usize = 256;
const COMMENT_BYTES_MAX: usize = 8_192;
const ADDRESS_CHARS_MAX: usize = 2_048;

/// An agent's Markdown in the chat's dialect, in parts of at most `units_max` UTF-16 units. A text that is not blank
/// has at least one part.
#[must_use]
pub fn parts(markdown: &str, dialect: Dialect, units_max: usize) -> Vec<String> {
    let fitted = fit(markdown, dialect);
    if fitted.trim().is_empty() {
        return split(markdown, units_max);
    }
    split(&fitted, units_max)
}

/// An agent's Markdown in the chat's dialect.
#[must_use]
pub fn fit(markdown: &str, dialect: Dialect) -> String {
    let text = without_controls(markdown);
    let parser = Parser::new_ext(&text, options());
    let defined: Vec<Range<usize>> =
        parser.reference_definitions().iter().map(|(_, link)| link.span.clone()).collect();
    let code = code(&text);
    let in_code = |mark: &char| code.iter().any(|range| text[range.clone()].contains(*mark));
    let mut fitting = Fitting {
        text: &text,
        backticks: dialect == Dialect::Backticks,
        marks: ['*', '_', '~'].into_iter().filter(in_code).chain(['`']).collect(),
        code,
        edits: Vec::new(),
        quotes: 0,
        links: Vec::new(),
        inline_end: 0,
        in_table: false,
    };
    fitting.read(parser.into_offset_iter());
    // CommonMark does not show link definitions, and each link has its address now.
    for span in defined {
        // The text after a definition may lose its meaning without it.
        let next = text[span.end..].trim_start_matches('\n').len();
        let alone = next == 0 || text.len() - next > span.end + 1;
        if alone || fitting.backticks {
            fitting.edit(span, "");
        }
    }
    let fitted = fitting.applied();
    match dialect {
        Dialect::Entities => fitted.replace('<', "&lt;"),
        Dialect::Backticks => fitted,
    }
}

/// The ranges of code blocks and code spans in a CommonMark text.
#[must_use]
pub fn code(markdown: &str) -> Vec<Range<usize>> {
    let events = Parser::new_ext(markdown, options()).into_offset_iter();
    events
        .filter(|(event, _)| matches!(event, Event::Start(Tag::CodeBlock(_)) | Event::Code(_)))
        .map(|(_, range)| range)
        .collect()
}

struct Fitting<'t> {
    text: &'t str,
    backticks: bool,
    code: Vec<Range<usize>>,
    /// Marks for which the dialect would find a closing mark in code.
    marks: Vec<char>,
    edits: Vec<(Range<usize>, String)>,
    /// Depth of the surrounding quotes.
    quotes: usize,
    /// The surrounding links, with their addresses.
    links: Vec<(LinkType, String)>,
    /// End of the last inline element.
    inline_end: usize,
    in_table: bool,
}

impl<'t> Fitting<'t> {
    fn edit(&mut self, range: Range<usize>, with: impl Into<String>) {
        self.edits.push((range, with.into()));
    }

    fn applied(mut self) -> String {
        self.edits.sort_by_key(|(range, _)| range.start);
        let mut out = String::with_capacity(self.text.len() + 64);
        let mut copied = 0;
        for (range, with) in &self.edits {
            // An edit inside an edited range is already covered.
            if range.start >= copied {
                out.push_str(&self.text[copied..range.start]);
                out.push_str(with);
                copied = range.end;
            }
        }
        out.push_str(&self.text[copied..]);
        out
    }

    fn read(&mut self, mut events: OffsetIter<'t>) {
        while let Some((event, range)) = events.next() {
            match event {
                Event::Start(tag) => self.start(tag, &range, &mut events),
                Event::End(end) => self.end(end, &range),
                Event::Text(words) => {
                    self.words(&words, &range);
                    self.inline_end = range.end;
                }
                Event::Code(code) => {
                    self.span(&code, &range);
                    self.inline_end = range.end;
                }
                Event::InlineHtml(_) => {
                    self.html(&range);
                    self.inline_end = range.end;
                }
                Event::FootnoteReference(label) => {
                    self.edit(range.clone(), format!("[{label}]"));
                    self.inline_end = range.end;
                }
                Event::HardBreak
                    if self.backticks && self.text[range.clone()].starts_with('\\') =>
                {
                    self.edit(range.start..range.start + 1, "");
                }
                Event::Rule if self.backticks => self.edit(self.trimmed(&range), RULE),
                Event::TaskListMarker(done) if self.backticks => {
                    self.edit(range, if done { "☑" } else { "☐" });
                }
                _ => {}
            }
        }
    }

    fn start(&mut self, tag: Tag<'t>, range: &Range<usize>, events: &mut OffsetIter<'t>) {
        match tag {
            Tag::BlockQuote(_) => {
                if self.backticks && self.quotes == 0 {
                    self.blank_lines_of_quote(range);
                }
                self.quotes += 1;
            }
            Tag::CodeBlock(kind) => self.block(&kind, range, events),
            Tag::Table(_) if self.backticks => self.table(range, events),
            Tag::Table(_) => self.in_table = true,
            Tag::HtmlBlock => {
                for (event, _) in events.by_ref() {
                    if event == Event::End(TagEnd::HtmlBlock) {
                        break;
                    }
                }
                if !self.backticks {
                    self.flat(range);
                }
                self.html(range);
                self.ended(range);
            }
            Tag::Heading { level, .. } if self.backticks => {
                self.inline_end = range.start;
                let marks = self.text[range.clone()].bytes().take_while(|b| *b == b'#').count();
                let hashes = "#".repeat(depth(level));
                match marks {
                    0 => self.edit(range.start..range.start, format!("{hashes} ")),
                    1..=HEADINGS_MAX => {}
                    _ => {
                        let body = self.text[range.start + marks..range.end]
                            .trim_start_matches([' ', '\t']);
                        self.edit(range.start..range.end - body.len(), "**");
                    }
                }
            }
            Tag::Link { link_type, dest_url, .. } => {
                if is_bare(link_type) && !self.backticks {
                    self.edit(range.start..range.start + 1, "");
                    self.edit(range.end - 1..range.end, "");
                }
                self.links.push((link_type, dest_url.to_string()));
            }
            Tag::Image { dest_url, .. } => self.image(&dest_url, range, events),
            Tag::Strong | Tag::Strikethrough => self.emphasis(range, 2),
            Tag::Emphasis => self.emphasis(range, 1),
            Tag::FootnoteDefinition(label) => {
                let mark = range.start..range.start + label.len() + "[^]:".len();
                // The rest of the footnote is indented, as in a list item.
                self.edit(mark, format!("- [{label}]"));
            }
            _ => {}
        }
    }

    fn end(&mut self, end: TagEnd, range: &Range<usize>) {
        match end {
            TagEnd::BlockQuote(_) => self.quotes = self.quotes.saturating_sub(1),
            TagEnd::Table => self.in_table = false,
            TagEnd::Heading(level) if self.backticks => {
                let end = self.trimmed(range).end;
                let from = self.inline_end.clamp(range.start, end);
                match depth(level) {
                    // Its line of `=` or `-`, or the hashes at its end.
                    1..=HEADINGS_MAX if from > range.start => self.edit(from..end, ""),
                    1..=HEADINGS_MAX => {}
                    _ if from > range.start => self.edit(from..end, "**"),
                    _ => self.edit(range.start..end, ""),
                }
            }
            TagEnd::Link => {
                let link = self.links.pop();
                let tail = self.inline_end.clamp(range.start, range.end)..range.end;
                if let Some((kind, dest)) = link.filter(|(kind, _)| !is_bare(*kind))
                    && (is_elsewhere(kind) || self.text[tail.clone()].contains(['`', '<']))
                {
                    self.edit(tail, format!("]({})", address(&dest)));
                }
                self.inline_end = range.end;
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough | TagEnd::Image => {
                self.inline_end = range.end;
            }
            _ => {}
        }
    }

    /// Text outside of code: escapes characters that only the dialect would read as marks, and replaces notations that
    /// only CommonMark decodes with their characters.
    fn words(&mut self, words: &str, range: &Range<usize>) {
        if !self.backticks || self.links.last().is_some_and(|(kind, _)| is_bare(*kind)) {
            return;
        }
        let raw = &self.text[range.clone()];
        if raw != words {
            let escaped = words
                .chars()
                .flat_map(|c| c.is_ascii_punctuation().then_some('\\').into_iter().chain([c]));
            self.edit(range.clone(), escaped.collect::<String>());
            return;
        }
        let marks = raw.match_indices(&self.marks[..]).chain(raw.match_indices("||"));
        let places = marks.flat_map(|(at, mark)| (at..at + mark.len()).map(|at| range.start + at));
        let free = |at: &usize| !is_escaped(self.text, *at);
        for at in places.filter(free).collect::<Vec<_>>() {
            match (in_address(self.text, at), &self.text[at..=at]) {
                (false, _) => self.edit(at..at, "\\"),
                (true, "`") => self.edit(at..at + 1, "%60"),
                (true, _) => {}
            }
        }
    }

    /// Removes emphasis that would not work: around code that contains its mark it would end there, and inside an
    /// address it would not begin.
    fn emphasis(&mut self, range: &Range<usize>, length: usize) {
        let marks = &self.text[range.clone()];
        let mark = &marks[..1];
        let within = |code: &&Range<usize>| range.start <= code.start && code.end <= range.end;
        let mut code = self.code.iter().filter(within);
        let ends_in_code = code.any(|code| self.text[code.clone()].contains(mark));
        let in_address = in_address(self.text, range.start);
        let length = length.min(marks.len() - marks.trim_start_matches(mark).len());
        if self.backticks && (ends_in_code || in_address) {
            self.edit(range.end - length..range.end, "");
            if !in_address {
                self.edit(range.start..range.start + length, "");
            }
        }
    }

    /// A code span. One dialect must have no three backticks within a line; the other must decode no entity.
    fn span(&mut self, code: &str, range: &Range<usize>) {
        let raw = &self.text[range.clone()];
        if !self.backticks {
            self.edit(range.clone(), entities_kept(raw));
            return;
        }
        if in_address(self.text, range.start) {
            // The address would absorb the mark.
            self.edit(range.start..range.start, " ");
        }
        if raw.contains("```") {
            self.edit(range.clone(), format!("`` {} ``", apart(code)));
        }
    }

    fn block(
        &mut self,
        kind: &CodeBlockKind<'_>,
        range: &Range<usize>,
        events: &mut OffsetIter<'t>,
    ) {
        let mut code = String::new();
        for (event, within) in events.by_ref() {
            match event {
                Event::Text(text) if self.backticks => code.push_str(&text),
                Event::Text(_) => {
                    let kept = entities_kept(&self.text[within.clone()]);
                    self.edit(within, kept);
                }
                Event::End(TagEnd::CodeBlock) => break,
                _ => {}
            }
        }
        if !self.backticks {
            return;
        }
        let info = match kind {
            CodeBlockKind::Fenced(info) => info,
            CodeBlockKind::Indented => "",
        };
        let is_name = |c: &char| c.is_ascii_alphanumeric() || "_+-.#".contains(*c);
        let language: String = info.chars().take_while(is_name).collect();
        self.fenced(range, &language, &code);
    }

    fn table(&mut self, range: &Range<usize>, events: &mut OffsetIter<'t>) {
        let mut rows: Vec<Vec<String>> = Vec::new();
        let mut links: Vec<(String, usize)> = Vec::new();
        for (event, _) in events.by_ref() {
            let row = rows.last_mut();
            match event {
                Event::End(TagEnd::Table) => break,
                Event::Start(Tag::TableHead | Tag::TableRow) => rows.push(Vec::new()),
                Event::Start(Tag::TableCell) => {
                    row.into_iter().for_each(|row| row.push(String::new()))
                }
                event => {
                    if let Some(cell) = row.and_then(|row| row.last_mut()) {
                        in_cell(cell, &mut links, event);
                    }
                }
            }
        }
        self.fenced(range, "", &aligned(&rows));
    }

    /// Replaces this range with a code block, outside of the lists around it.
    fn fenced(&mut self, range: &Range<usize>, language: &str, code: &str) {
        let range = self.trimmed(range);
        let line = self.line_start(range.start);
        let alone = self.text[line..range.start].chars().all(|c| matches!(c, ' ' | '\t' | '>'));
        if code.trim().is_empty() {
            self.edit(range, "");
            return;
        }
        let quote = if self.quotes > 0 { "> " } else { "" };
        let code = apart_fences(code.strip_suffix('\n').unwrap_or(code));
        let mut with = if alone { String::new() } else { "\n".to_owned() };
        with.push_str(&format!("{quote}```{language}\n"));
        for one in code.split('\n') {
            with.push_str(&format!("{quote}{one}\n"));
        }
        with.push_str(&format!("{quote}```"));
        self.edit(if alone { line } else { range.start }..range.end, with);
    }

    fn image(&mut self, dest: &str, range: &Range<usize>, events: &mut OffsetIter<'t>) {
        let mut words = String::new();
        for (event, inner) in events.by_ref() {
            match event {
                Event::End(TagEnd::Image) if inner == *range => break,
                Event::Text(text) | Event::Code(text) => words.push_str(&text),
                Event::SoftBreak | Event::HardBreak => words.push(' '),
                _ => {}
            }
        }
        let escaped = words
            .trim()
            .chars()
            .flat_map(|c| c.is_ascii_punctuation().then_some('\\').into_iter().chain([c]));
        let words: String = escaped.collect();
        let with = match (self.links.is_empty(), words.is_empty()) {
            (true, false) if self.backticks => format!("[{words}]({})", address(dest)),
            (true, true) if self.backticks => address(dest),
            (true, _) => format!("![{words}]({})", address(dest)),
            (false, false) => words,
            (false, true) => "image".to_owned(),
        };
        self.edit(range.clone(), with);
        self.inline_end = range.end;
    }

    /// Replaces known HTML tags in a range with their equivalents; unknown tags stay. Fences in it are escaped.
    fn html(&mut self, range: &Range<usize>) {
        let end = range.end;
        let mut at = range.start;
        while at < end {
            let rest = &self.text[at..end];
            let first = rest.chars().next().unwrap_or(' ');
            let is_mark = matches!(first, '`' | '~')
                || (self.backticks && (self.marks.contains(&first) || first == '|'));
            let length = match meaning(rest) {
                Some((length, "\n")) if self.in_table => self.replace(at, length, " "),
                Some((length, "\n")) if self.quotes > 0 => self.replace(at, length, "\n> "),
                Some((length, with)) => self.replace(at, length, with),
                None if is_mark && !is_escaped(self.text, at) => self.replace(at, 0, "\\") + 1,
                None => first.len_utf8(),
            };
            at += length;
        }
    }

    fn replace(&mut self, at: usize, length: usize, with: &str) -> usize {
        self.edit(at..at + length, with);
        length
    }

    /// Keeps text after tags from becoming part of the list item that contains them.
    fn ended(&mut self, range: &Range<usize>) {
        let (block, behind) = self.text.split_at(range.end);
        let next = match behind.strip_prefix('\n') {
            Some(next) if !block.ends_with('\n') => next,
            _ => behind,
        };
        if !next.is_empty() && !next.starts_with('\n') {
            self.edit(range.end..range.end, "\n");
        }
    }

    /// Flattens text between tags: it is not code, however far it is indented, nor a heading, list item or quote that
    /// later text could belong to.
    fn flat(&mut self, range: &Range<usize>) {
        let mut at = range.start;
        for line in self.text[range.clone()].split_inclusive('\n') {
            let words = line.trim_start_matches([' ', '\t']);
            let blanks = line.len() - words.len();
            self.edit(at..at + blanks, "");
            let digits = words.bytes().take_while(u8::is_ascii_digit).count();
            if words[digits..].starts_with(['-', '+', '*', '>', '.', ')', '#']) {
                let mark = at + blanks + digits;
                self.edit(mark..mark, "\\");
            }
            at += line.len();
        }
    }

    /// In a quote that continues after its own blank line, adds the space that keeps that line part of the quote.
    fn blank_lines_of_quote(&mut self, range: &Range<usize>) {
        let mut at = range.start;
        for line in self.text[range.clone()].split_inclusive('\n') {
            let marks = line.trim_end_matches(['\n', '\r']);
            if marks.trim_start().ends_with('>') && marks.chars().all(|c| matches!(c, '>' | ' ')) {
                self.edit(at + marks.len()..at + marks.len(), " ");
            }
            at += line.len();
        }
    }

    fn trimmed(&self, range: &Range<usize>) -> Range<usize> {
        range.start..range.start + self.text[range.clone()].trim_end().len()
    }

    fn line_start(&self, at: usize) -> usize {
        self.text[..at].rfind('\n').map_or(0, |nl| nl + 1)
    }
}

const fn depth(level: HeadingLevel) -> usize {
    level as usize
}

const fn is_elsewhere(kind: LinkType) -> bool {
    matches!(kind, LinkType::Reference | LinkType::Collapsed | LinkType::Shortcut)
}

const fn is_bare(kind: LinkType) -> bool {
    matches!(kind, LinkType::Autolink | LinkType::Email)
}

/// Whether the place is in a bare address, where a backslash would become part of the address.
fn in_address(text: &str, at: usize) -> bool {
    let word = text[..at].char_indices().rev().take(ADDRESS_CHARS_MAX);
    let word = word.take_while(|(_, c)| !c.is_whitespace() && !"<([\"".contains(*c));
    let begin = word.last().map_or(at, |(begin, _)| begin);
    text[begin..at].contains("://")
}

/// Whether a backslash before it takes its meaning, and is not escaped itself.
fn is_escaped(text: &str, at: usize) -> bool {
    let before = text[..at].bytes().rev().take_while(|b| *b == b'\\').count();
    before % 2 == 1
}

/// Escapes entities in code, so that they are shown as written.
fn entities_kept(code: &str) -> String {
    let mut out = String::with_capacity(code.len());
    for (at, c) in code.char_indices() {
        out.push(c);
        if c == '&' && is_entity(&code[at + 1..]) {
            out.push_str("amp;");
        }
    }
    out
}

/// Whether the text after a `&` makes it an entity.
fn is_entity(rest: &str) -> bool {
    let name = rest.strip_prefix('#').unwrap_or(rest).as_bytes();
    let length =
        name.iter().take(ENTITY_BYTES_MAX).take_while(|b| b.is_ascii_alphanumeric()).count();
    length > 0 && name.get(length) == Some(&b';')
}

/// An address, encoded for round brackets.
fn address(dest: &str) -> String {
    let mut out = String::with_capacity(dest.len());
    for c in dest.chars() {
        match c {
            ' ' | '(' | ')' | '<' | '>' | '`' | '|' => {
                out.push_str(&format!("%{:02X}", u32::from(c)))
            }
            _ => out.push(c),
        }
    }
    out
}

/// Separates neighbouring backticks.
fn apart(code: &str) -> String {
    let mut out = String::with_capacity(code.len() + 8);
    for c in code.chars() {
        if c == '`' && out.ends_with('`') {
            out.push(APART);
        }
        out.push(c);
    }
    out
}

/// Keeps fences in the code from ending the block around it.
pub fn apart_fences(code: &str) -> String {
    code.replace("```", &format!("`{APART}`{APART}`"))
}

fn in_cell(cell: &mut String, links: &mut Vec<(String, usize)>, event: Event<'_>) {
    match event {
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
            links.push((dest_url.to_string(), cell.len()));
        }
        Event::End(TagEnd::Link | TagEnd::Image) => {
            if let Some((url, start)) = links.pop()
                && cell.get(start..) != Some(url.as_str())
            {
                cell.push_str(&format!(" ({url})"));
            }
        }
        Event::Text(text) | Event::Code(text) => cell.push_str(&text),
        Event::FootnoteReference(label) => cell.push_str(&format!("[{label}]")),
        Event::InlineHtml(tag) => cell.push_str(match meaning(&tag) {
            Some((_, "\n")) => " ",
            Some(_) => "",
            None => &tag,
        }),
        _ => {}
    }
}

/// The equivalent of the tag at the start of a text, with the tag's length; `None` if the tag is unknown.
fn meaning(text: &str) -> Option<(usize, &'static str)> {
    let inner = text.strip_prefix('<')?.as_bytes();
    if inner.starts_with(b"!--") {
        let near = &inner[..inner.len().min(COMMENT_BYTES_MAX)];
        let end = near.windows(3).skip(3).position(|three| three == b"-->")?;
        return Some((end + "<!---->".len(), ""));
    }
    let end = inner.iter().take(TAG_BYTES_MAX).position(|b| *b == b'>')?;
    let tag = text[1..=end].trim_start_matches('/').trim_end_matches('/');
    let name = tag.split_whitespace().next()?.to_ascii_lowercase();
    let with = match name.as_str() {
        "br" | "hr" => "\n",
        "b" | "strong" | "summary" => "**",
        "i" | "em" => "*",
        "s" | "del" | "strike" => "~~",
        "details" | "p" | "div" | "span" | "center" | "u" | "ins" | "sub" | "sup" | "small"
        | "big" | "mark" | "kbd" | "code" | "samp" | "var" => "",
        _ => return None,
    };
    Some((end + 2, with))
}
