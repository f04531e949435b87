//! Commands that are named in words to people, as they are typed in the chat where those people are.

use crate::base::ids::{Tenant, ThreadKey};

/// A command that some sentence names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Starts a thread over in a fresh sandbox.
    Reset,
    /// Lists the sandboxes that have a name.
    List,
    /// Names the sandbox of a thread.
    Name,
    /// Takes a thread to another sandbox, or to one of its own.
    Connect,
    /// Deletes a sandbox.
    Destroy,
    /// Stores keys, and chooses where sandboxes are made.
    Setup,
}

impl Command {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Reset, Self::List, Self::Name, Self::Connect, Self::Destroy, Self::Setup];

    /// After a slash, one word; and after the app's name, some.
    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Reset => ("/reset", "@Bobbin reset"),
            Self::List => ("/sandbox-list", "@Bobbin sandbox list"),
            Self::Name => ("/sandbox-name", "@Bobbin sandbox name"),
            Self::Connect => ("/sandbox-connect", "@Bobbin sandbox connect"),
            Self::Destroy => ("/sandbox-destroy", "@Bobbin sandbox destroy"),
            // Of the whole workspace, and typed outside of threads.
            Self::Setup => ("/sandbox-setup", "/bobbin setup"),
        }
    }
}

impl Tenant {
    /// The command as people of this server or workspace type it.
    #[must_use]
    pub fn command(&self, command: Command) -> &'static str {
        let (slash, mention) = command.words();
        if self.as_str().starts_with("slack:") { mention } else { slash }
    }
}

impl ThreadKey {
    /// The command as people of this thread type it.
    #[must_use]
    pub fn command(&self, command: Command) -> &'static str {
        self.tenant().command(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::decide::words;

    #[test]
    fn sentences_name_the_command_of_their_chat() {
        let name = "front".parse().expect("a name");
        let slack = ThreadKey::slack("T1", "C1", "1.2").expect("a key");
        let discord = ThreadKey::discord("1", "2").expect("a key");
        let said = |thread: &ThreadKey| {
            [
                words::reset_shared(thread),
                words::connect_gone(thread),
                words::no_sandbox(&name, thread),
                words::too_many_threads(&name, thread),
                words::named(&name, thread),
            ]
        };
        for (there, here) in said(&slack).iter().zip(said(&discord)) {
            assert!(there.contains("@Bobbin sandbox ") && !there.contains('/'), "{there}");
            assert!(here.contains("/sandbox-") && !here.contains('@'), "{here}");
        }
        let group = ThreadKey::Sandbox(slack.sandbox());
        assert_eq!(group.command(Command::Setup), "/bobbin setup");
    }
}
