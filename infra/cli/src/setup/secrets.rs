//! Step "secrets": stores keys from the environment or a hidden prompt in the stack's secrets. Keys not given stay as
//! they are; the report names the keys that change, never a value.

use std::collections::BTreeMap;
use std::io::IsTerminal;

use bobbin_cloud::secrets::Secret;
use bobbin_core::tenant::keys::Key;
use clap::Args;

use super::account;
use super::report::Report;
use crate::keys::{KEYS, OUTPUTS, ProvidedKey, named};
use crate::target::{StackTarget, of_environment};

/// Store keys in the stack's secrets, or remove them.
#[derive(Debug, Clone, Default, Args)]
pub struct SecretsOptions {
    /// Use only the keys in the environment, and ask for none
    #[arg(long)]
    pub from_env: bool,
    /// Remove this key (repeatable), by its name in the environment; nothing is stored then
    #[arg(long, value_name = "NAME", value_parser = |name: &str| named(name))]
    pub forget: Vec<&'static ProvidedKey>,
    /// Replace this key only (repeatable)
    #[arg(long, value_name = "NAME", value_parser = |name: &str| named(name), conflicts_with = "forget")]
    pub replace: Vec<&'static ProvidedKey>,
    /// Give up sandboxes that are in another account than the keys, and record the current accounts
    #[arg(long, conflicts_with = "forget")]
    pub other_account: bool,
    /// Show what would change, and write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// It is one of many steps, which may have no key to store.
    #[arg(skip)]
    pub is_step: bool,
}

/// Change to a key.
enum KeyChange {
    Set(Secret),
    Forget,
}

type KeyChanges = BTreeMap<&'static str, (&'static ProvidedKey, KeyChange)>;

/// Stores or removes keys.
///
/// # Errors
/// The stack or its secrets cannot be reached; with advice.
pub async fn run(
    target: &StackTarget,
    report: &mut Report,
    options: &SecretsOptions,
) -> Result<(), String> {
    let changes = if !options.forget.is_empty() {
        let forget = |key: &&'static ProvidedKey| (key.name(), (*key, KeyChange::Forget));
        options.forget.iter().map(forget).collect()
    } else if !options.replace.is_empty() {
        replaced(target, options).await?
    } else {
        let mut changes = given();
        if !options.from_env && std::io::stdin().is_terminal() {
            typed(target, &mut changes).await?;
        }
        changes
    };
    if changes.is_empty() && !options.is_step && !options.other_account {
        target.stack().await?;
        report.left("No key was given, so nothing is stored; --replace NAME asks for one that the stack has");
        return Ok(());
    }
    if !options.other_account {
        let set = changes.values().filter_map(|(key, change)| match change {
            KeyChange::Set(value) => Some((key.name(), value)),
            KeyChange::Forget => None,
        });
        account::refuse_another(target, report, &set.collect()).await?;
        return write(target, report, changes, options.dry_run).await;
    }
    let mut keys = BTreeMap::new();
    for (key, value) in target.stored().await? {
        keys.insert(key.name(), value.clone());
    }
    for (name, (_, change)) in &changes {
        if let KeyChange::Set(value) = change {
            keys.insert(*name, value.clone());
        }
    }
    write(target, report, changes, options.dry_run).await?;
    let keys = keys.iter().map(|(name, key)| (*name, key)).collect();
    account::confirm(target, report, &keys, options.dry_run).await
}

/// Stores these keys.
///
/// # Errors
/// As [`run`].
pub async fn store(
    target: &StackTarget,
    report: &mut Report,
    keys: Vec<(Key, Secret)>,
) -> Result<(), String> {
    let mut changes = KeyChanges::new();
    for (key, value) in keys {
        let provided = named(key.name())?;
        changes.insert(provided.name(), (provided, KeyChange::Set(value)));
    }
    write(target, report, changes, false).await
}

/// Options that remove every key: the undo of the step.
#[must_use]
pub fn forget_all(dry_run: bool) -> SecretsOptions {
    SecretsOptions {
        from_env: true,
        forget: KEYS.iter().collect(),
        dry_run,
        ..SecretsOptions::default()
    }
}

fn given() -> KeyChanges {
    let given = KEYS.iter().filter_map(|key| Some((key, of_environment(key)?)));
    given.map(|(key, value)| (key.name(), (key, KeyChange::Set(value)))).collect()
}

/// Prompts for keys that neither the environment nor the stack has.
async fn typed(target: &StackTarget, changes: &mut KeyChanges) -> Result<(), String> {
    let stored = target.stored().await?;
    for key in &KEYS {
        let known = changes.contains_key(key.name()) || stored.iter().any(|(one, _)| *one == key);
        if known {
            continue;
        }
        if let Some(value) = prompted(key)? {
            changes.insert(key.name(), (key, KeyChange::Set(value)));
        }
    }
    Ok(())
}

/// The values that replace those of the stack: typed, or where nobody is asked those of the environment.
async fn replaced(target: &StackTarget, options: &SecretsOptions) -> Result<KeyChanges, String> {
    let stored = target.stored().await?;
    let is_asked = !options.from_env && std::io::stdin().is_terminal();
    let mut changes = KeyChanges::new();
    for key in &options.replace {
        let value = if is_asked { prompted(key)? } else { of_environment(key) };
        let value = value.ok_or_else(|| {
            format!(
                "No {} was given, so nothing is stored. Type it in a terminal, or set {} and add --from-env.",
                key.title, key.variable
            )
        })?;
        if stored.iter().any(|(one, had)| one == key && *had == value) {
            return Err(format!(
                "The stack has this {} already, so nothing is stored. Create a new one: {}.",
                key.title, key.found
            ));
        }
        changes.insert(key.name(), (*key, KeyChange::Set(value)));
    }
    Ok(changes)
}

/// Asks for a key in the terminal; `None` if it is skipped.
fn prompted(key: &ProvidedKey) -> Result<Option<Secret>, String> {
    tell!("  {} ({})", key.title, key.found);
    let line = rpassword::prompt_password(
        "  Type or paste it (it is not shown), or press Enter to skip it: ",
    )
    .map_err(|e| {
        format!(
            "The terminal cannot be read: {e}. Give the keys in the environment, with --from-env."
        )
    })?;
    let line = line.trim();
    Ok((!line.is_empty()).then(|| Secret::from(line.to_owned())))
}

async fn write(
    target: &StackTarget,
    report: &mut Report,
    changes: KeyChanges,
    dry_run: bool,
) -> Result<(), String> {
    let stack = target.stack().await?;
    if changes.is_empty() {
        report.note("No key was given, so nothing is stored.");
    }
    let mut changed = false;
    for output in OUTPUTS {
        let here: Vec<&(&ProvidedKey, KeyChange)> =
            changes.values().filter(|(key, _)| key.output() == output).collect();
        if here.is_empty() {
            continue;
        }
        let mut ring = stack.keyring(output).await?;
        let mut lines = Vec::new();
        for (key, change) in here {
            let (differs, line) = match change {
                KeyChange::Set(value) => {
                    let had = ring.get(key.name()).is_some();
                    let differs = ring.set(key.name(), value);
                    (differs, words(key, differs, had, dry_run))
                }
                KeyChange::Forget => {
                    let differs = ring.forget(key.name());
                    (differs, forgotten(key, differs, dry_run))
                }
            };
            lines.push((differs, line));
        }
        let differs = lines.iter().any(|(differs, _)| *differs);
        if differs && !dry_run {
            ring.save().await?;
            changed = true;
        }
        for (differs, line) in lines {
            if differs && dry_run {
                report.left(&line);
            } else {
                report.right(&line);
            }
        }
    }
    if changed {
        report.note("The functions use a changed key automatically; no deployment is needed.");
    }
    Ok(())
}

fn words(key: &ProvidedKey, differs: bool, had: bool, dry_run: bool) -> String {
    let what = match (differs, had, dry_run) {
        (false, ..) => "is already stored",
        (true, false, false) => "is now stored",
        (true, true, false) => "was another one and is replaced",
        (true, false, true) => "would be stored",
        (true, true, true) => "would replace another one",
    };
    format!("{} {what}", key.title)
}

fn forgotten(key: &ProvidedKey, differs: bool, dry_run: bool) -> String {
    let what = match (differs, dry_run) {
        (false, _) => "was not stored",
        (true, false) => "is forgotten",
        (true, true) => "would be forgotten",
    };
    format!("{} {what}", key.title)
}
