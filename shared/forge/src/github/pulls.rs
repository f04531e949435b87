//! Pull requests: their shapes, and the calls about them.

use bobbin_core::records::given_pull::GivenPull;
use bobbin_core::records::publication::PullRequestState as Seen;
use bobbin_http::Method;
use serde::{Deserialize, Serialize};

use super::rest::{Call, RestClient, RestCredential, RestError};
use crate::forge::{
    NewPullRequest, PullRequest, PullRequestChange, PullRequestState, RepositoryId, RepositoryName,
};
use crate::git::ObjectId;

/// Most pull requests of one branch that are looked at; all but one belong to forks of the same owner.
const LISTED: &str = "100";

/// A pull request, as every call returns it.
#[derive(Debug, Clone, Deserialize)]
struct PullBody {
    number: u64,
    html_url: String,
    state: String,
    merged_at: Option<String>,
    #[serde(default)]
    draft: bool,
    title: String,
    head: EndBody,
    base: EndBody,
}

/// One of the two branches.
#[derive(Debug, Clone, Deserialize)]
struct EndBody {
    #[serde(rename = "ref")]
    name: String,
    sha: ObjectId,
    /// Absent if the fork is deleted.
    repo: Option<EndRepositoryBody>,
}

#[derive(Debug, Clone, Deserialize)]
struct EndRepositoryBody {
    id: u64,
}

impl From<PullBody> for PullRequest {
    fn from(body: PullBody) -> Self {
        let state = match body.merged_at {
            _ if body.state == "open" => PullRequestState::Open,
            Some(_) => PullRequestState::Merged,
            None => PullRequestState::Closed,
        };
        Self {
            number: body.number,
            page: body.html_url,
            state,
            is_draft: body.draft,
            subject: body.title,
            head: body.head.name,
            head_commit: body.head.sha,
            base: body.base.name,
        }
    }
}

#[derive(Serialize)]
struct NewBody<'a> {
    title: &'a str,
    head: &'a str,
    base: &'a str,
    body: &'a str,
    draft: bool,
}

#[derive(Serialize)]
struct ChangeBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<&'a str>,
}

/// The newest pull request of a branch of the repository itself.
pub(super) async fn newest(
    rest: &RestClient,
    by: RestCredential<'_>,
    (id, name): (RepositoryId, &RepositoryName),
    branch: &str,
) -> Result<Option<PullRequest>, RestError> {
    let head = format!("{}:{branch}", name.owner());
    let query = [
        ("state", "all"),
        ("head", head.as_str()),
        ("sort", "created"),
        ("direction", "desc"),
        ("per_page", LISTED),
    ];
    let path = ["repos", name.owner(), name.name(), "pulls"];
    let found: Vec<PullBody> = rest.read(Call::get(by, &path).with(&query)).await?;
    // A filter that GitHub does not understand is one that it leaves out.
    let is_it = |one: &PullBody| {
        one.head.name == branch && one.head.repo.as_ref().is_some_and(|repo| repo.id == id.0)
    };
    let newest = found.into_iter().filter(is_it).max_by_key(|one| one.number);
    Ok(newest.map(PullRequest::from))
}

/// The pull request with this number, and its newest commit; `None` if there is none.
pub(super) async fn numbered(
    rest: &RestClient,
    by: RestCredential<'_>,
    (id, name): (RepositoryId, &RepositoryName),
    number: u64,
) -> Result<Option<(GivenPull, String)>, RestError> {
    let path = ["repos", name.owner(), name.name(), "pulls", &number.to_string()];
    let body: PullBody = match rest.read(Call::get(by, &path)).await {
        Ok(body) => body,
        Err(error) if error.is_absence() => return Ok(None),
        Err(error) => return Err(error),
    };
    let is_here = body.head.repo.as_ref().is_some_and(|repo| repo.id == id.0);
    let (branch, into_commit) = (body.head.name.clone(), body.base.sha.to_string());
    let found = PullRequest::from(body);
    let pull = GivenPull {
        number: found.number,
        page: found.page,
        state: match found.state {
            PullRequestState::Open => Seen::Open,
            PullRequestState::Closed => Seen::Closed,
            PullRequestState::Merged => Seen::Merged,
        },
        branch: is_here.then_some(branch),
        into: found.base,
        into_commit,
    };
    Ok(Some((pull, found.head_commit.to_string())))
}

/// Opens a pull request.
pub(super) async fn open(
    rest: &RestClient,
    by: RestCredential<'_>,
    name: &RepositoryName,
    new: &NewPullRequest,
) -> Result<PullRequest, RestError> {
    let path = ["repos", name.owner(), name.name(), "pulls"];
    let body = |draft: bool| NewBody {
        title: &new.subject,
        head: &new.head,
        base: &new.base,
        body: &new.body,
        draft,
    };
    let call = |draft| Call::sending(by, Method::POST, &path, &body(draft));
    let opened: PullBody = match rest.read(call(new.is_draft)).await {
        // Private repositories of the cheapest plans have none.
        Err(error) if new.is_draft && error.says("draft pull requests are not supported") => {
            rest.read(call(false)).await?
        }
        opened => opened?,
    };
    Ok(opened.into())
}

/// Changes subject or text.
pub(super) async fn change(
    rest: &RestClient,
    by: RestCredential<'_>,
    name: &RepositoryName,
    change: &PullRequestChange,
) -> Result<PullRequest, RestError> {
    let number = change.number.to_string();
    let path = ["repos", name.owner(), name.name(), "pulls", &number];
    let body = ChangeBody { title: change.subject.as_deref(), body: change.body.as_deref() };
    let changed: PullBody = rest.read(Call::sending(by, Method::PATCH, &path, &body)).await?;
    Ok(changed.into())
}
