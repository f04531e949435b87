//! What the operator's check asks of GitHub: the app itself, its installations, and where its webhooks go.

use serde::Deserialize;
use serde_json::Value;

use super::app::App;
use super::client::{GitHub, PAGE_ITEMS, PAGES_MAX};
use super::repositories::InstallationBody;
use super::rest::{By, Call, has};
use crate::error::{ForgeError, ForgeResult};
use crate::forge::Installation;

/// GitHub's words for a signature from a wrong clock; octokit's `auth-app` 8.3 goes by the same.
const CLOCK: [&str; 2] = ["'Issued at' claim ('iat')", "'Expiration time' claim ('exp')"];

/// Why the app is not known by its signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotTheApp {
    /// This machine's clock is wrong.
    Clock,
    /// The key is not one of the app's.
    Key,
    /// There is no app with this id.
    Id,
    /// Another error; a key that cannot be read is one.
    Failed(ForgeError),
}

/// Where the app's webhooks go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// The address; empty: nowhere.
    pub url: String,
    /// They are JSON, which is what is read.
    pub is_json: bool,
    /// They are signed.
    pub is_signed: bool,
}

#[derive(Deserialize)]
struct HookBody {
    #[serde(default)]
    url: String,
    #[serde(default)]
    content_type: String,
    secret: Option<Value>,
}

impl GitHub {
    /// The app itself: proves that its key is right.
    ///
    /// # Errors
    /// [`NotTheApp`].
    pub async fn app(&self) -> Result<App, NotTheApp> {
        let signature = self.signature().map_err(NotTheApp::Failed)?;
        let error = match self.rest.read(Call::get(By::App(&signature), &["app"])).await {
            Ok(app) => return Ok(app),
            Err(error) => error,
        };
        Err(match error.status() {
            Some(401) if CLOCK.iter().any(|words| error.says(words)) => NotTheApp::Clock,
            Some(401) => NotTheApp::Key,
            Some(404) => NotTheApp::Id,
            _ => NotTheApp::Failed(error.into()),
        })
    }

    /// The app's installations, at most 1,000.
    ///
    /// # Errors
    /// [`ForgeError`].
    pub async fn installations(&self) -> ForgeResult<Vec<Installation>> {
        let signature = self.signature()?;
        let mut all: Vec<Installation> = Vec::new();
        for page in 1..=PAGES_MAX {
            let page = page.to_string();
            let query = [("per_page", PAGE_ITEMS), ("page", page.as_str())];
            let path = ["app", "installations"];
            let call = Call::get(By::App(&signature), &path).with(&query);
            let found: Vec<InstallationBody> = self.rest.read(call).await?;
            let is_last = found.len().to_string() != PAGE_ITEMS;
            all.extend(found.into_iter().map(Installation::from));
            if is_last {
                break;
            }
        }
        Ok(all)
    }

    /// Where the app's webhooks go.
    ///
    /// # Errors
    /// [`ForgeError`].
    pub async fn hook(&self) -> ForgeResult<Hook> {
        let signature = self.signature()?;
        let path = ["app", "hook", "config"];
        let HookBody { url, content_type, secret } =
            self.rest.read(Call::get(By::App(&signature), &path)).await?;
        let is_signed = secret.is_some_and(|secret| !secret.is_null());
        // GitHub's default is a form.
        Ok(Hook { url, is_json: has(&content_type, "json"), is_signed })
    }
}
