use serde_json::{Value, json};

use super::*;

#[test]
fn discord_rules_find_each_mistake() {
    let route = "/channels/{channel_id}/messages";
    let good = json!({"content": "x", "allowed_mentions": {"parse": []}});
    assert_eq!(own_rules(route, &good), [""; 0]);
    let buttons = |a: Value, b: Value| json!([{"type": 1, "components": [a, b]}]);
    let button = |id: &str| json!({"type": 2, "style": 1, "label": id, "custom_id": id});
    let select = json!({"type": 3, "custom_id": "s", "options": [{"label": "a", "value": "a"}]});
    for (field, value) in [
        ("content", json!("x".repeat(2001))),
        ("content", json!("\u{200b}")),
        ("allowed_mentions", Value::Null),
        ("allowed_mentions", json!({"parse": ["users"]})),
        ("allowed_mentions", json!({"parse": [], "users": ["1"]})),
        ("allowed_mentions", json!({"parse": [], "users": []})),
        ("allowed_mentions", json!({"parse": [], "roles": ["1"]})),
        ("flags", json!(32_768)),
        ("flags", json!(64)),
        ("nonce", json!("1")),
        ("embeds", json!([])),
        ("components", json!([{"type": 17, "components": []}])),
        ("components", buttons(button("a"), button("a"))),
        ("components", buttons(button("a"), select.clone())),
        (
            "components",
            json!([{"type": 1, "components": [{"type": 3, "custom_id": "s", "options": []}]}]),
        ),
        (
            "components",
            json!([{"type": 1, "components": [{"type": 2, "style": 5, "label": "a", "custom_id": "a", "url": "https://a.example"}]}]),
        ),
    ] {
        let mut bad = good.clone();
        bad[field] = value;
        assert!(!own_rules(route, &bad).is_empty(), "{bad}");
    }
    let mentioned =
        json!({"content": "<@1> done", "allowed_mentions": {"parse": [], "users": ["1"]}});
    assert_eq!(own_rules(route, &mentioned), [""; 0]);
    let text = |n: usize| json!({"type": 10, "content": "漢".repeat(n)});
    let v2 = |parts: Vec<Value>| json!({"flags": 32_768, "components": parts, "allowed_mentions": {"parse": []}});
    assert_eq!(own_rules(route, &v2(vec![text(3_000)])), [""; 0]);
    assert!(!own_rules(route, &v2(vec![text(3_390)])).is_empty(), "10,170 bytes");
    assert!(!own_rules(route, &v2(vec![text(10); 41])).is_empty(), "41 components");
    let mut beside = v2(vec![text(1)]);
    beside["content"] = json!("x");
    assert!(!own_rules(route, &beside).is_empty());
    assert!(!own_rules(CALLBACK, &json!({"type": 5, "data": {"flags": 4}})).is_empty());
    assert!(!own_rules("/channels/{channel_id}/threads", &json!({"name": "x"})).is_empty());
}

#[test]
fn forms_obey_undocumented_rules() {
    let form = |parts: Vec<Value>| json!({"type": 9, "data": {"custom_id": "f", "title": "T", "components": parts}});
    let part = |input: Value| json!({"type": 18, "label": "L", "component": input});
    let text = |id: &str| part(json!({"type": 4, "custom_id": id, "style": 1}));
    assert_eq!(own_rules(CALLBACK, &form(vec![text("a")])), [""; 0]);
    let six = (0..6).map(|n| text(&n.to_string())).collect();
    let disabled = part(json!({"type": 4, "custom_id": "a", "style": 1, "disabled": false}));
    let one_choice =
        part(json!({"type": 21, "custom_id": "a", "options": [{"label": "a", "value": "a"}]}));
    let two_defaults = part(json!({"type": 21, "custom_id": "a", "options": [
        {"label": "a", "value": "a", "default": true}, {"label": "b", "value": "b", "default": true}]}));
    for bad in
        [six, vec![disabled], vec![one_choice], vec![two_defaults], vec![text("a"), text("a")]]
    {
        let bad = form(bad);
        assert!(!own_rules(CALLBACK, &bad).is_empty(), "{bad}");
    }
}

#[test]
fn answers_must_fit_their_interaction() {
    let modal = json!({"type": 9, "data": {"custom_id": "f", "title": "T", "components": [{"type": 10, "content": "x"}]}});
    assert_eq!(wrong_answer(3, true, &modal), [""; 0]);
    assert_eq!(wrong_answer(5, true, &modal).len(), 1);
    assert_eq!(wrong_answer(5, false, &json!({"type": 6})).len(), 1);
    assert_eq!(wrong_answer(4, false, &json!({"type": 8, "data": {"choices": []}})), [""; 0]);
}

#[test]
fn commands_obey_undocumented_rules() {
    let route = "/applications/{application_id}/commands";
    let slash = json!({"type": 1, "name": "go", "description": "Goes", "options": [
        {"type": 3, "name": "a", "description": "A", "required": true}, {"type": 3, "name": "b", "description": "B"}]});
    assert_eq!(own_rules(route, &json!([slash])), [""; 0]);
    let with = |pointer: &str, value: Value| {
        let mut bad = slash.clone();
        *bad.pointer_mut(pointer).expect("it is there") = value;
        bad
    };
    for bad in [
        json!([with("/name", json!("Go"))]),
        json!([with("/name", json!("go on"))]),
        json!([with("/description", json!(""))]),
        json!([with("/options/1/name", json!("a"))]),
        json!([with(
            "/options/0",
            json!({"type": 3, "name": "a", "description": "x".repeat(101)})
        )]),
        json!([with("/options/0/required", json!(false)), slash.clone()]),
        json!([with(
            "/options/1",
            json!({"type": 3, "name": "b", "description": "B", "autocomplete": true, "choices": [{"name": "x", "value": "x"}]})
        )]),
        json!([{"type": 1, "name": "go", "description": "Goes", "options": [
            {"type": 3, "name": "a", "description": "A"}, {"type": 3, "name": "b", "description": "B", "required": true}]}]),
        json!([{"type": 3, "name": "Send on", "description": "Sends"}]),
    ] {
        assert!(!own_rules(route, &bad).is_empty(), "{bad}");
    }
}

#[test]
fn each_file_needs_its_slot() {
    let body = json!({"content": "x", "allowed_mentions": {"parse": []}, "attachments": [{"id": "0", "filename": "a.md"}]});
    let sent = |body, files| Sent { method: "POST", path: "/channels/20/messages", body, files };
    assert_eq!(wrong_request(&sent(&body, vec![("files[0]", "a.md")])), [""; 0]);
    for files in
        [vec![], vec![("file", "a.md")], vec![("files[1]", "a.md")], vec![("files[0]", "b.md")]]
    {
        assert!(!wrong_request(&sent(&body, files)).is_empty());
    }
    let mut shown = body.clone();
    shown["content"] = json!("attachment://b.md");
    assert!(!wrong_request(&sent(&shown, vec![("files[0]", "a.md")])).is_empty());
}

#[test]
fn unknown_fields_and_routes_are_found() {
    if crate::specification("discord-openapi.json").is_none() {
        return;
    }
    let body = json!({"content": "x", "alowed_mentions": {"parse": []}});
    assert!(!description::wrong("/channels/{channel_id}/messages", "post", &body).is_empty());
    let none = Value::Null;
    let sent = |method, path| Sent { method, path, body: &none, files: Vec::new() };
    assert_eq!(wrong_request(&sent("GET", "/applications/@me")), [""; 0]);
    assert_eq!(wrong_request(&sent("GET", "/channels/20/messages/30")), [""; 0]);
    assert!(!wrong_request(&sent("GET", "/channels/20/mesages")).is_empty());
    assert!(!wrong_request(&sent("PUT", "/channels/20/messages")).is_empty());
}
