//! Slack's help texts. Plain words with backticks: they go through the same rendering as everything else.

use bobbin_core::tenant::commands::{
    ArgumentKind, CommandRow, Reach, Spoken, TABLE, Topic, Writing, help as help_of,
};

/// Help of `/bobbin config`.
pub const CONFIG_HELP: &str = "`/bobbin config` shows the settings. People who may manage this workspace can change \
them: `/bobbin config default repo owner/name` (or `model provider/model`, `agent name`, `provider name`, `runtime \
native` or `pull-requests draft`; `here` at the end sets it for this channel only; `none` instead of the value clears it), `/bobbin config \
allow channel here` or `#channel`, `/bobbin config allow user @name`, and `disallow` for the opposite. `/bobbin \
config open owner/name` (or `all`; `here` at the end: this channel only) lets tasks work on a private repository; `close` \
ends that. `/bobbin \
config budget turn:2 thread:5 user-day:10 channel-month:100 month:300` (each optional, in dollars; `none` clears one) \
bounds what may be spent on models. `/bobbin \
config secret owner/name NPM_TOKEN registry.example.com` (with `set-up` for set-up steps too, `readable` for what the agent \
has to read, `remove` instead of a host to remove it) answers with a link to a page for the value. `/bobbin \
config network owner/name listed api.example.com` (or `off`, `open`) limits what its sandboxes reach. `/bobbin \
config direct one` turns all direct messages of a person into one thread with one sandbox; `direct each` gives each \
message its own thread again. The first allowed channel or user closes Bobbin to all others.";

/// Help of `/bobbin setup`.
pub const SETUP_HELP: &str = "`/bobbin setup` shows where new sandboxes are created and this workspace's own keys. \
People who may manage the workspace choose the provider with `/bobbin setup sandboxes vercel` (`here` at the end sets \
it for this channel only; `none` leaves it to the operator). They store a key with `/bobbin setup daytona` (or \
`anthropic`, `openai`, `openrouter`), which answers with a link to a page for it, and remove the key with `/bobbin \
setup daytona remove`. `/bobbin setup github` answers with a link for binding an organisation or account at GitHub, \
`/bobbin setup github remove NAME` ends that. Never write a key into a message.";

/// The choices that leading words can make ([`super::words::chosen`]).
const CHOICES: &str = "Before the task you can choose: `repo:owner/name`, with it `pr:123` (a pull request to work from or to review), `model:provider/model`, `agent:plan`, and the sandbox: \
`sandbox:NAME`, `in:shared`, `provider:NAME`, `runtime:native`, `snapshot:NAME`.";

/// Text of `help`.
#[must_use]
pub fn help() -> String {
    let said = |topics: &[Topic]| help_of(Writing::Mention, topics);
    format!(
        "{} Alone after the mention: {} {CHOICES} Several threads can share a sandbox: {} `/bobbin status` lists your \
running tasks in a channel, {}",
        said(&[Topic::Begin, Topic::GoOn]),
        said(&[Topic::Look, Topic::End, Topic::Help]),
        said(&[Topic::Share]),
        said(&[Topic::Manage]),
    )
}

/// Help of `/bobbin sandbox`.
pub(super) fn sandbox_help() -> String {
    let in_thread = |row: &CommandRow| match row.spoken {
        Spoken::Words(words) if row.reach == Reach::Thread && words.starts_with("sandbox ") => {
            let named = |takes| matches!(takes, ArgumentKind::NewName | ArgumentKind::Sandbox);
            let name = row.arguments.iter().any(|argument| named(argument.takes));
            Some(format!("`{words}{}`, ", if name { " NAME" } else { "" }))
        }
        _ => None,
    };
    let in_thread: String = TABLE.iter().filter_map(in_thread).collect();
    format!(
        "`/bobbin sandbox list` lists the named sandboxes, `/bobbin sandbox destroy NAME` deletes one. In a thread, \
after the mention: {in_thread}`sandbox destroy`."
    )
}

#[cfg(test)]
mod tests {
    use bobbin_core::tenant::commands::Command;

    use super::*;

    /// The exact help: a change shows up here, and is recorded with `BOBBIN_SNAPSHOTS=write`.
    #[test]
    fn the_help_is_the_recorded_one() {
        let all =
            [&help(), &sandbox_help(), CONFIG_HELP, SETUP_HELP].map(|text| format!("{text}\n"));
        crate::recorded::assert_recorded("slack-help.md", &all.join("\n"));
    }

    #[test]
    fn the_help_names_each_choice() {
        let chosen = Command::Sandbox.row().arguments.iter();
        for argument in
            chosen.filter(|one| !matches!(one.takes, ArgumentKind::Task | ArgumentKind::File))
        {
            assert!(CHOICES.contains(&format!("`{}:", argument.name)), "{}", argument.name);
        }
    }
}
