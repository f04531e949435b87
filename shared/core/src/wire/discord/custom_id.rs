//! Names of buttons, selects and forms: `v1:<what>:<id>`. Anybody can send any of them, so they only say where to look.

use super::bounds::CUSTOM_ID_UNITS_MAX;
use crate::message::Choice;

/// What a click or a form is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CustomId {
    /// Stop this turn.
    Stop {
        /// Turn id.
        turn: String,
    },
    /// Run the prompt of this turn again.
    Again {
        /// Turn id.
        turn: String,
    },
    /// Open the form for a further prompt.
    Reply,
    /// That form, filled in.
    Say,
    /// An ask's button.
    Ask {
        /// The ask's id at OpenCode.
        ask: String,
        /// What the button stands for.
        choice: Choice,
    },
    /// An ask's select; what was chosen stands in the values.
    Pick {
        /// The ask's id at OpenCode.
        ask: String,
    },
}

impl CustomId {
    /// The text that Discord keeps, at most 100 characters: an id beyond that is cut, and then names nothing.
    #[must_use]
    pub fn text(&self) -> String {
        let text = match self {
            Self::Stop { turn } => format!("v1:stop:{turn}"),
            Self::Again { turn } => format!("v1:again:{turn}"),
            Self::Reply => "v1:reply".to_owned(),
            Self::Say => "v1:say".to_owned(),
            Self::Ask { ask, choice } => {
                format!("v1:ask:{}:{}", crate::text::shorten(ask, 80), word(choice))
            }
            Self::Pick { ask } => format!("v1:pick:{ask}"),
        };
        crate::text::shorten(&text, CUSTOM_ID_UNITS_MAX)
    }

    /// Reads the text; none for what is not ours, or from another version.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() > CUSTOM_ID_UNITS_MAX {
            return None;
        }
        let parts: Vec<&str> = text.split(':').collect();
        match parts[..] {
            ["v1", "stop", turn] if plain(turn) => Some(Self::Stop {
                turn: turn.to_owned(),
            }),
            ["v1", "again", turn] if plain(turn) => Some(Self::Again {
                turn: turn.to_owned(),
            }),
            ["v1", "reply"] => Some(Self::Reply),
            ["v1", "say"] => Some(Self::Say),
            ["v1", "ask", ask, choice] if plain(ask) => Some(Self::Ask {
                ask: ask.to_owned(),
                choice: parse_choice(choice)?,
            }),
            ["v1", "pick", ask] if plain(ask) => Some(Self::Pick {
                ask: ask.to_owned(),
            }),
            _ => None,
        }
    }
}

/// The word for a choice: `once`, `always`, `reject`, or `o` and the option's index.
#[must_use]
pub fn word(choice: &Choice) -> String {
    match choice {
        Choice::Once => "once".to_owned(),
        Choice::Always => "always".to_owned(),
        Choice::Reject => "reject".to_owned(),
        Choice::Option(index) => format!("o{index}"),
    }
}

/// Reads the word for a choice.
#[must_use]
pub fn parse_choice(word: &str) -> Option<Choice> {
    match word {
        "once" => Some(Choice::Once),
        "always" => Some(Choice::Always),
        "reject" => Some(Choice::Reject),
        _ => word
            .strip_prefix('o')
            .filter(|n| n.len() <= 3)?
            .parse()
            .ok()
            .map(Choice::Option),
    }
}

fn plain(id: &str) -> bool {
    !id.is_empty()
        && id
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_custom_id_survives_the_round_trip() {
        let ask = || "per_01ABCDEF".to_owned();
        for id in [
            CustomId::Stop {
                turn: "1182000000000000001".to_owned(),
            },
            CustomId::Reply,
            CustomId::Say,
            CustomId::Ask {
                ask: ask(),
                choice: Choice::Once,
            },
            CustomId::Ask {
                ask: ask(),
                choice: Choice::Always,
            },
            CustomId::Ask {
                ask: ask(),
                choice: Choice::Reject,
            },
            CustomId::Ask {
                ask: ask(),
                choice: Choice::Option(24),
            },
            CustomId::Pick { ask: ask() },
        ] {
            assert_eq!(CustomId::parse(&id.text()), Some(id));
        }
    }

    #[test]
    fn what_is_not_ours_is_not_read() {
        for text in [
            "",
            "hello",
            "v2:reply",
            "v1:stop:",
            "v1:stop:a:b",
            "v1:ask:per_1:maybe",
            "v1:ask:per_1:o-1",
            "v1:stop:a b",
            &"v1:pick:x".repeat(30),
        ] {
            assert_eq!(CustomId::parse(text), None, "{text}");
        }
    }

    #[test]
    fn an_id_that_is_too_long_still_fits_and_names_nothing() {
        let text = CustomId::Ask {
            ask: "x".repeat(500),
            choice: Choice::Always,
        }
        .text();
        assert!(text.encode_utf16().count() <= CUSTOM_ID_UNITS_MAX);
        assert_eq!(CustomId::parse(&text), None);
    }
}
