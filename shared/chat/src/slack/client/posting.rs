//! Posting once: look for the post's name, edit what is there, and post only what is not.
//!
//! Slack has no key by which a repeated post would be recognised. So every post carries its name as metadata, and before
//! the first post of a turn by this process, and after every unclear outcome, the thread is read and searched for names.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use bobbin_core::card::{Post, ShownFile};
use bobbin_core::ids::{PostKind, PostRef, ThreadKey, post_key};
use serde_json::Value;

use super::files::{Upload, stamped};
use super::{Slack, SlackError};
use crate::slack::endpoint::message_ts;
use crate::slack::render::{self, CardStyle, EVENT_TYPE, Rendered};

/// Turns whose posts are remembered; a forgotten one is only read again.
const TURNS_MAX: usize = 64;
/// Messages in one page of a thread.
const PAGE_MESSAGES: usize = 200;
/// Pages that are read of one thread, from the turn's own message on.
const PAGES_MAX: usize = 10;
/// Slack shows a post to readers after this time at the latest.
const SETTLE_MS: u64 = 500;
/// What the name of a file in a thread is remembered under, beside the names of posts.
const FILE: &str = "file:";
/// Times that one post is sent.
const SENDS_MAX: u32 = 3;
/// Stands for the name of a stream that was cut off before it got one.
const CUT_OFF: &str = "";

/// What this process knows of the posts of recent turns, by name.
#[derive(Debug, Default)]
pub(super) struct Memory {
    turns: VecDeque<(String, BTreeMap<String, String>)>,
}

impl Memory {
    fn posts(&mut self, turn: &str) -> Option<&mut BTreeMap<String, String>> {
        self.turns
            .iter_mut()
            .find(|(known, _)| known == turn)
            .map(|(_, posts)| posts)
    }

    fn learn(&mut self, turn: &str, posts: BTreeMap<String, String>) {
        self.forget(turn);
        if self.turns.len() == TURNS_MAX {
            self.turns.pop_front();
        }
        self.turns.push_back((turn.to_owned(), posts));
    }

    /// What is known of the turn may be wrong: read it again before the next post.
    fn forget(&mut self, turn: &str) {
        self.turns.retain(|(known, _)| known != turn);
    }
}

/// One post to be made.
pub(super) struct Wanted<'a> {
    pub(super) team: &'a str,
    pub(super) channel: &'a str,
    pub(super) root: &'a str,
    pub(super) turn: &'a str,
    pub(super) key: String,
    /// The same in older blocks, where it has newer ones.
    simpler: Option<Rendered>,
    /// It may be shown as a stream: the only part of an answer.
    streamable: bool,
}

impl Wanted<'_> {
    /// Names the turn in the memory; a turn's id alone could be that of another thread.
    fn memory_key(&self) -> String {
        format!("{}/{}/{}", self.channel, self.root, self.turn)
    }
}

impl Slack {
    fn memory(&self) -> MutexGuard<'_, Memory> {
        // A panic elsewhere leaves plain maps behind: what they hold is still true.
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Posts, or edits what stands at `at`. A post that is already there under the same name is edited instead of made
    /// again; one that cannot be edited any more is made anew.
    ///
    /// # Errors
    /// [`SlackError`].
    pub async fn post(
        &self,
        thread: &ThreadKey,
        turn: &str,
        kind: &PostKind,
        at: Option<&PostRef>,
        post: &Post,
    ) -> Result<PostRef, SlackError> {
        let ThreadKey::Slack {
            team,
            channel,
            root_ts,
        } = thread
        else {
            return Err(SlackError::NotSlack);
        };
        let style = self.card_style(team);
        let newer = style == CardStyle::Plan && matches!(post, Post::Card(_));
        let wanted = Wanted {
            team,
            channel,
            root: root_ts,
            turn,
            key: post_key(thread, turn, kind),
            simpler: newer.then(|| render::post_as(post, CardStyle::Lines)),
            streamable: self.may_stream(team)
                && *kind == PostKind::Chunk(0)
                && matches!(
                    post.bare(),
                    Post::Chunk {
                        last: true,
                        file: None,
                        ..
                    }
                ),
        };
        if let Post::File(file) = post {
            return self.shown(&wanted, file).await;
        }
        let mut rendered = match post {
            Post::Moved { to, .. } => {
                let link = self.link(root_ts, to).await;
                let to = to.clone();
                render::post_as(&Post::Moved { to, link }, style)
            }
            _ => render::post_as(post, style),
        };
        if let Some(at) = at {
            if let Some(posted) = self.edited(at, &wanted, &rendered).await? {
                return Ok(posted);
            }
            // What is only the end of an old card is not made anew.
            if matches!(post, Post::Moved { .. }) {
                return Ok(at.clone());
            }
        }
        let lost = at.map(|at| at.id.as_str());
        if let Some(posted) = self.found(&wanted, lost, &rendered).await? {
            return Ok(posted);
        }
        match post.bare() {
            Post::Chunk {
                text,
                file: Some(file),
                ..
            } => {
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
        self.sent(&wanted, lost, rendered).await
    }

    /// The address of a post, where Slack says on which site the workspace is.
    async fn link(&self, root_ts: &str, to: &PostRef) -> Option<String> {
        let site = &self.auth_test().await.ok()?.site;
        site.ends_with('/').then(|| render::link(site, root_ts, to))
    }

    /// Brings what a turn changed into the thread as a file, below its summary, unless it is there already. Whether it
    /// was.
    ///
    /// # Errors
    /// [`SlackError`].
    pub async fn post_diff(
        &self,
        thread: &ThreadKey,
        turn: &str,
        patch: &str,
    ) -> Result<bool, SlackError> {
        let ThreadKey::Slack {
            team,
            channel,
            root_ts,
        } = thread
        else {
            return Err(SlackError::NotSlack);
        };
        let wanted = Wanted {
            team,
            channel,
            root: root_ts,
            turn,
            key: post_key(thread, turn, &PostKind::Diff),
            simpler: None,
            streamable: false,
        };
        let file = Upload {
            name: stamped("changes.diff", &wanted.key),
            title: "What the task changed",
            comment: Some(render::diff_summary(patch)),
            bytes: patch.as_bytes(),
        };
        self.uploaded_once(&wanted, &file)
            .await
            .map(|at| at.is_some())
    }

    /// A file that the agent left to be shown.
    async fn shown(&self, wanted: &Wanted<'_>, file: &ShownFile) -> Result<PostRef, SlackError> {
        let upload = Upload {
            name: stamped(&file.name, &wanted.key),
            title: &file.name,
            comment: None,
            bytes: &file.bytes,
        };
        let stood = self.uploaded_once(wanted, &upload).await?;
        // Slack does not tell the `ts` of a file's message; nobody edits it.
        Ok(PostRef {
            channel: wanted.channel.to_owned(),
            id: stood.unwrap_or_default(),
        })
    }

    /// Uploads a file unless one of its name is in the thread; where that stands, if it does.
    async fn uploaded_once(
        &self,
        wanted: &Wanted<'_>,
        file: &Upload<'_>,
    ) -> Result<Option<String>, SlackError> {
        let key = wanted.memory_key();
        let mut posts = self.posts(wanted).await?;
        let name = format!("{FILE}{}", file.name);
        if let Some(ts) = posts.get(&name) {
            return Ok(Some(ts.clone()));
        }
        // If this future is dropped while the upload is under way, or it ends unclearly, the next one has to look.
        self.memory().forget(&key);
        let done = self.upload(wanted.channel, wanted.root, file).await;
        match &done {
            Ok(()) => {
                posts.insert(name, String::new());
                self.memory().learn(&key, posts);
            }
            Err(error) if !error.passes() => self.memory().learn(&key, posts),
            Err(_) => {}
        }
        done.map(|()| None)
    }

    /// The names of what stands in the thread of a turn.
    async fn posts(&self, wanted: &Wanted<'_>) -> Result<BTreeMap<String, String>, SlackError> {
        let key = wanted.memory_key();
        let known = self.memory().posts(&key).cloned();
        if let Some(posts) = known {
            return Ok(posts);
        }
        let posts = self.read_back(wanted).await?;
        self.memory().learn(&key, posts.clone());
        Ok(posts)
    }

    /// Edits a post; nothing when it is not there any more or not editable.
    pub(super) async fn edited(
        &self,
        at: &PostRef,
        wanted: &Wanted<'_>,
        rendered: &Rendered,
    ) -> Result<Option<PostRef>, SlackError> {
        let mut rendered = rendered.clone();
        loop {
            let arguments = render::update(at, &wanted.key, &rendered);
            match self.call("chat.update", &arguments).await {
                Ok(_) => return Ok(Some(at.clone())),
                Err(SlackError::PostLost { .. }) => return Ok(None),
                // Each time with less: it ends with the words alone.
                Err(error @ SlackError::Invalid { .. }) if !rendered.blocks.is_empty() => {
                    rendered = self.with_less(wanted, &rendered, &error);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// What is shown when Slack does not take the blocks: the same in older ones, and in the end the words alone.
    fn with_less(&self, wanted: &Wanted<'_>, refused: &Rendered, error: &SlackError) -> Rendered {
        match &wanted.simpler {
            Some(simpler) if simpler != refused => {
                tracing::info!(event = "slack.blocks.refused", %error, "Slack does not take the newer blocks of a card");
                if matches!(error, SlackError::Invalid { error, .. } if error.starts_with("invalid_blocks"))
                {
                    self.no_plans(wanted.team);
                }
                simpler.clone()
            }
            _ => plain(refused, error),
        }
    }

    /// The post, brought up to date, if it is already in the thread.
    async fn found(
        &self,
        wanted: &Wanted<'_>,
        lost: Option<&str>,
        rendered: &Rendered,
    ) -> Result<Option<PostRef>, SlackError> {
        let posts = self.posts(wanted).await?;
        if let Some(ts) = posts.get(&wanted.key) {
            if lost == Some(ts.as_str()) {
                return Ok(None);
            }
            let at = PostRef {
                channel: wanted.channel.to_owned(),
                id: ts.clone(),
            };
            return self.edited(&at, wanted, rendered).await;
        }
        match posts.get(CUT_OFF) {
            Some(ts) if wanted.streamable => self.completed(wanted, ts, rendered).await,
            _ => Ok(None),
        }
    }

    /// Forgets what is known of the turn's posts while something is under way that adds to them, and gives it back.
    pub(super) fn forgotten(&self, wanted: &Wanted<'_>) -> BTreeMap<String, String> {
        let key = wanted.memory_key();
        let mut memory = self.memory();
        let known = memory.posts(&key).cloned().unwrap_or_default();
        memory.forget(&key);
        known
    }

    /// Knows the turn's posts again.
    pub(super) fn known_again(&self, wanted: &Wanted<'_>, posts: BTreeMap<String, String>) {
        self.memory().learn(&wanted.memory_key(), posts);
    }

    /// Sends a new post. After an unclear outcome the thread is read before it is sent again.
    async fn sent(
        &self,
        wanted: &Wanted<'_>,
        lost: Option<&str>,
        mut rendered: Rendered,
    ) -> Result<PostRef, SlackError> {
        let mut sends = 0;
        loop {
            sends += 1;
            // If this future is dropped while the call is under way, the next one has to look.
            let known = self.forgotten(wanted);
            let arguments = render::message(wanted.channel, wanted.root, &wanted.key, &rendered);
            match self.call("chat.postMessage", &arguments).await {
                Ok(answer) => {
                    let ts = answer["ts"].as_str().unwrap_or_default();
                    if ts.is_empty() {
                        return Err(SlackError::Unclear {
                            method: "chat.postMessage",
                            seen: "an answer without ts".to_owned(),
                        });
                    }
                    let mut posts = known;
                    posts.insert(wanted.key.clone(), ts.to_owned());
                    self.known_again(wanted, posts);
                    // In a direct message asked for by a user's id, Slack names the channel that it became.
                    let channel = answer["channel"]
                        .as_str()
                        .unwrap_or(wanted.channel)
                        .to_owned();
                    return Ok(PostRef {
                        channel,
                        id: ts.to_owned(),
                    });
                }
                Err(SlackError::Unclear { .. }) if sends < SENDS_MAX => {
                    tokio::time::sleep(Duration::from_millis(SETTLE_MS)).await;
                    if let Some(posted) = self.found(wanted, lost, &rendered).await? {
                        return Ok(posted);
                    }
                }
                Err(error @ SlackError::Invalid { .. })
                    if !rendered.blocks.is_empty() && sends < SENDS_MAX =>
                {
                    rendered = self.with_less(wanted, &rendered, &error);
                    self.known_again(wanted, known);
                }
                Err(error) => {
                    if !error.passes() {
                        self.known_again(wanted, known);
                    }
                    return Err(error);
                }
            }
        }
    }

    /// The names of our posts in the thread, with their `ts`, from the turn's own message on.
    async fn read_back(&self, wanted: &Wanted<'_>) -> Result<BTreeMap<String, String>, SlackError> {
        let me = self.auth_test().await?.clone();
        let mut posts = BTreeMap::new();
        let mut cursor = String::new();
        for _ in 0..PAGES_MAX {
            let mut fields = vec![
                ("channel", wanted.channel.to_owned()),
                ("ts", wanted.root.to_owned()),
                ("include_all_metadata", "true".to_owned()),
                ("limit", PAGE_MESSAGES.to_string()),
            ];
            fields.extend(message_ts(wanted.turn).map(|ts| ("oldest", ts.to_owned())));
            if !cursor.is_empty() {
                fields.push(("cursor", cursor.clone()));
            }
            let page = match self.call_form("conversations.replies", &fields).await {
                Ok(page) => page,
                Err(error) if error.passes() || matches!(error, SlackError::Token { .. }) => {
                    return Err(error);
                }
                Err(error) => {
                    // Better twice than never: without the right to read, a post after a crash may repeat one.
                    tracing::warn!(event = "slack.thread.unread", %error, "a Slack thread cannot be read back");
                    return Ok(posts);
                }
            };
            let messages = page["messages"].as_array().map_or(&[][..], Vec::as_slice);
            let ours = |message: &&Value| {
                message["user"] == me.user.as_str() || message["bot_id"] == me.bot.as_str()
            };
            for message in messages.iter().filter(ours) {
                let ts = message["ts"].as_str().unwrap_or_default();
                if is_cut_off(message) && message["ts"] != wanted.root {
                    posts.insert(CUT_OFF.to_owned(), ts.to_owned());
                }
                for file in message["files"].as_array().into_iter().flatten() {
                    if let Some(name) = file["name"].as_str() {
                        posts.insert(format!("{FILE}{name}"), ts.to_owned());
                    }
                }
                let metadata = &message["metadata"];
                if metadata["event_type"] == EVENT_TYPE
                    && !ts.is_empty()
                    && let Some(key) = metadata["event_payload"]["op_id"].as_str()
                {
                    posts.insert(key.to_owned(), ts.to_owned());
                }
            }
            cursor = page["response_metadata"]["next_cursor"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            if cursor.is_empty() {
                break;
            }
        }
        Ok(posts)
    }

    /// Brings the whole answer into the thread as a file, once; the message that is posted next is the one that counts.
    async fn with_file(
        &self,
        wanted: &Wanted<'_>,
        whole: Rendered,
        text: &str,
        file: &str,
    ) -> Result<Rendered, SlackError> {
        let upload = Upload {
            name: stamped("answer.md", &wanted.key),
            title: "answer.md",
            comment: None,
            bytes: file.as_bytes(),
        };
        match self.uploaded_once(wanted, &upload).await {
            Ok(_) => Ok(whole),
            Err(error) if error.passes() || matches!(error, SlackError::Token { .. }) => Err(error),
            Err(error) => {
                tracing::warn!(event = "slack.file.refused", %error, "an answer's file cannot be posted to Slack");
                Ok(render::free(&format!(
                    "_The answer was too long for messages, and its file could not be attached ({error})._\n\n{text}"
                )))
            }
        }
    }
}

/// The words alone: Slack did not take the blocks, which is a fault of ours and must not swallow the words.
fn plain(rendered: &Rendered, error: &SlackError) -> Rendered {
    tracing::error!(event = "slack.blocks.refused", %error, "Slack does not take the blocks of a post; it is sent as text");
    Rendered {
        text: rendered.text.clone(),
        blocks: Vec::new(),
    }
}

/// Whether a message of ours is a stream that was cut off before it got its name.
pub(super) fn is_cut_off(message: &Value) -> bool {
    let no_files = message["files"].as_array().is_none_or(Vec::is_empty);
    message["metadata"]["event_type"].is_null() && no_files && message["subtype"].is_null()
}
