//! Answers as streams: shown once, whatever happens to the stream.

use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::PostRef;
use bobbin_core::base::names::PostKind;
use serde_json::{Value, json};

use super::{Chat, Fake, chunk, key, send, thread};
use crate::slack::Slack;

/// A Slack whose thread contains the person's message, as `conversations.replies` returns it.
async fn asked() -> Fake {
    let fake = Fake::start().await;
    let message = json!({ "ts": "1790000000.000100", "user": "U1", "team": "T1", "text": "hello" });
    fake.script.lock().unwrap().messages.push(message);
    fake
}

fn client(fake: &Fake) -> Slack {
    fake.client().streaming(true)
}

async fn answer(slack: &Slack, text: &str) -> Result<PostRef, Failure> {
    let kind = PostKind::Chunk(0);
    send(slack, &kind, None, &chunk(text)).await
}

/// The bot's messages in the thread, by key.
fn shown(fake: &Fake) -> Vec<Value> {
    let script = fake.script.lock().unwrap();
    let ours = script.messages.iter().filter(|one| one["user"] == "UBOT");
    ours.map(|one| one["metadata"]["event_payload"]["op_id"].clone()).collect()
}

#[tokio::test]
async fn streamed_answer_is_complete_and_keyed() {
    let fake = asked().await;
    let text = "one two\nthree ".repeat(100);
    let at = answer(&client(&fake), &text).await.unwrap();
    let begun = &fake.sent("chat.startStream")[0];
    assert_eq!(
        (&begun["recipient_user_id"], &begun["recipient_team_id"], &begun["thread_ts"]),
        (&json!("U1"), &json!("T1"), &json!("1790000000.000100"))
    );
    let appended = fake.sent("chat.appendStream");
    let streamed: String = std::iter::once(begun)
        .chain(&appended)
        .map(|call| call["markdown_text"].as_str().unwrap())
        .collect();
    assert_eq!(streamed, text);
    assert!(!appended.is_empty());
    let ended = &fake.sent("chat.stopStream")[0];
    assert_eq!(
        (&ended["ts"], &ended["metadata"]["event_payload"]["op_id"]),
        (&json!(at.id), &json!(key(&PostKind::Chunk(0))))
    );
    // The last edit restores what was lost between pieces.
    assert_eq!(fake.sent("chat.update")[0]["blocks"][0]["text"], text);
    assert_eq!(shown(&fake), [key(&PostKind::Chunk(0))]);
    assert!(fake.sent("chat.postMessage").is_empty());
}

#[tokio::test]
async fn only_enabled_whole_answers_are_streamed() {
    let fake = asked().await;
    answer(&fake.client(), "plain").await.unwrap();
    let part = bobbin_core::records::card::Post::Chunk {
        text: "first of two".to_owned(),
        last: false,
        file: None,
        card: None,
    };
    let slack = client(&fake);
    slack
        .post(&thread(), &"slack_T1_C1_1.1".into(), &PostKind::Chunk(0), None, &part)
        .await
        .unwrap();
    assert!(fake.sent("chat.startStream").is_empty());
    assert_eq!(fake.sent("chat.postMessage").len(), 2);
}

#[tokio::test]
async fn stream_refusal_falls_back_to_post() {
    let fake = asked().await;
    let slack = client(&fake);
    fake.refuses("chat.startStream", "unknown_method");
    answer(&slack, "one").await.unwrap();
    let other = "slack_T1_C1_1790000000.000200";
    slack.post(&thread(), &other.into(), &PostKind::Chunk(0), None, &chunk("two")).await.unwrap();
    assert_eq!(fake.sent("chat.startStream").len(), 1);
    assert_eq!(fake.sent("chat.postMessage").len(), 2);
}

#[tokio::test]
async fn early_ended_stream_is_completed() {
    for (method, error) in [
        ("chat.appendStream", "message_not_in_streaming_state"),
        ("chat.appendStream", "stopped_by_user"),
        ("chat.stopStream", "message_not_in_streaming_state"),
    ] {
        let fake = asked().await;
        fake.refuses(method, error);
        let text = "one two\nthree ".repeat(100);
        answer(&client(&fake), &text).await.unwrap();
        assert_eq!(
            fake.sent("chat.update").last().unwrap()["blocks"][0]["text"],
            text,
            "{method} {error}"
        );
        assert_eq!(shown(&fake), [key(&PostKind::Chunk(0))]);
        assert!(fake.sent("chat.postMessage").is_empty());
    }
}

#[tokio::test]
async fn crashed_stream_is_completed_by_successor() {
    let fake = asked().await;
    // The stream started although the answer says otherwise, and the process ended there.
    fake.will_answer(
        "chat.startStream",
        200,
        json!({ "ok": false, "error": "internal_error", "kept": true }),
    );
    answer(&client(&fake), "the answer").await.unwrap_err();
    let at = answer(&client(&fake), "the answer").await.unwrap();
    assert_eq!(at.id, "1790000009.000001");
    assert_eq!(fake.sent("chat.startStream").len(), 1);
    assert_eq!(fake.sent("chat.stopStream")[0]["ts"], at.id.as_str());
    assert_eq!(fake.sent("chat.update")[0]["blocks"][0]["text"], "the answer");
    assert_eq!(shown(&fake), [key(&PostKind::Chunk(0))]);
    assert!(fake.sent("chat.postMessage").is_empty());
}

#[tokio::test]
async fn cut_stream_that_cannot_be_completed_is_posted_whole() {
    let text = format!("{}end", "word ".repeat(2_000));
    for is_cut in [false, true] {
        let fake = asked().await;
        fake.refuses("chat.update", "invalid_blocks");
        fake.refuses("chat.postMessage", "invalid_blocks");
        if is_cut {
            fake.refuses("chat.appendStream", "stopped_by_user");
        }
        let at = answer(&client(&fake), &text).await.unwrap();
        let posted = fake.sent("chat.postMessage");
        if is_cut {
            assert_eq!((&posted[1]["text"], at.id.as_str()), (&json!(text), "1790000009.000002"));
        } else {
            assert_eq!((posted.len(), at.id.as_str()), (0, "1790000009.000001"));
        }
    }
    // Nor does the next process take the beginning for all of it.
    let fake = asked().await;
    fake.will_answer(
        "chat.startStream",
        200,
        json!({ "ok": false, "error": "internal_error", "kept": true }),
    );
    answer(&client(&fake), &text).await.unwrap_err();
    fake.refuses("chat.update", "invalid_blocks");
    let at = answer(&client(&fake), &text).await.unwrap();
    assert_eq!(at.id, "1790000009.000002");
}

#[tokio::test]
async fn unknown_recipient_gets_a_post() {
    let fake = asked().await;
    let kind = PostKind::Chunk(0);
    client(&fake).post(&thread(), &"again-0123".into(), &kind, None, &chunk("one")).await.unwrap();
    assert!(fake.sent("chat.startStream").is_empty());
    assert_eq!(fake.sent("chat.postMessage").len(), 1);
}
