//! Questions and permissions of the agent: shown, answered in every possible way, settled once, expired as no, and kept
//! when the worker crashes.

use bobbin_core::records::outcome::Outcome;
use bobbin_tests::chat::{ChatMessage, Platform};
use bobbin_tests::limits::VISIBLE_MS_MAX;
use bobbin_tests::stack::{Options, Stack, quick};
use bobbin_tests::talk::Talk;
use bobbin_tests::wait::eventually;
use bobbin_tests::world::World;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::run::{CHAT, brisk, on, trial};
use crate::scenarios::Scenario;

pub const ALL: [Scenario; 7] = [
    ("button_answers_a_question", |world, on| Box::pin(button(world, on))),
    ("free_text_answers_a_question", |world, on| Box::pin(own_words(world, on))),
    ("a_select_takes_several_options", |world, on| Box::pin(several(world, on))),
    ("three_questions_are_one_form", |world, on| Box::pin(form(world, on))),
    ("skipped_question_ends_the_run", |world, on| Box::pin(skipped(world, on))),
    ("late_decider_sees_first_decision", |world, on| Box::pin(second(world, on))),
    ("permission_shows_command_and_always_scope", |world, on| Box::pin(permission(world, on))),
];

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for platform in Platform::ALL {
        for (name, scenario) in ALL {
            let name = format!("asks::{}::{name}", platform.word());
            trials.push(on(&CHAT, &name, async move |world| scenario(world, platform).await));
        }
    }
    trials.push(on(&CHAT, "asks::discord::many_questions_are_answered_in_lines", lines));
    trials.push(trial("asks::expired_ask_counts_as_no", expired));
    trials.push(trial("asks::ask_survives_its_workers_death", async || killed(quick(), "").await));
    trials.push(trial("asks::ask_survives_polling_workers_death", async || {
        killed(brisk(), "slow: 6 one two three four\n").await
    }));
    trials
}

/// The ask with this button.
pub async fn asked(talk: &Talk<'_>, button: &str) -> ChatMessage {
    talk.see(VISIBLE_MS_MAX * 2, &format!("an ask with {button:?} stands"), |one| {
        one.button(button).is_some()
    })
    .await
}

/// The ask after a decision: these words, and nothing to press.
pub async fn settled(talk: &Talk<'_>, ask: &ChatMessage, words: &[&str]) {
    let shown = talk
        .see(VISIBLE_MS_MAX, "the ask says how it was settled", |one| {
            one.id == ask.id && one.buttons.is_empty()
        })
        .await;
    for words in words {
        assert!(shown.text.contains(words), "{words:?}: {}", shown.text);
    }
}

/// The turn is answered with these words.
pub async fn answered(talk: &Talk<'_>, turn: &str, words: &[&str]) {
    assert_eq!(talk.ended(turn).await.outcome, Outcome::Answered);
    let answer = talk.answer(turn).await;
    for words in words {
        assert!(answer.contains(words), "{words:?}: {answer}");
    }
}

/// The label of a form's button.
const fn form_button(platform: Platform) -> &'static str {
    match platform {
        Platform::Discord => "Answer…",
        Platform::Slack => "Send Answers",
    }
}

async fn button(world: World, platform: Platform) {
    let (talk, turn) =
        world.begin(platform, "question: Which colour? | red | dark blue = like the sea").await;
    let ask = asked(&talk, "dark blue").await;
    for words in ["Which colour?", "like the sea", "Skip"] {
        assert!(ask.text.contains(words), "{}", ask.text);
    }
    talk.press(&ask, "dark blue").await;
    answered(&talk, &turn, &["was answered: dark blue"]).await;
    settled(&talk, &ask, &["Which colour?", "answered: dark blue"]).await;
    talk.finish().await;
}

async fn own_words(world: World, platform: Platform) {
    let (talk, turn) = world.begin(platform, "question: Which colour? | red | dark blue").await;
    let other = match platform {
        Platform::Discord => "Other answer…",
        Platform::Slack => "Send Other Answer",
    };
    let ask = asked(&talk, other).await;
    talk.fill(&ask, other, &json!({"w0": "2 of *them*"})).await;
    answered(&talk, &turn, &["was answered: 2 of *them*"]).await;
    settled(&talk, &ask, &["answered: 2 of"]).await;
    talk.finish().await;
}

async fn several(world: World, platform: Platform) {
    let (talk, turn) = world
        .begin(platform, "question: [Extras, several] What else? | cheese | olives | basil")
        .await;
    let ask = asked(&talk, "Skip").await;
    match platform {
        Platform::Discord => {
            let select = format!("v1:pick:{}", open_ask(&talk).await);
            let chosen = world.discord.choose(&talk.thread, &ask, &select, &["o0", "o2"]);
            chosen.await.unwrap();
        }
        Platform::Slack => {
            talk.fill(&ask, "Send Answer", &json!({"s0": ["o0", "o2"]})).await;
        }
    }
    answered(&talk, &turn, &["was answered: cheese, basil"]).await;
    settled(&talk, &ask, &["answered: cheese, basil"]).await;
    talk.finish().await;
}

/// The id of the open ask.
async fn open_ask(talk: &Talk<'_>) -> String {
    let session = talk.session().await;
    let asks = session.turn.map(|turn| turn.asks).unwrap_or_default();
    let open = asks.into_iter().find(|ask| !ask.settled);
    open.expect("an ask is open").id.to_string()
}

async fn form(world: World, platform: Platform) {
    let (talk, turn) = world
        .begin(
            platform,
            "question: [DB] Which database? | Postgres = relational | SQLite = a file // [Region, several] Where? | eu | us | asia // [Why] Why do we need it?",
        )
        .await;
    let ask = asked(&talk, form_button(platform)).await;
    for words in ["Which database?", "SQLite", "asia", "Why do we need it?"] {
        assert!(ask.text.contains(words), "{words:?}: {}", ask.text);
    }
    // The sender is told what is missing, and nothing is decided.
    let part = json!({"s1": ["o2"], "w2": "for tests"});
    talk.fill(&ask, form_button(platform), &part).await;
    talk.whispered("Question 1 (DB) has no answer yet").await;

    let whole = json!({"s0": "o1", "s1": ["o0", "o2"], "w1": "and the moon", "w2": "for tests"});
    talk.fill(&ask, form_button(platform), &whole).await;
    let told = [
        "“Which database?” was answered: SQLite",
        "“Where?” was answered: eu, asia, and the moon",
        "“Why do we need it?” was answered: for tests",
    ];
    answered(&talk, &turn, &told).await;
    let told = ["answered:", "DB: SQLite", "Region: eu, asia, and the moon", "Why: for tests"];
    settled(&talk, &ask, &told).await;
    talk.finish().await;
}

async fn skipped(world: World, platform: Platform) {
    let (talk, turn) = world.begin(platform, "question: Which colour? | red | blue").await;
    let ask = asked(&talk, "Skip").await;
    talk.press(&ask, "Skip").await;
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    settled(&talk, &ask, &["Skipped by"]).await;
    talk.finish().await;
}

async fn second(world: World, platform: Platform) {
    let (talk, turn) = world.begin(platform, "ask: sleep 12; echo the first one counts").await;
    let ask = asked(&talk, "Allow once").await;
    let id = open_ask(&talk).await;
    let sam = world.colleague(platform).await;
    talk.press(&ask, "Allow once").await;
    settled(&talk, &ask, &["Allowed once by"]).await;
    talk.click(&sam, &ask, &id, "reject").await;
    talk.whispered("This was already decided: Allowed once by").await;
    answered(&talk, &turn, &["the first one counts"]).await;
    talk.click(&sam, &ask, &id, "always").await;
    talk.whispered("This is no longer open").await;
    settled(&talk, &ask, &["Allowed once by"]).await;
    talk.finish().await;
}

async fn permission(world: World, platform: Platform) {
    let (talk, turn) = world.begin(platform, "ask: echo one two\nask: echo three").await;
    let ask = asked(&talk, "Allow always").await;
    for words in ["cat /dev/null; echo one two", "covers `/dev/*`"] {
        assert!(ask.text.contains(words), "{words:?}: {}", ask.text);
    }
    talk.press(&ask, "Allow always").await;
    // The second command is covered: nobody is asked again.
    answered(&talk, &turn, &["one two", "three"]).await;
    settled(&talk, &ask, &["Allowed from now on by", "cat /dev/null; echo one two"]).await;
    let asks = talk.messages().await.unwrap();
    let asks = asks
        .iter()
        .filter(|one| one.text.contains("cat /dev/null; echo") && one.text.contains("Allowed"));
    assert_eq!(asks.count(), 1);
    talk.finish().await;
}

async fn lines(world: World) {
    let questions: Vec<String> =
        (1..=7).map(|n| format!("[Part {n}] How is part {n}? | good | bad")).collect();
    let prompt = format!("question: {}", questions.join(" // "));
    let (talk, turn) = world.begin(Platform::Discord, &prompt).await;
    let ask = asked(&talk, "Answer…").await;
    assert!(ask.text.contains("7 questions"), "{}", ask.text);
    let typed = "1: 1\n2: bad\n3: so so\n4) 2\n5: good\n6: 1";
    talk.fill(&ask, "Answer…", &json!({ "x": typed })).await;
    talk.whispered("Question 7 (Part 7) has no answer yet").await;
    let typed = format!("{typed}\n7: as it was");
    talk.fill(&ask, "Answer…", &json!({ "x": typed })).await;
    let told = [
        "part 2?” was answered: bad",
        "part 3?” was answered: so so",
        "part 7?” was answered: as it was",
    ];
    answered(&talk, &turn, &told).await;
    settled(&talk, &ask, &["Part 1: good", "Part 4: bad", "Part 7: as it was"]).await;
    talk.finish().await;
}

/// Its own stack, where asks expire within seconds.
async fn expired() {
    let mut limits = quick();
    limits["ask_ms"] = json!(4_000);
    let stack = Stack::start(&Options::lean(limits));
    let world = World::of(&stack);
    for platform in Platform::ALL {
        let (talk, turn) = world.begin(platform, "ask: touch never.txt\necho: after").await;
        let ask = asked(&talk, "Allow once").await;
        let id = open_ask(&talk).await;
        settled(&talk, &ask, &["Nobody decided in time, so it counts as no."]).await;
        assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
        let sandbox = talk.sandbox().await;
        let file = world.provider.download(&sandbox, "never.txt").await;
        assert!(file.is_err(), "it ran without a yes");
        let sam = world.colleague(platform).await;
        talk.click(&sam, &ask, &id, "once").await;
        talk.whispered("This is no longer open").await;
        talk.finish().await;
    }
    stack.end().unwrap();
}

/// Its own stack: its worker is killed, and a crash costs seconds.
async fn killed(mut limits: Value, first: &str) {
    for (name, ms) in [
        ("visibility_ms", 15_000),
        ("heartbeat_ms", 3_000),
        ("lifecycle_call_ms", 10_000),
        // Polls are far apart: a kill between a message's receipt and its claim costs the queue's own sixteen minutes.
        ("look_ms_min", 3_000),
    ] {
        limits[name] = json!(ms);
    }
    let stack = Stack::start(&Options::lean(limits));
    let world = World::of(&stack);
    let prompt = format!("{first}question: Which colour? | red | blue");
    for platform in Platform::ALL {
        let (talk, turn) = world.begin(platform, &prompt).await;
        let ask = asked(&talk, "blue").await;
        let killed = world.kill("Worker").await.unwrap();
        assert!(!killed.is_empty(), "no worker was there to be killed");
        talk.press(&ask, "blue").await;
        answered(&talk, &turn, &["was answered: blue"]).await;
        settled(&talk, &ask, &["answered: blue"]).await;
        let shown = eventually(VISIBLE_MS_MAX, "the ask stands once", async || {
            let messages = talk.messages().await?;
            let asks = messages.iter().filter(|one| {
                one.text.contains("answered: blue")
                    && one.text.contains("Which colour?")
                    && one.key == ask.key
            });
            Ok::<_, String>(asks.count())
        })
        .await;
        assert_eq!(shown, 1);
        talk.finish().await;
    }
    stack.end().unwrap();
}
