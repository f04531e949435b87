//! Where repositories live.
//!
//! `git` carries objects over smart HTTP, the same for every forge; each forge has a folder with its types and client
//! behind [`Forge`] and [`People`]. A token lives for one operation, on one repository, with the rights of that
//! operation, and is revoked afterwards. No credential leaves this crate but in a request to its forge.

mod error;
mod forge;
pub mod git;
pub mod github;
pub mod outgoing;
mod people;
mod pull_requests;

pub use error::{ForgeError, ForgeErrorKind, ForgeResult};
pub use forge::{
    Forge, ForgeFacts, Installation, NewPullRequest, Owner, OwnerKind, PullRequest,
    PullRequestChange, PullRequestState, Repository, RepositoryAt, RepositoryId, RepositoryList,
    RepositoryName,
};
pub use people::{OrganizationMembership, People, Permission, Person, SignIn};
pub use pull_requests::{CheckAnnotation, CheckFailure, PullRequests};
