//! What a person typed: from Slack's escaped text to words, and which words are commands.

/// What `help` says. Plain words with backticks: it goes through the same rendering as everything else.
pub const HELP: &str = "Mention me with a task and I work on it in a sandbox of this thread's own; reply in the thread with \
another mention to go on (in a direct message no mention is needed). Alone after the mention: `status` says what I am doing, `stop` ends \
the present run, `stop all` also withdraws what waits behind it, `reset` starts over with a fresh sandbox, `help` says this.";

/// A word that is not for the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Command {
    Status,
    Stop,
    StopAll,
    Reset,
    Help,
}

/// The command that the words are, if they are nothing else.
pub(super) fn command(words: &str) -> Option<Command> {
    match words.trim().to_ascii_lowercase().as_str() {
        "status" => Some(Command::Status),
        "stop" => Some(Command::Stop),
        "stop all" => Some(Command::StopAll),
        "reset" => Some(Command::Reset),
        "help" => Some(Command::Help),
        _ => None,
    }
}

/// Whether Slack's text mentions this user.
pub(super) fn mentions(text: &str, user: &str) -> bool {
    text.match_indices("<@")
        .any(|(at, _)| is_mention_of(&text[at..], user))
}

fn is_mention_of(token: &str, user: &str) -> bool {
    let rest = token.strip_prefix("<@").and_then(|t| t.strip_prefix(user));
    rest.is_some_and(|rest| rest.starts_with('>') || rest.starts_with('|'))
}

/// The words as typed: our own mention removed, links as their address, entities decoded; other mentions stay tokens,
/// because only the id is certain.
pub(super) fn typed(text: &str, bot: Option<&str>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('<') {
        out.push_str(&decoded(&rest[..open]));
        let token = &rest[open..];
        // Slack escapes a typed `<`, so an unclosed one is no token: it stays as it is.
        let Some(close) = token.find('>') else {
            out.push_str(&decoded(token));
            return out.trim().to_owned();
        };
        let inside = &token[1..close];
        rest = &token[close + 1..];
        if bot.is_some_and(|bot| is_mention_of(token, bot)) {
            if out.is_empty() || out.ends_with(char::is_whitespace) {
                rest = rest.strip_prefix(' ').unwrap_or(rest);
            }
        } else if inside.starts_with(['@', '#', '!']) {
            out.push_str(&token[..=close]);
        } else {
            let address = inside
                .split_once('|')
                .map_or(inside, |(address, _)| address);
            out.push_str(&decoded(address.strip_prefix("mailto:").unwrap_or(address)));
        }
    }
    out.push_str(&decoded(rest));
    out.trim().to_owned()
}

/// `&amp;` last: what a person typed as `&lt;` arrives as `&amp;lt;`.
fn decoded(text: &str) -> String {
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_mention_goes_and_the_others_stay() {
        assert_eq!(
            typed("<@UBOT> ask <@U2> in <#C1|general>", Some("UBOT")),
            "ask <@U2> in <#C1|general>"
        );
        assert_eq!(
            typed("hey <@UBOT|bobbin> fix it", Some("UBOT")),
            "hey fix it"
        );
        assert_eq!(typed("<@UBOTX> hi", Some("UBOT")), "<@UBOTX> hi");
        assert!(
            mentions("a <@UBOT|b>", "UBOT")
                && !mentions("<@UBOTX>", "UBOT")
                && !mentions("&lt;@UBOT&gt;", "UBOT")
        );
    }

    #[test]
    fn entities_are_decoded_once_and_links_become_their_address() {
        assert_eq!(
            typed("if a &lt; b &amp;&amp; c &gt; d", None),
            "if a < b && c > d"
        );
        assert_eq!(typed("write &amp;lt; here", None), "write &lt; here");
        assert_eq!(
            typed("see <https://a.example/?x=1&amp;y=2|the page>.", None),
            "see https://a.example/?x=1&y=2."
        );
        assert_eq!(
            typed("<mailto:a@b.example|a@b.example>", None),
            "a@b.example"
        );
    }

    #[test]
    fn indentation_and_unclosed_tokens_survive() {
        assert_eq!(
            typed("<@UBOT> run:\n```\nif x:\n    y  = 1\n```", Some("UBOT")),
            "run:\n```\nif x:\n    y  = 1\n```"
        );
        assert_eq!(typed("odd < token", None), "odd < token");
    }

    #[test]
    fn a_command_is_the_whole_text() {
        assert_eq!(command(" STOP \n"), Some(Command::Stop));
        assert_eq!(command("Stop all"), Some(Command::StopAll));
        assert_eq!(command("Status"), Some(Command::Status));
        assert_eq!(command("stop the server"), None);
        assert_eq!(command(""), None);
    }
}
