//! `event`: turns a file of `events/` into a current event of the stack, for `sam local invoke --event`.
//!
//! A platform's request is signed. A queue record names the stack's queue; on the laptop stack it is a real message
//! there, with a valid receipt, and its ids are those of the laptop stack's platforms, which are told of events that
//! bypass them. Deliberately absent: Discord's signature for a deployed stack, because only Discord has that key; and
//! putting messages into a deployed stack's queues.

use std::io::Read as _;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bobbin_chat::slack;
use bobbin_cloud::clock::now_ms;
use bobbin_cloud::deployed::{Deployed, ReceivedMessage};
use bobbin_core::records::message::Body;
use bobbin_forge::github::webhook;
use clap::Args;
use ed25519_dalek::{Signer as _, SigningKey};
use serde_json::{Value, json};

use crate::laptop::{Laptop, LaptopIds};
use crate::target::StackTarget;

const DISCORD_SIGNATURE: &str = "x-signature-ed25519";
const DISCORD_TIME: &str = "x-signature-timestamp";
const SLACK_SIGNATURE: &str = "x-slack-signature";
const SLACK_TIME: &str = "x-slack-request-timestamp";
/// Epoch of Discord's ids in Unix milliseconds (its reference, "Snowflakes").
const DISCORD_EPOCH_MS: u64 = 1_420_070_400_000;
/// Visibility timeout of a message received for an invocation: time to type the command.
const HELD_SECONDS: i32 = 300;
/// The queues by their logical ids in the template, and the outputs that name them.
const QUEUES: [(&str, &str); 4] = [
    ("Messages", "MessagesQueueUrl"),
    ("Control", "ControlQueueUrl"),
    ("MessagesDead", "MessagesDeadQueueUrl"),
    ("ControlDead", "ControlDeadQueueUrl"),
];

/// Turn a file in events/ into a current event of this stack.
#[derive(Debug, Clone, Args)]
pub struct EventOptions {
    /// The event: a file in events/, or `-` for standard input
    event: PathBuf,
    /// Where to write it; `-` prints it, for `sam local invoke --event -`
    #[arg(long, value_name = "FILE", default_value = "-")]
    file: PathBuf,
}

/// Writes the event. Notes go to standard error, because the event may go into a pipe.
///
/// # Errors
/// The file is no event, a key is missing (with where to find it), or the stack cannot be reached.
pub async fn run(target: &StackTarget, options: &EventOptions) -> Result<(), String> {
    let event = read(&options.event)?;
    let (event, notes) = made(target, event).await?;
    for note in notes {
        tell!("{note}");
    }
    let text = format!("{event:#}\n");
    if options.file.as_os_str() == "-" {
        show!("{}", text.trim_end());
        return Ok(());
    }
    let file = options.file.display();
    std::fs::write(&options.file, text)
        .map_err(|e| format!("{file} cannot be written: {e}. Name another one with --file."))?;
    tell!("{file} is an event for: sam local invoke {} --event {file}", function(&event));
    Ok(())
}

fn read(file: &std::path::Path) -> Result<Value, String> {
    let shown = file.display();
    let text = if file.as_os_str() == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(file)
    };
    let text = text.map_err(|e| format!("{shown} cannot be read: {e}. Name a file in events/."))?;
    let event: Value = serde_json::from_str(&text)
        .map_err(|e| format!("{shown} is not JSON: {e}. Name a file in events/."))?;
    if event.is_object() {
        Ok(event)
    } else {
        Err(format!("{shown} is not an event: name a file in events/."))
    }
}

/// The function that handles an event.
fn function(event: &Value) -> &'static str {
    if event["Records"].is_array() {
        "Worker"
    } else if event["requestContext"].is_object() {
        "Ingress"
    } else {
        "Sweeper"
    }
}

async fn made(target: &StackTarget, event: Value) -> Result<(Value, Vec<String>), String> {
    let has = |header: &str| event["headers"][header].is_string();
    let (discord, slack) = (has(DISCORD_SIGNATURE), has(SLACK_SIGNATURE));
    let forge = has(webhook::SIGNATURE);
    match function(&event) {
        "Worker" => record(target, event).await,
        "Ingress" if discord => interaction(target, event).await,
        "Ingress" if slack => delivery(target, event).await,
        "Ingress" if forge => hook(target, event).await,
        _ => Ok((
            event,
            vec!["Nothing in it is signed or belongs to a stack, so it is unchanged.".to_owned()],
        )),
    }
}

async fn interaction(
    target: &StackTarget,
    mut event: Value,
) -> Result<(Value, Vec<String>), String> {
    let Some(laptop) = target.laptop()? else {
        return Err("Only Discord has the key for this signature, so nobody else can sign the event for a deployed stack. You can send the event unsigned, which is answered with 401 like a stranger's request; run `bobbin discord endpoint`, for which Discord sends a signed PING itself; or sign one for the laptop stack with --laptop.".to_owned());
    };
    let body = text(&event)?;
    let body = of_laptop(&body, &laptop.whereabouts.ids, now_ms());
    let mut payload: Value =
        serde_json::from_str(&body).map_err(|e| format!("Its body is not an interaction: {e}."))?;
    payload["id"] = ((now_ms() - DISCORD_EPOCH_MS) << 22).to_string().into();
    payload["token"] = format!("{}-by-hand-{}", laptop.whereabouts.stack, now_ms()).into();
    laptop.announce("discord", &payload).await?;
    let raw = payload.to_string();
    let seed = laptop.discord_seed()?;
    let mut bytes = [0_u8; 32];
    hex::decode_to_slice(seed.expose(), &mut bytes).map_err(
        |_| "The laptop stack's Discord key is not valid: start the stack with cargo run -- --fresh.",
    )?;
    let at = (now_ms() / 1_000).to_string();
    let signature = SigningKey::from_bytes(&bytes).sign(&[at.as_bytes(), raw.as_bytes()].concat());
    put(&mut event, raw.as_bytes());
    event["headers"][DISCORD_SIGNATURE] = hex::encode(signature.to_bytes()).into();
    event["headers"][DISCORD_TIME] = at.into();
    Ok((event, Vec::new()))
}

async fn delivery(target: &StackTarget, mut event: Value) -> Result<(Value, Vec<String>), String> {
    let laptop = target.laptop()?;
    let secret = target.needed("slack_signing_secret").await?.value;
    let mut raw = text(&event)?;
    let mut notes = Vec::new();
    match &laptop {
        Some(laptop) => {
            raw = of_laptop(&raw, &laptop.whereabouts.ids, now_ms());
            if let Ok(mut payload) = serde_json::from_str::<Value>(&raw) {
                if payload["event_id"].is_string() {
                    payload["event_id"] = format!("Ev{}", now_ms()).into();
                }
                laptop.announce("slack", &payload).await?;
                raw = payload.to_string();
            }
        }
        None => notes.push("It is signed. Its workspace and people are made up, so the stack refuses it unless AllowedTeams lists T0BOBBIN01.".to_owned()),
    }
    let at = (now_ms() / 1_000).to_string();
    put(&mut event, raw.as_bytes());
    event["headers"][SLACK_SIGNATURE] =
        slack::signature(secret.expose(), &at, raw.as_bytes()).into();
    event["headers"][SLACK_TIME] = at.into();
    Ok((event, notes))
}

async fn hook(target: &StackTarget, mut event: Value) -> Result<(Value, Vec<String>), String> {
    let secret = target.needed("github_webhook_secret").await?.value;
    // While it is replaced, the old one stands behind it.
    let present = secret.expose().split_whitespace().next().unwrap_or_default();
    let signature = webhook::signature(present, text(&event)?.as_bytes());
    event["headers"][webhook::SIGNATURE] = signature.into();
    let note = "It is signed. Its installation is made up: the worker looks for it, and logs that there is none.";
    Ok((event, vec![note.to_owned()]))
}

/// The request body as text, as every platform sends.
fn text(event: &Value) -> Result<String, String> {
    let body = event["body"].as_str().unwrap_or_default();
    if event["isBase64Encoded"] == true {
        STANDARD.decode(body).ok().and_then(|raw| String::from_utf8(raw).ok()).ok_or_else(|| {
            "Its body is not base64-encoded text, although isBase64Encoded is true.".to_owned()
        })
    } else {
        Ok(body.to_owned())
    }
}

fn put(event: &mut Value, raw: &[u8]) {
    event["body"] = if event["isBase64Encoded"] == true {
        STANDARD.encode(raw).into()
    } else {
        String::from_utf8_lossy(raw).into()
    };
    event["headers"]["content-length"] = raw.len().to_string().into();
}

/// Replaces the sample ids of `events/` by ids that the laptop stack's policy admits, and Slack's times by now, so that
/// nothing counts as a repeat.
fn of_laptop(text: &str, ids: &LaptopIds, now_ms: u64) -> String {
    let second = (now_ms / 1_000).to_string();
    let replaced = [
        ("1240000000000000001", ids.discord_application_id.as_str()),
        ("1240000000000000100", &ids.discord_guild_id),
        ("1240000000000000200", &ids.discord_channel_id),
        ("1240000000000000400", &ids.discord_user_id),
        ("T0BOBBIN01", &ids.slack_team_id),
        ("C0BUILD0001", &ids.slack_channel_id),
        ("U0ANNA00001", &ids.slack_user_id),
        ("U0BOBBINBOT", &ids.slack_bot_user_id),
        ("1790000000", &second),
    ];
    replaced
        .into_iter()
        .filter(|(_, own)| !own.is_empty())
        .fold(text.to_owned(), |text, (example, own)| text.replace(example, own))
}

async fn record(target: &StackTarget, mut event: Value) -> Result<(Value, Vec<String>), String> {
    let stack = target.stack().await?;
    let laptop = target.laptop()?;
    let mut notes = Vec::new();
    let records = event["Records"].as_array_mut();
    for record in records.into_iter().flatten() {
        let source = record["eventSourceARN"].as_str().unwrap_or_default();
        let named = QUEUES.into_iter().find(|(id, _)| source.ends_with(&format!("-{id}.fifo")));
        let Some((_, output)) = named else {
            notes.push(format!(
                "{source} is not one of Bobbin's queues: the worker does not handle the record."
            ));
            continue;
        };
        let url = stack.output(output)?;
        record["eventSourceARN"] = arn(stack, url)?.into();
        record["awsRegion"] = stack.region().into();
        let text = record["body"].as_str().unwrap_or_default().to_owned();
        match &laptop {
            Some(laptop) if Body::decode(&text).is_ok() => {
                let body = of_now(&of_laptop(&text, &laptop.whereabouts.ids, now_ms()), now_ms())?;
                announce(laptop, &body).await?;
                received(laptop, stack, url, &body, record).await?;
                notes.push(format!("Its message is in {}, hidden from the stack's own worker for {} minutes; after that the worker receives it, and acknowledges it if it was done.", name(url), HELD_SECONDS / 60));
            }
            Some(_) => notes.push("This version cannot read its body, so no such message was put into the queue: the worker does not handle the record.".to_owned()),
            None => notes.push("Its receipt is made up, so the worker cannot claim the message and changes nothing. On the laptop stack (--laptop) the receipt is real.".to_owned()),
        }
    }
    Ok((event, notes))
}

/// Accepted now, under a new id.
fn of_now(text: &str, now_ms: u64) -> Result<Value, String> {
    let mut body: Value = serde_json::from_str(text).map_err(|e| e.to_string())?;
    if body["accepted_at_ms"].is_number() {
        body["accepted_at_ms"] = now_ms.into();
    }
    let id = body["id"].as_str().unwrap_or_default();
    body["id"] = format!("{id}-{now_ms}").into();
    Ok(body)
}

/// Posts a message of its author in its thread.
async fn announce(laptop: &Laptop, body: &Value) -> Result<(), String> {
    let thread = body["thread"].as_str().unwrap_or_default();
    let parts: Vec<&str> = thread.split(':').collect();
    let ["slack", team, channel, ts] = parts.as_slice() else {
        return Ok(());
    };
    let words = body["work"]["text"].as_str().unwrap_or("(a worker is invoked by hand)");
    let user = &laptop.whereabouts.ids.slack_user_id;
    let said = json!({"team_id": team, "event": {"type": "message", "channel": channel, "user": user, "ts": ts, "text": words}});
    laptop.announce("slack", &said).await
}

/// Sends a message to its queue and receives it before the stack's own worker does, so that the record is of a real
/// message.
async fn received(
    laptop: &Laptop,
    stack: &Deployed,
    url: &str,
    body: &Value,
    record: &mut Value,
) -> Result<(), String> {
    let queue = name(url);
    laptop.set_mapping(queue, false).await?;
    let text = body.to_string();
    let id = body["id"].as_str().unwrap_or_default();
    let group = body["thread"].as_str().unwrap_or(id);
    let received = stack.send_and_receive(url, &text, group, id, HELD_SECONDS);
    let received = received.await;
    // Always switched on again, or the queue would stall.
    laptop.set_mapping(queue, true).await?;
    let ReceivedMessage { message_id, receipt_handle, body, md5_of_body, attributes } = received?;
    record["messageId"] = json!(message_id);
    record["receiptHandle"] = json!(receipt_handle);
    record["body"] = json!(body);
    record["md5OfBody"] = json!(md5_of_body);
    record["attributes"] = json!(attributes);
    Ok(())
}

/// The last part of a queue's URL.
fn name(url: &str) -> &str {
    url.rsplit('/').next().unwrap_or_default()
}

/// A queue's ARN: that of the message queue, from an output, with this queue's name.
fn arn(stack: &Deployed, url: &str) -> Result<String, String> {
    let messages = stack.output("MessagesQueueArn")?;
    let (before, _) = messages.rsplit_once(':').unwrap_or_default();
    Ok(format!("{before}:{}", name(url)))
}
