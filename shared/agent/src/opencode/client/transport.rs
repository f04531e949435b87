//! Sends a call to the server with the password, to the present endpoint, and once more to a fresh one.

use bobbin_http::ReceivedAnswer;
use reqwest::{Method, RequestBuilder, Url};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::{CallKind, NotAccepted, OpenCodeError, classify, is_refusal, not_an_answer};
use super::{HEALTH, OpenCode, OpenCodeResult};

impl OpenCode {
    pub(super) async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
        about: CallKind,
    ) -> OpenCodeResult<T> {
        let answer = self.call(Method::GET, path, query, None, about).await?;
        answer.json().ok_or_else(|| not_an_answer(&answer))
    }

    pub(super) async fn post_json<T: DeserializeOwned>(
        &self,
        path: &str,
        body: Option<Value>,
        about: CallKind,
    ) -> OpenCodeResult<T> {
        let answer = self.call(Method::POST, path, &[], body, about).await?;
        answer.json().ok_or_else(|| not_an_answer(&answer))
    }

    pub(super) async fn call(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        body: Option<Value>,
        about: CallKind,
    ) -> OpenCodeResult<ReceivedAnswer> {
        match self.once(method.clone(), path, query, body.as_ref(), about).await {
            Err(error) if error.is_of_the_endpoint() && self.renew().await? => {
                self.once(method, path, query, body.as_ref(), about).await
            }
            other => other,
        }
    }

    pub(super) async fn once(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        body: Option<&Value>,
        about: CallKind,
    ) -> OpenCodeResult<ReceivedAnswer> {
        let attempt = self.attempt(method, path, query, body, about);
        attempt.await.map_err(|missed| missed.error)
    }

    /// Sends a prompt with this body, which contains our own message id. Accepted does not mean stored (check for the
    /// message), and stored does not mean begun.
    ///
    /// # Errors
    /// [`NotAccepted`].
    pub async fn send(&self, session: &str, body: &Value) -> Result<(), NotAccepted> {
        let path = format!("/session/{session}/prompt_async");
        let once = || self.attempt(Method::POST, &path, &[], Some(body), CallKind::Session);
        let answer = match once().await {
            Err(first) if first.error.is_of_the_endpoint() => {
                let renewed = self
                    .renew()
                    .await
                    .map_err(|error| NotAccepted { error, certain: first.certain })?;
                if !renewed {
                    return Err(first);
                }
                // Certainty about the last attempt says nothing about the one before it.
                once().await.map_err(|last| NotAccepted {
                    certain: first.certain && last.certain,
                    error: last.error,
                })?
            }
            other => other?,
        };
        if answer.status == 204 {
            return Ok(());
        }
        Err(NotAccepted { error: not_an_answer(&answer), certain: false })
    }

    async fn attempt(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        body: Option<&Value>,
        about: CallKind,
    ) -> Result<ReceivedAnswer, NotAccepted> {
        let request = self.request(method, path, query);
        let mut request = request.map_err(|error| NotAccepted { error, certain: true })?;
        if let Some(body) = body {
            request = request.json(body);
        }
        let answer = self
            .http
            .send(request)
            .await
            .map_err(|error| NotAccepted { certain: error.is_unsent(), error: error.into() })?;
        let error = match classify(&answer, about) {
            Some(error) => error,
            None if answer.status == 200 && answer.media_type() == "text/html" => {
                not_an_answer(&answer)
            }
            None => return Ok(answer),
        };
        Err(NotAccepted { error, certain: is_refusal(answer.status) })
    }

    /// Fetches a fresh endpoint; false if that is not possible.
    pub(super) async fn renew(&self) -> OpenCodeResult<bool> {
        let Some(refresh) = &self.refresh else {
            return Ok(false);
        };
        let fresh = refresh().await?;
        *self.endpoint.write().unwrap_or_else(std::sync::PoisonError::into_inner) = fresh;
        Ok(true)
    }

    pub(super) fn request(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
    ) -> OpenCodeResult<RequestBuilder> {
        let endpoint =
            self.endpoint.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        let address = format!("{}{}{path}", endpoint.url, self.via.base_path());
        let mut url = Url::parse(&address).map_err(|_| OpenCodeError::Unreachable {
            seen: "the preview's address cannot be read".to_owned(),
        })?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        if let Some(directory) = &self.directory
            && path != HEALTH
        {
            url.query_pairs_mut().append_pair("directory", directory);
        }
        let mut request =
            self.http.request(method, url.as_str())?.header("authorization", &self.authorization);
        for (name, value) in &endpoint.headers {
            request = request.header(*name, value);
        }
        Ok(request)
    }
}
