//! The agent's asks, and the meaning of a person's answer. Platform-neutral: forms refer to questions and options by
//! number, and only here, beside the record of the questions, do the numbers become text.
//!
//! Promised: an answer that is sent has one entry per question, every option in it was offered, and own words appear
//! only if they were allowed. Deliberately absent: how an ask is shown (the wire modules do that).

use crate::base::ids::Ms;
use crate::base::person::Person;
use crate::records::ask::{
    About, Ask, AskDecision, Choice, Field, QUESTIONS_MAX, Question, WORDS_CHARS_MAX,
};
use crate::records::flags::ControlFlags;
use crate::records::session::Session;
use crate::text::{one_line, shorten};

/// Most fields filled in for one ask: an option and own words for each question.
const FIELDS_MAX: usize = 2 * QUESTIONS_MAX;
/// Characters of one answer as it is shown afterwards.
const ANSWER_CHARS_MAX: usize = 200;

/// Why a decision is not accepted, worded for the person who made it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RejectedDecision {
    /// A question has no answer.
    #[error("{0} has no answer yet, so nothing was sent. Please answer it and send again.")]
    Missing(String),
    /// The answer is not an option, and only options are accepted.
    #[error(
        "{0} accepts only its own options, so nothing was sent. Please choose one and send again."
    )]
    NotAnOption(String),
    /// More than one option was chosen, but only one can be.
    #[error("{0} accepts only one option, so nothing was sent. Please choose one and send again.")]
    TooMany(String),
    /// A line that names no question.
    #[error(
        "Begin each line with the number of its question, like `1: yes`. Nothing was sent; please send again."
    )]
    Unnumbered,
    /// The button or form belongs to another ask.
    #[error(
        "That does not match the question, so nothing was decided. Please use the newest buttons."
    )]
    Foreign,
}

/// The decision made by a press or a filled-in form: with [`Choice::Answers`] in place of [`Choice::Form`].
///
/// # Errors
/// [`RejectedDecision`], worded for the person; nothing is decided then.
pub fn decision(about: &About, choice: &Choice) -> Result<Choice, RejectedDecision> {
    match (about, choice) {
        (About::Permission { .. }, Choice::Once | Choice::Always | Choice::Reject)
        | (About::Question { .. }, Choice::Reject) => Ok(choice.clone()),
        (About::Question { questions }, Choice::Form(fields)) => {
            answers(questions, fields).map(Choice::Answers)
        }
        _ => Err(RejectedDecision::Foreign),
    }
}

/// The answers, one list per question, in the order of the questions.
fn answers(questions: &[Question], fields: &[Field]) -> Result<Vec<Vec<String>>, RejectedDecision> {
    let mut answers: Vec<Vec<String>> = vec![Vec::new(); questions.len()];
    let mut give = |at: usize, given: Vec<String>| {
        let list = answers.get_mut(at).ok_or(RejectedDecision::Foreign)?;
        for one in given {
            if !list.contains(&one) {
                list.push(one);
            }
        }
        Ok(())
    };
    for field in fields.iter().take(FIELDS_MAX) {
        match field {
            Field::Picked { question, options } => {
                let asked = questions.get(*question).ok_or(RejectedDecision::Foreign)?;
                let label = |at: &usize| asked.options.get(*at).map(|o| o.label.clone());
                let labels: Option<Vec<String>> = options.iter().map(label).collect();
                let labels = labels.ok_or(RejectedDecision::Foreign)?;
                one_if_single(questions, *question, &labels)?;
                give(*question, labels)?;
            }
            Field::Words { question, text } => {
                let words = shorten(text.trim(), WORDS_CHARS_MAX);
                let asked = questions.get(*question).ok_or(RejectedDecision::Foreign)?;
                if words.is_empty() {
                    continue;
                }
                let label = asked.label(&words);
                if label.is_none() && !asked.takes_words() {
                    return Err(RejectedDecision::NotAnOption(called(questions, *question)));
                }
                give(*question, vec![label.unwrap_or(words)])?;
            }
            Field::Typed { question, text } => {
                give(*question, typed(questions, *question, text)?)?;
            }
            Field::Lines { text } => {
                for (question, text) in lines(questions.len(), text)? {
                    give(question, typed(questions, question, &text)?)?;
                }
            }
        }
    }
    match answers.iter().position(Vec::is_empty) {
        Some(at) => Err(RejectedDecision::Missing(called(questions, at))),
        None if answers.is_empty() => Err(RejectedDecision::Foreign),
        None => Ok(answers),
    }
}

fn typed(questions: &[Question], at: usize, text: &str) -> Result<Vec<String>, RejectedDecision> {
    let asked = questions.get(at).ok_or(RejectedDecision::Foreign)?;
    let text = text.trim();
    if text.is_empty() {
        return Ok(Vec::new());
    }
    match asked.named(text) {
        Some(labels) => one_if_single(questions, at, &labels).map(|()| labels),
        None if asked.takes_words() => Ok(vec![shorten(text, WORDS_CHARS_MAX)]),
        None => Err(RejectedDecision::NotAnOption(called(questions, at))),
    }
}

fn one_if_single(
    questions: &[Question],
    at: usize,
    labels: &[String],
) -> Result<(), RejectedDecision> {
    if labels.len() > 1 && !questions[at].multiple {
        return Err(RejectedDecision::TooMany(called(questions, at)));
    }
    Ok(())
}

/// The questions that the lines refer to, with the text typed for each; a line without a number belongs to the one
/// before it.
fn lines(count: usize, text: &str) -> Result<Vec<(usize, String)>, RejectedDecision> {
    let mut found: Vec<(usize, String)> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let numbered = line.trim().split_once([':', ')']).and_then(|(n, rest)| {
            let question = n.trim().parse::<usize>().ok()?.checked_sub(1)?;
            (question < count).then_some((question, rest.trim().to_owned()))
        });
        if let Some(one) = numbered {
            found.push(one);
        } else if let Some((_, before)) = found.last_mut() {
            before.push('\n');
            before.push_str(line.trim());
        } else {
            return Err(RejectedDecision::Unnumbered);
        }
        if found.len() > FIELDS_MAX {
            return Err(RejectedDecision::Foreign);
        }
    }
    Ok(found)
}

/// The name of a question in an error for the person who answered it.
fn called(questions: &[Question], at: usize) -> String {
    match questions.get(at) {
        Some(question) if questions.len() > 1 => {
            format!("Question {} ({})", at + 1, question.name())
        }
        _ => "The question".to_owned(),
    }
}

/// Who decided what: one line, plus one per answer if there were several questions.
#[must_use]
pub fn settled(ask: &Ask, settlement: &AskDecision) -> String {
    let by = name(&settlement.by);
    match (&settlement.choice, &ask.about) {
        (Choice::Once, _) => format!("Allowed once by {by}."),
        (Choice::Always, _) => format!("Allowed from now on by {by}."),
        (Choice::Reject, About::Permission { .. }) => format!("Denied by {by}."),
        (Choice::Reject, About::Question { .. }) => format!("Skipped by {by}."),
        (Choice::Answers(answers), About::Question { questions }) if questions.len() > 1 => {
            let line = |(question, answer): (&Question, &Vec<String>)| {
                format!("{}: {}", question.name(), answer_text(answer))
            };
            let lines: Vec<String> = questions.iter().zip(answers).map(line).collect();
            format!("{by} answered:\n{}", lines.join("\n"))
        }
        (Choice::Answers(answers), _) => {
            let given = answers.iter().flatten().cloned().collect::<Vec<_>>();
            format!("{by} answered: {}", answer_text(&given))
        }
        (Choice::Form(_), _) => format!("Decided by {by}."),
    }
}

fn answer_text(answer: &[String]) -> String {
    shorten(&one_line(&answer.join(", ")), ANSWER_CHARS_MAX)
}

fn name(person: &Person) -> &str {
    let known = person.name.trim();
    if known.is_empty() { &person.id } else { known }
}

/// Consequence of a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecisionEffect<'a> {
    /// It is the first, as far as is known: set the flag, and tell the agent if the flag that is set is this one.
    Mark {
        /// The generation whose agent asks.
        generation: u32,
        /// The ask that it is about.
        ask: &'a Ask,
        /// The decision, and who made it.
        settlement: AskDecision,
    },
    /// The flag was set by an earlier delivery of the same message: tell the agent again, which is harmless.
    TellAgent {
        /// The generation whose agent asks.
        generation: u32,
        /// The ask that it is about.
        ask: &'a Ask,
        /// The decision.
        choice: Choice,
    },
    /// Nothing changes; this text is for the person who decided.
    TellPerson(String),
}

/// Told to a person who decides an ask that is no longer open.
pub const OVER: &str =
    "This is no longer open: the run that asked has moved on or ended, so nothing was changed.";
/// Told to a person who decides too late.
pub const EXPIRED: &str =
    "The time to answer is over, so it counted as no. Ask the agent again if you still want it.";

/// Judges a person's decision on an ask. `receive` counts the deliveries of the control message, from 1.
#[must_use]
pub fn rule<'a>(
    found: Option<(&'a Session, &'a ControlFlags)>,
    (ask, choice): (&str, &Choice),
    by: &Person,
    receive: u32,
    now_ms: Ms,
) -> DecisionEffect<'a> {
    let known = found.and_then(|(session, flags)| {
        let turn = session.turn.as_ref()?;
        let ask = turn.asks.iter().find(|known| known.id == ask)?;
        let mark = flags.settled.get(&ask.id);
        Some((turn, turn.stage.prompted()?.generation, ask, mark))
    });
    let Some((turn, generation, ask, mark)) = known else {
        return DecisionEffect::TellPerson(OVER.to_owned());
    };
    let decision = decision(&ask.about, choice);
    if let Some(first) = mark {
        let ours = receive > 1 && first.by == *by && decision.as_ref() == Ok(&first.choice);
        return if ours && !ask.settled {
            DecisionEffect::TellAgent { generation, ask, choice: first.choice.clone() }
        } else {
            DecisionEffect::TellPerson(too_late(ask, first))
        };
    }
    let over = turn.stage.is_ending() || turn.cancelled_by.is_some();
    if !over && now_ms >= ask.expires_at_ms {
        return DecisionEffect::TellPerson(EXPIRED.to_owned());
    }
    if over || ask.settled {
        return DecisionEffect::TellPerson(OVER.to_owned());
    }
    match decision {
        Ok(choice) => DecisionEffect::Mark {
            generation,
            ask,
            settlement: AskDecision { by: by.clone(), choice },
        },
        Err(unfit) => DecisionEffect::TellPerson(unfit.to_string()),
    }
}

/// The text for a person whose decision comes after another one.
#[must_use]
pub fn too_late(ask: &Ask, settlement: &AskDecision) -> String {
    let first = settled(ask, settlement);
    let first = first.lines().next().unwrap_or_default();
    let first = first.trim_end_matches([':', '.']);
    format!("This was already decided: {first}.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::ask::Opt;

    fn question(labels: &[&str], multiple: bool, free: bool) -> Question {
        let options = labels
            .iter()
            .map(|label| Opt { label: (*label).to_owned(), description: String::new() });
        Question {
            header: "Colour".to_owned(),
            text: "Which colour?".to_owned(),
            options: options.collect(),
            multiple,
            free,
        }
    }

    fn picked(question: usize, options: &[usize]) -> Field {
        Field::Picked { question, options: options.to_vec() }
    }

    fn words(question: usize, text: &str) -> Field {
        let text = text.to_owned();
        Field::Words { question, text }
    }

    fn given(questions: &[Question], fields: &[Field]) -> Result<Vec<Vec<String>>, String> {
        answers(questions, fields).map_err(|unfit| unfit.to_string())
    }

    fn labels(lists: &[&[&str]]) -> Result<Vec<Vec<String>>, String> {
        let list = |list: &&[&str]| list.iter().map(|label| (*label).to_owned()).collect();
        Ok(lists.iter().map(list).collect())
    }

    #[test]
    fn options_become_labels_words_stay() {
        let one = [question(&["red", "blue"], false, true)];
        assert_eq!(given(&one, &[picked(0, &[1])]), labels(&[&["blue"]]));
        assert_eq!(given(&one, &[words(0, " 2 ")]), labels(&[&["2"]]));
        assert_eq!(given(&one, &[words(0, "BLUE")]), labels(&[&["blue"]]));
        let both = [picked(0, &[0]), words(0, "but dark")];
        assert_eq!(given(&one, &both), labels(&[&["red", "but dark"]]));
        let many = [question(&["a", "b", "c"], true, false)];
        assert_eq!(given(&many, &[picked(0, &[0, 2])]), labels(&[&["a", "c"]]));
    }

    #[test]
    fn typed_numbers_labels_words_are_distinguished() {
        let asked = [
            question(&["red", "blue"], false, true),
            question(&["a", "b", "c"], true, false),
            question(&[], false, false),
        ];
        let all = |first: &str, second: &str| {
            let typed = |question, text: &str| Field::Typed { question, text: text.to_owned() };
            given(&asked, &[typed(0, first), typed(1, second), typed(2, "so so")])
        };
        let told = labels(&[&["blue"], &["c", "a"], &["so so"]]);
        assert_eq!(all("2", "3, A"), told);
        assert_eq!(all("Blue", "c;1."), told);
        assert_eq!(
            all("neither 1 nor 2", "a").map(|a| a[0].clone()),
            Ok(vec!["neither 1 nor 2".to_owned()])
        );
        assert!(all("1, 2", "a").is_err_and(|why| why.contains("accepts only one option")));
        assert!(all("1", "4").is_err_and(|why| why.contains("only its own options")));
        let lines = |text: &str| given(&asked, &[Field::Lines { text: text.to_owned() }]);
        assert_eq!(
            lines("1: 2\n\n3) so\nso\n2: c, a"),
            labels(&[&["blue"], &["c", "a"], &["so\nso"]])
        );
        assert!(lines("blue").is_err_and(|why| why.contains("number of its question")));
        assert!(lines("1: 1").is_err_and(|why| why.contains("Question 2 (Colour) has no answer")));
    }

    #[test]
    fn only_offered_choices_are_answers() {
        let one = [question(&["red"], false, false)];
        assert!(given(&one, &[]).is_err_and(|why| why.contains("no answer yet")));
        assert!(
            given(&one, &[words(0, "green")])
                .is_err_and(|why| why.contains("only its own options"))
        );
        for odd in [picked(0, &[1]), picked(1, &[0]), words(7, "x")] {
            assert!(given(&one, &[odd]).is_err_and(|why| why.contains("does not match")));
        }
        let two = [question(&["a", "b"], false, false)];
        assert!(given(&two, &[picked(0, &[0, 1])]).is_err());
        assert!(given(&[], &[]).is_err());
        let permission = About::Permission {
            action: "bash".to_owned(),
            subject: "ls".to_owned(),
            left_out: 0,
            places: Box::default(),
            always: Box::default(),
        };
        assert_eq!(decision(&permission, &Choice::Always), Ok(Choice::Always));
        assert_eq!(
            decision(&permission, &Choice::Form(vec![picked(0, &[0])])),
            Err(RejectedDecision::Foreign)
        );
        let asked = About::Question { questions: one.to_vec() };
        assert_eq!(decision(&asked, &Choice::Once), Err(RejectedDecision::Foreign));
        assert_eq!(decision(&asked, &Choice::Reject), Ok(Choice::Reject));
    }

    #[test]
    fn answer_text_is_bounded() {
        let one = [question(&[], false, true)];
        let long = given(&one, &[words(0, &"x".repeat(9_000))]).expect("an answer");
        assert_eq!(long[0][0].chars().count(), WORDS_CHARS_MAX);
    }

    #[test]
    fn settlement_names_person_and_answers() {
        let ask = Ask {
            id: "que_1".into(),
            about: About::Question {
                questions: vec![question(&["a"], false, true), question(&["b"], false, true)],
            },
            expires_at_ms: 0,
            post: None,
            settled: false,
        };
        let settlement = AskDecision {
            by: Person { id: "1".to_owned(), name: "Robin".to_owned() },
            choice: Choice::Answers(vec![
                vec!["a".to_owned()],
                vec!["b".to_owned(), "and c".to_owned()],
            ]),
        };
        assert_eq!(settled(&ask, &settlement), "Robin answered:\nColour: a\nColour: b, and c");
        assert_eq!(too_late(&ask, &settlement), "This was already decided: Robin answered.");
    }

    fn person(name: &str) -> Person {
        Person { id: name.to_owned(), name: name.to_owned() }
    }

    /// A running turn with one open question, and no control flags.
    fn asking() -> (Session, ControlFlags) {
        let thread = crate::base::ids::ThreadKey::discord("1", "2").expect("valid");
        let mut session = Session::new(thread, 0);
        let ask = Ask {
            id: "que_1".into(),
            about: About::Question { questions: vec![question(&["a", "b"], false, false)] },
            expires_at_ms: 100,
            post: None,
            settled: false,
        };
        let turn = serde_json::json!({
            "id": "t", "by": person("Ada"), "accepted_at_ms": 0, "stage": {"stage": "running", "ids": {"message": "msg_1", "part": "prt_1"}, "generation": 3, "at_ms": 1},
            "asks": [ask],
        });
        session.turn = serde_json::from_value(turn).expect("a turn");
        (session, ControlFlags::default())
    }

    fn words_of(ruling: DecisionEffect<'_>) -> String {
        match ruling {
            DecisionEffect::TellPerson(words) => words,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn first_timely_decision_wins() {
        let press = Choice::Form(vec![picked(0, &[1])]);
        let ruled = |found: &(Session, ControlFlags), by: &str, receive, now_ms| {
            let ruling =
                rule(Some((&found.0, &found.1)), ("que_1", &press), &person(by), receive, now_ms);
            format!("{ruling:?}")
        };
        let mut found = asking();
        assert!(ruled(&found, "Ada", 1, 99).starts_with("Mark { generation: 3"));
        assert!(ruled(&found, "Ada", 1, 100).contains("time to answer is over"));
        let settlement =
            AskDecision { by: person("Ada"), choice: Choice::Answers(vec![vec!["b".to_owned()]]) };
        found.1.settled.insert("que_1".into(), settlement);
        assert!(ruled(&found, "Ada", 2, 500).starts_with("TellAgent { generation: 3"));
        for (by, receive) in [("Ada", 1), ("Sam", 1), ("Sam", 2)] {
            assert!(
                ruled(&found, by, receive, 50).contains("already decided: Ada answered: b."),
                "{by}"
            );
        }
        if let Some(turn) = &mut found.0.turn {
            turn.asks[0].settled = true;
            turn.asks[0].about.shrink();
        }
        assert!(ruled(&found, "Ada", 2, 50).contains("already decided: Ada answered: b."));
    }

    #[test]
    fn late_or_unfit_decision_changes_nothing() {
        let press = Choice::Form(vec![picked(0, &[1])]);
        let told = |found: Option<&(Session, ControlFlags)>, ask: &str, choice: &Choice| {
            words_of(rule(
                found.map(|(session, flags)| (session, flags)),
                (ask, choice),
                &person("Ada"),
                1,
                50,
            ))
        };
        let open = asking();
        assert_eq!(told(None, "que_1", &press), OVER);
        assert_eq!(told(Some(&open), "que_2", &press), OVER);
        assert!(told(Some(&open), "que_1", &Choice::Once).contains("does not match"));
        assert!(told(Some(&open), "que_1", &Choice::Form(vec![])).contains("no answer yet"));
        for change in [
            |turn: &mut crate::records::turn::Turn| turn.asks[0].settled = true,
            |turn: &mut crate::records::turn::Turn| turn.cancelled_by = Some(person("Sam")),
        ] {
            let mut found = asking();
            change(found.0.turn.as_mut().expect("a turn"));
            assert_eq!(told(Some(&found), "que_1", &press), OVER);
        }
        let mut idle = asking();
        idle.0.turn = None;
        assert_eq!(told(Some(&idle), "que_1", &press), OVER);
    }
}
