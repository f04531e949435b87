//! Turns a command's arguments into an intent, for both chats.
//!
//! A command that concerns only the place where it was typed needs no line here.

use bobbin_core::base::credentials::redact;
use bobbin_core::base::ids::{BadSandboxName, SandboxName};
use bobbin_core::base::person::{Membership, Person};
use bobbin_core::records::control::{ControlAction, WhichSandbox};
use bobbin_core::records::message::Work;
use bobbin_core::tenant::commands::argument::{
    ALL, BODY, CONNECT, DISCONNECT, KEEP_FILES, NAME, SUBJECT,
};
use bobbin_core::tenant::commands::{Argument, ArgumentKind, Command, Reach, TABLE};
use bobbin_core::tenant::repositories::usable_number;
use bobbin_core::tenant::settings::DefaultKind;
use bobbin_core::tenant::sign_in::ForgeRequest;
use bobbin_core::text::{one_line, shorten};

use crate::{SuggestionKind, review};

/// Maximum length of a shown value that is not a number.
const NUMBER_UNITS_MAX: usize = 40;

/// The arguments of a command.
pub(crate) trait FilledIn {
    /// The text of an argument. Ids of files, channels, roles and people are texts.
    fn text(&self, name: &str) -> Option<&str>;

    /// The text of a required argument.
    fn required(&self, name: &str) -> &str {
        self.text(name).unwrap_or_default()
    }

    /// Whether a yes-or-no argument was set to yes.
    fn flag(&self, name: &str) -> bool;

    /// The subcommand.
    fn subcommand(&self) -> Option<&str>;
}

/// What is not the number of a pull request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not the number of a pull request: write it as in its address, for example 123")]
pub(crate) struct NoNumber(String);

/// The number of a pull request, as typed.
///
/// # Errors
/// [`NoNumber`], in words for the person.
pub(crate) fn numbered(typed: &str) -> Result<u64, NoNumber> {
    let shown = || shorten(&redact(&one_line(typed)), NUMBER_UNITS_MAX);
    usable_number(typed).ok_or_else(|| NoNumber(format!("{:?}", shown())))
}

/// The person who typed the command, and where.
pub(crate) struct CommandSender<'a> {
    pub(crate) by: &'a Person,
    pub(crate) membership: &'a Membership,
    pub(crate) in_thread: bool,
}

/// Intent of a command.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one lives at a time, and only until it is queued")]
pub(crate) enum Intent {
    /// A control message, ahead of what runs in the thread.
    Control(ControlAction),
    /// Work in the thread's order.
    Work(Work),
}

impl Intent {
    /// The intent of a command; each chat reads tasks, settings, keys and help itself.
    ///
    /// # Errors
    /// An invalid sandbox name, in words for the person.
    pub(crate) fn of(
        command: Command,
        filled_in: &impl FilledIn,
        typist: &CommandSender<'_>,
    ) -> Result<Self, BadSandboxName> {
        let by = || typist.by.clone();
        let membership = || typist.membership.clone();
        Ok(Self::Control(match command {
            Command::Diff => ControlAction::Diff { turn: None },
            Command::Pr => {
                let step = review::asked(filled_in.text(SUBJECT), filled_in.text(BODY));
                ControlAction::Publish { step }
            }
            Command::Stop if filled_in.flag(ALL) => ControlAction::StopAll,
            Command::Stop => ControlAction::Stop { turn: None },
            Command::Reset => {
                let keeps_files = filled_in.flag(KEEP_FILES);
                let (by, membership) = (by(), membership());
                return Ok(Self::Work(Work::Reset { by, membership, keeps_files }));
            }
            Command::Name => {
                let name = filled_in.required(NAME).trim().parse()?;
                return Ok(Self::Work(Work::Name { name, by: by(), membership: membership() }));
            }
            Command::List => ControlAction::Sandboxes { page: 0, in_thread: typist.in_thread },
            Command::Connect => {
                ControlAction::Connect { to: sandbox(filled_in, NAME)?.map(WhichSandbox::Named) }
            }
            Command::Destroy => {
                let sandbox =
                    sandbox(filled_in, NAME)?.map_or(WhichSandbox::Here, WhichSandbox::Named);
                ControlAction::AskDestroy { sandbox }
            }
            Command::GitHub => ControlAction::Forge { forge: account(filled_in) },
            command => ControlAction::Command { command },
        }))
    }

    /// Whether the command concerns the thread in which it was typed.
    pub(crate) fn needs_thread(&self, command: Command) -> bool {
        let is_here = matches!(
            self,
            Self::Control(ControlAction::AskDestroy { sandbox: WhichSandbox::Here })
        );
        is_here || command.row().reach == Reach::Thread
    }
}

/// What is wanted of the person's own account.
fn account(filled_in: &impl FilledIn) -> ForgeRequest {
    match filled_in.subcommand() {
        Some(CONNECT) => ForgeRequest::Connect,
        Some(DISCONNECT) => ForgeRequest::Disconnect,
        _ => ForgeRequest::Account,
    }
}

/// The sandbox named by an argument.
pub(crate) fn sandbox(
    filled_in: &impl FilledIn,
    name: &str,
) -> Result<Option<SandboxName>, BadSandboxName> {
    match filled_in.text(name).unwrap_or_default().trim() {
        "" => Ok(None),
        typed => typed.parse().map(Some),
    }
}

/// Suggestions for the argument with this name; `of` returns the kind of a default.
pub(crate) fn sought(name: &str, of: impl Fn() -> Option<DefaultKind>) -> Option<SuggestionKind> {
    let of_command = |argument: &'static Argument| match argument.takes {
        ArgumentKind::Subcommand(arguments) => arguments,
        _ => std::slice::from_ref(argument),
    };
    let arguments = TABLE.iter().flat_map(|row| row.arguments).flat_map(of_command);
    arguments.filter(|argument| argument.name == name).find_map(|argument| match argument.takes {
        ArgumentKind::Sandbox => Some(SuggestionKind::Sandbox),
        ArgumentKind::Kind(kind) => Some(SuggestionKind::Choice(kind)),
        ArgumentKind::Default => of().map(SuggestionKind::Choice),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use bobbin_core::tenant::commands::Spoken;

    use super::*;

    #[test]
    fn the_page_for_people_names_every_command() {
        let page = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/CHATS.md");
        let page = std::fs::read_to_string(page).expect("the page is there");
        let has =
            |typed: &str| ["`", " "].iter().any(|end| page.contains(&format!("`{typed}{end}")));
        for row in TABLE {
            assert!(has(&format!("/{}", row.name)), "/{}", row.name);
            match (row.spoken, row.reach) {
                (Spoken::Words(words), Reach::Tenant) => {
                    assert!(has(&format!("/bobbin {words}")), "/bobbin {words}");
                }
                (Spoken::Words(words), _) => assert!(has(words), "{words}"),
                (Spoken::Button(label), _) => assert!(page.contains(&format!("**{label}**"))),
                (Spoken::Task, _) => {}
            }
        }
    }
}
