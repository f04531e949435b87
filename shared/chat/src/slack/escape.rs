//! Text that cannot ping, break out of its place, or exceed its limit.
//!
//! Two dialects: Slack's mrkdwn, where `&`, `<` and `>` are entities, and the Markdown of a `markdown` block, where a
//! literal `<` would begin a mention, or a link whose label hides its target. Slack displays the entity as its
//! character and reads no token from it. Apart from that, code is left unchanged.

use bobbin_core::text::{clusters, code, one_line, visible};

/// Length as Slack may count it in the worst case.
pub(super) fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

/// For mrkdwn: escaped, within a limit, nothing hidden; no entity is cut in half.
pub(super) fn mrkdwn(text: &str, units_max: usize) -> String {
    prose(&visible(text), units_max)
}

/// For mrkdwn of an answer, where scripts need characters that are hidden elsewhere.
pub(super) fn prose(text: &str, units_max: usize) -> String {
    mapped(&without_broadcasts(text), units_max, entity)
}

/// For mrkdwn on one line.
pub(super) fn line(text: &str, units_max: usize) -> String {
    mrkdwn(&one_line(&visible(text)), units_max)
}

/// For plain-text fields on one line, never empty: nothing in them is markup, but a broadcast is still made harmless.
pub(super) fn plain_line(text: &str, units_max: usize) -> String {
    let text = one_line(&visible(text));
    if text.is_empty() { "(no words)".to_owned() } else { plain(&text, units_max) }
}

/// Plain text has no escapes, so anything that could become a mention is changed, visibly and without growing.
fn plain(text: &str, units_max: usize) -> String {
    let text = without_broadcasts(text);
    let mut out = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        out.push(if c == '<' && opens_mention(&text[at + 1..]) { '\u{2039}' } else { c });
    }
    mapped(&out, units_max, EscapedPiece::Char)
}

/// For mrkdwn between backticks on one line.
pub(super) fn quoted(text: &str, units_max: usize) -> String {
    line(&text.replace('`', "\u{2cb}"), units_max)
}

/// For mrkdwn between triple backticks: pieces that each fit into a section, and the number of characters left over.
pub(super) fn code_pieces(text: &str, units_max: usize, pieces_max: usize) -> (Vec<String>, usize) {
    let text = without_broadcasts(&visible(text).replace("```", "\u{2cb}\u{2cb}\u{2cb}"));
    let mut pieces = vec![String::new()];
    let mut room = units_max;
    for (at, cluster) in clusters(&text, units_max) {
        let needed = cluster.chars().map(|c| entity(c).units()).sum::<usize>();
        if needed > room {
            if pieces.len() == pieces_max {
                return (pieces, text[at..].chars().count());
            }
            pieces.push(String::new());
            room = units_max;
        }
        room = room.saturating_sub(needed);
        let piece = pieces.last_mut().expect("there is always a piece");
        cluster.chars().for_each(|c| entity(c).push_to(piece));
    }
    (pieces, 0)
}

/// For a `markdown` block: mentions, broadcasts and hidden links made harmless, within a limit. Idempotent.
pub(super) fn markdown(text: &str, units_max: usize) -> String {
    // Finds code the way Slack does: tags that Slack does not see hide no backtick.
    let text = text.replace('<', "&lt;");
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    for code in code(&text) {
        out.push_str(&without_broadcasts(&text[copied..code.start]));
        out.push_str(&text[code.clone()]);
        copied = code.end;
    }
    out.push_str(&without_broadcasts(&text[copied..]));
    mapped(&out.replace("&lt;", "<"), units_max, |c| match c {
        '<' => entity(c),
        other => EscapedPiece::Char(other),
    })
}

/// Slack reads `!`, `@` or `#` and a letter or digit after a `<` as a token; HTML's `<!doctype` and comments are not
/// tokens.
fn opens_mention(rest: &str) -> bool {
    let mut chars = rest.chars();
    let sign = chars.next().is_some_and(|c| matches!(c, '!' | '@' | '#'));
    let doctype = rest.get(1..8).is_some_and(|word| word.eq_ignore_ascii_case("doctype"));
    sign && chars.next().is_some_and(char::is_alphanumeric) && !doctype
}

const BROADCASTS: [&str; 4] = ["channel", "here", "everyone", "group"];

/// Replaces the at-sign of a bare `@channel` and its like. Addresses (`me@here.example`) stay.
fn without_broadcasts(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = None;
    for (at, c) in text.char_indices() {
        let alone = !before.is_some_and(char::is_alphanumeric);
        out.push(if c == '@' && alone && names_broadcast(&text[at + 1..]) {
            '\u{ff20}'
        } else {
            c
        });
        before = Some(c);
    }
    out
}

fn names_broadcast(rest: &str) -> bool {
    BROADCASTS.iter().any(|word| {
        rest.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
            && !rest[word.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_')
    })
}

enum EscapedPiece {
    Char(char),
    Entity(&'static str),
}

impl EscapedPiece {
    fn units(&self) -> usize {
        match self {
            Self::Char(c) => c.len_utf16(),
            Self::Entity(text) => text.len(),
        }
    }

    fn push_to(&self, out: &mut String) {
        match self {
            Self::Char(c) => out.push(*c),
            Self::Entity(text) => out.push_str(text),
        }
    }
}

fn entity(c: char) -> EscapedPiece {
    match c {
        '&' => EscapedPiece::Entity("&amp;"),
        '<' => EscapedPiece::Entity("&lt;"),
        '>' => EscapedPiece::Entity("&gt;"),
        other => EscapedPiece::Char(other),
    }
}

fn mapped(text: &str, units_max: usize, map: impl Fn(char) -> EscapedPiece) -> String {
    let mut out = String::with_capacity(text.len());
    let mut used = 0;
    // Length to return to if the text does not fit: one unit is kept for the ellipsis.
    let mut safe = 0;
    for (_, cluster) in clusters(text, units_max) {
        for piece in cluster.chars().map(&map) {
            used += piece.units();
            piece.push_to(&mut out);
        }
        if used > units_max {
            out.truncate(safe);
            out.push('…');
            // A part of a longer word may stand alone now.
            return without_broadcasts(&out);
        }
        if used < units_max {
            safe = out.len();
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mrkdwn_is_escaped_without_split_entities() {
        assert_eq!(mrkdwn("<!channel> & <@U1>", 100), "&lt;!channel&gt; &amp; &lt;@U1&gt;");
        assert_eq!(mrkdwn("ab<<<", 8), "ab&lt;…");
        assert_eq!(mrkdwn("abc", 3), "abc");
        assert_eq!(mrkdwn("abcd", 3), "ab…");
        assert_eq!(mrkdwn("@channels of it", 9), "＠channel…");
    }

    #[test]
    fn markdown_loses_pings_and_hidden_links() {
        let text = "<!channel> <@U1> <https://evil.example/|https://bank.example> @here me@here.example @hereby a<b";
        let harmless = markdown(text, 1_000);
        assert_eq!(
            harmless,
            "&lt;!channel> &lt;@U1> &lt;https://evil.example/|https://bank.example> ＠here me@here.example @hereby a&lt;b"
        );
        assert_eq!(markdown(&harmless, 1_000), harmless);
        assert_eq!(markdown("abc<@U1>", 7), "abc…");
    }

    #[test]
    fn code_keeps_its_at_signs() {
        let text = "`@here` @here\n\n```java\n@here\n<@layout.page>\n```";
        assert_eq!(
            markdown(text, 1_000),
            "`@here` ＠here\n\n```java\n@here\n&lt;@layout.page>\n```"
        );
    }

    #[test]
    fn plain_text_loses_pings_keeps_length() {
        let text = "<!channel> <@U123> <#C1|x> @here me@here.example <!DOCTYPE html> a<b";
        let harmless = plain_line(text, 1_000);
        assert_eq!(
            harmless,
            "‹!channel> ‹@U123> ‹#C1|x> ＠here me@here.example <!DOCTYPE html> a<b"
        );
        assert_eq!(units(&harmless), units(text));
    }

    #[test]
    fn long_command_is_split_rest_counted() {
        let (pieces, left) = code_pieces(&"&".repeat(10), 10, 2);
        assert_eq!(pieces, ["&amp;&amp;", "&amp;&amp;"]);
        assert_eq!(left, 6);
        assert_eq!(code_pieces("a```b", 10, 2).0, ["aˋˋˋb"]);
    }
}
