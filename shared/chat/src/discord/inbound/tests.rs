use bobbin_core::base::ids::Tenant;
use std::path::PathBuf;

use bobbin_core::base::limits::{ChatLimits, FileLimits, Limits};
use bobbin_core::records::ask::{Choice, Field};
use bobbin_core::records::card::Post;
use bobbin_core::records::control::{ControlAction, Operation, PublishStep, ShowOf, WhichSandbox};
use bobbin_core::records::message::{Body, Message, Prompt, Quote, Reply, Work};
use bobbin_core::records::publication::PullRequestAct;
use bobbin_core::tenant::access::Policy;
use bobbin_core::tenant::settings::{DefaultKind, SettingsChange};
use ed25519_dalek::{Signer, SigningKey};
use serde_json::{Value, json};

use super::super::check::{outside, wrong_answer};
use super::super::flags::{EPHEMERAL, SUPPRESS_EMBEDS};
use super::super::interaction::{Component, InvokedCommand};
use super::super::quoting::WORK_ON_QUOTED;
use super::*;
use crate::SuggestionKind;
use crate::review::tests::review;

const NOW_MS: Ms = 1_795_300_000_000;
const GUILD: &str = "1240000000000000100";
const CHANNEL: &str = "1240000000000000200";
const THREAD: &str = "discord:1240000000000000100:1240000000000000300";

fn signing() -> SigningKey {
    SigningKey::from_bytes(&[9; 32])
}

fn app(guilds: &str, channels: &str, people: &str) -> App {
    let key = hex::encode(signing().verifying_key().as_bytes());
    App::new(
        &key,
        "1240000000000000001",
        Policy::from_lists(guilds, "", channels, people),
        Limits::DEFAULT,
    )
    .expect("a key")
}

fn open_app() -> App {
    app(GUILD, "", "")
}

/// Sends a correctly signed request to the endpoint, and checks the rules for every answer.
fn given(raw: &[u8], app: &App) -> Inbound {
    let timestamp = (NOW_MS / 1000).to_string();
    let signature = hex::encode(signing().sign(&[timestamp.as_bytes(), raw].concat()).to_bytes());
    let inbound = interactions(raw, Some(&signature), Some(&timestamp), app, NOW_MS);
    let kind = serde_json::from_slice::<Value>(raw).ok().and_then(|value| value["type"].as_u64());
    for answer in [&inbound.answer, &inbound.on_queue_failure]
        .into_iter()
        .filter(|answer| answer.status == 200)
    {
        let body: Value = serde_json::from_str(&answer.body).expect("JSON");
        assert_eq!(answer.content_type, "application/json");
        let wrong = wrong_answer(kind.expect("a type"), true, &body);
        assert!(wrong.is_empty(), "{wrong:#?}\n{body:#}");
    }
    if let Some(taken) = &inbound.enqueue {
        // The worker sees the refusal only for a task that opens a thread, and then starts nothing.
        assert_eq!(denies(&inbound), matches!(taken, Body::Open(_)), "{taken:?}");
        let failure = body(&inbound.on_queue_failure);
        assert_eq!(
            (failure["type"].as_u64(), failure["data"]["flags"].as_u64()),
            (Some(4), Some(64))
        );
        assert!(failure["data"]["content"].as_str().expect("words").contains("reference"));
    }
    inbound
}

/// Whether the answer for a queue that may have accepted the body claims that it did not.
fn denies(inbound: &Inbound) -> bool {
    inbound.on_queue_failure.body.contains("nothing was started")
}

fn body(answer: &HttpAnswer) -> Value {
    serde_json::from_str(&answer.body).expect("JSON")
}

/// The interaction in a stored event (see `events/README.md`).
fn event(name: &str) -> Value {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../events/discord")
        .join(format!("{name}.json"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{name}: {e}"));
    let event: Value = serde_json::from_str(&text).expect("JSON");
    let body = event["body"].as_str().expect("a body");
    serde_json::from_str(body).expect("JSON")
}

fn send(event: &Value) -> Inbound {
    given(event.to_string().as_bytes(), &open_app())
}

/// The text of an answer that only the person sees, with nothing enqueued.
fn refusal(inbound: &Inbound) -> String {
    let body = body(&inbound.answer);
    assert_eq!(inbound.enqueue, None, "{}", inbound.note);
    assert_eq!(
        (body["type"].as_u64(), body["data"]["flags"].as_u64()),
        (Some(4), Some(64)),
        "{body}"
    );
    body["data"]["content"].as_str().expect("words").to_owned()
}

fn prompt_of(inbound: &Inbound) -> (&str, &Prompt) {
    match inbound.enqueue.as_ref().expect("work") {
        Body::Message(Message { work: Work::Prompt(prompt), thread, .. }) => {
            assert_eq!(thread.to_string(), THREAD);
            ("thread", prompt)
        }
        Body::Open(open) => {
            assert_eq!(
                (open.guild.as_str(), open.channel.as_str(), open.accepted_at_ms),
                (GUILD, CHANNEL, NOW_MS)
            );
            assert!(matches!(&open.reply, Reply::Discord { token, .. } if !token.is_empty()));
            ("open", &open.prompt)
        }
        other => panic!("not a prompt: {other:?}"),
    }
}

fn want_of(inbound: &Inbound) -> ControlAction {
    match inbound.enqueue.as_ref().expect("work") {
        Body::Control(control) => {
            assert_eq!(control.thread.to_string(), THREAD);
            assert_eq!(control.by.name, "Robin");
            control.want.clone()
        }
        other => panic!("not a control: {other:?}"),
    }
}

fn kind_of(inbound: &Inbound) -> (u64, u64) {
    let body = body(&inbound.answer);
    (body["type"].as_u64().expect("type"), body["data"]["flags"].as_u64().unwrap_or(0))
}

#[test]
fn signed_ping_gets_pong_without_parsing() {
    for raw in [
        event("ping").to_string().as_str(),
        r#"{"type":1}"#,
        r#"{"type":1,"id":{"odd":[]},"member":7}"#,
    ] {
        let inbound = given(raw.as_bytes(), &App { policy: Policy::default(), ..open_app() });
        assert_eq!(
            inbound.answer,
            HttpAnswer {
                status: 200,
                content_type: "application/json",
                body: r#"{"type":1}"#.to_owned(),
                headers: &[],
            }
        );
        assert_eq!(inbound.enqueue, None);
    }
}

#[test]
fn bad_signature_gets_401_enqueues_nothing() {
    let raw = event("sandbox-in-channel").to_string();
    let timestamp = (NOW_MS / 1000).to_string();
    let good =
        hex::encode(signing().sign(&[timestamp.as_bytes(), raw.as_bytes()].concat()).to_bytes());
    let bad = "00".repeat(64);
    for (signature, timestamp) in [
        (None, None),
        (Some(good.as_str()), None),
        (None, Some(timestamp.as_str())),
        (Some(bad.as_str()), Some(timestamp.as_str())),
        (Some(good.as_str()), Some("1795200000")),
    ] {
        let inbound = interactions(raw.as_bytes(), signature, timestamp, &open_app(), NOW_MS);
        assert_eq!((inbound.answer.status, inbound.enqueue), (401, None));
    }
}

#[test]
fn malformed_interactions_get_400_with_reason() {
    let large = format!(r#"{{"type":2,"x":"{}"}}"#, "x".repeat(BODY_BYTES_MAX));
    for (raw, word) in [
        ("", "not an interaction"),
        ("{", "not an interaction"),
        ("[]", "not an interaction"),
        (r#"{"type":"2"}"#, "not an interaction"),
        (r#"{"type":-1}"#, "not an interaction"),
        ("\u{feff}{}", "not an interaction"),
        (r#"{"type":2}"#, "cannot be read"),
        (r#"{"type":2,"id":7}"#, "cannot be read"),
        (r#"{"type":0,"id":"1"}"#, "unknown interaction type"),
        (r#"{"type":2}"#, "the id is missing"),
        (r#"{"type":2,"id":"1 2"}"#, "the id is missing"),
        (&event("unknown-type").to_string(), "unknown interaction type"),
        (&large, "larger than"),
    ] {
        let inbound = given(raw.as_bytes(), &open_app());
        assert_eq!(
            (inbound.answer.status, &inbound.enqueue),
            (400, &None),
            "{}",
            &raw[..raw.len().min(80)]
        );
        assert!(inbound.answer.body.contains(word), "{}", inbound.answer.body);
    }
}

#[test]
fn channel_prompt_publicly_opens_thread() {
    let inbound = send(&event("sandbox-in-channel"));
    assert_eq!(body(&inbound.answer), json!({"type": 5}));
    let (how, prompt) = prompt_of(&inbound);
    assert_eq!(
        (how, prompt.text.as_str(), prompt.by.name.as_str()),
        ("open", "Add a health check to the service", "Robin")
    );
    assert_eq!(inbound.enqueue.as_ref().expect("work").id(), event("sandbox-in-channel")["id"]);
}

#[test]
fn prompt_carries_its_file() {
    for name in ["sandbox-with-file", "reply-form"] {
        let inbound = send(&event(name));
        let file = &prompt_of(&inbound).1.attachments[0];
        assert_eq!((file.name.as_str(), file.size), ("notes.txt", 1234));
        assert!(file.url.starts_with("https://cdn.discordapp.com/") && file.media_type.is_some());
    }
}

#[test]
fn thread_prompt_continues_and_is_echoed() {
    for (name, text) in [
        ("sandbox-in-thread", "Now add a test for it"),
        ("say-in-thread", "Rename it to readiness check"),
        ("reply-form", "Also log the build number"),
    ] {
        let inbound = send(&event(name));
        let (how, prompt) = prompt_of(&inbound);
        assert_eq!((how, prompt.text.as_str()), ("thread", text));
        let answer = body(&inbound.answer);
        assert_eq!(answer["type"], 4);
        assert_eq!(answer["data"]["flags"].as_u64().expect("flags") & EPHEMERAL, 0);
        assert!(
            answer["data"]["content"]
                .as_str()
                .expect("text")
                .starts_with(&format!("**Robin**: {text}"))
        );
    }
}

#[test]
fn sending_anothers_message_quotes_it() {
    for (name, expected) in [("send-to-sandbox", "open"), ("send-to-sandbox-in-thread", "thread")] {
        let inbound = send(&event(name));
        let (how, prompt) = prompt_of(&inbound);
        assert_eq!((how, prompt.text.as_str()), (expected, WORK_ON_QUOTED));
        let quote = Quote {
            by: "Kim".to_owned(),
            text: "The nightly job fails since Tuesday, see the log.".to_owned(),
        };
        assert_eq!(prompt.quotes, [quote]);
        assert_eq!(prompt.by.name, "Robin", "not the author of the message");
    }
    let mut empty = event("send-to-sandbox");
    empty["data"]["resolved"]["messages"]["1240000000000000280"]["content"] = json!("");
    assert!(refusal(&send(&empty)).contains("no text or files"));
}

#[test]
fn own_message_is_prompt_references_quoted() {
    let inbound = send(&event("send-reply-to-sandbox"));
    let (how, prompt) = prompt_of(&inbound);
    assert_eq!((how, prompt.text.as_str()), ("thread", "Please fix what Kim saw"));
    assert_eq!(prompt.quotes[0].text, "The nightly job fails since Tuesday.");
    assert_eq!(
        body(&inbound.answer)["data"]["content"],
        "**Robin**: Please fix what Kim saw\n> **Kim**: The nightly job fails since Tuesday."
    );

    let inbound = send(&event("send-forward-to-sandbox"));
    let (how, prompt) = prompt_of(&inbound);
    assert_eq!((how, prompt.text.as_str()), ("open", WORK_ON_QUOTED));
    assert_eq!(
        (prompt.quotes[0].by.as_str(), prompt.quotes[0].text.as_str()),
        ("", "Deploy 12 broke the login page.")
    );
    assert_eq!(prompt.attachments[0].name, "login.log");
}

#[test]
fn chosen_options_are_validated_and_sent() {
    let inbound = send(&event("sandbox-with-choices"));
    let wants = &prompt_of(&inbound).1.wants;
    assert_eq!(
        [&wants.repo, &wants.model, &wants.agent].map(|one| one.as_deref().unwrap_or_default()),
        ["octo/service", "anthropic/claude-sonnet-4-5", "plan"]
    );
    for (option, value, word) in [
        (1, "no such", "owner/name"),
        (2, "sonnet", "provider/model"),
        (3, "a b", "plan, claude or codex"),
    ] {
        let mut odd = event("sandbox-with-choices");
        odd["data"]["options"][option]["value"] = json!(value);
        let words = refusal(&send(&odd));
        assert!(words.contains(word) && words.contains(value), "{words}");
        odd["data"]["options"][option]["value"] = json!("  ");
        assert!(send(&odd).enqueue.is_some());
    }
}

#[test]
fn prompt_waits_unless_sent_as_now() {
    assert!(!prompt_of(&send(&event("say-in-thread"))).1.now);
    assert!(prompt_of(&send(&event("say-now"))).1.now);
    assert!(!prompt_of(&send(&event("reply-form"))).1.now);
    let mut form = event("reply-form");
    form["data"]["components"][1]["component"]["value"] = json!("now");
    let now = send(&form);
    assert!(prompt_of(&now).1.now);
    let content = body(&now.answer)["data"]["content"].clone();
    assert_eq!(
        content,
        "**Robin**: Also log the build number\n-# for the running task\n-# with 1 file"
    );
    // A client with an older form, or without a choice, gets a prompt that waits.
    form["data"]["components"][1]["component"]["value"] = Value::Null;
    assert!(!prompt_of(&send(&form)).1.now);
}

#[test]
fn settings_become_control_messages_with_membership() {
    let inbound = send(&event("config-default"));
    assert_eq!(kind_of(&inbound), (5, 64));
    let Some(Body::Control(control)) = &inbound.enqueue else {
        panic!("not a control: {:?}", inbound.enqueue)
    };
    assert_eq!(control.thread.tenant(), Tenant::discord(GUILD));
    assert!(matches!(
        &control.want,
        ControlAction::Configure { change: SettingsChange::Default { of: DefaultKind::Model, .. } }
    ));
    assert!(!control.membership.manages, "2222085723512896 has no Manage Server");
    let mut managing = event("config-default");
    managing["member"]["permissions"] = json!("32");
    let inbound = send(&managing);
    assert!(matches!(&inbound.enqueue, Some(Body::Control(control)) if control.membership.manages));
    let mut odd = event("config-default");
    odd["data"]["options"][0]["name"] = json!("allow");
    odd["data"]["options"][0]["options"] = json!([]);
    assert!(refusal(&send(&odd)).contains("a channel, a role or a person"));
}

#[test]
fn control_commands_become_control_messages() {
    let status = send(&event("status"));
    assert_eq!(
        (want_of(&status), kind_of(&status)),
        (
            ControlAction::Command { command: bobbin_core::tenant::commands::Command::Status },
            (5, 64)
        )
    );
    let stop = send(&event("stop"));
    assert_eq!((want_of(&stop), kind_of(&stop)), (ControlAction::Stop { turn: None }, (5, 64)));
    let all = send(&event("stop-all"));
    assert_eq!((want_of(&all), kind_of(&all)), (ControlAction::StopAll, (5, 64)));
    let diff = send(&event("diff"));
    assert_eq!((want_of(&diff), kind_of(&diff)), (ControlAction::Diff { turn: None }, (5, 64)));
    let ask = send(&event("ask-button"));
    assert_eq!(
        (want_of(&ask), kind_of(&ask)),
        (ControlAction::Settle { ask: "per_01jd2m4q8x".into(), choice: Choice::Once }, (6, 0))
    );
    let pick = send(&event("question-select"));
    assert_eq!(
        (want_of(&pick), kind_of(&pick)),
        (
            ControlAction::Settle {
                ask: "que_01jd2m4q8y".into(),
                choice: crate::press::picked(vec![7])
            },
            (6, 0)
        )
    );
}

fn clicked(custom_id: &str, components: Value) -> Value {
    let mut event = event("ask-button");
    event["data"]["custom_id"] = json!(custom_id);
    event["message"]["components"] = components;
    event
}

#[test]
fn pull_request_is_asked_for_privately() {
    let show = |subject: Option<&str>, body: Option<&str>| ControlAction::Publish {
        step: PublishStep::Show {
            subject: subject.map(str::to_owned),
            body: body.map(str::to_owned),
            of: None,
        },
    };
    let pressed = send(&clicked("v1:publish", json!([])));
    assert_eq!((want_of(&pressed), kind_of(&pressed)), (show(None, None), (5, 64)));
    let typed = send(&slash("pr", &[("subject", " Add it "), ("body", "Why")]));
    let both = show(Some("Add it"), Some("Why"));
    assert_eq!((want_of(&typed), kind_of(&typed)), (both, (5, 64)));
    assert_eq!(want_of(&send(&slash("pr", &[]))), show(None, None));
    let commit = "0123456789abcdef0123456789abcdef01234567";
    let pushed = send(&clicked(&format!("v1:push:{commit}"), json!([])));
    let push = ControlAction::Publish { step: PublishStep::Push { commit: commit.to_owned() } };
    assert_eq!((want_of(&pushed), kind_of(&pushed)), (push, (5, 64)));
    assert!(refusal(&send(&clicked("v1:push:main", json!([])))).contains("/help"));
    let merge = PublishStep::Act { act: PullRequestAct::Merge, head: commit.to_owned() };
    let merged = send(&clicked(&format!("v1:act:merge:{commit}"), json!([])));
    assert_eq!(want_of(&merged), ControlAction::Publish { step: merge });
    let name = "0123456789abcdef01234567".to_owned();
    let fixed = send(&clicked(&format!("v1:fix:{name}"), json!([])));
    assert_eq!(want_of(&fixed), ControlAction::Publish { step: PublishStep::Fix { name } });
    let name = "0123456789abcdef01234567".to_owned();
    let posted = send(&clicked(&format!("v1:review:{name}"), json!([])));
    assert_eq!(want_of(&posted), ControlAction::Publish { step: PublishStep::Review { name } });
    let name = "0123456789abcdef01234567".to_owned();
    let all = send(&clicked(&format!("v1:push-all:{name}"), json!([])));
    assert_eq!(want_of(&all), ControlAction::Publish { step: PublishStep::PushAll { name } });
    for odd in [
        "v1:push-all:main".to_owned(),
        "v1:fix:main".to_owned(),
        "v1:review:main".to_owned(),
        "v1:act:merge:main".to_owned(),
        format!("v1:act:close:{commit}"),
    ] {
        assert!(refusal(&send(&clicked(&odd, json!([])))).contains("/help"), "{odd}");
    }
}

#[test]
fn edited_text_is_shown_again() {
    let shown = crate::discord::render::post(&Post::Review(review("Add it", "Why"))).body;
    let commit = "0123456789abcdef0123456789abcdef01234567";
    let opened = send(&clicked(&format!("v1:edit:{commit}"), shown["components"].clone()));
    assert_eq!((kind_of(&opened).0, &opened.enqueue), (9, &None));
    let values = |subject: &str, body: &str| {
        let mut form = event("reply-form");
        form["data"] = json!({"custom_id": format!("v1:text:{commit}"), "components": [
            {"type": 18, "component": {"type": 4, "custom_id": "subject", "value": subject}},
            {"type": 18, "component": {"type": 4, "custom_id": "body", "value": body}},
        ]});
        send(&form)
    };
    let sent = values("Add it all", "");
    let step = PublishStep::Show {
        subject: Some("Add it all".to_owned()),
        body: Some(String::new()),
        of: Some(ShowOf::Commit(commit.to_owned())),
    };
    assert_eq!((want_of(&sent), kind_of(&sent)), (ControlAction::Publish { step }, (5, 64)));
    assert_eq!(
        refusal(&values(&"x".repeat(121), "")),
        "The subject has 121 characters; at most 120 are possible. Nothing was changed."
    );
    assert!(refusal(&send(&clicked("v1:edit", json!([])))).contains("`/pr` shows it again"));
}

fn answered_form(fields: Value) -> Value {
    let mut event = event("reply-form");
    event["data"] = json!({"custom_id": "v1:answer:que_01jd2m4q8y", "components": fields});
    event
}

#[test]
fn answer_button_opens_form_with_question() {
    let shown = json!([{"type": 17, "components": [{"type": 10, "id": 100, "content": "**1. DB**\n> Which\\_one?\n1. Postgres — relational\n2. SQLite"}]}]);
    let inbound = send(&clicked("v1:form:que_01jd2m4q8y:s0.2-w0.0", shown));
    assert_eq!((kind_of(&inbound).0, &inbound.enqueue), (9, &None));
    let form = &body(&inbound.answer)["data"];
    assert_eq!(form["custom_id"], "v1:answer:que_01jd2m4q8y");
    let first = &form["components"][0];
    assert_eq!((&first["label"], &first["description"]), (&json!("1. DB"), &json!("Which_one?")));
    assert_eq!(first["component"]["options"][1]["label"], "SQLite");
    // A trimmed message still opens a form that can be sent.
    assert_eq!(kind_of(&send(&clicked("v1:form:que_1:m0.25-x.0", json!(null)))).0, 9);
    for odd in ["v1:form:que_1:s0.26", "v1:form:que_1:", "v1:answer:que_1"] {
        assert!(refusal(&send(&clicked(odd, json!([])))).contains("/help"), "{odd}");
    }
}

#[test]
fn filled_form_settles_its_ask() {
    let fields = json!([
        {"type": 18, "component": {"type": 3, "custom_id": "s0", "values": ["o1", "o2"]}},
        {"type": 18, "component": {"type": 4, "custom_id": "w0", "value": "and more"}},
        {"type": 1, "components": [{"type": 4, "custom_id": "x", "value": "2: 1"}]},
    ]);
    let inbound = send(&answered_form(fields));
    let choice = Choice::Form(vec![
        Field::Picked { question: 0, options: vec![1, 2] },
        Field::Words { question: 0, text: "and more".to_owned() },
        Field::Lines { text: "2: 1".to_owned() },
    ]);
    let ask = "que_01jd2m4q8y".to_owned();
    assert_eq!(
        (want_of(&inbound), kind_of(&inbound)),
        (ControlAction::Settle { ask: ask.into(), choice }, (6, 0))
    );
    for odd in [
        json!({"type": 4, "custom_id": "prompt", "value": "x"}),
        json!({"type": 3, "custom_id": "s0", "values": ["once"]}),
    ] {
        let odd = answered_form(json!([{"type": 18, "component": odd}]));
        assert!(refusal(&send(&odd)).contains("/help"));
    }
}

#[test]
fn clicks_and_forms_are_access_checked() {
    let forms = answered_form(json!([]));
    let presses = [
        event("ask-button"),
        event("question-select"),
        clicked("v1:form:que_1:w0.0", json!([])),
        forms,
    ];
    for event in &presses {
        for other in [
            app(GUILD, "", "1240000000000000999"),
            app(GUILD, "1240000000000000999", ""),
            app("1240000000000000999", "", ""),
        ] {
            let inbound = given(event.to_string().as_bytes(), &other);
            assert_eq!(inbound.note, "discord: refused by policy");
            refusal(&inbound);
        }
    }
}

#[test]
fn stop_button_answer_shows_stopping() {
    let inbound = send(&event("stop-button"));
    assert_eq!(want_of(&inbound), ControlAction::Stop { turn: Some("1240000000000000501".into()) });
    let answer = body(&inbound.answer);
    assert_eq!(answer["type"], 7);
    let text = answer.to_string();
    assert!(
        text.contains("Stopping…")
            && text.contains("Running cargo test")
            && !text.contains(r#""label":"Stop""#),
        "{text}"
    );
    for odd in [json!([]), json!([{"type": 99}]), json!("x")] {
        let mut event = event("stop-button");
        event["message"]["components"] = odd;
        let raw = event.to_string();
        let inbound = given(raw.as_bytes(), &open_app());
        assert!(inbound.answer.status == 400 || body(&inbound.answer)["type"] == 6);
    }
    let mut trimmed = event("stop-button");
    trimmed["message"] = json!({"id": "1240000000000000351"});
    assert_eq!(kind_of(&send(&trimmed)), (6, 0));
}

#[test]
fn reset_is_public_thread_work() {
    let inbound = send(&event("reset"));
    assert!(
        matches!(&inbound.enqueue, Some(Body::Message(Message { work: Work::Reset { by, keeps_files: false, .. }, .. })) if by.name == "Robin")
    );
    assert_eq!(kind_of(&inbound), (4, SUPPRESS_EMBEDS));
    let mut keeps = event("reset");
    keeps["data"]["options"] = json!([{"name": "keep-files", "type": 5, "value": true}]);
    let inbound = send(&keeps);
    assert!(matches!(
        &inbound.enqueue,
        Some(Body::Message(Message { work: Work::Reset { keeps_files: true, .. }, .. }))
    ));
}

#[test]
fn reply_button_opens_form() {
    let inbound = send(&event("reply-button"));
    assert_eq!((kind_of(&inbound).0, &inbound.enqueue), (9, &None));
    assert!(
        inbound.answer.body.contains(r#""max_length":4000"#)
            && inbound.answer.body.contains(r#""type":19"#)
            && inbound.answer.body.contains(r#""type":21"#)
    );
}

#[test]
fn thread_commands_are_refused_elsewhere() {
    for name in ["say-in-channel", "status", "stop", "reset", "diff"] {
        let mut event = event(name);
        event["channel"]["type"] = json!(0);
        assert!(refusal(&send(&event)).contains("`/sandbox` in a channel starts one"));
    }
    let mut voice = event("sandbox-in-channel");
    voice["channel"]["type"] = json!(2);
    assert!(refusal(&send(&voice)).contains("text channel"));
}

#[test]
fn unknown_or_incomplete_input_gets_advice() {
    for (name, word) in [
        ("unknown-command", "/help"),
        ("unknown-button", "/help"),
        ("sandbox-without-prompt", "fill in the prompt"),
        ("help", "/sandbox"),
        ("direct-message", "servers only"),
        ("user-install", "not a member"),
        ("bot", "Only people"),
    ] {
        assert!(refusal(&send(&event(name))).contains(word), "{name}");
    }
    let mut blank = event("say-in-thread");
    blank["data"]["options"][0]["value"] = json!(" \n ");
    assert!(refusal(&send(&blank)).contains("fill in the prompt"));
    let mut gone = event("sandbox-with-file");
    gone["data"]["resolved"] = Value::Null;
    assert!(refusal(&send(&gone)).contains("attach it again"));
    for data in [Value::Null, json!([]), json!({"name": 7}), json!({})] {
        for name in ["sandbox-in-channel", "stop-button", "reply-form"] {
            let mut odd = event(name);
            odd["data"] = data.clone();
            assert!(refusal(&send(&odd)).contains("no longer"), "{name} {data}");
        }
    }
}

#[test]
fn oversized_prompt_refusal_names_limit() {
    let with = |prompt_chars, attachments, attachment_bytes| App {
        limits: Limits {
            chat: ChatLimits { prompt_chars, ..ChatLimits::DEFAULT },
            files: FileLimits { attachments, attachment_bytes, ..FileLimits::DEFAULT },
            ..Limits::DEFAULT
        },
        ..open_app()
    };
    let app = with(10, 0, 1024 * 1024);
    let words = |app: &App, event: &Value| refusal(&given(event.to_string().as_bytes(), app));
    assert!(words(&app, &event("sandbox-in-channel")).contains("33 characters; the limit is 10"));
    let app = with(100, 0, 1024 * 1024);
    assert!(words(&app, &event("sandbox-with-file")).contains("at most 0 files"));
    let app = with(100, 1, 1000);
    assert!(words(&app, &event("sandbox-with-file")).contains("notes.txt is too large"));
}

/// A slash command in the thread of the stored events, with these text options.
#[test]
fn pull_request_is_chosen_by_its_number() {
    let task =
        |pr: &str| send(&slash("say", &[("prompt", "fix it"), ("repo", "acme/api"), ("pr", pr)]));
    for (typed, number) in [("12", Some(12)), (" #12 ", Some(12)), (" ", None)] {
        let chosen = task(typed);
        let (_, prompt) = prompt_of(&chosen);
        assert_eq!((prompt.wants.pr, prompt.wants.repo.as_deref()), (number, Some("acme/api")));
    }
    for typed in ["0", "next", "12.5"] {
        let said = refusal(&task(typed));
        assert!(said.contains("is not the number of a pull request: write it as in"), "{said}");
    }
}

fn slash(name: &str, options: &[(&str, &str)]) -> Value {
    let mut event = event("say-in-thread");
    let options =
        options.iter().map(|(name, value)| json!({"name": name, "type": 3, "value": value}));
    event["data"] = json!({"id": "1240000000000000900", "type": 1, "name": name, "options": options.collect::<Vec<_>>()});
    event
}

const FRONTEND_KEY: &str = "discord:1240000000000000100:1240000000000000300";

fn named(name: &str) -> bobbin_core::base::ids::SandboxName {
    name.parse().expect("a name")
}

#[test]
fn prompt_selects_sandbox_bad_names_refused() {
    let inbound = send(&slash(
        "sandbox",
        &[
            ("prompt", "fix it"),
            ("sandbox", " frontend "),
            ("provider", "Daytona"),
            ("snapshot", "base-1"),
            ("in", "shared"),
        ],
    ));
    let (_, prompt) = prompt_of(&inbound);
    assert_eq!(prompt.wants.sandbox, Some(named("frontend")));
    assert_eq!(prompt.wants.provider.as_deref(), Some("daytona"));
    assert_eq!(prompt.wants.snapshot.as_deref(), Some("base-1"));
    assert!(prompt.wants.in_common);
    let refused = |name: &str, options: &[(&str, &str)]| refusal(&send(&slash(name, options)));
    let bad = "\"Front_End\" cannot be the name of a sandbox: use 1 to 40 characters of a-z, 0-9 and -, for example frontend-2";
    let task = ("prompt", "fix it");
    assert_eq!(refused("sandbox", &[task, ("sandbox", "Front_End")]), bad);
    assert_eq!(refused("sandbox-name", &[("name", "Front_End")]), bad);
    assert_eq!(refused("sandbox-connect", &[("name", "Front_End")]), bad);
    assert_eq!(refused("sandbox-destroy", &[("name", "Front_End")]), bad);
    let odd = refused("sandbox", &[task, ("provider", "no such thing")]);
    assert!(odd.contains("cannot be a provider"), "{odd}");
}

#[test]
fn sandbox_name_goes_to_thread_publicly() {
    let inbound = send(&slash("sandbox-name", &[("name", "frontend")]));
    let Some(Body::Message(message)) = &inbound.enqueue else {
        panic!("no message: {inbound:?}");
    };
    assert_eq!(message.thread.to_string(), THREAD);
    assert!(matches!(&message.work, Work::Name { name, .. } if *name == named("frontend")));
    assert!(inbound.answer.body.contains("`frontend`"), "{}", inbound.answer.body);
}

#[test]
fn sandbox_commands_are_ephemeral_control_messages() {
    let want = |name: &str, options: &[(&str, &str)]| {
        let inbound = send(&slash(name, options));
        assert_eq!(kind_of(&inbound), (5, EPHEMERAL), "{name}");
        want_of(&inbound)
    };
    let list = ControlAction::Sandboxes { page: 0, in_thread: true };
    assert_eq!(want("sandbox-list", &[]), list);
    assert_eq!(want("sandbox-connect", &[]), ControlAction::Connect { to: None });
    let to = || WhichSandbox::Named(named("frontend"));
    assert_eq!(
        want("sandbox-connect", &[("name", "frontend")]),
        ControlAction::Connect { to: Some(to()) }
    );
    assert_eq!(
        want("sandbox-destroy", &[("name", "frontend")]),
        ControlAction::AskDestroy { sandbox: to() }
    );
    assert_eq!(
        want("sandbox-destroy", &[]),
        ControlAction::AskDestroy { sandbox: WhichSandbox::Here }
    );
}

#[test]
fn list_button_targets_its_sandbox() {
    let pressed = |id: &str| {
        let inbound = send(&clicked(id, json!([])));
        (kind_of(&inbound).0, want_of(&inbound))
    };
    let sandbox = || WhichSandbox::Exactly(FRONTEND_KEY.parse().expect("a key"));
    let operate = |operation| ControlAction::Operate { sandbox: sandbox(), operation };
    let button = |word: &str| format!("v1:box:{word}:{FRONTEND_KEY}");
    assert_eq!(pressed(&button("stop")), (5, operate(Operation::Pause)));
    assert_eq!(pressed(&button("start")), (5, operate(Operation::Resume)));
    assert_eq!(pressed(&button("snapshot")), (5, operate(Operation::Snapshot)));
    assert_eq!(pressed(&button("destroy")), (5, ControlAction::AskDestroy { sandbox: sandbox() }));
    assert_eq!(pressed(&button("connect")), (5, ControlAction::Connect { to: Some(sandbox()) }));
    let page = ControlAction::Sandboxes { page: 3, in_thread: true };
    assert_eq!(pressed("v1:boxes:3"), (6, page), "in place of the page that is there");
    let sure = format!("v1:destroy:{FRONTEND_KEY}");
    assert_eq!(pressed(&sure), (7, operate(Operation::Destroy)), "its buttons go at once");
    let kept = send(&clicked("v1:keep", json!([])));
    assert_eq!(kept.enqueue, None);
    let answer = body(&kept.answer);
    assert_eq!(answer["data"]["content"], "Nothing was destroyed.");
    assert_eq!(answer["data"]["components"], json!([]));
}

#[test]
fn completion_returns_lookup_without_choices() {
    let none = json!({"type": 8, "data": {"choices": []}});
    let inbound = send(&event("autocomplete"));
    assert_eq!((body(&inbound.answer), &inbound.enqueue), (none.clone(), &None));
    let lookup = inbound.lookup.expect("a lookup");
    assert_eq!(
        (lookup.tenant, lookup.sought, lookup.typed.as_str()),
        (Tenant::discord(GUILD), SuggestionKind::Choice(DefaultKind::Model), "son")
    );
    assert_eq!(lookup.user, "1240000000000000400");
    let lookup = send(&event("autocomplete-config")).lookup.expect("a lookup");
    let expected = (SuggestionKind::Choice(DefaultKind::Repo), "octo");
    assert_eq!((lookup.sought, lookup.typed.as_str()), expected);
    // A person without permission, and an option without suggestions.
    let raw = event("autocomplete").to_string();
    let refused = given(raw.as_bytes(), &app("1", "", ""));
    assert_eq!((body(&refused.answer), refused.lookup), (none.clone(), None));
    let mut words = event("autocomplete");
    words["data"]["options"] =
        json!([{"name": "prompt", "type": 3, "value": "Add", "focused": true}]);
    let inbound = send(&words);
    assert_eq!((body(&inbound.answer), inbound.lookup), (none.clone(), None));
    words["data"] = Value::Null;
    assert_eq!(body(&send(&words).answer), none);
}

#[test]
fn every_interaction_is_checked_against_policy() {
    for name in [
        "sandbox-in-channel",
        "say-in-thread",
        "status",
        "reset",
        "stop-button",
        "reply-button",
        "ask-button",
        "reply-form",
        "send-to-sandbox",
    ] {
        let raw = event(name).to_string();
        let words = |app: &App| refusal(&given(raw.as_bytes(), app));
        assert!(words(&app("1", "", "")).contains("not enabled here"), "{name}");
        assert!(words(&app("", "", "")).contains("not enabled here"), "{name}");
        assert!(words(&app(GUILD, "1", "")).contains("in this channel"), "{name}");
        assert!(words(&app(GUILD, "", "1")).contains("may not use"), "{name}");
        let admitted = given(raw.as_bytes(), &app(GUILD, CHANNEL, "1240000000000000700"));
        assert!(
            admitted.enqueue.is_some() || body(&admitted.answer)["type"] == 9,
            "{name}: a thread of the channel, a role of the person"
        );
    }
}

#[test]
fn channel_category_grants_no_access() {
    let raw = event("sandbox-in-channel").to_string();
    assert!(
        refusal(&given(raw.as_bytes(), &app(GUILD, "1240000000000000150", "")))
            .contains("in this channel")
    );
}

#[test]
fn missing_permissions_are_named_up_front() {
    let mut event = event("sandbox-in-channel");
    event["app_permissions"] = json!("3072");
    assert!(
        refusal(&send(&event))
            .contains("Read Message History, Create Public Threads, Send Messages in Threads")
    );
    event["app_permissions"] = json!("8");
    assert!(send(&event).enqueue.is_some());
}

#[test]
fn prompt_cannot_ping_or_escape_quote() {
    let mut event = event("say-in-thread");
    event["data"]["options"][0]["value"] = json!(format!("@everyone <@1> {}", "漢".repeat(5000)));
    event["member"]["nick"] = json!("**x** @here");
    let answer = body(&send(&event).answer);
    assert_eq!(answer["data"]["allowed_mentions"], json!({"parse": []}));
    assert!(
        answer["data"]["content"].as_str().expect("text").starts_with(r"**\*\*x\*\* \@here**: ")
    );
}

#[test]
fn recorded_payloads_get_expected_answers() {
    let Some(folder) = outside("payloads/discord") else {
        return;
    };
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).expect("folder") {
        let file: Value = serde_json::from_str(
            &std::fs::read_to_string(entry.expect("entry").path()).expect("readable"),
        )
        .expect("JSON");
        if file["request"]["endpoint"] != "interactions" {
            continue;
        }
        seen += 1;
        let (request, expect, name) = (&file["request"]["json"], &file["expect"], &file["id"]);
        let guild = request["guild_id"].as_str().unwrap_or("1");
        let inbound = given(request.to_string().as_bytes(), &app(guild, "", ""));
        assert_eq!(json!(inbound.answer.status), expect["status"], "{name}");
        let kind = &body(&inbound.answer)["type"];
        match &expect["callback_type"] {
            Value::Array(kinds) => assert!(kinds.contains(kind), "{name}: {kind}"),
            Value::Null => {
                assert_eq!(inbound.enqueue, None, "{name}: none of these is a command of ours")
            }
            one => assert_eq!(kind, one, "{name}"),
        }
        let read: Interaction =
            serde_json::from_value(request.clone()).expect("every recorded shape is read");
        if let Some(custom_id) = expect["custom_id"].as_str() {
            assert_eq!(
                data::<Component>(request["data"].clone())
                    .ok()
                    .map(|click| click.custom_id)
                    .as_deref(),
                Some(custom_id),
                "{name}"
            );
        }
        if let Some(text) = expect["message_text"].as_str() {
            let mut command: InvokedCommand =
                serde_json::from_value(request["data"].clone()).expect("a command");
            let app = app(guild, "", "");
            let Ok(prompt) = AdmittedInteraction::admitted(&read, &app, NOW_MS)
                .and_then(|request| request.sent(&command))
            else {
                panic!("{name}: refused")
            };
            let quoted = prompt.quotes.last().map(|quote| quote.text.as_str());
            assert_eq!(quoted.or(Some(&prompt.text)), Some(text), "{name}");
            command.target_id = None;
            assert!(
                AdmittedInteraction::admitted(&read, &app, NOW_MS)
                    .and_then(|request| request.sent(&command))
                    .is_err()
            );
        }
        if expect["starts_turn"] == false {
            assert_eq!(inbound.enqueue, None, "{name}");
        }
    }
    assert!(seen >= 13, "only {seen} payloads");
}
