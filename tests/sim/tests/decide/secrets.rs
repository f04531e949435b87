//! A project's secrets reach the server of a thread's own sandbox before the prompt.

use super::forge::{asked, open, repository};
use super::*;
use bobbin_core::protocol::target::EffectTarget;
use bobbin_core::records::given_secrets::{
    GivenNetwork, GivenSecret, GivenSecrets, Withheld, WithheldSecret,
};
use bobbin_core::tenant::project_networks::{NetworkAccess, revision_of};
use bobbin_core::tenant::project_secrets::{ProjectSecret, SecretRequest};
use bobbin_core::tenant::settings::SettingsChange;

/// The secrets of servers, and whether the provider keeps any.
#[derive(Default)]
pub(super) struct FakeSecrets {
    withholds: bool,
    /// The revision of each running server, by generation.
    pub(super) servers: BTreeMap<u32, String>,
    /// How often a server was started.
    starts: u32,
    /// The revision of the server that received each prompt.
    pub(super) prompted_with: Vec<String>,
}

impl FakeSecrets {
    /// A running server stays, unless it is to be restarted.
    pub(super) fn served(
        &mut self,
        settings: &Settings,
        at: &EffectTarget,
        (generation, restart): (u32, bool),
    ) -> Option<GivenSecrets> {
        if self.servers.contains_key(&generation) && !restart {
            return None;
        }
        let (secrets_of, network_of) = (at.project.as_deref(), at.network_of.as_deref());
        let revision = revision_of(settings, secrets_of, network_of);
        self.starts += 1;
        self.servers.insert(generation, revision.clone());
        let network = network_of.and_then(|repo| settings.project_networks.of(repo));
        let network = network.map(|network| GivenNetwork {
            access: network.access,
            hosts: network.hosts.clone(),
            is_ignored: self.withholds,
        });
        if revision.is_empty() {
            return None;
        }
        let none = BTreeMap::new();
        let all = secrets_of.and_then(|repo| settings.project_secrets.of(repo)).unwrap_or(&none);
        let given = |(name, secret): (&String, &ProjectSecret)| GivenSecret {
            name: name.clone(),
            hosts: if secret.readable { Vec::new() } else { secret.hosts.clone() },
        };
        let withheld =
            |name: &String| WithheldSecret { name: name.clone(), why: Withheld::Nowhere };
        Some(if self.withholds {
            let withheld = all.keys().map(withheld).collect();
            GivenSecrets { revision, network, withheld, ..GivenSecrets::default() }
        } else {
            let given = all.iter().map(given).collect();
            GivenSecrets { revision, network, given, ..GivenSecrets::default() }
        })
    }
}

fn store(world: &Fake, name: &str, sealed: &str) {
    store_as(world, (name, sealed), false);
}

/// A readable one is for set-ups too.
fn store_as(world: &Fake, (name, sealed): (&str, &str), readable: bool) {
    let wish = SecretRequest {
        repository: "acme/api".to_owned(),
        name: name.to_owned(),
        hosts: vec!["registry.example.com".to_owned()],
        readable,
        set_up: readable,
    };
    let secret = ProjectSecret {
        sealed: sealed.to_owned(),
        hosts: wish.hosts.clone(),
        readable,
        set_up: readable,
        by: person("ann"),
        since_ms: 1,
    };
    world.with(|s| s.settings = s.settings.with_secret(sealed, &wish, secret).unwrap());
}

fn remove(world: &Fake, name: &str) {
    let (repository, name) = ("acme/api".to_owned(), name.to_owned());
    let change = SettingsChange::RemoveSecret { repository, name };
    let manager = Membership { manages: true, ..Membership::default() };
    world.with(|s| {
        s.settings = s.settings.changed("remove", &change, &person("ann"), &manager, 1).unwrap();
    });
}

fn revision(world: &Fake) -> String {
    world.with(|s| s.settings.project_secrets.revision(Some("acme/api")))
}

/// The first prompt names the repository; later ones choose nothing and find everything there.
fn run(world: &Fake, id: &str) -> (u32, String) {
    let mut message = asked(id, "acme/api");
    if let Work::Prompt(prompt) = &mut message.work
        && id != "m1"
    {
        prompt.wants = Selection::default();
    }
    deliver_until_done(world, &message, 1);
    assert_eq!(outcomes(world).last(), Some(&Outcome::Answered));
    world.with(|s| (s.secrets.starts, s.secrets.prompted_with.last().cloned().unwrap()))
}

fn told(world: &Fake) -> String {
    world.with(|s| s.told.last().cloned().unwrap())
}

#[test]
fn changed_secrets_restart_the_server_before_the_prompt() {
    let world = Fake::new();
    assert_eq!(run(&world, "m1"), (1, String::new()));
    assert_eq!(record(&world).sandbox.project.secrets, None);

    store(&world, "NPM_TOKEN", "one");
    assert_eq!(run(&world, "m2"), (2, revision(&world)));
    assert_eq!(
        told(&world),
        "(The project has secrets: `$NPM_TOKEN` for registry.example.com. Each variable holds a placeholder, which is replaced on the way to these hosts alone, over https, in the headers Authorization (as Bearer), X-Api-Key and X-Goog-Api-Key.)\n\ndo it"
    );
    // Nothing was changed.
    assert_eq!((run(&world, "m3"), &*told(&world)), ((2, revision(&world)), "do it"));

    store(&world, "NPM_TOKEN", "two");
    assert_eq!(run(&world, "m4"), (3, revision(&world)));
    remove(&world, "NPM_TOKEN");
    assert_eq!(run(&world, "m5"), (4, String::new()));
    assert_eq!(record(&world).sandbox.project.secrets, None);
    assert_eq!(record(&world).sandbox.generation, 1);
}

#[test]
fn a_resumed_server_starts_once_with_its_secrets() {
    let world = Fake::new();
    store(&world, "NPM_TOKEN", "one");
    assert_eq!(run(&world, "m1"), (1, revision(&world)));
    later(&world, world.with(|s| s.limits.sandbox.idle_pause_ms));
    deliver_until_done(&world, &work("w", Work::Sweep), 1);
    assert_eq!(record(&world).sandbox.phase, Phase::Paused);
    world.with(|s| s.secrets.servers.clear());
    assert_eq!(run(&world, "m2"), (2, revision(&world)));
}

#[test]
fn withheld_secrets_are_told_once() {
    let world = Fake::new();
    world.with(|s| s.secrets.withholds = true);
    store(&world, "NPM_TOKEN", "one");
    run(&world, "m1");
    assert_eq!(told(&world), "(Not given here: `$NPM_TOKEN`.)\n\ndo it");
    run(&world, "m2");
    assert_eq!(
        share::notices(&world),
        [
            "Secrets not available to the agent here:\n- `NPM_TOKEN`: this sandbox's provider cannot keep it outside. With `readable` in `/sandbox-config` the agent could read it."
        ]
    );
}

fn limit(world: &Fake, id: &str, access: NetworkAccess, hosts: &[&str]) {
    let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
    let change = SettingsChange::Network { repository: "acme/api".to_owned(), access, hosts };
    let manager = Membership { manages: true, ..Membership::default() };
    world.with(|s| {
        s.settings = s.settings.changed(id, &change, &person("ann"), &manager, 1).unwrap();
    });
}

#[test]
fn a_network_is_told_and_changed_before_the_prompt() {
    let world = Fake::new();
    limit(&world, "one", NetworkAccess::Listed, &["api.example.com"]);
    assert_eq!(run(&world, "m1").0, 1);
    assert_eq!(
        told(&world),
        "(Network: only the forge, public registries, the model and hosts of the project's secrets are reached, and api.example.com. Other hosts are refused.)\n\ndo it"
    );
    assert_eq!(run(&world, "m2").0, 1);
    limit(&world, "two", NetworkAccess::Open, &[]);
    assert_eq!(
        (run(&world, "m3").0, &*told(&world)),
        (
            2,
            "(What you were told about the project's secrets and network no longer holds: it has no secrets here, and its network is not limited.)\n\ndo it"
        )
    );
    world.with(|s| s.secrets.withholds = true);
    limit(&world, "three", NetworkAccess::Off, &[]);
    assert_eq!((run(&world, "m4").0, &*told(&world)), (3, "do it"));
    assert_eq!(
        share::notices(&world),
        [
            "Network: only the forge, public registries, the model and hosts of the project's secrets are reached, and api.example.com. Other hosts are refused; `/sandbox-config` changes that.",
            "The setting network (`off`) has no effect here: this sandbox's provider cannot limit what it reaches, so it reaches everything."
        ]
    );
}

#[test]
fn other_repositories_get_none() {
    let world = Fake::new();
    store(&world, "NPM_TOKEN", "one");
    deliver_until_done(&world, &asked("m1", "acme/web"), 1);
    assert_eq!((record(&world).sandbox.project.secrets, told(&world)), (None, "do it".to_owned()));
    assert_eq!(world.with(|s| s.secrets.starts), 1);
}

#[test]
fn closed_repository_gets_no_secrets() {
    let public = || {
        let repository = repository("acme/api", false);
        let world = forge::world(FoundRepository::Here { repository, size_kb: 0 });
        store(&world, "NPM_TOKEN", "one");
        world
    };
    // It is open in another channel alone.
    let world = public();
    open(&world, Some("11"), "acme/api");
    assert_eq!(run(&world, "m1"), (1, String::new()));
    let project = record(&world).sandbox.project;
    assert_eq!((project.carried, project.secrets, told(&world)), (None, None, "do it".to_owned()));
    let why = "The project's secrets are not given here: no manager has opened the repository in this channel.";
    assert_eq!(share::notices(&world), [why]);
    // Opened here, it has them with the next message, and closed again it has none.
    open(&world, Some("10"), "acme/api");
    assert_eq!(run(&world, "m2"), (2, revision(&world)));
    world.with(|s| s.settings.repositories.close(Some("10"), "acme/api"));
    assert_eq!(run(&world, "m3"), (3, String::new()));
    // Where it is open, the forge's app brings it, with its secrets.
    let world = public();
    open(&world, Some("10"), "acme/api");
    assert_eq!(run(&world, "m1"), (1, revision(&world)));
    assert!(record(&world).sandbox.project.carried.is_some());
    // Closed again, the checkout stays, and its server has none.
    world.with(|s| s.settings.repositories.close(Some("10"), "acme/api"));
    assert_eq!(run(&world, "m2"), (2, String::new()));
    assert_eq!(share::notices(&world), [why]);
    // A private one has them where it is open.
    let repository = repository("acme/api", true);
    let world = forge::world(FoundRepository::Here { repository, size_kb: 0 });
    store(&world, "NPM_TOKEN", "one");
    open(&world, Some("10"), "acme/api");
    assert_eq!(run(&world, "m1"), (1, revision(&world)));
    assert_eq!(run(&world, "m2"), (1, revision(&world)));
}

#[test]
fn crash_at_any_call_prompts_no_old_server() {
    let begun = || {
        let world = Fake::new();
        store(&world, "NPM_TOKEN", "one");
        run(&world, "m1");
        store(&world, "NPM_TOKEN", "two");
        world
    };
    let crashes = each_crash(begun, &asked("m2", "acme/api"), |world, crash| {
        assert_eq!(outcomes(world).last(), Some(&Outcome::Answered), "{crash}");
        let with = world.with(|s| s.secrets.prompted_with.clone());
        assert_eq!(with.last(), Some(&revision(world)), "{crash}");
    });
    assert!(crashes >= 10, "{crashes}");
}

#[test]
fn crash_at_any_call_tells_the_agent_what_changed() {
    let begun = || {
        let world = Fake::new();
        run(&world, "m1");
        store(&world, "NPM_TOKEN", "one");
        world
    };
    let crashes = each_crash(begun, &asked("m2", "acme/api"), |world, crash| {
        let all = world.with(|s| s.told.clone());
        let last = all.last().unwrap();
        assert!(last.starts_with("(The project has secrets: `$NPM_TOKEN`"), "{crash}: {last}");
        // It was told by now.
        run(world, "m3");
        assert_eq!(told(world), "do it", "{crash}");
    });
    assert!(crashes > 10, "{crashes}");
}

/// A thread whose server has a secret, and whose sandbox got a name since.
fn named(readable: bool) -> Fake {
    let world = Fake::new();
    store_as(&world, ("API_TOKEN", "one"), readable);
    assert_eq!(run(&world, "m1"), (1, revision(&world)));
    deliver_until_done(&world, &share::call_it("n1", "front"), 1);
    world
}

#[test]
fn named_sandbox_gives_its_secrets_up() {
    let world = named(false);
    assert_eq!(run(&world, "m2"), (2, String::new()));
    assert_eq!(record(&world).sandbox.project.secrets, None);
    assert_eq!(
        told(&world),
        "(What you were told about the project's secrets and network no longer holds: it has no secrets here, and its network is not limited.)\n\ndo it"
    );
    assert_eq!((run(&world, "m3").0, &*told(&world)), (2, "do it"));
    let front = "front".parse().unwrap();
    assert_eq!(share::notices(&world), [words::named(&front, &thread())]);
}

#[test]
fn secrets_that_the_agent_could_read_are_told_with_the_name() {
    let front = "front".parse().unwrap();
    assert_eq!(
        share::notices(&named(true)),
        [format!("{} {}", words::named(&front, &thread()), words::SECRETS_ON_DISK)]
    );
}

#[test]
fn crash_at_any_call_gives_others_no_secrets() {
    let first = asked("m2", "acme/api");
    let second = share::prompt_in("o1", &share::other("9"), "front");
    for call in 1.. {
        let world = named(false);
        world.with(|s| s.crash_at = Some((s.calls + call, true)));
        if catch_unwind(AssertUnwindSafe(|| deliver_until_done(&world, &first, 1))).is_ok() {
            assert!(call > 10, "{call}");
            break;
        }
        world.with(|s| (s.crash_at, s.crashed) = (None, false));
        deliver_until_done(&world, &second, 1);
        deliver_until_done(&world, &first, 2);
        let with = world.with(|s| s.secrets.prompted_with.split_off(1));
        assert!(!with.is_empty() && with.iter().all(String::is_empty), "call {call}: {with:?}");
    }
}

#[test]
fn a_set_up_keeps_which_secrets_it_could_read() {
    let world = set_up::world(set_up::recipe());
    store_as(&world, ("API_TOKEN", "one"), true);
    let read = world.with(|s| s.settings.project_secrets.read_by_set_up("acme/api"));
    run(&world, "m1");
    remove(&world, "API_TOKEN");
    run(&world, "m2");
    let project = record(&world).sandbox.project;
    assert_eq!((project.secrets, project.set_up.unwrap().secrets), (None, read.clone()));
    assert!(!read.is_empty());
}
