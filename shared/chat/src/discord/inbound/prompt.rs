//! The prompt of a command, a form or a message, within the product's bounds.

use bobbin_core::records::message::{Attachment, Prompt};
use bobbin_core::tenant::commands::argument::{FILE, PROMPT};
use bobbin_core::tenant::selection::Selection;
use bobbin_core::tenant::settings::DefaultKind;

use super::request::{AdmittedInteraction, Refused, refuse};
use super::sandboxes;
use crate::commands::FilledIn;
use crate::discord::content::inline;
use crate::discord::interaction::{DiscordAttachment, InvokedCommand, Resolved};
use crate::discord::quoting;

const NOTHING_TO_SEND: &str =
    "This message has no text or files to send. Use this on another message, or type `/say`.";
const FILE_MISSING: &str = "The file did not arrive. Please attach it again.";

impl AdmittedInteraction<'_> {
    pub(super) fn prompt_of(&self, command: &InvokedCommand, how: &str) -> Result<Prompt, Refused> {
        let file = command.text(FILE);
        let prompt = self.checked(
            command.required(PROMPT),
            resolved(file.into_iter(), &command.resolved)?,
            how,
        )?;
        let wants = Selection {
            repo: chosen(command, DefaultKind::Repo)?,
            model: chosen(command, DefaultKind::Model)?,
            agent: chosen(command, DefaultKind::Agent)?,
            ..sandboxes::chosen(command)?
        };
        Ok(Prompt { wants, ..prompt })
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

    pub(super) fn checked(
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

pub(super) fn resolved<'i>(
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
