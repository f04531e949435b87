//! The credentials with which sandboxes are created and models are called: the stack's, or a tenant's own.
//!
//! Promised: a tenant's key is opened for that tenant only, which is taken from the thread's key and never from what is
//! stored; a sandbox is called with the credentials that it was created with; no model key of the stack is ever used in
//! a tenant's own account, because the account's owner could obtain it. Opened keys exist only in memory, in clients
//! that are dropped when another key is stored. Deliberately absent: storing and removing keys (`commands::setup`).

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use bobbin_agent::models::ModelKeys;
use bobbin_cloud::aws::Aws;
use bobbin_cloud::config::Config;
use bobbin_cloud::sealing::{Seal, SealError};
use bobbin_cloud::secrets::WorkerKeys;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::Tenant;
use bobbin_core::base::secret::Secret;
use bobbin_core::records::sandbox::Phase;
use bobbin_core::records::session::Session;
use bobbin_core::tenant::commands::Command;
use bobbin_core::tenant::keys::Key;
use bobbin_core::tenant::own_keys::{OwnKey, fingerprint, sealed_for};
use bobbin_core::tenant::project_secrets::{SecretRequest, secret_sealed_for};
use bobbin_core::tenant::settings::Settings;
use bobbin_core::tenant::setup_link::{Purpose, link_token};
use bobbin_sandbox::{ErrorKind, Provider};

use crate::capped::{self, CappedKeys};
use crate::model_keys::{KeyState, ModelProvider, check_endpoint, check_key};
use crate::providers::Providers;
use crate::sandboxes::Sandboxes;
use crate::{clients, providers};

/// Tenants whose clients are kept in memory; further ones are rebuilt when needed.
const MADE_MAX: usize = 100;

/// The sandboxes of every tenant.
pub struct Tenants {
    config: Config,
    keys: WorkerKeys,
    /// With the stack's own keys.
    providers: Providers,
    stack: Arc<Sandboxes>,
    capped: Option<Arc<CappedKeys>>,
    /// `None` if tenants have no keys of their own.
    seal: Option<Seal>,
    /// All clients except the stack's first, with the sealed keys that they were built from.
    made: Mutex<HashMap<ClientsFor, MadeSandboxes>>,
}

/// Identifies a set of clients: whose account and keys, which provider and runtime.
#[derive(Clone, PartialEq, Eq, Hash)]
struct ClientsFor {
    /// `None`: the stack's keys alone.
    tenant: Option<Tenant>,
    /// In the tenant's own account.
    own: bool,
    /// `None`: the configured provider.
    provider: Option<String>,
    /// `None`: the first runtime.
    runtime: Option<String>,
}

type MadeSandboxes = (Vec<String>, Arc<Sandboxes>);

impl Tenants {
    /// With the stack's own keys, and the seal that opens tenants' keys.
    ///
    /// # Errors
    /// A sentence that names the unusable setting.
    pub fn new(aws: &Aws, config: &Config, keys: &WorkerKeys) -> Result<Self, String> {
        let arn = config.credentials_key.as_str();
        let providers = Providers::new(&providers::settings(config), keys.of_providers())?;
        let models = model_keys(|key| keys.of(key).expose().to_owned());
        let management_key = keys.of(Key::OpenRouterManagementKey);
        let capped = capped::of_stack(config, management_key)?.map(Arc::new);
        let models = (models, capped.clone());
        let stack =
            clients::sandboxes_with(config, keys, providers.configured(), models, (None, None))?;
        Ok(Self {
            seal: (!arn.is_empty()).then(|| Seal::new(aws, arn)),
            config: config.clone(),
            keys: keys.clone(),
            providers,
            stack: Arc::new(stack),
            capped,
            made: Mutex::default(),
        })
    }

    /// The sandboxes with the stack's keys, at the configured provider.
    #[must_use]
    pub fn of_stack(&self) -> Arc<Sandboxes> {
        Arc::clone(&self.stack)
    }

    /// Whether tenants can store keys here.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.seal.is_some()
    }

    /// The address of the page of a requested link; `None` if the page's address is not known.
    #[must_use]
    pub fn link(
        &self,
        tenant: &Tenant,
        person: &str,
        purpose: Purpose,
        request: &str,
    ) -> Option<(String, String)> {
        let base = Some(self.config.chats.page_url.as_str()).filter(|base| !base.is_empty())?;
        let stack_key = self.keys.of(Key::StackKey).expose();
        let token = link_token(stack_key, tenant, person, purpose, request);
        Some((format!("{base}setup/{token}"), token))
    }

    /// Distinguishes one key from another.
    #[must_use]
    pub fn fingerprint(&self, key: Key, value: &Secret) -> String {
        fingerprint(self.keys.of(Key::StackKey).expose(), key, value.expose())
    }

    /// Opens a tenant's stored keys.
    ///
    /// # Errors
    /// [`SealError`]; [`SealError::Refused`] if keys are not switched on.
    pub async fn opened(
        &self,
        tenant: &Tenant,
        key: Key,
        sealed: &str,
    ) -> Result<Secret, SealError> {
        self.open(sealed, &sealed_for(&self.config.stack, tenant, key)).await
    }

    /// Opens what was entered for a project's secret.
    ///
    /// # Errors
    /// As [`Tenants::opened`].
    pub async fn opened_secret(
        &self,
        tenant: &Tenant,
        wish: &SecretRequest,
        sealed: &str,
    ) -> Result<Secret, SealError> {
        self.open(sealed, &secret_sealed_for(&self.config.stack, tenant, wish)).await
    }

    async fn open(
        &self,
        sealed: &str,
        context: &BTreeMap<String, String>,
    ) -> Result<Secret, SealError> {
        let Some(seal) = &self.seal else {
            return Err(SealError::Refused(NOT_ON.to_owned()));
        };
        seal.open(sealed, context).await
    }

    /// Opens the secrets of a project.
    ///
    /// # Errors
    /// KMS does not answer. A value that does not open is left out.
    pub async fn project_secrets(
        &self,
        tenant: &Tenant,
        settings: &Settings,
        repository: &str,
    ) -> Result<Vec<(SecretRequest, Option<Secret>)>, Failure> {
        let stored = settings.project_secrets.of(repository).into_iter().flatten();
        let opened = stored.map(|(name, secret)| async move {
            let wish = secret.wish(repository, name);
            match self.opened_secret(tenant, &wish, &secret.sealed).await {
                Ok(value) => Ok((wish, Some(value))),
                Err(SealError::Later(seen)) => Err(Failure::Wait { after_ms: 0, seen }),
                Err(error) => {
                    tracing::warn!(event = "project.secret.unopened", %tenant, repository, name, %error, "a project's secret does not open");
                    Ok((wish, None))
                }
            }
        });
        futures::future::try_join_all(opened).await
    }

    /// Checks a key with its provider.
    pub async fn tried(&self, tenant: &Tenant, key: Key, value: &Secret) -> KeyState {
        let own_endpoint = self.config.agents.model_base_url.as_str();
        match ModelProvider::of(key) {
            Some(ModelProvider::OpenAi) if !own_endpoint.is_empty() => {
                check_endpoint(own_endpoint, value).await
            }
            Some(provider) => check_key(provider, provider.base(), value).await,
            None => match self.account(value) {
                Ok(account) => match account.count(tenant, None).await {
                    Ok(_) => KeyState::Valid(String::new()),
                    Err(error) if error.kind == ErrorKind::KeyRefused => KeyState::Refused,
                    Err(error) => KeyState::Unclear(error.to_string()),
                },
                Err(why) => KeyState::Unclear(why),
            },
        }
    }

    /// The sandbox provider with a key.
    ///
    /// # Errors
    /// A sentence that names the unusable setting.
    pub fn account(&self, value: &Secret) -> Result<Arc<dyn Provider>, String> {
        providers::of_tenant(&self.config, value.expose())
    }

    /// The sandboxes for a thread: with the credentials of its sandbox, or those that a new one would get.
    ///
    /// # Errors
    /// As [`Tenants::of`].
    pub async fn of_record(
        &self,
        tenant: &Tenant,
        session: Option<&Session>,
        settings: &Settings,
    ) -> Result<Arc<Sandboxes>, Failure> {
        let living = session
            .filter(|session| !matches!(session.sandbox.phase, Phase::Destroyed | Phase::Error));
        let own = match living {
            Some(session) => session.sandbox.spec.credentials.is_some(),
            None => settings.sandbox_credentials().is_some(),
        };
        let sandbox = session.map(|session| &session.sandbox);
        let provider = sandbox.and_then(|sandbox| sandbox.spec.provider.as_deref());
        let runtime = sandbox.and_then(|sandbox| sandbox.spec.runtime.as_deref());
        self.of(tenant, settings, own, (provider, runtime)).await
    }

    /// Name of the default provider of new sandboxes.
    #[must_use]
    pub fn configured(&self) -> &str {
        &self.config.providers.provider
    }

    /// The providers set up with the stack's keys.
    #[must_use]
    pub fn set_up(&self) -> &Providers {
        &self.providers
    }

    /// The sandboxes of a tenant: in its own account, or in the stack's at this provider (without a name, the
    /// configured one). At a named provider without tenants' own accounts it is always the stack's. With the runtime of
    /// this name, or the first one.
    ///
    /// # Errors
    /// What to do: a key does not open or is missing, KMS does not answer, or the provider does not exist.
    pub async fn of(
        &self,
        tenant: &Tenant,
        settings: &Settings,
        own: bool,
        (provider, runtime): (Option<&str>, Option<&str>),
    ) -> Result<Arc<Sandboxes>, Failure> {
        let own = own && provider.is_none_or(|name| name == providers::OF_TENANTS);
        let elsewhere = provider.filter(|name| !own && *name != self.configured());
        let needed = |key: &Key| own || *key != Key::OF_ACCOUNT;
        let stored: Vec<(Key, &OwnKey)> = Key::OF_TENANTS
            .into_iter()
            .filter(needed)
            .filter_map(|key| Some((key, settings.own_key(key)?)))
            .collect();
        if !own && stored.is_empty() && elsewhere.is_none() && runtime.is_none() {
            return Ok(self.of_stack());
        }
        let sealed: Vec<String> = stored.iter().map(|(_, own)| own.sealed.clone()).collect();
        let place = ClientsFor {
            tenant: (!stored.is_empty() || own).then(|| tenant.clone()),
            own,
            provider: elsewhere.map(str::to_owned),
            runtime: runtime.map(str::to_owned),
        };
        if let Some((of, sandboxes)) = self.lock().get(&place)
            && *of == sealed
        {
            return Ok(Arc::clone(sandboxes));
        }
        let opened = stored.iter().map(|(key, own)| async move {
            let value = self.opened(tenant, *key, &own.sealed).await;
            value.map(|value| (*key, value)).map_err(|e| unopened(*key, &e, tenant))
        });
        let opened = futures::future::try_join_all(opened).await?;
        let sandboxes = Arc::new(self.made(tenant, &place, &opened)?);
        let mut made = self.lock();
        if made.len() >= MADE_MAX {
            made.clear();
        }
        made.insert(place, (sealed, Arc::clone(&sandboxes)));
        Ok(sandboxes)
    }

    fn made(
        &self,
        tenant: &Tenant,
        place: &ClientsFor,
        opened: &[(Key, Secret)],
    ) -> Result<Sandboxes, Failure> {
        let own = place.own;
        let of = |key: Key| opened.iter().find(|(of, _)| *of == key).map(|(_, value)| value);
        // In its own account the tenant could read what is put into a sandbox, or send it elsewhere.
        let model = |key: Key| match of(key) {
            Some(value) => value.expose().to_owned(),
            None if own => String::new(),
            None => self.keys.of(key).expose().to_owned(),
        };
        // Whoever brings a key of their own pays for it, and not the operator.
        let paid = [Key::OpenRouterApiKey, Key::OpenAiApiKey].iter().any(|key| of(*key).is_some());
        let capped = self.capped.clone().filter(|_| !own && !paid);
        let models = (model_keys(model), capped);
        let account = match (own, of(Key::OF_ACCOUNT)) {
            (true, Some(value)) => {
                self.account(value).map_err(|advice| Failure::NonRecoverable { advice })?
            }
            (true, None) => {
                return Err(Failure::NonRecoverable {
                    advice: format!(
                        "This sandbox was created with this server's or workspace's own {} key, which has been removed since. {}",
                        Key::OF_ACCOUNT.brand(),
                        again(tenant)
                    ),
                });
            }
            (false, _) => self.providers.named(place.provider.as_deref())?,
        };
        let of = (place.tenant.as_ref(), place.runtime.as_deref());
        let made = clients::sandboxes_with(&self.config, &self.keys, account, models, of);
        made.map_err(|advice| Failure::NonRecoverable { advice })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<ClientsFor, MadeSandboxes>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The keys for calling models.
fn model_keys(of: impl Fn(Key) -> String) -> ModelKeys {
    ModelKeys {
        anthropic: of(Key::AnthropicApiKey),
        openai: of(Key::OpenAiApiKey),
        openrouter: of(Key::OpenRouterApiKey),
    }
}

/// Reply if tenants cannot store keys.
pub const NOT_ON: &str = "Servers and workspaces cannot store their own keys here. The operator switches this on with the template's parameter TenantCredentials.";
/// Advice for a key that is missing or does not open.
fn again(tenant: &Tenant) -> String {
    let setup = tenant.command(Command::Setup);
    format!("Somebody who manages the server or workspace stores it again with `{setup}`.")
}

fn unopened(key: Key, error: &SealError, tenant: &Tenant) -> Failure {
    match error {
        SealError::Broken => Failure::NonRecoverable {
            advice: format!(
                "The {} key of this server or workspace cannot be decrypted: it is damaged, or was stored for another one. {}",
                key.brand(),
                again(tenant)
            ),
        },
        other => other.failure(),
    }
}
