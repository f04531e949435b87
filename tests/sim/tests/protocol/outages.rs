//! An hour without table, chat, token, provider or the account of its sandboxes, from every call of a conversation:
//! nothing is lost or done twice, and what the agent has begun is answered.

use bobbin_core::base::limits::{Limits, RetryLimits};
use libtest_mimic::{Failed, Trial};

use super::plan::{Out, PlannedEvent, Trouble, prompt};
use super::promises::{self, Ending, Fact};
use super::state::{Inner, nothing_due, settled};
use super::world::World;

use crate::proof;

const HOUR_MS: u64 = 60 * 60_000;
/// Three prompts: a first one, one right after it, and one that finds the sandbox paused.
const PROMPTS: usize = 3;
/// A constant retry delay, as in earlier versions.
const CONSTANT: RetryLimits =
    RetryLimits { backoff_ms_max: 2_000, outage_backoff_ms_max: 2_000, ..RetryLimits::DEFAULT };

/// What is planted.
type Fault = fn(&mut Inner);

fn conversation(trouble: Trouble, limits: Limits, plant: Fault) -> Result<(u32, World), String> {
    let world = World::new(1, 7, trouble, limits);
    {
        let mut inner = world.lock();
        inner.call_ms = Some(50);
        plant(&mut inner);
    }
    for (number, at_ms) in [(0, 0), (1, 60_000), (2, 45 * 60_000)] {
        let id = format!("t{number}");
        let message = world.message(0, &id, prompt(&id));
        world.plan(at_ms, 0, PlannedEvent::Send(message));
    }
    let mut calls = 0;
    world.run(settled)?;
    judge(&world)?;
    calls += world.lock().calls;
    world.run(nothing_due)?;
    judge(&world)?;
    Ok((calls, world))
}

fn judge(world: &World) -> Result<(), String> {
    world.settle();
    let inner = world.lock();
    let place = &inner.places[0];
    let told = |why: String| format!("{why}\n  {:?}\n  {}", place.history.facts, place.in_short());
    promises::check(&place.history).map_err(told)
}

/// Every turn is answered. A turn that the agent never got may fail if the provider was down or nobody could be told
/// that it began.
fn is_answered(world: &World, of: Out) -> Result<(), String> {
    let inner = world.lock();
    let facts = &inner.places[0].history.facts;
    for turn in 0..PROMPTS {
        let ended = |ending| facts.contains(&Fact::Ended { turn, ending });
        let begun =
            facts.iter().any(|fact| matches!(fact, Fact::Prompted { turn: at, .. } if *at == turn));
        let may_not_begin = matches!(of, Out::Provider | Out::Access | Out::Account);
        let is_well = ended(Ending::Answered) || may_not_begin && ended(Ending::Failed) && !begun;
        if !is_well {
            return Err(format!("turn {turn} is not answered: {facts:?}"));
        }
    }
    Ok(())
}

/// Outages from every call. Returns their number.
fn every_call(of: Out, for_ms: u64, limits: &Limits, plant: Fault) -> Result<u32, String> {
    let (calls, _) = conversation(Trouble::None, limits.clone(), plant)?;
    for at in 1..=calls {
        let trouble = Trouble::Outage { at, of, for_ms };
        let told = |why: String| format!("{of:?} from call {at} on: {why}");
        let (_, world) = conversation(trouble, limits.clone(), plant).map_err(told)?;
        is_answered(&world, of).map_err(told)?;
    }
    Ok(calls)
}

fn hold(of: Out) -> Result<(), Failed> {
    let calls = every_call(of, HOUR_MS, &Limits::DEFAULT, |_| {})?;
    // A token is replaced within minutes.
    every_call(of, 5 * 60_000, &Limits::DEFAULT, |_| {})?;
    println!("{of:?}: an hour and five minutes from each of {calls} calls");
    Ok(())
}

/// The queue gives the message up during a long outage, and its notices die too.
fn given_up(letters_go_unread: bool) -> Result<(), String> {
    let plant: Fault =
        if letters_go_unread { |inner| inner.letters_go_unread = true } else { |_| {} };
    // The deliveries are used up within half an hour, and those of the notice too.
    let limits = Limits { retry: CONSTANT, ..Limits::DEFAULT };
    let trouble = Trouble::Outage { at: 1, of: Out::Table, for_ms: 3 * HOUR_MS };
    let (_, world) = conversation(trouble, limits, plant)?;
    let inner = world.lock();
    if !inner.met.contains("dead letter") {
        return Err("nothing died".to_owned());
    }
    let place = &inner.places[0];
    let kept = place.ledger.values().filter(|entry| entry.again.is_some());
    match kept.count() {
        0 => Err("what was given up cannot be run again".to_owned()),
        _ => Ok(()),
    }
}

/// Threads of a weekend.
const THREADS: usize = 6;
/// Friday evening to Monday morning.
const WEEKEND_MS: u64 = 60 * HOUR_MS;

/// What is down over a weekend.
#[derive(Debug, Clone, Copy)]
enum Away {
    /// Every worker, while idle sandboxes and a turn wait.
    Workers,
    Chat,
}

/// A weekend that begins during turns and with idle sandboxes. Returns the number of sweeps that were sent.
fn weekend(away: Away, plant: Fault) -> Result<u64, String> {
    let world = World::new(THREADS, 7, Trouble::None, Limits::DEFAULT);
    {
        let mut inner = world.lock();
        inner.call_ms = Some(50);
        plant(&mut inner);
    }
    for place in 0..THREADS {
        let id = format!("t{place}");
        let message = world.message(place, &id, prompt(&id));
        // The last of them has just begun when the outage starts.
        let at_ms = if place + 1 < THREADS { 0 } else { HOUR_MS / 4 };
        world.plan(at_ms, place, PlannedEvent::Send(message));
    }
    let deed = match away {
        Away::Workers => PlannedEvent::Idle(WEEKEND_MS),
        Away::Chat => PlannedEvent::Out(Out::Chat, WEEKEND_MS),
    };
    world.plan(HOUR_MS / 4 + 2_000, 0, deed);
    world.plan(WEEKEND_MS + HOUR_MS, 0, PlannedEvent::Rest);
    world.run(settled)?;
    world.settle();
    let inner = world.lock();
    for place in &inner.places {
        promises::check(&place.history)?;
    }
    Ok(inner.sweeps_sent)
}

/// A blocked group gets one sweep, and when it moves again everything completes.
fn weekends() -> Result<(), Failed> {
    for away in [Away::Workers, Away::Chat] {
        let sent = weekend(away, |_| {}).map_err(|why| format!("{away:?}: {why}"))?;
        if sent == 0 {
            return Err(format!("{away:?}: nothing was due").into());
        }
        println!("{away:?} for a weekend: {sent} sweeps in {THREADS} threads");
    }
    Ok(())
}

fn caught(what: Result<u32, String>) -> Result<(), Failed> {
    match what {
        Err(_) => Ok(()),
        Ok(calls) => Err(format!("not caught in {calls} histories").into()),
    }
}

pub fn trials() -> Vec<Trial> {
    let mut trials: Vec<Trial> = Out::ALL
        .into_iter()
        .map(|of| {
            let name = format!("{of:?}").to_lowercase();
            proof(format!("protocol::outages::hour_without_{name}_loses_nothing"), move || hold(of))
        })
        .collect();
    trials.extend([
        proof("protocol::outages::blocked_group_gets_one_sweep", weekends),
        proof("protocol::outages::repeated_sweeps_are_caught", || {
            for away in [Away::Workers, Away::Chat] {
                match weekend(away, |inner| inner.sweeps_each_time = true) {
                    Err(why) if why.contains("sweeps that wait") => {}
                    other => return Err(format!("{away:?}: not caught: {other:?}").into()),
                }
            }
            Ok(())
        }),
        proof("protocol::outages::dead_prompts_are_reported_and_rerunnable", || {
            given_up(false).map_err(Failed::from)
        }),
        proof("protocol::outages::letter_deleted_before_notice_is_caught", || {
            match given_up(true) {
                Err(why) if why.contains("t0") || why.contains("promise") => Ok(()),
                other => Err(format!("not caught: {other:?}").into()),
            }
        }),
        proof("protocol::outages::a_constant_hold_is_caught", || {
            let limits = Limits { retry: CONSTANT, ..Limits::DEFAULT };
            caught(every_call(Out::Writes, HOUR_MS, &limits, |_| {}))
        }),
        proof("protocol::outages::abandoned_token_is_caught", || {
            let plant: Fault = |inner| inner.gives_tokens_up = true;
            caught(every_call(Out::Token, 5 * 60_000, &Limits::DEFAULT, plant))
        }),
        proof("protocol::outages::forgetting_untold_answers_is_caught", || {
            let plant: Fault = |inner| inner.forgets_untold = true;
            caught(every_call(Out::Access, HOUR_MS, &Limits::DEFAULT, plant))
        }),
        proof("protocol::outages::uncompared_account_is_caught", || {
            let plant: Fault = |inner| inner.accounts_uncompared = true;
            caught(every_call(Out::Account, HOUR_MS, &Limits::DEFAULT, plant))
        }),
        proof("protocol::outages::giving_chat_up_early_is_caught", || {
            let retry = RetryLimits { telling_ms: 11 * 60_000, ..RetryLimits::DEFAULT };
            let limits = Limits { retry, ..Limits::DEFAULT };
            caught(every_call(Out::Chat, HOUR_MS, &limits, |_| {}))
        }),
    ]);
    trials
}
