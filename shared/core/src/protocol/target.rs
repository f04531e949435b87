//! Target of an effect. The world is told with each effect, and keeps none of it.

use crate::base::ids::{SandboxKey, ThreadKey, TurnId};
use crate::protocol::delivery::Delivery;
use crate::protocol::effect::{Effect, SandboxEffect};
use crate::records::flags::ControlFlags;
use crate::records::session::Session;
use crate::records::workspace::Workspace;
use crate::tenant::project_secrets::{project_in, repository_of};
use crate::tenant::runtime_mode::RuntimeMode;
use crate::tenant::settings::Settings;

/// Target of an effect, taken from the record when the effect is due.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EffectTarget {
    /// The thread whose message is in hand.
    pub thread: ThreadKey,
    /// The current turn.
    pub turn: Option<TurnId>,
    /// The sandbox.
    pub sandbox: SandboxKey,
    /// Sandbox generation.
    pub generation: u32,
    /// Where in the sandbox the thread's turns work.
    pub workspace: Workspace,
    /// Provider name; `None` means the stack's.
    pub provider: Option<String>,
    /// Runtime name; `None` means the stack's.
    pub runtime: Option<String>,
    /// Use the tenant's own credentials, not the stack's.
    pub own_credentials: bool,
    /// Fingerprint of the tenant's own key with which the sandbox is created, if it is.
    pub credentials: Option<String>,
    /// The repository whose secrets the sandbox gets.
    pub project: Option<String>,
    /// The repository whose network it has.
    pub network_of: Option<String>,
    /// It was given some of them, or may have been: a set-up gets them before that is on record.
    pub has_secrets: bool,
    /// Its network is on record as limited.
    pub is_limited: bool,
}

impl EffectTarget {
    /// The target of this effect of a delivery.
    #[must_use]
    pub fn of(
        session: &Session,
        settings: &Settings,
        (delivery, effect): (&Delivery<'_>, &Effect),
    ) -> Self {
        let sandbox = &session.sandbox;
        // The sandbox does not exist yet. It is counted at the provider and with the credentials that it will have, and
        // the previous generation's runtime says nothing about the next.
        let is_new = matches!(effect, Effect::Sandbox(SandboxEffect::Count { older_than: None }));
        let wanted = || session.turn.as_ref()?.selection.provider.clone();
        Self {
            thread: session.thread.clone(),
            turn: session.turn.as_ref().map(|turn| turn.id.clone()),
            sandbox: session.sandbox_key(),
            generation: sandbox.generation,
            workspace: session.workspace().unwrap_or_default(),
            provider: sandbox.spec.provider.clone().or_else(|| wanted().filter(|_| is_new)),
            runtime: sandbox.spec.runtime.clone().filter(|_| !is_new),
            own_credentials: if is_new {
                settings.sandbox_credentials().is_some()
            } else {
                sandbox.spec.credentials.is_some()
            },
            credentials: sandbox.spec.credentials.clone(),
            project: project_in(sandbox, &settings.repositories, delivery.place()),
            network_of: repository_of(sandbox),
            has_secrets: sandbox.project.secrets.is_some() || sandbox.project.is_set_up_begun(),
            is_limited: sandbox.project.secrets.as_ref().is_some_and(|given| {
                given.network.as_ref().is_some_and(|network| !network.is_ignored)
            }),
        }
    }

    /// Whether the agent works in a sandbox other than its own.
    #[must_use]
    pub fn works_elsewhere(&self) -> bool {
        RuntimeMode::recorded_as(self.runtime.as_deref()).is_some_and(RuntimeMode::works_elsewhere)
    }
}

/// An effect with its target, as the world performs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addressed<'a> {
    /// The target.
    pub at: EffectTarget,
    /// The effect.
    pub effect: &'a Effect,
    /// The known control flags.
    pub flags: &'a ControlFlags,
    /// The tenant's settings.
    pub settings: &'a Settings,
}
