//! Posts in direct messages that are all one thread.

use bobbin_core::base::ids::{PostRef, ThreadKey, TurnId};
use bobbin_core::base::names::PostKind;
use bobbin_core::records::card::{CardState, Post, ShownFile};
use bobbin_core::records::session::Session;
use serde_json::{Value, json};

use super::{Chat, Fake, card, chunk};
use crate::slack::render::AgentSessionStatus;

const OF_MESSAGE: &str = "slack_T1_D1_1790000000.000100";

fn thread() -> ThreadKey {
    ThreadKey::slack_direct("T1", "U1").unwrap()
}

async fn post(slack: &super::Slack, turn: &str, kind: PostKind, post: &Post) -> PostRef {
    let posted = slack.post(&thread(), &turn.into(), &kind, None, post).await;
    posted.unwrap()
}

#[tokio::test]
async fn direct_post_is_found_in_history() {
    let fake = Fake::start().await;
    let whole = chunk("the answer");
    // Streams need a message above them.
    let slack = fake.client().streaming(true);
    let first = post(&slack, OF_MESSAGE, PostKind::Chunk(0), &whole).await;
    assert_eq!(first.channel, "D1");
    let posted = &fake.sent("chat.postMessage")[0];
    assert_eq!((&posted["channel"], &posted["thread_ts"]), (&json!("D1"), &Value::Null));
    assert!(fake.sent("chat.startStream").is_empty());

    let again = post(&fake.client(), OF_MESSAGE, PostKind::Chunk(0), &whole).await;
    assert_eq!(again, first);
    assert_eq!(fake.sent("chat.postMessage").len(), 1);
    assert!(fake.sent("conversations.replies").is_empty());
    let read = fake.sent("conversations.history");
    let fields = read[0].as_str().unwrap();
    assert!(
        fields.contains("channel=D1") && fields.contains("oldest=1790000000.000100"),
        "{fields}"
    );
    assert!(fields.contains("include_all_metadata=true") && !fields.contains("&ts="));
}

#[tokio::test]
async fn direct_channel_falls_back_to_person() {
    let fake = Fake::start().await;
    let notice = Post::Notice("The sandbox was deleted.".to_owned());
    let unknowing = fake.client();
    let posted = post(&unknowing, "sweep-1", PostKind::Notice, &notice).await;
    assert_eq!(fake.sent("chat.postMessage")[0]["channel"], "U1");
    assert_eq!(posted.channel, "D1");
    // Slack has named the channel: from now on it is known.
    post(&unknowing, "sweep-2", PostKind::Notice, &notice).await;
    assert_eq!(fake.sent("chat.postMessage")[1]["channel"], "D1");

    // Another process knows it from the record, and so finds existing posts.
    let mut session = Session::new(thread(), 1_000);
    session.turn = Some(serde_json::from_value(json!({
        "id": OF_MESSAGE, "by": {"id": "U1", "name": "a"}, "prompt": {"text": "x", "by": {"id": "U1", "name": "a"}},
        "accepted_at_ms": 1, "started_at_ms": 1, "stage": {"stage": "received"},
    })).unwrap());
    let learned = fake.client();
    learned.learn(&session);
    let found = post(&learned, "sweep-1", PostKind::Notice, &notice).await;
    assert_eq!(found, posted);
    assert_eq!(fake.sent("chat.postMessage").len(), 2);
}

#[tokio::test]
async fn direct_files_are_shown_once() {
    let fake = Fake::start().await;
    let file = Post::File(ShownFile { name: "plot.png".to_owned(), bytes: b"png".to_vec() });
    for _ in 0..2 {
        post(&fake.client(), OF_MESSAGE, PostKind::Artifact(0), &file).await;
    }
    let uploads = fake.sent("files.completeUploadExternal");
    assert_eq!(uploads.len(), 1);
    assert_eq!((&uploads[0]["channel_id"], &uploads[0]["thread_ts"]), (&json!("D1"), &Value::Null));
}

#[tokio::test]
async fn direct_status_is_set_per_message() {
    let fake = Fake::start().await;
    let slack = fake.client();
    let turn: TurnId = OF_MESSAGE.into();
    slack.show_status(&thread(), &"again-1".into(), AgentSessionStatus::Processing).await;
    assert!(fake.sent("agents.sessions.setStatus").is_empty());
    fake.refuses("agents.sessions.setStatus", "thread_not_found");
    slack.show_status(&thread(), &turn, AgentSessionStatus::Processing).await;
    slack.show_status(&thread(), &turn, AgentSessionStatus::Active).await;
    let said = fake.sent("agents.sessions.setStatus");
    let last = &said[1];
    assert_eq!(
        (&last["channel_id"], &last["thread_ts"], &last["status"]),
        (&json!("D1"), &json!("1790000000.000100"), &json!("active"))
    );
    assert!(fake.sent("assistant.threads.setStatus").is_empty());
}

#[tokio::test]
async fn moved_card_links_its_successor() {
    let fake = Fake::start().await;
    fake.will_answer("auth.test", 200, json!({"ok": true, "team_id": "T1", "user_id": "UBOT", "bot_id": "BBOT", "url": "https://a.slack.com/"}));
    let slack = fake.client();
    let at = post(&slack, OF_MESSAGE, PostKind::Card, &card(CardState::Working)).await;
    let to = PostRef { channel: "D1".to_owned(), id: "1790000500.000100".to_owned() };
    let moved = Post::Moved { to, link: None };
    let kind = PostKind::Card;
    slack.post(&thread(), &OF_MESSAGE.into(), &kind, Some(&at), &moved).await.unwrap();
    let edit = fake.sent("chat.update").pop().unwrap().to_string();
    assert!(edit.contains("https://a.slack.com/archives/D1/p1790000500000100|"), "{edit}");
}
