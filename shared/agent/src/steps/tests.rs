use super::*;

#[test]
fn only_secrets_are_masked() {
    let table = [
        (
            "curl -H \"Authorization: Bearer abc.def\" https://x.test",
            "curl -H \"Authorization: Bearer ***\" https://x.test",
        ),
        ("GITHUB_TOKEN=abc gh pr list", "GITHUB_TOKEN=*** gh pr list"),
        ("echo sk-ant-0123456789abc", "echo ***"),
        ("git clone https://me:pw@github.com/a/b", "git clone https://***@github.com/a/b"),
        ("login --password hunter2 now", "login --password *** now"),
        ("login --password=hunter2", "login --password=***"),
        ("echo $API_TOKEN && cargo test", "echo $API_TOKEN && cargo test"),
        ("TOKEN=$OTHER make", "TOKEN=$OTHER make"),
    ];
    for (text, masked) in table {
        assert_eq!(redact(text), masked);
    }
}

#[test]
fn step_is_one_short_line() {
    assert_eq!(first_line("one\ntwo", 80), "one…");
    assert_eq!(first_line(&"é".repeat(100), 80).chars().count(), 81);
    assert_eq!(first_line(" short ", 80), "short");
}

#[test]
fn tools_have_present_and_past_wording() {
    let table = [
        (
            "bash",
            serde_json::json!({"command": "cargo test"}),
            "Running `cargo test`",
            "Ran `cargo test`",
        ),
        (
            "edit",
            serde_json::json!({"filePath": "/w/src/a.rs"}),
            "Editing src/a.rs",
            "Edited src/a.rs",
        ),
        ("write", serde_json::json!({"filePath": "/w/b.md"}), "Writing b.md", "Wrote b.md"),
        (
            "read",
            serde_json::json!({"filePath": "/etc/hosts"}),
            "Reading /etc/hosts",
            "Read /etc/hosts",
        ),
        (
            "grep",
            serde_json::json!({"pattern": "fn .*"}),
            "Searching for `fn .*`",
            "Searched for `fn .*`",
        ),
        ("glob", serde_json::json!({"pattern": "*.rs"}), "Looking for `*.rs`", "Looked for `*.rs`"),
        ("list", serde_json::json!({"path": "/w/src"}), "Listing src", "Listed src"),
        (
            "webfetch",
            serde_json::json!({"url": "https://a.test/x?k=1"}),
            "Fetching from a.test",
            "Fetched from a.test",
        ),
        (
            "websearch",
            serde_json::json!({"query": "rust"}),
            "Searching the web for rust",
            "Searched the web for rust",
        ),
        (
            "task",
            serde_json::json!({"description": "find it"}),
            "Delegating: find it",
            "Delegated: find it",
        ),
        ("todowrite", serde_json::json!({}), "Planning the work", "Planned the work"),
        (
            "question",
            serde_json::json!({"questions": [{"question": "Why?"}]}),
            "Asking: Why?",
            "Asked: Why?",
        ),
        ("skill", serde_json::json!({"name": "pdf"}), "Using the skill pdf", "Used the skill pdf"),
        (
            "github_create_issue",
            serde_json::json!({}),
            "Using github_create_issue",
            "Used github_create_issue",
        ),
    ];
    for (tool, input, present, past) in table {
        assert_eq!(words(tool, &input, "/w"), (present.to_owned(), past.to_owned()));
    }
}

#[test]
fn address_is_reduced_to_its_host() {
    assert_eq!(host_of("https://user:pw@api.test/secret?key=1").as_deref(), Some("api.test"));
}
