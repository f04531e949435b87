//! Operation commands: inspect and change what runs in a stack, through the table, the queues and the provider.

mod act;
mod arguments;
mod dead;
mod export;
mod follow;
mod hear;
mod host;
mod line;
mod log;
mod meant;
mod named;
mod orphans;
mod progress;
mod sandbox;
mod sandboxes;
mod send;
mod show;
mod stack;
mod task;
mod threads;

use bobbin_core::records::message::Operation;

pub use self::arguments::Command;
use self::arguments::{Dead, Sandbox, Thread};
use self::stack::Stack;
use crate::output::{CommandError, Output};
use crate::target::{StackOptions, Target};

/// Runs a command.
///
/// # Errors
/// What failed or was not found, with advice.
pub async fn run(
    stack: StackOptions,
    command: &Command,
    json: bool,
) -> Result<Output, CommandError> {
    if let Command::Sandbox(Sandbox::Host(what)) = command {
        return host::run(what);
    }
    // A stack must be named: many of these commands cannot be undone.
    let target = Target::new(stack, None)?;
    let stack = Stack::open(target).await?;
    match command {
        Command::Send(what) => send::run(&stack, what, json).await,
        Command::Thread(command) => match command {
            Thread::List(what) => threads::run(&stack, what).await,
            Thread::Show(what) => show::run(&stack, what).await,
            Thread::Follow(what) => follow::run(&stack, what, json).await,
            Thread::Export(what) => export::export(&stack, what).await,
            Thread::Forget(what) => export::forget(&stack, what).await,
        },
        Command::Sandbox(command) => match command {
            Sandbox::List(what) => sandbox::list::run(&stack, what).await,
            Sandbox::Create(what) => sandbox::create::run(&stack, what, json).await,
            Sandbox::Stop(what) => act::run(&stack, Operation::Pause, what).await,
            Sandbox::Start(what) => act::run(&stack, Operation::Resume, what).await,
            Sandbox::Destroy(what) => act::destroy(&stack, what, json).await,
            Sandbox::Snapshot(what) => sandbox::snapshots::run(&stack, what).await,
            Sandbox::Connect(what) => sandbox::connect::run(&stack, what).await,
            Sandbox::Setup(what) => sandbox::setup::run(&stack, what).await,
            Sandbox::Tools(what) => sandbox::tools::run(&stack, what).await,
            Sandbox::Log(what) => log::run(&stack, what).await,
            Sandbox::Orphans(what) => orphans::run(&stack, what).await,
            Sandbox::Host(what) => host::run(what),
        },
        Command::Dead(Dead::List) => dead::list(&stack).await,
        Command::Dead(Dead::Replay(what)) => dead::replay(&stack, what).await,
    }
}
