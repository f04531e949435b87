//! What each agent's words become, line by line. The lines are the fuzz targets' corpus: ours, in the shapes that were
//! recorded and that the agents describe.

use std::path::Path;

use bobbin_agent_events::{Converter, UniversalEventData, acp, codex};
use serde_json::{Value, json};

use crate::shown::Shown;

/// The lines of a file of the corpus, and what comes out.
fn corpus(agent: &str) -> String {
    let file = format!("../../../tests/fuzz/corpus/agent_events/{agent}");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let text = std::fs::read_to_string(path).unwrap();
    let mut converter = Converter::of(agent);
    let mut shown = Shown::default();
    let lines = text.lines().flat_map(|line| shown.lines(&converter.convert_line(line)));
    let lines: Vec<String> = lines.map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}

fn same(came: &str, expected: &str) {
    let expected = expected.trim_matches('\n');
    assert!(came == expected, "it is\n{came}\n");
}

#[test]
fn claude_corpus_converts_as_promised() {
    same(
        &corpus("claude"),
        r#"
s1  started {"claude_code_version":"2.1.197","cwd":"/project","model":"claude-1","…(+79)
s1  status Busy "requesting"
s1  status Retrying "overloaded"
s1  unknown stream_event message_start
s1  unknown stream_event content_block_delta thinking_delta
s1  m1 assistant p1 = unknown thinking
s1  m1 assistant p2 + "Which "
s1  m1 assistant p2 + "one?"
s1  m1 assistant p2 = "Which one?"
    QUESTION a1 [DB] "Which database?" Postgres (Relational) / DynamoDB (NoSQL) custom Some(true) for c1
    PERMISSION a2 Write ["/project/a.txt"] always [] for c2
    closed a2 -
    unknown control_request hook_callback
s1  m2 user = result c3 ? [{"text":"done","type":"text"}] | image "aGk=" {"parentToolCall":"toolu_0"}
s1  unknown rate_limit_event
s1  TURN ENDED Failed (error_max_turns) "Reached the limit of turns." usage Turn in 1 out 4 $0.5
s1  TURN ENDED Cancelled (aborted_tools) usage Turn $0.25
"#,
    );
}

#[test]
fn amp_corpus_converts_as_promised() {
    same(
        &corpus("amp"),
        r#"
s1  started {"cwd":"/project","session_id":<s1>,"tools":["Bash"]}
s1   user = "List the files."
s1   assistant = "Looking." | call c1 Bash {"cmd":"ls"}
s1   user = result c1 ok "a.txt"
s1   assistant = "There is a.txt."
s1  TURN ENDED Done (success)
s1  TURN ENDED Failed (error_during_execution) "Out of credits."
"#,
    );
}

#[test]
fn codex_corpus_converts_as_promised() {
    same(
        &corpus("codex"),
        r#"
s1  started {"cliVersion":"0.169.0","cwd":"/project","id":"th-1","model":"gpt-1","…(+24)
s1  status Busy
s1  m1 user m1 = "Do it." | image "/project/a.png" | unknown skill {"clientId":"turn-1","turn":"tu-1"}
s1  m2 assistant m2 = unknown reasoning {"turn":"tu-1"}
s1  unknown item/reasoning/textDelta
s1  plan Completed "Look", InProgress "Write", Pending "Test"
s1  m3 assistant m3 = call m3 fileChange {"changes":[{"diff":"hello\n","kind":{"type":"add"},"path":"/project/a…(+8) {"turn":"tu-1"}
s1  PERMISSION a1 fileChange ["/project/a.txt"] always ["/elsewhere"] for m3
s1  closed a1 -
s1  m3 assistant m3 = call m3 fileChange {"changes":[]} | result m3 failed "declined" {"turn":"tu-1"}
s1  QUESTION a2 [DB] "Which database?" Postgres (Relational) custom Some(true); [Name] "Which name?"  custom Some(true) for c1
s1  PERMISSION a3 permissions ["/project"] always [] for c2
s1  QUESTION a4 [-] "Where?\nHost"  custom Some(true); [-] "With TLS?" true (-) / false (-) custom Some(false) for  [{"customField":null,"field":"host","type":"string"},{"customField":null,"field":"tls","type":"boolean"}]
s1  m4 assistant m4 = call m4 query {"sql":"select 1"} | result m4 failed {"message":"no"} {"server":"db","turn":"tu-1"}
s1  m5 assistant m5 = call m5 webSearch {"query":"rust"} | result m5 ok null {"turn":"tu-1"}
s1  status Retrying "stream disconnected"
s1  error usageLimitExceeded "You have hit the limit."
s1  TURN ENDED Failed (failed) "You have hit the limit."
    error -32600 "thread_active_writer"
s1  status Failed
"#,
    );
}

#[test]
fn acp_corpus_converts_as_promised() {
    same(
        &corpus("acp"),
        r#"
    unknown result sessionId
s1  m1 user p1 + "Do it."
s1  m1 user = file "bobbin:turn/T1"
s1   assistant = unknown text
s1  m2 assistant p1 + "Look"
s1  m2 assistant p1 + "ing."
s1  plan Completed "Look", InProgress "Write"
s1  m3 assistant m3 = call m3 execute {"command":"ls"} {"kind":"execute","title":"List files"}
s1  PERMISSION a1 execute ["List files"] always ["Always ls"] for m3
    closed a1 -
s1  m3 assistant m3 = call m3 execute {"command":"ls"} | result m3 ok [{"content":{"text":"a.txt","type":"text"},"type":"content"}] {"kind":"execute","title":"List files"}
s1  m4 assistant = image "aGk="
s1  m4 assistant = file "aGk="
s1  unknown session/update current_mode_update
s1  QUESTION a2 [-] "Which ones?\nWhich" a (-) / b (-) custom Some(false) for  [{"customField":null,"field":"which","type":"array"}]
s1  usage Context total 1200
  + s1  usage Session $0.25
    TURN ENDED Failed (refusal) "The agent stopped: refusal."
    error -32603 "Internal error: no key."
s1  unknown fs/read_text_file
"#,
    );
}

#[test]
fn restart_gives_asks_new_ids() {
    let request = json!({ "id": 0, "method": "item/commandExecution/requestApproval", "params": {
        "threadId": "t", "turnId": "u", "itemId": "i", "startedAtMs": 1, "command": "ls" } });
    let resolved = json!({ "method": "serverRequest/resolved",
        "params": { "threadId": "t", "requestId": 0 } });
    let mut converter = Converter::Codex(codex::CodexConverter::default());
    let asked = |converter: &mut Converter| match &converter.convert(request.clone())[0].data {
        UniversalEventData::PermissionAsked { permission_asked } => permission_asked.clone(),
        other => panic!("{other:?}"),
    };
    let first = asked(&mut converter);
    converter.restarted();
    let second = asked(&mut converter);
    assert_eq!((first.id.as_str(), second.id.as_str()), ("0-0", "1-0"));
    assert_eq!(second.metadata["requestId"], json!(0));
    match &converter.convert(resolved)[0].data {
        UniversalEventData::AskClosed { ask_closed, .. } => assert_eq!(ask_closed.id, "1-0"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn only_known_failed_prompt_ends_turn() {
    let failure = |id: &str| json!({ "id": id, "error": { "code": -32603, "message": "no key" } });
    let mut converter = acp::AcpConverter::default();
    converter.prompted(&Value::from("turn-1"));
    let kinds: Vec<bool> = ["turn-2", "turn-1", "turn-1"]
        .iter()
        .map(|id| {
            let converted = converter.convert(failure(id));
            matches!(converted[0].data, UniversalEventData::TurnEnded { .. })
        })
        .collect();
    assert_eq!(kinds, [false, true, false]);
}

#[test]
fn claude_message_tells_its_tokens_at_its_end() {
    let event = |event: Value| json!({ "type": "stream_event", "session_id": "s", "event": event, "parent_tool_use_id": null });
    let mut converter = Converter::of("claude");
    let usage = json!({ "input_tokens": 10, "cache_read_input_tokens": 400, "cache_creation_input_tokens": 5, "output_tokens": 1 });
    let message = json!({ "id": "msg_1", "model": "claude-x", "usage": usage });
    converter.convert(event(json!({ "type": "message_start", "message": message })));
    let delta = json!({ "type": "message_delta", "delta": {}, "usage": { "output_tokens": 20 } });
    let converted = converter.convert(event(delta));
    let told = serde_json::to_value(&converted[0].data).unwrap();
    assert_eq!(
        told["usage"],
        json!({ "scope": { "message": "msg_1" }, "inputTokens": 10, "outputTokens": 20, "cacheReadTokens": 400,
            "cacheWriteTokens": 5, "model": "anthropic/claude-x" })
    );
}

#[test]
fn claude_turn_cost_excludes_earlier_turns() {
    let result = |usd: f64| {
        json!({ "type": "result", "subtype": "success", "is_error": false, "session_id": "s",
            "total_cost_usd": usd, "usage": { "input_tokens": 1 } })
    };
    let mut converter = Converter::of("claude");
    let mut cost = |usd: Option<f64>| match usd {
        None => {
            converter.restarted();
            0.0
        }
        Some(usd) => match &converter.convert(result(usd))[0].data {
            UniversalEventData::TurnEnded { turn_ended, .. } => {
                turn_ended.usage.as_ref().and_then(|it| it.cost_usd).unwrap()
            }
            other => panic!("{other:?}"),
        },
    };
    let costs = [Some(0.1), Some(0.3), None, Some(0.4), Some(0.1)].map(&mut cost);
    // The last process reckons less than before: it is another one, though nobody said so.
    assert_eq!(costs, [0.1, 0.2, 0.0, 0.4, 0.1]);
}
