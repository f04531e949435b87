//! What runs in a stack, and what is to become of it: by the table, the queues and the provider.

mod act;
mod arguments;
mod dead;
mod export;
mod log;
mod orphans;
mod sandboxes;
mod show;
mod stack;
mod threads;

use bobbin_core::message::Operation;

pub use self::arguments::Command;
use self::stack::Stack;
use crate::output::{CommandError, Output};
use crate::target::{StackOptions, Target};

/// Does one.
///
/// # Errors
/// What went wrong, or is not there, and what to do next.
pub async fn run(stack: StackOptions, command: &Command) -> Result<Output, CommandError> {
    // No stack is guessed: much of what is done here cannot be undone.
    let target = Target::new(stack, None)?;
    let stack = Stack::open(target).await?;
    match command {
        Command::Threads(what) => threads::run(&stack, what).await,
        Command::Sandboxes(what) => sandboxes::run(&stack, what).await,
        Command::Show(what) => show::run(&stack, what).await,
        Command::Log(what) => log::run(&stack, what).await,
        Command::Pause(what) => act::run(&stack, Operation::Pause, what).await,
        Command::Resume(what) => act::run(&stack, Operation::Resume, what).await,
        Command::Destroy(what) => act::run(&stack, Operation::Destroy, what).await,
        Command::Dead(what) => dead::run(&stack, what).await,
        Command::Orphans(what) => orphans::run(&stack, what).await,
        Command::Export(what) => export::export(&stack, what).await,
        Command::Forget(what) => export::forget(&stack, what).await,
    }
}
