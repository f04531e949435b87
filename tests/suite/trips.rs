//! What the worker asks for on the way of a next prompt on an active thread, counted on the real programs: each call once,
//! and the agent has the prompt after three round trips.

use bobbin_core::session::Outcome;
use bobbin_tests::chat::Platform;
use bobbin_tests::gates::Order;
use bobbin_tests::world::{World, marked};
use libtest_mimic::Trial;

use crate::run::{COMMON, on};

/// Made beside the other calls and only by a process that has not served the thread before, or has keys of a while ago.
const ONCE_A_PROCESS: [&str; 2] = ["preview-url", "secretsmanager GetSecretValue"];
/// The prompt itself.
const SENT: &str = "/prompt_async";

pub fn trials() -> Vec<Trial> {
    vec![on(
        &COMMON,
        "trips::a_prompt_on_an_active_thread_is_sent_after_three_round_trips",
        counted,
    )]
}

async fn counted(world: World) {
    for platform in Platform::ALL {
        let (text, mark) = marked("echo: the first");
        let (mut talk, turn) = world.begin_marked(platform, &text, &mark).await;
        assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);

        let (text, mark) = marked("echo: the next");
        let gate = world
            .gate(&Order {
                text: mark.clone(),
                function: "Worker".to_owned(),
                ..Order::default()
            })
            .await;
        let turn = talk.say_marked(&text, &mark).await;
        assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
        let calls = gate.look().await.unwrap().calls;
        gate.remove().await.unwrap();
        println!("{}: {calls:#?}", platform.word());

        let sent = calls.iter().position(|call| call.ends_with(SENT)).unwrap();
        let is_of_the_way = |call: &&String| {
            !call.starts_with("chat ") && !ONCE_A_PROCESS.iter().any(|once| call.contains(once))
        };
        let way: Vec<&str> = calls[..=sent]
            .iter()
            .filter(is_of_the_way)
            .map(String::as_str)
            .collect();
        // The claim and the read go out together, and come in either order.
        let mut first = way[..2].to_vec();
        first.sort_unstable();
        assert_eq!(
            first,
            ["dynamodb BatchGetItem", "sqs ChangeMessageVisibility"],
            "{}",
            platform.word()
        );
        assert_eq!(way[2..way.len() - 1], ["dynamodb UpdateItem"]);
        assert_eq!(way.len(), 4, "{way:?}");
        // Nobody asked whether the server is healthy, whether the session is there, or whether the prompt is.
        let count = |wanted: &str| calls.iter().filter(|call| call.contains(wanted)).count();
        assert_eq!((count("/global/health"), count(SENT)), (0, 1));
        // The card goes along with the prompt: it does not wait for it, nor the other way round.
        let card = calls.iter().position(|call| call.starts_with("chat "));
        let saved = calls.iter().rposition(|call| call == "dynamodb UpdateItem");
        assert!(card < saved, "{calls:?}");
        talk.finish().await;
    }
}
