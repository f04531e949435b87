use bobbin_core::base::ids::{PostRef, SandboxKey, ThreadKey};
use bobbin_core::base::person::Person;
use bobbin_core::records::ask::{About, Ask, Opt, Question};
use bobbin_core::records::card::{
    Card, CardState, CardStep, OfferOfAll, OthersCommits, PlanLine, PlanLineState, PublishOffer,
    Review, ReviewCard, StepState,
};
use bobbin_core::records::message::{Prompt, Reply};
use bobbin_core::records::outcome::Outcome;
use bobbin_core::records::publication::BODY_CHARS_MAX;
use bobbin_core::records::sandbox::{Phase, SandboxRecord, SandboxSpec, Sharing};
use bobbin_core::records::usage::Usage;
use bobbin_core::shown::sandboxes::{ListContext, Listed, SandboxesPage};
use bobbin_core::text::{span, thousands};
use proptest::prelude::*;

use super::super::check::assert_fits;
use super::*;
use crate::pull_request::tests::a_card as a_pull_request;
use crate::pull_review::tests::a_card as a_pull_review;
use crate::review::tests::{many_files, pieces, review as a_review};

const CREATE: &str = "/channels/{channel_id}/messages";
const EDIT: &str = "/channels/{channel_id}/messages/{message_id}";
const ORIGINAL: &str = "/webhooks/{webhook_id}/{webhook_token}/messages/@original";
const FOLLOW_UP: &str = "/webhooks/{webhook_id}/{webhook_token}";
const THREAD: &str = "/channels/{channel_id}/messages/{message_id}/threads";

fn assert_postable(body: &Value) {
    assert_fits(CREATE, "post", &with_nonce(body.clone(), &"0".repeat(24)));
    assert_fits(EDIT, "patch", body);
}

fn a_card(state: CardState) -> Card {
    let steps = vec![
        CardStep { text: "Wrote src/main_file.rs".to_owned(), state: StepState::Done },
        CardStep { text: "Running cargo test".to_owned(), state: StepState::Failed },
    ];
    Card {
        turn: "1182".into(),
        state,
        plan: Vec::new(),
        steps,
        earlier: 0,
        since_ms: 1_795_300_000_000,
        now_ms: 1_795_300_012_000,
        model: "openai/gpt".to_owned(),
        trouble: None,
        waiting: 0,
        publish: None,
        spending: None,
        set_up: None,
        ends_ms: None,
    }
}

#[test]
fn card_shows_when_sandbox_is_deleted() {
    let soon = Card { ends_ms: Some(1_795_300_600_000), ..a_card(CardState::Working) };
    let body = card(&soon);
    assert_postable(&body);
    assert!(body.to_string().contains("deletes this sandbox <t:1795300600:R>"));
    let body = card(&a_card(CardState::Working));
    assert!(!body.to_string().contains("deletes"));
}

fn states() -> Vec<CardState> {
    let usage = Usage { tokens: 1_234, cost_micro_usd: 12_000, ..Usage::default() };
    let ended = |outcome| CardState::Ended { outcome, usage };
    vec![
        CardState::Received,
        CardState::Queued { ahead: 2, now: true },
        CardState::Shared { holder: Some(ThreadKey::discord("1", "22").expect("a key")) },
        CardState::Creating,
        CardState::Resuming,
        CardState::Working,
        CardState::Waiting,
        CardState::Stopping,
        ended(Outcome::Answered),
        ended(Outcome::Failed { reason: "The model answers 500. Try again later.".to_owned() }),
        ended(Outcome::Cancelled { by: "Sam".to_owned() }),
        ended(Outcome::Lost),
        ended(Outcome::Joined { turn: "1181".into() }),
    ]
}

fn an_ask(about: About) -> Ask {
    Ask { id: "per_01".into(), about, expires_at_ms: 1_795_300_000_000, post: None, settled: false }
}

fn an_open(text: &str, name: &str) -> Open {
    Open {
        id: "1".into(),
        guild: "2".to_owned(),
        channel: "3".to_owned(),
        accepted_at_ms: 0,
        prompt: Prompt {
            text: text.to_owned(),
            by: Person { id: "4".to_owned(), name: name.to_owned() },
            ..Prompt::default()
        },
        reply: Reply::Discord { application: "5".to_owned(), token: "t".to_owned() },
    }
}

fn labels(body: &Value) -> Vec<String> {
    fn walk(value: &Value, into: &mut Vec<String>) {
        into.extend(value["label"].as_str().map(str::to_owned));
        value["components"].as_array().into_iter().flatten().for_each(|part| walk(part, into));
    }
    let mut found = Vec::new();
    walk(body, &mut found);
    found
}

#[test]
fn every_card_state_has_its_buttons() {
    for state in states() {
        let body = card(&a_card(state.clone()));
        assert_postable(&body);
        let labels = labels(&body);
        let expected: &[&str] = match &state {
            CardState::Stopping => &["Stopping…"],
            CardState::Ended { outcome: Outcome::Answered | Outcome::Joined { .. }, .. } => &[],
            CardState::Ended { outcome: Outcome::Lost | Outcome::Failed { .. }, .. } => {
                &["Reply", "Run again"]
            }
            CardState::Ended { .. } => &["Reply"],
            CardState::Queued { now: true, .. } => &["Send now", "Withdraw", "Stop all"],
            CardState::Queued { now: false, .. } => &["Withdraw", "Stop all"],
            _ => &["Stop"],
        };
        assert_eq!(labels, expected, "{state:?}");
    }
    let busy = Card { waiting: 2, ..a_card(CardState::Working) };
    let body = card(&busy);
    assert_postable(&body);
    assert_eq!(labels(&body), ["Stop", "Stop all"]);
    assert!(body.to_string().contains("2 more waiting"), "{body}");
}

#[test]
fn only_named_people_are_mentioned() {
    let people = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
    let calling = |ids: &[&str], inner: Post| {
        post(&Post::Calling { people: people(ids), post: Box::new(inner) }).body
    };
    let part = || Post::Chunk {
        text: "see <@999> and @everyone".to_owned(),
        last: true,
        file: None,
        card: None,
    };
    let body = calling(&["123"], part());
    assert_eq!(body["content"], "see <@999> and @everyone\n<@123>");
    assert_eq!(body["allowed_mentions"], json!({"parse": [], "users": ["123"]}));
    let long = Post::Chunk {
        text: "x".repeat(super::super::CHUNK_UNITS),
        last: true,
        file: None,
        card: None,
    };
    let body = calling(&["1"; 9], long);
    assert!(units(body["content"].as_str().unwrap_or_default()) <= 2_000);
    let moved = Post::Moved {
        to: PostRef { channel: "1".into(), id: "2".into() },
        link: Some(link("7", "1", "2")),
    };
    let body = post(&moved).body;
    assert_postable(&body);
    assert!(body.to_string().contains("https://discord.com/channels/7/1/2"));
    assert_eq!(body["allowed_mentions"], json!({"parse": []}));
    for bad in ["", "everyone", "1>", "&1", "123456789012345678901"] {
        let body = calling(&[bad], part());
        assert_eq!(body["allowed_mentions"], json!({"parse": []}), "{bad}");
        assert_eq!(body["content"], "see <@999> and @everyone", "{bad}");
    }
    // On a card made of components, the mention is a separate part.
    let body = calling(&["123"], Post::Card(a_card(CardState::Waiting)));
    assert_postable(&body);
    assert_eq!(body["components"][1]["content"], "<@123>");
}

#[test]
fn card_names_what_is_retried() {
    let mut shown = a_card(CardState::Creating);
    shown.trouble = Some("Daytona **does not** answer".to_owned());
    let body = card(&shown);
    assert_postable(&body);
    assert!(
        body.to_string().contains(r"Trying again: Daytona \\*\\*does not\\*\\* answer"),
        "{body}"
    );
}

#[test]
fn step_command_stays_inert_code_span() {
    let mut shown = a_card(CardState::Working);
    shown.steps =
        vec![CardStep { text: "Running `echo **x** && ls`".to_owned(), state: StepState::Running }];
    let body = card(&shown).to_string();
    assert!(body.contains("… Running `echo **x** && ls`\""), "{body}");
}

#[test]
fn card_shows_plan_and_earlier_steps() {
    let item = |text: &str, state| PlanLine { text: text.to_owned(), state };
    let shown = Card {
        plan: vec![
            item("read", PlanLineState::Done),
            item("fix *it*", PlanLineState::Now),
            item("test", PlanLineState::Next),
            item("ship", PlanLineState::Dropped),
        ],
        earlier: 12,
        ..a_card(CardState::Working)
    };
    let body = card(&shown);
    assert_postable(&body);
    let text = body.to_string();
    assert!(text.contains(r"☑ read\n▶ **fix \\*it\\***\n☐ test\n☐ ~~ship~~"), "{text}");
    assert!(text.contains(r"-# and 12 earlier steps\n✓ Wrote"), "{text}");
    let crowd = Card {
        plan: vec![item(&"漢".repeat(120), PlanLineState::Next); 40],
        ..a_card(CardState::Working)
    };
    let text = card(&crowd).to_string();
    assert!(text.contains("-# and 30 more"), "{text}");
}

#[test]
fn long_plan_shows_its_present_item() {
    for (now, first, last) in [(0, 0, 11), (3, 0, 11), (20, 16, 27), (39, 28, 39), (40, 28, 39)] {
        let line = |n: usize| PlanLine {
            text: format!("item {n}"),
            state: match n.cmp(&now) {
                std::cmp::Ordering::Less => PlanLineState::Done,
                std::cmp::Ordering::Equal => PlanLineState::Now,
                std::cmp::Ordering::Greater => PlanLineState::Next,
            },
        };
        let plan: Vec<PlanLine> = (0..40).map(line).collect();
        let body = card(&Card { plan, ..a_card(CardState::Working) });
        assert_postable(&body);
        let all = words(&body).join("\n");
        let items: Vec<&str> = all.lines().filter(|line| line.contains("item ")).collect();
        assert_eq!(items.len(), 12, "{all}");
        let ends =
            |line: &str, n: usize| line.trim_end_matches('*').ends_with(&format!("item {n}"));
        assert!(ends(items[0], first) && ends(items[11], last), "{now}: {all}");
        assert!(all.contains("-# and 28 more"), "{all}");
    }
}

#[test]
fn changes_and_set_up_add_buttons() {
    let usage = Usage { files: 1, ..Usage::default() };
    let labels_of = |set_up: Option<&str>, outcome| {
        let set_up = set_up.map(str::to_owned);
        let body = card(&Card { set_up, ..a_card(CardState::Ended { outcome, usage }) });
        let parts = body["components"][0]["components"].as_array().expect("parts").clone();
        labels(parts.last().expect("parts"))
    };
    assert_eq!(labels_of(None, Outcome::Answered), ["View diff"]);
    assert_eq!(
        labels_of(Some("set up in 4 s"), Outcome::Lost),
        ["Reply", "Run again", "View diff", "Set-up log"]
    );
}

#[test]
fn offered_work_adds_pull_request_button() {
    let ended = CardState::Ended { outcome: Outcome::Answered, usage: Usage::default() };
    for (offer, label) in
        [(PublishOffer::Open, "Open pull request"), (PublishOffer::Update, "Update pull request")]
    {
        let body = card(&Card { publish: Some(offer), ..a_card(ended.clone()) });
        assert_postable(&body);
        assert_eq!(labels(&body), [label]);
        assert!(body.to_string().contains(r#""custom_id":"v1:publish""#), "{body}");
    }
}

#[test]
fn pull_request_card_has_its_buttons() {
    let card = crate::discord::render::post(&Post::PullRequest(a_pull_request("lint"))).body;
    assert_postable(&card);
    assert_eq!(labels(&card), ["Fix", "Ready for review"]);
    let named = r#""custom_id":"v1:act:ready:0123456789abcdef0123456789abcdef01234567""#;
    assert!(card.to_string().contains(named), "{card}");
}

#[test]
fn review_shows_all_that_is_published() {
    let shown = Review {
        is_public: true,
        workflows: 2,
        others: Some(OthersCommits::Pull(12)),
        ..a_review("Add a *login* page", "Closes #\u{200b}12 for @everyone\n\n```\ncode\n```")
    };
    let body = post(&Post::Review(shown.clone())).body;
    assert_postable(&body);
    assert_eq!(
        words(&body),
        [
            "**A draft pull request**\n`acme/api`: `main` ← `bobbin/add-login-01234567`, commit `0123456789ab`",
            "**Add a \\*login\\* page**",
            "```\nCloses #␣12 for @everyone\n\n``ˋ\ncode\n``ˋ\n```",
            "**3 files change**\n```\nA src/login.rs\nM src/main.rs\nD src/old.rs\n```",
            "Contains the commits of pull request #12, by others.\nA push starts this repository's workflows (2 files).\nThe repository is public: everybody can read what is published.\n-# ␣ stands for a space that is not shown: it keeps words from mentioning somebody.\n-# Nothing is published before somebody presses the button.",
        ]
    );
    assert_eq!(labels(&body), ["Open draft pull request", "Edit text"]);
    let push = r#""custom_id":"v1:push:0123456789abcdef0123456789abcdef01234567""#;
    assert!(body.to_string().contains(push), "{body}");
    assert_eq!(body["allowed_mentions"]["parse"], json!([]), "nobody is called");
    let ready = post(&Post::Review(Review { is_draft: false, ..shown.clone() })).body;
    assert_eq!(labels(&ready), ["Open pull request", "Edit text"]);
    let all = Some(OfferOfAll { name: "0123456789abcdef01234567".to_owned(), repositories: 2 });
    let several = post(&Post::Review(Review { all, ..shown.clone() })).body;
    assert_eq!(labels(&several), ["Open draft pull request", "Publish all 2", "Edit text"]);
    assert_postable(&several);
    let update = post(&Post::Review(Review { offer: PublishOffer::Update, ..shown })).body;
    assert_eq!(labels(&update), ["Update pull request", "Edit text"]);
}

#[test]
fn agents_review_shows_all_that_is_posted() {
    let shown = ReviewCard { is_public: true, ..a_pull_review("Why, @everyone? ```x```") };
    let body = post(&Post::PullReview(shown.clone())).body;
    assert_postable(&body);
    assert_eq!(
        words(&body),
        [
            "**A review of pull request #12** of `acme/api`, commit `0123456789ab`\n1 comment on lines.",
            "```\nWhy, @everyone? ``ˋx``ˋ\n\nsrc/a.rs:3\nWhy, @everyone? ``ˋx``ˋ\n```",
            "-# The repository is public: everybody can read what is posted.\n-# Nothing is posted before somebody presses the button.",
        ]
    );
    assert_eq!(labels(&body), ["Post review"]);
    assert!(body.to_string().contains(r#""custom_id":"v1:review:0123456789abcdef01234567""#));
    assert_eq!(body["allowed_mentions"]["parse"], json!([]), "nobody is called");
    // What the card cannot show stands in the file, or there is nothing to press.
    for c in ["word ", "漢", "\u{202e}"] {
        let long = a_pull_review(&c.repeat(4_000));
        let cut = post(&Post::PullReview(long.clone())).body;
        assert_postable(&cut);
        assert_eq!(labels(&cut), [""; 0]);
        assert!(words(&cut)[2].contains("so it cannot be posted"), "{:?}", words(&cut));
        let with_file = post(&Post::PullReview(ReviewCard { has_file: true, ..long })).body;
        assert_postable(&with_file);
        assert_eq!(labels(&with_file), ["Post review"]);
        assert!(words(&with_file)[2].contains("review.txt"), "{:?}", words(&with_file));
    }
}

#[test]
fn longest_review_fits_by_fewer_files() {
    for c in ["x", "漢"] {
        let longest = Review {
            files: many_files(),
            files_total: 120,
            workflows: 9,
            is_public: true,
            others: Some(OthersCommits::Pull(u64::MAX)),
            into: "i".repeat(250),
            ..a_review(&c.repeat(120), &c.repeat(BODY_CHARS_MAX))
        };
        let called = Post::Calling {
            people: (1..=4).map(|n: u8| n.to_string().repeat(20)).collect(),
            post: Box::new(Post::Review(longest)),
        };
        let body = post(&called).body;
        assert_postable(&body);
        let read = words(&body);
        assert!(read[2].contains(&c.repeat(BODY_CHARS_MAX)), "{read:?}");
        assert!(read[3].starts_with("**120 files change**"), "{read:?}");
        assert_eq!(labels(&body), ["Open draft pull request", "Edit text"]);
    }
    let body = post(&Post::Review(Review {
        files: many_files(),
        files_total: 120,
        ..a_review("Add", "Text")
    }))
    .body;
    assert!(words(&body)[3].ends_with("-# and 93 more"), "{:?}", words(&body)[3]);
}

#[test]
fn text_not_shown_whole_cannot_be_published() {
    let body = post(&Post::Review(a_review("Add", &"\u{202e}x".repeat(400)))).body;
    assert_postable(&body);
    let read = words(&body);
    assert!(
        read[3].ends_with(" more characters of the text cannot be shown here, so it cannot be published. Make it shorter.**"),
        "{read:?}"
    );
    assert_eq!(labels(&body), ["Edit text"]);
}

proptest! {
    #[test]
    fn what_all_publish_is_surely_shown(odd in pieces(), plain in "[a-z .,]{0,1900}") {
        let name = "a".repeat(255);
        let names = a_review("Add `it` *now*", &format!("{odd}{plain}"));
        let review = Review { repository: name.clone(), branch: name.clone(), into: name, ..names };
        let is_sure = review.proposal.is_surely_shown();
        let body = post(&Post::Review(review)).body;
        prop_assert!(!is_sure || labels(&body).len() == 2);
    }
}

#[test]
fn long_patch_becomes_a_file() {
    let patch = "1 file changed, +1 -0\n  a.txt (new, +1 -0)\n\ndiff --git a/a.txt b/a.txt\n+one\n";
    let short = diff(patch);
    assert_eq!(
        short.body["content"],
        "```\n1 file changed, +1 -0\n  a.txt (new, +1 -0)\n```\n```diff\ndiff --git a/a.txt b/a.txt\n+one\n```"
    );
    assert_eq!(short.file, None);
    for long in [format!("{patch}{}", "+x\n".repeat(2_000)), format!("{patch}+```\n")] {
        let rendered = diff(&long);
        assert_eq!(
            rendered.body["content"],
            "```\n1 file changed, +1 -0\n  a.txt (new, +1 -0)\n```"
        );
        let file = rendered.file.expect("a file");
        assert_eq!((file.name.as_str(), file.bytes), ("changes.diff", long.into_bytes()));
    }
}

#[test]
fn agent_file_is_named_and_attached() {
    let rendered = post(&Post::File(ShownFile { name: "chart.png".to_owned(), bytes: vec![1, 2] }));
    assert_postable(&rendered.body);
    assert_eq!(rendered.body["content"], "`chart.png`");
    assert_eq!(rendered.body["attachments"][0]["filename"], "chart.png");
    let file = rendered.file.as_ref().expect("a file");
    assert_eq!((file.media_type, file.bytes.as_slice()), ("image/png", &[1, 2][..]));
    let refused = without_file(&rendered.body);
    assert_eq!(
        refused["content"],
        "`chart.png`\n-# The file could not be attached: this server does not accept it."
    );
}

#[test]
fn ended_card_shows_usage() {
    let usage = Usage {
        tokens: 1_234_567,
        cost_micro_usd: 12_000,
        files: 3,
        added: 12,
        removed: 4,
        files_unknown: false,
    };
    let body = card(&a_card(CardState::Ended { outcome: Outcome::Answered, usage })).to_string();
    assert!(
        body.contains(
            "took 12 s · 3 files changed, +12 -4 · 1,234,567 tokens · $0.01 · openai/gpt"
        ),
        "{body}"
    );
    assert!(body.contains(r"✓ Wrote src/main\\_file.rs\n✗ Running cargo test (failed)"), "{body}");
    let running = card(&a_card(CardState::Working)).to_string();
    assert!(running.contains("began <t:1795300000:R> · openai/gpt"), "{running}");
}

#[test]
fn card_shows_newest_steps_counts_rest() {
    let mut shown = a_card(CardState::Working);
    shown.steps = (0..200)
        .map(|n| CardStep { text: format!("Step {n} {}", "x".repeat(60)), state: StepState::Done })
        .collect();
    let body = card(&shown);
    assert_postable(&body);
    let text = body.to_string();
    assert!(
        text.contains("Step 199 ") && !text.contains("Step 0 ") && text.contains("earlier steps"),
        "{text}"
    );
}

#[test]
fn only_last_answer_part_has_reply() {
    let first = chunk("One.", false, None);
    let last = chunk("Two.", true, None);
    assert_postable(&first.body);
    assert_postable(&last.body);
    assert!(first.body.get("components").is_none());
    assert_eq!(labels(&last.body["components"][0]), ["Reply"]);
}

#[test]
fn answer_file_is_attached_to_message() {
    let rendered = chunk("", true, Some("the whole answer"));
    assert_postable(&rendered.body);
    assert_eq!(rendered.body["attachments"][0]["filename"], ANSWER_FILE);
    assert_eq!(
        rendered.file.map(|file| file.bytes).as_deref(),
        Some(b"the whole answer".as_slice())
    );
    let beside = chunk("It begins so.", true, Some("the whole answer")).body;
    assert_eq!(
        beside["content"],
        "It begins so.\n-# This is only a part: the whole answer is in the attached file `answer.md`."
    );
    let refused = without_file(&beside);
    assert_eq!(
        refused["content"],
        "It begins so.\n-# The file with the whole answer could not be attached: this server does not accept it."
    );
    assert!(refused.get("attachments").is_none());
}

#[test]
fn every_answer_part_draws_its_table() {
    let contents = |answer: &str| -> Vec<String> {
        let parts = super::split(answer);
        let bodies = parts.iter().map(|part| chunk(part, false, None).body);
        bodies
            .inspect(assert_postable)
            .map(|body| body["content"].as_str().expect("text").to_owned())
            .collect()
    };
    let head = "| a | b |\n|---|---|\n";
    assert_eq!(contents(&format!("{head}| 1 | 2 |")), ["```\na | b\n--|--\n1 | 2\n```"]);
    let large = contents(&format!("{head}{}", "| one | two |\n".repeat(400)));
    assert!(large.len() > 1);
    assert_eq!(large.concat().matches("one | two").count(), 400);
    assert!(large.iter().all(|part| part.starts_with("```\n")));
}

#[test]
fn permission_shows_command_and_three_answers() {
    let body = ask(
        &an_ask(About::Permission {
            action: "bash".to_owned(),
            subject: "rm -rf target".to_owned(),
            left_out: 0,
            places: ["/srv/*".to_owned()].into(),
            always: ["rm `*".to_owned()].into(),
        }),
        None,
    );
    assert_postable(&body);
    assert_eq!(labels(&body["components"][0]), ["Allow once", "Allow always", "Deny"]);
    let shown = body.to_string();
    for words in ["rm -rf target", "outside of its folder: `/srv/*`", "covers `rm ˋ*`"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let nothing_more = an_ask(a_permission("ls"));
    assert_eq!(labels(&ask(&nothing_more, None)["components"][0]), ["Allow once", "Deny"]);
}

#[test]
fn command_cannot_hide_end_or_direction() {
    let subject = format!("echo safe \u{202e}```\n{}", "x".repeat(5000));
    let body = ask(
        &an_ask(About::Permission {
            action: "bash".to_owned(),
            subject,
            left_out: 7_000,
            places: Box::default(),
            always: Box::default(),
        }),
        None,
    );
    assert_postable(&body);
    let text = body.to_string();
    assert!(
        text.contains(r"\\u{202e}")
            && text.contains("more characters are not shown")
            && text.contains("**10"),
        "{text}"
    );
    assert_eq!(
        body["components"][0]["components"][1]["content"]
            .as_str()
            .expect("text")
            .matches("```")
            .count(),
        2
    );
}

#[test]
fn settled_ask_shows_decision_without_buttons() {
    let body = ask(
        &an_ask(About::Question {
            questions: vec![a_question(vec!["A".to_owned()]), a_question(vec!["B".to_owned()])],
        }),
        Some("Sam answered:\nChoice: A\nChoice: B_"),
    );
    assert_postable(&body);
    assert!(labels(&body).is_empty());
    assert!(
        body.to_string().contains("Settled: Sam answered:\\n- Choice: A\\n- Choice: B\\\\_"),
        "{body}"
    );
}

fn a_permission(subject: &str) -> About {
    About::Permission {
        action: "bash".to_owned(),
        subject: subject.to_owned(),
        left_out: 0,
        places: Box::default(),
        always: Box::default(),
    }
}

fn a_question(labels: Vec<String>) -> Question {
    let option = |label| Opt { label, description: String::new() };
    Question {
        header: "Choice".to_owned(),
        text: "Which?".to_owned(),
        options: labels.into_iter().map(option).collect(),
        multiple: false,
        free: true,
    }
}

#[test]
fn many_or_long_options_become_list() {
    let shown = |question: Question| {
        let body = ask(&an_ask(About::Question { questions: vec![question] }), None);
        assert_postable(&body);
        body
    };
    let few = shown(a_question(vec!["Red".to_owned(), " ".to_owned()]));
    assert_eq!(labels(&few["components"][0]), ["Red", "Option 2", "Other answer…", "Skip"]);
    let fixed = Question { free: false, ..a_question(vec!["Red".to_owned()]) };
    assert_eq!(labels(&shown(fixed)["components"][0]), ["Red", "Skip"]);
    let long = shown(a_question(vec!["word ".repeat(30), "B".to_owned()]));
    let many = shown(a_question((0..40).map(|n| format!("Option number {n}")).collect()));
    assert!(
        long.to_string().contains("Choose an answer") && long.to_string().contains("description")
    );
    assert!(many.to_string().contains(r#""max_values":1"#));
    let several =
        shown(Question { multiple: true, ..a_question(vec!["A".to_owned(), "B".to_owned()]) });
    assert!(several.to_string().contains(r#""max_values":2"#));
    assert_eq!(labels(&several["components"][0]), ["Other answer…", "Skip"]);
    assert_eq!(labels(&shown(a_question(Vec::new()))["components"][0]), ["Answer…", "Skip"]);
}

#[test]
fn several_questions_are_answered_by_form() {
    let questions =
        vec![a_question(vec!["Red_1".to_owned(), "Blue".to_owned()]), a_question(Vec::new())];
    let body = ask(&an_ask(About::Question { questions }), None);
    assert_postable(&body);
    assert_eq!(labels(&body["components"][0]), ["Answer…", "Skip"]);
    let text = body.to_string();
    assert!(text.contains("2 questions") && text.contains("1. Red\\\\_1\\n2. Blue"), "{text}");
    let many = vec![a_question((0..100).map(|n| format!("Option number {n}")).collect()); 10];
    let body = ask(&an_ask(About::Question { questions: many }), None);
    assert_postable(&body);
    assert!(body.to_string().contains("more options cannot be shown"));
    assert_eq!(
        labels(&ask(&an_ask(About::Question { questions: vec![] }), None)["components"][0]),
        ["Skip"]
    );
}

#[test]
fn anchor_names_requester_without_pinging() {
    let open = an_open("Fix the\n**login** page for <@123> @everyone", "S_a_m");
    let body = anchor(&open);
    assert_fits(ORIGINAL, "patch", &body);
    assert_fits(CREATE, "post", &with_nonce(body.clone(), "n"));
    let text = body["content"].as_str().expect("text");
    assert!(
        text.starts_with(r"**S\_a\_m** asked: Fix the \*\*login\*\* page for \<\@123\>"),
        "{text}"
    );
    assert_fits(ORIGINAL, "patch", &anchor_failed(&open, "No thread could be created."));
}

#[test]
fn thread_is_named_after_its_prompt() {
    assert_eq!(thread_name("Fix\nthe   login"), "Fix the login");
    assert_eq!(thread_name(" \n\u{200b}"), "Sandbox task");
    assert_eq!(thread_name("\u{202e}txt.exe"), "\\u{202e}txt.exe");
    assert!(units(&thread_name(&"word ".repeat(100))) <= 100);
    let prompt = Prompt { text: "Fix it".to_owned(), ..Prompt::default() };
    assert_fits(THREAD, "post", &thread(&prompt));
}

#[test]
fn ephemeral_text_fits_edit_and_followup() {
    assert_fits(ORIGINAL, "patch", &private_text("Nothing is running here."));
    assert_fits(FOLLOW_UP, "post", &for_one(private_text("Nothing is running here.")));
    assert_eq!(for_one(private_text("x"))["flags"], super::super::flags::EPHEMERAL);
}

#[test]
fn refused_message_has_smaller_fallbacks() {
    let long = CardStep { text: "x".repeat(400), state: StepState::Done };
    let shown = card(&Card { steps: vec![long; 5], ..a_card(CardState::Working) });
    let half = smaller(&shown).expect("a long text display");
    assert!(half.to_string().len() < shown.to_string().len());
    assert_eq!(labels(&half["components"][0]), ["Stop"]);
    assert_eq!(smaller(&card(&a_card(CardState::Received))), None);
    let answer = chunk(&"y".repeat(2000), true, Some("whole")).body;
    for body in [
        &half,
        &without_file(&answer),
        &blocked(&answer),
        &blocked(&shown),
        &as_text(&shown),
        &as_text(&answer),
    ] {
        assert_postable(body);
    }
    assert!(without_file(&answer).get("attachments").is_none());
    assert!(as_text(&shown)["content"].as_str().expect("text").starts_with("**Working**"));
}

#[test]
fn numbers_are_formatted_for_people() {
    assert_eq!([0, 999, 1_000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
    assert_eq!([0, 59_999, 61_000, 7_260_000].map(span), ["0 s", "59 s", "1 min 1 s", "2 h 1 min"]);
}

/// Text as a hostile model or person would write it.
fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        any::<String>(),
        "[\\*_`~|<>@#\\[\\]()\\\\\n ]{0,400}",
        Just("@everyone <@1> <@&2> ```\n".repeat(20)),
        Just("漢".repeat(3000)),
        Just("👩‍👩‍👧\u{202e}".repeat(600)),
        Just("\u{200b}\u{3164}\u{2800}".to_owned()),
        Just("x".repeat(9000)),
        Just("| a | b |\n|---|---|\n| 1 | 2 |\n".repeat(40)),
    ];
    prop::collection::vec(piece, 0..4).prop_map(|pieces| pieces.concat())
}

proptest! {
    // Each case checks several bodies against a large description.
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn hostile_text_stays_within_discord_limits(text in hostile(), other in hostile(), options in prop::collection::vec(hostile(), 0..30), count in 0usize..60) {
        let rules = |path: &str, body: &Value| {
            let wrong = super::super::check::own_rules(path, body);
            assert!(wrong.is_empty(), "{wrong:?}\n{body:#}");
        };
        for mut state in states() {
            if let CardState::Ended { outcome, .. } = &mut state {
                *outcome = match outcome.clone() {
                    Outcome::Failed { .. } => Outcome::Failed { reason: text.clone() },
                    Outcome::Cancelled { .. } => Outcome::Cancelled { by: other.clone() },
                    as_is => as_is,
                };
            }
            let mut shown = a_card(state);
            shown.turn = other.clone().into();
            shown.model = other.clone();
            shown.earlier = count;
            shown.plan = (0..count).map(|_| PlanLine { text: text.clone(), state: PlanLineState::Now }).collect();
            shown.steps = (0..count).map(|_| CardStep { text: text.clone(), state: StepState::Running }).collect();
            rules(CREATE, &card(&shown));
        }
        let question = |text: &String, header: &String, options: Vec<String>, multiple| Question {
            header: header.clone(),
            text: text.clone(),
            options: options.into_iter().map(|label| Opt { description: other.clone(), label }).collect(),
            multiple,
            free: !multiple,
        };
        for about in [
            About::Permission { action: other.clone(), subject: text.clone(), left_out: count, places: vec![other.clone(); 5].into(), always: vec![text.clone(); 5].into() },
            About::Question { questions: vec![question(&text, &other, options.clone(), count % 2 == 0)] },
            About::Question { questions: vec![question(&text, &other, options.clone(), count % 2 == 0); count / 6] },
            About::Question { questions: vec![question(&other, &text, options.iter().map(|o| o.chars().take(30).collect()).take(5).collect(), false)] },
        ] {
            rules(CREATE, &ask(&an_ask(about.clone()), None));
            let mut odd = an_ask(about);
            odd.id = text.clone().into();
            rules(CREATE, &ask(&odd, Some(&other)));
        }
        let shown = Review { repository: other.clone(), branch: text.clone(), into: other.clone(), ..a_review(&other, &text) };
        rules(CREATE, &post(&Post::Review(shown)).body);
        rules(CREATE, &post(&Post::PullRequest(a_pull_request(&text))).body);
        rules(CREATE, &post(&Post::PullReview(a_pull_review(&text))).body);
        rules(CREATE, &chunk(&text, true, Some(&other)).body);
        rules(CREATE, &post(&Post::File(ShownFile { name: other.clone(), bytes: Vec::new() })).body);
        rules(ORIGINAL, &diff(&text).body);
        rules(CREATE, &notice(&text));
        rules(ORIGINAL, &private_text(&text));
        rules(FOLLOW_UP, &for_one(private_text(&text)));
        rules(ORIGINAL, &anchor(&an_open(&text, &other)));
        rules(ORIGINAL, &anchor_failed(&an_open(&text, &other), &text));
        assert_postable(&card(&Card { steps: vec![CardStep { text: text.clone(), state: StepState::Done }], ..a_card(CardState::Working) }));
        assert_postable(&ask(&an_ask(About::Question { questions: vec![question(&text, &text, options, true); 3] }), None));
        assert_postable(&chunk(&text, true, None).body);
        let name = thread_name(&text);
        prop_assert!((1..=100).contains(&units(&name)) && !name.contains('\n'));
    }

    #[test]
    fn answer_part_is_posted_uncut(text in hostile()) {
        for part in bobbin_core::text::split(&text, super::super::CHUNK_UNITS) {
            let body = chunk(&part, false, None).body;
            let content = body["content"].as_str().expect("text");
            let whole = content.matches('x').count() == part.matches('x').count() && content.matches('漢').count() == part.matches('漢').count();
            prop_assert!(whole, "something was cut off");
        }
    }
}

fn a_listed(name: &str, phase: Phase) -> Listed {
    let thread = |id: &str| ThreadKey::discord("11820000000000000001", id).expect("a key");
    let record = SandboxRecord {
        phase,
        last_activity_ms: 60_000,
        sharing: Sharing {
            name: Some(name.parse().expect("a name")),
            threads: [thread("22"), thread("23")].into(),
            ..Sharing::default()
        },
        spec: SandboxSpec { provider: Some("daytona".to_owned()), ..SandboxSpec::default() },
        ..SandboxRecord::default()
    };
    let tenant = thread("22").tenant();
    Listed::of(&SandboxKey::without_thread(&tenant, &name.into()), &record)
}

fn a_page(all: Vec<Listed>, page: usize, in_thread: bool) -> SandboxesPage {
    let place =
        ListContext { thread: ThreadKey::discord("1", "9").expect("a key"), in_thread, here: None };
    SandboxesPage::of(all, page, place, 120_000)
}

/// The readable text, without structure.
fn words(body: &Value) -> Vec<String> {
    fn walk(value: &Value, into: &mut Vec<String>) {
        into.extend(value["content"].as_str().map(str::to_owned));
        let parts = value["components"].as_array();
        parts.into_iter().flatten().for_each(|part| walk(part, into));
    }
    let mut all = Vec::new();
    walk(body, &mut all);
    all
}

#[test]
fn list_shows_sandboxes_with_their_actions() {
    let page = a_page(vec![a_listed("frontend", Phase::Active)], 0, true);
    let body = sandboxes(&page);
    assert_fits(ORIGINAL, "patch", &body);
    assert_eq!(
        words(&body),
        [
            "**One sandbox has a name here.**",
            "**frontend**\ndaytona · running · used 1 min 0 s ago · 2 threads"
        ]
    );
    assert_eq!(labels(&body), ["Connect", "Stop", "Snapshot", "Destroy"]);
    let elsewhere = sandboxes(&a_page(vec![a_listed("frontend", Phase::Paused)], 0, false));
    assert_eq!(labels(&elsewhere), ["Start", "Snapshot", "Destroy"]);
    assert_fits(ORIGINAL, "patch", &sandboxes(&a_page(Vec::new(), 0, true)));
}

#[test]
fn full_list_page_fits_discord() {
    let all: Vec<Listed> =
        (0..12).map(|n| a_listed(&format!("{}-{n:02}", "x".repeat(37)), Phase::Active)).collect();
    for (page, turns) in [(0, [true, false]), (1, [false, false]), (2, [false, true])] {
        let body = sandboxes(&a_page(all.clone(), page, true));
        assert_fits(FOLLOW_UP, "post", &for_one(body.clone()));
        let rows = body["components"][0]["components"].as_array().expect("parts");
        let last = rows.last().expect("a row")["components"].as_array().expect("buttons");
        let disabled: Vec<bool> = last.iter().map(|one| one["disabled"] == true).collect();
        assert_eq!(disabled, turns, "page {page}");
        assert_ne!(last[0]["custom_id"], last[1]["custom_id"], "page {page}");
    }
}

#[test]
fn destroy_confirmation_names_losses() {
    let mut listed = a_listed("frontend", Phase::Active);
    listed.in_use = vec![ThreadKey::discord("1", "22").expect("a key")];
    let body = ask_destroy(&listed, 120_000);
    assert_fits(ORIGINAL, "patch", &body);
    assert_eq!(
        words(&body),
        [
            "Destroy **frontend**?\n- The task that runs in it will be stopped: <#22>.\n- 2 threads work in it and will be notified: <#22>, <#23>.\n- Everything in it that was not pushed will be lost, and its name becomes free."
        ]
    );
    assert_eq!(labels(&body), ["Destroy", "Cancel"]);
    assert_eq!(body["allowed_mentions"]["parse"], json!([]), "nobody is called");
}

#[test]
fn waiting_card_links_holding_thread() {
    let holder = ThreadKey::discord("1", "22").ok();
    let body = card(&a_card(CardState::Shared { holder }));
    let read = words(&body).join("\n");
    assert!(read.contains("**Waiting for another thread**"), "{read}");
    let waits = "Waits until <#22> is done: both work in the same directory.";
    assert!(read.contains(waits), "{read}");
    assert_eq!(labels(&body), ["Stop"]);
}
