//! What the operator's check asks of GitHub: the app itself, its installations, where its webhooks go, and which of
//! them were lost.

use std::collections::BTreeSet;

use bobbin_http::{Method, ReceivedAnswer};
use reqwest::header::LINK;
use serde::Deserialize;
use serde_json::Value;

use super::app::App;
use super::client::{GitHub, PAGE_ITEMS, PAGES_MAX};
use super::repositories::InstallationBody;
use super::rest::{Call, RestCredential, has, parsed};
use crate::error::{ForgeError, ForgeResult};
use crate::forge::Installation;

/// GitHub's words for a signature from a wrong clock; octokit's `auth-app` 8.3 goes by the same.
const CLOCK: [&str; 2] = ["'Issued at' claim ('iat')", "'Expiration time' claim ('exp')"];

/// GitHub's word for a webhook that was taken.
const TAKEN: &str = "OK";

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
    /// They are JSON, the only format that is read.
    pub is_json: bool,
    /// They are signed.
    pub is_signed: bool,
}

/// A webhook that nobody took, and that GitHub does not send again by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostWebhook {
    /// GitHub's id of the attempt.
    pub id: u64,
    /// The event.
    pub event: String,
    /// Why it was lost, in GitHub's words.
    pub why: String,
}

#[derive(Deserialize)]
struct DeliveryBody {
    id: u64,
    guid: String,
    #[serde(default)]
    event: String,
    #[serde(default)]
    status: String,
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
        let error = match self.rest.read(Call::get(RestCredential::App(&signature), &["app"])).await
        {
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
            let call = Call::get(RestCredential::App(&signature), &path).with(&query);
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
            self.rest.read(Call::get(RestCredential::App(&signature), &path)).await?;
        let is_signed = secret.is_some_and(|secret| !secret.is_null());
        // GitHub's default is a form.
        Ok(Hook { url, is_json: has(&content_type, "json"), is_signed })
    }

    /// Webhooks that were lost, the newest first: of the last 1,000 attempts, which GitHub keeps for three days.
    ///
    /// # Errors
    /// [`ForgeError`].
    pub async fn lost_webhooks(&self) -> ForgeResult<Vec<LostWebhook>> {
        let signature = self.signature()?;
        let path = ["app", "hook", "deliveries"];
        let mut cursor: Option<String> = None;
        let mut all: Vec<DeliveryBody> = Vec::new();
        for _ in 1..=PAGES_MAX {
            let mut query = vec![("per_page", PAGE_ITEMS)];
            query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
            let call = Call::get(RestCredential::App(&signature), &path).with(&query);
            let answer = self.rest.send(call).await?;
            let found: Vec<DeliveryBody> = parsed(&answer)?;
            all.extend(found);
            cursor = next_cursor(&answer);
            if cursor.is_none() {
                break;
            }
        }
        // A time-out has no status code, so GitHub's own filter for failures leaves it out.
        let taken: BTreeSet<String> =
            all.iter().filter(|one| one.status == TAKEN).map(|one| one.guid.clone()).collect();
        // A ping says nothing that could be missed.
        let mut seen = BTreeSet::new();
        let lost = all
            .into_iter()
            .filter(|one| one.event != "ping")
            .filter(|one| !taken.contains(&one.guid) && seen.insert(one.guid.clone()));
        let lost = lost.map(|one| LostWebhook { id: one.id, event: one.event, why: one.status });
        Ok(lost.collect())
    }

    /// Has GitHub send a lost webhook again.
    ///
    /// # Errors
    /// [`ForgeError`].
    pub async fn send_again(&self, lost: &LostWebhook) -> ForgeResult<()> {
        let signature = self.signature()?;
        let id = lost.id.to_string();
        let path = ["app", "hook", "deliveries", &id, "attempts"];
        self.rest.send(Call::empty(RestCredential::App(&signature), Method::POST, &path)).await?;
        Ok(())
    }
}

/// The place of the next page, as the answer names it.
fn next_cursor(answer: &ReceivedAnswer) -> Option<String> {
    let links = answer.headers.get(LINK)?.to_str().ok()?;
    let next = links.split(',').find(|link| link.contains("rel=\"next\""))?;
    let address = next.split_once('<')?.1.split_once('>')?.0;
    let url = reqwest::Url::parse(address).ok()?;
    url.query_pairs().find(|(name, _)| name == "cursor").map(|(_, cursor)| cursor.into_owned())
}
