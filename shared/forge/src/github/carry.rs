//! What git's answers on GitHub's hosts mean.

use bobbin_core::base::credentials::redact;

use super::rest::{has, known, unreachable_by};
use crate::error::{ForgeError, ForgeErrorKind};
use crate::git::{GitError, Pushed};

/// User name beside a token (GitHub's documentation: "Authenticating as a GitHub App installation").
pub(super) const USER: &str = "x-access-token";
/// The delay after a refusal for too many requests that names none.
const LIMITED_MS: u64 = 60_000;

/// Reasons for a refused push: words in GitHub's own, and a sentence for people. The first that fits counts.
const REASONS: [(&str, &str); 9] = [
    ("GH001", "A file is larger than GitHub accepts: 100 MB at most."),
    ("GH008", "A file belongs to Git LFS, and Bobbin does not carry what is stored there."),
    (
        "without `workflows` permission",
        "A workflow was changed, which Bobbin may not do: a person has to.",
    ),
    (
        "verified signatures",
        "The repository accepts only signed commits, and an agent's are not signed.",
    ),
    ("push cannot contain secrets", "GitHub found a secret in the commits."),
    ("GH013", "A rule of the repository refuses it."),
    ("repository rule violations", "A rule of the repository refuses it."),
    ("GH006", "The branch is protected."),
    ("protected branch", "The branch is protected."),
];

/// A refused push, with a sentence before GitHub's own words.
pub(super) fn explained(pushed: Pushed) -> Result<Pushed, ForgeError> {
    let Pushed::Refused { why } = pushed else {
        return Ok(pushed);
    };
    if let Some(error) = known(&why) {
        return Err(error);
    }
    let said = redact(&why);
    let reason = REASONS.iter().find(|(words, _)| has(&said, words));
    let why = reason.map_or(said.clone(), |(_, sentence)| format!("{sentence}\n{said}"));
    Ok(Pushed::Refused { why })
}

/// What to do about a failed exchange.
pub(super) fn failed(error: GitError) -> ForgeError {
    let seen = redact(&error.to_string());
    match error {
        GitError::Http(error) => unreachable_by(&error),
        GitError::Status { status, said, after_ms } => status_error(status, &said, after_ms, seen),
        GitError::Remote { said } => {
            known(&said).unwrap_or_else(|| ForgeError::passing(ForgeErrorKind::Other, 0, seen))
        }
        GitError::UnknownObject { .. } => ForgeError::lasting(ForgeErrorKind::NotFound, seen),
        GitError::Unsupported { what } => {
            ForgeError::lasting(ForgeErrorKind::Refused { why: what.to_owned() }, what)
        }
        GitError::TooLarge { bytes_max } => {
            ForgeError::lasting(ForgeErrorKind::TooLarge { bytes_max }, seen)
        }
        GitError::Protocol { .. } | GitError::Silent => ForgeError::outage(seen),
        GitError::Sink(failure) => failure.into(),
    }
}

fn status_error(status: u16, said: &str, after_ms: u64, seen: String) -> ForgeError {
    if let Some(error) = known(said) {
        return error;
    }
    let is_limit = status == 429 || (status == 403 && has(said, "rate limit"));
    match status {
        _ if is_limit => {
            let after_ms = if after_ms == 0 { LIMITED_MS } else { after_ms };
            ForgeError::passing(ForgeErrorKind::RateLimited, after_ms, seen)
        }
        // A token is not known everywhere in the moment in which it was made.
        401 => ForgeError::passing(ForgeErrorKind::Other, 0, "GitHub does not accept the token"),
        // A repository that was renamed since its name was asked for.
        300..=399 => ForgeError::passing(ForgeErrorKind::Other, 0, seen),
        404 => {
            ForgeError::lasting(ForgeErrorKind::NotFound, "GitHub does not know the repository.")
        }
        400..=499 => {
            let why = if said.is_empty() { seen.clone() } else { redact(said) };
            ForgeError::lasting(ForgeErrorKind::Refused { why }, seen)
        }
        _ => ForgeError::outage(seen),
    }
}
