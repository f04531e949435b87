//! Hints of the forge's webhooks: the worker looks at the forge, and acts on what it sees there alone. A binding ends
//! with its installation, a connected account with its sign-in.
//!
//! A lost hint costs no safety: each use of an installation or of a person's account finds out by itself.

use std::time::Duration;

use bobbin_core::base::failure::Failure;
use bobbin_core::protocol::drive::Verdict;
use bobbin_core::protocol::signals::{INSTALLATION_ENDED, INSTALLATION_SUSPENDED};
use bobbin_core::records::forge_hint::{ForgeHint, ForgeSubject};
use bobbin_forge::ForgeErrorKind;
use tokio::time::sleep;

use crate::arrival::Arrival;
use crate::control::Lane;
use crate::forge::StackForge;
use crate::linked::NotLinked;

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
    let looked = match hint.about {
        ForgeSubject::Installation { installation } => {
            look_at_installation(lane, forge, installation).await
        }
        ForgeSubject::Person { person } => look_at_person(lane, forge, person).await,
    };
    let Err(failure) = looked else {
        return Verdict::Done;
    };
    let limits = &lane.limits.retry;
    arrival.held(&failure, limits.control_ms, limits).unwrap_or_else(|| {
        let about = &hint.id;
        tracing::warn!(event = "forge.hint.failed", about, "a hint was given up: {failure}");
        Verdict::Done
    })
}

/// Ends the bindings of an installation that is gone.
async fn look_at_installation(
    lane: &Lane<'_>,
    forge: &StackForge,
    installation: u64,
) -> Result<(), Failure> {
    let mut seen = seen_once(forge, installation).await?;
    if seen == SeenInstallation::Ended {
        // What one look does not find may be there.
        sleep(Duration::from_millis(lane.limits.sandbox.gone_apart_ms)).await;
        seen = seen_once(forge, installation).await?;
    }
    note(installation, &seen);
    if seen != SeenInstallation::Ended {
        return Ok(());
    }
    for tenant in lane.store.bound_to(installation).await.map_err(|e| e.failure())? {
        let settings = lane.store.settings(&tenant).await.map_err(|e| e.failure())?;
        lane.rewrite(&tenant, settings, |settings| {
            settings.bindings.retain(|_, binding| binding.installation != installation);
        })
        .await?;
        tracing::info!(event = "binding.ended", %tenant, installation, "a binding has ended with its installation");
    }
    Ok(())
}

async fn seen_once(forge: &StackForge, installation: u64) -> Result<SeenInstallation, Failure> {
    match forge.client().installation_by_id(installation).await {
        Ok(found) if found.is_suspended => Ok(SeenInstallation::Suspended),
        Ok(found) => Ok(SeenInstallation::Usable { missing: found.missing }),
        Err(error) if error.kind == ForgeErrorKind::NotInstalled => Ok(SeenInstallation::Ended),
        Err(error) => Err(forge.failed(error)),
    }
}

/// Uses what a person allowed the app, for each tenant in which they did. Where that has ended, the account is
/// forgotten.
async fn look_at_person(lane: &Lane<'_>, forge: &StackForge, person: u64) -> Result<(), Failure> {
    for (tenant, who) in lane.store.linked_to(person).await.map_err(|e| e.failure())? {
        match forge.access_of(&tenant, &who).await {
            Err(NotLinked::Failed(failure)) => return Err(failure),
            Err(NotLinked::Never | NotLinked::Ended { .. } | NotLinked::Off) | Ok(_) => {}
        }
    }
    tracing::info!(
        event = "forge.authorization_seen",
        person,
        "a person has changed what they allow the app"
    );
    Ok(())
}

fn note(installation: u64, seen: &SeenInstallation) {
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
}
