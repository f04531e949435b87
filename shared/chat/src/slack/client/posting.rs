//! Idempotent posting: look up the post's key, edit an existing post, and post only what is missing.
//!
//! Slack has no key that identifies a repeated post. So every post carries its key as metadata. Before this process's
//! first post of a turn, and after every unclear outcome, the thread is read and searched for keys.

use std::time::Duration;

use bobbin_core::base::ids::{PostRef, ThreadKey, TurnId};
use bobbin_core::base::names::PostKind;
use bobbin_core::records::card::{CardState, Post};

use super::memory::CUT_OFF;
use super::wanted::WantedPost;
use super::{Slack, SlackError};
use crate::slack::escape::units;
use crate::slack::limits::FALLBACK_UNITS_MAX;
use crate::slack::render::{self, CardStyle, RenderedBlocks};

/// Longest time until Slack shows a post to readers.
const SETTLE_MS: u64 = 500;
/// Maximum attempts to send one post.
const SENDS_MAX: u32 = 3;

impl Slack {
    /// The post that a call of `post` should leave in the thread.
    pub(super) fn wanted_post<'a>(
        &self,
        thread: &'a ThreadKey,
        turn: &'a TurnId,
        kind: &PostKind,
        post: &Post,
    ) -> Result<WantedPost<'a>, SlackError> {
        let wanted = self.wanted(thread, turn, kind)?;
        Ok(WantedPost {
            simpler: simpler(post, self.card_style(wanted.team)),
            whole: render::whole(post),
            never_replaces: announces(post),
            // Slack streams only under a message.
            streamable: wanted.root.is_some()
                && self.may_stream(wanted.team)
                && *kind == PostKind::Chunk(0)
                && is_whole(post),
            ..wanted
        })
    }

    /// The post as a message; the end of an old card names the card that replaced it, and a card that waits for another
    /// thread links to it.
    pub(super) async fn rendered(
        &self,
        root_ts: Option<&str>,
        post: &Post,
        style: CardStyle,
    ) -> RenderedBlocks {
        if let Post::Card(card) = post
            && let CardState::Shared { holder: Some(ThreadKey::Slack { channel, root_ts, .. }) } =
                &card.state
        {
            let link = self.thread_link(channel, root_ts).await;
            return match link.ok().flatten() {
                Some(link) => render::card_linked(card, style, &link),
                None => render::post_as(post, style),
            };
        }
        let Post::Moved { to, .. } = post else {
            return render::post_as(post, style);
        };
        let link = self.link(root_ts, to).await;
        let to = to.clone();
        render::post_as(&Post::Moved { to, link }, style)
    }

    /// The address of a post, if Slack names the workspace's site.
    async fn link(&self, root_ts: Option<&str>, to: &PostRef) -> Option<String> {
        let site = &self.auth_test().await.ok()?.site;
        site.ends_with('/').then(|| render::link(site, root_ts, to))
    }

    /// Edits a post; `None` if it does not exist any more or is not editable, or if it holds only the beginning of a
    /// text that an edit cannot show whole.
    pub(super) async fn edited(
        &self,
        at: &PostRef,
        wanted: &WantedPost<'_>,
        rendered: &RenderedBlocks,
        is_cut: bool,
    ) -> Result<Option<PostRef>, SlackError> {
        let mut rendered = rendered.clone();
        loop {
            let arguments = render::update(at, &wanted.key, &rendered);
            match self.call("chat.update", &arguments).await {
                Ok(_) => return Ok(Some(at.clone())),
                Err(SlackError::PostLost { .. }) => return Ok(None),
                // Each attempt sends less: the last one only the text.
                Err(error @ SlackError::Invalid { .. }) if !rendered.blocks.is_empty() => {
                    rendered = self.with_less(wanted, &rendered, &error);
                    // Slack edits no message to a longer text. Unless it was cut off, it has all of it already.
                    if rendered.blocks.is_empty() && units(&rendered.text) > FALLBACK_UNITS_MAX {
                        return Ok((!is_cut).then(|| at.clone()));
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The version to send after Slack refused the blocks: with older blocks, and finally the text alone.
    fn with_less(
        &self,
        wanted: &WantedPost<'_>,
        refused: &RenderedBlocks,
        error: &SlackError,
    ) -> RenderedBlocks {
        match &wanted.simpler {
            Some(simpler) if simpler != refused => {
                tracing::info!(event = "slack.blocks.refused", %error, "Slack does not accept the newer blocks of a card");
                if matches!(error, SlackError::Invalid { error, .. } if error.starts_with("invalid_blocks"))
                {
                    self.no_plans(wanted.team);
                }
                simpler.clone()
            }
            _ => plain(wanted.whole.as_ref().unwrap_or(&refused.text), error),
        }
    }

    /// The post, updated, if it is already in the thread.
    pub(super) async fn found(
        &self,
        wanted: &WantedPost<'_>,
        lost: Option<&str>,
        rendered: &RenderedBlocks,
    ) -> Result<Option<PostRef>, SlackError> {
        let posts = self.posts(wanted).await?;
        if let Some(ts) = posts.get(&wanted.key) {
            if lost == Some(ts.as_str()) {
                return Ok(None);
            }
            let at = PostRef { channel: wanted.channel.clone(), id: ts.clone() };
            if wanted.never_replaces {
                return Ok(Some(at));
            }
            return self.edited(&at, wanted, rendered, false).await;
        }
        match posts.get(CUT_OFF) {
            Some(ts) if wanted.streamable => self.completed(wanted, ts, rendered, true).await,
            _ => Ok(None),
        }
    }

    /// Sends a new post. After an unclear outcome the thread is read before it is sent again.
    pub(super) async fn sent(
        &self,
        wanted: &WantedPost<'_>,
        lost: Option<&str>,
        mut rendered: RenderedBlocks,
    ) -> Result<PostRef, SlackError> {
        let mut sends = 0;
        loop {
            sends += 1;
            // If this future is dropped during the call, the next attempt has to check.
            let known = self.forgotten(wanted);
            let arguments = render::message(&wanted.channel, wanted.root, &wanted.key, &rendered);
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
                    // If a direct message was addressed by a user's id, Slack returns its channel.
                    let channel = answer["channel"].as_str().unwrap_or(&wanted.channel).to_owned();
                    return Ok(PostRef { channel, id: ts.to_owned() });
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
}

/// The same card in older blocks, if it uses newer ones.
fn simpler(post: &Post, style: CardStyle) -> Option<RenderedBlocks> {
    let newer = style == CardStyle::Plan && matches!(post, Post::Card(_));
    newer.then(|| render::post_as(post, CardStyle::Lines))
}

/// Whether this is the card of a waiting prompt: a card of its turn with the same key is newer.
fn announces(post: &Post) -> bool {
    matches!(post, Post::Card(card) if matches!(card.state, CardState::Queued { .. }))
}

/// Whether this is an answer that fits into one message.
fn is_whole(post: &Post) -> bool {
    let post = post.bare();
    matches!(post, Post::Chunk { last, file, .. } if *last && file.is_none())
}

/// The text alone: Slack refused the blocks, which is our fault and must not lose the text.
fn plain(text: &str, error: &SlackError) -> RenderedBlocks {
    tracing::error!(event = "slack.blocks.refused", %error, "Slack does not accept the blocks of a post; it is sent as text");
    RenderedBlocks { text: text.to_owned(), blocks: Vec::new() }
}
