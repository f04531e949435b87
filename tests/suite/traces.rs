//! A turn in X-Ray, as an operator sees it: each step in the trace of its invocation.

use std::collections::BTreeSet;

use bobbin_core::records::outcome::Outcome;
use bobbin_tests::chat::Platform;
use bobbin_tests::world::World;
use libtest_mimic::Trial;
use reqwest::Method;
use serde_json::{Value, json};

use crate::run::{CHAT, on};

/// Steps of every first turn.
const STEPS: [&str; 6] =
    ["create", "ensure_server", "find_agent_session", "send_prompt", "follow", "post"];

pub fn trials() -> Vec<Trial> {
    vec![on(&CHAT, "traces::turn_steps_are_spans_without_content", spans)]
}

async fn spans(world: World) {
    let (talk, turn) = world.begin(Platform::Discord, "echo: canary-of-spans").await;
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    let all = world.engine(Method::GET, "segments", &json!({})).await;
    let all = all.unwrap();
    let ours: Vec<&Value> = all
        .as_array()
        .unwrap()
        .iter()
        .filter(|span| span["annotations"]["turn"] == *turn)
        .collect();
    let names: BTreeSet<&str> = ours.iter().filter_map(|it| it["name"].as_str()).collect();
    for step in STEPS {
        assert!(names.contains(step), "no span of {step} among {names:?}");
    }
    for span in &ours {
        assert_eq!(span["type"], "subsegment");
        assert_eq!(span["annotations"]["thread"], talk.thread.key.to_string());
        let [id, parent, trace] =
            ["id", "parent_id", "trace_id"].map(|name| span[name].as_str().unwrap());
        assert_eq!((id.len(), parent.len()), (16, 16), "{span}");
        assert!(trace.starts_with("1-") && trace.len() == 35, "{span}");
        assert!(span["start_time"].as_f64() <= span["end_time"].as_f64());
    }
    let ids: BTreeSet<&str> = ours.iter().filter_map(|it| it["id"].as_str()).collect();
    assert_eq!(ids.len(), ours.len(), "a span's id is its own");
    assert!(!all.to_string().contains("canary-of-spans"));
    talk.finish().await;
}
