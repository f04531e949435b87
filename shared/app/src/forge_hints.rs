//! Hints of the forge's webhooks: the worker looks at the forge, and acts on what it sees there alone.
//!
//! A lost hint costs no safety: each use of an installation or of a person's account finds out by itself.

use bobbin_core::protocol::drive::Verdict;
use bobbin_core::protocol::signals::{INSTALLATION_ENDED, INSTALLATION_SUSPENDED};
use bobbin_core::records::forge_hint::{ForgeHint, ForgeSubject};
use bobbin_forge::ForgeErrorKind;

use crate::arrival::Arrival;
use crate::control::Lane;

/// What the forge said of an installation.
#[derive(Debug, Clone, PartialEq, Eq)]
enum SeenInstallation {
    /// It may be used.
    Usable {
        /// Permissions that its owner has not granted.
        missing: Vec<String>,
    },
    /// Its owner has suspended it.
    Suspended,
    /// There is none any more.
    Ended,
}

/// Looks into a hint.
pub async fn look(lane: &Lane<'_>, hint: &ForgeHint, arrival: Arrival) -> Verdict {
    let Some(forge) = lane.forge else {
        tracing::info!(event = "forge.hint.unused", "a webhook came, and this stack has no forge");
        return Verdict::Done;
    };
    let installation = match hint.about {
        ForgeSubject::Installation { installation } => installation,
        ForgeSubject::Person { person } => {
            let event = "forge.authorization_revoked";
            tracing::info!(event, person, "a person has taken back what they allowed the app");
            return Verdict::Done;
        }
    };
    let failure = match forge.client().installation_by_id(installation).await {
        Ok(found) if found.is_suspended => {
            return acted(installation, &SeenInstallation::Suspended);
        }
        Ok(found) => {
            let seen = SeenInstallation::Usable { missing: found.missing };
            return acted(installation, &seen);
        }
        Err(error) if error.kind == ForgeErrorKind::NotInstalled => {
            return acted(installation, &SeenInstallation::Ended);
        }
        Err(error) => forge.failed(error),
    };
    let limits = &lane.limits.retry;
    arrival.held(&failure, limits.control_ms, limits).unwrap_or_else(|| {
        tracing::warn!(
            event = "forge.hint.failed",
            installation,
            "an installation could not be looked at: {failure}"
        );
        Verdict::Done
    })
}

fn acted(installation: u64, seen: &SeenInstallation) -> Verdict {
    match seen {
        SeenInstallation::Ended => {
            tracing::warn!(event = INSTALLATION_ENDED, installation, "an installation has ended");
        }
        SeenInstallation::Suspended => tracing::warn!(
            event = INSTALLATION_SUSPENDED,
            installation,
            "the owner has suspended an installation"
        ),
        SeenInstallation::Usable { missing } => tracing::info!(
            event = "forge.installation_seen",
            installation,
            missing = missing.join(", "),
            "an installation has changed, and may be used"
        ),
    }
    Verdict::Done
}
