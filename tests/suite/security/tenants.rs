//! Two tenants in one deployment, swapped on every call: the ids of one in the clicks, forms, commands and events of
//! the other. The other is a guild or team that may use Bobbin as well; the requests are signed, so the signature does
//! not separate them. A tenant that is not on the list is refused before anything is looked up.

use bobbin_core::base::ids::ThreadKey;
use bobbin_core::records::outcome::Outcome;
use bobbin_core::records::session::Session;
use bobbin_core::tenant::settings::Settings;
use bobbin_tests::chat::{Platform, Thread};
use bobbin_tests::limits::{ANSWER_MS_MAX, VISIBLE_MS_MAX};
use bobbin_tests::stack::{Options, Stack, quick};
use bobbin_tests::talk::{Talk, marked};
use bobbin_tests::tenants::{Tenant, tenants_apart};
use bobbin_tests::wait::eventually;
use bobbin_tests::world::World;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::signatures::form;
use super::{newest, now_s, queue, requests};
use crate::run::trial;

/// The second tenant on Discord and in Slack, and one that is on no list.
const GUILD: &str = "1300000000000000001";
const TEAM: &str = "T0SECONDTEAM";
const STRANGER_GUILD: &str = "1300000000000000009";
const STRANGER_TEAM: &str = "T0STRANGER00";
/// A member of the second tenant.
const PERSON: &str = "1300000000000000002";
const SLACK_PERSON: &str = "U0SECOND001";
/// What the first tenant's agent says once it is allowed.
const WORD: &str = "kingfisher";

pub fn trials() -> Vec<Trial> {
    vec![
        trial("security::swapped_tenants_cannot_reach_each_other", swapped),
        trial("security::tenant_settings_stay_separate", settings_apart),
    ]
}

/// A stack that admits both tenants. The first start creates the first one's ids; the second start puts both on the
/// list.
fn with_both() -> (Stack, World) {
    let first = Stack::start(&Options { without_aws: true, ..Options::default() });
    let (folder, ready) = (first.folder().clone(), first.ready.clone());
    first.end().unwrap();
    let stack = Stack::start_in(
        &folder,
        &Options {
            parameters: json!({
                "AllowedGuilds": format!("{},{GUILD}", ready.discord_guild_id),
                "AllowedTeams": format!("{},{TEAM}", ready.slack_team_id),
            }),
            ..Options::lean(quick())
        },
    );
    let world = World::of(&stack);
    (stack, world)
}

/// The first tenant's settings keep everybody out; the second tenant's own settings apply to it.
async fn settings_apart() {
    let (stack, world) = with_both();
    for platform in Platform::ALL {
        let (mut ours, turn) = world.begin(platform, "echo: before").await;
        assert_eq!(ours.ended(&turn).await.outcome, Outcome::Answered);
        let tenant = ours.thread.key.tenant();
        let closed =
            Settings { version: 1, open_to: ["nobody".to_owned()].into(), ..Settings::default() };
        let item = json!({
            "thread": {"S": format!("tenant:{tenant}")}, "item": {"S": "settings"}, "version": {"N": "1"},
            "settings": {"S": serde_json::to_string(&closed).unwrap()},
        });
        let body = json!({"TableName": world.deployment.table, "Item": item});
        let target = "DynamoDB_20120810.PutItem";
        world.aws.call("dynamodb", target, &body).await.unwrap();

        let refused = ours.say("echo: never").await;
        let ended = ours.ended(&refused).await.outcome;
        assert!(matches!(ended, Outcome::Failed { .. }), "{ended:?}");
        let theirs = second(&world, platform).await;
        let own = theirs.accepted[0].turn.clone();
        assert_eq!(theirs.ended(&own).await.outcome, Outcome::Answered);
    }
    stack.end().unwrap();
}

async fn swapped() {
    let (stack, world) = with_both();
    for platform in Platform::ALL {
        attacked(&world, platform).await;
    }
    world.check_orphans().await.unwrap();
    stack.end().unwrap();
}

/// The things of one tenant that the other tries to reach.
struct Wanted {
    thread: Thread,
    turn: String,
    ask: String,
    card: String,
}

async fn attacked(world: &World, platform: Platform) {
    let word = platform.word();
    let before = newest(world, word).await;
    // The first tenant has an ended turn and one that waits for a decision.
    let (mut ours, ended) = world.begin(platform, &format!("echo: {WORD} one")).await;
    assert_eq!(ours.ended(&ended).await.outcome, Outcome::Answered);
    let turn = ours.say(&format!("ask: echo {WORD} two > asked.txt; cat asked.txt")).await;
    let ask = ours
        .see(VISIBLE_MS_MAX * 2, "the permission is asked for", |one| {
            one.button("Allow once").is_some()
        })
        .await;
    let session = ours.session().await;
    let waiting = session.turn.as_ref().unwrap();
    let wanted = Wanted {
        thread: ours.thread.clone(),
        ask: waiting.asks.first().expect("it asks").id.to_string(),
        turn: turn.clone(),
        card: ours.card(&turn).await.id,
    };
    // The second tenant has its own conversation.
    let theirs = second(world, platform).await;
    let own = theirs.accepted[0].turn.clone();
    assert_eq!(theirs.ended(&own).await.outcome, Outcome::Answered);
    let before_attack = (ours.session().await, marks(world, &ours.thread.key).await);
    let sandbox = ours.sandbox().await;

    let calls = match platform {
        Platform::Discord => on_discord(world, &wanted, &theirs.thread).await,
        Platform::Slack => in_slack(world, &wanted, &theirs.thread).await,
    };
    let foreign = foreign_key(&wanted.thread);
    eventually(ANSWER_MS_MAX, "every call is worked on", async || {
        let control = queue(world, &world.deployment.control_queue_url).await;
        let messages = queue(world, &world.deployment.messages_queue_url).await;
        let others = messages.as_array().into_iter().flatten();
        let others = others.filter(|one| one["group_id"] != ours.thread.key.to_string()).count();
        match (control.as_array().map_or(0, Vec::len), others) {
            (0, 0) => Ok(()),
            (control, others) => Err(format!("{control} control messages, {others} messages")),
        }
    })
    .await;

    unchanged(&before_attack, &(ours.session().await, marks(world, &ours.thread.key).await));
    let now = ours.sandbox().await;
    assert_eq!((&now.id, &now.state), (&sandbox.id, &sandbox.state), "its sandbox was touched");
    let asked = world.provider.download(&sandbox, "asked.txt").await;
    assert!(asked.is_err(), "somebody else's click was taken for a yes: {asked:?}");

    // The first tenant decides for itself, and its turn ends normally.
    ours.press(&ask, "Allow once").await;
    assert_eq!(ours.ended(&turn).await.outcome, Outcome::Answered);
    assert!(ours.answer(&turn).await.contains(&format!("{WORD} two")));
    ours.check().await;
    theirs.check().await;

    let tenants = history(world, platform, before, &ours, &theirs, &foreign, &calls).await;
    tenants_apart(&tenants).unwrap();
    println!("{word}: {} calls with another tenant's ids, without effect", calls.len());
    // The second tenant's calls in its own name have created its own sandbox.
    let made = world.provider.of(&foreign).await.unwrap();
    assert!(made.iter().all(|one| one.id != sandbox.id), "{made:?}");
    ours.finish().await;
}

/// Everything that another tenant could have changed, without the worker's own polls of the run.
fn unchanged(before: &(Session, Vec<String>), after: &(Session, Vec<String>)) {
    let seen = |session: &Session| {
        let turn = session.turn.as_ref().expect("the turn still waits");
        (
            session.sandbox.phase,
            session.sandbox.generation,
            session.conversation.session.clone(),
            session.ended.clone(),
            turn.id.clone(),
            turn.stage.clone(),
            turn.asks.clone(),
            turn.cancelled_by.clone(),
        )
    };
    assert_eq!(seen(&before.0), seen(&after.0), "the session was changed");
    assert_eq!(before.1, after.1, "somebody left a mark");
}

/// A thread's items beside its session and the state left for the next poll: marks and anything else.
async fn marks(world: &World, thread: &ThreadKey) -> Vec<String> {
    let items = world.aws.scan(&world.deployment.table).await.unwrap();
    let own = items.iter().filter(|item| item["thread"]["S"] == thread.to_string());
    let mut names: Vec<String> = own
        .filter(|item| !["session", "parked"].iter().any(|own| item["item"]["S"] == **own))
        .map(ToString::to_string)
        .collect();
    names.sort();
    names
}

/// The first tenant's place under the second tenant's name.
fn foreign_key(thread: &Thread) -> ThreadKey {
    match &thread.key {
        ThreadKey::Discord { .. } => ThreadKey::discord(GUILD, &thread.channel),
        ThreadKey::Slack { .. } => ThreadKey::slack(TEAM, &thread.channel, &thread.root),
        ThreadKey::SlackDirect { user, .. } => ThreadKey::slack_direct(TEAM, user),
        ThreadKey::Sandbox(key) => panic!("nobody talks in the group of {key}"),
    }
    .unwrap()
}

/// A conversation of the second tenant.
async fn second(world: &World, platform: Platform) -> Talk<'_> {
    let (text, mark) = marked("echo: heron");
    let (turn, thread) = match platform {
        Platform::Discord => {
            let sent = interaction(
                world,
                GUILD,
                "sandbox",
                &world.discord.channel(),
                &json!({"prompt": text}),
            );
            let answer = world.discord.deliver(&sent.to_string()).await.unwrap();
            assert_eq!((answer.status, &answer.json()["type"]), (200, &json!(5)), "{answer:?}");
            let turn = sent["id"].as_str().unwrap().to_owned();
            let key = world.holder(&turn).await;
            let id = key.to_string().rsplit(':').next().unwrap().to_owned();
            (turn, Thread { key, channel: id.clone(), root: id })
        }
        Platform::Slack => {
            let (channel, ts) =
                (world.ready.slack_channel_id.clone(), format!("{}.000920", now_s()));
            // Of the team whose token it is, as everybody whom that may be asked about.
            let of = json!({"team_id": world.ready.slack_team_id});
            world.slack.set_user(SLACK_PERSON, &of).await.unwrap();
            let sent = event(world, TEAM, &channel, &ts, None, &text);
            assert_eq!(world.slack.deliver(&sent.to_string()).await.unwrap().status, 200);
            let key = ThreadKey::slack(TEAM, &channel, &ts).unwrap();
            let turn = bobbin_chat::slack::message_id(TEAM, &channel, &ts, &[]);
            (turn, Thread { key, channel, root: ts })
        }
    };
    world.talk(platform, thread, &turn, &mark)
}

/// An interaction of a member of this guild.
fn interaction(world: &World, guild: &str, name: &str, channel: &Value, options: &Value) -> Value {
    let mut sent = world.discord.interaction(name, channel, options);
    sent["guild_id"] = guild.into();
    sent["channel"]["guild_id"] = guild.into();
    sent["authorizing_integration_owners"] = json!({"0": guild});
    sent["member"]["user"]["id"] = PERSON.into();
    sent
}

/// Every call of Discord's that can carry an id of the first tenant. Returns each answer.
async fn on_discord(world: &World, wanted: &Wanted, theirs: &Thread) -> Vec<String> {
    let channel =
        |id: &str| json!({"id": id, "type": 11, "parent_id": world.ready.discord_channel_id});
    let (own, foreign) = (channel(&theirs.channel), channel(&wanted.thread.channel));
    let click = |guild: &str, place: &Value, custom_id: &str, values: Value| {
        let mut sent = interaction(world, guild, "", place, &Value::Null);
        sent["type"] = 3.into();
        sent["message"] = json!({"id": wanted.card, "channel_id": place["id"], "flags": 32_768, "components": []});
        sent["data"] = json!({"custom_id": custom_id, "component_type": if values.is_null() { 2 } else { 3 }, "values": values});
        sent
    };
    let mut sent = Vec::new();
    for (guild, place) in
        [(GUILD, &own), (GUILD, &foreign), (STRANGER_GUILD, &foreign), (STRANGER_GUILD, &own)]
    {
        let ask = &wanted.ask;
        sent.push((guild, click(guild, place, &format!("v1:stop:{}", wanted.turn), Value::Null)));
        for choice in ["once", "always", "reject", "o0"] {
            sent.push((guild, click(guild, place, &format!("v1:ask:{ask}:{choice}"), Value::Null)));
        }
        sent.push((guild, click(guild, place, &format!("v1:pick:{ask}"), json!(["o0"]))));
        sent.push((guild, click(guild, place, "v1:reply", Value::Null)));
    }
    for guild in [GUILD, STRANGER_GUILD] {
        for name in ["stop", "status", "reset"] {
            sent.push((guild, interaction(world, guild, name, &foreign, &json!({}))));
        }
        sent.push((
            guild,
            interaction(world, guild, "say", &foreign, &json!({"prompt": "echo: cuckoo"})),
        ));
        let mut filled = interaction(world, guild, "", &foreign, &Value::Null);
        filled["type"] = 5.into();
        filled["data"] = json!({"custom_id": "v1:say", "components": [{"type": 18, "component": {"type": 4, "custom_id": "prompt", "value": "echo: cuckoo"}}]});
        sent.push((guild, filled));
    }
    let mut told = Vec::new();
    for (guild, call) in sent {
        let answer = world.discord.deliver(&call.to_string()).await.unwrap();
        assert_eq!(answer.status, 200, "{call}: {answer:?}");
        if guild == STRANGER_GUILD {
            assert!(answer.text.contains("not enabled here"), "a stranger was let in: {answer:?}");
        }
        told.push(format!("{} {}", call["token"], answer.text));
    }
    told
}

/// An event of a member of this team: what they typed.
fn event(
    world: &World,
    team: &str,
    channel: &str,
    ts: &str,
    root: Option<&str>,
    text: &str,
) -> Value {
    let words = format!("<@{}> {text}", world.ready.slack_bot_user_id);
    let mut sent = world.slack.envelope("app_mention", &format!("Ev{team}{ts}"), ts, &words);
    sent["team_id"] = team.into();
    sent["authorizations"][0]["team_id"] = team.into();
    sent["event"]["team"] = team.into();
    sent["event"]["user"] = SLACK_PERSON.into();
    sent["event"]["channel"] = channel.into();
    if let Some(root) = root {
        sent["event"]["thread_ts"] = root.into();
    }
    sent
}

/// Every call of Slack's that can carry an id of the first tenant.
async fn in_slack(world: &World, wanted: &Wanted, theirs: &Thread) -> Vec<String> {
    let (slack, foreign) = (&world.slack, &wanted.thread);
    let mut told = Vec::new();
    let mut n = 0;
    for team in [TEAM, STRANGER_TEAM] {
        for words in ["stop", "status", "reset", "help", "echo: cuckoo"] {
            n += 1;
            let ts = format!("{}.0009{n:02}", now_s() - 30);
            let sent = event(world, team, &foreign.channel, &ts, Some(&foreign.root), words);
            let answer = slack.deliver(&sent.to_string()).await.unwrap();
            assert_eq!(answer.status, 200, "{sent}: {answer:?}");
            told.push(answer.text);
        }
        let mut stopped = event(
            world,
            team,
            &foreign.channel,
            &format!("{}.000999", now_s()),
            Some(&foreign.root),
            "",
        );
        stopped["event"]["type"] = "agent_session_stopped".into();
        told.push(slack.deliver(&stopped.to_string()).await.unwrap().text);
        // A member of one team in a channel that the other shares with it.
        let mut shared = event(
            world,
            &world.ready.slack_team_id,
            &foreign.channel,
            &format!("{}.000998", now_s() - 30),
            Some(&foreign.root),
            "stop",
        );
        shared["event"]["team"] = team.into();
        shared["event"]["user_team"] = team.into();
        shared["is_ext_shared_channel"] = true.into();
        told.push(slack.deliver(&shared.to_string()).await.unwrap().text);
        for place in [theirs, foreign] {
            for (action, value) in [
                ("v1:stop", wanted.turn.clone()),
                ("v1:ask:once", format!("{}:once", wanted.ask)),
                ("v1:ask:always", format!("{}:always", wanted.ask)),
                ("v1:ask:reject", format!("{}:reject", wanted.ask)),
                ("v1:ask:pick", format!("{}:o0", wanted.ask)),
            ] {
                n += 1;
                let clicked = json!({
                    "type": "block_actions", "team": {"id": team}, "user": {"id": SLACK_PERSON, "team_id": team, "name": "sam"},
                    "container": {"type": "message", "message_ts": wanted.card, "channel_id": place.channel, "thread_ts": place.root},
                    "channel": {"id": place.channel},
                    "actions": [{"type": "button", "action_id": action, "value": value, "action_ts": format!("{}.0007{n:02}", now_s())}],
                });
                told.push(interact(world, &clicked).await);
            }
        }
        let shortcut = json!({
            "type": "message_action", "callback_id": "send_to_bobbin", "team": {"id": team}, "user": {"id": SLACK_PERSON, "team_id": team, "name": "sam"},
            "channel": {"id": foreign.channel}, "message_ts": wanted.card, "action_ts": format!("{}.0006{n:02}", now_s()),
            "message": {"type": "message", "text": "echo: cuckoo", "ts": wanted.card, "thread_ts": foreign.root},
        });
        told.push(interact(world, &shortcut).await);
    }
    told
}

async fn interact(world: &World, payload: &Value) -> String {
    let (at, body) = (now_s().to_string(), form(payload));
    let request = bobbin_tests::http::client()
        .post(format!("{}/slack/interactivity", world.deployment.ingress))
        .header("content-type", "application/x-www-form-urlencoded")
        .header("x-slack-signature", world.slack.sign(&at, &body))
        .header("x-slack-request-timestamp", at)
        .body(body);
    let answer = bobbin_tests::http::send(request).await.unwrap();
    assert_eq!(answer.status, 200, "{payload}: {answer:?}");
    answer.text
}

/// What each owns and was told: in its threads, and to the people whose calls were answered.
async fn history(
    world: &World,
    platform: Platform,
    before: i64,
    ours: &Talk<'_>,
    theirs: &Talk<'_>,
    foreign: &ThreadKey,
    told: &[String],
) -> [Tenant; 2] {
    let made = requests(world, platform.word(), before).await;
    let model = world.model_calls().await.unwrap();
    let sessions = world.aws.sessions(&world.deployment.table).await.unwrap();
    let agent = |key: &ThreadKey| {
        let session = sessions.iter().find(|one| one.thread == *key);
        session.and_then(|session| session.conversation.session.clone().map(String::from))
    };
    let of_model = |key: &ThreadKey| -> Vec<String> {
        let id = agent(key);
        let calls = model.iter().filter(|call| id.is_some() && call.session_id == id);
        calls.map(|call| format!("{} {}", call.user, call.text)).collect()
    };
    let tokens: Vec<&str> =
        told.iter().filter_map(|line| line.strip_prefix('"')?.split('"').next()).collect();
    // A call belongs to the second tenant if it goes to its thread or answers one of its people.
    let second = |request: &Value| {
        let (route, body) = (request["route"].as_str().unwrap_or_default(), &request["body"]);
        match platform {
            Platform::Discord => {
                route.contains(&theirs.thread.channel)
                    || tokens.iter().any(|token| route.contains(token))
            }
            Platform::Slack => {
                body["thread_ts"] == theirs.thread.root.as_str() || body["user"] == SLACK_PERSON
            }
        }
    };
    let first = |request: &Value| {
        let route = request["route"].as_str().unwrap_or_default();
        match platform {
            Platform::Discord => route.contains(&ours.thread.channel),
            Platform::Slack => request["body"]["thread_ts"] == ours.thread.root.as_str(),
        }
    };
    let text = |list: Vec<&Value>| list.into_iter().map(ToString::to_string).collect::<Vec<_>>();
    let mut own = text(made.iter().filter(|one| first(one) && !second(one)).collect());
    own.extend(of_model(&ours.thread.key));
    let mut other = text(made.iter().filter(|one| second(one)).collect());
    other.extend(of_model(&theirs.thread.key));
    // What ran under the second tenant's name in the first one's place belongs to the second one too.
    other.extend(of_model(foreign));
    other.extend(told.iter().cloned());
    let belongings = async |talk: &Talk<'_>, word: &str| {
        let mut list: Vec<String> =
            talk.accepted.iter().filter_map(|one| one.mark.clone()).collect();
        list.push(word.to_owned());
        list.push(talk.sandbox().await.name);
        list.extend(agent(&talk.thread.key));
        list
    };
    [
        Tenant {
            name: "the first tenant".to_owned(),
            own: belongings(ours, WORD).await,
            calls: own,
        },
        Tenant {
            name: "the second tenant".to_owned(),
            own: belongings(theirs, "heron").await,
            calls: other,
        },
    ]
}
