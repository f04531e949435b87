//! From a thread's work to a pull request: shown, pressed, pushed, opened.
//!
//! Promised: nothing is pushed that a person was not shown; a push moves only the thread's own branch, from the commit
//! that is on record to the commit that was shown; whatever somebody else put there stays. Both steps travel through
//! the thread's group, so no turn of the thread works meanwhile. A redelivery repeats the push and the look for the
//! pull request, which find what an earlier delivery did.

use super::operate::{self, BroughtUp};
use super::{
    Context, Next, acts, finish, fix, forge, notice, record, review, share, sibling_repositories,
    watch, words,
};
use crate::base::ids::{ThreadKey, digest};
use crate::base::names::PostKind;
use crate::base::person::{Membership, Person};
use crate::protocol::effect::{ChatEffect, Effect, ForgeEffect};
use crate::records::card::{OthersCommits, Post, PublishOffer, Review};
use crate::records::carried::{Carried, ForgeRepository};
use crate::records::control::PublishStep;
use crate::records::ledger::LedgerEntry;
use crate::records::message::Work;
use crate::records::outcome::Outcome;
use crate::records::publication::{
    self, BODY_CHARS_MAX, Opened, Outgoing, Pressed, Presser, Proposal, Publication,
    PullRequestSeen, PullRequestState, PushEnd, SUBJECT_CHARS_MAX,
};
use crate::records::sandbox::Phase;
use crate::records::session::Session;
use crate::records::stage::Stage;
use crate::records::turn::EndedTurn;
use crate::tenant::selection::{PullRequests, PullRequestsBy};

/// Files that a review lists by name.
const FILES_SHOWN: usize = 40;
/// Characters of an answer that a proposed text quotes.
const QUOTED_CHARS_MAX: usize = 1_200;
/// Pushes whose end nobody heard that are remembered.
const UNHEARD_MAX: usize = 8;

/// The button under an ended turn that changed files; `None` where there is nothing to press.
pub(super) fn offer(session: &Session, context: &Context<'_>) -> Option<PublishOffer> {
    let turn = session.turn.as_ref()?;
    let Stage::Ending { usage, .. } = &turn.stage else {
        return None;
    };
    let channel = Some(forge::channel(context));
    let project = &session.sandbox.project;
    // Changed files beside it are not counted.
    let own = project.carried.iter().filter(|_| usage.files > 0);
    let mut changed = own.chain(session.beside()).filter(|carried| carried.base.is_some());
    let may_leave = changed.any(|carried| may(&carried.repository, channel, context).is_ok());
    may_leave.then(|| offered(session))
}

fn offered(session: &Session) -> PublishOffer {
    match session.publication() {
        Some(Publication { pull_request: Some(_), .. }) => PublishOffer::Update,
        _ => PublishOffer::Open,
    }
}

/// How this channel has pull requests opened.
#[derive(Clone, Copy)]
pub(super) struct PullRequestMode {
    is_draft: bool,
    pub(super) by: PullRequestsBy,
}

/// Whether this repository's work may leave from this channel (`None`: the operator asks); else why not, for people.
pub(super) fn may(
    repository: &ForgeRepository,
    channel: Option<&str>,
    context: &Context<'_>,
) -> Result<PullRequestMode, String> {
    let is_bound = context.delivery.forge.is_some_and(|forge| forge.has(repository));
    let is_open = channel
        .is_none_or(|channel| context.settings.repositories.are_open(&repository.name, channel));
    if !is_bound || !is_open {
        return Err(words::not_open_any_more(&repository.name));
    }
    let defaults = context.settings.defaults_of(channel.unwrap_or_default());
    let by = match channel {
        Some(_) => PullRequestsBy::named(defaults.pull_requests_by.as_deref()),
        None => PullRequestsBy::Everyone,
    };
    match PullRequests::named(defaults.pull_requests.as_deref()) {
        PullRequests::Off => Err(words::NO_PULL_REQUESTS.to_owned()),
        PullRequests::Draft => Ok(PullRequestMode { is_draft: true, by }),
        PullRequests::Ready => Ok(PullRequestMode { is_draft: false, by }),
    }
}

/// Next step of a message about a pull request.
pub(super) fn next(
    session: &mut Session,
    step: &PublishStep,
    (by, membership): (&Person, &Membership),
    context: &Context<'_>,
) -> Next {
    // A message stays about one repository, even once what its button named is gone.
    let about = sibling_repositories::about(session, step, context);
    session.turn_to(about.or(session.observed.beside));
    if session.turn.is_some()
        && let Some(next) = finish::leftover(session, context)
    {
        return next;
    }
    if record::has_ended(session, &context.delivery.message.id) {
        return done(session, context);
    }
    if session.observed.forge.is_shown || session.observed.forge.is_acted {
        return end(session, context);
    }
    if let Some(word) = session.observed.forge.ending.clone() {
        return told(session, &word, context);
    }
    if let Err(refusal) = context.settings.admit(membership, &by.id) {
        return told(session, &refusal.to_string(), context);
    }
    if is_given_up(session, context) {
        return told(session, &words::kept_failing(None), context);
    }
    if sibling_repositories::is_stale(session, step) {
        return told(session, words::NOT_SHOWN_LAST, context);
    }
    match step {
        PublishStep::Act { act, head } => acts::next(session, (*act, head), by, context),
        PublishStep::Push { commit } => match prepared(session, membership, context) {
            Ok((carried, way)) => push(session, commit, by, carried, way, context),
            Err(next) => *next,
        },
        PublishStep::PushAll { name } => {
            sibling_repositories::push_all(session, name, (by, membership), context)
        }
        PublishStep::Show { subject, body, .. } => match prepared(session, membership, context) {
            Ok((carried, way)) => {
                let texts = (subject.as_deref(), body.as_deref());
                show(session, texts, None, carried, way, context)
            }
            Err(next) => *next,
        },
        // A turn whose work could not be pushed is not begun.
        PublishStep::Fix { name } => match prepared(session, membership, context) {
            Ok((carried, way)) => unlinked(session, by, &carried, way, context)
                .unwrap_or_else(|| fix::press(session, name, (by, membership), carried, context)),
            Err(next) => *next,
        },
        PublishStep::Review { name } => review::press(session, name, (by, membership), context),
        PublishStep::Fixed { name, items, .. } => {
            fixed(session, (name, items), (by, membership), context)
        }
    }
}

/// Whether the message in hand was tried too often. Outages are waited for by time.
pub(super) fn is_given_up(session: &mut Session, context: &Context<'_>) -> bool {
    let delivery = context.delivery;
    let tries = session.published.tries(&delivery.message.id, delivery.receive);
    tries > delivery.limits.retry.attempts + 1
}

/// Pushes what the turn of a fix did; asks first if anything else was done since.
fn fixed(
    session: &mut Session,
    (name, items): (&str, &[String]),
    (by, membership): (&Person, &Membership),
    context: &Context<'_>,
) -> Next {
    let turn = fix::turn(name);
    let outcome = session.ended.iter().find(|ended| ended.id == turn);
    // The turn's own card says how it ended otherwise.
    if outcome.is_none_or(|ended| ended.outcome != Outcome::Answered) {
        return match fix::unanswered(session, name, items) {
            Some(word) => told(session, &word, context),
            None => end(session, context),
        };
    }
    let (carried, way) = match prepared(session, membership, context) {
        Ok(prepared) => prepared,
        Err(next) => return *next,
    };
    let id = &context.delivery.message.id;
    let pressed = session.publication().and_then(|one| one.pressed.as_ref());
    if let Some(pressed) = pressed.filter(|pressed| pressed.id == *id) {
        let commit = pressed.proposal.commit.clone();
        return push(session, &commit, by, carried, way, context);
    }
    let is_pushed_at_once = fix::may_push(session, name);
    show(session, (None, None), is_pushed_at_once.then_some(by), carried, way, context)
}

/// The work that may leave, of a sandbox in which nothing runs.
fn prepared(
    session: &mut Session,
    membership: &Membership,
    context: &Context<'_>,
) -> Result<(Carried, PullRequestMode), Box<Next>> {
    let Some(carried) = session.carried().cloned() else {
        return Err(Box::new(told(session, words::NOTHING_CARRIED, context)));
    };
    let channel = (!membership.operates).then_some(&*membership.channel);
    let way = may(&carried.repository, channel, context)
        .map_err(|why| Box::new(told(session, &why, context)))?;
    if !record::is_idle(session, context) {
        return Err(Box::new(wait_for_turns(session, context)));
    }
    Ok((carried, way))
}

/// Turns of other threads work in the sandbox: their end is waited for, as long as a prompt would be, and the thread is
/// told of it.
fn wait_for_turns(session: &mut Session, context: &Context<'_>) -> Next {
    let (message, limits) = (context.delivery.message, context.delivery.limits);
    let in_use = session.sandbox.sharing.in_use.iter().filter(|one| !one.left);
    let at_work: Vec<ThreadKey> = in_use.map(|one| one.thread.clone()).collect();
    if context.now_ms >= message.accepted_at_ms + limits.share.workspace_wait_ms {
        let word = words::waited_for_turns(&at_work, limits.share.workspace_wait_ms);
        return told(session, &word, context);
    }
    let waited = session.published.waits(&message.id, context.delivery.receive);
    waited.out_since_ms = None;
    if !std::mem::replace(&mut waited.is_told, true) {
        return Next::Do(Effect::Chat(ChatEffect::Tell {
            thread: session.thread.clone(),
            // Not the message's own id: what is told at its end uses that.
            turn: format!("{}-waits", message.id).into(),
            word: words::waits_for_turns(&at_work),
            archive: false,
        }));
    }
    Next::Hold {
        delay_ms: share::look_again_ms(context),
        why: "another thread is working in the sandbox".to_owned(),
    }
}

/// Says this in the thread, then ends the message.
pub(super) fn told(session: &mut Session, word: &str, context: &Context<'_>) -> Next {
    session.observed.forge.ending = Some(word.to_owned());
    let word = sibling_repositories::named(session, word);
    match notice::once(session, &word, context) {
        Next::Done => end(session, context),
        next => next,
    }
}

/// The message has ended: recorded, so that a repeat does nothing.
pub(super) fn end(session: &mut Session, context: &Context<'_>) -> Next {
    if let Some(next) = sibling_repositories::show(session, context) {
        return next;
    }
    let id = context.delivery.message.id.clone();
    session.published.waited.take_if(|waited| waited.id == id);
    if let Some(publication) = session.publication_mut() {
        publication.pressed.take_if(|pressed| pressed.id == id);
    }
    fix::press_ends(session, &id);
    let ended = EndedTurn { id, outcome: Outcome::Answered, at_ms: context.now_ms };
    record::remember(session, ended, context);
    record::arm_thread(session, context);
    done(session, context)
}

/// What is left of a message that has ended: the card shows what a person did.
fn done(session: &mut Session, context: &Context<'_>) -> Next {
    let shown = if is_watched(context) { watch::step(session, true, context) } else { None };
    shown.unwrap_or_else(|| record::at_rest(session, Next::Done, context))
}

/// A retry cannot help: the thread is told.
pub(super) fn refused(session: &mut Session, reason: &str, context: &Context<'_>) {
    let word = match &context.delivery.message.work {
        Work::Publish { step: PublishStep::Review { .. }, .. } => words::review_refused(reason),
        _ if is_act(context) => words::nothing_done(reason),
        _ => words::not_published(reason),
    };
    session.observed.forge.ending = Some(word);
}

/// Whether the open pull request is another after this.
fn is_watched(context: &Context<'_>) -> bool {
    let work = &context.delivery.message.work;
    let is_fix = matches!(
        work,
        Work::Publish { step: PublishStep::Fix { .. } | PublishStep::Fixed { .. }, .. }
    );
    is_fix || is_act(context)
}

/// Whether a person does something with the open pull request.
fn is_act(context: &Context<'_>) -> bool {
    let work = &context.delivery.message.work;
    matches!(work, Work::Publish { step: PublishStep::Act { .. }, .. })
}

fn show(
    session: &mut Session,
    texts: (Option<&str>, Option<&str>),
    fixed_by: Option<&Person>,
    carried: Carried,
    way: PullRequestMode,
    context: &Context<'_>,
) -> Next {
    // The pull request may have been merged or closed since: what comes next begins a new branch.
    if let Some(branch) = session
        .publication()
        .and_then(|publication| publication.pushed.is_some().then(|| publication.branch.clone()))
    {
        match session.observed.forge.pull_request.clone() {
            None => {
                return Next::Do(Effect::Forge(ForgeEffect::FindPullRequest {
                    repository: carried.repository,
                    branch,
                }));
            }
            Some(Some(PullRequestSeen { state: PullRequestState::Open, at, .. })) => {
                if let Some(publication) = session.publication_mut() {
                    publication.pull_request = Some(at);
                }
            }
            Some(Some(PullRequestSeen { state, .. })) => {
                watch::ended(session, state, context);
                if let Some(next) = watch::step(session, true, context) {
                    return next;
                }
                watch::end(session, context);
                session.forget_publication();
            }
            Some(None) => {}
        }
    }
    let carried = match review::work_of(session, carried) {
        Ok(carried) => carried,
        Err(find) => return *find,
    };
    let Some(outgoing) = session.observed.forge.outgoing.clone() else {
        return match bring_up(session, context) {
            BroughtUp::Step(next) => *next,
            BroughtUp::No(why) => told(session, &words::not_published(&why), context),
            BroughtUp::Ready => read_outgoing(session, carried, context),
        };
    };
    if !matches!(outgoing, Outgoing::Ready { .. })
        && let Some(publication) = session.publication_mut()
    {
        publication.shown = None;
    }
    let (commit, found, files, since, workflows, has_others) = match outgoing {
        // Nobody asked for this one by itself.
        Outgoing::Unchanged if sibling_repositories::is_one_of_all(context) => {
            return end(session, context);
        }
        Outgoing::Unchanged => return told(session, words::NOTHING_TO_PUBLISH, context),
        Outgoing::Refused { why } => {
            return told(session, &words::not_published(&why), context);
        }
        Outgoing::Ready { commit, subject, files, since, workflows, has_others } => {
            (commit, subject, files, since, workflows, has_others)
        }
    };
    let Some(entries) = session.observed.forge.recalled.clone() else {
        let turns = session.ended.iter().map(|ended| ended.id.clone()).collect();
        return Next::Do(Effect::Recall { turns });
    };
    let repository = &carried.repository;
    let may_quote = sibling_repositories::may_quote(session, repository);
    let proposal = proposal(texts, commit, &found, &entries, (repository.is_private, may_quote));
    let id = &context.delivery.message.id;
    let thread = session.thread.to_string();
    let publication = session.publication_or(|| {
        let hash = digest(&["branch", &thread, id]);
        Publication::new(repository.id, publication::branch(&proposal.subject, &hash))
    });
    publication.shown = Some(proposal.clone());
    if fixed_by.is_some() && publication.pushed.as_ref() == Some(&proposal.commit) {
        publication.shown = None;
        fix::pushed(session, None, context);
        return told(session, words::FIX_CHANGED_NOTHING, context);
    }
    // What was pushed before was shown to a person, or was plain.
    let changed = if since.is_empty() { &files } else { &since };
    let is_plain = changed.iter().all(|file| !publication::is_protected(&file.path));
    if let Some(by) = fixed_by
        && is_plain
        && publication.pull_request.is_some()
    {
        let commit = proposal.commit;
        return push(session, &commit, by, carried, way, context);
    }
    let branch = publication.branch.clone();
    let review = Review {
        proposal,
        repository: repository.name.clone(),
        is_public: !repository.is_private,
        branch,
        into: repository.branch.clone(),
        files_total: files.len(),
        files: files.into_iter().take(FILES_SHOWN).collect(),
        workflows,
        offer: offered(session),
        all: sibling_repositories::offered(session),
        is_draft: way.is_draft,
        others: has_others.then(|| others(session, &carried)),
    };
    Next::Do(Effect::Chat(ChatEffect::Post {
        turn: context.delivery.message.id.clone(),
        kind: PostKind::Review,
        at: None,
        post: Post::Review(review),
    }))
}

/// Whose commits are published with the work.
fn others(session: &Session, carried: &Carried) -> OthersCommits {
    let pull = session.sandbox.project.pull.as_ref().filter(|_| carried.folder.is_none());
    pull.map_or(OthersCommits::Unmerged, |pull| OthersCommits::Pull(pull.number))
}

/// Subject and text: what the person wrote, else words of the work. A public repository learns neither who asked nor
/// where.
fn proposal(
    (wanted, text): (Option<&str>, Option<&str>),
    commit: String,
    found: &str,
    entries: &[LedgerEntry],
    (is_private, may_quote): (bool, bool),
) -> Proposal {
    let answered = |entry: &&LedgerEntry| {
        entry.outcome == Outcome::Answered && (entry.usage.files > 0 || entry.usage.files_unknown)
    };
    let last = entries.iter().filter(answered).max_by_key(|entry| entry.ended_at_ms);
    let last = last.or_else(|| entries.iter().max_by_key(|entry| entry.ended_at_ms));
    let asked = last.map_or("", |entry| &entry.asked);
    let asked = if may_quote { asked } else { "" };
    let subject = [wanted.unwrap_or_default(), found, asked, "Changes by an agent"]
        .into_iter()
        .map(publication::subject)
        .find(|subject| !subject.is_empty())
        .unwrap_or_default();
    let body = text.map_or_else(
        || {
            let answer = last.map_or("", |entry| &entry.answered);
            let mut body = if answer.is_empty() || !may_quote {
                "Made by a coding agent.".to_owned()
            } else {
                let quote = publication::quoted(answer, QUOTED_CHARS_MAX);
                format!("The coding agent that made this says:\n\n{quote}")
            };
            if let Some(entry) = last.filter(|entry| is_private && !entry.by.name.is_empty()) {
                let by = publication::quoted(&entry.by.name, SUBJECT_CHARS_MAX);
                body.push_str(&format!("\n\nAsked for by:\n\n{by}"));
            }
            body
        },
        |text| text.trim().to_owned(),
    );
    // Quoting makes it longer.
    let body = body.chars().take(BODY_CHARS_MAX).collect();
    Proposal { commit, subject, body }
}

fn push(
    session: &mut Session,
    commit: &str,
    by: &Person,
    carried: Carried,
    way: PullRequestMode,
    context: &Context<'_>,
) -> Next {
    let id = context.delivery.message.id.clone();
    // The press that was overtaken shows what is there now.
    if session.observed.forge.stale {
        return show(session, (None, None), None, carried, way, context);
    }
    let has_pushed = session.publication().is_some_and(|publication| {
        publication.pressed.as_ref().is_some_and(|pressed| pressed.id == id && pressed.is_pushed)
    });
    if !has_pushed && let Some(next) = unlinked(session, by, &carried, way, context) {
        return next;
    }
    let Some(publication) = session.publication_mut() else {
        return told(session, words::NOT_SHOWN, context);
    };
    let pressed = match publication.pressed.clone().filter(|pressed| pressed.id == id) {
        Some(pressed) => pressed,
        None => {
            let shown = publication.shown.clone().filter(|shown| shown.commit == commit);
            let Some(proposal) = shown else {
                return told(session, words::NOT_SHOWN, context);
            };
            // A press that was given up halfway may have moved the branch.
            let is_pushed = publication.pushed.as_deref() == Some(commit);
            let pressed = Pressed { id, by: by.clone(), proposal, is_pushed };
            publication.pressed = Some(pressed.clone());
            if !publication.unheard.iter().any(|one| one == commit) {
                publication.unheard.push(commit.to_owned());
                let surplus = publication.unheard.len().saturating_sub(UNHEARD_MAX);
                publication.unheard.drain(..surplus);
            }
            pressed
        }
    };
    let (branch, old) = (publication.branch.clone(), publication.pushed.clone());
    let follows = publication.theirs.clone();
    if pressed.is_pushed {
        let person = publication.pull_request.is_none().then_some(pressed.by.id);
        return Next::Do(Effect::Forge(ForgeEffect::OpenPullRequest {
            repository: carried.repository,
            branch,
            proposal: pressed.proposal,
            is_draft: way.is_draft,
            person,
        }));
    }
    match bring_up(session, context) {
        BroughtUp::Step(next) => *next,
        BroughtUp::No(why) => told(session, &words::not_published(&why), context),
        BroughtUp::Ready => Next::Do(Effect::Forge(ForgeEffect::Push {
            carried,
            branch,
            old,
            new: commit.to_owned(),
            follows,
        })),
    }
}

/// What keeps this person from pushing where people publish in their own name; `None`: nothing.
fn unlinked(
    session: &mut Session,
    by: &Person,
    carried: &Carried,
    way: PullRequestMode,
    context: &Context<'_>,
) -> Option<Next> {
    if way.by != PullRequestsBy::Linked {
        return None;
    }
    let repository = &carried.repository;
    not_allowed(session, by, repository, context, |presser| match presser {
        Presser::MayPush | Presser::NotLinked => None,
        Presser::MayRead { login } | Presser::MayNotPush { login } => {
            Some(words::may_not_push(login, &repository.name))
        }
    })
}

/// What keeps this person from acting in their own name: no account is linked, or what `refusal` says of it; `None`:
/// nothing.
pub(super) fn not_allowed(
    session: &mut Session,
    by: &Person,
    repository: &ForgeRepository,
    context: &Context<'_>,
    refusal: impl FnOnce(&Presser) -> Option<String>,
) -> Option<Next> {
    let word = match &session.observed.forge.presser {
        None => {
            return Some(Next::Do(Effect::Forge(ForgeEffect::AskPresser {
                repository: repository.clone(),
                person: by.id.clone(),
            })));
        }
        Some(Presser::NotLinked) => words::not_linked(&session.thread),
        Some(presser) => refusal(presser)?,
    };
    Some(told(session, &word, context))
}

/// Reads what the sandbox holds, beside what was pushed.
pub(super) fn read_outgoing(session: &Session, carried: Carried, context: &Context<'_>) -> Next {
    let at_ms = context.delivery.message.accepted_at_ms;
    let pushed = session.publication().and_then(|one| one.pushed.clone());
    Next::Do(Effect::Forge(ForgeEffect::ReadOutgoing { carried, at_ms, pushed }))
}

/// End of a push.
pub(super) fn pushed(session: &mut Session, ended: PushEnd, context: &Context<'_>) {
    let Some(publication) = session.publication_mut() else {
        return;
    };
    let Some(pressed) = &mut publication.pressed else {
        return;
    };
    match ended {
        PushEnd::Done { changed } => {
            pressed.is_pushed = true;
            let commit = pressed.proposal.commit.clone();
            publication.pushed = Some(commit.clone());
            publication.unheard.clear();
            fix::pushed(session, Some((&commit, &changed)), context);
        }
        PushEnd::Changed => {
            publication.shown = None;
            session.observed.forge.stale = true;
            session.observed.forge.outgoing = None;
        }
        // A push of ours whose end nobody heard: this one goes on from there.
        PushEnd::Theirs { at } | PushEnd::Moved { at: Some(at) }
            if publication.unheard.contains(&at) =>
        {
            publication.unheard.retain(|one| *one != at);
            publication.pushed = Some(at);
        }
        PushEnd::Theirs { at } => {
            let word = if watch::is_by_update(publication, &at, context) {
                words::branch_was_updated(&publication.branch, &at)
            } else {
                words::branch_has_theirs(&publication.branch, &at)
            };
            publication.shown = None;
            (publication.pushed, publication.theirs) = (Some(at.clone()), Some(at));
            session.observed.forge.ending = Some(word);
        }
        PushEnd::Moved { at } => {
            let word = words::branch_moved(&publication.branch, at.as_deref());
            // A branch that is gone can be made again.
            if at.is_none() {
                (publication.pushed, publication.theirs) = (None, None);
            }
            session.observed.forge.ending = Some(word);
        }
        PushEnd::Refused { why } => {
            session.observed.forge.ending = Some(words::push_refused(&why));
        }
    }
}

/// End of the call that opens a pull request.
pub(super) fn opened(session: &mut Session, of: &Effect, ended: Opened, context: &Context<'_>) {
    let Some(publication) = session.publication_mut() else {
        return;
    };
    let mut is_open = false;
    let word = match ended {
        Opened::There(seen) => {
            let known = publication.pull_request.replace(seen.at.clone());
            publication.shown = None;
            is_open = seen.state == PullRequestState::Open;
            words::pull_request_is_there(&seen, known.is_some_and(|known| known == seen.at))
        }
        Opened::Refused { why } => words::pull_request_refused(&publication.branch, &why),
    };
    session.observed.forge.ending = Some(word);
    if let Effect::Forge(ForgeEffect::OpenPullRequest { repository, .. }) = of
        && is_open
    {
        watch::begin(session, repository, context);
    }
}

/// A publication never makes a sandbox: the work would not be in it.
pub(super) fn bring_up(session: &mut Session, context: &Context<'_>) -> BroughtUp {
    match session.sandbox.phase {
        Phase::Creating | Phase::Destroying | Phase::Destroyed | Phase::Error => {
            BroughtUp::No("the sandbox with the work no longer exists.".to_owned())
        }
        _ => operate::bring_up(session, context),
    }
}
