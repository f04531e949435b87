//! Names of an ask's buttons and inputs, on every platform. Anybody can send any of these names, so they only say where
//! to look: their meaning is stored with the record of the ask.

use bobbin_core::records::ask::{Choice, Field};

/// A question with one choice of at most this many options has a button for each.
pub const FEW_OPTIONS: usize = 5;
/// Maximum length of a name that is parsed.
const NAME_BYTES_MAX: usize = 4;

/// A button that decides at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Press {
    /// Permits this one call.
    Once,
    /// Permits calls like this one.
    Always,
    /// Refuses the agent's request.
    Reject,
    /// Index of the option in the only question.
    Option(usize),
}

impl Press {
    /// The button's name: `once`, `always`, `reject`, or `o` and the option's index.
    #[must_use]
    pub fn word(self) -> String {
        match self {
            Self::Once => "once".to_owned(),
            Self::Always => "always".to_owned(),
            Self::Reject => "reject".to_owned(),
            Self::Option(index) => format!("o{index}"),
        }
    }

    /// Parses a name; `None` if no button has it.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "once" => Some(Self::Once),
            "always" => Some(Self::Always),
            "reject" => Some(Self::Reject),
            _ => index(word.strip_prefix('o')?).map(Self::Option),
        }
    }

    /// The choice, as stored in the record of the ask.
    #[must_use]
    pub fn choice(self) -> Choice {
        match self {
            Self::Once => Choice::Once,
            Self::Always => Choice::Always,
            Self::Reject => Choice::Reject,
            Self::Option(option) => picked(vec![option]),
        }
    }
}

/// A choice of options for an ask's only question.
#[must_use]
pub fn picked(options: Vec<usize>) -> Choice {
    Choice::Form(vec![Field::Picked { question: 0, options }])
}

/// An input of a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormInput {
    /// Options of the question with this index.
    Select(usize),
    /// Free text for that question.
    Words(usize),
    /// Option numbers or free text for that question.
    Typed(usize),
    /// One line per question.
    Lines,
}

impl FormInput {
    /// The input's name: `s`, `w` or `n` and the question's index, or `x`.
    #[must_use]
    pub fn word(self) -> String {
        match self {
            Self::Select(question) => format!("s{question}"),
            Self::Words(question) => format!("w{question}"),
            Self::Typed(question) => format!("n{question}"),
            Self::Lines => "x".to_owned(),
        }
    }

    /// Parses a name; `None` if no input has it.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        if word == "x" {
            return Some(Self::Lines);
        }
        let mut chars = word.chars();
        let kind = chars.next()?;
        let question = index(chars.as_str())?;
        match kind {
            's' => Some(Self::Select(question)),
            'w' => Some(Self::Words(question)),
            'n' => Some(Self::Typed(question)),
            _ => None,
        }
    }

    /// The value entered: the values of a select, or a text.
    #[must_use]
    pub fn filled(self, values: &[String], text: &str) -> Option<Field> {
        let text = text.to_owned();
        match self {
            Self::Select(question) => {
                let option = |value: &String| match Press::parse(value)? {
                    Press::Option(option) => Some(option),
                    _ => None,
                };
                let options: Vec<usize> = values.iter().map(option).collect::<Option<_>>()?;
                Some(Field::Picked { question, options })
            }
            Self::Words(question) => Some(Field::Words { question, text }),
            Self::Typed(question) => Some(Field::Typed { question, text }),
            Self::Lines => Some(Field::Lines { text }),
        }
    }
}

fn index(digits: &str) -> Option<usize> {
    let plain = digits.bytes().all(|b| b.is_ascii_digit());
    (plain && digits.len() < NAME_BYTES_MAX).then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn press_words_round_trip() {
        for press in [Press::Once, Press::Always, Press::Reject, Press::Option(99)] {
            assert_eq!(Press::parse(&press.word()), Some(press));
        }
        for input in
            [FormInput::Select(0), FormInput::Words(9), FormInput::Typed(3), FormInput::Lines]
        {
            assert_eq!(FormInput::parse(&input.word()), Some(input));
        }
        for odd in ["", "o", "o-1", "o1234", "x1", "s", "q1", "maybe", "é1"] {
            assert_eq!((Press::parse(odd), FormInput::parse(odd)), (None, None), "{odd}");
        }
    }

    #[test]
    fn select_takes_only_option_values() {
        let values = |values: &[&str]| values.iter().map(|v| (*v).to_owned()).collect::<Vec<_>>();
        let filled = FormInput::Select(1).filled(&values(&["o0", "o4"]), "");
        let options = vec![0, 4];
        assert_eq!(filled, Some(Field::Picked { question: 1, options }));
        assert_eq!(FormInput::Select(1).filled(&values(&["once"]), ""), None);
    }
}
