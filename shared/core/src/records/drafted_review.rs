//! A review that an agent has written in its sandbox: read, compared with the pull request's diff, posted when somebody
//! presses.
//!
//! All of it is the agent's words. A comment outside of the diff becomes part of the text: the forge would refuse the
//! whole review for it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::base::ids::{ThreadKey, TurnId};
use crate::base::names::short_name;
use crate::records::carried::ForgeRepository;
use crate::text::{one_line, shorten};

/// The file of the agent's folder in which it writes one; git leaves that folder out.
pub const FILE: &str = ".bobbin/review.json";
/// Most bytes of that file.
pub const FILE_BYTES_MAX: usize = 64 * 1024;
/// Most comments.
const COMMENTS_MAX: usize = 50;
/// Longest text of a comment, in characters.
pub const COMMENT_CHARS_MAX: usize = 4_000;
/// Longest text of the whole.
pub const SUMMARY_CHARS_MAX: usize = 10_000;
const PATH_CHARS_MAX: usize = 500;
/// Characters (UTF-16 units) of a parser's complaint that are passed on.
const WRONG_UNITS_MAX: usize = 200;

/// A review as it would be posted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct DraftedReview {
    /// What it says of the whole.
    pub summary: String,
    /// What it says of lines in the difference.
    pub comments: Vec<DraftedComment>,
    /// What it says of other lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub apart: Vec<DraftedComment>,
}

/// What a review says of a line, or of several.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DraftedComment {
    /// The file.
    pub path: String,
    /// The last line.
    pub line: u64,
    /// The first line, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_line: Option<u64>,
    /// In which of the two files the lines are counted.
    #[serde(default)]
    pub side: DiffSide,
    /// What it says.
    pub body: String,
}

/// A side of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum DiffSide {
    /// The file as it was.
    Left,
    /// The file as it would be.
    #[default]
    Right,
}

/// A changed file of a difference.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DiffFile {
    /// Its path.
    pub path: String,
    /// Its hunks.
    pub hunks: Vec<DiffHunk>,
}

/// The lines that a hunk shows: the first, and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DiffHunk {
    /// Of the file as it was.
    pub left: (u64, u64),
    /// Of the file as it would be.
    pub right: (u64, u64),
}

/// What was found where an agent writes a review.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ReviewRead {
    /// Nothing.
    Absent,
    /// Something that cannot be posted.
    Unusable {
        /// A digest of what is there: it is told once.
        of: String,
        /// What is wrong with it, for people.
        why: String,
    },
    /// A review.
    Drafted(DraftedReview),
}

/// The review that a thread was shown last.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PullReview {
    /// Its name: a digest of what it says and where.
    pub name: String,
    /// The repository.
    pub repository: ForgeRepository,
    /// Number of the pull request.
    pub number: u64,
    /// The commit that was reviewed.
    pub head: String,
    /// What would be posted; `None`: nothing can be, or it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft: Option<DraftedReview>,
    /// The thread has been shown it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_shown: bool,
    /// Where it is posted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub posted: Option<PostedReview>,
}

/// A review that is posted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PostedReview {
    /// The message of the press.
    pub press: TurnId,
    /// Its page.
    pub page: String,
}

/// A review to post. A repeat finds it by its name, which is part of its text, out of sight.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NewPullReview {
    /// The name, of letters, digits and `-`.
    pub name: String,
    /// The commit that was reviewed.
    pub commit: String,
    /// Its text, in the forge's Markdown.
    pub body: String,
    /// Its comments on lines, with texts in the forge's Markdown.
    pub comments: Vec<DraftedComment>,
}

/// End of the call that posts a review.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ReviewEnd {
    /// It is there: new, or found by its name.
    There {
        /// Its page.
        page: String,
    },
    /// The forge refused it.
    Refused {
        /// The reason, for people.
        why: String,
    },
}

#[derive(Deserialize)]
struct WrittenReview {
    summary: Option<String>,
    comments: Option<Vec<DraftedComment>>,
}

impl DraftedReview {
    /// Reads what an agent wrote. Names that are not known count for nothing.
    ///
    /// # Errors
    /// What is wrong with it, for people.
    pub fn read(written: &[u8]) -> Result<Self, String> {
        if written.len() > FILE_BYTES_MAX {
            return Err(format!("it is larger than {} KB", FILE_BYTES_MAX / 1024));
        }
        let read: WrittenReview = serde_json::from_slice(written)
            .map_err(|error| shorten(&one_line(&error.to_string()), WRONG_UNITS_MAX))?;
        let summary = read.summary.unwrap_or_default().trim().to_owned();
        let comments = read.comments.unwrap_or_default();
        if summary.is_empty() && comments.is_empty() {
            return Err("it says nothing".to_owned());
        }
        if summary.chars().count() > SUMMARY_CHARS_MAX {
            return Err(format!("its summary has more than {SUMMARY_CHARS_MAX} characters"));
        }
        if comments.len() > COMMENTS_MAX {
            return Err(format!("it has more than {COMMENTS_MAX} comments"));
        }
        let comments = comments.into_iter().zip(1..).map(|(comment, nth)| {
            comment.usable().map_err(|wrong| format!("its comment {nth} {wrong}"))
        });
        Ok(Self { summary, comments: comments.collect::<Result<_, _>>()?, apart: Vec::new() })
    }

    /// The same, with the comments outside of this diff separated.
    #[must_use]
    pub fn against(self, files: &[DiffFile]) -> Self {
        let hunks: BTreeMap<&str, &[DiffHunk]> =
            files.iter().map(|file| (&*file.path, &*file.hunks)).collect();
        let fits = |comment: &DraftedComment| {
            let mut hunks = hunks.get(&*comment.path).copied().unwrap_or_default().iter();
            hunks.any(|hunk| comment.is_in(hunk))
        };
        let (comments, apart) = self.comments.into_iter().partition(fits);
        Self { comments, apart, ..self }
    }

    /// What would make another review of it.
    #[must_use]
    pub fn name(&self, thread: &ThreadKey, (repository, number): (u64, u64), head: &str) -> String {
        let said = serde_json::to_string(self).unwrap_or_default();
        let at = format!("{repository}#{number}");
        short_name(&["review", &thread.to_string(), &at, head, &said])
    }

    /// All that it says, as a text for people.
    #[must_use]
    pub fn text(&self) -> String {
        let said = |comment: &DraftedComment| format!("{}\n{}", comment.place(), comment.body);
        let mut parts = vec![self.summary.clone()];
        parts.extend(self.comments.iter().map(said));
        if !self.apart.is_empty() {
            parts.push("Not on lines of the diff, so they become part of the text:".to_owned());
        }
        parts.extend(self.apart.iter().map(said));
        parts.retain(|part| !part.is_empty());
        parts.join("\n\n")
    }
}

impl DraftedComment {
    /// The comment in its plainest form.
    fn usable(mut self) -> Result<Self, String> {
        let path = self.path.trim().trim_start_matches("./");
        if path.is_empty()
            || path.chars().count() > PATH_CHARS_MAX
            || path.contains(char::is_control)
        {
            return Err("has no usable path".to_owned());
        }
        self.path = path.to_owned();
        self.body = self.body.trim().to_owned();
        if self.body.is_empty() {
            return Err("says nothing".to_owned());
        }
        if self.body.chars().count() > COMMENT_CHARS_MAX {
            return Err(format!("has more than {COMMENT_CHARS_MAX} characters"));
        }
        let first = self.start_line.unwrap_or(self.line);
        if first == 0 || first > self.line {
            return Err("has no usable line".to_owned());
        }
        self.start_line.take_if(|start| *start == self.line);
        Ok(self)
    }

    /// Whether all of its lines are in this hunk.
    fn is_in(&self, hunk: &DiffHunk) -> bool {
        let (start, count) = match self.side {
            DiffSide::Left => hunk.left,
            DiffSide::Right => hunk.right,
        };
        let lines = start..start.saturating_add(count);
        lines.contains(&self.start_line.unwrap_or(self.line)) && lines.contains(&self.line)
    }

    /// Where it is, for people.
    #[must_use]
    pub fn place(&self) -> String {
        let start = self.start_line.map(|start| format!("{start}-")).unwrap_or_default();
        let before = match self.side {
            DiffSide::Left => " (before the change)",
            DiffSide::Right => "",
        };
        format!("{}:{start}{}{before}", self.path, self.line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(written: &str) -> Result<DraftedReview, String> {
        DraftedReview::read(written.as_bytes())
    }

    fn places(comments: &[DraftedComment]) -> Vec<String> {
        comments.iter().map(DraftedComment::place).collect()
    }

    #[test]
    fn review_is_read_and_unknown_names_ignored() {
        let written = r#"{"summary": " Good. ", "verdict": "approve", "comments": [
            {"path": "./a.rs", "line": 3, "body": "One", "author": "me"},
            {"path": "b.rs", "line": 9, "start_line": 7, "side": "LEFT", "body": "Two"},
            {"path": "b.rs", "line": 9, "start_line": 9, "body": "Three"}]}"#;
        let review = read(written).expect("a review");
        assert_eq!(review.summary, "Good.");
        assert_eq!(places(&review.comments), ["a.rs:3", "b.rs:7-9 (before the change)", "b.rs:9"]);
        assert!(read(r#"{"comments": [{"path": "a", "line": 1, "body": "x"}]}"#).is_ok());
    }

    #[test]
    fn unusable_review_names_what_is_wrong() {
        let comment = |fields: &str| format!(r#"{{"comments": [{{{fields}}}]}}"#);
        let long = "x".repeat(4_001);
        for (written, wrong) in [
            ("[".to_owned(), "EOF while parsing"),
            ("{}".to_owned(), "it says nothing"),
            (r#"{"summary": " "}"#.to_owned(), "it says nothing"),
            (comment(r#""path": "a", "body": "x""#), "missing field `line`"),
            (comment(r#""path": "a", "line": "1", "body": "x""#), "invalid type"),
            (comment(r#""path": "", "line": 1, "body": "x""#), "comment 1 has no usable path"),
            (comment(r#""path": "a", "line": 0, "body": "x""#), "comment 1 has no usable line"),
            (
                comment(r#""path": "a", "line": 1, "start_line": 2, "body": "x""#),
                "comment 1 has no usable line",
            ),
            (comment(r#""path": "a", "line": 1, "body": " ""#), "comment 1 says nothing"),
            (
                comment(&format!(r#""path": "a", "line": 1, "body": "{long}""#)),
                "comment 1 has more than 4000 characters",
            ),
            (comment(r#""path": "a", "line": 1, "side": "UP", "body": "x""#), "unknown variant"),
            (format!(r#"{{"summary": "{}"}}"#, "x".repeat(70_000)), "larger than 64 KB"),
        ] {
            let seen = read(&written).expect_err("it is unusable");
            assert!(seen.contains(wrong), "{seen}: {wrong}");
        }
        let many = vec![r#"{"path": "a", "line": 1, "body": "x"}"#; 51].join(",");
        let seen = read(&format!(r#"{{"comments": [{many}]}}"#)).expect_err("too many");
        assert_eq!(seen, "it has more than 50 comments");
    }

    #[test]
    fn comments_outside_the_difference_go_apart() {
        let file = DiffFile {
            path: "a.rs".to_owned(),
            hunks: vec![
                DiffHunk { left: (1, 4), right: (1, 6) },
                DiffHunk { left: (20, 0), right: (30, 2) },
            ],
        };
        let at = |path: &str, start_line: Option<u64>, line, side| DraftedComment {
            path: path.to_owned(),
            line,
            start_line,
            side,
            body: "x".to_owned(),
        };
        use DiffSide::{Left, Right};
        let comments = vec![
            at("a.rs", None, 6, Right),
            at("a.rs", None, 7, Right),
            at("a.rs", None, 4, Left),
            at("a.rs", None, 6, Left),
            at("a.rs", None, 20, Left),
            at("a.rs", Some(30), 31, Right),
            at("a.rs", Some(6), 30, Right),
            at("b.rs", None, 1, Right),
            at("a.rs", Some(u64::MAX - 1), u64::MAX, Right),
        ];
        let review = DraftedReview { comments, ..DraftedReview::default() }.against(&[file]);
        let before = " (before the change)";
        assert_eq!(places(&review.comments), ["a.rs:6", &format!("a.rs:4{before}"), "a.rs:30-31"]);
        assert_eq!(review.apart.len(), 6);
        assert!(review.text().contains("\n\nNot on lines of the diff, so they become part"));
    }
}
