//! The paths at which Slack delivers, and the signing secret that verifies what comes there.

use bobbin_core::base::ids::Ms;
use bobbin_core::tenant::access::Policy;
use bobbin_core::tenant::keys::Key;

use super::commands::commands;
use super::endpoint::App;
use super::events::events;
use super::interactivity::interactivity;
use super::verify::looks_signed;
use crate::HttpAnswer;
use crate::endpoints::{EndpointSettings, Endpoints, RawRequest, Verifier};
use crate::inbound::{Inbound, Repeat};

const EVENTS: &str = "/slack/events";
const INTERACTIVITY: &str = "/slack/interactivity";
const COMMANDS: &str = "/slack/commands";

/// For the log: the missing key, its secret, and the command that stores it.
const MISSING: &str = "slack: the key slack_signing_secret is missing in the secret IngressSecret, `bobbin secrets` stores it";

/// Slack's endpoints.
#[derive(Debug)]
pub(crate) struct SlackEndpoints {
    policy: Policy,
}

impl SlackEndpoints {
    pub(crate) fn configured(settings: &EndpointSettings<'_>) -> Self {
        Self { policy: settings.policy.clone() }
    }

    fn read(&self, request: &RawRequest<'_>, verifier: Verifier<'_>) -> Inbound {
        let app = match verifier {
            Verifier::Nothing => App::default(),
            Verifier::Key(secret) => {
                let signing_secret = secret.expose().to_owned();
                App { signing_secret, policy: self.policy.clone() }
            }
            Verifier::Missing => return later(MISSING),
            Verifier::Unread => return later("slack: the signing secret could not be read"),
        };
        let endpoint: fn(&[u8], &str, &str, &App, Ms) -> Inbound = match request.path {
            EVENTS => events,
            INTERACTIVITY => interactivity,
            _ => commands,
        };
        let (signature, timestamp) = signed(request);
        endpoint(request.raw, signature, timestamp, &app, request.now_ms)
    }
}

impl Endpoints for SlackEndpoints {
    fn paths(&self) -> &'static [&'static str] {
        &[EVENTS, INTERACTIVITY, COMMANDS]
    }

    fn key(&self, request: &RawRequest<'_>) -> Option<Key> {
        let (signature, timestamp) = signed(request);
        looks_signed(signature, timestamp, request.now_ms).then_some(Key::SlackSigningSecret)
    }

    fn receive(&self, request: &RawRequest<'_>, verifier: Verifier<'_>) -> Inbound {
        Inbound { repeat: repeat(request), ..self.read(request, verifier) }
    }
}

/// The signature, and the time in Unix seconds; each empty if its header is missing.
fn signed<'a>(request: &RawRequest<'a>) -> (&'a str, &'a str) {
    let header = |name: &str| (request.header)(name).unwrap_or_default();
    (header("x-slack-signature"), header("x-slack-request-timestamp"))
}

/// Which redelivery it is, and why. It is handled like the first delivery, which may have been lost: the message's id
/// makes a repeat harmless.
fn repeat(request: &RawRequest<'_>) -> Option<Repeat> {
    let header = |name: &str| {
        let value = (request.header)(name)?;
        let plain = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
        Some(value.chars().filter(plain).take(40).collect::<String>())
    };
    let number = header("x-slack-retry-num")?;
    Some(Repeat { number, reason: header("x-slack-retry-reason").unwrap_or_default() })
}

/// Nothing can be verified just now. Slack sends events again, so the event is not lost yet.
fn later(note: &'static str) -> Inbound {
    let answer = HttpAnswer::text(
        503,
        "Bobbin has no signing secret of this Slack app yet, or cannot read it right now. Its operator stores it with `bobbin secrets`; Bobbin uses it within a minute.",
    );
    Inbound::only(answer, note)
}
