//! An agent's review of the pull request that its thread works from: read when the turn has answered, shown, and posted
//! when somebody presses.
//!
//! Promised: nothing is posted that a person was not shown, and one review only, however often it is pressed. A review
//! that cannot be read or shown does not cost the turn its end. Once it was shown, the sandbox is not needed any more.

use super::{Context, Next, forge, publish, words};
use crate::base::names::{PostKind, short_name};
use crate::base::person::{Membership, Person};
use crate::protocol::effect::{ChatEffect, Effect, ForgeEffect};
use crate::records::card::{Post, ReviewCard, ShownFile};
use crate::records::carried::{Carried, ForgeRepository};
use crate::records::drafted_review::{
    COMMENT_CHARS_MAX, DraftedComment, DraftedReview, NewPullReview, PostedReview, PullReview,
    ReviewEnd, ReviewRead, SUMMARY_CHARS_MAX,
};
use crate::records::given_pull::{FoundPull, GivenPull};
use crate::records::publication::{Presser, inert};
use crate::records::session::Session;
use crate::tenant::selection::PullRequestsBy;
use crate::text::units;

/// A longer review (UTF-16 units) is in the thread as a file, too: no chat shows all of it on one card.
const CARD_UNITS_MAX: usize = 1_500;
/// Longest text of a review, in characters: forges take 65,536.
const BODY_CHARS_MAX: usize = 60_000;
/// Digits of a commit as people read it.
const COMMIT_DIGITS: usize = 12;

/// The missing step until the review of the turn that ends is shown; `None` once it is, or if there is none.
pub(super) fn show(session: &mut Session, context: &Context<'_>) -> Option<Next> {
    let turn = session.turn.as_ref()?.id.clone();
    let (carried, pull) =
        (session.sandbox.project.carried.clone()?, session.sandbox.project.pull.clone()?);
    let repository = carried.repository.clone();
    publish::may(&repository, Some(forge::channel(context)), context).ok()?;
    let head = carried.base.clone()?;
    let Some(read) = session.observed.forge.review.clone() else {
        return Some(Next::Do(Effect::Forge(ForgeEffect::ReadReview { carried, pull })));
    };
    let (name, draft, why) = match read {
        ReviewRead::Absent => return None,
        ReviewRead::Unusable { of, why } => (short_name(&["unusable review", &of]), None, why),
        ReviewRead::Drafted(draft) => {
            let name = draft.name(&session.thread, (repository.id, pull.number), &head);
            (name, Some(draft), String::new())
        }
    };
    if session.review.as_ref().is_some_and(|known| known.name == name && known.is_shown) {
        return None;
    }
    let post = |kind, post| {
        Some(Next::Do(Effect::Chat(ChatEffect::Post { turn: turn.clone(), kind, at: None, post })))
    };
    session.review = Some(PullReview {
        name: name.clone(),
        repository: repository.clone(),
        number: pull.number,
        head: head.clone(),
        draft: draft.clone(),
        is_shown: false,
        posted: None,
    });
    let Some(draft) = draft else {
        return post(PostKind::PullReview, Post::Notice(words::review_unusable(&why)));
    };
    let text = draft.text();
    let has_file = units(&text) > CARD_UNITS_MAX;
    if has_file && !session.observed.forge.is_review_text_shown {
        let file = ShownFile { name: "review.txt".to_owned(), bytes: text.into_bytes() };
        return post(PostKind::PullReviewText, Post::File(file));
    }
    let card = ReviewCard {
        name,
        repository: repository.name,
        is_public: !repository.is_private,
        number: pull.number,
        head,
        draft,
        has_file,
    };
    post(PostKind::PullReview, Post::PullReview(card))
}

/// A post of the review was made.
pub(super) fn posted(session: &mut Session, of: &Effect) {
    if of.posts() == Some(PostKind::PullReviewText) {
        session.observed.forge.is_review_text_shown = true;
    } else if let Some(review) = &mut session.review {
        review.is_shown = true;
    }
}

/// The review cannot be shown: the next turn that is answered tries again.
pub(super) fn given_up(session: &mut Session) {
    session.review = None;
    session.observed.forge.review = Some(ReviewRead::Absent);
}

/// Next step of a press on the button of a review.
pub(super) fn press(
    session: &mut Session,
    name: &str,
    (by, membership): (&Person, &Membership),
    context: &Context<'_>,
) -> Next {
    let known = session.review.clone().filter(|review| review.name == name && review.is_shown);
    let Some(PullReview { repository, number, head, draft, posted, .. }) = known else {
        return publish::told(session, words::REVIEW_NOT_SHOWN, context);
    };
    let press = &context.delivery.message.id;
    if let Some(posted) = posted.filter(|posted| posted.press == *press) {
        let word = words::review_is_posted(number, &posted.page);
        return publish::told(session, &word, context);
    }
    let Some(draft) = draft else {
        return publish::told(session, words::REVIEW_WAS_POSTED, context);
    };
    let channel = (!membership.operates).then_some(&*membership.channel);
    let way = match publish::may(&repository, channel, context) {
        Ok(way) => way,
        Err(why) => return publish::told(session, &why, context),
    };
    if way.by == PullRequestsBy::Linked
        && let Some(next) = not_a_reader(session, by, &repository, context)
    {
        return next;
    }
    let now = match find(session, &repository, number) {
        Ok(FoundPull::There { head, .. }) => head,
        Ok(FoundPull::Missing) => {
            let why = words::no_such_pull_request(number);
            return publish::told(session, &words::review_refused(&why), context);
        }
        Ok(FoundPull::Refused { why }) => {
            return publish::told(session, &words::review_refused(&why), context);
        }
        Err(find) => return *find,
    };
    Next::Do(Effect::Forge(ForgeEffect::PostReview {
        repository,
        number,
        review: worded(&draft, format!("review-{name}"), head, &now),
    }))
}

/// What keeps this person from posting a review where people publish in their own name; `None`: nothing.
fn not_a_reader(
    session: &mut Session,
    by: &Person,
    repository: &ForgeRepository,
    context: &Context<'_>,
) -> Option<Next> {
    publish::not_allowed(session, by, repository, context, |presser| match presser {
        Presser::MayPush | Presser::MayRead { .. } | Presser::NotLinked => None,
        Presser::MayNotPush { login } => Some(words::may_not_read(login, &repository.name)),
    })
}

/// The review in the forge's Markdown, where nothing in it mentions, fetches or commits anything.
fn worded(draft: &DraftedReview, name: String, commit: String, now: &str) -> NewPullReview {
    let said = |comment: &DraftedComment| inert(&comment.body, COMMENT_CHARS_MAX);
    let apart = |comment: &DraftedComment| {
        format!("{}\n\n{}", inert(&comment.place(), COMMENT_CHARS_MAX), said(comment))
    };
    let short = |commit: &str| commit.get(..COMMIT_DIGITS).unwrap_or(commit).to_owned();
    let by = if commit == now {
        format!("Written by a coding agent, of commit {}.", short(&commit))
    } else {
        format!(
            "Written by a coding agent, of commit {}. The branch is at {} by now.",
            short(&commit),
            short(now)
        )
    };
    let mut parts = vec![inert(&draft.summary, SUMMARY_CHARS_MAX)];
    parts.extend(draft.apart.iter().map(apart));
    parts.retain(|part| !part.is_empty());
    let mut body: String =
        parts.join("\n\n").chars().take(BODY_CHARS_MAX).collect::<String>().trim_end().to_owned();
    if !body.is_empty() {
        body.push_str("\n\n");
    }
    body.push_str(&by);
    let worded =
        |comment: &DraftedComment| DraftedComment { body: said(comment), ..comment.clone() };
    NewPullReview { name, commit, body, comments: draft.comments.iter().map(worded).collect() }
}

/// End of the call.
pub(super) fn ended(session: &mut Session, ended: ReviewEnd, context: &Context<'_>) {
    let Some(review) = &mut session.review else {
        return;
    };
    let word = match ended {
        ReviewEnd::There { page } => {
            let word = words::review_is_posted(review.number, &page);
            let press = context.delivery.message.id.clone();
            (review.draft, review.posted) = (None, Some(PostedReview { press, page }));
            word
        }
        ReviewEnd::Refused { why } => words::review_refused(&why),
    };
    session.observed.forge.ending = Some(word);
}

/// The repository with the branch into which the thread's work is proposed: with a pull request that it works from,
/// that may be another one by now.
pub(super) fn work_of(session: &mut Session, carried: Carried) -> Result<Carried, Box<Next>> {
    let Some(GivenPull { number, .. }) = session.sandbox.project.pull else {
        return Ok(carried);
    };
    if carried.folder.is_some() {
        return Ok(carried);
    }
    if session.publication().is_some_and(|one| one.pull_request.is_some()) {
        return Ok(carried);
    }
    let FoundPull::There { pull, .. } = find(session, &carried.repository, number)? else {
        return Ok(carried);
    };
    let branch = pull.takes_work().to_owned();
    let carried =
        Carried { repository: ForgeRepository { branch, ..carried.repository }, ..carried };
    (session.sandbox.project.pull, session.sandbox.project.carried) =
        (Some(pull), Some(carried.clone()));
    Ok(carried)
}

/// The pull request as it is now, or the step that finds out.
fn find(
    session: &Session,
    repository: &ForgeRepository,
    number: u64,
) -> Result<FoundPull, Box<Next>> {
    session.observed.forge.given_pull.clone().ok_or_else(|| {
        let repository = repository.clone();
        Box::new(Next::Do(Effect::Forge(ForgeEffect::FindGivenPull { repository, number })))
    })
}
