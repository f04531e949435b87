//! An answer as a stream. Never posted twice: a stream that has started is ended and updated, whatever happens to it;
//! the answer is posted only if Slack refuses to start a stream, or refuses to complete one that was cut off.
//!
//! A stream lives for about five minutes whatever is appended, and has no key before its end. So a stream that was cut
//! off is recognised by that: a message of ours in the turn's thread, without a key.

use std::time::{Duration, Instant};

use bobbin_core::base::ids::PostRef;

use super::wanted::WantedPost;
use super::{Slack, SlackError};
use crate::slack::endpoint::message_ts;
use crate::slack::render::{self, Recipient, RenderedBlocks};

/// Nothing is appended later than this after the start; a Slack stream lives for about 300 s.
const STREAM_MS_MAX: u64 = 120_000;

impl Slack {
    /// Streams an answer. `None`: Slack does not take a stream here, and nothing was shown.
    ///
    /// # Errors
    /// [`SlackError`]; after [`SlackError::Unclear`] a stream may have started, and is found by reading the thread.
    pub(super) async fn streamed(
        &self,
        wanted: &WantedPost<'_>,
        text: &str,
        rendered: &RenderedBlocks,
    ) -> Result<Option<PostRef>, SlackError> {
        let Some(root) = wanted.root else {
            return Ok(None);
        };
        let Some(to) = self.recipient(wanted, root).await? else {
            return Ok(None);
        };
        let pieces = render::stream_pieces(text);
        let mut pieces = pieces.iter();
        let first = pieces.next().map_or("", String::as_str);
        let began = Instant::now();
        let arguments = render::start_stream(&wanted.channel, root, &to, first);
        // If this future is dropped during the call, the next attempt has to check.
        let known = self.forgotten(wanted);
        let ts = match self.call("chat.startStream", &arguments).await {
            Ok(answer) => answer["ts"].as_str().unwrap_or_default().to_owned(),
            Err(error) if error.passes() && !matches!(error, SlackError::NotSent { .. }) => {
                return Err(error);
            }
            Err(error) => {
                tracing::info!(event = "slack.stream.refused", %error, "Slack does not accept a stream; the answer is posted");
                if !error.passes() {
                    self.no_streams(wanted.team);
                }
                self.known_again(wanted, known);
                return Ok(None);
            }
        };
        if ts.is_empty() {
            return Err(SlackError::Unclear {
                method: "chat.startStream",
                seen: "an answer without ts".to_owned(),
            });
        }
        let mut is_cut = false;
        for piece in pieces {
            is_cut = began.elapsed() > Duration::from_millis(STREAM_MS_MAX);
            if is_cut {
                break;
            }
            let arguments = render::append_stream(&wanted.channel, &ts, piece);
            if let Err(error) = self.call("chat.appendStream", &arguments).await {
                tracing::info!(event = "slack.stream.cut", %error, "a stream was cut off; the answer is completed by an edit");
                is_cut = true;
                break;
            }
        }
        let posted = self.completed(wanted, &ts, rendered, is_cut).await?;
        let mut posts = known;
        posts.extend(posted.as_ref().map(|at| (wanted.key.clone(), at.id.clone())));
        self.known_again(wanted, posts);
        Ok(posted)
    }

    /// Ends a stream and turns its message into what a post would be, including its key. `None`: it does not exist any
    /// more, or it was cut off and cannot be completed.
    pub(super) async fn completed(
        &self,
        wanted: &WantedPost<'_>,
        ts: &str,
        rendered: &RenderedBlocks,
        is_cut: bool,
    ) -> Result<Option<PostRef>, SlackError> {
        let arguments = render::stop_stream(&wanted.channel, ts, &wanted.key);
        if let Err(error) = self.call("chat.stopStream", &arguments).await {
            // The stream ended by itself, or the person ended it; the edit below shows whether it can be completed.
            tracing::debug!(event = "slack.stream.unended", %error, "a stream could not be ended");
        }
        let at = PostRef { channel: wanted.channel.clone(), id: ts.to_owned() };
        // White space between pieces may have been lost: the edit has the exact answer.
        self.edited(&at, wanted, rendered, is_cut).await
    }

    /// The recipient: the author of the turn's message. `None` if not known.
    async fn recipient(
        &self,
        wanted: &WantedPost<'_>,
        root: &str,
    ) -> Result<Option<Recipient>, SlackError> {
        let Some(asked_ts) = message_ts(wanted.turn) else {
            return Ok(None);
        };
        let fields = [
            ("channel", wanted.channel.clone()),
            ("ts", root.to_owned()),
            ("oldest", asked_ts.to_owned()),
            ("latest", asked_ts.to_owned()),
            ("inclusive", "true".to_owned()),
            ("limit", "2".to_owned()),
        ];
        let page = match self.call_form("conversations.replies", &fields).await {
            Ok(page) => page,
            Err(error) if error.passes() => return Err(error),
            Err(_) => return Ok(None),
        };
        let team = self.auth_test().await?.team.clone();
        let messages = page["messages"].as_array().map_or(&[][..], Vec::as_slice);
        let asked = messages
            .iter()
            .find(|message| message["ts"] == asked_ts && message["bot_id"].is_null());
        Ok(asked.and_then(|message| {
            Some(Recipient {
                user: message["user"].as_str()?.to_owned(),
                team: message["team"].as_str().unwrap_or(&team).to_owned(),
            })
        }))
    }
}
