//! The stack's forge: built from configuration and keys, and asked about repositories.

use std::collections::BTreeSet;
use std::sync::Arc;

use bobbin_cloud::aws::Aws;
use bobbin_cloud::clock::now_ms;
use bobbin_cloud::config::Config;
use bobbin_cloud::metrics::Metrics;
use bobbin_cloud::secrets::WorkerKeys;
use bobbin_core::base::credentials::redact;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Tenant, ThreadKey};
use bobbin_core::base::person::Membership;
use bobbin_core::protocol::signals::{Alarm, FORGE_UNUSABLE};
use bobbin_core::records::carried::{ForgeRepository, FoundRepository};
use bobbin_core::records::checks::{Check, CheckKind};
use bobbin_core::records::publication::{
    ActEnd, Opened, Proposal, PullRequestAct, PullRequestRef, PullRequestSeen, PullRequestState,
};
use bobbin_core::records::pull_request::WatchedPullRequest;
use bobbin_core::records::responses::PullRequestResponse;
use bobbin_core::tenant::access::Policy;
use bobbin_core::tenant::bindings::Bindings;
use bobbin_core::tenant::keys::Key;
use bobbin_core::tenant::repositories::BoundForge;
use bobbin_core::text::one_line;
use bobbin_forge::github::{Addresses, GitHub, GitHubSettings};
use bobbin_forge::{
    Forge, ForgeError, ForgeErrorKind, ForgeFacts, NewPullRequest, PullRequest, PullRequests,
    Repository, RepositoryAt, RepositoryName,
};

use bobbin_http::host_of;

use crate::linked::{AccountAccess, NotLinked, SignedIn};
use crate::sandboxes::{at, told};

/// Maximum bytes of all failed checks' output together.
const SAID_BYTES_MAX: usize = 24 * 1024;
/// People whose permission one poll of a pull request looks up: those who spoke last.
const AUTHORS_MAX: usize = 20;

/// The forge, with the owners that the operator has bound to tenants.
pub struct StackForge {
    forge: Arc<dyn Forge>,
    pub(crate) pull_requests: Arc<dyn PullRequests>,
    owners: Vec<(Tenant, String)>,
    /// `None` if nobody can sign in.
    pub(crate) signed_in: Option<SignedIn>,
    /// Whom the operator lets use Bobbin.
    policy: Policy,
    metrics: Metrics,
}

/// Hosts of the forge that is set up, and of the one from which public repositories come.
pub(crate) fn hosts_of_forge(facts: Option<&ForgeFacts<'_>>) -> Vec<String> {
    let set_up = facts.into_iter().flat_map(|facts| [facts.web, facts.git]).filter_map(host_of);
    let public = ["github.com", "api.github.com", "codeload.github.com"];
    let contents = ["objects.githubusercontent.com", "raw.githubusercontent.com"];
    set_up.chain(public.into_iter().chain(contents).map(str::to_owned)).collect()
}

impl StackForge {
    /// `None` if no forge is set up.
    ///
    /// # Errors
    /// A sentence that names the unusable setting.
    pub fn new(aws: &Aws, config: &Config, keys: &WorkerKeys) -> Result<Option<Self>, String> {
        if config.forge_app_id.is_empty() {
            return Ok(None);
        }
        let settings = GitHubSettings {
            addresses: Addresses::of(&config.forge.github_api).with_pages(&config.forge.github_git),
            issuer: config.forge_app_id.clone(),
            private_key: keys.of(Key::GitHubPrivateKey).clone(),
            slug: config.forge.github_app.clone(),
            client_id: config.forge_app_id.clone(),
            client_secret: keys.of(Key::GitHubClientSecret).clone(),
        };
        let forge = Arc::new(GitHub::new(settings).map_err(|error| error.to_string())?);
        Ok(Some(Self {
            signed_in: SignedIn::new(aws, config, keys, &forge),
            pull_requests: Arc::<GitHub>::clone(&forge),
            forge,
            owners: config.forge_owners.clone(),
            policy: config.policy.clone(),
            metrics: Metrics::new(&config.stack),
        }))
    }

    /// The forge's client.
    pub(crate) fn client(&self) -> &dyn Forge {
        &*self.forge
    }

    /// The forge as this tenant may use it; `None` if no owner is bound to it, by the operator or by managers.
    #[must_use]
    pub fn bound(&self, tenant: &Tenant, bindings: Option<&Bindings>) -> Option<BoundForge> {
        let own = self.owners.iter().filter(|(of, _)| of == tenant);
        let owners: BTreeSet<String> = own.map(|(_, owner)| owner.clone()).collect();
        let base = self.forge.facts().git.to_owned();
        let bindings = bindings.cloned().unwrap_or_default();
        let is_bound = !owners.is_empty() || !bindings.is_empty();
        is_bound.then_some(BoundForge { base, owners, bindings })
    }

    /// Whether the operator lets this person use Bobbin in the channel of their membership.
    pub(crate) fn admits(&self, thread: &ThreadKey, user: &str, membership: &Membership) -> bool {
        let channel = membership.channel.as_str();
        let admitted = match thread {
            ThreadKey::Discord { guild, thread } => {
                let ids: Vec<&str> =
                    membership.roles.iter().map(String::as_str).chain([user]).collect();
                self.policy.discord(guild, &[channel, thread], &ids)
            }
            ThreadKey::Slack { team, .. } | ThreadKey::SlackDirect { team, .. } => {
                self.policy.slack(team, channel, user)
            }
            ThreadKey::Sandbox(_) => return false,
        };
        admitted.is_ok()
    }

    /// Looks up the repository with this name (`owner/name`).
    ///
    /// # Errors
    /// The class of the failure.
    pub(crate) async fn find(&self, name: &str) -> Result<FoundRepository, Failure> {
        let parsed = name.split_once('/');
        let Some(parsed) = parsed.and_then(|(owner, name)| RepositoryName::new(owner, name)) else {
            return Ok(FoundRepository::NotInstalled);
        };
        match self.forge.repository(&parsed).await {
            Ok(found) => Ok(FoundRepository::Here {
                repository: self.described(&found),
                size_kb: found.size_kb,
            }),
            Err(error) => match error.kind {
                ForgeErrorKind::NotInstalled | ForgeErrorKind::NotFound => {
                    Ok(FoundRepository::NotInstalled)
                }
                ForgeErrorKind::Other | ForgeErrorKind::RateLimited => Err(self.failed(error)),
                _ => Ok(FoundRepository::Refused { why: told(&error) }),
            },
        }
    }

    /// Looks for the newest pull request of a branch.
    ///
    /// # Errors
    /// The class of the failure.
    pub(crate) async fn find_pull_request(
        &self,
        repository: &ForgeRepository,
        branch: &str,
    ) -> Result<Option<PullRequestSeen>, Failure> {
        let found = self.forge.pull_request(&target(repository)?, branch).await;
        found.map(|found| found.map(seen)).map_err(|error| self.failed(error))
    }

    /// Opens the pull request of a branch, unless it has one; with a person's account in that person's name.
    ///
    /// # Errors
    /// The class of the failure.
    pub(crate) async fn open_pull_request(
        &self,
        repository: &ForgeRepository,
        branch: &str,
        proposal: &Proposal,
        (is_draft, author): (bool, Option<AccountAccess>),
    ) -> Result<Opened, Failure> {
        let at = target(repository)?;
        let new = NewPullRequest {
            head: branch.to_owned(),
            base: repository.branch.clone(),
            subject: proposal.subject.clone(),
            body: proposal.body.clone(),
            is_draft,
            person: author.as_ref().map(|author| author.access.clone()),
        };
        let error = match self.forge.open_pull_request(&at, &new).await {
            Ok(opened) => return Ok(Opened::There(seen(opened))),
            Err(error) => error,
        };
        let refusal = match &author {
            Some(author) => self.refusal_of(author, error).await?,
            None => self.refusal(error)?,
        };
        Ok(Opened::Refused { why: told(&refusal) })
    }

    /// Looks at a pull request, at the rules of its base, and at which of its authors may write.
    ///
    /// # Errors
    /// The class of the failure.
    pub(crate) async fn poll(
        &self,
        repository: &ForgeRepository,
        number: u64,
    ) -> Result<WatchedPullRequest, Failure> {
        let at = target(repository)?;
        let looked = async {
            let pull = self.forge.poll_pull_request(&at, number).await?;
            if pull.state != PullRequestState::Open {
                let (required, writers) = (Vec::new(), Vec::new());
                return Ok(WatchedPullRequest { pull, required, writers, not_asked: 0 });
            }
            let authors = pull.authors();
            let (asked, rest) = authors.split_at(authors.len().min(AUTHORS_MAX));
            let (required, writers) = tokio::join!(
                self.forge.required_checks(&at, &pull.base),
                self.forge.writers(&at, asked)
            );
            let (required, writers) = (required?, writers?);
            Ok(WatchedPullRequest { pull, required, writers, not_asked: rest.len() })
        };
        looked.await.map_err(|error| self.failed(error))
    }

    /// The output of failed checks as one bounded text, the end of each: annotations, then the log. Without
    /// credentials.
    ///
    /// # Errors
    /// The class of the failure.
    pub(crate) async fn failures(
        &self,
        repository: &ForgeRepository,
        checks: &[Check],
    ) -> Result<String, Failure> {
        let at = target(repository)?;
        let mut all = String::new();
        for check in checks {
            all.push_str(&format!("Check {}\n", one_line(&check.name)));
            // A status says no more than its name.
            let CheckKind::Run { id, .. } = check.kind else {
                continue;
            };
            let mut said = String::new();
            let failure = match self.pull_requests.check_failure(&at, id).await {
                Ok(failure) => failure,
                // The others are read all the same.
                Err(error) => {
                    self.refusal(error)?;
                    all.push_str("Why it failed cannot be read.\n");
                    continue;
                }
            };
            if !failure.summary.is_empty() {
                said.push_str(&format!("{}\n", failure.summary));
            }
            for one in failure.annotations {
                said.push_str(&format!("{}:{}: {}\n", one.path, one.line, one.message));
            }
            for step in failure.steps {
                said.push_str(&format!("Failed step: {step}\n"));
            }
            said.push_str(&format!("{}\n", failure.log));
            let said = redact(&said);
            let begin = said.len().saturating_sub(SAID_BYTES_MAX / checks.len());
            all.push_str(&said[said.ceil_char_boundary(begin)..]);
        }
        Ok(all)
    }

    /// Does this below a pull request, unless the forge refuses it: a comment or an account may be gone.
    ///
    /// # Errors
    /// The class of the failure.
    pub(crate) async fn respond(
        &self,
        repository: &ForgeRepository,
        number: u64,
        what: &PullRequestResponse,
    ) -> Result<(), Failure> {
        if let Err(error) = self.pull_requests.respond(&target(repository)?, number, what).await {
            let refusal = self.refusal(error)?;
            tracing::warn!(event = "forge.not_responded", "{}", told(&refusal));
        }
        Ok(())
    }

    /// Does something with an open pull request as a person; a merge or an update only if its head is the commit that
    /// they saw.
    ///
    /// # Errors
    /// The class of the failure.
    pub(crate) async fn act(
        &self,
        (repository, number): (&ForgeRepository, u64),
        (act, head): (PullRequestAct, &str),
        (tenant, person): (&Tenant, &str),
    ) -> Result<ActEnd, Failure> {
        let at = target(repository)?;
        let as_person = match self.access_of(tenant, person).await {
            Ok(as_person) => as_person,
            Err(NotLinked::Failed(failure)) => return Err(failure),
            Err(not) => return Ok(ActEnd::NotLinked { why: not.to_string() }),
        };
        let ended = self.pull_requests.act(&at, number, (act, head), &as_person.access).await;
        let refusal = match ended {
            Ok(ended) => return Ok(ended),
            Err(error) => self.refusal_of(&as_person, error).await?,
        };
        let why = told(&refusal);
        Ok(match refusal.kind {
            ForgeErrorKind::SignInEnded => ActEnd::NotLinked { why },
            _ => ActEnd::Refused { why },
        })
    }

    /// The error of a call that the forge refuses for good; any other is a failure.
    pub(crate) fn refusal(&self, error: ForgeError) -> Result<ForgeError, Failure> {
        match error.kind {
            ForgeErrorKind::Other | ForgeErrorKind::RateLimited => Err(self.failed(error)),
            _ => Ok(error),
        }
    }

    /// What to do about a failed call. One that only the operator can fix (a refused key, an unusable setting) is
    /// counted.
    pub(crate) fn failed(&self, error: ForgeError) -> Failure {
        if let (ForgeErrorKind::Other, Failure::NonRecoverable { advice }) =
            (&error.kind, &error.failure)
        {
            tracing::error!(event = FORGE_UNUSABLE, "{advice} (docs/RUNBOOK.md)");
            self.metrics.count(Alarm::ServiceAway, now_ms());
        }
        error.failure
    }

    fn described(&self, found: &Repository) -> ForgeRepository {
        ForgeRepository {
            installation: found.installation,
            id: found.id.0,
            name: found.name.to_string(),
            address: format!("{}/{}", self.forge.facts().git, found.name),
            is_private: found.is_private,
            branch: found.default_branch.clone(),
        }
    }
}

pub(crate) fn target(repository: &ForgeRepository) -> Result<RepositoryAt, Failure> {
    at(repository).ok_or_else(|| Failure::TurnFailed {
        reason: format!("The repository's name {:?} cannot be used.", repository.name),
    })
}

fn seen(found: PullRequest) -> PullRequestSeen {
    PullRequestSeen {
        at: PullRequestRef { number: found.number, page: found.page },
        state: match found.state {
            bobbin_forge::PullRequestState::Open => PullRequestState::Open,
            bobbin_forge::PullRequestState::Closed => PullRequestState::Closed,
            bobbin_forge::PullRequestState::Merged => PullRequestState::Merged,
        },
        is_draft: found.is_draft,
    }
}
