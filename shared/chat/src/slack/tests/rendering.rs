//! The visible form of posts, and rules that hold for any text.

use bobbin_core::base::ids::{PostRef, ThreadKey};
use bobbin_core::records::ask::{About, Ask, Opt, Question};
use bobbin_core::records::card::{
    Card, CardState, CardStep, OfferOfAll, OthersCommits, PlanLine, PlanLineState, Post,
    PublishOffer, Review, ReviewCard, StepState,
};
use bobbin_core::records::outcome::Outcome;
use bobbin_core::records::publication::BODY_CHARS_MAX;
use bobbin_core::records::sandbox::{Phase, SandboxRecord, SandboxSpec, Sharing};
use bobbin_core::records::usage::Usage;
use bobbin_core::shown::sandboxes::{ListContext, Listed, SandboxesPage};
use proptest::prelude::*;
use serde_json::Value;

use super::block_kit::problems;
use crate::pull_request::tests::a_card;
use crate::pull_review::tests::a_card as a_pull_review;
use crate::review::tests::{many_files, review as a_review};
use crate::slack::render::{self, AgentSessionStatus, CardStyle, RenderedBlocks};

fn card(state: CardState) -> Card {
    Card {
        turn: "slack_T1_C1_1790000000.000100".into(),
        state,
        steps: vec![
            CardStep { text: "Wrote src/main.rs".into(), state: StepState::Done },
            CardStep {
                text: "Running `cargo test` && echo <ok>".into(),
                state: StepState::Running,
            },
        ],
        plan: Vec::new(),
        earlier: 0,
        since_ms: 0,
        now_ms: 192_000,
        model: "anthropic/claude".into(),
        trouble: None,
        waiting: 0,
        publish: None,
        spending: None,
        set_up: None,
        ends_ms: None,
    }
}

fn ended(outcome: Outcome) -> CardState {
    CardState::Ended {
        outcome,
        usage: Usage { tokens: 12_345, cost_micro_usd: 40_000, ..Usage::default() },
    }
}

fn ask(about: About) -> Ask {
    Ask { id: "per_1".into(), about, expires_at_ms: 1_790_000_000_000, post: None, settled: false }
}

/// All readable text, without the structure.
fn read(rendered: &RenderedBlocks) -> String {
    fn walk(value: &Value, out: &mut String) {
        match value {
            Value::Object(object) => {
                if let Some(text) = object.get("text").and_then(Value::as_str) {
                    out.push_str(text);
                    out.push('\n');
                }
                object.values().for_each(|v| walk(v, out));
            }
            Value::Array(values) => values.iter().for_each(|v| walk(v, out)),
            _ => {}
        }
    }
    let mut out = String::new();
    rendered.blocks.iter().for_each(|block| walk(block, &mut out));
    out
}

fn elements(rendered: &RenderedBlocks) -> Vec<Value> {
    let actions = rendered.blocks.iter().filter(|block| block["type"] == "actions");
    actions.flat_map(|block| block["elements"].as_array().unwrap().clone()).collect()
}

#[test]
fn working_card_shows_steps_and_stop() {
    let shown = render::post(&Post::Card(card(CardState::Working)));
    assert_eq!(problems(&shown.text, &shown.blocks), Vec::<String>::new());
    let plan = &shown.blocks[0];
    assert_eq!(
        *plan,
        serde_json::json!({"type": "plan", "title": "Running `cargo test` && echo <ok>", "tasks": [
            {"type": "task_card", "task_id": "step-0", "title": "Wrote src/main.rs", "status": "complete"},
            {"type": "task_card", "task_id": "step-1", "title": "Running `cargo test` && echo <ok>", "status": "in_progress"},
        ]})
    );
    assert_eq!(read(&shown), "anthropic/claude · 3 min 12 s\nStop\n");
    let stop = &elements(&shown)[0];
    assert_eq!(
        (stop["action_id"].as_str(), stop["style"].as_str()),
        (Some("v1:stop"), Some("danger"))
    );
    assert_eq!(stop["value"], "slack_T1_C1_1790000000.000100");
    assert_eq!(shown.text, "Working");
}

#[test]
fn card_renders_as_lines() {
    let shown = render::post_as(&Post::Card(card(CardState::Working)), CardStyle::Lines);
    assert_eq!(problems(&shown.text, &shown.blocks), Vec::<String>::new());
    assert_eq!(
        read(&shown),
        "*Working*\n✓ Wrote src/main.rs\n… Running `cargo test` &amp;&amp; echo &lt;ok&gt;\nanthropic/claude · 3 min 12 s\nStop\n"
    );
}

#[test]
fn ended_plan_counts_and_completes_steps() {
    let step = |n: usize| CardStep { text: format!("Step {n}"), state: StepState::Running };
    let long = Card { steps: (0..60).map(step).collect(), ..card(ended(Outcome::Answered)) };
    let shown = render::post(&Post::Card(long));
    assert_eq!(problems(&shown.text, &shown.blocks), Vec::<String>::new());
    let tasks = shown.blocks[0]["tasks"].as_array().unwrap();
    assert_eq!(
        (tasks.len(), &tasks[0]["title"], &tasks[1]["task_id"]),
        (50, &"11 earlier steps".into(), &"step-11".into())
    );
    assert!(tasks.iter().all(|task| task["status"] == "complete"));
    assert_eq!(shown.blocks[0]["title"], "Done");
}

#[test]
fn ended_card_shows_usage_hides_stop() {
    let shown = render::post(&Post::Card(card(ended(Outcome::Answered))));
    assert!(
        read(&shown).contains("anthropic/claude · took 3 min 12 s · 12,345 tokens · $0.04"),
        "{}",
        read(&shown)
    );
    assert!(elements(&shown).is_empty());
    assert_eq!(shown.text, "Done, after 3 min 12 s");
    for state in [CardState::Stopping, ended(Outcome::Cancelled { by: "anna".into() })] {
        assert!(elements(&render::post(&Post::Card(card(state)))).is_empty());
    }
}

#[test]
fn failed_card_shows_reason_and_advice() {
    let shown = render::post(&Post::Card(card(ended(Outcome::Failed {
        reason: "The model's key is <invalid>.".into(),
    }))));
    let words = read(&shown);
    assert!(
        words.starts_with("The model's key is &lt;invalid&gt;.")
            && words.contains("send another message"),
        "{words}"
    );
    assert!(shown.text.starts_with("Failed. The model's key"));
    let lost = read(&render::post(&Post::Card(card(ended(Outcome::Lost)))));
    assert!(lost.contains("\"Run again\" repeats the task"), "{lost}");
    let again = &elements(&render::post(&Post::Card(card(ended(Outcome::Lost)))))[0];
    assert_eq!(
        (again["action_id"].as_str(), again["value"].as_str()),
        (Some("v1:again"), Some("slack_T1_C1_1790000000.000100"))
    );
}

#[test]
fn queued_card_counts_ahead_offers_withdraw() {
    let shown = render::post(&Post::Card(card(CardState::Queued { ahead: 2, now: false })));
    assert_eq!(shown.text, "Queued. 2 tasks come before it.");
    let labels = |shown: &RenderedBlocks| -> Vec<String> {
        let label = |button: &Value| button["text"]["text"].as_str().unwrap().to_owned();
        elements(shown).iter().map(label).collect()
    };
    assert_eq!(labels(&shown), ["Withdraw", "Stop all"]);
    assert_eq!(elements(&shown)[0]["action_id"], "v1:stop");
    let shown = render::post(&Post::Card(card(CardState::Queued { ahead: 1, now: true })));
    assert_eq!(labels(&shown), ["Send now", "Withdraw", "Stop all"]);
    let busy = Card { waiting: 2, ends_ms: None, ..card(CardState::Working) };
    let shown = render::post(&Post::Card(busy));
    assert_eq!(labels(&shown), ["Stop", "Stop all"]);
    assert!(read(&shown).contains("2 more waiting"), "{}", read(&shown));
}

#[test]
fn only_named_users_are_mentioned() {
    let calling = |ids: &[&str]| {
        render::post(&Post::Calling {
            people: ids.iter().map(|id| (*id).to_owned()).collect(),
            post: Box::new(Post::Chunk {
                text: "see <@U999> and @channel".into(),
                last: true,
                file: None,
                card: None,
            }),
        })
    };
    let shown = calling(&["U123"]);
    assert_eq!(problems(&shown.text, &shown.blocks), Vec::<String>::new());
    assert_eq!(shown.blocks[1]["text"]["text"], "<@U123>");
    assert_eq!(shown.text.matches("<@").count(), 1);
    for bad in ["", "!channel", "U1>", "C123", "u123"] {
        assert_eq!(calling(&[bad]).blocks.len(), 1, "{bad}");
    }
    let moved = render::post(&Post::Moved {
        to: PostRef { channel: "C1".into(), id: "1790000000.000200".into() },
        link: Some(render::link(
            "https://a.slack.com/",
            Some("1790000000.000100"),
            &PostRef { channel: "C1".into(), id: "1790000000.000200".into() },
        )),
    });
    assert_eq!(problems(&moved.text, &moved.blocks), Vec::<String>::new());
    assert!(read(&moved).contains(
        "<https://a.slack.com/archives/C1/p1790000000000200?thread_ts=1790000000.000100&amp;cid=C1|"
    ), "{}", read(&moved));
}

#[test]
fn stopped_card_names_the_person() {
    let by = |by: &str| {
        read(&render::post(&Post::Card(card(ended(Outcome::Cancelled { by: by.into() })))))
    };
    assert!(by("U0ANNA00001").contains("By <@U0ANNA00001>."));
    assert!(by("anna <x>").contains("By anna &lt;x&gt;."));
    assert!(by("!channel").contains("By !channel."));
}

#[test]
fn permission_shows_command_and_three_answers() {
    let about = About::Permission {
        action: "bash".into(),
        subject: "rm -rf ```<tmp>".into(),
        left_out: 0,
        places: ["/tmp/*".into()].into(),
        always: ["rm *".into()].into(),
    };
    let shown = render::post(&Post::Ask { ask: ask(about.clone()), settled: None });
    assert_eq!(problems(&shown.text, &shown.blocks), Vec::<String>::new());
    assert!(
        read(&shown).contains("run a command") && read(&shown).contains("rm -rf ˋˋˋ&lt;tmp&gt;"),
        "{}",
        read(&shown)
    );
    let buttons: Vec<(String, String)> = elements(&shown)
        .iter()
        .map(|b| {
            (
                b["text"]["text"].as_str().unwrap().to_owned(),
                b["value"].as_str().unwrap().to_owned(),
            )
        })
        .collect();
    let expected =
        [("Allow Once", "per_1:once"), ("Allow Always", "per_1:always"), ("Deny", "per_1:reject")];
    assert_eq!(buttons, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
    assert!(
        read(&shown).contains("covers `rm *`")
            && read(&shown).contains("outside of its folder: `/tmp/*`")
    );
    let settled =
        render::post(&Post::Ask { ask: ask(about), settled: Some("Denied by anna & co".into()) });
    assert!(elements(&settled).is_empty() && read(&settled).contains("Denied by anna &amp; co"));
    assert!(settled.text.contains("Denied by anna"));
}

#[test]
fn long_command_counts_hidden_characters() {
    let about = About::Permission {
        action: "bash".into(),
        subject: "x".repeat(20_000),
        left_out: 5,
        places: [].into(),
        always: [].into(),
    };
    let shown = render::post(&Post::Ask { ask: ask(about), settled: None });
    assert_eq!(problems(&shown.text, &shown.blocks), Vec::<String>::new());
    assert!(
        read(&shown).contains("11029 more characters are not shown"),
        "{}",
        shown.blocks.last().unwrap()
    );
}

fn question(labels: &[String], multiple: bool, free: bool) -> Question {
    let options =
        labels.iter().map(|label| Opt { label: label.clone(), description: String::new() });
    Question {
        header: "Choice".into(),
        text: "Which?".into(),
        options: options.collect(),
        multiple,
        free,
    }
}

fn asked(questions: Vec<Question>) -> RenderedBlocks {
    let shown = render::post(&Post::Ask { ask: ask(About::Question { questions }), settled: None });
    assert_eq!(problems(&shown.text, &shown.blocks), Vec::<String>::new());
    shown
}

/// The inputs of a message: action id and type of each.
fn inputs(shown: &RenderedBlocks) -> Vec<String> {
    let inputs = shown.blocks.iter().filter(|block| block["type"] == "input");
    let told = |block: &Value| {
        let element = &block["element"];
        format!("{} {}", element["action_id"].as_str().unwrap(), element["type"].as_str().unwrap())
    };
    inputs.map(told).collect()
}

fn pressed(shown: &RenderedBlocks) -> Vec<String> {
    let value = |element: &Value| element["value"].as_str().unwrap().to_owned();
    elements(shown).iter().map(value).collect()
}

#[test]
fn many_options_become_inputs() {
    let labels = |n: usize| (0..n).map(|i| format!("Option {i}")).collect::<Vec<_>>();
    let few = asked(vec![question(&labels(2), false, false)]);
    assert_eq!(pressed(&few), ["per_1:o0", "per_1:o1", "per_1:reject"]);
    assert!(inputs(&few).is_empty());
    let other = asked(vec![question(&labels(2), false, true)]);
    assert_eq!(pressed(&other), ["per_1:o0", "per_1:o1", "per_1:send", "per_1:reject"]);
    assert_eq!(inputs(&other), ["v1:field:w0 plain_text_input"]);
    let many = asked(vec![question(&labels(120), false, false)]);
    assert_eq!(inputs(&many), ["v1:field:s0 static_select"]);
    assert_eq!(many.blocks[1]["text"]["text"], "20 more options cannot be shown.");
    let long: Vec<String> = (0..40).map(|n| format!("{n} {}", "word ".repeat(30))).collect();
    let listed = asked(vec![question(&long, false, false)]);
    let list = listed.blocks[1]["text"]["text"].as_str().unwrap();
    let shown = list.lines().count() - 1;
    let told = format!("\n{} more options cannot be shown in full.", 40 - shown);
    assert!(shown > 5 && list.ends_with(&told), "{list}");
    let several = asked(vec![question(&labels(3), true, true)]);
    assert_eq!(
        inputs(&several),
        ["v1:field:s0 multi_static_select", "v1:field:w0 plain_text_input"]
    );
    let open = asked(vec![question(&[], false, false)]);
    assert_eq!((inputs(&open).len(), pressed(&open).len()), (1, 2));
    assert_eq!(pressed(&asked(vec![])), ["per_1:reject"]);
}

#[test]
fn several_questions_are_one_form() {
    let labels = |n: usize| (0..n).map(|i| format!("Option {i}")).collect::<Vec<_>>();
    let form = asked(vec![
        question(&labels(2), false, true),
        question(&labels(3), true, false),
        question(&[], false, true),
    ]);
    assert_eq!(
        inputs(&form),
        [
            "v1:field:s0 static_select",
            "v1:field:w0 plain_text_input",
            "v1:field:s1 multi_static_select",
            "v1:field:w2 plain_text_input"
        ]
    );
    assert_eq!(pressed(&form), ["per_1:send", "per_1:reject"]);
    asked(vec![question(&labels(100), true, true); 10]);
    let settled = render::post(&Post::Ask {
        ask: ask(About::Question { questions: vec![question(&labels(2), false, true); 2] }),
        settled: Some("Robin answered:\nChoice: <a>\nChoice: b".into()),
    });
    assert!(inputs(&settled).is_empty() && elements(&settled).is_empty());
    assert!(
        read(&settled).contains("Robin answered:\n• Choice: &lt;a&gt;\n• Choice: b"),
        "{}",
        read(&settled)
    );
}

#[test]
fn answer_is_markdown_without_pings() {
    let text = "# Done\n\n```rust\nif a < b && c > d {}\n```\n<!channel> <@U123> @here";
    let shown =
        render::post(&Post::Chunk { text: text.into(), last: true, file: None, card: None });
    assert_eq!(shown.blocks[0]["type"], "markdown");
    assert_eq!(
        shown.blocks[0]["text"],
        "# Done\n\n```rust\nif a &lt; b && c > d {}\n```\n&lt;!channel> &lt;@U123> ＠here"
    );
    assert!(shown.text.contains("&lt;!channel&gt;"));
}

#[test]
fn message_carries_key_without_unfurling() {
    let shown = render::post(&Post::Notice("Paused.".into()));
    let new = render::message("C1", Some("1.2"), "abc", &shown);
    assert_eq!(
        new["metadata"],
        serde_json::json!({"event_type": "bobbin", "event_payload": {"op_id": "abc"}})
    );
    assert_eq!(
        (&new["thread_ts"], &new["unfurl_links"], &new["unfurl_media"]),
        (&"1.2".into(), &false.into(), &false.into())
    );
    let edit = render::update(&PostRef { channel: "C1".into(), id: "1.3".into() }, "abc", &shown);
    assert!(edit["ts"] == "1.3" && edit["blocks"].is_array() && edit.get("thread_ts").is_none());
}

#[test]
fn session_status_follows_the_card() {
    let of = |state: CardState| AgentSessionStatus::of(&state).map(AgentSessionStatus::word);
    assert_eq!(of(CardState::Creating), Some("processing"));
    assert_eq!(of(CardState::Waiting), Some("suspended"));
    assert_eq!(of(ended(Outcome::Lost)), Some("active"));
    // Another turn runs there, and the status belongs to that one.
    assert_eq!(of(CardState::Queued { ahead: 1, now: false }), None);
}

/// Text made of troublesome pieces.
fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("<!channel>".to_owned()),
        Just("<!everyone|x>".to_owned()),
        Just("<!subteam^S1>".to_owned()),
        Just("<@U0123456>".to_owned()),
        Just("<#C0123456|x>".to_owned()),
        Just("@channel".to_owned()),
        Just("@Here".to_owned()),
        Just("&&&&<<<<>>>>".to_owned()),
        Just("```".to_owned()),
        Just("\n\r\t\u{0}\u{202e}".to_owned()),
        Just("😀👩‍👩‍👧".to_owned()),
        Just("İß\u{301}".to_owned()),
        "[a-z<>&@!# ]{0,40}",
        ".{0,20}",
        Just("<!here>".repeat(600)),
        Just("x&".repeat(7_000)),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

fn any_post() -> impl Strategy<Value = Post> {
    let step_state =
        prop_oneof![Just(StepState::Running), Just(StepState::Done), Just(StepState::Failed)];
    let steps = prop::collection::vec((hostile(), step_state), 0..30);
    let outcome = prop_oneof![
        Just(Outcome::Answered),
        Just(Outcome::Lost),
        hostile().prop_map(|turn| Outcome::Joined { turn: turn.into() }),
        hostile().prop_map(|reason| Outcome::Failed { reason }),
        hostile().prop_map(|by| Outcome::Cancelled { by }),
    ];
    let usage =
        (any::<u64>(), any::<u64>(), any::<u32>()).prop_map(|(tokens, cost_micro_usd, files)| {
            Usage {
                tokens,
                cost_micro_usd,
                files,
                added: tokens,
                removed: tokens,
                files_unknown: false,
            }
        });
    let state = prop_oneof![
        Just(CardState::Received),
        Just(CardState::Queued { ahead: 3, now: true }),
        Just(CardState::Working),
        Just(CardState::Waiting),
        (outcome, usage).prop_map(|(outcome, usage)| CardState::Ended { outcome, usage }),
    ];
    let card = (
        hostile(),
        state,
        steps,
        any::<u64>(),
        any::<u64>(),
        hostile(),
        prop::option::of(hostile()),
    )
        .prop_map(|(turn, state, steps, since_ms, now_ms, model, trouble)| {
            let planned = |(text, _): &(String, StepState)| PlanLine {
                text: text.clone(),
                state: PlanLineState::Now,
            };
            let plan = steps.iter().map(planned).collect();
            let steps = steps.into_iter().map(|(text, state)| CardStep { text, state }).collect();
            Post::Card(Card {
                turn: turn.into(),
                state,
                plan,
                earlier: usize::try_from(since_ms % 1_000).unwrap_or(0),
                steps,
                since_ms,
                now_ms,
                model,
                trouble,
                waiting: 2,
                publish: Some(PublishOffer::Open),
                spending: None,
                set_up: None,
                ends_ms: None,
            })
        });
    let about = prop_oneof![
        (hostile(), hostile(), prop::collection::vec(hostile(), 0..5)).prop_map(
            |(action, subject, always)| About::Permission {
                action,
                subject,
                left_out: 7,
                places: always.clone().into(),
                always: always.into(),
            }
        ),
        prop::collection::vec(any_question(), 0..10)
            .prop_map(|questions| About::Question { questions }),
    ];
    let ask = (hostile(), about, any::<u64>(), prop::option::of(hostile())).prop_map(
        |(id, about, expires_at_ms, settled)| Post::Ask {
            ask: Ask {
                id: id.into(),
                about,
                expires_at_ms,
                post: None,
                settled: settled.is_some(),
            },
            settled,
        },
    );
    let review = (hostile(), hostile(), hostile()).prop_map(|(subject, body, name)| {
        let names =
            Review { repository: name.clone(), branch: name.clone(), ..a_review(&subject, &body) };
        Post::Review(Review { into: name, ..names })
    });
    let pull_request = hostile().prop_map(|name| Post::PullRequest(a_card(&name)));
    prop_oneof![
        card,
        ask,
        review,
        pull_request,
        hostile().prop_map(|text| Post::Chunk { text, last: true, file: None, card: None }),
        hostile().prop_map(Post::Notice),
    ]
}

fn any_question() -> impl Strategy<Value = Question> {
    let options = prop::collection::vec((hostile(), hostile()), 0..12).prop_map(|options| {
        let option = |(label, description)| Opt { label, description };
        options.into_iter().map(option).collect()
    });
    (hostile(), hostile(), options, any::<bool>(), any::<bool>()).prop_map(
        |(header, text, options, multiple, free)| Question {
            header,
            text,
            options,
            multiple,
            free,
        },
    )
}

/// Whether text contains a token of Slack's, or a bare broadcast. Our own date token and the name of the person who
/// stopped do not count.
fn pings(text: &str) -> bool {
    has_token(text) || has_broadcast(text)
}

/// The text outside code, where the words of a `markdown` block must be no broadcast.
fn prose(markdown: &str) -> String {
    let mut out = String::new();
    let mut copied = 0;
    for code in bobbin_core::text::code(markdown) {
        out.push_str(&markdown[copied..code.start]);
        out.push_str(" … ");
        copied = code.end;
    }
    out + &markdown[copied..]
}

fn has_token(text: &str) -> bool {
    text.match_indices('<').any(|(at, _)| {
        let rest = &text[at + 1..];
        let sign = rest.starts_with(['!', '@', '#']);
        sign && rest[1..].starts_with(|c: char| c.is_ascii_alphanumeric())
            && !rest.starts_with("!date^")
    })
}

fn has_broadcast(text: &str) -> bool {
    let lower = text.to_lowercase();
    let bare = |word: &str| {
        lower.match_indices(word).any(|(at, _)| {
            let before = lower[..at].chars().next_back().is_some_and(char::is_alphanumeric);
            let after =
                lower[at + word.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
            !before && !after
        })
    };
    bare("@channel") || bare("@here") || bare("@everyone")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn posts_fit_limits_and_never_ping(post in any_post()) {
        for style in [CardStyle::Plan, CardStyle::Lines] {
            let shown = render::post_as(&post, style);
            prop_assert_eq!(problems(&shown.text, &shown.blocks), Vec::<String>::new());
            prop_assert!(!pings(&shown.text), "{}", shown.text);
            for block in &shown.blocks {
                let one = RenderedBlocks { text: String::new(), blocks: vec![block.clone()] };
                let words = read(&one);
                let may_ping = match block["type"].as_str() {
                    Some("markdown") => words.contains('<') || has_broadcast(&prose(&words)),
                    _ => pings(&words),
                };
                prop_assert!(!may_ping, "{}", words);
            }
            for task in shown.blocks[0]["tasks"].as_array().into_iter().flatten() {
                prop_assert!(!pings(task["title"].as_str().unwrap()), "{}", task);
            }
        }
    }

    #[test]
    fn private_words_fit_limits_never_ping(text in hostile()) {
        let words = render::free(&text);
        for arguments in [render::ephemeral("C1", Some("1.2"), "U1", &words), render::direct_message("D1", None, &words)] {
            let blocks = arguments["blocks"].as_array().unwrap();
            prop_assert_eq!(problems(arguments["text"].as_str().unwrap(), blocks), Vec::<String>::new());
            let words = blocks[0]["text"].as_str().unwrap();
            prop_assert!(!words.contains('<') && !has_broadcast(&prose(words)), "{}", words);
        }
    }
}

#[test]
fn ended_card_shows_changes_and_diff() {
    let usage = Usage { files: 3, added: 12, removed: 4, ..Usage::default() };
    let state = |outcome| CardState::Ended { outcome, usage };
    let shown = render::post(&Post::Card(card(state(Outcome::Answered))));
    let blocks = serde_json::to_string(&shown.blocks).unwrap();
    assert!(blocks.contains("took 3 min 12 s · 3 files changed, +12 -4"), "{blocks}");
    let labels = |shown: &RenderedBlocks| -> Vec<String> {
        let last = shown.blocks.last().unwrap();
        let buttons = last["elements"].as_array().unwrap().iter();
        buttons.map(|one| one["text"]["text"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(labels(&shown), ["View diff"]);
    let lost = render::post(&Post::Card(card(state(Outcome::Lost))));
    assert_eq!(labels(&lost), ["Run again", "View diff"]);
    let offered = Card { publish: Some(PublishOffer::Update), ..card(state(Outcome::Answered)) };
    let offered = render::post(&Post::Card(offered));
    assert_eq!(labels(&offered), ["View diff", "Update pull request"]);
    assert_eq!(elements(&offered)[1]["action_id"], "v1:publish:show");
    let set_up = Some("set up in 4 s".to_owned());
    let set_up = Card { set_up, ..card(state(Outcome::Answered)) };
    let set_up = render::post(&Post::Card(set_up));
    assert_eq!(labels(&set_up), ["View diff", "Set-up log"]);
    assert_eq!(elements(&set_up)[1]["action_id"], "v1:set-up");
}

fn button_labels(shown: &RenderedBlocks) -> Vec<String> {
    let label = |one: &Value| one["text"]["text"].as_str().unwrap().to_owned();
    elements(shown).iter().map(label).collect()
}

#[test]
fn review_shows_all_that_is_published() {
    let review = Review {
        is_public: true,
        workflows: 1,
        others: Some(OthersCommits::Unmerged),
        ..a_review("Add a *login* page", "Closes #\u{200b}12 for <!channel> @here\n```\ncode\n```")
    };
    let shown = render::post(&Post::Review(review.clone()));
    assert_eq!(problems(&shown.text, &shown.blocks), Vec::<String>::new());
    let sections: Vec<&str> = shown
        .blocks
        .iter()
        .filter_map(|block| {
            block["text"]["text"].as_str().or(block["elements"][0]["text"].as_str())
        })
        .collect();
    assert_eq!(
        sections,
        [
            "*A draft pull request*\n`acme/api`: `main` ← `bobbin/add-login-01234567`, commit `0123456789ab`",
            "*Subject*\n```\nAdd a *login* page\n```",
            "*Text*\n```\nCloses #␣12 for &lt;!channel&gt; ＠here\n``ˋ\ncode\n``ˋ\n```",
            "*3 files change*\n```\nA src/login.rs\nM src/main.rs\nD src/old.rs\n```",
            "Contains commits of others, which the branch does not have.\nA push starts this repository's workflows (1 file).\nThe repository is public: everybody can read what is published.",
            "␣ stands for a space that is not shown: it keeps words from mentioning somebody.",
            "To change subject or text, edit them here and press *Show edited text*. The other button publishes what stands above it.",
        ]
    );
    assert_eq!(button_labels(&shown), ["Open draft pull request", "Show edited text"]);
    let push = &elements(&shown)[0];
    assert_eq!(push["action_id"], "v1:publish:push");
    assert_eq!(push["value"], "0123456789abcdef0123456789abcdef01234567");
    assert_eq!(shown.text, "A draft pull request of acme/api: Add a *login* page");
    let ready = render::post(&Post::Review(Review { is_draft: false, ..review.clone() }));
    assert_eq!(button_labels(&ready)[0], "Open pull request");
    let all = Some(OfferOfAll { name: "0123456789abcdef01234567".to_owned(), repositories: 2 });
    let several = render::post(&Post::Review(Review { all, ..review.clone() }));
    assert_eq!(problems(&several.text, &several.blocks), Vec::<String>::new());
    assert_eq!(
        button_labels(&several),
        ["Open draft pull request", "Publish all 2", "Show edited text"]
    );
    let update = render::post(&Post::Review(Review { offer: PublishOffer::Update, ..review }));
    assert_eq!(button_labels(&update)[0], "Update pull request");
}

#[test]
fn agents_review_shows_all_that_is_posted() {
    let shown = render::post(&Post::PullReview(a_pull_review("Why, <!channel> @here? ```x```")));
    assert_eq!(problems(&shown.text, &shown.blocks), Vec::<String>::new());
    let sections: Vec<&str> = shown
        .blocks
        .iter()
        .filter_map(|block| {
            block["text"]["text"].as_str().or(block["elements"][0]["text"].as_str())
        })
        .collect();
    assert_eq!(
        sections,
        [
            "*A review of pull request #12* of `acme/api`, commit `0123456789ab`\n1 comment on lines.",
            "```\nWhy, &lt;!channel&gt; ＠here? ``ˋx``ˋ\n\nsrc/a.rs:3\nWhy, &lt;!channel&gt; ＠here? ``ˋx``ˋ\n```",
            "Nothing is posted before somebody presses the button.",
        ]
    );
    assert_eq!(button_labels(&shown), ["Post review"]);
    let button = &elements(&shown)[0];
    assert_eq!(button["action_id"], "v1:publish:review");
    assert_eq!(button["value"], "0123456789abcdef01234567");
    // What the card cannot show stands in the file, or there is nothing to press.
    for c in ["word ", "漢", "&", "\u{202e}"] {
        let long = a_pull_review(&c.repeat(20_000 / c.len()));
        let cut = render::post(&Post::PullReview(long.clone()));
        assert_eq!(problems(&cut.text, &cut.blocks), Vec::<String>::new());
        assert_eq!(button_labels(&cut), [""; 0]);
        assert!(read(&cut).contains("so it cannot be posted"), "{}", read(&cut));
        let with_file = render::post(&Post::PullReview(ReviewCard { has_file: true, ..long }));
        assert_eq!(problems(&with_file.text, &with_file.blocks), Vec::<String>::new());
        assert_eq!(button_labels(&with_file), ["Post review"]);
        assert!(read(&with_file).contains("review.txt"), "{}", read(&with_file));
    }
}

#[test]
fn pull_request_card_has_its_buttons() {
    let shown = render::post(&Post::PullRequest(a_card("lint")));
    assert_eq!(problems(&shown.text, &shown.blocks), Vec::<String>::new());
    assert_eq!(button_labels(&shown), ["Fix", "Ready for review"]);
    let button = &elements(&shown)[1];
    assert_eq!(button["action_id"], "v1:act:ready");
    assert_eq!(button["value"], "0123456789abcdef0123456789abcdef01234567");
}

#[test]
fn longest_review_fits_slack() {
    for c in ["x", "漢", "&"] {
        let body = c.repeat(BODY_CHARS_MAX);
        let longest =
            Review { files: many_files(), files_total: 120, ..a_review(&c.repeat(120), &body) };
        let shown = render::post(&Post::Review(longest));
        assert_eq!(problems(&shown.text, &shown.blocks), Vec::<String>::new());
        assert_eq!(button_labels(&shown), ["Open draft pull request", "Show edited text"]);
        assert!(read(&shown).contains("\nand 97 more\n"), "{}", read(&shown));
    }
    let hidden = render::post(&Post::Review(a_review("Add", &"\u{202e}".repeat(400))));
    assert_eq!(problems(&hidden.text, &hidden.blocks), Vec::<String>::new());
    assert_eq!(button_labels(&hidden), ["Show edited text"]);
    assert!(read(&hidden).contains("so it cannot be published"), "{}", read(&hidden));
}

#[test]
fn card_shows_plan_and_earlier_steps() {
    let item = |text: &str, state| PlanLine { text: text.to_owned(), state };
    let shown = render::post(&Post::Card(Card {
        plan: vec![
            item("read", PlanLineState::Done),
            item("fix <it>", PlanLineState::Now),
            item("test", PlanLineState::Next),
            item("ship", PlanLineState::Dropped),
        ],
        earlier: 12,
        ..card(CardState::Working)
    }));
    assert_eq!(problems(&shown.text, &shown.blocks), Vec::<String>::new());
    assert_eq!(shown.blocks[1]["text"]["text"], "☑ read\n▶ *fix &lt;it&gt;*\n☐ test\n☐ ~ship~");
    let tasks = shown.blocks[0]["tasks"].as_array().unwrap();
    assert_eq!(tasks[0]["title"], "12 earlier steps");
    assert!(tasks.len() > 1);
    let state = |n| if n < 20 { PlanLineState::Done } else { PlanLineState::Next };
    let plan = (0..40).map(|n| item(&format!("item {n}"), state(n))).collect();
    let long = render::post(&Post::Card(Card { plan, ..card(CardState::Working) }));
    let text = long.blocks[1]["text"]["text"].as_str().unwrap();
    assert!(text.starts_with("☑ item 16\n☑ item 17"), "{text}");
    assert!(text.ends_with("☐ item 27\nand 28 more"), "{text}");
}

#[test]
fn only_short_patch_is_shown_inline() {
    let patch = "1 file changed, +1 -0\n  a.txt (new, +1 -0)\n\ndiff --git a/a.txt b/a.txt\n+one\n";
    assert_eq!(
        render::diff(patch).as_deref(),
        Some(
            "```\n1 file changed, +1 -0\n  a.txt (new, +1 -0)\n```\n```diff\ndiff --git a/a.txt b/a.txt\n+one\n```"
        )
    );
    assert_eq!(render::diff(&format!("{patch}{}", "+x\n".repeat(2_000))), None);
    assert_eq!(render::diff(&format!("{patch}+```\n")), None);
    assert_eq!(render::diff_summary(patch), "```1 file changed, +1 -0\n  a.txt (new, +1 -0)```");
}

fn in_channel(root_ts: &str) -> ThreadKey {
    ThreadKey::slack("T1", "C1", root_ts).unwrap()
}

fn listed(name: &str, phase: Phase) -> Listed {
    let record = SandboxRecord {
        phase,
        last_activity_ms: 60_000,
        sharing: Sharing {
            name: Some(name.parse().unwrap()),
            threads: [in_channel("1.1"), ThreadKey::slack("T1", "D1", "2.2").unwrap()].into(),
            ..Sharing::default()
        },
        spec: SandboxSpec { provider: Some("daytona".to_owned()), ..SandboxSpec::default() },
        ..SandboxRecord::default()
    };
    Listed::of(&in_channel("1.1").sandbox(), &record)
}

fn page(all: Vec<Listed>, page: usize, in_thread: bool) -> RenderedBlocks {
    let place = ListContext { thread: in_channel("9.9"), in_thread, here: None };
    render::sandboxes(&SandboxesPage::of(all, page, place, 120_000))
}

fn labels(rendered: &RenderedBlocks) -> Vec<String> {
    let label = |one: Value| one["text"]["text"].as_str().unwrap().to_owned();
    elements(rendered).into_iter().map(label).collect()
}

#[test]
fn list_shows_sandboxes_with_their_actions() {
    let shown = page(vec![listed("frontend", Phase::Active)], 0, true);
    assert_eq!(problems(&shown.text, &shown.blocks), Vec::<String>::new());
    assert!(
        read(&shown).contains("*frontend*\ndaytona · running · used 1 min 0 s ago · 2 threads"),
        "{}",
        read(&shown)
    );
    assert_eq!(labels(&shown), ["Connect", "Stop", "Snapshot", "Destroy"]);
    assert_eq!(elements(&shown)[0]["value"], "slack:T1:C1:9.9 slack:T1:C1:1.1");
    let elsewhere = page(vec![listed("frontend", Phase::Paused)], 0, false);
    assert_eq!(labels(&elsewhere), ["Start", "Snapshot", "Destroy"]);
    let none = page(Vec::new(), 0, true);
    assert_eq!(problems(&none.text, &none.blocks), Vec::<String>::new());
}

#[test]
fn full_list_page_fits_slack() {
    let all: Vec<Listed> =
        (0..12).map(|n| listed(&format!("{}-{n:02}", "x".repeat(37)), Phase::Active)).collect();
    for (number, turns) in [(0, vec!["Next"]), (1, vec!["Previous", "Next"]), (2, vec!["Previous"])]
    {
        let shown = page(all.clone(), number, true);
        assert_eq!(problems(&shown.text, &shown.blocks), Vec::<String>::new());
        let mut labels = labels(&shown);
        labels.retain(|label| label == "Previous" || label == "Next");
        assert_eq!(labels, turns, "page {number}");
    }
}

#[test]
fn destroy_confirmation_names_losses() {
    let mut sandbox = listed("frontend", Phase::Active);
    sandbox.in_use = vec![in_channel("1.1")];
    let asked = render::ask_destroy(&in_channel("9.9"), &sandbox, 120_000);
    assert_eq!(problems(&asked.text, &asked.blocks), Vec::<String>::new());
    let words = "*Destroy frontend?*\n• The task that runs in it will be stopped: in <#C1>.\n• 2 threads work in it and will be notified: in <#C1>, in our direct message.\n• Everything in it that was not pushed will be lost, and its name becomes free.";
    assert!(read(&asked).contains(words), "{}", read(&asked));
    assert_eq!(labels(&asked), ["Destroy", "Cancel"]);
}

#[test]
fn waiting_card_links_known_holder() {
    let holder = Some(in_channel("1.1"));
    let waits = card(CardState::Shared { holder });
    let shown = render::post(&Post::Card(waits.clone()));
    let words = "Waits until another thread in <#C1> is done: both work in the same directory.";
    assert!(read(&shown).contains(words), "{}", read(&shown));
    let link = "https://acme.slack.com/archives/C1/p11";
    let linked = render::card_linked(&waits, CardStyle::Plan, link);
    assert!(
        read(&linked).contains(
            "Waits until <https://acme.slack.com/archives/C1/p11|another thread> in <#C1> is done"
        ),
        "{}",
        read(&linked)
    );
    assert_eq!(problems(&linked.text, &linked.blocks), Vec::<String>::new());
    assert_eq!(labels(&linked), ["Stop"]);
}

#[test]
fn card_shows_when_sandbox_is_deleted() {
    let soon = Card { ends_ms: Some(1_795_300_600_000), ..card(CardState::Working) };
    let shown = render::post(&Post::Card(soon));
    let text = Value::from(shown.blocks.clone()).to_string();
    assert!(text.contains("deletes this sandbox at <!date^1795300600^{time}|"), "{text}");
    assert_eq!(problems(&shown.text, &shown.blocks), Vec::<String>::new());
}
