//! `POST /slack/commands`: the slash command. It cannot be used in threads, so it only explains.

use super::door::{App, Request, ephemeral, form, malformed, nothing, only};
use super::limits::ECHO_CHARS_MAX;
use super::render::quoted;
use super::words::HELP;
use crate::access::Refusal;
use crate::ids::Ms;
use crate::wire::Intake;

/// Takes a slash command. The answer is for the person alone; nothing is put on a queue.
///
/// Answers 401 to what is not signed, 400 to what is no command, 200 otherwise.
#[must_use]
pub fn commands(raw: &[u8], signature: &str, timestamp: &str, app: &App, now_ms: Ms) -> Intake {
    let request = Request {
        raw,
        signature,
        timestamp,
    };
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
    let tenant = if of_enterprise {
        field("enterprise_id")
    } else {
        field("team_id")
    };
    if command.is_empty() || tenant.is_empty() || field("user_id").is_empty() {
        return malformed("The form is no slash command: command, team_id or user_id is missing.");
    }
    match app
        .policy
        .slack(tenant, field("channel_id"), field("user_id"))
    {
        Err(Refusal::Tenant) => {
            return only(ephemeral(&Refusal::Tenant.to_string()), "unknown tenant");
        }
        Err(refusal) => return only(ephemeral(&refusal.to_string()), "refused by policy"),
        Ok(()) => {}
    }
    let first = field("text")
        .split_whitespace()
        .next()
        .unwrap_or("")
        .to_ascii_lowercase();
    let (text, note) = match first.as_str() {
        "" | "help" => (HELP.to_owned(), "help"),
        word @ ("status" | "stop" | "reset") => (
            format!(
                "Slack does not offer slash commands in threads, so `{}` cannot know which one you mean. Write `@Bobbin {word}` in the \
thread (in a direct message: just `{word}`, as a reply in the thread).",
                quoted(command, ECHO_CHARS_MAX)
            ),
            "command for a thread",
        ),
        "config" => (
            "Bobbin is configured by its operator; there is nothing to set from here.".to_owned(),
            "config",
        ),
        word => (
            format!(
                "`{}` is not a word that this command knows. {HELP}",
                quoted(word, ECHO_CHARS_MAX)
            ),
            "unknown command",
        ),
    };
    only(ephemeral(&text), note)
}
