//! One table of requests that the platforms did not sign, sent over HTTP to the real ingress: each is refused with 401
//! and leaves no message on any queue. The check reads the engine's own deduplication ids, which keep every accepted
//! message for five minutes, however fast it was processed.

use std::collections::BTreeSet;
use std::path::Path;

use bobbin_chat::slack::message_id;
use bobbin_core::records::outcome::Outcome;
use bobbin_tests::chat::Platform;
use bobbin_tests::http::{self, Answer};
use bobbin_tests::limits::VISIBLE_MS_MAX;
use bobbin_tests::talk::marked;
use bobbin_tests::wait::eventually;
use bobbin_tests::world::World;
use ed25519_dalek::{Signer, SigningKey};
use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::now_s;
use crate::run::{CHAT, on};

/// Outside the window of five minutes, however long the earlier requests took.
const OUTSIDE_S: u64 = 330;

pub fn trials() -> Vec<Trial> {
    vec![
        on(&CHAT, "security::discord::unsigned_requests_are_never_queued", discord),
        on(&CHAT, "security::slack::unsigned_requests_are_never_queued", slack),
    ]
}

/// How the two platforms sign: the headers' names, and the signature of a time and a body.
struct Scheme<'a> {
    signature: &'static str,
    timestamp: &'static str,
    sign: &'a dyn Fn(&str, &str) -> String,
    wrong_key: &'a dyn Fn(&str, &str) -> String,
    /// A well-formed but invalid signature.
    forged: String,
    /// The other platform's signature of the same.
    foreign: &'a dyn Fn(&str, &str) -> String,
}

/// A request as it is sent: its fault, its body, and its headers in order.
type Attempt = (&'static str, String, Vec<(&'static str, String)>);

/// The table: every way in which a request can differ from what the platform signed.
fn attempts(scheme: &Scheme<'_>, body: &str) -> Vec<Attempt> {
    let now = now_s();
    let at = now.to_string();
    let good = (scheme.sign)(&at, body);
    let (signature, timestamp) = (scheme.signature, scheme.timestamp);
    let both = |sent: &str, signed: String| vec![(signature, signed), (timestamp, sent.to_owned())];
    let signed_at =
        |second: u64| both(&second.to_string(), (scheme.sign)(&second.to_string(), body));
    let same = || body.to_owned();
    let digits = good.len() - good.trim_start_matches("v0=").len();
    let twisted = |old: char, new: char| good.replacen(old, &new.to_string(), 1);
    let pretty = serde_json::from_str::<Value>(body)
        .map(|value| format!("{value:#}"))
        // A form with the same fields and its separators written another way.
        .unwrap_or_else(|_| format!("{body}&"));
    vec![
        ("forged", same(), both(&at, scheme.forged.clone())),
        ("another key", same(), both(&at, (scheme.wrong_key)(&at, body))),
        ("another platform's scheme", same(), both(&at, (scheme.foreign)(&at, body))),
        ("cut by a byte", same(), both(&at, good[..good.len() - 2].to_owned())),
        ("cut by half a byte", same(), both(&at, good[..good.len() - 1].to_owned())),
        ("cut to its first half", same(), both(&at, good[..digits + 16].to_owned())),
        ("longer by a byte", same(), both(&at, format!("{good}00"))),
        (
            "one digit changed",
            same(),
            both(
                &at,
                if good.ends_with('0') {
                    format!("{}1", &good[..good.len() - 1])
                } else {
                    format!("{}0", &good[..good.len() - 1])
                },
            ),
        ),
        ("no hex", same(), both(&at, twisted(char::from(good.as_bytes()[digits]), 'g'))),
        ("an empty signature", same(), both(&at, String::new())),
        ("replayed after the five minutes", same(), signed_at(now - OUTSIDE_S)),
        ("replayed after a day", same(), signed_at(now - 86_400)),
        ("signed for later", same(), signed_at(now + OUTSIDE_S)),
        ("a second later than signed", same(), both(&(now + 1).to_string(), good.clone())),
        ("a second earlier than signed", same(), both(&(now - 1).to_string(), good.clone())),
        (
            "old, under a fresh time",
            same(),
            both(&at, (scheme.sign)(&(now - 86_400).to_string(), body)),
        ),
        (
            "a time of eleven digits",
            same(),
            both(&format!("{at}0"), (scheme.sign)(&format!("{at}0"), body)),
        ),
        (
            "a time in milliseconds",
            same(),
            both(&format!("{at}000"), (scheme.sign)(&format!("{at}000"), body)),
        ),
        (
            "a time with a sign",
            same(),
            both(&format!("+{}", &at[1..]), (scheme.sign)(&format!("+{}", &at[1..]), body)),
        ),
        ("a time in words", same(), both("now", (scheme.sign)("now", body))),
        ("an empty time", same(), both("", (scheme.sign)("", body))),
        (
            "a body changed after signing",
            body.replacen("harmless", "harmful!", 1),
            both(&at, good.clone()),
        ),
        ("a body with more behind it", format!("{body} "), both(&at, good.clone())),
        ("a body cut after signing", body[..body.len() - 1].to_owned(), both(&at, good.clone())),
        ("the same body written anew", pretty, both(&at, good.clone())),
        ("an empty body", String::new(), both(&at, good.clone())),
        (
            "a digit moved from the time to the body",
            format!("{}{body}", &at[9..]),
            both(&at[..9], good.clone()),
        ),
        ("no signature", same(), vec![(timestamp, at.clone())]),
        ("no time", same(), vec![(signature, good.clone())]),
        ("neither", same(), vec![]),
        (
            "the signature under another name",
            same(),
            vec![("x-signature", good.clone()), (timestamp, at.clone())],
        ),
        (
            "two signatures, the wrong one first",
            same(),
            vec![
                (signature, scheme.forged.clone()),
                (signature, good.clone()),
                (timestamp, at.clone()),
            ],
        ),
        (
            "two signatures, the right one first",
            same(),
            vec![
                (signature, good.clone()),
                (signature, scheme.forged.clone()),
                (timestamp, at.clone()),
            ],
        ),
        (
            "the right signature twice",
            same(),
            vec![(signature, good.clone()), (signature, good.clone()), (timestamp, at.clone())],
        ),
        (
            "two times, the right one first",
            same(),
            vec![
                (signature, good.clone()),
                (timestamp, at.clone()),
                (timestamp, (now - 1).to_string()),
            ],
        ),
        (
            "two times, the right one last",
            same(),
            vec![(signature, good), (timestamp, (now - 1).to_string()), (timestamp, at)],
        ),
    ]
}

async fn send(url: &str, kind: &str, body: &str, headers: &[(&str, String)]) -> Answer {
    let mut request = http::client().post(url).header("content-type", kind).body(body.to_owned());
    for (name, value) in headers {
        request = request.header(*name, value);
    }
    http::send(request).await.unwrap()
}

/// Every deduplication id of the engine's queues: each accepted message has one for five minutes.
fn accepted(state_dir: &Path) -> BTreeSet<String> {
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let file = state_dir.join("aws/aws.sqlite");
    let book = rusqlite::Connection::open_with_flags(file, flags).unwrap();
    let mut rows = book.prepare("SELECT deduplication_id FROM deduplication").unwrap();
    let ids = rows.query_map([], |row| row.get(0)).unwrap();
    ids.map(|id| id.unwrap()).collect()
}

fn none_accepted(world: &World, ids: &[String], tried: usize) {
    let there = accepted(&world.state_dir);
    let through: Vec<&String> =
        ids.iter().filter(|id| there.iter().any(|one| one.starts_with(id.as_str()))).collect();
    assert!(through.is_empty(), "reached a queue unsigned: {through:?}");
    println!("{tried} requests refused, none on a queue");
}

/// The id of a valid request is recorded: the table's check would find one.
async fn is_accepted(world: &World, id: &str) {
    eventually(VISIBLE_MS_MAX, "a right request stands in the book", async || {
        if accepted(&world.state_dir).iter().any(|one| one.starts_with(id)) {
            Ok(())
        } else {
            Err(format!("{id} is not there"))
        }
    })
    .await;
}

fn ed25519(seed: &[u8; 32], timestamp: &str, body: &str) -> String {
    let key = SigningKey::from_bytes(seed);
    hex::encode(key.sign(format!("{timestamp}{body}").as_bytes()).to_bytes())
}

/// Slack's signature with this secret.
pub fn hmac(secret: &str, timestamp: &str, body: &str) -> String {
    use hmac::{Hmac, KeyInit, Mac};
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(format!("v0:{timestamp}:{body}").as_bytes());
    format!("v0={}", hex::encode(mac.finalize().into_bytes()))
}

async fn discord(world: World) {
    let discord = &world.discord;
    let scheme = Scheme {
        signature: "x-signature-ed25519",
        timestamp: "x-signature-timestamp",
        sign: &|timestamp, body| discord.sign(timestamp, body),
        wrong_key: &|timestamp, body| ed25519(&[9; 32], timestamp, body),
        forged: "5a".repeat(64),
        foreign: &|timestamp, body| hmac(&world.ready.slack_signing_secret, timestamp, body),
    };
    let url = format!("{}/discord/interactions", world.deployment.ingress);
    let thread = json!({"id": "1100000000000000001", "type": 11, "parent_id": world.ready.discord_channel_id,
        "guild_id": world.ready.discord_guild_id});
    let (mut ids, mut tried) = (Vec::new(), 0);
    for (name, channel, options) in [
        ("sandbox", discord.channel(), json!({"prompt": "echo: harmless"})),
        ("say", thread.clone(), json!({"prompt": "echo: harmless"})),
        ("reset", thread.clone(), json!({"prompt": "harmless"})),
        ("stop", thread.clone(), json!({"prompt": "harmless"})),
    ] {
        let interaction = discord.interaction(name, &channel, &options);
        ids.push(interaction["id"].as_str().unwrap().to_owned());
        for (what, body, headers) in attempts(&scheme, &interaction.to_string()) {
            let answer = send(&url, "application/json", &body, &headers).await;
            assert_eq!(answer.status, 401, "{name}, {what}: {answer:?}");
            tried += 1;
        }
    }
    none_accepted(&world, &ids, tried);

    // The same requests are accepted when signed: only the signatures matter.
    let stop = discord.interaction("stop", &thread, &json!({}));
    assert_eq!(discord.deliver(&stop.to_string()).await.unwrap().status, 200);
    is_accepted(&world, stop["id"].as_str().unwrap()).await;
    let (text, mark) = marked("echo: harmless");
    let start = discord.interaction("sandbox", &discord.channel(), &json!({"prompt": text}));
    let id = start["id"].as_str().unwrap();
    assert_eq!(discord.deliver(&start.to_string()).await.unwrap().status, 200);
    is_accepted(&world, id).await;
    let talk = world.found(Platform::Discord, id, &mark).await;
    assert_eq!(talk.ended(id).await.outcome, Outcome::Answered);
    talk.finish().await;
}

async fn slack(world: World) {
    let slack = &world.slack;
    let ready = &world.ready;
    let seed: [u8; 32] = hex::decode(&ready.discord_private_key).unwrap().try_into().unwrap();
    let scheme = Scheme {
        signature: "x-slack-signature",
        timestamp: "x-slack-request-timestamp",
        sign: &|timestamp, body| slack.sign(timestamp, body),
        wrong_key: &|timestamp, body| hmac("0123456789abcdef0123456789abcdef", timestamp, body),
        forged: format!("v0={}", "5a".repeat(32)),
        foreign: &|timestamp, body| ed25519(&seed, timestamp, body),
    };
    let (team, channel) = (&ready.slack_team_id, &ready.slack_channel_id);
    let root = format!("{}.000700", now_s() - 60);
    let mention = |ts: &str, words: &str| {
        let text = format!("<@{}> {words}", ready.slack_bot_user_id);
        let mut envelope = slack.envelope("app_mention", &format!("Ev{ts}"), ts, &text);
        envelope["event"]["thread_ts"] = root.as_str().into();
        envelope.to_string()
    };
    let click = |pressed_at: &str| {
        form(&json!({
            "type": "block_actions", "team": {"id": team}, "user": {"id": ready.slack_user_id, "team_id": team, "name": "harmless"},
            "container": {"type": "message", "message_ts": root, "channel_id": channel, "thread_ts": root}, "channel": {"id": channel},
            "actions": [{"type": "button", "action_id": "v1:stop", "value": "no-such-turn", "action_ts": pressed_at}],
        }))
    };
    let command = format!(
        "command=%2Fbobbin&text=harmless&team_id={team}&channel_id={channel}&user_id={}",
        ready.slack_user_id
    );
    let ts = |n: u32| format!("{}.0008{n:02}", now_s() - 60);
    let id = |ts: &str| message_id(team, channel, ts, &[]);
    let click_id = |pressed_at: &str| message_id(team, channel, &root, &[pressed_at]);
    let table = [
        ("/slack/events", "application/json", mention(&ts(1), "echo: harmless"), id(&ts(1))),
        ("/slack/events", "application/json", mention(&ts(2), "stop harmless"), id(&ts(2))),
        (
            "/slack/interactivity",
            "application/x-www-form-urlencoded",
            click("1.000001"),
            click_id("1.000001"),
        ),
        (
            "/slack/commands",
            "application/x-www-form-urlencoded",
            command.clone(),
            "no command reaches a queue".to_owned(),
        ),
    ];
    let (mut ids, mut tried) = (Vec::new(), 0);
    for (path, kind, body, id) in table {
        ids.push(id);
        let url = format!("{}{path}", world.deployment.ingress);
        for (what, body, headers) in attempts(&scheme, &body) {
            let answer = send(&url, kind, &body, &headers).await;
            assert_eq!(answer.status, 401, "{path}, {what}: {answer:?}");
            tried += 1;
        }
        let at = now_s().to_string();
        let signed = slack.sign(&at, &body).replacen("v0=", "v1=", 1);
        let headers = [(scheme.signature, signed), (scheme.timestamp, at)];
        let answer = send(&url, kind, &body, &headers).await;
        assert_eq!(answer.status, 401, "{path}, another version: {answer:?}");
        tried += 1;
    }
    none_accepted(&world, &ids, tried);

    for (path, kind, body, id) in [
        ("/slack/events", "application/json", mention(&ts(3), "stop"), Some(id(&ts(3)))),
        (
            "/slack/interactivity",
            "application/x-www-form-urlencoded",
            click("1.000002"),
            Some(click_id("1.000002")),
        ),
        ("/slack/commands", "application/x-www-form-urlencoded", command, None),
    ] {
        let at = now_s().to_string();
        let headers = [(scheme.signature, slack.sign(&at, &body)), (scheme.timestamp, at)];
        let url = format!("{}{path}", world.deployment.ingress);
        let answer = send(&url, kind, &body, &headers).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        if let Some(id) = id {
            is_accepted(&world, &id).await;
        }
    }
}

/// A payload as Slack's interactivity sends it.
pub fn form(payload: &Value) -> String {
    form_urlencoded::Serializer::new(String::new())
        .append_pair("payload", &payload.to_string())
        .finish()
}
