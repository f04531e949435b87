//! Reviews and comments as GitHub's JSON.

use serde_json::{Value, json};

use super::{LineComment, Reaction, Remark, Review, Speaker, Thread};
use crate::record::{Pull, PullState};
use crate::rest::show::Show;

impl Show<'_> {
    /// Addresses of a pull request: of the API and of its page.
    fn pull_bases(&self, id: u64) -> (String, String) {
        let Ok(pull) = self.inner.pull_of_id(id) else { return Default::default() };
        let (base, page) = self.bases(pull.repository);
        (format!("{base}/pulls/{}", pull.number), format!("{page}/pull/{}", pull.number))
    }

    fn association_in(&self, pull: u64, account: u64) -> &'static str {
        let pull = self.inner.pull_of_id(pull);
        let record = pull.ok().and_then(|one| self.inner.repositories.get(&one.repository));
        record.map_or("NONE", |record| self.association(record, account))
    }

    fn via(&self, voice: Speaker) -> Value {
        let app = voice.via.and_then(|id| self.inner.apps.get(&id));
        app.map_or(Value::Null, |app| self.app(app))
    }

    pub(crate) fn review(&self, review: &Review) -> Value {
        let (at, page) = self.pull_bases(review.pull);
        let page = format!("{page}#pullrequestreview-{}", review.id);
        json!({
            "id": review.id, "node_id": self.node("PullRequestReview", review.id),
            "user": self.user_of(review.voice.author), "body": review.body, "state": review.verdict.word(),
            "html_url": page, "pull_request_url": at,
            "author_association": self.association_in(review.pull, review.voice.author),
            "_links": { "html": { "href": page }, "pull_request": { "href": at } },
            "submitted_at": self.time(review.submitted_at), "commit_id": review.sha,
        })
    }

    pub(crate) fn line_comment(&self, comment: &LineComment, thread: &Thread) -> Value {
        let (pull, page) = self.pull_bases(thread.pull);
        let base = pull.rsplit_once('/').map_or("", |(base, _)| base);
        let at = format!("{base}/comments/{}", comment.id);
        let page = format!("{page}#discussion_r{}", comment.id);
        let position = (!thread.is_outdated).then_some(thread.position);
        let mut told = json!({
            "url": at, "pull_request_review_id": comment.review, "id": comment.id,
            "node_id": self.node("PullRequestReviewComment", comment.id), "diff_hunk": thread.hunk,
            "path": thread.path, "commit_id": thread.sha, "original_commit_id": thread.original_sha,
            "user": self.user_of(comment.voice.author), "body": comment.body,
            "created_at": self.time(comment.created_at), "updated_at": self.time(comment.updated_at),
            "html_url": page, "pull_request_url": pull,
            "author_association": self.association_in(thread.pull, comment.voice.author),
            "_links": {
                "self": { "href": at }, "html": { "href": page }, "pull_request": { "href": pull },
            },
            "reactions": self.rollup(comment.id, &at), "position": position,
            "original_position": thread.position,
            "subject_type": if thread.is_file() { "file" } else { "line" },
        });
        if !thread.is_file() {
            let start = thread.original_start_line;
            told["line"] = thread.line.into();
            told["original_line"] = thread.original_line.into();
            told["side"] = thread.side.word().into();
            told["start_line"] = thread.start_line.into();
            told["original_start_line"] = start.into();
            told["start_side"] = start.map(|_| thread.side.word()).into();
        }
        if let Some(top) = comment.reply_to {
            told["in_reply_to_id"] = top.into();
        }
        told
    }

    pub(crate) fn remark(&self, remark: &Remark) -> Value {
        let (pull, page) = self.pull_bases(remark.pull);
        let issue = pull.replacen("/pulls/", "/issues/", 1);
        let base = issue.rsplit_once('/').map_or("", |(base, _)| base);
        let at = format!("{base}/comments/{}", remark.id);
        json!({
            "id": remark.id, "node_id": self.node("IssueComment", remark.id), "url": at,
            "html_url": format!("{page}#issuecomment-{}", remark.id), "body": remark.body,
            "user": self.user_of(remark.voice.author), "created_at": self.time(remark.created_at),
            "updated_at": self.time(remark.updated_at), "issue_url": issue,
            "author_association": self.association_in(remark.pull, remark.voice.author),
            "performed_via_github_app": self.via(remark.voice), "reactions": self.rollup(remark.id, &at),
        })
    }

    /// A pull request as the issue that it is too.
    pub(crate) fn issue(&self, pull: &Pull) -> Value {
        let (at, page) = self.pull_bases(pull.id);
        let (base, _) = self.bases(pull.repository);
        let issue = format!("{base}/issues/{}", pull.number);
        let merged_at = pull.closed_at.filter(|_| pull.state == PullState::Merged);
        let comments = self.inner.talk.remarks.iter().filter(|one| one.pull == pull.id).count();
        let association = self.association_in(pull.id, pull.author);
        json!({
            "url": issue, "repository_url": base, "labels_url": format!("{issue}/labels{{/name}}"),
            "comments_url": format!("{issue}/comments"), "events_url": format!("{issue}/events"),
            "timeline_url": format!("{issue}/timeline"), "html_url": page, "id": pull.id,
            "node_id": self.node("PullRequest", pull.id), "number": pull.number, "title": pull.title,
            "user": self.user_of(pull.author), "labels": [], "locked": false, "assignee": null,
            "state": if pull.state == PullState::Open { "open" } else { "closed" }, "assignees": [],
            "milestone": null, "comments": comments, "created_at": self.time(pull.created_at),
            "updated_at": self.time(pull.updated_at), "closed_at": self.time_of(pull.closed_at),
            "author_association": association, "active_lock_reason": null, "body": pull.body,
            "draft": pull.is_draft, "reactions": self.rollup(pull.id, &issue),
            "performed_via_github_app": null, "state_reason": null,
            "pull_request": {
                "url": at, "html_url": page, "diff_url": format!("{page}.diff"),
                "patch_url": format!("{page}.patch"), "merged_at": self.time_of(merged_at),
            },
        })
    }

    pub(crate) fn reaction(&self, reaction: &Reaction) -> Value {
        json!({
            "id": reaction.id, "node_id": self.node("Reaction", reaction.id),
            "user": self.user_of(reaction.author), "content": reaction.content,
            "created_at": self.time(reaction.created_at),
        })
    }

    fn rollup(&self, of: u64, at: &str) -> Value {
        let own = self.inner.talk.reactions.iter().filter(|one| one.of == of);
        let mut told = json!({
            "url": format!("{at}/reactions"), "total_count": 0, "+1": 0, "-1": 0, "laugh": 0, "confused": 0,
            "heart": 0, "hooray": 0, "eyes": 0, "rocket": 0,
        });
        for one in own {
            for field in ["total_count", &one.content] {
                told[field] = (told[field].as_u64().unwrap_or_default() + 1).into();
            }
        }
        told
    }
}
