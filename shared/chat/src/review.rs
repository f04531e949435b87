//! What a review of a pull request says on every chat, and how its subject and text go through a form.
//!
//! A person approves what they read and edits what they read, so both are written in one notation: nothing in it is
//! invisible, and the exact text is read back from it. A character that does not show stands there by its number
//! (`\u{202e}`). The space without a width, by which quoted words mention nobody, is `␣`. The third of three
//! backticks, which would end a block of code, is `ˋ`.

use bobbin_core::base::names::is_short_name;
use bobbin_core::records::card::{OfferOfAll, OthersCommits, PublishOffer, Review};
use bobbin_core::records::control::{PublishStep, ShowOf};
use bobbin_core::records::publication::{BODY_CHARS_MAX, SUBJECT_CHARS_MAX};
use bobbin_core::text::{shorten, visible};

/// Stands for the space without a width.
pub(crate) const BLANK: char = '\u{2423}';
/// Stands for a backtick.
pub(crate) const TICK: char = '\u{2cb}';
const NO_WIDTH: char = '\u{200b}';
/// Begins the number of a character.
const NUMBER: &str = "\\u{";
/// Maximum length of a path as shown.
const PATH_UNITS_MAX: usize = 160;
/// Digits of a commit as shown.
const COMMIT_DIGITS: usize = 12;
/// The most characters of a text that any chat shows.
const SHOWN_CHARS_MAX: usize = 4_000;
/// Characters by which a text that cannot be shown whole is cut, until it can.
const CUT_CHARS: usize = 50;

/// Line below a text in which the sign for a space without a width occurs.
pub(crate) const BLANKS: &str =
    "␣ stands for a space that is not shown: it keeps words from mentioning somebody.";

/// The text in the notation.
pub(crate) fn written(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut ticks = 0;
    for c in text.replace(NUMBER, "\\u{5c}u{").chars() {
        ticks = if c == '`' { ticks + 1 } else { 0 };
        match c {
            NO_WIDTH => out.push(BLANK),
            BLANK | TICK => out.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            '`' if ticks == 3 => {
                out.push(TICK);
                ticks = 0;
            }
            c => out.push(c),
        }
    }
    visible(&out)
}

/// The text whose notation this is.
pub(crate) fn meant(written: &str) -> String {
    let signs = |text: &str| text.replace(BLANK, "\u{200b}").replace(TICK, "`");
    let numbered = |after: &str| {
        let (digits, rest) = after.split_once('}')?;
        let hex = (1..=6).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_hexdigit());
        let number = hex.then(|| u32::from_str_radix(digits, 16).ok())??;
        Some((char::from_u32(number)?, rest.len()))
    };
    let mut out = String::with_capacity(written.len());
    let mut rest = written;
    while let Some((before, after)) = rest.split_once(NUMBER) {
        out.push_str(&signs(before));
        match numbered(after) {
            Some((c, left)) => {
                out.push(c);
                rest = &after[after.len() - left..];
            }
            None => {
                out.push_str(NUMBER);
                rest = after;
            }
        }
    }
    out.push_str(&signs(rest));
    out
}

/// As much of the text as fits, in the notation, and the number of characters left over.
pub(crate) fn kept(text: &str, fits: impl Fn(&str) -> bool) -> (String, usize) {
    let all = text.chars().count();
    let mut count = all.min(SHOWN_CHARS_MAX);
    loop {
        let shown = written(&text.chars().take(count).collect::<String>());
        if count == 0 || fits(&shown) {
            return (shown, all - count);
        }
        count = count.saturating_sub(CUT_CHARS);
    }
}

/// Sentence that this many characters of a text are not shown: nothing can be pressed that was not read.
pub(crate) fn too_long(left_over: usize) -> String {
    format!(
        "{left_over} more characters of the text cannot be shown here, so it cannot be published. Make it shorter."
    )
}

/// What a form asks to show for the repository whose commit it showed; both texts in the notation.
///
/// # Errors
/// Which of them is too long, in words for the person.
pub(crate) fn edited(
    subject: &str,
    body: &str,
    commit: Option<&str>,
) -> Result<PublishStep, String> {
    let read = |text: &str| meant(&text.replace("\r\n", "\n")).trim().to_owned();
    let (subject, body) = (read(subject), read(body));
    for (name, text, most) in
        [("subject", &subject, SUBJECT_CHARS_MAX), ("text", &body, BODY_CHARS_MAX)]
    {
        let count = text.chars().count();
        if count > most {
            return Err(format!(
                "The {name} has {count} characters; at most {most} are possible. Nothing was changed."
            ));
        }
    }
    let subject = Some(subject).filter(|subject| !subject.is_empty());
    let of = commit.filter(|commit| is_commit(commit));
    let of = of.map(|commit| ShowOf::Commit(commit.to_owned()));
    Ok(PublishStep::Show { subject, body: Some(body), of })
}

/// What a command wants to be shown; a text that was left out is made of the work.
pub(crate) fn asked(subject: Option<&str>, body: Option<&str>) -> PublishStep {
    let given = |text: Option<&str>| {
        let text = text?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    };
    PublishStep::Show { subject: given(subject), body: given(body), of: None }
}

/// The step of the button that publishes what was shown; `None` if this is no commit.
pub(crate) fn push(commit: &str) -> Option<PublishStep> {
    is_commit(commit).then(|| PublishStep::Push { commit: commit.to_owned() })
}

/// The step of the button that publishes what was shown of several repositories; `None` if this is no name.
pub(crate) fn push_all(name: &str) -> Option<PublishStep> {
    is_short_name(name).then(|| PublishStep::PushAll { name: name.to_owned() })
}

/// Label of that button.
pub(crate) fn label_of_all(offer: &OfferOfAll) -> String {
    format!("Publish all {}", offer.repositories)
}

/// Whether this is a commit's whole name.
pub(crate) fn is_commit(name: &str) -> bool {
    name.len() == 40 && name.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Label of the button that publishes it.
pub(crate) const fn label(review: &Review) -> &'static str {
    match review.offer {
        PublishOffer::Open if review.is_draft => "Open draft pull request",
        offer => offer.label(),
    }
}

/// What it is.
pub(crate) const fn title(review: &Review) -> &'static str {
    match review.offer {
        PublishOffer::Open if review.is_draft => "A draft pull request",
        PublishOffer::Open => "A pull request",
        PublishOffer::Update => "An update of the pull request",
    }
}

/// The first digits of its commit.
pub(crate) fn commit(review: &Review) -> &str {
    let commit = &review.proposal.commit;
    commit.get(..COMMIT_DIGITS).unwrap_or(commit)
}

/// How many files change.
pub(crate) fn files_total(review: &Review) -> String {
    match review.files_total {
        1 => "1 file changes".to_owned(),
        n => format!("{n} files change"),
    }
}

/// The changed files for which there is room, one a line, and the number of the others.
pub(crate) fn files(
    review: &Review,
    room: usize,
    cost: impl Fn(&str) -> usize,
) -> (Vec<String>, usize) {
    let mut left = room;
    let mut lines = Vec::new();
    for file in &review.files {
        let path = shorten(&written(&file.path), PATH_UNITS_MAX);
        let line = format!("{} {path}", file.how.sign());
        let Some(rest) = left.checked_sub(cost(&line) + 1) else {
            break;
        };
        left = rest;
        lines.push(line);
    }
    let more = review.files_total.saturating_sub(lines.len());
    (lines, more)
}

/// What else a person should know before they press.
pub(crate) fn warnings(review: &Review) -> Vec<String> {
    let workflows = match review.workflows {
        0 => None,
        1 => Some("A push starts this repository's workflows (1 file).".to_owned()),
        n => Some(format!("A push starts this repository's workflows ({n} files).")),
    };
    let public = review
        .is_public
        .then(|| "The repository is public: everybody can read what is published.".to_owned());
    let others = review.others.map(|others| match others {
        OthersCommits::Pull(number) => {
            format!("Contains the commits of pull request #{number}, by others.")
        }
        OthersCommits::Unmerged => {
            "Contains commits of others, which the branch does not have.".to_owned()
        }
    });
    others.into_iter().chain(workflows).chain(public).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use bobbin_core::records::publication::{OutgoingChange, OutgoingFile, Proposal, subject};
    use bobbin_core::text::is_hidden;
    use proptest::prelude::*;

    use super::*;

    /// A review with this subject and text.
    pub(crate) fn review(text_of_subject: &str, body: &str) -> Review {
        let file = |path: &str, how| OutgoingFile { path: path.to_owned(), how };
        Review {
            proposal: Proposal {
                commit: "0123456789abcdef0123456789abcdef01234567".to_owned(),
                subject: subject(text_of_subject),
                body: body.to_owned(),
            },
            repository: "acme/api".to_owned(),
            is_public: false,
            branch: "bobbin/add-login-01234567".to_owned(),
            into: "main".to_owned(),
            files: vec![
                file("src/login.rs", OutgoingChange::Added),
                file("src/main.rs", OutgoingChange::Modified),
                file("src/old.rs", OutgoingChange::Deleted),
            ],
            files_total: 3,
            workflows: 0,
            offer: PublishOffer::Open,
            all: None,
            is_draft: true,
            others: None,
        }
    }

    /// Long names of files, more than fit.
    pub(crate) fn many_files() -> Vec<OutgoingFile> {
        let path = |n: usize| format!("{n}/{}", "a".repeat(120));
        (0..40).map(|n| OutgoingFile { path: path(n), how: OutgoingChange::Added }).collect()
    }

    #[test]
    fn notation_shows_what_is_hidden() {
        assert_eq!(written("@\u{200b}anna \u{202e}x"), "@␣anna \\u{202e}x");
        assert_eq!(written("```rust\n````"), "``ˋrust\n``ˋ`");
        assert_eq!(written("ˋ ␣ \\u{41} \\n"), "\\u{2cb} \\u{2423} \\u{5c}u{41} \\n");
        assert_eq!(meant("a \\u{zz} \\u{110000} \\u{} \\u{"), "a \\u{zz} \\u{110000} \\u{} \\u{");
    }

    /// Texts of what the notation has signs for.
    pub(crate) fn pieces() -> impl Strategy<Value = String> {
        const ODD: &[&str] = &[
            "`", "```", "\\", "\\u{", "u{", "}", "5c}", "ˋ", "␣", "@", "\u{200b}", "\u{202e}",
            "\u{fe0f}", "\u{200d}", "❤", "\n", "\t", "\u{7}", "word",
        ];
        let piece =
            prop_oneof![3 => prop::sample::select(ODD).prop_map(str::to_owned), 1 => "\\PC{0,4}"];
        prop::collection::vec(piece, 0..40).prop_map(|all| all.concat())
    }

    proptest! {
        #[test]
        fn notation_gives_the_exact_text_back(text in pieces()) {
            let shown = written(&text);
            prop_assert!(!shown.contains("```"));
            let joins = |c: char| matches!(c, '\u{fe0e}' | '\u{fe0f}' | '\u{200d}');
            prop_assert!(shown.chars().all(|c| !is_hidden(c) || joins(c)));
            prop_assert_eq!(meant(&shown), text);
        }
    }

    #[test]
    fn form_refuses_texts_that_are_too_long() {
        let long = "x".repeat(BODY_CHARS_MAX + 1);
        assert_eq!(
            edited("Add", &long, None),
            Err(format!(
                "The text has {} characters; at most {BODY_CHARS_MAX} are possible. Nothing was changed.",
                BODY_CHARS_MAX + 1
            ))
        );
        let subject = edited(&"x".repeat(121), "", None).expect_err("it is too long");
        assert!(subject.starts_with("The subject has 121 characters; at most 120"), "{subject}");
        let step = edited(" ", "a\r\nb \\u{200b}@␣c\n", None);
        let body = Some("a\nb \u{200b}@\u{200b}c".to_owned());
        assert_eq!(step, Ok(PublishStep::Show { subject: None, body, of: None }));
    }

    #[test]
    fn only_a_commit_can_be_pushed() {
        let commit = "0123456789abcdef0123456789abcdef01234567";
        assert_eq!(push(commit), Some(PublishStep::Push { commit: commit.to_owned() }));
        assert_eq!(push("main"), None);
        assert_eq!(push(&"é".repeat(20)), None);
    }
}
