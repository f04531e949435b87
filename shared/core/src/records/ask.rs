//! A permission request or question of the agent, and a person's answer. [`crate::shown::asks`] decides which answers
//! are valid.

use serde::{Deserialize, Serialize};

use crate::base::ids::{AskId, Ms, PostRef};
use crate::base::person::Person;
use crate::text::{one_line, shorten};

/// Most questions kept of one ask; OpenCode treats a missing answer as not given.
pub const QUESTIONS_MAX: usize = 10;
/// Most options kept of one question.
pub const OPTIONS_MAX: usize = 100;
/// Characters kept of a question's text; the rest is cut.
pub const TEXT_CHARS_MAX: usize = 1_000;
/// Characters of a question's short name (OpenCode's schema: 30).
pub const HEADER_CHARS_MAX: usize = 40;
/// Characters of an option's name, which is also the answer.
pub const LABEL_CHARS_MAX: usize = 120;
/// Characters of an option's description.
pub const DESCRIPTION_CHARS_MAX: usize = 200;
/// Characters of all texts of one ask. The rest is left out, so that a record with several asks stays far below its
/// store's bound.
pub const ASK_CHARS_MAX: usize = 12_000;
/// Characters kept of a permission's command or path.
pub const SUBJECT_CHARS_MAX: usize = 4_000;
/// Most patterns kept with a permission.
pub const PATTERNS_MAX: usize = 5;
/// Characters of one pattern.
pub const PATTERN_CHARS_MAX: usize = 120;
/// Characters of a person's own words in answer to one question.
pub const WORDS_CHARS_MAX: usize = 1_000;

/// A permission or question that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Ask {
    /// Its id at OpenCode (`per_…` or `que_…`).
    pub id: AskId,
    /// What the agent wants to know or to be allowed.
    pub about: About,
    /// From this time on it counts as no.
    pub expires_at_ms: Ms,
    /// Its post in the thread, once posted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post: Option<PostRef>,
    /// It is settled, and its post says so.
    #[serde(default)]
    pub settled: bool,
}

/// The subject of an ask.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "about", rename_all = "snake_case")]
pub enum About {
    /// The agent needs permission for an action.
    Permission {
        /// OpenCode's name for the action: `bash`, `edit`, `external_directory`, `read`.
        action: String,
        /// The exact command or file; only its beginning if it is long.
        subject: String,
        /// Characters of the subject that are not kept.
        #[serde(default)]
        left_out: usize,
        /// Places outside of the project that it reaches, as patterns.
        #[serde(default)]
        places: Box<[String]>,
        /// What "always" would cover, as patterns; empty if it would cover nothing more.
        #[serde(default)]
        always: Box<[String]>,
    },
    /// The agent asks one question, or several together.
    Question {
        /// The questions, in the order in which they are shown.
        #[serde(default)]
        questions: Vec<Question>,
    },
}

impl About {
    /// Shortens a settled ask to a few words, so that a turn that asks often does not make its record grow with each
    /// ask.
    pub fn shrink(&mut self) {
        const KEPT_CHARS: usize = 80;
        match self {
            Self::Permission { subject, places, always, .. } => {
                *subject = shorten(subject, KEPT_CHARS);
                *places = Box::default();
                *always = Box::default();
            }
            Self::Question { questions } => {
                for question in questions {
                    question.text = shorten(&question.text, KEPT_CHARS);
                    question.options.clear();
                }
            }
        }
    }
}

/// One question, as OpenCode asks it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Question {
    /// A short name; may be empty.
    pub header: String,
    /// The question in full, as the agent asks it.
    pub text: String,
    /// The options.
    pub options: Vec<Opt>,
    /// More than one option may be chosen.
    pub multiple: bool,
    /// Own words are accepted as an answer.
    pub free: bool,
}

/// An option of a question.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Opt {
    /// Its name, which is also the answer.
    pub label: String,
    /// Its meaning; may be empty.
    pub description: String,
}

impl Question {
    /// Whether own words are accepted; always true without options.
    #[must_use]
    pub fn takes_words(&self) -> bool {
        self.free || self.options.is_empty()
    }

    /// A short name, on one line.
    #[must_use]
    pub fn name(&self) -> String {
        let from = if self.header.trim().is_empty() { &self.text } else { &self.header };
        shorten(&one_line(from), HEADER_CHARS_MAX)
    }

    pub(crate) fn label(&self, words: &str) -> Option<String> {
        let same = |option: &&Opt| option.label.trim().eq_ignore_ascii_case(words);
        self.options.iter().find(same).map(|o| o.label.clone())
    }

    /// The options that typed text names, by number (from 1) or label: one, or several separated by commas.
    pub(crate) fn named(&self, text: &str) -> Option<Vec<String>> {
        let one = |word: &str| {
            let word = word.trim().trim_end_matches('.');
            let numbered = word.parse::<usize>().ok();
            let numbered = numbered.and_then(|n| self.options.get(n.checked_sub(1)?));
            numbered.map(|option| option.label.clone()).or_else(|| self.label(word))
        };
        one(text).map(|label| vec![label]).or_else(|| text.split([',', ';']).map(one).collect())
    }
}

/// One filled-in field of a form. Numbers count from 0.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "field", rename_all = "snake_case")]
pub enum Field {
    /// Chosen options of a question.
    Picked {
        /// The question's index in the ask, from 0.
        question: usize,
        /// The indexes of the chosen options, from 0.
        options: Vec<usize>,
    },
    /// Own words, taken as they are.
    Words {
        /// The question's index in the ask, from 0.
        question: usize,
        /// Own words, instead of an option.
        text: String,
    },
    /// Numbers of options (from 1), their labels, or own words.
    Typed {
        /// The question's index in the ask, from 0.
        question: usize,
        /// The text typed into its field.
        text: String,
    },
    /// One line per question: its number (from 1), a colon, and what [`Field::Typed`] takes.
    Lines {
        /// One line per question, numbered if there are several.
        text: String,
    },
}

/// A decision on an ask.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "choice", content = "value", rename_all = "snake_case")]
pub enum Choice {
    /// Permit this one call.
    Once,
    /// Permit calls like this one.
    Always,
    /// Deny the permission, or skip the question.
    Reject,
    /// A filled-in form; its answers are worked out beside the record of the questions.
    Form(Vec<Field>),
    /// The answers: per question, a list of labels or own words.
    Answers(Vec<Vec<String>>),
}

/// A decision on an ask, with the person who made it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AskDecision {
    /// The person whose decision counts: the first one.
    pub by: Person,
    /// Their decision.
    pub choice: Choice,
}
