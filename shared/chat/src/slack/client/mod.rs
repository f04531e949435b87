//! Slack's Web API with a bot token.
//!
//! Promised: posts are idempotent (a post is looked up by its metadata before it is sent again); an error names what to
//! do; the token goes only to Slack's hosts and into no log. Deliberately absent: the layout of posts
//! (`crate::slack::render`), modals, OAuth, token rotation.

mod call;
mod error;
mod files;
mod memory;
mod opening;
mod people;
mod posting;
mod setting_up;
mod status;
mod stream;
mod styles;
#[cfg(test)]
mod tests;
mod wanted;

use std::sync::Mutex;

use async_trait::async_trait;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{PostRef, ThreadKey, TurnId};
use bobbin_core::base::names::PostKind;
use bobbin_core::base::person::{Membership, Outside};
use bobbin_core::records::card::{CardState, Post};
use bobbin_core::records::message::{Overview, Reply, Surface};
use bobbin_core::records::session::Session;
use bobbin_core::tenant::keys::Key;
use bobbin_http::{AllowedHosts, Http};
use serde_json::Value;
use tokio::sync::OnceCell;

pub use self::error::SlackError;
pub use self::setting_up::{AppInstallation, deliver, signature};
use super::direct::is_direct_channel;
use super::render::{self, AgentSessionStatus, RenderedBlocks};
use crate::chat::{Chat, ChatSettings, FileSource, Home, Member, Say};

/// Maximum bytes of one answer.
const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Advice if Slack is not set up.
pub(crate) fn off() -> Failure {
    Failure::NonRecoverable { advice: Key::SlackBotToken.missing() }
}

/// Where its files are; the bot's token reads them.
pub(crate) fn files(settings: &ChatSettings<'_>) -> FileSource {
    let token = (settings.key)(Key::SlackBotToken);
    FileSource {
        hosts: &[".slack.com"],
        api: settings.overrides.slack_api.clone(),
        bearer: (!token.is_empty()).then(|| token.clone()),
    }
}

/// The identity of the token (`auth.test`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Id of the team in which the app is installed.
    pub team: String,
    /// Id of the team's organisation; empty if it has none.
    pub enterprise: String,
    /// Id of the app's bot user, used in mentions.
    pub user: String,
    /// Id of the bot, contained in every message that it posts.
    pub bot: String,
    /// Address of the workspace, with a trailing slash; empty if Slack does not name it.
    pub site: String,
}

impl Identity {
    /// Reads an answer of `auth.test`.
    fn read(answer: &Value) -> Self {
        let field = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
        Self {
            team: field("team_id"),
            enterprise: field("enterprise_id"),
            user: field("user_id"),
            bot: field("bot_id"),
            site: field("url"),
        }
    }
}

/// The client of one installation.
pub struct Slack {
    http: Http,
    base: String,
    token: String,
    identity: OnceCell<Identity>,
    memory: Mutex<memory::Memory>,
    statuses: Mutex<status::Statuses>,
    styles: Mutex<styles::Styles>,
    members: Mutex<people::Members>,
    directs: Mutex<wanted::DirectChannels>,
    /// Answers are streamed if the workspace supports it.
    streams: bool,
}

impl std::fmt::Debug for Slack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slack").field("base", &self.base).finish_non_exhaustive()
    }
}

impl Slack {
    /// The client, if there is a token.
    pub(crate) fn configured(settings: &ChatSettings<'_>) -> Result<Option<Self>, String> {
        let token = (settings.key)(Key::SlackBotToken);
        if token.is_empty() {
            return Ok(None);
        }
        let said = settings.overrides;
        let slack = Self::new(&said.slack_api, token.expose())
            .map_err(|e| format!("slack_api of the parameter Overrides: {e}"))?;
        Ok(Some(slack.streaming(said.slack_stream_answers)))
    }

    /// A client of the API at `base`, with its `/api` (`https://slack.com/api`).
    ///
    /// # Errors
    /// [`SlackError::Address`] if the base is not allowed.
    pub fn new(base: &str, bot_token: &str) -> Result<Self, SlackError> {
        let http = Http::new(
            base,
            AllowedHosts::Named(vec!["slack.com".to_owned(), ".slack.com".to_owned()]),
        )
        .map_err(|e| SlackError::Address { seen: e.to_string() })?;
        Ok(Self {
            http: http.with_body_bytes_max(ANSWER_BYTES_MAX),
            base: base.trim_end_matches('/').to_owned(),
            token: bot_token.to_owned(),
            identity: OnceCell::new(),
            memory: Mutex::default(),
            statuses: Mutex::default(),
            styles: Mutex::default(),
            members: Mutex::default(),
            directs: Mutex::default(),
            streams: false,
        })
    }

    /// The same client, with or without streamed answers (where the workspace supports them).
    #[must_use]
    pub fn streaming(self, streams: bool) -> Self {
        Self { streams, ..self }
    }

    /// Tells one person something: an ephemeral message, or an ordinary one in a direct message, where nobody else is.
    /// If the app or the person is not in the channel, the text goes to the person's direct messages.
    async fn answer_rendered(
        &self,
        reply: &Reply,
        rendered: &RenderedBlocks,
    ) -> Result<(), SlackError> {
        let Reply::Slack { channel, thread_ts, user } = reply else {
            return Err(SlackError::NotSlack);
        };
        let thread_ts = thread_ts.as_deref();
        // A person's id stands for their direct messages if the channel of those is not known.
        if channel == user || is_direct_channel(channel) {
            self.call("chat.postMessage", &render::direct_message(channel, thread_ts, rendered))
                .await?;
            return Ok(());
        }
        let arguments = render::ephemeral(channel, thread_ts, user, rendered);
        match self.call("chat.postEphemeral", &arguments).await {
            Err(SlackError::NotInvited { .. }) => {
                self.call("chat.postMessage", &render::direct_message(user, None, rendered))
                    .await?;
            }
            other => {
                other?;
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Chat for Slack {
    /// An existing post with the same key is edited instead of posted again; one that cannot be edited any more is
    /// posted again.
    async fn post(
        &self,
        thread: &ThreadKey,
        turn: &TurnId,
        kind: &PostKind,
        at: Option<&PostRef>,
        post: &Post,
    ) -> Result<PostRef, Failure> {
        let wanted = self.wanted_post(thread, turn, kind, post)?;
        if let Post::File(file) = post {
            return Ok(self.shown(&wanted, file).await?);
        }
        let style = self.card_style(wanted.team);
        let mut rendered = self.rendered(wanted.root, post, style).await;
        if let Some(at) = at {
            if let Some(posted) = self.edited(at, &wanted, &rendered, false).await? {
                return Ok(posted);
            }
            // The end of an old card is not posted again.
            if matches!(post, Post::Moved { .. }) {
                return Ok(at.clone());
            }
        }
        let lost = at.map(|at| at.id.as_str());
        if let Some(posted) = self.found(&wanted, lost, &rendered).await? {
            return Ok(posted);
        }
        match post.bare() {
            Post::Chunk { text, file: Some(file), .. } => {
                let whole = render::post_as(post.bare(), style);
                let words = self.with_file(&wanted, whole, text, file).await?;
                rendered = render::calling(words, post.calls());
            }
            Post::Chunk { text, .. } if wanted.streamable => {
                if let Some(posted) = self.streamed(&wanted, text, &rendered).await? {
                    return Ok(posted);
                }
            }
            _ => {}
        }
        let posted = self.sent(&wanted, lost, rendered).await?;
        if wanted.root.is_none() {
            self.remember_channel(thread, &posted.channel);
        }
        Ok(posted)
    }

    fn learn(&self, session: &Session) {
        self.learn_channel(session);
        self.forget_posts(session);
    }

    async fn set_status(&self, thread: &ThreadKey, turn: &TurnId, state: &CardState) {
        if let Some(status) = AgentSessionStatus::of(state) {
            self.show_status(thread, turn, status).await;
        }
    }

    async fn answer(&self, reply: &Reply, say: Say<'_>) -> Result<(), Failure> {
        let rendered = match say {
            Say::Words(words) | Say::Unopened { words, .. } => render::free(words),
            Say::Answer { thread, id, words } => {
                let notice = Post::Notice(words.to_owned());
                return self.post(thread, id, &PostKind::Notice, None, &notice).await.map(drop);
            }
            Say::Sandboxes(page) => render::sandboxes(page),
            Say::AskDestroy { thread, sandbox, now_ms } => {
                render::ask_destroy(thread, sandbox, now_ms)
            }
            Say::Diff { thread, turn, patch } => match render::diff(patch) {
                Some(words) => render::free(&words),
                None => {
                    if !self.post_diff(thread, turn, patch).await? {
                        return Ok(());
                    }
                    render::free(
                        "The changes are in this thread already, as the file `changes.diff`.",
                    )
                }
            },
        };
        Ok(self.answer_rendered(reply, &rendered).await?)
    }

    /// Posted in their direct messages. Direct messages themselves have no such place.
    async fn notify_outside(
        &self,
        thread: &ThreadKey,
        turn: &TurnId,
        people: &[String],
        words: &str,
    ) -> Result<(), Failure> {
        let ThreadKey::Slack { team, channel, root_ts } = thread else {
            return Ok(());
        };
        let link = self.thread_link(channel, root_ts).await.ok().flatten();
        let words = match link {
            Some(link) => format!("{words}\n{link}"),
            None => words.to_owned(),
        };
        let notice = Post::Notice(words);
        for person in people {
            let direct = ThreadKey::slack_direct(team, person);
            let direct =
                direct.map_err(|bad| Failure::NonRecoverable { advice: bad.to_string() })?;
            self.post(&direct, turn, &PostKind::Notice, None, &notice).await?;
        }
        Ok(())
    }

    async fn show_overview(&self, overview: &Overview, home: Home<'_>) -> Result<(), Failure> {
        match (&overview.place, home) {
            (Surface::Home, Home::Closed(why)) => {
                self.publish_home(&overview.by.id, &render::closed_home(why)).await?
            }
            (Surface::Home, Home::Open(picture)) => {
                self.publish_home(&overview.by.id, &render::home(picture)).await?
            }
            (Surface::Answer { reply, .. }, Home::Closed(why)) => {
                self.answer_rendered(reply, &render::free(why)).await?
            }
            (Surface::Answer { reply, .. }, Home::Open(picture)) => {
                self.answer_rendered(reply, &render::free(&render::overview_words(picture))).await?
            }
        }
        Ok(())
    }

    async fn membership(
        &self,
        thread: &ThreadKey,
        user: &str,
        channel: Option<&str>,
    ) -> Result<Membership, Failure> {
        let mut outside = self.outside(user).await?;
        if let Some(channel) = channel
            && outside.is_none()
            && !self.is_in(thread, channel, user).await?
        {
            outside = Some(Outside::Outsider);
        }
        let channel = channel.unwrap_or_default().to_owned();
        Ok(Membership { channel, outside, ..Membership::default() })
    }

    /// Slack's requests do not say who manages the workspace.
    async fn member(&self, user: &str, _: &Membership) -> Result<Member, Failure> {
        Ok(self.user(user).await?)
    }

    async fn place(&self, _: &ThreadKey) -> Option<String> {
        let installed = self.installed().await.ok()?;
        Some(installed.team_name).filter(|name| !name.is_empty())
    }
}
