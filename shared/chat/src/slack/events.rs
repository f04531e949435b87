//! `POST /slack/events`: people's messages, and Slack's own Stop button.

use bobbin_core::base::ids::{Ms, ThreadKey};
use bobbin_core::base::limits::Limits;
use bobbin_core::base::person::{Membership, Person};
use bobbin_core::records::control::ControlAction;
use bobbin_core::records::message::{Attachment, Body, Message, Prompt, Quote, Reply, Work};
use bobbin_core::tenant::commands::Command;
use bobbin_core::tenant::selection::Selection;
use serde_json::json;

use super::direct::{self, DirectThreads, is_direct};
use super::endpoint::{App, Asked, SignedRequest, malformed, message_id, nothing, object, take};
use super::help::help;
use super::home;
use super::limits::FILES_MAX;
use super::types::{EventPayload, Id, SlackEvent, SlackFile};
use super::who::AccessDecision;
use super::words::{MENTIONED, Remainder, chosen, command, mentions, typed};
use crate::commands::{CommandSender, Intent};
use crate::{HttpAnswer, Inbound};

/// Handles a request of the Events API. Retries are treated like first attempts: the first may have been lost, and the
/// message's id makes a repeat harmless.
///
/// Answers 401 if unsigned, 400 if it is not an event, 200 otherwise; 503 if the queue does not accept, so that Slack
/// sends it again.
#[must_use]
pub fn events(raw: &[u8], signature: &str, timestamp: &str, app: &App, now_ms: Ms) -> Inbound {
    let request = SignedRequest { raw, signature, timestamp };
    if let Some(refused) = request.refusal(app, now_ms) {
        return refused;
    }
    let Some(fields) = object(raw) else {
        return malformed("The body is not a JSON object.");
    };
    let Ok(envelope) = serde_json::from_value::<EventPayload>(fields.into()) else {
        return malformed("The body is not an event envelope.");
    };
    match envelope.kind.as_str() {
        "url_verification" => match &envelope.challenge {
            Some(challenge) => Inbound::only(
                HttpAnswer::json(&json!({ "challenge": challenge })),
                "url verification",
            ),
            None => malformed("url_verification without a challenge."),
        },
        "event_callback" => match &envelope.event {
            Some(event) if is_direct(event) => direct::taken(&envelope, event, |threads| {
                callback(&envelope, event, app, now_ms, threads)
            }),
            Some(event) => callback(&envelope, event, app, now_ms, DirectThreads::EachMessage),
            None => malformed("event_callback without an event."),
        },
        "app_rate_limited" => nothing("slack limits our events"),
        "" => malformed("The body has no type."),
        _ => nothing("unknown envelope"),
    }
}

fn callback(
    envelope: &EventPayload,
    event: &SlackEvent,
    app: &App,
    now_ms: Ms,
    threads: DirectThreads,
) -> Inbound {
    match event.kind.as_str() {
        "message" if event.subtype.as_deref() == Some("message_deleted") => {
            deleted(envelope, event, app, threads)
        }
        "app_mention" | "message" => said(envelope, event, app, now_ms, threads),
        "agent_session_stopped" => stopped(envelope, event, app, threads),
        "app_home_opened" => home::opened(envelope, event, app),
        "app_uninstalled" | "tokens_revoked" => nothing("the app was removed from a workspace"),
        _ => nothing("event not in use"),
    }
}

/// Why a message is ignored, if it is.
fn ignored(envelope: &EventPayload, event: &SlackEvent) -> Option<&'static str> {
    if event.hidden {
        return Some("hidden message");
    }
    if !matches!(event.subtype.as_deref(), None | Some("file_share" | "thread_broadcast")) {
        return Some("message subtype not in use");
    }
    // A bot's message has no subtype nowadays: only these fields identify it.
    if event.bot_id.is_some() || event.bot_profile.is_some() {
        return Some("message of a bot");
    }
    match event.user.get() {
        None | Some("USLACKBOT") => return Some("message of nobody"),
        user if user == envelope.bot() => return Some("message of our own"),
        Some(_) => {}
    }
    let mentioned =
        event.kind == "app_mention" || envelope.bot().is_some_and(|bot| mentions(&event.text, bot));
    (!mentioned && !is_direct(event)).then_some("message without a mention")
}

/// The person and the place of an event; `None` if its ids are unusable.
fn asked(
    envelope: &EventPayload,
    event: &SlackEvent,
    ts: &str,
    threads: DirectThreads,
) -> Option<Asked> {
    let (tenant, channel, user) = (envelope.tenant()?, event.channel.get()?, event.user.get()?);
    let root = event.thread_ts.as_deref().unwrap_or(ts);
    let thread = ThreadKey::slack(tenant, channel, root).ok()?;
    let names = [&event.user_profile.display_name, &event.user_profile.real_name];
    let name = names.into_iter().find(|name| !name.is_empty()).map_or(user, String::as_str);
    let asked = Asked {
        id: message_id(tenant, channel, ts, &[]),
        team: tenant.to_owned(),
        channel: channel.to_owned(),
        membership: Membership { channel: channel.to_owned(), ..Membership::default() },
        thread,
        by: Person { id: user.to_owned(), name: name.to_owned() },
        reply: Reply::Slack {
            channel: channel.to_owned(),
            // Outside a thread, a text for one person is shown in the channel, where they look.
            thread_ts: if is_direct(event) {
                Some(root.to_owned())
            } else {
                event.thread_ts.clone()
            },
            user: user.to_owned(),
        },
    };
    asked.within(threads)
}

fn said(
    envelope: &EventPayload,
    event: &SlackEvent,
    app: &App,
    now_ms: Ms,
    threads: DirectThreads,
) -> Inbound {
    if let Some(why) = ignored(envelope, event) {
        return nothing(why);
    }
    let Some(asked) = event.ts.as_deref().and_then(|ts| asked(envelope, event, ts, threads)) else {
        return nothing("message with ids that cannot be used");
    };
    match asked.admission(&app.policy, envelope.external(event)) {
        AccessDecision::Stranger => return nothing("unknown tenant"),
        AccessDecision::Refused(why) => return take(asked.say(why), "refused by policy"),
        AccessDecision::Admitted => {}
    }
    let text = typed(&event.text, envelope.bot());
    let attachments = attachments(&event.files);
    if attachments.is_empty()
        && let Some((command, words)) = command(&text, MENTIONED)
    {
        return commanded(asked, command, &words, now_ms);
    }
    let (wants, text) = match chosen(&text) {
        Ok((wants, text)) => (wants, text.to_owned()),
        Err(unusable) => return take(asked.say(unusable.to_string()), "unusable option"),
    };
    if text.is_empty() && attachments.is_empty() {
        return take(asked.control(ControlAction::Help { text: help() }), "empty mention");
    }
    let task = RequestedTask { text, attachments, wants, quotes: Vec::new() };
    prompt(asked, task, now_ms)
}

/// A prompt that its author deletes while it waits is withdrawn. A running turn goes on: Stop ends it.
fn deleted(
    envelope: &EventPayload,
    event: &SlackEvent,
    app: &App,
    threads: DirectThreads,
) -> Inbound {
    let Some(before) = event.previous_message.as_deref() else {
        return nothing("deleted message that is not shown");
    };
    let gone = SlackEvent {
        kind: "message".to_owned(),
        subtype: before.subtype.clone(),
        user: Id(before.user.get().map(str::to_owned)),
        bot_id: before.bot_id.clone(),
        bot_profile: before.bot_profile.clone(),
        text: before.text.clone(),
        thread_ts: before.thread_ts.clone(),
        channel: Id(event.channel.get().map(str::to_owned)),
        channel_type: event.channel_type.clone(),
        ..SlackEvent::default()
    };
    if let Some(why) = ignored(envelope, &gone) {
        return nothing(why);
    }
    let ts = event.deleted_ts.as_deref().or(before.ts.as_deref());
    let Some((ts, mut asked)) = ts.and_then(|ts| Some((ts, asked(envelope, &gone, ts, threads)?)))
    else {
        return nothing("deletion with ids that cannot be used");
    };
    match asked.admission(&app.policy, envelope.external(event)) {
        AccessDecision::Admitted => {}
        AccessDecision::Stranger => return nothing("unknown tenant"),
        AccessDecision::Refused(_) => return nothing("deletion by somebody who may not use it"),
    }
    let turn = std::mem::take(&mut asked.id);
    asked.id = message_id(&asked.team, &asked.channel, ts, &["deleted"]);
    take(asked.control(ControlAction::Withdraw { turn: turn.into() }), "message deleted")
}

/// A command after the mention.
fn commanded(asked: Asked, command: Command, words: &Remainder, now_ms: Ms) -> Inbound {
    let note = command.row().name;
    if command == Command::Help {
        return take(asked.control(ControlAction::Help { text: help() }), note);
    }
    let typist = CommandSender { by: &asked.by, membership: &asked.membership, in_thread: true };
    match Intent::of(command, words, &typist) {
        Ok(Intent::Control(want)) => take(asked.control(want), note),
        Ok(Intent::Work(work)) => take(
            Body::Message(Message {
                id: asked.id.into(),
                thread: asked.thread,
                accepted_at_ms: now_ms,
                work,
            }),
            note,
        ),
        Err(bad) => take(asked.say(bad.to_string()), "unusable name"),
    }
}

/// A task as requested.
#[derive(Default)]
pub(super) struct RequestedTask {
    pub(super) text: String,
    pub(super) attachments: Vec<Attachment>,
    pub(super) wants: Selection,
    pub(super) quotes: Vec<Quote>,
}

/// A prompt for the agent, within the product's bound.
pub(super) fn prompt(asked: Asked, task: RequestedTask, now_ms: Ms) -> Inbound {
    let quoted: usize = task.quotes.iter().map(|quote| quote.text.chars().count()).sum();
    if task.text.chars().count() + quoted > Limits::DEFAULT.chat.prompt_chars {
        return take(
            asked.say("That is too long for one message. Put it into a file and attach it."),
            "prompt too long",
        );
    }
    let work = Work::Prompt(Prompt {
        text: task.text,
        by: asked.by,
        attachments: task.attachments,
        quotes: task.quotes,
        wants: task.wants,
        membership: asked.membership,
        ..Prompt::default()
    });
    take(
        Body::Message(Message {
            id: asked.id.into(),
            thread: asked.thread,
            accepted_at_ms: now_ms,
            work,
        }),
        "prompt",
    )
}

/// The files of a message. A file without an address stays in the list: the agent is told that it could not be fetched.
pub(super) fn attachments(files: &[SlackFile]) -> Vec<Attachment> {
    let of = |file: &SlackFile| Attachment {
        name: if file.name.is_empty() { file.id.clone() } else { file.name.clone() },
        url: if file.url_private_download.is_empty() {
            file.url_private.clone()
        } else {
            file.url_private_download.clone()
        },
        size: file.size,
        media_type: file.mimetype.clone().filter(|kind| !kind.is_empty()),
    };
    files.iter().filter(|file| file.mode != "tombstone").take(FILES_MAX).map(of).collect()
}

/// Handles Slack's Stop button of an agent session.
fn stopped(
    envelope: &EventPayload,
    event: &SlackEvent,
    app: &App,
    threads: DirectThreads,
) -> Inbound {
    let at = event.event_ts.as_deref().or(event.ts.as_deref());
    let (Some(root), Some(at)) = (event.thread_ts.as_deref(), at) else {
        return nothing("stop without a thread");
    };
    let Some(mut asked) = asked(envelope, event, root, threads) else {
        return nothing("stop with ids that cannot be used");
    };
    asked.id = message_id(&asked.team, &asked.channel, root, &[at, &asked.by.id]);
    match asked.admission(&app.policy, envelope.external(event)) {
        AccessDecision::Stranger => nothing("unknown tenant"),
        AccessDecision::Refused(why) => take(asked.say(why), "refused by policy"),
        AccessDecision::Admitted => take(asked.control(ControlAction::Stop { turn: None }), "stop"),
    }
}
