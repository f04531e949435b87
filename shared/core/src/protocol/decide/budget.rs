//! Money: set aside in the write that begins a turn, watched at each poll, settled in the write that ends it.
//!
//! Promised: what is spent and set aside never passes a budget by more than one model step for each running turn;
//! whatever way a turn ends, nothing stays set aside for it. Of several budgets the first that is exhausted decides.
//! A prompt of [`Prompt::extends`] passes the budget that a person has just been shown: turn and thread for everybody
//! who may prompt, person, channel and tenant for managers, and nobody passes the stack's. A sandbox that runs counts
//! for its turn, or else for the tenant and the stack; a shared one always for those.

use super::{Context, forge, record, words};
use crate::base::ids::Ms;
use crate::records::card::Spending;
use crate::records::message::Prompt;
use crate::records::outcome::Outcome;
use crate::records::sandbox::{InUse, Phase};
use crate::records::session::Session;
use crate::records::spending::Reservation;
use crate::records::turn::Turn;
use crate::records::usage::Usage;
use crate::tenant::budgets::{
    BudgetKind, BudgetScope, BudgetWrite, MicroUsd, RESERVED_MIN, TURN_DEFAULT, day, month,
};
use crate::tenant::capped_keys::KeyLimit;

/// A claim of more than this beyond what was set aside is not believed: anybody may write what a sandbox reports.
const OVERSPENT_MAX: MicroUsd = 50_000_000;

/// The same for the budget of the stack, which all tenants share: what one long step costs. The log has the whole cost
/// of a run (`turn.used`).
const STEP_MAX: MicroUsd = 2_000_000;

/// A budget that a turn is part of.
struct Budget {
    limit: MicroUsd,
    /// Where the sum is stored; `None`: in the thread's record.
    scope: Option<BudgetScope>,
    kind: BudgetKind,
    /// It may be passed by this prompt.
    is_passed: bool,
}

/// Sets aside what a turn may spend; `None` where no budget is set.
///
/// # Errors
/// How a turn ends for which nothing is left.
pub(super) fn reserve(
    session: &mut Session,
    prompt: &Prompt,
    context: &Context<'_>,
) -> Result<Option<Reservation>, Outcome> {
    let budgets = budgets(prompt, context);
    let of_turn = context.settings.budgets.turn;
    if budgets.is_empty() && of_turn.is_none() {
        return Ok(None);
    }
    let (mut amount, mut by) = (of_turn.unwrap_or(TURN_DEFAULT), BudgetKind::Turn);
    for budget in budgets.iter().filter(|budget| !budget.is_passed) {
        let used = match &budget.scope {
            Some(scope) => session.observed.used.get(scope).copied().unwrap_or_default(),
            None => session.spent,
        };
        let left = budget.limit.saturating_sub(used);
        if left < RESERVED_MIN {
            return Err(exhausted(budget, context));
        }
        if left < amount {
            (amount, by) = (left, budget.kind);
        }
    }
    let idle = metered(session, context);
    let mut reservation = Reservation { amount, by, scopes: Vec::new(), spent: 0 };
    for budget in budgets {
        let Some(scope) = budget.scope else { continue };
        let idle = if is_of_all(&scope) { idle } else { 0 };
        let at_most = (!budget.is_passed).then(|| budget.limit.saturating_sub(amount));
        add(session, scope.clone(), (signed(amount.saturating_add(idle)), at_most), context);
        reservation.scopes.push(scope);
    }
    Ok(Some(reservation))
}

/// The budgets that a turn of this prompt is part of, the narrowest first; its own is not among them.
fn budgets(prompt: &Prompt, context: &Context<'_>) -> Vec<Budget> {
    let set = &context.settings.budgets;
    let (day, month) = (day(context.now_ms), month(context.now_ms));
    let scoped = |limit: Option<MicroUsd>, scope: BudgetScope| {
        let kind = scope.kind();
        let is_passed =
            prompt.extends == Some(kind) && prompt.membership.manages && kind != BudgetKind::Stack;
        limit.map(|limit| Budget { limit, kind, scope: Some(scope), is_passed })
    };
    let thread = set.thread.map(|limit| Budget {
        limit,
        scope: None,
        kind: BudgetKind::Thread,
        is_passed: prompt.extends == Some(BudgetKind::Thread),
    });
    let person = BudgetScope::Person { id: prompt.by.id.clone(), day };
    let channel =
        BudgetScope::Channel { id: forge::channel(context).to_owned(), month: month.clone() };
    let of_person = set.person_day.filter(|_| !prompt.by.id.is_empty());
    let of_channel = set.channel_month.filter(|_| !forge::channel(context).is_empty());
    let of_stack = context.delivery.limits.budget.stack_month();
    let all = [
        thread,
        scoped(of_person, person),
        scoped(of_channel, channel),
        scoped(set.month, BudgetScope::Tenant { month: month.clone() }),
        scoped(of_stack, BudgetScope::Stack { month }),
    ];
    all.into_iter().flatten().collect()
}

fn exhausted(budget: &Budget, context: &Context<'_>) -> Outcome {
    Outcome::OverBudget {
        reason: words::budget_exhausted(budget.kind, budget.limit, context.now_ms),
        more: more(budget.kind, context),
        by: Some(budget.kind),
    }
}

/// What a press lets a thread spend in addition: nothing where the operator's budget is exhausted.
fn more(by: BudgetKind, context: &Context<'_>) -> MicroUsd {
    match by {
        BudgetKind::Stack => 0,
        _ => context.settings.budgets.turn.unwrap_or(TURN_DEFAULT),
    }
}

/// What the turns that work in the sandbox have set aside together; `None` if one of them has no budget.
pub(super) fn cap(session: &Session, context: &Context<'_>) -> Option<MicroUsd> {
    let at_work = || session.sandbox.sharing.in_use.iter().filter(|one| !one.left);
    if at_work().next().is_none() {
        // The first turn gets its own.
        return is_any_set(context).then_some(RESERVED_MIN);
    }
    at_work().map(|one| one.reserved).sum()
}

/// Whether anybody has set a budget that turns here are part of.
fn is_any_set(context: &Context<'_>) -> bool {
    let of_stack = context.delivery.limits.budget.stack_month();
    !context.settings.budgets.is_empty() || of_stack.is_some()
}

/// What the server's capped key may spend from now on, for a prompt that begins a run.
pub(super) fn key_limit(session: &Session, context: &Context<'_>) -> Option<KeyLimit> {
    session.sandbox.money.capped_until_ms?;
    Some(cap(session, context).map_or(KeyLimit::Unlimited, KeyLimit::Dollars))
}

/// Whether the server's capped key ends before a turn that begins now may be over, and no other turn needs the server.
pub(super) fn key_ends_soon(session: &Session, context: &Context<'_>) -> bool {
    let ends = session.sandbox.money.capped_until_ms;
    let is_soon = |ends: Ms| ends < context.now_ms + context.delivery.limits.turn.turn_ms;
    let is_others = |one: &InUse| one.thread != session.thread && !one.left;
    ends.is_some_and(is_soon) && !session.sandbox.sharing.in_use.iter().any(is_others)
}

/// What the turn's card shows. What is left of a person's day is nobody else's business.
pub(super) fn shown(session: &Session) -> Option<Spending> {
    let turn = session.turn.as_ref()?;
    let reserved = turn.reserved.as_ref().filter(|one| one.by != BudgetKind::PersonDay)?;
    let budget = reserved.amount;
    Some(Spending { spent: spent(session, turn, Usage::default()), budget })
}

/// The run is aborted once the turn has spent what was set aside.
pub(super) fn watch(session: &mut Session) {
    let Some(turn) = &session.turn else { return };
    let spent = spent(session, turn, Usage::default());
    if let Some(turn) = &mut session.turn
        && let Some(reserved) = &mut turn.reserved
        && spent >= reserved.amount
        && turn.stage.is_running()
    {
        reserved.spent = spent;
        let reason = words::budget_spent(reserved.by, reserved.amount);
        turn.abort(reason);
    }
}

/// How an aborted turn ends: by its budget, or for this reason.
pub(super) fn of_abort(turn: &Turn, reason: &str, context: &Context<'_>) -> Outcome {
    let reason = reason.to_owned();
    let is_spent = turn.stage.prompted().is_some_and(|prompted| prompted.is_spent);
    match &turn.reserved {
        _ if is_spent => Outcome::OverBudget { reason, more: 0, by: None },
        Some(reserved) if reserved.spent >= reserved.amount => {
            let by = reserved.by;
            Outcome::OverBudget { reason, more: more(by, context), by: Some(by) }
        }
        _ => Outcome::Failed { reason },
    }
}

/// How a turn ends that a person or a bound wants over, if its run does not say how it ended.
pub(super) fn of_wanted_over(turn: &Turn, context: &Context<'_>) -> Outcome {
    match (turn.aborting(), &turn.cancelled_by) {
        (Some(reason), _) => of_abort(turn, reason, context),
        (None, by) => Outcome::Cancelled { by: by.clone().unwrap_or_default().name },
    }
}

/// The model's vendor refuses: its account or key has no money left, and no press of a button changes that.
pub(super) fn refused_by_vendor(session: &mut Session, reason: String) {
    match &mut session.turn {
        Some(turn) if turn.stage.is_running() => {
            turn.abort(reason);
            turn.stage.prompted_mut().into_iter().for_each(|prompted| prompted.is_spent = true);
        }
        _ => record::end_with(session, Outcome::OverBudget { reason, more: 0, by: None }),
    }
}

/// How a turn ends when its model's vendor refused for lack of money: with its own budget, if that was the limit of the
/// sandbox's capped key, which also counts what the agent does not report.
pub(super) fn of_vendor(
    session: &mut Session,
    (reason, of_key): (&str, bool),
    context: &Context<'_>,
) -> Outcome {
    let is_capped = of_key && session.sandbox.money.capped_until_ms.is_some();
    let is_shared = session.sandbox.is_shared();
    let reserved = session.turn.as_mut().and_then(|turn| turn.reserved.as_mut());
    let Some(reserved) = reserved.filter(|_| is_capped) else {
        return Outcome::OverBudget { reason: reason.to_owned(), more: 0, by: None };
    };
    let (by, amount) = (reserved.by, reserved.amount);
    // Of a shared key others may have had a part.
    if !is_shared {
        reserved.spent = reserved.spent.max(amount);
    }
    Outcome::OverBudget {
        reason: words::budget_spent(by, amount),
        more: more(by, context),
        by: Some(by),
    }
}

/// What was set aside for the turn is settled. One for which nothing was leaves the time of its sandbox to the next
/// turn, or to the pause.
pub(super) fn settle(session: &mut Session, turn: &Turn, usage: Usage, context: &Context<'_>) {
    let claimed = spent(session, turn, usage);
    let is_metered = turn.reserved.is_some() || !is_any_set(context);
    let running = if is_metered { metered(session, context) } else { 0 };
    let is_shared = session.sandbox.is_shared();
    let of_thread = if is_shared { claimed } else { claimed.saturating_add(running) };
    session.spent = session.spent.saturating_add(of_thread);
    let Some(reserved) = &turn.reserved else { return };
    for scope in reserved.scopes.clone() {
        let overspent_max = match scope {
            BudgetScope::Stack { .. } => STEP_MAX,
            _ => OVERSPENT_MAX,
        };
        let believed = claimed.min(reserved.amount.saturating_add(overspent_max));
        let running = if is_shared && !is_of_all(&scope) { 0 } else { running };
        let counted = believed.saturating_add(running);
        add(session, scope, (signed(counted) - signed(reserved.amount), None), context);
    }
}

/// The sandbox enters this phase: running time that belongs to no turn counts for the tenant and the stack.
pub(super) fn entered(session: &mut Session, phase: Phase, context: &Context<'_>) {
    let limits = &context.delivery.limits.budget;
    match phase {
        Phase::Active if limits.sandbox_hour_cents > 0 => {
            session.sandbox.money.metered_ms.get_or_insert(context.now_ms);
        }
        Phase::Paused | Phase::Destroyed | Phase::Error => {
            let idle = metered(session, context);
            session.sandbox.money.metered_ms = None;
            let month = month(context.now_ms);
            let of_tenant = context
                .settings
                .budgets
                .month
                .map(|_| BudgetScope::Tenant { month: month.clone() });
            let of_stack = limits.stack_month().map(|_| BudgetScope::Stack { month });
            let of_all = of_tenant.into_iter().chain(of_stack).filter(|_| idle > 0);
            for scope in of_all {
                add(session, scope, (signed(idle), None), context);
            }
        }
        _ => {}
    }
}

/// Changes a sum if it is not larger than that. A write changes each sum once: what the turn before has settled in the
/// same write counts for the condition.
fn add(
    session: &mut Session,
    scope: BudgetScope,
    (change, at_most): (i64, Option<MicroUsd>),
    context: &Context<'_>,
) {
    let writes = &mut session.observed.writes.budgets;
    let one = match writes.iter().position(|one| one.scope == scope) {
        Some(place) => &mut writes[place],
        None => {
            let expires_at_ms = context.now_ms + scope.kept_ms();
            writes.push(BudgetWrite { scope, add: 0, at_most: None, expires_at_ms });
            let last = writes.len() - 1;
            &mut writes[last]
        }
    };
    if let Some(at_most) = at_most {
        one.at_most = Some(at_most.saturating_add_signed(one.add.saturating_neg()));
    }
    one.add = one.add.saturating_add(change);
}

/// What the sandbox has cost since it was last counted; from now on that is counted.
fn metered(session: &mut Session, context: &Context<'_>) -> MicroUsd {
    let Some(metered_ms) = &mut session.sandbox.money.metered_ms else { return 0 };
    let since_ms = std::mem::replace(metered_ms, context.now_ms);
    context.delivery.limits.budget.of_sandbox(context.now_ms.saturating_sub(since_ms))
}

const fn is_of_all(scope: &BudgetScope) -> bool {
    matches!(scope, BudgetScope::Tenant { .. } | BudgetScope::Stack { .. })
}

/// What the turn has spent, as far as anybody saw: what was counted at its end can be less, if the end of its run was
/// not seen.
fn spent(session: &Session, turn: &Turn, usage: Usage) -> MicroUsd {
    let seen = [session.observed.spent_before, session.observed.agent.seen.spent];
    let on_record = turn.reserved.as_ref().map_or(0, |reserved| reserved.spent);
    seen.into_iter().flatten().chain([on_record, usage.cost_micro_usd]).max().unwrap_or_default()
}

fn signed(amount: MicroUsd) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}
