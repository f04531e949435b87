//! Observing a conversation, and waiting for something in it.

use bobbin_core::base::names::{PostKind, post_key};
use bobbin_core::records::session::Session;
use bobbin_core::records::turn::EndedTurn;

use super::Talk;
use crate::chat::{ChatMessage, Platform};
use crate::limits::{ANSWER_MS_MAX, VISIBLE_MS_MAX};
use crate::observed::{self, Observed};
use crate::provider::Sandbox;
use crate::wait::eventually;

impl Talk<'_> {
    /// Messages that only the person sees in this thread.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn whispers(&self) -> Result<Vec<ChatMessage>, String> {
        match self.platform {
            Platform::Discord => self.world.discord.whispers(&self.thread).await,
            Platform::Slack => self.world.slack.whispers(&self.thread).await,
        }
    }

    /// The thread's messages, oldest first.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn messages(&self) -> Result<Vec<ChatMessage>, String> {
        match self.platform {
            Platform::Discord => self.world.discord.messages(&self.thread.channel).await,
            Platform::Slack => self.world.slack.messages(&self.thread).await,
        }
    }

    /// Waits for a private answer to one person in this thread.
    ///
    /// # Panics
    /// When it is not told within its bound.
    pub async fn whispered(&self, words: &str) {
        eventually(VISIBLE_MS_MAX, &format!("{words:?} is told"), async || {
            let seen = self.whispers().await?;
            if seen.iter().any(|one| one.text.contains(words)) {
                Ok(())
            } else {
                Err(format!("{:?}", seen.iter().map(|one| &one.text).collect::<Vec<_>>()))
            }
        })
        .await;
    }

    /// Waits for a message that satisfies `wanted`.
    ///
    /// # Panics
    /// When there is none within `within_ms`.
    pub async fn see(
        &self,
        within_ms: u64,
        what: &str,
        wanted: impl Fn(&ChatMessage) -> bool,
    ) -> ChatMessage {
        eventually(within_ms, what, async || {
            let messages = self.messages().await?;
            let found = messages.iter().find(|one| wanted(one)).cloned();
            found.ok_or_else(|| {
                format!("{:?}", messages.iter().map(|one| &one.text).collect::<Vec<_>>())
            })
        })
        .await
    }

    /// The card of a turn.
    ///
    /// # Panics
    /// When it is not posted within its bound.
    pub async fn card(&self, turn: &str) -> ChatMessage {
        let key = post_key(&self.thread.key, &turn.into(), &PostKind::Card);
        self.see(ANSWER_MS_MAX, "the card stands", |one| one.key.as_deref() == Some(&key)).await
    }

    /// Waits until the agent works on a turn.
    ///
    /// # Panics
    /// When it does not within its bound.
    pub async fn running(&self, turn: &str) -> Session {
        eventually(ANSWER_MS_MAX, "the turn runs", async || {
            let session = self.world.session(&self.thread.key).await?;
            let runs =
                session.turn.as_ref().is_some_and(|now| now.id == turn && now.stage.is_running());
            if runs {
                Ok(session)
            } else {
                Err(format!("{:?}; ended: {:?}", session.turn, session.ended))
            }
        })
        .await
    }

    /// Waits until a turn has ended, on record and in the thread.
    ///
    /// # Panics
    /// When it has not within its bound.
    pub async fn ended(&self, turn: &str) -> EndedTurn {
        self.ended_within(ANSWER_MS_MAX, turn).await
    }

    /// The same with a bound of the caller's.
    ///
    /// # Panics
    /// When it has not.
    pub async fn ended_within(&self, within_ms: u64, turn: &str) -> EndedTurn {
        let ended = eventually(within_ms, &format!("turn {turn} ends"), async || {
            let session = self.world.session(&self.thread.key).await?;
            let found = session.ended.iter().find(|ended| ended.id == turn).cloned();
            found.ok_or_else(|| {
                format!("phase {}, turn {:?}", session.sandbox.phase.word(), session.turn)
            })
        })
        .await;
        let card = self.card(turn).await;
        assert!(
            observed::says(&card, &ended.outcome),
            "the turn ended as {:?}, but its card says {:?}",
            ended.outcome,
            card.text
        );
        ended
    }

    /// Whether a turn has ended on record by now.
    pub async fn has_ended(&self, turn: &str) -> bool {
        let session = self.world.session(&self.thread.key).await;
        session.is_ok_and(|session| session.ended.iter().any(|ended| ended.id == turn))
    }

    /// The text of a turn's answer, its parts joined.
    ///
    /// # Panics
    /// When the thread cannot be read.
    pub async fn answer(&self, turn: &str) -> String {
        let messages =
            self.messages().await.unwrap_or_else(|why| panic!("the thread cannot be read: {why}"));
        let keys: Vec<String> = (0..10)
            .map(|index| post_key(&self.thread.key, &turn.into(), &PostKind::Chunk(index)))
            .collect();
        let parts =
            keys.iter().filter_map(|key| messages.iter().find(|one| one.key.as_ref() == Some(key)));
        let text: Vec<String> = parts.map(|part| part.text.clone()).collect();
        // The person who asked is mentioned by a line below the answer.
        let is_call = |line: &str| {
            let line = line.trim();
            line.starts_with("<@") && line.ends_with('>') && !line.contains(' ')
        };
        let mut lines: Vec<&str> = text.iter().flat_map(|text| text.lines()).collect();
        if lines.last().is_some_and(|line| is_call(line)) {
            lines.pop();
        }
        lines.join("\n")
    }

    /// The record.
    ///
    /// # Panics
    /// When there is none.
    pub async fn session(&self) -> Session {
        self.world.session(&self.thread.key).await.unwrap_or_else(|why| panic!("{why}"))
    }

    /// The thread's only live sandbox.
    ///
    /// # Panics
    /// When there is none, or more than one.
    pub async fn sandbox(&self) -> Sandbox {
        let mut list =
            self.world.provider.of(&self.thread.key).await.unwrap_or_else(|why| panic!("{why}"));
        list.retain(Sandbox::live);
        assert_eq!(list.len(), 1, "{list:?}");
        list.remove(0)
    }

    /// All observations of it.
    ///
    /// # Errors
    /// What could not be read.
    pub async fn observed(&self) -> Result<Observed, String> {
        Ok(Observed {
            session: self.world.session(&self.thread.key).await?,
            sandboxes: self.world.provider.of(&self.thread.key).await?,
            accepted: self.accepted.clone(),
            posts: self.messages().await?,
            calls: self.world.model_calls().await?,
        })
    }

    /// Checks the promises; only the two that need convergence may take a moment.
    ///
    /// # Panics
    /// When one is broken.
    pub async fn check(&self) {
        eventually(VISIBLE_MS_MAX, "the promises hold", async || {
            let seen = self.observed().await?;
            observed::check(&seen)?;
            self.check_status(seen.session.turn.is_some()).await
        })
        .await;
    }

    /// Slack's status of the thread never clears itself: where nothing runs it must not say that something does.
    async fn check_status(&self, running: bool) -> Result<(), String> {
        if self.platform == Platform::Discord || running {
            return Ok(());
        }
        match self.world.slack.status(&self.thread).await?.as_str() {
            "" | "active" | "closed" => Ok(()),
            left => Err(format!("nothing runs, but the status says {left}")),
        }
    }

    /// The end of a scenario: the promises hold, a reset leaves nothing behind, and they still hold.
    ///
    /// # Panics
    /// When one is broken.
    pub async fn finish(mut self) {
        self.check().await;
        self.reset().await;
        self.check().await;
    }
}
