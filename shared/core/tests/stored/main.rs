//! Old and new workers side by side: what any version has ever stored or queued is still read, and nothing in it is
//! lost.
//!
//! `tests/fixtures/stored` has a folder for each kind of item and each version of its shape, with what that version's
//! own code wrote. The files are never edited. When a shape has changed, `BOBBIN_RECORD=1` writes those of the present
//! version anew, and refuses where something that stands in them would be missing: that needs a version of its own
//! (docs/ARCHITECTURE.md, "Changing what is stored").
#![allow(clippy::unwrap_used, missing_docs)]

mod examples;
mod held;

use std::collections::BTreeMap;
use std::path::PathBuf;

use bobbin_core::base::breaker::Breaker;
use bobbin_core::base::person::Person;
use bobbin_core::records::account::AccountRecord;
use bobbin_core::records::ask::AskDecision;
use bobbin_core::records::flags::{Queued, StoppedAll};
use bobbin_core::records::ledger::LedgerEntry;
use bobbin_core::records::message::Body;
use bobbin_core::records::parked::Parked;
use bobbin_core::records::sandbox::{Phase, SandboxRecord};
use bobbin_core::records::session::Session;
use bobbin_core::schema::{self, FIELD, Shape, UnknownFields, Unreadable};
use bobbin_core::tenant::catalogue::Catalogue;
use bobbin_core::tenant::linked::LinkedAccount;
use bobbin_core::tenant::settings::Settings;
use bobbin_core::tenant::setup_link::SetupLink;
use bobbin_core::tenant::sign_in::SignInFound;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn folder(shape: Shape, version: u32) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/fixtures/stored")
        .join(format!("{}-{version}", shape.word()))
}

/// The recorded items of a shape, by the names of their files.
fn recorded(shape: Shape, version: u32) -> BTreeMap<String, String> {
    let folder = folder(shape, version);
    let entries =
        std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let entries = entries.map(|entry| entry.unwrap().path());
    entries
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read_to_string(&path).unwrap())
        })
        .collect()
}

/// Reads an item as the worker does and writes it again: the text, and how many of its fields were not known.
fn through(shape: Shape, name: &str, text: &str) -> Result<(String, usize), Unreadable> {
    fn plain<T: DeserializeOwned + Serialize>(
        shape: Shape,
        text: &str,
    ) -> Result<(String, usize), Unreadable> {
        let (read, unknown): (T, UnknownFields) = schema::read(shape, text)?;
        let written = schema::write(shape, &read, &UnknownFields::default()).unwrap();
        Ok((written, unknown.fields()))
    }
    match shape {
        Shape::Record => {
            let read = Session::decode(text, None)?;
            Ok((read.encode(), read.unknown.fields()))
        }
        Shape::Sandbox => plain::<SandboxRecord>(shape, text),
        Shape::Entry => plain::<LedgerEntry>(shape, text),
        Shape::Settings => plain::<Settings>(shape, text),
        Shape::Catalogue => plain::<Catalogue>(shape, text),
        Shape::Breaker => plain::<Breaker>(shape, text),
        Shape::Account => plain::<AccountRecord>(shape, text),
        Shape::Setup => plain::<SetupLink>(shape, text),
        Shape::SignIn => plain::<SignInFound>(shape, text),
        Shape::Linked => plain::<LinkedAccount>(shape, text),
        Shape::Parked => plain::<Parked>(shape, text),
        Shape::Body => plain::<Body>(shape, text),
        Shape::Mark => match name.split('-').next().unwrap() {
            "settled" => plain::<AskDecision>(shape, text),
            "queued" => plain::<Queued>(shape, text),
            "stopped" => plain::<StoppedAll>(shape, text),
            _ => plain::<Person>(shape, text),
        },
        // Text: its number stands beside it.
        Shape::Patch => Ok((text.to_owned(), 0)),
    }
}

/// The number that an item bears.
fn number(text: &str) -> u32 {
    let item: Value = serde_json::from_str(text).unwrap_or_default();
    let number = item[FIELD].as_u64().unwrap_or(1);
    u32::try_from(number).unwrap()
}

/// The present code's own examples of this version: some items of a shape need a newer one than the others.
fn written_at(shape: Shape, version: u32) -> BTreeMap<String, String> {
    let mut all = written(shape);
    all.retain(|_, text| number(text) == version);
    all
}

/// The present code's own examples.
fn written(shape: Shape) -> BTreeMap<String, String> {
    let pretty = |text: String| match serde_json::from_str::<Value>(&text) {
        Ok(value) => format!("{value:#}\n"),
        Err(_) => text,
    };
    let all = examples::of(shape).into_iter();
    all.map(|(name, text)| (name.to_owned(), pretty(text))).collect()
}

/// Where each value stands and of what kind it is; of a list every element counts.
fn paths(value: &Value, at: &str, found: &mut BTreeMap<String, &'static str>) {
    let kind = match value {
        Value::Null => return,
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "text",
        Value::Array(list) => {
            for (index, one) in list.iter().enumerate() {
                paths(one, &format!("{at}[{index}]"), found);
            }
            "list"
        }
        Value::Object(fields) => {
            for (name, one) in fields {
                paths(one, &format!("{at}.{name}"), found);
            }
            "object"
        }
    };
    found.insert(at.to_owned(), kind);
}

/// What stands in `before` and not in `after`, or is of another kind there.
fn lost(before: &str, after: &str) -> Vec<String> {
    let (Ok(before), Ok(after)) =
        (serde_json::from_str::<Value>(before), serde_json::from_str::<Value>(after))
    else {
        return Vec::new();
    };
    let (mut was, mut is) = (BTreeMap::new(), BTreeMap::new());
    paths(&before, "", &mut was);
    paths(&after, "", &mut is);
    let gone = was.into_iter().filter(|(path, kind)| is.get(path) != Some(kind));
    gone.map(|(path, _)| path).collect()
}

#[test]
fn every_stored_version_is_fully_read() {
    const ADVICE: &str = "a field was renamed or removed without a new version of its shape: see docs/ARCHITECTURE.md";
    for shape in Shape::ALL {
        for version in 1..=shape.reads() {
            let recorded = recorded(shape, version);
            assert!(!recorded.is_empty(), "{shape:?} {version} has no item");
            for (name, text) in recorded {
                let item = format!("{}-{version}/{name}", shape.word());
                let (written, unknown) =
                    through(shape, &name, &text).unwrap_or_else(|e| panic!("{item}: {e}"));
                assert_eq!(unknown, 0, "{item}: {ADVICE}");
                let lost = lost(&text, &written);
                assert!(lost.is_empty(), "{item}: {lost:?}: {ADVICE}");
            }
        }
    }
}

#[test]
fn recorded_items_match_written_items() {
    let record = std::env::var_os("BOBBIN_RECORD").is_some();
    let versions = |shape: Shape| (shape.writes()..=shape.reads()).map(move |one| (shape, one));
    for (shape, version) in Shape::ALL.into_iter().flat_map(versions) {
        let folder = folder(shape, version);
        for (name, text) in written_at(shape, version) {
            let file = folder.join(format!("{name}.json"));
            let stands = std::fs::read_to_string(&file);
            if record {
                let gone = lost(stands.as_deref().unwrap_or(&text), &text);
                assert!(
                    gone.is_empty(),
                    "{}: {gone:?} would be missing: raise the version of Shape::{shape:?} instead",
                    file.display()
                );
                std::fs::create_dir_all(&folder).unwrap();
                std::fs::write(&file, text).unwrap();
            } else {
                assert_eq!(
                    stands.unwrap_or_default(),
                    text,
                    "{}: the shape has changed. What is new, optional, and left alone by older workers is recorded with \
BOBBIN_RECORD=1 cargo test -p bobbin-core --test stored; anything else needs a new version",
                    file.display()
                );
            }
        }
        let (files, made) = (recorded(shape, version), written_at(shape, version));
        assert!(
            files.keys().eq(made.keys()),
            "{shape:?}: files {:?}, examples {:?}",
            files.keys(),
            made.keys()
        );
    }
}

#[test]
fn every_stored_variant_has_an_example() {
    let said = |shape: Shape, tag: &str, words: &[&str]| {
        let texts: String = written(shape).into_values().collect();
        let absent = |word: &&&str| !texts.contains(&format!("\"{tag}\": \"{word}\""));
        let missing: Vec<_> = words.iter().filter(absent).collect();
        assert!(missing.is_empty(), "{shape:?}, {tag}: {missing:?}");
    };
    let body = Shape::Body;
    said(body, "kind", &["message", "open", "control", "announce", "overview"]);
    said(
        body,
        "work",
        &[
            "prompt",
            "sweep",
            "reconcile",
            "reset",
            "dead_letter",
            "operate",
            "name",
            "connect",
            "create",
        ],
    );
    said(
        body,
        "want",
        &[
            "stop",
            "stop_all",
            "halt",
            "now",
            "withdraw",
            "diff",
            "configure",
            "own_key",
            "forge",
            "command",
            "again",
            "help",
            "say",
            "settle",
            "sandboxes",
            "connect",
            "ask_destroy",
            "operate",
        ],
    );
    said(body, "command", &["status"]);
    said(
        body,
        "wish",
        &[
            "show",
            "enter",
            "remove",
            "check",
            "bind",
            "unbind",
            "connect",
            "account",
            "disconnect",
            "signed_in",
            "pressed",
        ],
    );
    said(Shape::SignIn, "found", &["owners", "account", "refused"]);
    said(body, "place", &["home", "answer"]);
    said(body, "platform", &["discord", "slack", "nobody"]);
    said(body, "change", &["show", "default", "allow", "disallow", "direct"]);
    said(body, "choice", &["once", "always", "reject", "form", "answers"]);
    let record = Shape::Record;
    said(record, "stage", &["received", "prompting", "running", "ending"]);
    said(record, "outcome", &["answered", "joined", "failed", "cancelled", "lost"]);
    said(record, "about", &["permission", "question"]);
    said(Shape::Sandbox, "phase", &Phase::ALL.map(|phase| phase.word()));
}

#[test]
fn newer_items_are_reported_as_newer() {
    for shape in Shape::ALL {
        for (name, text) in recorded(shape, shape.writes()) {
            let Ok(Value::Object(mut item)) = serde_json::from_str(&text) else {
                assert_eq!(shape, Shape::Patch);
                continue;
            };
            item.insert("from_the_future".to_owned(), Value::from(1));
            let (_, unknown) = through(shape, &name, &Value::Object(item.clone()).to_string())
                .unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(unknown, 1, "{name}");

            let schema = shape.reads() + 1;
            item.insert(FIELD.to_owned(), schema.into());
            // A word that this build has never heard of, where it has one of its own.
            for tag in ["kind", "phase", "outcome"] {
                if let Some(value) = item.get_mut(tag) {
                    *value = "from_the_future".into();
                }
            }
            assert_eq!(
                through(shape, &name, &Value::Object(item).to_string()),
                Err(Unreadable::Newer { shape, schema }),
                "{name}"
            );
        }
    }
}

#[test]
fn older_worker_preserves_unknown_settings() {
    let text = r#"{"version":3,"retention_days":7,"defaults":{"model":"a/b","effort":"high"},"channels":{"C1":{"agent":"plan","effort":"low"}}}"#;
    let (mut settings, unknown): (Settings, UnknownFields) =
        schema::read(Shape::Settings, text).unwrap();
    settings.version = 4;
    settings.defaults.model = Some("c/d".to_owned());
    let written = schema::write(Shape::Settings, &settings, &unknown).unwrap();
    let written: Value = serde_json::from_str(&written).unwrap();
    assert_eq!((&written["retention_days"], &written["version"]), (&json!(7), &json!(4)));
    assert_eq!(written["defaults"], json!({"model": "c/d", "effort": "high"}));
    assert_eq!(written["channels"]["C1"]["effort"], "low");
}
