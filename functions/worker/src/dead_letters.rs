//! Dead letters: when the sweeper has seen some, they are received, told about and deleted. A letter that cannot be
//! told about yet stays in its queue and is tried again later.

use bobbin_app::arrival::Arrival;
use bobbin_app::dead;
use bobbin_app::parts::WorldParts;
use bobbin_cloud::clock::now_ms;
use bobbin_cloud::dead_letters::DeadLetter;
use bobbin_core::base::ids::Ms;
use bobbin_core::protocol::drive::Verdict;
use bobbin_core::protocol::signals::{Alarm, GIVEN_UP};
use bobbin_core::records::message::thread_of_group;
use bobbin_core::schema::{NEWER, Unreadable};
use tracing::Instrument as _;

use crate::lane::{Worker, within};

/// Batches of at most ten letters that one run receives from a queue; the next run takes more.
const BATCHES_MAX: usize = 10;
/// Longest time for one run: it occupies a slot of the control queue, which people's Stops need.
const LOOK_MS_MAX: u64 = 30_000;
/// How long a letter that only a newer worker can read waits for one, after a release that was rolled back.
const NEWER_MS_MAX: u64 = 24 * 60 * 60_000;
/// A batch starts only with this much of the run's and the function's time left. Letters that are not reached come back
/// by themselves.
const BATCH_MS_MAX: u64 = 15_000;

impl Worker {
    /// Tells about the dead letters of both queues.
    pub(crate) async fn give_up_dead_letters(
        &self,
        parts: &WorldParts,
        deadline_ms: Ms,
    ) -> Verdict {
        let deadline_ms = deadline_ms.min(now_ms() + LOOK_MS_MAX);
        for pair in self.dead_letters.pairs() {
            for _ in 0..BATCHES_MAX {
                if now_ms() + BATCH_MS_MAX > deadline_ms {
                    return Verdict::Done;
                }
                let taken = match self.dead_letters.batch(pair).await {
                    Ok(taken) => taken,
                    Err(error) => {
                        tracing::error!(event = "message.give_up.failed", %error, "dead letters could not be received; the next sweep tries again");
                        break;
                    }
                };
                if taken.is_empty() {
                    break;
                }
                for letter in &taken {
                    let id = letter.body.as_ref().map_or(&*letter.id, |body| body.correlation());
                    let around = within(id, &letter.group);
                    self.conclude(parts, letter).instrument(around).await;
                }
            }
        }
        Verdict::Done
    }

    /// Tells about one letter, then deletes it or leaves it for later.
    async fn conclude(&self, parts: &WorldParts, letter: &DeadLetter) {
        let done = match self.notify(parts, letter).await {
            Verdict::Done => {
                tracing::error!(
                    event = GIVEN_UP,
                    message.id = letter.id,
                    queue = letter.queue,
                    "a message ended among the dead letters"
                );
                self.metrics.count(Alarm::WorkDropped, now_ms());
                self.dead_letters.remove(letter).await
            }
            Verdict::Hold { delay_ms, why } => {
                tracing::info!(
                    event = "message.give_up.held",
                    delay_ms,
                    "the dead letter stays for now: {why}"
                );
                self.dead_letters.put_back(letter, delay_ms).await
            }
            Verdict::Newer { delay_ms, seen } => {
                tracing::warn!(event = NEWER, delay_ms, "{seen}");
                self.dead_letters.put_back(letter, delay_ms).await
            }
        };
        if let Err(error) = done {
            tracing::warn!(event = "message.give_up.failed", %error, "the dead letter comes back by itself");
        }
    }

    async fn notify(&self, parts: &WorldParts, letter: &DeadLetter) -> Verdict {
        let (lane, limits) = (self.lane(parts), &self.config.limits);
        let arrival =
            Arrival { receive: letter.receive, sent_ms: letter.dead_since_ms, now_ms: now_ms() };
        match &letter.body {
            Ok(body) => dead::notify(&lane, body, arrival).await,
            Err(newer @ Unreadable::Newer { .. })
                if now_ms() < letter.dead_since_ms + NEWER_MS_MAX =>
            {
                Verdict::newer(newer.to_string(), letter.receive, &limits.retry)
            }
            // The group still names the thread, which is told. The message's own id is lost: a dead letter's
            // deduplication id is set by SQS.
            Err(_) => match thread_of_group(&letter.group) {
                Some(thread) => {
                    let id = letter.sqs_id.as_str().into();
                    dead::notify_thread(&lane, thread, &id, None, arrival).await
                }
                // Not a thread's group: nobody waits for the message.
                None => Verdict::Done,
            },
        }
    }
}
