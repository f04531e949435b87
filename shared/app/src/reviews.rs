//! The pull request that a thread works from, and the agent's review of it.

use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::digest;
use bobbin_core::records::carried::{Carried, ForgeRepository};
use bobbin_core::records::drafted_review::{DraftedReview, NewPullReview, ReviewEnd, ReviewRead};
use bobbin_core::records::given_pull::{FoundPull, GivenPull};
use bobbin_forge::ForgeErrorKind;

use crate::forge::{StackForge, target};
use crate::sandboxes::told;

impl StackForge {
    /// Looks up a pull request by its number.
    ///
    /// # Errors
    /// The class of the failure.
    pub(crate) async fn find_given(
        &self,
        repository: &ForgeRepository,
        number: u64,
    ) -> Result<FoundPull, Failure> {
        match self.pull_requests.given(&target(repository)?, number).await {
            Ok(Some((pull, head))) => Ok(FoundPull::There { pull, head }),
            Ok(None) => Ok(FoundPull::Missing),
            Err(error) => Ok(FoundPull::Refused { why: told(&self.refusal(error)?) }),
        }
    }

    /// The review that an agent has written, compared with the diff that the forge shows for the reviewed commit.
    ///
    /// # Errors
    /// The class of the failure.
    pub(crate) async fn review(
        &self,
        written: Option<String>,
        carried: &Carried,
        pull: &GivenPull,
    ) -> Result<ReviewRead, Failure> {
        let (Some(written), Some(head)) = (written, &carried.base) else {
            return Ok(ReviewRead::Absent);
        };
        let unusable = |why| ReviewRead::Unusable { of: digest(&["written", &written]), why };
        let draft = match DraftedReview::read(written.as_bytes()) {
            Ok(draft) => draft,
            Err(why) => return Ok(unusable(why)),
        };
        let at = target(&carried.repository)?;
        let difference = self.pull_requests.difference(&at, &pull.into_commit, head).await;
        let files = match difference {
            Ok(files) => files,
            Err(error) => match error.kind {
                ForgeErrorKind::Other | ForgeErrorKind::RateLimited => {
                    let failure = self.failed(error);
                    let why = format!("the diff could not be read just now ({failure})");
                    return Ok(unusable(why));
                }
                // No line can be shown to be part of it.
                _ => Vec::new(),
            },
        };
        Ok(ReviewRead::Drafted(draft.against(&files)))
    }

    /// Posts a review as the app, unless it is there.
    ///
    /// # Errors
    /// The class of the failure. Whether it was posted is unknown then: a repeat finds out.
    pub(crate) async fn post_review(
        &self,
        repository: &ForgeRepository,
        number: u64,
        review: &NewPullReview,
    ) -> Result<ReviewEnd, Failure> {
        match self.pull_requests.review(&target(repository)?, number, review).await {
            Ok(page) => Ok(ReviewEnd::There { page }),
            Err(error) => Ok(ReviewEnd::Refused { why: told(&self.refusal(error)?) }),
        }
    }
}
