//! Who may ask, and what a turn runs with.

use super::*;
use bobbin_core::tenant::runtime_mode::RuntimeMode;

/// A prompt by Ann in channel 10.
fn asked(id: &str, wants: Selection) -> Message {
    let prompt = Prompt {
        text: "do it".into(),
        by: person("ann"),
        wants,
        membership: here(),
        ..Prompt::default()
    };
    work(id, Work::Prompt(prompt))
}

pub(super) fn here() -> Membership {
    Membership { channel: "10".to_owned(), ..Membership::default() }
}

fn wants(repo: Option<&str>, model: Option<&str>, agent: Option<&str>) -> Selection {
    let text = |value: Option<&str>| value.map(str::to_owned);
    Selection { repo: text(repo), model: text(model), agent: text(agent), ..Selection::default() }
}

fn set(world: &Fake, change: SettingsChange) {
    let manager = Membership { manages: true, ..here() };
    world.with(|s| {
        s.settings = s
            .settings
            .changed(&format!("{change:?}"), &change, &person("boss"), &manager, 7)
            .unwrap();
    });
}

fn default_of(world: &Fake, of: DefaultKind, channel: Option<&str>, value: &str) {
    set(
        world,
        SettingsChange::Default {
            channel: channel.map(str::to_owned),
            of,
            value: Some(value.to_owned()),
        },
    );
}

pub(super) fn reason(world: &Fake) -> String {
    match outcomes(world).pop().unwrap() {
        Outcome::Failed { reason } => reason,
        other => panic!("{other:?}"),
    }
}

pub(super) fn nothing_ran(world: &Fake) {
    world.with(|s| {
        assert!(s.prompted.is_empty() && s.sandboxes.is_empty());
        assert!(s.posts.values().any(
            |post| matches!(post, Post::Card(card) if matches!(card.state, CardState::Ended { .. }))
        ));
    });
}

#[test]
fn prompt_outside_allowlist_is_refused() {
    for (list, id, told) in [
        (SettingsList::Channels, "11", "in this channel"),
        (SettingsList::People, "50", "You may not use Bobbin here"),
    ] {
        let world = Fake::new();
        let id = id.to_owned();
        set(&world, SettingsChange::Allow { list, id });
        deliver_until_done(&world, &asked("m1", Selection::default()), 1);
        assert!(reason(&world).contains(told), "{}", reason(&world));
        nothing_ran(&world);
    }
}

#[test]
fn reset_needs_permission() {
    let world = active();
    let (list, id) = (SettingsList::People, "bob".to_owned());
    set(&world, SettingsChange::Allow { list, id });
    let reset = |by: &str| Work::Reset { by: person(by), membership: here(), keeps_files: false };
    deliver_until_done(&world, &work("r1", reset("ann")), 1);
    world.with(|s| {
        assert_eq!(s.sandboxes.len(), 1);
        assert!(s.posts.values().any(
            |post| matches!(post, Post::Notice(word) if word.starts_with("You may not use Bobbin"))
        ));
    });
    deliver_until_done(&world, &work("r2", reset("bob")), 1);
    world.with(|s| assert!(s.sandboxes.is_empty()));
}

#[test]
fn sandbox_keeps_its_first_provider() {
    let made_at = |world: &Fake| record(world).sandbox.spec.provider;
    let world = Fake::new();
    default_of(&world, DefaultKind::Provider, None, "ssh");
    default_of(&world, DefaultKind::Provider, Some("10"), "vercel");
    deliver_until_done(&world, &asked("m1", Selection::default()), 1);
    assert_eq!(made_at(&world).as_deref(), Some("vercel"));
    default_of(&world, DefaultKind::Provider, Some("10"), "daytona");
    deliver_until_done(&world, &asked("m2", Selection::default()), 1);
    assert_eq!(made_at(&world).as_deref(), Some("vercel"));

    let world = Fake::new();
    default_of(&world, DefaultKind::Provider, None, "ssh");
    let own = Selection { provider: Some("daytona".to_owned()), ..Selection::default() };
    deliver_until_done(&world, &asked("m1", own), 1);
    assert_eq!(made_at(&world).as_deref(), Some("daytona"));
}

#[test]
fn turn_choice_beats_channel_beats_tenant() {
    let world = Fake::new();
    deliver_until_done(&world, &asked("m0", Selection::default()), 1);
    default_of(&world, DefaultKind::Model, None, "anthropic/tenant");
    default_of(&world, DefaultKind::Agent, None, "plan");
    deliver_until_done(&world, &asked("m1", Selection::default()), 1);
    default_of(&world, DefaultKind::Model, Some("10"), "anthropic/channel");
    deliver_until_done(&world, &asked("m2", Selection::default()), 1);
    let own = wants(None, Some(" anthropic/own "), Some("build"));
    deliver_until_done(&world, &asked("m3", own), 1);
    let ran = |model: &str, agent: Option<&str>| (model.to_owned(), agent.map(str::to_owned));
    world.with(|s| {
        assert_eq!(
            s.ran_with,
            [
                ran("m", None),
                ran("anthropic/tenant", Some("plan")),
                ran("anthropic/channel", Some("plan")),
                ran("anthropic/own", Some("build")),
            ]
        );
        let last = s.ledger.get("m3").unwrap();
        assert_eq!(last.selection, wants(None, Some("anthropic/own"), Some("build")));
        let cards = s.posts.values().filter_map(|post| match post {
            Post::Card(card) => Some(card.model.as_str()),
            _ => None,
        });
        let cards: BTreeSet<&str> = cards.collect();
        assert_eq!(cards, ["anthropic/channel", "anthropic/own", "anthropic/tenant", "m"].into());
    });
}

#[test]
fn native_thread_keeps_chosen_agent() {
    let agents = |world: &Fake| {
        let wishes = [Some("claude"), None, Some("claude:plan"), None, Some("opencode"), None];
        for (number, agent) in wishes.into_iter().enumerate() {
            let message = asked(&format!("m{number}"), wants(None, None, agent));
            deliver_until_done(world, &message, 1);
        }
        let ran = |(_, agent): &(String, Option<String>)| agent.clone().unwrap_or_default();
        world.with(|s| s.ran_with.iter().map(ran).collect::<Vec<_>>())
    };
    let native = Fake::new();
    native.with(|s| s.runtime = RuntimeMode::Native);
    assert_eq!(
        agents(&native),
        ["claude", "claude", "claude:plan", "claude:plan", "opencode", "opencode"]
    );
    // The sandbox keeps what it began with, whatever the stack does now.
    native.with(|s| s.runtime = RuntimeMode::OpenCode);
    deliver_until_done(&native, &asked("m9", Selection::default()), 1);
    native.with(|s| {
        assert_eq!(s.record.as_ref().unwrap().sandbox.spec.runtime.as_deref(), Some("native"));
        assert_eq!(s.ran_with.last().unwrap().1.as_deref(), Some("opencode"));
    });
    // With only one agent, each turn chooses its mode, as before.
    let one = Fake::new();
    for (id, agent) in [("m1", Some("plan")), ("m2", None)] {
        deliver_until_done(&one, &asked(id, wants(None, None, agent)), 1);
    }
    one.with(|s| {
        assert_eq!(s.ran_with[0].1.as_deref(), Some("plan"));
        assert_eq!(s.ran_with[1].1, None);
    });
}

#[test]
fn named_agent_decides_new_runtime() {
    let world = Fake::new();
    // A default gives way to an explicit choice.
    default_of(&world, DefaultKind::Runtime, None, "compat");
    let claude = wants(None, None, Some("claude"));
    deliver_until_done(&world, &asked("m1", claude.clone()), 1);
    assert_eq!(record(&world).sandbox.spec.runtime.as_deref(), Some("native"));
    world.with(|s| assert_eq!(s.ran_with[0].1.as_deref(), Some("claude")));

    // An existing sandbox does not change: the person is told how to get another.
    let world = Fake::new();
    deliver_until_done(&world, &asked("m1", Selection::default()), 1);
    deliver_until_done(&world, &asked("m2", claude), 1);
    assert!(
        reason(&world).starts_with("claude needs the runtime native")
            && reason(&world).contains("reset"),
        "{}",
        reason(&world)
    );
    // A default that it cannot use applies to later sandboxes.
    default_of(&world, DefaultKind::Agent, None, "claude");
    deliver_until_done(&world, &asked("m3", Selection::default()), 1);
    world.with(|s| assert_eq!(s.ran_with.last().unwrap().1, None));
    deliver_until_done(&world, &reset(), 1);
    deliver_until_done(&world, &asked("m4", Selection::default()), 1);
    assert_eq!(record(&world).sandbox.spec.runtime.as_deref(), Some("native"));
    world.with(|s| assert_eq!(s.ran_with.last().unwrap().1.as_deref(), Some("claude")));
}

#[test]
fn new_sandbox_lacking_agent_is_destroyed() {
    let world = Fake::new();
    let lacks = || Some("codex is not in this sandbox.".to_owned());
    world.with(|s| s.no_session = lacks());
    let codex = wants(None, None, Some("codex"));
    deliver_until_done(&world, &asked("m1", codex), 1);
    assert_eq!(reason(&world), "codex is not in this sandbox.");
    assert_eq!(record(&world).sandbox.phase, Phase::Destroyed);
    nothing_ran(&world);
    // The next one is like anybody's.
    deliver_until_done(&world, &asked("m2", Selection::default()), 1);
    assert_eq!(outcomes(&world).pop(), Some(Outcome::Answered));
}

#[test]
fn unavailable_default_names_its_setter() {
    let world = Fake::new();
    default_of(&world, DefaultKind::Agent, None, "nobody");
    world.with(|s| {
        s.offer = AgentOptions {
            models: vec!["m".to_owned()],
            agents: vec!["build".to_owned(), "plan".to_owned()],
            unpriced: Vec::new(),
        };
    });
    deliver_until_done(&world, &asked("m1", Selection::default()), 1);
    assert_eq!(
        reason(&world),
        "nobody is not an agent that can be used here. Choose one of these: build, plan. It is the default here, set by boss. People who manage this server or workspace change it with the command config, and a task can name another one."
    );
}

#[test]
fn conflicting_defaults_are_refused() {
    let world = Fake::new();
    default_of(&world, DefaultKind::Runtime, None, "compat");
    let apart = SettingsChange::Default {
        channel: None,
        of: DefaultKind::Agent,
        value: Some("claude".to_owned()),
    };
    let settings = world.with(|s| s.settings.clone());
    let manager = Membership { manages: true, ..here() };
    let refused = settings.changed("c9", &apart, &person("ann"), &manager, 1);
    assert!(refused.is_err_and(|why| {
        why.to_string().starts_with("The agent claude needs the runtime native")
    }));
}

#[test]
fn runtime_is_fixed_per_sandbox() {
    let begun = |world: &Fake| record(world).sandbox.spec.runtime;
    let wish = |name: &str| Selection { runtime: Some(name.to_owned()), ..Selection::default() };
    let world = Fake::new();
    deliver_until_done(&world, &asked("m1", Selection::default()), 1);
    assert_eq!(begun(&world), None);
    // A running sandbox does not change its mode: the person is told how, and nothing runs.
    deliver_until_done(&world, &asked("m2", wish("native")), 1);
    assert!(
        reason(&world).starts_with("This thread's sandbox has the runtime opencode"),
        "{}",
        reason(&world)
    );
    deliver_until_done(&world, &asked("m3", wish("opencode")), 1);
    default_of(&world, DefaultKind::Runtime, None, "compat");
    default_of(&world, DefaultKind::Runtime, Some("10"), "native");
    deliver_until_done(&world, &asked("m4", Selection::default()), 1);
    assert_eq!(begun(&world), None);
    assert_eq!(world.with(|s| s.ran_with.len()), 3);

    // The channel's default, with an agent that exists in several modes.
    let world = Fake::new();
    default_of(&world, DefaultKind::Runtime, None, "compat");
    default_of(&world, DefaultKind::Runtime, Some("10"), "native");
    deliver_until_done(&world, &asked("m1", wants(None, None, Some("claude"))), 1);
    deliver_until_done(&world, &asked("m2", Selection::default()), 1);
    assert_eq!(begun(&world).as_deref(), Some("native"));
    world.with(|s| assert_eq!(s.ran_with[1].1.as_deref(), Some("claude")));
    // A choice for this task wins, even if the stack would do the same.
    let world = Fake::new();
    default_of(&world, DefaultKind::Runtime, None, "native");
    deliver_until_done(&world, &asked("m1", wish("opencode")), 1);
    assert_eq!(begun(&world).as_deref(), Some("opencode"));

    let world = Fake::new();
    deliver_until_done(&world, &asked("m1", wish("docker")), 1);
    assert_eq!(
        reason(&world),
        "`docker` cannot be used as a runtime: choose opencode, compat, native or outside."
    );
    nothing_ran(&world);
}

#[test]
fn outside_agents_sandbox_has_no_code() {
    let world = Fake::new();
    let wanted = Selection {
        repo: Some("acme/api".to_owned()),
        provider: Some("vercel".to_owned()),
        snapshot: Some("of-code".to_owned()),
        runtime: Some("outside".to_owned()),
        ..Selection::default()
    };
    deliver_until_done(&world, &asked("m1", wanted), 1);
    let sandbox = record(&world).sandbox;
    assert_eq!(sandbox.spec.runtime.as_deref(), Some("outside"));
    // The choice applies to the code: the agent's own sandbox has none of it.
    assert_eq!(
        (sandbox.spec.provider.as_deref(), sandbox.tooling.tools_provider.as_deref()),
        (None, Some("vercel"))
    );
    assert_eq!(sandbox.project.repo.as_deref(), Some("acme/api"));
    world.with(|s| {
        assert!(s.clones.is_empty(), "{:?}", s.clones);
        assert_eq!(s.ran_with.len(), 1);
    });
}

#[test]
fn tool_sandbox_runs_no_turn() {
    let world = Fake::new();
    deliver_until_done(&world, &asked("m1", Selection::default()), 1);
    world.with(|s| {
        s.record.as_mut().unwrap().sandbox.spec.runtime = Some("bare".to_owned());
    });
    deliver_until_done(&world, &asked("m2", Selection::default()), 1);
    assert!(reason(&world).starts_with("No agent runs in this sandbox"), "{}", reason(&world));
    assert_eq!(world.with(|s| s.ran_with.len()), 1);
}

#[test]
fn redelivery_keeps_the_turns_choices() {
    let world = Fake::new();
    default_of(&world, DefaultKind::Model, None, "anthropic/before");
    let later = Failure::Wait { after_ms: 0, seen: "busy".to_owned() };
    world.with(|s| s.fail.insert("send_prompt", vec![later]));
    let message = asked("m1", Selection::default());
    assert!(matches!(deliver(&world, &message, 1), Verdict::Hold { .. }));
    default_of(&world, DefaultKind::Model, None, "anthropic/after");
    deliver_until_done(&world, &message, 2);
    world.with(|s| assert_eq!(s.ran_with[0].0, "anthropic/before"));
}

#[test]
fn invalid_choice_is_refused_with_reason() {
    for (wanted, told) in [
        (wants(Some("--upload-pack=x/y"), None, None), "a repository: write it as owner/name"),
        (wants(Some("https://token@example.com/x"), None, None), "a repository"),
        (wants(None, Some("gpt"), None), "a model: write it as provider/model"),
        (wants(None, None, Some("a/b")), "an agent"),
        (
            wants(None, Some("openai/gpt"), None),
            "there is no key for openai here. Choose a model of anthropic",
        ),
    ] {
        let world = Fake::new();
        deliver_until_done(&world, &asked("m1", wanted), 1);
        assert!(reason(&world).contains(told), "{}", reason(&world));
        nothing_ran(&world);
    }
}

#[test]
fn unavailable_choice_lists_the_alternatives() {
    for (wanted, told) in [
        (
            wants(None, Some("anthropic/nine"), None),
            "anthropic/nine is not a model that can be used here. Choose one of these: anthropic/one, m.",
        ),
        (
            wants(None, Some("anthropic/one"), Some("nobody")),
            "nobody is not an agent that can be used here. Choose one of these: build, plan.",
        ),
    ] {
        let world = Fake::new();
        world.with(|s| {
            s.offer = AgentOptions {
                models: vec!["m".to_owned(), "anthropic/one".to_owned()],
                agents: vec!["build".to_owned(), "plan".to_owned()],
                unpriced: Vec::new(),
            };
        });
        deliver_until_done(&world, &asked("m1", wanted), 1);
        assert_eq!(reason(&world), told);
        world.with(|s| assert!(s.prompted.is_empty()));
        let good = wants(None, Some("anthropic/one"), Some("plan"));
        deliver_until_done(&world, &asked("m2", good), 1);
        assert_eq!(outcomes(&world).pop(), Some(Outcome::Answered));
    }
}

#[test]
fn offers_are_read_once_per_generation() {
    let world = Fake::new();
    world.with(|s| {
        s.offer = AgentOptions {
            models: vec!["m".to_owned(), "anthropic/one".to_owned()],
            agents: vec!["build".to_owned()],
            unpriced: Vec::new(),
        };
    });
    for (id, model) in
        [("m1", None), ("m2", None), ("m3", Some("anthropic/one")), ("m4", Some("anthropic/one"))]
    {
        deliver_until_done(&world, &asked(id, wants(None, model, None)), 1);
    }
    world.with(|s| assert_eq!(s.used.len(), 2));
    world.with(|s| s.sandboxes.clear());
    deliver_until_done(&world, &asked("m5", wants(None, Some("anthropic/one"), None)), 1);
    world.with(|s| assert_eq!(s.used.len(), 3, "a new sandbox is asked again"));
}

#[test]
fn unknown_offer_blocks_no_turn() {
    let world = Fake::new();
    deliver_until_done(&world, &asked("m1", wants(None, None, Some("own"))), 1);
    assert_eq!(outcomes(&world), [Outcome::Answered]);
}

#[test]
fn repository_follows_sandboxes_until_reset() {
    let world = Fake::new();
    deliver_until_done(&world, &asked("m1", wants(Some("acme/api"), None, None)), 1);
    assert_eq!(record(&world).sandbox.project.repo.as_deref(), Some("acme/api"));
    deliver_until_done(&world, &asked("m2", Selection::default()), 1);
    world.with(|s| s.sandboxes.clear());
    deliver_until_done(&world, &asked("m3", Selection::default()), 1);
    world.with(|s| {
        let both = [(1, "acme/api".to_owned()), (2, "acme/api".to_owned())];
        assert_eq!(s.clones, both.into());
    });
    let reset = Work::Reset { by: person("ann"), membership: here(), keeps_files: false };
    deliver_until_done(&world, &work("r1", reset), 1);
    deliver_until_done(&world, &asked("m4", Selection::default()), 1);
    assert_eq!(record(&world).sandbox.project.repo, None);
    world.with(|s| assert_eq!(s.clones.len(), 2));
    assert_eq!(outcomes(&world).pop(), Some(Outcome::Answered));
}

#[test]
fn reset_keeping_files_keeps_sandbox() {
    let world = Fake::new();
    deliver_until_done(&world, &asked("m1", Selection::default()), 1);
    let before = record(&world);
    let keeps = Work::Reset { by: person("ann"), membership: here(), keeps_files: true };
    // However often it is delivered.
    for receive in [1, 2] {
        deliver_until_done(&world, &work("r1", keeps.clone()), receive);
    }
    let after = record(&world);
    assert_eq!(
        (after.sandbox.generation, after.sandbox.phase),
        (before.sandbox.generation, Phase::Active)
    );
    assert_eq!(after.conversation.session, None);
    let said = world.with(|s| {
        let word = bobbin_core::protocol::decide::words::BEGUN_ANEW;
        let is_said = |post: &&Post| matches!(post, Post::Notice(said) if said == word);
        s.posts.values().filter(is_said).count()
    });
    assert_eq!(said, 1);
    deliver_until_done(&world, &asked("m2", Selection::default()), 1);
    assert_eq!(outcomes(&world).pop(), Some(Outcome::Answered));
    let since = world.with(|s| s.conversations.clone());
    assert_eq!(since, [0, after.conversation.fresh_since_ms]);
    let digests = world
        .with(|s| s.told.iter().filter(|text| text.contains("began in another sandbox")).count());
    assert_eq!(digests, 0, "the agent was told what was said before");
}

#[test]
fn living_sandbox_keeps_its_repository() {
    let world = Fake::new();
    deliver_until_done(&world, &asked("m1", wants(Some("acme/api"), None, None)), 1);
    let same = wants(Some("https://GitHub.com/acme/api.git"), None, None);
    deliver_until_done(&world, &asked("m2", same), 1);
    assert_eq!(outcomes(&world).pop(), Some(Outcome::Answered));
    deliver_until_done(&world, &asked("m3", wants(Some("acme/web"), None, None)), 1);
    assert_eq!(
        reason(&world),
        "This thread's sandbox works on acme/api and cannot change to acme/web. Use reset for a fresh sandbox, or name the repository in another thread."
    );
    // A later default does not change an existing sandbox.
    default_of(&world, DefaultKind::Repo, None, "acme/web");
    deliver_until_done(&world, &asked("m4", Selection::default()), 1);
    assert_eq!(outcomes(&world).pop(), Some(Outcome::Answered));
    world.with(|s| assert_eq!(s.clones.len(), 1));
}

#[test]
fn failed_clone_ends_only_its_turn() {
    for (why, told) in [
        (NotCloned::NotFound, "it does not exist, or it is private. Check its name"),
        (NotCloned::Unreachable, "its host cannot be reached from the sandbox"),
        (NotCloned::TooLong { within_ms: 120_000 }, "it took longer than 2 min. Try again"),
        (NotCloned::NoRoom, "the sandbox's disk is too small for it"),
        (NotCloned::Other { seen: "odd.".to_owned() }, "git says: odd. Check"),
    ] {
        let world = Fake::new();
        world.with(|s| s.not_cloned = Some(why));
        deliver_until_done(&world, &asked("m1", wants(Some("acme/api"), None, None)), 1);
        let words = reason(&world);
        assert!(words.starts_with("The repository acme/api could not be cloned: "), "{words}");
        assert!(words.contains(told), "{words}");
        assert_eq!(record(&world).sandbox.phase, Phase::Destroyed);
        nothing_ran(&world);
        deliver_until_done(&world, &asked("m2", wants(Some("acme/web"), None, None)), 1);
        assert_eq!(outcomes(&world).pop(), Some(Outcome::Answered));
        world.with(|s| assert_eq!(s.clones, [(2, "acme/web".to_owned())].into()));
    }
}

#[test]
fn missing_secrets_cause_one_rebuild() {
    let missed = |world: &Fake| {
        world.with(|s| s.signalled.iter().filter(|one| **one == "sandbox.secrets.missed").count())
    };
    let world = Fake::new();
    world.with(|s| s.without_secrets = 1);
    deliver_until_done(&world, &asked("m1", Selection::default()), 1);
    assert_eq!(outcomes(&world), [Outcome::Answered]);
    let sandbox = record(&world).sandbox;
    assert_eq!((sandbox.generation, sandbox.history.without_secrets), (2, 0));
    world.with(|s| assert_eq!(s.sandboxes.keys().collect::<Vec<_>>(), [&2]));
    assert_eq!(missed(&world), 1);

    let world = Fake::new();
    world.with(|s| s.without_secrets = 2);
    deliver_until_done(&world, &asked("m1", Selection::default()), 1);
    let words = reason(&world);
    assert!(words.contains("two new sandboxes in a row"), "{words}");
    nothing_ran(&world);
    assert_eq!(record(&world).sandbox.phase, Phase::Destroyed);
    assert_eq!(missed(&world), 2);
    // The next prompt starts the count again.
    world.with(|s| s.without_secrets = 1);
    deliver_until_done(&world, &asked("m2", Selection::default()), 1);
    assert_eq!(outcomes(&world).pop(), Some(Outcome::Answered));
    assert_eq!(record(&world).sandbox.generation, 4);
}

#[test]
fn incomplete_clone_is_reported_once() {
    let world = Fake::new();
    world.with(|s| {
        s.left_out = LeftOut {
            submodules: vec!["lib".to_owned(), "vendor/x".to_owned()],
            large: vec!["model.bin".to_owned()],
            named: Vec::new(),
            beside: Vec::new(),
            history: Some(50),
            is_new: true,
            is_prebuilt: false,
        };
    });
    deliver_until_done(&world, &asked("m1", wants(Some("acme/api"), None, None)), 1);
    deliver_until_done(&world, &asked("m2", Selection::default()), 1);
    assert_eq!(outcomes(&world), [Outcome::Answered, Outcome::Answered]);
    world.with(|s| {
        assert_eq!(
            s.told,
            [
                "(The checkout was made without submodules (lib, vendor/x), Git LFS files (model.bin) and commits older than the newest 50. Fetch them if the task needs them.)\n\ndo it",
                "do it"
            ]
        );
        let notices = s.posts.values().filter_map(|post| match post {
            Post::Notice(word) => Some(word.as_str()),
            _ => None,
        });
        assert_eq!(
            notices.collect::<Vec<_>>(),
            ["Part of the repository is not in the sandbox: submodules (lib, vendor/x), Git LFS files (model.bin) and commits older than the newest 50 are left out. The agent knows this, and can fetch what it needs if the host lets everybody read."]
        );
    });
}

#[test]
fn two_notices_of_one_turn_are_both_posted() {
    let left_out = |path: &str| LeftOut { submodules: vec![path.to_owned()], ..LeftOut::default() };
    let world = Fake::new();
    let message = asked("m1", wants(Some("acme/api"), None, None));
    world.with(|s| {
        s.left_out = left_out("lib");
        s.not_sent = Some(busy());
    });
    assert!(matches!(deliver(&world, &message, 1), Verdict::Hold { .. }));
    // The sandbox is lost, and the next one lacks something else.
    world.with(|s| {
        s.sandboxes.clear();
        s.left_out = left_out("vendor");
    });
    deliver_until_done(&world, &message, 2);
    assert_eq!(outcomes(&world), [Outcome::Answered]);
    let is_told = |path: &str| {
        let part = format!("submodules ({path})");
        world.with(|s| {
            let is_it = |post: &Post| matches!(post, Post::Notice(word) if word.contains(&part));
            s.posts.values().filter(|post| is_it(post)).count()
        })
    };
    assert_eq!((is_told("lib"), is_told("vendor")), (1, 1));
}

#[test]
fn stop_during_clone_cancels_turn() {
    let world = Fake::new();
    let message = asked("m1", wants(Some("acme/api"), None, None));
    let down = Failure::Wait { after_ms: 0, seen: "busy".to_owned() };
    world.with(|s| s.fail.insert("clone", vec![down]));
    assert!(matches!(deliver(&world, &message, 1), Verdict::Hold { .. }));
    world.with(|s| s.flags.cancelled.insert("m1".into(), person("bob")));
    deliver_until_done(&world, &message, 2);
    let by = "bob".to_owned();
    assert_eq!(outcomes(&world), [Outcome::Cancelled { by }]);
    deliver_until_done(&world, &asked("m2", Selection::default()), 1);
    assert_eq!(outcomes(&world).pop(), Some(Outcome::Answered));
    world.with(|s| assert_eq!(s.clones, [(1, "acme/api".to_owned())].into()));
}
