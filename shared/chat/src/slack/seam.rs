//! Slack as a [`Chat`].

use async_trait::async_trait;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Ms, PostKind, PostRef, ThreadKey, TurnId};
use bobbin_core::base::person::Outside;
use bobbin_core::records::card::{CardState, Post};
use bobbin_core::records::message::{Control, Reply};
use bobbin_core::records::session::Session;
use bobbin_core::shown::overview::Picture;
use bobbin_core::shown::sandboxes::{Listed, Page};
use bobbin_core::tenant::keys::Key;
use bobbin_core::text::{self, Dialect};

use super::client::Slack;
use super::render::{self, Status};
use crate::chat::{Chat, ChatSettings, Home, Member};

/// Longest part of an answer, in UTF-16 units: a `markdown` block holds 12,000 characters.
const CHUNK_UNITS: usize = 11_500;

/// What to do when there is no Slack.
pub(crate) fn off() -> Failure {
    Failure::NonRecoverable { advice: Key::SlackBotToken.missing() }
}

/// An answer in parts that each fit into a message.
pub(crate) fn split(answer: &str) -> Vec<String> {
    text::parts(answer, Dialect::Entities, CHUNK_UNITS)
}

impl Slack {
    /// The client, if there is a token.
    pub(crate) fn configured(settings: &ChatSettings<'_>) -> Result<Option<Self>, String> {
        if settings.slack_bot_token.is_empty() {
            return Ok(None);
        }
        let slack = Self::new(settings.slack_api, settings.slack_bot_token)
            .map_err(|e| format!("slack_api of the parameter Overrides: {e}"))?;
        Ok(Some(slack.streaming(settings.slack_stream_answers)))
    }
}

#[async_trait]
impl Chat for Slack {
    async fn post(
        &self,
        thread: &ThreadKey,
        turn: &TurnId,
        kind: &PostKind,
        at: Option<&PostRef>,
        post: &Post,
    ) -> Result<PostRef, Failure> {
        let posted = Self::post(self, thread, turn, kind, at, post).await;
        posted.map_err(|e| e.failure())
    }

    fn learn(&self, session: &Session) {
        self.learn_channel(session);
        self.forget_posts(session);
    }

    async fn set_status(&self, thread: &ThreadKey, turn: &TurnId, state: &CardState) {
        if let Some(status) = Status::of(state) {
            Self::set_status(self, thread, turn, status).await;
        }
    }

    async fn tell(&self, reply: &Reply, text: &str) -> Result<(), Failure> {
        Self::tell(self, reply, text).await.map_err(|e| e.failure())
    }

    /// In their direct messages. Of those themselves there is nothing beside.
    async fn tell_beside(
        &self,
        thread: &ThreadKey,
        turn: &TurnId,
        people: &[String],
        word: &str,
    ) -> Result<(), Failure> {
        let ThreadKey::Slack { team, channel, root_ts } = thread else {
            return Ok(());
        };
        let link = self.thread_link(channel, root_ts).await.ok().flatten();
        let word = match link {
            Some(link) => format!("{word}\n{link}"),
            None => word.to_owned(),
        };
        let notice = Post::Notice(word);
        for person in people {
            let direct = ThreadKey::slack_direct(team, person);
            let direct =
                direct.map_err(|bad| Failure::NonRecoverable { advice: bad.to_string() })?;
            Chat::post(self, &direct, turn, &PostKind::Notice, None, &notice).await?;
        }
        Ok(())
    }

    async fn answer(&self, control: &Control, text: &str) -> Result<(), Failure> {
        let notice = Post::Notice(text.to_owned());
        let (thread, kind) = (&control.thread, PostKind::Notice);
        let posted =
            Chat::post(self, thread, &control.id.as_str().into(), &kind, None, &notice).await;
        posted.map(drop)
    }

    async fn show_sandboxes(&self, reply: &Reply, page: &Page) -> Result<(), Failure> {
        let shown = Self::show_sandboxes(self, reply, page).await;
        shown.map_err(|e| e.failure())
    }

    async fn ask_destroy(
        &self,
        thread: &ThreadKey,
        reply: &Reply,
        sandbox: &Listed,
        now_ms: Ms,
    ) -> Result<(), Failure> {
        let asked = Self::ask_destroy(self, thread, reply, sandbox, now_ms).await;
        asked.map_err(|e| e.failure())
    }

    /// Where it is short only who asks sees it, else it is a file in the thread.
    async fn show_diff(
        &self,
        thread: &ThreadKey,
        turn: &TurnId,
        reply: &Reply,
        patch: &str,
    ) -> Result<(), Failure> {
        if let Some(words) = render::diff(patch) {
            return Chat::tell(self, reply, &words).await;
        }
        let stood = self.post_diff(thread, turn, patch).await;
        if stood.map_err(|e| e.failure())? {
            let words = "The changes are in this thread already, as the file `changes.diff`.";
            Chat::tell(self, reply, words).await
        } else {
            Ok(())
        }
    }

    async fn outside(&self, user: &str) -> Result<Option<Outside>, Failure> {
        Self::outside(self, user).await.map_err(|e| e.failure())
    }

    async fn manages(&self, control: &Control) -> Result<bool, Failure> {
        let manages = Self::manages(self, &control.by.id).await;
        manages.map_err(|e| e.failure())
    }

    async fn place(&self, _: &ThreadKey) -> Option<String> {
        let installed = self.installed().await.ok()?;
        Some(installed.team_name).filter(|name| !name.is_empty())
    }

    async fn member(&self, user: &str) -> Result<Member, Failure> {
        Self::member(self, user).await.map_err(|e| e.failure())
    }

    async fn show_home(&self, user: &str, home: Home<'_>) -> Result<(), Failure> {
        let view = match home {
            Home::Closed(why) => render::closed_home(why),
            Home::Open(picture) => render::home(picture),
        };
        self.publish_home(user, &view).await.map_err(|e| e.failure())
    }

    fn home_words(&self, picture: &Picture) -> Result<String, Failure> {
        Ok(render::overview_words(picture))
    }
}
