//! What the card of a pull request says on every chat.
//!
//! Names of checks, branches and people are theirs to choose: each chat shows them as code, in which nothing has an
//! effect.

use bobbin_core::base::names::is_short_name;
use bobbin_core::records::control::PublishStep;
use bobbin_core::records::publication::{PullRequestAct, PullRequestState};
use bobbin_core::records::pull_request::Mergeability;
use bobbin_core::records::watch::{
    CardSight, CheckSummary, CheckWord, PartlyRead, PolledList, PullRequestCard, ReviewSummary,
    SeenPullRequest, ShownNames,
};
use bobbin_core::text::and_more;

use crate::review::is_commit;

/// Maximum length of one name.
pub(crate) const NAME_UNITS_MAX: usize = 80;
/// Maximum length of what a forge said.
pub(crate) const WHY_UNITS_MAX: usize = 400;
/// Digits of a commit as shown.
const COMMIT_DIGITS: usize = 12;

/// The step of a button of the card; `None` if this is no commit.
pub(crate) fn step(act: PullRequestAct, head: &str) -> Option<PublishStep> {
    is_commit(head).then(|| PublishStep::Act { act, head: head.to_owned() })
}

/// The buttons of the card, and the head to which they are bound.
pub(crate) fn acts(card: &PullRequestCard) -> Vec<(PullRequestAct, &str)> {
    let CardSight::Seen(seen) = &card.seen else {
        return Vec::new();
    };
    seen.acts().into_iter().map(|act| (act, &*seen.head)).collect()
}

/// How a card looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CardTone {
    /// Something has failed.
    Bad,
    /// Everything is well.
    Good,
    /// Neither.
    Neutral,
}

/// Label of the button that begins a fix.
pub(crate) const FIX: &str = "Fix";

/// The step of that button; `None` if this is no name of a fix.
pub(crate) fn fix(name: &str) -> Option<PublishStep> {
    is_short_name(name).then(|| PublishStep::Fix { name: name.to_owned() })
}

/// The name of the fix that a card offers.
pub(crate) fn offered(card: &PullRequestCard) -> Option<&str> {
    match &card.seen {
        CardSight::Seen(seen) => seen.fix.as_deref(),
        _ => None,
    }
}

pub(crate) fn title(card: &PullRequestCard) -> String {
    format!("Pull request #{}", card.at.number)
}

pub(crate) fn tone(card: &PullRequestCard) -> CardTone {
    match &card.seen {
        CardSight::Seen(seen) => match (seen.checks.verdict, seen.merge) {
            (CheckWord::Red, _) | (_, Mergeability::Conflicts) => CardTone::Bad,
            (CheckWord::Green, _) => CardTone::Good,
            _ => CardTone::Neutral,
        },
        CardSight::Ended(PullRequestState::Merged) => CardTone::Good,
        CardSight::Ended(_) | CardSight::Unseen { .. } => CardTone::Neutral,
    }
}

/// The lines below the title. `code` shows a name, and `words` a sentence of somebody else.
pub(crate) fn lines(
    card: &PullRequestCard,
    code: impl Fn(&str) -> String,
    words: impl Fn(&str) -> String,
) -> Vec<String> {
    match &card.seen {
        CardSight::Ended(PullRequestState::Merged) => vec!["Merged.".to_owned()],
        CardSight::Ended(_) => vec!["Closed without being merged.".to_owned()],
        CardSight::Unseen { why, is_given_up } => {
            let next = if *is_given_up {
                "Bobbin has stopped trying: update the pull request from this thread to begin again."
            } else {
                "Bobbin keeps trying."
            };
            vec![format!(
                "Bobbin could not look at it lately, so it may have changed: {} {next}",
                words(why)
            )]
        }
        CardSight::Seen(seen) => {
            let read = [
                state(seen, &code),
                checks(&seen.checks, &code),
                reviews(seen, &code),
                merge(seen, &code),
            ];
            read.into_iter().chain(unread(&seen.unread)).collect()
        }
    }
}

fn state(seen: &SeenPullRequest, code: impl Fn(&str) -> String) -> String {
    let what = match (seen.is_queued, seen.is_draft) {
        (true, _) => "Waiting in the merge queue",
        (false, true) => "Draft",
        (false, false) => "Open",
    };
    let head = code(seen.head.get(..COMMIT_DIGITS).unwrap_or(&seen.head));
    let by = if seen.is_theirs { ", pushed by somebody else" } else { "" };
    format!("{what}, into {}. Newest commit: {head}{by}.", code(&seen.base))
}

fn checks(checks: &CheckSummary, code: impl Fn(&str) -> String) -> String {
    let CheckSummary { verdict, passed, running, failed, held, missing, is_cut } = checks;
    let said = match verdict {
        CheckWord::None => return "Checks: none.".to_owned(),
        CheckWord::Green => return format!("Checks: all {passed} passed."),
        CheckWord::Held | CheckWord::Red | CheckWord::Unsettled => {
            let counted = |count: usize, what: &str| (count > 0).then(|| format!("{count} {what}"));
            let named = |names: &ShownNames, what: &str| {
                let count = counted(names.total, what)?;
                Some(format!("{count} ({})", listed(names, &code)))
            };
            let parts = [
                named(failed, "failed"),
                named(held, "cancelled or waiting for a person"),
                counted(*running, "running"),
                named(missing, "required and not begun"),
                counted(*passed, "passed"),
            ];
            parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
        }
    };
    let is_quiet = *running == 0 && missing.total == 0;
    let more = match verdict {
        _ if *is_cut => " There are more than Bobbin reads: the page has them all.",
        CheckWord::Unsettled if is_quiet => " More may begin.",
        _ => "",
    };
    let said = if said.is_empty() { "none yet" } else { &said };
    format!("Checks: {said}.{more}")
}

fn reviews(seen: &SeenPullRequest, code: impl Fn(&str) -> String) -> String {
    let ReviewSummary { approved, changes, threads, is_required } = &seen.reviews;
    let by = |names: &ShownNames, what: &str| {
        (names.total > 0).then(|| format!("{what} by {}", listed(names, &code)))
    };
    let parts = [
        by(changes, "changes wanted"),
        by(approved, "approved"),
        match threads {
            0 => None,
            1 => Some("1 open thread".to_owned()),
            many => Some(format!("{many} open threads")),
        },
        is_required.then(|| "an approval is required".to_owned()),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    match (parts.is_empty(), seen.unread.iter().any(|list| list.what != PolledList::Comments)) {
        (true, false) => "Reviews: none.".to_owned(),
        (true, true) => "Reviews: none in the part read.".to_owned(),
        (false, _) => format!("Reviews: {}.", parts.join(", ")),
    }
}

/// What the poll did not read, as one line.
fn unread(lists: &[PartlyRead]) -> Option<String> {
    let part = |list: &PartlyRead| {
        let what = match list.what {
            PolledList::Threads => "review threads",
            PolledList::ThreadComments => "comments in long threads",
            PolledList::Reviews => "reviews",
            PolledList::Comments => "comments",
            PolledList::People => return None,
        };
        Some(format!("{} of {} {what}", list.read, list.total))
    };
    let parts: Vec<String> = lists.iter().filter_map(part).collect();
    let read = parts.split_last().map(|(last, before)| match before {
        [] => format!("Only the newest {last} were read."),
        before => format!("Only the newest {} and {last} were read.", before.join(", ")),
    });
    let people = lists.iter().find(|list| list.what == PolledList::People).map(|list| {
        format!(
            "Only the last {} of {} commenters were checked; the others' comments do not count.",
            list.read, list.total
        )
    });
    let said: Vec<String> = read.into_iter().chain(people).collect();
    (!said.is_empty()).then(|| said.join(" "))
}

fn merge(seen: &SeenPullRequest, code: impl Fn(&str) -> String) -> String {
    let base = code(&seen.base);
    match seen.merge {
        Mergeability::Unknown => "Merging: not known yet.".to_owned(),
        Mergeability::Clean => "Merging: nothing is in the way.".to_owned(),
        Mergeability::Conflicts => {
            format!("Merging: conflicts with {base}, where the same lines were changed.")
        }
        Mergeability::Behind => format!("Merging: {base} has to be merged into it first."),
        Mergeability::Blocked => {
            "Merging: a rule of the repository does not allow it yet.".to_owned()
        }
    }
}

fn listed(names: &ShownNames, code: impl Fn(&str) -> String) -> String {
    let shown: Vec<String> = names.first.iter().map(|name| code(name)).collect();
    and_more(&shown, names.total.saturating_sub(names.first.len()))
}

#[cfg(test)]
pub(crate) mod tests {
    use bobbin_core::records::publication::PullRequestRef;

    use super::*;

    /// A card of a pull request with names that try to do something.
    pub(crate) fn a_card(name: &str) -> PullRequestCard {
        let names =
            |count: usize| std::iter::repeat_n(name.to_owned(), count).collect::<ShownNames>();
        PullRequestCard {
            at: PullRequestRef { number: 5, page: "https://github.com/acme/api/pull/5".to_owned() },
            repository: "acme/api".to_owned(),
            branch: "bobbin/add-12345678".to_owned(),
            seen: CardSight::Seen(SeenPullRequest {
                is_draft: true,
                is_queued: false,
                head: "0123456789abcdef0123456789abcdef01234567".to_owned(),
                is_theirs: false,
                base: "main".to_owned(),
                checks: CheckSummary {
                    verdict: CheckWord::Red,
                    passed: 4,
                    running: 0,
                    failed: names(7),
                    held: ShownNames::default(),
                    missing: ShownNames::default(),
                    is_cut: false,
                },
                reviews: ReviewSummary {
                    changes: names(1),
                    threads: 2,
                    ..ReviewSummary::default()
                },
                merge: Mergeability::Conflicts,
                unread: Vec::new(),
                fix: Some("0123456789abcdef01234567".to_owned()),
            }),
        }
    }

    fn said(card: &PullRequestCard) -> String {
        lines(card, |name| format!("‹{name}›"), str::to_owned).join("\n")
    }

    fn seen_mut(card: &mut PullRequestCard) -> &mut SeenPullRequest {
        match &mut card.seen {
            CardSight::Seen(seen) => seen,
            _ => panic!("not seen"),
        }
    }

    #[test]
    fn card_says_what_stands_in_the_way() {
        let card = a_card("lint");
        assert_eq!(
            said(&card),
            "Draft, into ‹main›. Newest commit: ‹0123456789ab›.\n\
             Checks: 7 failed (‹lint›, ‹lint›, ‹lint›, ‹lint›, ‹lint› and 2 more), 4 passed.\n\
             Reviews: changes wanted by ‹lint›, 2 open threads.\n\
             Merging: conflicts with ‹main›, where the same lines were changed."
        );
        assert_eq!(tone(&card), CardTone::Bad);
    }

    #[test]
    fn unsettled_checks_are_not_called_passed() {
        let mut card = a_card("lint");
        let seen = seen_mut(&mut card);
        (seen.reviews, seen.merge) = (ReviewSummary::default(), Mergeability::Clean);
        seen.checks.verdict = CheckWord::Unsettled;
        seen.checks.failed = ShownNames::default();
        assert!(said(&card).contains("Checks: 4 passed. More may begin."), "{}", said(&card));
        assert_eq!(tone(&card), CardTone::Neutral);
        seen_mut(&mut card).checks.missing = std::iter::once("deploy".to_owned()).collect();
        assert!(
            said(&card).contains("Checks: 1 required and not begun (‹deploy›), 4 passed."),
            "{}",
            said(&card)
        );
        seen_mut(&mut card).checks.verdict = CheckWord::Green;
        assert!(said(&card).contains("Checks: all 4 passed."));
        assert_eq!(tone(&card), CardTone::Good);
    }

    #[test]
    fn card_says_what_was_not_read() {
        let of = |what, read, total| PartlyRead { what, read, total };
        let last = |lists: &[PartlyRead]| {
            let mut card = a_card("lint");
            seen_mut(&mut card).unread = lists.to_vec();
            said(&card).lines().last().map(str::to_owned).unwrap_or_default()
        };
        assert!(last(&[]).starts_with("Merging: "));
        assert_eq!(
            last(&[of(PolledList::Threads, 50, 73)]),
            "Only the newest 50 of 73 review threads were read."
        );
        assert_eq!(
            last(&[
                of(PolledList::Threads, 50, 73),
                of(PolledList::ThreadComments, 42, 61),
                of(PolledList::Reviews, 20, 21),
                of(PolledList::Comments, 30, 64),
                of(PolledList::People, 20, 23),
            ]),
            "Only the newest 50 of 73 review threads, 42 of 61 comments in long threads, 20 of 21 reviews and 30 of 64 comments were read. Only the last 20 of 23 commenters were checked; the others' comments do not count."
        );
    }

    #[test]
    fn unread_reviews_are_not_called_none() {
        let mut card = a_card("lint");
        seen_mut(&mut card).reviews = ReviewSummary::default();
        assert!(said(&card).contains("\nReviews: none.\n"), "{}", said(&card));
        let list = PartlyRead { what: PolledList::People, read: 20, total: 23 };
        seen_mut(&mut card).unread = vec![list];
        assert!(said(&card).contains("\nReviews: none in the part read.\n"), "{}", said(&card));
    }

    #[test]
    fn buttons_follow_the_state() {
        let words = |card: &PullRequestCard| {
            acts(card).into_iter().map(|(act, _)| act.word()).collect::<Vec<_>>()
        };
        let mut card = a_card("lint");
        assert_eq!(words(&card), ["ready"], "a draft with conflicts");
        (seen_mut(&mut card).is_draft, seen_mut(&mut card).merge) = (false, Mergeability::Clean);
        assert_eq!(words(&card), ["merge"]);
        seen_mut(&mut card).merge = Mergeability::Behind;
        assert_eq!(words(&card), ["update"]);
        for merge in [Mergeability::Unknown, Mergeability::Blocked, Mergeability::Conflicts] {
            seen_mut(&mut card).merge = merge;
            assert!(words(&card).is_empty(), "{merge:?}");
        }
        (seen_mut(&mut card).is_queued, seen_mut(&mut card).merge) = (true, Mergeability::Clean);
        assert!(words(&card).is_empty(), "it waits in the queue");
    }

    #[test]
    fn only_a_head_can_be_acted_on() {
        let head = "0123456789abcdef0123456789abcdef01234567";
        let act = PullRequestAct::Merge;
        assert_eq!(step(act, head), Some(PublishStep::Act { act, head: head.to_owned() }));
        assert_eq!(step(act, "main"), None);
    }

    #[test]
    fn card_that_could_not_look_says_so() {
        let mut card = a_card("lint");
        let cases = [
            (false, "Bobbin keeps trying."),
            (
                true,
                "Bobbin has stopped trying: update the pull request from this thread to begin again.",
            ),
        ];
        for (is_given_up, next) in cases {
            let why = "GitHub is limiting requests.".to_owned();
            card.seen = CardSight::Unseen { why, is_given_up };
            assert_eq!(
                said(&card),
                format!(
                    "Bobbin could not look at it lately, so it may have changed: GitHub is limiting requests. {next}"
                )
            );
        }
    }
}
