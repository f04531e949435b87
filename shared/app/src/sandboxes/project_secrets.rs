//! The project's secrets in a sandbox: the provider keeps them outside, and the agent's tools see placeholders.
//!
//! Promised: a value is in the environment of a process only if a manager has made it readable; a set-up step sees only
//! the secrets that are for set-ups; a secret that the provider does not take is missing alone, and the thread is told.

use std::collections::{BTreeMap, BTreeSet};

use bobbin_agent::ModelKey;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::names::secret_version;
use bobbin_core::base::secret::Secret;
use bobbin_core::records::given_secrets::{
    GivenNetwork, GivenSecret, GivenSecrets, Withheld, WithheldSecret,
};
use bobbin_core::tenant::project_networks::{NetworkAccess, ProjectNetwork, REGISTRIES};
use bobbin_core::tenant::project_secrets::SecretRequest;
use bobbin_http::host_of;
use bobbin_sandbox::{HostedSecret, Placeholder, Sandbox, Secrets};

use super::Sandboxes;
use super::outside_keys::names;

/// Variable of the secret that a sandbox gets so that it can get others.
const FIRST: &str = "BOBBIN_FIRST_SECRET";

/// The secrets of a project, opened for use.
#[derive(Default)]
pub struct OpenedSecrets {
    /// Identifies them with their values; empty: the project has none.
    pub revision: String,
    /// What the sandbox reaches of the world; `None`: all.
    pub network: Option<ProjectNetwork>,
    /// Hosts of the forge.
    pub forge: Vec<String>,
    /// Each one; `None` instead of a value that does not open.
    pub all: Vec<(SecretRequest, Option<Secret>)>,
}

/// Whether a sandbox's network was limited before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WasLimited {
    No,
    /// A set-up may have done it, whose end is not on record.
    Perhaps,
    Yes,
}

/// Where the secrets of a sandbox are.
#[derive(Default)]
pub(super) struct PlacedSecrets {
    /// Those that the provider keeps outside, by variable.
    pub(super) outside: BTreeMap<String, Placeholder>,
    /// Those that are readable inside, by variable.
    inside: BTreeMap<String, String>,
    /// What is on record of them.
    pub(super) given: GivenSecrets,
}

impl PlacedSecrets {
    /// Variables for processes that may use them: placeholders and readable values.
    pub(super) fn variables(&self) -> BTreeMap<String, String> {
        let text = |(variable, one): (&String, &Placeholder)| (variable.clone(), one.text.clone());
        self.outside.iter().map(text).chain(self.inside.clone()).collect()
    }

    /// The provider does not put those in that it was to keep.
    pub(super) fn not_mounted(&mut self) {
        for (name, _) in std::mem::take(&mut self.outside) {
            self.given.given.retain(|one| one.name != name);
            self.given.withheld.push(WithheldSecret { name, why: Withheld::NoRoom });
        }
    }
}

impl OpenedSecrets {
    /// Those that set-up steps may use.
    pub(super) fn of_set_up(self) -> Self {
        let all = self.all.into_iter().filter(|(wish, _)| wish.set_up).collect();
        Self { all, ..self }
    }

    /// The values, so that they can be kept out of what is said.
    pub(super) fn values(&self) -> impl Iterator<Item = &str> {
        self.all.iter().filter_map(|(_, value)| value.as_ref().map(Secret::expose))
    }
}

impl Sandboxes {
    /// Has the provider keep these secrets for this sandbox alone. They are not in it before they are mounted.
    ///
    /// # Errors
    /// The provider does not answer.
    pub(super) async fn place(
        &self,
        sandbox: &Sandbox,
        secrets: &OpenedSecrets,
    ) -> Result<PlacedSecrets, Failure> {
        let mut placed = PlacedSecrets::default();
        placed.given.revision.clone_from(&secrets.revision);
        let mut withhold = |wish: &SecretRequest, why| {
            placed.given.withheld.push(WithheldSecret { name: wish.name.clone(), why });
        };
        let mut hosted = Vec::new();
        for (wish, value) in &secrets.all {
            match value {
                None => withhold(wish, Withheld::Unreadable),
                Some(value) if wish.readable => {
                    placed.inside.insert(wish.name.clone(), value.expose().to_owned());
                    placed
                        .given
                        .given
                        .push(GivenSecret { name: wish.name.clone(), hosts: Vec::new() });
                }
                Some(value) => hosted.push((wish, self.hosted(sandbox, wish, value))),
            }
        }
        let (wishes, hosted): (Vec<&SecretRequest>, Vec<HostedSecret>) = hosted.into_iter().unzip();
        let kept = match (self.provider.facts().secrets, sandbox.has_placeholders()) {
            _ if hosted.is_empty() => return Ok(placed),
            // A sandbox without any placeholder gets no others while it runs.
            (Ok(store), true) => match store.keep(&hosted).await {
                Ok(Secrets::Outside(kept)) => Ok(kept),
                Ok(Secrets::Nowhere { seen }) => Err((Withheld::Nowhere, seen)),
                Err(error) if is_refusal(&error.failure) => {
                    Err((Withheld::NoRoom, error.to_string()))
                }
                Err(error) => return Err(error.failure),
            },
            (Err(why), _) => Err((Withheld::Nowhere, why.to_owned())),
            (Ok(_), false) => {
                Err((Withheld::MadeWithout, "it was made without placeholders".to_owned()))
            }
        };
        match kept {
            Ok(kept) => {
                let given = |wish: &SecretRequest| GivenSecret {
                    name: wish.name.clone(),
                    hosts: wish.hosts.clone(),
                };
                placed.given.given.extend(wishes.into_iter().map(given));
                placed.outside = kept;
            }
            Err((why, seen)) => {
                tracing::warn!(event = "project.secrets.withheld", sandbox = sandbox.name, error = %seen, "a project's secrets are not given to its agent");
                wishes.into_iter().for_each(|wish| withhold(wish, why));
            }
        }
        Ok(placed)
    }

    /// A secret without use, for a sandbox of a stack without model keys: it goes nowhere.
    ///
    /// # Errors
    /// The class of the provider's failure.
    pub(super) async fn keep_first(&self) -> Result<BTreeMap<String, String>, Failure> {
        let Ok(store) = self.provider.facts().secrets else { return Ok(BTreeMap::new()) };
        let first = HostedSecret {
            variable: FIRST.to_owned(),
            value: FIRST.to_owned(),
            version: secret_version(&self.settings.stack_key, FIRST, FIRST),
            hosts: vec!["bobbin.invalid".to_owned()],
            owner: None,
            sandbox: None,
        };
        Ok(match store.keep(&[first]).await? {
            Secrets::Outside(kept) => names(&kept),
            Secrets::Nowhere { .. } => BTreeMap::new(),
        })
    }

    /// Lets the sandbox reach what its project may. Without a setting that is everything, which is set only if the
    /// sandbox was limited before.
    ///
    /// # Errors
    /// The class of the provider's failure.
    pub(super) async fn limit(
        &self,
        sandbox: &Sandbox,
        (secrets, was_limited): (&OpenedSecrets, WasLimited),
        keys: &[ModelKey],
    ) -> Result<Option<GivenNetwork>, Failure> {
        let store = self.provider.facts().secrets.ok();
        let Some(network) = &secrets.network else {
            let Some(store) = store.filter(|_| was_limited != WasLimited::No) else {
                return Ok(None);
            };
            match store.limit_network(sandbox, None).await {
                Err(error) if was_limited == WasLimited::Perhaps => {
                    tracing::warn!(event = "project.network.left", sandbox = sandbox.name, %error, "the network of a project that is not limited was left as it is");
                }
                reset => drop(reset?),
            }
            return Ok(None);
        };
        let models = keys.iter().flat_map(|key| {
            let endpoint = key.endpoint.as_deref().and_then(host_of);
            key.hosts.iter().cloned().chain(endpoint)
        });
        let mut hosts: BTreeSet<String> = models.collect();
        hosts.extend(host_of(&self.settings.nudge_url));
        if network.access == NetworkAccess::Listed {
            let of_secrets = secrets.all.iter().flat_map(|(wish, _)| wish.hosts.clone());
            hosts.extend(of_secrets.chain(network.hosts.clone()).chain(secrets.forge.clone()));
            hosts.extend(REGISTRIES.map(str::to_owned));
        }
        let hosts: Vec<String> = hosts.into_iter().collect();
        let is_limited = match store {
            Some(store) => store.limit_network(sandbox, Some(&hosts)).await?,
            None => false,
        };
        Ok(Some(GivenNetwork {
            access: network.access,
            hosts: network.hosts.clone(),
            is_ignored: !is_limited,
        }))
    }

    fn hosted(&self, sandbox: &Sandbox, wish: &SecretRequest, value: &Secret) -> HostedSecret {
        let value = value.expose();
        HostedSecret {
            variable: wish.name.clone(),
            value: value.to_owned(),
            version: secret_version(&self.settings.stack_key, &wish.name, value),
            hosts: wish.hosts.clone(),
            owner: None,
            sandbox: Some(sandbox.name.clone()),
        }
    }
}

/// Whether asking again helps nothing.
pub(super) const fn is_refusal(failure: &Failure) -> bool {
    matches!(failure, Failure::NonRecoverable { .. } | Failure::TurnFailed { .. })
}
