//! Parses a person's text: from Slack's escaped text to words, commands and choices.

use bobbin_core::base::ids::BadSandboxName;
use bobbin_core::shown::sandboxes::{SandboxOption, Unusable};
use bobbin_core::tenant::budgets::{self, NoBudget};
use bobbin_core::tenant::commands::argument::{
    BUDGET, ENVIRONMENT, NETWORK, READABLE, REMOVE, SECRET, SET_UP,
};
use bobbin_core::tenant::commands::{
    Argument, ArgumentKind, Command, CommandRow, Reach, Spoken, TABLE,
};
use bobbin_core::tenant::keys::Key;
use bobbin_core::tenant::own_keys::OwnKeyRequest;
use bobbin_core::tenant::project_networks::NetworkAccess;
use bobbin_core::tenant::project_secrets::{SecretRequest, hosts};
use bobbin_core::tenant::selection::Selection;
use bobbin_core::tenant::settings::{DefaultKind, NotChanged, SettingsChange, SettingsList};
use bobbin_core::tenant::setup_link::OWNERS;
use bobbin_core::tenant::sign_in::ForgeRequest;

use crate::commands::{FilledIn, NoNumber, numbered};

/// Parses the words after `/bobbin setup` that set the place for new sandboxes; `channel` is where they were typed.
/// `None`: they say something else.
pub(super) fn place(words: &str, channel: &str) -> Option<SettingsChange> {
    let words: Vec<&str> = words.split_whitespace().collect();
    let (first, rest) = words.split_first()?;
    if !first.eq_ignore_ascii_case("sandboxes") {
        return None;
    }
    match *rest {
        [value] => default(DefaultKind::Provider, value, None),
        [value, here] if here.eq_ignore_ascii_case("here") => {
            default(DefaultKind::Provider, value, Some(channel))
        }
        _ => None,
    }
}

/// Parses the words after `/bobbin setup` about owners at the forge. `None`: they say something else.
pub(super) fn owners(words: &str) -> Option<ForgeRequest> {
    let words: Vec<&str> = words.split_whitespace().collect();
    let (first, rest) = words.split_first()?;
    if !first.eq_ignore_ascii_case(OWNERS) {
        return None;
    }
    match *rest {
        [] => Some(ForgeRequest::Bind),
        [remove] if remove.eq_ignore_ascii_case(REMOVE) => {
            Some(ForgeRequest::Unbind { owner: None })
        }
        [remove, owner] if remove.eq_ignore_ascii_case(REMOVE) => {
            Some(ForgeRequest::Unbind { owner: Some(typed(owner, None)) })
        }
        _ => None,
    }
}

/// Parses the words after `/bobbin setup` about keys. `None`: not understood.
pub(super) fn setup(words: &str) -> Option<OwnKeyRequest> {
    let words: Vec<&str> = words.split_whitespace().collect();
    let provider = |word: &str| Key::of_tenant(word)?.provider().map(str::to_owned);
    match words[..] {
        [] => Some(OwnKeyRequest::Show),
        [word] if word.eq_ignore_ascii_case("show") => Some(OwnKeyRequest::Show),
        [word] => provider(word).map(|provider| OwnKeyRequest::Enter { provider }),
        [word, remove] if remove.eq_ignore_ascii_case("remove") => {
            provider(word).map(|provider| OwnKeyRequest::Remove { provider })
        }
        _ => None,
    }
}

/// Parses the words after `/bobbin config` about budgets: `budget turn:2 month:none`. `None`: they say something else.
pub(super) fn budget(words: &str) -> Option<Result<SettingsChange, NoBudget>> {
    let mut words = words.split_whitespace();
    if !words.next()?.eq_ignore_ascii_case(BUDGET) {
        return None;
    }
    let pairs = words.map(|word| word.split_once(':').unwrap_or((word, "")));
    Some(budgets::typed(pairs).map(|set| {
        if set.is_empty() { SettingsChange::Show } else { SettingsChange::Budgets { set } }
    }))
}

/// Parses the words after `/bobbin config` about a project: `environment acme/api {set-up: [make]}`. `None`: they say
/// something else.
pub(super) fn environment(words: &str) -> Option<SettingsChange> {
    let (first, rest) = words.trim().split_once(char::is_whitespace)?;
    if !first.eq_ignore_ascii_case(ENVIRONMENT) {
        return None;
    }
    let (repository, text) = rest.trim().split_once(char::is_whitespace)?;
    let (repository, text) = (repository.to_owned(), decoded(text));
    Some(SettingsChange::Environment { repository, text, beside: Vec::new() })
}

/// Parses the words after `/bobbin config` about a secret: `secret acme/api NPM_TOKEN registry.example.com set-up`, or
/// with `remove` alone behind the name. `None`: not understood.
fn secret(words: &[&str]) -> Option<SettingsChange> {
    let [_, repository, name, rest @ ..] = words else { return None };
    let (repository, name) = (typed(repository, None), typed(name, None));
    let is = |word: &str, flag: &str| {
        let word = word.to_ascii_lowercase();
        word == flag || word.strip_prefix(flag) == Some(":yes")
    };
    if let [remove] = rest
        && is(remove, REMOVE)
    {
        return Some(SettingsChange::RemoveSecret { repository, name });
    }
    let is_flag = |word: &&&str| is(word, READABLE) || is(word, SET_UP);
    let named = rest.iter().filter(|word| !is_flag(word)).flat_map(|word| hosts_in(word));
    Some(SettingsChange::Secret(SecretRequest {
        repository,
        name,
        hosts: named.collect(),
        readable: rest.iter().any(|word| is(word, READABLE)),
        set_up: rest.iter().any(|word| is(word, SET_UP)),
    }))
}

/// Parses the words after `/bobbin config` about a network: `network acme/api listed api.example.com`. `None`: not
/// understood.
fn network(words: &[&str]) -> Option<SettingsChange> {
    let [_, repository, access, rest @ ..] = words else { return None };
    Some(SettingsChange::Network {
        repository: typed(repository, None),
        access: NetworkAccess::named(access)?,
        hosts: rest.iter().flat_map(|word| hosts_in(word)).collect(),
    })
}

/// Hosts in a word. Slack makes a link of what looks like one.
fn hosts_in(word: &str) -> Vec<String> {
    let typed = typed(word, None);
    let is_link = word.starts_with('<');
    let bare = typed.split_once("://").filter(|_| is_link).map(|(_, host)| host);
    hosts(bare.unwrap_or(&typed))
}

/// Parses the words after `/bobbin config`; `channel` is where they were typed. `None`: not understood.
pub(super) fn config(words: &str, channel: &str) -> Option<SettingsChange> {
    let typed = words;
    let words: Vec<&str> = words.split_whitespace().collect();
    let lower: Vec<String> = words.iter().map(|word| word.to_ascii_lowercase()).collect();
    let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
    match lower[..] {
        [ENVIRONMENT, ..] => environment(typed),
        [SECRET, ..] => secret(&words),
        [NETWORK, ..] => network(&words),
        [] | ["show"] => Some(SettingsChange::Show),
        ["direct", "one"] => Some(SettingsChange::Direct { one_thread: true }),
        ["direct", "each"] => Some(SettingsChange::Direct { one_thread: false }),
        ["default", of, _] => default(DefaultKind::named(of)?, words[2], None),
        ["default", of, _, "here"] => default(DefaultKind::named(of)?, words[2], Some(channel)),
        ["allow", what, _] => {
            let (list, id) = listed(what, words[2], channel)?;
            Some(SettingsChange::Allow { list, id })
        }
        ["open", _] => Some(SettingsChange::Open { channel: None, repository: plain(words[1]) }),
        ["open", _, "here"] => Some(SettingsChange::Open {
            channel: Some(channel.to_owned()),
            repository: plain(words[1]),
        }),
        ["close", _] => Some(SettingsChange::Close { channel: None, repository: plain(words[1]) }),
        ["close", _, "here"] => Some(SettingsChange::Close {
            channel: Some(channel.to_owned()),
            repository: plain(words[1]),
        }),
        ["disallow", what, _] => {
            let (list, id) = listed(what, words[2], channel)?;
            Some(SettingsChange::Disallow { list, id })
        }
        _ => None,
    }
}

fn plain(word: &str) -> String {
    typed(word, None)
}

fn default(of: DefaultKind, value: &str, channel: Option<&str>) -> Option<SettingsChange> {
    let value = typed(value, None);
    Some(SettingsChange::Default {
        channel: channel.map(str::to_owned),
        of,
        value: (!value.eq_ignore_ascii_case("none")).then_some(value),
    })
}

/// A channel or person in the settings: `here`, a token in Slack's notation (`<#C…|name>`, `<@U…|name>`), or a plain
/// id.
fn listed(what: &str, word: &str, channel: &str) -> Option<(SettingsList, String)> {
    let (list, sign) = match what {
        "channel" => (SettingsList::Channels, '#'),
        "user" => (SettingsList::People, '@'),
        _ => return None,
    };
    if list == SettingsList::Channels && word.eq_ignore_ascii_case("here") {
        return Some((list, channel.to_owned()));
    }
    let inside = word.strip_prefix('<').and_then(|w| w.strip_suffix('>'));
    let id = match inside {
        Some(inside) => inside.strip_prefix(sign)?.split('|').next()?,
        None => word,
    };
    Some((list, id.to_owned()))
}

/// An unusable choice, in words for the person.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadChoice {
    #[error(transparent)]
    Value(#[from] NotChanged),
    #[error(transparent)]
    Name(#[from] BadSandboxName),
    #[error(transparent)]
    Beside(#[from] Unusable),
    #[error(transparent)]
    Number(#[from] NoNumber),
    #[error(
        "`in:` accepts only the word shared, which runs the task in the common checkout of a shared sandbox"
    )]
    In,
}

/// The choices of leading words like `repo:` and `sandbox:`, and the rest of the text.
///
/// # Errors
/// The unusable value, in words for the person.
pub(super) fn chosen(words: &str) -> Result<(Selection, &str), BadChoice> {
    let (mut selection, mut rest) = (Selection::default(), words.trim_start());
    loop {
        let word = rest.split_whitespace().next().unwrap_or_default();
        let Some((key, value)) = word.split_once(':') else {
            return Ok((selection, rest));
        };
        match key.to_ascii_lowercase().as_str() {
            "sandbox" => selection.sandbox = Some(value.parse()?),
            "snapshot" => selection.snapshot = Some(SandboxOption::Snapshot.usable(value)?),
            // Many sentences begin with `in:` and `pr:`; only a single word is a choice.
            "in" | "pr" if value.is_empty() => return Ok((selection, rest)),
            "pr" => selection.pr = Some(numbered(value)?),
            "in" if value.eq_ignore_ascii_case("shared") => selection.in_common = true,
            "in" => return Err(BadChoice::In),
            key => {
                let Some(kind) = DefaultKind::named(key) else {
                    return Ok((selection, rest));
                };
                kind.set(&mut selection, Some(kind.usable(value)?));
            }
        }
        rest = rest[word.len()..].trim_start();
    }
}

/// The words after those of a command.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Remainder {
    text: Option<(&'static str, String)>,
    flag: Option<&'static str>,
    subcommand: Option<&'static str>,
}

impl FilledIn for Remainder {
    fn text(&self, name: &str) -> Option<&str> {
        self.text.as_ref().filter(|(of, _)| *of == name).map(|(_, text)| text.as_str())
    }

    fn flag(&self, name: &str) -> bool {
        self.flag == Some(name)
    }

    fn subcommand(&self) -> Option<&str> {
        self.subcommand
    }
}

/// The commands that are understood after a mention.
pub(super) const MENTIONED: &[Reach] = &[Reach::Thread, Reach::Anywhere];

/// Parses words that are a command with one of these reaches and nothing else.
pub(super) fn command(words: &str, reaches: &[Reach]) -> Option<(Command, Remainder)> {
    let mut words: Vec<&str> = words.split_whitespace().collect();
    if words.first()?.eq_ignore_ascii_case("sandboxes") {
        words[0] = "sandbox";
    }
    let mut rows = TABLE.iter().filter(|row| reaches.contains(&row.reach));
    rows.find_map(|row| Some((row.command, remainder(row, &words)?)))
}

/// The words after the command, if these words are that command.
fn remainder(row: &CommandRow, words: &[&str]) -> Option<Remainder> {
    let Spoken::Words(spoken) = row.spoken else {
        return None;
    };
    let mut rest = words.iter();
    if !spoken.split(' ').all(|word| rest.next().is_some_and(|one| one.eq_ignore_ascii_case(word)))
    {
        return None;
    }
    let rest = rest.as_slice();
    if rest.is_empty() {
        let is_whole = !row.arguments.iter().any(|argument| argument.required);
        return is_whole.then(Remainder::default);
    }
    let mut flags =
        row.arguments.iter().filter(|argument| matches!(argument.takes, ArgumentKind::Flag));
    let typed = rest.join(" ").to_ascii_lowercase();
    if let Some(flag) = flags.find(|flag| flag.name.replace('-', " ") == typed) {
        return Some(Remainder { flag: Some(flag.name), ..Remainder::default() });
    }
    let is_plain = |argument: &&Argument| matches!(argument.takes, ArgumentKind::Subcommand(&[]));
    let mut subcommands = row.arguments.iter().filter(is_plain);
    if let Some(chosen) = subcommands.find(|argument| argument.name == typed) {
        return Some(Remainder { subcommand: Some(chosen.name), ..Remainder::default() });
    }
    // A word after a command with free text would be a task more often than an argument.
    let mut texts = row.arguments.iter().filter(|argument| {
        !matches!(
            argument.takes,
            ArgumentKind::Flag | ArgumentKind::Text | ArgumentKind::Subcommand(_)
        )
    });
    let text = texts.next()?;
    match rest {
        [word] => {
            let text = Some((text.name, (*word).to_owned()));
            Some(Remainder { text, ..Remainder::default() })
        }
        _ => None,
    }
}

/// Whether Slack's text mentions this user.
pub(super) fn mentions(text: &str, user: &str) -> bool {
    text.match_indices("<@").any(|(at, _)| is_mention_of(&text[at..], user))
}

fn is_mention_of(token: &str, user: &str) -> bool {
    let rest = token.strip_prefix("<@").and_then(|t| t.strip_prefix(user));
    rest.is_some_and(|rest| rest.starts_with('>') || rest.starts_with('|'))
}

/// The text as typed: our own mention removed, links as their address, entities decoded; other mentions stay tokens,
/// because only the id is certain.
pub(super) fn typed(text: &str, bot: Option<&str>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('<') {
        out.push_str(&decoded(&rest[..open]));
        let token = &rest[open..];
        // Slack escapes a typed `<`, so an unclosed one is not a token: it stays unchanged.
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
            let address = inside.split_once('|').map_or(inside, |(address, _)| address);
            out.push_str(&decoded(address.strip_prefix("mailto:").unwrap_or(address)));
        }
    }
    out.push_str(&decoded(rest));
    out.trim().to_owned()
}

/// `&amp;` last: a typed `&lt;` arrives as `&amp;lt;`.
fn decoded(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use bobbin_core::tenant::budgets::BudgetKind;

    use super::*;

    fn mentioned(words: &str) -> Option<(Command, Remainder)> {
        command(words, MENTIONED)
    }

    #[test]
    fn repositories_are_opened_and_closed() {
        let open = |channel: Option<&str>| {
            let (channel, repository) = (channel.map(str::to_owned), "acme/api".to_owned());
            Some(SettingsChange::Open { channel, repository })
        };
        assert_eq!(config("open acme/api", "C1"), open(None));
        assert_eq!(config("open acme/api here", "C1"), open(Some("C1")));
        let repository = "all".to_owned();
        assert_eq!(
            config("close all", "C1"),
            Some(SettingsChange::Close { channel: None, repository })
        );
        assert_eq!(config("open", "C1"), None);
    }

    #[test]
    fn advertised_commands_are_understood() {
        let tenant = bobbin_core::base::ids::Tenant::slack("T1");
        for row in TABLE {
            let text = tenant.command(row.command);
            let understood = match text.strip_prefix("@Bobbin ") {
                Some(words) => {
                    let with_name = format!("{words} front");
                    let mut read = [words, &with_name].into_iter().filter_map(mentioned);
                    read.any(|(command, _)| command == row.command)
                }
                None => match text.strip_prefix("/bobbin ") {
                    Some(words) => matches!(words, "config" | "setup"),
                    None => !matches!(row.spoken, Spoken::Words(_)),
                },
            };
            assert!(understood, "{text}");
        }
    }

    #[test]
    fn only_own_mention_is_removed() {
        assert_eq!(
            typed("<@UBOT> ask <@U2> in <#C1|general>", Some("UBOT")),
            "ask <@U2> in <#C1|general>"
        );
        assert_eq!(typed("hey <@UBOT|bobbin> fix it", Some("UBOT")), "hey fix it");
        assert_eq!(typed("<@UBOTX> hi", Some("UBOT")), "<@UBOTX> hi");
        assert!(
            mentions("a <@UBOT|b>", "UBOT")
                && !mentions("<@UBOTX>", "UBOT")
                && !mentions("&lt;@UBOT&gt;", "UBOT")
        );
    }

    #[test]
    fn entities_decode_once_links_become_urls() {
        assert_eq!(typed("if a &lt; b &amp;&amp; c &gt; d", None), "if a < b && c > d");
        assert_eq!(typed("write &amp;lt; here", None), "write &lt; here");
        assert_eq!(
            typed("see <https://a.example/?x=1&amp;y=2|the page>.", None),
            "see https://a.example/?x=1&y=2."
        );
        assert_eq!(typed("<mailto:a@b.example|a@b.example>", None), "a@b.example");
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
    fn command_must_be_whole_text() {
        let flag = |flag| Remainder { flag: Some(flag), ..Remainder::default() };
        assert_eq!(mentioned(" STOP \n"), Some((Command::Stop, Remainder::default())));
        assert_eq!(mentioned("Stop all"), Some((Command::Stop, flag("all"))));
        assert_eq!(mentioned("reset Keep files"), Some((Command::Reset, flag("keep-files"))));
        assert_eq!(mentioned("Status"), Some((Command::Status, Remainder::default())));
        for task in [
            "stop the server",
            "stop all of it",
            "status now",
            "reset keep-files",
            "diff",
            "say hello",
            "",
        ] {
            assert_eq!(mentioned(task), None, "{task}");
        }
    }

    #[test]
    fn leading_options_precede_the_prompt() {
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
        assert_eq!(read("fix: this").map(|(_, rest)| rest), Ok("fix: this".to_owned()));
        assert!(read("repo:api fix").is_err() && read("repo: fix").is_err());
        assert_eq!(
            read("repo:https://git.example.com/a/b.git\nfix it").map(|(_, rest)| rest),
            Ok("fix it".to_owned())
        );
    }

    #[test]
    fn leading_options_select_the_sandbox() {
        let read = |words| chosen(words).map(|(chosen, rest)| (chosen, rest.to_owned()));
        let (chosen, task) =
            read("sandbox:frontend in:shared provider:Daytona snapshot:base-1 fix it")
                .expect("usable");
        let expected = Selection {
            sandbox: Some("frontend".parse().expect("a name")),
            provider: Some("daytona".to_owned()),
            snapshot: Some("base-1".to_owned()),
            in_common: true,
            ..Selection::default()
        };
        assert_eq!((chosen, task.as_str()), (expected, "fix it"));
        let refused = read("sandbox:Front_End fix it").expect_err("a bad name");
        assert_eq!(
            refused.to_string(),
            "\"Front_End\" cannot be the name of a sandbox: use 1 to 40 characters of a-z, 0-9 and -, for example frontend-2"
        );
        assert_eq!(
            read("pr:0 fix it").expect_err("no number").to_string(),
            "\"0\" is not the number of a pull request: write it as in its address, for example 123"
        );
        assert_eq!(read("pr: fix it").map(|(_, rest)| rest), Ok("pr: fix it".to_owned()));
        assert_eq!(read("in:here fix it"), Err(BadChoice::In));
        assert_eq!(
            read("in: the api fix it").map(|(_, rest)| rest),
            Ok("in: the api fix it".to_owned())
        );
    }

    #[test]
    fn sandbox_commands_differ_from_prompts() {
        let alone = Remainder::default;
        let named =
            || Remainder { text: Some(("name", "Front".to_owned())), ..Remainder::default() };
        for (words, read) in [
            ("sandbox list", (Command::List, alone())),
            ("Sandboxes LIST", (Command::List, alone())),
            ("sandbox name Front", (Command::Name, named())),
            ("sandbox connect Front", (Command::Connect, named())),
            ("sandbox connect", (Command::Connect, alone())),
            ("sandbox destroy", (Command::Destroy, alone())),
            ("sandbox destroy Front", (Command::Destroy, named())),
        ] {
            assert_eq!(mentioned(words), Some(read), "{words}");
        }
        for task in ["sandbox", "sandbox name", "sandbox name the new thing", "list sandboxes"] {
            assert_eq!(mentioned(task), None, "{task}");
        }
    }

    #[test]
    fn setup_words_set_default_provider() {
        let of = |channel: Option<&str>, value: Option<&str>| {
            Some(SettingsChange::Default {
                channel: channel.map(str::to_owned),
                of: DefaultKind::Provider,
                value: value.map(str::to_owned),
            })
        };
        assert_eq!(place("sandboxes vercel", "C1"), of(None, Some("vercel")));
        let here = of(Some("C1"), Some("ssh"));
        assert_eq!(place("Sandboxes ssh HERE", "C1"), here);
        assert_eq!(place("sandboxes none here", "C1"), of(Some("C1"), None));
        assert_eq!(config("default provider ssh here", "C1"), here);
        for odd in ["sandboxes", "sandboxes a b", "daytona", ""] {
            assert_eq!(place(odd, "C1"), None, "{odd}");
        }
    }

    #[test]
    fn setup_words_never_hold_a_key() {
        let daytona = || "daytona".to_owned();
        assert_eq!(setup(""), Some(OwnKeyRequest::Show));
        assert_eq!(setup("Daytona"), Some(OwnKeyRequest::Enter { provider: daytona() }));
        assert_eq!(setup("daytona REMOVE"), Some(OwnKeyRequest::Remove { provider: daytona() }));
        for odd in ["slack", "daytona dtn_0123456789", "remove", "daytona remove now"] {
            assert_eq!(setup(odd), None, "{odd}");
        }
    }

    #[test]
    fn owners_are_bound_and_removed() {
        assert_eq!(owners("GitHub"), Some(ForgeRequest::Bind));
        assert_eq!(owners("github remove"), Some(ForgeRequest::Unbind { owner: None }));
        let owner = Some("acme".to_owned());
        assert_eq!(owners("github REMOVE acme"), Some(ForgeRequest::Unbind { owner }));
        for odd in ["", "daytona", "github acme", "github remove a b"] {
            assert_eq!(owners(odd), None, "{odd}");
        }
    }

    #[test]
    fn account_takes_one_known_word() {
        for (said, subcommand) in
            [("github", None), ("GitHub Connect", Some("connect")), ("github show", Some("show"))]
        {
            let remainder = Remainder { subcommand, ..Remainder::default() };
            assert_eq!(mentioned(said), Some((Command::GitHub, remainder)), "{said}");
        }
        for task in ["github issues", "github connect the repositories"] {
            assert_eq!(mentioned(task), None, "{task}");
        }
    }

    #[test]
    fn secrets_and_networks_are_understood() {
        let (repository, name) = ("acme/api".to_owned(), "NPM_TOKEN".to_owned());
        let wish = SecretRequest {
            repository: repository.clone(),
            name: name.clone(),
            hosts: vec!["a.example.com".to_owned(), "*.b.example.com".to_owned()],
            readable: false,
            set_up: true,
        };
        let linked =
            "secret acme/api NPM_TOKEN <http://a.example.com|a.example.com> *.b.example.com set-up";
        assert_eq!(config(linked, "C1"), Some(SettingsChange::Secret(wish)));
        let remove = SettingsChange::RemoveSecret { repository: repository.clone(), name };
        assert_eq!(config("secret acme/api NPM_TOKEN remove", "C1"), Some(remove));
        let (access, hosts) = (NetworkAccess::Listed, vec!["a.example.com".to_owned()]);
        assert_eq!(
            config("network acme/api listed a.example.com", "C1"),
            Some(SettingsChange::Network { repository, access, hosts })
        );
        assert_eq!(config("network acme/api shut", "C1"), None);
        assert_eq!(config("secret acme/api", "C1"), None);
    }

    #[test]
    fn budgets_are_set_cleared_and_shown() {
        let set = [(BudgetKind::PersonDay, Some(10_000_000)), (BudgetKind::Month, None)].into();
        assert_eq!(
            budget("Budget user-day:10 month:NONE"),
            Some(Ok(SettingsChange::Budgets { set }))
        );
        assert_eq!(budget("budget"), Some(Ok(SettingsChange::Show)));
        assert_eq!(budget("show"), None);
        for (odd, says) in [("budget turn", "turn: \"\""), ("budget 5", "no budget \"5\"")] {
            let refused = budget(odd).expect("understood").expect_err(odd).to_string();
            assert!(refused.contains(says), "{refused}");
        }
    }

    #[test]
    fn config_words_parse_to_one_change() {
        let of = |channel: Option<&str>, of, value: Option<&str>| {
            Some(SettingsChange::Default {
                channel: channel.map(str::to_owned),
                of,
                value: value.map(str::to_owned),
            })
        };
        assert_eq!(config("", "C1"), Some(SettingsChange::Show));
        assert_eq!(
            config("default repo acme/API", "C1"),
            of(None, DefaultKind::Repo, Some("acme/API"))
        );
        assert_eq!(
            config("default model openai/b HERE", "C1"),
            of(Some("C1"), DefaultKind::Model, Some("openai/b"))
        );
        assert_eq!(config("default agent none", "C1"), of(None, DefaultKind::Agent, None));
        assert_eq!(
            config("default pull-requests off", "C1"),
            of(None, DefaultKind::PullRequests, Some("off"))
        );
        let allow = |list, id: &str| Some(SettingsChange::Allow { list, id: id.to_owned() });
        assert_eq!(config("allow channel here", "C1"), allow(SettingsList::Channels, "C1"));
        assert_eq!(
            config("allow channel <#C2|general>", "C1"),
            allow(SettingsList::Channels, "C2")
        );
        assert_eq!(config("allow user <@U2|sam>", "C1"), allow(SettingsList::People, "U2"));
        assert_eq!(
            config("disallow user U2", "C1"),
            Some(SettingsChange::Disallow { list: SettingsList::People, id: "U2".to_owned() })
        );
        let direct = |one_thread| Some(SettingsChange::Direct { one_thread });
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
