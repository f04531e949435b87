//! Ids of buttons, selects and forms: `v1:<what>:<id>`. Anybody can send any of them, so they only say where to look.

use bobbin_core::base::ids::{AskId, SandboxKey, TurnId};
use bobbin_core::records::ask::Question;
use bobbin_core::records::publication::PullRequestAct;
use bobbin_core::shown::sandboxes::SandboxAction;

use super::bounds::{CUSTOM_ID_UNITS_MAX, SELECT_OPTIONS_MAX};
use crate::press::{FormInput, Press};

/// Maximum length of an ask's id in a form's button (OpenCode's have 30); a longer one is cut.
const FORM_ASK_UNITS_MAX: usize = 50;

/// Subject of a click or a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CustomId {
    /// The button that stops a turn.
    Stop { turn: TurnId },
    /// Stops the running turn, and withdraws the prompts behind it.
    StopAll,
    /// Send this waiting turn's prompt into the running one.
    Now { turn: TurnId },
    /// Run the prompt of this turn again.
    Again { turn: TurnId },
    /// Show what this turn changed in the files.
    Diff { turn: TurnId },
    /// Show what the project's set-up has said in this turn.
    SetUpLog { turn: TurnId },
    /// Show what a pull request would publish.
    Publish,
    /// Publish what the message shows.
    Push {
        /// The commit that it shows.
        commit: String,
    },
    /// Begin a fix of the thread's pull request.
    Fix {
        /// The fix's name.
        name: String,
    },
    /// Post the review that the message shows.
    Review {
        /// Its name.
        name: String,
    },
    /// Do something with the open pull request.
    Act {
        /// What.
        act: PullRequestAct,
        /// The head that the card shows.
        head: String,
    },
    /// Publish what was shown of several repositories.
    PushAll {
        /// Its name.
        name: String,
    },
    /// Open the form for subject and text of a pull request.
    EditText {
        /// The commit that the message shows; `None`: an older build showed it.
        of: Option<String>,
    },
    /// That form, filled in.
    Text {
        /// The same.
        of: Option<String>,
    },
    /// Open the form for a further prompt.
    Reply,
    /// The form for a further prompt, filled in.
    Say,
    /// A button of an ask that decides at once.
    Ask {
        /// The ask's id at OpenCode.
        ask: AskId,
        /// The button's choice.
        press: Press,
    },
    /// Open the form for an ask's answer.
    Form {
        /// The ask's id at OpenCode.
        ask: AskId,
        /// The parts of the form, at most five.
        parts: Vec<FormPart>,
    },
    /// The form for an ask's answer, filled in.
    Answer {
        /// The ask's id at OpenCode.
        ask: AskId,
    },
    /// The form for a key of the server's own, filled in.
    Key {
        /// The vendor or provider of the key.
        provider: String,
    },
    /// Another page of the list of sandboxes.
    Sandboxes {
        /// Page number, from 0.
        page: u32,
    },
    /// An action on a sandbox of that list.
    Sandbox {
        /// The action.
        action: SandboxAction,
        /// The sandbox.
        key: SandboxKey,
    },
    /// A sandbox is to be deleted: the person has been told what is lost.
    Destroy {
        /// The sandbox.
        key: SandboxKey,
    },
    /// The sandbox is kept after all.
    Keep,
    /// An ask's select; the values hold the choice.
    Pick {
        /// The ask's id at OpenCode.
        ask: AskId,
    },
}

impl CustomId {
    /// The text that Discord stores, at most 100 characters: a longer id is cut, and then names nothing.
    #[must_use]
    pub fn text(&self) -> String {
        let text = match self {
            Self::Stop { turn } => format!("v1:stop:{turn}"),
            Self::StopAll => "v1:stopall".to_owned(),
            Self::Now { turn } => format!("v1:now:{turn}"),
            Self::Again { turn } => format!("v1:again:{turn}"),
            Self::Diff { turn } => format!("v1:diff:{turn}"),
            Self::SetUpLog { turn } => format!("v1:set-up:{turn}"),
            Self::Publish => "v1:publish".to_owned(),
            Self::Push { commit } => format!("v1:push:{commit}"),
            Self::Fix { name } => format!("v1:fix:{name}"),
            Self::Review { name } => format!("v1:review:{name}"),
            Self::Act { act, head } => format!("v1:act:{}:{head}", act.word()),
            Self::PushAll { name } => format!("v1:push-all:{name}"),
            Self::EditText { of: None } => "v1:edit".to_owned(),
            Self::EditText { of: Some(commit) } => format!("v1:edit:{commit}"),
            Self::Text { of: None } => "v1:text".to_owned(),
            Self::Text { of: Some(commit) } => format!("v1:text:{commit}"),
            Self::Reply => "v1:reply".to_owned(),
            Self::Say => "v1:say".to_owned(),
            Self::Ask { ask, press } => {
                format!("v1:ask:{}:{}", bobbin_core::text::shorten(ask, 80), press.word())
            }
            Self::Form { ask, parts } => {
                let parts: Vec<String> = parts.iter().map(FormPart::text).collect();
                let ask = bobbin_core::text::shorten(ask, FORM_ASK_UNITS_MAX);
                format!("v1:form:{ask}:{}", parts.join("-"))
            }
            Self::Answer { ask } => format!("v1:answer:{ask}"),
            Self::Key { provider } => format!("v1:key:{provider}"),
            Self::Pick { ask } => format!("v1:pick:{ask}"),
            Self::Sandboxes { page } => format!("v1:boxes:{page}"),
            Self::Sandbox { action, key } => format!("v1:box:{}:{key}", action.word()),
            Self::Destroy { key } => format!("v1:destroy:{key}"),
            Self::Keep => "v1:keep".to_owned(),
        };
        bobbin_core::text::shorten(&text, CUSTOM_ID_UNITS_MAX)
    }

    /// Parses the text; `None` if it is not ours, or from another version.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() > CUSTOM_ID_UNITS_MAX {
            return None;
        }
        let parts: Vec<&str> = text.split(':').collect();
        match parts[..] {
            ["v1", "stop", turn] if plain(turn) => Some(Self::Stop { turn: turn.into() }),
            ["v1", "stopall"] => Some(Self::StopAll),
            ["v1", "now", turn] if plain(turn) => Some(Self::Now { turn: turn.into() }),
            ["v1", "again", turn] if plain(turn) => Some(Self::Again { turn: turn.into() }),
            ["v1", "diff", turn] if plain(turn) => Some(Self::Diff { turn: turn.into() }),
            ["v1", "set-up", turn] if plain(turn) => Some(Self::SetUpLog { turn: turn.into() }),
            ["v1", "publish"] => Some(Self::Publish),
            ["v1", "push", commit] if plain(commit) => {
                Some(Self::Push { commit: commit.to_owned() })
            }
            ["v1", "fix", name] if plain(name) => Some(Self::Fix { name: name.to_owned() }),
            ["v1", "review", name] if plain(name) => Some(Self::Review { name: name.to_owned() }),
            ["v1", "act", act, head] if plain(head) => {
                Some(Self::Act { act: PullRequestAct::named(act)?, head: (*head).to_owned() })
            }
            ["v1", "push-all", name] if plain(name) => {
                Some(Self::PushAll { name: name.to_owned() })
            }
            ["v1", "edit"] => Some(Self::EditText { of: None }),
            ["v1", "edit", commit] if plain(commit) => {
                Some(Self::EditText { of: Some(commit.to_owned()) })
            }
            ["v1", "text"] => Some(Self::Text { of: None }),
            ["v1", "text", commit] if plain(commit) => {
                Some(Self::Text { of: Some(commit.to_owned()) })
            }
            ["v1", "reply"] => Some(Self::Reply),
            ["v1", "say"] => Some(Self::Say),
            ["v1", "ask", ask, press] if plain(ask) => {
                Some(Self::Ask { ask: ask.into(), press: Press::parse(press)? })
            }
            ["v1", "form", ask, parts] if plain(ask) => Some(Self::Form {
                ask: ask.into(),
                parts: parts.split('-').map(FormPart::parse).collect::<Option<_>>()?,
            }),
            ["v1", "answer", ask] if plain(ask) => Some(Self::Answer { ask: ask.into() }),
            ["v1", "key", provider] if plain(provider) => {
                Some(Self::Key { provider: provider.to_owned() })
            }
            ["v1", "pick", ask] if plain(ask) => Some(Self::Pick { ask: ask.into() }),
            ["v1", "boxes", page] => page.parse().ok().map(|page| Self::Sandboxes { page }),
            ["v1", "box", action, ref key @ ..] => Some(Self::Sandbox {
                action: SandboxAction::parse(action)?,
                key: key.join(":").parse().ok()?,
            }),
            ["v1", "destroy", ref key @ ..] => {
                Some(Self::Destroy { key: key.join(":").parse().ok()? })
            }
            ["v1", "keep"] => Some(Self::Keep),
            _ => None,
        }
    }
}

fn plain(id: &str) -> bool {
    !id.is_empty()
        && id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
}

/// One part of a form, as encoded in the button that opens it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FormPart {
    /// The input of the part.
    pub input: FormInput,
    /// More than one option may be chosen.
    pub multiple: bool,
    /// Number of the question's options; for [`FormInput::Lines`], number of questions.
    pub options: usize,
}

impl FormPart {
    /// An input without options.
    #[must_use]
    pub const fn of(input: FormInput) -> Self {
        Self { input, multiple: false, options: 0 }
    }

    pub(super) fn select(question: usize, asked: &Question) -> Self {
        Self {
            input: FormInput::Select(question),
            multiple: asked.multiple,
            options: asked.options.len().min(SELECT_OPTIONS_MAX),
        }
    }

    /// Its text: the input's name, with `m` for a select of several, a dot, and the number of options.
    #[must_use]
    pub fn text(&self) -> String {
        let word = self.input.word();
        let word = match word.strip_prefix('s') {
            Some(question) if self.multiple => format!("m{question}"),
            _ => word,
        };
        format!("{word}.{}", self.options)
    }

    /// Parses a part's text; `None` if this version did not create it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (word, options) = text.split_once('.')?;
        let (input, multiple) = match word.strip_prefix('m') {
            Some(question) => (FormInput::parse(&format!("s{question}"))?, true),
            None => (FormInput::parse(word)?, false),
        };
        let options = options.parse().ok().filter(|n| *n <= SELECT_OPTIONS_MAX)?;
        Some(Self { input, multiple, options })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn custom_id_round_trips() {
        let ask = || "per_01ABCDEF".to_owned();
        let key = |key: &str| key.parse().expect("a key");
        for id in [
            CustomId::Stop { turn: "1182000000000000001".into() },
            CustomId::StopAll,
            CustomId::Now { turn: "1182000000000000001".into() },
            CustomId::Diff { turn: "again-0123456789abcdef01234567".into() },
            CustomId::Publish,
            CustomId::Fix { name: "0123456789abcdef01234567".to_owned() },
            CustomId::Review { name: "0123456789abcdef01234567".to_owned() },
            CustomId::Push { commit: "0123456789abcdef0123456789abcdef01234567".to_owned() },
            CustomId::Act {
                act: PullRequestAct::UpdateBranch,
                head: "0123456789abcdef0123456789abcdef01234567".to_owned(),
            },
            CustomId::EditText { of: None },
            CustomId::EditText { of: Some("0123".to_owned()) },
            CustomId::PushAll { name: "0123".to_owned() },
            CustomId::Text { of: None },
            CustomId::Text { of: Some("0123".to_owned()) },
            CustomId::Reply,
            CustomId::Say,
            CustomId::Ask { ask: ask().into(), press: Press::Once },
            CustomId::Ask { ask: ask().into(), press: Press::Always },
            CustomId::Ask { ask: ask().into(), press: Press::Reject },
            CustomId::Ask { ask: ask().into(), press: Press::Option(24) },
            CustomId::Pick { ask: ask().into() },
            CustomId::Form {
                ask: "que_1ffeb3fb8001fvmhi2sXUPUhJS".into(),
                parts: ["s0.25", "m1.25", "w2.0", "n3.25", "x.9"]
                    .map(|part| FormPart::parse(part).expect("a part"))
                    .to_vec(),
            },
            CustomId::Answer { ask: ask().into() },
            CustomId::Sandboxes { page: 12 },
            CustomId::Sandbox {
                action: SandboxAction::Snapshot,
                key: key("discord:11820000000000000001:11820000000000000002"),
            },
            CustomId::Destroy { key: key("discord:11820000000000000001:sandbox-0123456789abcdef") },
            CustomId::Keep,
        ] {
            assert_eq!(CustomId::parse(&id.text()), Some(id));
        }
    }

    #[test]
    fn foreign_custom_ids_are_ignored() {
        for text in [
            "",
            "hello",
            "v2:reply",
            "v1:stop:",
            "v1:stop:a:b",
            "v1:push:",
            "v1:ask:per_1:maybe",
            "v1:ask:per_1:o-1",
            "v1:stop:a b",
            "v1:form:que_1:",
            "v1:form:que_1:s0",
            "v1:form:que_1:s0.1-q1.2",
            "v1:answer:",
            "v1:boxes:-1",
            "v1:box:sell:discord:1:2",
            "v1:destroy:discord:1",
            "v1:destroy:sandbox:discord:1:2",
            &"v1:pick:x".repeat(30),
        ] {
            assert_eq!(CustomId::parse(text), None, "{text}");
        }
    }

    #[test]
    fn overlong_custom_id_parses_to_nothing() {
        let text = CustomId::Ask { ask: "x".repeat(500).into(), press: Press::Always }.text();
        assert!(text.encode_utf16().count() <= CUSTOM_ID_UNITS_MAX);
        assert_eq!(CustomId::parse(&text), None);
    }
}
