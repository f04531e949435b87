//! Routes requests, and fixes the order of steps: verify, parse, enqueue, answer.

use std::time::Duration;

use bobbin_chat::{
    Chats, EndpointSettings, Endpoints, HttpAnswer, Inbound, RawRequest, Repeat, Verifier,
};
use bobbin_cloud::aws::Aws;
use bobbin_cloud::clock::now_ms;
use bobbin_cloud::config::{Config, optional};
use bobbin_cloud::events::{UNREADABLE, answered};
use bobbin_cloud::metrics::Metrics;
use bobbin_cloud::queue::Queues;
use bobbin_cloud::secrets::CachedSecret;
use bobbin_core::protocol::signals::{Alarm, INGRESS_FAILED};
use bobbin_core::records::message::{Announce, Body as WorkBody};
use bobbin_core::tokens::nudge;
use bobbin_forge::github::manifest::SIGNED_IN;
use bobbin_forge::github::webhook;
use lambda_http::{Body, Request, RequestExt as _, Response};
use tracing::{Instrument as _, Span};

use crate::direct::DirectMessages;
use crate::nudges::Nudges;
use crate::setup::{self, Links, SetupAnswer};
use crate::signing::{READ_MS_MAX, Signing};
use crate::suggestions::Suggestions;
use crate::webhooks::{Watches, Webhook, WebhookAnswer};

/// Time for the announcement: what is left of the platform's three seconds when the prompt has taken as long as it may.
const ANNOUNCE_MS_MAX: u64 = 500;

/// Everything that ingress needs to answer.
#[derive(Debug)]
pub struct Router {
    queues: Queues,
    suggestions: Suggestions,
    direct: DirectMessages,
    endpoints: Vec<Box<dyn Endpoints>>,
    signing: Signing,
    links: Links,
    nudges: Nudges,
    watches: Watches,
    metrics: Metrics,
}

impl Router {
    /// From configuration. A platform without its key is switched off, and its paths say so.
    ///
    /// # Errors
    /// A sentence that names the parameter or variable that is wrong.
    pub fn new(config: &Config, aws: &Aws) -> Result<Self, String> {
        let endpoints = Chats::endpoints(&EndpointSettings {
            overrides: &config.chats,
            variable: optional,
            policy: &config.policy,
            limits: &config.limits,
            takes_own_keys: !config.credentials_key.is_empty(),
        })?;
        let secret = CachedSecret::named_by("INGRESS_SECRET_ID", aws, config, READ_MS_MAX)?;
        Ok(Self {
            queues: Queues::new(aws, config),
            suggestions: Suggestions::new(aws, &config.table),
            direct: DirectMessages::new(aws, &config.table),
            endpoints,
            signing: Signing::new(secret),
            links: Links::new(aws, config),
            nudges: Nudges::new(config, aws),
            watches: Watches::new(aws, config),
            metrics: Metrics::new(&config.stack),
        })
    }

    /// Always answers: a request that cannot be read, routed or queued gets its own status and a log line.
    pub async fn answer(&self, request: &Request) -> Response<Body> {
        let answer = match (request.method().as_str(), request.raw_http_path()) {
            (_, UNREADABLE) => {
                tracing::info!(
                    event = "ingress.refused",
                    request = "unreadable",
                    status = 400,
                    "a request was refused"
                );
                HttpAnswer::text(400, "This is not a valid HTTP request.")
            }
            ("GET" | "HEAD", "/health") => HttpAnswer::json(
                &serde_json::json!({"status": "ok", "version": env!("CARGO_PKG_VERSION")}),
            ),
            ("GET" | "HEAD" | "POST", path) if path.starts_with(setup::PATH) => {
                let shown = self.page(request, &path[setup::PATH.len()..]).await;
                self.told(shown)
            }
            ("GET", SIGNED_IN) => {
                let query = request.query_string_parameters();
                let query = |name: &str| query.first(name).map(str::to_owned);
                let shown = self.links.come_back(query, &self.queues).await;
                self.told(shown)
            }
            ("POST", nudge::PATH) => self.nudge(request).await,
            ("POST", webhook::PATH) => self.webhook(request).await,
            ("POST", path) => match self.endpoints_at(path) {
                Some(endpoints) => {
                    let inbound = self.received(endpoints, path, request).await;
                    self.accept(inbound).await
                }
                None => HttpAnswer::text(404, &self.nothing_here()),
            },
            (_, path)
                if [nudge::PATH, webhook::PATH].contains(&path)
                    || self.endpoints_at(path).is_some() =>
            {
                HttpAnswer::text(
                    405,
                    "Only POST is accepted here: chat platforms, the forge and daemons deliver to this address.",
                )
            }
            _ => HttpAnswer::text(404, "Nothing is here. Try /health."),
        };
        answered(answer)
    }

    /// A page of a link. Its path holds a secret, so no log line contains it.
    async fn page(&self, request: &Request, path: &str) -> SetupAnswer {
        let body = request.body().as_ref();
        match (request.method().as_str(), path.split_once('/')) {
            ("POST", None) => self.links.take(path, body, &self.queues).await,
            ("POST", Some(way)) => self.links.press(way, body, &self.queues).await,
            (_, None) => self.links.show(path).await,
            (_, Some(way)) => self.links.show_found(way, &self.queues).await,
        }
    }

    /// The answer of a page, with its line in the log.
    fn told(&self, (answer, note): SetupAnswer) -> HttpAnswer {
        let status = answer.status;
        if status >= 500 {
            self.count_failure();
        }
        tracing::info!(
            event = "ingress.answered",
            request = note,
            status,
            "a request was answered"
        );
        answer
    }

    /// A nudge. Any program in a sandbox may send a thousand of them: one that changes nothing is not logged at the
    /// usual level.
    async fn nudge(&self, request: &Request) -> HttpAnswer {
        let answer = self.nudges.take(header(request, "authorization"), &self.queues).await;
        tracing::debug!(
            event = "ingress.answered",
            request = "nudge",
            status = answer.status,
            "a request was answered"
        );
        answer
    }

    async fn webhook(&self, request: &Request) -> HttpAnswer {
        let hook = Webhook {
            raw: request.body().as_ref(),
            signature: header(request, webhook::SIGNATURE).unwrap_or_default(),
            event: header(request, webhook::EVENT).unwrap_or_default(),
            now_ms: now_ms(),
        };
        let WebhookAnswer { answer, note, has_failed } =
            hook.take(&self.signing, &self.queues, &self.watches).await;
        let status = answer.status;
        if has_failed {
            self.count_failure();
        } else if status >= 400 {
            tracing::info!(
                event = "ingress.refused",
                request = note,
                status,
                "a webhook was refused"
            );
        } else {
            tracing::info!(
                event = "ingress.answered",
                request = note,
                status,
                "a webhook was answered"
            );
        }
        answer
    }

    fn endpoints_at(&self, path: &str) -> Option<&dyn Endpoints> {
        let mut all = self.endpoints.iter().map(|one| &**one);
        all.find(|one| one.paths().contains(&path))
    }

    /// Says where the platforms deliver.
    fn nothing_here(&self) -> String {
        let mut paths: Vec<&str> =
            self.endpoints.iter().flat_map(|one| one.paths()).copied().collect();
        let last = paths.pop().unwrap_or_default();
        format!("Nothing is here. Bobbin answers at {} and {last}.", paths.join(", "))
    }

    async fn received(&self, to: &dyn Endpoints, path: &str, request: &Request) -> Inbound {
        let header = |name: &str| header(request, name);
        let raw = request.body().as_ref();
        let request = RawRequest { path, raw, header: &header, now_ms: now_ms() };
        match to.key(&request) {
            Some(key) => self.signing.receive(to, key, &request).await,
            // One that cannot have been signed is judged without the secret.
            None => to.receive(&request, Verifier::Nothing),
        }
    }

    async fn accept(&self, mut inbound: Inbound) -> HttpAnswer {
        if let Some(direct) = inbound.direct.take()
            && self.direct.is_one_thread(&direct).await
        {
            inbound.enqueue = Some(direct.body);
        }
        // The id under which the worker's log lines and the sandbox name the same prompt.
        let body = inbound.enqueue.as_ref();
        let around = match body {
            Some(body) => {
                let correlation_id = body.correlation();
                tracing::error_span!("request", correlation_id, group = body.group())
            }
            None => Span::none(),
        };
        self.carry_out(inbound).instrument(around).await
    }

    /// Enqueues, then answers; each outcome has its log line.
    async fn carry_out(&self, inbound: Inbound) -> HttpAnswer {
        if let Some(Repeat { number, reason }) = &inbound.repeat {
            tracing::info!(
                event = "ingress.repeated",
                retry.number = number,
                retry.reason = reason,
                "a platform sends an event again"
            );
        }
        if let Some(entered) = &inbound.entered
            && !self.links.store(entered).await
        {
            self.count_failure();
            return entered.on_failure.clone();
        }
        if let Some(body) = &inbound.enqueue {
            if let Err(error) = self.queues.send(body).await {
                self.count_failure();
                tracing::error!(event = INGRESS_FAILED, request = inbound.note, %error, "a request was verified but could not be accepted");
                return inbound.on_queue_failure;
            }
            if let Some(announce) = Announce::of(body) {
                self.announce(announce).await;
            }
        }
        let suggested = match &inbound.lookup {
            Some(lookup) => self.suggestions.read(lookup).await,
            None => None,
        };
        let (request, status) = (inbound.note, inbound.answer.status);
        match (&inbound.enqueue, status) {
            (Some(_), _) => {
                tracing::info!(
                    event = "ingress.accepted",
                    request,
                    status,
                    "a request was accepted"
                );
            }
            (None, 500..) => {
                self.count_failure();
                tracing::error!(
                    event = INGRESS_FAILED,
                    request,
                    status,
                    "a request could not be judged"
                );
            }
            (None, 400..) => {
                tracing::info!(event = "ingress.refused", request, status, "a request was refused");
            }
            (None, _) => {
                tracing::info!(
                    event = "ingress.answered",
                    request,
                    status,
                    "a request was answered"
                );
            }
        }
        suggested.unwrap_or(inbound.answer)
    }

    fn count_failure(&self) {
        self.metrics.count(Alarm::WorkDropped, now_ms());
    }

    /// The prompt is accepted; that it waits behind others is shown only if this gets through too. It is not sent in
    /// parallel with the prompt: a prompt that was never accepted must not be shown as waiting.
    async fn announce(&self, announce: Announce) {
        let body = WorkBody::Announce(announce);
        let sent = self.queues.send(&body);
        let why = match tokio::time::timeout(Duration::from_millis(ANNOUNCE_MS_MAX), sent).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {ANNOUNCE_MS_MAX} ms"),
        };
        tracing::warn!(
            event = "ingress.unannounced",
            "a prompt was accepted but not announced: {why}"
        );
    }
}

/// The value of a header; Lambda joins several values with commas.
fn header<'a>(request: &'a Request, name: &str) -> Option<&'a str> {
    request.headers().get(name)?.to_str().ok()
}
