//! Budgets as people meet them: an exhausted one, who may exceed it, and the output of `sandbox-usage` and `bobbin
//! usage`.

use std::time::{SystemTime, UNIX_EPOCH};

use bobbin_core::base::ids::Ms;
use bobbin_core::records::outcome::Outcome;
use bobbin_core::records::turn::EndedTurn;
use bobbin_core::tenant::budgets::{BudgetKind, BudgetScope, MicroUsd, day, month};
use bobbin_core::tenant::settings::SettingsChange;
use bobbin_tests::chat::{ChatMessage, Platform};
use bobbin_tests::limits::ANSWER_MS_MAX;
use bobbin_tests::operator::operate;
use bobbin_tests::stack::{Options, Stack, quick};
use bobbin_tests::talk::Talk;
use bobbin_tests::wait::eventually;
use bobbin_tests::world::World;
use libtest_mimic::Trial;
use serde_json::json;

use crate::choice::set;
use crate::run::trial;

const CONTINUE: &str = "Continue (+$2.00)";

pub fn trials() -> Vec<Trial> {
    let of = |platform: Platform| {
        let name = platform.word();
        trial(
            &format!("embedded::budgets::{name}::manager_alone_passes_an_exhausted_month"),
            async move || exhausted(platform).await,
        )
    };
    let stops = |platform: Platform| {
        let name =
            format!("embedded::budgets::{}::spent_turn_stops_and_continues", platform.word());
        trial(&name, async move || stopped(platform).await)
    };
    let both = Platform::ALL.into_iter().flat_map(|platform| [of(platform), stops(platform)]);
    let hard = trial("embedded::budgets::vendor_refuses_at_the_limit", async || capped().await);
    both.chain([hard]).collect()
}

fn now_ms() -> Ms {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    since.as_millis().try_into().unwrap()
}

/// Stores a sum, as earlier turns would have left it.
async fn spent(talk: &Talk<'_>, scope: BudgetScope, used: MicroUsd) {
    let tenant = talk.thread.key.tenant();
    let (partition, name) = scope.place(&tenant);
    let expires = (now_ms() + scope.kept_ms()) / 1_000;
    let item = json!({
        "thread": {"S": partition}, "item": {"S": name}, "used": {"N": used.to_string()},
        "tenant": {"S": tenant.to_string()}, "expires_at": {"N": expires.to_string()},
    });
    let World { aws, deployment, .. } = talk.world;
    let body = json!({"TableName": deployment.table, "Item": item});
    aws.call("dynamodb", "DynamoDB_20120810.PutItem", &body).await.unwrap();
}

/// The end of the `nth` turn that a press began in the thread.
async fn continued(talk: &Talk<'_>, nth: usize) -> EndedTurn {
    eventually(ANSWER_MS_MAX, "what was pressed has ended", async || {
        let session = talk.world.session(&talk.thread.key).await?;
        let mut found = session.ended.iter().filter(|one| one.id.starts_with("again-"));
        found.nth(nth).cloned().ok_or_else(|| format!("{:?}", session.turn))
    })
    .await
}

fn refusal(ended: &EndedTurn) -> &str {
    match &ended.outcome {
        Outcome::OverBudget { reason, .. } => reason,
        other => panic!("{other:?}"),
    }
}

/// A press by a colleague who manages nothing.
async fn pressed_by_sam(talk: &Talk<'_>, message: &ChatMessage) {
    let (thread, button) = (&talk.thread, message.button(CONTINUE).unwrap());
    let sam = talk.world.colleague(talk.platform).await.id;
    match talk.platform {
        Platform::Discord => {
            let act = json!({"type": "component", "channel_id": thread.channel, "message_id": message.id, "custom_id": button.id, "user_id": sam});
            talk.world.discord.act(&act).await.unwrap();
        }
        Platform::Slack => {
            let act = json!({"type": "block_action", "channel_id": thread.channel, "message_ts": message.id, "action_id": button.id, "user_id": sam});
            talk.world.slack.act(&act).await.unwrap();
        }
    }
}

/// A stack with the real OpenCode, whose model has this price for a million tokens.
pub fn priced(price: f64) -> Stack {
    let prices = json!({"scripted/scripted-1": {"input": price, "output": price}});
    let overrides = json!({"usage_by_person": true, "prices": prices}).to_string();
    Stack::start(&Options {
        parameters: json!({"Overrides": overrides}),
        ..Options::limits(quick())
    })
}

/// The first step costs more than the turn's budget: the second never runs.
async fn stopped(platform: Platform) {
    let stack = priced(1_000.0);
    let world = &World::of(&stack);
    let (mut talk, first) = world.begin(platform, "echo: before any budget").await;
    assert_eq!(talk.ended(&first).await.outcome, Outcome::Answered);
    let set_turn = [(BudgetKind::Turn, Some(50_000))].into();
    set(world, platform, SettingsChange::Budgets { set: set_turn }).await;
    let steps = "run: true\nslow: 120 the second step thinks\nrun: echo second >second.txt";
    let turn = talk.say(steps).await;
    let ended = talk.ended(&turn).await;
    assert!(
        refusal(&ended).starts_with("It has spent its budget of $0.05."),
        "{:?}",
        ended.outcome
    );
    let card = talk.card(&turn).await;
    assert!(card.text.contains("Stopped by budget") && card.text.contains("of $0.05"), "{card:?}");
    talk.press(&card, "Continue (+$0.05)").await;
    let again = continued(&talk, 0).await;
    assert_ne!(again.id, turn);
    let session = world.session(&talk.thread.key).await.unwrap();
    assert_eq!((session.sandbox.generation, session.spent > 50_000), (1, true), "{session:?}");
    let look = [(BudgetKind::Turn, None)].into();
    set(world, platform, SettingsChange::Budgets { set: look }).await;
    let look = talk.say("run: ls").await;
    assert_eq!(talk.ended(&look).await.outcome, Outcome::Answered);
    assert!(!talk.answer(&look).await.contains("second.txt"));
    talk.finish().await;
}

/// The vendor counts what the agent does not, so the cap is hard.
async fn capped() {
    let platform = Platform::Discord;
    let model = "openrouter/scripted-1";
    let prices = json!({model: {"input": 0.000_001, "output": 0.000_001}});
    let stack = Stack::start(&Options {
        parameters: json!({"Model": model, "Overrides": json!({"prices": prices}).to_string()}),
        keys: json!({
            "openrouter_api_key": "sk-of-the-stack", "openrouter_management_key": "a-manager",
        }),
        ..Options::limits(quick())
    });
    let world = &World::of(&stack);
    let set_turn = [(BudgetKind::Turn, Some(50_000))].into();
    set(world, platform, SettingsChange::Budgets { set: set_turn }).await;

    let (mut talk, first) = world.begin(platform, "echo: with a key of its own").await;
    assert_eq!(talk.ended(&first).await.outcome, Outcome::Answered);
    let keys = world.model_keys().await.unwrap();
    assert_eq!((keys.len(), &keys[0]["limit"]), (1, &json!(0.05)), "{keys:?}");
    let hash = keys[0]["hash"].as_str().unwrap();
    let used = world.model_calls().await.unwrap();
    assert!(used.iter().all(|call| call.key.as_deref() == Some(&hash[..16])), "{used:?}");
    talk.usage("The cap is hard: ").await;

    // By its own figures the agent has spent almost nothing.
    world.set_model_price(1_000_000.0).await.unwrap();
    let turn = talk.say("run: echo first\nrun: echo second\necho: done").await;
    let ended = talk.ended(&turn).await;
    assert!(refusal(&ended).starts_with("It has spent its budget of $0.05."), "{ended:?}");
    let card = talk.card(&turn).await;
    assert!(card.text.contains("Stopped by budget"), "{card:?}");
    world.set_model_price(0.0).await.unwrap();
    talk.press(&card, "Continue (+$0.05)").await;
    let again = continued(&talk, 0).await;
    assert_eq!(again.outcome, Outcome::Answered);
    let session = world.session(&talk.thread.key).await.unwrap();
    assert_eq!((session.sandbox.generation, session.spent >= 50_000), (1, true), "{session:?}");
    let keys = world.model_keys().await.unwrap();
    assert_eq!((keys.len(), &keys[0]["hash"]), (1, &json!(hash)), "raised, not replaced: {keys:?}");

    let live = keys[0]["name"].as_str().unwrap();
    let thread = format!(" {}", talk.thread.key);
    assert!(live.ends_with(&thread), "{live}");
    swept(world, live).await;
    talk.finish().await;
    let left = names(world).await;
    assert!(!left.iter().any(|name| name.ends_with(&thread)), "{left:?}");

    capped_at_vercel(&World::at_vercel(&stack)).await;

    // Without room for another secret the stack's key is used, and that is reported.
    world.provider.fill_secrets().await.unwrap();
    let (talk, turn) = world.begin(platform, "echo: with the stack's key").await;
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    talk.usage("The cap is not hard: ").await;
    talk.finish().await;
    stack.end().unwrap();
}

/// The network policy of the sandbox adds the key, which ends with the sandbox.
async fn capped_at_vercel(world: &World) {
    let chosen = [("provider", "vercel")];
    let (talk, turn) = world.begin_with(Platform::Discord, &chosen, "echo: capped there").await;
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    let thread = format!(" {}", talk.thread.key);
    let keys = world.model_keys().await.unwrap();
    let own = keys.iter().find(|key| key["name"].as_str().unwrap().ends_with(&thread));
    let hash = own.expect("a key of its own")["hash"].as_str().unwrap()[..16].to_owned();
    let calls = world.model_calls().await.unwrap();
    assert_eq!(calls.last().unwrap().key.as_deref(), Some(&*hash), "{calls:?}");
    talk.usage("The cap is hard: ").await;
    talk.finish().await;
    let left = names(world).await;
    assert!(!left.iter().any(|name| name.ends_with(&thread)), "{left:?}");
}

async fn names(world: &World) -> Vec<String> {
    let keys = world.model_keys().await.unwrap();
    keys.iter().map(|key| key["name"].as_str().unwrap().to_owned()).collect()
}

/// The sweeper deletes this stack's unused keys and no others.
async fn swept(world: &World, live: &str) {
    let stack_id = live.split(' ').nth(1).unwrap();
    let name = |stack_id: &str, made_ms: Ms, thread: &str| {
        format!(
            "bobbin {stack_id} g1 m{made_ms} t0 discord:{}:{thread}",
            world.ready.discord_guild_id
        )
    };
    let (now, hours_ms) = (now_ms(), 3_600_000);
    let kept = [
        name("another-stack", now - 2 * hours_ms, "900"),
        name(stack_id, now + hours_ms, "901"),
        "somebody's own".to_owned(),
    ];
    let gone =
        [name(stack_id, now - 2 * hours_ms, "902"), name(stack_id, now - 30 * hours_ms, "903")];
    for name in kept.iter().chain(&gone) {
        world.make_model_key(name).await.unwrap();
    }
    world.sweep().await.unwrap();
    let mut left = names(world).await;
    left.sort();
    let mut expected: Vec<String> = kept.into_iter().chain([live.to_owned()]).collect();
    expected.sort();
    assert_eq!(left, expected);
}

async fn exhausted(platform: Platform) {
    let stack = priced(0.000_001);
    let world = &World::of(&stack);
    let (mut talk, first) = world.begin(platform, "echo: before any budget").await;
    assert_eq!(talk.ended(&first).await.outcome, Outcome::Answered);
    talk.usage("Only threads are counted").await;

    let month_only = [(BudgetKind::Month, Some(1_000_000))].into();
    set(world, platform, SettingsChange::Budgets { set: month_only }).await;
    let (of_day, of_month) = (day(now_ms()), month(now_ms()));
    spent(&talk, BudgetScope::Tenant { month: of_month.clone() }, 1_000_000).await;
    spent(&talk, BudgetScope::Person { id: "sam".to_owned(), day: of_day }, 250_000).await;
    let refused = talk.say("echo: let me through").await;
    let ended = talk.ended(&refused).await;
    let reason = refusal(&ended);
    assert!(
        reason.starts_with(
            "This place's monthly budget of $1.00 is used up, or set aside for tasks that run now, so this was not started."
        ) && reason.ends_with("A manager can let it go on, or raise it."),
        "{reason}"
    );

    let card = talk.card(&refused).await;
    pressed_by_sam(&talk, &card).await;
    let again = continued(&talk, 0).await;
    assert_eq!(refusal(&again), reason, "who manages nothing is refused again");
    // A second press on the same card would start nothing.
    talk.press(&card, CONTINUE).await;
    talk.whispered("Somebody has already pressed this.").await;
    talk.press(&talk.card(&again.id).await, CONTINUE).await;
    let passed = continued(&talk, 1).await;
    assert_eq!(passed.outcome, Outcome::Answered);
    assert!(talk.answer(&passed.id).await.contains("let me through"));
    let messages = talk.messages().await.unwrap();
    // Slack's names differ from the seeds'.
    let words = "lets this go on with $2.00 more: echo: let me through";
    let told = messages.iter().filter(|one| one.text.contains(words)).count();
    assert_eq!(told, 2, "{messages:?}");
    talk.usage("This place, this month: ▓▓▓▓▓▓▓▓▓▓ $1.00 of $1.00").await;
    talk.whispered("- `sam` $0.25").await;

    let tenant = talk.thread.key.tenant().to_string();
    let shown = operate(world, &["--json", "usage", "--tenant", &tenant]).await;
    assert_eq!(
        shown.json()["usage"],
        json!([
            {"month": of_month, "tenant": tenant, "of": "person", "id": "sam", "micro_usd": 250_000},
            {"month": of_month, "tenant": tenant, "of": "tenant", "id": null, "micro_usd": 1_000_000},
        ])
    );
    let forgotten =
        operate(world, &["usage", "forget", "--person", "sam", "--tenant", &tenant]).await;
    // A running task may still be settled in today's sum.
    assert!(forgotten.out.starts_with("0 sums are deleted. Those of today"), "{forgotten:?}");
    let shown = operate(world, &["usage", "--csv", "--tenant", &tenant]).await;
    assert_eq!(
        shown.out,
        format!(
            "month,tenant,of,id,usd\n{of_month},{tenant},person,sam,0.250000\n{of_month},{tenant},tenant,,1.000000\n"
        )
    );
    talk.finish().await;
}
