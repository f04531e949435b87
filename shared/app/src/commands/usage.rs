//! `sandbox-usage`: what was spent, as far as its asker may see it.
//!
//! Promised: a person sees the sum of no other person, unless they manage the place and the operator shows managers
//! what people spend; nobody in a chat sees the whole stack's.

use std::collections::BTreeMap;

use bobbin_chat::Chats;
use bobbin_cloud::store::{DUE_SHARDS, RECORDS_MAX};
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Ms, Tenant, ThreadKey};
use bobbin_core::protocol::ports::Loaded;
use bobbin_core::records::control::Control;
use bobbin_core::shown::usage::{UsagePage, dearest, is_capped, of_thread, scopes};
use bobbin_core::tenant::budgets::{BudgetScope, Budgets, MicroUsd, month, month_of};
use bobbin_core::tenant::commands::Command;
use bobbin_core::tenant::commands::argument::BUDGET;

use crate::control::Lane;

/// Threads whose records are read for one answer.
const THREADS_MAX: usize = 500;

impl Lane<'_> {
    /// Shown only to the requester.
    pub(super) async fn usage(
        &self,
        control: &Control,
        found: &Loaded,
        now_ms: Ms,
    ) -> Result<(), Failure> {
        let tenant = control.thread.tenant();
        let theirs = (&*control.by.id, &*control.membership.channel);
        let mut page = UsagePage {
            thread: found.session.as_ref().map(of_thread),
            is_capped: found.session.as_ref().and_then(is_capped),
            command: format!("{} {BUDGET}", control.thread.command(Command::Config)),
            ..self.usage_of(&tenant, found.settings.budgets, theirs, now_ms).await?
        };
        if self.membership_if_said(control).await?.manages {
            page.threads = self.dearest_threads(&tenant).await?;
            if self.usage_by_person {
                page.people = dearest(self.spent_by_people(&tenant, now_ms).await?);
            }
        }
        self.chat.answer(&control.reply, &page.words()).await
    }

    /// What a person and a channel have used of the budgets that are set, and the whole place.
    pub(crate) async fn usage_of(
        &self,
        tenant: &Tenant,
        budgets: Budgets,
        (person, channel): (&str, &str),
        now_ms: Ms,
    ) -> Result<UsagePage, Failure> {
        let theirs = scopes(&budgets, person, channel, now_ms);
        let sums = self.store.sums(tenant, &theirs).await.map_err(|e| e.failure())?;
        let sums = theirs.into_iter().zip(sums).collect();
        Ok(UsagePage { budgets, sums, ..UsagePage::default() })
    }

    /// Of the threads in the due index, which have a sandbox or a turn: all threads would cost a scan.
    async fn dearest_threads(&self, tenant: &Tenant) -> Result<Vec<(String, MicroUsd)>, Failure> {
        let prefix = format!("{tenant}:");
        let mut threads: Vec<ThreadKey> = Vec::new();
        for shard in 0..DUE_SHARDS {
            let found = self.store.armed_of(shard, &prefix).await;
            threads.extend(found.map_err(|e| e.failure())?);
        }
        // A direct message is between the agent and one person.
        threads.retain(|thread| !Chats::is_direct(thread));
        threads.truncate(THREADS_MAX);
        let mut spent = Vec::new();
        for some in threads.chunks(RECORDS_MAX) {
            let records = self.store.records(some).await.map_err(|e| e.failure())?;
            spent.extend(records.iter().map(|(session, _)| {
                let thread = &session.thread;
                (thread.shown().unwrap_or_else(|| format!("`{thread}`")), of_thread(session))
            }));
        }
        Ok(dearest(spent))
    }

    /// What each person has spent this month, by their ids.
    async fn spent_by_people(
        &self,
        tenant: &Tenant,
        now_ms: Ms,
    ) -> Result<BTreeMap<String, MicroUsd>, Failure> {
        let (stored, month) = (self.store.all_sums(tenant).await, month(now_ms));
        let mut people: BTreeMap<String, MicroUsd> = BTreeMap::new();
        for (name, sum) in stored.map_err(|e| e.failure())? {
            if let Some(BudgetScope::Person { id, day }) = BudgetScope::named(&name)
                && month_of(&day) == month
            {
                *people.entry(format!("`{id}`")).or_default() += sum;
            }
        }
        Ok(people)
    }
}
