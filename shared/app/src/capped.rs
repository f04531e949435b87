//! Capped keys at their vendor: made with a limit, given another one for each turn, and deleted, by their names alone.
//!
//! Promised: only a key whose name begins with this stack's id is ever changed or deleted, and the management key goes
//! nowhere but to the vendor. Deliberately absent: any record of a key.

use std::collections::{BTreeMap, BTreeSet};

use bobbin_agent::ModelKey;
use bobbin_agent::openrouter::{KeyMaker, KeyMakerError, ListedKey, MadeKey};
use bobbin_cloud::config::Config;
use bobbin_cloud::store::{RECORDS_MAX, Store};
use bobbin_core::base::ids::{Ms, SandboxKey, TurnId};
use bobbin_core::base::secret::Secret;
use bobbin_core::protocol::decide::orphan::{Graces, is_orphan_key};
use bobbin_core::tenant::budgets::{MicroUsd, RESERVED_MIN};
use bobbin_core::tenant::capped_keys::{CappedKeyName, KeyLimit};
use bobbin_http::host_of;

/// A key of this stack, with what its name says.
pub type NamedKey = (ListedKey, CappedKeyName);

/// The keys of one stack.
#[derive(Debug)]
pub struct CappedKeys {
    maker: KeyMaker,
    stack_id: String,
}

impl CappedKeys {
    /// For the stack with this id, at the API with this base; `None` without a management key.
    ///
    /// # Errors
    /// A sentence that names the unusable setting.
    pub fn new(
        base: &str,
        management_key: &Secret,
        stack_id: &str,
    ) -> Result<Option<Self>, String> {
        if management_key.is_empty() {
            return Ok(None);
        }
        let maker = KeyMaker::new(base, management_key.clone())
            .map_err(|e| format!("openrouter_api of the parameter Overrides: {e}"))?;
        Ok(Some(Self { maker, stack_id: stack_id.to_owned() }))
    }

    /// Whether a capped key can stand in for this model key: it is for the vendor's own API.
    #[must_use]
    pub fn replaces(&self, key: &ModelKey) -> bool {
        match &key.endpoint {
            Some(endpoint) => endpoint.trim_end_matches('/') == self.maker.base(),
            None => host_of(self.maker.base()).is_some_and(|host| key.hosts.contains(&host)),
        }
    }

    /// Every key of the stack.
    ///
    /// # Errors
    /// [`KeyMakerError`].
    pub async fn all(&self) -> Result<Vec<NamedKey>, KeyMakerError> {
        let all = self.maker.list().await?.into_iter();
        let named = |key: ListedKey| {
            let name = CappedKeyName::parse(&self.stack_id, &key.name)?;
            Some((key, name))
        };
        Ok(all.filter_map(named).collect())
    }

    /// The keys of a generation of a sandbox, the newest last.
    ///
    /// # Errors
    /// [`KeyMakerError`].
    pub async fn of(
        &self,
        sandbox: &SandboxKey,
        generation: u32,
    ) -> Result<Vec<NamedKey>, KeyMakerError> {
        let mut own = self.all().await?;
        own.retain(|(_, name)| name.sandbox == *sandbox && name.generation == generation);
        own.sort_by_key(|(_, name)| name.made_ms);
        Ok(own)
    }

    /// Makes a key.
    ///
    /// # Errors
    /// [`KeyMakerError`]; the key may exist all the same, and is deleted with the others of its name.
    pub async fn make(
        &self,
        name: &CappedKeyName,
        limit: MicroUsd,
    ) -> Result<MadeKey, KeyMakerError> {
        let limit = limit.max(RESERVED_MIN);
        self.maker.make(&name.text(&self.stack_id), limit, name.until_ms()).await
    }

    /// Gives the newest key of a generation its limit for this turn, unless it has that already.
    ///
    /// # Errors
    /// [`KeyMakerError`].
    pub async fn limit(
        &self,
        (sandbox, generation): (&SandboxKey, u32),
        turn: &TurnId,
        limit: KeyLimit,
    ) -> Result<(), KeyMakerError> {
        let own = self.of(sandbox, generation).await?;
        let Some((key, name)) = own.last().filter(|(_, name)| !name.has_limit_for(turn)) else {
            return Ok(());
        };
        let more = match limit {
            KeyLimit::Dollars(more) => Some(more),
            KeyLimit::Unlimited => None,
        };
        let name = name.with_limit_for(turn).text(&self.stack_id);
        self.maker.limit(key, &name, more).await
    }

    /// Deletes these keys.
    ///
    /// # Errors
    /// The last [`KeyMakerError`], after all others were tried.
    pub async fn delete(&self, keys: &[NamedKey]) -> Result<(), KeyMakerError> {
        let mut trouble = None;
        for (key, _) in keys {
            trouble = self.maker.delete(&key.hash).await.err().or(trouble);
        }
        trouble.map_or(Ok(()), Err)
    }

    /// Deletes a key that was made a moment ago.
    ///
    /// # Errors
    /// [`KeyMakerError`].
    pub async fn take_back(&self, made: &MadeKey) -> Result<(), KeyMakerError> {
        self.maker.delete(&made.hash).await
    }
}

/// The keys of this process's stack; `None` without a management key.
///
/// # Errors
/// A sentence that names the unusable setting.
pub fn of_stack(config: &Config, management_key: &Secret) -> Result<Option<CappedKeys>, String> {
    CappedKeys::new(&config.agents.openrouter_api, management_key, &config.stack_id)
}

/// Those of the stack's keys that belong to no live generation. The keys were listed first.
///
/// # Errors
/// What was seen: without its record no key is judged.
pub async fn orphans(
    store: &Store,
    keys: Vec<NamedKey>,
    now_ms: Ms,
    graces: Graces,
) -> Result<Vec<NamedKey>, String> {
    let owners: BTreeSet<SandboxKey> = keys.iter().map(|(_, name)| name.sandbox.clone()).collect();
    let mut records = BTreeMap::new();
    for some in owners.into_iter().collect::<Vec<_>>().chunks(RECORDS_MAX) {
        let some = some.iter().cloned().collect();
        records.extend(store.sandboxes(&some).await.map_err(|e| e.to_string())?);
    }
    let is_orphan = |(_, name): &NamedKey| match records.get(&name.sandbox) {
        Some(Ok(record)) => is_orphan_key(record.as_ref(), name, now_ms, graces),
        Some(Err(_)) | None => false,
    };
    Ok(keys.into_iter().filter(is_orphan).collect())
}

/// What a key may still spend, in millionths of a US dollar; `None`: any amount.
#[must_use]
pub fn left(key: &ListedKey) -> Option<MicroUsd> {
    let left = (key.limit? - key.usage).max(0.0) * 1_000_000.0;
    Some(left.round() as MicroUsd)
}

/// When the newest of these keys ends.
#[must_use]
pub fn until_ms(keys: &[NamedKey]) -> Option<Ms> {
    keys.last().map(|(_, name)| name.until_ms())
}
