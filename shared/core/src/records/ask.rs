//! A permission or question of the agent, and what a person says to it. What may be said is ruled on in
//! [`crate::shown::asks`].

use serde::{Deserialize, Serialize};

use crate::base::ids::{AskId, Ms, PostRef};
use crate::base::person::Person;
use crate::text::{one_line, shorten};

/// Questions of one ask that are kept; OpenCode counts an answer that is missing as not given.
pub const QUESTIONS_MAX: usize = 10;
/// Options of one question that are kept.
pub const OPTIONS_MAX: usize = 100;
/// Characters of a question that are kept; more are cut.
pub const TEXT_CHARS_MAX: usize = 1_000;
/// A question's short name (OpenCode's schema: 30 characters).
pub const HEADER_CHARS_MAX: usize = 40;
/// An option's name, which is also the answer.
pub const LABEL_CHARS_MAX: usize = 120;
/// What an option means.
pub const DESCRIPTION_CHARS_MAX: usize = 200;
/// All words of one ask: what is beyond is left out, so that a record with several stays far below its store's bound.
pub const ASK_CHARS_MAX: usize = 12_000;
/// A command or path that is kept with a permission.
pub const SUBJECT_CHARS_MAX: usize = 4_000;
/// Patterns that are kept with a permission, and characters of one.
pub const PATTERNS_MAX: usize = 5;
/// Characters of one pattern.
pub const PATTERN_CHARS_MAX: usize = 120;
/// Somebody's own words in answer to one question.
pub const WORDS_CHARS_MAX: usize = 1_000;

/// A permission or question that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Ask {
    /// Its id at OpenCode (`per_…` or `que_…`).
    pub id: AskId,
    /// What the agent wants to know or to be allowed.
    pub about: About,
    /// After this it counts as no.
    pub expires_at_ms: Ms,
    /// Where it stands in the thread, once it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post: Option<PostRef>,
    /// It has been settled and its post says so.
    #[serde(default)]
    pub settled: bool,
}

/// What an ask is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "about", rename_all = "snake_case")]
pub enum About {
    /// The agent wants to do something that needs a yes.
    Permission {
        /// OpenCode's word: `bash`, `edit`, `external_directory`, `read`.
        action: String,
        /// The exact command or file, its beginning if it is long.
        subject: String,
        /// Characters of it that are not kept.
        #[serde(default)]
        left_out: usize,
        /// Places outside of the project that it reaches, as patterns.
        #[serde(default)]
        places: Box<[String]>,
        /// What "always" would cover, as patterns; empty where it would cover nothing more.
        #[serde(default)]
        always: Box<[String]>,
    },
    /// The agent asks, one question or several together.
    Question {
        /// The questions, in the order in which they are shown.
        #[serde(default)]
        questions: Vec<Question>,
    },
}

impl About {
    /// A settled ask needs no more than a few words: a turn that asks often must not make its record grow with each.
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
    /// A word or two that name it; may be empty.
    pub header: String,
    /// The question in full, as the agent asks it.
    pub text: String,
    /// What can be chosen.
    pub options: Vec<Opt>,
    /// More than one option may be chosen.
    pub multiple: bool,
    /// Own words are an answer too.
    pub free: bool,
}

/// One thing to choose.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Opt {
    /// Its name, which is also the answer.
    pub label: String,
    /// What it means; may be empty.
    pub description: String,
}

impl Question {
    /// Whether own words are taken: where nothing can be chosen, nothing else is possible.
    #[must_use]
    pub fn takes_words(&self) -> bool {
        self.free || self.options.is_empty()
    }

    /// How it is called in a few words, on one line.
    #[must_use]
    pub fn name(&self) -> String {
        let from = if self.header.trim().is_empty() { &self.text } else { &self.header };
        shorten(&one_line(from), HEADER_CHARS_MAX)
    }

    pub(crate) fn label(&self, words: &str) -> Option<String> {
        let same = |option: &&Opt| option.label.trim().eq_ignore_ascii_case(words);
        self.options.iter().find(same).map(|o| o.label.clone())
    }

    /// The options that typed words name, by number (from 1) or label: one, or several between commas.
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

/// One thing that was filled in. Numbers count from 0.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "field", rename_all = "snake_case")]
pub enum Field {
    /// Options of a question.
    Picked {
        /// The question's place among those of the ask, from 0.
        question: usize,
        /// The places of the chosen options, from 0.
        options: Vec<usize>,
    },
    /// Own words, as they are.
    Words {
        /// The question's place among those of the ask, from 0.
        question: usize,
        /// Own words, in place of an option of the list.
        text: String,
    },
    /// Numbers of options (from 1), their labels, or own words.
    Typed {
        /// The question's place among those of the ask, from 0.
        question: usize,
        /// What was typed into its field.
        text: String,
    },
    /// A line a question: its number (from 1), a colon, and what [`Field::Typed`] takes.
    Lines {
        /// A line for each question, numbered where there are several.
        text: String,
    },
}

/// How an ask was settled.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "choice", content = "value", rename_all = "snake_case")]
pub enum Choice {
    /// Permission for this one call.
    Once,
    /// Permission for calls like this one.
    Always,
    /// It is denied, or the question is skipped.
    Reject,
    /// A question's form, as it was filled in: what it comes to is found beside the record of what was asked.
    Form(Vec<Field>),
    /// The answers: one list of labels or own words a question.
    Answers(Vec<Vec<String>>),
}

/// How an ask was settled, and by whom.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Settlement {
    /// The person whose decision counts: the first one in time.
    pub by: Person,
    /// Their decision.
    pub choice: Choice,
}
