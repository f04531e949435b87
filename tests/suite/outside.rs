//! A thread whose agent has a sandbox for itself and works in a second one through tools.

use bobbin_core::base::ids::digest;
use bobbin_core::records::outcome::Outcome;
use bobbin_core::records::tool_sandbox::{name_of, tools_of};
use bobbin_core::tenant::runtime_mode::TOOLS;
use bobbin_tests::breakpoints::Condition;
use bobbin_tests::chat::Platform;
use bobbin_tests::limits::{ANSWER_MS_MAX, VISIBLE_MS_MAX};
use bobbin_tests::operator::operate;
use bobbin_tests::processes;
use bobbin_tests::provider::Sandbox;
use bobbin_tests::shared::Shared;
use bobbin_tests::stack::{Options, Stack, quick};
use bobbin_tests::talk::Talk;
use bobbin_tests::wait::eventually;
use bobbin_tests::world::World;
use futures::future::join;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::run::{on, trial};
use crate::scenarios::Scenario;
use crate::{artifacts, asks, share};

/// A tool's command needs a person's permission.
pub static ASKING: Shared = Shared::with_options(|| Options {
    parameters: json!({"Overrides": r#"{"tools_ask": ["run_command"]}"#}),
    ..Options::limits(quick())
});

const ALL: [Scenario; 3] = [
    ("outside_agent_works_in_tool_sandbox", |world, on| Box::pin(worked(world, on))),
    ("permission_shows_the_tool_command", |world, on| Box::pin(asked(world, on))),
    ("tool_sandbox_is_hidden_from_others", |world, on| Box::pin(unseen(world, on))),
];

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for platform in Platform::ALL {
        for (name, scenario) in ALL {
            let name = format!("outside::{}::{name}", platform.word());
            trials.push(on(&ASKING, &name, async move |world| scenario(world, platform).await));
        }
    }
    trials.push(on(
        &ASKING,
        "outside::lost_tool_sandbox_returns_from_snapshot",
        async move |world| lost(world).await,
    ));
    trials.push(on(&ASKING, "outside::only_code_uses_chosen_provider", async move |world| {
        elsewhere(world).await
    }));
    trials.push(trial("outside::killed_reset_leaves_neither_sandbox", killed));
    trials.push(trial("outside::unserved_tools_refuse_outside_runtime", not_served));
    trials
}

/// The second sandbox of a thread.
struct Code<'t, 'w> {
    talk: &'t Talk<'w>,
    name: String,
}

impl<'t, 'w> Code<'t, 'w> {
    fn of(talk: &'t Talk<'w>) -> Self {
        let tools = tools_of(&talk.thread.key.sandbox());
        let name = name_of(&tools).to_string();
        Self { talk, name }
    }

    async fn listed(&self) -> Result<Value, String> {
        let listed = operate(self.talk.world, &["sandbox", "list", "--json"]).await;
        let all = listed.json()["sandboxes"].as_array().cloned();
        let mut all = all.unwrap_or_default().into_iter();
        let own = all.find(|one| one["called"] == self.name.as_str());
        own.ok_or_else(|| format!("{} is not listed: {listed:?}", self.name))
    }

    /// Waits until it runs in this generation.
    async fn ready(&self, generation: u64) {
        eventually(ANSWER_MS_MAX, "the sandbox with the code runs", async || {
            let own = self.listed().await?;
            let runs = own["phase"] == "active" && own["generation"] == generation;
            runs.then_some(()).ok_or_else(|| own.to_string())
        })
        .await;
    }

    /// Its state at the provider.
    async fn sandbox(&self) -> Option<Sandbox> {
        let tools = tools_of(&self.talk.thread.key.sandbox());
        let found = self.talk.world.provider.of(tools.thread()).await.unwrap();
        found.into_iter().find(Sandbox::live)
    }
}

/// A thread that works outside, with its second sandbox created.
async fn begun<'w>(
    world: &'w World,
    platform: Platform,
    choices: &[(&str, &str)],
) -> (Talk<'w>, String) {
    let choices: Vec<_> = [("runtime", "outside")].iter().chain(choices).copied().collect();
    let (talk, first) = world
        .begin_with(platform, &choices, "call: sandbox_list_files {\"path\": \".\"}\necho: begun")
        .await;
    asks::answered(&talk, &first, &["begun"]).await;
    Code::of(&talk).ready(1).await;
    (talk, first)
}

async fn worked(world: World, platform: Platform) {
    let note = ("notes.bin", "application/octet-stream", &b"a note"[..]);
    let choices = [("runtime", "outside")];
    let lines = "call: sandbox_list_files {\"path\": \".\"}\necho: begun";
    let (mut talk, first) =
        artifacts::begin_with_files(&world, platform, &choices, lines, &[note]).await;
    asks::answered(&talk, &first, &["begun"]).await;
    Code::of(&talk).ready(1).await;

    let attachment =
        format!(".bobbin/attachments/{}/notes.bin", &digest(&["attachments", &first])[..12]);
    let lines = [
        "call: sandbox_write_file {\"path\": \"src/made.txt\", \"content\": \"one\\ntwo\\n\"}",
        "call: sandbox_write_file {\"path\": \"output/display/shown.txt\", \"content\": \"look\"}",
        &format!(
            "call: sandbox_upload_file {{\"path\": \"brought.bin\", \"attachment\": \"{attachment}\"}}"
        ),
        "call: sandbox_upload_file {\"path\": \"no.bin\", \"attachment\": \".bobbin/attachments/../../opencode.log\"}",
        "call: bash {\"command\": \"touch here.txt\"}",
        "echo: done",
    ];
    let second = talk.say(&lines.join("\n")).await;
    asks::answered(
        &talk,
        &second,
        &[
            "Wrote project/src/made.txt, 8 bytes.",
            "Wrote project/brought.bin, 6 bytes.",
            "the path begins with .bobbin/attachments/",
            "This request offers no `bash` tool.",
        ],
    )
    .await;

    // Every request offered the tools and nothing else.
    let mark = talk.accepted.last().and_then(|one| one.mark.clone()).unwrap();
    let calls = world.model_calls().await.unwrap();
    let mut expected = TOOLS.map(|tool| format!("sandbox_{tool}"));
    expected.sort();
    let ours = calls.iter().filter(|call| call.user.contains(&mark) && !call.internal());
    let mut seen = 0;
    for call in ours {
        let mut offered = call.tools.clone();
        offered.sort();
        assert_eq!(offered, expected);
        seen += 1;
    }
    assert!(seen > 1, "{calls:?}");

    // Its files are in one sandbox and not in the other.
    let (own, code) = (talk.sandbox().await, Code::of(&talk).sandbox().await.unwrap());
    let provider = &world.provider;
    assert_eq!(provider.download(&code, "src/made.txt").await.unwrap(), "one\ntwo\n");
    assert_eq!(provider.download(&code, "brought.bin").await.unwrap(), "a note");
    for absent in ["src/made.txt", "here.txt", "brought.bin"] {
        let there = provider.download(&own, absent).await;
        assert!(there.is_err(), "{absent}: {there:?}");
    }
    // People see the changes and the shown files from there.
    assert_eq!(artifacts::names(&talk).await, ["shown.txt"]);
    let card = talk.card(&second).await;
    assert!(card.text.contains("Wrote src/made.txt"), "{}", card.text);
    assert!(card.text.contains("2 files changed"), "{}", card.text);
    talk.press(&card, "View diff").await;
    talk.whispered("+++ b/src/made.txt").await;
    talk.finish().await;
}

async fn asked(world: World, platform: Platform) {
    let (mut talk, _) = begun(&world, platform, &[]).await;
    let turn = talk
        .say("call: sandbox_run_command {\"cmd\": \"env; echo count >>count; echo lines $(wc -l <count)\"}\necho: done")
        .await;
    let ask = asks::asked(&talk, "Allow once").await;
    assert!(
        ask.text.contains("env; echo count") && ask.text.contains("count; echo lines"),
        "{}",
        ask.text
    );
    talk.press(&ask, "Allow once").await;
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    let answer = talk.answer(&turn).await;
    assert!(answer.contains("lines 1"), "{answer}");
    // The sandbox with the code has neither a model's key nor a password.
    for secret in ["_API_KEY", "BOBBIN_MODEL_KEY", "PASSWORD", "TOKEN", "OPENCODE_CONFIG"] {
        assert!(!answer.contains(secret), "{secret}: {answer}");
    }
    let refused =
        talk.say("call: sandbox_run_command {\"cmd\": \"echo no >no.txt\"}\necho: done").await;
    let ask = asks::asked(&talk, "Deny").await;
    talk.press(&ask, "Deny").await;
    assert_eq!(talk.ended(&refused).await.outcome, Outcome::Answered);
    let code = Code::of(&talk).sandbox().await.unwrap();
    let made = world.provider.download(&code, "no.txt").await;
    assert!(made.is_err(), "it ran: {made:?}");
    talk.finish().await;
}

async fn unseen(world: World, platform: Platform) {
    let (mut talk, _) = begun(&world, platform, &[]).await;
    let (other, turn) = world.begin(platform, "echo: elsewhere").await;
    assert_eq!(other.ended(&turn).await.outcome, Outcome::Answered);
    let name = Code::of(&talk).name;

    for (talk, sees) in [(&talk, true), (&other, false)] {
        share::wants(talk, "sandbox-list", &json!({}), "sandbox list").await;
        let list = share::whispered(talk, "a name here").await;
        assert_eq!(list.text.contains(&name), sees, "{}", list.text);
    }
    let named = json!({"name": name});
    let said = format!("sandbox destroy {name}");
    share::wants(&other, "sandbox-destroy", &named, &said).await;
    share::whispered(&other, "There is no sandbox named").await;
    if platform == Platform::Discord {
        let typing = json!({"type": "autocomplete", "name": "sandbox-destroy", "options": {"name": "tools-"}, "focused": "name"});
        let acted = world.discord.act(&typing).await.unwrap();
        let offered = acted.outcome["choices"].to_string();
        assert!(!offered.contains(&name), "{offered}");
    }
    let turn =
        talk.say("call: sandbox_write_file {\"path\": \"still.txt\", \"content\": \"here\"}").await;
    asks::answered(&talk, &turn, &["Wrote project/still.txt"]).await;
    talk.finish().await;
    other.finish().await;
}

async fn lost(world: World) {
    let (mut talk, _) = begun(&world, Platform::Discord, &[]).await;
    let turn =
        talk.say("call: sandbox_write_file {\"path\": \"kept.txt\", \"content\": \"word\"}").await;
    asks::answered(&talk, &turn, &["Wrote project/kept.txt"]).await;
    let name = Code::of(&talk).name;
    let kept = operate(&world, &["sandbox", "snapshot", &name]).await;
    assert_eq!(kept.code, 0, "{kept:?}");
    let read = "call: sandbox_read_file {\"path\": \"kept.txt\"}\necho: done";
    let gone = Code::of(&talk).sandbox().await.unwrap();
    world.provider.lose(&gone).await.unwrap();
    let turn = talk.say(read).await;
    asks::answered(&talk, &turn, &["The sandbox was not found. It is being started again"]).await;
    eventually(ANSWER_MS_MAX, "its record says so", async || {
        let own = Code::of(&talk).listed().await;
        match own {
            Ok(own) if own["phase"] != "destroyed" => Err(own.to_string()),
            _ => Ok(()),
        }
    })
    .await;
    let turn = talk.say(read).await;
    let told = [
        "The sandbox is gone, with its files. Another one is being created from its newest snapshot",
        "Wait 20 s and call this again.",
    ];
    asks::answered(&talk, &turn, &told).await;
    Code::of(&talk).ready(2).await;
    let turn = talk.say(read).await;
    asks::answered(&talk, &turn, &["word"]).await;

    // A fresh start replaces both.
    talk.reset().await;
    eventually(ANSWER_MS_MAX, "the sandbox with the code is gone too", async || {
        match Code::of(&talk).sandbox().await {
            Some(left) => Err(format!("{left:?}")),
            None => Ok(()),
        }
    })
    .await;
    talk.finish().await;
}

async fn killed() {
    let mut limits = quick();
    limits["visibility_ms"] = json!(6_000);
    limits["heartbeat_ms"] = json!(2_000);
    limits["lifecycle_call_ms"] = json!(5_000);
    let stack = Stack::start(&Options::limits(limits));
    let world = World::of(&stack);
    // Before the request to delete the second one was received, and after.
    for after in [false, true] {
        let (mut talk, _) = begun(&world, Platform::Discord, &[]).await;
        let tools = tools_of(&talk.thread.key.sandbox());
        let breakpoint = world
            .breakpoint(&Condition {
                text: talk.thread.key.to_string(),
                function: "Worker".to_owned(),
                call: "sqs SendMessage".to_owned(),
                nth: 1,
                after,
            })
            .await;
        let kill = async {
            let process = eventually(ANSWER_MS_MAX, "the wish is held", async || {
                breakpoint.held_process().await
            })
            .await;
            processes::kill(process);
        };
        join(talk.reset(), kill).await;
        breakpoint.remove().await.unwrap();
        eventually(ANSWER_MS_MAX, "neither is left", async || {
            let left = world.provider.of(tools.thread()).await?;
            let left: Vec<_> = left.into_iter().filter(Sandbox::live).collect();
            left.is_empty().then_some(()).ok_or(format!("{left:?}"))
        })
        .await;
        talk.finish().await;
    }
    stack.end().unwrap();
}

async fn elsewhere(world: World) {
    let (mut talk, _) = begun(&world, Platform::Slack, &[("provider", "vercel")]).await;
    let turn = talk
        .say("call: sandbox_write_file {\"path\": \"a.txt\", \"content\": \"word\"}\ncall: sandbox_read_file {\"path\": \"a.txt\"}")
        .await;
    asks::answered(&talk, &turn, &["word"]).await;
    let own = Code::of(&talk).listed().await.unwrap();
    assert_eq!(own["provider"], "vercel", "{own}");
    let session = talk.session().await;
    assert_eq!(session.sandbox.spec.provider, None);
    // Neither is at the other's provider.
    assert!(Code::of(&talk).sandbox().await.is_none());
    assert!(talk.sandbox().await.live());
    talk.reset().await;
    talk.finish().await;
}

async fn not_served() {
    let stack = Stack::start(&Options {
        stand_in_agent: true,
        parameters: json!({"ServeTools": "no"}),
        ..Options::limits(quick())
    });
    let world = World::of(&stack);
    let choices = [("runtime", "outside")];
    let (mut talk, first) = world.begin_with(Platform::Discord, &choices, "echo: never").await;
    match talk.ended_within(VISIBLE_MS_MAX * 4, &first).await.outcome {
        Outcome::Failed { reason } => assert!(
            reason.contains("the tools for that are off") && reason.contains("ServeTools"),
            "{reason}"
        ),
        other => panic!("{other:?}"),
    }
    assert!(world.provider.of(&talk.thread.key).await.unwrap().is_empty());
    let turn = talk.say("echo: as usual").await;
    asks::answered(&talk, &turn, &["as usual"]).await;
    stack.end().unwrap();
}
