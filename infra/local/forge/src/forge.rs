//! A forge from start to stop, as its owner sees it.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use bobbin_local_breakpoint::own_only;
use bobbin_local_sandbox::serve;
use tokio::net::TcpListener;

use crate::api_error::ApiError;
use crate::git::check_version;
use crate::git::merge::Method;
use crate::limits::STOP_MS_MAX;
use crate::pulls::{self, Changed, Merge};
use crate::rest::{self, NewRepository};
use crate::seeds::ForgeIdentity;
use crate::settings::{ForgeSettings, ForgeStartError};
use crate::state::{Addresses, Engine, SharedEngine};
use crate::view::{self, PullRequestView, RepositoryView};
use crate::{planting, web, webhooks};

/// A running forge. Dropping it without [`LocalForge::stop`] leaves its tasks to the end of the runtime.
pub struct LocalForge {
    engine: SharedEngine,
    identity: ForgeIdentity,
}

/// Listeners on one port: loopback, and a second address if one is given.
struct ForgeListeners {
    port: u16,
    all: Vec<TcpListener>,
}

impl ForgeListeners {
    async fn open(settings: &ForgeSettings, port: u16) -> Result<Self, ForgeStartError> {
        let refused =
            |source| ForgeStartError::Io { what: format!("binding 127.0.0.1:{port}"), source };
        let loopback = TcpListener::bind(("127.0.0.1", port)).await.map_err(refused)?;
        let port = loopback.local_addr().map_err(refused)?.port();
        let also = serve::also_on(settings.also_on, port).await.map_err(refused)?;
        Ok(Self { port, all: [Some(loopback), also].into_iter().flatten().collect() })
    }

    fn serve(self, engine: &SharedEngine, name: &'static str, router: Router) {
        let router = engine.settings.breakpoints.before(name, serve::peer, router);
        for listener in self.all {
            let served = serve::run(listener, router.clone(), engine.stopping.clone());
            engine.tasks.spawn(served);
        }
    }
}

impl LocalForge {
    /// Starts a forge; the first time with its seeds.
    ///
    /// # Errors
    /// See [`ForgeStartError`].
    pub async fn start(settings: ForgeSettings) -> Result<LocalForge, ForgeStartError> {
        // Another part of this program may have installed it: just as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let no_redirects = reqwest::redirect::Policy::none();
        let http = reqwest::Client::builder().redirect(no_redirects).no_proxy().build()?;
        let api = ForgeListeners::open(&settings, settings.api_port).await?;
        let web = ForgeListeners::open(&settings, settings.web_port).await?;
        let at = |port: u16| format!("http://127.0.0.1:{port}");
        let addresses = Addresses { api: at(api.port), web: at(web.port) };
        let failed = |source| ForgeStartError::Io { what: "opening its state".to_owned(), source };
        let engine = Arc::new(Engine::open(settings, addresses, http).map_err(failed)?);
        check_version(&engine.home_dir()).await.map_err(ForgeStartError::Git)?;
        let identity = planting::plant(&engine).await?;
        let own = own_only(rest::router(&engine), engine.settings.also_named.clone());
        api.serve(&engine, "forge", own);
        web.serve(&engine, "git", web::router(&engine));
        Ok(LocalForge { engine, identity })
    }

    /// Base of the REST API, like `https://api.github.com`: `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn api(&self) -> String {
        self.engine.addresses.api.clone()
    }

    /// Base of clone addresses and pages, like `https://github.com`: `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn git(&self) -> String {
        self.engine.addresses.web.clone()
    }

    /// What a client needs to know, secrets included. The same after a restart.
    #[must_use]
    pub fn identity(&self) -> ForgeIdentity {
        self.identity.clone()
    }

    /// Sets where the seeded app is told of events, where people are sent back to, and where they go after installing
    /// it. A new address for events is pinged.
    ///
    /// # Errors
    /// The state file failed.
    pub fn set_app_addresses(
        &self,
        webhook: Option<String>,
        callbacks: Vec<String>,
        setup: Option<String>,
    ) -> Result<(), String> {
        let changed = self.engine.change(|inner| {
            let app = inner.apps.get_mut(&self.identity.app_id).ok_or_else(ApiError::not_found)?;
            let is_new = app.webhook != webhook && webhook.is_some();
            (app.webhook, app.callbacks, app.setup) = (webhook, callbacks, setup);
            Ok(is_new.then(|| app.clone()))
        });
        if let Some(app) = changed.map_err(told)? {
            webhooks::ping(&self.engine, &app);
        }
        Ok(())
    }

    /// An address that signs a browser in, once, and sends it on to a path of the forge. `None` without such a person.
    #[must_use]
    pub fn sign_in_url(&self, login: &str, path: &str) -> Option<String> {
        let person = self.engine.lock().account_of(login).ok()?.id;
        let ticket = web::session::ticket(&self.engine, person);
        let to: String = form_urlencoded::byte_serialize(path.as_bytes()).collect();
        Some(format!("{}/login/with/{ticket}?return_to={to}", self.git()))
    }

    /// Makes a repository of the seeded organisation with a first commit, in its administrator's name, and answers its
    /// address for clones.
    ///
    /// # Errors
    /// The name is no name, or taken.
    pub async fn create_repository(&self, name: &str, is_private: bool) -> Result<String, String> {
        let (owner, person) = {
            let inner = self.engine.lock();
            let owner = inner.account_of(&self.identity.organization).map_err(told)?.id;
            (owner, inner.account_of(&self.identity.administrator).map_err(told)?.id)
        };
        let new = NewRepository {
            name: name.to_owned(),
            private: is_private,
            auto_init: true,
            ..NewRepository::default()
        };
        let made = rest::make(&self.engine, owner, person, new).await.map_err(told)?;
        Ok(format!("{}/{}/{}.git", self.git(), self.identity.organization, made.name))
    }

    /// Every repository with its branches and pull requests, by name.
    ///
    /// # Errors
    /// Git failed.
    pub async fn repositories(&self) -> Result<Vec<RepositoryView>, String> {
        view::repositories(&self.engine).await.map_err(told)
    }

    /// One pull request with its files; the repository is `owner/name`.
    ///
    /// # Errors
    /// There is none, or git failed.
    pub async fn pull_request(
        &self,
        repository: &str,
        number: u64,
    ) -> Result<PullRequestView, String> {
        view::pull_request(&self.engine, repository, number).await.map_err(told)
    }

    /// Merges a pull request in the administrator's name, if its head is still the one that was seen.
    ///
    /// # Errors
    /// Why it cannot be merged, in GitHub's words.
    pub async fn merge(
        &self,
        repository: &str,
        number: u64,
        seen_sha: Option<String>,
    ) -> Result<(), String> {
        let (id, person) = self.target(repository)?;
        let how = Merge {
            sha: seen_sha,
            method: Method::Merge,
            title: None,
            message: None,
            by_queue: false,
        };
        pulls::merge(&self.engine, id, number, person, how).await.map(drop).map_err(told)
    }

    /// Closes a pull request in the administrator's name.
    ///
    /// # Errors
    /// Why it cannot be closed.
    pub async fn close(&self, repository: &str, number: u64) -> Result<(), String> {
        let changed = Changed { is_open: Some(false), ..Changed::default() };
        self.change(repository, number, changed).await
    }

    /// Marks a draft as ready for review in the administrator's name.
    ///
    /// # Errors
    /// Why it cannot be changed.
    pub async fn mark_ready(&self, repository: &str, number: u64) -> Result<(), String> {
        let changed = Changed { is_draft: Some(false), ..Changed::default() };
        self.change(repository, number, changed).await
    }

    async fn change(&self, repository: &str, number: u64, changed: Changed) -> Result<(), String> {
        let (id, person) = self.target(repository)?;
        pulls::update(&self.engine, id, number, person, changed).await.map(drop).map_err(told)
    }

    fn target(&self, repository: &str) -> Result<(u64, u64), String> {
        let inner = self.engine.lock();
        let found = repository.split_once('/').and_then(|(owner, name)| inner.named(owner, name));
        let found = found.ok_or_else(|| format!("There is no repository {repository}"))?.id;
        let person = inner.account_of(&self.identity.administrator).map_err(told)?.id;
        Ok((found, person))
    }

    /// Stops serving, and waits (bounded) for open requests and webhooks.
    pub async fn stop(self) {
        self.engine.stopping.cancel();
        self.engine.tasks.close();
        let bound = Duration::from_millis(STOP_MS_MAX);
        if tokio::time::timeout(bound, self.engine.tasks.wait()).await.is_err() {
            tracing::warn!("the forge stopped before all of its answers were sent");
        }
    }
}

/// A refusal in one line, with the sentences of its errors.
fn told(error: ApiError) -> String {
    let errors = error.errors.as_ref().and_then(|errors| errors.as_array());
    let messages = errors.into_iter().flatten().filter_map(|one| one["message"].as_str());
    let all: Vec<&str> = std::iter::once(error.message.as_str()).chain(messages).collect();
    all.join(": ")
}
