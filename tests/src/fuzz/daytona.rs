//! Daytona's answers: sandboxes, pages of them, preview links, exec results and errors, each input read as all of them.

use bobbin_core::records::sandbox::SandboxState;
use bobbin_sandbox::daytona::{DaytonaSandbox, ErrorBody, Executed, Page, PreviewLink};
use bobbin_sandbox::labels::{LABEL_STACK, LABEL_STACK_ID, StackIdentity};

/// States in which a sandbox counts as deleted.
const GONE: [&str; 2] = ["destroying", "destroyed"];

/// An input is the body of an answer.
pub(super) fn json(input: &[u8]) {
    if let Ok(one) = serde_json::from_slice::<DaytonaSandbox>(input) {
        sandbox(&one);
    }
    if let Ok(page) = serde_json::from_slice::<Page<DaytonaSandbox>>(input) {
        page.items.iter().for_each(sandbox);
    }
    if let Ok(link) = serde_json::from_slice::<PreviewLink>(input) {
        preview(link);
    }
    if let Ok(executed) = serde_json::from_slice::<Executed>(input) {
        assert!(executed.result.len() <= input.len());
    }
    let error = ErrorBody::parse(input);
    assert!(error.message().len() <= input.len() * 2, "{error:?}");
    assert!(!error.says_unreachable() || !error.message().is_empty());
    if serde_json::from_slice::<serde::de::IgnoredAny>(input).is_err() {
        assert_eq!(error, ErrorBody::default(), "what is no JSON says nothing");
    }
}

fn sandbox(sandbox: &DaytonaSandbox) {
    let state = sandbox.state.as_deref().unwrap_or_default();
    let told = sandbox.sandbox_state();
    assert_eq!(told == SandboxState::Gone, GONE.contains(&state), "{state:?}");
    assert_eq!(told == SandboxState::Running, state == "started", "{state:?}");
    if let SandboxState::Broken { recoverable, .. } = &told {
        assert!(["error", "build_failed"].contains(&state), "{state:?}");
        assert!(!*recoverable || sandbox.recoverable == Some(true));
    }
    let sandbox = bobbin_sandbox::Sandbox::from(sandbox.clone());
    assert_eq!(sandbox.state, told);
    let Some((key, generation)) = sandbox.owner() else {
        return;
    };
    let stack = sandbox.labels.get(LABEL_STACK);
    let id = sandbox.labels.get(LABEL_STACK_ID).map_or("", String::as_str);
    let of = |name| StackIdentity { name, id };
    let ours = stack.is_some_and(|stack| sandbox.belongs_to(of(stack), &key, generation));
    // A number can be written in other ways than ours (`+1`, `01`): then it is nobody's.
    let as_written = sandbox.labels.values().any(|v| *v == generation.to_string());
    assert_eq!(ours, stack.is_some() && as_written, "{sandbox:?}");
    let other = format!("{stack:?}-other");
    assert!(!sandbox.belongs_to(of(&other), &key, generation));
    if let Some(name) = stack.filter(|_| sandbox.labels.contains_key(LABEL_STACK_ID)) {
        let namesake = format!("{id}-other");
        let namesake = StackIdentity { name, id: &namesake };
        assert!(!sandbox.belongs_to(namesake, &key, generation));
    }
}

fn preview(link: PreviewLink) {
    let shown = format!("{link:?}");
    let normal = link.clone().normalised();
    assert!(!normal.url.contains('?') && !normal.url.ends_with('/'));
    assert_eq!(normal.clone().normalised(), normal, "a link that is normal stays as it is");
    assert!(link.token.is_empty() || normal.token == link.token);
    for secret in [&link.url, &link.token] {
        assert!(secret.len() < 32 || !shown.contains(secret.as_str()));
    }
}
