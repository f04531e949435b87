//! Handles clicks, forms and completions.

use bobbin_core::base::ids::{AskId, ThreadKey};
use bobbin_core::records::ask::Choice;
use bobbin_core::records::control::{ControlAction, PublishStep};

use super::request::{AdmittedInteraction, RequestOutcome, refuse};
use crate::discord::answer;
use crate::discord::custom_id::CustomId;
use crate::discord::interaction::{Component, DiscordMessage, InvokedCommand, Modal};
use crate::discord::{completion, editing, form};
use crate::press::FormInput;
use crate::{Inbound, Lookup, pull_request, pull_review, review};

const NOT_WHOLE: &str =
    "This message does not show the whole text, so it cannot be edited here. `/pr` shows it again.";
const UNKNOWN_CONTROL: &str = "This button no longer works. `/help` shows the current commands.";

impl AdmittedInteraction<'_> {
    /// Somebody types into an option: the caller reads the suggestions, in little time.
    pub(super) fn typing(&self, command: &InvokedCommand) -> RequestOutcome {
        let key = ThreadKey::discord(self.guild, self.channel).ok();
        let typed = key.zip(completion::typed(command));
        let lookup = typed.map(|(key, (sought, typed))| Lookup {
            tenant: key.tenant(),
            membership: self.membership.clone(),
            user: self.by.id.clone(),
            sought,
            typed,
        });
        Ok(Inbound { lookup, ..Inbound::only(answer::no_choices(), "discord: completion") })
    }

    pub(super) fn click(&self, component: &Component) -> RequestOutcome {
        match CustomId::parse(&component.custom_id) {
            Some(CustomId::Stop { turn }) => {
                let nothing = DiscordMessage::default();
                let clicked = self.interaction.message.as_ref().unwrap_or(&nothing);
                let card = answer::stopping(
                    &clicked.components,
                    clicked.flags.unwrap_or(0),
                    &component.custom_id,
                );
                Ok(self.control(
                    self.here()?,
                    ControlAction::Stop { turn: Some(turn) },
                    card.unwrap_or_else(answer::deferred_update),
                    "discord: stop",
                ))
            }
            Some(CustomId::StopAll) => self.pressed(ControlAction::StopAll, "discord: stop all"),
            Some(CustomId::Now { turn }) => {
                self.pressed(ControlAction::Now { turn }, "discord: send now")
            }
            Some(CustomId::Again { turn }) => {
                self.pressed(ControlAction::Again { turn }, "discord: run again")
            }
            // Answered with a placeholder to be filled in; repeating that edit is harmless.
            Some(CustomId::Diff { turn }) => Ok(self.control(
                self.here()?,
                ControlAction::Diff { turn: Some(turn) },
                answer::deferred_word(),
                "discord: diff",
            )),
            Some(CustomId::SetUpLog { turn }) => Ok(self.control(
                self.here()?,
                ControlAction::SetUpLog { turn },
                answer::deferred_word(),
                "discord: set-up log",
            )),
            Some(CustomId::Publish) => self.publish(review::asked(None, None)),
            Some(CustomId::Push { commit }) => match review::push(&commit) {
                Some(step) => self.publish(step),
                None => refuse(UNKNOWN_CONTROL, "discord: no commit"),
            },
            Some(CustomId::Fix { name }) => match pull_request::fix(&name) {
                Some(step) => self.publish(step),
                None => refuse(UNKNOWN_CONTROL, "discord: no fix"),
            },
            Some(CustomId::Review { name }) => match pull_review::step(&name) {
                Some(step) => self.publish(step),
                None => refuse(UNKNOWN_CONTROL, "discord: no review"),
            },
            Some(CustomId::Act { act, head }) => match pull_request::step(act, &head) {
                Some(step) => self.publish(step),
                None => refuse(UNKNOWN_CONTROL, "discord: no commit"),
            },
            Some(CustomId::PushAll { name }) => match review::push_all(&name) {
                Some(step) => self.publish(step),
                None => refuse(UNKNOWN_CONTROL, "discord: no name"),
            },
            Some(CustomId::EditText { of }) => {
                let shown = self.interaction.message.as_ref();
                match shown.and_then(|shown| editing::open(&shown.components, of)) {
                    Some(form) => Ok(Inbound::only(form, "discord: form opened")),
                    None => refuse(NOT_WHOLE, "discord: text not whole"),
                }
            }
            Some(CustomId::Reply) => Ok(Inbound::only(
                answer::form(self.app.limits.files.attachments),
                "discord: form opened",
            )),
            Some(CustomId::Ask { ask, press }) => self.settle(ask, press.choice()),
            Some(CustomId::Pick { ask }) => {
                match FormInput::Select(0).filled(&component.values, "") {
                    Some(field) if !component.values.is_empty() => {
                        self.settle(ask, Choice::Form(vec![field]))
                    }
                    _ => refuse(
                        "Nothing was chosen. Please choose again.",
                        "discord: nothing chosen",
                    ),
                }
            }
            Some(CustomId::Sandboxes { page }) => self.listed(page, answer::deferred_update()),
            Some(CustomId::Sandbox { action, key }) => self.sandbox_pressed(action, key),
            Some(CustomId::Destroy { key }) => self.destroy(key),
            Some(CustomId::Keep) => Ok(Inbound::only(
                answer::replaced("Nothing was destroyed."),
                "discord: nothing destroyed",
            )),
            Some(CustomId::Form { ask, parts }) => {
                let nothing = DiscordMessage::default();
                let clicked = self.interaction.message.as_ref().unwrap_or(&nothing);
                Ok(Inbound::only(
                    form::open(&ask, &parts, &clicked.components),
                    "discord: form opened",
                ))
            }
            Some(
                CustomId::Say
                | CustomId::Answer { .. }
                | CustomId::Key { .. }
                | CustomId::Text { .. },
            )
            | None => refuse(UNKNOWN_CONTROL, "discord: unknown control"),
        }
    }

    pub(super) fn form(&self, modal: &Modal) -> RequestOutcome {
        match CustomId::parse(&modal.custom_id) {
            Some(CustomId::Say) => self.reply_form(modal),
            Some(CustomId::Answer { ask }) => match form::filled(modal) {
                Some(fields) => self.settle(ask, Choice::Form(fields)),
                None => refuse(UNKNOWN_CONTROL, "discord: form not understood"),
            },
            Some(CustomId::Text { of }) => match editing::filled(modal, of.as_deref()) {
                Some(Ok(step)) => self.publish(step),
                Some(Err(words)) => refuse(words, "discord: text too long"),
                None => refuse(UNKNOWN_CONTROL, "discord: form not understood"),
            },
            Some(CustomId::Key { provider }) => self.key_form(&provider, modal),
            _ => refuse(UNKNOWN_CONTROL, "discord: unknown form"),
        }
    }

    fn settle(&self, ask: AskId, choice: Choice) -> RequestOutcome {
        self.pressed(ControlAction::Settle { ask, choice }, "discord: settle")
    }

    /// A step to a pull request, which only this person hears of before the thread does.
    fn publish(&self, step: PublishStep) -> RequestOutcome {
        let want = ControlAction::Publish { step };
        Ok(self.control(self.here()?, want, answer::deferred_word(), "discord: publish"))
    }

    /// A request by click, whose message is edited once it is done.
    fn pressed(&self, want: ControlAction, note: &'static str) -> RequestOutcome {
        let answer = answer::deferred_update();
        Ok(self.control(self.here()?, want, answer, note))
    }
}
