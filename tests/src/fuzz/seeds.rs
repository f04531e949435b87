//! Where the mutations begin: real-shaped requests and recorded streams, read from where the project keeps them.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bobbin_chat::{discord, slack};
use bobbin_core::base::limits::Limits;
use bobbin_core::records::message::Body;
use bobbin_core::tenant::access::Policy;
use serde_json::Value;

use super::verify::{NOW_S, by_discord, by_slack, discord_key, slack_secret};

/// Longest recorded stream that is mutated: a longer one would make each of thousands of inputs expensive.
const STREAM_BYTES_MAX: u64 = 64 * 1024;

/// An input that a target begins with.
#[derive(Debug, Clone)]
pub struct Seed {
    /// Its origin.
    pub name: String,
    /// The bytes that the target is given.
    pub bytes: Vec<u8>,
}

/// Targets whose seeds are all in their corpus.
pub(super) fn of_corpus_only(_workspace: &Path) -> Vec<Seed> {
    Vec::new()
}

/// The files of a target's corpus.
pub(super) fn corpus(workspace: &Path, target: &str) -> Vec<Seed> {
    let folder = workspace.join("tests/fuzz/corpus").join(target);
    files(&folder, "", u64::MAX).iter().map(|path| read(path)).collect()
}

pub(super) fn discord_payloads(workspace: &Path) -> Vec<Seed> {
    let folder = workspace.join("events/discord");
    // Without the white space that makes a file readable, so that more mutations hit something.
    files(&folder, ".json", u64::MAX)
        .iter()
        .map(|path| {
            let (_, body) = request(path);
            let body: Value = serde_json::from_slice(&body).expect("an interaction is JSON");
            named(path, body.to_string())
        })
        .collect()
}

pub(super) fn slack_events(workspace: &Path) -> Vec<Seed> {
    slack(workspace, "events")
}

pub(super) fn slack_interactions(workspace: &Path) -> Vec<Seed> {
    slack(workspace, "interactivity")
}

pub(super) fn slack_commands(workspace: &Path) -> Vec<Seed> {
    slack(workspace, "commands")
}

pub(super) fn signed_by_discord(workspace: &Path) -> Vec<Seed> {
    let timestamp = NOW_S.to_string();
    let signed = |seed: &Seed| by_discord(timestamp.as_bytes(), &seed.bytes);
    discord_payloads(workspace).iter().map(|seed| headed(seed, &signed(seed), &timestamp)).collect()
}

pub(super) fn signed_by_slack(workspace: &Path) -> Vec<Seed> {
    let timestamp = NOW_S.to_string();
    let signed = |seed: &Seed| by_slack(timestamp.as_bytes(), &seed.bytes);
    [slack_events(workspace), slack_commands(workspace)]
        .concat()
        .iter()
        .map(|seed| headed(seed, &signed(seed), &timestamp))
        .collect()
}

pub(super) fn opencode_events(workspace: &Path) -> Vec<Seed> {
    recorded(workspace, ".event.sse")
}

/// Recorded streams and the corpus again, each as one JSON array, so that whole values can be changed.
pub(super) fn agents_lines(workspace: &Path) -> Vec<Seed> {
    let array = |seed: &Seed| {
        let text = String::from_utf8_lossy(&seed.bytes);
        let lines = text.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
        let values: Vec<Value> = lines.filter_map(|it| serde_json::from_str(it).ok()).collect();
        Seed {
            name: format!("{}, an array", seed.name),
            bytes: Value::Array(values).to_string().into_bytes(),
        }
    };
    let corpus = corpus(workspace, "agent_events");
    let streams = opencode_events(workspace);
    corpus.iter().chain(&streams).map(array).collect()
}

pub(super) fn opencode_messages(workspace: &Path) -> Vec<Seed> {
    recorded(workspace, ".messages.json")
}

/// The queue bodies that the endpoints make of the stored requests.
pub(super) fn queue_bodies(workspace: &Path) -> Vec<Seed> {
    let timestamp = NOW_S.to_string();
    let discord_app = discord::App {
        keys_by_form: true,
        key: discord_key().verifying_key(),
        application: "1240000000000000001".to_owned(),
        policy: Policy::from_lists("1240000000000000100", "", "", ""),
        limits: Limits::DEFAULT,
    };
    let slack_app = slack::App {
        signing_secret: slack_secret().to_owned(),
        policy: Policy::from_lists("", "T0BOBBIN01", "", ""),
    };
    let of_discord = |raw: &[u8]| {
        let signature = by_discord(timestamp.as_bytes(), raw);
        let (signature, timestamp) = (Some(signature.as_str()), Some(timestamp.as_str()));
        discord::interactions(raw, signature, timestamp, &discord_app, NOW_S * 1_000).enqueue
    };
    let of_slack = |raw: &[u8]| {
        let signature = by_slack(timestamp.as_bytes(), raw);
        slack::events(raw, &signature, &timestamp, &slack_app, NOW_S * 1_000).enqueue
    };
    let written = |seed: &Seed, body: Body| Seed {
        name: seed.name.clone(),
        bytes: body.encode().into_bytes(),
    };
    let discord = discord_payloads(workspace);
    let slack = slack_events(workspace);
    let discord = discord.iter().filter_map(|seed| Some(written(seed, of_discord(&seed.bytes)?)));
    let slack = slack.iter().filter_map(|seed| Some(written(seed, of_slack(&seed.bytes)?)));
    discord.chain(slack).collect()
}

/// The project's own pages: every kind of Markdown that an agent writes.
pub(super) fn texts(workspace: &Path) -> Vec<Seed> {
    let mut pages = files(&workspace.join("docs"), ".md", u64::MAX);
    pages.extend(files(&workspace.join("docs/appendix"), ".md", u64::MAX));
    pages.push(workspace.join("README.md"));
    pages.iter().map(|path| read(path)).collect()
}

fn recorded(workspace: &Path, end: &str) -> Vec<Seed> {
    let folder = workspace.join("tests/fixtures/opencode");
    files(&folder, end, STREAM_BYTES_MAX).iter().map(|path| read(path)).collect()
}

/// Stored requests for one endpoint, as it reads them: of a form only the payload.
fn slack(workspace: &Path, wanted: &str) -> Vec<Seed> {
    let stored = files(&workspace.join("events/slack"), ".json", u64::MAX);
    let of_endpoint = |path: &PathBuf| {
        let (endpoint, body) = request(path);
        let payload = form_urlencoded::parse(&body).find(|(name, _)| name == "payload");
        let text = match payload {
            Some((_, payload)) => payload.into_owned(),
            None => String::from_utf8_lossy(&body).into_owned(),
        };
        (endpoint == wanted).then(|| named(path, text))
    };
    stored.iter().filter_map(of_endpoint).collect()
}

/// The endpoint and the body of the request in a stored event (see `events/README.md`).
fn request(path: &Path) -> (String, Vec<u8>) {
    let event = json(path);
    let endpoint = event["rawPath"].as_str().and_then(|at| at.rsplit('/').next());
    let body = event["body"].as_str().unwrap_or_default();
    let body = if event["isBase64Encoded"] == true {
        STANDARD.decode(body).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    } else {
        body.as_bytes().to_vec()
    };
    (endpoint.unwrap_or_default().to_owned(), body)
}

fn headed(seed: &Seed, signature: &str, timestamp: &str) -> Seed {
    let head = format!("{signature}\n{timestamp}\n");
    Seed { name: seed.name.clone(), bytes: [head.as_bytes(), &seed.bytes].concat() }
}

/// The files of a folder whose names end so, in the order of their names.
fn files(folder: &Path, end: &str, bytes_max: u64) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap_or_else(|e| panic!("{}: {e}", folder.display())))
        .filter(|entry| entry.metadata().is_ok_and(|of| of.is_file() && of.len() <= bytes_max))
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().ends_with(end))
        .collect();
    paths.sort();
    paths
}

fn named(path: &Path, text: String) -> Seed {
    Seed {
        name: path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned(),
        bytes: text.into_bytes(),
    }
}

fn read(path: &Path) -> Seed {
    let bytes = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    Seed { bytes, ..named(path, String::new()) }
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&read(path).bytes)
        .unwrap_or_else(|e| panic!("{} is no JSON: {e}", path.display()))
}
