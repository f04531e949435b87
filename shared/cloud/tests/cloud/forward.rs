//! A look that somebody brings forward, at a queue that is configured as the template says.

use bobbin_cloud::dead_letters::QueuePair;
use bobbin_cloud::forward::bring_forward;
use bobbin_cloud::queue::Queues;
use bobbin_cloud::store::Store;
use bobbin_core::base::ids::{ThreadKey, TurnId};
use bobbin_core::records::parked::{Forward, Parked, Seen};

use crate::support::{Cloud, aws, sdk_sqs};

const HIDDEN_MS: u64 = 20_000;

/// Whoever parks a message retries it after that: a wish that comes in between is not undone.
#[tokio::test]
async fn giving_back_keeps_the_nudge() {
    let cloud = Cloud::start().await;
    let aws = aws(cloud.engine.endpoint());
    let url = cloud.resource("Messages");
    let pair =
        |name| QueuePair { name, home_url: url.clone(), dead_url: cloud.resource("MessagesDead") };
    let queues = Queues::of(&aws, &[pair("messages"), pair("control")]);
    let store = Store::new(&aws, &cloud.resource("Table"));
    let sqs = sdk_sqs(cloud.engine.endpoint());
    let send = sqs.send_message().queue_url(&url).message_body("{}");
    let send = send.message_group_id("g").message_deduplication_id("d");
    send.send().await.unwrap();
    let received = async || {
        let receive = sqs.receive_message().queue_url(&url).wait_time_seconds(0);
        let messages = receive.send().await.unwrap().messages.unwrap_or_default();
        messages.first().map(|one| one.receipt_handle.clone().unwrap())
    };
    let receipt = received().await.unwrap();
    queues.set_visibility(&url, &receipt, HIDDEN_MS).await.unwrap();

    let (thread, turn) = (ThreadKey::discord("1", "2").unwrap(), TurnId::from("m1"));
    let now_ms = bobbin_cloud::clock::now_ms();
    let parked = Parked {
        turn: turn.clone(),
        receive: 1,
        at_ms: now_ms,
        until_ms: now_ms + HIDDEN_MS,
        seen: Seen::default(),
    };
    store.park(&thread, &parked, (&receipt, "")).await.unwrap();
    let forward = bring_forward(&store, &queues, &thread, &turn, None).await.unwrap();
    assert!(matches!(forward, Forward::Now { .. }), "{forward:?}");

    let given_back = queues.set_visibility(&url, &receipt, HIDDEN_MS).await;
    assert!(given_back.is_err(), "what waits is in nobody's hands");
    assert!(received().await.is_some(), "it comes now");
}
