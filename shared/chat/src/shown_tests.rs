//! Rules for the display of the agent's work that hold on every chat.

use bobbin_core::records::ask::{About, Ask, Opt, Question};
use bobbin_core::records::card::{
    Card, CardState, CardStep, PlanLine, PlanLineState, Post, StepState,
};
use bobbin_core::text::{is_hidden, visible};
use serde_json::Value;

use crate::review::tests::review;
use crate::{discord, pull_request, pull_review, slack};

/// Every post in which text of the agent is approved, chosen or shown as a step, with this text in all places.
fn posts(text: &str) -> Vec<Post> {
    let ask = |about| Ask {
        id: "per_1".into(),
        about,
        expires_at_ms: 1_790_000_000_000,
        post: None,
        settled: false,
    };
    let permission = |action: &str| About::Permission {
        action: action.to_owned(),
        subject: format!("run {text} now"),
        left_out: 0,
        places: [text.to_owned()].into(),
        always: [text.to_owned()].into(),
    };
    let question = |options: usize, multiple: bool| Question {
        header: text.to_owned(),
        text: text.to_owned(),
        options: vec![Opt { label: text.to_owned(), description: text.to_owned() }; options],
        multiple,
        free: true,
    };
    let questions = |questions| About::Question { questions };
    let abouts = [
        permission("bash"),
        permission(text),
        questions(vec![question(2, false)]),
        questions(vec![question(9, true)]),
        questions(vec![question(0, false), question(3, false)]),
    ];
    let asks = abouts.into_iter().flat_map(|about| {
        [None, Some(format!("Allowed by {text}.\n{text}"))]
            .map(|settled| Post::Ask { ask: ask(about.clone()), settled })
    });
    let step = |state| CardStep { text: format!("Ran `{text}`"), state };
    let item = |state| PlanLine { text: text.to_owned(), state };
    let card = Card {
        ends_ms: None,
        turn: "slack_T1_C1_1790000000.000100".into(),
        state: CardState::Working,
        steps: vec![step(StepState::Done), step(StepState::Failed), step(StepState::Running)],
        plan: vec![item(PlanLineState::Done), item(PlanLineState::Now), item(PlanLineState::Next)],
        earlier: 0,
        since_ms: 0,
        now_ms: 192_000,
        model: text.to_owned(),
        trouble: None,
        waiting: 0,
        publish: None,
        spending: None,
        set_up: None,
    };
    let pull_review = Post::PullReview(pull_review::tests::a_card(text));
    let pull_request = Post::PullRequest(pull_request::tests::a_card(text));
    asks.chain([Post::Card(card), Post::Review(review(text, text)), pull_review, pull_request])
        .collect()
}

/// All texts of a body.
fn texts(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::String(text) => into.push(text.clone()),
        Value::Array(all) => all.iter().for_each(|one| texts(one, into)),
        Value::Object(all) => all.values().for_each(|one| texts(one, into)),
        _ => {}
    }
}

/// The rendering of a post on each chat.
fn renderings(post: &Post) -> Vec<(&'static str, Value)> {
    use slack::render::CardStyle;
    let rendered = [CardStyle::Plan, CardStyle::Lines].map(|style| {
        let slack = slack::render::post_as(post, style);
        ("Slack", serde_json::json!([slack.text, slack.blocks]))
    });
    let mut all = vec![("Discord", discord::render::post(post).body)];
    all.extend(rendered);
    all
}

#[test]
fn posts_contain_no_hidden_characters() {
    let characters = ('\u{0}'..='\u{e01ff}').filter(|c| {
        (is_hidden(*c) || c.is_control()) && !matches!(c, '\n' | '\t') && !c.is_whitespace()
    });
    // A few at a time, so that nothing is cut; each follows a letter, where it has no effect on other characters.
    let characters: Vec<char> = characters.collect();
    for some in characters.chunks(3) {
        let text: String = some.iter().flat_map(|c| ['x', *c]).collect();
        for post in posts(&text) {
            for (chat, body) in renderings(&post) {
                let mut all = Vec::new();
                texts(&body, &mut all);
                for shown in all {
                    assert_eq!(visible(&shown), shown, "{chat}: {some:?} of {post:?}");
                }
            }
        }
    }
}
