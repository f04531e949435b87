//! From a signed request to work on the queue and a first answer. Pure; the caller enqueues before it answers.

mod act;
mod own_key;
mod prompt;
mod request;
mod sandboxes;

use bobbin_core::base::ids::Ms;
use bobbin_core::records::control::ControlAction;
use bobbin_core::records::message::Work;
use bobbin_core::tenant::commands::{Command, Reach};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use self::request::{AdmittedInteraction, Refused, RequestOutcome, refuse};
use super::app::App;
use super::bounds::{BODY_BYTES_MAX, ID_CHARS_MAX};
use super::commands::{SEND, help};
use super::interaction::{Interaction, InvokedCommand};
use super::verify::verify;
use super::{answer, configure};
use crate::commands::{CommandSender, Intent};
use crate::endpoints::{EndpointSettings, Endpoints, RawRequest, Verifier};
use crate::{HttpAnswer, Inbound};

const UNKNOWN_COMMAND: &str = "This command no longer exists. `/help` shows the current ones.";

/// Discord's endpoints; without an application they say that it is switched off.
#[derive(Debug)]
pub(crate) struct DiscordEndpoints {
    app: Option<App>,
}

impl DiscordEndpoints {
    /// For the configured application.
    ///
    /// # Errors
    /// Names the variable that is wrong, and its parameter.
    pub(crate) fn configured(settings: &EndpointSettings<'_>) -> Result<Self, String> {
        let key = (settings.variable)("DISCORD_PUBLIC_KEY");
        if key.is_empty() {
            return Ok(Self { app: None });
        }
        let application = (settings.variable)("DISCORD_APPLICATION_ID");
        let (policy, limits) = (settings.policy.clone(), settings.limits.clone());
        let app = App::new(&key, &application, policy, limits)
            .map_err(|e| format!("DISCORD_PUBLIC_KEY (parameter DiscordPublicKey): {e}"))?;
        let keys_by_form = settings.overrides.keys_by_form && settings.takes_own_keys;
        Ok(Self { app: Some(App { keys_by_form, ..app }) })
    }
}

impl Endpoints for DiscordEndpoints {
    fn paths(&self) -> &'static [&'static str] {
        &["/discord/interactions"]
    }

    fn receive(&self, request: &RawRequest<'_>, _: Verifier<'_>) -> Inbound {
        let Some(app) = &self.app else {
            const OFF: &str = "Discord is switched off: set DiscordApplicationId and DiscordPublicKey of the template.";
            return Inbound::only(HttpAnswer::text(401, OFF), "platform switched off");
        };
        let signature = (request.header)("x-signature-ed25519");
        let timestamp = (request.header)("x-signature-timestamp");
        interactions(request.raw, signature, timestamp, app, request.now_ms)
    }
}

/// Handles a request at the interactions endpoint: headers as received, raw bytes of the body, our clock.
#[must_use]
pub fn interactions(
    raw: &[u8],
    signature: Option<&str>,
    timestamp: Option<&str>,
    app: &App,
    now_ms: Ms,
) -> Inbound {
    let signed = signature.zip(timestamp).is_some_and(|(signature, timestamp)| {
        verify(&app.key, timestamp, signature, raw, now_ms / 1000)
    });
    if !signed {
        return Inbound::only(
            HttpAnswer::text(401, "invalid request signature"),
            "discord: bad signature",
        );
    }
    if raw.len() > BODY_BYTES_MAX {
        return Inbound::only(
            HttpAnswer::text(400, &format!("the body is larger than {BODY_BYTES_MAX} bytes")),
            "discord: body too large",
        );
    }
    if let Ok(interaction) = serde_json::from_slice::<Interaction>(raw)
        && (2..=5).contains(&interaction.kind)
        && is_usable(&interaction.id)
    {
        return answered(interaction, app, now_ms);
    }
    // Only the type of a ping is read: its other fields are not guaranteed.
    let (words, note) = match serde_json::from_slice::<InteractionKind>(raw).map(|known| known.kind)
    {
        Ok(1) => return Inbound::only(answer::pong(), "discord: ping"),
        Ok(2..=5) => (
            "the interaction cannot be read: a field has an unexpected type, or the id is missing or not valid",
            "discord: malformed",
        ),
        Ok(_) => ("unknown interaction type; known are 1 to 5", "discord: unknown type"),
        Err(_) => (
            "the body is not an interaction: it must be a JSON object with a numeric type",
            "discord: malformed",
        ),
    };
    Inbound::only(HttpAnswer::text(400, words), note)
}

/// Whether the id can name a turn and a message on the queue, whose ids are bounded. Discord's snowflakes have at most
/// twenty digits.
fn is_usable(id: &str) -> bool {
    (1..=ID_CHARS_MAX).contains(&id.len())
        && id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
}

#[derive(Deserialize)]
struct InteractionKind {
    #[serde(rename = "type")]
    kind: u64,
}

fn answered(mut interaction: Interaction, app: &App, now_ms: Ms) -> Inbound {
    let said = interaction.data.take().unwrap_or_default();
    let outcome = AdmittedInteraction::admitted(&interaction, app, now_ms).and_then(|request| {
        match interaction.kind {
            2 => request.command(&data(said)?),
            3 => request.click(&data(said)?),
            4 => request.typing(&data(said)?),
            _ => request.form(&data(said)?),
        }
    });
    if interaction.kind == 4 {
        // Nothing can be said while somebody types: people without permission see no suggestions.
        return outcome
            .unwrap_or_else(|Refused(_, note)| Inbound::only(answer::no_choices(), note));
    }
    outcome.unwrap_or_else(|Refused(words, note)| Inbound::only(answer::word(&words), note))
}

fn data<T: DeserializeOwned>(said: Value) -> Result<T, Refused> {
    T::deserialize(said).or_else(|_| refuse(UNKNOWN_COMMAND, "discord: data not understood"))
}

impl AdmittedInteraction<'_> {
    fn command(&self, filled_in: &InvokedCommand) -> RequestOutcome {
        let command = match (filled_in.kind, Command::named(&filled_in.name)) {
            (1 | 0, Some(command)) => command,
            (3, _) if filled_in.name == SEND => return self.send(filled_in),
            _ => return refuse(UNKNOWN_COMMAND, "discord: unknown command"),
        };
        match command {
            Command::Sandbox => self.prompt(filled_in, "`/sandbox`"),
            Command::Say => {
                self.thread()?;
                self.prompt(filled_in, "`/say`")
            }
            Command::Config => match configure::change(filled_in) {
                Ok(change) => Ok(self.control(
                    self.here()?,
                    ControlAction::Configure { change },
                    answer::deferred_word(),
                    "discord: settings",
                )),
                Err(words) => refuse(words, "discord: settings not understood"),
            },
            Command::Setup => self.setup(filled_in),
            Command::Help => Ok(Inbound::only(answer::word(&help()), "discord: help")),
            command => self.intended(command, filled_in),
        }
    }

    /// Commands that every chat reads alike.
    fn intended(&self, command: Command, filled_in: &InvokedCommand) -> RequestOutcome {
        if command.row().reach == Reach::Thread {
            self.thread()?;
        }
        let typist = CommandSender {
            by: &self.by,
            membership: &self.membership,
            in_thread: self.in_thread(),
        };
        let intent = Intent::of(command, filled_in, &typist)
            .or_else(|bad| refuse(bad.to_string(), "discord: unusable name"))?;
        let thread = if intent.needs_thread(command) { self.thread()? } else { self.here()? };
        match intent {
            Intent::Control(want) => {
                Ok(self.control(thread, want, answer::deferred_word(), command.row().name))
            }
            Intent::Work(work) => {
                let answer = match &work {
                    Work::Name { name, .. } => answer::naming(&self.by, name),
                    Work::Reset { keeps_files, .. } => answer::resetting(&self.by, *keeps_files),
                    _ => answer::deferred_word(),
                };
                Ok(self.message(thread, work, answer, command.row().name))
            }
        }
    }
}

#[cfg(test)]
mod tests;
