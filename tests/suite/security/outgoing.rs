//! The sender of a message chooses its files' addresses: nothing connects to one that is not the platform's. The guard
//! itself (`shared/http`) has the table of all spellings; here a signed message names a listener on this machine, and
//! nobody may connect to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bobbin_core::records::outcome::Outcome;
use bobbin_tests::chat::Platform;
use bobbin_tests::limits::VISIBLE_MS_MAX;
use bobbin_tests::stack::{Options, Stack, quick};
use bobbin_tests::talk::{Talk, marked};
use bobbin_tests::world::World;
use libtest_mimic::Trial;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::now_s;
use crate::run::trial;

pub fn trials() -> Vec<Trial> {
    vec![trial("security::private_file_addresses_are_never_fetched", files)]
}

/// Counts connections to a port of this machine.
struct Trap {
    port: u16,
    connections: Arc<AtomicU32>,
    task: tokio::task::JoinHandle<()>,
}

impl Trap {
    async fn set(address: &str) -> Self {
        let listener = TcpListener::bind((address, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&connections);
        let task = tokio::spawn(async move {
            while listener.accept().await.is_ok() {
                counted.fetch_add(1, Ordering::SeqCst);
            }
        });
        Self { port, connections, task }
    }

    fn connections(&self) -> u32 {
        self.connections.load(Ordering::SeqCst)
    }
}

/// Addresses of the trap in every spelling that a sender could try, and others that no file comes from.
fn addresses(port: u16) -> Vec<(&'static str, String)> {
    vec![
        ("loopback.txt", format!("http://127.0.0.1:{port}/f")),
        ("loopback-https.txt", format!("https://127.0.0.1:{port}/f")),
        ("name.txt", format!("http://localhost:{port}/f")),
        ("ipv6.txt", format!("http://[::1]:{port}/f")),
        ("mapped.txt", format!("https://[::ffff:127.0.0.1]:{port}/f")),
        ("decimal.txt", format!("http://2130706433:{port}/f")),
        ("octal.txt", format!("http://0177.0.0.1:{port}/f")),
        ("hex.txt", format!("http://0x7f.1:{port}/f")),
        ("userinfo.txt", format!("https://cdn.discordapp.com@127.0.0.1:{port}/f")),
        ("unspecified.txt", format!("http://0.0.0.0:{port}/f")),
        ("private.txt", "https://10.0.0.1/f".to_owned()),
        ("metadata.txt", "http://169.254.169.254/latest/meta-data/".to_owned()),
        ("scheme.txt", "file:///etc/passwd".to_owned()),
    ]
}

async fn files() {
    // Loopback is open to the laptop stack's own platforms, so the limit of files is the number of addresses.
    let mut limits = quick();
    limits["attachments"] = json!(20);
    let stack = Stack::start(&Options { stand_in_agent: true, ..Options::limits(limits) });
    let world = World::of(&stack);
    let trap = Trap::set("127.0.0.1").await;
    for platform in Platform::ALL {
        let files = addresses(trap.port);
        let talk = begin(&world, platform, "echo: without the files", &files).await;
        let turn = talk.accepted[0].turn.clone();
        assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
        let told = talk
            .see(VISIBLE_MS_MAX, "the missing files are named", |one| {
                one.by_bot && one.text.contains("without these files")
            })
            .await;
        for (name, url) in &files {
            let line = told.text.lines().find(|line| line.contains(name));
            let line = line.unwrap_or_else(|| panic!("{name} is not named: {}", told.text));
            assert!(
                line.contains("is only a link to a place from which Bobbin does not fetch"),
                "{name}: {line}"
            );
            assert!(!told.text.contains(url), "the address is shown: {url}");
        }
        talk.finish().await;
    }
    assert_eq!(trap.connections(), 0, "somebody connected to the trap");
    // The trap works: it counts.
    tokio::net::TcpStream::connect(("127.0.0.1", trap.port)).await.unwrap();
    bobbin_tests::wait::eventually(VISIBLE_MS_MAX, "the trap counts", async || {
        match trap.connections() {
            1 => Ok(()),
            other => Err(format!("{other} connections")),
        }
    })
    .await;
    trap.task.abort();
    world.check_orphans().await.unwrap();
    stack.end().unwrap();
}

/// A prompt with files at these addresses.
pub async fn begin<'w>(
    world: &'w World,
    platform: Platform,
    lines: &str,
    files: &[(&'static str, String)],
) -> Talk<'w> {
    let (text, mark) = marked(lines);
    match platform {
        Platform::Discord => by_discord(world, &text, &mark, files).await,
        Platform::Slack => by_slack(world, &text, &mark, files).await,
    }
}

async fn by_discord<'w>(
    world: &'w World,
    text: &str,
    mark: &str,
    files: &[(&'static str, String)],
) -> Talk<'w> {
    let discord = &world.discord;
    let mut sent = discord.interaction("Send to sandbox", &discord.channel(), &Value::Null);
    let attachments: Vec<Value> = files
        .iter()
        .enumerate()
        .map(|(at, (name, url))| {
            json!({"id": at.to_string(), "filename": name, "size": 10, "url": url, "proxy_url": url, "content_type": "text/plain"})
        })
        .collect();
    let author = json!({"id": world.ready.discord_user_id, "username": "ada"});
    let message = json!({"id": "77", "type": 0, "content": text, "author": author, "attachments": attachments});
    sent["data"] = json!({"id": "1", "name": "Send to sandbox", "type": 3, "target_id": "77", "resolved": {"messages": {"77": message}}});
    world.by_interaction(&sent, mark).await
}

async fn by_slack<'w>(
    world: &'w World,
    text: &str,
    mark: &str,
    files: &[(&'static str, String)],
) -> Talk<'w> {
    let slack = &world.slack;
    let ts = format!("{}.000900", now_s());
    let words = format!("<@{}> {text}", world.ready.slack_bot_user_id);
    let mut event = slack.envelope("app_mention", "Ev0FILES", &ts, &words);
    let list: Vec<Value> = files
        .iter()
        .enumerate()
        .map(|(at, (name, url))| {
            json!({"id": format!("F{at}"), "name": name, "size": 10, "mimetype": "text/plain", "mode": "hosted",
                "url_private": url, "url_private_download": url})
        })
        .collect();
    event["event"]["files"] = json!(list);
    world.by_event(&event, &ts, mark).await
}
