//! `POST /slack/interactivity`: clicks on our buttons, and the shortcut "Send to Bobbin".

use bobbin_core::base::ids::{Ms, ThreadKey};
use bobbin_core::base::person::{Membership, Person};
use bobbin_core::protocol::decide::words;
use bobbin_core::records::ask::{Choice, Field};
use bobbin_core::records::control::ControlAction;
use bobbin_core::records::message::{Quote, Reply};
use bobbin_core::records::publication::PullRequestAct;

use super::actions::{
    ACT_ACTION, AGAIN_ACTION, ASK_ACTION, BODY_INPUT, DIFF_ACTION, EDIT_ACTION, FIELD_ACTION,
    FIX_ACTION, NOW_ACTION, PUBLISH_ACTION, PUSH_ACTION, PUSH_ALL_ACTION, REVIEW_ACTION, SEND,
    SET_UP_LOG_ACTION, SHORTCUT, STOP_ACTION, STOP_ALL_ACTION, SUBJECT_INPUT,
};
use super::direct::{self, DirectThreads};
use super::endpoint::{
    App, Asked, SignedRequest, accept, ephemeral, form, malformed, message_id, nothing, object,
};
use super::events::{RequestedTask, attachments, prompt};
use super::home;
use super::sandboxes::{self, Button};
use super::suggest::typing;
use super::types::{BlockAction, InteractionPayload, Stated};
use super::who::AccessDecision;
use super::words::typed;
use crate::Inbound;
use crate::press::{FormInput, Press};
use crate::{pull_request, pull_review, review};

/// Maximum number of inputs read from one message.
const INPUTS_MAX: usize = 50;

/// Handles a click, a shortcut or a submission. Access is checked again on each.
///
/// Answers 401 if unsigned, 400 if it is not an interaction, 200 otherwise.
#[must_use]
pub fn interactivity(
    raw: &[u8],
    signature: &str,
    timestamp: &str,
    app: &App,
    now_ms: Ms,
) -> Inbound {
    let request = SignedRequest { raw, signature, timestamp };
    if let Some(refused) = request.refusal(app, now_ms) {
        return refused;
    }
    let fields = form(raw);
    if fields.get("ssl_check").is_some_and(|v| v == "1") {
        return nothing("ssl check");
    }
    let Some(payload) = fields.get("payload") else {
        return malformed("The form has no payload.");
    };
    let Some(payload) = object(payload.as_bytes()) else {
        return malformed("The payload is not a JSON object.");
    };
    let Ok(interaction) = serde_json::from_value::<InteractionPayload>(payload.into()) else {
        return malformed("The payload is not an interaction.");
    };
    match interaction.kind.as_str() {
        "block_actions" if interaction.view.kind == "home" => home::acted(&interaction, app),
        "block_actions" => clicked(&interaction, app),
        "block_suggestion" => typing(&interaction, app),
        "message_action" if interaction.callback_id == SHORTCUT => {
            shortcut(&interaction, app, now_ms)
        }
        "message_action" | "shortcut" => nothing("shortcut not in use"),
        "view_submission" | "view_closed" => nothing("view not in use"),
        "" => malformed("The payload has no type."),
        _ => nothing("unknown interaction"),
    }
}

/// The request of a known button.
fn wanted(action: &BlockAction, interaction: &InteractionPayload) -> Option<ControlAction> {
    let value = action.value.as_deref().filter(|v| !v.is_empty())?;
    if action.action_id == STOP_ACTION {
        return Some(ControlAction::Stop { turn: Some(value.into()) });
    }
    if action.action_id == STOP_ALL_ACTION {
        return Some(ControlAction::StopAll);
    }
    if action.action_id == NOW_ACTION {
        return Some(ControlAction::Now { turn: value.into() });
    }
    if action.action_id == AGAIN_ACTION {
        return Some(ControlAction::Again { turn: value.into() });
    }
    if action.action_id == DIFF_ACTION {
        return Some(ControlAction::Diff { turn: Some(value.into()) });
    }
    if action.action_id == SET_UP_LOG_ACTION {
        return Some(ControlAction::SetUpLog { turn: value.into() });
    }
    if action.action_id == PUBLISH_ACTION {
        return Some(ControlAction::Publish { step: review::asked(None, None) });
    }
    if action.action_id == FIX_ACTION {
        return Some(ControlAction::Publish { step: pull_request::fix(value)? });
    }
    if action.action_id == PUSH_ACTION {
        return Some(ControlAction::Publish { step: review::push(value)? });
    }
    if action.action_id == PUSH_ALL_ACTION {
        return Some(ControlAction::Publish { step: review::push_all(value)? });
    }
    if action.action_id == REVIEW_ACTION {
        return Some(ControlAction::Publish { step: pull_review::step(value)? });
    }
    if let Some(act) = action.action_id.strip_prefix(ACT_ACTION) {
        let act = PullRequestAct::named(act)?;
        return Some(ControlAction::Publish { step: pull_request::step(act, value)? });
    }
    if action.action_id == EDIT_ACTION {
        let (subject, body) =
            (stated(interaction, SUBJECT_INPUT)?, stated(interaction, BODY_INPUT)?);
        return Some(match review::edited(subject, body, Some(value)) {
            Ok(step) => ControlAction::Publish { step },
            Err(text) => ControlAction::Say { text },
        });
    }
    action
        .action_id
        .strip_prefix(ASK_ACTION)
        .filter(|tail| tail.is_empty() || tail.starts_with(':'))?;
    let (ask, word) = value.rsplit_once(':')?;
    let choice =
        if word == SEND { Choice::Form(filled(interaction)) } else { Press::parse(word)?.choice() };
    (!ask.is_empty()).then(|| ControlAction::Settle { ask: ask.into(), choice })
}

/// The text in the input with this id; `None` if the message has no such input.
fn stated<'a>(interaction: &'a InteractionPayload, id: &str) -> Option<&'a str> {
    let mut inputs = interaction.state.values.values();
    inputs.find_map(|block| block.get(id)).map(|stated| stated.value.as_str())
}

/// The values in the message's inputs; Slack sends them with each click.
fn filled(interaction: &InteractionPayload) -> Vec<Field> {
    let inputs = interaction.state.values.values().flatten();
    let field = |(id, stated): (&String, &Stated)| {
        let input = FormInput::parse(id.strip_prefix(FIELD_ACTION)?.strip_prefix(':')?)?;
        let chosen = stated.selected_option.iter().chain(&stated.selected_options);
        let values: Vec<String> = chosen.filter_map(|one| one.value.clone()).collect();
        input.filled(&values, &stated.value)
    };
    inputs.take(INPUTS_MAX).filter_map(field).collect()
}

fn clicked(interaction: &InteractionPayload, app: &App) -> Inbound {
    if let Some((action, button, thread)) = interaction.actions.iter().find_map(|action| {
        let (button, thread) = Button::read(action)?;
        Some((action, button, thread))
    }) {
        return listed(interaction, app, action, (button, thread));
    }
    let Some((action, want)) =
        interaction.actions.iter().find_map(|a| Some((a, wanted(a, interaction)?)))
    else {
        return nothing("element not in use");
    };
    let container = &interaction.container;
    let stands_at = container.message_ts.as_deref().or(interaction.message.ts.as_deref());
    let root =
        container.thread_ts.as_deref().or(interaction.message.thread_ts.as_deref()).or(stands_at);
    let pressed_at =
        action.action_ts.as_deref().or(interaction.action_ts.as_deref()).unwrap_or("0");
    let channel = container.channel_id.as_deref();
    let threads = direct::of_post(channel.unwrap_or_default(), stands_at, root);
    let asked = asked(interaction, stands_at, root, pressed_at);
    let Some(asked) = asked.and_then(|asked| asked.within(threads)) else {
        return nothing("click with ids that cannot be used");
    };
    match asked.admission(&app.policy, interaction.external()) {
        AccessDecision::Stranger => nothing("unknown tenant"),
        AccessDecision::Refused(why) => accept(asked.say(why), "refused by policy"),
        AccessDecision::Admitted => {
            let note = match want {
                ControlAction::Stop { .. } => "stop",
                ControlAction::StopAll => "stop all",
                ControlAction::Now { .. } => "send now",
                ControlAction::Again { .. } => "run again",
                ControlAction::Diff { .. } => "diff",
                ControlAction::SetUpLog { .. } => "set-up log",
                ControlAction::Publish { .. } => "publish",
                ControlAction::Say { .. } => "text too long",
                _ => "ask settled",
            };
            accept(asked.control(want), note)
        }
    }
}

/// A click on the list of sandboxes: access is checked for the person and the place, as for every click.
fn listed(
    interaction: &InteractionPayload,
    app: &App,
    action: &BlockAction,
    (button, thread): (Button, ThreadKey),
) -> Inbound {
    let container = &interaction.container;
    let stands_at = container.message_ts.as_deref().or(interaction.message.ts.as_deref());
    let pressed_at =
        action.action_ts.as_deref().or(interaction.action_ts.as_deref()).unwrap_or("0");
    let asked = asked(interaction, stands_at, stands_at, pressed_at);
    let Some(asked) = asked.and_then(|asked| sandboxes::placed(asked, thread)) else {
        return nothing("click with ids that cannot be used");
    };
    match asked.admission(&app.policy, interaction.external()) {
        AccessDecision::Stranger => nothing("unknown tenant"),
        AccessDecision::Refused(why) => accept(asked.say(why), "refused by policy"),
        AccessDecision::Admitted => {
            let note = button.note();
            accept(button.body(asked), note)
        }
    }
}

/// The request for somebody else's message.
const DO_QUOTED: &str = "Do what this message asks for, or look into what it reports.";

/// The shortcut on any message starts a turn in its thread, requested by the person who used the shortcut: with the
/// message's text if they wrote it, with the message as a quote if somebody else did.
fn shortcut(interaction: &InteractionPayload, app: &App, now_ms: Ms) -> Inbound {
    let message = &interaction.message;
    let stands_at = message.ts.as_deref().or(interaction.message_ts.as_deref());
    let root = message.thread_ts.as_deref().or(stands_at);
    let of = |threads| sent_to(interaction, app, (stands_at, root, threads), now_ms);
    let channel = interaction.channel.get().unwrap_or_default();
    let ours =
        direct::is_direct_channel(channel) && direct::may_be_ours(message, &interaction.user.id);
    match (interaction.tenant(), root) {
        (Some(tenant), Some(root)) if ours => direct::either(tenant, Some((channel, root)), of),
        _ => of(DirectThreads::EachMessage),
    }
}

fn sent_to(
    interaction: &InteractionPayload,
    app: &App,
    (stands_at, root, threads): (Option<&str>, Option<&str>, DirectThreads),
    now_ms: Ms,
) -> Inbound {
    let message = &interaction.message;
    let pressed_at = interaction.action_ts.as_deref().unwrap_or("0");
    let asked = asked(interaction, stands_at, root, pressed_at);
    let Some(mut asked) = asked.and_then(|asked| asked.within(threads)) else {
        return nothing("shortcut with ids that cannot be used");
    };
    if threads == DirectThreads::OneEach {
        // Not by the channel: it may hold the person's direct messages with somebody else, where nothing can be
        // answered.
        let by = &asked.by.id;
        let further = [pressed_at, by.as_str()];
        asked.id = message_id(&asked.team, by, stands_at.unwrap_or_default(), &further);
    }
    match asked.admission(&app.policy, interaction.external()) {
        AccessDecision::Stranger => return nothing("unknown tenant"),
        AccessDecision::Refused(why) => return accept(asked.say(why), "refused by policy"),
        AccessDecision::Admitted => {}
    }
    let (text, files) = (typed(&message.text, None), attachments(&message.files));
    if text.is_empty() && files.is_empty() {
        return accept(asked.say("That message has no text to work on."), "empty message");
    }
    let own = message.user.get() == Some(asked.by.id.as_str()) && message.bot_id.is_none();
    let mut task = RequestedTask { attachments: files, ..RequestedTask::default() };
    if own || text.is_empty() {
        task.text = text;
    } else {
        DO_QUOTED.clone_into(&mut task.text);
        let profile = &message.user_profile;
        let by = [&profile.display_name, &profile.real_name, &message.username]
            .into_iter()
            .find(|name| !name.is_empty())
            .cloned()
            .unwrap_or_default();
        task.quotes.push(Quote { by, text });
    }
    Inbound { on_queue_failure: ephemeral(words::MAYBE_TAKEN), ..prompt(asked, task, now_ms) }
}

fn asked(
    interaction: &InteractionPayload,
    stands_at: Option<&str>,
    root: Option<&str>,
    pressed_at: &str,
) -> Option<Asked> {
    let tenant = interaction.tenant()?;
    let channel = interaction.container.channel_id.as_deref().or(interaction.channel.get())?;
    let (stands_at, root) = (stands_at?, root?);
    let user = &interaction.user;
    if user.id.is_empty() {
        return None;
    }
    let name = [&user.name, &user.username, &user.id]
        .into_iter()
        .find(|name| !name.is_empty())
        .expect("the id is not empty");
    Some(Asked {
        id: message_id(tenant, channel, stands_at, &[pressed_at, &user.id]),
        team: tenant.to_owned(),
        channel: channel.to_owned(),
        thread: ThreadKey::slack(tenant, channel, root).ok()?,
        by: Person { id: user.id.clone(), name: name.clone() },
        reply: Reply::Slack {
            channel: channel.to_owned(),
            thread_ts: Some(root.to_owned()),
            user: user.id.clone(),
        },
        membership: Membership { channel: channel.to_owned(), ..Membership::default() },
    })
}
