//! `sandbox list`: named sandboxes and the provider's sandboxes, without duplicates.

use bobbin_cloud::clock::now_ms;
use bobbin_core::base::ids::Ms;
use bobbin_core::base::names::sandbox_name;
use bobbin_core::records::sandbox::{Phase, SandboxState};
use bobbin_core::shown::sandboxes::{Listed, sort};
use serde::Serialize;

use super::super::arguments::ListSandboxes;
use super::super::sandboxes::{self, FoundSandbox, SandboxLine};
use super::super::stack::Stack;
use crate::operate::named::{NamedSandboxes, all_named};
use crate::output::{CommandError, ExitStatus, Output};
use crate::table::{Style, table};
use crate::time::when;

#[derive(Serialize)]
struct SandboxesAnswer {
    sandboxes: Vec<SandboxLine>,
    /// Sandboxes whose record this version cannot read.
    unreadable: Vec<String>,
}

/// A table row, with its record if there is one.
struct Row {
    line: SandboxLine,
    listed: Option<Listed>,
    /// Provider's state; `None` if the provider does not list it.
    state: Option<SandboxState>,
}

pub async fn run(stack: &Stack, what: &ListSandboxes) -> Result<Output, CommandError> {
    let found = sandboxes::found(stack, what.tenant.as_ref()).await?;
    // Read after the listing, so that a listed sandbox with a name is found under it.
    let named = all_named(stack, what.tenant.as_ref()).await?;
    let NamedSandboxes { mut listed, unreadable } = named;
    sort(&mut listed);
    let rows = joined(stack, found, listed);
    let now_ms = now_ms();
    let cells: Vec<[String; 8]> = rows.iter().map(|row| cells(row, now_ms)).collect();
    let mut text = if cells.is_empty() {
        "There are no sandboxes: the provider lists none of this stack, and none has a name."
            .to_owned()
    } else {
        let heads = ["NAME", "OF", "PROVIDER", "STATE", "USED", "THREADS", "IN USE", "IS"];
        table(heads, &cells, Style::of_output())
    };
    for lacking in stack.lacking().await? {
        text.push_str(&format!("\n{lacking}"));
    }
    let unreadable: Vec<String> = unreadable.iter().map(ToString::to_string).collect();
    if !unreadable.is_empty() {
        text.push_str(&format!(
            "\nThis version cannot read (use the bobbin of the deployed commit): {}",
            unreadable.join(", ")
        ));
    }
    let status = if rows.is_empty() && unreadable.is_empty() {
        ExitStatus::Notice
    } else {
        ExitStatus::Done
    };
    let answer =
        SandboxesAnswer { sandboxes: rows.into_iter().map(|row| row.line).collect(), unreadable };
    Output::new(text, &answer, status)
}

/// Named ones first, then the rest in the provider's order; a retired generation keeps its own line.
fn joined(stack: &Stack, found: Vec<FoundSandbox>, named: Vec<Listed>) -> Vec<Row> {
    let mut found: Vec<FoundSandbox> =
        found.into_iter().filter(|one| one.sandbox.state != SandboxState::Gone).collect();
    let mut rows = Vec::new();
    for listed in named {
        let is_its = |one: &FoundSandbox| {
            one.line.belongs == "live" && one.key.as_ref() == Some(&listed.key)
        };
        let row = match found.iter().position(is_its) {
            Some(at) => {
                let FoundSandbox { line, sandbox, .. } = found.remove(at);
                Row { line: line.with(&listed), state: Some(sandbox.state), listed: Some(listed) }
            }
            None => Row { line: unlisted(stack, &listed), state: None, listed: Some(listed) },
        };
        rows.push(row);
    }
    rows.extend(found.into_iter().map(|one| {
        let key = one.key.as_ref();
        let record = one.record.as_ref().filter(|_| one.line.belongs == "live");
        let listed = key.zip(record).map(|(key, record)| Listed::of(key, record));
        Row {
            line: match &listed {
                Some(listed) => one.line.with(listed),
                None => one.line,
            },
            state: Some(one.sandbox.state),
            listed,
        }
    }));
    rows
}

/// A named sandbox that the provider does not list.
fn unlisted(stack: &Stack, listed: &Listed) -> SandboxLine {
    let is_alive = !matches!(listed.phase, Phase::Destroyed | Phase::Error);
    let line = SandboxLine {
        name: is_alive.then(|| sandbox_name(&stack.name, &listed.key, listed.generation)),
        id: None,
        thread: Some(listed.key.to_string()),
        generation: Some(listed.generation),
        state: "unlisted".to_owned(),
        created_at_ms: None,
        belongs: if is_alive { "unlisted" } else { "none" },
        ..SandboxLine::default()
    };
    line.with(listed)
}

fn cells(row: &Row, now_ms: Ms) -> [String; 8] {
    let none = || "-".to_owned();
    let Row { line, listed, .. } = row;
    let Some(listed) = listed else {
        return [
            none(),
            line.thread.clone().unwrap_or_else(none),
            none(),
            line.state.clone(),
            none(),
            none(),
            none(),
            line.belongs.to_owned(),
        ];
    };
    [
        listed.name.as_ref().map_or_else(none, ToString::to_string),
        listed.key.to_string(),
        listed.provider.clone().unwrap_or_else(none),
        state(row, listed),
        match listed.last_used_ms {
            0 => "never".to_owned(),
            at_ms => when(at_ms, now_ms),
        },
        match listed.threads.len() {
            0 => none(),
            n => n.to_string(),
        },
        match (listed.in_use.len(), listed.waiting) {
            (0, 0) => none(),
            (n, 0) => n.to_string(),
            (n, waiting) => format!("{n}, {waiting} wait"),
        },
        line.belongs.to_owned(),
    ]
}

/// The record's state, and the provider's if it differs.
fn state(row: &Row, listed: &Listed) -> String {
    let word = listed.state();
    let agrees = match (listed.phase, &row.state) {
        (Phase::Active, Some(state)) => *state == SandboxState::Running,
        (Phase::Paused, Some(state)) => *state == SandboxState::Stopped,
        _ => true,
    };
    if agrees || row.line.state.is_empty() {
        return word.to_owned();
    }
    format!("{word} (at the provider {})", row.line.state)
}

#[cfg(test)]
mod tests {
    use bobbin_core::base::ids::ThreadKey;
    use bobbin_core::records::sandbox::{InUse, SandboxRecord, SandboxSpec, Sharing};

    use super::*;

    fn row(record: &SandboxRecord, said: &str, state: Option<SandboxState>) -> Row {
        let thread = ThreadKey::discord("1", "2").expect("a key");
        let listed = Listed::of(&thread.sandbox(), record);
        let line =
            SandboxLine { state: said.to_owned(), belongs: "live", ..SandboxLine::default() };
        Row { line: line.with(&listed), listed: Some(listed), state }
    }

    #[test]
    fn sandbox_row_has_every_column() {
        let thread = ThreadKey::slack("T1", "C1", "1.2").expect("a key");
        let record = SandboxRecord {
            phase: Phase::Active,
            last_activity_ms: 60_000,
            sharing: Sharing {
                name: Some("frontend".parse().expect("a name")),
                threads: [thread.clone()].into(),
                in_use: vec![InUse {
                    thread,
                    turn: "t".into(),
                    common: true,
                    since_ms: 60_000,
                    reserved: None,
                    left: false,
                }],
                ..Sharing::default()
            },
            spec: SandboxSpec { provider: Some("daytona".to_owned()), ..SandboxSpec::default() },
            ..SandboxRecord::default()
        };
        let shown = cells(&row(&record, "started", Some(SandboxState::Running)), 180_000);
        assert_eq!(
            shown,
            ["frontend", "discord:1:2", "daytona", "running", "2 min ago", "1", "1", "live"]
        );
    }

    #[test]
    fn differing_provider_state_is_shown() {
        let record = SandboxRecord { phase: Phase::Active, ..SandboxRecord::default() };
        let shown = |said, state| {
            let [_, _, _, shown, used, ..] = cells(&row(&record, said, state), 1);
            (shown, used)
        };
        assert_eq!(
            shown("stopped", Some(SandboxState::Stopped)),
            ("running (at the provider stopped)".to_owned(), "never".to_owned())
        );
        assert_eq!(shown("unlisted", None).0, "running");
    }
}
