//! Which GitHub, and as which app.

use bobbin_core::base::secret::Secret;

/// Base of the API of github.com.
const API: &str = "https://api.github.com";

/// Where a GitHub is. None ends with a slash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addresses {
    /// Base of the REST API.
    pub api: String,
    /// Base of its pages.
    pub web: String,
    /// Base of its clone addresses.
    pub git: String,
}

impl Addresses {
    /// All of them from the API's: `https://api.github.com`, `https://HOST/api/v3` of a GitHub Enterprise Server, or
    /// `https://api.NAME.ghe.com`.
    #[must_use]
    pub fn of(api: &str) -> Self {
        let api = api.trim_end_matches('/');
        let web = match api.strip_suffix("/api/v3") {
            Some(server) => server.to_owned(),
            None => api.replacen("://api.", "://", 1),
        };
        Self { api: api.to_owned(), git: web.clone(), web }
    }

    /// The address of the GraphQL API: a GitHub Enterprise Server has it beside the REST API, others below.
    #[must_use]
    pub fn graphql(&self) -> String {
        format!("{}/graphql", self.api.strip_suffix("/v3").unwrap_or(&self.api))
    }

    /// The same with this base of pages and clone addresses; an empty one leaves them.
    #[must_use]
    pub fn with_pages(self, base: &str) -> Self {
        match base.trim_end_matches('/') {
            "" => self,
            base => Self { web: base.to_owned(), git: base.to_owned(), ..self },
        }
    }
}

impl Default for Addresses {
    fn default() -> Self {
        Self::of(API)
    }
}

/// The app, and the GitHub that it belongs to.
#[derive(Debug, Clone)]
pub struct GitHubSettings {
    /// Where GitHub is.
    pub addresses: Addresses,
    /// The app's client id, or its id: the issuer of its signatures.
    pub issuer: String,
    /// The app's private key in PEM, as GitHub gives it, or base64 of that.
    pub private_key: Secret,
    /// The app's name in addresses.
    pub slug: String,
    /// The app's client id, for signing in.
    pub client_id: String,
    /// The app's client secret, for signing in.
    pub client_secret: Secret,
}

impl GitHubSettings {
    /// The page on which an owner installs the app, or changes its installation.
    pub(super) fn install_page(&self) -> String {
        let Addresses { api, web, .. } = &self.addresses;
        let apps = if api.ends_with("/api/v3") { "github-apps" } else { "apps" };
        format!("{web}/{apps}/{}/installations/new", self.slug)
    }
}
