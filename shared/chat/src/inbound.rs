//! What became of a request of a chat platform, in one shape for all of them.

use bobbin_core::base::ids::{Ms, SandboxName, Tenant};
use bobbin_core::base::person::Membership;
use bobbin_core::base::secret::Secret;
use bobbin_core::records::message::{Body, Candidate};
use bobbin_core::tenant::keys::Key;
use bobbin_core::tenant::own_keys::SetupLink;
use bobbin_core::tenant::settings::{Catalogue, Kind, Settings};
use bobbin_http::HttpAnswer;

/// What a request comes to: work for the queue, and the answer over HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inbound {
    /// Goes on the queue before anything is answered.
    pub enqueue: Option<Body>,
    /// The answer, once the queue has accepted (or there is nothing to enqueue).
    pub answer: HttpAnswer,
    /// The answer when the queue does not accept.
    pub on_queue_failure: HttpAnswer,
    /// What happened, for the log: a few fixed words, never content.
    pub note: &'static str,
    /// The answer is better when this can be read in time.
    pub lookup: Option<Lookup>,
    /// What goes on the queue instead, if the settings say so.
    pub direct: Option<Box<Direct>>,
    /// A key that came with the request: it is sealed and stored before anything goes on the queue.
    pub entered: Option<Entered>,
}

/// Something that was said in direct messages, as it is where all of a person's are one thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Direct {
    /// Whose settings say so.
    pub tenant: Tenant,
    /// When the first message of its thread was sent, by the platform's clock.
    pub sent_ms: Ms,
    /// What goes on the queue then.
    pub body: Body,
}

impl Direct {
    /// What goes on the queue, by the settings, read after the message was sent; `own` is what does where each direct message
    /// is a thread of its own. Without settings both do, each in the group of its thread, and the worker decides.
    #[must_use]
    pub fn bodies(&self, own: &Body, settings: Option<&Settings>) -> Vec<Body> {
        let copy = |one_thread: bool, said: &Body| {
            Body::Candidate(Candidate {
                sent_ms: self.sent_ms,
                one_thread,
                said: Box::new(said.clone()),
            })
        };
        match settings {
            Some(settings) if settings.is_one_thread(self.sent_ms) => vec![self.body.clone()],
            Some(_) => vec![own.clone()],
            None => vec![copy(false, own), copy(true, &self.body)],
        }
    }
}

/// A key that was entered in a form of the platform. What is enqueued names it by `link` and does not hold it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entered {
    /// Whose key it is.
    pub key: Key,
    /// The key as it was typed, not sealed yet.
    pub value: Secret,
    /// Under which id it is stored.
    pub link: String,
    /// Who entered it where.
    pub about: SetupLink,
    /// The answer when it cannot be stored.
    pub on_failure: HttpAnswer,
}

impl Inbound {
    /// An answer with nothing behind it.
    #[must_use]
    pub fn only(answer: HttpAnswer, note: &'static str) -> Self {
        Self {
            enqueue: None,
            on_queue_failure: answer.clone(),
            answer,
            note,
            lookup: None,
            direct: None,
            entered: None,
        }
    }
}

/// Somebody types into a field that suggests values; `answer` of the inbound suggests none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lookup {
    /// Whose settings and catalogue are to be read.
    pub tenant: Tenant,
    /// Where they type, and as what they count there.
    pub membership: Membership,
    /// Id of who types: only people who may use Bobbin are shown what others used.
    pub user: String,
    /// What is to be suggested.
    pub sought: Sought,
    /// What they have typed so far.
    pub typed: String,
}

/// What somebody looks for who types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sought {
    /// A repository, a model, an agent.
    Choice(Kind),
    /// A sandbox that has a name.
    Sandbox,
}

/// What can be suggested: of these, what was asked for has been read.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// What there is and what was used of late.
    pub catalogue: Catalogue,
    /// The names of the tenant's sandboxes; how each stands is in the catalogue.
    pub names: Vec<SandboxName>,
    /// When that was read.
    pub now_ms: Ms,
}
