//! An agent that works outside: when the end of its sandbox is also the end of the second one.

use super::*;
use bobbin_core::base::ids::SandboxKey;
use bobbin_core::protocol::decide::words;
use bobbin_core::records::control::Operation;
use bobbin_core::records::sandbox::{InUse, SandboxRecord, Tools};
use bobbin_core::records::tool_sandbox::{ended, made, tools_of};

fn prompt_in(id: &str, runtime: &str) -> Message {
    let Work::Prompt(prompt) = prompt(id).work else { unreachable!() };
    let wants = Selection { runtime: Some(runtime.to_owned()), ..Selection::default() };
    work(id, Work::Prompt(Prompt { wants, ..prompt }))
}

fn outside() -> Fake {
    let world = Fake::new();
    deliver_until_done(&world, &prompt_in("m1", "outside"), 1);
    world
}

/// The same, with the agent's sandbox lost and that noticed.
fn lost() -> Fake {
    let world = outside();
    world.with(|s| s.sandboxes.clear());
    deliver_until_done(&world, &work("look", Work::Reconcile), 1);
    assert_eq!(record(&world).sandbox.phase, Phase::Destroyed);
    world
}

fn operation(want: Operation) -> Message {
    work("o1", Work::Operate { want, by: None })
}

fn tools(world: &Fake) -> Option<Tools> {
    record(world).sandbox.tooling.tools
}

const fn kept(since: u32) -> Option<Tools> {
    Some(Tools { since, ends_with: None })
}

fn ends(world: &Fake) -> Vec<u32> {
    world.with(|s| s.tools_ended.clone())
}

/// Deletes it with this message, after the second one was requested.
fn ends_both(world: &Fake, message: &Message) {
    world.with(|s| s.names.clear());
    deliver_until_done(world, message, 1);
    assert_eq!((ends(world), tools(world)), (vec![1], None), "{message:?}");
    let at = |name| world.with(|s| s.names.iter().position(|one| *one == name));
    let (second, first) = (at("end_tools"), at("delete"));
    assert!(first.is_none() || second < first, "{:?}", world.with(|s| s.names.clone()));
}

#[test]
fn any_end_destroys_both_sandboxes() {
    ends_both(&outside(), &reset());
    ends_both(&outside(), &operation(Operation::Destroy));
    let world = outside();
    later(&world, Limits::DEFAULT.sandbox.idle_pause_ms);
    deliver_until_done(&world, &work("s1", Work::Sweep), 1);
    assert_eq!(record(&world).sandbox.phase, Phase::Paused);
    later(&world, Limits::DEFAULT.sandbox.paused_ttl_ms);
    ends_both(&world, &work("s2", Work::Sweep));
    assert_eq!(record(&world).sandbox.phase, Phase::Destroyed);
}

#[test]
fn orphaned_tool_sandbox_ends_on_request() {
    for message in [reset(), operation(Operation::Destroy)] {
        ends_both(&lost(), &message);
        let world = lost();
        world.with(|s| s.record.as_mut().unwrap().sandbox.phase = Phase::Error);
        ends_both(&world, &message);
    }
    let world = lost();
    deliver_until_done(&world, &operation(Operation::Destroy), 1);
    let operated = record(&world).sandbox.history.operated;
    assert_eq!(operated.last().map(|one| &one.trouble), Some(&None));
}

#[test]
fn crashed_reset_still_ends_tool_sandbox() {
    for begun in [outside, lost] {
        let crashes = each_crash(begun, &reset(), |world, crash| {
            assert_eq!((tools(world), ends(world).is_empty()), (None, false), "{crash}");
            assert!(world.with(|s| s.sandboxes.is_empty()), "{crash}");
        });
        assert!(crashes > 4, "{crashes}");
    }
}

#[test]
fn recreated_agent_sandbox_keeps_tools() {
    let world = lost();
    assert_eq!((tools(&world), ends(&world)), (kept(1), vec![]));
    deliver_until_done(&world, &prompt_in("m2", "outside"), 1);
    assert_eq!(record(&world).sandbox.generation, 2);
    assert_eq!((tools(&world), ends(&world)), (kept(1), vec![]));
    // The same if the new sandbox cannot be set up.
    world.with(|s| {
        s.sandboxes.clear();
        let refused = Failure::NonRecoverable { advice: "quota".to_owned() };
        s.fail.insert("ensure_server", vec![refused]);
    });
    deliver_until_done(&world, &work("look2", Work::Reconcile), 1);
    deliver_until_done(&world, &prompt_in("m3", "outside"), 1);
    let sandbox = record(&world).sandbox;
    assert_eq!((sandbox.phase, sandbox.generation), (Phase::Destroyed, 3));
    assert_eq!((tools(&world), ends(&world)), (kept(1), vec![]));
    // In another mode the code is not worked on: it waits for a fresh start or the old mode.
    deliver_until_done(&world, &prompt_in("m4", "opencode"), 1);
    assert_eq!(record(&world).sandbox.phase, Phase::Active);
    assert_eq!((tools(&world), ends(&world)), (kept(1), vec![]));
    deliver_until_done(&world, &reset(), 1);
    assert_eq!((tools(&world), ends(&world)), (None, vec![4]));
}

#[test]
fn failed_first_sandbox_ends_its_tools() {
    let world = Fake::new();
    world.with(|s| {
        let refused = Failure::NonRecoverable { advice: "quota".to_owned() };
        s.fail.insert("ensure_server", vec![refused]);
    });
    deliver_until_done(&world, &prompt_in("m1", "outside"), 1);
    assert_eq!(record(&world).sandbox.phase, Phase::Destroyed);
    assert_eq!((tools(&world), ends(&world)), (None, vec![1]));
}

#[test]
fn queue_outage_only_delays_the_end() {
    let world = outside();
    world.with(|s| {
        let away = Failure::Outage { after_ms: 0, seen: "no answer".to_owned() };
        s.fail.insert("end_tools", vec![away; 40]);
    });
    assert!(deliver_until_done(&world, &reset(), 1) > 40);
    assert_eq!((tools(&world), ends(&world)), (None, vec![1]));
    assert!(world.with(|s| s.sandboxes.is_empty()));
}

#[test]
fn forget_is_refused_while_code_remains() {
    let world = lost();
    deliver_until_done(&world, &operation(Operation::Forget), 1);
    let operated = record(&world).sandbox.history.operated;
    assert_eq!(
        operated[0].trouble.as_deref(),
        Some("it still has a sandbox with people's files: destroy that first")
    );
}

fn second(world: &Fake) -> Option<SandboxRecord> {
    world.with(|s| s.sandbox_record(&tools_of(&thread().sandbox())))
}

fn make(world: &Fake) -> Message {
    let agent = record(world).sandbox;
    made((&thread().sandbox(), &agent), None, world.now_ms(), 30_000)
}

#[test]
fn late_create_makes_no_tool_sandbox() {
    let world = outside();
    let wish = make(&world);
    deliver_until_done(&world, &reset(), 1);
    deliver_until_done(&world, &wish, 1);
    let second = second(&world).unwrap();
    assert_eq!((second.phase, second.generation), (Phase::Destroyed, 0));
    assert_eq!(
        second.history.operated[0].trouble.as_deref(),
        Some("its agent's sandbox no longer exists")
    );
    // The next agent's second sandbox is created.
    deliver_until_done(&world, &prompt_in("m2", "outside"), 1);
    later(&world, 60_000);
    deliver_until_done(&world, &make(&world), 1);
    let second = outside::second(&world).unwrap();
    assert_eq!((second.phase, second.generation), (Phase::Active, 1));
}

#[test]
fn tool_sandbox_is_closed_to_others() {
    let world = outside();
    deliver_until_done(&world, &make(&world), 1);
    let key = tools_of(&thread().sandbox());
    let name = second(&world).unwrap().sharing.name.unwrap();
    let other = ThreadKey::discord("1", "9").unwrap();
    let Work::Prompt(prompt) = prompt("p1").work else { unreachable!() };
    let wants = Selection { sandbox: Some(name.clone()), ..Selection::default() };
    let by_name = work("p1", Work::Prompt(Prompt { wants, ..prompt }));
    let by_key = work(
        "c1",
        Work::Connect { to: Some(key), by: person("ann"), membership: Membership::default() },
    );
    for message in [by_name, by_key] {
        let message = Message { thread: other.clone(), ..message };
        deliver_until_done(&world, &message, 1);
        let session = world.with(|s| s.stored(&other).unwrap());
        assert_eq!(session.place.link, None, "{message:?}");
        assert!(second(&world).unwrap().sharing.threads.is_empty(), "{message:?}");
        if message.id == *"p1" {
            let reason = words::no_sandbox(&name, &other);
            let told = session.ended.last().unwrap().outcome.clone();
            assert_eq!(told, Outcome::Failed { reason });
        }
    }
}

#[test]
fn tool_sandbox_end_never_gives_up() {
    let world = outside();
    deliver_until_done(&world, &make(&world), 1);
    let key: SandboxKey = thread().sandbox();
    let end = ended((&key, 1), &second(&world).unwrap(), world.now_ms()).unwrap();
    // The table was down for this many deliveries.
    let first = Limits::DEFAULT.retry.attempts + 20;
    deliver_until_done(&world, &end, first);
    let second = second(&world).unwrap();
    assert_eq!((second.phase, second.sharing.name), (Phase::Destroyed, None));
    assert_eq!(second.history.operated.last().unwrap().trouble, None);
}

#[test]
fn old_generations_end_spares_the_next() {
    let world = outside();
    // A worker of the earlier version does not know the field, keeps it, and works without it.
    world.with(|s| {
        let sandbox = &mut s.record.as_mut().unwrap().sandbox;
        let tools = sandbox.tooling.tools.as_mut().unwrap();
        tools.ends_with = Some(1);
        sandbox.generation = 2;
        s.sandboxes = [(2, SandboxState::Running)].into();
    });
    deliver_until_done(&world, &prompt_in("m2", "outside"), 1);
    assert!(ends(&world).is_empty());
    deliver_until_done(&world, &reset(), 1);
    assert_eq!((tools(&world), ends(&world)), (None, vec![2]));
}

#[test]
fn threads_share_tool_sandbox_checkout() {
    let mut session = record(&outside());
    session.place.link = Some(thread().sandbox());
    session.sandbox.project.repo = Some("acme/api".to_owned());
    assert!(session.works_in_common());
    session.sandbox.spec.runtime = None;
    assert!(!session.works_in_common());
}

#[test]
fn outside_turn_uses_common_checkout() {
    let world = Fake::new();
    let wants = Selection {
        runtime: Some("outside".to_owned()),
        repo: Some("acme/api".to_owned()),
        sandbox: Some("front".parse().unwrap()),
        provider: Some("daytona".to_owned()),
        ..Selection::default()
    };
    let Work::Prompt(prompt) = prompt("m1").work else { unreachable!() };
    let message = work("m1", Work::Prompt(Prompt { wants, ..prompt }));
    world.with(|s| s.kills_followers = true);
    let died = (1..9).any(|receive| {
        catch_unwind(AssertUnwindSafe(|| deliver(&world, &message, receive))).is_err()
    });
    assert!(died);
    let session = world.with(|s| s.stored(&thread()).unwrap());
    assert!(session.sandbox.works_elsewhere() && session.place.link.is_some());
    assert!(session.sandbox.sharing.in_use[0].common, "{:?}", session.sandbox);
}

/// The second sandbox exists, and its sweep comes after this time, while a turn of the agent is at work since then.
fn swept(phase: Phase, after_ms: u64, turn_since_ms: Option<u64>) -> SandboxRecord {
    let world = outside();
    deliver_until_done(&world, &make(&world), 1);
    let key = tools_of(&thread().sandbox());
    later(&world, after_ms);
    world.with(|s| {
        let now_ms = s.now_ms;
        let second = s.apart.get_mut(&key).unwrap();
        second.phase = phase;
        let in_use = turn_since_ms.map(|ago_ms| InUse {
            thread: thread(),
            turn: "m2".into(),
            common: true,
            since_ms: now_ms - ago_ms,
            reserved: None,
            left: false,
        });
        s.record.as_mut().unwrap().sandbox.sharing.in_use = in_use.into_iter().collect();
    });
    let mut sweep = work("s1", Work::Sweep);
    sweep.thread = key.group();
    deliver_until_done(&world, &sweep, 1);
    second(&world).unwrap()
}

#[test]
fn agents_turn_keeps_tool_sandbox_alive() {
    let limits = Limits::DEFAULT;
    let (idle_ms, ttl_ms) = (limits.sandbox.idle_pause_ms, limits.sandbox.named_ttl_ms);
    for (phase, after_ms, otherwise) in [
        (Phase::Active, idle_ms, Phase::Paused),
        (Phase::Resuming, idle_ms, Phase::Paused),
        (Phase::Paused, ttl_ms, Phase::Destroyed),
    ] {
        let kept = swept(phase, after_ms, Some(idle_ms));
        assert_eq!(kept.phase, phase);
        assert!(kept.due_at_ms.is_some());
        assert_eq!(swept(phase, after_ms, None).phase, otherwise);
        // A lost record keeps nothing alive.
        let longest_ms = 2 * (limits.turn.turn_ms + limits.retry.telling_ms);
        assert_eq!(swept(phase, longest_ms.max(after_ms), Some(longest_ms)).phase, otherwise);
    }
}
