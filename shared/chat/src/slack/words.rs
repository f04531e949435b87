//! What a person typed: from Slack's escaped text to words, which words are commands, and which ones choose.

use bobbin_core::keys::Key;
use bobbin_core::own_keys::KeyWish;
use bobbin_core::selection::Selection;
use bobbin_core::settings::{Change, Kind, List, NotChanged};

/// What `help` says. Plain words with backticks: it goes through the same rendering as everything else.
pub const HELP: &str = "Mention me with a task and I work on it in a sandbox of this thread's own; reply in the thread with \
another mention to go on (in a direct message no mention is needed). Alone after the mention: `status` says what I am doing, `stop` ends \
the present run, `stop all` empties the queue as well, `reset` starts over with a fresh sandbox, `help` says this. Before the task you can \
choose: `repo:owner/name`, `model:provider/model`, `agent:plan`. `/bobbin status` lists what runs for you in a channel, `/bobbin config` shows \
the defaults, `/bobbin setup` the keys of this workspace's own.";

/// What `/bobbin config` says of itself.
pub const CONFIG_HELP: &str = "`/bobbin config` shows the settings. Who may manage this workspace can change them: \
`/bobbin config default repo owner/name` (or `model provider/model`, or `agent name`; with `here` at the end for this channel alone; `none` \
in place of the value clears it), `/bobbin config allow channel here` or `#channel`, `/bobbin config allow user @name`, and `disallow` for the \
opposite. `/bobbin config direct one` makes all direct messages of a person one thread with one sandbox, `direct each` gives each its own \
again. The first channel or user that is allowed closes Bobbin to all others.";

/// What `/bobbin setup` says of itself.
pub const SETUP_HELP: &str = "`/bobbin setup` shows the keys of this workspace's own. Who may manage the workspace can store one with \
`/bobbin setup daytona` (or `anthropic`, `openai`, `openrouter`), which gives a link to a page for it, and take it away with \
`/bobbin setup daytona remove`. Never write a key into a message.";

/// Reads the words after `/bobbin setup`. None: they are not understood.
pub(super) fn setup(words: &str) -> Option<KeyWish> {
    let words: Vec<&str> = words.split_whitespace().collect();
    let provider = |word: &str| Key::of_tenant(word)?.provider().map(str::to_owned);
    match words[..] {
        [] => Some(KeyWish::Show),
        [word] if word.eq_ignore_ascii_case("show") => Some(KeyWish::Show),
        [word] => provider(word).map(|provider| KeyWish::Enter { provider }),
        [word, remove] if remove.eq_ignore_ascii_case("remove") => {
            provider(word).map(|provider| KeyWish::Remove { provider })
        }
        _ => None,
    }
}

/// Reads the words after `/bobbin config`; `channel` is where they were typed. None: they are not understood.
pub(super) fn config(words: &str, channel: &str) -> Option<Change> {
    let words: Vec<&str> = words.split_whitespace().collect();
    let lower: Vec<String> = words.iter().map(|word| word.to_ascii_lowercase()).collect();
    let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
    match lower[..] {
        [] | ["show"] => Some(Change::Show),
        ["direct", "one"] => Some(Change::Direct { one_thread: true }),
        ["direct", "each"] => Some(Change::Direct { one_thread: false }),
        ["default", of, _] => default(kind(of)?, words[2], None),
        ["default", of, _, "here"] => default(kind(of)?, words[2], Some(channel)),
        ["allow", what, _] => {
            let (list, id) = listed(what, words[2], channel)?;
            Some(Change::Allow { list, id })
        }
        ["disallow", what, _] => {
            let (list, id) = listed(what, words[2], channel)?;
            Some(Change::Disallow { list, id })
        }
        _ => None,
    }
}

fn default(of: Kind, value: &str, channel: Option<&str>) -> Option<Change> {
    let value = typed(value, None);
    Some(Change::Default {
        channel: channel.map(str::to_owned),
        of,
        value: (!value.eq_ignore_ascii_case("none")).then_some(value),
    })
}

/// Reads the word of a kind of default.
pub(super) fn kind(word: &str) -> Option<Kind> {
    [Kind::Repo, Kind::Model, Kind::Agent]
        .into_iter()
        .find(|kind| kind_word(*kind) == word)
}

/// The word of a kind of default.
pub(super) const fn kind_word(kind: Kind) -> &'static str {
    match kind {
        Kind::Repo => "repo",
        Kind::Model => "model",
        Kind::Agent => "agent",
    }
}

/// A channel or person of the settings: `here`, a token as Slack writes it (`<#C…|name>`, `<@U…|name>`), or a plain id.
fn listed(what: &str, word: &str, channel: &str) -> Option<(List, String)> {
    let (list, sign) = match what {
        "channel" => (List::Channels, '#'),
        "user" => (List::People, '@'),
        _ => return None,
    };
    if list == List::Channels && word.eq_ignore_ascii_case("here") {
        return Some((list, channel.to_owned()));
    }
    let inside = word.strip_prefix('<').and_then(|w| w.strip_suffix('>'));
    let id = match inside {
        Some(inside) => inside.strip_prefix(sign)?.split('|').next()?,
        None => word,
    };
    Some((list, id.to_owned()))
}

/// What leading `repo:`, `model:` and `agent:` words choose, and the words behind them.
///
/// # Errors
/// Which value cannot be one, in words for the person.
pub(super) fn chosen(words: &str) -> Result<(Selection, &str), NotChanged> {
    let (mut selection, mut rest) = (Selection::default(), words.trim_start());
    loop {
        let word = rest.split_whitespace().next().unwrap_or_default();
        let Some((kind, value)) = word
            .split_once(':')
            .and_then(|(key, value)| Some((kind(&key.to_ascii_lowercase())?, value)))
        else {
            return Ok((selection, rest));
        };
        let value = Some(kind.usable(value)?);
        match kind {
            Kind::Repo => selection.repo = value,
            Kind::Model => selection.model = value,
            Kind::Agent => selection.agent = value,
        }
        rest = rest[word.len()..].trim_start();
    }
}

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

    #[test]
    fn leading_words_choose_and_the_rest_is_the_task() {
        let read = |words| chosen(words).map(|(chosen, rest)| (chosen, rest.to_owned()));
        let (all, task) =
            read(" repo:acme/api Model:openai/b agent:plan fix repo:other/one").expect("usable");
        assert_eq!(
            (all.repo, all.model, all.agent, task.as_str()),
            (
                Some("acme/api".to_owned()),
                Some("openai/b".to_owned()),
                Some("plan".to_owned()),
                "fix repo:other/one"
            )
        );
        assert_eq!(
            read("fix: this").map(|(_, rest)| rest),
            Ok("fix: this".to_owned())
        );
        assert!(read("repo:api fix").is_err() && read("repo: fix").is_err());
        assert_eq!(
            read("repo:https://git.example.com/a/b.git\nfix it").map(|(_, rest)| rest),
            Ok("fix it".to_owned())
        );
    }

    #[test]
    fn the_words_of_setup_are_a_wish_or_nothing_and_never_hold_a_key() {
        let daytona = || "daytona".to_owned();
        assert_eq!(setup(""), Some(KeyWish::Show));
        assert_eq!(
            setup("Daytona"),
            Some(KeyWish::Enter {
                provider: daytona()
            })
        );
        assert_eq!(
            setup("daytona REMOVE"),
            Some(KeyWish::Remove {
                provider: daytona()
            })
        );
        for odd in [
            "slack",
            "daytona dtn_0123456789",
            "remove",
            "daytona remove now",
        ] {
            assert_eq!(setup(odd), None, "{odd}");
        }
    }

    #[test]
    fn the_words_of_config_are_a_change_or_nothing() {
        let of = |channel: Option<&str>, of, value: Option<&str>| {
            Some(Change::Default {
                channel: channel.map(str::to_owned),
                of,
                value: value.map(str::to_owned),
            })
        };
        assert_eq!(config("", "C1"), Some(Change::Show));
        assert_eq!(
            config("default repo acme/API", "C1"),
            of(None, Kind::Repo, Some("acme/API"))
        );
        assert_eq!(
            config("default model openai/b HERE", "C1"),
            of(Some("C1"), Kind::Model, Some("openai/b"))
        );
        assert_eq!(
            config("default agent none", "C1"),
            of(None, Kind::Agent, None)
        );
        let allow = |list, id: &str| {
            Some(Change::Allow {
                list,
                id: id.to_owned(),
            })
        };
        assert_eq!(
            config("allow channel here", "C1"),
            allow(List::Channels, "C1")
        );
        assert_eq!(
            config("allow channel <#C2|general>", "C1"),
            allow(List::Channels, "C2")
        );
        assert_eq!(
            config("allow user <@U2|sam>", "C1"),
            allow(List::People, "U2")
        );
        assert_eq!(
            config("disallow user U2", "C1"),
            Some(Change::Disallow {
                list: List::People,
                id: "U2".to_owned()
            })
        );
        let direct = |one_thread| Some(Change::Direct { one_thread });
        assert_eq!(config("direct ONE", "C1"), direct(true));
        assert_eq!(config("direct each", "C1"), direct(false));
        for odd in [
            "direct",
            "direct both",
            "default",
            "default colour blue",
            "allow user <#C1>",
            "allow everybody now",
            "x",
        ] {
            assert_eq!(config(odd, "C1"), None, "{odd}");
        }
    }
}
