//! Arguments of the `environment` commands.

use bobbin_core::base::ids::Tenant;
use bobbin_core::tenant::environments;
use clap::{Args, Subcommand};

use super::super::task::{TaskChannel, channel};
use super::provider;
use crate::time::duration_ms;

/// What can be done with how projects are made ready.
#[derive(Debug, Subcommand)]
pub enum EnvironmentCommand {
    /// Show how Bobbin would make a checkout's project ready, or with --tenant what is on record of a repository there
    Show(ShowEnvironment),
    /// Run a repository's set-up as for a prebuild, and keep nothing: says how each step ended
    Try(AskBuild),
    /// Make a prebuild of a repository now, in the place of the one before
    Build(AskBuild),
    /// List the prebuilds, by the records and at the providers
    List(ListPrebuilds),
    /// Delete the prebuilds of a repository; threads begin without one
    Forget(ForgetPrebuilds),
}

#[derive(Debug, Args)]
pub struct ShowEnvironment {
    /// A checkout on this machine (by default the present folder); with --tenant, a repository
    #[arg(value_name = "FOLDER|OWNER/NAME")]
    pub of: Option<String>,
    /// Show what is on record of the repository for this tenant (discord:GUILD or slack:TEAM)
    #[arg(long, value_name = "TENANT", requires = "of", conflicts_with = "at")]
    pub tenant: Option<Tenant>,
    /// The checkout's commit, branch or tag to read (by default HEAD); Bobbin itself reads the default branch
    #[arg(long, value_name = "COMMIT")]
    pub at: Option<String>,
}

#[derive(Debug, Args)]
pub struct AskBuild {
    /// The repository
    #[arg(value_name = "OWNER/NAME", value_parser = repository)]
    pub repository: String,
    /// The server or workspace (discord:GUILD or slack:TEAM)
    #[arg(long, value_name = "TENANT")]
    pub tenant: Tenant,
    /// The provider; by default the one that threads get there
    #[arg(long, value_name = "PROVIDER", value_parser = provider)]
    pub provider: Option<String>,
    /// The channel in which the repository is open; by default it has to be open in all
    #[arg(long, value_name = "ID", value_parser = channel)]
    pub channel: Option<TaskChannel>,
    /// Wait this long for the result (0s: not at all)
    #[arg(long = "wait", value_name = "TIME", default_value = "45m", value_parser = duration_ms)]
    pub wait_ms: u64,
}

#[derive(Debug, Args)]
pub struct ListPrebuilds {
    /// Only those of this tenant (discord:GUILD or slack:TEAM)
    #[arg(long, value_name = "TENANT")]
    pub tenant: Option<Tenant>,
}

#[derive(Debug, Args)]
pub struct ForgetPrebuilds {
    /// The repository
    #[arg(value_name = "OWNER/NAME", value_parser = repository)]
    pub repository: String,
    /// The server or workspace (discord:GUILD or slack:TEAM)
    #[arg(long, value_name = "TENANT")]
    pub tenant: Tenant,
    /// Only the one at this provider
    #[arg(long, value_name = "PROVIDER", value_parser = provider)]
    pub provider: Option<String>,
    /// Wait this long for the result (0s: not at all)
    #[arg(long = "wait", value_name = "TIME", default_value = "5m", value_parser = duration_ms)]
    pub wait_ms: u64,
}

/// Parses the name of a repository, as settings are about it.
pub fn repository(word: &str) -> Result<String, &'static str> {
    environments::repository(word).ok_or("name it as owner/name, for example acme/api")
}
