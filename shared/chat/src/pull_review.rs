//! What the card of an agent's review of a pull request says on every chat.
//!
//! A person approves what they read: all of it stands on the card in the notation of [`crate::review`], or in the file
//! above it. Otherwise there is no button.

use bobbin_core::base::names::is_short_name;
use bobbin_core::records::card::ReviewCard;
use bobbin_core::records::control::PublishStep;

/// Label of the button that posts it.
pub(crate) const POST: &str = "Post review";
/// Digits of a commit as shown.
const COMMIT_DIGITS: usize = 12;

/// The step of that button; `None` if this is no review's name.
pub(crate) fn step(name: &str) -> Option<PublishStep> {
    is_short_name(name).then(|| PublishStep::Review { name: name.to_owned() })
}

/// What it is.
pub(crate) fn title(card: &ReviewCard) -> String {
    format!("A review of pull request #{}", card.number)
}

/// The first digits of the commit that was reviewed.
pub(crate) fn commit(card: &ReviewCard) -> &str {
    card.head.get(..COMMIT_DIGITS).unwrap_or(&card.head)
}

/// How many comments it has.
pub(crate) fn comments(card: &ReviewCard) -> String {
    let apart = match card.draft.apart.len() {
        0 => String::new(),
        n => format!(", and {n} outside the diff, added to the text"),
    };
    match card.draft.comments.len() {
        1 => format!("1 comment on lines{apart}."),
        n => format!("{n} comments on lines{apart}."),
    }
}

/// Sentence that this many characters of a text are not shown on the card; empty if all are.
pub(crate) fn left_out(card: &ReviewCard, left_over: usize) -> String {
    match (left_over, card.has_file) {
        (0, _) => String::new(),
        (n, true) => format!("{n} more characters: all of it is in the file review.txt above."),
        (n, false) => format!(
            "{n} more characters cannot be shown here, so it cannot be posted. Ask the agent for a shorter one."
        ),
    }
}

/// Whether it can be posted from the card.
pub(crate) const fn may_be_posted(card: &ReviewCard, left_over: usize) -> bool {
    left_over == 0 || card.has_file
}

/// What else a person should know before they press.
pub(crate) fn notes(card: &ReviewCard) -> Vec<String> {
    let public = card
        .is_public
        .then(|| "The repository is public: everybody can read what is posted.".to_owned());
    let nothing = "Nothing is posted before somebody presses the button.".to_owned();
    public.into_iter().chain([nothing]).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use bobbin_core::records::drafted_review::{DiffSide, DraftedComment, DraftedReview};

    use super::*;

    pub(crate) fn a_card(text: &str) -> ReviewCard {
        let comment = |path: &str, line| DraftedComment {
            path: path.to_owned(),
            line,
            start_line: None,
            side: DiffSide::Right,
            body: text.to_owned(),
        };
        ReviewCard {
            name: "0123456789abcdef01234567".to_owned(),
            repository: "acme/api".to_owned(),
            is_public: false,
            number: 12,
            head: "0123456789abcdef0123456789abcdef01234567".to_owned(),
            draft: DraftedReview {
                summary: text.to_owned(),
                comments: vec![comment("src/a.rs", 3)],
                apart: Vec::new(),
            },
            has_file: false,
        }
    }

    #[test]
    fn what_was_not_shown_has_no_button() {
        let card = a_card("x");
        assert!(may_be_posted(&card, 0) && !may_be_posted(&card, 1));
        let card = ReviewCard { has_file: true, ..card };
        assert!(may_be_posted(&card, 1));
        assert_eq!(
            left_out(&card, 9),
            "9 more characters: all of it is in the file review.txt above."
        );
    }

    #[test]
    fn only_a_reviews_name_is_pressed() {
        let name = "0123456789abcdef01234567";
        assert_eq!(step(name), Some(PublishStep::Review { name: name.to_owned() }));
        assert_eq!(step("main"), None);
        assert_eq!(step(&"g".repeat(24)), None);
    }
}
