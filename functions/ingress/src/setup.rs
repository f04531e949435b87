//! The pages to which links from the chat lead, and the sealing of a key that is entered there. Signing in at the forge
//! is in [`crate::sign_in`].
//!
//! Promised: a link is looked up by the hash of its secret part; opening it changes nothing, however often and by
//! whomever; only the first person to submit a key with it succeeds; a key is sealed within the request that brings it,
//! and is in no log, queue, answer or item in the clear. A submission that could not be handed to the worker is undone,
//! so that the link works again. The key counts only when the worker has checked it with its provider. Deliberately
//! absent: any way to open a sealed key, for which the role has no permission.

use std::fmt::Display;
use std::time::Duration;

use bobbin_chat::{Entered, HttpAnswer};
use bobbin_cloud::aws::Aws;
use bobbin_cloud::clock::now_ms;
use bobbin_cloud::config::Config;
use bobbin_cloud::queue::Queues;
use bobbin_cloud::sealing::Seal;
use bobbin_cloud::store::Store;
use bobbin_core::base::ids::Ms;
use bobbin_core::base::secret::Secret;
use bobbin_core::records::control::{Control, ControlAction};
use bobbin_core::records::message::Body;
use bobbin_core::tenant::own_keys::{OwnKeyRequest, sealed_for, usable};
use bobbin_core::tenant::project_secrets::{secret_sealed_for, usable_value};
use bobbin_core::tenant::setup_link::{Purpose, SetupLink, link_id};

use crate::page;

/// Path of the page, before the secret part of a link.
pub const PATH: &str = "/setup/";
/// Length of the secret part, in characters.
pub const TOKEN_CHARS: usize = 64;
/// Maximum size of a submitted form, in bytes.
pub const FORM_BYTES_MAX: usize = 8 * 1024;
const NO_KEY: &str =
    "That is not a key: a key is one word of 8 to 512 characters. Nothing was stored.";
const NO_VALUE: &str = "That cannot be stored: a secret is one line of 8 to 2,048 characters of ASCII, and no token of GitHub. Nothing was stored.";
/// Longest time for sealing and storing a key from a platform's form: the rest of its three seconds is for the queue.
const FORM_MS_MAX: u64 = 1_500;
/// Longest time of one call to the table or KMS: a request makes four of them and one to the queue, and the function
/// has ten seconds.
const CALL_MS_MAX: u64 = 1_500;

/// The links: what is entered through them is sealed by KMS, then it goes into the table.
#[derive(Debug)]
pub struct Links {
    pub(crate) stack: String,
    pub(crate) store: Store,
    /// `None` if tenants have no keys of their own.
    pub(crate) seal: Option<Seal>,
}

/// A link that works, with its id.
pub struct OpenLink<'a> {
    pub(crate) id: String,
    pub(crate) link: SetupLink,
    pub(crate) seal: &'a Seal,
}

/// Result of a request for the page: the answer, and a few fixed words for the log.
pub type SetupAnswer = (HttpAnswer, &'static str);

impl Links {
    #[must_use]
    pub fn new(aws: &Aws, config: &Config) -> Self {
        let key = config.credentials_key.as_str();
        Self {
            stack: config.stack.clone(),
            store: Store::new(aws, &config.table),
            seal: (!key.is_empty()).then(|| Seal::new(aws, key)),
        }
    }

    /// Shows the page of a link.
    pub async fn show(&self, token: &str) -> SetupAnswer {
        let now_ms = now_ms();
        match self.open_link(token, now_ms).await {
            Ok(OpenLink { link, .. }) => match (link.purpose, &link.sign_in) {
                (Purpose::Key(_) | Purpose::ProjectSecret, _) => {
                    (page::form(&link, now_ms, None), "setup: page shown")
                }
                (_, Some(there)) => {
                    let there = format!("{there}&state={token}");
                    (page::sign_in(&link, &there, now_ms), "setup: sign-in shown")
                }
                (_, None) => spent(),
            },
            Err(told) => told,
        }
    }

    /// Takes a form submitted from the page of a link.
    pub async fn take(&self, token: &str, body: &[u8], queues: &Queues) -> SetupAnswer {
        let now_ms = now_ms();
        let OpenLink { id, link, seal } = match self.open_link(token, now_ms).await {
            Ok(open) => open,
            Err(told) => return told,
        };
        let tenant = link.thread.tenant();
        let (context, usable, wrong): (_, fn(&str) -> Option<&str>, _) =
            match (link.purpose, &link.secret) {
                (Purpose::Key(key), _) => (sealed_for(&self.stack, &tenant, key), usable, NO_KEY),
                (Purpose::ProjectSecret, Some(wish)) => {
                    (secret_sealed_for(&self.stack, &tenant, wish), usable_value, NO_VALUE)
                }
                _ => return spent(),
            };
        let Some(value) = typed(body, usable) else {
            return (page::form(&link, now_ms, Some(wrong)), "setup: no key");
        };
        let sealed = match within(seal.close(&value, &context)).await {
            Ok(sealed) => sealed,
            Err(why) => return later(&why),
        };
        let why = match within(self.store.enter(&id, &sealed, now_ms)).await {
            Ok(true) => match queues.send(&check(&id, &link)).await {
                Ok(()) => return (page::taken(link.purpose), "setup: key taken"),
                Err(error) => error.to_string(),
            },
            Ok(false) => return spent(),
            // It may be stored all the same.
            Err(why) => why,
        };
        // The worker will not hear of it, so the link must not look used.
        if let Err(error) = within(self.store.reopen(&id, &sealed)).await {
            tracing::warn!(event = "setup.unopened", %error, "the link of a key that was not queued could not be opened again");
        }
        later(&why)
    }

    /// Seals and stores a key from a platform's form; the message enqueued next names it. False: nothing was stored.
    pub async fn store(&self, entered: &Entered) -> bool {
        let stored = tokio::time::timeout(Duration::from_millis(FORM_MS_MAX), async {
            let Some(seal) = &self.seal else {
                return Err("tenants' own keys are switched off".to_owned());
            };
            let tenant = entered.about.thread.tenant();
            let context = sealed_for(&self.stack, &tenant, entered.key);
            let sealed = seal.close(&entered.value, &context).await;
            let sealed = sealed.map_err(|e| e.to_string())?;
            let made =
                self.store.make_link(&entered.link, &entered.about, Some((&sealed, now_ms())));
            made.await.map_err(|e| e.to_string())
        });
        let why = match stored.await {
            Ok(Ok(())) => return true,
            Ok(Err(why)) => why,
            Err(_) => format!("no answer within {FORM_MS_MAX} ms"),
        };
        tracing::error!(event = "setup.failed", "a key could not be stored: {why}");
        false
    }

    /// The link, if it still works.
    pub(crate) async fn open_link(
        &self,
        token: &str,
        now_ms: Ms,
    ) -> Result<OpenLink<'_>, SetupAnswer> {
        let Some(seal) = self.seal.as_ref().filter(|_| is_token(token)) else {
            return Err(spent());
        };
        let id = link_id(token);
        let found = within(self.store.link(&id)).await.map_err(|why| later(&why))?;
        let found = found.filter(|found| found.is_open(now_ms)).ok_or_else(spent)?;
        Ok(OpenLink { id, link: found.link, seal })
    }
}

/// The result of a call; without one in time it may have had its effect.
pub async fn within<T, E: Display>(call: impl Future<Output = Result<T, E>>) -> Result<T, String> {
    match tokio::time::timeout(Duration::from_millis(CALL_MS_MAX), call).await {
        Ok(done) => done.map_err(|e| e.to_string()),
        Err(_) => Err(format!("no answer within {CALL_MS_MAX} ms")),
    }
}

/// Whether this can be the secret part of a link, its id, or a press token.
pub fn is_token(text: &str) -> bool {
    text.len() == TOKEN_CHARS && text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// The form's input, if it can be a key.
fn typed(body: &[u8], usable: impl Fn(&str) -> Option<&str>) -> Option<Secret> {
    if body.len() > FORM_BYTES_MAX {
        return None;
    }
    let mut fields = form_urlencoded::parse(body);
    let (_, value) = fields.find(|(name, _)| name == page::FIELD)?;
    Some(Secret::from(usable(&value)?.to_owned()))
}

/// The control message that has the worker check the key with its provider.
fn check(id: &str, link: &SetupLink) -> Body {
    let want = ControlAction::OwnKey { key: OwnKeyRequest::Check { link: id.to_owned() } };
    control(format!("key-{}", &id[..32]), link, want)
}

/// A control message in the name of who asked for the link.
pub fn control(id: String, link: &SetupLink, want: ControlAction) -> Body {
    Body::Control(Control {
        id,
        thread: link.thread.clone(),
        by: link.by.clone(),
        reply: link.reply.clone(),
        membership: link.membership.clone(),
        want,
    })
}

/// A link that never existed, is used, or has expired: the answer does not say which.
pub fn spent() -> SetupAnswer {
    (page::spent(), "setup: link not open")
}

pub fn later(why: &str) -> SetupAnswer {
    tracing::error!(
        event = "setup.failed",
        "what came in through a link could not be taken: {why}"
    );
    (page::later(), "setup: not now")
}
