//! A short stand-in for a long answer, where there is little room.

use pulldown_cmark::{Event, HeadingLevel, Parser, Tag, TagEnd};

use super::markdown::options;
use super::plain::units;
use super::split::split;

/// Headings, in lower case, under which an answer sums itself up.
const GIST_HEADINGS: [&str; 6] =
    ["summary", "in short", "conclusion", "tl;dr", "result", "outcome"];

/// A stand-in of at most `units_max` UTF-16 units for a long text: the last summarising section that fits, else the
/// beginning, cut as [`split`] cuts.
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
        None => split(markdown, units_max).into_iter().next().unwrap_or_default(),
    }
}

/// The sections under top-level headings: the heading's text, and everything up to the next heading of the same level
/// or above, including the heading itself.
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
    (0..heads.len()).map(|at| (heads[at].2.clone(), &markdown[heads[at].0..end(at)])).collect()
}
