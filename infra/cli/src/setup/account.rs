//! Checks that the sandbox keys open the accounts of the recorded sandboxes; gives up those sandboxes if a person
//! confirms another account.

use std::collections::BTreeMap;

use bobbin_app::accounts;
use bobbin_app::providers::{PROVIDERS, key_of, made, settings_of};
use bobbin_cloud::clock::now_ms;
use bobbin_cloud::deployed::Deployed;
use bobbin_cloud::secrets::Secret;
use bobbin_core::records::account::{Account, AccountStanding};

use super::report::Report;
use crate::target::StackTarget;

/// A provider whose current account differs from the recorded one.
struct Other {
    present: Account,
    /// Sandboxes in the recorded account.
    count: usize,
}

impl Other {
    fn sandboxes(&self) -> String {
        match self.count {
            1 => "1 sandbox".to_owned(),
            count => format!("{count} sandboxes"),
        }
    }
}

/// Refuses keys, by their names in the secret, that open accounts other than the recorded ones. A key that cannot be
/// compared is reported and let through; the functions compare it before they rely on it.
///
/// # Errors
/// Names the key, with advice.
pub async fn refuse_another(
    target: &StackTarget,
    report: &mut Report,
    keys: &BTreeMap<&str, &Secret>,
) -> Result<(), String> {
    let stack = target.stack().await?;
    for (name, key) in of_providers(keys)? {
        match compared(target, stack, (name, key)).await {
            Ok(None) => {}
            Ok(Some(other)) => {
                return Err(format!(
                    "The key for {name} belongs to another account than {} of this stack. Nothing was stored. Give a key of their account, or give them up: bobbin {} secrets --other-account",
                    other.sandboxes(),
                    target.said()
                ));
            }
            Err(why) => {
                report.note(&format!("{name}: the account of the key was not checked: {why}"))
            }
        }
    }
    Ok(())
}

/// Records the accounts of these keys in place of others, and reports what is given up.
///
/// # Errors
/// A provider or the table does not answer.
pub async fn confirm(
    target: &StackTarget,
    report: &mut Report,
    keys: &BTreeMap<&str, &Secret>,
    dry_run: bool,
) -> Result<(), String> {
    let stack = target.stack().await?;
    for (name, key) in of_providers(keys)? {
        let other = compared(target, stack, (name, key)).await;
        let other = other.map_err(|why| format!("{name}: the account was not confirmed: {why}"))?;
        let Some(other) = other else {
            report.right(&format!("{name}: the account matches the record"));
            continue;
        };
        let sandboxes = other.sandboxes();
        if dry_run {
            report.left(&format!("{name}: {sandboxes} of another account would be given up"));
            continue;
        }
        let store = stack.store()?;
        let confirmed = accounts::confirm(&store, name, &other.present, now_ms()).await;
        confirmed.map_err(|e| e.to_string())?;
        report.right(&format!(
            "{name}: {sandboxes} of another account are given up; their records show this within half an hour, or at their next prompt"
        ));
    }
    Ok(())
}

/// The providers with keys.
fn of_providers<'a>(
    keys: &BTreeMap<&str, &'a Secret>,
) -> Result<Vec<(&'static str, &'a Secret)>, String> {
    let mut found = Vec::new();
    for name in PROVIDERS {
        let key = keys.get(key_of(name)?.name());
        found.extend(key.map(|key| (name, *key)));
    }
    Ok(found)
}

/// What to report about a key. Without a recorded account no request is made.
async fn compared(
    target: &StackTarget,
    stack: &Deployed,
    (name, key): (&'static str, &Secret),
) -> Result<Option<Other>, String> {
    let store = stack.store()?;
    let Some(kept) = store.account(name).await.map_err(|e| e.to_string())? else {
        return Ok(None);
    };
    let mut overrides = target.overrides();
    overrides.providers.daytona_api = target.daytona_api();
    let of = (stack.name(), stack.id());
    let settings = settings_of(of, &overrides.providers, &overrides.limits);
    let present = made(&settings, name, key.expose())?.account().await;
    let Some(present) = present.map_err(|e| e.to_string())? else {
        return Ok(None);
    };
    if AccountStanding::of(&present, Some(&kept.record)) != AccountStanding::Other {
        return Ok(None);
    }
    let there = accounts::sandboxes_at(&store, name, &overrides.providers.provider).await;
    let count = there.map_err(|e| e.to_string())?.len();
    Ok(Some(Other { present, count }))
}
