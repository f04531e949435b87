//! Names that make effects repeatable: thread keys, sandbox names, prompt ids, post nonces.
//!
//! Every name is a pure function of what it names, so that a repeat after a crash finds the first attempt.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Milliseconds since the Unix epoch.
pub type Ms = u64;

/// Declares an id type: equal text in two id types does not make them the same id.
macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// The text, as the platform or the agent writes it.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                self.0 == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                self.0 == *other
            }
        }

        impl PartialEq<String> for $name {
            fn eq(&self, other: &String) -> bool {
                self.0 == *other
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id! {
    /// A message in a thread's group, and so the turn that a prompt begins: the platform's own id of a person's action,
    /// or one made from it. It is the deduplication id at the queue.
    TurnId
}

id! {
    /// A question or permission request, by the agent's id.
    AskId
}

id! {
    /// An agent session, by the agent's id.
    AgentSessionId
}

/// The unit of isolation, policy and quota: `discord:<guild>` or `slack:<team>`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tenant(String);

impl Tenant {
    /// The tenant of a Discord guild (snowflake).
    #[must_use]
    pub fn discord(guild: &str) -> Self {
        Self(format!("discord:{guild}"))
    }

    /// The tenant of a Slack team (`T…`) or of an organisation-wide installation (`E…`).
    #[must_use]
    pub fn slack(team: &str) -> Self {
        Self(format!("slack:{team}"))
    }

    /// The form that is stored, and that people write.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A tenant that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a tenant: {0:?}; expected discord:<guild> or slack:<team>")]
pub struct BadTenant(String);

impl FromStr for Tenant {
    type Err = BadTenant;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(':') {
            Some(("discord", guild)) if is_plain(guild) => Ok(Self::discord(guild)),
            Some(("slack", team)) if is_plain(team) => Ok(Self::slack(team)),
            _ => Err(BadTenant(text.to_owned())),
        }
    }
}

impl From<Tenant> for String {
    fn from(tenant: Tenant) -> Self {
        tenant.0
    }
}

impl fmt::Display for Tenant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A conversation: the unit of order (message group), of a session and of a sandbox.
///
/// Written `discord:<guild>:<thread>`, `slack:<team>:<channel>:<root ts>` or `slack:<team>:dm:<user>`. The constructor
/// requires the tenant, so that no key can be built without saying whose data it names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum ThreadKey {
    /// A Discord thread of a guild.
    Discord {
        /// The guild's id, a snowflake.
        guild: String,
        /// Thread id (snowflake), equal to the id of the message that it is attached to.
        thread: String,
    },
    /// A Slack thread of a team's channel or direct message.
    Slack {
        /// Team id (`T…`) or, for an organisation-wide installation, enterprise id (`E…`).
        team: String,
        /// Channel id (`C…`, `G…` or `D…`).
        channel: String,
        /// `ts` of the thread's root message.
        root_ts: String,
    },
    /// All direct messages of a person in Slack, if the workspace wants them to be one thread. Its posts are in the
    /// direct messages themselves, under no message.
    SlackDirect {
        /// Team id (`T…`) or, for an organisation-wide installation, enterprise id (`E…`).
        team: String,
        /// The person's id (`U…` or `W…`).
        user: String,
    },
    /// Not a conversation: the group for a sandbox's life cycle, so that it waits behind nobody's turn.
    Sandbox(SandboxKey),
}

/// Prefix of a sandbox's group, before the sandbox's key.
const SANDBOX_GROUP: &str = "sandbox:";
/// In place of a Slack channel id, in the key of a sandbox that no thread was the first of.
const NO_CHANNEL: &str = "sandbox";
/// Hexadecimal digits that distinguish such a sandbox from others of its tenant.
const SANDBOX_DIGITS: usize = 16;

/// In place of a Slack channel id, in the key of direct messages. No Slack channel has this id, because their ids are
/// capitals and digits.
const DIRECT: &str = "dm";

/// Longest written key of a thread: with the prefix of its sandbox's group it is a message group, for which SQS allows
/// 128 characters.
const THREAD_KEY_CHARS_MAX: usize = 128 - SANDBOX_GROUP.len();

/// A thread key that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a thread key: {0:?}; expected discord:<guild>:<thread>, slack:<team>:<channel>:<ts> or slack:<team>:dm:<user>"
)]
pub struct BadThreadKey(String);

impl ThreadKey {
    /// The key of a Discord thread. Refuses parts that are empty or hold a separator.
    ///
    /// # Errors
    /// [`BadThreadKey`] when a part is not a plain id.
    pub fn discord(guild: &str, thread: &str) -> Result<Self, BadThreadKey> {
        format!("discord:{guild}:{thread}").parse()
    }

    /// The key of a Slack thread. Refuses parts that are empty or hold a separator.
    ///
    /// # Errors
    /// [`BadThreadKey`] when a part is not a plain id.
    pub fn slack(team: &str, channel: &str, root_ts: &str) -> Result<Self, BadThreadKey> {
        format!("slack:{team}:{channel}:{root_ts}").parse()
    }

    /// The key of all direct messages of a person in Slack. Refuses parts that are empty or hold a separator.
    ///
    /// # Errors
    /// [`BadThreadKey`] when a part is not a plain id.
    pub fn slack_direct(team: &str, user: &str) -> Result<Self, BadThreadKey> {
        Self::slack(team, DIRECT, user)
    }

    /// The sandbox created for the thread.
    #[must_use]
    pub fn sandbox(&self) -> SandboxKey {
        match self {
            Self::Sandbox(key) => key.clone(),
            thread => SandboxKey(Box::new(thread.clone())),
        }
    }

    /// The tenant that the thread belongs to: `discord:<guild>` or `slack:<team>`.
    #[must_use]
    pub fn tenant(&self) -> Tenant {
        match self {
            Self::Discord { guild, .. } => Tenant::discord(guild),
            Self::Slack { team, .. } | Self::SlackDirect { team, .. } => Tenant::slack(team),
            Self::Sandbox(key) => key.tenant(),
        }
    }

    /// A channel as a reference that the chat shows by name, if it has such references; mentions nobody.
    #[must_use]
    pub fn channel_shown(&self, id: &str) -> Option<String> {
        matches!(self, Self::Discord { .. }).then(|| format!("<#{id}>"))
    }

    /// The thread as a reference that the chat shows by name, if it has such references; mentions nobody.
    #[must_use]
    pub fn shown(&self) -> Option<String> {
        match self {
            Self::Discord { thread, .. } => self.channel_shown(thread),
            _ => None,
        }
    }

    /// Whether people talk in it: a sandbox's group has neither turns nor a thread record.
    #[must_use]
    pub const fn is_conversation(&self) -> bool {
        !matches!(self, Self::Sandbox(_))
    }

    /// Twelve hex digits that stand for the thread in names that the provider sees.
    #[must_use]
    pub fn short_hash(&self) -> String {
        digest(&["thread", &self.to_string()])[..12].to_owned()
    }

    /// The shard (0..16) of the due index that holds the thread.
    #[must_use]
    pub fn due_shard(&self) -> u8 {
        let digits = digest(&["shard", &self.to_string()]);
        u8::from_str_radix(&digits[..1], 16).expect("a hex digit is below 16")
    }
}

/// Whether this can be part of a key: letters, digits, dots and hyphens, at most 64.
fn is_plain(part: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'.' || b == b'-';
    !part.is_empty() && part.len() <= 64 && part.bytes().all(plain)
}

impl fmt::Display for ThreadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Discord { guild, thread } => write!(f, "discord:{guild}:{thread}"),
            Self::Slack { team, channel, root_ts } => write!(f, "slack:{team}:{channel}:{root_ts}"),
            Self::SlackDirect { team, user } => write!(f, "slack:{team}:{DIRECT}:{user}"),
            Self::Sandbox(key) => write!(f, "{SANDBOX_GROUP}{key}"),
        }
    }
}

impl FromStr for ThreadKey {
    type Err = BadThreadKey;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        if let Some(key) = s.strip_prefix(SANDBOX_GROUP) {
            let key = key.parse::<SandboxKey>();
            return key.map(Self::Sandbox).map_err(|_| BadThreadKey(s.to_owned()));
        }
        let parts: Vec<&str> = s.split(':').collect();
        if s.len() > THREAD_KEY_CHARS_MAX || !parts.iter().all(|part| is_plain(part)) {
            return Err(BadThreadKey(s.to_owned()));
        }
        match parts[..] {
            ["discord", guild, thread] => {
                Ok(Self::Discord { guild: guild.to_owned(), thread: thread.to_owned() })
            }
            ["slack", team, DIRECT, user] => {
                Ok(Self::SlackDirect { team: team.to_owned(), user: user.to_owned() })
            }
            ["slack", team, channel, root_ts] => Ok(Self::Slack {
                team: team.to_owned(),
                channel: channel.to_owned(),
                root_ts: root_ts.to_owned(),
            }),
            _ => Err(BadThreadKey(s.to_owned())),
        }
    }
}

impl From<ThreadKey> for String {
    fn from(key: ThreadKey) -> Self {
        key.to_string()
    }
}

impl TryFrom<String> for ThreadKey {
    type Error = BadThreadKey;

    fn try_from(s: String) -> Result<Self, Self::Error> {
        s.parse()
    }
}

/// Key of a sandbox: its name at the provider, its labels and its password follow from this, whatever name people give
/// it.
///
/// The key of a thread's own sandbox is written like the thread. A sandbox created without a thread has the form of a
/// thread of its tenant that no platform has.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct SandboxKey(Box<ThreadKey>);

impl SandboxKey {
    /// The key of a sandbox without a thread, made from the request (a message's id), so that a repeated request means
    /// the same sandbox.
    #[must_use]
    pub fn without_thread(tenant: &Tenant, asked_by: &TurnId) -> Self {
        let id = &digest(&["sandbox", tenant.as_str(), asked_by])[..SANDBOX_DIGITS];
        let of = match tenant.as_str().split_once(':') {
            Some(("slack", team)) => ThreadKey::Slack {
                team: team.to_owned(),
                channel: NO_CHANNEL.to_owned(),
                root_ts: id.to_owned(),
            },
            Some((_, guild)) => {
                ThreadKey::Discord { guild: guild.to_owned(), thread: format!("{NO_CHANNEL}-{id}") }
            }
            None => {
                ThreadKey::Discord { guild: String::new(), thread: format!("{NO_CHANNEL}-{id}") }
            }
        };
        Self(Box::new(of))
    }

    /// Whether it was created for a thread.
    #[must_use]
    pub fn has_thread(&self) -> bool {
        match &*self.0 {
            ThreadKey::Discord { thread, .. } => !thread.starts_with(NO_CHANNEL),
            ThreadKey::Slack { channel, .. } => channel != NO_CHANNEL,
            ThreadKey::SlackDirect { .. } => true,
            ThreadKey::Sandbox(_) => false,
        }
    }

    /// The group for its life cycle.
    #[must_use]
    pub fn group(&self) -> ThreadKey {
        ThreadKey::Sandbox(self.clone())
    }

    /// The tenant that it belongs to.
    #[must_use]
    pub fn tenant(&self) -> Tenant {
        self.0.tenant()
    }

    /// The shard (0..16) of the due index that holds it.
    #[must_use]
    pub fn due_shard(&self) -> u8 {
        self.0.due_shard()
    }

    /// The thread that it was created for.
    #[must_use]
    pub fn thread(&self) -> &ThreadKey {
        &self.0
    }
}

impl From<SandboxKey> for String {
    fn from(key: SandboxKey) -> Self {
        key.to_string()
    }
}

impl TryFrom<String> for SandboxKey {
    type Error = BadThreadKey;

    fn try_from(s: String) -> Result<Self, Self::Error> {
        s.parse()
    }
}

/// Name of a sandbox that people of a tenant share: 1 to 40 of `a-z`, `0-9` and `-`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct SandboxName(String);

/// Characters of a sandbox's name.
const SANDBOX_NAME_CHARS_MAX: usize = 40;

/// An invalid sandbox name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} cannot be the name of a sandbox: use 1 to 40 characters of a-z, 0-9 and -, for example frontend-2"
)]
pub struct BadSandboxName(String);

impl SandboxName {
    /// The form that is stored and typed.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SandboxName {
    type Err = BadSandboxName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        if text.is_empty() || text.len() > SANDBOX_NAME_CHARS_MAX || !text.bytes().all(plain) {
            let shown: String = text.chars().take(SANDBOX_NAME_CHARS_MAX).collect();
            return Err(BadSandboxName(shown));
        }
        Ok(Self(text.to_owned()))
    }
}

impl From<SandboxName> for String {
    fn from(name: SandboxName) -> Self {
        name.0
    }
}

impl TryFrom<String> for SandboxName {
    type Error = BadSandboxName;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl fmt::Display for SandboxName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for SandboxKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for SandboxKey {
    type Err = BadThreadKey;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        match s.parse()? {
            // A sandbox's group has no group of its own.
            ThreadKey::Sandbox(_) => Err(BadThreadKey(s.to_owned())),
            thread => Ok(Self(Box::new(thread))),
        }
    }
}

/// Hexadecimal digits of a secret's version.
const VERSION_DIGITS: usize = 16;

/// The name of a sandbox in one generation: `bobbin-<stack>-<hash(key)>-g<generation>`.
///
/// Unique per Daytona organisation (reference: create answers 409 for a taken name, and that means "adopt").
#[must_use]
pub fn sandbox_name(stack: &str, key: &SandboxKey, generation: u32) -> String {
    format!("bobbin-{stack}-{}-g{generation}", key.0.short_hash())
}

/// The name of a thread's wake-up within its stack's group of schedules: `idle-<hash(thread)>`, so that a later wake-up
/// replaces an earlier one.
#[must_use]
pub fn wake_name(thread: &ThreadKey) -> String {
    format!("idle-{}", thread.short_hash())
}

/// The id of the message that a wake-up sends. Different for every time, because the queue drops a second body with the
/// same content within five minutes.
#[must_use]
pub fn wake_message_id(thread: &ThreadKey, at_ms: Ms) -> String {
    format!("wake-{}-{at_ms}", thread.short_hash())
}

/// The password of a sandbox's OpenCode server: derived, so that nothing needs to be stored.
#[must_use]
pub fn sandbox_password(stack_key: &str, sandbox_name: &str) -> String {
    use hmac::{Hmac, KeyInit, Mac};
    let mut mac = Hmac::<Sha256>::new_from_slice(stack_key.as_bytes())
        .expect("HMAC takes a key of any length");
    mac.update(sandbox_name.as_bytes());
    hex::encode(mac.finalize().into_bytes())
}

/// Version of a secret's value: it differs for another value, or another stack's key. The value cannot be derived from
/// it, because nobody else has the stack's key.
#[must_use]
pub fn secret_version(stack_key: &str, variable: &str, value: &str) -> String {
    let digits = digest(&["secret-version", stack_key, variable, value]);
    format!("Made and renewed by Bobbin: {}", &digits[..VERSION_DIGITS])
}

/// The ids of a prompt at OpenCode, minted once when the intent is saved.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PromptIds {
    /// The message's id, `msg_…`.
    pub message: String,
    /// Prefix of the part ids (`prt_…`); a part's index is appended.
    pub part: String,
}

impl PromptIds {
    /// Mints ids in OpenCode's ascending format (48 bits of time × 4096, then 14 characters): older versions order
    /// messages by id. The tail names tenant, thread and turn, because an id that is used again in another session
    /// overwrites the first (measured on 1.18.33).
    #[must_use]
    pub fn mint(thread: &ThreadKey, turn: &TurnId, now_ms: Ms) -> Self {
        let time = format!("{:012x}", (now_ms.wrapping_mul(0x1000)) & 0xffff_ffff_ffff);
        let tail = &digest(&["prompt", &thread.to_string(), turn])[..14];
        Self { message: format!("msg_{time}{tail}"), part: format!("prt_{time}{tail}") }
    }

    /// The id of the part with this index.
    #[must_use]
    pub fn part(&self, index: usize) -> String {
        format!("{}p{index}", self.part)
    }
}

/// Reference to a post, for editing it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PostRef {
    /// Channel (Slack) or thread (Discord) id.
    pub channel: String,
    /// Message id (Discord) or `ts` (Slack).
    pub id: String,
}

/// The purpose of a post; together with the turn it names the post, so that it is never made twice.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PostKind {
    /// The living progress card.
    Card,
    /// The card that replaced it when it had become too old to be edited, counted from 1.
    Rolled(u32),
    /// The line that mentions the requesters, if a turn ended without an answer.
    Call,
    /// One part of the answer, counted from 0.
    Chunk(u32),
    /// The question or permission request with this id.
    Ask(AskId),
    /// A short notice about the session (reset, sandbox deleted).
    Notice,
    /// What people are told before the agent has the prompt, named by its words: one turn may tell them several things.
    Told(String),
    /// A file that the agent left to be shown, counted from 0.
    Artifact(u32),
    /// The list of files that could not be shown.
    Unshown,
    /// The turn's file changes, as a file.
    Diff,
    /// What a pull request would publish.
    Review,
    /// The agent's review of a pull request.
    PullReview,
    /// The whole text of that, as a file.
    PullReviewText,
    /// The card of the thread's pull request.
    PullRequest,
    /// That the pull request has ended.
    PullRequestEnd,
    /// That somebody asked for a task below the pull request.
    PullRequestTask,
}

/// The name of a post: 24 hex digits (Discord's nonce has room for 25 characters; Slack carries it as metadata).
#[must_use]
pub fn post_key(thread: &ThreadKey, turn: &TurnId, kind: &PostKind) -> String {
    let kind = match kind {
        PostKind::Card => "card".to_owned(),
        PostKind::Rolled(n) => format!("card-{n}"),
        PostKind::Call => "call".to_owned(),
        PostKind::Chunk(n) => format!("chunk-{n}"),
        PostKind::Ask(id) => format!("ask-{id}"),
        PostKind::Notice => "notice".to_owned(),
        PostKind::Told(name) => format!("told-{name}"),
        PostKind::Artifact(n) => format!("artifact-{n}"),
        PostKind::Unshown => "unshown".to_owned(),
        PostKind::Diff => "diff".to_owned(),
        PostKind::Review => "review".to_owned(),
        PostKind::PullReview => "pull-review".to_owned(),
        PostKind::PullReviewText => "pull-review-text".to_owned(),
        PostKind::PullRequest => "pull-request".to_owned(),
        PostKind::PullRequestEnd => "pull-request-end".to_owned(),
        PostKind::PullRequestTask => "pull-request-task".to_owned(),
    };
    digest(&["post", &thread.to_string(), turn, &kind])[..24].to_owned()
}

/// SHA-256 over the parts, each preceded by its length, as hex.
#[must_use]
pub fn digest(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hex::encode(hash.finalize())
}

/// Digits of a [`short_name`]: it has room in a button's id.
const NAME_DIGITS: usize = 24;

/// A name made of these.
#[must_use]
pub fn short_name(parts: &[&str]) -> String {
    digest(parts)[..NAME_DIGITS].to_owned()
}

/// Whether it can be a [`short_name`].
#[must_use]
pub fn is_short_name(name: &str) -> bool {
    name.len() == NAME_DIGITS && name.bytes().all(|b| b.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_version_detects_changed_value() {
        let of = |value: &str| secret_version("stack-key", "OPENAI_API_KEY", value);
        assert_eq!(of("sk-one"), of("sk-one"));
        assert_ne!(of("sk-one"), of("sk-two"));
        assert_ne!(of("sk-one"), secret_version("another", "OPENAI_API_KEY", "sk-one"));
        assert!(!of("sk-one").contains("sk-one"));
    }

    #[test]
    fn thread_key_round_trips_with_tenant() {
        for text in [
            "discord:41771983423143937:1182",
            "slack:T0123:C045:1700000000.000100",
            "slack:T0123:dm:U045",
        ] {
            let key: ThreadKey = text.parse().expect("valid");
            assert_eq!(key.to_string(), text);
            assert!(text.starts_with(key.tenant().as_str()));
        }
    }

    #[test]
    fn every_sandbox_has_its_own_group() {
        let thread = ThreadKey::discord("1", "2").expect("valid");
        let group = thread.sandbox().group();
        assert_eq!(group.to_string(), "sandbox:discord:1:2");
        assert_eq!(group.to_string().parse(), Ok(group.clone()));
        assert_eq!(
            (group.sandbox(), group.tenant(), group.is_conversation()),
            (thread.sandbox(), thread.tenant(), false)
        );
        assert!("sandbox:sandbox:discord:1:2".parse::<ThreadKey>().is_err());
        for tenant in [Tenant::discord("1"), Tenant::slack("T1")] {
            let key = SandboxKey::without_thread(&tenant, &"m1".into());
            assert_eq!(key, SandboxKey::without_thread(&tenant, &"m1".into()));
            assert_ne!(key, SandboxKey::without_thread(&tenant, &"m2".into()));
            assert_eq!(key.tenant(), tenant);
            assert_eq!(key.to_string().parse(), Ok(key.clone()));
            assert_eq!(key.group().to_string().parse(), Ok(key.group()));
        }
    }

    #[test]
    fn bad_sandbox_name_refusal_shows_format() {
        assert!("frontend-2".parse::<SandboxName>().is_ok());
        for bad in ["", "Frontend", "a b", "ä", &"a".repeat(41)] {
            assert!(bad.parse::<SandboxName>().is_err(), "{bad:?}");
        }
        let refused = "My App".parse::<SandboxName>().expect_err("capitals");
        assert_eq!(
            refused.to_string(),
            "\"My App\" cannot be the name of a sandbox: use 1 to 40 characters of a-z, 0-9 and -, for example frontend-2"
        );
    }

    #[test]
    fn only_valid_tenants_parse() {
        for text in ["discord:41771983423143937", "slack:T0123"] {
            assert_eq!(text.parse::<Tenant>().expect("valid").as_str(), text);
        }
        for text in ["T0123", "slack:", "slack:T1:C1", "teams:1", "slack:T 1"] {
            let refused = text.parse::<Tenant>().expect_err("no tenant").to_string();
            assert!(refused.ends_with("expected discord:<guild> or slack:<team>"));
        }
    }

    #[test]
    fn each_person_has_one_direct_thread() {
        let of = |user| ThreadKey::slack_direct("T1", user).expect("valid");
        let expected = ThreadKey::SlackDirect { team: "T1".to_owned(), user: "U1".to_owned() };
        assert_eq!(of("U1"), expected);
        assert_eq!(of("U1").to_string().parse(), Ok(expected));
        let name = |user| sandbox_name("dev", &of(user).sandbox(), 1);
        assert_ne!(name("U1"), name("U2"));
        for bad in ["", "U1:x", "U 1"] {
            assert!(ThreadKey::slack_direct("T1", bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn key_with_smuggled_separator_is_refused() {
        assert!(ThreadKey::discord("1:2", "3").is_err());
        assert!(ThreadKey::slack("T1", "", "1.2").is_err());
        assert!(ThreadKey::slack("T1", "C1 ", "1.2").is_err());
    }

    #[test]
    fn overlong_thread_key_is_refused() {
        let channel = |length| ThreadKey::slack("T1", &"C".repeat(length), &"1".repeat(60));
        let longest = channel(120 - 70).expect("it fits");
        assert_eq!(longest.sandbox().group().to_string().len(), 128);
        assert!(channel(120 - 69).is_err());
    }

    #[test]
    fn names_are_distinct_and_fit_platforms() {
        let a = ThreadKey::discord("1", "2").expect("valid");
        let b = ThreadKey::discord("1", "3").expect("valid");
        assert_ne!(sandbox_name("dev", &a.sandbox(), 1), sandbox_name("dev", &b.sandbox(), 1));
        assert_ne!(sandbox_name("dev", &a.sandbox(), 1), sandbox_name("dev", &a.sandbox(), 2));
        let nonce = post_key(&a, &"t".into(), &PostKind::Chunk(0));
        assert!(nonce.len() <= 25);
        assert_ne!(nonce, post_key(&a, &"t".into(), &PostKind::Chunk(1)));
    }

    #[test]
    fn thread_has_one_named_wake_up() {
        let a = ThreadKey::discord("1", "2").expect("valid");
        let b = ThreadKey::slack("T1", "C1", "1700000000.000100").expect("valid");
        assert_eq!(wake_name(&a), wake_name(&a.clone()));
        assert_ne!(wake_name(&a), wake_name(&b));
        for name in [wake_name(&a), wake_name(&b)] {
            // The characters that EventBridge Scheduler accepts in a name.
            let fits = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
            assert!(name.len() <= 64 && name.bytes().all(fits), "{name}");
        }
        assert_ne!(wake_message_id(&a, 1), wake_message_id(&a, 2));
        assert_ne!(wake_message_id(&a, 1), wake_message_id(&b, 1));
    }

    #[test]
    fn prompt_ids_ascend_and_are_distinct() {
        let a = ThreadKey::discord("1", "2").expect("valid");
        let b = ThreadKey::discord("1", "3").expect("valid");
        let first = PromptIds::mint(&a, &"t1".into(), 1_795_294_965_124);
        let second = PromptIds::mint(&a, &"t2".into(), 1_795_294_965_125);
        assert!(first.message < second.message);
        assert!(first.message.starts_with("msg_") && first.part(0).starts_with("prt_"));
        assert_ne!(first, PromptIds::mint(&b, &"t1".into(), 1_795_294_965_124));
    }
}
