//! The fields of a row, and how people write a command.
#![allow(missing_docs, reason = "the names say it")]

use super::{Command, TABLE};
use crate::base::ids::{Tenant, ThreadKey};
use crate::tenant::settings::DefaultKind;

/// A command, for both chats.
#[derive(Debug)]
pub struct CommandRow {
    pub command: Command,
    /// One word, typed after a slash.
    pub name: &'static str,
    /// How it is written on platforms where commands are words after the app's name.
    pub spoken: Spoken,
    pub reach: Reach,
    pub who: WhoMay,
    /// What it does, for the list that a chat shows during typing.
    pub about: &'static str,
    /// Required arguments come first.
    pub arguments: &'static [Argument],
    /// The part of the help that covers it.
    pub topic: Topic,
    pub help: HelpText,
}

/// How a command is written on platforms where commands are words after the app's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spoken {
    /// As exactly these words.
    Words(&'static str),
    /// Without a name: any other text after the app's name is a task.
    Task,
    /// Not as text: a button with this label does it.
    Button(&'static str),
}

/// What a command applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The thread in which it is typed.
    Thread,
    /// A thread, or no thread.
    Anywhere,
    /// The whole server or workspace.
    Tenant,
}

/// Who may use a command, among the people who may use Bobbin there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhoMay {
    Everyone,
    /// People who may manage the server or workspace.
    Managers,
}

/// An argument of a command.
#[derive(Debug, Clone, Copy)]
pub struct Argument {
    pub name: &'static str,
    pub about: &'static str,
    pub required: bool,
    pub takes: ArgumentKind,
}

/// Kinds of values.
#[derive(Debug, Clone, Copy)]
pub enum ArgumentKind {
    /// The text of a task.
    Task,
    File,
    /// Yes or no.
    Flag,
    /// A new name for a sandbox.
    NewName,
    /// A named sandbox; existing ones are suggested.
    Sandbox,
    /// A value of this kind; known ones are suggested.
    Kind(DefaultKind),
    /// As [`Self::Kind`], with the kind from the argument `what`.
    Default,
    Text,
    /// One of these, each with its label and its value.
    OneOf(&'static [(&'static str, &'static str)]),
    /// A provider for which tenants can have their own key.
    KeyOwner,
    Channel,
    Role,
    Person,
    /// A subcommand, with arguments of its own.
    Subcommand(&'static [Argument]),
}

/// Parts of the help, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    /// Starting a task.
    Begin,
    /// Continuing a task.
    GoOn,
    /// Seeing its state and results.
    Look,
    /// Sandboxes that threads share.
    Share,
    /// Ending things.
    End,
    /// Actions for managers of the place.
    Manage,
    Help,
}

impl Topic {
    /// All topics.
    pub const ALL: [Self; 7] =
        [Self::Begin, Self::GoOn, Self::Look, Self::Share, Self::End, Self::Manage, Self::Help];
}

/// The help text of a command, as a sentence or part of one; empty if the help of another command covers it. `{name}`
/// stands for the command with that name, as typed there.
#[derive(Debug, Clone, Copy)]
pub struct HelpText {
    pub slash: &'static str,
    pub mention: &'static str,
}

impl HelpText {
    /// The same text for both ways of writing.
    pub(super) const fn of_both(text: &'static str) -> Self {
        Self { slash: text, mention: text }
    }
}

/// How people in a chat write commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writing {
    /// One word after a slash, everywhere.
    Slash,
    /// Words after a mention of the app in a thread, or after the app's own slash command.
    Mention,
}

pub(super) const fn required(
    name: &'static str,
    about: &'static str,
    takes: ArgumentKind,
) -> Argument {
    Argument { name, about, required: true, takes }
}

pub(super) const fn optional(
    name: &'static str,
    about: &'static str,
    takes: ArgumentKind,
) -> Argument {
    Argument { name, about, required: false, takes }
}

pub(super) const fn flag(name: &'static str, about: &'static str) -> Argument {
    optional(name, about, ArgumentKind::Flag)
}

pub(super) const fn subcommand(
    name: &'static str,
    about: &'static str,
    arguments: &'static [Argument],
) -> Argument {
    optional(name, about, ArgumentKind::Subcommand(arguments))
}

impl Command {
    /// The command as typed in a place where it is understood.
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

/// The help for these topics, in sentences; empty if there is none.
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
        // After a mention, which the help has already explained.
        let typed = typed.strip_prefix("@Bobbin ").unwrap_or(&typed);
        said = said.replace(&format!("{{{}}}", row.name), typed);
    }
    said
}
