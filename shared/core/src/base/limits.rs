//! Every bound of the product, in one place, with its unit in its name.

use serde::{Deserialize, Serialize};

use crate::base::ids::Ms;

/// The bounds; each can be set by `limits` of the template's parameter `Overrides` (a JSON object of these names).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// An active sandbox without a turn for this long is paused.
    pub idle_pause_ms: u64,
    /// How much later than due the sweeper may find an idle sandbox before it counts as stale.
    pub stale_grace_ms: u64,
    /// A paused sandbox is destroyed after this long.
    pub paused_ttl_ms: u64,
    /// A sandbox must run within this time after it was asked for.
    pub create_ms: u64,
    /// The same after a start of a stopped one.
    pub start_ms: u64,
    /// A repository must be cloned within this time.
    pub clone_ms: u64,
    /// OpenCode must be healthy within this time after its start.
    pub health_start_ms: u64,
    /// A server that should already run must answer within this time.
    pub health_active_ms: u64,
    /// Between two looks at a sandbox or a run.
    pub poll_ms: u64,
    /// A stop or delete must have taken effect within this time.
    pub stop_ms: u64,
    /// One lifecycle call at the provider takes no longer than this.
    pub lifecycle_call_ms: u64,
    /// A turn that runs longer is aborted and reported.
    pub turn_ms: u64,
    /// More assistant messages in one turn than this is a loop without end: aborted and reported.
    pub turn_messages: u32,
    /// A delivery follows a run until this long after its prompt was sent; from then on one looks at it now and then, and
    /// nobody holds it in between. At its largest ([`HOLD_MS_MAX`]) every delivery follows for so long, and none only looks.
    pub hold_ms: u64,
    /// Shortest time between two looks at a run that nobody holds. It grows with the turn's age.
    pub look_ms_min: u64,
    /// Longest time between two such looks.
    pub look_ms_max: u64,
    /// Visibility that a worker asks for; a crash costs the thread this long.
    pub visibility_ms: u64,
    /// The visibility is renewed this often.
    pub heartbeat_ms: u64,
    /// Deliveries of one message that may fail before its turn is reported as failed.
    pub attempts: u32,
    /// First delay of a message that is given back; doubled each time.
    pub backoff_ms: u64,
    /// Longest delay of a message that is given back.
    pub backoff_ms_max: u64,
    /// First delay of a message that only a newer worker can read, or whose record only that one can; doubled each time.
    pub newer_ms: u64,
    /// The longest of those delays.
    pub newer_ms_max: u64,
    /// Prompts that are sent again by ourselves after the server came back.
    pub resends: u32,
    /// Restarts of the server within one turn.
    pub server_restarts: u32,
    /// Longest delay of a message that is given back for an outage of the table or the chat.
    pub outage_backoff_ms_max: u64,
    /// A provider that does not answer at all is waited for this long before a turn is reported as failed that the agent
    /// has not been given; one that it has been given waits as long as a turn may take.
    pub outage_ms: u64,
    /// The chat is waited for this long: to tell the end of a turn (the provider too, where the answer is still to be read),
    /// before the record alone says how it ended, and to open a task's thread.
    pub telling_ms: u64,
    /// A word of the control lane is tried for this long, before who said it is told that nothing came of it.
    pub control_ms: u64,
    /// That nothing came of something that somebody said is tried to be told for this long.
    pub owed_ms: u64,
    /// Times that the chat may ask to wait before it is told the end of a turn.
    pub refusals: u32,
    /// Times that a thread may be found closed, when it is told the end of a turn, before the end is kept for later.
    pub closed_tries: u32,
    /// Bytes of what is kept in a record because its thread could not be told; the oldest makes room.
    pub untold_bytes: usize,
    /// Sandboxes that one tenant may have; 0 is no bound.
    pub tenant_sandboxes: u32,
    /// Prompts that may wait in one thread.
    pub thread_queue: usize,
    /// How often the sweeper looks for records whose sandbox the provider does not list.
    pub reconcile_ms: u64,
    /// How long the ledger keeps a turn.
    pub ledger_ms: u64,
    /// Ended turns remembered in the session for deduplication.
    pub ended_turns: usize,
    /// Entries of the timeline kept in the session.
    pub timeline: usize,
    /// A question or permission without an answer for this long counts as no.
    pub ask_ms: u64,
    /// Between two edits of the card.
    pub card_edit_ms: u64,
    /// A card that is older is followed by a new one: Discord caps edits of messages older than an hour (30046).
    pub card_roll_ms: u64,
    /// Waiting prompts that may be sent into one running turn.
    pub steers: usize,
    /// Bytes (as JSON) of a waiting prompt that is kept beside the record, so that it can be sent at once.
    pub steer_bytes: usize,
    /// The same for all waiting prompts of a thread together: the table's item holds 400 KB.
    pub queued_bytes: usize,
    /// Characters of a prompt.
    pub prompt_chars: usize,
    /// Characters of an answer that are posted as messages; what is longer is posted as a file.
    pub answer_chars: usize,
    /// Attachments of one prompt.
    pub attachments: usize,
    /// Bytes of one attachment.
    pub attachment_bytes: u64,
    /// Images of one prompt that go to the model as images.
    pub prompt_images: usize,
    /// Bytes of those images together: they stay in the agent's history, which is read again and again.
    pub prompt_images_bytes: u64,
    /// Files of one turn that are shown in the thread.
    pub artifacts: usize,
    /// Bytes of one of them; Discord takes 10 MiB.
    pub artifact_bytes: u64,
    /// Bytes of all of one turn together.
    pub artifacts_bytes: u64,
    /// Files whose showing is remembered in the session, so that each is shown once.
    pub artifacts_known: usize,
    /// Bytes of a turn's patch that the ledger keeps: an item of the table holds 400 KB.
    pub patch_bytes: usize,
    /// Daytona's own auto-stop, the last net (minutes).
    pub auto_stop_min: u32,
    /// Daytona's own lifetime of a sandbox in any state, the last net (minutes).
    pub auto_destroy_min: u32,
    /// Outages of a provider, seen by any thread within `breaker_window_ms`, after which it is left alone.
    pub breaker_failures: u32,
    /// Outages that lie further apart than this do not add up.
    pub breaker_window_ms: u64,
    /// For how long a provider is left alone at first; doubled each time that a probe fails.
    pub breaker_open_ms: u64,
    /// The longest time that a provider is left alone before the next probe.
    pub breaker_open_ms_max: u64,
    /// A probe that has not said how it ended within this time is lost, and the next caller probes.
    pub breaker_probe_ms: u64,
    /// How old the state of a breaker that a process goes by may be.
    pub breaker_cache_ms: u64,
    /// A sandbox that was not found is looked for once more after this (milliseconds), before that is believed.
    pub gone_apart_ms: u64,
    /// A sandbox that was made may not be found for so long (milliseconds): it is on its way.
    pub appear_ms: u64,
    /// A new sandbox has so long (milliseconds) until the provider puts its secrets into its requests, where it keeps them.
    pub put_in_ms: u64,
    /// A sandbox that its record gave up as vanished, and that is seen alive beside its next generation, is kept for so long
    /// (milliseconds): its files may be wanted.
    pub vanished_grace_ms: u64,
    /// How old the copy of a secret that a process goes by may be when an invocation starts; and how often at most a
    /// signature that does not match has the secret read again.
    pub secrets_ms: u64,
    /// A switch of whether a person's direct messages are one thread counts for messages that are sent this much later: by
    /// then it is stored, whatever its write takes and by however much the clocks of chat and functions differ.
    pub direct_switch_ms: u64,
    /// A paused sandbox that has a name is deleted after this.
    pub named_ttl_ms: u64,
    /// A prompt waits for the common checkout of a shared sandbox no longer than this.
    pub workspace_wait_ms: u64,
    /// Who wants a sandbox stopped or deleted waits for the turns in it no longer than this, once they were told to end.
    pub busy_ms: u64,
    /// Making a workspace of a thread's own takes no longer than this.
    pub workspace_ms: u64,
    /// Making a snapshot takes no longer than this.
    pub snapshot_ms: u64,
    /// Snapshots of a sandbox that are kept: the oldest makes room for the next.
    pub snapshots: usize,
    /// Threads that may share a sandbox.
    pub sandbox_threads: usize,
    /// How long a link works by which a key of a tenant's own is entered.
    pub setup_link_ms: u64,
}

/// Messages that a FIFO queue can have in flight; beyond it hands out none, and says nothing. A running turn is one of them,
/// also while its message waits invisibly for the next look: so many turns can run in a stack at the same time.
pub const IN_FLIGHT_MAX: u64 = 120_000;

const MINUTE_MS: u64 = 60_000;
/// How long what was asked on Discord can be answered by its token (15 minutes, as Discord documents it), less a margin.
pub const REPLY_TOKEN_MS: u64 = 14 * MINUTE_MS;
/// Deliveries after which the queue of messages gives one up: `maxReceiveCount` of `template.yaml`. SQS takes no more.
pub const DELIVERIES_MAX: u32 = 1_000;
/// The same of the control queue, whose messages never look at a run.
pub const CONTROL_DELIVERIES_MAX: u32 = 150;
/// The longest that one delivery follows a run: a function has 15 minutes.
pub const HOLD_MS_MAX: u64 = 13 * MINUTE_MS;
/// A delivery that is not the first one of its message goes by secrets that may be so many times older than `secrets_ms`: it
/// is a look at a run, or tries again.
pub const SECRETS_AGES: u64 = 5;
/// Between two looks lies this part of the turn's age, within their bounds: who waits long waits little longer.
const LOOK_SHARE: u64 = 12;
/// Deliveries of one message in which looks come quickly, and are brought forward by whoever wants one. Beyond them they
/// come every `look_ms_max` alone, so that no crowd of wishes and no series of asks uses up what the queue allows.
pub const LOOKS_EAGER: u32 = 400;
/// The part of those that the daemon in a sandbox can bring forward: a turn of the longest looks at itself less often, and
/// people's wishes have the rest.
pub const LOOKS_NUDGED: u32 = 300;
/// Looks that a daemon brings forward come no sooner than this after the one before, however often it asks: so long who gave
/// the message back may still be about it, and so fast may what runs in a sandbox use up looks.
pub const NUDGE_APART_MS: u64 = 1_000;
/// Who holds a run looks this often whether work waits for which nobody has room.
pub const OTHERS_MS: u64 = 10_000;
/// What waits for less than this comes about as soon by itself.
pub const LOOK_SOON_MS: u64 = 500;
/// In an outage a message is tried again after this part of its age at the latest: its deliveries say little, because most
/// of them may have been looks.
const AGE_SHARE: u64 = 20;
/// Deliveries whose delay in an outage grows to `backoff_ms_max` at most: what only stumbles is not waited for long.
const OUTAGE_QUICK: u32 = 20;
/// Deliveries in an outage until its delay has grown to the longest: each is a fifth longer than the one before.
const OUTAGE_DELAYS_GROWING: u64 = 60;
/// Beyond those the delay doubles in so many deliveries: who waits out an outage waits a fifth longer than it lasts.
const OUTAGE_DOUBLING: u32 = 4;
/// An outage of a weekend, Friday evening to Tuesday morning: nothing that was accepted is given up for less.
const WEEKEND_MS: u64 = 80 * 60 * MINUTE_MS;
/// A sweep that the queue has taken is not said again for so long: until then it is done, or an outage longer than any keeps it, or
/// it was lost with its queue.
pub const SWEEP_OUT_MS: u64 = WEEKEND_MS;
/// The sweeper tries again after this to send a sweep of which it does not know whether the queue has it: soon enough for the
/// queue to know it by its id.
pub const SWEEP_UNSENT_MS: u64 = 2 * MINUTE_MS;
/// Rolling more often than this would only be noise.
const MIN_CARD_ROLL_MS: u64 = 1_000;
/// Reading secrets more often would let whoever sends bad signatures have it done for each.
const MIN_SECRETS_MS: u64 = 1_000;
/// An answer of the agent holds a prompt with its images in base64, and 16 MiB at most.
const PROMPT_IMAGES_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// A file that is passed on is held while it is sent.
const HELD_BYTES_MAX: u64 = 20 * 1024 * 1024;
/// SQS holds a message back for twelve hours from its delivery at most; an hour of them may have passed.
const QUEUE_HOLD_MS_MAX: u64 = 11 * 60 * MINUTE_MS;
/// Bytes of prompts in a record, and beside it: with all else both together stay far below an item's 400 KB.
const KEPT_BYTES_MAX: usize = 128 * 1024;

/// Longest wait that another side may ask for before the next try: it counts as a failed delivery, and people wait.
const ASKED_MS_MAX: u64 = 15 * MINUTE_MS;

impl Limits {
    /// The defaults of the design.
    pub const DEFAULT: Self = Self {
        idle_pause_ms: 30 * MINUTE_MS,
        stale_grace_ms: 5 * MINUTE_MS,
        paused_ttl_ms: 180 * MINUTE_MS,
        create_ms: 180_000,
        start_ms: 180_000,
        clone_ms: 120_000,
        health_start_ms: 120_000,
        health_active_ms: 15_000,
        poll_ms: 2_000,
        stop_ms: 60_000,
        lifecycle_call_ms: 45_000,
        turn_ms: 90 * MINUTE_MS,
        turn_messages: 200,
        hold_ms: MINUTE_MS,
        look_ms_min: 5_000,
        look_ms_max: 20_000,
        visibility_ms: 120_000,
        heartbeat_ms: 40_000,
        attempts: 5,
        backoff_ms: 2_000,
        backoff_ms_max: 60_000,
        newer_ms: 2_000,
        newer_ms_max: 5 * MINUTE_MS,
        resends: 1,
        server_restarts: 1,
        outage_backoff_ms_max: 120 * MINUTE_MS,
        outage_ms: 15 * MINUTE_MS,
        telling_ms: WEEKEND_MS,
        control_ms: REPLY_TOKEN_MS,
        owed_ms: 12 * 60 * MINUTE_MS,
        refusals: 15,
        closed_tries: 4,
        untold_bytes: 64 * 1024,
        tenant_sandboxes: 100,
        thread_queue: 20,
        reconcile_ms: 10 * MINUTE_MS,
        ledger_ms: 30 * 24 * 60 * MINUTE_MS,
        ended_turns: 40,
        timeline: 20,
        ask_ms: 30 * MINUTE_MS,
        card_edit_ms: 3_000,
        card_roll_ms: 50 * MINUTE_MS,
        steers: 8,
        steer_bytes: 8 * 1024,
        queued_bytes: 96 * 1024,
        prompt_chars: 100_000,
        answer_chars: 40_000,
        attachments: 10,
        attachment_bytes: 10 * 1024 * 1024,
        prompt_images: 5,
        prompt_images_bytes: 5 * 1024 * 1024,
        artifacts: 10,
        artifact_bytes: 10 * 1024 * 1024,
        artifacts_bytes: 50 * 1024 * 1024,
        artifacts_known: 200,
        patch_bytes: 200_000,
        auto_stop_min: 120,
        auto_destroy_min: 7 * 24 * 60,
        breaker_failures: 5,
        breaker_window_ms: 60_000,
        breaker_open_ms: 30_000,
        breaker_open_ms_max: 5 * MINUTE_MS,
        breaker_probe_ms: 60_000,
        breaker_cache_ms: 5_000,
        gone_apart_ms: 5_000,
        appear_ms: MINUTE_MS,
        put_in_ms: 30_000,
        vanished_grace_ms: 24 * 60 * MINUTE_MS,
        secrets_ms: MINUTE_MS,
        direct_switch_ms: 20_000,
        named_ttl_ms: 6 * 24 * 60 * MINUTE_MS,
        workspace_wait_ms: 8 * 60 * MINUTE_MS,
        busy_ms: 3 * MINUTE_MS,
        workspace_ms: MINUTE_MS,
        snapshot_ms: 15 * MINUTE_MS,
        snapshots: 5,
        sandbox_threads: 50,
        setup_link_ms: 10 * MINUTE_MS,
    };

    /// The delay before attempt `n` (counted from 1) of a message that is given back.
    #[must_use]
    pub fn backoff(&self, attempt: u32) -> u64 {
        self.backoff_ms
            .saturating_mul(1 << attempt.saturating_sub(1).min(16))
            .min(self.backoff_ms_max)
    }

    /// The same where the other side asked for so many milliseconds: as long as it asked, within a bound.
    #[must_use]
    pub fn backoff_asked(&self, attempt: u32, after_ms: u64) -> u64 {
        let most_ms = self.backoff_ms_max.max(after_ms.min(ASKED_MS_MAX));
        self.backoff(attempt).max(after_ms).min(most_ms)
    }

    /// The same in an outage of what Bobbin stands on, by the deliveries of the message: it grows for as long as the outage
    /// lasts, so that the deliveries that the queue allows outlast it.
    #[must_use]
    pub fn outage_backoff(&self, receive: u32) -> u64 {
        /// The fourth roots of 2, in thousandths.
        const ROOTS: [u64; OUTAGE_DOUBLING as usize] = [1_000, 1_189, 1_414, 1_682];
        let Some(beyond) = receive.checked_sub(OUTAGE_QUICK) else {
            return self.backoff(receive);
        };
        let root = ROOTS[(beyond % OUTAGE_DOUBLING) as usize];
        let doubled = (self.backoff_ms_max / 1_000)
            .saturating_mul(root)
            .saturating_mul(1 << (beyond / OUTAGE_DOUBLING).min(32));
        doubled.max(self.backoff_ms_max).min(self.outage_backoff_ms_max)
    }

    /// How long a message of this age waits for what only stands in its way, at most.
    #[must_use]
    pub fn within_age(&self, age_ms: u64) -> u64 {
        (age_ms / AGE_SHARE).max(self.backoff_ms).min(self.outage_backoff_ms_max)
    }

    /// The delay in an outage that is known to have lasted so long: a fifth of that, within the bounds of any other.
    #[must_use]
    pub fn outage_delay(&self, lasted_ms: u64) -> u64 {
        (lasted_ms / 5).max(self.backoff_ms).min(self.outage_backoff_ms_max)
    }

    /// The delay of a message that waits for somebody else who works with its sandbox: of a turn's deliveries most may have
    /// been looks at its run, so no longer than what the other does can have lasted.
    #[must_use]
    pub fn lease_delay(&self, receive: u32, lasted_ms: u64) -> u64 {
        self.backoff(receive).min(lasted_ms.max(self.backoff_ms))
    }

    /// Until when a run is followed whose prompt was sent then; at its largest without end.
    #[must_use]
    pub const fn held_until(&self, sent_at_ms: Ms) -> Ms {
        if !self.gives_way() {
            return Ms::MAX;
        }
        sent_at_ms.saturating_add(self.hold_ms)
    }

    /// Whether a run that is held is given back where other work waits: not where every delivery follows.
    #[must_use]
    pub const fn gives_way(&self) -> bool {
        self.hold_ms < HOLD_MS_MAX
    }

    /// The time until the next look at a run that has gone on for so long; `receive` counts the deliveries of its message.
    #[must_use]
    pub fn look_after(&self, age_ms: u64, receive: u32) -> u64 {
        if receive >= LOOKS_EAGER {
            return self.look_ms_max;
        }
        (age_ms / LOOK_SHARE).clamp(self.look_ms_min, self.look_ms_max)
    }

    /// The longest that a turn's message may be out of sight while nothing is amiss: held, or waiting for the next look.
    #[must_use]
    pub fn out_of_sight_ms(&self) -> u64 {
        self.hold_ms.max(self.look_ms_max) + self.visibility_ms
    }

    /// Deliveries that one message may take at most, for each of its reasons together.
    #[must_use]
    pub const fn deliveries(&self) -> u64 {
        let looks = LOOKS_EAGER as u64 + self.turn_ms.div_ceil(self.look_ms_max);
        let windows = self.turn_ms.div_ceil(self.hold_ms);
        let following = if self.gives_way() { looks } else { windows };
        let outage = self.outage_ms / self.backoff_ms_max + 6;
        let telling = self.telling_ms / self.outage_backoff_ms_max + OUTAGE_DELAYS_GROWING;
        // In line for a workspace: often, now and then, and every quarter of an hour.
        let in_line = 120 + self.workspace_wait_ms / (15 * MINUTE_MS);
        self.attempts as u64 + self.refusals as u64 + following + outage + telling + in_line
    }

    /// Checks the relations that the protocol rests on.
    ///
    /// # Errors
    /// A sentence that names the two bounds that do not fit.
    pub fn check(&self) -> Result<(), String> {
        let rules = [
            (
                self.heartbeat_ms.saturating_mul(2) <= self.visibility_ms,
                "heartbeat_ms must be at most half of visibility_ms",
            ),
            (
                self.lifecycle_call_ms < self.visibility_ms,
                "lifecycle_call_ms must be below visibility_ms",
            ),
            (
                self.hold_ms > 0 && self.poll_ms > 0 && self.heartbeat_ms > 0,
                "hold_ms, poll_ms and heartbeat_ms must be above 0",
            ),
            (
                self.hold_ms <= HOLD_MS_MAX,
                "hold_ms must be at most 780000: a function has 15 minutes",
            ),
            (
                self.look_ms_min > 0 && self.look_ms_min <= self.look_ms_max,
                "look_ms_min must be above 0 and at most look_ms_max",
            ),
            (
                self.backoff_ms_max > 0 && self.outage_backoff_ms_max > 0,
                "backoff_ms_max and outage_backoff_ms_max must be above 0",
            ),
            (
                u64::from(self.auto_stop_min) * MINUTE_MS > self.idle_pause_ms,
                "auto_stop_min must be longer than idle_pause_ms",
            ),
            (self.attempts > 0, "attempts must be at least 1"),
            (self.card_roll_ms >= MIN_CARD_ROLL_MS, "card_roll_ms must be at least 1000"),
            (
                self.steers.saturating_mul(self.steer_bytes) <= KEPT_BYTES_MAX
                    && self.queued_bytes <= KEPT_BYTES_MAX,
                "steers times steer_bytes, and queued_bytes, must be at most 131072",
            ),
            (self.untold_bytes <= KEPT_BYTES_MAX, "untold_bytes must be at most 131072"),
            (
                self.breaker_failures > 0 && self.breaker_open_ms > 0,
                "breaker_failures and breaker_open_ms must be above 0",
            ),
            (
                self.prompt_images_bytes <= PROMPT_IMAGES_BYTES_MAX,
                "prompt_images_bytes must be at most 8388608: an answer of the agent holds them",
            ),
            (
                self.attachment_bytes <= HELD_BYTES_MAX && self.artifact_bytes <= HELD_BYTES_MAX,
                "attachment_bytes and artifact_bytes must be at most 20971520: a worker holds a file twice in its 128 MB",
            ),
            (self.secrets_ms >= MIN_SECRETS_MS, "secrets_ms must be at least 1000"),
            (
                self.breaker_open_ms <= self.breaker_open_ms_max,
                "breaker_open_ms must be at most breaker_open_ms_max",
            ),
            (
                self.outage_backoff_ms_max <= QUEUE_HOLD_MS_MAX,
                "outage_backoff_ms_max must be at most 39600000: SQS holds a message for twelve hours at most",
            ),
            // Last: it divides by some of the others.
            (
                self.backoff_ms_max == 0
                    || self.outage_backoff_ms_max == 0
                    || self.hold_ms == 0
                    || self.look_ms_max == 0
                    || self.deliveries() < DELIVERIES_MAX as u64,
                "turn_ms divided by look_ms_max (or hold_ms at its largest), with all else that takes a delivery, must stay below the 1000 deliveries of the queue",
            ),
        ];
        match rules.iter().find(|(holds, _)| !holds) {
            Some((_, rule)) => Err(format!("limits: {rule}")),
            None => Ok(()),
        }
    }
}

const _: () = {
    let l = Limits::DEFAULT;
    assert!(l.heartbeat_ms * 2 <= l.visibility_ms);
    assert!(l.lifecycle_call_ms < l.visibility_ms);
    assert!(HOLD_MS_MAX + 60_000 < 15 * MINUTE_MS);
    assert!(l.hold_ms <= HOLD_MS_MAX && l.look_ms_min <= l.look_ms_max);
    assert!(l.auto_stop_min as u64 * MINUTE_MS > l.idle_pause_ms);
    assert!(l.deliveries() < DELIVERIES_MAX as u64);
    assert!(LOOKS_NUDGED < LOOKS_EAGER);
    assert!(l.turn_ms.div_ceil(l.look_ms_max) < LOOKS_NUDGED as u64);
    assert!(LOOK_SOON_MS < NUDGE_APART_MS && NUDGE_APART_MS < l.look_ms_min);
    // The way back: every delivery follows for as long as a function can.
    let held = Limits { hold_ms: HOLD_MS_MAX, ..l };
    assert!(held.deliveries() < DELIVERIES_MAX as u64);
    assert!(l.outage_backoff_ms_max <= QUEUE_HOLD_MS_MAX);
    assert!(l.breaker_probe_ms > l.lifecycle_call_ms);
    assert!(l.card_roll_ms < 60 * MINUTE_MS);
    assert!(l.prompt_images_bytes <= PROMPT_IMAGES_BYTES_MAX);
    assert!(l.attachment_bytes <= HELD_BYTES_MAX && l.artifact_bytes <= HELD_BYTES_MAX);
    assert!(l.steers * l.steer_bytes <= KEPT_BYTES_MAX && l.queued_bytes <= KEPT_BYTES_MAX);
    assert!(l.untold_bytes <= KEPT_BYTES_MAX && l.closed_tries <= l.refusals);
    // A file of the folder that is listed again must still be known as shown.
};

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_can_be_set_by_name_and_an_unknown_name_is_refused() {
        let limits: Limits = serde_json::from_str(r#"{"idle_pause_ms": 1000}"#).expect("valid");
        assert_eq!(limits.idle_pause_ms, 1000);
        assert_eq!(limits.poll_ms, Limits::DEFAULT.poll_ms);
        assert!(serde_json::from_str::<Limits>(r#"{"idle_pause": 1}"#).is_err());
    }

    #[test]
    fn bounds_that_contradict_each_other_are_named() {
        let limits = Limits { heartbeat_ms: 100_000, ..Limits::DEFAULT };
        assert_eq!(
            limits.check().expect_err("contradiction"),
            "limits: heartbeat_ms must be at most half of visibility_ms"
        );
        assert!(Limits::DEFAULT.check().is_ok());
    }

    #[test]
    fn a_lease_of_somebody_else_is_waited_for_by_deliveries_and_by_what_it_has_lasted_and_never_longer_than_the_bound()
     {
        let limits = Limits::DEFAULT;
        let delay = |(receive, lasted_ms)| limits.lease_delay(receive, lasted_ms);
        assert_eq!(
            [(1, 3_600_000), (3, 3_600_000), (300, 0), (300, 7_000), (300, 3_600_000)].map(delay),
            [2_000, 8_000, 2_000, 7_000, 60_000]
        );
        let crossed = Limits { backoff_ms_max: 20, ..Limits::DEFAULT };
        assert_eq!(crossed.lease_delay(1, 0), 20);
    }

    #[test]
    fn an_outage_of_a_weekend_takes_fewer_deliveries_than_the_queue_allows_wherever_it_begins() {
        let limits = Limits::DEFAULT;
        for before in [0, 7, 15, 40, 100] {
            let (mut waited_ms, mut receive) = (0, before);
            while waited_ms < WEEKEND_MS {
                receive += 1;
                waited_ms += limits.outage_backoff(receive);
            }
            assert!(receive < CONTROL_DELIVERIES_MAX, "{receive} from {before}");
        }
    }

    #[test]
    fn who_waits_out_an_outage_waits_little_longer_than_it_lasts() {
        let limits = Limits::DEFAULT;
        let minutes = |n| limits.outage_backoff(n) / MINUTE_MS;
        assert_eq!(limits.outage_backoff(1), 2_000);
        assert_eq!([10, 20, 24, 32, 40, 47, 48, 149].map(minutes), [1, 1, 2, 8, 32, 107, 120, 120]);
        let mut lasted_ms = 0;
        for receive in 1..CONTROL_DELIVERIES_MAX {
            let delay_ms = limits.outage_backoff(receive);
            assert!(receive <= 20 || delay_ms * 5 <= lasted_ms + MINUTE_MS, "{receive}");
            lasted_ms += delay_ms;
        }
    }

    #[test]
    fn a_turn_that_has_been_looked_at_often_is_tried_again_soon_and_outlasts_a_weekend() {
        let limits = Limits::DEFAULT;
        let delay = |receive, age_ms| limits.outage_backoff(receive).min(limits.within_age(age_ms));
        let ten_minutes_old = delay(60, 10 * MINUTE_MS);
        assert_eq!(ten_minutes_old, 30_000, "not the two hours of a sixtieth try");
        for (before, age_ms) in [(0, 0), (40, 10 * MINUTE_MS), (300, 80 * MINUTE_MS)] {
            let (mut waited_ms, mut receive) = (0, before);
            while waited_ms < WEEKEND_MS {
                receive += 1;
                waited_ms += delay(receive, age_ms + waited_ms);
            }
            assert!(receive - before < 250, "{receive} from {before}");
            assert!(receive < DELIVERIES_MAX);
        }
    }

    #[test]
    fn an_outage_whose_beginning_is_known_is_waited_out_by_that() {
        let limits = Limits::DEFAULT;
        let (mut lasted_ms, mut tries) = (0, 0);
        while lasted_ms < limits.telling_ms {
            lasted_ms += limits.outage_delay(lasted_ms);
            tries += 1;
        }
        let bound = limits.telling_ms / limits.outage_backoff_ms_max + OUTAGE_DELAYS_GROWING;
        assert!(tries <= bound, "{tries} of {bound}");
        assert_eq!(limits.outage_delay(0), 2_000);
        assert_eq!(limits.outage_delay(50 * MINUTE_MS), 10 * MINUTE_MS);
    }

    #[test]
    fn looks_grow_apart_with_the_age_of_a_turn_and_never_take_more_deliveries_than_are_counted() {
        let limits = Limits::DEFAULT;
        let at = |seconds: u64| limits.look_after(seconds * 1_000, 1);
        assert_eq!([0, 60, 120, 240, 5_000].map(at), [5_000, 5_000, 10_000, 20_000, 20_000]);
        let (mut age_ms, mut looks) = (limits.hold_ms, 0);
        while age_ms < 5 * MINUTE_MS {
            age_ms += limits.look_after(age_ms, looks);
            looks += 1;
        }
        assert_eq!(looks, 21, "of a turn of five minutes");

        // However often each is brought forward.
        let (mut left_ms, mut receive) = (limits.turn_ms, LOOKS_EAGER);
        while left_ms > 0 {
            left_ms = left_ms.saturating_sub(limits.look_after(0, receive));
            receive += 1;
        }
        assert!(
            u64::from(receive) <= LOOKS_EAGER as u64 + limits.turn_ms.div_ceil(limits.look_ms_max)
        );
    }

    #[test]
    fn bounds_with_which_a_turn_would_use_up_its_deliveries_are_refused() {
        let too_often = Limits { look_ms_max: 5_000, ..Limits::DEFAULT };
        assert!(too_often.check().expect_err("too often").contains("1000 deliveries"));
        let too_long = Limits { hold_ms: HOLD_MS_MAX + 1, ..Limits::DEFAULT };
        assert!(too_long.check().expect_err("too long").contains("hold_ms must be at most 780000"));
        let as_before = Limits { hold_ms: HOLD_MS_MAX, ..Limits::DEFAULT };
        assert_eq!(as_before.check(), Ok(()));
        assert_eq!(as_before.held_until(5), Ms::MAX);
    }

    #[test]
    fn backoff_doubles_up_to_its_cap() {
        let limits = Limits::DEFAULT;
        assert_eq!([1, 2, 3, 40].map(|n| limits.backoff(n)), [2_000, 4_000, 8_000, 60_000]);
    }
}
