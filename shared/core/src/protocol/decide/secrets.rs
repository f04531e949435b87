//! The project's secrets and network in a thread's own sandbox: its server is started with them, and again once they
//! have changed.
//!
//! Promised: a prompt that begins is sent to a server that has the present secrets and none that was removed. A run
//! that goes on keeps what it began with.

use std::collections::BTreeMap;

use super::Context;
use crate::records::given_secrets::{GivenNetwork, GivenSecrets, Withheld};
use crate::records::sandbox::{InUse, Phase};
use crate::records::session::Session;
use crate::tenant::commands::Command;
use crate::tenant::project_networks::{NetworkAccess, revision_of};
use crate::tenant::project_secrets::{is_closed, is_foreign, project_in, repository_of};

/// Why a checkout has none of the project's secrets.
const FOREIGN: &str = "The project's secrets are not given here: a commit by its id, a pull request from outside, or a snapshot may hold anybody's work.";

/// Why a clone from inside has none of them.
const CLOSED: &str = "The project's secrets are not given here: no manager has opened the repository in this channel.";

/// What the agent is told when nothing is left of what it was told before.
const TAKEN_BACK: &str = "(What you were told about the project's secrets and network no longer holds: it has no secrets here, and its network is not limited.)";

/// Whether the server does not have the present secrets.
pub(super) fn is_stale(session: &Session, context: &Context<'_>) -> bool {
    let sandbox = &session.sandbox;
    if session.observed.sandbox.project.are_secrets_given {
        return false;
    }
    // Others may work in it, and it gets none: its server may have some from before it had a name.
    if sandbox.is_shared() {
        let given = sandbox.project.secrets.as_ref();
        return given.is_some_and(|given| !given.given.is_empty()) && !is_needed(session);
    }
    let settings = context.settings;
    let secrets_of = project_in(sandbox, &settings.repositories, context.delivery.place());
    let network_of = repository_of(sandbox);
    let wanted = revision_of(settings, secrets_of.as_deref(), network_of.as_deref());
    let given = sandbox.project.secrets.as_ref().map_or("", |given| &given.revision);
    wanted != given
}

/// Whether other threads work with the server.
fn is_needed(session: &Session) -> bool {
    let sandbox = &session.sandbox;
    let is_others = |one: &InUse| one.thread != session.thread && !one.left;
    // Nobody does while it is being brought up.
    sandbox.phase == Phase::Active && sandbox.sharing.in_use.iter().any(is_others)
}

/// Whether the agent could read secrets of the project.
pub(super) fn could_be_read(session: &Session) -> bool {
    let given = session.sandbox.project.secrets.as_ref().map(|secrets| &secrets.given);
    given.is_some_and(|given| given.iter().any(|one| one.hosts.is_empty()))
}

/// Identifies what set-up steps that begin now can read of the project's secrets.
pub(super) fn of_set_up(session: &Session, context: &Context<'_>) -> BTreeMap<String, String> {
    let settings = context.settings;
    let place = context.delivery.place();
    let secrets_of = project_in(&session.sandbox, &settings.repositories, place);
    secrets_of.map_or_else(BTreeMap::new, |of| settings.project_secrets.read_by_set_up(&of))
}

/// A server was started with these.
pub(super) fn given(session: &mut Session, given: Option<GivenSecrets>) {
    session.observed.sandbox.project.are_secrets_given = true;
    session.sandbox.project.secrets = given;
}

/// What the agent session was told before of secrets and network, if the next prompt has to tell it something else;
/// a new session was told nothing.
pub(super) fn news(session: &Session, is_new: bool) -> Option<String> {
    let told = session.conversation.told.clone().filter(|_| !is_new).unwrap_or_default();
    let now = name(session).unwrap_or_default();
    (told != now).then_some(told)
}

/// The next prompt tells it.
pub(super) fn tell(session: &mut Session) {
    session.conversation.told = name(session);
}

fn name(session: &Session) -> Option<String> {
    session.sandbox.project.secrets.as_ref().map(GivenSecrets::name)
}

/// What people are told of secrets that the agent does not have; `None`: it has all.
pub(super) fn for_people(session: &Session, context: &Context<'_>) -> Option<String> {
    let sandbox = &session.sandbox;
    let has_some = |repository: String| context.settings.project_secrets.of(&repository).is_some();
    let why = if is_foreign(sandbox) {
        Some(FOREIGN)
    } else {
        let place = context.delivery.place();
        is_closed(sandbox, &context.settings.repositories, place).then_some(CLOSED)
    };
    let none = why.filter(|_| repository_of(sandbox).is_some_and(has_some)).map(str::to_owned);
    let given = given_for_people(session);
    let said: Vec<String> = none.into_iter().chain(given).collect();
    (!said.is_empty()).then(|| said.join("\n\n"))
}

fn given_for_people(session: &Session) -> Option<String> {
    let secrets = session.sandbox.project.secrets.as_ref()?;
    let withheld = &secrets.withheld;
    let config = session.thread.command(Command::Config);
    let lines = withheld.iter().map(|one| {
        let why = match one.why {
            Withheld::Nowhere => format!(
                "this sandbox's provider cannot keep it outside. With `readable` in `{config}` the agent could read it"
            ),
            Withheld::MadeWithout => format!(
                "this sandbox is older than the secrets: `{}` gives the thread a new one",
                session.thread.command(Command::Reset)
            ),
            Withheld::NoRoom => {
                "the provider took no more secrets: remove one, or ask the operator".to_owned()
            }
            Withheld::Unreadable => {
                format!("its stored value cannot be decrypted: store it again with `{config}`")
            }
        };
        format!("- `{}`: {why}.", one.name)
    });
    let lines: Vec<String> = lines.collect();
    let withheld = (!lines.is_empty())
        .then(|| format!("Secrets not available to the agent here:\n{}", lines.join("\n")));
    let network = secrets.network.as_ref().map(|network| {
        let word = network.access.word();
        if network.is_ignored {
            format!("The setting network (`{word}`) has no effect here: this sandbox's provider cannot limit what it reaches, so it reaches everything.")
        } else {
            format!("Network: {}. Other hosts are refused; `{config}` changes that.", reached(network))
        }
    });
    let said: Vec<String> = network.into_iter().chain(withheld).collect();
    (!said.is_empty()).then(|| said.join("\n\n"))
}

fn reached(network: &GivenNetwork) -> String {
    let what = match network.access {
        NetworkAccess::Open => "everything is reached",
        NetworkAccess::Listed => {
            "only the forge, public registries, the model and hosts of the project's secrets are reached"
        }
        NetworkAccess::Off => "only the model is reached",
    };
    if network.hosts.is_empty() {
        what.to_owned()
    } else {
        format!("{what}, and {}", network.hosts.join(", "))
    }
}

/// What the agent is told about the secrets, after what it was told before; that is empty if it was told nothing.
pub(super) fn for_agent(session: &Session, before: &str) -> Option<String> {
    let Some(secrets) = &session.sandbox.project.secrets else {
        return (!before.is_empty()).then(|| TAKEN_BACK.to_owned());
    };
    let outside = secrets.given.iter().filter(|one| !one.hosts.is_empty());
    let outside: Vec<String> =
        outside.map(|one| format!("`${}` for {}", one.name, one.hosts.join(", "))).collect();
    let inside: Vec<String> = secrets
        .given
        .iter()
        .filter(|one| one.hosts.is_empty())
        .map(|one| format!("`${}`", one.name))
        .collect();
    let none: Vec<String> = secrets.withheld.iter().map(|one| format!("`${}`", one.name)).collect();
    let limited = secrets.network.as_ref().filter(|network| !network.is_ignored);
    let parts = [
        limited
            .map(|network| format!("Network: {}. Other hosts are refused.", reached(network)))
            .or_else(|| {
                (!before.is_empty()).then(|| "The whole network can be reached.".to_owned())
            }),
        (!outside.is_empty()).then(|| {
            format!(
                "The project has secrets: {}. Each variable holds a placeholder, which is replaced on the way to these hosts alone, over https, in the headers Authorization (as Bearer), X-Api-Key and X-Goog-Api-Key.",
                outside.join("; ")
            )
        }),
        (!inside.is_empty()).then(|| {
            format!("These variables hold secrets; never print or write them: {}.", inside.join(", "))
        }),
        (!none.is_empty()).then(|| format!("Not given here: {}.", none.join(", "))),
    ];
    let said: Vec<String> = parts.into_iter().flatten().collect();
    (!said.is_empty()).then(|| format!("({})", said.join(" ")))
}
