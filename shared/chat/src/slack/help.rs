//! Slack's help texts. Plain words with backticks: they go through the same rendering as everything else.

use bobbin_core::tenant::commands::{
    CommandRow, Reach, Spoken, TABLE, Takes, Topic, Writing, help as told,
};

/// Help of `/bobbin config`.
pub const CONFIG_HELP: &str = "`/bobbin config` shows the settings. Who may manage this workspace can change them: \
`/bobbin config default repo owner/name` (or `model provider/model`, `agent name`, `provider name` or `runtime native`; with `here` at the end for this channel alone; `none` \
in place of the value clears it), `/bobbin config allow channel here` or `#channel`, `/bobbin config allow user @name`, and `disallow` for the \
opposite. `/bobbin config open owner/name` (or `all`; with `here` for this channel alone) lets tasks work on a private repository, `close` takes \
that back. `/bobbin config direct one` makes all direct messages of a person one thread with one sandbox, `direct each` gives each its own \
again. The first channel or user that is allowed closes Bobbin to all others.";

/// Help of `/bobbin setup`.
pub const SETUP_HELP: &str = "`/bobbin setup` shows where new sandboxes are made and the keys of this workspace's own. Who may manage the \
workspace chooses with `/bobbin setup sandboxes vercel` where they are made (with `here` at the end for this channel alone; `none` leaves it to \
the operator). They can store a key with \
`/bobbin setup daytona` (or `anthropic`, `openai`, `openrouter`), which gives a link to a page for it, and take it away with \
`/bobbin setup daytona remove`. Never write a key into a message.";

/// The choices that leading words can make ([`super::words::chosen`]).
const CHOICES: &str = "Before the task you can choose: `repo:owner/name`, `model:provider/model`, `agent:plan`, and the sandbox: \
`sandbox:NAME`, `in:shared`, `provider:NAME`, `runtime:native`, `snapshot:NAME`.";

/// Text of `help`.
#[must_use]
pub fn help() -> String {
    let said = |topics: &[Topic]| told(Writing::Mention, topics);
    format!(
        "{} Alone after the mention: {} {CHOICES} Several threads can share a sandbox: {} \
`/bobbin status` lists what runs for you in a channel, {}",
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
            let named = |takes| matches!(takes, Takes::NewName | Takes::Sandbox);
            let name = row.arguments.iter().any(|argument| named(argument.takes));
            Some(format!("`{words}{}`, ", if name { " NAME" } else { "" }))
        }
        _ => None,
    };
    let in_thread: String = TABLE.iter().filter_map(in_thread).collect();
    format!(
        "`/bobbin sandbox list` shows the sandboxes that have a name, `/bobbin sandbox destroy NAME` deletes one. In a thread, after \
the mention: {in_thread}`sandbox destroy`."
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
        for argument in chosen.filter(|one| !matches!(one.takes, Takes::Task | Takes::File)) {
            assert!(CHOICES.contains(&format!("`{}:", argument.name)), "{}", argument.name);
        }
    }
}
