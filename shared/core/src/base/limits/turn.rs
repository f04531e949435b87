//! A turn and its agent.

use serde::{Deserialize, Serialize};

use super::MINUTE_MS;

/// The bounds of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnLimits {
    /// A turn that runs longer is aborted and reported.
    pub turn_ms: u64,
    /// More assistant messages than this in one turn count as an endless loop: aborted and reported.
    pub turn_messages: u32,
    /// A repository must be cloned within this time.
    pub clone_ms: u64,
    /// A repository must be carried from its forge within this time, which is enough for the largest.
    pub carry_ms: u64,
    /// OpenCode must be healthy within this time after its start.
    pub health_start_ms: u64,
    /// A server that should already run must answer within this time.
    pub health_active_ms: u64,
    /// How often Bobbin sends a prompt again by itself after the server came back.
    pub resends: u32,
    /// Restarts of the server within one turn.
    pub server_restarts: u32,
}

impl TurnLimits {
    /// The design's defaults.
    pub const DEFAULT: Self = Self {
        turn_ms: 90 * MINUTE_MS,
        turn_messages: 200,
        clone_ms: 120_000,
        carry_ms: 300_000,
        health_start_ms: 120_000,
        health_active_ms: 15_000,
        resends: 1,
        server_restarts: 1,
    };
}
