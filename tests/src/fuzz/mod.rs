//! Everything that arrives from outside, with input that nobody would send: one target for each reader, each with the
//! property that it must keep for any bytes.
//!
//! Promised: a target never panics unless its property is broken; it needs no clock, network or file, so that an
//! input is a finding for ever. The suite replays every seed and a few thousand mutations of them; `tests/fuzz`
//! compiles this same module for libFuzzer. Deliberately absent: servers and clients, which the other suites drive.

mod agent_events;
mod daytona;
#[path = "../../sim/src/dice.rs"]
pub mod dice;
mod discord;
mod endpoint;
mod mutate;
mod opencode;
mod records;
mod seeds;
mod slack;
mod text;
mod verify;

pub use mutate::mutate;
pub use seeds::Seed;

use std::path::Path;

/// A reader of foreign bytes, and its promise for all of them.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name, which is also that of its corpus and of its program in `tests/fuzz`.
    pub name: &'static str,
    /// The property for any input.
    pub property: &'static str,
    check: fn(&[u8]),
    seeds: fn(&Path) -> Vec<Seed>,
}

/// Each entry point that takes bytes from outside.
pub const TARGETS: [Target; 13] = [
    Target {
        name: "discord_verifier",
        property: "accepts exactly the signature of the key over timestamp and body, within five minutes of now",
        check: verify::discord,
        seeds: seeds::signed_by_discord,
    },
    Target {
        name: "slack_verifier",
        property: "accepts exactly the MAC of the secret over timestamp and body, within five minutes of now",
        check: verify::slack,
        seeds: seeds::signed_by_slack,
    },
    Target {
        name: "discord_inbound",
        property: "unsigned does nothing; signed, every answer fits Discord and mentions nobody, and what is enqueued \
                   belongs to an allowed guild, fits the queue and is read back as it was",
        check: discord::inbound,
        seeds: seeds::discord_payloads,
    },
    Target {
        name: "slack_events",
        property: "unsigned does nothing; signed, what is enqueued belongs to an allowed team, fits the queue and is \
                   read back as it was",
        check: slack::events,
        seeds: seeds::slack_events,
    },
    Target {
        name: "slack_interactivity",
        property: "the same for clicks, shortcuts and forms, as a payload and as a raw form",
        check: slack::interactivity,
        seeds: seeds::slack_interactions,
    },
    Target {
        name: "slack_commands",
        property: "enqueues no work for an agent, and its words hold no token of Slack's",
        check: slack::commands,
        seeds: seeds::slack_commands,
    },
    Target {
        name: "opencode_events",
        property: "the same events however the stream is cut; steps and asks stay within their bounds; an event that \
                   comes twice changes nothing",
        check: opencode::events,
        seeds: seeds::opencode_events,
    },
    Target {
        name: "opencode_messages",
        property: "a list read after connecting and the list itself tell the same end of the run, within its bounds",
        check: opencode::messages,
        seeds: seeds::opencode_messages,
    },
    Target {
        name: "agent_events",
        property: "every line of any agent becomes events, the first of which has it whole; a converter that was stored \
                   converts the same; an event is read back as it was written",
        check: agent_events::any,
        seeds: seeds::agents_lines,
    },
    Target {
        name: "daytona_json",
        property: "only Daytona's own words make a sandbox running or gone; an owner is one whose labels we would \
                   write; an address keeps no token",
        check: daytona::json,
        seeds: seeds::of_corpus_only,
    },
    Target {
        name: "queue_body",
        property: "what can be read is written back and read the same, group and id included",
        check: records::body,
        seeds: seeds::queue_bodies,
    },
    Target {
        name: "session_record",
        property: "what can be read is written back and read the same; nothing merely seen is stored; a field of a \
                   newer version is ignored; a torn record is no record",
        check: records::session,
        seeds: seeds::of_corpus_only,
    },
    Target {
        name: "text_split",
        property: "parts within their bound, none blank, nothing lost, no code block left open; a text in a chat's own \
                   dialect grows within a bound",
        check: text::split,
        seeds: seeds::texts,
    },
];

impl Target {
    /// The target of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        TARGETS.iter().find(|target| target.name == name)
    }

    /// Gives it an input.
    ///
    /// # Panics
    /// When the property does not hold, or the reader itself panics: a finding.
    pub fn check(&self, input: &[u8]) {
        (self.check)(input);
    }

    /// The first inputs: the project's `events/`, recorded transcripts and documents, and the files of
    /// `tests/fuzz/corpus/<name>`, which keeps findings.
    ///
    /// # Panics
    /// When a file cannot be read, or the corpus folder holds none.
    #[must_use]
    pub fn seeds(&self, workspace: &Path) -> Vec<Seed> {
        let mut seeds = seeds::corpus(workspace, self.name);
        assert!(!seeds.is_empty(), "the corpus of {} is empty", self.name);
        seeds.extend((self.seeds)(workspace));
        seeds
    }
}
