//! Events that only SSH hosts have: one is full, gone for a while, or replaced by another machine.

use bobbin_core::records::outcome::Outcome;
use bobbin_core::tenant::budgets::BudgetKind;
use bobbin_core::tenant::settings::SettingsChange;
use bobbin_tests::limits::{ANSWER_MS_MAX, VISIBLE_MS_MAX};
use bobbin_tests::wait::eventually;

use super::*;
use crate::choice::set;
use crate::run::brisk;

pub fn trials() -> Vec<Trial> {
    vec![
        on_a_host("host_trouble_is_reported_without_loss", troubled),
        on_a_host("server_has_the_capped_key_alone", capped),
        on_a_host("next_thread_begins_with_a_prebuild", prebuilt),
    ]
}

fn on_a_host<F: Future<Output = ()> + 'static>(name: &str, test: fn() -> F) -> Trial {
    beside(format!("places::ssh::{name}"), move || {
        match lacks() {
            Some(why) => eprintln!("SKIPPED: {why}"),
            None => block_on(test()),
        }
        Ok(())
    })
}

/// Digests of the model keys in the environments of the machine's processes.
const KEYS_THERE: &str =
    "for one in /proc/[0-9]*/environ; do tr '\\0' '\\n' <$one 2>/dev/null; done |
    sed -n 's/^OPENROUTER_API_KEY=//p' | sort -u |
    while read -r key; do printf %s \"$key\" | sha256sum | cut -d' ' -f1; done";

/// A host adds nothing to requests: the key is in the server's environment, and it is the capped one.
async fn capped() {
    let (key, public) = key_pair();
    let host = with_agent(Host::start("capped", 1, &public));
    let mut options = on_hosts(quick(), "ssh", &[&host.settings()], &key);
    let overrides = options.parameters["Overrides"].as_str().unwrap();
    let mut overrides: Value = serde_json::from_str(overrides).unwrap();
    let model = "openrouter/scripted-1";
    overrides["prices"] = json!({model: {"input": 1, "output": 1}});
    options.parameters = json!({"Model": model, "Overrides": overrides.to_string()});
    options.keys["openrouter_api_key"] = json!("sk-of-the-stack");
    options.keys["openrouter_management_key"] = json!("a-manager");
    let stack = Stack::start(&options);
    let world = World::on_host(&stack, host.folder(""));
    let budget = [(BudgetKind::Turn, Some(50_000))].into();
    set(&world, Platform::Slack, SettingsChange::Budgets { set: budget }).await;
    let (talk, first) = world.begin(Platform::Slack, "echo: capped there").await;
    assert_eq!(talk.ended(&first).await.outcome, Outcome::Answered);
    let made = world.model_keys().await.unwrap();
    assert_eq!((made.len(), &made[0]["limit"]), (1, &json!(0.05)), "{made:?}");
    let there = host.as_root(KEYS_THERE);
    assert_eq!(there.trim(), made[0]["hash"].as_str().unwrap());
    talk.finish().await;
    let left = world.model_keys().await.unwrap();
    assert!(left.is_empty(), "{left:?}");
    stack.end().unwrap();
}

/// A host's sandboxes share one loopback, so each could not have its own database.
async fn prebuilt() {
    let (key, public) = key_pair();
    let host = with_agent(Host::start("builder", 3, &public));
    let stack = Stack::start(&on_hosts(brisk(), "ssh", &[&host.settings()], &key));
    crate::environment::prebuilt(&World::on_host(&stack, host.folder("")), false).await;
    stack.end().unwrap();
}

async fn reason(talk: &Talk<'_>, turn: &str) -> String {
    match talk.ended(turn).await.outcome {
        Outcome::Failed { reason } => reason,
        other => panic!("{other:?}"),
    }
}

async fn troubled() {
    let (key, public) = key_pair();
    let mut host = with_agent(Host::start("only", 1, &public));
    let mut limits = quick();
    limits["idle_pause_ms"] = json!(600_000);
    let stack = Stack::start(&on_hosts(limits, "ssh", &[&host.settings()], &key));
    let world = World::on_host(&stack, host.folder(""));
    let (mut talk, first) = world.begin(Platform::Slack, "echo: the only one").await;
    assert_eq!(talk.ended(&first).await.outcome, Outcome::Answered);

    // Full: the second thread is told, and gets its sandbox when there is room.
    let (mut other, refused) = world.begin(Platform::Slack, "echo: no room").await;
    let told = reason(&other, &refused).await;
    assert!(
        told.starts_with("Every SSH host is full: only")
            && told.contains("End a sandbox that nobody needs"),
        "{told}"
    );

    // Gone: the message waits, says why, and is answered when the host is back with its disk.
    let before = talk.sandbox().await;
    host.stop();
    let waits = talk.say("echo: back again").await;
    let card = eventually(VISIBLE_MS_MAX, "it says what is waited for", async || {
        let card = talk.card(&waits).await.text;
        if card.contains("the SSH host only cannot be reached") { Ok(card) } else { Err(card) }
    });
    card.await;
    assert!(!talk.has_ended(&waits).await);
    host.restart();
    let host = with_agent(host);
    assert_eq!(talk.ended(&waits).await.outcome, Outcome::Answered);
    assert_eq!(talk.sandbox().await.name, before.name);
    talk.finish().await;
    let second = other.say("echo: room now").await;
    assert_eq!(other.ended(&second).await.outcome, Outcome::Answered);
    other.reset().await;

    // Another machine answers at its address: nothing is sent to it.
    let mut host = host;
    host.restart_with_another_key();
    let third = other.say("echo: who are you").await;
    let told = reason(&other, &third).await;
    assert!(
        told.contains("another host key than the pinned one")
            && told.contains("Nothing was sent to it."),
        "{told}"
    );
    let registry = std::fs::read_dir(host.folder("registry")).unwrap();
    let names = registry.map(|file| file.unwrap().file_name().into_string().unwrap());
    let left: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
    assert_eq!(left, Vec::<String>::new());
    eventually(ANSWER_MS_MAX, "the queues are empty", async || {
        match world.aws.queued(&world.deployment.messages_queue_url).await? {
            0 => Ok(()),
            count => Err(format!("{count} messages")),
        }
    })
    .await;
    stack.end().unwrap();
}
