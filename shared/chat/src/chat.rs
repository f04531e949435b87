//! The chats behind one door: whichever platform a thread is on.

use bobbin_core::card::{CardState, Post};
use bobbin_core::failure::Failure;
use bobbin_core::ids::{PostKind, PostRef, ThreadKey};
use bobbin_core::keys::Key;
use bobbin_core::message::Reply;
use bobbin_core::person::Outside;
use bobbin_core::text;
use bobbin_http::{Hosts, Http, host_of};

use crate::discord;
use crate::discord::Discord;
use crate::slack::Slack;
use crate::slack::render::Status;

/// Longest part of an answer on Slack, in UTF-16 units: a `markdown` block holds 12,000 characters.
const SLACK_CHUNK_UNITS: usize = 11_500;

/// What the platforms are reached with. A platform without application or token is off.
#[derive(Clone, Copy)]
pub struct Settings<'a> {
    /// Base of Discord's API, with its version.
    pub discord_api: &'a str,
    /// The application's id; empty without Discord.
    pub discord_application: &'a str,
    /// The bot's token. It may be empty: an interaction is answered without one.
    pub discord_bot_token: &'a str,
    /// Base of Slack's Web API.
    pub slack_api: &'a str,
    /// The bot's token; empty without Slack.
    pub slack_bot_token: &'a str,
    /// Short answers are shown on Slack while they are written.
    pub slack_stream_answers: bool,
}

/// The platforms that are switched on.
#[derive(Debug)]
pub struct Chat {
    /// Discord, when an application is configured.
    pub discord: Option<Discord>,
    /// Slack, when an app is configured.
    pub slack: Option<Slack>,
}

impl Chat {
    /// The platforms that the settings name. Discord needs no token to answer an interaction: so whoever
    /// asks there hears that the token is missing.
    ///
    /// # Errors
    /// A sentence that names the address that cannot be used.
    pub fn new(settings: &Settings<'_>) -> Result<Self, String> {
        let discord = match settings.discord_application {
            "" => None,
            application => {
                let hosts = Hosts::Named(host_of(settings.discord_api).into_iter().collect());
                let http = Http::new(settings.discord_api, hosts)
                    .map_err(|e| format!("discord_api of the parameter Overrides: {e}"))?;
                Some(Discord::new(
                    http,
                    settings.discord_api,
                    application,
                    settings.discord_bot_token,
                ))
            }
        };
        let slack = match settings.slack_bot_token {
            "" => None,
            token => Some(
                Slack::new(settings.slack_api, token)
                    .map_err(|e| format!("slack_api of the parameter Overrides: {e}"))?
                    .streaming(settings.slack_stream_answers),
            ),
        };
        Ok(Self { discord, slack })
    }

    /// How an answer is cut for the platform of this thread.
    #[must_use]
    pub fn split(thread: &ThreadKey) -> fn(&str) -> Vec<String> {
        match thread {
            // Tables first: Discord has none, and an aligned one is longer than its source.
            ThreadKey::Discord { .. } => {
                |answer| text::split(&text::discord_markdown(answer), discord::CHUNK_UNITS)
            }
            ThreadKey::Slack { .. } => |answer| text::split(answer, SLACK_CHUNK_UNITS),
        }
    }

    /// Posts into a thread, or edits what stands at `at`.
    ///
    /// # Errors
    /// What the failure means.
    pub async fn post(
        &self,
        thread: &ThreadKey,
        turn: &str,
        kind: &PostKind,
        at: Option<&PostRef>,
        post: &Post,
    ) -> Result<PostRef, Failure> {
        match thread {
            ThreadKey::Discord { .. } => self
                .discord()?
                .post(thread, turn, kind, at, post)
                .await
                .map_err(|e| e.failure()),
            ThreadKey::Slack { .. } => self
                .slack()?
                .post(thread, turn, kind, at, post)
                .await
                .map_err(|e| e.failure()),
        }
    }

    /// Shows beside the thread how the turn stands that it works on, where the platform has a place for that. For the
    /// worker that holds the thread's group alone: who speaks of a turn that waits would speak over the one that runs.
    pub async fn set_status(&self, thread: &ThreadKey, turn: &str, state: &CardState) {
        if let (ThreadKey::Slack { .. }, Some(slack), Some(status)) =
            (thread, &self.slack, Status::of(state))
        {
            slack.set_status(thread, turn, status).await;
        }
    }

    /// Tells one person something that only they see, where the platform allows it.
    ///
    /// # Errors
    /// What the failure means.
    pub async fn tell(&self, reply: &Reply, text: &str) -> Result<(), Failure> {
        match reply {
            Reply::Discord { .. } => self
                .discord()?
                .tell(reply, text)
                .await
                .map_err(|e| e.failure()),
            Reply::Slack { .. } => self
                .slack()?
                .tell(reply, text)
                .await
                .map_err(|e| e.failure()),
            Reply::Nobody => Ok(()),
        }
    }

    /// Shows what a turn changed: on Discord to the person who asks; in Slack too where it is short, else as a file in
    /// the thread, once however often somebody asks.
    ///
    /// # Errors
    /// What the failure means.
    pub async fn show_diff(
        &self,
        thread: &ThreadKey,
        turn: &str,
        reply: &Reply,
        patch: &str,
    ) -> Result<(), Failure> {
        if let Reply::Discord { .. } = reply {
            let shown = self.discord()?.tell_diff(reply, patch).await;
            return shown.map_err(|e| e.failure());
        }
        if let Some(words) = crate::slack::render::diff(patch) {
            return self.tell(reply, &words).await;
        }
        let stood = self.slack()?.post_diff(thread, turn, patch).await;
        if stood.map_err(|e| e.failure())? {
            let words = "The changes are in this thread already, as the file `changes.diff`.";
            self.tell(reply, words).await
        } else {
            Ok(())
        }
    }

    /// Discord, or why it cannot be used.
    ///
    /// # Errors
    /// A [`Failure`] with what to configure.
    pub fn discord(&self) -> Result<&Discord, Failure> {
        self.discord.as_ref().ok_or_else(|| {
            off("Discord is not set up: the operator has to set DiscordApplicationId and DiscordPublicKey of the template.".to_owned())
        })
    }

    /// Whether somebody is not known as a full member of the place of a thread. Discord lets only members of a server ask.
    ///
    /// # Errors
    /// What the failure means; it is no admission.
    pub async fn outside(
        &self,
        thread: &ThreadKey,
        user: &str,
    ) -> Result<Option<Outside>, Failure> {
        match thread {
            ThreadKey::Discord { .. } => Ok(None),
            ThreadKey::Slack { .. } => {
                let found = self.slack()?.outside(user).await;
                found.map_err(|e| e.failure())
            }
        }
    }

    /// Whether somebody may manage the Slack workspace.
    ///
    /// # Errors
    /// What the failure means.
    pub async fn slack_manages(&self, user: &str) -> Result<bool, Failure> {
        self.slack()?.manages(user).await.map_err(|e| e.failure())
    }

    /// Slack, or why it cannot be used.
    ///
    /// # Errors
    /// A [`Failure`] with what to configure.
    pub fn slack(&self) -> Result<&Slack, Failure> {
        self.slack
            .as_ref()
            .ok_or_else(|| off(Key::SlackBotToken.missing()))
    }
}

const fn off(advice: String) -> Failure {
    Failure::NonRecoverable { advice }
}
