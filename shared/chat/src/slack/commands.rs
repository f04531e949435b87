//! `POST /slack/commands`: the slash command. It cannot be used in threads, so it shows running tasks and the settings.

use bobbin_core::base::ids::{BadSandboxName, Ms, ThreadKey};
use bobbin_core::base::person::{Membership, Person};
use bobbin_core::records::control::{Control, ControlAction};
use bobbin_core::records::message::{Body, Overview, Reply, Surface};
use bobbin_core::tenant::access::Refusal;
use bobbin_core::tenant::commands::Reach;

use super::endpoint::{
    App, SignedRequest, accept, ephemeral, form, malformed, message_id, nothing,
};
use super::escape::quoted;
use super::help::{CONFIG_HELP, SETUP_HELP, help, sandbox_help};
use super::limits::ECHO_CHARS_MAX;
use super::words::{budget, command as read, config, owners, place, setup};
use crate::Inbound;
use crate::commands::{CommandSender, Intent};

/// Placeholder for the thread in the key of something that belongs to a channel only: no message has this `ts`.
pub(super) const NO_THREAD: &str = "0";

/// Handles a slash command. Only the person sees the answer.
///
/// Answers 401 if unsigned, 400 if it is not a command, 200 otherwise.
#[must_use]
pub fn commands(raw: &[u8], signature: &str, timestamp: &str, app: &App, now_ms: Ms) -> Inbound {
    let request = SignedRequest { raw, signature, timestamp };
    if let Some(refused) = request.refusal(app, now_ms) {
        return refused;
    }
    let fields = form(raw);
    let field = |name: &str| fields.get(name).map_or("", String::as_str);
    if field("ssl_check") == "1" {
        return nothing("ssl check");
    }
    let command = field("command");
    let of_enterprise = field("is_enterprise_install") == "true";
    let tenant = if of_enterprise { field("enterprise_id") } else { field("team_id") };
    let (channel, user) = (field("channel_id"), field("user_id"));
    if command.is_empty() || tenant.is_empty() || user.is_empty() {
        return malformed(
            "The form is not a slash command: command, team_id or user_id is missing.",
        );
    }
    match app.policy.slack(tenant, channel, user) {
        Err(Refusal::Tenant) => {
            return Inbound::only(ephemeral(&Refusal::Tenant.to_string()), "unknown tenant");
        }
        Err(refusal) => return Inbound::only(ephemeral(&refusal.to_string()), "refused by policy"),
        Ok(()) => {}
    }
    let name = match field("user_name") {
        "" => user,
        name => name,
    };
    let typed = Typed {
        // Each use of the command has its own trigger: a command typed twice is meant twice.
        id: message_id(tenant, channel, field("trigger_id"), &["command", user, field("text")]),
        tenant,
        channel,
        by: Person { id: user.to_owned(), name: name.to_owned() },
    };
    typed.answered(field("text").trim(), command)
}

/// The author of a command, and where it was typed.
struct Typed<'a> {
    id: String,
    tenant: &'a str,
    channel: &'a str,
    by: Person,
}

impl Typed<'_> {
    /// Handles the words after the command.
    fn answered(self, words: &str, command: &str) -> Inbound {
        let (first, rest) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
        let (text, note) = match first.to_ascii_lowercase().as_str() {
            "" | "help" => (help(), "help"),
            "status" => return self.overview(),
            "config" => match (config(rest, self.channel), budget(rest)) {
                (Some(change), _) | (_, Some(Ok(change))) => {
                    return self.control(ControlAction::Configure { change }, "config");
                }
                (_, Some(Err(wrong))) => (wrong.to_string(), "unusable budget"),
                (None, None) => (CONFIG_HELP.to_owned(), "config help"),
            },
            "setup" => match (place(rest, self.channel), owners(rest), setup(rest)) {
                (Some(change), ..) => {
                    return self.control(ControlAction::Configure { change }, "provider");
                }
                (_, Some(forge), _) => {
                    return self.control(ControlAction::Forge { forge }, "owners");
                }
                (.., Some(key)) => return self.control(ControlAction::OwnKey { key }, "keys"),
                (None, None, None) => (SETUP_HELP.to_owned(), "keys help"),
            },
            first => match self.intent(words) {
                Some(Ok((want, note))) => return self.control(want, note),
                Some(Err(bad)) => (bad.to_string(), "unusable name"),
                None => self.explained(first, command),
            },
        };
        Inbound::only(ephemeral(&text), note)
    }

    /// Help for words that are no request here.
    fn explained(&self, first: &str, command: &str) -> (String, &'static str) {
        match first {
            "sandbox" | "sandboxes" => (sandbox_help(), "sandboxes help"),
            word if read(word, &[Reach::Thread]).is_some() => (
                format!(
                    "Slack does not offer slash commands in threads, so `{}` cannot know which one you mean. Write \
`@Bobbin {word}` in the thread (in a direct message: just `{word}`, as a reply in the thread). `/bobbin status` lists \
your running tasks.",
                    quoted(command, ECHO_CHARS_MAX)
                ),
                "command for a thread",
            ),
            word => (
                format!(
                    "This command does not know the word `{}`. {}",
                    quoted(word, ECHO_CHARS_MAX),
                    help()
                ),
                "unknown command",
            ),
        }
    }

    /// The request of a command outside threads. `None`: it concerns a thread, or these words are not a command.
    fn intent(&self, words: &str) -> Option<Result<(ControlAction, &'static str), BadSandboxName>> {
        let (command, said) = read(words, &[Reach::Thread, Reach::Anywhere, Reach::Tenant])?;
        let membership = Membership::default();
        let typist = CommandSender { by: &self.by, membership: &membership, in_thread: false };
        match Intent::of(command, &said, &typist) {
            Ok(intent) if intent.needs_thread(command) => None,
            Ok(Intent::Control(want)) => Some(Ok((want, command.row().name))),
            Ok(Intent::Work(_)) => None,
            Err(bad) => Some(Err(bad)),
        }
    }

    fn reply(&self) -> Reply {
        Reply::Slack { channel: self.channel.to_owned(), thread_ts: None, user: self.by.id.clone() }
    }

    fn overview(self) -> Inbound {
        if ThreadKey::slack(self.tenant, &self.by.id, NO_THREAD).is_err() {
            return malformed("The ids of the command are not valid.");
        }
        let place = Surface::Answer { reply: self.reply(), channel: self.channel.to_owned() };
        let overview = Overview {
            id: self.id,
            team: self.tenant.to_owned(),
            by: self.by,
            place,
            refused: None,
            change: None,
        };
        accept(Body::Overview(overview), "overview")
    }

    fn control(self, want: ControlAction, note: &'static str) -> Inbound {
        let Ok(thread) = ThreadKey::slack(self.tenant, self.channel, NO_THREAD) else {
            return malformed("The ids of the command are not valid.");
        };
        let control = Control {
            reply: self.reply(),
            id: self.id,
            thread,
            membership: Membership { channel: self.channel.to_owned(), ..Membership::default() },
            by: self.by,
            want,
        };
        accept(Body::Control(control), note)
    }
}
