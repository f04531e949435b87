//! A conversation in a stack, with its expectations: people's actions are here, observations in `reading`.

mod reading;

use std::sync::atomic::{AtomicU32, Ordering};

use bobbin_chat::slack::ASK_ACTION;
use bobbin_core::base::ids::ThreadKey;
use bobbin_core::base::names::{PostKind, post_key};
use bobbin_core::base::person::Person;
use bobbin_core::records::sandbox::Phase;
use bobbin_core::records::session::Session;
use serde_json::{Value, json};

use crate::chat::{ChatMessage, Platform, Thread};
use crate::limits::{ANSWER_MS_MAX, VISIBLE_MS_MAX};
use crate::observed::Accepted;
use crate::wait::eventually;
use crate::world::World;

/// A conversation: its thread, and everything that was accepted for it.
pub struct Talk<'w> {
    /// Its world.
    pub world: &'w World,
    /// The platform that the thread is on.
    pub platform: Platform,
    /// The thread of the conversation.
    pub thread: Thread,
    /// The accepted messages, in order.
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
        let talk = self.talk(platform, thread, &turn, mark);
        (talk, turn)
    }

    /// Begins a conversation with choices (an agent, a runtime) beside its first prompt.
    ///
    /// # Panics
    /// As [`World::begin`].
    pub async fn begin_with(
        &self,
        platform: Platform,
        choices: &[(&str, &str)],
        lines: &str,
    ) -> (Talk<'_>, String) {
        let (text, mark) = marked(lines);
        let started = match platform {
            Platform::Discord => {
                let mut options = json!({"prompt": text});
                for (name, value) in choices {
                    options[*name] = json!(value);
                }
                self.discord.start_with(&options).await
            }
            Platform::Slack => {
                let chosen = choices.iter().map(|(name, value)| format!("{name}:{value} "));
                let chosen: String = chosen.collect();
                self.slack.start(&format!("{chosen}{text}")).await
            }
        };
        let (thread, turn) =
            started.unwrap_or_else(|why| panic!("the first prompt was not accepted: {why}"));
        let talk = self.talk(platform, thread, &turn, &mark);
        (talk, turn)
    }

    /// The conversation in a thread whose first prompt is this turn.
    #[must_use]
    pub fn talk(&self, platform: Platform, thread: Thread, turn: &str, mark: &str) -> Talk<'_> {
        Talk { world: self, platform, thread, accepted: vec![Accepted::prompt(turn, mark)] }
    }

    /// The conversation that the test's own request started: its thread is the one whose record has the turn.
    ///
    /// # Panics
    /// When no record has it within its bound.
    pub async fn found(&self, platform: Platform, turn: &str, mark: &str) -> Talk<'_> {
        let key = self.holder(turn).await.to_string();
        let parts: Vec<&str> = key.split(':').collect();
        let thread = match platform {
            Platform::Discord => self.discord.thread(parts[2]),
            Platform::Slack => self.slack.thread(parts[2], parts[3]),
        };
        let thread = thread.unwrap_or_else(|why| panic!("{key}: {why}"));
        if platform == Platform::Discord {
            let active = self.discord.active_threads().await;
            let is_active = active.is_ok_and(|ids| ids.contains(&thread.channel));
            assert!(is_active, "the thread is not among the active ones");
        }
        self.talk(platform, thread, turn, mark)
    }

    /// The thread whose record has this turn.
    ///
    /// # Panics
    /// When no record has it within its bound.
    pub async fn holder(&self, turn: &str) -> ThreadKey {
        eventually(ANSWER_MS_MAX, "the turn has a thread", async || {
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
    }

    /// Sends an interaction of the test's own, which ingress accepts with a deferred answer; returns the conversation
    /// that it starts.
    ///
    /// # Panics
    /// When it was answered otherwise, or started none within its bound.
    pub async fn by_interaction(&self, sent: &Value, mark: &str) -> Talk<'_> {
        let answer = self.discord.deliver(&sent.to_string()).await;
        let answer = answer.unwrap_or_else(|why| panic!("{why}"));
        let told = (answer.status, &answer.json()["type"]);
        assert_eq!(told, (200, &json!(5)), "{answer:?}");
        let turn = sent["id"].as_str().unwrap_or_default();
        self.found(Platform::Discord, turn, mark).await
    }

    /// Sends an event of the test's own with a message of this time; returns the conversation that it starts.
    ///
    /// # Panics
    /// When it was not accepted.
    pub async fn by_event(&self, event: &Value, ts: &str, mark: &str) -> Talk<'_> {
        let answer = self.slack.deliver(&event.to_string()).await;
        let answer = answer.unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(answer.status, 200, "{answer:?}");
        let channel = &self.ready.slack_channel_id;
        let thread = self.slack.thread(channel, ts);
        let thread = thread.unwrap_or_else(|why| panic!("{why}"));
        let turn = self.slack.turn(channel, ts);
        self.talk(Platform::Slack, thread, &turn, mark)
    }
}

/// Adds a line that only this prompt contains. The scripted model takes it for no action.
#[must_use]
pub fn marked(lines: &str) -> (String, String) {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let mark = format!("(task {}-{})", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    (format!("{lines}\n{mark}"), mark)
}

impl Talk<'_> {
    /// The same conversation in a stack that was started again.
    #[must_use]
    pub fn again<'w>(&self, world: &'w World) -> Talk<'w> {
        Talk {
            world,
            platform: self.platform,
            thread: self.thread.clone(),
            accepted: self.accepted.clone(),
        }
    }

    /// A further prompt; answers its turn.
    ///
    /// # Panics
    /// When it was not accepted.
    pub async fn say(&mut self, lines: &str) -> String {
        let (text, mark) = marked(lines);
        self.say_marked(&text, &mark).await
    }

    /// A further prompt, with an agent that is chosen with it; answers its turn.
    ///
    /// # Panics
    /// When it was not accepted.
    pub async fn say_as(&mut self, agent: &str, lines: &str) -> String {
        let (text, mark) = marked(lines);
        let options = json!({"prompt": text, "agent": agent});
        let turn = self.sent("say", &options, &format!("agent:{agent} {text}")).await;
        self.accepted.push(Accepted::prompt(&turn, &mark));
        turn
    }

    /// The same as [`Talk::say`] with a text that [`marked`] has made.
    ///
    /// # Panics
    /// As [`Talk::say`].
    pub async fn say_marked(&mut self, text: &str, mark: &str) -> String {
        let turn = self.sent("say", &json!({"prompt": text}), text).await;
        self.accepted.push(Accepted::prompt(&turn, mark));
        turn
    }

    /// Sends a command on Discord, these words on Slack; answers its turn.
    async fn sent(&self, command: &str, options: &Value, words: &str) -> String {
        let World { discord, slack, .. } = self.world;
        let sent = match self.platform {
            Platform::Discord => {
                discord.command(&self.thread, command, options).await.map(|acted| acted.interaction)
            }
            Platform::Slack => slack.mention(Some(&self.thread), words).await.map(|done| {
                let ts = done["ts"].as_str().unwrap_or_default();
                slack.turn(&self.thread.channel, ts)
            }),
        };
        sent.unwrap_or_else(|why| panic!("{command} was not accepted: {why}"))
    }

    async fn word(&self, word: &str) -> String {
        self.sent(word, &json!({}), word).await
    }

    /// Stops the running turn.
    ///
    /// # Panics
    /// When it was not accepted.
    pub async fn stop(&self) {
        self.word("stop").await;
    }

    /// The session's status, as the person is told.
    ///
    /// # Panics
    /// When nothing is told within its bound.
    pub async fn status(&self) -> String {
        self.told("status").await
    }

    /// The answer to a person's command.
    ///
    /// # Panics
    /// When nothing is told within its bound.
    pub async fn told(&self, word: &str) -> String {
        let before = self.whispers().await.map_or(0, |seen| seen.len());
        let said = self.word(word).await;
        if self.platform == Platform::Slack {
            // On Slack the answer is in the thread, like the question.
            let key = post_key(&self.thread.key, &said.as_str().into(), &PostKind::Notice);
            return self
                .see(VISIBLE_MS_MAX, "the person is told", |one| one.key.as_deref() == Some(&key))
                .await
                .text;
        }
        eventually(VISIBLE_MS_MAX, "the person is told", async || {
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

    /// Sends the usage command, and waits until only the person is told these words.
    ///
    /// # Panics
    /// When they are not told within their bound.
    pub async fn usage(&self, words: &str) {
        self.sent("sandbox-usage", &json!({}), "usage").await;
        self.whispered(words).await;
    }

    /// Asks for a fresh sandbox and waits until the old one is gone.
    ///
    /// # Panics
    /// When it is not gone, or not told, within its bound.
    pub async fn reset(&mut self) {
        let turn = self.word("reset").await;
        self.accepted.push(Accepted { turn: turn.clone(), mark: None });
        let key = post_key(&self.thread.key, &turn.as_str().into(), &PostKind::Notice);
        let thread = &self.thread.key;
        eventually(ANSWER_MS_MAX, "the reset is told and its sandbox gone", async || {
            let posts = self.messages().await?;
            let told = posts.iter().any(|post| post.key.as_deref() == Some(&key));
            let sandboxes = self.world.provider.of(thread).await?;
            let left = sandboxes.iter().filter(|one| one.live()).count();
            let phase = self.world.session(thread).await?.sandbox.phase;
            if told && left == 0 && phase == Phase::Destroyed {
                Ok(())
            } else {
                Err(format!("told: {told}, sandboxes: {left}, phase: {phase:?}"))
            }
        })
        .await;
    }

    /// Presses a button.
    ///
    /// # Panics
    /// When there is none such, or the press failed.
    pub async fn press(&self, message: &ChatMessage, label: &str) {
        let World { discord, slack, .. } = self.world;
        let pressed = match self.platform {
            Platform::Discord => discord.press(&self.thread, message, label).await.map(drop),
            Platform::Slack => slack.press(&self.thread, message, label).await.map(drop),
        };
        pressed.unwrap_or_else(|why| panic!("{label} cannot be pressed: {why}"));
    }

    /// Fills a form and sends it: the one behind a button on Discord, the inputs of the message on Slack.
    ///
    /// # Panics
    /// When it cannot be filled so.
    pub async fn fill(&self, message: &ChatMessage, label: &str, fields: &Value) {
        let World { discord, slack, .. } = self.world;
        let filled = match self.platform {
            Platform::Discord => discord.fill(&self.thread, message, label, fields).await.map(drop),
            Platform::Slack => slack.fill(&self.thread, message, label, fields).await.map(drop),
        };
        filled.unwrap_or_else(|why| panic!("{fields} cannot be sent: {why}"));
    }

    /// Presses a button of an ask as somebody else, whether it is still there or not.
    ///
    /// # Panics
    /// When the press was not accepted.
    pub async fn click(&self, by: &Person, message: &ChatMessage, ask: &str, word: &str) {
        let World { discord, slack, .. } = self.world;
        let id = format!("{ASK_ACTION}:{word}");
        let clicked = match self.platform {
            Platform::Discord => discord
                .click(&self.thread, &message.id, &format!("{ASK_ACTION}:{ask}:{word}"), by)
                .await
                .map(drop),
            Platform::Slack => {
                let value = format!("{ask}:{word}");
                slack.click(&self.thread, &message.id, (&id, &value), by).await
            }
        };
        clicked.unwrap_or_else(|why| panic!("{word} cannot be clicked: {why}"));
    }
}
