//! Where platforms deliver: the paths of each, and what verifies a request there.

use std::fmt;

use bobbin_core::base::ids::Ms;
use bobbin_core::base::limits::Limits;
use bobbin_core::base::secret::Secret;
use bobbin_core::tenant::access::Policy;
use bobbin_core::tenant::keys::Key;
use bobbin_core::tenant::overrides::ChatOverrides;

use crate::inbound::Inbound;

/// The note of a request that looks signed but does not match the key: with a newer one it may.
pub const BAD_SIGNATURE: &str = "bad signature";

/// A request to a platform's path, not verified yet.
#[derive(Clone, Copy)]
pub struct RawRequest<'a> {
    /// Its path.
    pub path: &'a str,
    /// The body, unparsed.
    pub raw: &'a [u8],
    /// The value of a header.
    pub header: &'a (dyn Fn(&str) -> Option<&'a str> + Sync),
    /// When it came.
    pub now_ms: Ms,
}

/// What a request is verified with.
#[derive(Clone, Copy)]
pub enum Verifier<'a> {
    /// No stored key: the request needs none, or cannot have been signed with one.
    Nothing,
    /// The stored key.
    Key(&'a Secret),
    /// The key is not stored yet.
    Missing,
    /// The key cannot be read just now.
    Unread,
}

/// The endpoints of a platform.
pub trait Endpoints: fmt::Debug + Send + Sync {
    /// Their paths.
    fn paths(&self) -> &'static [&'static str];

    /// The stored key that verifies a request; `None` if it needs none, or cannot have been signed with one.
    fn key(&self, _request: &RawRequest<'_>) -> Option<Key> {
        None
    }

    /// What a request to one of the paths means, and its answer.
    fn receive(&self, request: &RawRequest<'_>, verifier: Verifier<'_>) -> Inbound;
}

/// What every platform's endpoints are set up with; each takes what it needs.
#[derive(Clone, Copy)]
pub struct EndpointSettings<'a> {
    /// What the parameter `Overrides` says of chats.
    pub overrides: &'a ChatOverrides,
    /// Reads a variable of the function; empty if it has none of this name.
    pub variable: fn(&str) -> String,
    /// Who may use Bobbin.
    pub policy: &'a Policy,
    /// The bounds of prompts and their files.
    pub limits: &'a Limits,
    /// Tenants can store keys of their own.
    pub takes_own_keys: bool,
}
