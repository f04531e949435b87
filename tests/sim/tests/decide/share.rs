//! Several threads in one sandbox.

use super::forge::{asked, open, repository, world};
use super::publish::{FIRST, holds, reviews, show};
use super::*;
use bobbin_core::base::ids::{SandboxKey, SandboxName};
use bobbin_core::protocol::decide::words;
use bobbin_core::records::control::Operation;
use bobbin_core::records::message::NewSandbox;
use bobbin_core::records::sandbox::SnapshotSeen;

pub(super) fn other(id: &str) -> ThreadKey {
    ThreadKey::discord("1", id).unwrap()
}

fn name(text: &str) -> SandboxName {
    text.parse().unwrap()
}

fn in_thread(of: &ThreadKey, message: Message) -> Message {
    Message { thread: of.clone(), ..message }
}

fn wanting(id: &str, of: &ThreadKey, wants: Selection) -> Message {
    let Work::Prompt(prompt) = prompt(id).work else { unreachable!() };
    in_thread(of, work(id, Work::Prompt(Prompt { wants, ..prompt })))
}

/// A prompt for a thread that uses the sandbox of this name.
pub(super) fn prompt_in(id: &str, of: &ThreadKey, sandbox: &str) -> Message {
    let wants = Selection { sandbox: Some(name(sandbox)), ..Selection::default() };
    wanting(id, of, wants)
}

pub(super) fn call_it(id: &str, text: &str) -> Message {
    let work_of =
        Work::Name { name: name(text), by: person("ann"), membership: Membership::default() };
    work(id, work_of)
}

fn connect(id: &str, of: &ThreadKey, to: Option<SandboxKey>) -> Message {
    let work_of = Work::Connect { to, by: person("ann"), membership: Membership::default() };
    in_thread(of, work(id, work_of))
}

/// An operation by somebody in the chat, in the sandbox's group.
fn operate(world: &Fake, id: &str, of: &SandboxKey, want: Operation) -> Message {
    let by = Some(person("ann"));
    Message {
        accepted_at_ms: world.now_ms(),
        ..in_thread(&of.group(), work(id, Work::Operate { want, by }))
    }
}

/// An active thread whose sandbox is called `front`, with or without a repository.
fn shared(repo: Option<&str>) -> Fake {
    let world = Fake::new();
    let wants = Selection { repo: repo.map(str::to_owned), ..Selection::default() };
    deliver_until_done(&world, &wanting("m1", &thread(), wants), 1);
    deliver_until_done(&world, &call_it("n1", "front"), 1);
    world
}

fn record_of(world: &Fake, of: &ThreadKey) -> Session {
    world.with(|s| s.stored(of).unwrap())
}

fn outcome_of(world: &Fake, of: &ThreadKey) -> Outcome {
    record_of(world, of).ended.last().unwrap().outcome.clone()
}

pub(super) fn notices(world: &Fake) -> Vec<String> {
    world.with(|s| {
        let posts = s.posted.iter().filter_map(|key| s.posts.get(key));
        let notice = |post: &Post| match post.bare() {
            Post::Notice(word) => Some(word.clone()),
            _ => None,
        };
        posts.filter_map(notice).collect()
    })
}

fn card_of(world: &Fake, of: &ThreadKey, turn: &str) -> CardState {
    let key = post_key(of, &turn.into(), &PostKind::Card);
    world.with(|s| match s.posts.get(&key).map(Post::bare) {
        Some(Post::Card(card)) => card.state.clone(),
        other => panic!("no card: {other:?}"),
    })
}

/// A delivery of the message crashes while the run is followed, so its turn is under way.
fn leave_running(world: &Fake, message: &Message) {
    world.with(|s| s.kills_followers = true);
    let died = catch_unwind(AssertUnwindSafe(|| deliver(world, message, 1))).is_err();
    assert!(died);
    world.with(|s| (s.kills_followers, s.crashed) = (false, false));
}

#[test]
fn turn_keeps_sandbox_in_use() {
    let world = active();
    leave_running(&world, &prompt("m2"));
    let sandbox = record(&world).sandbox;
    assert!(sandbox.is_in_use_by(&thread(), &"m2".into()) && sandbox.due_at_ms.is_none());
    // In the sandbox's group a sweep runs beside the turn, however long that takes.
    later(&world, 10 * Limits::DEFAULT.sandbox.idle_pause_ms);
    let group = thread().sandbox().group();
    let sweep = in_thread(&group, work("s1", Work::Sweep));
    deliver_until_done(&world, &sweep, 1);
    assert_eq!(record(&world).sandbox.phase, Phase::Active);
    deliver_until_done(&world, &prompt("m2"), 2);
    let sandbox = record(&world).sandbox;
    assert!(sandbox.sharing.in_use.is_empty() && sandbox.due_at_ms.is_some());
    world.with(|s| assert!(!s.stopped_while_running));
}

#[test]
fn private_sandbox_expires_with_notice() {
    let world = active();
    let group = thread().sandbox().group();
    later(&world, Limits::DEFAULT.sandbox.idle_pause_ms);
    deliver_until_done(&world, &in_thread(&group, work("s1", Work::Sweep)), 1);
    assert_eq!(record(&world).sandbox.phase, Phase::Paused);
    later(&world, Limits::DEFAULT.sandbox.paused_ttl_ms);
    deliver_until_done(&world, &in_thread(&group, work("s2", Work::Sweep)), 1);
    assert_eq!(record(&world).sandbox.phase, Phase::Destroyed);
    let told = world.with(|s| s.told_threads.clone());
    assert_eq!(told, [(thread(), words::EXPIRED.to_owned())]);
    deliver_until_done(&world, &prompt("m2"), 1);
    assert_eq!(outcomes(&world)[1], Outcome::Answered);
}

#[test]
fn taken_sandbox_name_is_refused() {
    let world = shared(None);
    assert_eq!(record(&world).sandbox.sharing.name, Some(name("front")));
    assert_eq!(notices(&world), [words::named(&name("front"), &thread())]);
    let elsewhere = other("9");
    deliver_until_done(&world, &in_thread(&elsewhere, prompt("o1")), 1);
    deliver_until_done(&world, &in_thread(&elsewhere, call_it("n2", "front")), 1);
    assert_eq!(record_of(&world, &elsewhere).sandbox.sharing.name, None);
    assert_eq!(notices(&world)[1], words::name_taken(&name("front")));
    // A repeat changes and says nothing more.
    deliver_until_done(&world, &call_it("n1", "front"), 2);
    assert_eq!(notices(&world).len(), 2);
}

#[test]
fn repository_threads_get_own_worktrees() {
    let world = shared(Some("acme/api"));
    leave_running(&world, &prompt("m2"));
    let beside = other("9");
    deliver_until_done(&world, &prompt_in("o1", &beside, "front"), 1);
    assert_eq!(outcome_of(&world, &beside), Outcome::Answered);
    let session = record_of(&world, &beside);
    assert_eq!(session.sandbox_key(), thread().sandbox());
    assert_eq!(
        session.workspace().unwrap().directory(),
        Some(format!("/work/{}", beside.short_hash()).as_str())
    );
    let sandbox = record(&world).sandbox;
    assert!(sandbox.sharing.threads.contains(&beside));
    assert!(sandbox.is_in_use_by(&thread(), &"m2".into()) && sandbox.sharing.in_use.len() == 1);
    // A second turn finds its worktree.
    deliver_until_done(&world, &in_thread(&beside, prompt("o2")), 1);
    assert_eq!(world.with(|s| s.workspaces.clone()), [beside]);
    assert_eq!(world.with(|s| s.sandboxes.len()), 1);
}

#[test]
fn threads_without_repository_take_turns() {
    let world = shared(None);
    leave_running(&world, &prompt("m2"));
    let beside = other("9");
    let waits = prompt_in("o1", &beside, "front");
    let mut receive = 1;
    for _ in 0..4 {
        let Verdict::Hold { delay_ms, .. } = deliver(&world, &waits, receive) else {
            panic!("it did not wait")
        };
        later(&world, delay_ms);
        receive += 1;
    }
    let holder = Some(thread());
    assert_eq!(card_of(&world, &beside, "o1"), CardState::Shared { holder });
    assert!(world.with(|s| s.prompted.len()) == 2, "it was prompted");
    deliver_until_done(&world, &prompt("m2"), 2);
    // The thread that had it does not get it again before the waiting one.
    assert!(matches!(deliver(&world, &prompt("m3"), 1), Verdict::Hold { .. }));
    deliver_until_done(&world, &waits, receive);
    assert_eq!(outcome_of(&world, &beside), Outcome::Answered);
    deliver_until_done(&world, &prompt("m3"), 2);
    let sandbox = record(&world).sandbox;
    assert!(sandbox.sharing.in_use.is_empty() && sandbox.sharing.waiting.is_empty());
}

#[test]
fn waiting_for_workspace_is_bounded() {
    let world = shared(None);
    leave_running(&world, &prompt("m2"));
    let (gone, patient) = (other("8"), other("9"));
    deliver(&world, &prompt_in("g1", &gone, "front"), 1);
    deliver(&world, &prompt_in("g1", &gone, "front"), 2);
    deliver_until_done(&world, &prompt("m2"), 2);
    assert_eq!(record(&world).sandbox.sharing.waiting.len(), 1);
    deliver_until_done(&world, &prompt_in("p1", &patient, "front"), 1);
    assert_eq!(outcome_of(&world, &patient), Outcome::Answered);

    leave_running(&world, &prompt("m3"));
    later(&world, Limits::DEFAULT.share.workspace_wait_ms);
    deliver_until_done(&world, &prompt_in("p2", &patient, "front"), 1);
    let reason = words::waited_for_workspace(Limits::DEFAULT.share.workspace_wait_ms);
    assert_eq!(outcome_of(&world, &patient), Outcome::Failed { reason });
}

#[test]
fn only_one_thread_resumes_sandbox() {
    let world = shared(Some("acme/api"));
    let beside = other("9");
    deliver_until_done(&world, &prompt_in("o1", &beside, "front"), 1);
    later(&world, Limits::DEFAULT.sandbox.idle_pause_ms);
    let group = thread().sandbox().group();
    deliver_until_done(&world, &in_thread(&group, work("s1", Work::Sweep)), 1);
    assert_eq!(record(&world).sandbox.phase, Phase::Paused);
    // The first crashes right before the start request: load, save, card, check.
    world.with(|s| s.crash_at = Some((s.calls + 4, true)));
    assert!(catch_unwind(AssertUnwindSafe(|| deliver(&world, &prompt("m2"), 1))).is_err());
    world.with(|s| s.crash_at = None);
    assert_eq!(record(&world).sandbox.phase, Phase::Resuming);
    let starts =
        |world: &Fake| world.with(|s| s.names.iter().filter(|one| **one == "start").count());
    let before = starts(&world);
    let second = in_thread(&beside, prompt("o2"));
    assert!(matches!(deliver(&world, &second, 1), Verdict::Hold { .. }));
    assert_eq!(card_of(&world, &beside, "o2"), CardState::Resuming);
    assert_eq!(starts(&world), before);
    deliver_until_done(&world, &prompt("m2"), 2);
    deliver_until_done(&world, &second, 2);
    assert_eq!(outcome_of(&world, &beside), Outcome::Answered);
    assert_eq!(starts(&world), before + 1);
}

#[test]
fn destroy_waits_for_running_turns() {
    let world = shared(Some("acme/api"));
    let beside = other("9");
    deliver_until_done(&world, &prompt_in("o1", &beside, "front"), 1);
    leave_running(&world, &prompt("m2"));
    let key = thread().sandbox();
    let destroy = operate(&world, "d1", &key, Operation::Destroy);
    assert!(matches!(deliver(&world, &destroy, 1), Verdict::Hold { .. }));
    assert!(record(&world).sandbox.sharing.closing.is_some());
    // Nothing begins in it any more.
    let late = in_thread(&beside, prompt("o2"));
    assert!(matches!(deliver(&world, &late, 1), Verdict::Hold { .. }));
    deliver_until_done(&world, &prompt("m2"), 2);
    deliver_until_done(&world, &destroy, 2);
    let sandbox = record(&world).sandbox;
    assert_eq!((sandbox.phase, sandbox.sharing.name), (Phase::Destroyed, None));
    assert!(world.with(|s| s.names_of.is_empty() && s.sandboxes.is_empty()));
    let told: Vec<ThreadKey> =
        world.with(|s| s.told_threads.iter().map(|(of, _)| of.clone()).collect());
    assert_eq!(told, [thread(), beside.clone()]);
    world.with(|s| assert!(!s.stopped_while_running));
    // The waiting thread continues in its own sandbox.
    deliver_until_done(&world, &late, 2);
    assert_eq!(outcome_of(&world, &beside), Outcome::Answered);
    assert_eq!(record_of(&world, &beside).place.link, None);
}

#[test]
fn refused_destroy_blocks_nobody() {
    let world = shared(None);
    let destroy = operate(&world, "d1", &thread().sandbox(), Operation::Destroy);
    let advice = "Daytona refused the API key.";
    let refused = Failure::NonRecoverable { advice: advice.to_owned() };
    world.with(|s| s.fail.insert("delete", vec![refused]));
    deliver_until_done(&world, &destroy, 1);
    let sandbox = record(&world).sandbox;
    assert_eq!(sandbox.sharing.closing, None);
    assert_eq!(sandbox.history.operated[0].trouble.as_deref(), Some(advice));
    let told = world.with(|s| s.told_threads.clone());
    assert_eq!(told, [(thread(), words::not_destroyed("ann", advice))]);
    deliver_until_done(&world, &prompt("m2"), 1);
    assert_eq!(outcomes(&world).last(), Some(&Outcome::Answered));
}

#[test]
fn delayed_destroy_is_not_told_as_failed() {
    let world = shared(None);
    let destroy = operate(&world, "d1", &thread().sandbox(), Operation::Destroy);
    world.with(|s| s.fail.insert("delete", (0..60).map(|_| busy()).collect()));
    deliver_until_done(&world, &destroy, 1);
    let sandbox = record(&world).sandbox;
    assert_eq!(sandbox.phase, Phase::Destroying);
    assert_eq!(sandbox.history.operated[0].trouble.as_deref(), Some("it kept failing"));
    assert!(world.with(|s| s.told_threads.is_empty()));
    world.with(|s| s.fail.clear());
    let due_at_ms = sandbox.due_at_ms.unwrap();
    later(&world, (due_at_ms + 1).saturating_sub(world.now_ms()));
    let group = thread().sandbox().group();
    deliver_until_done(&world, &in_thread(&group, work("s1", Work::Sweep)), 1);
    assert_eq!(record(&world).sandbox.phase, Phase::Destroyed);
}

#[test]
fn endless_turn_does_not_block_destroy() {
    let world = shared(Some("acme/api"));
    leave_running(&world, &prompt("m2"));
    let key = thread().sandbox();
    let destroy = operate(&world, "d1", &key, Operation::Destroy);
    deliver_until_done(&world, &destroy, 1);
    assert!(world.with(|s| s.sandboxes.is_empty()));
    deliver_until_done(&world, &prompt("m2"), 2);
    assert_eq!(outcomes(&world).last(), Some(&Outcome::Lost));
    assert!(record(&world).sandbox.sharing.in_use.is_empty());
    // A pause loses nobody's work.
    let world = shared(Some("acme/api"));
    leave_running(&world, &prompt("m2"));
    let pause = operate(&world, "p1", &key, Operation::Pause);
    deliver_until_done(&world, &pause, 1);
    assert_eq!(record(&world).sandbox.phase, Phase::Active);
    let operated = record(&world).sandbox.history.operated.pop().unwrap();
    assert_eq!(
        operated.trouble.as_deref(),
        Some("a turn is still running in it: stop the turn first")
    );
}

/// A thread with work to publish in a shared sandbox, and another thread's turn at work there.
fn beside_a_turn() -> (Fake, Message) {
    let found = FoundRepository::Here { repository: repository("acme/api", false), size_kb: 0 };
    let world = world(found);
    open(&world, None, "all");
    world.with(|s| s.branches.insert("main".to_owned(), "1".repeat(40)));
    holds(&world, FIRST);
    deliver_until_done(&world, &asked("m1", "acme/api"), 1);
    deliver_until_done(&world, &call_it("n1", "front"), 1);
    let beside = other("9");
    deliver_until_done(&world, &connect("c1", &beside, Some(thread().sandbox())), 1);
    let turn = in_thread(&beside, prompt("o1"));
    leave_running(&world, &turn);
    (world, turn)
}

#[test]
fn publishing_waits_for_turns_of_other_threads() {
    let (world, turn) = beside_a_turn();
    for receive in 1..=30 {
        let verdict = deliver(&world, &show("p1"), receive);
        let Verdict::Hold { delay_ms, .. } = verdict else { panic!("{verdict:?}") };
        world.with(|s| s.now_ms += delay_ms);
    }
    let told =
        "This waits until nobody works in the sandbox. Working in it now: another thread (<#9>).";
    assert_eq!(world.with(|s| s.told_threads.clone()), [(thread(), told.to_owned())]);
    deliver_until_done(&world, &turn, 2);
    deliver_until_done(&world, &show("p1"), 31);
    assert_eq!(reviews(&world).len(), 1);
    assert_eq!(record(&world).published.waited, None);
}

#[test]
fn publishing_waits_no_longer_than_a_prompt() {
    let (world, _) = beside_a_turn();
    let begun_ms = world.now_ms();
    deliver_until_done(&world, &show("p1"), 1);
    let waited_ms = world.now_ms() - begun_ms;
    let most_ms = Limits::DEFAULT.share.workspace_wait_ms;
    assert!((most_ms..2 * most_ms).contains(&waited_ms), "{waited_ms}");
    let told = "Others have been working in the sandbox for 8 h, so nothing was done. Working in it now: another thread (<#9>). Press again when they are done.";
    assert!(notices(&world).contains(&told.to_owned()), "{:?}", notices(&world));
    assert!(reviews(&world).is_empty());
}

#[test]
fn thread_takes_history_to_another_sandbox() {
    let world = shared(Some("acme/api"));
    let beside = other("9");
    deliver_until_done(&world, &in_thread(&beside, prompt("o1")), 1);
    let key = thread().sandbox();
    deliver_until_done(&world, &connect("c1", &beside, Some(key.clone())), 1);
    let session = record_of(&world, &beside);
    assert_eq!(session.sandbox_key(), key);
    assert!(
        session.sandbox.sharing.threads.contains(&beside) && session.conversation.session.is_none()
    );
    assert_eq!(notices(&world).last().unwrap(), &words::connected(&name("front"), false));
    deliver_until_done(&world, &in_thread(&beside, prompt("o2")), 1);
    let told = world.with(|s| s.told.last().cloned().unwrap());
    assert!(told.contains("ann asked: do it | answered: the answer"), "{told}");

    deliver_until_done(&world, &connect("c2", &beside, None), 1);
    assert_eq!(notices(&world).last().unwrap(), words::CONNECTED_OWN);
    assert!(record(&world).sandbox.sharing.threads == [thread()].into());
    // What does not exist any more, or belongs to others, changes nothing.
    let foreign = ThreadKey::discord("2", "2").unwrap().sandbox();
    for (id, to) in [("c3", other("77").sandbox()), ("c4", foreign)] {
        deliver_until_done(&world, &connect(id, &beside, Some(to)), 1);
        assert_eq!(*notices(&world).last().unwrap(), words::connect_gone(&thread()));
        assert_eq!(record_of(&world, &beside).place.link, None);
    }
}

#[test]
fn named_sandbox_is_joined_or_created() {
    let world = Fake::new();
    let (one, two) = (other("8"), other("9"));
    deliver_until_done(&world, &prompt_in("o1", &one, "front"), 1);
    let reason = words::no_sandbox(&name("front"), &thread());
    assert_eq!(outcome_of(&world, &one), Outcome::Failed { reason });
    let made = wanting(
        "o2",
        &one,
        Selection {
            sandbox: Some(name("front")),
            provider: Some("daytona".to_owned()),
            ..Selection::default()
        },
    );
    deliver_until_done(&world, &made, 1);
    assert_eq!(outcome_of(&world, &one), Outcome::Answered);
    let session = record_of(&world, &one);
    assert_eq!(session.sandbox.sharing.name, Some(name("front")));
    assert_eq!(session.sandbox.spec.provider.as_deref(), Some("daytona"));
    deliver_until_done(&world, &prompt_in("t1", &two, "front"), 1);
    assert_eq!(record_of(&world, &two).sandbox_key(), session.sandbox_key());
    assert_eq!(world.with(|s| s.sandboxes.len()), 1);
}

#[test]
fn withdrawn_or_refused_prompt_moves_nobody() {
    let world = shared(Some("acme/api"));
    let beside = other("9");
    deliver_until_done(&world, &in_thread(&beside, prompt("o1")), 1);
    let wants = |text: &str, provider: Option<&str>| Selection {
        sandbox: Some(name(text)),
        provider: provider.map(str::to_owned),
        in_common: true,
        ..Selection::default()
    };
    let moves_nobody = |id: &str, wants: Selection| {
        deliver_until_done(&world, &wanting(id, &beside, wants), 1);
        let session = record_of(&world, &beside);
        assert_eq!((session.place.link, session.place.in_common), (None, false), "{id}");
        assert_eq!(world.with(|s| s.names_of.len()), 1, "{id}");
        outcome_of(&world, &beside)
    };
    let stopped = Outcome::Cancelled { by: "bob".into() };
    let there = wants("front", None);
    for (id, wanted) in [("o2", there.clone()), ("o3", wants("side", Some("daytona")))] {
        world.with(|s| s.flags.cancelled.insert(id.into(), person("bob")));
        assert_eq!(moves_nobody(id, wanted), stopped, "{id}");
    }
    // Nor is the stopped one told that there is no such sandbox.
    world.with(|s| s.flags.cancelled.insert("o4".into(), person("bob")));
    assert_eq!(moves_nobody("o4", wants("side", None)), stopped);
    let queued =
        Queued { by: person("ann"), accepted_at_ms: 1, card: None, refused: true, prompt: None };
    world.with(|s| s.flags.queued.insert("o5".into(), queued));
    let full = Outcome::Failed { reason: words::QUEUE_FULL.to_owned() };
    assert_eq!(moves_nobody("o5", there.clone()), full);
    world.with(|s| s.settings.open_to = ["bob".to_owned()].into());
    let refused = moves_nobody("o6", there.clone());
    assert!(matches!(refused, Outcome::Failed { .. }), "{refused:?}");
    world.with(|s| s.settings.open_to.clear());
    deliver_until_done(&world, &wanting("o7", &beside, there), 1);
    assert_eq!(record_of(&world, &beside).place.link, Some(thread().sandbox()));
}

#[test]
fn named_sandbox_needs_no_thread() {
    let world = Fake::new();
    let key = SandboxKey::without_thread(&thread().tenant(), &"k1".into());
    let new = NewSandbox {
        name: name("front"),
        provider: None,
        runtime: Some("native".to_owned()),
        repo: Some("acme/api".to_owned()),
        snapshot: Some("snapshot-1".to_owned()),
        agent: None,
    };
    let create = in_thread(&key.group(), work("k1", Work::Create(new.clone())));
    deliver_until_done(&world, &create, 1);
    let sandbox = world.with(|s| s.sandbox_record(&key).unwrap());
    assert_eq!((sandbox.phase, sandbox.generation), (Phase::Active, 1));
    assert_eq!(sandbox.spec.runtime.as_deref(), Some("native"));
    assert_eq!(sandbox.history.operated[0].trouble, None);
    assert_eq!(world.with(|s| s.clones[&1].clone()), "acme/api");
    // The name belongs to one sandbox.
    let second = SandboxKey::without_thread(&thread().tenant(), &"k2".into());
    let create = in_thread(&second.group(), work("k2", Work::Create(new)));
    deliver_until_done(&world, &create, 1);
    let refused = world.with(|s| s.sandbox_record(&second).unwrap());
    assert_eq!((refused.phase, refused.sharing.name), (Phase::Destroyed, None));
    assert_eq!(refused.history.operated[0].trouble, Some(words::name_taken(&name("front"))));
}

#[test]
fn recreated_name_takes_new_settings() {
    let world = Fake::new();
    let key = SandboxKey::without_thread(&thread().tenant(), &"k1".into());
    let create = |id: &str, snapshot: Option<&str>| {
        let new = NewSandbox {
            name: name("front"),
            provider: None,
            runtime: None,
            repo: Some("acme/api".to_owned()).filter(|_| snapshot.is_none()),
            snapshot: snapshot.map(str::to_owned),
            agent: None,
        };
        in_thread(&key.group(), work(id, Work::Create(new)))
    };
    let stands = || world.with(|s| s.sandbox_record(&key).unwrap());
    deliver_until_done(&world, &create("k1", None), 1);
    // An existing sandbox keeps its options.
    deliver_until_done(&world, &create("k2", Some("kept")), 1);
    assert_eq!((stands().generation, stands().spec.snapshot), (1, None));
    world.with(|s| {
        let mut gone = s.sandbox_record(&key).unwrap();
        gone.phase = Phase::Destroyed;
        s.apart.insert(key.clone(), gone);
    });
    deliver_until_done(&world, &create("k3", Some("kept")), 1);
    let anew = stands();
    assert_eq!((anew.phase, anew.generation), (Phase::Active, 2));
    assert_eq!((anew.spec.snapshot.as_deref(), anew.project.repo), (Some("kept"), None));
    assert_eq!(anew.sharing.name, Some(name("front")));
}

#[test]
fn newest_snapshot_replaces_the_oldest() {
    let world = shared(None);
    let key = thread().sandbox();
    for n in 0..=Limits::DEFAULT.share.snapshots {
        world.with(|s| s.snapshots = vec![SnapshotSeen::UnderWay]);
        later(&world, 1_000);
        let id = format!("k{n}");
        let snapshot = operate(&world, &id, &key, Operation::Snapshot);
        deliver_until_done(&world, &snapshot, 1);
    }
    let sandbox = record(&world).sandbox;
    assert_eq!(sandbox.snapshots.len(), Limits::DEFAULT.share.snapshots);
    assert_eq!(world.with(|s| s.deleted_snapshots.len()), 1);
    assert!(sandbox.lease.is_none() && sandbox.phase == Phase::Active);
    // A failed creation is reported and blocks nobody.
    world.with(|s| {
        s.snapshots = vec![SnapshotSeen::Failed { why: "there is no room for another".to_owned() }];
    });
    deliver_until_done(&world, &operate(&world, "kx", &key, Operation::Snapshot), 1);
    let operated = record(&world).sandbox.history.operated.pop().unwrap();
    assert_eq!(operated.trouble.as_deref(), Some("there is no room for another"));
    deliver_until_done(&world, &prompt("m9"), 1);
    assert_eq!(outcomes(&world).last(), Some(&Outcome::Answered));
}

#[test]
fn name_outlives_its_expired_sandbox() {
    let world = shared(None);
    let group = thread().sandbox().group();
    later(&world, Limits::DEFAULT.sandbox.idle_pause_ms);
    deliver_until_done(&world, &in_thread(&group, work("s1", Work::Sweep)), 1);
    later(&world, Limits::DEFAULT.sandbox.paused_ttl_ms);
    deliver_until_done(&world, &in_thread(&group, work("s2", Work::Sweep)), 1);
    assert_eq!(record(&world).sandbox.phase, Phase::Paused);
    later(&world, Limits::DEFAULT.sandbox.named_ttl_ms);
    deliver_until_done(&world, &in_thread(&group, work("s3", Work::Sweep)), 1);
    let sandbox = record(&world).sandbox;
    assert_eq!((sandbox.phase, sandbox.sharing.name), (Phase::Destroyed, Some(name("front"))));
    let told = world.with(|s| s.told_threads.clone());
    assert_eq!(told, [(thread(), words::EXPIRED_SHARED.to_owned())]);
    let beside = other("9");
    deliver_until_done(&world, &prompt_in("o1", &beside, "front"), 1);
    assert_eq!(record(&world).sandbox.generation, 2);
    // The founder's knowledge of the earlier generation no longer applies.
    deliver_until_done(&world, &prompt("m2"), 1);
    assert_eq!(outcomes(&world).last(), Some(&Outcome::Answered));
}

#[test]
fn reset_spares_a_shared_sandbox() {
    let world = shared(None);
    let reset = work(
        "r1",
        Work::Reset { by: person("ann"), membership: Membership::default(), keeps_files: false },
    );
    deliver_until_done(&world, &reset, 1);
    assert_eq!(record(&world).sandbox.phase, Phase::Active);
    assert_eq!(*notices(&world).last().unwrap(), words::reset_shared(&thread()));
}

#[test]
fn crashed_shared_turn_ends_once() {
    let beside = other("9");
    let begun = || {
        let world = shared(Some("acme/api"));
        leave_running(&world, &prompt("m2"));
        world
    };
    let crashes = each_crash(begun, &prompt_in("o1", &other("9"), "front"), |world, crash| {
        let ended = record_of(world, &beside).ended;
        assert_eq!(ended.len(), 1, "{crash}");
        assert_eq!(ended[0].outcome, Outcome::Answered, "{crash}");
        let sandbox = record(world).sandbox;
        assert_eq!(sandbox.sharing.in_use.len(), 1, "{crash}");
        assert!(sandbox.sharing.waiting.is_empty(), "{crash}");
        world.with(|s| {
            let sent = s.prompted.iter().map(|(_, id)| id);
            let once: BTreeSet<&String> = sent.clone().collect();
            assert_eq!(once.len(), sent.count(), "{crash}");
        });
    });
    assert!(crashes > 20, "{crashes}");
}

#[test]
fn crashed_destroy_frees_the_name() {
    let key = thread().sandbox();
    let begun = || {
        let world = shared(Some("acme/api"));
        deliver_until_done(&world, &prompt_in("o1", &other("9"), "front"), 1);
        world
    };
    let destroy = operate(&begun(), "d1", &key, Operation::Destroy);
    let crashes = each_crash(begun, &destroy, |world, crash| {
        let sandbox = record(world).sandbox;
        assert_eq!((sandbox.phase, sandbox.sharing.name), (Phase::Destroyed, None), "{crash}");
        assert!(sandbox.sharing.threads.is_empty() && sandbox.sharing.closing.is_none(), "{crash}");
        assert!(world.with(|s| s.names_of.is_empty() && s.sandboxes.is_empty()), "{crash}");
        let told: BTreeSet<ThreadKey> =
            world.with(|s| s.told_threads.iter().map(|(of, _)| of.clone()).collect());
        assert_eq!(told.len(), 2, "{crash}");
    });
    assert!(crashes > 8, "{crashes}");
}

#[test]
fn stray_run_blocks_only_checkout() {
    let world = shared(None);
    world.with(|s| {
        let down = || Failure::SandboxDown { seen: "no answer".to_owned() };
        s.fail.insert("follow", (0..4).map(|_| down()).collect());
        s.fail.insert("end_run", (0..9).map(|_| down()).collect());
    });
    deliver_until_done(&world, &prompt("m2"), 1);
    assert!(matches!(outcomes(&world).last(), Some(Outcome::Failed { .. })));
    let sandbox = record(&world).sandbox;
    assert!(
        record(&world).stray.is_some() && sandbox.sharing.in_use.len() == 1 && !sandbox.is_in_use()
    );
    let beside = other("9");
    let waits = prompt_in("o1", &beside, "front");
    assert!(matches!(deliver(&world, &waits, 1), Verdict::Hold { .. }));
    assert!(matches!(deliver(&world, &waits, 2), Verdict::Hold { .. }));
    // A sweep pauses the sandbox, which ends the run, and the checkout is free.
    world.with(|s| s.fail.clear());
    let due_at_ms = record(&world).sandbox.due_at_ms.unwrap();
    later(&world, due_at_ms.saturating_sub(world.now_ms()));
    let group = thread().sandbox().group();
    deliver_until_done(&world, &in_thread(&group, work("s1", Work::Sweep)), 1);
    let sandbox = record(&world).sandbox;
    assert_eq!((sandbox.phase, sandbox.sharing.in_use.len()), (Phase::Paused, 0));
    deliver_until_done(&world, &waits, 3);
    assert_eq!(outcome_of(&world, &beside), Outcome::Answered);
}

#[test]
fn stray_run_does_not_delay_sweep() {
    let world = shared(None);
    world.with(|s| {
        let down = || Failure::SandboxDown { seen: "no answer".to_owned() };
        s.fail.insert("follow", (0..4).map(|_| down()).collect());
        s.fail.insert("end_run", (0..900).map(|_| down()).collect());
    });
    deliver_until_done(&world, &prompt("m2"), 1);
    assert!(record(&world).stray.is_some());
    // Somebody started it again and has left.
    world.with(|s| {
        let due_at_ms = s.now_ms + Limits::DEFAULT.sandbox.create_ms;
        let sandbox = &mut s.record.as_mut().unwrap().sandbox;
        (sandbox.phase, sandbox.due_at_ms) = (Phase::Resuming, Some(due_at_ms));
    });
    for look in 0..=Limits::DEFAULT.sandbox.create_ms / Limits::DEFAULT.sandbox.stop_ms {
        later(&world, Limits::DEFAULT.sandbox.stop_ms);
        let sweep = work(&format!("s{look}"), Work::Sweep);
        deliver_until_done(&world, &sweep, 1);
    }
    assert_eq!(record(&world).sandbox.phase, Phase::Paused);
}

#[test]
fn move_waits_for_a_run_in_a_resuming_sandbox() {
    for phase in [Phase::Resuming, Phase::Pausing] {
        let world = shared(None);
        let beside = other("9");
        deliver_until_done(&world, &in_thread(&beside, prompt("o1")), 1);
        deliver_until_done(&world, &in_thread(&beside, call_it("n2", "side")), 1);
        world.with(|s| {
            let down = || Failure::SandboxDown { seen: "no answer".to_owned() };
            s.fail.insert("follow", (0..4).map(|_| down()).collect());
            s.fail.insert("end_run", (0..900).map(|_| down()).collect());
        });
        deliver_until_done(&world, &prompt("m2"), 1);
        world.with(|s| s.record.as_mut().unwrap().sandbox.phase = phase);
        let due_at_ms = record(&world).sandbox.due_at_ms;
        assert!(due_at_ms.is_some());
        let moves = prompt_in("m3", &thread(), "side");
        for receive in 1..=10 {
            assert!(matches!(deliver(&world, &moves, receive), Verdict::Hold { .. }));
            later(&world, 60_000);
        }
        let session = record(&world);
        assert!(session.stray.is_some() && session.place.link.is_none(), "{phase:?}");
        assert_eq!(session.sandbox.due_at_ms, due_at_ms, "its sweep comes: {phase:?}");
        world.with(|s| s.fail.clear());
        deliver_until_done(&world, &moves, 11);
        assert_eq!(world.with(|s| s.ended_runs.len()), 1, "{phase:?}");
        assert_eq!(record(&world).place.link, Some(beside.sandbox()));
    }
}

#[test]
fn destroyed_shared_sandbox_needs_no_sweep() {
    let world = shared(None);
    world.with(|s| {
        let record = s.record.as_mut().unwrap();
        record.sandbox.phase = Phase::Destroyed;
        record.due_at_ms = Some(s.now_ms);
    });
    deliver_until_done(&world, &work("s1", Work::Sweep), 1);
    let record = record(&world);
    assert_eq!((record.due_at_ms, record.sandbox.due_at_ms), (None, None));
}

#[test]
fn untellable_thread_blocks_destroy_briefly() {
    let world = shared(None);
    let key = thread().sandbox();
    let destroy = operate(&world, "d1", &key, Operation::Destroy);
    world.with(|s| {
        let away = || Failure::Outage { after_ms: 0, seen: "the chat does not answer".to_owned() };
        s.fail.insert("tell", (0..3).map(|_| away()).collect());
    });
    let receive = deliver_until_done(&world, &destroy, 1);
    assert_eq!((receive, world.with(|s| s.told_threads.len())), (4, 1));

    let world = shared(None);
    let destroy = operate(&world, "d1", &key, Operation::Destroy);
    world.with(|s| {
        let away = || Failure::Outage { after_ms: 0, seen: "the chat does not answer".to_owned() };
        s.fail.insert("tell", (0..500).map(|_| away()).collect());
    });
    deliver_until_done(&world, &destroy, 1);
    assert_eq!(record(&world).sandbox.phase, Phase::Destroyed);
    assert!(world.with(|s| s.told_threads.is_empty()));
}
