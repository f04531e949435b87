//! A project that is set up before its agent starts: dependencies, a database, and how the agent uses them.

use bobbin_core::records::outcome::Outcome;
use bobbin_core::tenant::settings::SettingsChange;
use bobbin_tests::chat::Platform;
use bobbin_tests::forge::TestForge;
use bobbin_tests::limits::ANSWER_MS_MAX;
use bobbin_tests::operator::operate;
use bobbin_tests::stack::{Options, Stack};
use bobbin_tests::wait::eventually;
use bobbin_tests::world::World;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::choice::set;
use crate::forge::a_name;
use crate::run::{BRISK, brisk, deep, on, trial};
use crate::scenarios::pause;

const RECIPE: &str = "# How this project is made ready.
set-up:
  - name: install
    run: |
      echo \"$PROJECT\" >made.txt
      env | grep -c -i 'API_KEY\\|PASSWORD' >keys.txt || true
      echo once >>set-ups.txt
start:
  - echo start >>starts.txt
services: [postgres]
variables:
  PROJECT: ready
";
/// Fails until somebody has created the table.
const TESTS: &str =
    "psql -h 127.0.0.1 -U postgres -tAc 'select count(*) from items' && echo GREEN || echo RED\n";

pub fn trials() -> Vec<Trial> {
    let with_database = |platform: Platform| {
        let name =
            format!("environment::{}::red_tests_turn_green_with_a_database", platform.word());
        on(&BRISK, &name, async move |world| with_a_database(world, platform).await)
    };
    let failed = |platform: Platform| {
        let name = format!("environment::{}::failed_step_is_told_and_mended", platform.word());
        on(&BRISK, &name, async move |world| told(world, platform).await)
    };
    let outranked = trial("environment::managers_words_outrank_the_file", outranked);
    let at_daytona = trial("environment::next_thread_begins_with_a_prebuild", async || {
        let stack = Stack::start(&Options::limits(brisk()));
        prebuilt(&World::of(&stack), true).await;
    });
    let at_vercel = trial("environment::vercel::next_thread_begins_with_a_prebuild", async || {
        let provider = json!({"Overrides": json!({"provider": "vercel"}).to_string()});
        let options = Options { parameters: provider, ..Options::lean(brisk()) };
        let stack = Stack::start(&options);
        prebuilt(&World::at_vercel(&stack), true).await;
    });
    let by_hand = trial("environment::terminal_tries_builds_lists_and_forgets", async || {
        let stack = Stack::start(&Options::lean(brisk()));
        by_hand(&World::of(&stack)).await;
    });
    let of = |platform| [with_database(platform), failed(platform)];
    let all = deep(Platform::ALL.into_iter().flat_map(of));
    all.chain([outranked, at_daytona, at_vercel, by_hand]).collect()
}

async fn with_a_database(world: World, platform: Platform) {
    let forge = TestForge::of(&world.ready);
    let files = [(".bobbin/environment.yaml", RECIPE), ("test.sh", TESTS)];
    let repository = forge.private(&a_name(), &files).await;
    let look = "run: cat made.txt keys.txt set-ups.txt starts.txt; sh test.sh";
    let (mut talk, first) = world.begin_with(platform, &[("repo", &repository.name)], look).await;
    assert_eq!(talk.ended(&first).await.outcome, Outcome::Answered);
    let seen = talk.answer(&first).await;
    for words in ["ready\n0\nonce\nstart\n", "relation \"items\" does not exist", "RED"] {
        assert!(seen.contains(words), "{words}: {seen}");
    }
    let card = talk.card(&first).await;
    assert!(card.text.contains("set up at "), "{card:?}");

    let mend =
        "run: psql -h 127.0.0.1 -U postgres -c 'create table items (id int)'\nrun: sh test.sh";
    let second = talk.say(mend).await;
    assert_eq!(talk.ended(&second).await.outcome, Outcome::Answered);
    assert!(talk.answer(&second).await.contains("GREEN"));

    // Data survives a pause; the database starts again, and the set-up does not.
    pause(&talk).await;
    let third = talk.say("run: cat set-ups.txt starts.txt; sh test.sh").await;
    assert_eq!(talk.ended(&third).await.outcome, Outcome::Answered);
    let seen = talk.answer(&third).await;
    assert!(seen.contains("once\nstart\nstart\n") && seen.contains("GREEN"), "{seen}");
    talk.finish().await;
}

async fn told(world: World, platform: Platform) {
    let forge = TestForge::of(&world.ready);
    let files = [(
        ".devcontainer/devcontainer.json",
        "{\n  // Both.\n  \"postCreateCommand\": \"echo broken; exit 7\",\n  \"runArgs\": [\"--privileged\"],\n}\n",
    )];
    let repository = forge.private(&a_name(), &files).await;
    let look = "run: cat .bobbin/set-up/1.log";
    let (talk, first) = world.begin_with(platform, &[("repo", &repository.name)], look).await;
    assert_eq!(talk.ended(&first).await.outcome, Outcome::Answered);
    assert!(talk.answer(&first).await.contains("broken"));
    let notice = talk.see(ANSWER_MS_MAX, "what failed is told", |one| {
        one.text.contains("The set-up is incomplete")
    });
    let notice = notice.await.text;
    for words in ["exit code 7", "runArgs"] {
        assert!(notice.contains(words), "{words}: {notice}");
    }
    let card = talk.card(&first).await;
    talk.press(&card, "Set-up log").await;
    talk.whispered("-- step 1\nbroken").await;
    talk.finish().await;
}

/// A manager's recipe outranks the repository's file and can switch it off.
async fn outranked() {
    let stack = Stack::start(&Options::lean(brisk()));
    let world = &World::of(&stack);
    let forge = TestForge::of(&world.ready);
    let files = [(".bobbin/environment.yaml", "set-up: [echo file >made.txt]\n")];
    let repository = forge.private(&a_name(), &files).await;
    for (text, said) in [("{set-up: [echo manager >made.txt]}", "manager"), ("off", "No such file")]
    {
        let (repository, text) = (repository.name.clone(), text.to_owned());
        let repository_name = repository.clone();
        let change =
            SettingsChange::Environment { repository: repository_name, text, beside: Vec::new() };
        set(world, Platform::Discord, change).await;
        let chosen = [("repo", &*repository)];
        let (talk, turn) =
            world.begin_with(Platform::Discord, &chosen, "run: cat made.txt 2>&1").await;
        assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
        let seen = talk.answer(&turn).await;
        assert!(seen.contains(said), "{said}: {seen}");
        talk.finish().await;
    }
}

const BUILT: &str = "# Takes its time.
set-up:
  - name: install
    run: |
      sleep 5
      mkdir -p node_modules
      cat lock/package-lock.json >node_modules/version
      echo once >>node_modules/set-ups.txt
      env | grep -c -i 'API_KEY\\|PASSWORD' >node_modules/keys.txt || true
";
const MIGRATED: &str = "  - name: migrate
    run: psql -h 127.0.0.1 -U postgres -c 'create table items (id int)'
services: [postgres]
";
const STARTED: &str = "start:
  - echo start >>node_modules/starts.txt
";

/// The second thread of a private repository finds its dependencies, its database if any, and the commits pushed since.
pub async fn prebuilt(world: &World, has_database: bool) {
    let forge = TestForge::of(&world.ready);
    let recipe = [BUILT, if has_database { MIGRATED } else { "" }, STARTED].concat();
    let files = [
        (".bobbin/environment.yaml", &*recipe),
        (".gitignore", "node_modules\n"),
        ("lock/package-lock.json", "{\"v\": 1}\n"),
        ("changed.txt", "old\n"),
    ];
    let repository = forge.private(&a_name(), &files).await;
    let (count, items) = if has_database {
        ("psql -h 127.0.0.1 -U postgres -tAc 'select count(*) from items'; ", "0\n")
    } else {
        ("", "")
    };
    let look = format!(
        "run: cat changed.txt node_modules/version node_modules/set-ups.txt node_modules/keys.txt node_modules/starts.txt; {count}git status --short; git log -1 --format=%s"
    );
    let thread = async |expected: &str, fact: &str| {
        let began = std::time::Instant::now();
        let chosen = [("repo", &*repository.name)];
        let (talk, turn) = world.begin_with(Platform::Discord, &chosen, &look).await;
        assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
        println!("{fact}: {:?}", began.elapsed());
        let seen = talk.answer(&turn).await;
        assert!(seen.contains(expected), "{expected}: {seen}");
        let card = talk.card(&turn).await;
        assert!(card.text.contains(fact), "{fact}: {card:?}");
        talk.finish().await;
    };
    // Nobody waits for the build: when it ends, its sandbox is deleted.
    let built = async |but: &[String]| {
        eventually(ANSWER_MS_MAX, "a prebuild", async || {
            let made = world.provider.snapshots().await?;
            let all = world.provider.list().await?;
            let living = all.iter().filter(|one| one.live() && !made.contains(&one.name)).count();
            match &made[..] {
                [one] if !but.contains(one) && living == 0 => Ok(made),
                _ => Err(format!("{made:?}, {living} sandboxes")),
            }
        })
        .await
    };

    thread(&format!("old\n{{\"v\": 1}}\nonce\n0\nstart\n{items}"), "set up at").await;
    let first = built(&[]).await;
    repository.push("main", "changed.txt", "new\n");
    let begun = format!("new\n{{\"v\": 1}}\nonce\n0\nstart\n{items}By a person");
    thread(&begun, "begun with a prebuild of").await;

    // Other lock files mean another set-up, on the prebuild's files, and another prebuild.
    repository.push("main", "lock/package-lock.json", "{\"v\": 2}\n");
    thread("new\n{\"v\": 2}\nonce\nonce\n", "set up at").await;
    built(&first).await;
    thread("new\n{\"v\": 2}\nonce\n0\n", "begun with a prebuild of").await;
}

const STEPS: &str = "set-up:
  - name: install
    run: mkdir -p made && echo once >>made/set-ups.txt
  - {name: check, run: 'test -s made/set-ups.txt'}
";
const BROKEN: &str =
    "set-up: [{name: install, run: 'echo no such package; exit 7'}, echo unreached]\n";

/// An operator tries a recipe, builds its prebuild, and gives it up.
async fn by_hand(world: &World) {
    let forge = TestForge::of(&world.ready);
    let files = [(".bobbin/environment.yaml", STEPS), (".gitignore", "made\n")];
    let repository = forge.private(&a_name(), &files).await;
    let tenant = format!("discord:{}", world.ready.discord_guild_id);
    let asked = async |verb: &str| {
        let words = ["environment", verb, &repository.name, "--tenant", &tenant, "--json"];
        operate(world, &words).await
    };
    let listed = async || operate(world, &["environment", "list", "--json"]).await;
    let at_provider = async || world.provider.snapshots().await.expect("a list");

    let tried = asked("try").await;
    assert_eq!((tried.code, &tried.json()["result"]), (0, &json!("done")), "{tried:?}");
    let ends = |answer: &Value| -> Vec<(String, String)> {
        let word = |step: &Value, key: &str| step[key].as_str().unwrap_or_default().to_owned();
        let steps = answer["steps"].as_array().cloned().unwrap_or_default();
        steps.iter().map(|step| (word(step, "name"), word(step, "end"))).collect()
    };
    let passed = |name: &str| (name.to_owned(), "passed".to_owned());
    assert_eq!(ends(&tried.json()), [passed("install"), passed("check")], "{tried:?}");
    let none = listed().await;
    assert_eq!(
        (none.code, &none.json()["prebuilds"], at_provider().await.len()),
        (3, &json!([]), 0)
    );

    let built = asked("build").await;
    assert_eq!((built.code, ends(&built.json()).len()), (0, 2), "{built:?}");
    let first = built.json()["snapshot"].as_str().expect("a snapshot").to_owned();
    let made = listed().await.json();
    let line = &made["prebuilds"][0];
    assert_eq!(
        (&line["repository"], &line["tenant"], &line["state"], &line["snapshot"]),
        (&json!(repository.name), &json!(tenant), &json!("ready"), &json!(first)),
        "{made}"
    );
    assert_eq!(line["commit"], built.json()["commit"], "{made}");
    let chosen = [("repo", &*repository.name)];
    let look = "run: cat made/set-ups.txt";
    let (talk, turn) = world.begin_with(Platform::Discord, &chosen, look).await;
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    assert!(talk.card(&turn).await.text.contains("begun with a prebuild of"));
    talk.finish().await;

    let again = asked("build").await;
    let second = again.json()["snapshot"].as_str().expect("a snapshot").to_owned();
    assert_ne!(second, first);
    assert_eq!(at_provider().await, std::slice::from_ref(&second));

    repository.push("main", ".bobbin/environment.yaml", BROKEN);
    let failed = asked("try").await;
    let step = &failed.json()["steps"][0];
    assert_eq!(
        (failed.code, &step["name"], &step["exit"], &step["said"]),
        (1, &json!("install"), &json!(7), &json!("no such package")),
        "{failed:?}"
    );
    assert_eq!(at_provider().await, std::slice::from_ref(&second));
    let shown =
        operate(world, &["environment", "show", &repository.name, "--tenant", &tenant]).await;
    for words in [&*second, "failed      install (exit code 7", "no such package"] {
        assert!(shown.code == 0 && shown.out.contains(words), "{words}: {shown:?}");
    }

    let forgotten = asked("forget").await;
    assert_eq!(
        (forgotten.code, &forgotten.json()["forgotten"]),
        (0, &json!([second])),
        "{forgotten:?}"
    );
    assert_eq!((listed().await.code, at_provider().await.len()), (3, 0));
    let nothing = asked("forget").await;
    assert_eq!(nothing.code, 3, "{nothing:?}");
}
