//! Reviews that Bobbin posts, and the difference on whose lines they are.

use bobbin_core::records::drafted_review::{
    DiffFile, DiffHunk, DiffSide, DraftedComment, NewPullReview,
};
use bobbin_http::Method;
use serde::{Deserialize, Serialize};

use super::client::{PAGE_ITEMS, PAGES_MAX};
use super::remarks::mark;
use super::rest::{Call, RestClient, RestCredential, RestError};
use crate::forge::RepositoryName;

#[derive(Deserialize)]
struct DifferenceBody {
    /// At most 300, and only on the first page.
    #[serde(default)]
    files: Vec<FileBody>,
}

#[derive(Deserialize)]
struct FileBody {
    filename: String,
    /// Absent of a binary file, and of one with too many changed lines: no line of it can be commented.
    patch: Option<String>,
}

#[derive(Deserialize)]
struct GivenReviewBody {
    #[serde(default)]
    body: String,
    html_url: String,
}

#[derive(Serialize)]
struct NewReviewBody<'a> {
    commit_id: &'a str,
    event: &'static str,
    body: &'a str,
    comments: Vec<ReviewCommentBody<'a>>,
}

#[derive(Serialize)]
struct ReviewCommentBody<'a> {
    path: &'a str,
    body: &'a str,
    line: u64,
    side: DiffSide,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_side: Option<DiffSide>,
}

impl<'a> From<&'a DraftedComment> for ReviewCommentBody<'a> {
    fn from(comment: &'a DraftedComment) -> Self {
        Self {
            path: &comment.path,
            body: &comment.body,
            line: comment.line,
            side: comment.side,
            start_line: comment.start_line,
            start_side: comment.start_line.map(|_| comment.side),
        }
    }
}

/// What the head changes since it left the base's history.
pub(super) async fn difference(
    rest: &RestClient,
    by: RestCredential<'_>,
    name: &RepositoryName,
    (base, head): (&str, &str),
) -> Result<Vec<DiffFile>, RestError> {
    let both = format!("{base}...{head}");
    let path = ["repos", name.owner(), name.name(), "compare", &both];
    let query = [("per_page", "1"), ("page", "1")];
    let body: DifferenceBody = rest.read(Call::get(by, &path).with(&query)).await?;
    let file = |one: FileBody| {
        let hunks = one.patch.as_deref().map(hunks).unwrap_or_default();
        DiffFile { path: one.filename, hunks }
    };
    Ok(body.files.into_iter().map(file).collect())
}

fn hunks(patch: &str) -> Vec<DiffHunk> {
    patch.lines().filter_map(hunk).collect()
}

/// The lines of a hunk, by its head: `@@ -3,2 +4,2 @@`. No other line of a patch begins so.
fn hunk(line: &str) -> Option<DiffHunk> {
    let (left, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let (right, _) = rest.split_once(" @@")?;
    let span = |text: &str| {
        let (start, count) = text.split_once(',').unwrap_or((text, "1"));
        Some((start.parse().ok()?, count.parse().ok()?))
    };
    Some(DiffHunk { left: span(left)?, right: span(right)? })
}

/// Posts a review, unless it is there. Returns its page.
pub(super) async fn post(
    rest: &RestClient,
    by: RestCredential<'_>,
    name: &RepositoryName,
    number: u64,
    review: &NewPullReview,
) -> Result<String, RestError> {
    let mark = mark(&review.name);
    let number = number.to_string();
    let path = ["repos", name.owner(), name.name(), "pulls", &number, "reviews"];
    // Oldest first, whatever is asked for.
    for page in 1..=PAGES_MAX {
        let page = page.to_string();
        let query = [("per_page", PAGE_ITEMS), ("page", page.as_str())];
        let found: Vec<GivenReviewBody> = rest.read(Call::get(by, &path).with(&query)).await?;
        let is_last = found.len() < 100;
        if let Some(ours) = found.into_iter().find(|one| one.body.contains(&mark)) {
            return Ok(ours.html_url);
        }
        if is_last {
            break;
        }
    }
    let body = NewReviewBody {
        commit_id: &review.commit,
        event: "COMMENT",
        body: &format!("{}\n\n{mark}", review.body),
        comments: review.comments.iter().map(ReviewCommentBody::from).collect(),
    };
    let made: GivenReviewBody = rest.read(Call::sending(by, Method::POST, &path, &body)).await?;
    Ok(made.html_url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hunks_are_read_from_their_heads() {
        let hunk = |left, right| DiffHunk { left, right };
        assert_eq!(
            hunks(
                "@@ -1,3 +1,4 @@ fn a() {\n a\n+@@ -9 +9 @@\n-b\n@@ -20 +21,0 @@\n-c\n@@ -0,0 +1 @@"
            ),
            [hunk((1, 3), (1, 4)), hunk((20, 1), (21, 0)), hunk((0, 0), (1, 1))]
        );
        assert_eq!(hunks("@@ -x +1 @@\n@@ -1,2"), []);
    }
}
