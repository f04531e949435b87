//! HTTP transport shared by the clients of all providers: an address, a bound for each call, and answers that are
//! either the requested data or the provider's own error.

use std::marker::PhantomData;
use std::time::Duration;

use bobbin_core::base::failure::Failure;
use bobbin_http::{AllowedHosts, Http, HttpError, ReceivedAnswer};
use reqwest::{Method, RequestBuilder, Url};
use serde::de::DeserializeOwned;

/// Longest part of a provider's message that is passed on, in characters.
const MESSAGE_CHARS_MAX: usize = 300;

/// A provider's refusals, as its client's error type.
pub trait ProviderRefusal: From<HttpError> {
    /// The refusal in an answer; `None` if the call succeeded.
    fn of(answer: &ReceivedAnswer) -> Option<Self>;

    /// Error for an answer that is not the provider's.
    fn no_answer(status: u16, message: String) -> Self;
}

/// The API at one address.
pub struct ProviderApi<E> {
    http: Http,
    base: Url,
    refusals: PhantomData<fn() -> E>,
}

impl<E> Clone for ProviderApi<E> {
    fn clone(&self) -> Self {
        Self { http: self.http.clone(), base: self.base.clone(), refusals: PhantomData }
    }
}

impl<E: ProviderRefusal> ProviderApi<E> {
    /// At `base`, which is allowed as a host besides `hosts`.
    ///
    /// # Errors
    /// [`HttpError::Refused`] when the base is not an allowed address.
    pub fn new(base: &str, hosts: AllowedHosts) -> Result<Self, HttpError> {
        Ok(Self {
            http: Http::new(base, hosts)?,
            base: Url::parse(base).map_err(|_| HttpError::Refused {
                host: "(unreadable)".to_owned(),
                why: "it is not an absolute URL",
            })?,
            refusals: PhantomData,
        })
    }

    /// A copy with another bound on the bytes of an answer.
    pub fn with_body_bytes_max(&self, bytes: usize) -> Self {
        Self { http: self.http.with_body_bytes_max(bytes), ..self.clone() }
    }

    /// The base address.
    pub fn base(&self) -> &Url {
        &self.base
    }

    /// Builds a request to these path segments below an address, with a key.
    ///
    /// # Errors
    /// [`HttpError::Refused`], as the provider's error.
    pub fn request(
        &self,
        method: Method,
        (base, segments): (&Url, &[&str]),
        query: &[(&str, &str)],
        key: &str,
        ms_max: u64,
    ) -> Result<RequestBuilder, E> {
        let mut url = base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let request = self.http.request(method, url.as_str())?;
        let timeout = Duration::from_millis(ms_max);
        Ok(request.bearer_auth(key).timeout(timeout))
    }

    /// The answer parsed as JSON.
    ///
    /// # Errors
    /// The provider's refusal, or an answer that is not the expected JSON.
    pub async fn read<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, E> {
        let answer = self.send(request).await?;
        let no_json = || E::no_answer(answer.status, instead_of(&answer, "JSON"));
        answer.json().ok_or_else(no_json)
    }

    /// The answer unparsed, unless the provider refuses.
    ///
    /// # Errors
    /// The provider's refusal, or no answer.
    pub async fn send(&self, request: RequestBuilder) -> Result<ReceivedAnswer, E> {
        let answer = self.http.send(request).await?;
        match E::of(&answer) {
            None => Ok(answer),
            Some(refused) => Err(refused),
        }
    }

    /// The answer with its body unread.
    ///
    /// # Errors
    /// No answer.
    pub async fn open(&self, request: RequestBuilder) -> Result<reqwest::Response, E> {
        Ok(self.http.open(request).await?)
    }
}

/// What the sandbox's delivery has to do about a call of a provider without an answer. `setting` of the parameter
/// Overrides is the provider's address.
pub fn unanswered(error: &HttpError, provider: &str, setting: &str) -> Failure {
    let seen = error.to_string();
    match error {
        HttpError::Refused { .. } => Failure::NonRecoverable {
            advice: format!(
                "The address of {provider} cannot be used: {seen}. The operator has to check {setting} of the parameter Overrides."
            ),
        },
        HttpError::Timeout { .. } | HttpError::Transport { .. } => {
            Failure::Outage { after_ms: 0, seen }
        }
        _ => Failure::Wait { after_ms: 0, seen },
    }
}

/// Describes an answer that is not the expected one.
pub fn instead_of(answer: &ReceivedAnswer, due: &str) -> String {
    format!("{} instead of {due}", describe(answer))
}

/// Describes an answer by its media type.
pub fn describe(answer: &ReceivedAnswer) -> String {
    match answer.media_type().as_str() {
        "" => "an empty or unlabelled answer".to_owned(),
        "application/json" => "unreadable JSON".to_owned(),
        kind => kind.to_owned(),
    }
}

/// A provider's message, shortened; if it is empty, a description of the answer.
pub fn words(said: &str, answer: &ReceivedAnswer) -> String {
    match cut(said) {
        none if none.is_empty() => describe(answer),
        said => said,
    }
}

/// A provider's message, shortened.
pub fn cut(said: &str) -> String {
    said.chars().take(MESSAGE_CHARS_MAX).collect()
}
