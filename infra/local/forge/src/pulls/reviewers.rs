//! Who is asked for a review.

use super::tell;
use crate::api_error::ApiError;
use crate::permission::{Level, of_person};
use crate::record::Pull;
use crate::rest::show::Show;
use crate::state::SharedEngine;

/// Asks people for a review, or no longer.
///
/// # Errors
/// One of them is the author, or may not write to the repository.
pub(crate) async fn ask_for_review(
    engine: &SharedEngine,
    pull: &Pull,
    actor: u64,
    logins: &[String],
    is_asked: bool,
) -> Result<Pull, ApiError> {
    let (pull, people) = engine.change(|inner| {
        let record = inner.repository(pull.repository)?;
        let mut people = Vec::new();
        for login in logins {
            let person = inner.account_of(login).map(|one| one.id).unwrap_or_default();
            if person == pull.author {
                let told = "Review cannot be requested from pull request author.";
                return Err(ApiError::unprocessable(told));
            }
            let owner = inner.account(record.owner)?;
            if of_person(person, record, owner) == Level::None {
                return Err(ApiError::unprocessable(format!(
                    "Reviews may only be requested from collaborators. One or more of the users or teams you specified is not a collaborator of the {} repository.",
                    inner.full_name(record)
                )));
            }
            people.push(person);
        }
        let pull = inner.pull_mut(pull.repository, pull.number)?;
        pull.reviewers.retain(|one| !people.contains(one));
        if is_asked {
            pull.reviewers.extend(&people);
        }
        Ok((pull.clone(), people))
    })?;
    let action = if is_asked { "review_requested" } else { "review_request_removed" };
    for person in people {
        let told = {
            let inner = engine.lock();
            let show = Show { inner: &inner, at: &engine.addresses };
            show.user_of(person)
        };
        tell(engine, &pull, actor, action, &[("requested_reviewer", told)]).await;
    }
    Ok(pull)
}
