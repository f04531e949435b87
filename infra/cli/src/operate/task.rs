//! Identifies a task from a terminal: its channel and its invocation id.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::str::FromStr;

use bobbin_cloud::clock::now_ms;
use bobbin_core::base::ids::Ms;

/// A channel and its platform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskChannel {
    Discord(String),
    Slack(String),
}

/// Tells the platform by the id: Discord's are numbers; Slack's begin with C or G.
pub fn channel(word: &str) -> Result<TaskChannel, String> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let upper = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit();
    if digits(word) && (15..=20).contains(&word.len()) {
        return Ok(TaskChannel::Discord(word.to_owned()));
    }
    if word.len() > 2 && word.starts_with(['C', 'G']) && word.bytes().all(upper) {
        return Ok(TaskChannel::Slack(word.to_owned()));
    }
    Err("give the id of a channel, not its name: on Discord 17 to 20 digits (Developer Mode, Copy Channel ID), on Slack C or G and more characters (at the end of the channel's details)".to_owned())
}

/// Invocation id, with its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendId {
    /// Start of the invocation (Unix milliseconds); the prompt's acceptance time.
    pub at_ms: Ms,
    chance: u32,
}

impl SendId {
    /// A new id with the current time.
    pub fn mint() -> Self {
        let chance = RandomState::new().hash_one(std::process::id());
        Self { at_ms: now_ms(), chance: (chance >> 32) as u32 }
    }
}

impl fmt::Display for SendId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "send-{}-{:08x}", self.at_ms, self.chance)
    }
}

impl FromStr for SendId {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let parsed = || {
            let (at_ms, chance) = word.strip_prefix("send-")?.split_once('-')?;
            Some(Self { at_ms: at_ms.parse().ok()?, chance: u32::from_str_radix(chance, 16).ok()? })
        };
        let same = parsed().filter(|id| id.to_string() == word);
        same.ok_or_else(|| "give the id that an earlier send has shown: send-…".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channel_id_decides_the_chat() {
        let discord = TaskChannel::Discord("123456789012345678".to_owned());
        assert_eq!(channel("123456789012345678"), Ok(discord));
        assert_eq!(channel("C0BUILD0001"), Ok(TaskChannel::Slack("C0BUILD0001".to_owned())));
        for wrong in ["", "#general", "general", "C", "c0build0001", "12", "D0123ABC"] {
            let told = channel(wrong).expect_err(wrong);
            assert!(told.contains("Copy Channel ID"), "{told}");
        }
    }

    #[test]
    fn send_ids_are_unique_and_parseable() {
        let (one, other) = (SendId::mint(), SendId::mint());
        assert_ne!(one, other);
        assert_eq!(one.to_string().parse(), Ok(one.clone()));
        for wrong in
            ["send-1", "send-x-00000001", "send-1-1", "pause-1-00000001", "send-1-+0000001"]
        {
            assert!(wrong.parse::<SendId>().is_err(), "{wrong}");
        }
    }
}
