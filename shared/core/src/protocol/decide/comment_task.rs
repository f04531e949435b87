//! Tasks that people write below the thread's pull request: a comment whose first word is `/bobbin`.
//!
//! Promised: only somebody who has connected that account in the chat, and may use Bobbin in the thread's channel,
//! begins a task; each comment begins at most one, whatever is edited later; everybody else gets one reply per pull
//! request. The thread is told who asked.

use super::words::for_agent;
use super::{Context, Next, fix, forge, watch, words};
use crate::base::ids::TurnId;
use crate::base::names::PostKind;
use crate::base::person::{Membership, Person};
use crate::protocol::effect::{ChatEffect, Effect, ForgeEffect};
use crate::records::card::Post;
use crate::records::message::{Message, Prompt, Quote, Work};
use crate::records::pull_request::{PolledPullRequest, ReviewThread, SeenComment};
use crate::records::responses::{NewRemark, PullRequestResponse, Remark};
use crate::records::session::Session;
use crate::text::{shorten, visible};

const WORD: &str = "/bobbin";
/// Tasks that are taken from one pull request.
const HEARD_MAX: usize = 100;
/// Longest task, and longest part of the diff beside it, in characters (UTF-16 units).
const TASK_UNITS_MAX: usize = 8_000;
const HUNK_UNITS_MAX: usize = 800;

/// A comment that asks for something.
struct AskedBelow<'a> {
    remark: Remark,
    comment: &'a SeenComment,
    text: String,
    thread: Option<&'a ReviewThread>,
}

/// What a comment asks for; `None` if its first word is another.
fn task(body: &str) -> Option<String> {
    let rest = body.trim_start().strip_prefix(WORD)?;
    let is_word = rest.chars().next().is_none_or(char::is_whitespace);
    let text = visible(&fix::without_comments(rest));
    let text = shorten(text.trim(), TASK_UNITS_MAX);
    (is_word && !text.is_empty()).then_some(text)
}

/// The comments that ask for something, oldest first.
fn all(pull: &PolledPullRequest) -> Vec<AskedBelow<'_>> {
    let whole = pull.comments.iter().map(|comment| (comment, None));
    let lines = pull
        .threads
        .iter()
        .flat_map(|thread| thread.comments.iter().map(move |comment| (comment, Some(thread))));
    let mut all: Vec<AskedBelow<'_>> = whole
        .chain(lines)
        // Whoever may write to the repository can edit others' comments.
        .filter(|(comment, _)| !comment.by.is_bot && comment.by.id != 0 && comment.is_own)
        .filter_map(|(comment, thread)| {
            let remark = match thread {
                Some(_) => Remark::Line(comment.id),
                None => Remark::Whole(comment.id),
            };
            Some(AskedBelow { remark, comment, text: task(&comment.body)?, thread })
        })
        .collect();
    all.sort_by_key(|asked| asked.comment.at_ms);
    all
}

fn turn(remark: Remark) -> TurnId {
    match remark {
        Remark::Line(id) => format!("remark-line-{id}").into(),
        Remark::Whole(id) => format!("remark-whole-{id}").into(),
    }
}

/// The missing step for a comment that nobody has heard yet.
pub(super) fn next(session: &mut Session, context: &Context<'_>) -> Option<Next> {
    let seen = session.observed.watch.watched.clone()?;
    for asked in all(&seen.pull) {
        let (_, watch, at) = watch::watched(session)?;
        if watch.heard.remarks.len() >= HEARD_MAX {
            return None;
        }
        if watch.heard.has(asked.remark) {
            continue;
        }
        let (channel, at) = (watch.channel.clone(), at.clone());
        let repository = watch.repository.name.clone();
        if works_elsewhere(session, &repository, context) {
            let (name, body) = ("elsewhere".to_owned(), words::WORKS_ELSEWHERE.to_owned());
            let reply = NewRemark { thread: None, name, body };
            heard(session, asked.remark, PullRequestResponse::Say(reply));
            continue;
        }
        let account = asked.comment.by.id;
        let Some(found) = session.observed.watch.people.get(&account) else {
            if session.observed.watch.is_response_tried {
                return None;
            }
            return Some(Next::Do(Effect::Forge(ForgeEffect::FindPerson { account, channel })));
        };
        let admitted = found.clone().filter(|(person, membership)| {
            channel.is_some() && context.settings.admit(membership, &person.id).is_ok()
        });
        if let Some(by) = admitted {
            let id = turn(asked.remark);
            if !session.observed.watch.queued.contains(&id) {
                let message = message(session, &asked, id, by, context);
                return Some(Next::Do(Effect::Queue { messages: vec![message] }));
            }
            if !session.observed.watch.told_tasks.contains(&id) {
                let by = &asked.comment.by.login;
                let word = words::asked_at_forge(by, &at, &asked.comment.page, &asked.text);
                return Some(Next::Do(Effect::Chat(ChatEffect::Post {
                    turn: id,
                    kind: PostKind::PullRequestTask,
                    at: None,
                    post: Post::Notice(word),
                })));
            }
            heard(session, asked.remark, PullRequestResponse::Seen(asked.remark));
        } else {
            let (name, body) = ("connect".to_owned(), words::CONNECT_TO_ASK.to_owned());
            let reply = NewRemark { thread: None, name, body };
            heard(session, asked.remark, PullRequestResponse::Say(reply));
        }
    }
    None
}

/// Whether the thread works on another repository now, without this one beside it. One that managers want beside it was
/// only left out.
fn works_elsewhere(session: &Session, repository: &str, context: &Context<'_>) -> bool {
    let project = &session.sandbox.project;
    if session.observed.beside.is_none() || session.carried().is_some() || project.repo.is_none() {
        return false;
    }
    let own = project.repo.as_deref().unwrap_or_default();
    let mut beside = forge::wanted_beside(session, own, context).into_iter();
    !beside.any(|one| one.eq_ignore_ascii_case(repository))
}

/// The comment is dealt with, and this is done about it.
fn heard(session: &mut Session, remark: Remark, what: PullRequestResponse) {
    let Some((_, watch, _)) = watch::watched(session) else {
        return;
    };
    if matches!(what, PullRequestResponse::Say(_)) {
        watch.heard.refuse(remark);
        if !std::mem::replace(&mut watch.heard.has_told_connect, true) {
            watch.respond(what);
        }
        return;
    }
    watch.heard.remarks.push(remark);
    watch.respond(what);
    if watch.heard.remarks.len() == HEARD_MAX {
        let (name, body) = ("enough".to_owned(), words::NO_MORE_TASKS.to_owned());
        watch.respond(PullRequestResponse::Say(NewRemark { thread: None, name, body }));
    }
}

fn message(
    session: &Session,
    asked: &AskedBelow<'_>,
    id: TurnId,
    (by, membership): (Person, Membership),
    context: &Context<'_>,
) -> Message {
    let quotes = asked.thread.map(|thread| {
        let line = thread.line.map(|line| format!(":{line}")).unwrap_or_default();
        let hunk = visible(&shorten(&thread.hunk, HUNK_UNITS_MAX));
        Quote { by: String::new(), text: format!("{}{line}\n{hunk}", visible(&thread.path)) }
    });
    Message {
        id,
        thread: session.thread.clone(),
        accepted_at_ms: context.now_ms,
        work: Work::Prompt(Prompt {
            text: for_agent::in_folder(session.carried(), &asked.text),
            by,
            membership,
            quotes: quotes.into_iter().collect(),
            ..Prompt::default()
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_begins_with_the_word() {
        assert_eq!(task("/bobbin rename it").as_deref(), Some("rename it"));
        assert_eq!(task("\n/bobbin\nrename it <!-- x -->").as_deref(), Some("rename it"));
        for other in
            ["/bobbin", "/bobbins rename it", "Please /bobbin rename it", "> /bobbin x", ""]
        {
            assert_eq!(task(other), None, "{other}");
        }
    }
}
