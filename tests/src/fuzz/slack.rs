//! Slack's three endpoints.

use bobbin_chat::Inbound;
use bobbin_chat::slack::{self, App};
use bobbin_core::base::ids::Ms;
use bobbin_core::base::limits::Limits;
use bobbin_core::records::control::ControlAction;
use bobbin_core::records::message::{Body, Overview, Surface, Work};
use bobbin_core::tenant::access::Policy;

use super::endpoint::{self, nowhere};
use super::verify::{NOW_S, by_slack, slack_secret};

/// The team of `events/slack`.
const TEAM: &str = "T0BOBBIN01";

type Endpoint = fn(&[u8], &str, &str, &App, Ms) -> Inbound;

/// An input is the raw body.
pub(super) fn events(input: &[u8]) {
    entered(slack::events, input);
}

/// An input is the payload, then again the whole form.
pub(super) fn interactivity(input: &[u8]) {
    entered(slack::interactivity, input);
    let form = form_urlencoded::Serializer::new(String::new())
        .append_pair("payload", &String::from_utf8_lossy(input))
        .finish();
    entered(slack::interactivity, form.as_bytes());
}

/// An input is the raw form.
pub(super) fn commands(input: &[u8]) {
    let answered = entered(slack::commands, input);
    let quiet = match &answered.enqueue {
        None | Some(Body::Overview(_)) => true,
        Some(Body::Control(control)) => matches!(control.want, ControlAction::Configure { .. }),
        Some(_) => false,
    };
    assert!(quiet, "a slash command starts and ends nothing: {answered:?}");
}

fn app(teams: &str, channels: &str, people: &str) -> App {
    App {
        signing_secret: slack_secret().to_owned(),
        policy: Policy::from_lists("", teams, channels, people),
    }
}

fn entered(endpoint: Endpoint, raw: &[u8]) -> Inbound {
    let app = self::app(TEAM, "", "");
    let timestamp = NOW_S.to_string();
    let at = |signature: &str, app: &App| endpoint(raw, signature, &timestamp, app, NOW_S * 1_000);
    endpoint::refused(&at("", &app));
    endpoint::refused(&at(&format!("v0={}", "0".repeat(64)), &app));

    let signature = by_slack(timestamp.as_bytes(), raw);
    let signed = at(&signature, &app);
    assert_eq!(at(&signature, &app), signed, "twice the same");
    endpoint::taken(&signed, &format!("slack:{TEAM}"));
    for answer in [&signed.answer, &signed.on_queue_failure] {
        let words =
            endpoint::json(answer).and_then(|json| json["text"].as_str().map(str::to_owned));
        assert!(
            words.is_none_or(|words| !words.contains(['<', '>'])),
            "words with a token of Slack's: {answer:?}"
        );
    }
    if let Some(Body::Message(message)) = &signed.enqueue
        && let Work::Prompt(prompt) = &message.work
    {
        assert!(
            !prompt.text.trim().is_empty() || !prompt.attachments.is_empty(),
            "an empty prompt"
        );
        assert!(prompt.text.chars().count() <= Limits::DEFAULT.chat.prompt_chars);
    }
    assert_eq!(at(&signature, &self::app("", "", "")).enqueue, None, "work of a stranger");
    let elsewhere = nowhere(raw);
    for app in [self::app(TEAM, &elsewhere, ""), self::app(TEAM, "", &elsewhere)] {
        let refused = at(&signature, &app);
        // A Home belongs to no channel: only the list of people counts for it.
        let own_home =
            matches!(&refused.enqueue, Some(Body::Overview(Overview { place: Surface::Home, .. })));
        assert!(
            endpoint::only_a_word(&refused) || (own_home && app.policy.people.is_empty()),
            "work for somebody who may not: {refused:?}"
        );
    }
    signed
}
