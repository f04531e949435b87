//! The operator's command line on the laptop stack: the real program, real records; then the promises, as after
//! everything that people do.

use bobbin_core::base::ids::ThreadKey;
use bobbin_core::base::limits::DELIVERIES_MAX;
use bobbin_core::base::names::sandbox_name;
use bobbin_core::protocol::decide::words::destroyed_by;
use bobbin_core::records::outcome::Outcome;
use bobbin_core::records::sandbox::Phase;

use bobbin_sandbox::labels::{StackIdentity, labels};
use bobbin_tests::chat::Platform;
use bobbin_tests::limits::VISIBLE_MS_MAX;
use bobbin_tests::operator::{masked, operate, plainly};
use bobbin_tests::shared::Shared;
use bobbin_tests::stack::quick;
use bobbin_tests::talk::marked;
use bobbin_tests::wait::eventually;
use bobbin_tests::world::World;
use libtest_mimic::Trial;
use reqwest::Method;
use serde_json::{Value, json};

use crate::run::{alone, on, trial};

/// Its own stack: orphans are recognised after three seconds, and only these tests make dead letters.
pub static OPERATED: Shared = Shared::lean(limits);

/// Time until a sandbox without a record is an orphan.
const GRACE_MS: u64 = 3_000;
/// The laptop stack's name.
const STACK: &str = "local";

fn limits() -> Value {
    let mut limits = quick();
    limits["stale_grace_ms"] = json!(GRACE_MS);
    limits
}

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for platform in Platform::ALL {
        let name = platform.word();
        trials.push(on(
            &OPERATED,
            &format!("operate::{name}::thread_is_listed_shown_and_exported"),
            async move |world| looks(world, platform).await,
        ));
        trials.push(on(
            &OPERATED,
            &format!("operate::{name}::operator_controls_whole_sandbox_life"),
            async move |world| acts(world, platform).await,
        ));
        trials.push(on(
            &OPERATED,
            &format!("operate::{name}::running_turn_is_spared_without_force"),
            async move |world| busy(world, platform).await,
        ));
    }
    trials.push(on(&OPERATED, "operate::orphan_is_destroyed_only_when_confirmed", orphan));
    trials.push(on(
        &OPERATED,
        "operate::unknown_or_malformed_arguments_are_explained",
        wrong_words,
    ));
    trials.push(trial("operate::missing_stack_option_is_explained", nowhere));
    // It receives everything in the queue until that is used up: no other test's message may be there.
    trials.push(alone("operate::replayed_dead_letter_is_answered_once", async || {
        let stack = OPERATED.get();
        dead_letter(World::of(&stack)).await;
    }));
    trials
}

/// A table's lines about this thread, with its head.
fn about(out: &str, thread: &str) -> String {
    let lines = out.lines().enumerate();
    let kept = lines.filter(|(at, line)| *at == 0 || line.contains(thread));
    kept.map(|(_, line)| line).collect::<Vec<_>>().join("\n")
}

async fn looks(world: World, platform: Platform) {
    let (text, mark) = marked("echo: a word that only the thread knows");
    let (talk, turn) = world.begin_marked(platform, &text, &mark).await;
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    let session = talk.session().await;
    let thread = session.thread.to_string();
    let sandbox = sandbox_name(STACK, &session.thread.sandbox(), 1);
    let agent = session.conversation.session.clone().unwrap();
    let tenant = session.thread.tenant();
    let names = [
        (thread.as_str(), "THREAD"),
        (turn.as_str(), "TURN"),
        (sandbox.as_str(), "NAME"),
        (agent.as_str(), "AGENT"),
        (tenant.as_str(), "TENANT"),
    ];

    let listed = operate(&world, &["thread", "list", "--all"]).await;
    assert_eq!(listed.code, 0, "{listed:?}");
    assert_eq!(
        masked(&about(&listed.out, &thread), &names),
        "\
THREAD SANDBOX TURN WAITING ACTIVE DUE
THREAD active TIME - - TIME ago in TIME"
    );
    let listed = operate(&world, &["thread", "list", "--all", "--gone", "--json"]).await.json();
    let line = |list: &Value| {
        let lines = list["threads"].as_array().unwrap();
        lines.iter().find(|line| line["thread"] == thread.as_str()).cloned().unwrap_or_default()
    };
    assert_eq!(line(&listed)["phase"], "active");
    assert_eq!(line(&listed)["generation"], 1);
    assert_eq!(line(&listed)["tenant"], tenant.as_str());
    assert_eq!(line(&listed)["turn"], Value::Null);
    assert_eq!(listed["next"], Value::Null);
    for (filter, is_there) in [
        (["--phase", "active"].as_slice(), true),
        (&["--phase", "paused"], false),
        (&["--tenant", tenant.as_str()], true),
        (&["--tenant", "discord:0"], false),
        (&["--idle", "0s"], true),
        (&["--idle", "1d"], false),
        (&["--due"], false),
    ] {
        let words = [&["thread", "list", "--all", "--json"], filter].concat();
        let ran = operate(&world, &words).await;
        assert_eq!(line(&ran.json()) != Value::Null, is_there, "{filter:?}");
        let empty = ran.json()["threads"].as_array().unwrap().is_empty();
        assert_eq!(ran.code, if empty { 3 } else { 0 }, "{filter:?}");
    }

    let listed = operate(&world, &["sandbox", "list"]).await;
    assert_eq!(listed.code, 0, "{listed:?}");
    assert_eq!(
        masked(&about(&listed.out, &thread), &names),
        "\
NAME OF PROVIDER STATE USED THREADS IN USE IS
- THREAD - running TIME ago - - live"
    );

    let shown = operate(&world, &["thread", "show", &thread]).await;
    assert_eq!(shown.code, 0, "{shown:?}");
    let by = match platform {
        Platform::Discord => &world.ready.discord_user_id,
        Platform::Slack => &world.ready.slack_user_id,
    };
    let show = operate(&world, &["thread", "show", &thread, "--json"]).await.json();
    let who = show["timeline"][2]["note"].as_str().unwrap_or_default().to_owned();
    let who = who.strip_prefix("of ").and_then(|note| note.split(',').next()).unwrap_or(by);
    let mut names = names.to_vec();
    names.push((who, "WHO"));
    assert_eq!(
        masked(&shown.out, &names),
        "\
THREAD
tenant TENANT
phase active for TIME, generation 1
sandbox NAME
agent AGENT
active TIME ago
due in TIME
wake-up in TIME
Timeline
TIME ago creating sandbox 1
TIME ago active ready
TIME ago answered TURN of WHO, took TIME, N tokens"
    );
    assert!(!shown.out.contains("only the thread knows"), "{}", shown.out);
    let content = operate(&world, &["thread", "show", &thread, "--content"]).await.out;
    assert!(
        content.contains("asked: echo: a word that only the thread knows")
            && content.contains("answered: a word that only the thread knows"),
        "{content}"
    );

    let log = operate(&world, &["sandbox", "log", &thread, "-n", "50"]).await;
    assert_eq!(log.code, 0, "{log:?}");
    assert!(log.out.lines().count() > 5 && log.out.contains("level=INFO"), "{}", log.out);
    let server = operate(&world, &["sandbox", "log", &thread, "--server", "--json"]).await.json();
    assert!(server["lines"].to_string().contains("opencode server listening"), "{server}");
    let followed =
        operate(&world, &["sandbox", "log", &thread, "-n", "3", "--follow", "--for", "5s"]).await;
    assert_eq!(followed.code, 0, "{followed:?}");
    assert!(followed.out.lines().count() >= 3, "{}", followed.out);

    let exported = operate(&world, &["thread", "export", &thread]).await.json();
    let items = exported["items"].as_array().unwrap();
    let item =
        |name: &str| items.iter().find(|item| item["item"] == name).cloned().unwrap_or_default();
    assert_eq!(item("session")["record"]["thread"], thread.as_str());
    let entry = &item(&format!("turn#{turn}"))["entry"];
    assert!(entry["asked"].as_str().unwrap().contains("only the thread knows"), "{entry}");
    assert_eq!(exported["sandboxes"][0]["name"], sandbox.as_str());
    talk.finish().await;
}

async fn acts(world: World, platform: Platform) {
    let (mut talk, first) = world.begin(platform, "echo: before").await;
    assert_eq!(talk.ended(&first).await.outcome, Outcome::Answered);
    let thread = talk.thread.key.to_string();

    let paused = operate(&world, &["sandbox", "stop", &thread]).await;
    assert_eq!(
        (paused.code, paused.out.as_str()),
        (0, "It is stopped; its disk is kept, and the next message starts it again.\n"),
        "{paused:?}"
    );
    assert_eq!(talk.session().await.sandbox.phase, Phase::Paused);
    assert_eq!(talk.sandbox().await.state, "stopped");
    let again = operate(&world, &["sandbox", "stop", &thread]).await;
    assert_eq!(
        (again.code, again.err.as_str()),
        (3, "There is nothing to stop: it is already paused. It is paused now.\n")
    );
    let log = operate(&world, &["sandbox", "log", &thread]).await;
    assert_eq!(log.code, 1);
    assert!(
        log.err.starts_with("The sandbox is stopped, and a log can be read only while it runs. Start it with: bobbin --laptop"),
        "{}",
        log.err
    );

    let resumed = operate(&world, &["sandbox", "start", &thread, "--json"]).await;
    assert_eq!(
        (resumed.code, resumed.json()),
        (
            0,
            json!({"thread": thread, "sandbox": thread, "name": null, "want": "resume", "result": "done", "trouble": null,
                "phase": "active", "halted": null, "all_halted": [], "snapshot": null})
        ),
        "{resumed:?}"
    );
    let second = talk.say("echo: in between").await;
    assert_eq!(talk.ended(&second).await.outcome, Outcome::Answered);
    assert_eq!(talk.session().await.sandbox.generation, 1);
    let kept = operate(&world, &["thread", "forget", &thread]).await;
    assert_eq!(kept.code, 1);
    assert!(
        kept.err.starts_with(
            "Nothing was deleted: it still has a sandbox with people's files: destroy that first."
        ),
        "{}",
        kept.err
    );

    let destroyed = operate(&world, &["sandbox", "destroy", &thread]).await;
    assert_eq!(
        (destroyed.code, destroyed.out.as_str()),
        (
            0,
            "It is deleted with its files, and the thread is notified. The next message starts a fresh one.\n"
        ),
        "{destroyed:?}"
    );
    eventually(VISIBLE_MS_MAX, "the thread is told once", async || {
        let messages = talk.messages().await?;
        let told = messages.iter().filter(|one| one.text.contains(&destroyed_by("")));
        match told.count() {
            1 => Ok(()),
            n => Err(format!("{n} times")),
        }
    })
    .await;
    talk.check().await;
    let third = talk.say("echo: afterwards").await;
    assert_eq!(talk.ended(&third).await.outcome, Outcome::Answered);
    assert_eq!(talk.session().await.sandbox.generation, 2);

    assert_eq!(operate(&world, &["sandbox", "destroy", &thread]).await.code, 0);
    let forgotten = operate(&world, &["thread", "forget", &thread, "--json"]).await;
    assert_eq!(
        (forgotten.code, forgotten.json()),
        (0, json!({"thread": thread, "deleted": 3})),
        "{forgotten:?}"
    );
    let left = operate(&world, &["thread", "export", &thread]).await.out;
    assert!(!left.contains("echo:"), "{left}");
    talk.check().await;
    let fourth = talk.say("echo: and on it goes").await;
    assert_eq!(talk.ended(&fourth).await.outcome, Outcome::Answered);
    assert_eq!(talk.session().await.sandbox.generation, 3);
    talk.finish().await;
}

async fn busy(world: World, platform: Platform) {
    let (talk, turn) = world.begin(platform, "run: sleep 100").await;
    talk.running(&turn).await;
    let thread = talk.thread.key.to_string();
    let before = talk.session().await;
    for want in ["stop", "start", "destroy"] {
        let refused = operate(&world, &["sandbox", want, &thread]).await;
        assert_eq!(refused.code, 1, "{refused:?}");
        assert!(
            refused.err.contains("is running there (running, for ")
                && refused.err.contains("Nothing was done.")
                && refused.err.contains(&format!(" sandbox {want} {thread} --even-if-busy")),
            "{}",
            refused.err
        );
    }
    let after = talk.session().await;
    assert_eq!(
        (after.sandbox.phase, after.sandbox.history.operated.len()),
        (before.sandbox.phase, 0)
    );
    assert_eq!(after.turn.map(|turn| turn.id), Some(turn.as_str().into()));

    let paused = operate(&world, &["sandbox", "stop", &thread, "--even-if-busy", "--json"]).await;
    assert_eq!(paused.code, 0, "{paused:?}");
    assert_eq!(paused.json()["halted"], turn.as_str());
    assert_eq!(
        talk.ended(&turn).await.outcome,
        Outcome::Cancelled { by: "the operator".to_owned() }
    );
    assert_eq!(talk.session().await.sandbox.phase, Phase::Paused);
    talk.finish().await;
}

fn queue_name(url: &str) -> String {
    url.rsplit('/').next().unwrap_or_default().to_owned()
}

async fn mapping(world: &World, queue: &str, enabled: bool) {
    let path = format!("queues/{queue}/mapping");
    let body = json!({ "enabled": enabled });
    world.engine(Method::POST, &path, &body).await.unwrap();
}

/// Receives a message so often that the queue gives it up.
async fn wear_out(world: &World, url: &str) {
    let receive = json!({"QueueUrl": url, "MaxNumberOfMessages": 10, "VisibilityTimeout": 0});
    for _ in 0..=DELIVERIES_MAX {
        world.aws.call("sqs", "AmazonSQS.ReceiveMessage", &receive).await.unwrap();
    }
}

async fn dead_letter(world: World) {
    let (mut talk, first) = world.begin(Platform::Discord, "echo: before").await;
    assert_eq!(talk.ended(&first).await.outcome, Outcome::Answered);
    let thread = talk.thread.key.to_string();
    let none = operate(&world, &["dead", "list"]).await;
    assert_eq!(
        (none.code, none.out.as_str()),
        (
            3,
            "There are no dead letters. (The worker removes them automatically and notifies their threads.)\n"
        )
    );

    let url = world.deployment.messages_queue_url.clone();
    let messages = queue_name(&url);
    // A passing sweep makes the worker check once it hears of it.
    let control = queue_name(&world.deployment.control_queue_url);
    mapping(&world, &control, false).await;
    mapping(&world, &messages, false).await;
    let (text, mark) = marked("echo: a word from the dead");
    let turn = talk.say_marked(&text, &mark).await;
    eventually(VISIBLE_MS_MAX, "the prompt waits in its queue", async || {
        match world.aws.queued(&url).await? {
            0 => Err("it is not there yet".to_owned()),
            _ => Ok(()),
        }
    })
    .await;
    wear_out(&world, &url).await;
    mapping(&world, &messages, true).await;

    let listed = operate(&world, &["dead", "list"]).await;
    assert_eq!(listed.code, 0, "{listed:?}");
    let names = [(thread.as_str(), "THREAD"), (turn.as_str(), "TURN")];
    let shown = masked(&listed.out, &names);
    assert!(
        shown.starts_with(
            "\
ID QUEUE WHAT OF DEAD WHY
TURN messages prompt THREAD TIME ago it never ended: if sent again, it runs
Send one again with: bobbin --laptop"
        ),
        "{shown}"
    );
    assert!(!listed.out.contains("from the dead"), "{}", listed.out);
    assert_eq!(operate(&world, &["dead", "replay", "nobody"]).await.code, 3);

    let sent = operate(&world, &["dead", "replay", &turn, "--json"]).await;
    assert_eq!(sent.code, 0, "{sent:?}");
    assert_eq!(sent.json()["letters"][0]["done"], "sent");
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    assert!(talk.answer(&turn).await.starts_with("a word from the dead"));

    // The same dead letter again, as if the first replay had not been noticed.
    let again = json!({
        "QueueUrl": url.replace("Messages", "MessagesDead"),
        "MessageBody": json!({
            "kind": "message", "id": turn, "thread": thread, "accepted_at_ms": 1,
            "work": {"work": "prompt", "text": text, "by": {"id": "1", "name": "Ada"}},
        }).to_string(),
        "MessageGroupId": thread, "MessageDeduplicationId": turn,
    });
    world.aws.call("sqs", "AmazonSQS.SendMessage", &again).await.unwrap();
    let left = operate(&world, &["dead", "replay", "--all", "--json"]).await;
    assert_eq!(left.code, 3, "{left:?}");
    assert_eq!(left.json()["letters"][0]["state"], "ended");
    assert_eq!(left.json()["letters"][0]["done"], "left");
    mapping(&world, &control, true).await;
    eventually(VISIBLE_MS_MAX, "the worker takes it away", async || {
        world.sweep().await?;
        match operate(&world, &["dead", "list"]).await.code {
            3 => Ok(()),
            code => Err(format!("exit code {code}")),
        }
    })
    .await;
    // The promises check the rest: no prompt reaches an agent twice, and each ends once.
    talk.finish().await;
}

async fn orphan(world: World) {
    let (talk, first) = world.begin(Platform::Discord, "echo: mine").await;
    assert_eq!(talk.ended(&first).await.outcome, Outcome::Answered);
    let guild = &world.ready.discord_guild_id;
    let id = std::fs::read_to_string(world.state_dir.join("aws/stack-id")).unwrap();
    let stack = |id| StackIdentity { name: STACK, id };
    // Sandboxes of another stack with this name are neither shown nor deleted.
    let thread = ThreadKey::discord(guild, "980").unwrap();
    let namesakes = "made-by-a-namesake";
    let body = json!({"name": namesakes, "labels": labels(stack("another"), &thread.sandbox(), 7)});
    world.provider.create(&body).await.unwrap();
    // The stack's own sweeper may run in between, once a minute: then the next one is tried.
    for nth in 1..=3 {
        let thread = ThreadKey::discord(guild, &format!("99{nth}")).unwrap();
        let name = sandbox_name(STACK, &thread.sandbox(), 7);
        let body = json!({"name": name, "labels": labels(stack(&id), &thread.sandbox(), 7)});
        world.provider.create(&body).await.unwrap();
        let young = operate(&world, &["sandbox", "list", "--json"]).await.json();
        let is = |listed: &Value| {
            let lines = listed["sandboxes"].as_array().unwrap();
            let line = lines.iter().find(|line| line["name"] == name.as_str());
            line.map(|line| line["belongs"].as_str().unwrap_or_default().to_owned())
        };
        let found = eventually(VISIBLE_MS_MAX, "it is an orphan, or gone", async || {
            let listed = operate(&world, &["sandbox", "list", "--json"]).await.json();
            match is(&listed).as_deref() {
                Some("orphan") => Ok(true),
                None => Ok(false),
                Some(other) => Err(format!("it is {other}")),
            }
        })
        .await;
        let dry = operate(&world, &["sandbox", "orphans"]).await;
        if !found || !dry.out.contains(&name) {
            continue;
        }
        assert_eq!(is(&young).as_deref(), Some("young"));
        assert_eq!(dry.code, 3, "{dry:?}");
        assert!(
            dry.out.contains("This was a dry run. Delete them with: bobbin --laptop"),
            "{}",
            dry.out
        );
        assert!(!dry.out.contains(&talk.thread.key.to_string()), "{}", dry.out);
        let destroyed = operate(&world, &["sandbox", "orphans", "--destroy", "--json"]).await;
        if destroyed.json()["orphans"].as_array().unwrap().is_empty() {
            continue;
        }
        assert_eq!(destroyed.code, 0, "{destroyed:?}");
        assert!(destroyed.json()["destroyed"].to_string().contains(&name), "{destroyed:?}");
        let none = operate(&world, &["sandbox", "orphans"]).await;
        assert_eq!((none.code, none.out.as_str()), (0, "There are no orphans.\n"));
        assert_eq!(talk.sandbox().await.state, "started");
        let listed = operate(&world, &["sandbox", "list"]).await;
        assert!(!listed.out.contains(namesakes), "{}", listed.out);
        let all = world.provider.list().await.unwrap();
        let left = all.iter().find(|one| one.name == namesakes).unwrap();
        assert_eq!(left.state, "started");
        world.provider.lose(left).await.unwrap();
        talk.finish().await;
        return;
    }
    panic!("the sweeper was quicker three times, which its minute does not allow");
}

async fn wrong_words(world: World) {
    let ran = operate(&world, &["thread", "show", "discord:1:2"]).await;
    assert_eq!(ran.code, 3);
    assert!(
        ran.err.starts_with(
            "There is no record of discord:1:2. List the threads with: bobbin --laptop"
        ),
        "{}",
        ran.err
    );
    for words in [
        ["sandbox", "stop", "discord:1:2"],
        ["thread", "export", "discord:1:2"],
        ["thread", "follow", "discord:1:2"],
        ["sandbox", "log", "discord:1:2"],
        ["sandbox", "stop", "nobody"],
        ["sandbox", "snapshot", "nobody"],
    ] {
        assert_eq!(operate(&world, &words).await.code, 3, "{words:?}");
    }
    for words in [
        ["thread", "show", "nonsense"].as_slice(),
        &["thread", "list", "--phase=asleep"],
        &["dead", "replay"],
        &["sandbox", "stop", "Frontend"],
        &["sandbox", "create", "a", "--provider", "nobody"],
        &["send", "--channel", "#general", "--prompt", "x"],
    ] {
        assert_eq!(operate(&world, words).await.code, 2, "{words:?}");
    }
}

async fn nowhere() {
    for (words, says) in [
        (
            ["thread", "list"].as_slice(),
            "Which stack? Use --stack NAME for a deployed one (or set BOBBIN_STACK), or --laptop for the one that cargo run has started.\n",
        ),
        (
            &["--laptop", "--state-dir", "/nowhere", "thread", "list"],
            "No laptop stack runs with the state folder /nowhere: start it with cargo run, or name its folder with --state-dir.\n",
        ),
    ] {
        let ran = plainly(words).await;
        assert_eq!((ran.code, ran.err.as_str()), (1, says));
    }
    let stack = plainly(&["--stack", "bobbin-prod", "thread", "list"]).await;
    assert_eq!(stack.code, 1);
    assert!(stack.err.contains("AWS_REGION"), "{}", stack.err);
}
