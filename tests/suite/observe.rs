//! One prompt followed through the logs: the same id in every line, from the signed request to the sandbox; names in
//! the field's style; metrics as CloudWatch reads them; and never a word of a question or answer.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use bobbin_agent::opencode::CORRELATION;
use bobbin_core::records::outcome::Outcome;
use bobbin_core::records::sandbox::Phase;

use bobbin_core::protocol::signals::{Alarm, USED};
use bobbin_tests::binaries::workspace;
use bobbin_tests::chat::Platform;
use bobbin_tests::limits::PAUSE_MS_MAX;
use bobbin_tests::stack::{Options, Stack, quick};
use bobbin_tests::wait::eventually;
use bobbin_tests::world::World;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::costs::{ROOM, counted};
use crate::run::{beside, trial};

/// In the prompt, in a file that it makes, and in its answer.
const WORD: &str = "kingfisher-in-every-word";
/// Limits of the embedded metric format's specification, version 1 (CloudWatch's documentation).
const METRICS_MAX: usize = 100;
const DIMENSIONS_MAX: usize = 30;
const VALUES_MAX: usize = 100;
const NAME_CHARS_MAX: usize = 1_024;
const NAMESPACE_CHARS_MAX: usize = 1_024;
const DIMENSION_CHARS_MAX: usize = 250;
/// Bytes that CloudWatch bills for a log event in addition to its text (PutLogEvents).
const EVENT_BYTES_MORE: usize = 26;
/// Bytes of one log event.
const EVENT_BYTES_MAX: usize = 1024 * 1024;
const UNITS: [&str; 27] = [
    "Seconds",
    "Microseconds",
    "Milliseconds",
    "Bytes",
    "Kilobytes",
    "Megabytes",
    "Gigabytes",
    "Terabytes",
    "Bits",
    "Kilobits",
    "Megabits",
    "Gigabits",
    "Terabits",
    "Percent",
    "Count",
    "Bytes/Second",
    "Kilobytes/Second",
    "Megabytes/Second",
    "Gigabytes/Second",
    "Terabytes/Second",
    "Bits/Second",
    "Kilobits/Second",
    "Megabits/Second",
    "Gigabits/Second",
    "Terabits/Second",
    "Count/Second",
    "None",
];

pub fn trials() -> Vec<Trial> {
    vec![
        beside("observe::metric_judge_matches_cloudwatch_refusals", || {
            judge_is_strict();
            Ok(())
        }),
        beside("observe::every_log_line_names_its_event", || {
            every_line_is_named();
            Ok(())
        }),
        trial("embedded::observe::one_id_traces_request_to_sandbox", followed),
    ]
}

/// A line of a function's log.
struct Line {
    function: String,
    text: String,
    json: Value,
}

async fn followed() {
    let mut limits = quick();
    limits["idle_pause_ms"] = json!(2_000);
    let stack = Stack::start(&Options {
        environment: vec![(
            "BOBBIN_LOG".to_owned(),
            "warn,functions=info,dynoxide=error".to_owned(),
        )],
        ..Options::lean(limits)
    });
    let world = World::of(&stack);
    let mut threads = Vec::new();
    for platform in Platform::ALL {
        let lines = format!("write: {WORD}.txt {WORD}\necho: {WORD}");
        let (talk, turn) = world.begin(platform, &lines).await;
        assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
        assert!(talk.answer(&turn).await.contains(WORD));
        let sandbox = talk.sandbox().await;
        let kept = format!("\"{CORRELATION}\":\"{turn}\"");
        let inside = files(&world.state_dir.join("daytona"), &sandbox.name);
        assert!(
            inside.iter().any(|file| contains(file, &kept)),
            "{}: the agent keeps no {kept} in {inside:?}",
            platform.word()
        );
        eventually(PAUSE_MS_MAX, "the sweep pauses it", async || {
            world.sweep().await?;
            match talk.session().await.sandbox.phase {
                Phase::Paused => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
        threads.push((platform, talk.thread.key.to_string(), turn));
        talk.finish().await;
    }
    world.check_quiet().await;
    let log = log(stack.folder().path());
    stack.end().unwrap();

    let (metrics, lines): (Vec<_>, Vec<_>) =
        log.iter().partition(|line| !line.json["_aws"].is_null());
    for (platform, thread, turn) in &threads {
        leads(platform.word(), &lines, thread, turn);
        accounted(platform.word(), &lines, thread, turn);
    }
    for line in &lines {
        let event = line.json["event"].as_str().unwrap_or_default();
        assert!(is_dotted(event), "{} has no event: {}", line.function, line.text);
    }
    for line in &log {
        assert!(
            !line.text.contains(WORD),
            "{} has logged what was said: {}",
            line.function,
            line.text
        );
    }
    measured(&metrics);
}

/// The lines about one turn and its thread.
fn leads(platform: &str, lines: &[&Line], thread: &str, turn: &str) {
    let by_id: Vec<_> = lines.iter().filter(|line| line.json["correlation_id"] == turn).collect();
    let events = |function: &str| -> BTreeSet<&str> {
        let of = by_id.iter().filter(|line| line.function == function);
        of.filter_map(|line| line.json["event"].as_str()).collect()
    };
    assert!(events("Ingress").contains("ingress.accepted"), "{platform}: {:?}", events("Ingress"));
    let worker = events("Worker");
    for event in [
        "message.taken",
        "message.done",
        "turn.began",
        "sandbox.create.began",
        "sandbox.create.ready",
        "prompt.sent",
        "run.ended",
        "turn.answered",
    ] {
        assert!(worker.contains(event), "{platform}: no {event} among {worker:?}");
    }
    for line in lines {
        let named = line.text.contains(turn);
        assert!(
            !named || line.json["correlation_id"] == turn,
            "{platform}: it is about {turn}: {}",
            line.text
        );
        let about = line.text.contains(thread);
        let id = line.json["correlation_id"].as_str().unwrap_or_default();
        assert!(
            !about || !id.is_empty(),
            "{platform}: no id though it is about {thread}: {}",
            line.text
        );
    }
    // A wake-up or a sweep has paused it: received under the id with which it acted.
    let taken = |id: &Value| {
        lines
            .iter()
            .any(|line| line.json["event"] == "message.taken" && line.json["correlation_id"] == *id)
    };
    let of_thread = |event: &str| -> Vec<&&Line> {
        let about = |line: &&&Line| line.json["event"] == event && line.text.contains(thread);
        lines.iter().filter(about).collect()
    };
    let pauses = of_thread("sandbox.pause.done");
    assert!(
        pauses.iter().any(|line| taken(&line.json["correlation_id"])),
        "{platform}: nobody said what has paused it"
    );
    // One function sends a sweep, and another one processes it.
    for sweep in of_thread("sweep.sent") {
        let id = &sweep.json["correlation_id"];
        assert!(sweep.function == "Sweeper" && taken(id), "{platform}: {id} leads nowhere");
    }
}

/// CloudWatch accepts every line of metrics, and an alarm uses it; turns that end well write none.
fn measured(lines: &[&Line]) {
    for line in lines {
        let names = judged(&line.text)
            .unwrap_or_else(|why| panic!("{}: {why}: {}", line.function, line.text));
        let known = |name: &String| Alarm::ALL.iter().any(|alarm| alarm.metric() == name);
        assert!(names.iter().all(known), "{names:?}");
    }
    let written: Vec<&str> = lines.iter().map(|line| &*line.text).collect();
    assert_eq!(written, Vec::<&str>::new(), "nothing went wrong");
}

/// Former metrics that the log has now: how long each step took, and what a turn cost.
fn accounted(platform: &str, lines: &[&Line], thread: &str, turn: &str) {
    let of = |event: &str| -> &Value {
        let found = lines.iter().find(|line| {
            line.json["event"] == event
                && (line.json["turn"] == turn || line.json["correlation_id"] == turn)
        });
        &found.unwrap_or_else(|| panic!("{platform}: no {event}")).json
    };
    for event in ["turn.began", "prompt.sent", "run.ended", "turn.answered", "sandbox.create.ready"]
    {
        assert!(of(event)["took_ms"].is_u64(), "{platform}: {}", of(event));
    }
    let used = of(USED);
    assert_eq!(used["thread"], thread, "{platform}");
    let tenant = used["tenant"].as_str().unwrap();
    assert!(thread.starts_with(tenant), "{platform}: {used}");
    for number in ["took_ms", "tokens", "cost_micro_usd", "files", "added", "removed"] {
        assert!(used[number].is_u64(), "{platform}: {number} in {used}");
    }
    assert!(of("message.taken")["age_ms"].is_u64(), "{platform}");
    let of_turn = lines.iter().filter(|line| line.json["correlation_id"] == turn);
    let bytes: usize = of_turn.map(|line| line.text.len() + EVENT_BYTES_MORE).sum();
    let megabytes = bytes as f64 / 1e6;
    let told = counted("log megabytes", "first turn");
    println!("{platform}: {megabytes} MB of log for a first turn");
    assert!(
        megabytes <= told && told <= ROOM * megabytes,
        "{platform}: {megabytes} MB, docs/COSTS.md says {told}"
    );
    let uses = lines
        .iter()
        .filter(|line| line.json["event"] == USED && line.json["correlation_id"] == turn);
    assert_eq!(uses.count(), 1, "{platform}: a turn is accounted for once");
}

/// The metrics of a line in the embedded metric format, version 1.
fn judged(text: &str) -> Result<Vec<String>, String> {
    if text.len() > EVENT_BYTES_MAX {
        return Err(format!("{} bytes", text.len()));
    }
    let line: Value = serde_json::from_str(text).map_err(|e| e.to_string())?;
    let root = line.as_object().ok_or("it is not an object")?;
    let aws = root["_aws"].as_object().ok_or("_aws is no object")?;
    let time = aws
        .get("Timestamp")
        .and_then(Value::as_u64)
        .ok_or("Timestamp is no number of milliseconds")?;
    // CloudWatch accepts times up to two weeks old; a time in seconds would be in 1970.
    if !(1_500_000_000_000..4_000_000_000_000).contains(&time) {
        return Err(format!("Timestamp {time} is not in milliseconds"));
    }
    let directives = aws
        .get("CloudWatchMetrics")
        .and_then(Value::as_array)
        .ok_or("CloudWatchMetrics is no list")?;
    let mut names = Vec::new();
    for directive in directives {
        let namespace = directive["Namespace"].as_str().unwrap_or_default();
        if namespace.is_empty()
            || namespace.len() > NAMESPACE_CHARS_MAX
            || namespace.starts_with("AWS/")
        {
            return Err(format!("Namespace {namespace:?}"));
        }
        let sets = directive["Dimensions"]
            .as_array()
            .filter(|sets| !sets.is_empty())
            .ok_or("Dimensions is no list of sets")?;
        for set in sets {
            let set = set.as_array().ok_or("a set of dimensions is no list")?;
            if set.len() > DIMENSIONS_MAX {
                return Err(format!("{} dimensions", set.len()));
            }
            for name in set {
                let name = name.as_str().ok_or("a dimension is no text")?;
                // The value is a text member of the root.
                let value = root.get(name).and_then(Value::as_str).unwrap_or_default();
                if name.len() > DIMENSION_CHARS_MAX
                    || value.is_empty()
                    || value.len() > NAME_CHARS_MAX
                {
                    return Err(format!("dimension {name:?} is {value:?}"));
                }
            }
        }
        let metrics = directive["Metrics"].as_array().ok_or("Metrics is no list")?;
        if metrics.len() > METRICS_MAX {
            return Err(format!("{} metrics", metrics.len()));
        }
        for metric in metrics {
            let name = metric["Name"].as_str().unwrap_or_default();
            if name.is_empty() || name.len() > NAME_CHARS_MAX {
                return Err(format!("a metric is called {name:?}"));
            }
            if !metric["Unit"].is_null() && !UNITS.iter().any(|unit| metric["Unit"] == *unit) {
                return Err(format!("{name} is in {}", metric["Unit"]));
            }
            if let Some(resolution) = metric.get("StorageResolution")
                && ![json!(1), json!(60)].contains(resolution)
            {
                return Err(format!("{name} has a resolution of {resolution}"));
            }
            let numbers = match root.get(name) {
                Some(Value::Number(_)) => true,
                Some(Value::Array(values)) => {
                    (1..=VALUES_MAX).contains(&values.len()) && values.iter().all(Value::is_number)
                }
                _ => false,
            };
            if !numbers {
                return Err(format!("{name} has no value: {:?}", root.get(name)));
            }
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

fn judge_is_strict() {
    let good = json!({
        "_aws": {"Timestamp": 1_795_300_000_000_u64, "CloudWatchMetrics": [{"Namespace": "N", "Dimensions": [["D"]],
            "Metrics": [{"Name": "a.b", "Unit": "Count"}]}]},
        "D": "d", "a.b": [1, 2],
    });
    assert_eq!(judged(&good.to_string()), Ok(vec!["a.b".to_owned()]));
    let many = |count: usize| vec![json!("D"); count];
    for (at, value) in [
        ("/_aws/Timestamp", json!(1_795_300_000)),
        ("/_aws/Timestamp", json!("now")),
        ("/_aws/CloudWatchMetrics/0/Namespace", json!("")),
        ("/_aws/CloudWatchMetrics/0/Dimensions", json!([])),
        ("/_aws/CloudWatchMetrics/0/Dimensions/0", json!(many(31))),
        ("/_aws/CloudWatchMetrics/0/Dimensions/0/0", json!("E")),
        ("/_aws/CloudWatchMetrics/0/Metrics/0/Unit", json!("Things")),
        ("/_aws/CloudWatchMetrics/0/Metrics/0/Name", json!("c.d")),
        ("/_aws/CloudWatchMetrics/0/Metrics", json!(vec![json!({"Name": "a.b"}); 101])),
        ("/D", json!(7)),
        ("/a.b", json!([])),
        ("/a.b", json!(vec![1; 101])),
        ("/a.b", json!(["1"])),
    ] {
        let mut bad = good.clone();
        *bad.pointer_mut(at).unwrap() = value.clone();
        assert!(judged(&bad.to_string()).is_err(), "{at} = {value} was let through");
    }
}

/// Every call of the logging macros in the functions' code.
fn every_line_is_named() {
    let (mut calls, mut unnamed) = (0, Vec::new());
    for folder in ["functions", "shared"] {
        for file in below(&workspace().join(folder)) {
            if file.extension().is_none_or(|end| end != "rs") {
                continue;
            }
            let text = std::fs::read_to_string(&file).unwrap();
            for level in ["trace", "debug", "info", "warn", "error"] {
                for (at, name) in text.match_indices(&format!("tracing::{level}!(")) {
                    calls += 1;
                    let first = text[at + name.len()..].trim_start();
                    if !first.starts_with("event = ")
                        && !first.starts_with("event, ")
                        && !first.starts_with("event,\n")
                    {
                        let line = text[..at].lines().count();
                        unnamed.push(format!("{}:{line}", file.display()));
                    }
                }
            }
        }
    }
    assert!(calls > 50, "only {calls} calls were found");
    assert!(unnamed.is_empty(), "without `event` as their first field: {unnamed:#?}");
}

/// Two or more words with dots between them.
fn is_dotted(event: &str) -> bool {
    let word =
        |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    event.contains('.') && event.split('.').all(word)
}

/// The functions' log lines, as the stack passes them on.
fn log(folder: &Path) -> Vec<Line> {
    let text = std::fs::read_to_string(folder.join("output.log")).unwrap();
    let line = |line: &str| {
        let (from, to) = (line.find('{')?, line.rfind('}')? + 1);
        let text = line.get(from..to)?.to_owned();
        // Colours, if any, are around the name.
        let around: String = [&line[..from], &line[to..]].concat();
        let functions = ["Ingress", "Worker", "Sweeper"];
        let function = functions.into_iter().find(|name| around.contains(name))?;
        let json = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
        Some(Line { function: function.to_owned(), text, json })
    };
    let lines: Vec<Line> =
        text.lines().filter(|line| line.contains("functions")).filter_map(line).collect();
    assert!(lines.len() > 40, "only {} lines of functions were found", lines.len());
    lines
}

/// The files of one sandbox.
fn files(folder: &Path, sandbox: &str) -> Vec<PathBuf> {
    let mut found = below(folder);
    found.retain(|path| path.components().any(|part| part.as_os_str() == sandbox));
    found
}

/// Every file below a folder.
fn below(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                Ok(kind) if kind.is_file() => found.push(entry.path()),
                _ => {}
            }
        }
    }
    found
}

fn contains(file: &Path, text: &str) -> bool {
    let bytes = std::fs::read(file).unwrap_or_default();
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}
