//! What documents change: threads, drafts, the merge queue.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::FieldRefusal;
use super::look::{pull_request, rights};
use super::nodes::PullNodes;
use crate::access::Caller;
use crate::permission::Level;
use crate::pulls::{self, Changed};
use crate::record::{Pull, RepositoryRecord};
use crate::rest::Call;
use crate::reviews::threads;

/// The id behind a global id of this kind.
fn id_of(kind: &str, input: &Value) -> Result<u64, FieldRefusal> {
    let text = input.as_str().unwrap_or_default();
    let plain = STANDARD.decode(text).ok().and_then(|plain| String::from_utf8(plain).ok());
    let id = plain
        .as_deref()
        .and_then(|plain| plain.strip_prefix(kind)?.strip_prefix(':')?.parse().ok());
    id.ok_or_else(|| FieldRefusal::node(text))
}

/// The pull request, for a caller with these rights to write.
fn writable(
    call: &Call,
    id: u64,
    rights: &[&str],
) -> Result<(Pull, RepositoryRecord), FieldRefusal> {
    let inner = call.engine.lock();
    let unknown = || FieldRefusal::node(&call.show(&inner).node("PullRequest", id));
    let pull = inner.pull_of_id(id).map_err(|_| unknown())?.clone();
    let record = inner.repository(pull.repository)?.clone();
    if call.caller.level(&inner, &record, "metadata")? == Level::None {
        return Err(unknown());
    }
    let is_author = matches!(call.caller, Caller::Person { app: None, id } if id == pull.author);
    for right in rights {
        if call.caller.level(&inner, &record, right)? < Level::Write && !is_author {
            return Err(FieldRefusal::integration());
        }
    }
    Ok((pull, record))
}

/// Does what a field of this name does.
pub(super) async fn run(call: &Call, name: &str, input: &Value) -> Result<Value, FieldRefusal> {
    match name {
        "resolveReviewThread" => resolve(call, input, true),
        "unresolveReviewThread" => resolve(call, input, false),
        "markPullRequestReadyForReview" => draft(call, input, false).await,
        "convertPullRequestToDraft" => draft(call, input, true).await,
        "enqueuePullRequest" => enqueue(call, input).await,
        _ => Err(FieldRefusal::new(
            "NOT_FOUND",
            format!("Field '{name}' doesn't exist on type 'Mutation'"),
        )),
    }
}

/// Needs the right to write contents too, as GitHub does.
fn resolve(call: &Call, input: &Value, is_resolved: bool) -> Result<Value, FieldRefusal> {
    let id = id_of("PullRequestReviewThread", &input["threadId"])?;
    let pull = call.engine.lock().talk.thread(id).map(|one| one.pull);
    let pull =
        pull.map_err(|_| FieldRefusal::node(input["threadId"].as_str().unwrap_or_default()))?;
    let (pull, record) = writable(call, pull, &["pull_requests", "contents"])?;
    let thread = threads::resolve(&call.engine, id, call.actor()?, is_resolved)?;
    let inner = call.engine.lock();
    let rights = rights(call, &inner, &record);
    let nodes = PullNodes { show: call.show(&inner), pull: &pull, rights, required: Vec::new() };
    Ok(json!({ "thread": nodes.thread(&thread), "clientMutationId": input["clientMutationId"] }))
}

async fn draft(call: &Call, input: &Value, is_draft: bool) -> Result<Value, FieldRefusal> {
    let id = id_of("PullRequest", &input["pullRequestId"])?;
    let (pull, record) = writable(call, id, &["pull_requests"])?;
    let pull = if pull.is_draft == is_draft {
        pull
    } else {
        let changed = Changed { is_draft: Some(is_draft), ..Changed::default() };
        pulls::update(&call.engine, record.id, pull.number, call.actor()?, changed).await?
    };
    let told = pull_request(call, &pull).await?;
    Ok(json!({ "pullRequest": told, "clientMutationId": input["clientMutationId"] }))
}

async fn enqueue(call: &Call, input: &Value) -> Result<Value, FieldRefusal> {
    let id = id_of("PullRequest", &input["pullRequestId"])?;
    let (pull, _) = writable(call, id, &["pull_requests", "contents"])?;
    let seen = input["expectedHeadOid"].as_str();
    let position = pulls::queue::enqueue(&call.engine, &pull, call.actor()?, seen).await?;
    let inner = call.engine.lock();
    let show = call.show(&inner);
    Ok(json!({
        "clientMutationId": input["clientMutationId"],
        "mergeQueueEntry": {
            "id": show.node("MergeQueueEntry", pull.id), "position": position, "state": "QUEUED",
            "enqueuedAt": show.time(call.now()), "jump": false, "solo": false,
        },
    }))
}
