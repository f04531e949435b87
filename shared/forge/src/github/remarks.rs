//! What Bobbin says below a pull request.

use bobbin_core::records::responses::{NewRemark, Remark};
use bobbin_http::Method;
use serde::Deserialize;
use serde_json::json;

use super::rest::{Call, RestClient, RestCredential, RestError};
use crate::forge::RepositoryName;

/// Items on a page, and how many pages of the newest remarks are searched for one's own.
const PAGE_ITEMS: &str = "100";
const PAGES_MAX: u32 = 5;

#[derive(Deserialize)]
struct RemarkBody {
    #[serde(default)]
    body: String,
    /// The first comment of the thread, unless it is that itself.
    in_reply_to_id: Option<u64>,
}

/// A reaction; GitHub has one of a kind for each account.
pub(super) async fn mark_seen(
    rest: &RestClient,
    by: RestCredential<'_>,
    name: &RepositoryName,
    remark: Remark,
) -> Result<(), RestError> {
    let (of, id) = match remark {
        Remark::Line(id) => ("pulls", id),
        Remark::Whole(id) => ("issues", id),
    };
    let id = id.to_string();
    let path = ["repos", name.owner(), name.name(), of, "comments", &id, "reactions"];
    let body = json!({"content": "eyes"});
    rest.send(Call::sending(by, Method::POST, &path, &body)).await?;
    Ok(())
}

/// The part of a text that bears its name; Markdown does not show it.
pub(super) fn mark(name: &str) -> String {
    format!("<!-- bobbin:{name} -->")
}

pub(super) async fn say(
    rest: &RestClient,
    by: RestCredential<'_>,
    name: &RepositoryName,
    number: u64,
    remark: &NewRemark,
) -> Result<(), RestError> {
    let mark = mark(&remark.name);
    if is_said(rest, by, name, number, (remark.thread, &mark)).await? {
        return Ok(());
    }
    let number = number.to_string();
    let repository = ["repos", name.owner(), name.name()];
    let body = json!({"body": format!("{}\n\n{mark}", remark.body)});
    let thread = remark.thread.map(|thread| thread.to_string());
    let path = match &thread {
        Some(thread) => {
            [&repository[..], &["pulls", &number, "comments", thread, "replies"]].concat()
        }
        None => [&repository[..], &["issues", &number, "comments"]].concat(),
    };
    rest.send(Call::sending(by, Method::POST, &path, &body)).await?;
    Ok(())
}

/// Whether the newest remarks have one with this mark.
async fn is_said(
    rest: &RestClient,
    by: RestCredential<'_>,
    name: &RepositoryName,
    number: u64,
    (thread, mark): (Option<u64>, &str),
) -> Result<bool, RestError> {
    let number = number.to_string();
    let of = if thread.is_some() { "pulls" } else { "issues" };
    let path = ["repos", name.owner(), name.name(), of, &number, "comments"];
    for page in 1..=PAGES_MAX {
        let page = page.to_string();
        let newest = [
            ("sort", "created"),
            ("direction", "desc"),
            ("per_page", PAGE_ITEMS),
            ("page", page.as_str()),
        ];
        // Comments on the whole come oldest first, whatever is asked for.
        let query = if thread.is_some() { &newest[..] } else { &newest[2..] };
        let found: Vec<RemarkBody> = rest.read(Call::get(by, &path).with(query)).await?;
        let is_it = |one: &RemarkBody| {
            one.body.contains(mark) && (thread.is_none() || one.in_reply_to_id == thread)
        };
        if found.iter().any(is_it) {
            return Ok(true);
        }
        if found.len() < 100 {
            break;
        }
    }
    Ok(false)
}

pub(super) async fn ask_for_review(
    rest: &RestClient,
    by: RestCredential<'_>,
    name: &RepositoryName,
    number: u64,
    logins: &[String],
) -> Result<(), RestError> {
    let number = number.to_string();
    let path = ["repos", name.owner(), name.name(), "pulls", &number, "requested_reviewers"];
    rest.send(Call::sending(by, Method::POST, &path, &json!({"reviewers": logins}))).await?;
    Ok(())
}
