//! Webhooks of the forge: verified over the raw body, and turned into a hint for the worker.
//!
//! Promised: a webhook changes nothing by itself. The forge does not send one again, so one that could not be queued is
//! lost, which costs no safety: each use of the forge looks for itself. One about a pull request that no thread watches
//! costs one read at most.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bobbin_chat::{HttpAnswer, Verifier};
use bobbin_cloud::aws::Aws;
use bobbin_cloud::config::Config;
use bobbin_cloud::queue::Queues;
use bobbin_cloud::store::{Store, WatchedBy};
use bobbin_core::base::ids::Ms;
use bobbin_core::protocol::signals::INGRESS_FAILED;
use bobbin_core::records::message::{Body, Message};
use bobbin_core::tenant::keys::Key;
use bobbin_forge::github::webhook::{self, Event, HookedBy, HookedPullRequest, UnverifiedHook};

use crate::signing::Signing;

/// Largest body that is read, in bytes: a function's URL takes no larger one (GitHub sends up to 25 MB).
const BODY_BYTES_MAX: usize = 6 * 1024 * 1024;

/// Longest time for the read that finds a pull request's thread: the forge waits ten seconds.
const READ_MS_MAX: u64 = 1_500;
/// Webhooks that one instance reads in a second.
const A_SECOND_MAX: u32 = 20;

/// What finds the thread of a pull request, and the number of webhooks that came lately.
#[derive(Debug)]
pub struct Watches {
    store: Store,
    quiet_ms: u64,
    lately: Mutex<Lately>,
}

/// How many of the forge's webhooks came in the present second.
#[derive(Debug, Default)]
struct Lately {
    second: u64,
    count: u32,
}

impl Lately {
    /// Counts one. False: too many came in this second, and this one stays unread.
    const fn admits(&mut self, now_ms: Ms) -> bool {
        let second = now_ms / 1_000;
        if self.second != second {
            *self = Self { second, count: 0 };
        }
        self.count = self.count.saturating_add(1);
        self.count <= A_SECOND_MAX
    }

    /// Counts a webhook that was judged, if it is the forge's: what strangers send uses up nothing.
    const fn counted(&mut self, verdict: Verdict, now_ms: Ms) -> Verdict {
        match verdict {
            Verdict::Forges if !self.admits(now_ms) => Verdict::TooMany,
            verdict => verdict,
        }
    }
}

impl Watches {
    /// From configuration.
    #[must_use]
    pub fn new(aws: &Aws, config: &Config) -> Self {
        Self {
            store: Store::new(aws, &config.table),
            quiet_ms: config.limits.watch.quiet_ms,
            lately: Mutex::default(),
        }
    }

    fn counted(&self, verdict: Verdict, now_ms: Ms) -> Verdict {
        self.lately.lock().unwrap_or_else(PoisonError::into_inner).counted(verdict, now_ms)
    }
}

/// A webhook, not verified yet.
#[derive(Debug, Clone, Copy)]
pub struct Webhook<'a> {
    /// The body, unparsed.
    pub raw: &'a [u8],
    /// The signature that came with it; empty without one.
    pub signature: &'a str,
    /// The event's name, which is outside of the signature.
    pub event: &'a str,
    /// When it came.
    pub now_ms: Ms,
}

/// The answer to a webhook.
#[derive(Debug)]
pub struct WebhookAnswer {
    /// The answer.
    pub answer: HttpAnswer,
    /// The outcome for the log: a few fixed words.
    pub note: &'static str,
    /// The stack could not do its part, which is logged.
    pub has_failed: bool,
}

impl WebhookAnswer {
    fn of(status: u16, words: &str, note: &'static str) -> Self {
        Self { answer: HttpAnswer::text(status, words), note, has_failed: false }
    }

    fn failed(words: &str, note: &'static str, why: &str) -> Self {
        tracing::error!(
            event = INGRESS_FAILED,
            request = note,
            status = 503,
            "a webhook could not be judged or accepted: {why}"
        );
        Self { has_failed: true, ..Self::of(503, words, note) }
    }
}

/// Whose a webhook is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Forges,
    /// The forge's, and one too many of them in this second.
    TooMany,
    Foreign,
    Missing,
    Unread,
}

impl Webhook<'_> {
    /// Verifies it, and queues what it hints at.
    pub async fn take(
        &self,
        signing: &Signing,
        queues: &Queues,
        watches: &Watches,
    ) -> WebhookAnswer {
        if self.raw.len() > BODY_BYTES_MAX {
            return WebhookAnswer::of(413, "The body is too large.", "github: too large");
        }
        match watches.counted(self.judged(signing).await, self.now_ms) {
            Verdict::Forges => self.accepted(queues, watches).await,
            Verdict::TooMany => {
                let words = "Too many at once: this was not read. Bobbin finds out by itself.";
                WebhookAnswer::of(202, words, "github: unread")
            }
            Verdict::Foreign => {
                WebhookAnswer::of(401, "The signature is not valid.", "github: bad signature")
            }
            Verdict::Missing => WebhookAnswer::of(
                503,
                "Bobbin takes no webhooks of GitHub yet: it has no webhook secret. Its operator stores GITHUB_WEBHOOK_SECRET with `bobbin secrets`; Bobbin uses it within a minute.",
                "github: no webhook secret",
            ),
            Verdict::Unread => WebhookAnswer::failed(
                "Bobbin cannot read its webhook secret right now. Deliver this again later.",
                "github",
                "the webhook secret could not be read",
            ),
        }
    }

    async fn judged(&self, signing: &Signing) -> Verdict {
        // One that is not signed at all is judged without the secret.
        if webhook::verify(&[], self.signature, self.raw) == Err(UnverifiedHook::Signature) {
            return Verdict::Foreign;
        }
        let judge = |verifier: Verifier<'_>| match verifier {
            Verifier::Key(stored) => {
                // While it is replaced, the value has the new one and the old one.
                let secrets: Vec<&str> = stored.expose().split_whitespace().collect();
                match webhook::verify(&secrets, self.signature, self.raw) {
                    Ok(()) => Verdict::Forges,
                    Err(UnverifiedHook::NoSecret) => Verdict::Missing,
                    Err(UnverifiedHook::Signature) => Verdict::Foreign,
                }
            }
            Verifier::Unread => Verdict::Unread,
            Verifier::Missing | Verifier::Nothing => Verdict::Missing,
        };
        let is_wrong = |verdict: &Verdict| !matches!(verdict, Verdict::Forges);
        signing.judged(Key::GitHubWebhookSecret, self.now_ms, judge, is_wrong).await
    }

    async fn accepted(&self, queues: &Queues, watches: &Watches) -> WebhookAnswer {
        let Ok(event) = webhook::parse(self.event, self.raw) else {
            return WebhookAnswer::of(
                400,
                "The body does not match the event's name. Bobbin reads application/json.",
                "github: unreadable",
            );
        };
        let note = event.name();
        let hinted = match &event {
            Event::PullRequest(hooked) => self.poll_of(hooked, watches).await,
            event => Ok(event.hint().map(Body::Forge)),
        };
        let failed = |why: &str| {
            let words = "Bobbin could not accept this. Deliver it again later.";
            WebhookAnswer::failed(words, note, why)
        };
        match hinted {
            Ok(None) => WebhookAnswer::of(202, "There is nothing to do.", note),
            Ok(Some(body)) => match queues.send(&body).await {
                Ok(()) => WebhookAnswer::of(202, "Bobbin looks into it.", note),
                Err(error) => failed(&error.to_string()),
            },
            Err(why) => failed(&why),
        }
    }

    /// A poll for the thread that watches the pull request, if one of ours does.
    async fn poll_of(
        &self,
        hooked: &HookedPullRequest,
        watches: &Watches,
    ) -> Result<Option<Body>, String> {
        let by = match &hooked.by {
            HookedBy::Branch(branch) => WatchedBy::Branch(branch),
            HookedBy::Number(number) => WatchedBy::Number(*number),
        };
        let read = watches.store.watched(hooked.repository.0, by);
        let within = Duration::from_millis(READ_MS_MAX);
        let thread = match tokio::time::timeout(within, read).await {
            Ok(read) => read.map_err(|error| error.to_string())?,
            Err(_) => return Err(format!("the table did not answer within {READ_MS_MAX} ms")),
        };
        let poll = |thread| Body::Message(Message::poll(thread, self.now_ms, watches.quiet_ms));
        Ok(thread.map(poll))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twenty_webhooks_a_second_are_read() {
        let mut lately = Lately::default();
        let mut read = |now_ms: Ms| (0..30).filter(|_| lately.admits(now_ms)).count();
        assert_eq!((read(7_000), read(7_999), read(8_000)), (20, 0, 20));
    }

    #[test]
    fn foreign_webhooks_leave_the_forges_read() {
        let mut lately = Lately::default();
        let mut judged = |verdict: Verdict| lately.counted(verdict, 7_000);
        for foreign in [Verdict::Foreign, Verdict::Missing, Verdict::Unread].repeat(10) {
            assert_eq!(judged(foreign), foreign);
        }
        let verdicts = [Verdict::Forges; 21].map(judged);
        let (last, read) = verdicts.split_last().expect("some");
        assert_eq!((*last, read), (Verdict::TooMany, &[Verdict::Forges; 20][..]));
    }
}
