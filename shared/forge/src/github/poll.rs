//! One poll of a pull request: one GraphQL request (`poll.graphql`), which costs one point of an installation's 5,000
//! an hour.
//!
//! An answer with errors is none: GitHub answers 200 and leaves holes where a permission is missing or a limit is
//! reached, and a hole must never be read as "nothing failed". Unknown words are read as what calls a person.

use bobbin_core::base::ids::Ms;
use bobbin_core::records::checks::{Check, CheckKind, CheckState};
use bobbin_core::records::publication::PullRequestState;
use bobbin_core::records::pull_request::{
    Author, Mergeability, PolledPullRequest, PolledTotals, ReviewDecision, ReviewState,
    ReviewThread, SeenComment, SeenReview,
};
use chrono::DateTime;
use serde::Deserialize;
use serde_json::{Value, json};

use super::rest::{RestClient, RestCredential};
use crate::error::{ForgeError, ForgeErrorKind, ForgeResult};
use crate::forge::{RepositoryId, RepositoryName};

const POLL: &str = include_str!("poll.graphql");

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RepositoryBody {
    database_id: u64,
    pull_request: Option<PullBody>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PullBody {
    number: u64,
    state: String,
    is_draft: bool,
    is_in_merge_queue: bool,
    is_cross_repository: bool,
    head_ref_name: String,
    head_ref_oid: String,
    base_ref_name: String,
    mergeable: String,
    merge_state_status: String,
    review_decision: Option<String>,
    commits: Nodes<LastCommit>,
    review_threads: PartOf<ThreadBody>,
    latest_opinionated_reviews: PartOf<ReviewBody>,
    comments: PartOf<CommentBody>,
}

#[derive(Deserialize)]
struct Nodes<T> {
    nodes: Vec<T>,
}

/// A list that was requested in part.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PartOf<T> {
    total_count: usize,
    nodes: Vec<T>,
}

#[derive(Deserialize)]
struct LastCommit {
    commit: CommitBody,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CommitBody {
    oid: String,
    status_check_rollup: Option<RollupBody>,
}

#[derive(Deserialize)]
struct RollupBody {
    contexts: PartOf<ContextBody>,
}

#[derive(Deserialize)]
#[serde(tag = "__typename")]
enum ContextBody {
    #[serde(rename_all = "camelCase")]
    CheckRun {
        database_id: u64,
        name: String,
        status: String,
        conclusion: Option<String>,
        details_url: Option<String>,
        check_suite: SuiteBody,
    },
    #[serde(rename_all = "camelCase")]
    StatusContext { context: String, state: String, target_url: Option<String>, created_at: String },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SuiteBody {
    app: Option<AppBody>,
    workflow_run: Option<WorkflowRunBody>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AppBody {
    slug: String,
    database_id: Option<u64>,
}

#[derive(Deserialize)]
struct WorkflowRunBody {
    event: String,
    workflow: WorkflowBody,
}

#[derive(Deserialize)]
struct WorkflowBody {
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ThreadBody {
    id: String,
    is_resolved: bool,
    is_outdated: bool,
    path: String,
    line: Option<u64>,
    top: Nodes<CommentBody>,
    comments: PartOf<CommentBody>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReviewBody {
    database_id: u64,
    state: String,
    body: String,
    submitted_at: Option<String>,
    author: Option<AuthorBody>,
    commit: Option<OidBody>,
}

#[derive(Deserialize)]
struct OidBody {
    oid: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CommentBody {
    database_id: u64,
    url: String,
    body: String,
    diff_hunk: Option<String>,
    created_at: String,
    last_edited_at: Option<String>,
    author: Option<AuthorBody>,
    editor: Option<AuthorBody>,
}

#[derive(Deserialize)]
struct AuthorBody {
    #[serde(rename = "__typename")]
    kind: String,
    login: String,
    /// Absent for programs.
    #[serde(rename = "databaseId")]
    id: Option<u64>,
}

/// The pull request with this number.
pub(super) async fn poll(
    rest: &RestClient,
    by: RestCredential<'_>,
    (id, name): (RepositoryId, &RepositoryName),
    number: u64,
) -> ForgeResult<PolledPullRequest> {
    let variables = json!({"owner": name.owner(), "name": name.name(), "number": number});
    let data = rest.graphql(by, POLL, &variables).await?;
    let repository: Option<RepositoryBody> = serde_json::from_value(data["repository"].clone())
        .map_err(|error| {
            ForgeError::outage(format!("The pull request could not be polled: {error}"))
        })?;
    // Another repository may have taken the name.
    let repository = repository.filter(|repository| repository.database_id == id.0);
    let pull = repository.and_then(|repository| repository.pull_request);
    let pull = pull.ok_or_else(|| {
        ForgeError::lasting(ForgeErrorKind::NotFound, "GitHub does not know the pull request.")
    })?;
    pull.polled()
}

impl PullBody {
    fn polled(self) -> ForgeResult<PolledPullRequest> {
        let last = self.commits.nodes.into_iter().next_back().map(|last| last.commit);
        // The list of commits lags behind a push.
        let rollup = last.filter(|last| last.oid == self.head_ref_oid).ok_or_else(|| {
            let seen = "GitHub does not show the newest commit of the pull request yet";
            ForgeError::passing(ForgeErrorKind::Other, 0, seen)
        })?;
        let contexts = rollup.status_check_rollup.map(|rollup| rollup.contexts);
        let contexts = contexts.unwrap_or(PartOf { total_count: 0, nodes: Vec::new() });
        Ok(PolledPullRequest {
            number: self.number,
            state: match self.state.as_str() {
                "OPEN" => PullRequestState::Open,
                "MERGED" => PullRequestState::Merged,
                _ => PullRequestState::Closed,
            },
            is_draft: self.is_draft,
            is_queued: self.is_in_merge_queue,
            branch: self.head_ref_name,
            head: self.head_ref_oid,
            is_from_fork: self.is_cross_repository,
            base: self.base_ref_name,
            merge: mergeability(&self.mergeable, &self.merge_state_status),
            decision: match self.review_decision.as_deref() {
                None => ReviewDecision::NotNeeded,
                Some("APPROVED") => ReviewDecision::Approved,
                Some("CHANGES_REQUESTED") => ReviewDecision::ChangesRequested,
                Some(_) => ReviewDecision::Required,
            },
            checks: contexts.nodes.into_iter().map(ContextBody::check).collect(),
            reviews: self
                .latest_opinionated_reviews
                .nodes
                .into_iter()
                .map(ReviewBody::seen)
                .collect(),
            threads: self.review_threads.nodes.into_iter().map(ThreadBody::seen).collect(),
            comments: self.comments.nodes.into_iter().map(CommentBody::seen).collect(),
            totals: PolledTotals {
                checks: contexts.total_count,
                reviews: self.latest_opinionated_reviews.total_count,
                threads: self.review_threads.total_count,
                comments: self.comments.total_count,
            },
        })
    }
}

fn mergeability(mergeable: &str, state: &str) -> Mergeability {
    match (mergeable, state) {
        ("CONFLICTING", _) | (_, "DIRTY") => Mergeability::Conflicts,
        ("MERGEABLE", "BEHIND") => Mergeability::Behind,
        // Drafts and failed checks that nothing requires are no obstacle to the merge itself.
        ("MERGEABLE", "CLEAN" | "HAS_HOOKS" | "UNSTABLE" | "DRAFT") => Mergeability::Clean,
        ("MERGEABLE", "BLOCKED") => Mergeability::Blocked,
        _ => Mergeability::Unknown,
    }
}

impl ContextBody {
    fn check(self) -> Check {
        match self {
            Self::CheckRun { database_id, name, status, conclusion, details_url, check_suite } => {
                let SuiteBody { app, workflow_run } = check_suite;
                let of = match (workflow_run, &app) {
                    (Some(run), _) => format!("{} ({})", run.workflow.name, run.event),
                    (None, Some(app)) => app.slug.clone(),
                    (None, None) => String::new(),
                };
                Check {
                    name,
                    of,
                    kind: CheckKind::Run {
                        id: database_id,
                        app: app.and_then(|app| app.database_id),
                    },
                    state: of_run(&status, conclusion.as_deref()),
                    page: details_url.unwrap_or_default(),
                }
            }
            Self::StatusContext { context, state, target_url, created_at } => Check {
                name: context,
                of: String::new(),
                kind: CheckKind::Status { at_ms: ms(&created_at) },
                state: match state.as_str() {
                    "SUCCESS" => CheckState::Passed,
                    "PENDING" | "EXPECTED" => CheckState::Running,
                    "FAILURE" | "ERROR" => CheckState::Failed,
                    _ => CheckState::Held,
                },
                page: target_url.unwrap_or_default(),
            },
        }
    }
}

fn of_run(status: &str, conclusion: Option<&str>) -> CheckState {
    match (status, conclusion) {
        ("COMPLETED", Some("SUCCESS" | "NEUTRAL" | "SKIPPED")) => CheckState::Passed,
        ("COMPLETED", Some("FAILURE" | "TIMED_OUT" | "STARTUP_FAILURE")) => CheckState::Failed,
        ("COMPLETED", _) => CheckState::Held,
        _ => CheckState::Running,
    }
}

impl ReviewBody {
    fn seen(self) -> SeenReview {
        SeenReview {
            id: self.database_id,
            by: AuthorBody::seen(self.author),
            state: match self.state.as_str() {
                "APPROVED" => ReviewState::Approved,
                "CHANGES_REQUESTED" => ReviewState::ChangesRequested,
                _ => ReviewState::Dismissed,
            },
            body: self.body,
            at_ms: self.submitted_at.as_deref().map_or(0, ms),
            commit: self.commit.map(|commit| commit.oid).unwrap_or_default(),
        }
    }
}

impl ThreadBody {
    fn seen(self) -> ReviewThread {
        let top = self.top.nodes.into_iter().next();
        let hunk = top.as_ref().and_then(|top| top.diff_hunk.clone()).unwrap_or_default();
        let top_id = top.as_ref().map(|top| top.database_id);
        let newest = self.comments.nodes.into_iter();
        let newest = newest.filter(|comment| Some(comment.database_id) != top_id);
        ReviewThread {
            id: self.id,
            path: self.path,
            line: self.line,
            is_resolved: self.is_resolved,
            is_outdated: self.is_outdated,
            comments: top.into_iter().chain(newest).map(CommentBody::seen).collect(),
            comments_total: self.comments.total_count,
            hunk,
        }
    }
}

impl CommentBody {
    fn seen(self) -> SeenComment {
        SeenComment {
            id: self.database_id,
            is_own: match (&self.author, &self.editor) {
                (Some(author), Some(editor)) => author.id.is_some() && author.id == editor.id,
                (_, editor) => editor.is_none() && self.last_edited_at.is_none(),
            },
            by: AuthorBody::seen(self.author),
            body: self.body,
            at_ms: ms(self.last_edited_at.as_deref().unwrap_or(&self.created_at)),
            page: self.url,
        }
    }
}

impl AuthorBody {
    /// A deleted account counts as nobody.
    fn seen(author: Option<Self>) -> Author {
        let is_bot = author.as_ref().is_some_and(|author| author.kind == "Bot");
        let id = author.as_ref().and_then(|author| author.id).unwrap_or(0);
        Author { login: author.map(|author| author.login).unwrap_or_default(), id, is_bot }
    }
}

/// A time of GraphQL, in Unix milliseconds; 0 if it cannot be read.
fn ms(time: &str) -> Ms {
    let at = DateTime::parse_from_rfc3339(time).map(|at| at.timestamp_millis());
    at.ok().and_then(|ms| u64::try_from(ms).ok()).unwrap_or(0)
}

/// What an answer with errors means for the caller.
pub(super) fn not_answered(errors: &[Value], by: RestCredential<'_>) -> ForgeError {
    let first = errors.first().cloned().unwrap_or_default();
    let said = bobbin_http::sentence(&first["message"]);
    match first["type"].as_str().unwrap_or_default() {
        "RATE_LIMITED" | "RATE_LIMIT" => {
            let seen = "GitHub is limiting requests";
            ForgeError::passing(ForgeErrorKind::RateLimited, 60_000, seen)
        }
        "NOT_FOUND" => ForgeError::lasting(ForgeErrorKind::NotFound, "GitHub does not know it."),
        "UNPROCESSABLE" => ForgeError::refused(said),
        "FORBIDDEN" | "INSUFFICIENT_SCOPES" if matches!(by, RestCredential::Person(_)) => {
            ForgeError::refused(said)
        }
        "FORBIDDEN" => {
            let seen = format!(
                "GitHub left something out of its answer, so nothing is concluded from it: {said}. The installation may lack a permission; `bobbin check` says which."
            );
            ForgeError::lasting(ForgeErrorKind::Refused { why: said }, seen)
        }
        _ => ForgeError::outage(format!("GitHub did not answer a query: {said}")),
    }
}
