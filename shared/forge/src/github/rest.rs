//! Calls of GitHub's REST API, and what its refusals mean.

use std::time::{SystemTime, UNIX_EPOCH};

use bobbin_core::base::credentials::redact;
use bobbin_core::base::secret::Secret;
use bobbin_http::{AllowedHosts, Http, HttpError, Method, ReceivedAnswer, host_of, sentence};
use reqwest::header::{ACCEPT, LOCATION};
use reqwest::{RequestBuilder, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::poll;
use super::settings::Addresses;
use crate::error::{ForgeError, ForgeErrorKind, ForgeResult};

/// The API version that these shapes belong to.
const API_VERSION: &str = "2022-11-28";
/// Most bytes of an answer; GitHub's largest, a folder with 100,000 entries, has 7 MB.
const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The delay after a refusal for too many requests that names none (GitHub's documentation: at least a minute).
const LIMITED_MS: u64 = 60_000;
/// Longest accepted delay: the primary limit is by the hour.
const LIMITED_MS_MAX: u64 = 60 * 60_000;
/// Longest part of a message that is passed on, in characters.
const MESSAGE_CHARS_MAX: usize = 300;

/// As whom a call is made.
#[derive(Debug, Clone, Copy)]
pub(super) enum RestCredential<'a> {
    /// The app itself, by a signature.
    App(&'a Secret),
    /// An installation, by a token of it.
    Installation(&'a Secret),
    /// A person who signed in.
    Person(&'a Secret),
    /// The app as a client of GitHub's sign-in: id and secret.
    Client(&'a str, &'a Secret),
    /// Nobody: what the path holds is enough.
    Nobody,
}

/// One call.
#[derive(Debug, Clone)]
pub(super) struct Call<'a> {
    by: RestCredential<'a>,
    method: Method,
    path: &'a [&'a str],
    query: &'a [(&'a str, &'a str)],
    body: Option<Value>,
}

impl<'a> Call<'a> {
    pub(super) fn get(by: RestCredential<'a>, path: &'a [&'a str]) -> Self {
        Self { by, method: Method::GET, path, query: &[], body: None }
    }

    pub(super) fn with(self, query: &'a [(&'a str, &'a str)]) -> Self {
        Self { query, ..self }
    }

    pub(super) fn sending(
        by: RestCredential<'a>,
        method: Method,
        path: &'a [&'a str],
        body: &impl Serialize,
    ) -> Self {
        let body = serde_json::to_value(body).ok();
        Self { by, method, path, query: &[], body }
    }

    pub(super) fn delete(by: RestCredential<'a>, path: &'a [&'a str]) -> Self {
        Self::empty(by, Method::DELETE, path)
    }

    pub(super) fn empty(by: RestCredential<'a>, method: Method, path: &'a [&'a str]) -> Self {
        Self { by, method, path, query: &[], body: None }
    }
}

/// A call without the requested answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RestError {
    /// No answer; whether the call had its effect is unknown.
    Http(HttpError),
    /// GitHub refused.
    Refused(Refusal),
    /// Another answer than GitHub's, or 5xx.
    NoAnswer { status: u16, seen: String },
}

/// GitHub's refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: u16,
    /// Its words: the details, if it gives some, else the message.
    pub(super) said: String,
    /// The delay in milliseconds, if the reason are too many requests.
    limited_ms: Option<u64>,
    /// The page on which a person signs in to an organisation that asks for it.
    sign_on: Option<String>,
    /// Where it has moved.
    pub(super) location: Option<String>,
    by: CallerKind,
}

/// Whose right was not enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallerKind {
    App,
    Installation,
    Person,
    Client,
    Nobody,
}

impl RestError {
    /// The status of a refusal, unless it is for too many requests.
    pub(super) fn status(&self) -> Option<u16> {
        match self {
            Self::Refused(refusal) if refusal.limited_ms.is_none() => Some(refusal.status),
            _ => None,
        }
    }

    /// Whether there is no such thing, or the caller may not see it.
    pub(super) fn is_absence(&self) -> bool {
        self.status() == Some(404) && !self.says(UNKNOWN_APP)
    }

    /// Whether the refusal has these words, in whatever case.
    pub(super) fn says(&self, words: &str) -> bool {
        matches!(self, Self::Refused(refusal) if has(&refusal.said, words))
    }
}

impl From<HttpError> for RestError {
    fn from(error: HttpError) -> Self {
        Self::Http(error)
    }
}

impl From<RestError> for ForgeError {
    fn from(error: RestError) -> Self {
        match error {
            RestError::Http(error) => unreachable_by(&error),
            RestError::NoAnswer { status, seen } => {
                Self::outage(format!("GitHub is not answering properly ({status}): {seen}"))
            }
            RestError::Refused(refusal) => refused(refusal),
        }
    }
}

/// GitHub's words for a signature whose issuer is no app. The status is that of something missing.
const UNKNOWN_APP: &str = "Integration not found";

/// The error of a request without an answer.
pub(super) fn unreachable_by(error: &HttpError) -> ForgeError {
    match error {
        HttpError::Refused { .. } => ForgeError::lasting(
            ForgeErrorKind::Other,
            format!("The address of GitHub cannot be used: {error}. The operator has to check it."),
        ),
        HttpError::TooLarge { bytes_max, .. } => {
            let bytes_max = *bytes_max as u64;
            ForgeError::lasting(ForgeErrorKind::TooLarge { bytes_max }, error.to_string())
        }
        HttpError::Timeout { .. } | HttpError::Transport { .. } => {
            ForgeError::outage(error.to_string())
        }
    }
}

fn refused(refusal: Refusal) -> ForgeError {
    let Refusal { status, said, limited_ms, sign_on, by, .. } = refusal;
    if let Some(after_ms) = limited_ms {
        let seen = "GitHub is limiting requests";
        return ForgeError::passing(ForgeErrorKind::RateLimited, after_ms, seen);
    }
    if let Some(error) = known(&said) {
        return error;
    }
    match (status, by) {
        (404, CallerKind::App) if has(&said, UNKNOWN_APP) => ForgeError::lasting(
            ForgeErrorKind::Other,
            "GitHub knows no app with this id. The operator has to check the parameter GitHubAppId.",
        ),
        (401, CallerKind::App | CallerKind::Client) => ForgeError::lasting(
            ForgeErrorKind::Other,
            format!(
                "GitHub refused the app's key: {said}. The operator has to check the app's id, private key and client secret."
            ),
        ),
        // A token is not known everywhere in the moment in which it was made.
        (401, CallerKind::Installation) => {
            ForgeError::passing(ForgeErrorKind::Other, 0, "GitHub does not accept the token")
        }
        (401, CallerKind::Person) => ForgeError::lasting(
            ForgeErrorKind::SignInEnded,
            "Your connection to GitHub has ended. Connect your account again.",
        ),
        (404 | 410, _) => ForgeError::lasting(ForgeErrorKind::NotFound, "GitHub does not know it."),
        _ => {
            let seen = format!("GitHub refused the request ({status}): {said}");
            let error = ForgeError::lasting(ForgeErrorKind::Refused { why: said }, seen);
            ForgeError { link: sign_on, ..error }
        }
    }
}

/// A refusal for a reason that GitHub's words alone tell, of the API or of git.
pub(super) fn known(said: &str) -> Option<ForgeError> {
    let (kind, seen) = if has(said, "IP allow list") {
        let seen = "The owner allows only certain addresses, and Bobbin's is not among them. An administrator of the owner has to switch on the addresses of installed GitHub apps, or add Bobbin's.";
        (ForgeErrorKind::NotAllowedAddress, seen)
    } else if has(said, "archived") && has(said, "read-only") {
        (ForgeErrorKind::Archived, "The repository is archived, so nothing can be changed in it.")
    } else if has(said, "installation has been suspended") {
        (ForgeErrorKind::Suspended, "The owner has suspended Bobbin's installation.")
    } else {
        return None;
    };
    Some(ForgeError::lasting(kind, seen))
}

/// Whether a message has these words, in whatever case.
pub(super) fn has(said: &str, words: &str) -> bool {
    said.to_ascii_lowercase().contains(&words.to_ascii_lowercase())
}

/// The API at one address.
pub(super) struct RestClient {
    pub(super) http: Http,
    api: Url,
    graphql: Url,
    web: Url,
}

impl RestClient {
    /// # Errors
    /// [`HttpError::Refused`] when an address is not allowed.
    pub(super) fn new(addresses: &Addresses) -> Result<Self, HttpError> {
        let others = [&addresses.web, &addresses.git];
        let hosts = others.iter().filter_map(|address| host_of(address)).collect();
        let http = Http::new(&addresses.api, AllowedHosts::Named(hosts))?;
        let url = |address: &str| {
            Url::parse(address).map_err(|_| HttpError::Refused {
                host: "(unreadable)".to_owned(),
                why: "it is no absolute URL",
            })
        };
        Ok(Self {
            http: http.with_body_bytes_max(ANSWER_BYTES_MAX),
            api: url(&addresses.api)?,
            graphql: url(&addresses.graphql())?,
            web: url(&addresses.web)?,
        })
    }

    /// The answer parsed as JSON.
    pub(super) async fn read<T: DeserializeOwned>(&self, call: Call<'_>) -> Result<T, RestError> {
        parsed(&self.send(call).await?)
    }

    /// The answer unparsed, unless GitHub refuses.
    pub(super) async fn send(&self, call: Call<'_>) -> Result<ReceivedAnswer, RestError> {
        let (answer, whose) = self.received(call).await?;
        answered(answer, whose)
    }

    async fn received(&self, call: Call<'_>) -> Result<(ReceivedAnswer, CallerKind), RestError> {
        let Call { by, method, path, query, body } = call;
        let mut url = below(&self.api, path);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let request = self.http.request(method, url.as_str())?;
        let request = request
            .header(ACCEPT, "application/vnd.github+json")
            .header("x-github-api-version", API_VERSION);
        let (request, whose) = signed(request, by);
        let request = match body {
            Some(body) => request.json(&body),
            None => request,
        };
        Ok((self.http.send(request).await?, whose))
    }

    /// Where the answer leads; `None` if there is nothing, or nothing any more.
    pub(super) async fn location(&self, call: Call<'_>) -> Result<Option<String>, RestError> {
        let (answer, whose) = self.received(call).await?;
        let to = answer.headers.get(LOCATION).and_then(|value| value.to_str().ok());
        if let Some(to) = to.filter(|_| answer.status == 302) {
            return Ok(Some(to.to_owned()));
        }
        match answered(answer, whose) {
            Ok(_) => Ok(None),
            Err(error) if matches!(error.status(), Some(404 | 410)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The data of a GraphQL query. An answer with errors has holes, and is an error.
    pub(super) async fn graphql(
        &self,
        by: RestCredential<'_>,
        query: &str,
        variables: &Value,
    ) -> ForgeResult<Value> {
        let mut answer = self.queried(by, &json!({"query": query, "variables": variables})).await?;
        match answer["errors"].as_array() {
            Some(errors) if !errors.is_empty() => Err(poll::not_answered(errors, by)),
            _ => Ok(answer["data"].take()),
        }
    }

    async fn queried(&self, by: RestCredential<'_>, body: &Value) -> Result<Value, RestError> {
        let request = self.http.request(Method::POST, self.graphql.as_str())?;
        let (request, whose) = signed(request, by);
        parsed(&answered(self.http.send(request.json(body)).await?, whose)?)
    }

    /// An answer of GitHub's sign-in, which is below its pages and speaks forms. An error is an answer with status 200.
    pub(super) async fn sign_in<T: DeserializeOwned>(
        &self,
        form: &[(&str, &str)],
    ) -> Result<T, RestError> {
        let url = below(&self.web, &["login", "oauth", "access_token"]);
        let request = self.http.request(Method::POST, url.as_str())?;
        let request = request.header(ACCEPT, "application/json").form(form);
        parsed(&answered(self.http.send(request).await?, CallerKind::Client)?)
    }

    /// The address of a page.
    pub(super) fn page(&self, path: &[&str], query: &[(&str, &str)]) -> String {
        let mut url = below(&self.web, path);
        url.query_pairs_mut().extend_pairs(query);
        url.into()
    }
}

fn below(base: &Url, path: &[&str]) -> Url {
    let mut url = base.clone();
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.pop_if_empty().extend(path);
    }
    url
}

fn signed(request: RequestBuilder, by: RestCredential<'_>) -> (RequestBuilder, CallerKind) {
    match by {
        RestCredential::App(signature) => {
            (request.bearer_auth(signature.expose()), CallerKind::App)
        }
        RestCredential::Installation(token) => {
            (request.bearer_auth(token.expose()), CallerKind::Installation)
        }
        RestCredential::Person(token) => (request.bearer_auth(token.expose()), CallerKind::Person),
        RestCredential::Client(id, secret) => {
            (request.basic_auth(id, Some(secret.expose())), CallerKind::Client)
        }
        RestCredential::Nobody => (request, CallerKind::Nobody),
    }
}

pub(super) fn parsed<T: DeserializeOwned>(answer: &ReceivedAnswer) -> Result<T, RestError> {
    answer.json().ok_or_else(|| RestError::NoAnswer {
        status: answer.status,
        seen: match answer.media_type().as_str() {
            "" => "an empty or unlabelled answer".to_owned(),
            "application/json" => "unreadable JSON".to_owned(),
            kind => format!("{kind} where JSON was due"),
        },
    })
}

fn answered(answer: ReceivedAnswer, by: CallerKind) -> Result<ReceivedAnswer, RestError> {
    let status = answer.status;
    if answer.ok() {
        return Ok(answer);
    }
    let limited_ms = limited_ms(&answer);
    let header = |name: &str| answer.headers.get(name).and_then(|value| value.to_str().ok());
    if limited_ms.is_none() && (status >= 500 || answer.json::<Value>().is_none()) {
        let seen = format!("{} where an answer was due", answer.media_type());
        return Err(RestError::NoAnswer { status, seen });
    }
    let sign_on = header("x-github-sso").and_then(|value| value.split_once("url="));
    Err(RestError::Refused(Refusal {
        status,
        said: said(&answer),
        limited_ms,
        sign_on: sign_on.map(|(_, url)| url.trim().to_owned()),
        location: header(LOCATION.as_str()).map(str::to_owned),
        by,
    }))
}

/// GitHub's words: the details of its message, if it gives some, else the message.
fn said(answer: &ReceivedAnswer) -> String {
    let body: Value = answer.json().unwrap_or_default();
    let errors = body["errors"].as_array().into_iter().flatten();
    let details: Vec<String> = errors
        .map(|error| match error {
            Value::String(text) => text.clone(),
            error => sentence(&error["message"]),
        })
        .filter(|text| !text.is_empty())
        .collect();
    let said = match details.as_slice() {
        [] => sentence(&body["message"]),
        details => details.join("; "),
    };
    redact(&said).chars().filter(|c| !c.is_control()).take(MESSAGE_CHARS_MAX).collect()
}

/// The delay that a refusal for too many requests asks for; `None` if it has another reason.
fn limited_ms(answer: &ReceivedAnswer) -> Option<u64> {
    if !matches!(answer.status, 403 | 429) {
        return None;
    }
    let header = |name: &str| answer.headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(after_ms) = answer.retry_after_ms() {
        return Some(after_ms);
    }
    if header("x-ratelimit-remaining") == Some("0") {
        let reset_s: Option<u64> = header("x-ratelimit-reset").and_then(|at| at.parse().ok());
        let after_s = reset_s.map(|at| at.saturating_sub(now_s()).max(1));
        let after_ms = after_s.map_or(LIMITED_MS, |s| s.saturating_mul(1_000));
        return Some(after_ms.min(LIMITED_MS_MAX));
    }
    let is_limit = answer.status == 429 || has(&said(answer), "rate limit");
    is_limit.then_some(LIMITED_MS)
}

/// This machine's time, in seconds since 1970.
pub(super) fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
