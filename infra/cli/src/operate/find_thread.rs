//! A thread as typed: its key, or the end of one, as shown and copied in a narrow terminal.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use bobbin_core::base::ids::{SandboxName, ThreadKey};

use super::named;
use super::stack::Stack;
use crate::output::CommandError;
use crate::table::CUT;

/// Shortest accepted end of a key.
const END_CHARS_MIN: usize = 4;
/// Threads searched for an end, and threads per page.
const THREADS_MAX: usize = 100_000;
const PAGE: usize = 1_000;
/// Keys listed if an end is ambiguous.
const NAMED_MAX: usize = 5;

/// How a thread is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GivenThread {
    /// By its key.
    Key(ThreadKey),
    /// By the beginning and end of its key.
    Short { head: String, end: String },
}

impl FromStr for GivenThread {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let bad = match word.parse() {
            Ok(key) => return Ok(Self::Key(key)),
            Err(bad) => bad,
        };
        let (head, end) = word.split_once(CUT).unwrap_or(("", word));
        let plain =
            |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || matches!(c, ':' | '.');
        let is_end = end.len() >= END_CHARS_MIN
            && end.chars().all(plain)
            && end.chars().any(|c| c.is_ascii_digit());
        if !is_end {
            return Err(format!("{bad}; nor is it the end of a key"));
        }
        Ok(Self::Short { head: head.to_owned(), end: end.to_owned() })
    }
}

impl fmt::Display for GivenThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(key) => write!(f, "{key}"),
            Self::Short { head, end } if head.is_empty() => write!(f, "{end}"),
            Self::Short { head, end } => write!(f, "{head}{CUT}{end}"),
        }
    }
}

impl GivenThread {
    /// Reads a sandbox name as the possible end of a thread's number.
    pub fn end(name: &SandboxName) -> Option<Self> {
        let is_number = name.as_str().bytes().all(|b| b.is_ascii_digit());
        name.as_str().parse().ok().filter(|_| is_number)
    }

    fn is(&self, key: &ThreadKey) -> bool {
        match self {
            Self::Key(own) => own == key,
            Self::Short { head, end } => {
                let key = key.to_string();
                key.len() >= head.len() + end.len() && key.starts_with(head) && key.ends_with(end)
            }
        }
    }

    /// Resolves the key.
    ///
    /// # Errors
    /// No thread or several match, or the table cannot be read.
    pub async fn key(&self, stack: &Stack) -> Result<ThreadKey, CommandError> {
        if let Self::Key(key) = self {
            return Ok(key.clone());
        }
        let armed = stack.store.all_armed().await;
        let armed = armed.map_err(|e| named::unread(&e))?;
        let shared = named::all_named(stack, None).await?.listed;
        let shared = shared.into_iter().flat_map(|one| one.threads);
        let mut found = self.among(armed.into_iter().chain(shared));
        // A thread with neither sandbox nor turn is in no index.
        let mut after = None;
        let mut read = 0;
        while found.is_empty() && read < THREADS_MAX {
            let page = stack.store.page(after.as_ref(), PAGE).await;
            let page = page.map_err(|e| named::unread(&e))?;
            read += PAGE;
            let keys = page.threads.into_iter().map(|(session, _)| session.thread);
            found = self.among(keys);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        self.only(found, &stack.said)
    }

    fn among(&self, keys: impl Iterator<Item = ThreadKey>) -> BTreeSet<ThreadKey> {
        keys.filter(|key| key.is_conversation() && key.sandbox().has_thread() && self.is(key))
            .collect()
    }

    fn only(&self, found: BTreeSet<ThreadKey>, said: &str) -> Result<ThreadKey, CommandError> {
        let mut keys = found.iter();
        match (keys.next(), keys.next()) {
            (Some(one), None) => Ok(one.clone()),
            (None, _) => Err(CommandError::not_found(format!(
                "No thread is named {self}. List the threads with: bobbin {said} thread list --gone"
            ))),
            (Some(_), Some(_)) => {
                let some = found.iter().take(NAMED_MAX).map(ToString::to_string);
                Err(format!(
                    "{} threads are named {self}: give more of the key. {}",
                    found.len(),
                    some.collect::<Vec<_>>().join(", ")
                )
                .into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Vec<ThreadKey> {
        [
            "discord:1575350328751030272:1575360466639650816",
            "discord:1575350328751030272:1575359656824406016",
            "slack:T1:C1:1795666101.000200",
        ]
        .map(|key| key.parse().expect("a key"))
        .to_vec()
    }

    fn found(word: &str) -> Result<ThreadKey, String> {
        let meant: GivenThread = word.parse()?;
        let among = meant.among(keys().into_iter());
        meant.only(among, "--laptop").map_err(|e| e.message)
    }

    #[test]
    fn unique_suffix_names_a_thread() {
        for (word, at) in [
            ("discord:1575350328751030272:1575360466639650816", 0),
            ("0816", 0),
            ("…39650816", 0),
            ("discord…650816", 0),
            ("01.000200", 2),
            ("C1:1795666101.000200", 2),
        ] {
            assert_eq!(found(word), Ok(keys()[at].clone()), "{word}");
        }
        for (word, says) in [
            ("016", "nor is it the end of a key"),
            ("nonsense", "nor is it the end of a key"),
            ("9999", "No thread is named 9999."),
            ("slack…0816", "No thread is named slack…0816."),
        ] {
            let told = found(word).expect_err(word);
            assert!(told.contains(says), "{word}: {told}");
        }
    }

    #[test]
    fn ambiguous_suffix_lists_its_threads() {
        let both: BTreeSet<ThreadKey> = keys().into_iter().take(2).collect();
        let meant: GivenThread = "6016".parse().expect("an end");
        let told = meant.only(both, "--laptop").expect_err("two").message;
        assert!(
            told.starts_with("2 threads are named 6016: give more")
                && told.contains("1575360466639650816")
                && told.contains("1575359656824406016"),
            "{told}"
        );
    }
}
