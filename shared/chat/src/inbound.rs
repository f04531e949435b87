//! The result of a chat platform's request, in one shape for all platforms.

use bobbin_core::base::ids::{Ms, SandboxName, Tenant, TurnId};
use bobbin_core::base::person::Membership;
use bobbin_core::base::secret::Secret;
use bobbin_core::records::message::Body;
use bobbin_core::tenant::catalogue::Catalogue;
use bobbin_core::tenant::keys::Key;
use bobbin_core::tenant::settings::DefaultKind;
use bobbin_core::tenant::setup_link::SetupLink;
use bobbin_http::HttpAnswer;

/// The result of a request: work for the queue, and the HTTP answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inbound {
    /// Enqueued before anything is answered.
    pub enqueue: Option<Body>,
    /// The answer once the queue has accepted (or nothing is enqueued).
    pub answer: HttpAnswer,
    /// The answer if the queue does not accept.
    pub on_queue_failure: HttpAnswer,
    /// The outcome for the log: a few fixed words, never content.
    pub note: &'static str,
    /// Data that improves the answer if it can be read in time.
    pub lookup: Option<Lookup>,
    /// Replacement for `enqueue`, if all direct messages of a person are one thread.
    pub direct: Option<Box<Direct>>,
    /// A key in the request: sealed and stored before anything is enqueued.
    pub entered: Option<Entered>,
    /// The platform sends it again.
    pub repeat: Option<Repeat>,
}

/// A redelivery, as the platform describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repeat {
    /// How often it was sent before.
    pub number: String,
    /// Why it is sent again.
    pub reason: String,
}

/// A direct message, for tenants in which all of a person's direct messages are one thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Direct {
    /// The tenant whose settings decide.
    pub tenant: Tenant,
    /// The earlier message that it belongs to: it goes to the same thread. `None` for a message that begins something.
    pub after: Option<TurnId>,
    /// Body to enqueue in that case.
    pub body: Body,
}

/// A key entered in a form of the platform. The enqueued body names it by `link` and does not hold it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entered {
    /// The kind of key.
    pub key: Key,
    /// The key as typed, not sealed yet.
    pub value: Secret,
    /// The id under which it is stored.
    pub link: String,
    /// Who entered it, and where.
    pub about: SetupLink,
    /// The answer if it cannot be stored.
    pub on_failure: HttpAnswer,
}

impl Inbound {
    /// An answer without further work.
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
            repeat: None,
        }
    }
}

/// A person is typing into a field with suggestions; the inbound's `answer` suggests nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lookup {
    /// The tenant whose settings and catalogue are read.
    pub tenant: Tenant,
    /// The person's channel, roles and permissions.
    pub membership: Membership,
    /// Id of the person: only people who may use Bobbin are shown what others used.
    pub user: String,
    /// Kind of values to suggest.
    pub sought: SuggestionKind,
    /// Text typed so far.
    pub typed: String,
}

/// Kind of values that a person is looking for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuggestionKind {
    /// A repository, a model, an agent.
    Choice(DefaultKind),
    /// A named sandbox.
    Sandbox,
}

/// Values that can be suggested: only the requested ones have been read.
#[derive(Debug, Clone, Default)]
pub struct KnownValues {
    /// Available and recently used values.
    pub catalogue: Catalogue,
    /// The names of the tenant's sandboxes; their status is in the catalogue.
    pub names: Vec<SandboxName>,
    /// When the values were read.
    pub now_ms: Ms,
}
