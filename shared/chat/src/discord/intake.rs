//! From a signed request to work on the queue and a first answer. Pure; the caller enqueues before it answers.

use bobbin_core::ask::Choice;
use bobbin_core::decide::words;
use bobbin_core::ids::{Ms, ThreadKey};
use bobbin_core::message::{Attachment, Body, Control, Message, Open, Prompt, Reply, Want, Work};
use bobbin_core::person::{Person, Standing};
use bobbin_core::selection::Selection;
use bobbin_core::settings::Kind;
use serde::Deserialize;
use serde_json::Value;

use super::answer::{self, FORM_FILES, FORM_NOW, FORM_PROMPT, FORM_WHEN};
use super::bounds::{BODY_BYTES_MAX, ID_CHARS_MAX};
use super::custom_id::CustomId;
use super::form;
use super::interaction::{
    Attachment as Wired, Command, Component, Interaction, Message as WiredMessage, Modal, Resolved,
};
use super::{App, commands, completion, configure, quoting, verify};
use crate::press::Input;
use crate::{HttpAnswer, Intake, Lookup};

/// Discord's permissions that a task needs, with the names that its settings page shows.
const IN_A_CHANNEL: &[(u32, &str)] = &[
    (10, "View Channels"),
    (11, "Send Messages"),
    (16, "Read Message History"),
    (35, "Create Public Threads"),
    (38, "Send Messages in Threads"),
];
const IN_A_THREAD: &[(u32, &str)] = &[(10, "View Channels"), (38, "Send Messages in Threads")];
const ADMINISTRATOR: u32 = 3;
const MANAGE_GUILD: u32 = 5;

const IN_SERVERS_ONLY: &str = "This works in servers only, not in direct messages.";
const NOT_A_MEMBER: &str = "The app is not a member of this server. Someone who manages the server can add it, then this works.";
const PEOPLE_ONLY: &str = "Only people can use this.";
const NOT_HERE: &str =
    "A thread cannot be made in this kind of channel. Use `/sandbox` in a text channel.";
const IN_THREADS_ONLY: &str =
    "Use this in a thread that has a sandbox. `/sandbox` in a channel starts one.";
const UNKNOWN_COMMAND: &str = "This command is not known any more. `/help` shows what there is.";
const UNKNOWN_CONTROL: &str = "This button is not known any more. `/help` shows what there is.";
const NOTHING_TO_SEND: &str =
    "This message has neither text nor files to send. Use it on another one, or type `/say`.";
const FILE_MISSING: &str = "The file did not arrive. Please attach it again.";

/// What becomes of a request at the interactions endpoint: headers as they came, the body's raw bytes, our clock.
#[must_use]
pub fn intake(
    raw: &[u8],
    signature: Option<&str>,
    timestamp: Option<&str>,
    app: &App,
    now_ms: Ms,
) -> Intake {
    let signed = signature
        .zip(timestamp)
        .is_some_and(|(signature, timestamp)| {
            verify(&app.key, timestamp, signature, raw, now_ms / 1000)
        });
    if !signed {
        return Intake::only(
            HttpAnswer::text(401, "invalid request signature"),
            "discord: bad signature",
        );
    }
    if raw.len() > BODY_BYTES_MAX {
        return Intake::only(
            HttpAnswer::text(
                400,
                &format!("the body is larger than {BODY_BYTES_MAX} bytes"),
            ),
            "discord: body too large",
        );
    }
    if let Ok(interaction) = serde_json::from_slice::<Interaction>(raw)
        && (2..=5).contains(&interaction.kind)
        && is_usable(&interaction.id)
    {
        return answered(&interaction, app, now_ms);
    }
    // Nothing but the type is read of a ping: its other fields are no promise.
    let (words, note) = match serde_json::from_slice::<Envelope>(raw).map(|known| known.kind) {
        Ok(1) => return Intake::only(answer::pong(), "discord: ping"),
        Ok(2..=5) => (
            "the interaction cannot be read: a field has an unexpected form, or the id is missing or none",
            "discord: malformed",
        ),
        Ok(_) => (
            "unknown interaction type; known are 1 to 5",
            "discord: unknown type",
        ),
        Err(_) => (
            "the body is not an interaction: it must be a JSON object with a numeric type",
            "discord: malformed",
        ),
    };
    Intake::only(HttpAnswer::text(400, words), note)
}

/// Whether it can name a turn and a message on the queue, whose ids are bounded. Discord's snowflakes are at most
/// twenty digits.
fn is_usable(id: &str) -> bool {
    (1..=ID_CHARS_MAX).contains(&id.len())
        && id
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
}

/// Whether permissions, a decimal number, let somebody manage the server.
fn manages(permissions: &str) -> bool {
    permissions
        .parse::<u128>()
        .is_ok_and(|held| held & (1 << ADMINISTRATOR | 1 << MANAGE_GUILD) != 0)
}

#[derive(Deserialize)]
struct Envelope {
    #[serde(rename = "type")]
    kind: u64,
}

/// Why nothing is started, in words for the person.
struct Refused(String, &'static str);

type Outcome = Result<Intake, Refused>;

fn refuse<T>(words: impl Into<String>, note: &'static str) -> Result<T, Refused> {
    Err(Refused(words.into(), note))
}

fn answered(interaction: &Interaction, app: &App, now_ms: Ms) -> Intake {
    let outcome =
        Request::admitted(interaction, app, now_ms).and_then(|request| match interaction.kind {
            2 => request.command(&data(interaction)?),
            3 => request.click(&data(interaction)?),
            4 => request.typing(&data(interaction)?),
            _ => request.form(&data(interaction)?),
        });
    if interaction.kind == 4 {
        // No words can be said while somebody types: who is refused sees no suggestions.
        return outcome.unwrap_or_else(|Refused(_, note)| Intake::only(answer::no_choices(), note));
    }
    outcome.unwrap_or_else(|Refused(words, note)| Intake::only(answer::word(&words), note))
}

fn data<'a, T: Deserialize<'a>>(interaction: &'a Interaction) -> Result<T, Refused> {
    let data = interaction.data.as_ref().unwrap_or(&Value::Null);
    T::deserialize(data).or_else(|_| refuse(UNKNOWN_COMMAND, "discord: data not understood"))
}

/// An interaction of somebody who may use Bobbin here.
struct Request<'a> {
    interaction: &'a Interaction,
    app: &'a App,
    now_ms: Ms,
    guild: &'a str,
    channel: &'a str,
    by: Person,
    standing: Standing,
}

impl<'a> Request<'a> {
    fn admitted(interaction: &'a Interaction, app: &'a App, now_ms: Ms) -> Result<Self, Refused> {
        let elsewhere = interaction.context.is_some_and(|context| context != 0);
        let (Some(guild), Some(channel), Some(member), false) = (
            &interaction.guild_id,
            &interaction.channel_id,
            &interaction.member,
            elsewhere,
        ) else {
            return refuse(IN_SERVERS_ONLY, "discord: not in a guild");
        };
        let owners = &interaction.authorizing_integration_owners;
        if !owners.is_empty() && owners.get("0") != Some(guild) {
            return refuse(NOT_A_MEMBER, "discord: user install");
        }
        let Some(user) = member
            .user
            .as_ref()
            .filter(|user| !user.bot && !user.id.is_empty())
        else {
            return refuse(PEOPLE_ONLY, "discord: a bot");
        };
        let parent = interaction
            .channel
            .as_ref()
            .and_then(|channel| channel.parent_id.as_deref());
        // A text channel has a parent too: its category. Only a thread is admitted by its parent.
        let parent = parent.filter(|_| {
            interaction
                .channel
                .as_ref()
                .is_some_and(super::interaction::Channel::is_thread)
        });
        let channels: Vec<&str> = [channel.as_str()].into_iter().chain(parent).collect();
        let ids: Vec<&str> = [user.id.as_str()]
            .into_iter()
            .chain(member.roles.iter().map(String::as_str))
            .collect();
        if let Err(refusal) = app.policy.discord(guild, &channels, &ids) {
            return refuse(refusal.to_string(), "discord: refused by policy");
        }
        let name = [member.nick.as_ref(), user.global_name.as_ref()]
            .into_iter()
            .flatten()
            .find(|name| !name.trim().is_empty());
        let by = Person {
            id: user.id.clone(),
            name: name.unwrap_or(&user.username).clone(),
        };
        Ok(Self {
            interaction,
            app,
            now_ms,
            guild,
            channel,
            by,
            standing: Standing {
                channel: parent.unwrap_or(channel).to_owned(),
                roles: member.roles.clone(),
                manages: member.permissions.as_deref().is_some_and(manages),
                outside: None,
            },
        })
    }

    fn command(&self, command: &Command) -> Outcome {
        match (command.kind, command.name.as_str()) {
            (1 | 0, commands::SANDBOX) => self.start(self.prompt_of(command, "`/sandbox`")?),
            (1 | 0, commands::SAY) => {
                self.thread()?;
                let prompt = self.prompt_of(command, "`/say`")?;
                let now = command.flag(commands::NOW);
                self.start(Prompt { now, ..prompt })
            }
            (1 | 0, commands::DIFF) => Ok(self.control(
                self.thread()?,
                Want::Diff { turn: None },
                answer::deferred_word(),
                "discord: diff",
            )),
            (1 | 0, commands::CONFIG) => match configure::change(command) {
                Ok(change) => Ok(self.control(
                    self.here()?,
                    Want::Configure { change },
                    answer::deferred_word(),
                    "discord: settings",
                )),
                Err(words) => refuse(words, "discord: settings not understood"),
            },
            (1 | 0, commands::STATUS) => Ok(self.control(
                self.thread()?,
                Want::Status,
                answer::deferred_word(),
                "discord: status",
            )),
            (1 | 0, commands::STOP) => {
                let want = if command.flag(commands::ALL) {
                    Want::StopAll
                } else {
                    Want::Stop { turn: None }
                };
                let answer = answer::deferred_word();
                Ok(self.control(self.thread()?, want, answer, "discord: stop"))
            }
            (1 | 0, commands::RESET) => {
                let work = Work::Reset {
                    by: self.by.clone(),
                    standing: self.standing.clone(),
                };
                Ok(self.message(
                    self.thread()?,
                    work,
                    answer::resetting(&self.by),
                    "discord: reset",
                ))
            }
            (1 | 0, commands::HELP) => Ok(Intake::only(
                answer::word(commands::HELP_TEXT),
                "discord: help",
            )),
            (3, commands::SEND) => self.start(self.sent(command)?),
            _ => refuse(UNKNOWN_COMMAND, "discord: unknown command"),
        }
    }

    /// Somebody types into an option: what is read for them is for the caller, who has little time for it.
    fn typing(&self, command: &Command) -> Outcome {
        let lookup = completion::typed(command).map(|(kind, typed)| Lookup {
            tenant: ThreadKey::discord(self.guild, self.channel)
                .map(|key| key.tenant())
                .unwrap_or_default(),
            standing: self.standing.clone(),
            user: self.by.id.clone(),
            kind,
            typed,
        });
        Ok(Intake {
            lookup: lookup.filter(|lookup| !lookup.tenant.is_empty()),
            ..Intake::only(answer::no_choices(), "discord: completion")
        })
    }

    fn click(&self, component: &Component) -> Outcome {
        match CustomId::parse(&component.custom_id) {
            Some(CustomId::Stop { turn }) => {
                let nothing = WiredMessage::default();
                let clicked = self.interaction.message.as_ref().unwrap_or(&nothing);
                let card = answer::stopping(
                    &clicked.components,
                    clicked.flags.unwrap_or(0),
                    &component.custom_id,
                );
                Ok(self.control(
                    self.here()?,
                    Want::Stop { turn: Some(turn) },
                    card.unwrap_or_else(answer::deferred_update),
                    "discord: stop",
                ))
            }
            Some(CustomId::StopAll) => Ok(self.control(
                self.here()?,
                Want::StopAll,
                answer::deferred_update(),
                "discord: stop all",
            )),
            Some(CustomId::Now { turn }) => Ok(self.control(
                self.here()?,
                Want::Now { turn },
                answer::deferred_update(),
                "discord: send now",
            )),
            Some(CustomId::Again { turn }) => Ok(self.control(
                self.here()?,
                Want::Again { turn },
                answer::deferred_update(),
                "discord: run again",
            )),
            // Answered with something to fill in, which an edit does however often it is repeated.
            Some(CustomId::Diff { turn }) => Ok(self.control(
                self.here()?,
                Want::Diff { turn: Some(turn) },
                answer::deferred_word(),
                "discord: diff",
            )),
            Some(CustomId::Reply) => Ok(Intake::only(
                answer::form(self.app.limits.attachments),
                "discord: form opened",
            )),
            Some(CustomId::Ask { ask, press }) => self.settle(ask, press.choice()),
            Some(CustomId::Pick { ask }) => match Input::Select(0).filled(&component.values, "") {
                Some(field) if !component.values.is_empty() => {
                    self.settle(ask, Choice::Form(vec![field]))
                }
                _ => refuse(
                    "Nothing was chosen. Please choose again.",
                    "discord: nothing chosen",
                ),
            },
            Some(CustomId::Form { ask, parts }) => {
                let nothing = WiredMessage::default();
                let clicked = self.interaction.message.as_ref().unwrap_or(&nothing);
                Ok(Intake::only(
                    form::open(&ask, &parts, &clicked.components),
                    "discord: form opened",
                ))
            }
            Some(CustomId::Say | CustomId::Answer { .. }) | None => {
                refuse(UNKNOWN_CONTROL, "discord: unknown control")
            }
        }
    }

    fn form(&self, modal: &Modal) -> Outcome {
        match CustomId::parse(&modal.custom_id) {
            Some(CustomId::Say) => self.reply_form(modal),
            Some(CustomId::Answer { ask }) => match form::filled(modal) {
                Some(fields) => self.settle(ask, Choice::Form(fields)),
                None => refuse(UNKNOWN_CONTROL, "discord: form not understood"),
            },
            _ => refuse(UNKNOWN_CONTROL, "discord: unknown form"),
        }
    }

    fn reply_form(&self, modal: &Modal) -> Outcome {
        let text = modal
            .field(FORM_PROMPT)
            .and_then(|field| field.value.as_str())
            .unwrap_or_default();
        let files = modal
            .field(FORM_FILES)
            .map_or(&[][..], |field| &field.values);
        let prompt = self.checked(
            text,
            resolved(files.iter().map(String::as_str), &modal.resolved)?,
            "the form",
        )?;
        let when = modal
            .field(FORM_WHEN)
            .and_then(|field| field.value.as_str());
        let now = when == Some(FORM_NOW);
        Ok(self.prompted(self.here()?, Prompt { now, ..prompt }))
    }

    fn settle(&self, ask: String, choice: Choice) -> Outcome {
        Ok(self.control(
            self.here()?,
            Want::Settle { ask, choice },
            answer::deferred_update(),
            "discord: settle",
        ))
    }

    /// A prompt in a thread goes there; in a channel it opens one.
    fn start(&self, prompt: Prompt) -> Outcome {
        if self.in_thread() {
            self.permitted(IN_A_THREAD)?;
            return Ok(self.prompted(self.here()?, prompt));
        }
        if !self
            .interaction
            .channel
            .as_ref()
            .is_none_or(|channel| matches!(channel.kind, 0 | 5))
        {
            return refuse(NOT_HERE, "discord: no threads here");
        }
        self.permitted(IN_A_CHANNEL)?;
        self.here()?;
        let open = Open {
            id: self.interaction.id.clone(),
            guild: self.guild.to_owned(),
            channel: self.channel.to_owned(),
            accepted_at_ms: self.now_ms,
            prompt,
            reply: self.reply(),
        };
        Ok(self.accepted(Body::Open(open), answer::deferred(), "discord: open"))
    }

    fn prompt_of(&self, command: &Command, how: &str) -> Result<Prompt, Refused> {
        let file = command.text(commands::FILE);
        let prompt = self.checked(
            command.text_or_first(commands::PROMPT).unwrap_or_default(),
            resolved(file.into_iter(), &command.resolved)?,
            how,
        )?;
        let wants = Selection {
            repo: chosen(command, Kind::Repo)?,
            model: chosen(command, Kind::Model)?,
            agent: chosen(command, Kind::Agent)?,
        };
        Ok(Prompt { wants, ..prompt })
    }

    /// The message that the menu command was used on; its author need not be the person who sends it.
    fn sent(&self, command: &Command) -> Result<Prompt, Refused> {
        let message = command
            .target_id
            .as_ref()
            .and_then(|id| command.resolved.messages.get(id));
        let Some((message, sent)) =
            message.and_then(|message| Some((message, quoting::read(message, &self.by.id)?)))
        else {
            return refuse(NOTHING_TO_SEND, "discord: nothing to send");
        };
        let files = quoting::files(message).map(attachment).collect();
        let prompt = self.checked(&sent.text, files, "`/say`")?;
        Ok(Prompt {
            quotes: sent.quotes,
            ..prompt
        })
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
        if length > limits.prompt_chars {
            let words = format!(
                "This prompt has {length} characters, and {} are taken. Put the long part into a file.",
                limits.prompt_chars
            );
            return refuse(words, "discord: prompt too long");
        }
        if attachments.len() > limits.attachments {
            return refuse(
                format!(
                    "At most {} files are taken with one prompt.",
                    limits.attachments
                ),
                "discord: too many files",
            );
        }
        if let Some(large) = attachments
            .iter()
            .find(|file| file.size > limits.attachment_bytes)
        {
            let name = super::content::inline(&large.name, 100);
            return refuse(
                format!(
                    "The file {name} is too large: {} MiB are taken.",
                    limits.attachment_bytes / (1024 * 1024)
                ),
                "discord: file too large",
            );
        }
        Ok(Prompt {
            text: text.to_owned(),
            by: self.by.clone(),
            attachments,
            standing: self.standing.clone(),
            ..Prompt::default()
        })
    }

    fn in_thread(&self) -> bool {
        self.interaction
            .channel
            .as_ref()
            .is_some_and(super::interaction::Channel::is_thread)
    }

    /// The thread in which it was said.
    fn thread(&self) -> Result<ThreadKey, Refused> {
        if self.in_thread() {
            self.here()
        } else {
            refuse(IN_THREADS_ONLY, "discord: not in a thread")
        }
    }

    /// Where it was said, as a key. What we posted stands in threads only, so a click needs no more than this.
    fn here(&self) -> Result<ThreadKey, Refused> {
        ThreadKey::discord(self.guild, self.channel)
            .or_else(|_| refuse(IN_THREADS_ONLY, "discord: ids not understood"))
    }

    fn permitted(&self, needed: &[(u32, &str)]) -> Result<(), Refused> {
        let Some(ours) = self
            .interaction
            .app_permissions
            .as_ref()
            .and_then(|text| text.parse::<u128>().ok())
        else {
            return Ok(());
        };
        let missing: Vec<&str> = needed
            .iter()
            .filter(|(bit, _)| ours & (1 << bit) == 0)
            .map(|(_, name)| *name)
            .collect();
        if missing.is_empty() || ours & (1 << ADMINISTRATOR) != 0 {
            return Ok(());
        }
        refuse(
            format!(
                "The app lacks permissions in this channel: {}. Someone who manages the server can grant them.",
                missing.join(", ")
            ),
            "discord: permissions missing",
        )
    }

    fn prompted(&self, thread: ThreadKey, prompt: Prompt) -> Intake {
        let quote = answer::quote(&prompt);
        self.message(thread, Work::Prompt(prompt), quote, "discord: prompt")
    }

    fn message(
        &self,
        thread: ThreadKey,
        work: Work,
        answer: HttpAnswer,
        note: &'static str,
    ) -> Intake {
        let message = Message {
            id: self.interaction.id.clone(),
            thread,
            accepted_at_ms: self.now_ms,
            work,
        };
        self.accepted(Body::Message(message), answer, note)
    }

    fn control(
        &self,
        thread: ThreadKey,
        want: Want,
        answer: HttpAnswer,
        note: &'static str,
    ) -> Intake {
        let control = Control {
            id: self.interaction.id.clone(),
            thread,
            by: self.by.clone(),
            reply: self.reply(),
            standing: self.standing.clone(),
            want,
        };
        self.accepted(Body::Control(control), answer, note)
    }

    fn reply(&self) -> Reply {
        Reply::Discord {
            application: self.app.application.clone(),
            token: self.interaction.token.clone(),
        }
    }

    fn accepted(&self, body: Body, answer: HttpAnswer, note: &'static str) -> Intake {
        // The queue may have taken it, and its answer come too late. Of a task that opens a thread the worker sees this refusal
        // and starts nothing; whatever else was taken goes on, so nobody is told that it does not.
        let happened = match &body {
            Body::Open(_) => {
                "This could not be accepted just now, and nothing was started. Please try again"
            }
            Body::Message(_) => words::MAYBE_TAKEN,
            Body::Control(_) | Body::Announce(_) | Body::Overview(_) => {
                "Whether this was accepted is not known. Trying again does no harm"
            }
        };
        let words = format!(
            "{happened}; if it keeps failing, give the operator this reference: `{}`",
            self.interaction.id
        );
        Intake {
            enqueue: Some(body),
            answer,
            on_queue_failure: answer::word(&words),
            note,
            lookup: None,
        }
    }
}

/// What was chosen for a task, in the form in which it can be used.
fn chosen(command: &Command, kind: Kind) -> Result<Option<String>, Refused> {
    let typed = command.text(commands::word(kind)).unwrap_or_default();
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

fn attachment(file: &Wired) -> Attachment {
    Attachment {
        name: file.filename.clone(),
        url: file.url.clone(),
        size: file.size,
        media_type: file.content_type.clone(),
    }
}

#[cfg(test)]
mod tests;
