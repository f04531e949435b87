//! The message that starts the thread of a task from a terminal: posted once, found by its key, and marked as such.

use bobbin_core::base::ids::{ThreadKey, TurnId};
use bobbin_core::base::person::{Membership, Person};
use bobbin_core::records::message::Prompt;
use serde_json::json;

use super::Fake;
use crate::slack::SlackError;

const AT_MS: u64 = 1_790_000_000_250;

fn prompt() -> Prompt {
    Prompt {
        text: "fix <!channel> & co".to_owned(),
        by: Person { id: String::new(), name: "anna (terminal)".to_owned() },
        membership: Membership { operates: true, ..Membership::default() },
        ..Prompt::default()
    }
}

#[tokio::test]
async fn terminal_prompt_is_posted_once() {
    let fake = Fake::start().await;
    let id = TurnId::from("send-1790000000250-00000001");
    let opened = fake.client().open_thread(&id, "C1", AT_MS, &prompt()).await;
    let opened = opened.unwrap();
    let posted = fake.sent("chat.postMessage");
    assert_eq!(posted.len(), 1);
    assert!(posted[0]["thread_ts"].is_null(), "it is no reply");
    let shown = posted[0]["blocks"].to_string();
    assert!(
        shown.contains("*anna (terminal)* asked:\\nfix &lt;!channel&gt; &amp; co")
            && shown.contains("Sent from a terminal as send-1790000000250-00000001."),
        "{shown}"
    );
    // A minute before, because the clocks differ.
    let asked = fake.sent("conversations.history")[0].to_string();
    assert!(asked.contains("oldest=1789999940.250000"), "{asked}");

    let again = fake.client().open_thread(&id, "C1", AT_MS, &prompt()).await;
    assert_eq!(again.as_ref(), Ok(&opened));
    assert_eq!(fake.sent("chat.postMessage").len(), 1);

    let other = TurnId::from("send-1790000000250-00000002");
    let other = fake.client().open_thread(&other, "C1", AT_MS, &prompt()).await;
    assert_ne!(other, Ok(opened.clone()), "the same words are another task");
    assert!(
        matches!(opened, ThreadKey::Slack { team, channel, .. } if team == "T1" && channel == "C1")
    );
}

#[tokio::test]
async fn uninvited_app_posts_nothing() {
    let fake = Fake::start().await;
    let refused = json!({ "ok": false, "error": "not_in_channel" });
    let refused = [(200, refused)].into_iter().collect();
    let name = "conversations.history".to_owned();
    fake.script.lock().unwrap().answers.insert(name, refused);
    let id = TurnId::from("send-1790000000250-00000001");
    let error = fake.client().open_thread(&id, "C1", AT_MS, &prompt()).await;
    let error_name = "not_in_channel".to_owned();
    assert_eq!(error, Err(SlackError::NotInvited { error: error_name }));
    assert!(fake.sent("chat.postMessage").is_empty());
}
