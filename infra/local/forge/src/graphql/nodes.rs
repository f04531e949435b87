//! Records as GitHub's schema has them: everything that a document may ask for.

use serde_json::{Value, json};

use super::projection::{connection, forbidden};
use crate::checks::{CheckRun, CommitStatus};
use crate::pulls::Numbers;
use crate::record::{BranchRule, Kind, Pull, PullState};
use crate::rest::show::Show;
use crate::reviews::{LineComment, Remark, Review, Thread, Verdict};

/// What a caller may see of a pull request.
#[derive(Clone, Copy)]
pub(super) struct Rights {
    pub(super) contents: bool,
    pub(super) checks: bool,
    pub(super) statuses: bool,
    pub(super) actions: bool,
    /// Whether threads can be resolved.
    pub(super) resolves: bool,
}

/// GitHub's GraphQL as far as its documents ask.
pub(super) struct PullNodes<'a> {
    pub(super) show: Show<'a>,
    pub(super) pull: &'a Pull,
    pub(super) rights: Rights,
    /// Names that must pass.
    pub(super) required: Vec<String>,
}

/// A word of an enumeration.
fn newest_of_each<'a>(reviews: impl Iterator<Item = &'a Review>) -> Vec<&'a Review> {
    let mut newest: Vec<&Review> = Vec::new();
    for review in reviews {
        newest.retain(|one| one.voice.author != review.voice.author);
        newest.push(review);
    }
    newest
}

fn word(text: &str) -> String {
    text.to_uppercase()
}

impl PullNodes<'_> {
    /// A bot has its short name here.
    pub(super) fn actor(&self, id: u64) -> Value {
        let Some(account) = self.show.inner.accounts.get(&id) else { return Value::Null };
        let kind = match account.kind {
            Kind::Bot => "Bot",
            Kind::User => "User",
            Kind::Organization => "Organization",
        };
        json!({ "__typename": kind, "login": account.login.trim_end_matches("[bot]"), "databaseId": id })
    }

    fn association(&self, account: u64) -> &'static str {
        let record = self.show.inner.repositories.get(&self.pull.repository);
        record.map_or("NONE", |record| self.show.association(record, account))
    }

    fn check_run(&self, run: &CheckRun) -> Value {
        if !self.rights.checks {
            return forbidden();
        }
        let checks = &self.show.inner.checks;
        let suite = checks.suite(run.suite).ok();
        let app = suite.and_then(|one| self.show.inner.apps.get(&one.app));
        let workflow = checks.workflow_of(run.suite).map(|one| {
            json!({
                "databaseId": one.id, "runNumber": one.number, "event": one.event, "runAttempt": one.attempt,
                "workflow": { "name": one.name, "databaseId": one.workflow },
            })
        });
        let page = self.show.check_page(run);
        json!({
            "__typename": "CheckRun", "id": self.show.node("CheckRun", run.id), "databaseId": run.id,
            "name": run.name, "status": word(run.status.word()),
            "conclusion": run.conclusion.map(|one| word(one.word())),
            "startedAt": self.show.time(run.started_at), "completedAt": self.show.time_of(run.completed_at),
            "detailsUrl": run.details_url.as_deref().unwrap_or(&page), "title": run.title,
            "summary": run.summary, "isRequired": self.required.contains(&run.name),
            "checkSuite": {
                "databaseId": run.suite,
                "app": app.map(|one| json!({ "slug": one.slug, "databaseId": one.id, "name": one.name })),
                "workflowRun": if self.rights.actions { workflow.into() } else { forbidden() },
            },
        })
    }

    fn status(&self, status: &CommitStatus) -> Value {
        if !self.rights.statuses {
            return forbidden();
        }
        json!({
            "__typename": "StatusContext", "id": self.show.node("StatusContext", status.id),
            "context": status.context, "state": word(&status.state), "targetUrl": status.target_url,
            "description": status.description, "createdAt": self.show.time(status.created_at),
            "isRequired": self.required.contains(&status.context), "creator": self.actor(status.creator),
        })
    }

    /// What all checks and statuses of the head say together; nothing if there are none.
    fn rollup(&self) -> Value {
        let (checks, sha) = (&self.show.inner.checks, self.pull.head_sha.as_str());
        let runs = checks.runs_of(self.pull.repository, sha, false);
        let mut statuses = checks.statuses_of(self.pull.repository, sha);
        statuses.reverse();
        if runs.is_empty() && statuses.is_empty() {
            return Value::Null;
        }
        let has_failed = |run: &&CheckRun| run.conclusion.is_some_and(|one| !one.is_passed());
        let is = |state: &'static str| statuses.iter().any(|one| one.state == state);
        let state = match () {
            () if is("error") => "ERROR",
            () if is("failure") || runs.iter().any(has_failed) => "FAILURE",
            () if is("pending") || runs.iter().any(|one| one.conclusion.is_none()) => "PENDING",
            () => "SUCCESS",
        };
        let runs = runs.into_iter().map(|one| self.check_run(one));
        let all = runs.chain(statuses.into_iter().map(|one| self.status(one))).collect();
        json!({ "state": state, "contexts": connection(all) })
    }

    fn review(&self, review: &Review) -> Value {
        json!({
            "id": self.show.node("PullRequestReview", review.id), "databaseId": review.id,
            "state": review.verdict.word(), "submittedAt": self.show.time(review.submitted_at),
            "body": review.body, "author": self.actor(review.voice.author),
            "authorAssociation": self.association(review.voice.author), "commit": { "oid": review.sha },
        })
    }

    fn comment(&self, comment: &LineComment, thread: &Thread) -> Value {
        let review = self.show.inner.talk.review(comment.review).ok();
        let rest = self.show.line_comment(comment, thread);
        let edited = (comment.updated_at != comment.created_at).then_some(comment.updated_at);
        json!({
            "id": self.show.node("PullRequestReviewComment", comment.id), "databaseId": comment.id,
            "fullDatabaseId": comment.id.to_string(), "url": rest["html_url"], "body": comment.body,
            "diffHunk": thread.hunk, "createdAt": rest["created_at"],
            "lastEditedAt": self.show.time_of(edited), "outdated": thread.is_outdated,
            "authorAssociation": self.association(comment.voice.author),
            "author": self.actor(comment.voice.author),
            "editor": edited.map(|_| self.actor(comment.voice.author)),
            "replyTo": comment.reply_to.map(|id| json!({ "databaseId": id })),
            "pullRequestReview": review.map(|one| json!({ "databaseId": one.id, "state": one.verdict.word() })),
        })
    }

    pub(super) fn thread(&self, thread: &Thread) -> Value {
        let comments = self.show.inner.talk.comments_in(thread.id);
        let comments = comments.map(|one| self.comment(one, thread)).collect();
        json!({
            "id": self.show.node("PullRequestReviewThread", thread.id),
            "isResolved": thread.resolved_by.is_some(), "isOutdated": thread.is_outdated,
            "resolvedBy": thread.resolved_by.map(|id| self.actor(id)), "path": thread.path,
            "line": thread.line, "startLine": thread.start_line, "originalLine": thread.original_line,
            "originalStartLine": thread.original_start_line, "diffSide": thread.side.word(),
            "subjectType": if thread.is_file() { "FILE" } else { "LINE" },
            "viewerCanResolve": self.rights.resolves && thread.resolved_by.is_none(),
            "viewerCanUnresolve": self.rights.resolves && thread.resolved_by.is_some(),
            "comments": connection(comments),
        })
    }

    fn remark(&self, remark: &Remark) -> Value {
        let rest = self.show.remark(remark);
        let edited = (remark.updated_at != remark.created_at).then_some(remark.updated_at);
        json!({
            "id": self.show.node("IssueComment", remark.id), "databaseId": remark.id,
            "fullDatabaseId": remark.id.to_string(), "url": rest["html_url"], "body": remark.body,
            "createdAt": rest["created_at"], "lastEditedAt": self.show.time_of(edited),
            "author": self.actor(remark.voice.author),
            "editor": edited.map(|_| self.actor(remark.voice.author)),
            "authorAssociation": self.association(remark.voice.author),
        })
    }

    /// What reviews say together, where the base needs any.
    fn decision(&self, rules: &[BranchRule]) -> Option<&'static str> {
        let needed = rules.iter().filter_map(|rule| match rule {
            BranchRule::PullRequest { required_approving_review_count: count } => Some(*count),
            _ => None,
        });
        let needed = needed.max().filter(|count| *count > 0)?;
        let count = |verdict| self.show.inner.counting(self.pull, verdict);
        Some(match count(Verdict::ChangesRequested) {
            0 if u64::try_from(count(Verdict::Approved)).unwrap_or(0) >= needed => "APPROVED",
            0 => "REVIEW_REQUIRED",
            _ => "CHANGES_REQUESTED",
        })
    }

    pub(super) fn pull_request(&self, numbers: &Numbers, rules: &[BranchRule]) -> Value {
        let (show, pull, inner) = (&self.show, self.pull, self.show.inner);
        let rest = show.pull(pull, Some(numbers));
        let talk = &inner.talk;
        let state = match pull.state {
            PullState::Open => "OPEN",
            PullState::Closed => "CLOSED",
            PullState::Merged => "MERGED",
        };
        let mergeable = match numbers.mergeable {
            None => "UNKNOWN",
            Some(true) => "MERGEABLE",
            Some(false) => "CONFLICTING",
        };
        let own = talk.reviews.iter().filter(|one| one.pull == pull.id);
        // A comment does not take a verdict's place.
        let verdicts = own.clone().filter(|one| one.verdict != Verdict::Commented);
        let (latest, verdicts) = (newest_of_each(own), newest_of_each(verdicts));
        let remarks = talk.remarks.iter().filter(|one| one.pull == pull.id);
        let last =
            json!({ "commit": { "oid": pull.head_sha, "statusCheckRollup": self.rollup() } });
        let commits = vec![if self.rights.contents { last } else { forbidden() }];
        json!({
            "id": rest["node_id"], "databaseId": pull.id, "fullDatabaseId": pull.id.to_string(),
            "number": pull.number, "url": rest["html_url"], "title": pull.title,
            "body": pull.body.as_deref().unwrap_or_default(), "state": state,
            "merged": pull.state == PullState::Merged, "mergedAt": rest["merged_at"],
            "closed": pull.state != PullState::Open, "closedAt": rest["closed_at"],
            "createdAt": rest["created_at"], "updatedAt": rest["updated_at"], "isDraft": pull.is_draft,
            "isInMergeQueue": pull.queued_at.is_some(), "locked": false, "headRefName": pull.head,
            "headRefOid": pull.head_sha, "baseRefName": pull.base, "baseRefOid": pull.base_sha,
            "isCrossRepository": false, "mergeable": mergeable,
            "mergeStateStatus": word(rest["mergeable_state"].as_str().unwrap_or("unknown")),
            "reviewDecision": self.decision(rules), "autoMergeRequest": null,
            "author": self.actor(pull.author), "commits": connection(commits),
            "mergeCommit": pull.merge_sha.as_ref().map(|sha| json!({ "oid": sha })),
            "reviewThreads": connection(talk.threads_of(pull.id).map(|one| self.thread(one)).collect()),
            "latestReviews": connection(latest.into_iter().map(|one| self.review(one)).collect()),
            "latestOpinionatedReviews": connection(verdicts.into_iter().map(|one| self.review(one)).collect()),
            "comments": connection(remarks.map(|one| self.remark(one)).collect()),
        })
    }
}
