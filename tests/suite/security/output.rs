//! Text of a model, a tool or a sender has no effect beyond being read: checked on the bot's requests, as the platforms
//! would read them.

use bobbin_core::records::outcome::Outcome;
use bobbin_tests::chat::Platform;
use bobbin_tests::limits::VISIBLE_MS_MAX;
use bobbin_tests::talk::{Talk, marked};
use bobbin_tests::world::World;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::{newest, now_s, requests};
use crate::run::{CHAT, on};

/// Characters of a line without a break: longer than a message of either platform.
const LINE_CHARS: usize = 5_200;
/// A right-to-left override and zero-width characters between letters that would ping.
const HIDDEN: &str = "@\u{200b}everyone \u{202e}gnp.exe <\u{200b}!channel> <\u{feff}@U0123ABCD>";
/// Everything that pings on Discord.
const DISCORD: &str = "@everyone @here <@123456789012345678> <@!123456789012345678> <@&123456789012345678> <#123456789012345678> </ban:1>";
/// Everything that pings, links or runs in Slack.
const SLACK: &str = "<!channel> <!here> <!everyone> <@U0123ABCD> <@U0123ABCD|ada> <!subteam^S0123ABCD> <!subteam^S0123ABCD|@team> <#C0123ABCD|general> <https://evil.test|bank.test> @channel";
/// Links with a misleading text, and one that would run; they stay as they are.
const LINKS: &str =
    "[your bank](https://evil.test/login) [x](javascript:alert(1)) <https://evil.test>";

pub fn trials() -> Vec<Trial> {
    Platform::ALL
        .into_iter()
        .map(|platform| {
            let name = format!("security::{}::shown_text_pings_nobody", platform.word());
            on(&CHAT, &name, async move |world| said(world, platform).await)
        })
        .collect()
}

/// Everything at once: the title of the thread, the answer, steps of a tool, a permission, a question, a file's name.
fn script() -> String {
    [
        // The first line names the thread on Discord.
        format!("{DISCORD} {SLACK} {HIDDEN}"),
        format!("run: echo '{DISCORD}' '{SLACK}' # {HIDDEN}"),
        "write: @everyone<!channel><@U0123ABCD>.txt x".to_owned(),
        format!("ask: echo '``` {DISCORD} {SLACK} ```'"),
        // A bar would begin an option.
        format!(
            "question: {DISCORD} {} {HIDDEN}? | <!here> @everyone yes | <@U0123ABCD> no",
            SLACK.replace('|', "/")
        ),
        format!("echo: {DISCORD} {SLACK} {HIDDEN}"),
        format!("echo: {LINKS}"),
        "echo: ````".to_owned(),
        "echo: ```".to_owned(),
        format!("echo: {DISCORD} {SLACK}"),
        "echo: ````".to_owned(),
        "echo: behind the fences".to_owned(),
    ]
    .join("\n")
}

async fn said(world: World, platform: Platform) {
    let word = platform.word();
    let before = newest(&world, word).await;
    let (text, mark) = marked(&script());
    let talk = begin(&world, platform, &text, mark).await;
    let turn = talk.accepted[0].turn.clone();
    let permission = talk
        .see(VISIBLE_MS_MAX * 2, "the permission is asked for", |one| {
            one.button("Allow once").is_some()
        })
        .await;
    talk.press(&permission, "Allow once").await;
    let question = talk
        .see(VISIBLE_MS_MAX * 2, "the question stands", |one| {
            one.buttons.iter().any(|button| button.label.contains("yes"))
        })
        .await;
    let yes = question.buttons.iter().find(|one| one.label.contains("yes"));
    talk.press(&question, &yes.unwrap().label.clone()).await;
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    let answer = talk.answer(&turn).await;
    assert!(answer.contains("behind the fences"), "{answer}");
    assert!(answer.contains(LINKS.split(" <").next().unwrap()), "the links were changed: {answer}");

    let mut talk = talk;
    let line: String = (0..LINE_CHARS / 5).map(|n| format!("w{n:04}")).collect();
    let long = talk.say(&format!("echo: {line}")).await;
    assert_eq!(talk.ended(&long).await.outcome, Outcome::Answered);
    let answer = talk.answer(&long).await;
    let joined: String = answer.split_whitespace().collect();
    let missing = (0..LINE_CHARS / 5).find(|n| !joined.contains(&format!("w{n:04}")));
    assert_eq!(missing, None, "the long line is not whole");

    let made = requests(&world, word, before).await;
    let judged = match platform {
        Platform::Discord => {
            let own = [&world.ready.discord_user_id];
            made.iter().filter(|one| muted(one, &own)).count()
        }
        Platform::Slack => {
            let own = [&world.ready.slack_user_id, &world.ready.slack_bot_user_id];
            made.iter().filter(|one| escaped(one, &own)).count()
        }
    };
    // A card, its edits, two asks, a notice and parts of two answers.
    assert!(judged >= 8, "only {judged} requests carried words");
    let shown = Value::Array(made).to_string();
    for words in ["everyone", "evil.test", "without these files"] {
        assert!(shown.contains(words), "{words:?} was not shown at all");
    }
    talk.finish().await;
}

/// A prompt with an unavailable file whose name is itself a trick.
async fn begin<'w>(world: &'w World, platform: Platform, text: &str, mark: String) -> Talk<'w> {
    let name = "@everyone <!channel> <@U0123ABCD> [x](javascript:alert(1)) ```.txt";
    let url = "https://10.0.0.1/f";
    match platform {
        Platform::Discord => {
            let discord = &world.discord;
            let mut sent =
                discord.interaction("sandbox", &discord.channel(), &json!({"prompt": text}));
            // A person may choose any name.
            sent["member"]["nick"] = "@everyone **<@&123456789012345678>**".into();
            let file =
                json!({"id": "9", "filename": name, "size": 10, "url": url, "proxy_url": url});
            sent["data"]["options"]
                .as_array_mut()
                .unwrap()
                .push(json!({"name": "file", "type": 11, "value": "9"}));
            sent["data"]["resolved"] = json!({"attachments": {"9": file}});
            world.by_interaction(&sent, &mark).await
        }
        Platform::Slack => {
            let slack = &world.slack;
            let ts = format!("{}.000910", now_s());
            // As Slack sends what a person typed.
            let typed = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            let words = format!("<@{}> {typed}", world.ready.slack_bot_user_id);
            let mut event = slack.envelope("app_mention", "Ev0OUTPUT", &ts, &words);
            event["event"]["files"] = json!([{"id": "F9", "name": name, "size": 10, "mode": "hosted", "url_private": url}]);
            event["event"]["user_profile"] = json!({"display_name": "<!channel> @everyone"});
            world.by_event(&event, &ts, &mark).await
        }
    }
}

/// Whether a request to Discord has text; if so, it pings nobody. Without the field a bot's message pings everything
/// that it names, edits included.
fn muted(request: &Value, own: &[&String]) -> bool {
    let (body, route) = (&request["body"], request["route"].as_str().unwrap_or_default());
    let words = body.get("content").is_some() || body.get("components").is_some();
    let message = route.contains("/messages") || route.contains("/webhooks/");
    if !(words && message) || route.ends_with("/threads") {
        return false;
    }
    let allowed = &body["allowed_mentions"];
    let called = allowed["users"].as_array().cloned().unwrap_or_default();
    let fields = 1 + usize::from(!called.is_empty());
    assert!(
        allowed["parse"] == json!([])
            && allowed.as_object().is_some_and(|allowed| allowed.len() == fields)
            && called.iter().all(|id| own.iter().any(|one| id == one.as_str())),
        "{route} could ping: {body}"
    );
    assert_ne!(body["tts"], true, "{route} would be read aloud");
    true
}

/// Whether a request to Slack has text; if so, no token in it is live but our times and the name of the person who
/// asked or of the bot itself.
fn escaped(request: &Value, own: &[&String]) -> bool {
    let (body, route) = (&request["body"], request["route"].as_str().unwrap_or_default());
    if !route.contains("/chat.") || body.get("text").is_none() {
        return false;
    }
    for field in ["link_names", "parse", "mrkdwn"] {
        assert!(body.get(field).is_none(), "{route} sets {field}: {body}");
    }
    if route.contains("chat.postMessage") {
        assert_eq!((&body["unfurl_links"], &body["unfurl_media"]), (&json!(false), &json!(false)));
    }
    let mut texts =
        vec![("mrkdwn".to_owned(), body["text"].as_str().unwrap_or_default().to_owned())];
    let blocks = match &body["blocks"] {
        // A form carries them as text.
        Value::String(text) => serde_json::from_str(text).unwrap_or_default(),
        other => other.clone(),
    };
    collect(&blocks, &mut texts);
    for (kind, text) in texts {
        let mut rest = text.as_str();
        while let Some(at) = rest.find('<') {
            rest = &rest[at + 1..];
            let token = rest.split('>').next().unwrap_or_default();
            let ours =
                token.starts_with("!date^") || own.iter().any(|id| token == format!("@{id}"));
            let live =
                token.starts_with(['@', '!', '#']) && token[1..].starts_with(char::is_alphanumeric);
            let link = kind == "mrkdwn" && token.contains("://");
            assert!(ours || !(live || link), "{route}: <{token}> is live in {kind}: {text}");
        }
        let outside_code = without_code(&text);
        for broadcast in ["@channel", "@here", "@everyone"] {
            assert!(
                !outside_code.contains(broadcast),
                "{route}: {broadcast} stands in {kind}: {text}"
            );
        }
    }
    true
}

/// A Markdown text without its fences and code spans, which stay as written.
fn without_code(text: &str) -> String {
    let mut fence = 0;
    let mut outside = String::new();
    for line in text.lines() {
        let ticks = line.len() - line.trim_start_matches('`').len();
        match fence {
            0 if ticks >= 3 => fence = ticks,
            0 => outside.extend(line.split('`').step_by(2)),
            open if ticks >= open && ticks == line.trim_end().len() => fence = 0,
            _ => {}
        }
    }
    outside
}

/// Every text below a node with the kind of its object.
fn collect(node: &Value, out: &mut Vec<(String, String)>) {
    match node {
        Value::Array(list) => list.iter().for_each(|one| collect(one, out)),
        Value::Object(fields) => {
            if let (Some(kind), Some(text)) = (node["type"].as_str(), node["text"].as_str()) {
                out.push((kind.to_owned(), text.to_owned()));
            }
            fields.values().for_each(|one| collect(one, out));
        }
        _ => {}
    }
}
