//! Our own output that we read again: queue bodies and session records.

use bobbin_core::records::message::{Body, thread_of_group};
use bobbin_core::records::observations::Observations;
use bobbin_core::records::sandbox::SandboxRecord;
use bobbin_core::records::session::Session;
use bobbin_core::schema::{FIELD, Shape, Unreadable};
use serde_json::Value;

/// An input is the text of a queue record.
pub(super) fn body(input: &[u8]) {
    let Ok(Ok(body)) = std::str::from_utf8(input).map(Body::decode) else {
        return;
    };
    let written = body.encode();
    let read = Body::decode(&written).expect("our own form can be read");
    assert_eq!(read, body, "{written}");
    assert_eq!((read.id(), read.group()), (body.id(), body.group()));
    match &body {
        // Two groups never meet: a thread's key has no `open:` in front.
        Body::Open(open) => assert_eq!(body.group(), format!("open:{}", open.id)),
        Body::Message(message) => assert_eq!(body.group(), message.thread.to_string()),
        // A body outside its thread's own group still names its thread.
        Body::Control(control) => {
            assert_eq!(thread_of_group(&body.group()).as_ref(), Some(&control.thread));
        }
        Body::Announce(announce) => {
            assert_eq!(thread_of_group(&body.group()).as_ref(), Some(&announce.thread));
        }
        // Nor is it this word, or does it begin with `home:`.
        Body::DeadLetters(_) => assert_eq!(body.group(), "dead-letters"),
        Body::Forge(hint) => assert_eq!(body.group(), hint.group()),
        Body::Overview(one) => assert_eq!(body.group(), format!("home:{}:{}", one.team, one.by.id)),
    }
}

/// An input is the text of a thread's record, of any shape.
pub(super) fn session(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let Ok(session) = Session::decode(text, None) else {
        return;
    };
    assert_eq!(session.observed, Observations::default(), "seen before it was looked at");
    let (written, of_sandbox) = (session.encode(), session.sandbox.encode());
    let read = Session::decode(&written, Some(&of_sandbox)).expect("our own form can be read");
    assert!(read.same_record(&session), "{written}");
    assert_eq!(read.encode(), written, "written twice alike");
    assert_eq!(read.sandbox.encode(), of_sandbox, "written twice alike");

    let mut looked = session.clone();
    looked.observed.agent.healthy = true;
    looked.observed.agent.attached = Some("what a delivery saw".to_owned());
    assert_eq!(looked.encode(), written, "what was only seen is stored");

    stays_whole(Shape::Record, &written, |text| {
        Session::decode(text, None).map(|read| read.encode())
    });
    stays_whole(Shape::Sandbox, &of_sandbox, |text| {
        SandboxRecord::decode(text).map(|read| read.encode())
    });
}

/// Fields of a newer worker are kept, a newer shape is known as such, and half a record is none.
fn stays_whole(shape: Shape, written: &str, through: impl Fn(&str) -> Result<String, Unreadable>) {
    let known: Value = serde_json::from_str(written).expect("JSON");
    let mut newer = known.clone();
    newer["from_the_future"] = Value::from(1);
    let kept = through(&newer.to_string()).expect("a newer record can be read");
    let kept: Value = serde_json::from_str(&kept).expect("JSON");
    assert_eq!(kept, newer, "a field was lost, or what is known was changed");
    let mut beyond = known.clone();
    beyond[FIELD] = Value::from(shape.reads() + 1);
    let beyond = through(&beyond.to_string());
    assert!(matches!(beyond, Err(Unreadable::Newer { .. })), "{beyond:?}");

    let written = known.to_string();
    let half =
        (0..=written.len() / 2).rev().find(|at| written.is_char_boundary(*at)).unwrap_or_default();
    for torn in [&written[..half], &written[..written.len() - 1], &written[1..]] {
        assert!(through(torn).is_err(), "a torn record was read");
    }
}
