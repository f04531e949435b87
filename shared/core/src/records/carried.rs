//! Repositories that the worker carries between a forge and a sandbox. No credential of the forge enters the sandbox.

use serde::{Deserialize, Serialize};

/// A repository, as its forge describes it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ForgeRepository {
    /// Id of the installation of our app that has it.
    pub installation: u64,
    /// The forge's id, which a rename does not change.
    pub id: u64,
    /// `owner/name`, as the forge writes it.
    pub name: String,
    /// Address for people and for `git remote`.
    pub address: String,
    /// Only people whom its owner lets in can read it.
    pub is_private: bool,
    /// The branch that was asked for, else the default branch: pull requests go there.
    pub branch: String,
}

/// The answer of a forge about a repository that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum FoundRepository {
    /// Our app is not installed for it, or it does not exist; from outside, the two look alike.
    NotInstalled,
    /// It can be carried.
    Here {
        /// The repository.
        repository: ForgeRepository,
        /// The forge's estimate of its size in kilobytes: hours old, and of more than is carried; 0 if unknown.
        size_kb: u64,
    },
    /// It cannot, and a retry does not help.
    Refused {
        /// The reason and what to do, for people.
        why: String,
    },
}

/// The repository that this generation's sandbox was given.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Carried {
    /// The repository.
    pub repository: ForgeRepository,
    /// The repository's default branch; `None`: the one that is named there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// Its folder in the thread's checkout; `None`: it is that checkout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The commit that was asked for, else the newest of the branch when it was carried; `None` if it had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
}

/// Where in a sandbox a repository is carried to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum CarriedTo {
    /// Where the agent works.
    #[default]
    Project,
    /// The folder of a submodule in the thread's repository.
    Submodule(String),
    /// A folder beside the thread's files, which git does not list among them.
    Beside(String),
}

/// What a clone leaves out, if it is one. Paths in the repository, bounded by the code that lists them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct LeftOut {
    /// Submodules: their folders are empty.
    pub submodules: Vec<String>,
    /// Those of them that name an address.
    pub named: Vec<Submodule>,
    /// Git LFS files: only pointers are there.
    pub large: Vec<String>,
    /// Repositories beside it that were not brought, each with the reason.
    pub beside: Vec<String>,
    /// Number of commits that are there, if older ones are not.
    pub history: Option<u64>,
    /// It was fetched now, or no set-up of the sandbox has begun on its disk yet.
    pub is_new: bool,
    /// It was brought into the files of a prebuild.
    pub is_prebuilt: bool,
}

/// A submodule, as the checkout describes it: anybody's words, which only name something to look up.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Submodule {
    /// Its folder in the repository.
    pub path: String,
    /// Its address, which may be relative to the repository's.
    pub address: String,
    /// Its commit, as the repository names it.
    pub commit: String,
}
