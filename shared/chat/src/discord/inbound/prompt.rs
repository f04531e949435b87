//! The prompt of a command, a form or a message, within the product's bounds, for its thread or a new one.

use bobbin_core::records::message::{Attachment, Body, Open, Prompt, Work};
use bobbin_core::tenant::commands::argument::{FILE, NOW, PR, PROMPT};
use bobbin_core::tenant::selection::Selection;
use bobbin_core::tenant::settings::DefaultKind;

use super::request::{AdmittedInteraction, Refused, RequestOutcome, refuse};
use super::sandboxes;
use crate::Inbound;
use crate::commands::{FilledIn, numbered};
use crate::discord::answer::{self, FORM_FILES, FORM_NOW, FORM_PROMPT, FORM_WHEN};
use crate::discord::content::inline;
use crate::discord::interaction::{DiscordAttachment, InvokedCommand, Modal, Resolved};
use crate::discord::quoting;

/// Discord permissions that a task needs, with their names on its settings page.
const IN_A_CHANNEL: &[(u32, &str)] = &[
    (10, "View Channels"),
    (11, "Send Messages"),
    (16, "Read Message History"),
    (35, "Create Public Threads"),
    (38, "Send Messages in Threads"),
];
const IN_A_THREAD: &[(u32, &str)] = &[(10, "View Channels"), (38, "Send Messages in Threads")];
const NOT_HERE: &str =
    "A thread cannot be created in this kind of channel. Use `/sandbox` in a text channel.";
const NOTHING_TO_SEND: &str =
    "This message has no text or files to send. Use this on another message, or type `/say`.";
/// The queue may have accepted it all the same: the worker then sees this refusal, and starts nothing.
const NOT_STARTED: &str =
    "This could not be accepted just now, and nothing was started. Please try again";
const FILE_MISSING: &str = "The file did not arrive. Please attach it again.";

impl AdmittedInteraction<'_> {
    /// The prompt of a command.
    pub(super) fn prompt(&self, command: &InvokedCommand, how: &str) -> RequestOutcome {
        let file = command.text(FILE);
        let prompt = self.checked(
            command.required(PROMPT),
            resolved(file.into_iter(), &command.resolved)?,
            how,
        )?;
        let wants = Selection {
            repo: chosen(command, DefaultKind::Repo)?,
            pr: pull_request(command)?,
            model: chosen(command, DefaultKind::Model)?,
            agent: chosen(command, DefaultKind::Agent)?,
            ..sandboxes::chosen(command)?
        };
        self.start(Prompt { wants, now: command.flag(NOW), ..prompt })
    }

    pub(super) fn send(&self, command: &InvokedCommand) -> RequestOutcome {
        self.start(self.sent(command)?)
    }

    /// The target of the menu command; its author need not be the person who sends it.
    pub(super) fn sent(&self, command: &InvokedCommand) -> Result<Prompt, Refused> {
        let message = command.target_id.as_ref().and_then(|id| command.resolved.messages.get(id));
        let Some((message, sent)) =
            message.and_then(|message| Some((message, quoting::read(message, &self.by.id)?)))
        else {
            return refuse(NOTHING_TO_SEND, "discord: nothing to send");
        };
        let files = quoting::files(message).map(attachment).collect();
        let prompt = self.checked(&sent.text, files, "`/say`")?;
        Ok(Prompt { quotes: sent.quotes, ..prompt })
    }

    /// The prompt of the form that a thread's card opens.
    pub(super) fn reply_form(&self, modal: &Modal) -> RequestOutcome {
        let text =
            modal.field(FORM_PROMPT).and_then(|field| field.value.as_str()).unwrap_or_default();
        let files = modal.field(FORM_FILES).map_or(&[][..], |field| &field.values);
        let prompt = self.checked(
            text,
            resolved(files.iter().map(String::as_str), &modal.resolved)?,
            "the form",
        )?;
        let when = modal.field(FORM_WHEN).and_then(|field| field.value.as_str());
        let now = when == Some(FORM_NOW);
        self.say(Prompt { now, ..prompt })
    }

    fn checked(
        &self,
        text: &str,
        attachments: Vec<Attachment>,
        how: &str,
    ) -> Result<Prompt, Refused> {
        let limits = &self.app.limits;
        if text.trim().is_empty() {
            return refuse(
                format!("Please say what to do: fill in the prompt of {how}."),
                "discord: empty prompt",
            );
        }
        let length = text.chars().count();
        if length > limits.chat.prompt_chars {
            let words = format!(
                "This prompt has {length} characters; the limit is {}. Put the long part into a file.",
                limits.chat.prompt_chars
            );
            return refuse(words, "discord: prompt too long");
        }
        if attachments.len() > limits.files.attachments {
            return refuse(
                format!("One prompt can have at most {} files.", limits.files.attachments),
                "discord: too many files",
            );
        }
        if let Some(large) =
            attachments.iter().find(|file| file.size > limits.files.attachment_bytes)
        {
            let name = inline(&large.name, 100);
            return refuse(
                format!(
                    "The file {name} is too large: the limit is {} MiB.",
                    limits.files.attachment_bytes / (1024 * 1024)
                ),
                "discord: file too large",
            );
        }
        Ok(Prompt {
            text: text.to_owned(),
            by: self.by.clone(),
            attachments,
            membership: self.membership.clone(),
            ..Prompt::default()
        })
    }

    /// A prompt in a thread goes to that thread; in a channel it opens one.
    fn start(&self, prompt: Prompt) -> RequestOutcome {
        if self.in_thread() {
            self.permitted(IN_A_THREAD)?;
            return self.say(prompt);
        }
        if !self.interaction.channel.as_ref().is_none_or(|channel| matches!(channel.kind, 0 | 5)) {
            return refuse(NOT_HERE, "discord: no threads here");
        }
        self.permitted(IN_A_CHANNEL)?;
        self.here()?;
        let open = Open {
            id: self.interaction.id.clone().into(),
            guild: self.guild.to_owned(),
            channel: self.channel.to_owned(),
            accepted_at_ms: self.now_ms,
            prompt,
            reply: self.reply(),
        };
        Ok(Inbound {
            enqueue: Some(Body::Open(open)),
            on_queue_failure: self.not_queued(NOT_STARTED),
            ..Inbound::only(answer::deferred(), "discord: open")
        })
    }

    /// A prompt for the thread of the interaction.
    fn say(&self, prompt: Prompt) -> RequestOutcome {
        let quote = answer::quote(&prompt);
        Ok(self.message(self.here()?, Work::Prompt(prompt), quote, "discord: prompt"))
    }
}

/// The pull request to work from.
fn pull_request(command: &InvokedCommand) -> Result<Option<u64>, Refused> {
    match command.text(PR).map(str::trim).filter(|typed| !typed.is_empty()) {
        None => Ok(None),
        Some(typed) => match numbered(typed) {
            Ok(number) => Ok(Some(number)),
            Err(unusable) => refuse(unusable.to_string(), "discord: unusable choice"),
        },
    }
}

/// A choice for a task, in usable form.
fn chosen(command: &InvokedCommand, kind: DefaultKind) -> Result<Option<String>, Refused> {
    let typed = command.text(kind.word()).unwrap_or_default();
    if typed.trim().is_empty() {
        return Ok(None);
    }
    match kind.usable(typed) {
        Ok(value) => Ok(Some(value)),
        Err(unusable) => refuse(unusable.to_string(), "discord: unusable choice"),
    }
}

fn resolved<'i>(
    ids: impl Iterator<Item = &'i str>,
    resolved: &Resolved,
) -> Result<Vec<Attachment>, Refused> {
    ids.map(|id| match resolved.attachments.get(id) {
        Some(file) => Ok(attachment(file)),
        None => refuse(FILE_MISSING, "discord: file missing"),
    })
    .collect()
}

fn attachment(file: &DiscordAttachment) -> Attachment {
    Attachment {
        name: file.filename.clone(),
        url: file.url.clone(),
        size: file.size,
        media_type: file.content_type.clone(),
    }
}
