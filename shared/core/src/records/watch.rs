//! The watch of a thread's pull request: what polls have seen of it, and what its card shows.

use serde::{Deserialize, Serialize};

use crate::base::ids::{Ms, PostRef, TurnId};
use crate::records::carried::ForgeRepository;
use crate::records::checks::SeenChecks;
use crate::records::publication::{PullRequestAct, PullRequestRef, PullRequestState};
use crate::records::pull_request::Mergeability;
use crate::records::responses::{PullRequestResponse, Remark};

/// Names of checks and people that a card lists of each kind.
pub const NAMES_SHOWN: usize = 5;
/// Responses that wait: three fixes of ten threads each.
const RESPONSES_MAX: usize = 100;
/// Comments that began nothing and are remembered: more than a poll sees of one kind.
const REFUSED_MAX: usize = 100;

/// The watch of an open pull request.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Watch {
    /// The message with which it began: names its posts.
    pub id: TurnId,
    /// Where the pull request is.
    pub repository: ForgeRepository,
    /// The channel in which it was opened; `None`: the operator did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// Its card, once posted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<PostRef>,
    /// A first card was about to be posted: it may exist, and show what another delivery saw.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_posting: bool,
    /// Digest of what the card is sure to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<String>,
    /// The head that was seen last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// Its checks, as they were seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks: Option<SeenChecks>,
    /// When the last poll was begun.
    #[serde(default)]
    pub polled_at_ms: Ms,
    /// When the next poll is due.
    pub due_at_ms: Ms,
    /// The fix that was begun last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<Fix>,
    /// What fixes were begun for.
    #[serde(default)]
    pub begun: BegunFixes,
    /// Comments that asked for something.
    #[serde(default, skip_serializing_if = "HeardRemarks::is_empty")]
    pub heard: HeardRemarks,
    /// What is still to be done below the pull request, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub responses: Vec<PullRequestResponse>,
    /// Failed tries of the first one.
    #[serde(default, skip_serializing_if = "is_none")]
    pub response_failures: u32,
    /// Failed polls since the last good one; once the pull request has ended, failed tries to tell that.
    #[serde(default)]
    pub failures: u32,
}

/// What fixes were begun for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct BegunFixes {
    /// The one that was offered last, if the thread has several repositories: its name tells which repository's it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered: Option<String>,
    /// Names, newest last: no fix is begun for one of them again. Those of a fix that was not answered are removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// Review threads, newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<BegunThread>,
    /// How many have ended without an answer: another try is another turn.
    #[serde(default, skip_serializing_if = "is_none")]
    pub unanswered: u32,
}

impl Watch {
    /// A watch of which nothing has been seen; the first poll is due now.
    #[must_use]
    pub const fn new(
        id: TurnId,
        repository: ForgeRepository,
        channel: Option<String>,
        now_ms: Ms,
    ) -> Self {
        Self {
            id,
            repository,
            channel,
            card: None,
            is_posting: false,
            shown: None,
            head: None,
            checks: None,
            polled_at_ms: 0,
            due_at_ms: now_ms,
            fix: None,
            begun: BegunFixes {
                offered: None,
                names: Vec::new(),
                threads: Vec::new(),
                unanswered: 0,
            },
            heard: HeardRemarks::NONE,
            responses: Vec::new(),
            response_failures: 0,
            failures: 0,
        }
    }

    /// The next poll is due then; what is still to be done below the pull request is tried again with it, and soon.
    pub fn rest_until(&mut self, at_ms: Ms) {
        if self.responses.is_empty() {
            self.due_at_ms = at_ms;
        }
    }

    /// This is to be done below the pull request, after what waits already.
    pub fn respond(&mut self, what: PullRequestResponse) {
        if self.responses.len() < RESPONSES_MAX && !self.responses.contains(&what) {
            self.responses.push(what);
        }
    }
}

/// Comments that asked for something, and were dealt with.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct HeardRemarks {
    /// Those that began a task.
    pub remarks: Vec<Remark>,
    /// The newest of those that did not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Remark>,
    /// Somebody who may not ask was told what is required.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_told_connect: bool,
}

impl HeardRemarks {
    /// Nothing was heard.
    pub const NONE: Self =
        Self { remarks: Vec::new(), refused: Vec::new(), has_told_connect: false };

    /// Whether this one was dealt with.
    #[must_use]
    pub fn has(&self, remark: Remark) -> bool {
        self.remarks.contains(&remark) || self.refused.contains(&remark)
    }

    /// This one begins nothing.
    pub fn refuse(&mut self, remark: Remark) {
        self.refused.push(remark);
        let surplus = self.refused.len().saturating_sub(REFUSED_MAX);
        self.refused.drain(..surplus);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.remarks.is_empty() && self.refused.is_empty()
    }
}

/// A fix that a person pressed for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Fix {
    /// Its name, made of what it is for.
    pub name: String,
    /// How many fixes had ended without an answer when it began; names its turn.
    #[serde(default, skip_serializing_if = "is_none")]
    pub after: u32,
    /// The message of the press.
    pub press: TurnId,
    /// The last press of the thread since, if nothing but presses has ended after that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_press: Option<TurnId>,
    /// Its turn and the push of that are queued.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_queued: bool,
    /// Names of what it is for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<String>,
    /// The review threads that it is for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<FixedThread>,
    /// The people whose reviews it is for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reviewers: Vec<String>,
    /// The sandbox held work that was not pushed: what the turn does is shown before the push.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asks: bool,
}

/// How far fixes have gone in a review thread: an older comment of it begins none, also where a poll does not read the
/// newer ones.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BegunThread {
    /// The forge's id of the thread.
    pub id: String,
    /// Id of the newest comment that a fix was begun for; later comments have higher ones.
    pub comment: u64,
}

/// A review thread that a fix is for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FixedThread {
    /// The forge's id of the thread.
    pub id: String,
    /// Id of its first comment, which replies go to.
    pub top: u64,
    /// A program began it, and all of it was read: it is resolved with the reply. People resolve their own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_bots: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_none(failures: &u32) -> bool {
    *failures == 0
}

/// What the card of a pull request shows. Names are somebody else's words.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PullRequestCard {
    /// The pull request.
    pub at: PullRequestRef,
    /// `owner/name`.
    pub repository: String,
    /// Short name of its branch.
    pub branch: String,
    /// What is known of it.
    pub seen: CardSight,
}

/// What is known of a pull request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[expect(clippy::large_enum_variant, reason = "there is one for a poll, and most are open")]
pub enum CardSight {
    /// It is open.
    Seen(SeenPullRequest),
    /// It was merged or closed.
    Ended(PullRequestState),
    /// The last polls have failed.
    Unseen {
        /// The reason, for people.
        why: String,
        /// Nobody looks at it any more.
        is_given_up: bool,
    },
}

/// A pull request in short.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SeenPullRequest {
    /// It is a draft.
    pub is_draft: bool,
    /// It waits in a merge queue.
    pub is_queued: bool,
    /// The commit of its branch.
    pub head: String,
    /// Somebody else has put that commit there.
    pub is_theirs: bool,
    /// Short name of the branch into which it is to be merged.
    pub base: String,
    /// Its checks.
    pub checks: CheckSummary,
    /// Its reviews.
    pub reviews: ReviewSummary,
    /// Whether it could be merged.
    pub merge: Mergeability,
    /// Lists of which the poll did not read all.
    pub unread: Vec<PartlyRead>,
    /// Name of the fix that a press would begin.
    pub fix: Option<String>,
}

/// A list of which a poll read the newest only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PartlyRead {
    /// The list.
    pub what: PolledList,
    /// How many were read.
    pub read: usize,
    /// How many there are.
    pub total: usize,
}

/// What a poll reads the newest of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PolledList {
    /// Review threads.
    Threads,
    /// Comments of the review threads that are too long.
    ThreadComments,
    /// Reviews.
    Reviews,
    /// Comments on the whole.
    Comments,
    /// People whose permission is looked up.
    People,
}

impl SeenPullRequest {
    /// What a person can do with it now, in the order of the buttons.
    #[must_use]
    pub fn acts(&self) -> Vec<PullRequestAct> {
        let is_open = !self.is_queued;
        let ready = (is_open && self.is_draft).then_some(PullRequestAct::MarkReady);
        let by_merge = match self.merge {
            Mergeability::Clean if is_open && !self.is_draft => Some(PullRequestAct::Merge),
            Mergeability::Behind if is_open => Some(PullRequestAct::UpdateBranch),
            _ => None,
        };
        ready.into_iter().chain(by_merge).collect()
    }
}

/// Checks in short.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CheckSummary {
    /// What they say together.
    pub verdict: CheckWord,
    /// How many have passed.
    pub passed: usize,
    /// How many have not ended.
    pub running: usize,
    /// Those that have failed.
    pub failed: ShownNames,
    /// Those that only a person can tell about.
    pub held: ShownNames,
    /// Required ones that have not been seen.
    pub missing: ShownNames,
    /// There are more than a poll reads.
    pub is_cut: bool,
}

/// What checks say together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CheckWord {
    /// There are none.
    None,
    /// They have not settled.
    Unsettled,
    /// All have passed.
    Green,
    /// Some have failed.
    Red,
    /// None has failed, and a person has to look after some.
    Held,
}

/// Reviews in short, of those who count.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ReviewSummary {
    /// Who has approved it.
    pub approved: ShownNames,
    /// Who wants changes.
    pub changes: ShownNames,
    /// Threads that are not resolved.
    pub threads: usize,
    /// The forge says that a review is missing.
    pub is_required: bool,
}

/// The first of some names, and how many there are.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ShownNames {
    /// The first.
    pub first: Vec<String>,
    /// Number of all.
    pub total: usize,
}

impl FromIterator<String> for ShownNames {
    fn from_iter<T: IntoIterator<Item = String>>(names: T) -> Self {
        let mut all = Self::default();
        for name in names {
            if all.first.len() < NAMES_SHOWN {
                all.first.push(name);
            }
            all.total += 1;
        }
        all
    }
}
