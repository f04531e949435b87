//! Histories of a pull request from a seed: a thousand hints each, late, twice and out of order, among continuous
//! integration, reviewers, other people's pushes and presses, with deliveries that crash at any call.

use super::fix::{by, comment, queued, thread_of};
use super::publish::{FIRST, holds, notices, publish, published};
use super::watch::{POLL_MS, QUIET_MS, check, passes, seen, sight, sweep};
use super::*;
use bobbin_core::records::checks::CheckState;
use bobbin_core::records::publication::PullRequestState;
use bobbin_core::records::pull_request::WatchedPullRequest;
use bobbin_core::records::watch::{CardSight, CheckWord};
use bobbin_sim::services::polled;

const SEEDS: u64 = 40;
const STEPS: u64 = 50;
const HINTS: u64 = 20;

/// A stream of numbers from a seed.
struct Draw(u64);

impl Draw {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % below
    }
}

struct History {
    world: Fake,
    draw: Draw,
    /// Number of messages made, so that each has its own id.
    made: u64,
    /// Number of queued messages that were processed.
    worked: usize,
    /// The problems of each fix, by its name.
    fixes: BTreeMap<String, Vec<String>>,
}

impl History {
    fn begin(seed: u64) -> Self {
        let history = Self {
            world: published(),
            draw: Draw(seed),
            made: 0,
            worked: 0,
            fixes: BTreeMap::new(),
        };
        history.shows(|_| {});
        sweep(&history.world, "w0");
        history
    }

    fn id(&mut self, kind: &str) -> String {
        self.made += 1;
        format!("{kind}{}", self.made)
    }

    /// The forge shows its current head with this change.
    fn shows(&self, change: impl FnOnce(&mut WatchedPullRequest)) {
        self.world.with(|s| {
            let (branch, pull) = s.pulls[0].clone();
            let head = s.branches[&branch].clone();
            let mut watched = s.watched.take().unwrap_or_else(|| polled(&pull, &branch, &head));
            if watched.pull.head != head {
                watched.pull.checks.clear();
                watched.pull.head = head;
            }
            watched.writers = vec!["ada".to_owned()];
            change(&mut watched);
            s.watched = Some(watched);
        });
    }

    /// Delivers the message, which may crash once at any call and may be delivered again after it is done.
    fn delivers(&mut self, message: &Message) {
        let dies = self.draw.next(3) == 0;
        let call = 1 + u32::try_from(self.draw.next(12)).unwrap();
        let after = self.draw.next(2) == 0;
        if dies {
            self.world.with(|s| s.crash_at = Some((s.calls + call, after)));
        }
        let mut from = 1;
        while catch_unwind(AssertUnwindSafe(|| deliver_until_done(&self.world, message, from)))
            .is_err()
        {
            from += 1;
        }
        self.world.with(|s| s.crash_at = None);
        if self.draw.next(4) == 0 {
            deliver_until_done(&self.world, message, from + 1);
        }
    }

    fn hints(&mut self) {
        for _ in 0..HINTS {
            let late_ms =
                [0, 0, 1_000, QUIET_MS, 3 * QUIET_MS][usize::try_from(self.draw.next(5)).unwrap()];
            let at_ms = self.world.with(|s| s.now_ms).saturating_sub(late_ms);
            let message = Message::poll(thread(), at_ms, QUIET_MS);
            if self.draw.next(10) == 0 {
                self.delivers(&message);
            } else {
                deliver_until_done(&self.world, &message, 1);
            }
        }
    }

    /// Somebody presses Fix on the current or an older card.
    fn presses(&mut self) {
        let CardSight::Seen(shown) = sight(&self.world) else { return };
        let Some(name) = shown.fix else { return };
        for _ in 0..=self.draw.next(2) {
            let id = self.id("x");
            self.delivers(&publish(&id, PublishStep::Fix { name: name.clone() }, "10"));
        }
    }

    /// Processes the thread's group in order.
    fn works(&mut self) {
        for message in queued(&self.world).into_iter().skip(self.worked) {
            self.worked += 1;
            if message.prompt_of(&message.id).is_some() {
                let commit = format!("{:040x}", 0xb000 + self.made);
                self.made += 1;
                holds(&self.world, if self.draw.next(5) == 0 { FIRST } else { &commit });
            }
            self.delivers(&message);
        }
        self.shows(|_| {});
    }

    fn step(&mut self) {
        match self.draw.next(7) {
            0 | 1 => {
                let id = 100 + self.made;
                self.made += 1;
                let states = [CheckState::Running, CheckState::Passed, CheckState::Failed];
                let state = states[usize::try_from(self.draw.next(3)).unwrap()];
                self.shows(|watched| watched.pull.checks = vec![check("build", id, state)]);
            }
            2 => {
                let id = 100 + self.made;
                self.made += 1;
                let one = thread_of(&format!("t{id}"), vec![comment(id, by("ada", false), "Why?")]);
                self.shows(|watched| watched.pull.threads.push(one));
            }
            3 => {
                let theirs = format!("{:040x}", 0xa000 + self.made);
                self.made += 1;
                self.world.with(|s| {
                    let branch = s.pulls[0].0.clone();
                    s.theirs.insert(theirs.clone());
                    s.branches.insert(branch, theirs);
                });
                self.shows(|_| {});
            }
            4 | 5 => self.presses(),
            _ => self.works(),
        }
        self.hints();
        let ms = self.draw.next(2 * QUIET_MS);
        passes(&self.world, ms);
        if self.draw.next(3) == 0 {
            let id = self.id("w");
            sweep(&self.world, &id);
        }
    }

    /// Everything comes to rest.
    fn rests(&mut self) {
        self.works();
        for _ in 0..6 {
            passes(&self.world, POLL_MS);
            let id = self.id("w");
            sweep(&self.world, &id);
        }
    }

    /// One turn for each fix, nothing is fixed twice, and no push overwrites a person's.
    fn is_sound(&mut self, seed: u64) {
        let all = queued(&self.world);
        let fixes: BTreeSet<String> = all.iter().map(|one| one.id.to_string()).collect();
        assert_eq!(fixes.len(), all.len(), "seed {seed}");
        let turns = all.iter().filter(|one| one.prompt_of(&one.id).is_some()).count();
        let prompted = self.world.with(|s| s.prompted.len());
        // The thread's first task counts too.
        assert!(prompted <= turns + 1, "seed {seed}: {prompted} prompts of {turns} fixes");
        let watch = record(&self.world).published.publication.and_then(|one| one.watch);
        if let Some(fix) = watch.and_then(|watch| watch.fix) {
            self.fixes.insert(fix.name, fix.items);
        }
        let all: Vec<&String> = self.fixes.values().flatten().collect();
        let once: BTreeSet<&String> = all.iter().copied().collect();
        assert_eq!(once.len(), all.len(), "seed {seed}: two fixes are for the same");
        assert!(self.world.with(|s| s.over_theirs.is_empty()), "seed {seed}");
    }
}

#[test]
fn seeded_histories_end_with_a_true_card() {
    let mut fixes = 0;
    for seed in 0..SEEDS {
        let mut history = History::begin(seed);
        for _ in 0..STEPS {
            history.step();
            history.is_sound(seed);
        }
        history.rests();
        history.is_sound(seed);
        let (head, state) = history.world.with(|s| {
            let watched = s.watched.clone().unwrap();
            (watched.pull.head, watched.pull.checks.first().map(|check| check.state))
        });
        let word = match state {
            None => CheckWord::None,
            Some(CheckState::Passed) => CheckWord::Green,
            Some(CheckState::Failed) => CheckWord::Red,
            Some(_) => CheckWord::Unsettled,
        };
        let card = seen(&history.world);
        assert_eq!((card.head, card.checks.verdict), (head, word), "seed {seed}");
        fixes += queued(&history.world).len() / 2;

        history.shows(|watched| watched.pull.state = PullRequestState::Merged);
        history.hints();
        history.rests();
        assert_eq!(
            sight(&history.world),
            CardSight::Ended(PullRequestState::Merged),
            "seed {seed}"
        );
        let told = notices(&history.world);
        let ends =
            told.iter().filter(|word| word.starts_with("Pull request #1 was merged")).count();
        assert_eq!(ends, 1, "seed {seed}");
    }
    assert!(fixes >= 100, "{fixes} fixes in {SEEDS} histories");
}
