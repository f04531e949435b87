//! Cutting an answer into messages, judged by a Markdown reader.

use bobbin_core::text::{self, Dialect, PART_UNITS_MIN, units};
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// Bounds that an input is cut at: the smallest, a few small ones, and the two platforms'.
const BOUNDS_UNITS: [usize; 5] = [0, PART_UNITS_MIN, 120, 400, 1_900];
/// From this length on, a code fence of any sane length has room beside its code.
const FENCED_UNITS_MIN: usize = 400;
/// A word that no input contains by chance.
const SENTINEL: &str = "zqsentinelqz";

/// An input is Markdown.
pub(super) fn split(input: &[u8]) {
    let markdown = String::from_utf8_lossy(input);
    for bound in BOUNDS_UNITS {
        cut(&markdown, bound);
    }
    for dialect in [Dialect::Backticks, Dialect::Entities] {
        let fitted = units(&text::fit(&markdown, dialect));
        let before = units(&markdown);
        assert!(fitted <= grown(before), "{before} units became {fitted}");
        let parts = text::parts(&markdown, dialect, 1_900);
        assert!(parts.iter().all(|part| units(part) <= 1_900));
        assert_eq!(parts.is_empty(), markdown.trim().is_empty());
    }
    for bound in [0, 1, 7, 100] {
        let short = text::shorten(&markdown, bound);
        assert!(units(&short) <= bound, "{short:?} is longer than {bound}");
        let kept = short.strip_suffix('…').unwrap_or(&short);
        assert!(markdown.trim().starts_with(kept), "{short:?}");
    }
    let line = text::one_line(&markdown);
    assert!(!line.contains(char::is_control) && line.trim() == line);
    assert_eq!(text::one_line(&line), line);
}

/// How far a text may grow in a chat's own dialect, where tables are drawn.
const fn grown(units: usize) -> usize {
    1_000 + units * 50
}

fn cut(markdown: &str, bound: usize) {
    let parts = text::split(markdown, bound);
    let max = bound.max(PART_UNITS_MIN);
    for part in &parts {
        assert!(units(part) <= max, "{} units: {part:?}", units(part));
        assert!(!part.trim().is_empty(), "a blank part");
    }
    let (before, after) = (ink(markdown), ink(&parts.concat()));
    assert!(is_subsequence(&before, &after), "something is lost");
    if !has_fence(markdown) && !has_table(markdown) {
        assert_eq!(before, after, "something was added");
    }
    if max >= FENCED_UNITS_MIN && fences_can_be_repeated(markdown) && blocks_have_ends(markdown) {
        for part in &parts {
            assert!(!is_open(part), "a code block stays open: {part:?}");
        }
    }
}

/// Fences as an agent writes them: at the start of a line, after a few blanks or quote marks. If the marks are within a
/// line, or inside HTML, a cut may turn them into a fence; that is not promised.
fn fences_can_be_repeated(markdown: &str) -> bool {
    let at_the_start = |line: &str| {
        let code = line.trim_start_matches([' ', '>']);
        let marks = code.trim_start_matches(['`', '~']);
        line.len() - code.len() < 8 && code.len() - marks.len() < 20 && !has_fence(marks)
    };
    !markdown.contains(['<', '\t'])
        && !markdown.replace("\r\n", "\n").contains('\r')
        && markdown.lines().filter(|line| has_fence(line)).all(at_the_start)
}

/// Whether every code block has a closing line or continues to the end. One that ends with its list depends on a list
/// that no later part opens again.
fn blocks_have_ends(markdown: &str) -> bool {
    let end = markdown.trim_end().len();
    let events = Parser::new_ext(markdown, Options::ENABLE_TABLES).into_offset_iter();
    events
        .filter(|(event, _)| {
            matches!(event, Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))))
        })
        .all(|(_, range)| {
            let block = markdown[range.clone()].trim_end();
            let last = block.lines().skip(1).last().unwrap_or_default();
            let marks = last.trim_start_matches([' ', '>']).trim_end();
            let closed = !marks.is_empty() && marks.chars().all(|c| matches!(c, '`' | '~'));
            closed || range.end >= end
        })
}

fn has_table(markdown: &str) -> bool {
    let mut events = Parser::new_ext(markdown, Options::ENABLE_TABLES);
    events.any(|event| matches!(event, Event::Start(Tag::Table(_))))
}

fn has_fence(text: &str) -> bool {
    text.contains("```") || text.contains("~~~")
}

/// Whether there is code at the end to which the next text would be added. A fence with nothing after it is not code
/// yet.
fn is_open(markdown: &str) -> bool {
    let followed = format!("{markdown}\n\n{SENTINEL}");
    let mut code: Option<String> = None;
    for event in Parser::new_ext(&followed, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))) => code = Some(String::new()),
            Event::End(TagEnd::CodeBlock) => {
                let ended = code.take().unwrap_or_default();
                if let Some((before, _)) = ended.split_once(SENTINEL) {
                    return !before.trim().is_empty();
                }
            }
            Event::Text(text) => code.iter_mut().for_each(|code| code.push_str(&text)),
            _ => {}
        }
    }
    false
}

fn ink(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

fn is_subsequence(needle: &str, hay: &str) -> bool {
    let mut hay = hay.chars();
    needle.chars().all(|c| hay.any(|h| h == c))
}
