//! Secrets of a project: entered on a page, used by the agent's tools, read by nobody.

use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::{Request, State};
use bobbin_core::records::outcome::Outcome;
use bobbin_tests::chat::Platform;
use bobbin_tests::forge::TestForge;
use bobbin_tests::limits::ANSWER_MS_MAX;
use bobbin_tests::processes;
use bobbin_tests::stack::{Options, Stack, quick};
use bobbin_tests::talk::Talk;
use bobbin_tests::world::World;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use self::stand_in::stand_ins;
use crate::forge::a_name;
use crate::own_keys::{KeySetup, harmless};
use crate::run::{brisk, deep, trial};
use crate::security::canaries::everything;
use crate::security::search::{Search, Secret};

#[path = "../tls/stand_in.rs"]
mod stand_in;

const BOUND: &str = "registry.example.com";
const OTHER: &str = "other.example.net";
const RECIPE: &str = "set-up:
  - |
    curl -sS -H \"Authorization: Bearer $SET_UP_TOKEN\" https://registry.example.com/set-up
    echo \"[$API_TOKEN]\" >made.txt
start:
  - echo \"[$SET_UP_TOKEN$API_TOKEN]\" >started.txt
";

pub fn trials() -> Vec<Trial> {
    let of = |platform: Platform| {
        let name = format!("secrets::{}::tools_use_what_nobody_reads", platform.word());
        trial(&name, async move || used(platform).await)
    };
    let listed = |platform: Platform| {
        let name = format!("secrets::{}::listed_network_refuses_other_hosts", platform.word());
        trial(&name, async move || limited(platform).await)
    };
    let at_vercel = "secrets::vercel::start_steps_meet_the_limited_network";
    let at_vercel = trial(at_vercel, only_started);
    let all = Platform::ALL.into_iter().flat_map(|platform| [of(platform), listed(platform)]);
    deep(all.chain([at_vercel])).collect()
}

/// A sandbox's network follows its repository's setting.
async fn limited(platform: Platform) {
    let folder = tempfile::tempdir().unwrap();
    let (heard, stand_ins) = hosts(folder.path()).await;
    let stack = Stack::start(&Options { environment: vec![stand_ins], ..Options::lean(quick()) });
    let world = World::of(&stack);
    let forge = TestForge::of(&world.ready);
    let step = |what: &str| format!("  - curl -ksS --max-time 5 https://{OTHER}/{what} || true\n");
    let recipe = format!("set-up:\n{}start:\n{}", step("set-up"), step("start"));
    let repository = forge.private(&a_name(), &[(".bobbin/environment.yaml", &recipe)]).await;
    let repository = repository.name.to_ascii_lowercase();
    let place = KeySetup::new(&world, platform);
    let said = async |access: &str, hosts: &str| {
        let mut options = json!({"repository": repository, "access": access});
        if !hosts.is_empty() {
            options["hosts"] = json!(hosts);
        }
        let words = format!("config network {repository} {access} {hosts}");
        let manager = place.manager();
        let done = format!("the network of {repository} is {access}");
        place.typed(&manager, ("sandbox-config network", &options), &words, &done).await;
    };
    let ask = [BOUND, OTHER]
        .map(|host| format!("run: curl -ksS --max-time 10 https://{host}/ || echo no {host}"))
        .join("\n");
    said("listed", "*.example.com").await;
    let (mut talk, turn) = world.begin_with(platform, &[("repo", &*repository)], &ask).await;
    let seen = answered(&talk, &turn).await;
    assert!(seen.contains("heard") && seen.contains(&format!("no {OTHER}")), "{seen}");
    // Its set-up and its start step used the other one.
    assert_eq!(taken(&heard), [format!("{BOUND}/ -")]);
    let card = talk.card(&turn).await;
    assert!(card.text.contains("set up at "), "{}", card.text);
    let told = talk.see(ANSWER_MS_MAX, "the thread is told", |one| {
        one.text.contains("Network: only the forge")
    });
    told.await;
    for (access, reached) in [("off", &[][..]), ("open", &[BOUND, OTHER])] {
        said(access, "").await;
        let turn = talk.say(&ask).await;
        answered(&talk, &turn).await;
        let reached: Vec<String> = reached.iter().map(|host| format!("{host}/ -")).collect();
        assert_eq!(taken(&heard), reached, "{access}");
    }
    talk.finish().await;
    drop(world);
    stack.end().unwrap();
}

/// In a project without set-up steps, the start steps run first.
async fn only_started() {
    let folder = tempfile::tempdir().unwrap();
    let (heard, stand_ins) = hosts(folder.path()).await;
    let provider = json!({"Overrides": json!({"provider": "vercel"}).to_string()});
    let stack = Stack::start(&Options {
        environment: vec![stand_ins],
        parameters: provider,
        ..Options::lean(quick())
    });
    let world = World::at_vercel(&stack);
    let forge = TestForge::of(&world.ready);
    let get = |host: &str| format!("  - curl -ksS --max-time 5 https://{host}/start || true\n");
    let recipe = format!("start:\n{}{}", get(OTHER), get(BOUND));
    let repository = forge.private(&a_name(), &[(".bobbin/environment.yaml", &recipe)]).await;
    let repository = repository.name.to_ascii_lowercase();
    let place = KeySetup::new(&world, Platform::Discord);
    let options = json!({"repository": repository, "access": "listed", "hosts": BOUND});
    let done = format!("the network of {repository} is listed");
    place.typed(&place.manager(), ("sandbox-config network", &options), "", &done).await;
    let choices = [("repo", &*repository)];
    let (talk, turn) = world.begin_with(Platform::Discord, &choices, "echo: hello").await;
    answered(&talk, &turn).await;
    assert_eq!(taken(&heard), [format!("{BOUND}/start -")]);
    talk.finish().await;
    drop(world);
    stack.end().unwrap();
}

/// The requests that the world's hosts got: host, path and the header for keys.
type Heard = Arc<Mutex<Vec<String>>>;

async fn hosts(folder: &std::path::Path) -> (Heard, (String, String)) {
    async fn note(State(heard): State<Heard>, request: Request) -> &'static str {
        let header = |name: &str| {
            let value = request.headers().get(name).and_then(|value| value.to_str().ok());
            value.unwrap_or("-").to_owned()
        };
        let line =
            format!("{}{} {}", header("host"), request.uri().path(), header("authorization"));
        heard.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        "heard"
    }
    let heard = Heard::default();
    let routes = Router::new().fallback(note).with_state(Arc::clone(&heard));
    let file = folder.join("stand-ins.json");
    let all = stand_ins(&[BOUND, OTHER], routes).await;
    std::fs::write(&file, serde_json::to_vec(&all).unwrap()).unwrap();
    (heard, ("BOBBIN_STAND_INS".to_owned(), file.to_str().unwrap().to_owned()))
}

fn taken(heard: &Heard) -> Vec<String> {
    std::mem::take(&mut *heard.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A secret of a repository, as a manager changes it.
struct Entry<'a> {
    place: &'a KeySetup<'a>,
    repository: &'a str,
    name: &'a str,
}

impl Entry<'_> {
    async fn said(&self, user: &str, (hosts, flag): (&str, Option<&str>), wanted: &str) -> String {
        let Self { place, repository, name } = self;
        let mut options = json!({"repository": repository, "name": name});
        if !hosts.is_empty() {
            options["hosts"] = json!(hosts);
        }
        let mut words = format!("config secret {repository} {name} {hosts}");
        if let Some(flag) = flag {
            options[flag] = Value::Bool(true);
            words.push_str(&format!(" {flag}"));
        }
        place.typed(user, ("sandbox-config secret", &options), &words, wanted).await
    }

    async fn stored(&self, value: &str, flag: Option<&str>) {
        let manager = self.place.manager();
        let words = self.said(&manager, (BOUND, flag), "works once").await;
        let link = self.place.address(&words);
        let shown = self.place.open(&link).await;
        harmless(&shown);
        let heading = format!("<h1>Secret {} of {}</h1>", self.name, self.repository);
        assert!(shown.text.contains(&heading), "{}", shown.text);
        assert_eq!(self.place.enter(&link, "short").await.status, 422);
        assert_eq!(self.place.enter(&link, value).await.status, 200);
        assert_eq!(self.place.enter(&link, value).await.status, 410);
        let done = format!("{} (for {BOUND}", self.name);
        let told = self.place.heard(&manager, &done).await;
        assert!(!told.contains(value), "{told}");
    }
}

async fn answered(talk: &Talk<'_>, turn: &str) -> String {
    let ended = talk.ended(turn).await;
    assert_eq!(ended.outcome, Outcome::Answered, "{ended:?}");
    talk.answer(turn).await
}

/// A secret is entered, changed and used on both platforms, and entered wrongly once.
pub async fn enter_and_use(world: &World, value: &str) {
    let forge = TestForge::of(&world.ready);
    let repository = forge.private(&a_name(), &[("README.md", "begin\n")]).await;
    let repository = repository.name.to_ascii_lowercase();
    for platform in Platform::ALL {
        let place = KeySetup::new(world, platform);
        let token = Entry { place: &place, repository: &repository, name: "CANARY_TOKEN" };
        token.stored(value, None).await;
        let chosen = [("repo", &*repository)];
        let (mut talk, turn) =
            world.begin_with(platform, &chosen, "run: echo \"[$CANARY_TOKEN]\"").await;
        answered(&talk, &turn).await;
        let again = format!("{value}.again");
        token.stored(&again, Some("set-up")).await;
        let turn = talk.say("run: env | sort").await;
        assert!(!answered(&talk, &turn).await.contains(value));
        talk.finish().await;
    }
}

async fn used(platform: Platform) {
    let folder = tempfile::tempdir().unwrap();
    let (heard, stand_ins) = hosts(folder.path()).await;
    let stack = Stack::start(&Options { environment: vec![stand_ins], ..Options::lean(brisk()) });
    let world = World::of(&stack);
    let forge = TestForge::of(&world.ready);
    let repository = forge.private(&a_name(), &[(".bobbin/environment.yaml", RECIPE)]).await;
    let repository = repository.name.to_ascii_lowercase();
    let place = KeySetup::new(&world, platform);
    let of = |name| Entry { place: &place, repository: &repository, name };
    let value = |what: &str| format!("canary/{what}+must=stay.{}", std::process::id());
    let (first, second, of_set_up) = (value("first"), value("second"), value("set-up"));

    // Only managers; and nothing that would send a value elsewhere.
    let token = of("API_TOKEN");
    let sam = world.colleague(platform).await.id;
    token.said(&sam, (BOUND, None), "Only people who may manage").await;
    let ada = place.manager();
    for (hosts, why) in [
        ("*.github.io", "too wide"),
        ("github.com", "belongs to the forge"),
        ("10.0.0.1", "is not a host"),
        ("", "at least one host"),
    ] {
        token.said(&ada, (hosts, None), why).await;
    }
    of("OPENAI_API_KEY").said(&ada, (BOUND, None), "Choose another name").await;
    token.stored(&first, None).await;
    of("SET_UP_TOKEN").stored(&of_set_up, Some("set-up")).await;

    let look = format!(
        "run: curl -sS -H \"Authorization: Bearer $API_TOKEN\" https://{BOUND}/api\nrun: curl -sS -H \"Authorization: Bearer $API_TOKEN\" https://{OTHER}/api\nrun: cat made.txt started.txt; echo \"$API_TOKEN\""
    );
    let chosen = [("repo", &*repository)];
    let (mut talk, turn) = world.begin_with(platform, &chosen, &look).await;
    let seen = answered(&talk, &turn).await;
    // A secret that is not for set-ups is in none of their processes, and none is in start steps.
    assert!(seen.contains("[]\n[]\ndtn_secret_"), "{seen}");
    let at = seen.find("dtn_secret_").unwrap();
    let is_of_it = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
    let placeholder: String = seen[at..].chars().take_while(is_of_it).collect();
    assert_eq!(
        taken(&heard),
        [
            format!("{BOUND}/set-up Bearer {of_set_up}"),
            format!("{BOUND}/api Bearer {first}"),
            format!("{OTHER}/api Bearer {placeholder}"),
        ]
    );

    // Another value reaches the running sandbox.
    token.stored(&second, None).await;
    let ask = format!("run: curl -sS -H \"Authorization: Bearer $API_TOKEN\" https://{BOUND}/api");
    let turn = talk.say(&ask).await;
    answered(&talk, &turn).await;
    assert_eq!(taken(&heard), [format!("{BOUND}/api Bearer {second}")]);

    let secrets = [("first", &first), ("second", &second), ("set-up", &of_set_up)]
        .map(|(name, value)| Secret::new(name, value));
    let search = Search::new(&secrets);
    let mut looked = 0;
    for (pid, command) in processes::marked(stack.folder().path()) {
        for what in ["environ", "cmdline"] {
            let bytes = std::fs::read(format!("/proc/{pid}/{what}")).unwrap_or_default();
            let text = String::from_utf8_lossy(&bytes);
            assert!(!text.contains("+must=stay"), "{command} holds a secret");
            looked += usize::from(text.contains(&placeholder));
        }
    }
    assert!(looked > 0, "no process holds the placeholder");
    for place in everything(&world, stack.folder().path()).await {
        let found = search.find(&place);
        assert!(found.is_empty(), "{found:?}");
    }

    // So does its removal.
    token.said(&ada, ("", Some("remove")), "is removed").await;
    let turn = talk.say(&format!("run: echo \"[$API_TOKEN]\"\n{ask}")).await;
    assert!(answered(&talk, &turn).await.contains("[]"));
    assert_eq!(taken(&heard), [format!("{BOUND}/api Bearer")]);
    assert_eq!(world.session(&talk.thread.key).await.unwrap().sandbox.generation, 1);
    let told = talk.see(ANSWER_MS_MAX, "its first card", |one| one.text.contains("set up at"));
    told.await;
    talk.finish().await;
    world.check_orphans().await.unwrap();
    drop(world);
    stack.end().unwrap();
}
