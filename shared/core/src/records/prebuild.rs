//! Prebuilds: snapshots in which a project is set up already. New sandboxes of its repository begin with one.
//!
//! A prebuild is made in a builder: a sandbox without an agent, keys or secrets, which nobody works in, and which is
//! deleted afterwards. Its record keeps the newest one.

use serde::{Deserialize, Serialize};

use crate::base::ids::{Ms, SandboxKey, Tenant, TurnId, digest};
use crate::records::message::{Message, Work};
use crate::records::sandbox::SandboxRecord;

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
/// Hex digits of a message's id.
const ID_DIGITS: usize = 24;

/// What decides whether a prebuild fits: equal hashes mean that the same steps would run on the same files.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BuildKey {
    /// Hash of the image, the recipe and the lock files.
    pub hash: String,
    /// Hash of the image.
    pub image: String,
}

impl BuildKey {
    /// The key of a project with this recipe, as text, and these lock files.
    #[must_use]
    pub fn of(image: &str, recipe: &str, locks: &str) -> Self {
        Self { hash: digest(&["prebuild", image, recipe, locks]), image: image.to_owned() }
    }
}

/// A prebuild.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Prebuild {
    /// The snapshot's name at the provider.
    pub snapshot: String,
    /// What it was made of.
    pub of: BuiltProject,
}

/// What a prebuild was made of.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BuiltProject {
    /// What decides whether it fits.
    pub key: BuildKey,
    /// The commit of the default branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The forge's id of the repository; `None`: it was cloned from inside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<u64>,
}

/// What a generation of a sandbox is created from.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BeginsWith {
    /// Nobody has looked yet.
    #[default]
    Unknown,
    /// The image.
    Image,
    /// A prebuild.
    Prebuild(Prebuild),
    /// The image, because the prebuild of the generation before could not be used; its name, if it is useless.
    ImageInstead(Option<String>),
}

impl BeginsWith {
    /// Nobody has looked yet.
    #[must_use]
    pub const fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown)
    }

    /// The prebuild.
    #[must_use]
    pub const fn prebuild(&self) -> Option<&Prebuild> {
        match self {
            Self::Prebuild(prebuild) => Some(prebuild),
            Self::Unknown | Self::Image | Self::ImageInstead(_) => None,
        }
    }
}

/// Work about the prebuild of a repository. It travels in the builder's group.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NewBuild {
    /// The repository, without a branch.
    pub repo: String,
    /// The provider; `None` means the stack's first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The channel in which the repository is open.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub channel: String,
    /// The hash of the set-up after which it was requested; empty: a person asks for it, whatever there is.
    pub hash: String,
    /// The name of a snapshot that is of no use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub useless: Option<String>,
    /// What is done in the builder.
    #[serde(default, skip_serializing_if = "BuildPurpose::is_build")]
    pub purpose: BuildPurpose,
}

/// What a builder's message wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BuildPurpose {
    /// A new prebuild in the place of the one before.
    #[default]
    Build,
    /// The same set-up, of which nothing is kept.
    Try,
    /// No prebuild any more.
    Forget,
}

impl BuildPurpose {
    const fn is_build(&self) -> bool {
        matches!(self, Self::Build)
    }

    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Build => "build",
            Self::Try => "try",
            Self::Forget => "forget",
        }
    }
}

impl NewBuild {
    /// The message that requests it: one a day for each hash.
    #[must_use]
    pub fn message(self, builder: &SandboxKey, now_ms: Ms) -> Message {
        let day = (now_ms / DAY_MS).to_string();
        let useless = self.useless.as_deref().unwrap_or_default();
        let id = &digest(&["build", &builder.to_string(), &self.hash, useless, &day])[..ID_DIGITS];
        Message {
            id: format!("build-{id}").into(),
            thread: builder.group(),
            accepted_at_ms: now_ms,
            work: Work::Build(self),
        }
    }
}

/// The builder of a repository (`owner/name`, in small letters) of a tenant at a provider.
#[must_use]
pub fn builder_of(tenant: &Tenant, repository: &str, provider: Option<&str>) -> SandboxKey {
    let asked_by = TurnId::from(format!("builds {repository} at {}", provider.unwrap_or_default()));
    SandboxKey::without_thread(tenant, &asked_by)
}

/// The newest prebuild of a builder, if it was made with the same credentials.
#[must_use]
pub fn newest(builder: &SandboxRecord, credentials: Option<&str>) -> Option<Prebuild> {
    let is_same = builder.spec.credentials.as_deref() == credentials;
    let built = builder.snapshots.iter().filter(|kept| is_same && kept.built.is_some());
    let kept = built.max_by_key(|kept| kept.at_ms)?;
    Some(Prebuild { snapshot: kept.name.clone(), of: kept.built.clone()? })
}
