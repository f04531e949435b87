//! The outcome of each request: our own payloads (`events/slack`), then bad input.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bobbin_core::base::ids::{Tenant, ThreadKey};
use bobbin_core::records::ask::{Choice, Field};
use bobbin_core::records::card::Post;
use bobbin_core::records::control::{
    Control, ControlAction, Operation, PublishStep, ShowOf, WhichSandbox,
};
use bobbin_core::records::message::{
    Attachment, Body, Message, Prompt, Quote, Reply, Surface, Work,
};
use bobbin_core::records::publication::PullRequestAct;
use bobbin_core::tenant::access::Refusal;
use bobbin_core::tenant::commands::Command;
use bobbin_core::tenant::selection::Selection;
use bobbin_core::tenant::settings::{DefaultKind, SettingsChange};
use serde_json::{Value, json};

use super::{NOW_MS, app, request, sign, signed};
use crate::Inbound;
use crate::review::tests::review;
use crate::slack::{events, help, message_id, message_ts, render};

const TEAM: &str = "T0BOBBIN01";
const CHANNEL: &str = "C0BUILD0001";
const ANNA: &str = "U0ANNA00001";

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../events/slack")
}

/// The request in a stored event (see `events/README.md`), split into its endpoint and its content: `json`, a `payload`
/// in a form, or a `form`.
fn stored(name: &str) -> Value {
    let path = folder().join(format!("{name}.json"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let event: Value = serde_json::from_str(&text).unwrap();
    let endpoint = event["rawPath"].as_str().unwrap().rsplit('/').next();
    let body = event["body"].as_str().unwrap();
    if event["isBase64Encoded"] == false {
        let json: Value = serde_json::from_str(body).unwrap();
        return json!({"endpoint": endpoint, "json": json});
    }
    let body = STANDARD.decode(body).unwrap();
    let fields: BTreeMap<String, String> = form_urlencoded::parse(&body).into_owned().collect();
    match fields.get("payload") {
        Some(payload) => {
            let payload: Value = serde_json::from_str(payload).unwrap();
            json!({"endpoint": endpoint, "payload": payload})
        }
        None => json!({"endpoint": endpoint, "form": fields}),
    }
}

fn sent(name: &str, teams: &str) -> Inbound {
    let (endpoint, raw) = request(&stored(name));
    signed(&endpoint, &raw, &app(teams, "", ""))
}

fn admitted(name: &str) -> Inbound {
    sent(name, "T0BOBBIN01,E0BOBBIN01")
}

fn message(inbound: &Inbound) -> &Message {
    let Some(Body::Message(message)) = &inbound.enqueue else { panic!("no message: {inbound:?}") };
    message
}

fn prompt(inbound: &Inbound) -> &Prompt {
    let Work::Prompt(prompt) = &message(inbound).work else { panic!("no prompt: {inbound:?}") };
    prompt
}

fn control(inbound: &Inbound) -> &Control {
    let Some(Body::Control(control)) = &inbound.enqueue else { panic!("no control: {inbound:?}") };
    control
}

fn thread(root: &str) -> ThreadKey {
    ThreadKey::slack(TEAM, CHANNEL, root).unwrap()
}

#[test]
fn stored_payloads_have_expected_outcomes() {
    let table = [
        ("url_verification", "url verification"),
        ("app_mention", "prompt"),
        ("message_twin", "prompt"),
        ("retry", "prompt"),
        ("thread_reply_mention", "prompt"),
        ("thread_reply_plain", "message without a mention"),
        ("thread_broadcast", "prompt"),
        ("message_im", "prompt"),
        ("message_im_status", "status"),
        ("file_share", "prompt"),
        ("message_changed", "hidden message"),
        ("message_deleted", "message deleted"),
        ("app_home_opened", "home"),
        ("block_actions_home", "config"),
        ("block_suggestion", "suggestions"),
        ("bot_message", "message of a bot"),
        ("connect_foreign_user", "refused by policy"),
        ("org_install", "help"),
        ("agent_session_stopped", "stop"),
        ("app_uninstalled", "the app was removed from a workspace"),
        ("block_actions_stop", "stop"),
        ("block_actions_ask", "ask settled"),
        ("block_actions_form", "ask settled"),
        ("view_submission", "view not in use"),
        ("message_shortcut", "prompt"),
        ("slash_status", "overview"),
        ("slash_stop", "command for a thread"),
        ("slash_config", "config"),
        ("slash_help", "help"),
        ("slash_unknown", "unknown command"),
        ("ssl_check", "ssl check"),
    ];
    for (name, note) in table {
        let inbound = admitted(name);
        assert_eq!((inbound.answer.status, inbound.note), (200, note), "{name}");
    }
    let files: BTreeSet<String> = std::fs::read_dir(folder())
        .unwrap()
        .filter_map(|entry| {
            entry.unwrap().file_name().to_str()?.strip_suffix(".json").map(str::to_owned)
        })
        .collect();
    assert_eq!(files, table.map(|(name, _)| name.to_owned()).into());
}

#[test]
fn only_signed_url_verification_is_echoed() {
    let inbound = sent("url_verification", "");
    assert_eq!(
        serde_json::from_str::<Value>(&inbound.answer.body).unwrap(),
        json!({ "challenge": "kYx3mB7qT1cVw9" })
    );
    let (_, raw) = request(&stored("url_verification"));
    let unsigned = events(&raw, "", "", &app(TEAM, "", ""), NOW_MS);
    assert_eq!((unsigned.answer.status, unsigned.enqueue), (401, None));
}

#[test]
fn mention_and_retry_are_one_message() {
    let [mention, twin, retry] = ["app_mention", "message_twin", "retry"].map(admitted);
    assert_eq!(mention.enqueue, twin.enqueue);
    assert_eq!(mention.enqueue, retry.enqueue);
    assert_eq!(message(&mention).id, "slack_T0BOBBIN01_C0BUILD0001_1790000000.000100");
    assert_eq!(message(&mention).thread, thread("1790000000.000100"));
    assert_eq!(message(&mention).accepted_at_ms, NOW_MS);
    assert_eq!(prompt(&mention).text, "list the files & say which are < 1 kB");
    assert_eq!(prompt(&mention).by.id, ANNA);
    assert_eq!(mention.on_queue_failure.status, 503);
}

#[test]
fn reply_continues_its_root_thread() {
    let reply = admitted("thread_reply_mention");
    assert_eq!(message(&reply).thread, thread("1790000000.000100"));
    assert_eq!(message(&reply).id, "slack_T0BOBBIN01_C0BUILD0001_1790000060.000200");
    assert_eq!(prompt(&reply).text, "now run the tests, see https://ci.example/run?id=7&full=1");
    assert_eq!(message(&admitted("thread_broadcast")).thread, thread("1790000000.000100"));
    assert_eq!(admitted("thread_reply_plain").enqueue, None);
}

#[test]
fn direct_message_needs_no_mention() {
    let direct = admitted("message_im");
    assert_eq!(
        message(&direct).thread.to_string(),
        "slack:T0BOBBIN01:D0DIRECT001:1790000100.000100"
    );
    assert_eq!(prompt(&direct).by.name, "anna");
    let status = admitted("message_im_status");
    assert_eq!(control(&status).want, ControlAction::Command { command: Command::Status });
    let reply = Reply::Slack {
        channel: "D0DIRECT001".into(),
        thread_ts: Some("1790000100.000100".into()),
        user: ANNA.into(),
    };
    assert_eq!(control(&status).reply, reply);
}

#[test]
fn only_existing_files_are_attached() {
    let shared = admitted("file_share");
    let sketch = Attachment {
        name: "sketch.png".into(),
        url: "https://files.slack.com/files-pri/T0BOBBIN01-F0SKETCH001/download/sketch.png".into(),
        size: 20480,
        media_type: Some("image/png".into()),
    };
    assert_eq!(prompt(&shared).attachments, [sketch]);
    assert_eq!(prompt(&shared).text, "build this");
}

#[test]
fn file_without_text_is_a_prompt() {
    let mut stored = stored("file_share");
    stored["json"]["event"]["text"] = "<@U0BOBBINBOT>".into();
    let (_, raw) = request(&stored);
    let inbound = signed("events", &raw, &app(TEAM, "", ""));
    assert_eq!((prompt(&inbound).text.as_str(), prompt(&inbound).attachments.len()), ("", 1));
}

/// A mention with this text.
fn mention(words: &str, policy: &crate::slack::App) -> Inbound {
    let mut stored = stored("app_mention");
    stored["json"]["event"]["text"] = format!("<@U0BOBBINBOT> {words}").into();
    let (_, raw) = request(&stored);
    signed("events", &raw, policy)
}

#[test]
fn only_whole_text_is_a_command() {
    let allowed = app(TEAM, "", "");
    assert_eq!(control(&mention("stop", &allowed)).want, ControlAction::Stop { turn: None });
    assert_eq!(
        control(&mention("STATUS", &allowed)).want,
        ControlAction::Command { command: Command::Status }
    );
    assert_eq!(control(&mention("help", &allowed)).want, ControlAction::Help { text: help() });
    assert_eq!(control(&mention(" ", &allowed)).want, ControlAction::Help { text: help() });
    let reset = mention("Reset", &allowed);
    assert!(
        matches!(&message(&reset).work, Work::Reset { by, keeps_files: false, .. } if by.id == ANNA)
    );
    let keeps = mention("reset keep files", &allowed);
    assert!(matches!(&message(&keeps).work, Work::Reset { keeps_files: true, .. }));
    assert_eq!(prompt(&mention("stop the server", &allowed)).text, "stop the server");
}

#[test]
fn unknown_team_ignored_refusals_stay_private() {
    for name in [
        "app_mention",
        "message_im",
        "block_actions_stop",
        "message_shortcut",
        "agent_session_stopped",
    ] {
        let inbound = sent(name, "T0SOMEBODY");
        assert_eq!(
            (inbound.answer.status, inbound.answer.body.as_str(), inbound.enqueue),
            (200, "", None),
            "{name}"
        );
    }
    let inbound = mention("hello", &app(TEAM, "C0OTHER", ""));
    let refused = control(&inbound);
    assert_eq!(refused.want, ControlAction::Say { text: Refusal::Channel.to_string() });
    assert_eq!(
        refused.reply,
        Reply::Slack { channel: CHANNEL.into(), thread_ts: None, user: ANNA.into() }
    );
    let inbound = mention("hello", &app(TEAM, "", "U0BEN"));
    assert_eq!(control(&inbound).want, ControlAction::Say { text: Refusal::Person.to_string() });
}

#[test]
fn foreign_people_refused_under_own_tenant() {
    let foreign = admitted("connect_foreign_user");
    assert!(
        matches!(&control(&foreign).want, ControlAction::Say { text } if text.contains("own workspace"))
    );
    assert_eq!(control(&foreign).thread.tenant(), Tenant::slack("T0BOBBIN01"));
    // That the sender's own team is on the list does not make it the tenant.
    assert_eq!(sent("connect_foreign_user", "T0FOREIGN01").enqueue, None);
    let mut not_shared = stored("connect_foreign_user");
    not_shared["json"]["is_ext_shared_channel"] = false.into();
    let (_, raw) = request(&not_shared);
    assert!(matches!(
        &control(&signed("events", &raw, &app(TEAM, "", ""))).want,
        ControlAction::Say { .. }
    ));
}

#[test]
fn organisation_install_uses_enterprise_tenant() {
    assert_eq!(control(&admitted("org_install")).thread.tenant(), Tenant::slack("E0BOBBIN01"));
    assert_eq!(sent("org_install", TEAM).enqueue, None);
}

#[test]
fn stop_button_names_its_turn() {
    let inbound = admitted("block_actions_stop");
    let stop = control(&inbound);
    assert_eq!(
        stop.want,
        ControlAction::Stop { turn: Some("slack_T0BOBBIN01_C0BUILD0001_1790000000.000100".into()) }
    );
    assert_eq!(stop.thread, thread("1790000000.000100"));
    assert_eq!(stop.by.name, "anna");
    assert_eq!(
        stop.id,
        "slack_T0BOBBIN01_C0BUILD0001_1790000002.000200_1790000010.000001_U0ANNA00001"
    );
    assert!(
        inbound.on_queue_failure.status == 200
            && inbound.on_queue_failure.body.contains("try again")
    );
    let slacks_own = admitted("agent_session_stopped");
    assert_eq!(control(&slacks_own).want, ControlAction::Stop { turn: None });
}

#[test]
fn buttons_and_selects_settle_an_ask() {
    let always = admitted("block_actions_ask");
    let want = ControlAction::Settle { ask: "per_0123456789abcdef".into(), choice: Choice::Always };
    assert_eq!(control(&always).want, want);
    let form = admitted("block_actions_form");
    let want = ControlAction::Settle {
        ask: "que_0123456789abcdef".into(),
        choice: Choice::Form(vec![
            Field::Picked { question: 0, options: vec![3] },
            Field::Picked { question: 1, options: vec![0, 2] },
            words(1, ""),
            words(2, "as you like"),
        ]),
    };
    assert_eq!(control(&form).want, want);
    let mut pressed = stored("block_actions_ask");
    pressed["payload"]["actions"][0]["value"] = "que_1:o3".into();
    let (_, raw) = request(&pressed);
    let want = ControlAction::Settle { ask: "que_1".into(), choice: crate::press::picked(vec![3]) };
    assert_eq!(control(&signed("interactivity", &raw, &app(TEAM, "", ""))).want, want);
}

/// A click on this button of a message with these inputs.
fn pressed(action_id: &str, value: &str, inputs: Value) -> Inbound {
    let mut stored = stored("block_actions_form");
    stored["payload"]["actions"][0]["action_id"] = action_id.into();
    stored["payload"]["actions"][0]["value"] = value.into();
    stored["payload"]["state"]["values"] = inputs;
    let (_, raw) = request(&stored);
    signed("interactivity", &raw, &app(TEAM, "", ""))
}

#[test]
fn pull_request_buttons_ask_for_its_steps() {
    let show =
        ControlAction::Publish { step: PublishStep::Show { subject: None, body: None, of: None } };
    let turn = "slack_T0BOBBIN01_C0BUILD0001_1790000000.000100";
    assert_eq!(control(&pressed("v1:publish:show", turn, json!({}))).want, show);
    assert_eq!(control(&mentioned("pr")).want, show);
    assert_eq!(prompt(&mentioned("pr 12")).text, "pr 12");
    let commit = "0123456789abcdef0123456789abcdef01234567";
    let push = ControlAction::Publish { step: PublishStep::Push { commit: commit.to_owned() } };
    assert_eq!(control(&pressed("v1:publish:push", commit, json!({}))).want, push);
    let ready = PublishStep::Act { act: PullRequestAct::MarkReady, head: commit.to_owned() };
    let readied = pressed("v1:act:ready", commit, json!({}));
    assert_eq!(control(&readied).want, ControlAction::Publish { step: ready });
    let name = "0123456789abcdef01234567";
    let fix = ControlAction::Publish { step: PublishStep::Fix { name: name.to_owned() } };
    assert_eq!(control(&pressed("v1:publish:fix", name, json!({}))).want, fix);
    let review = ControlAction::Publish { step: PublishStep::Review { name: name.to_owned() } };
    assert_eq!(control(&pressed("v1:publish:review", name, json!({}))).want, review);
    let all = ControlAction::Publish { step: PublishStep::PushAll { name: name.to_owned() } };
    assert_eq!(control(&pressed("v1:publish:all", name, json!({}))).want, all);
    for (action, value) in [
        ("v1:publish:all", "main"),
        ("v1:publish:review", "main"),
        ("v1:publish:fix", "main"),
        ("v1:publish:push", "main"),
        ("v1:publish:edit", commit),
        ("v1:act:ready", "main"),
        ("v1:act:close", commit),
    ] {
        let odd = pressed(action, value, json!({}));
        assert_eq!((odd.enqueue, odd.note), (None, "element not in use"), "{action}");
    }
}

#[test]
fn edited_text_is_shown_again() {
    let body = "Closes #\u{200b}12\n```\ncode\n```";
    let shown = render::post(&Post::Review(review("Add `it`", body)));
    let inputs = shown.blocks.iter().filter(|block| block["type"] == "input");
    let values: Value = inputs
        .map(|input| {
            let (id, element) = (input["block_id"].as_str().unwrap(), &input["element"]);
            let value = json!({"type": "plain_text_input", "value": element["initial_value"]});
            (id.to_owned(), json!({element["action_id"].as_str().unwrap(): value}))
        })
        .collect::<serde_json::Map<_, _>>()
        .into();
    let commit = "0123456789abcdef0123456789abcdef01234567";
    let sent = pressed("v1:publish:edit", commit, values.clone());
    let step = PublishStep::Show {
        subject: Some("Add `it`".to_owned()),
        body: Some(body.to_owned()),
        of: Some(ShowOf::Commit(commit.to_owned())),
    };
    assert_eq!(control(&sent).want, ControlAction::Publish { step });
    let mut long = values;
    long["v1:publish:body"]["v1:publish:body"]["value"] = "x".repeat(2_001).into();
    let refused = pressed("v1:publish:edit", "0123", long);
    let ControlAction::Say { text } = &control(&refused).want else {
        panic!("a long text is refused");
    };
    assert_eq!(
        text,
        "The text has 2001 characters; at most 2000 are possible. Nothing was changed."
    );
}

fn words(question: usize, text: &str) -> Field {
    let text = text.to_owned();
    Field::Words { question, text }
}

#[test]
fn foreign_inputs_leave_form_empty() {
    for odd in [
        serde_json::json!(null),
        serde_json::json!({"values": {"b": {"v1:field:q1": {"value": "x"}, "other": {"value": "y"}}}}),
        serde_json::json!({"values": {"b": {"v1:field:s0": {"selected_option": {"value": "nine"}}}}}),
        serde_json::json!({"values": [1, 2]}),
    ] {
        let mut stored = stored("block_actions_form");
        stored["payload"]["state"] = odd;
        let (_, raw) = request(&stored);
        let inbound = signed("interactivity", &raw, &app(TEAM, "", ""));
        let form = |fields| ControlAction::Settle {
            ask: "que_0123456789abcdef".into(),
            choice: Choice::Form(fields),
        };
        assert_eq!(control(&inbound).want, form(vec![]));
    }
}

#[test]
fn form_without_access_is_refused() {
    let stored = stored("block_actions_form");
    let (_, raw) = request(&stored);
    let others = app(TEAM, "", "U0OTHER0001");
    let refused = signed("interactivity", &raw, &others);
    assert!(
        matches!(&control(&refused).want, ControlAction::Say { text } if text.contains("may not use"))
    );
    let elsewhere = app(TEAM, "C0OTHER0001", "");
    assert!(matches!(
        &control(&signed("interactivity", &raw, &elsewhere)).want,
        ControlAction::Say { .. }
    ));
    assert_eq!(signed("interactivity", &raw, &app("T0OTHER0001", "", "")).enqueue, None);
}

#[test]
fn click_with_foreign_value_is_ignored() {
    for value in [
        "",
        ":",
        "per_1",
        "per_1:",
        ":once",
        "per_1:maybe",
        "per_1:o",
        "per_1:o-1",
        "per_1:o99999999999999999999999",
    ] {
        let mut stored = stored("block_actions_ask");
        stored["payload"]["actions"][0]["value"] = value.into();
        let (_, raw) = request(&stored);
        let inbound = signed("interactivity", &raw, &app(TEAM, "", ""));
        assert_eq!((inbound.enqueue, inbound.note), (None, "element not in use"), "{value:?}");
    }
}

#[test]
fn foreign_members_click_is_refused() {
    let mut stored = stored("block_actions_stop");
    stored["payload"]["user"]["team_id"] = "T0FOREIGN01".into();
    let (_, raw) = request(&stored);
    let inbound = signed("interactivity", &raw, &app(TEAM, "", ""));
    assert!(matches!(&control(&inbound).want, ControlAction::Say { .. }));
}

#[test]
fn shortcut_starts_turn_in_messages_thread() {
    let inbound = admitted("message_shortcut");
    assert_eq!(message(&inbound).thread, thread("1789999000.000300"));
    let quote =
        Quote { by: String::new(), text: "The build fails on https://ci.example/9".to_owned() };
    assert_eq!(prompt(&inbound).quotes, [quote]);
    assert_eq!(
        prompt(&inbound).text,
        "Do what this message asks for, or look into what it reports."
    );
    assert_eq!(prompt(&inbound).by.id, ANNA);
    assert_eq!(message_ts(&message(&inbound).id), Some("1789999000.000300"));
}

#[test]
fn own_message_becomes_the_prompt() {
    let mut own = stored("message_shortcut");
    own["payload"]["message"]["user"] = ANNA.into();
    let (endpoint, raw) = request(&own);
    let inbound = signed(&endpoint, &raw, &app(TEAM, "", ""));
    assert_eq!(prompt(&inbound).text, "The build fails on https://ci.example/9");
    assert!(prompt(&inbound).quotes.is_empty());
}

#[test]
fn mention_options_are_validated() {
    let chosen = mention("repo:acme/api model:openai/gpt agent:plan fix it", &app(TEAM, "", ""));
    let wants = Selection {
        repo: Some("acme/api".to_owned()),
        model: Some("openai/gpt".to_owned()),
        agent: Some("plan".to_owned()),
        ..Selection::default()
    };
    assert_eq!((&prompt(&chosen).wants, prompt(&chosen).text.as_str()), (&wants, "fix it"));
    let given = mention("repo:acme/api pr:#12 review it", &app(TEAM, "", ""));
    let wants = &prompt(&given).wants;
    assert_eq!((wants.pr, prompt(&given).text.as_str()), (Some(12), "review it"));
    let wrong = mention("repo:acme/api pr:next review it", &app(TEAM, "", ""));
    let ControlAction::Say { text } = &control(&wrong).want else { panic!("{wrong:?}") };
    assert!(text.contains("\"next\" is not the number of a pull request: write it"), "{text}");
    let wrong = mention("repo:api fix it", &app(TEAM, "", ""));
    let ControlAction::Say { text } = &control(&wrong).want else { panic!("{wrong:?}") };
    assert!(text.contains("`api` cannot be used as a repository"), "{text}");
    let alone = mention("agent:plan", &app(TEAM, "", ""));
    assert!(matches!(control(&alone).want, ControlAction::Help { .. }));
}

#[test]
fn only_deleted_prompt_is_withdrawn() {
    let inbound = admitted("message_deleted");
    let expected = ControlAction::Withdraw {
        turn: message_id(TEAM, CHANNEL, "1790000000.000100", &[]).into(),
    };
    assert_eq!(control(&inbound).want, expected);
    assert_eq!(control(&inbound).thread, thread("1790000000.000100"));
    assert_eq!(control(&inbound).by.id, ANNA);
    let changed = |path: &str, value: Value| {
        let mut event = stored("message_deleted");
        event["json"]["event"]["previous_message"][path] = value;
        let (endpoint, raw) = request(&event);
        signed(&endpoint, &raw, &app(TEAM, "", "")).enqueue
    };
    assert_eq!(changed("text", json!("no mention")), None);
    assert_eq!(changed("bot_id", json!("B1")), None);
    assert_eq!(changed("user", Value::Null), None);
}

#[test]
fn an_edited_message_changes_nothing() {
    assert_eq!(admitted("message_changed").enqueue, None);
}

#[test]
fn slash_commands_show_overview_and_configure() {
    let Some(Body::Overview(overview)) = admitted("slash_status").enqueue else {
        panic!("no overview")
    };
    let reply =
        Reply::Slack { channel: CHANNEL.to_owned(), thread_ts: None, user: ANNA.to_owned() };
    let place = Surface::Answer { reply: reply.clone(), channel: CHANNEL.to_owned() };
    assert_eq!((overview.team.as_str(), overview.place), (TEAM, place));
    let inbound = admitted("slash_config");
    assert_eq!(inbound.answer.body, "");
    assert!(inbound.on_queue_failure.body.contains("ephemeral"));
    let expected = ControlAction::Configure {
        change: SettingsChange::Default {
            channel: Some(CHANNEL.to_owned()),
            of: DefaultKind::Model,
            value: Some("openai/gpt".to_owned()),
        },
    };
    let control = control(&inbound);
    assert_eq!((&control.want, &control.reply), (&expected, &reply));
    assert_eq!(control.thread.tenant(), Tenant::slack(TEAM));
}

#[test]
fn slash_command_answers_are_ephemeral() {
    for (name, words) in [
        ("slash_stop", "@Bobbin stop"),
        ("slash_help", "Mention me"),
        ("slash_unknown", "does not know the word `dance`"),
    ] {
        let inbound = admitted(name);
        let answer: Value = serde_json::from_str(&inbound.answer.body).unwrap();
        assert_eq!((answer["response_type"].as_str(), inbound.enqueue), (Some("ephemeral"), None));
        assert!(answer["text"].as_str().unwrap().contains(words), "{name}: {answer}");
    }
    assert!(sent("slash_help", "").answer.body.contains("not enabled here"));
    assert!(!help().contains(['&', '<', '>']), "the help text goes into mrkdwn as it is");
}

#[test]
fn malformed_body_gets_explained_400() {
    let bad: [(&str, &[u8]); 14] = [
        ("events", b""),
        ("events", b"{"),
        ("events", b"[]"),
        ("events", b"\"text\""),
        ("events", b"{}"),
        ("events", b"{\"type\":7}"),
        ("events", b"{\"type\":\"event_callback\"}"),
        ("events", b"{\"type\":\"url_verification\"}"),
        ("events", b"\xff\xfe"),
        ("interactivity", b""),
        ("interactivity", b"payload=%7B"),
        ("interactivity", b"payload=%7B%7D"),
        ("commands", b""),
        ("commands", b"command=%2Fbobbin"),
    ];
    for (endpoint, raw) in bad {
        let inbound = signed(endpoint, raw, &app(TEAM, "", ""));
        assert_eq!(
            (inbound.answer.status, &inbound.enqueue),
            (400, &None),
            "{endpoint} {:?}",
            String::from_utf8_lossy(raw)
        );
        assert!(inbound.answer.body.len() > 10);
    }
    let deep = format!("{{\"type\":{}", "[".repeat(100_000));
    assert_eq!(signed("events", deep.as_bytes(), &app(TEAM, "", "")).answer.status, 400);
}

#[test]
fn oversized_body_gets_413() {
    let raw = vec![b' '; super::super::limits::BODY_BYTES_MAX + 1];
    assert_eq!(signed("events", &raw, &app(TEAM, "", "")).answer.status, 413);
}

#[test]
fn every_endpoint_refuses_bad_signatures() {
    for name in ["app_mention", "block_actions_stop", "slash_status", "ssl_check"] {
        let (endpoint, raw) = request(&stored(name));
        let endpoint = match endpoint.as_str() {
            "events" => events,
            "interactivity" => crate::slack::interactivity,
            _ => crate::slack::commands,
        };
        let timestamp = (NOW_MS / 1_000).to_string();
        let inbound = endpoint(
            &raw,
            &sign("another secret", &timestamp, &raw),
            &timestamp,
            &app(TEAM, "", ""),
            NOW_MS,
        );
        assert_eq!(
            (inbound.answer.status, inbound.enqueue, inbound.note),
            (401, None, "bad signature"),
            "{name}"
        );
    }
}

#[test]
fn unknown_kinds_are_acknowledged_without_effect() {
    let odd = [
        json!({"type": "from_the_future"}),
        json!({"type": "event_callback", "event": {"type": "pin_added"}, "authorizations": "x"}),
        json!({"type": "event_callback", "event": {"type": "app_mention", "user": {"id": 7}, "channel": ["C1"], "ts": 1.5}}),
        json!({"type": "event_callback", "team_id": TEAM, "event": {"type": "app_mention", "user": "U1", "channel": "C1 x", "ts": "1.2", "text": "hi"}}),
        json!({"type": "app_rate_limited", "team_id": TEAM, "minute_rate_limited": 1}),
    ];
    for body in odd {
        let inbound = signed("events", body.to_string().as_bytes(), &app(TEAM, "", ""));
        assert_eq!((inbound.answer.status, inbound.enqueue), (200, None), "{body}");
    }
    let raw = b"payload=%7B%22type%22%3A%22from_the_future%22%7D";
    assert_eq!(signed("interactivity", raw, &app(TEAM, "", "")).note, "unknown interaction");
}

#[test]
fn oversized_prompt_is_advised_to_attach() {
    let inbound = mention(&"x".repeat(100_001), &app(TEAM, "", ""));
    assert!(
        matches!(&control(&inbound).want, ControlAction::Say { text } if text.contains("attach"))
    );
}

#[test]
fn message_ids_fit_queue_without_collisions() {
    let long = "9".repeat(64);
    let id = message_id(&long, &long, &long, &["1", "U1"]);
    assert!(id.len() <= 128 && id.is_ascii() && message_ts(&id).is_none());
    assert_ne!(id, message_id(&long, &long, &long, &["2", "U1"]));
    assert_ne!(message_id("T1", "C1_2", "3", &[]), message_id("T1", "C1", "2_3", &[]));
    assert_eq!(message_ts("slack_T1_C1_1790000000.000100"), Some("1790000000.000100"));
    assert_eq!(message_ts("1182000000000000000"), None);
}

fn mentioned(text: &str) -> Inbound {
    let mut payload = stored("app_mention");
    payload["json"]["event"]["text"] = json!(format!("<@U0BOBBINBOT> {text}"));
    payload["json"]["event"]["blocks"] = json!([]);
    let (endpoint, raw) = request(&payload);
    signed(&endpoint, &raw, &app(TEAM, "", ""))
}

#[test]
fn sandbox_commands_work_in_thread_mentions() {
    let name = || "frontend".parse().unwrap();
    let named = mentioned("sandbox name frontend");
    assert!(matches!(&message(&named).work, Work::Name { name: n, .. } if *n == name()));
    let list = ControlAction::Sandboxes { page: 0, in_thread: true };
    assert_eq!(control(&mentioned("sandbox list")).want, list);
    let to = Some(WhichSandbox::Named(name()));
    assert_eq!(control(&mentioned("sandbox connect frontend")).want, ControlAction::Connect { to });
    assert_eq!(control(&mentioned("sandbox connect")).want, ControlAction::Connect { to: None });
    let sandbox = WhichSandbox::Here;
    assert_eq!(control(&mentioned("sandbox destroy")).want, ControlAction::AskDestroy { sandbox });
    let refused = mentioned("sandbox name Front_End");
    let ControlAction::Say { text } = &control(&refused).want else {
        panic!("a bad name is refused");
    };
    assert_eq!(
        text,
        "\"Front_End\" cannot be the name of a sandbox: use 1 to 40 characters of a-z, 0-9 and -, for example frontend-2"
    );
    let task = mentioned("sandbox:frontend in:shared fix it");
    assert_eq!(prompt(&task).wants.sandbox, Some(name()));
    assert!(prompt(&task).wants.in_common);
}

/// A click on a button that only one person sees; Slack sends it without its thread.
fn whispered(action_id: &str, value: &str, people: &str) -> Inbound {
    let mut payload = stored("block_actions_stop");
    payload["payload"]["container"] = json!({"type": "message", "message_ts": "1790000200.000900",
        "channel_id": CHANNEL, "is_ephemeral": true});
    payload["payload"]["message"] = json!(null);
    payload["payload"]["actions"][0]["action_id"] = json!(action_id);
    payload["payload"]["actions"][0]["value"] = json!(value);
    let (endpoint, raw) = request(&payload);
    signed(&endpoint, &raw, &app(TEAM, "", people))
}

#[test]
fn list_button_acts_in_its_thread() {
    let thread = format!("slack:{TEAM}:{CHANNEL}:1790000100.000100");
    let key = format!("slack:{TEAM}:{CHANNEL}:1790000000.000100");
    let both = format!("{thread} {key}");
    let sandbox = || WhichSandbox::Exactly(key.parse().unwrap());
    let pressed = |action: &str, value: &str| {
        let inbound = whispered(action, value, "");
        let control = control(&inbound);
        assert_eq!(control.thread.to_string(), thread);
        let Reply::Slack { thread_ts, .. } = &control.reply else {
            panic!("a reply of Slack");
        };
        assert_eq!(thread_ts.as_deref(), Some("1790000100.000100"));
        control.want.clone()
    };
    let operate = |operation| ControlAction::Operate { sandbox: sandbox(), operation };
    assert_eq!(pressed("v1:box:stop", &both), operate(Operation::Pause));
    assert_eq!(pressed("v1:box:start", &both), operate(Operation::Resume));
    assert_eq!(pressed("v1:box:snapshot", &both), operate(Operation::Snapshot));
    assert_eq!(pressed("v1:destroy", &both), operate(Operation::Destroy));
    let connect = ControlAction::Connect { to: Some(sandbox()) };
    assert_eq!(pressed("v1:box:connect", &both), connect);
    let ask = ControlAction::AskDestroy { sandbox: sandbox() };
    assert_eq!(pressed("v1:box:destroy", &both), ask);
    let page = ControlAction::Sandboxes { page: 2, in_thread: true };
    assert_eq!(pressed("v1:boxes:2", &thread), page);
    assert!(
        matches!(pressed("v1:keep", &thread), ControlAction::Say { text } if text == "Nothing was destroyed.")
    );
}

#[test]
fn list_button_checks_place_and_access() {
    let key = format!("slack:{TEAM}:{CHANNEL}:1790000000.000100");
    for elsewhere in
        ["slack:T2:C0BUILD0001:1.1", "slack:T0BOBBIN01:C2:1.1", "slack:T0BOBBIN01:dm:U2"]
    {
        let inbound = whispered("v1:destroy", &format!("{elsewhere} {key}"), "");
        assert_eq!(inbound.enqueue, None, "{elsewhere}");
    }
    let here = format!("slack:{TEAM}:{CHANNEL}:1.1 {key}");
    let refused = whispered("v1:destroy", &here, "U0NOBODY001");
    assert!(matches!(&control(&refused).want, ControlAction::Say { .. }), "{refused:?}");
}

#[test]
fn slash_sandbox_list_has_no_thread() {
    let mut form = stored("slash_status");
    let list = |form: &Value| {
        let (endpoint, raw) = request(form);
        signed(&endpoint, &raw, &app(TEAM, "", ""))
    };
    form["form"]["text"] = json!("sandbox list");
    let want = ControlAction::Sandboxes { page: 0, in_thread: false };
    assert_eq!(control(&list(&form)).want, want);
    form["form"]["text"] = json!("sandbox destroy frontend");
    let sandbox = WhichSandbox::Named("frontend".parse().unwrap());
    assert_eq!(control(&list(&form)).want, ControlAction::AskDestroy { sandbox });
    form["form"]["text"] = json!("sandbox name frontend");
    assert_eq!(list(&form).enqueue, None, "which thread is meant cannot be known");
}
