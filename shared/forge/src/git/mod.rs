//! Git's objects, and how they are carried over smart HTTP: the same for every forge.
//!
//! Sources: git's `gitprotocol-v2`, `gitprotocol-pack`, `gitprotocol-http`, `gitformat-pack` and `gitformat-bundle`
//! (git 2.47). Fetching speaks protocol version 2; pushing, for which there is none, the first version. Deliberately
//! absent: negotiation (the caller knows what both sides have), tags, deltas in packs that are read, and SHA-256.

mod bundle;
mod error;
mod fetch;
mod object;
mod pack;
mod pktline;
mod push;
mod refs;
mod remote;

pub use bundle::bundle_header;
pub use error::GitError;
pub use fetch::{Fetch, Fetched, Filter, PackSink};
pub use object::{
    Commit, EntryMode, Ident, NotAnId, ObjectError, ObjectId, ObjectKind, TreeEntry, read_commit,
    read_tree,
};
pub use pack::{Pack, PackBounds, PackError};
pub use push::{Push, Pushed};
pub use refs::{NotARefName, Ref, RefName, Refs};
pub use remote::Remote;
