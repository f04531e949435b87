//! Repository, model and agent of a turn, and who may ask: a tenant's settings and their effect on a turn.

use std::path::Path;
use std::process::Command;

use bobbin_core::base::ids::ThreadKey;
use bobbin_core::base::person::{Membership, Person};
use bobbin_core::records::control::{Control, ControlAction};
use bobbin_core::records::message::{Body, Reply};
use bobbin_core::records::outcome::Outcome;
use bobbin_core::tenant::catalogue::Catalogue;
use bobbin_core::tenant::settings::{DefaultKind, Settings, SettingsChange, SettingsList};
use bobbin_tests::chat::Platform;
use bobbin_tests::limits::{ANSWER_MS_MAX, VISIBLE_MS_MAX};
use bobbin_tests::stack::{Options, Stack, quick};
use bobbin_tests::talk::Talk;
use bobbin_tests::wait::eventually;
use bobbin_tests::world::World;
use libtest_mimic::Trial;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::run::trial;

/// The other model of the scripted provider.
const OTHER_MODEL: &str = "scripted/scripted-2";

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for platform in Platform::ALL {
        let name = |what: &str| format!("embedded::choice::{}::{what}", platform.word());
        trials.push(trial(&name("turn_uses_chosen_repository_and_model"), async move || {
            chosen(platform).await
        }));
        trials.push(trial(
            &name("unavailable_choice_is_explained_and_recoverable"),
            async move || refused(platform).await,
        ));
    }
    trials
}

/// A stack whose sandboxes find one repository at GitHub's address.
struct Mirrored {
    stack: Stack,
    world: World,
    _mirror: tempfile::TempDir,
}

impl Mirrored {
    fn new() -> Self {
        let mirror = tempfile::tempdir().unwrap();
        repository(&mirror.path().join("acme/api"));
        let folder = mirror.path().to_str().unwrap().to_owned();
        let stack = Stack::start(&Options {
            environment: vec![("BOBBIN_GIT_MIRROR".to_owned(), folder)],
            ..Options::lean(quick())
        });
        let world = World::of(&stack);
        Self { stack, world, _mirror: mirror }
    }
}

fn repository(folder: &Path) {
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join("README.md"), "The API of Acme.\n").unwrap();
    for arguments in
        [["init", "-q", "."].as_slice(), &["add", "."], &["commit", "-q", "-m", "First"]]
    {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]);
        let done = git.args(arguments).current_dir(folder).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    }
}

/// Any thread of the platform's tenant.
fn tenant_of(world: &World, platform: Platform) -> ThreadKey {
    let ready = &world.ready;
    match platform {
        Platform::Discord => ThreadKey::discord(&ready.discord_guild_id, "1"),
        Platform::Slack => {
            ThreadKey::slack(&ready.slack_team_id, &ready.slack_channel_id, "1700000000.000100")
        }
    }
    .unwrap()
}

/// A tenant's item in the table.
async fn stored<T: DeserializeOwned + Default>(
    world: &World,
    thread: &ThreadKey,
    item: &str,
) -> Result<T, String> {
    let partition = format!("tenant:{}", thread.tenant());
    let key = json!({"thread": {"S": partition}, "item": {"S": item}});
    let body = json!({"TableName": world.deployment.table, "ConsistentRead": true, "Key": key});
    let answer = world.aws.call("dynamodb", "DynamoDB_20120810.GetItem", &body).await?;
    match answer["Item"][item]["S"].as_str() {
        None => Ok(T::default()),
        Some(text) => serde_json::from_str(text).map_err(|error| error.to_string()),
    }
}

pub async fn settings(world: &World, platform: Platform) -> Settings {
    let thread = tenant_of(world, platform);
    stored(world, &thread, "settings").await.unwrap()
}

/// Sends a settings command as somebody: on Discord the request says whether they manage the server, in Slack the
/// platform is asked.
pub async fn configure(
    world: &World,
    platform: Platform,
    by: Person,
    manages: bool,
    change: SettingsChange,
) {
    let thread = tenant_of(world, platform);
    let ready = &world.ready;
    let reply = match platform {
        Platform::Discord => Reply::Discord {
            application: ready.discord_application_id.clone(),
            token: "token-of-an-interaction-that-is-over".to_owned(),
        },
        Platform::Slack => Reply::Slack {
            channel: ready.slack_channel_id.clone(),
            thread_ts: None,
            user: by.id.clone(),
        },
    };
    let id = format!("configure-{}-{change:?}", by.id);
    let id = format!("c-{}", &bobbin_core::base::ids::digest(&[&id])[..24]);
    let body = Body::Control(Control {
        id: id.clone(),
        thread: thread.clone(),
        by,
        reply,
        membership: Membership {
            manages: manages && platform == Platform::Discord,
            ..Membership::default()
        },
        want: ControlAction::Configure { change },
    });
    let message = json!({
        "QueueUrl": world.deployment.control_queue_url,
        "MessageBody": serde_json::to_string(&body).unwrap(),
        "MessageGroupId": thread.to_string(),
        "MessageDeduplicationId": id,
    });
    world.aws.call("sqs", "AmazonSQS.SendMessage", &message).await.unwrap();
    eventually(ANSWER_MS_MAX, "the word is carried out", async || {
        match world.aws.queued(&world.deployment.control_queue_url).await? {
            0 => Ok(()),
            waiting => Err(format!("{waiting} control messages")),
        }
    })
    .await;
}

/// The manager among the seeds of the laptop's chats.
pub fn manager(world: &World, platform: Platform) -> Person {
    let id = match platform {
        Platform::Discord => &world.ready.discord_user_id,
        Platform::Slack => &world.ready.slack_user_id,
    };
    Person { id: id.clone(), name: "Ada".to_owned() }
}

pub async fn set(world: &World, platform: Platform, change: SettingsChange) {
    let by = manager(world, platform);
    let before = settings(world, platform).await.version;
    configure(world, platform, by, true, change.clone()).await;
    eventually(VISIBLE_MS_MAX, "the change is stored", async || {
        let now = settings(world, platform).await;
        let made = now.audit.last().is_some_and(|made| made.change == change);
        if made && now.version == before + 1 { Ok(()) } else { Err(format!("{now:?}")) }
    })
    .await;
}

fn default_of(of: DefaultKind, value: Option<&str>) -> SettingsChange {
    SettingsChange::Default { channel: None, of, value: value.map(str::to_owned) }
}

async fn reason(talk: &Talk<'_>, turn: &str) -> String {
    match talk.ended(turn).await.outcome {
        Outcome::Failed { reason } => reason,
        other => panic!("{other:?}"),
    }
}

async fn chosen(platform: Platform) {
    let place = Mirrored::new();
    let world = &place.world;
    set(world, platform, default_of(DefaultKind::Repo, Some("acme/api"))).await;
    set(world, platform, default_of(DefaultKind::Model, Some(OTHER_MODEL))).await;
    set(world, platform, default_of(DefaultKind::Agent, Some("build"))).await;

    let (mut talk, first) = world.begin(platform, "run: cat README.md").await;
    assert_eq!(talk.ended(&first).await.outcome, Outcome::Answered);
    let answer = talk.answer(&first).await;
    assert!(answer.contains("The API of Acme."), "{answer}");
    assert_eq!(talk.session().await.sandbox.project.repo.as_deref(), Some("acme/api"));
    let card = talk.card(&first).await;
    assert!(card.text.contains(OTHER_MODEL), "{card:?}");
    let status = talk.status().await;
    assert!(status.contains("It works on acme/api."), "{status}");
    let calls = world.model_calls().await.unwrap();
    let asked: Vec<&str> = calls.iter().map(|call| call.model.as_str()).collect();
    assert!(asked.contains(&"scripted-2"), "{asked:?}");

    // The next turn uses the same sandbox and the current default.
    set(world, platform, default_of(DefaultKind::Model, None)).await;
    let second = talk.say("run: git log --oneline").await;
    assert_eq!(talk.ended(&second).await.outcome, Outcome::Answered);
    let answer = talk.answer(&second).await;
    assert!(answer.contains("First"), "{answer}");
    let calls = world.model_calls().await.unwrap();
    assert_eq!(calls.last().unwrap().model, "scripted-1");

    let thread = tenant_of(world, platform);
    let catalogue: Catalogue = stored(world, &thread, "catalogue").await.unwrap();
    assert_eq!(catalogue.models, ["scripted/scripted-1", OTHER_MODEL]);
    assert!(catalogue.agents.contains(&"plan".to_owned()), "{catalogue:?}");
    assert_eq!(catalogue.recent.repos, ["acme/api"]);
    assert_eq!(catalogue.recent.models, ["scripted/scripted-1", OTHER_MODEL]);
    talk.finish().await;
    place.stack.end().unwrap();
}

async fn refused(platform: Platform) {
    let place = Mirrored::new();
    let world = &place.world;
    // A person who does not manage the place changes nothing.
    let member = world.colleague(platform).await;
    let before = settings(world, platform).await;
    let model = default_of(DefaultKind::Model, Some(OTHER_MODEL));
    configure(world, platform, member, false, model).await;
    assert_eq!(settings(world, platform).await, before);

    set(world, platform, default_of(DefaultKind::Repo, Some("acme/nothing"))).await;
    let (mut talk, first) = world.begin(platform, "run: ls").await;
    let told = reason(&talk, &first).await;
    assert!(
        told.starts_with("The repository acme/nothing could not be cloned: it does not exist"),
        "{told}"
    );
    assert!(talk.card(&first).await.text.contains("acme/nothing"));

    set(world, platform, default_of(DefaultKind::Repo, Some("acme/api"))).await;
    set(world, platform, default_of(DefaultKind::Model, Some("scripted/nobody"))).await;
    let second = talk.say("run: ls").await;
    let told = reason(&talk, &second).await;
    let first = format!(
        "scripted/nobody is not a model that can be used here. Choose one of these: scripted/scripted-1, {OTHER_MODEL}. It is the default here, set by "
    );
    assert!(told.starts_with(&first), "{told}");
    set(world, platform, default_of(DefaultKind::Model, Some("openai/gpt"))).await;
    let third = talk.say("run: ls").await;
    let told = reason(&talk, &third).await;
    assert!(told.contains("there is no key for openai here"), "{told}");

    set(world, platform, default_of(DefaultKind::Model, None)).await;
    // A choice that no sandbox offers is refused: the sandboxes have reported theirs by now.
    let before = settings(world, platform).await;
    let (by, agent) = (manager(world, platform), default_of(DefaultKind::Agent, Some("nobody")));
    configure(world, platform, by, true, agent).await;
    assert_eq!(settings(world, platform).await, before);

    let other = "12345".to_owned();
    let (list, id) = (SettingsList::People, other.clone());
    set(world, platform, SettingsChange::Allow { list, id }).await;
    let fifth = talk.say("run: ls").await;
    let told = reason(&talk, &fifth).await;
    assert!(told.starts_with("You may not use Bobbin here"), "{told}");

    let (list, id) = (SettingsList::People, other);
    set(world, platform, SettingsChange::Disallow { list, id }).await;
    let sixth = talk.say("run: cat README.md").await;
    assert_eq!(talk.ended(&sixth).await.outcome, Outcome::Answered);
    let answer = talk.answer(&sixth).await;
    assert!(answer.contains("The API of Acme."), "{answer}");
    talk.finish().await;
    place.stack.end().unwrap();
}
