//! Progress of a turn on one line, and how much of the agent's text has been printed.

use bobbin_core::base::ids::TurnId;
use bobbin_core::records::flags::ControlFlags;
use bobbin_core::records::sandbox::Phase;
use bobbin_core::records::session::Session;
use bobbin_core::records::stage::Stage;
use bobbin_core::records::turn::Turn;
use bobbin_core::text::{one_line, shorten};

/// Longest step or error on the progress line.
const STEP_CHARS_MAX: usize = 60;
/// Stage before a worker has taken it.
const UNTAKEN: &str = "waiting for a worker";

/// Progress of a turn in words.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Far {
    phase: &'static str,
    stage: String,
}

impl Far {
    pub fn of(session: Option<&Session>, flags: &ControlFlags, id: &TurnId) -> Self {
        let phase = session.map_or("", |session| session.sandbox.phase.word());
        let present = session.and_then(|session| session.turn.as_ref());
        let stage = match (session, present) {
            (Some(session), Some(turn)) if turn.covers(id) => at_work(session, turn),
            _ if flags.queued.contains_key(id) => match present {
                Some(turn) => format!("waiting behind the turn of {}", turn.by.name),
                None => UNTAKEN.to_owned(),
            },
            _ => UNTAKEN.to_owned(),
        };
        Self { phase, stage }
    }

    pub fn is_untaken(&self) -> bool {
        self.stage == UNTAKEN
    }

    /// Phase, stage, and the agent's current step.
    pub fn line(&self, step: Option<&str>) -> String {
        let step = step.map(|step| shorten(&one_line(step), STEP_CHARS_MAX));
        let parts = [Some(self.phase.to_owned()), Some(self.stage.clone()), step];
        let said = parts.into_iter().flatten().filter(|part| !part.is_empty());
        said.collect::<Vec<_>>().join(" · ")
    }
}

fn at_work(session: &Session, turn: &Turn) -> String {
    let phase = session.sandbox.phase;
    if turn.waits
        && !session.sandbox.is_in_use_by(&session.thread, &turn.id)
        && let Some(holder) = session.sandbox.common_in_use_by(&session.thread)
    {
        return format!("waiting for the turn of {} in the same checkout", holder.thread);
    }
    let asks = turn.asks.iter().filter(|ask| !ask.settled).count();
    let words = match (&turn.stage, phase) {
        _ if asks > 0 => "waiting for a decision in the thread",
        (Stage::Ending { .. }, _) => "being posted in the thread",
        (Stage::Running(_), _) => "running",
        (Stage::Prompting(_), _) => "being sent to the agent",
        (Stage::Received { .. }, Phase::Active) => "being prepared",
        (Stage::Received { .. }, _) => "getting its sandbox",
    };
    match &turn.trouble {
        Some(why) => format!("{words} (trouble: {})", shorten(&one_line(why), STEP_CHARS_MAX)),
        None => words.to_owned(),
    }
}

/// How much of the agent's text has been printed.
#[derive(Debug, Default)]
pub struct Words {
    said: Vec<String>,
}

impl Words {
    pub fn is_empty(&self) -> bool {
        self.said.is_empty()
    }

    pub fn all(&self) -> String {
        self.said.join("\n\n")
    }

    /// The new text; a piece that changed is printed again.
    pub fn more(&mut self, words: &[String]) -> String {
        let mut more = String::new();
        for (at, now) in words.iter().enumerate() {
            match self.said.get_mut(at) {
                None => {
                    if at > 0 {
                        more.push_str("\n\n");
                    }
                    more.push_str(now);
                    self.said.push(now.clone());
                }
                Some(before) if before == now => {}
                Some(before) => {
                    match now.strip_prefix(before.as_str()) {
                        Some(rest) => more.push_str(rest),
                        None => {
                            more.push_str("\n\n");
                            more.push_str(now);
                        }
                    }
                    before.clone_from(now);
                }
            }
        }
        more
    }
}

#[cfg(test)]
mod tests {
    use bobbin_core::base::ids::ThreadKey;

    use super::*;

    fn heard(of: &mut Words, words: &[&str]) -> String {
        let words: Vec<String> = words.iter().map(|one| (*one).to_owned()).collect();
        of.more(&words)
    }

    #[test]
    fn only_new_text_is_printed() {
        let mut words = Words::default();
        assert_eq!(heard(&mut words, &["I l"]), "I l");
        assert_eq!(heard(&mut words, &["I look"]), "ook");
        assert_eq!(heard(&mut words, &["I look"]), "");
        assert_eq!(heard(&mut words, &["I look.", "Done"]), ".\n\nDone");
        assert_eq!(heard(&mut words, &[]), "", "a connection that was just made knows nothing");
        assert_eq!(heard(&mut words, &["I look.", "Done, all of it."]), ", all of it.");
        assert_eq!(heard(&mut words, &["I look.", "Otherwise"]), "\n\nOtherwise");
    }

    #[test]
    fn progress_line_has_phase_and_step() {
        let thread = ThreadKey::discord("1", "2").expect("valid");
        let (flags, id) = (ControlFlags::default(), TurnId::from("send-1-00000001"));
        assert_eq!(Far::of(None, &flags, &id).line(None), "waiting for a worker");
        let session = Session::new(thread, 1);
        let far = Far::of(Some(&session), &flags, &id);
        assert_eq!(far.line(None), "destroyed · waiting for a worker");
        let far = Far { phase: "active", stage: "running".to_owned() };
        assert_eq!(far.line(Some("Run\nthe tests")), "active · running · Run the tests");
    }
}
