//! A conversation in a stack that knows what it may expect: what people do in it here, what is seen of it in `reading`.

mod reading;

use std::sync::atomic::{AtomicU32, Ordering};

use bobbin_chat::slack::ASK_ACTION;
use bobbin_core::ids::{PostKind, post_key};
use bobbin_core::person::Person;
use bobbin_core::session::{Phase, Session};
use serde_json::{Value, json};

use crate::chat::{Platform, Seen, Thread};
use crate::limits::{ANSWER_MS_MAX, SEEN_MS_MAX};
use crate::observed::Accepted;
use crate::wait::eventually;
use crate::world::World;

/// A conversation: its thread, and everything that was accepted for it.
pub struct Talk<'w> {
    /// Where it takes place.
    pub world: &'w World,
    /// On which platform.
    pub platform: Platform,
    /// Its thread.
    pub thread: Thread,
    /// What was accepted, in that order.
    pub accepted: Vec<Accepted>,
}

impl World {
    /// Begins a conversation with a prompt.
    ///
    /// # Panics
    /// When the platform's ingress did not accept it.
    pub async fn begin(&self, platform: Platform, lines: &str) -> (Talk<'_>, String) {
        let (text, mark) = marked(lines);
        self.begin_marked(platform, &text, &mark).await
    }

    /// The same with a text that [`marked`] has made.
    ///
    /// # Panics
    /// As [`World::begin`].
    pub async fn begin_marked(
        &self,
        platform: Platform,
        text: &str,
        mark: &str,
    ) -> (Talk<'_>, String) {
        let started = match platform {
            Platform::Discord => self.discord.start(text).await,
            Platform::Slack => self.slack.start(text).await,
        };
        let (thread, turn) =
            started.unwrap_or_else(|why| panic!("the first prompt was not accepted: {why}"));
        let accepted = vec![Accepted {
            turn: turn.clone(),
            mark: Some(mark.to_owned()),
        }];
        (
            Talk {
                world: self,
                platform,
                thread,
                accepted,
            },
            turn,
        )
    }

    /// The conversation that a request of the test's own has started: its thread is the one whose record has the turn.
    ///
    /// # Panics
    /// When no record has it within its bound.
    pub async fn found(&self, platform: Platform, turn: &str, mark: &str) -> Talk<'_> {
        let key = eventually(ANSWER_MS_MAX, "the turn has a thread", async || {
            let has = |session: &Session| {
                let current = session.turn.as_ref().is_some_and(|now| now.id == turn);
                current || session.ended.iter().any(|ended| ended.id == turn)
            };
            let sessions = self.aws.sessions(&self.deployment.table).await?;
            let found = sessions.into_iter().find(has);
            found.ok_or_else(|| format!("no record has the turn {turn}"))
        })
        .await
        .thread
        .to_string();
        let parts: Vec<&str> = key.split(':').collect();
        let thread = match platform {
            Platform::Discord => self.discord.thread(parts[2]),
            Platform::Slack => self.slack.thread(parts[2], parts[3]),
        };
        let accepted = vec![Accepted {
            turn: turn.to_owned(),
            mark: Some(mark.to_owned()),
        }];
        Talk {
            world: self,
            platform,
            thread: thread.unwrap_or_else(|why| panic!("{key}: {why}")),
            accepted,
        }
    }
}

/// The lines with a further one that stands in this prompt alone. The scripted model takes it for no action.
#[must_use]
pub fn marked(lines: &str) -> (String, String) {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let mark = format!(
        "(task {}-{})",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    );
    (format!("{lines}\n{mark}"), mark)
}

impl Talk<'_> {
    /// A further prompt; answers its turn.
    ///
    /// # Panics
    /// When it was not accepted.
    pub async fn say(&mut self, lines: &str) -> String {
        let (text, mark) = marked(lines);
        self.say_marked(&text, &mark).await
    }

    /// The same with a text that [`marked`] has made.
    ///
    /// # Panics
    /// As [`Talk::say`].
    pub async fn say_marked(&mut self, text: &str, mark: &str) -> String {
        let (discord, slack) = (&self.world.discord, &self.world.slack);
        let turn = match self.platform {
            Platform::Discord => discord
                .command(&self.thread, "say", &json!({"prompt": text}))
                .await
                .map(|acted| acted.interaction),
            Platform::Slack => slack
                .mention(Some(&self.thread), text)
                .await
                .map(|done| self.slack_turn(&done)),
        };
        let turn = turn.unwrap_or_else(|why| panic!("the prompt was not accepted: {why}"));
        self.accepted.push(Accepted {
            turn: turn.clone(),
            mark: Some(mark.to_owned()),
        });
        turn
    }

    fn slack_turn(&self, done: &Value) -> String {
        self.world.slack.turn(
            &self.thread.channel,
            done["ts"].as_str().unwrap_or_default(),
        )
    }

    async fn word(&self, word: &str) -> String {
        let (discord, slack) = (&self.world.discord, &self.world.slack);
        let said = match self.platform {
            Platform::Discord => discord
                .command(&self.thread, word, &json!({}))
                .await
                .map(|acted| acted.interaction),
            Platform::Slack => slack
                .mention(Some(&self.thread), word)
                .await
                .map(|done| self.slack_turn(&done)),
        };
        said.unwrap_or_else(|why| panic!("{word} was not accepted: {why}"))
    }

    /// Stops what is running.
    ///
    /// # Panics
    /// When it was not accepted.
    pub async fn stop(&self) {
        self.word("stop").await;
    }

    /// What the session is doing, as the person is told.
    ///
    /// # Panics
    /// When nothing is told within its bound.
    pub async fn status(&self) -> String {
        let before = self.whispers().await.map_or(0, |seen| seen.len());
        let said = self.word("status").await;
        if self.platform == Platform::Slack {
            // In Slack, where the question stands in the thread, so does the answer.
            let key = post_key(&self.thread.key, &said, &PostKind::Notice);
            return self
                .see(SEEN_MS_MAX, "the status is told", |one| {
                    one.key.as_deref() == Some(&key)
                })
                .await
                .text;
        }
        eventually(SEEN_MS_MAX, "the status is told", async || {
            let seen = self.whispers().await?;
            let new = seen
                .get(before..)
                .unwrap_or_default()
                .iter()
                .rfind(|one| !one.text.trim().is_empty());
            new.map(|one| one.text.clone())
                .ok_or_else(|| format!("{} whispers before and {} now", before, seen.len()))
        })
        .await
    }

    /// Asks for a fresh sandbox and waits until the old one is gone.
    ///
    /// # Panics
    /// When it is not gone, or not told, within its bound.
    pub async fn reset(&mut self) {
        let turn = self.word("reset").await;
        self.accepted.push(Accepted {
            turn: turn.clone(),
            mark: None,
        });
        let key = post_key(&self.thread.key, &turn, &PostKind::Notice);
        eventually(
            ANSWER_MS_MAX,
            "the reset is told and its sandbox gone",
            async || {
                let told = self
                    .messages()
                    .await?
                    .iter()
                    .any(|post| post.key.as_deref() == Some(&key));
                let left = self
                    .world
                    .provider
                    .of(&self.thread.key)
                    .await?
                    .iter()
                    .filter(|one| one.live())
                    .count();
                let phase = self.world.session(&self.thread.key).await?.phase;
                if told && left == 0 && phase == Phase::Destroyed {
                    Ok(())
                } else {
                    Err(format!("told: {told}, sandboxes: {left}, phase: {phase:?}"))
                }
            },
        )
        .await;
    }

    /// Presses a button.
    ///
    /// # Panics
    /// When there is none such, or the press failed.
    pub async fn press(&self, message: &Seen, label: &str) {
        let pressed = match self.platform {
            Platform::Discord => self
                .world
                .discord
                .press(&self.thread, message, label)
                .await
                .map(|_| ()),
            Platform::Slack => self
                .world
                .slack
                .press(&self.thread, message, label)
                .await
                .map(|_| ()),
        };
        pressed.unwrap_or_else(|why| panic!("{label} cannot be pressed: {why}"));
    }

    /// Fills a form and sends it: the one behind a button on Discord, the inputs of the message on Slack.
    ///
    /// # Panics
    /// When it cannot be filled so.
    pub async fn fill(&self, message: &Seen, label: &str, fields: &Value) {
        let (discord, slack) = (&self.world.discord, &self.world.slack);
        let filled = match self.platform {
            Platform::Discord => discord
                .fill(&self.thread, message, label, fields)
                .await
                .map(|_| ()),
            Platform::Slack => slack
                .fill(&self.thread, message, label, fields)
                .await
                .map(|_| ()),
        };
        filled.unwrap_or_else(|why| panic!("{fields} cannot be sent: {why}"));
    }

    /// Presses a button of an ask as somebody else, whether it is still there or not.
    ///
    /// # Panics
    /// When the press was not accepted.
    pub async fn click(&self, by: &Person, message: &Seen, ask: &str, word: &str) {
        let (discord, slack) = (&self.world.discord, &self.world.slack);
        let id = format!("{ASK_ACTION}:{word}");
        let clicked = match self.platform {
            Platform::Discord => discord
                .click(
                    &self.thread,
                    &message.id,
                    &format!("{ASK_ACTION}:{ask}:{word}"),
                    by,
                )
                .await
                .map(|_| ()),
            Platform::Slack => {
                let value = format!("{ask}:{word}");
                slack
                    .click(&self.thread, &message.id, (&id, &value), by)
                    .await
            }
        };
        clicked.unwrap_or_else(|why| panic!("{word} cannot be clicked: {why}"));
    }
}
