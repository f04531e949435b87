//! Shows a person's running tasks: on a page of their own, or as the answer to a command.
//!
//! Read-only, and limited to what the due index knows of their tenant: threads with a sandbox or a run. Every step can
//! be repeated; the overviews of one person are one group of the queue, so the newest is shown last.

use bobbin_chat::{Chats, Home, OverviewScope};
use bobbin_cloud::store::DUE_SHARDS;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Ms, ThreadKey, TurnId};
use bobbin_core::base::person::Membership;
use bobbin_core::protocol::drive::Verdict;
use bobbin_core::records::control::{Control, ControlAction};
use bobbin_core::records::flags::ControlFlags;
use bobbin_core::records::message::Overview;
use bobbin_core::records::session::Session;
use bobbin_core::shown::overview::{self, ENDED_MAX, Picture, THREADS_MAX};
use bobbin_core::tenant::access::Refusal;

use crate::arrival::Arrival;
use crate::control::{Lane, dropped};

/// Ended turns read per thread: some may have been asked for by others.
const ENDED_OF_THREAD_MAX: usize = 5;
/// Threads whose ended turns are read.
const THREADS_WITH_ENDED_MAX: usize = 5;

/// Shows a person their running and recently ended tasks.
pub async fn show(lane: &Lane<'_>, overview: &Overview, arrival: Arrival) -> Verdict {
    let Err(failure) = step(lane, overview, arrival.now_ms).await else {
        return Verdict::Done;
    };
    let held = arrival.held(&failure, lane.limits.retry.control_ms, &lane.limits.retry);
    held.unwrap_or_else(|| {
        dropped(lane.metrics);
        tracing::warn!(event = "overview.failed", overview.id = %overview.id, ?failure, "an overview could not be shown");
        Verdict::Done
    })
}

async fn step(lane: &Lane<'_>, wanted: &Overview, now_ms: Ms) -> Result<(), Failure> {
    let scope = Chats::scope_of(wanted)?;
    let chat = lane.chat.of(&scope.own)?;
    let user = wanted.by.id.as_str();
    // These requests do not say who somebody is.
    let member = chat.member(user, &Membership::default()).await?;
    let outsider = member.outsider.then(|| Refusal::Outsider.to_string());
    if let Some(why) = wanted.refused.as_ref().or(outsider.as_ref()) {
        return chat.show_overview(wanted, Home::Closed(why)).await;
    }
    let notice = change(lane, wanted, &scope, now_ms).await?;
    let tenant = scope.own.tenant();
    let settings = lane.store.settings(&tenant).await.map_err(|e| e.failure())?;
    let used = lane.usage_of(&tenant, settings.budgets, (user, ""), now_ms).await?;
    let picture = Picture {
        spending: used.sums(),
        manages: member.manages,
        notice,
        defaults: settings.defaults,
        ..picture(lane, wanted, &scope, now_ms).await?
    };
    chat.show_overview(wanted, Home::Open(&picture)).await
}

/// Makes the change requested there; returns the result in words.
async fn change(
    lane: &Lane<'_>,
    wanted: &Overview,
    scope: &OverviewScope,
    now_ms: Ms,
) -> Result<Option<String>, Failure> {
    let Some(change) = &wanted.change else {
        return Ok(None);
    };
    let control = Control {
        id: wanted.id.clone(),
        thread: scope.own.clone(),
        by: wanted.by.clone(),
        reply: scope.reply.clone(),
        membership: Membership::default(),
        want: ControlAction::Configure { change: change.clone() },
    };
    let settings = lane.store.settings(&scope.own.tenant()).await;
    let settings = settings.map_err(|e| e.failure())?;
    lane.changed(&control, change, settings, now_ms).await.map(Some)
}

/// The person's running and recently ended tasks, in all channels or in one.
async fn picture(
    lane: &Lane<'_>,
    wanted: &Overview,
    scope: &OverviewScope,
    now_ms: Ms,
) -> Result<Picture, Failure> {
    let records = records(lane, scope).await?;
    let user = wanted.by.id.as_str();
    let mut picture = Picture { now_ms, ..Picture::default() };
    for (session, flags) in &records {
        picture.runs.extend(overview::runs(session, flags, user));
    }
    picture.runs.sort_by_key(|run| run.since_ms);
    for (session, _) in records.iter().take(THREADS_WITH_ENDED_MAX) {
        let last = session.ended.iter().rev().take(ENDED_OF_THREAD_MAX);
        let turns: Vec<TurnId> = last.map(|turn| turn.id.clone()).collect();
        let entries = lane.store.entries(&session.thread, &turns).await.map_err(|e| e.failure())?;
        let own = entries.into_iter().filter(|entry| entry.by.id == user);
        picture.ended.extend(own.map(|entry| (session.thread.clone(), entry)));
    }
    picture.ended.sort_by_key(|(_, entry)| std::cmp::Reverse(entry.ended_at_ms));
    picture.ended.truncate(ENDED_MAX);
    Ok(picture)
}

/// Records of its threads in the due index, most recently used first.
async fn records(
    lane: &Lane<'_>,
    scope: &OverviewScope,
) -> Result<Vec<(Session, ControlFlags)>, Failure> {
    let mut threads: Vec<ThreadKey> = Vec::new();
    for shard in 0..DUE_SHARDS {
        let found = lane.store.armed_of(shard, &scope.prefix).await;
        threads.extend(found.map_err(|e| e.failure())?);
    }
    threads.extend(scope.further.clone());
    // The newest conversations are kept if there are too many.
    threads.sort_by(|a, b| (scope.begun)(b).cmp((scope.begun)(a)));
    threads.truncate(THREADS_MAX);
    let mut records = lane.store.records(&threads).await.map_err(|e| e.failure())?;
    records.sort_by_key(|(session, _)| std::cmp::Reverse(session.sandbox.last_activity_ms));
    Ok(records)
}
