//! How calls fail.

use bobbin_core::base::failure::Failure;
use bobbin_core::protocol::effect::{
    AgentEffect, ChatEffect, Effect, ForgeEffect, SandboxEffect, Sending,
};
use bobbin_core::protocol::event::Event;
use bobbin_core::records::sandbox::SandboxState;

use super::plan::Out;

/// What a call meets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Luck {
    Good,
    /// It fails and nothing was done.
    Fails,
    /// It is done, and its reply is lost.
    ReplyLost,
    /// It is on its way, and its caller gives up waiting.
    Late,
}

fn wait() -> Failure {
    Failure::Wait { after_ms: 0, seen: "429".to_owned() }
}

/// The service that an effect needs and that may be down.
pub(super) fn stands_on(effect: &Effect) -> &'static [Out] {
    match effect {
        Effect::Chat(ChatEffect::TellBeside { .. } | ChatEffect::Tell { .. }) => {
            &[Out::Chat, Out::Token]
        }
        Effect::Chat(_) => &[Out::Chat, Out::Token, Out::Access],
        Effect::Recall { .. }
        | Effect::FindName { .. }
        | Effect::EndTools
        | Effect::FindAgent { .. }
        | Effect::FindPrebuild { .. } => &[Out::Table],
        Effect::Sandbox(effect) if effect.rests_on_account() => &[Out::Provider, Out::Account],
        Effect::Sandbox(_) => &[Out::Provider],
        Effect::Forge(effect) if is_in_sandbox(effect) => &[Out::Provider],
        _ => &[],
    }
}

/// Whether a call of the forge also works in the sandbox.
const fn is_in_sandbox(effect: &ForgeEffect) -> bool {
    matches!(
        effect,
        ForgeEffect::Carry { .. }
            | ForgeEffect::ReadOutgoing { .. }
            | ForgeEffect::ReadReview { .. }
            | ForgeEffect::Bring { .. }
            | ForgeEffect::MoveCheckout { .. }
            | ForgeEffect::Push { .. }
    )
}

/// What another account shows of a sandbox that it does not have; `None`: the effect does not look there.
pub(super) fn not_there(effect: &Effect) -> Option<Event> {
    match effect {
        Effect::Sandbox(SandboxEffect::Count { .. }) => Some(Event::Counted(0)),
        Effect::Sandbox(SandboxEffect::DeleteSnapshot { name }) => {
            Some(Event::SnapshotDeleted { name: name.clone() })
        }
        Effect::Sandbox(
            SandboxEffect::Observe { .. }
            | SandboxEffect::Confirm { .. }
            | SandboxEffect::Start
            | SandboxEffect::Stop
            | SandboxEffect::Delete,
        ) => Some(Event::Observed(SandboxState::Gone)),
        // A sandbox that is created there behaves as if it were here: nobody looks for it in both.
        Effect::Sandbox(SandboxEffect::Create { .. }) => None,
        Effect::Agent(AgentEffect::SendPrompt { sending: Sending::First { .. }, .. }) => {
            Some(Event::NotSent(Failure::SandboxGone))
        }
        Effect::Sandbox(_) | Effect::Agent(_) => Some(Event::Failed(Failure::SandboxGone)),
        Effect::Forge(effect) if is_in_sandbox(effect) => Some(Event::Failed(Failure::SandboxGone)),
        _ => None,
    }
}

pub(super) fn away_for_now(what: Out) -> Failure {
    if what == Out::Access {
        return Failure::ThreadClosed { seen: "the app may not write here".to_owned() };
    }
    Failure::Outage { after_ms: 0, seen: format!("{what:?} is away") }
}

/// How a call fails, done or not.
pub(super) fn fails(effect: &Effect, at: u64, done: bool) -> Event {
    let down = Failure::SandboxDown { seen: "connection reset".to_owned() };
    if let Effect::Agent(AgentEffect::SendPrompt { sending: Sending::First { .. }, .. }) = effect {
        return match at % 4 {
            0 if !done => Event::NotSent(down),
            1 if !done => Event::NotSent(Failure::SessionMissing),
            2 if !done => Event::NotSent(wait()),
            _ => Event::Failed(down),
        };
    }
    Event::Failed(match (effect, at % 4) {
        (Effect::Sandbox(SandboxEffect::Create { .. }), 0) => {
            Failure::NonRecoverable { advice: "quota".to_owned() }
        }
        (Effect::Sandbox(SandboxEffect::EnsureServer { .. }), 0 | 1) => {
            Failure::ResumeFailed { seen: "not healthy".to_owned() }
        }
        (
            Effect::Sandbox(
                SandboxEffect::Clone { .. }
                | SandboxEffect::ReadRecipe { .. }
                | SandboxEffect::SetUp { .. }
                | SandboxEffect::StartProject { .. }
                | SandboxEffect::EnsureServer { .. },
            )
            | Effect::Agent(
                AgentEffect::CheckServer { .. }
                | AgentEffect::FindAgentSession { .. }
                | AgentEffect::FindPrompt { .. }
                | AgentEffect::SendPrompt { .. }
                | AgentEffect::EndRun(_)
                | AgentEffect::Follow(_)
                | AgentEffect::Look(_),
            ),
            0..3,
        ) => down,
        (Effect::Agent(AgentEffect::SendPrompt { .. } | AgentEffect::FindPrompt { .. }), _) => {
            Failure::SessionMissing
        }
        (Effect::Forge(effect), 0) if is_in_sandbox(effect) => down,
        (Effect::Forge(_), 1) => {
            Failure::Outage { after_ms: 0, seen: "the forge does not answer".to_owned() }
        }
        (Effect::Forge(_), 2) => {
            Failure::NonRecoverable { advice: "the app is suspended".to_owned() }
        }
        (Effect::Sandbox(_), 1 | 2) => {
            Failure::Outage { after_ms: 0, seen: "the provider does not answer".to_owned() }
        }
        _ => wait(),
    })
}
