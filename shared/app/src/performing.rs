//! One effect, with the clients for the target that it names.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bobbin_cloud::clock::now_ms;
use bobbin_core::base::breaker::CallAdmission;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Ms, PostRef, SandboxKey, ThreadKey, TurnId};
use bobbin_core::base::names::PostKind;
use bobbin_core::protocol::effect::{ChatEffect, ForgeEffect, SandboxEffect};
use bobbin_core::protocol::event::Event;
use bobbin_core::protocol::signals::{ACCOUNT_OTHER, Alarm};
use bobbin_core::protocol::target::{Addressed, EffectTarget};
use bobbin_core::records::account::of_another_account;
use bobbin_core::records::artifacts::Artifact;
use bobbin_core::records::card::{Card, Post, ShownFile};
use bobbin_core::records::flags::ControlFlags;
use bobbin_core::records::prebuild::{self, Prebuild};
use bobbin_core::records::sandbox::SandboxRecord;
use bobbin_core::tenant::catalogue::AgentOptions;
use bobbin_core::tenant::project_networks::revision_of;
use bobbin_core::tenant::selection::Selection;
use tokio::time::timeout;

use crate::accounts::NotCompared;
use crate::forge::hosts_of_forge;
use crate::parts::{WorldParts, counted};
use crate::sandboxes::{
    Moving, OpenedSecrets, RunContext, Sandboxes, Wanted, WorkTarget, unless_cancelled,
};
use crate::visibility::Visibility;
use crate::{catalogue, providers};

/// Longest wait for the agent to say what it offers. The first answer takes as long as its boot for the project (4 s,
/// measured on 1.18.33, more on a busy machine); the prompt would wait for that as well.
const OFFER_MS_MAX: u64 = 20_000;

/// An effect that is being performed.
pub(crate) struct Performing<'a> {
    pub(crate) parts: &'a WorldParts,
    pub(crate) asked: &'a Addressed<'a>,
    visibility: &'a Visibility,
    /// The control flags, once this effect has read them.
    read: Mutex<Option<ControlFlags>>,
}

impl<'a> Performing<'a> {
    pub(crate) fn new(
        parts: &'a WorldParts,
        asked: &'a Addressed<'a>,
        visibility: &'a Visibility,
    ) -> Self {
        Self { parts, asked, visibility, read: Mutex::default() }
    }

    /// The control flags, if this effect read them.
    pub(crate) fn read(self) -> Option<ControlFlags> {
        self.read.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, flags: &ControlFlags) {
        *self.read.lock().unwrap_or_else(PoisonError::into_inner) = Some(flags.clone());
    }

    /// Posts, or tells somebody, in a chat.
    pub(crate) async fn in_chat(&self, target: WorkTarget<'_>, effect: &ChatEffect) -> Event {
        let thread = target.thread;
        match effect {
            ChatEffect::Post { turn, kind, at, post } => {
                self.post(thread, turn, kind, at.as_ref(), post).await
            }
            ChatEffect::PostArtifact { turn, index, file } => {
                match self.artifact(target, file).await {
                    Ok(bytes) => {
                        let post = Post::File(ShownFile { name: file.name(), bytes });
                        let kind = PostKind::Artifact(*index);
                        self.post(thread, turn, &kind, None, &post).await
                    }
                    Err(why) => Event::Unshown { why },
                }
            }
            ChatEffect::Tell { thread: told, turn, word, archive } => {
                let chat = &self.parts.chat;
                match chat.notify_thread(told, turn, word, *archive).await {
                    // Not retried if the chat cannot be reached at all.
                    Ok(()) | Err(Failure::NonRecoverable { .. }) => {
                        Event::Told { thread: told.clone() }
                    }
                    Err(failure) => Event::Failed(failure),
                }
            }
            ChatEffect::TellBeside { turn, people, word } => {
                let chat = &self.parts.chat;
                let told =
                    async { chat.of(thread)?.notify_outside(thread, turn, people, word).await };
                match told.await {
                    Ok(()) => Event::Told { thread: thread.clone() },
                    Err(failure) => {
                        tracing::warn!(event = "thread.closed", %thread, turn = &**turn, %failure, "the end of a turn could be posted neither in its thread nor to the requester; it is kept");
                        Event::Failed(failure)
                    }
                }
            }
        }
    }

    /// The newest prebuild of a builder that was made as the target's sandbox would be.
    pub(crate) async fn prebuild(&self, builder: &SandboxKey) -> Result<Option<Prebuild>, Failure> {
        let record = self.record(builder).await?;
        let credentials = self.asked.at.credentials.as_deref();
        let Some(found) = record.and_then(|record| prebuild::newest(&record, credentials)) else {
            return Ok(None);
        };
        let image = self.sandboxes().await?.image();
        Ok(Some(found).filter(|found| image.as_ref() == Some(&found.of.key.image)))
    }

    /// Performs an effect of the forge.
    pub(crate) async fn at_forge(
        &self,
        target: WorkTarget<'_>,
        effect: &ForgeEffect,
    ) -> Result<Event, Failure> {
        let forge = self.parts.forge.as_ref().ok_or_else(|| Failure::TurnFailed {
            reason: "No forge is set up here any more.".to_owned(),
        })?;
        match effect {
            ForgeEffect::Find { name } => Ok(Event::RepositoryFound(forge.find(name).await?)),
            ForgeEffect::Carry { repository, wanted, pull, to, size_kb, within_ms, watch } => {
                let sandboxes = self.sandboxes().await?;
                let (at, pull) = (wanted.as_deref(), pull.as_ref());
                let what = Wanted { repository, at, pull, to, size_kb: *size_kb };
                let carry = sandboxes.carry(forge.client(), target, what, *within_ms);
                unless_cancelled(self, target.thread, watch.as_ref(), carry).await
            }
            ForgeEffect::ReadOutgoing { carried, at_ms, pushed } => {
                let sandboxes = self.sandboxes().await?;
                let at = (*at_ms, pushed.as_deref());
                sandboxes.read_outgoing(forge.client(), target, carried, at).await
            }
            ForgeEffect::Push { carried, branch, old, new, follows } => {
                let sandboxes = self.sandboxes().await?;
                let (old, follows) = (old.as_deref(), follows.as_deref());
                let moving = Moving { branch, old, new, follows };
                sandboxes.push_outgoing(forge.client(), target, carried, moving).await
            }
            ForgeEffect::FindPullRequest { repository, branch } => {
                forge.find_pull_request(repository, branch).await.map(Event::PullRequestSeen)
            }
            ForgeEffect::Bring { carried, branch } => {
                let sandboxes = self.sandboxes().await?;
                let brought =
                    sandboxes.bring_named(forge.client(), target, carried, branch).await?;
                Ok(Event::Brought { branch: branch.clone(), is_there: brought.is_some() })
            }
            ForgeEffect::MoveCheckout { carried, pushed } => {
                let sandboxes = self.sandboxes().await?;
                let pushed = pushed.as_deref();
                sandboxes.move_checkout(forge.client(), target, carried, pushed).await
            }
            ForgeEffect::ReadFailures { repository, checks } => {
                forge.failures(repository, checks).await.map(Event::FailuresRead)
            }
            ForgeEffect::FindPerson { account, channel } => {
                let thread = target.thread;
                let person = forge.person_of(*account, &thread.tenant()).await?;
                let found = match person {
                    Some(person) => {
                        let chat = self.parts.chat.of(thread)?;
                        let membership =
                            chat.membership(thread, &person.id, channel.as_deref()).await?;
                        let is_admitted = forge.admits(thread, &person.id, &membership);
                        is_admitted.then_some((person, membership))
                    }
                    None => None,
                };
                Ok(Event::PersonFound { account: *account, found })
            }
            ForgeEffect::Respond { repository, number, what } => {
                forge.respond(repository, *number, what).await.map(|()| Event::Responded)
            }
            ForgeEffect::PollPullRequest { repository, number } => {
                forge.poll(repository, *number).await.map(Event::PullRequestPolled)
            }
            ForgeEffect::ActOnPullRequest { repository, number, act, head, person } => {
                let tenant = target.thread.tenant();
                let acted = forge.act((repository, *number), (*act, head), (&tenant, person)).await;
                acted.map(Event::PullRequestActed)
            }
            ForgeEffect::FindGivenPull { repository, number } => {
                forge.find_given(repository, *number).await.map(Event::GivenPullFound)
            }
            ForgeEffect::ReadReview { carried, pull } => {
                let sandboxes = self.sandboxes().await?;
                let base = carried.base.as_deref().unwrap_or_default();
                let written = sandboxes.written_review(target, base).await?;
                forge.review(written, carried, pull).await.map(Event::ReviewRead)
            }
            ForgeEffect::PostReview { repository, number, review } => {
                let posted = forge.post_review(repository, *number, review).await;
                posted.map(Event::ReviewPosted)
            }
            ForgeEffect::AskPresser { repository, person } => {
                let seen = forge.presser(repository, (&target.thread.tenant(), person)).await;
                seen.map(Event::PresserSeen)
            }
            ForgeEffect::OpenPullRequest { repository, branch, proposal, is_draft, person } => {
                let tenant = target.thread.tenant();
                let author = match person {
                    Some(person) => forge.author(repository, (&tenant, person)).await?,
                    None => None,
                };
                let opened =
                    forge.open_pull_request(repository, branch, proposal, (*is_draft, author));
                opened.await.map(Event::Opened)
            }
        }
    }

    /// Posts into the thread, or edits the post at `at`. A card also sets its turn's status.
    async fn post(
        &self,
        thread: &ThreadKey,
        turn: &TurnId,
        kind: &PostKind,
        at: Option<&PostRef>,
        post: &Post,
    ) -> Event {
        let chat = match self.parts.chat.of(thread) {
            Ok(chat) => chat,
            Err(failure) => return Event::Failed(failure),
        };
        let posted = chat.post(thread, turn, kind, at, post).await;
        // Also if the card could not be shown: a stale status would say that the turn still works.
        if let Post::Card(card) = post.bare() {
            chat.set_status(thread, turn, &card.state).await;
        }
        posted.map_or_else(Event::Failed, Event::Posted)
    }

    /// The clients for another sandbox of the thread's tenant, by its record.
    pub(crate) async fn sandboxes_of(
        &self,
        thread: &ThreadKey,
        record: &SandboxRecord,
    ) -> Result<Arc<Sandboxes>, Failure> {
        let own = record.spec.credentials.is_some();
        let at = (record.spec.provider.as_deref(), record.spec.runtime.as_deref());
        self.parts.tenants.of(&thread.tenant(), self.asked.settings, own, at).await
    }

    /// The clients for the target: its provider, runtime and credentials.
    pub(crate) async fn sandboxes(&self) -> Result<Arc<Sandboxes>, Failure> {
        let to = &self.asked.at;
        let at = (to.provider.as_deref(), to.runtime.as_deref());
        let tenant = to.thread.tenant();
        self.parts.tenants.of(&tenant, self.asked.settings, to.own_credentials, at).await
    }

    async fn artifact(&self, target: WorkTarget<'_>, file: &Artifact) -> Result<Vec<u8>, String> {
        let found = self.with_files(target).await.map_err(|_| "the sandbox cannot be reached")?;
        let there = found.ok_or("is in a sandbox that is not running")?;
        there.sandboxes.fetch_artifact(there.target(target.thread), file).await
    }

    /// Performs a provider effect unless its breaker is open, and reports the result to the breaker.
    pub(crate) async fn guarded(&self, target: WorkTarget<'_>, effect: &SandboxEffect) -> Event {
        // Whoever is admitted has to report how the call went: what is not the provider's comes first.
        let sandboxes = match self.sandboxes().await {
            Ok(sandboxes) => sandboxes,
            Err(failure) => return Event::Failed(failure),
        };
        let (provider, breaker) = (self.provider(), breaker(&self.asked.at, self.provider()));
        if let CallAdmission::No { retry_in_ms } =
            self.parts.breakers.admit(&breaker, now_ms()).await
        {
            return Event::Failed(Failure::Outage {
                after_ms: retry_in_ms,
                seen: "the sandbox provider does not answer".to_owned(),
            });
        }
        let compared = if effect.rests_on_account() && !is_in_own_account(&self.asked.at) {
            self.is_same_account(provider).await
        } else {
            Ok(true)
        };
        let event = match compared {
            Err(NotCompared::Store(error)) => {
                return Event::Failed(counted(&self.parts.metrics, &error));
            }
            Err(error) => Event::Failed(error.failure()),
            Ok(false) => {
                self.parts.breakers.succeeded(&breaker, now_ms()).await;
                self.parts.metrics.count(Alarm::ServiceAway, now_ms());
                let seen = of_another_account(provider);
                tracing::error!(event = ACCOUNT_OTHER, provider, "{seen} (docs/RUNBOOK.md)");
                return Event::Failed(Failure::Outage { after_ms: 0, seen });
            }
            Ok(true) => sandboxes.perform_sandbox(self, target, effect).await,
        };
        match &event {
            Event::Failed(Failure::Outage { seen, .. }) => {
                if self.parts.breakers.failed(&breaker, seen, now_ms()).await {
                    self.parts.metrics.count(Alarm::ServiceAway, now_ms());
                }
            }
            _ => self.parts.breakers.succeeded(&breaker, now_ms()).await,
        }
        event
    }

    /// The name of the target's provider.
    fn provider(&self) -> &str {
        self.asked.at.provider.as_deref().unwrap_or(self.parts.tenants.configured())
    }

    /// Whether the stack's account at this provider is the one on record. A tenant's own account is compared when its
    /// key is stored.
    async fn is_same_account(&self, name: &str) -> Result<bool, NotCompared> {
        let WorldParts { accounts, store, account_ms, tenants, .. } = &self.parts;
        // A provider that is not set up has no account to compare: the effect says so.
        let Ok(provider) = tenants.set_up().named(Some(name)) else {
            return Ok(true);
        };
        accounts.is_same(store, (name, &*provider), (now_ms(), *account_ms)).await
    }

    /// The agent's options, recorded in the tenant's catalogue with what the turn uses. Best effort throughout.
    pub(crate) async fn list_options(
        &self,
        target: WorkTarget<'_>,
        used: &Selection,
    ) -> AgentOptions {
        let thread = target.thread;
        let asked = async {
            let sandboxes = self.sandboxes().await?;
            sandboxes.options(target.sandbox, target.generation).await
        };
        let offer = match timeout(Duration::from_millis(OFFER_MS_MAX), asked).await {
            Ok(Ok(offer)) => offer,
            Ok(Err(failure)) => {
                tracing::info!(event = "agent.offer.failed", %thread, ?failure, "the agent did not list its options");
                AgentOptions::default()
            }
            Err(_) => {
                tracing::info!(event = "agent.offer.failed", %thread, "the agent did not list its options in time");
                AgentOptions::default()
            }
        };
        let providers = self.parts.tenants.set_up().names();
        let providers = providers.map(str::to_owned).collect();
        catalogue::note(&self.parts.store, &thread.tenant(), &offer, used, providers).await;
        offer
    }
}

/// Whether the target is in an account of its tenant's own.
fn is_in_own_account(at: &EffectTarget) -> bool {
    let named = at.provider.as_deref();
    at.own_credentials && named.is_none_or(|name| name == providers::OF_TENANTS)
}

/// The name of the target's breaker at this provider. A tenant's own account has its own: it says nothing about the
/// others'.
fn breaker(at: &EffectTarget, provider: &str) -> String {
    if is_in_own_account(at) {
        format!("{provider} of {}", at.thread.tenant())
    } else {
        provider.to_owned()
    }
}

impl RunContext for Performing<'_> {
    fn now_ms(&self) -> Ms {
        now_ms()
    }

    fn known(&self) -> Option<ControlFlags> {
        Some(self.asked.flags.clone())
    }

    async fn waiting(&self) -> u64 {
        match self.parts.queues.waiting_messages().await {
            Ok(waiting) => waiting,
            Err(error) => {
                tracing::warn!(event = "queue.uncounted", %error, "the number of waiting messages is unknown");
                0
            }
        }
    }

    async fn flags(&self, thread: &ThreadKey) -> Option<ControlFlags> {
        match self.parts.store.flags(thread).await {
            Ok(flags) => {
                self.note(&flags);
                Some(flags)
            }
            Err(error) => {
                tracing::warn!(event = "flags.unread", %thread, %error, "the flags could not be read");
                None
            }
        }
    }

    async fn show(
        &self,
        thread: &ThreadKey,
        kind: &PostKind,
        at: &PostRef,
        card: Card,
    ) -> Option<PostRef> {
        let turn = card.turn.clone();
        let shown = async {
            let chat = self.parts.chat.of(thread)?;
            chat.set_status(thread, &turn, &card.state).await;
            chat.post(thread, &turn, kind, Some(at), &Post::Card(card)).await
        };
        match shown.await {
            Ok(stands) => Some(stands).filter(|stands| stands != at),
            Err(failure) => {
                tracing::info!(event = "card.failed", %thread, ?failure, "a progress card could not be edited; the next one will be");
                None
            }
        }
    }

    fn visible_until_ms(&self) -> Ms {
        self.visibility.get()
    }

    async fn project_secrets(&self) -> Result<OpenedSecrets, Failure> {
        let (at, settings) = (&self.asked.at, self.asked.settings);
        let network = at.network_of.as_ref().and_then(|of| settings.project_networks.of(of));
        let forge = self.parts.forge.as_ref().map(|forge| forge.client().facts());
        let all = match &at.project {
            Some(project) => {
                let tenant = at.thread.tenant();
                self.parts.tenants.project_secrets(&tenant, settings, project).await?
            }
            None => Vec::new(),
        };
        Ok(OpenedSecrets {
            revision: revision_of(settings, at.project.as_deref(), at.network_of.as_deref()),
            network: network.cloned(),
            forge: hosts_of_forge(forge.as_ref()),
            all,
        })
    }

    fn wants_secrets(&self) -> bool {
        !self.asked.settings.project_secrets.is_empty()
    }

    fn has_project_secrets(&self) -> bool {
        self.asked.at.has_secrets
    }

    fn is_limited(&self) -> bool {
        self.asked.at.is_limited
    }
}

#[cfg(test)]
mod tests {
    use bobbin_core::records::workspace::Workspace;

    use super::*;

    fn at(guild: &str, own_credentials: bool, provider: Option<&str>) -> EffectTarget {
        let thread = ThreadKey::discord(guild, "2").expect("ids");
        EffectTarget {
            sandbox: thread.sandbox(),
            thread,
            turn: None,
            generation: 1,
            workspace: Workspace::default(),
            provider: provider.map(str::to_owned),
            runtime: None,
            own_credentials,
            credentials: None,
            project: None,
            network_of: None,
            has_secrets: false,
            is_limited: false,
        }
    }

    #[test]
    fn a_tenants_own_account_has_its_own_breaker() {
        let of = |at: &EffectTarget| breaker(at, providers::OF_TENANTS);
        let (one, other) = (of(&at("1", true, None)), of(&at("3", true, None)));
        assert_ne!(one, other);
        assert_eq!(of(&at("1", true, Some(providers::OF_TENANTS))), one);
        // Those in the stack's account share one.
        let shared = of(&at("1", false, None));
        assert_eq!((&*shared, of(&at("3", false, None))), (providers::OF_TENANTS, shared.clone()));
        assert!(![one, other].contains(&shared));
        // A tenant has no account of its own at other providers.
        assert_eq!(breaker(&at("1", true, Some("vercel")), "vercel"), "vercel");
    }
}
