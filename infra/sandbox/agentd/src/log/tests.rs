#![allow(clippy::unwrap_used)]

use serde_json::value::to_raw_value;

use super::*;
use crate::limits::{LOG_BYTES_MAX, LOG_ENDS_BYTES_MAX};

fn event(id: u64) -> LogEntry {
    let body =
        to_raw_value(&serde_json::json!({"id": id, "text": "é".repeat(id as usize % 7)})).unwrap();
    LogEntry {
        change: id.is_multiple_of(3).then(|| SessionChange::AgentSession(format!("session-{id}"))),
        event: Some(LoggedEvent { id, seq: id, body }),
    }
}

fn open(path: &Path) -> (SessionLog, LogDamage, Vec<u64>) {
    let mut ids = Vec::new();
    let each = |line: LogEntry| ids.extend(line.event.map(|event| event.id));
    let (log, found) = SessionLog::open(path, LOG_BYTES_MAX, each).unwrap();
    (log, found, ids)
}

fn ids(log: &SessionLog, after: u64) -> Vec<u64> {
    let page = log.reader().page(after, u64::MAX, usize::MAX).unwrap();
    page.events.iter().map(|event| event.id).collect()
}

#[test]
fn truncated_log_keeps_whole_lines() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole");
    let (mut log, ..) = open(&whole);
    let mut ends = vec![0];
    for first in [1, 3] {
        let lines: Vec<LogEntry> = (first..first + 2).map(event).collect();
        log.append(&lines, LogRoom::Ordinary).unwrap();
    }
    let bytes = std::fs::read(&whole).unwrap();
    ends.extend(bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1));
    for cut in 0..=bytes.len() {
        let path = folder.path().join("cut");
        std::fs::write(&path, &bytes[..cut]).unwrap();
        let lines = ends.iter().filter(|end| **end <= cut).count() - 1;
        let (mut log, found, recovered) = open(&path);
        let expected: Vec<u64> = (1..=lines as u64).collect();
        assert_eq!(recovered, expected, "cut at {cut}");
        assert_eq!(found.torn_bytes as usize, cut - ends[lines], "cut at {cut}");
        assert_eq!(found.damaged_lines, 0);
        log.append(&[event(100)], LogRoom::Ordinary).unwrap();
        drop(log);
        let (log, found, recovered) = open(&path);
        assert_eq!(found, LogDamage::default(), "cut at {cut}");
        assert_eq!(recovered.last(), Some(&100));
        assert_eq!(ids(&log, lines as u64), [100], "cut at {cut}");
    }
}

#[test]
fn damaged_byte_costs_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let (mut log, ..) = open(&path);
    let lines: Vec<LogEntry> = (1..=5).map(event).collect();
    log.append(&lines, LogRoom::Ordinary).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let second = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 12;
    bytes[second] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let (log, found, recovered) = open(&path);
    assert_eq!(recovered, [1, 3, 4, 5]);
    assert_eq!(found, LogDamage { torn_bytes: 0, damaged_lines: 1 });
    assert_eq!(ids(&log, 1), [3, 4, 5]);
}

#[test]
fn event_pages_start_after_an_id() {
    let folder = tempfile::tempdir().unwrap();
    let (mut log, ..) = open(&folder.path().join("log"));
    for first in (1..1000).step_by(10) {
        log.append(&(first..first + 10).map(event).collect::<Vec<_>>(), LogRoom::Ordinary).unwrap();
    }
    for after in [0, 1, 63, 64, 65, 500, 998] {
        assert_eq!(ids(&log, after), (after + 1..=1000).collect::<Vec<u64>>(), "after {after}");
    }
    assert!(ids(&log, 1000).is_empty());
    let reader = log.reader();
    let page = reader.page(10, 3, usize::MAX).unwrap();
    assert_eq!((page.events.len(), page.has_more), (3, true));
    let page = reader.page(997, 3, usize::MAX).unwrap();
    assert_eq!((page.events.len(), page.has_more), (3, false));
    let page = reader.page(10, 100, 1).unwrap();
    assert_eq!((page.events.len(), page.has_more), (1, true));
}

#[test]
fn full_log_refuses_and_keeps_lines() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let (mut log, _) = SessionLog::open(&path, 200, |_| {}).unwrap();
    log.append(&[event(1)], LogRoom::Ordinary).unwrap();
    let many: Vec<LogEntry> = (2..20).map(event).collect();
    assert!(matches!(log.append(&many, LogRoom::Ordinary), Err(AppendError::Full)));
    assert_eq!(ids(&log, 0), [1]);
    log.append(&[event(2)], LogRoom::Ordinary).unwrap();
    assert_eq!(open(&path).2, [1, 2]);
}

#[test]
fn full_log_still_takes_ends() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let (mut log, _) = SessionLog::open(&path, 100, |_| {}).unwrap();
    log.append(&[event(1)], LogRoom::Ordinary).unwrap();
    let ends: Vec<LogEntry> = (2..20).map(event).collect();
    assert!(matches!(log.append(&ends, LogRoom::Ordinary), Err(AppendError::Full)));
    log.append(&ends, LogRoom::Ends).unwrap();
    assert_eq!(open(&path).2, (1..20).collect::<Vec<u64>>());
    let over = vec![event(20); LOG_ENDS_BYTES_MAX as usize / 20];
    assert!(matches!(log.append(&over, LogRoom::Ends), Err(AppendError::Full)));
}
