//! A provider's HTTP API, as the clients of all of them call it: an address, a bound for each call, and answers that are what
//! was asked for or the provider's own error.

use std::marker::PhantomData;
use std::time::Duration;

use bobbin_http::{Answer, Hosts, Http, HttpError};
use reqwest::{Method, RequestBuilder, Url};
use serde::de::DeserializeOwned;

/// Characters of a provider's words that are passed on.
const MESSAGE_CHARS_MAX: usize = 300;

/// What a provider's refusals are to its client.
pub trait Refusal: From<HttpError> {
    /// What an answer refuses; none where it does what was asked for.
    fn of(answer: &Answer) -> Option<Self>;

    /// Something came that is no answer of the provider's.
    fn no_answer(status: u16, message: String) -> Self;
}

/// The API at one address.
pub struct Api<E> {
    http: Http,
    base: Url,
    refusals: PhantomData<fn() -> E>,
}

impl<E> Clone for Api<E> {
    fn clone(&self) -> Self {
        Self { http: self.http.clone(), base: self.base.clone(), refusals: PhantomData }
    }
}

impl<E: Refusal> Api<E> {
    /// At `base`, which may be spoken to beside these hosts.
    ///
    /// # Errors
    /// [`HttpError::Refused`] when the base may not be spoken to.
    pub fn new(base: &str, hosts: Hosts) -> Result<Self, HttpError> {
        Ok(Self {
            http: Http::new(base, hosts)?,
            base: Url::parse(base).map_err(|_| HttpError::Refused {
                host: "(unreadable)".to_owned(),
                why: "it is no absolute URL",
            })?,
            refusals: PhantomData,
        })
    }

    /// The same with another bound on the bytes of an answer.
    pub fn with_body_bytes_max(&self, bytes: usize) -> Self {
        Self { http: self.http.with_body_bytes_max(bytes), ..self.clone() }
    }

    /// Its base.
    pub fn base(&self) -> &Url {
        &self.base
    }

    /// Begins a call of what lies below an address by these segments, with a key.
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

    /// The answer as JSON.
    ///
    /// # Errors
    /// What the provider refuses, or that something else came than JSON.
    pub async fn read<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, E> {
        let answer = self.send(request).await?;
        let no_json = || E::no_answer(answer.status, instead_of(&answer, "JSON"));
        answer.json().ok_or_else(no_json)
    }

    /// The answer as it is, once the provider does not refuse.
    ///
    /// # Errors
    /// What the provider refuses, or that nothing came.
    pub async fn send(&self, request: RequestBuilder) -> Result<Answer, E> {
        let answer = self.http.send(request).await?;
        match E::of(&answer) {
            None => Ok(answer),
            Some(refused) => Err(refused),
        }
    }

    /// The answer with its body unread.
    ///
    /// # Errors
    /// That nothing came.
    pub async fn open(&self, request: RequestBuilder) -> Result<reqwest::Response, E> {
        Ok(self.http.open(request).await?)
    }
}

/// What came, where something else was due.
pub fn instead_of(answer: &Answer, due: &str) -> String {
    format!("{} where {due} was due", describe(answer))
}

/// What came, by its label.
pub fn describe(answer: &Answer) -> String {
    match answer.media_type().as_str() {
        "" => "an empty or unlabelled answer".to_owned(),
        "application/json" => "unreadable JSON".to_owned(),
        kind => kind.to_owned(),
    }
}

/// A provider's words, as far as they are passed on; without any what came instead.
pub fn words(said: &str, answer: &Answer) -> String {
    match cut(said) {
        none if none.is_empty() => describe(answer),
        said => said,
    }
}

/// A provider's words, as far as they are passed on.
pub fn cut(said: &str) -> String {
    said.chars().take(MESSAGE_CHARS_MAX).collect()
}
