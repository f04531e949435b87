//! One stack as the tests see it, on either engine, and a conversation in it that knows what it may expect.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use bobbin_chat::slack::ASK_ACTION;
use bobbin_core::ids::{PostKind, ThreadKey, post_key};
use bobbin_core::person::Person;
use bobbin_core::session::{EndedTurn, Phase, Session};
use reqwest::Method;
use serde_json::{Value, json};

use crate::aws::Aws;
use crate::breakpoints::{Breakpoint, Condition};
use crate::chat::{Discord, Platform, Seen, Slack, Thread};
use crate::http;
use crate::limits::{ANSWER_MS_MAX, SEEN_MS_MAX};
use crate::model::{self, Call};
use crate::promises::{self, Accepted, History};
use crate::provider::{Provider, Sandbox};
use crate::stack::{Ready, Stack};
use crate::wait::eventually;

/// Where the functions run.
#[derive(Debug, Clone)]
pub struct Deployment {
    /// Base of the ingress paths.
    pub ingress: String,
    /// Address of the AWS calls.
    pub aws_endpoint: String,
    /// Key that signs them: its id and the secret.
    pub aws_key: (String, String),
    /// The table.
    pub table: String,
    /// Queue of messages.
    pub messages_queue_url: String,
    /// Queue of control words.
    pub control_queue_url: String,
    /// The sweeper's function name.
    pub sweeper: String,
}

/// One stack, for one test.
#[derive(Debug, Clone)]
pub struct World {
    /// What the stack told.
    pub ready: Ready,
    /// Where the functions run.
    pub deployment: Deployment,
    /// Where the stack keeps its things.
    pub state_dir: PathBuf,
    /// Its AWS.
    pub aws: Aws,
    /// Its Discord.
    pub discord: Discord,
    /// Its Slack.
    pub slack: Slack,
    /// Its sandboxes.
    pub provider: Provider,
    client: reqwest::Client,
}

impl World {
    /// A stack with the embedded engine.
    #[must_use]
    pub fn of(stack: &Stack) -> Self {
        let ready = &stack.ready;
        let deployment = Deployment {
            ingress: ready.ingress.clone(),
            aws_endpoint: ready.aws_endpoint.clone(),
            aws_key: (
                ready.aws_access_key_id.clone(),
                ready.aws_secret_access_key.clone(),
            ),
            table: ready.table.clone(),
            messages_queue_url: ready.messages_queue_url.clone(),
            control_queue_url: ready.control_queue_url.clone(),
            // The embedded engine names its resources `<stack>-<logical id>`, as the table's name shows.
            sweeper: ready.table.replace("Table", "Sweeper"),
        };
        Self::on(stack, deployment)
    }

    /// A stack whose functions run elsewhere.
    #[must_use]
    pub fn on(stack: &Stack, deployment: Deployment) -> Self {
        let client = http::client();
        let ready = stack.ready.clone();
        Self {
            aws: Aws::new(&client, &deployment.aws_endpoint, &deployment.aws_key),
            discord: Discord::new(&client, &ready, &deployment.ingress),
            slack: Slack::new(&client, &ready, &deployment.ingress),
            provider: Provider::new(&client, &ready.daytona_api, &ready.daytona_api_key),
            state_dir: stack.state_dir(),
            ready,
            deployment,
            client,
        }
    }

    /// What reached the model so far.
    ///
    /// # Errors
    /// When its log cannot be read.
    pub async fn model_calls(&self) -> Result<Vec<Call>, String> {
        let base = self.ready.model_api.trim_end_matches('/');
        let base = base.strip_suffix("/v1").unwrap_or(base);
        model::read(
            &http::call(
                &self.client,
                Method::GET,
                &format!("{base}/calls"),
                &self.ready.control(),
                &Value::Null,
            )
            .await?
            .ok()?,
        )
    }

    /// The record of a thread.
    ///
    /// # Errors
    /// When there is none.
    pub async fn session(&self, thread: &ThreadKey) -> Result<Session, String> {
        self.aws.session(&self.deployment.table, thread).await
    }

    /// What a secret of the embedded engine holds, by its logical id.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn secret(&self, logical: &str) -> Result<Value, String> {
        let asked = json!({"SecretId": self.secret_id(logical)});
        let target = "secretsmanager.GetSecretValue";
        let answer = self.aws.call("secretsmanager", target, &asked).await?;
        let text = answer["SecretString"].as_str().unwrap_or_default();
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    /// Puts keys into a secret of the embedded engine, beside those that it holds; null takes one out.
    ///
    /// # Errors
    /// When it cannot be read or written.
    pub async fn store(&self, logical: &str, keys: &Value) -> Result<(), String> {
        let mut value = self.secret(logical).await?;
        for (name, key) in keys.as_object().into_iter().flatten() {
            match key {
                Value::Null => {
                    value.as_object_mut().and_then(|all| all.remove(name));
                }
                key => value[name] = key.clone(),
            }
        }
        let put = json!({"SecretId": self.secret_id(logical), "SecretString": value.to_string()});
        let target = "secretsmanager.PutSecretValue";
        self.aws
            .call("secretsmanager", target, &put)
            .await
            .map(drop)
    }

    /// The embedded engine names its resources `<stack>-<logical id>`, as the table's name shows.
    fn secret_id(&self, logical: &str) -> String {
        self.deployment.table.replace("Table", logical)
    }

    /// Lets the sweeper look now, instead of at the next full minute.
    ///
    /// # Errors
    /// When the function failed.
    pub async fn sweep(&self) -> Result<(), String> {
        self.aws
            .invoke(&self.deployment.sweeper, &json!({}))
            .await
            .map(|_| ())
    }

    /// The platforms deliver to this address from now on.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn deliver_to(&self, url: &str) -> Result<(), String> {
        let address = format!("{}/_control/ingress", self.ready.console);
        http::call(
            &self.client,
            Method::POST,
            &address,
            &self.ready.control(),
            &json!({"url": url}),
        )
        .await?
        .ok()
        .map(|_| ())
    }

    /// Somebody else who may use it.
    ///
    /// # Panics
    /// When the chat does not tell its people.
    pub async fn colleague(&self, platform: Platform) -> Person {
        let address = format!("{}/_control/seeds", self.ready.console);
        let control = self.ready.control();
        let seeds = http::call(&self.client, Method::GET, &address, &control, &Value::Null)
            .await
            .and_then(|answer| answer.ok())
            .unwrap_or_else(|why| panic!("{why}"));
        let id = match platform {
            Platform::Discord => &seeds["member_user_id"],
            Platform::Slack => &seeds["slack_member_user_id"],
        };
        Person {
            id: id.as_str().unwrap_or_default().to_owned(),
            name: "Sam".to_owned(),
        }
    }

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

    /// Arms a breakpoint at the embedded engine.
    ///
    /// # Panics
    /// When it is refused.
    pub async fn breakpoint(&self, condition: &Condition) -> Breakpoint {
        let engine = (
            self.deployment.aws_endpoint.as_str(),
            &*self.ready.control(),
        );
        Breakpoint::arm(&self.client, engine, condition)
            .await
            .unwrap_or_else(|why| panic!("no breakpoint: {why}"))
    }

    /// A test call of the embedded engine, below `/_bobbin/`.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn engine(&self, method: Method, path: &str, body: &Value) -> Result<Value, String> {
        let url = format!("{}/_bobbin/{path}", self.deployment.aws_endpoint);
        let control = self.ready.control();
        http::call(&self.client, method, &url, &control, body)
            .await?
            .ok()
    }

    /// Kills the processes of a function (by its logical id) as the system would. Answers which ones.
    ///
    /// # Errors
    /// When there is no such function.
    pub async fn kill(&self, function: &str) -> Result<Vec<u64>, String> {
        let path = format!("functions/{function}/kill");
        let answer = self.engine(Method::POST, &path, &Value::Null).await?;
        let killed = answer["killed"].as_array().cloned().unwrap_or_default();
        Ok(killed.iter().filter_map(Value::as_u64).collect())
    }

    /// Pushes the clock of the embedded engine's queues and schedules forward.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn advance_clock(&self, ms: u32) -> Result<(), String> {
        let body = json!({"advance_ms": ms});
        self.engine(Method::POST, "clock", &body).await.map(|_| ())
    }

    /// Nothing is under way any more: both queues are empty, and no sandbox is without a record.
    ///
    /// # Panics
    /// When it does not become so within its bound.
    pub async fn check_quiet(&self) {
        let queues = [
            &self.deployment.messages_queue_url,
            &self.deployment.control_queue_url,
        ];
        eventually(SEEN_MS_MAX, "the queues are empty", async || {
            for url in queues {
                match self.aws.queued(url).await? {
                    0 => {}
                    count => return Err(format!("{count} messages at {url}")),
                }
            }
            self.check_orphans().await
        })
        .await;
    }

    /// Every live sandbox belongs to a record's present generation; to be asked when nothing is under way.
    ///
    /// # Errors
    /// The names of the orphans.
    pub async fn check_orphans(&self) -> Result<(), String> {
        let sessions = self.aws.sessions(&self.deployment.table).await?;
        let owned = |one: &Sandbox| {
            sessions
                .iter()
                .any(|session| one.generation_of(&session.thread) == Some(session.generation))
        };
        let orphans: Vec<String> = self
            .provider
            .list()
            .await?
            .into_iter()
            .filter(|one| one.live() && !owned(one))
            .map(|one| one.name)
            .collect();
        if orphans.is_empty() {
            Ok(())
        } else {
            Err(format!("sandboxes that no record knows: {orphans:?}"))
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

    /// What only the person sees in this thread.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn whispers(&self) -> Result<Vec<Seen>, String> {
        match self.platform {
            Platform::Discord => self.world.discord.whispers(&self.thread).await,
            Platform::Slack => self.world.slack.whispers(&self.thread).await,
        }
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

    /// What stands in the thread, oldest first.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn messages(&self) -> Result<Vec<Seen>, String> {
        match self.platform {
            Platform::Discord => self.world.discord.messages(&self.thread.channel).await,
            Platform::Slack => self.world.slack.messages(&self.thread).await,
        }
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

    /// Waits for a word that only one person sees in this thread.
    ///
    /// # Panics
    /// When it is not told within its bound.
    pub async fn whispered(&self, words: &str) {
        eventually(SEEN_MS_MAX, &format!("{words:?} is told"), async || {
            let seen = self.whispers().await?;
            if seen.iter().any(|one| one.text.contains(words)) {
                Ok(())
            } else {
                Err(format!(
                    "{:?}",
                    seen.iter().map(|one| &one.text).collect::<Vec<_>>()
                ))
            }
        })
        .await;
    }

    /// Waits for a message that `wanted` takes.
    ///
    /// # Panics
    /// When there is none within `within_ms`.
    pub async fn see(&self, within_ms: u64, what: &str, wanted: impl Fn(&Seen) -> bool) -> Seen {
        eventually(within_ms, what, async || {
            let messages = self.messages().await?;
            let found = messages.iter().find(|one| wanted(one)).cloned();
            found.ok_or_else(|| {
                format!(
                    "{:?}",
                    messages.iter().map(|one| &one.text).collect::<Vec<_>>()
                )
            })
        })
        .await
    }

    /// The card of a turn.
    ///
    /// # Panics
    /// When it does not stand within its bound.
    pub async fn card(&self, turn: &str) -> Seen {
        let key = post_key(&self.thread.key, turn, &PostKind::Card);
        self.see(ANSWER_MS_MAX, "the card stands", |one| {
            one.key.as_deref() == Some(&key)
        })
        .await
    }

    /// Waits until the agent works on a turn.
    ///
    /// # Panics
    /// When it does not within its bound.
    pub async fn running(&self, turn: &str) -> Session {
        eventually(ANSWER_MS_MAX, "the turn runs", async || {
            let session = self.world.session(&self.thread.key).await?;
            let runs = session
                .turn
                .as_ref()
                .is_some_and(|now| now.id == turn && now.stage.is_running());
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
            found.ok_or_else(|| format!("phase {}, turn {:?}", session.phase.word(), session.turn))
        })
        .await;
        let card = self.card(turn).await;
        assert!(
            promises::says(&card, &ended.outcome),
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

    /// The words of a turn's answer, its parts joined.
    ///
    /// # Panics
    /// When the thread cannot be read.
    pub async fn answer(&self, turn: &str) -> String {
        let messages = self
            .messages()
            .await
            .unwrap_or_else(|why| panic!("the thread cannot be read: {why}"));
        let keys: Vec<String> = (0..10)
            .map(|index| post_key(&self.thread.key, turn, &PostKind::Chunk(index)))
            .collect();
        let parts = keys
            .iter()
            .filter_map(|key| messages.iter().find(|one| one.key.as_ref() == Some(key)));
        let text: Vec<String> = parts.map(|part| part.text.clone()).collect();
        // Who asked is called by a line below the answer.
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
        self.world
            .session(&self.thread.key)
            .await
            .unwrap_or_else(|why| panic!("{why}"))
    }

    /// The thread's only live sandbox.
    ///
    /// # Panics
    /// When there is none, or more than one.
    pub async fn sandbox(&self) -> Sandbox {
        let mut list = self
            .world
            .provider
            .of(&self.thread.key)
            .await
            .unwrap_or_else(|why| panic!("{why}"));
        list.retain(Sandbox::live);
        assert_eq!(list.len(), 1, "{list:?}");
        list.remove(0)
    }

    /// Everything that can be observed of it.
    ///
    /// # Errors
    /// What could not be read.
    pub async fn history(&self) -> Result<History, String> {
        Ok(History {
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
        eventually(SEEN_MS_MAX, "the promises hold", async || {
            let history = self.history().await?;
            promises::check(&history)?;
            self.check_status(history.session.turn.is_some()).await
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
