//! The daemon's nudge in a sandbox, end to end: with the next poll ten minutes away, an end and an ask are reported at
//! once, and a nudge achieves nothing but an earlier poll.

use std::collections::BTreeMap;
use std::time::Instant;

use bobbin_core::base::ids::{Ms, ThreadKey, TurnId};
use bobbin_core::base::limits::NUDGE_APART_MS;
use bobbin_core::records::outcome::Outcome;
use bobbin_core::records::parked::Parked;
use bobbin_core::tokens::nudge::NudgeToken;
use bobbin_tests::breakpoints::Condition;
use bobbin_tests::chat::Platform;
use bobbin_tests::limits::ANSWER_MS_MAX;
use bobbin_tests::shared::Shared;
use bobbin_tests::stack::{Options, Stack};
use bobbin_tests::talk::{Talk, marked};
use bobbin_tests::wait::eventually;
use bobbin_tests::world::World;
use bobbin_tests::{http, processes};
use futures::future::join_all;
use libtest_mimic::Trial;
use reqwest::Method;
use serde_json::{Value, json};

use crate::asks::{answered, asked, settled};
use crate::looks::parked;
use crate::run::{on, seldom, trial};
use crate::security::{Search, Searched, Secret, everything};

/// A run is followed for two seconds and then polled every ten minutes, in a sandbox whose daemon can call.
pub static CALLED: Shared = Shared::with_options(|| options(seldom(), &json!({})));

/// Nudges that one sandbox sends at once.
const FLOOD: usize = 1_000;
/// This many of them at the same time.
const FLOOD_ABREAST: usize = 8;

fn options(limits: Value, overrides: &Value) -> Options {
    Options {
        parameters: json!({"SandboxRuntimeMode": "native", "Overrides": overrides.to_string()}),
        ..Options::lean(limits)
    }
}

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for platform in Platform::ALL {
        let name = |what: &str| format!("nudges::{}::{what}", platform.word());
        trials.push(on(&CALLED, &name("nudge_reports_an_end_immediately"), async move |world| {
            ended(world, platform).await
        }));
        trials.push(on(&CALLED, &name("nudge_shows_an_ask_immediately"), async move |world| {
            ask(world, platform).await
        }));
    }
    trials.push(on(&CALLED, "nudges::invalid_or_flooding_nudges_are_harmless", harmless));
    trials.push(on(&CALLED, "nudges::end_during_release_is_reported_once", given_back));
    trials.push(trial("nudges::poll_reports_end_without_nudges", no_way_out));
    trials.push(trial("nudges::killed_nudged_worker_leaks_no_token", killed));
    trials
}

/// A script whose run ends right after it has written down the time.
fn timed(seconds: u32) -> String {
    format!("slow: {seconds} one two three four five six\nrun: date +%s%3N > ended.txt")
}

/// Creating this folder ends the run of [`until_told`].
const TOLD: &str = "told";
/// Commands that wait for it one after the other, each for less time than the agent allows a command.
const WAITS: usize = 6;

/// A script whose run ends when the test says so, in ten minutes at the latest.
fn until_told() -> String {
    let wait = format!(
        "run: i=0; until [ -d {TOLD} ] || [ $i -ge 500 ]; do i=$((i+1)); sleep 0.2; done\n"
    );
    format!("slow: 4 one two three\n{}run: date +%s%3N > ended.txt", wait.repeat(WAITS))
}

/// When such a script's run ended, by the sandbox's clock.
async fn run_ended_ms(talk: &Talk<'_>) -> Ms {
    let sandbox = talk.sandbox().await;
    let written = talk.world.provider.download(&sandbox, "ended.txt").await;
    written.unwrap().trim().parse().unwrap()
}

/// The end of a turn in the queue, reported before the next poll was due; returns the milliseconds after the run's own
/// end.
async fn told(talk: &Talk<'_>, turn: &str, before: &Parked) -> u64 {
    let ended = talk.ended(turn).await;
    assert_eq!(ended.outcome, Outcome::Answered);
    assert!(ended.at_ms < before.until_ms, "it waited for the next look after all");
    ended.at_ms.saturating_sub(run_ended_ms(talk).await)
}

async fn ended(world: World, platform: Platform) {
    let (talk, turn) = world.begin(platform, &timed(10)).await;
    let first = parked(&talk, 1).await;
    let took_ms = told(&talk, &turn, &first).await;
    println!("{}: told {took_ms} ms after the run's last command, with the nudge", platform.word());
    talk.finish().await;
}

async fn ask(world: World, platform: Platform) {
    let lines = "slow: 8 one two three four five six\nquestion: Which colour? | red | blue\nslow: 6 one two three four";
    let (talk, turn) = world.begin(platform, lines).await;
    let first = parked(&talk, 1).await;
    let ask = asked(&talk, "blue").await;
    let now = world.parked(&talk.thread.key).await.unwrap();
    assert!(now.at_ms < first.until_ms, "it waited for the next look after all");
    talk.press(&ask, "blue").await;
    settled(&talk, &ask, &["answered: blue"]).await;
    answered(&talk, &turn, &["was answered: blue"]).await;
    talk.finish().await;
}

/// A caller that calls like the daemons.
struct Caller {
    client: reqwest::Client,
    url: String,
    stack_key: String,
}

impl Caller {
    async fn of(world: &World) -> Self {
        let secret = world.secret("StackKey").await.unwrap();
        Self {
            client: http::client(),
            url: format!("{}/nudge", world.ready.ingress),
            stack_key: secret["stack_key"].as_str().unwrap().to_owned(),
        }
    }

    fn token(&self, thread: &ThreadKey, turn: &str) -> String {
        let token = NudgeToken { thread: thread.clone(), turn: TurnId::from(turn) };
        token.signed(&self.stack_key).expose().to_owned()
    }

    async fn call(&self, token: &str) -> u16 {
        let bearer = format!("Bearer {token}");
        let answer = http::call(&self.client, Method::POST, &self.url, &bearer, &Value::Null).await;
        answer.unwrap().status
    }
}

async fn harmless(world: World) {
    let caller = Caller::of(&world).await;
    let (mut talk, turn) = world.begin(Platform::Discord, &until_told()).await;
    let token = caller.token(&talk.thread.key, &turn);
    let first = parked(&talk, 1).await;

    // Forged tokens, and tokens for others.
    let other = ThreadKey::discord("1", "2").unwrap();
    let (name, tag) = token.rsplit_once('.').unwrap();
    let turned = format!("{name}.{}", tag.chars().rev().collect::<String>());
    for forged in ["", "bobbin-nudge.61.62.63", &token[1..]] {
        assert_eq!(caller.call(forged).await, 401, "{forged}");
    }
    // A token that only its signature would make right has no effect.
    assert_eq!(caller.call(&turned).await, 409);
    for (thread, turn) in [(&talk.thread.key, "another"), (&other, turn.as_str())] {
        let token = caller.token(thread, turn);
        assert_eq!(caller.call(&token).await, 409, "{turn}");
    }
    let now = world.parked(&talk.thread.key).await.unwrap();
    assert_eq!(now, first, "somebody looked");

    // A thousand with valid tokens.
    let began = Instant::now();
    let mut said: BTreeMap<u16, usize> = BTreeMap::new();
    for _ in 0..FLOOD / FLOOD_ABREAST {
        for status in join_all((0..FLOOD_ABREAST).map(|_| caller.call(&token))).await {
            *said.entry(status).or_default() += 1;
        }
    }
    let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap();
    let now = world.parked(&talk.thread.key).await.unwrap();
    let looks = u64::from(now.receive - first.receive);
    println!("{FLOOD} words in {took_ms} ms: {said:?}, {looks} looks");
    // A table that is slow beside other work makes ingress answer 503, after which a daemon asks again as after a 409.
    assert!(said.keys().all(|status| [202, 409, 503].contains(status)), "{said:?}");
    assert!(looks >= 1, "they brought no look at all");
    assert!(looks <= took_ms / NUDGE_APART_MS + 1, "{looks} in {took_ms} ms");
    let running = talk.session().await.turn.map(|turn| turn.tries.attempts);
    assert_eq!(running, Some(0), "one of them counts as a failure");
    let sandbox = talk.sandbox().await;
    world.provider.make_folder(&sandbox, TOLD).await.unwrap();
    told(&talk, &turn, &now).await;

    // Late, and during the next one.
    assert_eq!(caller.call(&token).await, 409);
    let next = talk.say(&timed(8)).await;
    let before = parked_of(&talk, &next).await;
    assert_eq!(caller.call(&token).await, 409);
    told(&talk, &next, &before).await;
    talk.finish().await;
}

/// The state that was left of this turn.
async fn parked_of(talk: &Talk<'_>, turn: &str) -> Parked {
    eventually(ANSWER_MS_MAX, "the turn is given back", async || {
        let parked = talk.world.parked(&talk.thread.key).await?;
        if parked.turn == turn { Ok(parked) } else { Err(format!("{parked:?}")) }
    })
    .await
}

/// The call with which the first delivery returns the turn to the queue is held until after the run's end.
async fn given_back(world: World) {
    for platform in Platform::ALL {
        let (text, mark) = marked(&timed(8));
        let gives_back = Condition {
            text: mark.clone(),
            function: "Worker".to_owned(),
            call: "sqs ChangeMessageVisibility".to_owned(),
            // Claimed before: the message, and on Discord the command that opens the thread.
            nth: match platform {
                Platform::Discord => 3,
                Platform::Slack => 2,
            },
            after: false,
        };
        let breakpoint = world.breakpoint(&gives_back).await;
        let (talk, turn) = world.begin_marked(platform, &text, &mark).await;
        let held = async || breakpoint.held_process().await;
        eventually(ANSWER_MS_MAX, "it is being given back", held).await;
        let first = parked(&talk, 1).await;
        told(&talk, &turn, &first).await;
        breakpoint.remove().await.unwrap();
        talk.finish().await;
    }
}

/// Its own stack, whose daemons call an address where nobody listens.
async fn no_way_out() {
    let mut limits = seldom();
    limits["look_ms_min"] = json!(8_000);
    limits["look_ms_max"] = json!(20_000);
    let nowhere = json!({"nudge_url": "http://127.0.0.1:9/nudge"});
    let stack = Stack::start(&Options {
        environment: vec![("BOBBIN_LOG".to_owned(), "info".to_owned())],
        ..options(limits, &nowhere)
    });
    let world = World::of(&stack);
    for platform in Platform::ALL {
        let (talk, turn) = world.begin(platform, &timed(6)).await;
        parked(&talk, 1).await;
        assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
        let ended = talk.ended(&turn).await;
        let took_ms = ended.at_ms.saturating_sub(run_ended_ms(&talk).await);
        println!(
            "{}: told {took_ms} ms after the run's last command, without a way out, looks 8 s apart",
            platform.word()
        );
        talk.finish().await;
    }
    let log = std::fs::read_to_string(stack.folder().path().join("output.log")).unwrap();
    assert!(log.contains("message.taken"), "the functions' log is there");
    assert!(!log.contains("poll.forward"), "somebody brought a look forward");
    stack.end().unwrap();
}

/// Its own stack with the most verbose logs: a crash during a poll costs six seconds.
async fn killed() {
    let mut limits = seldom();
    limits["visibility_ms"] = json!(6_000);
    limits["heartbeat_ms"] = json!(2_000);
    limits["lifecycle_call_ms"] = json!(5_000);
    let stack = Stack::start(&Options {
        environment: [("BOBBIN_LOG", "trace"), ("BOBBIN_LOG_LEVEL", "trace")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec(),
        ..options(limits, &json!({}))
    });
    let world = World::of(&stack);
    let caller = Caller::of(&world).await;
    let (mut tokens, mut talks) = (Vec::new(), Vec::new());
    for platform in Platform::ALL {
        let (text, mark) = marked(&timed(10));
        let (talk, turn) = world.begin_marked(platform, &text, &mark).await;
        let first = parked(&talk, 1).await;
        let reads = Condition {
            text: mark,
            function: "Worker".to_owned(),
            call: "dynamodb BatchGetItem".to_owned(),
            nth: 1,
            after: true,
        };
        let breakpoint = world.breakpoint(&reads).await;
        let held = async || breakpoint.held_process().await;
        let looks = eventually(ANSWER_MS_MAX, "the nudge brings a look", held).await;
        processes::kill(looks);
        breakpoint.remove().await.unwrap();
        told(&talk, &turn, &first).await;
        let token = caller.token(&talk.thread.key, &turn);
        tokens.push(Secret::new(format!("nudge of {turn}"), token));
        talks.push(talk);
    }
    // While the sandboxes with their daemons' logs exist.
    let search = Search::new(&tokens);
    let all = everything(&world, stack.folder().path()).await;
    for there in ["the table", "output.log"] {
        let said = |place: &&Searched| place.name.contains(there) && !place.text.is_empty();
        assert!(all.iter().any(|place| said(&place)), "{there}");
    }
    let found: Vec<_> = all.iter().flat_map(|place| search.find(place)).collect();
    assert!(found.is_empty(), "{found:#?}");
    for talk in talks {
        talk.finish().await;
    }
    stack.end().unwrap();
}
