//! What a row of the table says, and how a command is written where people type it.
#![allow(missing_docs, reason = "the names say it")]

use super::{Command, TABLE};
use crate::base::ids::{Tenant, ThreadKey};
use crate::tenant::settings::Kind;

/// A command, for both chats.
#[derive(Debug)]
pub struct CommandRow {
    pub command: Command,
    /// One word, typed behind a slash.
    pub name: &'static str,
    /// How it is said where commands are words after the app's name.
    pub spoken: Spoken,
    pub reach: Reach,
    pub who: WhoMay,
    /// What it does, in the list that a chat shows while somebody types.
    pub about: &'static str,
    /// Those that are required stand first.
    pub arguments: &'static [Argument],
    /// Where in the help it is told of.
    pub topic: Topic,
    pub help: HelpText,
}

/// How a command is said where commands are words after the app's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spoken {
    /// By these words and nothing else.
    Words(&'static str),
    /// It is not named: what is said after the app's name is a task.
    Task,
    /// Not at all: a button of this label does it.
    Button(&'static str),
}

/// What a command is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The thread in which it is typed.
    Thread,
    /// A thread or none.
    Anywhere,
    /// The whole server or workspace.
    Tenant,
}

/// Who may use a command, of those who may use Bobbin where they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhoMay {
    Everyone,
    /// Who may manage the server or workspace.
    Managers,
}

/// An argument of a command.
#[derive(Debug, Clone, Copy)]
pub struct Argument {
    pub name: &'static str,
    pub about: &'static str,
    pub required: bool,
    pub takes: Takes,
}

/// What can be filled in.
#[derive(Debug, Clone, Copy)]
pub enum Takes {
    /// The words of a task.
    Task,
    File,
    /// Yes or no.
    Flag,
    /// A name for a sandbox.
    NewName,
    /// A sandbox that has a name: those are suggested.
    Sandbox,
    /// A value of this kind: those that are known are suggested.
    Kind(Kind),
    /// The same, of the kind that the argument `what` says.
    Default,
    Text,
    /// One of these: what is shown, and the value.
    OneOf(&'static [(&'static str, &'static str)]),
    /// The provider of a key that tenants can have of their own.
    KeyOwner,
    Channel,
    Role,
    Person,
    /// A command below the command, with arguments of its own.
    Subcommand(&'static [Argument]),
}

/// Parts of the help, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    /// How a task is begun.
    Begin,
    /// How one goes on with it.
    GoOn,
    /// What can be seen of it.
    Look,
    /// Sandboxes that threads share.
    Share,
    /// How things are ended.
    End,
    /// What who manages the place can do.
    Manage,
    Help,
}

impl Topic {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Begin, Self::GoOn, Self::Look, Self::Share, Self::End, Self::Manage, Self::Help];
}

/// What the help says of a command, as a sentence or a part of one; nothing where another one's help tells of it. `{name}`
/// stands for the command of that name as it is typed there.
#[derive(Debug, Clone, Copy)]
pub struct HelpText {
    pub slash: &'static str,
    pub mention: &'static str,
}

impl HelpText {
    /// The same words in both ways of writing.
    pub(super) const fn of_both(text: &'static str) -> Self {
        Self { slash: text, mention: text }
    }
}

/// How people of a chat write commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writing {
    /// One word behind a slash, everywhere.
    Slash,
    /// Words after a mention of the app in a thread, or behind the app's own slash command.
    Mention,
}

pub(super) const fn required(name: &'static str, about: &'static str, takes: Takes) -> Argument {
    Argument { name, about, required: true, takes }
}

pub(super) const fn optional(name: &'static str, about: &'static str, takes: Takes) -> Argument {
    Argument { name, about, required: false, takes }
}

pub(super) const fn flag(name: &'static str, about: &'static str) -> Argument {
    optional(name, about, Takes::Flag)
}

pub(super) const fn subcommand(
    name: &'static str,
    about: &'static str,
    arguments: &'static [Argument],
) -> Argument {
    optional(name, about, Takes::Subcommand(arguments))
}

impl Command {
    /// As it is typed in a place where it is understood.
    fn typed(self, writing: Writing) -> String {
        let row = self.row();
        match (writing, row.spoken, row.reach) {
            (Writing::Slash, _, _) => format!("/{}", row.name),
            (Writing::Mention, Spoken::Words(words), Reach::Tenant) => format!("/bobbin {words}"),
            (Writing::Mention, Spoken::Words(words), _) => format!("@Bobbin {words}"),
            (Writing::Mention, Spoken::Task, _) => "@Bobbin".to_owned(),
            (Writing::Mention, Spoken::Button(label), _) => label.to_owned(),
        }
    }
}

impl Tenant {
    /// How people of this server or workspace write commands.
    #[must_use]
    fn writing(&self) -> Writing {
        if self.as_str().starts_with("slack:") { Writing::Mention } else { Writing::Slash }
    }

    /// The command as people of this server or workspace type it.
    #[must_use]
    pub fn command(&self, command: Command) -> String {
        command.typed(self.writing())
    }
}

impl ThreadKey {
    /// The command as people of this thread type it.
    #[must_use]
    pub fn command(&self, command: Command) -> String {
        self.tenant().command(command)
    }
}

/// What the help says of these topics, in sentences; empty where there is nothing to say.
#[must_use]
pub fn help(writing: Writing, topics: &[Topic]) -> String {
    let rows = topics.iter().flat_map(|topic| TABLE.iter().filter(|row| row.topic == *topic));
    let mut said = String::new();
    for row in rows {
        let text = match writing {
            Writing::Slash => row.help.slash,
            Writing::Mention => row.help.mention,
        };
        if text.is_empty() {
            continue;
        }
        if !said.is_empty() {
            said.push_str(if said.ends_with(['.', ';']) { " " } else { ", " });
        }
        said.push_str(text);
    }
    if !said.is_empty() && !said.ends_with('.') {
        said.push('.');
    }
    for row in TABLE {
        let typed = row.command.typed(writing);
        // After a mention: the reader has been told of that.
        let typed = typed.strip_prefix("@Bobbin ").unwrap_or(&typed);
        said = said.replace(&format!("{{{}}}", row.name), typed);
    }
    said
}
