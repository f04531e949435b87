//! The tools for an agent that runs elsewhere, at each provider.

use super::*;
use crate::tools::{Tools, outcome};

pub fn trials() -> Vec<Trial> {
    vec![beside("places::tools_work_at_every_provider", || {
        block_on(worked());
        Ok(())
    })]
}

async fn worked() {
    let stack = Stack::start(&everywhere(quick()));
    for place in Place::ALL {
        if let Some(why) = place.lacks() {
            eprintln!("SKIPPED: {why}");
            continue;
        }
        let word = place.word();
        let tools = Tools::made(World::of(&stack), &["--provider", word]).await;
        let call = async |id, tool, arguments| tools.call(id, tool, arguments).await.unwrap();
        let file = json!({"path": "a.txt", "content": "one\ntwo\n"});
        let (written, is_error) = call(1, "write_file", file).await;
        assert!(!is_error, "{word}: {written}");
        let edit = json!({"path": "a.txt", "old": "two", "new": "three"});
        let (edited, is_error) = call(2, "edit_file", edit).await;
        assert!(!is_error, "{word}: {edited}");
        // Long ones continue, and are asked for again by their id.
        let long = json!({"cmd": "sleep 2; cat a.txt", "wait_ms": 0});
        let (begun, _) = call(3, "run_command", long).await;
        let id = begun.split("with the id ").nth(1).and_then(|rest| rest.split(' ').next());
        let id = id.unwrap_or_else(|| panic!("{word}: {begun}"));
        let (ended, _) = call(4, "run_command", json!({"id": id})).await;
        assert_eq!(outcome(&ended), "Exit code 0: one\nthree", "{word}");
        let (found, _) = call(5, "search", json!({"pattern": "thr.e"})).await;
        assert!(found.contains("a.txt:2:three"), "{word}: {found}");
        tools.end().await;
    }
    stack.end().unwrap();
}
