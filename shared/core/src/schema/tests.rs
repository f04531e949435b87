//! How an older worker handles data that a newer one wrote.

use serde::Deserialize;
use serde_json::json;

use super::*;

#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
struct Thing {
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    turn: Option<Part>,
    #[serde(default)]
    list: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
struct Part {
    id: String,
    #[serde(default)]
    done: bool,
}

fn part(id: &str, done: bool) -> Part {
    let id = id.to_owned();
    Part { id, done }
}

fn thing(text: &str) -> (Thing, UnknownFields) {
    read(Shape::Entry, text).expect("it can be read")
}

fn written(thing: &Thing, unknown: &UnknownFields) -> Value {
    let text = write(Shape::Entry, thing, unknown).expect("it has a JSON form");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn unnumbered_item_is_first_shape() {
    let (thing, unknown) = thing(r#"{"name":"a"}"#);
    assert_eq!(unknown, UnknownFields::default());
    assert_eq!(written(&thing, &unknown), json!({"schema": 1, "name": "a", "list": []}));
}

#[test]
fn newer_shape_is_refused_unread() {
    let newer = Shape::Entry.reads() + 1;
    // Neither the missing name nor the wrong type of the list is looked at.
    let text = json!({"schema": newer, "list": "a list no more"}).to_string();
    let refused = read::<Thing>(Shape::Entry, &text).expect_err("it is too new");
    assert_eq!(refused, Unreadable::Newer { shape: Shape::Entry, schema: newer });
    assert_eq!(
        refused.to_string(),
        format!(
            "the entry has schema {newer}, but this worker reads schemas up to {}: it waits for a newer worker",
            newer - 1
        )
    );
}

/// The example of docs/ARCHITECTURE.md: jobs get a second kind.
mod a_change_in_two_steps {
    use super::*;

    const BEFORE: Versions = Versions { reads: 1, writes: 1 };
    const FIRST_STEP: Versions = Versions { reads: 2, writes: 1 };
    const SECOND_STEP: Versions = Versions { reads: 2, writes: 2 };

    #[derive(Debug, PartialEq, Deserialize, Serialize)]
    #[serde(tag = "job", rename_all = "snake_case")]
    enum OldJob {
        Walk,
    }

    #[derive(Debug, PartialEq, Deserialize, Serialize)]
    #[serde(tag = "job", rename_all = "snake_case")]
    enum Job {
        Walk,
        Run { metres: u32 },
    }

    fn read_as<T: DeserializeOwned + Serialize>(by: Versions, text: &str) -> Result<T, Unreadable> {
        read_by(Shape::Entry, by, text).map(|(job, _)| job)
    }

    fn written(by: Versions, job: &impl Serialize) -> String {
        write_by(by, job, &UnknownFields::default()).expect("it has a JSON form")
    }

    #[test]
    fn adjacent_builds_read_each_other() {
        let before = written(BEFORE, &OldJob::Walk);
        assert_eq!(before, r#"{"schema":1,"job":"walk"}"#);
        let first = written(FIRST_STEP, &Job::Walk);
        assert_eq!(read_as::<OldJob>(BEFORE, &first), Ok(OldJob::Walk));
        let second = written(SECOND_STEP, &Job::Run { metres: 400 });
        assert_eq!(second, r#"{"schema":2,"job":"run","metres":400}"#);
        for text in [&before, &first] {
            assert_eq!(read_as::<Job>(SECOND_STEP, text), Ok(Job::Walk));
        }
        assert_eq!(read_as::<Job>(FIRST_STEP, &second), Ok(Job::Run { metres: 400 }));
    }

    #[test]
    fn outdated_build_reports_newer_shape() {
        let second = written(SECOND_STEP, &Job::Run { metres: 400 });
        let newer = Unreadable::Newer { shape: Shape::Entry, schema: 2 };
        assert_eq!(read_as::<OldJob>(BEFORE, &second), Err(newer));
        // Without the number it would be taken for damaged.
        let unnumbered = second.replace(r#""schema":2,"#, "");
        let damaged = read_as::<OldJob>(BEFORE, &unnumbered);
        assert!(matches!(damaged, Err(Unreadable::Damaged { .. })));
    }
}

#[test]
fn malformed_item_is_damaged_not_newer() {
    for text in [
        "",
        "[]",
        "1",
        r#"{"name":1}"#,
        r#"{"schema":0,"name":"a"}"#,
        r#"{"schema":-1,"name":"a"}"#,
        r#"{"schema":"2","name":"a"}"#,
        r#"{"schema":99999999999,"name":"a"}"#,
    ] {
        let refused = read::<Thing>(Shape::Entry, text).expect_err(text);
        assert!(matches!(refused, Unreadable::Damaged { .. }), "{text}");
    }
}

#[test]
fn nested_unknown_fields_are_written_back() {
    let text = json!({
        "name": "a", "new": {"deep": [1, 2]},
        "turn": {"id": "t", "done": false, "colour": "red"},
        "list": [{"id": "x", "done": false, "size": 1}, {"id": "y", "done": false}, {"id": "z", "done": false, "size": 3}],
    });
    let (mut thing, unknown) = thing(&text.to_string());
    assert_eq!(unknown.fields(), 4);
    thing.name = "b".to_owned();
    thing.turn = Some(part("t", true));
    // One is gone, one has changed, one is new.
    thing.list = vec![part("y", false), part("z", true), part("w", false)];
    assert_eq!(
        written(&thing, &unknown),
        json!({
            "schema": 1, "name": "b", "new": {"deep": [1, 2]},
            "turn": {"id": "t", "done": true, "colour": "red"},
            "list": [{"id": "y", "done": false}, {"id": "z", "done": true, "size": 3}, {"id": "w", "done": false}],
        })
    );
}

#[test]
fn unknown_fields_leave_with_their_parent() {
    let text = json!({"name": "a", "turn": {"id": "t", "done": false, "colour": "red"}});
    let (mut thing, unknown) = thing(&text.to_string());
    thing.turn = Some(part("another", false));
    assert_eq!(written(&thing, &unknown)["turn"], json!({"id": "another", "done": false}));
    thing.turn = None;
    assert_eq!(written(&thing, &unknown), json!({"schema": 1, "name": "a", "list": []}));
}

#[test]
fn unknown_fields_are_never_shown() {
    let (_, unknown) = thing(r#"{"name":"a","secret":"canary"}"#);
    assert_eq!(format!("{unknown:?}"), "UnknownFields(1 fields)");
}

#[test]
fn newer_worker_waits_outlast_deployment() {
    let limits = RetryLimits::DEFAULT;
    assert_eq!(
        [1, 2, 3, 50].map(|receive| wait_ms(&limits, receive)),
        [2_000, 4_000, 8_000, 300_000]
    );
    // The smaller number of deliveries of the two queues (template.yaml).
    let together: u64 = (1..20).map(|receive| wait_ms(&limits, receive)).sum();
    assert!(together > 60 * 60_000, "{together} ms");
}
