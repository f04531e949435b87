//! What we ourselves write and read again: queue bodies and session records.

use bobbin_core::message::Body;
use bobbin_core::schema::{FIELD, Shape, Unreadable};
use bobbin_core::session::{Observations, Session};
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
        Body::Control(control) => assert_eq!(body.group(), control.thread.to_string()),
        Body::Announce(announce) => assert_eq!(body.group(), announce.thread.to_string()),
        Body::Candidate(candidate) => assert_eq!(body.group(), candidate.said.group()),
        // Nor `home:`.
        Body::Overview(one) => assert_eq!(body.group(), format!("home:{}:{}", one.team, one.by.id)),
    }
}

/// An input is the text of a record.
pub(super) fn session(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let Ok(session) = Session::decode(text) else {
        return;
    };
    assert_eq!(
        session.observed,
        Observations::default(),
        "seen before it was looked at"
    );
    let written = session.encode();
    let read = Session::decode(&written).expect("our own form can be read");
    assert!(read.same_record(&session), "{written}");
    assert_eq!(read.encode(), written, "written twice alike");

    let mut looked = session.clone();
    looked.observed.healthy = true;
    looked.observed.attached = Some("what a delivery saw".to_owned());
    assert_eq!(looked.encode(), written, "what was only seen is stored");

    let mut newer: Value = serde_json::from_str(&written).expect("JSON");
    newer["from_the_future"] = Value::from(1);
    let newer = Session::decode(&newer.to_string()).expect("a newer record can be read");
    let kept: Value = serde_json::from_str(&newer.encode()).expect("JSON");
    assert_eq!(kept["from_the_future"], 1, "a field was lost");
    let mut known = kept;
    if let Some(fields) = known.as_object_mut() {
        fields.remove("from_the_future");
    }
    let written: Value = serde_json::from_str(&written).expect("JSON");
    assert_eq!(known, written, "what is known was changed");
    let mut beyond = known;
    beyond[FIELD] = Value::from(Shape::Record.reads() + 1);
    let beyond = Session::decode(&beyond.to_string());
    assert!(
        matches!(beyond, Err(Unreadable::Newer { .. })),
        "{beyond:?}"
    );
    let written = written.to_string();

    let half = (0..=written.len() / 2)
        .rev()
        .find(|at| written.is_char_boundary(*at))
        .unwrap_or_default();
    for torn in [
        &written[..half],
        &written[..written.len() - 1],
        &written[1..],
    ] {
        assert!(Session::decode(torn).is_err(), "a torn record was read");
    }
}
