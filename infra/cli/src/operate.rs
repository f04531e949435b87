//! Operation commands: inspect and change what runs in a stack, through the table, the queues and the provider.

mod act;
mod arguments;
mod dead;
mod environment;
mod export;
mod find_thread;
mod follow;
mod hear;
mod host;
mod kept;
mod line;
mod log;
mod named;
mod orphans;
mod pr;
mod progress;
mod request;
mod sandbox;
mod sandboxes;
mod send;
mod show;
mod stack;
mod task;
mod threads;
mod usage;

use bobbin_core::records::control::Operation;

pub use self::arguments::OperateCommand;
use self::arguments::{
    DeadCommand, EnvironmentCommand, PrCommand, SandboxCommand, Thread, UsageCommand,
};
use self::stack::Stack;
use crate::output::{CommandError, Output};
use crate::target::{StackOptions, StackTarget};

/// Runs a command.
///
/// # Errors
/// What failed or was not found, with advice.
pub async fn run(
    stack: StackOptions,
    command: &OperateCommand,
    json: bool,
) -> Result<Output, CommandError> {
    if let OperateCommand::Sandbox(SandboxCommand::Host(what)) = command {
        return host::run(what);
    }
    if let OperateCommand::Environment(EnvironmentCommand::Show(what)) = command
        && what.tenant.is_none()
    {
        return environment::checkout::run(what);
    }
    // A stack must be named: many of these commands cannot be undone.
    let target = StackTarget::new(stack, None)?;
    let stack = Stack::open(target).await?;
    match command {
        OperateCommand::Send(what) => send::run(&stack, what, json).await,
        OperateCommand::Thread(command) => match command {
            Thread::List(what) => threads::run(&stack, what).await,
            Thread::Show(what) => show::run(&stack, what).await,
            Thread::Follow(what) => follow::run(&stack, what, json).await,
            Thread::Export(what) => export::export(&stack, what).await,
            Thread::Forget(what) => export::forget(&stack, what).await,
        },
        OperateCommand::Sandbox(command) => match command {
            SandboxCommand::List(what) => sandbox::list::run(&stack, what).await,
            SandboxCommand::Create(what) => sandbox::create::run(&stack, what, json).await,
            SandboxCommand::Stop(what) => act::run(&stack, Operation::Pause, what).await,
            SandboxCommand::Start(what) => act::run(&stack, Operation::Resume, what).await,
            SandboxCommand::Destroy(what) => act::destroy(&stack, what, json).await,
            SandboxCommand::Snapshot(what) => sandbox::snapshots::run(&stack, what).await,
            SandboxCommand::Connect(what) => sandbox::connect::run(&stack, what).await,
            SandboxCommand::Setup(what) => sandbox::setup::run(&stack, what).await,
            SandboxCommand::Tools(what) => sandbox::tools::run(&stack, what).await,
            SandboxCommand::Log(what) => log::run(&stack, what).await,
            SandboxCommand::Orphans(what) => orphans::run(&stack, what).await,
            SandboxCommand::Host(what) => host::run(what),
        },
        OperateCommand::Environment(command) => environment::run(&stack, command).await,
        OperateCommand::Pr(PrCommand::Show(what)) => pr::show(&stack, what).await,
        OperateCommand::Pr(PrCommand::Open(what)) => pr::open(&stack, what).await,
        OperateCommand::Usage(what) => match &what.command {
            Some(UsageCommand::Forget(what)) => usage::forget(&stack, what).await,
            None => usage::run(&stack, what).await,
        },
        OperateCommand::Dead(DeadCommand::List) => dead::list(&stack).await,
        OperateCommand::Dead(DeadCommand::Replay(what)) => dead::replay(&stack, what).await,
    }
}
