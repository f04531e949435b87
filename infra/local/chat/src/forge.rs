//! The forge pane's data (`/ui/forge`): repositories, a pull request with its files, and what a person presses.
//!
//! Promised: answers and bodies are bounded, a press that began is ended, and a refusal says what to do.

use crate::forge_pane::{ForgePane, PaneAnswer, PaneRequest};
use crate::hub::Hub;
use crate::json::JsonFields;
use crate::limits::{
    FORGE_ACT_MS_MAX, FORGE_CHARS_MAX, FORGE_FILES_MAX, FORGE_LISTED_MAX, FORGE_PATCHES_CHARS_MAX,
    FORGE_READ_MS_MAX, FORGE_REPOSITORIES_MAX, FORGE_ROWS_MAX, FORGE_WISH_BYTES_MAX,
};
use axum::body::{Body, to_bytes};
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// A refusal: its status, and a sentence with advice.
type Refused = (StatusCode, String);

type PaneQuery = Query<HashMap<String, String>>;

const NO_FORGE: &str = "This stack has no forge. Start it with `cargo run`.";
const BROKEN: &str =
    "The forge broke off. Look at what `cargo run` printed, and at the repository.";

/// Every repository; the one that is open with its branches and all kinds of pull requests.
pub async fn repositories(State(hub): State<Arc<Hub>>, Query(asked): PaneQuery) -> Response {
    let opened = asked.get("repository").map_or("", String::as_str);
    let read = read(&hub, |forge| forge.repositories()).await;
    answered(read.map(|all| listed(all, opened)))
}

/// One pull request with its files.
pub async fn pull_request(State(hub): State<Arc<Hub>>, Query(asked): PaneQuery) -> Response {
    let repository = asked.get("repository").cloned().unwrap_or_default();
    let number = asked.get("number").and_then(|number| number.parse().ok()).unwrap_or_default();
    let read = read(&hub, |forge| forge.pull_request(repository, number)).await;
    answered(read.map(shortened))
}

/// A press. It goes on when the page is closed meanwhile: half of a merge would be neither.
pub async fn act(State(hub): State<Arc<Hub>>, body: Body) -> Response {
    let wish = match wish(body).await {
        Ok(wish) => wish,
        Err(refused) => return answered(Err(refused)),
    };
    let not_done = not_done(&wish);
    let own = Arc::clone(&hub);
    let work = hub.tasks.spawn(async move {
        let forge = own.inspector.forge().ok_or_else(no_forge)?;
        let refused = |why: String| {
            let (what, advice) = not_done;
            let told = format!("{what}: {}. {advice}", why.trim_end_matches('.'));
            (StatusCode::UNPROCESSABLE_ENTITY, told)
        };
        forge.act(wish).await.map_err(refused)
    });
    let done = match tokio::time::timeout(Duration::from_millis(FORGE_ACT_MS_MAX), work).await {
        Ok(Ok(done)) => done,
        Ok(Err(error)) => {
            tracing::error!(%error, "a press in the forge pane failed");
            Err((StatusCode::INTERNAL_SERVER_ERROR, BROKEN.to_owned()))
        }
        Err(_) => Err(late(FORGE_ACT_MS_MAX)),
    };
    answered(done)
}

async fn wish(body: Body) -> Result<PaneRequest, Refused> {
    let raw = to_bytes(body, FORGE_WISH_BYTES_MAX).await.map_err(|_| {
        let told = format!("This is longer than {FORGE_WISH_BYTES_MAX} bytes. Use a shorter name.");
        (StatusCode::PAYLOAD_TOO_LARGE, told)
    })?;
    serde_json::from_slice(&raw).map_err(|error| {
        let told = format!("The forge pane has no such button ({error}). Reload the page.");
        (StatusCode::BAD_REQUEST, told)
    })
}

/// How the refusal of a press begins and ends.
fn not_done(wish: &PaneRequest) -> (&'static str, &'static str) {
    const LOOK: &str = "Look at its state again, or open it on the forge.";
    match wish {
        PaneRequest::Create { .. } => (
            "The repository was not made",
            "Choose a name that is not taken, of at most 100 letters, digits, “.”, “_” and “-”.",
        ),
        PaneRequest::Ready { .. } => ("It was not marked as ready for review", LOOK),
        PaneRequest::Merge { .. } => ("It was not merged", LOOK),
        PaneRequest::Close { .. } => ("It was not closed", LOOK),
        PaneRequest::Open { .. } => ("It was not opened", "Choose it in the list again."),
    }
}

async fn read(
    hub: &Hub,
    ask: impl for<'f> FnOnce(&'f dyn ForgePane) -> PaneAnswer<'f>,
) -> Result<Value, Refused> {
    let asked = ask(hub.inspector.forge().ok_or_else(no_forge)?);
    match tokio::time::timeout(Duration::from_millis(FORGE_READ_MS_MAX), asked).await {
        Ok(read) => read.map_err(|why| (StatusCode::UNPROCESSABLE_ENTITY, unread(&why))),
        Err(_) => Err(late(FORGE_READ_MS_MAX)),
    }
}

fn no_forge() -> Refused {
    (StatusCode::NOT_FOUND, NO_FORGE.to_owned())
}

fn unread(why: &str) -> String {
    let why = why.trim_end_matches('.');
    format!("The forge could not be read: {why}. If it stays so, choose another entry of the list.")
}

fn late(ms: u64) -> Refused {
    let told = format!(
        "The forge did not answer within {} s. Wait until this machine has less to do, and look again.",
        ms / 1_000
    );
    (StatusCode::GATEWAY_TIMEOUT, told)
}

fn answered(done: Result<Value, Refused>) -> Response {
    match done {
        Ok(value) => axum::Json(value).into_response(),
        Err((status, told)) => (status, axum::Json(json!({"error": told}))).into_response(),
    }
}

/// The list without texts. Of a repository that is not open only the pull requests that are.
fn listed(all: Value, opened: &str) -> Value {
    let Value::Array(mut all) = all else { return json!({"repositories": [], "more": 0}) };
    let more = all.len().saturating_sub(FORGE_REPOSITORIES_MAX);
    // The open one stays, wherever it stands.
    all.sort_by_key(|one| one.str("full_name") != opened);
    all.truncate(FORGE_REPOSITORIES_MAX);
    all.sort_by(|one, other| one.str("full_name").cmp(other.str("full_name")));
    for repository in &mut all {
        let is_opened = repository.str("full_name") == opened;
        if let Some(pulls) = repository["pull_requests"].as_array_mut() {
            for pull in pulls.iter_mut() {
                pull["body"].take();
                pull["files"].take();
            }
            pulls.retain(|pull| is_opened || ["draft", "open"].contains(&pull.str("state")));
        }
        let rows = if is_opened { FORGE_ROWS_MAX } else { FORGE_LISTED_MAX };
        repository["more_pull_requests"] = cut(&mut repository["pull_requests"], rows).into();
        let rows = if is_opened { FORGE_ROWS_MAX } else { 0 };
        repository["more_branches"] = cut(&mut repository["branches"], rows).into();
    }
    json!({"repositories": all, "more": more})
}

/// A pull request of a size that a page can show. A patch that is left out is `null`, as a binary file's.
fn shortened(mut pull: Value) -> Value {
    if let Some(text) = pull["body"].as_str().filter(|text| text.len() > FORGE_CHARS_MAX) {
        let kept: String = text.chars().take(FORGE_CHARS_MAX).collect();
        pull["body"] = format!("{kept}…").into();
    }
    pull["more_files"] = cut(&mut pull["files"], FORGE_FILES_MAX).into();
    let mut left = FORGE_PATCHES_CHARS_MAX;
    for file in pull["files"].as_array_mut().into_iter().flatten() {
        let length = file.str("patch").len();
        match left.checked_sub(length).filter(|_| length <= FORGE_CHARS_MAX) {
            Some(rest) => left = rest,
            None => (file["patch"], file["is_long"]) = (Value::Null, true.into()),
        }
    }
    pull
}

/// Shortens a list, and counts what it leaves out.
fn cut(list: &mut Value, most: usize) -> usize {
    let Some(rows) = list.as_array_mut() else { return 0 };
    let more = rows.len().saturating_sub(most);
    rows.truncate(most);
    more
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository(name: &str, pulls: usize) -> Value {
        let pull = |at: usize| {
            let state = ["open", "merged"][at % 2];
            json!({"number": at, "state": state, "body": "text", "files": []})
        };
        let pulls: Vec<Value> = (0..pulls).map(pull).collect();
        let branches: Vec<Value> = (0..FORGE_ROWS_MAX + 1).map(|at| json!({"name": at})).collect();
        json!({"full_name": name, "branches": branches, "pull_requests": pulls})
    }

    #[test]
    fn only_open_repository_is_listed_whole() {
        let all = json!([repository("acme/a", 30), repository("acme/b", 300)]);
        let shown = listed(all, "acme/b");
        let [other, opened] = &shown["repositories"].as_array().expect("a list")[..] else {
            panic!("{shown}")
        };
        assert_eq!((other.list("branches").len(), other.list("pull_requests").len()), (0, 10));
        assert_eq!(
            (&other["more_pull_requests"], &other["more_branches"]),
            (&json!(5), &json!(101))
        );
        assert_eq!((opened.list("branches").len(), opened.list("pull_requests").len()), (100, 100));
        assert_eq!(
            (&opened["more_pull_requests"], &opened["more_branches"]),
            (&json!(200), &json!(1))
        );
        assert!(opened["pull_requests"][0]["body"].is_null());
    }

    #[test]
    fn open_repository_is_among_the_listed() {
        let names = (0..FORGE_REPOSITORIES_MAX + 5).map(|at| format!("acme/{at:04}"));
        let all = names.map(|name| repository(&name, 0)).collect();
        let shown = listed(all, "acme/0204");
        let names: Vec<&str> =
            shown.list("repositories").iter().map(|one| one.str("full_name")).collect();
        assert_eq!((names.len(), names[199], &shown["more"]), (200, "acme/0204", &json!(5)));
    }

    #[test]
    fn long_patches_are_left_out() {
        let file = |length: usize| json!({"path": "a", "patch": "+".repeat(length)});
        let most = FORGE_PATCHES_CHARS_MAX / FORGE_CHARS_MAX;
        let mut files = vec![file(FORGE_CHARS_MAX + 1)];
        files.extend((0..=most).map(|_| file(FORGE_CHARS_MAX)));
        files.extend((0..FORGE_FILES_MAX).map(|_| json!({"path": "b", "patch": null})));
        let body = "é".repeat(FORGE_CHARS_MAX);
        let shown = shortened(json!({"body": body, "files": files}));
        let is_long = |at: usize| shown["files"][at].flag("is_long");
        assert_eq!(
            (is_long(0), is_long(1), is_long(most), is_long(most + 1)),
            (true, false, false, true)
        );
        assert_eq!((shown["more_files"].clone(), is_long(most + 2)), (json!(most + 2), false));
        assert_eq!(shown.str("body").chars().count(), FORGE_CHARS_MAX + 1);
    }
}
