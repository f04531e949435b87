//! The worker's calls on the way of a next prompt on an active thread, counted with the real programs: a claim, a read
//! and a write. The simulator, which can count time, shows that they and the prompt are three round trips.

use bobbin_core::records::outcome::Outcome;
use bobbin_tests::breakpoints::Condition;
use bobbin_tests::chat::Platform;
use bobbin_tests::talk::marked;
use bobbin_tests::world::World;
use libtest_mimic::Trial;

use crate::run::{CHAT, on};

/// Made beside the other calls, and only by a process that has not served the thread before or has old keys.
const ONCE_A_PROCESS: [&str; 2] = ["preview-url", "secretsmanager GetSecretValue"];
/// The calls before the prompt: the claim and the read, which go out together, and the write of both records. Each with
/// its maximum number: the prompt's announcement, which comes by the other queue, claims and reads as well, and reads
/// again if the prompt's own write came in between.
const WAY: [(&str, usize); 3] = [
    ("sqs ChangeMessageVisibility", 2),
    ("dynamodb BatchGetItem", 3),
    ("dynamodb TransactWriteItems", 1),
];
/// The announcement's own writes.
const ANNOUNCED: &str = "dynamodb UpdateItem";
const SENT: &str = "/prompt_async";

pub fn trials() -> Vec<Trial> {
    vec![on(&CHAT, "trips::active_thread_prompt_takes_few_calls", counted)]
}

async fn counted(world: World) {
    for platform in Platform::ALL {
        let (text, mark) = marked("echo: the first");
        let (mut talk, turn) = world.begin_marked(platform, &text, &mark).await;
        assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);

        let (text, mark) = marked("echo: the next");
        let breakpoint = world
            .breakpoint(&Condition {
                text: mark.clone(),
                function: "Worker".to_owned(),
                ..Condition::default()
            })
            .await;
        let turn = talk.say_marked(&text, &mark).await;
        assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
        let calls = breakpoint.status().await.unwrap().calls;
        breakpoint.remove().await.unwrap();
        println!("{}: {calls:#?}", platform.word());

        let sent = calls.iter().position(|call| call.ends_with(SENT)).unwrap();
        let is_of_the_way = |call: &&String| {
            !call.starts_with("chat ") && !ONCE_A_PROCESS.iter().any(|once| call.contains(once))
        };
        let way: Vec<&str> =
            calls[..=sent].iter().filter(is_of_the_way).map(String::as_str).collect();
        for (call, most) in WAY {
            let count = way.iter().filter(|one| **one == call).count();
            assert!((1..=most).contains(&count), "{call}: {way:?}");
        }
        let expected = |one: &str| one == ANNOUNCED || WAY.iter().any(|(call, _)| *call == one);
        let strange: Vec<&&str> =
            way[..way.len() - 1].iter().filter(|one| !expected(one)).collect();
        assert!(strange.is_empty(), "{}: {strange:?}", platform.word());
        // Nobody asked whether the server is healthy, or whether the session or the prompt exists.
        let count = |wanted: &str| calls.iter().filter(|call| call.contains(wanted)).count();
        assert_eq!((count("/global/health"), count(SENT)), (0, 1));
        // The card goes out together with the prompt: neither waits for the other.
        let card = calls.iter().position(|call| call.starts_with("chat "));
        let saved = calls.iter().rposition(|call| call == "dynamodb UpdateItem");
        assert!(card < saved, "{calls:?}");
        talk.finish().await;
    }
}
