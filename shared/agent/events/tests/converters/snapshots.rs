use std::fmt::Write as _;
use std::path::Path;

use crate::read::{Recording, of_opencode, of_the_others};
use crate::shown::Shown;

/// What came out of a recording, and the counts of what went in and came out.
fn shown(recording: &Recording) -> String {
    let mut converter = recording.converter();
    let mut shown = Shown::default();
    let (mut events, mut text) = (0, String::new());
    for line in &recording.lines {
        let converted = converter.convert_line(line);
        events += converted.len();
        for line in shown.lines(&converted) {
            writeln!(text, "{}", line.trim_end()).unwrap();
        }
    }
    let lines = recording.lines.len();
    format!("{}: {lines} lines, {events} events\n{text}", recording.name)
}

fn compare(recording: &Recording) {
    let file = format!("tests/snapshots/{}.txt", recording.name);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let now = shown(recording);
    if std::env::var_os("BOBBIN_SNAPSHOTS").is_some_and(|what| what == "write") {
        std::fs::write(&path, &now).unwrap();
    }
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    if let Some((before, now)) = first_difference(&before, &now) {
        panic!(
            "{} comes out otherwise. It was\n  {before}\nand is\n  {now}\nBOBBIN_SNAPSHOTS=write writes what it is now.",
            recording.name
        );
    }
}

fn first_difference<'a>(before: &'a str, now: &'a str) -> Option<(&'a str, &'a str)> {
    let lines = before.lines().chain([""]).zip(now.lines().chain([""]));
    let differs = lines.into_iter().find(|(before, now)| before != now);
    differs.or_else(|| (before.len() != now.len()).then_some(("another length", now)))
}

#[test]
fn opencode_streams_match_snapshots() {
    let mut all = of_opencode();
    all.retain(|one| one.name.ends_with(".sse"));
    assert!(all.len() > 30, "{} streams", all.len());
    all.iter().for_each(compare);
}

#[test]
fn other_streams_match_their_snapshots() {
    let all = of_the_others().into_iter();
    all.filter(|one| !one.name.ends_with(".http") && !one.name.ends_with(".json"))
        .for_each(|one| compare(&one));
}
