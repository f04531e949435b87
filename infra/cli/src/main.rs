//! `bobbin-operate`: what runs in a stack, and what is to become of it.
//!
//! Promised: it looks at the table, the queues and the provider, and whatever it changes of a thread it asks for in the
//! thread's own group, as everybody does; it shows what people wrote only where that is asked for; it never shows a
//! credential; every list and wait is bounded. `docs/OPERATE.md` has a page a command. Deliberately absent: writes of
//! records past the group's head, and the set-up of a stack (`bobbin-setup`).

mod act;
mod arguments;
mod dead;
mod export;
mod log;
mod orphans;
mod sandboxes;
mod show;
mod stack;
mod table;
mod threads;
mod time;

use std::process::ExitCode;

use clap::Parser;
use serde::Serialize;

use crate::arguments::{Arguments, What};
use crate::stack::Stack;

/// What came of a command.
struct Shown {
    /// For people.
    words: String,
    /// For programs.
    json: serde_json::Value,
    code: Code,
}

/// The exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Code {
    /// Done.
    Done = 0,
    /// Refused, or failed.
    Failed = 1,
    /// Nothing was found; or a dry run found something.
    Nothing = 3,
}

/// A command that did not do what it was asked for: what to do next.
#[derive(Debug)]
struct Trouble {
    words: String,
    code: Code,
}

impl Trouble {
    /// What was asked about is not there.
    fn nothing(words: impl Into<String>) -> Self {
        Self {
            words: words.into(),
            code: Code::Nothing,
        }
    }
}

impl<T: Into<String>> From<T> for Trouble {
    fn from(words: T) -> Self {
        Self {
            words: words.into(),
            code: Code::Failed,
        }
    }
}

impl Shown {
    fn new(words: String, json: &impl Serialize, code: Code) -> Result<Self, Trouble> {
        let json = serde_json::to_value(json)
            .map_err(|e| format!("the answer has no JSON form: {e}. Leave --json out."))?;
        Ok(Self { words, json, code })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let json = arguments.json;
    match run(arguments).await {
        Ok(shown) => {
            let text = match json {
                // What has been shown line by line has no object.
                true if shown.json.is_null() => String::new(),
                true => format!("{:#}", shown.json),
                false => shown.words,
            };
            // Whoever reads has gone: that is no failure of the command.
            let _ = print(&text);
            ExitCode::from(shown.code as u8)
        }
        Err(trouble) => {
            eprintln!("{}", trouble.words);
            ExitCode::from(trouble.code as u8)
        }
    }
}

async fn run(arguments: Arguments) -> Result<Shown, Trouble> {
    let stack = Stack::find(&arguments.place).await?;
    match &arguments.what {
        What::Threads(what) => threads::run(&stack, what).await,
        What::Sandboxes(what) => sandboxes::run(&stack, what).await,
        What::Show(what) => show::run(&stack, what).await,
        What::Log(what) => log::run(&stack, what).await,
        What::Pause(what) => act::run(&stack, bobbin_core::message::Operation::Pause, what).await,
        What::Resume(what) => act::run(&stack, bobbin_core::message::Operation::Resume, what).await,
        What::Destroy(what) => {
            act::run(&stack, bobbin_core::message::Operation::Destroy, what).await
        }
        What::Dead(what) => dead::run(&stack, what).await,
        What::Orphans(what) => orphans::run(&stack, what).await,
        What::Export(what) => export::export(&stack, what).await,
        What::Forget(what) => export::forget(&stack, what).await,
    }
}

/// Prints a text that ends in exactly one line break; nothing for nothing.
fn print(text: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    let text = text.trim_end_matches('\n');
    if text.is_empty() {
        return Ok(());
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()
}
