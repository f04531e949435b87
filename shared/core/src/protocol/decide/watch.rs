//! A thread's pull request is seen through: polled when it is due or a webhook hints at it, shown on one card, and told
//! once when it ends.
//!
//! Promised: a hint is never believed, what a poll sees is; a poll that fails, or sees only a part, concludes nothing.
//! A poll edits the card at most once, and not at all while the card shows what was seen. Nobody who may not write to
//! the repository is counted or quoted.

use super::{Context, Next, comment_task, fix, record, words};
use crate::base::failure::Failure;
use crate::base::ids::{Ms, PostRef, digest};
use crate::base::names::PostKind;
use crate::protocol::effect::{ChatEffect, Effect, ForgeEffect};
use crate::records::card::Post;
use crate::records::carried::ForgeRepository;
use crate::records::checks::{Check, CheckState, ChecksVerdict, SeenChecks, judge, newest};
use crate::records::message::{Prompt, Work};
use crate::records::observations::{ToFix, WatchWrite};
use crate::records::publication::{Publication, PullRequestRef, PullRequestState};
use crate::records::pull_request::{
    Author, Mergeability, PolledPullRequest, ReviewDecision, ReviewState, WatchedPullRequest,
};
use crate::records::session::Session;
use crate::records::watch::{
    CardSight, CheckSummary, CheckWord, PartlyRead, PolledList, PullRequestCard, ReviewSummary,
    SeenPullRequest, ShownNames, Watch,
};
use crate::tenant::selection::{bot_name, review_bots};

/// How far the clock that accepted a hint may be behind the clock that polled.
const CLOCKS_APART_MS: u64 = 5_000;
/// Failed tries after which the end of a pull request stays untold.
const TELLS_MAX: u32 = 20;
/// Failed polls in a row after which a pull request is watched no more: about ten days of them.
const FAILURES_MAX: u32 = 1_000;

/// The thread's pull request is watched from now on.
pub(super) fn begin(session: &mut Session, repository: &ForgeRepository, context: &Context<'_>) {
    let id = context.delivery.message.id.clone();
    let Some(publication) = session.publication_mut() else {
        return;
    };
    let Some(at) = &publication.pull_request else {
        return;
    };
    let write = WatchWrite {
        repository: repository.id,
        branch: publication.branch.clone(),
        number: at.number,
        has_ended: false,
    };
    match &mut publication.watch {
        // A push of ours: its checks come soon.
        Some(watch) => watch.due_at_ms = watch.due_at_ms.min(context.now_ms),
        None => {
            let channel = match &context.delivery.message.work {
                Work::Publish { membership, .. } | Work::Prompt(Prompt { membership, .. })
                    if !membership.operates =>
                {
                    Some(membership.channel.clone())
                }
                _ => None,
            };
            let repository = repository.clone();
            publication.has_ended = false;
            let heard = std::mem::take(&mut publication.heard);
            let watch = Watch::new(id, repository, channel, context.now_ms);
            publication.watch = Some(Watch { heard, ..watch });
        }
    }
    session.observed.writes.watches.push(write);
}

/// The watch ends, and nothing leads from the pull request to the thread any more.
pub(super) fn end(session: &mut Session, context: &Context<'_>) {
    let Some((branch, watch, at)) = watched(session) else {
        return;
    };
    let write = WatchWrite {
        repository: watch.repository.id,
        branch: branch.to_owned(),
        number: at.number,
        has_ended: true,
    };
    session.observed.writes.watches.push(write);
    if let Some(publication) = session.publication_mut()
        && let Some(watch) = publication.watch.take()
    {
        publication.heard = watch.heard;
    }
    record::arm_thread(session, context);
}

/// When the next poll is due.
pub(super) fn due(session: &Session) -> Option<Ms> {
    let watches = session.published.all().filter_map(|(_, one)| one.watch.as_ref());
    watches.map(|watch| watch.due_at_ms).min()
}

/// The message of a hint.
pub(super) fn hinted(session: &mut Session, context: &Context<'_>) -> Next {
    let accepted_at_ms = context.delivery.message.accepted_at_ms;
    let hinted = |session: &mut Session| {
        let is_new = watched(session)
            .is_some_and(|(_, watch, _)| accepted_at_ms + CLOCKS_APART_MS > watch.polled_at_ms);
        let is_wanted = is_new || session.observed.watch.is_polled;
        step(session, is_wanted, context)
    };
    each(session, hinted).unwrap_or(Next::Done)
}

/// The missing step of what is due now.
pub(super) fn swept(session: &mut Session, context: &Context<'_>) -> Option<Next> {
    each(session, |session| step(session, false, context))
}

/// The missing step of the thread's pull requests, one after the other; `None` once none of them has one.
fn each(session: &mut Session, mut step: impl FnMut(&mut Session) -> Option<Next>) -> Option<Next> {
    let all = session.published.all().map(|(beside, _)| beside).filter(Option::is_some);
    let all: Vec<Option<u64>> = std::iter::once(None).chain(all).collect();
    let at = all.iter().position(|one| *one == session.observed.beside).unwrap_or(0);
    for beside in &all[at..] {
        session.turn_to(*beside);
        if let Some(next) = step(session) {
            return Some(next);
        }
    }
    session.turn_to(None);
    None
}

/// The missing step of the watch; `None` once nothing is left to do now.
pub(super) fn step(session: &mut Session, is_wanted: bool, context: &Context<'_>) -> Option<Next> {
    if session.observed.watch.is_polled {
        return show(session)
            .or_else(|| give_up(session, context))
            .or_else(|| tell(session, context))
            .or_else(|| comment_task::next(session, context))
            .or_else(|| respond(session));
    }
    let (_, watch, at) = watched(session)?;
    if !is_wanted && context.now_ms < watch.due_at_ms {
        return None;
    }
    if !may_be_seen(watch, context) {
        let why = words::not_open_any_more(&watch.repository.name);
        not_polled(session, why, context);
        return step(session, is_wanted, context);
    }
    // If this delivery dies, the next poll comes soon.
    watch.polled_at_ms = context.now_ms;
    watch.due_at_ms = context.now_ms + context.delivery.limits.watch.quiet_ms;
    let (repository, number) = (watch.repository.clone(), at.number);
    record::arm_thread(session, context);
    Some(Next::Do(Effect::Forge(ForgeEffect::PollPullRequest { repository, number })))
}

/// Whether the tenant may still see the repository, where its pull request was opened.
pub(super) fn may_be_seen(watch: &Watch, context: &Context<'_>) -> bool {
    let Watch { repository, channel, .. } = watch;
    let is_open = channel
        .as_ref()
        .is_none_or(|channel| context.settings.repositories.are_open(&repository.name, channel));
    is_open && context.delivery.forge.is_some_and(|forge| forge.has(repository))
}

pub(super) fn watched(session: &mut Session) -> Option<(&str, &mut Watch, &PullRequestRef)> {
    let Publication { branch, watch, pull_request, .. } = session.publication_mut()?;
    Some((branch, watch.as_mut()?, pull_request.as_ref()?))
}

/// The card, if it does not show what was seen.
fn show(session: &mut Session) -> Option<Next> {
    let card = session.observed.watch.card.clone()?;
    if session.observed.watch.is_card_tried {
        return None;
    }
    let (_, watch, _) = watched(session)?;
    if watch.shown.as_ref() == Some(&digest_of(&card)) {
        return None;
    }
    let was_posting = watch.card.is_none() && std::mem::replace(&mut watch.is_posting, true);
    let (turn, at) = (watch.id.clone(), watch.card.clone());
    session.observed.watch.is_card_doubted = was_posting;
    Some(Next::Do(Effect::Chat(ChatEffect::Post {
        turn,
        kind: PostKind::PullRequest,
        at,
        post: Post::PullRequest(card),
    })))
}

fn digest_of(card: &PullRequestCard) -> String {
    digest(&["pull request", &format!("{card:?}")])
}

/// Ends a watch that has failed too often, once its card says so or the chat has refused that a few times.
fn give_up(session: &mut Session, context: &Context<'_>) -> Option<Next> {
    let card = session.observed.watch.card.clone()?;
    let (_, watch, _) = watched(session)?;
    let is_shown = watch.shown.as_ref() == Some(&digest_of(&card));
    let is_over = is_shown || watch.failures >= FAILURES_MAX + TELLS_MAX;
    if matches!(card.seen, CardSight::Unseen { is_given_up: true, .. }) && is_over {
        end(session, context);
    }
    None
}

/// The end, told once; with that the watch ends.
fn tell(session: &mut Session, context: &Context<'_>) -> Option<Next> {
    let state = session.observed.watch.ended?;
    let is_told = session.observed.watch.is_end_told;
    if !is_told && session.observed.watch.is_end_tried {
        return None;
    }
    let (_, watch, at) = watched(session)?;
    if !is_told {
        return Some(Next::Do(Effect::Chat(ChatEffect::Post {
            turn: watch.id.clone(),
            kind: PostKind::PullRequestEnd,
            at: None,
            post: Post::Notice(words::pull_request_has_ended(at, state)),
        })));
    }
    end(session, context);
    None
}

/// The next response, if none has failed in this delivery.
fn respond(session: &mut Session) -> Option<Next> {
    if session.observed.watch.is_response_tried {
        return None;
    }
    let (_, watch, at) = watched(session)?;
    let what = watch.responses.first()?.clone();
    let (repository, number) = (watch.repository.clone(), at.number);
    Some(Next::Do(Effect::Forge(ForgeEffect::Respond { repository, number, what })))
}

/// The response was given, or nobody wants it.
pub(super) fn responded(session: &mut Session, of: &Effect, context: &Context<'_>) {
    let next_at_ms = session.observed.watch.next_at_ms;
    let Effect::Forge(ForgeEffect::Respond { what, .. }) = of else {
        return;
    };
    let Some((_, watch, _)) = watched(session) else {
        return;
    };
    watch.responses.retain(|one| one != what);
    watch.response_failures = 0;
    if watch.responses.is_empty() {
        watch.due_at_ms = next_at_ms.unwrap_or(watch.due_at_ms);
    }
    record::arm_thread(session, context);
}

/// A response failed, or nobody could say who asks: it is repeated later, and in the end given up.
fn not_responded(session: &mut Session, of: &Effect, context: &Context<'_>) {
    let limits = &context.delivery.limits.watch;
    session.observed.watch.is_response_tried = true;
    let Some((_, watch, _)) = watched(session) else {
        return;
    };
    watch.response_failures += 1;
    let again_at_ms = context.now_ms + limits.retry_ms(watch.response_failures).min(limits.poll_ms);
    watch.due_at_ms = watch.due_at_ms.min(again_at_ms);
    if watch.response_failures >= TELLS_MAX {
        watch.response_failures = 0;
        match of {
            Effect::Forge(ForgeEffect::FindPerson { account, .. }) => {
                session.observed.watch.people.insert(*account, None);
            }
            Effect::Forge(ForgeEffect::Respond { what, .. }) => {
                watch.responses.retain(|one| one != what);
            }
            _ => {}
        }
    }
    record::arm_thread(session, context);
}

/// Whose words count: people who may write to the repository, and the programs that the tenant names.
pub(super) struct Trusted<'a> {
    writers: &'a [String],
    bots: Vec<String>,
}

impl Trusted<'_> {
    pub(super) fn counts(&self, by: &Author) -> bool {
        if by.is_bot {
            return self.bots.contains(&bot_name(&by.login));
        }
        !by.login.is_empty() && self.writers.contains(&by.login)
    }
}

pub(super) fn trusted<'a>(
    watch: &Watch,
    seen: &'a WatchedPullRequest,
    context: &Context<'_>,
) -> Trusted<'a> {
    let defaults = context.settings.defaults_of(watch.channel.as_deref().unwrap_or_default());
    Trusted { writers: &seen.writers, bots: review_bots(&defaults.review_bots.unwrap_or_default()) }
}

/// What a poll saw.
pub(super) fn polled(session: &mut Session, seen: WatchedPullRequest, context: &Context<'_>) {
    let limits = &context.delivery.limits.watch;
    session.observed.watch.is_polled = true;
    let head = &seen.pull.head;
    let is_theirs = session.publication_mut().is_none_or(|publication| {
        !is_by_update(publication, head, context) && !ours(publication).contains(head)
    });
    let has_several = session.has_several();
    session.observed.watch.watched = Some(seen.clone());
    let Some((branch, watch, at)) = watched(session) else {
        return;
    };
    if seen.pull.state != PullRequestState::Open {
        return ended(session, seen.pull.state, context);
    }
    let trusted = trusted(watch, &seen, context);
    let WatchedPullRequest { pull, required, .. } = &seen;
    // Checks of another head say nothing about this one.
    let before = watch.checks.take().filter(|_| watch.head.as_ref() == Some(&pull.head));
    let quiet = (context.now_ms, limits.quiet_ms);
    let (verdict, checks) = judge(&pull.checks, required, before.as_ref(), quiet);
    let is_cut = pull.totals.checks > pull.checks.len();
    let summary = checks_of(&newest(&pull.checks), &verdict, is_cut);
    let has_all_ended = summary.running == 0 && summary.missing.total == 0;
    let is_about_to_settle = summary.verdict == CheckWord::Unsettled && has_all_ended && !is_cut;
    let is_soon = is_about_to_settle || pull.merge == Mergeability::Unknown;
    let settles_at_ms = checks.since_ms + limits.quiet_ms;
    let next_at_ms = if is_soon {
        settles_at_ms.max(context.now_ms + 1).min(context.now_ms + limits.quiet_ms)
    } else {
        context.now_ms + within_ms((&checks, has_all_ended), context)
    };
    let failed = match verdict {
        ChecksVerdict::Red { failed } if !is_cut => failed,
        _ => Vec::new(),
    };
    let to_fix = ToFix { items: fix::items(watch, pull, &failed, &trusted), failed };
    watch.head = Some(pull.head.clone());
    watch.checks = Some(checks);
    watch.failures = 0;
    watch.begun.offered = fix::name(&to_fix.items).filter(|_| has_several);
    let card = PullRequestCard {
        at: at.clone(),
        repository: watch.repository.name.clone(),
        branch: branch.to_owned(),
        seen: CardSight::Seen(SeenPullRequest {
            is_draft: pull.is_draft,
            is_queued: pull.is_queued,
            head: pull.head.clone(),
            is_theirs,
            base: pull.base.clone(),
            checks: summary,
            reviews: reviews_of(pull, &trusted),
            merge: pull.merge,
            unread: unread(&seen),
            fix: fix::name(&to_fix.items),
        }),
    };
    // What is not shown yet is seen again soon, if this delivery dies.
    if watch.shown.as_ref() == Some(&digest_of(&card)) {
        watch.rest_until(next_at_ms);
    }
    session.observed.watch.next_at_ms = Some(next_at_ms);
    session.observed.watch.to_fix = Some(to_fix);
    session.observed.watch.card = Some(card);
    record::arm_thread(session, context);
}

/// How long the next poll of a pull request that is not about to settle may wait. While checks run or are missing, as
/// long as they have been unchanged.
fn within_ms((checks, have_all_ended): (&SeenChecks, bool), context: &Context<'_>) -> u64 {
    let limits = &context.delivery.limits.watch;
    let same_ms = context.now_ms.saturating_sub(checks.since_ms);
    match context.delivery.message.work {
        // The queue drops further hints of this quiet time; the next poll sees what this one came too early for.
        Work::Poll => limits.quiet_ms,
        _ if have_all_ended => limits.poll_ms,
        _ => same_ms.clamp(limits.quiet_ms, limits.poll_ms),
    }
}

/// The pull request was merged or closed: what is still to be shown and told.
pub(super) fn ended(session: &mut Session, state: PullRequestState, context: &Context<'_>) {
    let Some((branch, watch, at)) = watched(session) else {
        return;
    };
    let card = PullRequestCard {
        at: at.clone(),
        repository: watch.repository.name.clone(),
        branch: branch.to_owned(),
        seen: CardSight::Ended(state),
    };
    let polled = &mut session.observed.watch;
    (polled.is_polled, polled.ended, polled.card) = (true, Some(state), Some(card));
    if let Some(publication) = session.publication_mut() {
        publication.has_ended = true;
    }
    record::arm_thread(session, context);
}

/// Commits that Bobbin has put on the branch, or may have.
pub(super) fn ours(publication: &Publication) -> Vec<String> {
    let pushed = publication.pushed.iter().filter(|at| publication.theirs.as_ref() != Some(at));
    pushed.chain(&publication.unheard).cloned().collect()
}

/// Whether the branch was brought to this commit by a merge of its base that a person had Bobbin ask for. The next push
/// goes on from there.
pub(super) fn is_by_update(
    publication: &mut Publication,
    head: &str,
    context: &Context<'_>,
) -> bool {
    let limits = &context.delivery.limits.watch;
    let is_ours = ours(publication).iter().any(|one| one == head);
    let Some(update) = &mut publication.updated else {
        return false;
    };
    // The forge merges after its answer; a head that comes much later is somebody else's.
    let is_soon = context.now_ms < update.at_ms + limits.poll_ms + limits.quiet_ms;
    if update.to.is_none() && is_soon && !is_ours && update.from != head {
        let at = Some(head.to_owned());
        update.to.clone_from(&at);
        (publication.pushed, publication.theirs) = (at.clone(), at);
    }
    publication.updated.as_ref().is_some_and(|update| update.to.as_deref() == Some(head))
}

fn checks_of(checks: &[Check], verdict: &ChecksVerdict, is_cut: bool) -> CheckSummary {
    let count = |state: CheckState| checks.iter().filter(|check| check.state == state).count();
    let named = |state: CheckState| {
        let of = checks.iter().filter(|check| check.state == state);
        of.map(|check| check.name.clone()).collect::<ShownNames>()
    };
    let missing = match verdict {
        ChecksVerdict::Unsettled { missing, .. } => missing.iter().cloned().collect(),
        _ => ShownNames::default(),
    };
    let verdict = match verdict {
        // What was not read may have failed, or run.
        _ if is_cut => CheckWord::Unsettled,
        ChecksVerdict::None => CheckWord::None,
        ChecksVerdict::Unsettled { .. } => CheckWord::Unsettled,
        ChecksVerdict::Green => CheckWord::Green,
        ChecksVerdict::Red { .. } => CheckWord::Red,
        ChecksVerdict::Held { .. } => CheckWord::Held,
    };
    CheckSummary {
        verdict,
        passed: count(CheckState::Passed),
        running: count(CheckState::Running),
        failed: named(CheckState::Failed),
        held: named(CheckState::Held),
        missing,
        is_cut,
    }
}

fn reviews_of(pull: &PolledPullRequest, trusted: &Trusted<'_>) -> ReviewSummary {
    let by = |state: ReviewState| {
        let of = pull.reviews.iter().filter(|one| one.state == state && trusted.counts(&one.by));
        of.map(|one| one.by.login.clone()).collect::<ShownNames>()
    };
    let threads = pull.threads.iter().filter(|thread| {
        !thread.is_resolved && thread.comments.iter().any(|one| trusted.counts(&one.by))
    });
    ReviewSummary {
        approved: by(ReviewState::Approved),
        changes: by(ReviewState::ChangesRequested),
        threads: threads.count(),
        is_required: pull.decision == ReviewDecision::Required,
    }
}

/// The lists of which the poll did not read all.
fn unread(seen: &WatchedPullRequest) -> Vec<PartlyRead> {
    let pull = &seen.pull;
    let long = || pull.threads.iter().filter(|thread| thread.is_cut());
    let people = pull.authors().len();
    let lists = [
        (PolledList::Threads, pull.threads.len(), pull.totals.threads),
        (
            PolledList::ThreadComments,
            long().map(|thread| thread.comments.len()).sum(),
            long().map(|thread| thread.comments_total).sum(),
        ),
        (PolledList::Reviews, pull.reviews.len(), pull.totals.reviews),
        (PolledList::Comments, pull.comments.len(), pull.totals.comments),
        (PolledList::People, people.saturating_sub(seen.not_asked), people),
    ];
    let part = |(what, read, total)| (total > read).then_some(PartlyRead { what, read, total });
    lists.into_iter().filter_map(part).collect()
}

/// Whether the effect is one of the watch's.
pub(super) const fn is_about(of: &Effect) -> bool {
    matches!(
        of,
        Effect::Forge(
            ForgeEffect::PollPullRequest { .. }
                | ForgeEffect::Respond { .. }
                | ForgeEffect::FindPerson { .. }
        ) | Effect::Chat(ChatEffect::Post {
            kind: PostKind::PullRequest | PostKind::PullRequestEnd | PostKind::PullRequestTask,
            ..
        })
    )
}

/// A post of the watch was made.
pub(super) fn posted(session: &mut Session, of: &Effect, at: PostRef, context: &Context<'_>) {
    let Effect::Chat(ChatEffect::Post { turn, kind, post, .. }) = of else {
        return;
    };
    if *kind == PostKind::PullRequestTask {
        session.observed.watch.told_tasks.insert(turn.clone());
        return;
    }
    if *kind == PostKind::PullRequestEnd {
        session.observed.watch.is_end_told = true;
        return;
    }
    let is_doubted = std::mem::take(&mut session.observed.watch.is_card_doubted);
    session.observed.watch.is_card_tried = !is_doubted;
    let next_at_ms = session.observed.watch.next_at_ms;
    let Some((_, watch, _)) = watched(session) else {
        return;
    };
    watch.rest_until(next_at_ms.unwrap_or(watch.due_at_ms));
    watch.card = Some(at);
    watch.is_posting = false;
    if let Post::PullRequest(card) = post
        && !is_doubted
    {
        watch.shown = Some(digest_of(card));
    }
    record::arm_thread(session, context);
}

/// A poll or a post failed: it is repeated later, and this delivery has no more to do with it.
pub(super) fn failed(session: &mut Session, of: &Effect, failure: &Failure, context: &Context<'_>) {
    if let Effect::Forge(ForgeEffect::Respond { .. } | ForgeEffect::FindPerson { .. }) = of {
        return not_responded(session, of, context);
    }
    if matches!(of, Effect::Forge(_)) {
        return not_polled(session, failure.to_string(), context);
    }
    // The task shows itself.
    if let Effect::Chat(ChatEffect::Post { turn, kind: PostKind::PullRequestTask, .. }) = of {
        session.observed.watch.told_tasks.insert(turn.clone());
        return;
    }
    let is_end = of.posts() == Some(PostKind::PullRequestEnd);
    session.observed.watch.is_card_tried = true;
    session.observed.watch.is_end_tried |= is_end;
    // Nobody will ever read it.
    if matches!(failure, Failure::ThreadGone { .. }) {
        return end(session, context);
    }
    let limits = &context.delivery.limits.watch;
    let next_at_ms = session.observed.watch.next_at_ms;
    let Some((_, watch, _)) = watched(session) else {
        return;
    };
    if is_end {
        watch.failures = watch.failures.saturating_add(1);
        watch.due_at_ms = context.now_ms + limits.retry_ms(watch.failures).min(limits.poll_ms);
        let is_given_up = watch.failures >= TELLS_MAX;
        session.observed.watch.is_end_told |= is_given_up;
    } else {
        watch.rest_until(next_at_ms.unwrap_or(watch.due_at_ms));
        // Somebody may have deleted the card: what comes next is shown on another one.
        if matches!(failure, Failure::TurnFailed { .. } | Failure::NonRecoverable { .. }) {
            watch.card = None;
        }
    }
    record::arm_thread(session, context);
}

/// The pull request could not be looked at. After some times in a row the card says so.
fn not_polled(session: &mut Session, why: String, context: &Context<'_>) {
    let limits = &context.delivery.limits.watch;
    session.observed.watch.is_polled = true;
    let Some((branch, watch, at)) = watched(session) else {
        return;
    };
    watch.failures = watch.failures.saturating_add(1);
    watch.due_at_ms = context.now_ms + limits.retry_ms(watch.failures).min(limits.poll_ms);
    let is_given_up = watch.failures >= FAILURES_MAX;
    if watch.failures >= limits.failures {
        session.observed.watch.card = Some(PullRequestCard {
            at: at.clone(),
            repository: watch.repository.name.clone(),
            branch: branch.to_owned(),
            seen: CardSight::Unseen { why, is_given_up },
        });
    }
    record::arm_thread(session, context);
}
