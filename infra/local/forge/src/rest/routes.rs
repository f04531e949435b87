//! The calls, by GitHub's own names of them.

use std::collections::BTreeMap;

use futures::future::BoxFuture;

use super::{
    Call, actions, apps, checks, data, installations, people, pulls, refs, remarks, repositories,
    reviews, rules, statuses,
};
use crate::api_error::Answer;
use crate::graphql;

/// A call.
pub(crate) struct Route {
    method: &'static str,
    /// As in GitHub's description; `...` takes the rest of a path.
    path: &'static str,
    /// GitHub's name of the call.
    pub(crate) operation: &'static str,
    pub(crate) handler: for<'a> fn(&'a Call) -> BoxFuture<'a, Answer>,
}

macro_rules! routes {
    ($($method:literal $path:literal $operation:literal $handler:path;)*) => {
        &[$(Route {
            method: $method,
            path: $path,
            operation: $operation,
            handler: |call| Box::pin($handler(call)),
        }),*]
    };
}

/// Of two that fit, the first one is meant.
const ROUTES: &[Route] = routes! {
    "GET" "app" "apps/get-authenticated" apps::get;
    "GET" "app/hook/config" "apps/get-webhook-config-for-app" apps::hook_config;
    "PATCH" "app/hook/config" "apps/update-webhook-config-for-app" apps::set_hook_config;
    "GET" "app/hook/deliveries" "apps/list-webhook-deliveries" apps::deliveries;
    "GET" "app/hook/deliveries/{delivery_id}" "apps/get-webhook-delivery" apps::delivery;
    "POST" "app/hook/deliveries/{delivery_id}/attempts" "apps/redeliver-webhook-delivery" apps::redeliver;
    "POST" "app-manifests/{code}/conversions" "apps/create-from-manifest" apps::from_manifest;
    "GET" "app/installations" "apps/list-installations" installations::list;
    "GET" "app/installations/{installation_id}" "apps/get-installation" installations::get;
    "DELETE" "app/installations/{installation_id}" "apps/delete-installation" installations::delete;
    "POST" "app/installations/{installation_id}/access_tokens" "apps/create-installation-access-token" installations::mint;
    "PUT" "app/installations/{installation_id}/suspended" "apps/suspend-installation" installations::suspend;
    "DELETE" "app/installations/{installation_id}/suspended" "apps/unsuspend-installation" installations::unsuspend;
    "GET" "repos/{owner}/{repo}/installation" "apps/get-repo-installation" installations::of_repository;
    "GET" "orgs/{org}/installation" "apps/get-org-installation" installations::of_organization;
    "GET" "users/{username}/installation" "apps/get-user-installation" installations::of_user;
    "GET" "installation/repositories" "apps/list-repos-accessible-to-installation" installations::repositories;
    "DELETE" "installation/token" "apps/revoke-installation-access-token" installations::revoke;
    "GET" "user" "users/get-authenticated" people::own;
    "GET" "user/installations" "apps/list-installations-for-authenticated-user" people::installations;
    "GET" "user/installations/{installation_id}/repositories" "apps/list-installation-repos-for-authenticated-user" people::installation_repositories;
    "PUT" "user/installations/{installation_id}/repositories/{repository_id}" "apps/add-repo-to-installation-for-authenticated-user" people::add_repository;
    "DELETE" "user/installations/{installation_id}/repositories/{repository_id}" "apps/remove-repo-from-installation-for-authenticated-user" people::remove_repository;
    "GET" "user/memberships/orgs/{org}" "orgs/get-membership-for-authenticated-user" people::membership;
    "GET" "users/{username}" "users/get-by-username" people::get;
    "POST" "applications/{client_id}/token" "apps/check-token" people::check_token;
    "DELETE" "applications/{client_id}/token" "apps/delete-token" people::delete_token;
    "DELETE" "applications/{client_id}/grant" "apps/delete-authorization" people::delete_grant;
    "POST" "orgs/{org}/repos" "repos/create-in-org" repositories::create_in_organization;
    "GET" "orgs/{org}/repos" "repos/list-for-org" repositories::list_of_organization;
    "POST" "user/repos" "repos/create-for-authenticated-user" repositories::create_own;
    "GET" "repos/{owner}/{repo}" "repos/get" repositories::get;
    "PATCH" "repos/{owner}/{repo}" "repos/update" repositories::update;
    "DELETE" "repos/{owner}/{repo}" "repos/delete" repositories::delete;
    "POST" "repos/{owner}/{repo}/transfer" "repos/transfer" repositories::transfer;
    "PUT" "repos/{owner}/{repo}/collaborators/{username}" "repos/add-collaborator" repositories::add_collaborator;
    "DELETE" "repos/{owner}/{repo}/collaborators/{username}" "repos/remove-collaborator" repositories::remove_collaborator;
    "GET" "repos/{owner}/{repo}/collaborators/{username}/permission" "repos/get-collaborator-permission-level" repositories::permission;
    "GET" "repos/{owner}/{repo}/branches" "repos/list-branches" refs::branches;
    "GET" "repos/{owner}/{repo}/branches/{branch}/protection" "repos/get-branch-protection" rules::protection;
    "PUT" "repos/{owner}/{repo}/branches/{branch}/protection" "repos/update-branch-protection" rules::protect;
    "DELETE" "repos/{owner}/{repo}/branches/{branch}/protection" "repos/delete-branch-protection" rules::unprotect;
    "POST" "repos/{owner}/{repo}/branches/{branch}/protection/required_signatures" "repos/create-commit-signature-protection" rules::require_signatures;
    "GET" "repos/{owner}/{repo}/branches/{branch...}" "repos/get-branch" refs::branch;
    "GET" "repos/{owner}/{repo}/rules/branches/{branch...}" "repos/get-branch-rules" rules::of_branch;
    "GET" "repos/{owner}/{repo}/rulesets" "repos/get-repo-rulesets" rules::rulesets;
    "POST" "repos/{owner}/{repo}/rulesets" "repos/create-repo-ruleset" rules::create_ruleset;
    "GET" "repos/{owner}/{repo}/rulesets/{ruleset_id}" "repos/get-repo-ruleset" rules::ruleset;
    "DELETE" "repos/{owner}/{repo}/rulesets/{ruleset_id}" "repos/delete-repo-ruleset" rules::delete_ruleset;
    "GET" "repos/{owner}/{repo}/git/ref/{ref...}" "git/get-ref" refs::get;
    "GET" "repos/{owner}/{repo}/git/matching-refs/{ref...}" "git/list-matching-refs" refs::matching;
    "POST" "repos/{owner}/{repo}/git/refs" "git/create-ref" refs::create;
    "PATCH" "repos/{owner}/{repo}/git/refs/{ref...}" "git/update-ref" refs::update;
    "DELETE" "repos/{owner}/{repo}/git/refs/{ref...}" "git/delete-ref" refs::delete;
    "GET" "repos/{owner}/{repo}/git/commits/{commit_sha}" "git/get-commit" data::git_commit;
    "GET" "repos/{owner}/{repo}/git/trees/{tree_sha...}" "git/get-tree" data::tree;
    "GET" "repos/{owner}/{repo}/git/blobs/{file_sha}" "git/get-blob" data::blob;
    "GET" "repos/{owner}/{repo}/commits/{ref}/check-runs" "checks/list-for-ref" checks::of_commit;
    "GET" "repos/{owner}/{repo}/commits/{ref}/check-suites" "checks/list-suites-for-ref" checks::suites;
    "GET" "repos/{owner}/{repo}/commits/{ref}/status" "repos/get-combined-status-for-ref" statuses::together;
    "GET" "repos/{owner}/{repo}/commits/{ref}/statuses" "repos/list-commit-statuses-for-ref" statuses::list;
    "POST" "repos/{owner}/{repo}/statuses/{sha}" "repos/create-commit-status" statuses::create;
    "POST" "repos/{owner}/{repo}/check-runs" "checks/create" checks::create;
    "GET" "repos/{owner}/{repo}/check-runs/{check_run_id}" "checks/get" checks::get;
    "PATCH" "repos/{owner}/{repo}/check-runs/{check_run_id}" "checks/update" checks::update;
    "GET" "repos/{owner}/{repo}/check-runs/{check_run_id}/annotations" "checks/list-annotations" checks::annotations;
    "POST" "repos/{owner}/{repo}/check-runs/{check_run_id}/rerequest" "checks/rerequest-run" checks::rerequest;
    "GET" "repos/{owner}/{repo}/check-suites/{check_suite_id}/check-runs" "checks/list-for-suite" checks::of_suite;
    "POST" "repos/{owner}/{repo}/check-suites/{check_suite_id}/rerequest" "checks/rerequest-suite" checks::rerequest_suite;
    "GET" "repos/{owner}/{repo}/actions/runs" "actions/list-workflow-runs-for-repo" actions::runs;
    "GET" "repos/{owner}/{repo}/actions/runs/{run_id}" "actions/get-workflow-run" actions::run;
    "GET" "repos/{owner}/{repo}/actions/runs/{run_id}/jobs" "actions/list-jobs-for-workflow-run" actions::jobs;
    "GET" "repos/{owner}/{repo}/actions/runs/{run_id}/attempts/{attempt_number}/jobs" "actions/list-jobs-for-workflow-run-attempt" actions::attempt_jobs;
    "POST" "repos/{owner}/{repo}/actions/runs/{run_id}/rerun-failed-jobs" "actions/re-run-workflow-failed-jobs" actions::rerun_failed;
    "POST" "repos/{owner}/{repo}/actions/runs/{run_id}/cancel" "actions/cancel-workflow-run" actions::cancel;
    "GET" "repos/{owner}/{repo}/actions/jobs/{job_id}" "actions/get-job-for-workflow-run" actions::job;
    "GET" "repos/{owner}/{repo}/actions/jobs/{job_id}/logs" "actions/download-job-logs-for-workflow-run" actions::log;
    "POST" "repos/{owner}/{repo}/actions/jobs/{job_id}/rerun" "actions/re-run-job-for-workflow-run" actions::rerun_job;
    "GET" "repos/{owner}/{repo}/commits/{commit_sha}/pulls" "repos/list-pull-requests-associated-with-commit" pulls::of_commit;
    "GET" "repos/{owner}/{repo}/commits/{ref...}" "repos/get-commit" data::commit;
    "GET" "repos/{owner}/{repo}/compare/{basehead...}" "repos/compare-commits-with-basehead" data::compare;
    "GET" "repos/{owner}/{repo}/pulls" "pulls/list" pulls::list;
    "POST" "repos/{owner}/{repo}/pulls" "pulls/create" pulls::create;
    "GET" "repos/{owner}/{repo}/pulls/{pull_number}" "pulls/get" pulls::get;
    "PATCH" "repos/{owner}/{repo}/pulls/{pull_number}" "pulls/update" pulls::update;
    "GET" "repos/{owner}/{repo}/pulls/{pull_number}/files" "pulls/list-files" pulls::files;
    "GET" "repos/{owner}/{repo}/pulls/{pull_number}/commits" "pulls/list-commits" pulls::commits;
    "GET" "repos/{owner}/{repo}/pulls/{pull_number}/merge" "pulls/check-if-merged" pulls::is_merged;
    "PUT" "repos/{owner}/{repo}/pulls/{pull_number}/merge" "pulls/merge" pulls::merge;
    "PUT" "repos/{owner}/{repo}/pulls/{pull_number}/update-branch" "pulls/update-branch" pulls::update_branch;
    "GET" "repos/{owner}/{repo}/pulls/{pull_number}/requested_reviewers" "pulls/list-requested-reviewers" reviews::requested_reviewers;
    "POST" "repos/{owner}/{repo}/pulls/{pull_number}/requested_reviewers" "pulls/request-reviewers" reviews::request_reviewers;
    "DELETE" "repos/{owner}/{repo}/pulls/{pull_number}/requested_reviewers" "pulls/remove-requested-reviewers" reviews::remove_reviewers;
    "GET" "repos/{owner}/{repo}/pulls/{pull_number}/reviews" "pulls/list-reviews" reviews::list;
    "POST" "repos/{owner}/{repo}/pulls/{pull_number}/reviews" "pulls/create-review" reviews::submit;
    "PUT" "repos/{owner}/{repo}/pulls/{pull_number}/reviews/{review_id}/dismissals" "pulls/dismiss-review" reviews::dismiss;
    "GET" "repos/{owner}/{repo}/pulls/{pull_number}/reviews/{review_id}/comments" "pulls/list-comments-for-review" reviews::comments_of_review;
    "GET" "repos/{owner}/{repo}/pulls/{pull_number}/comments" "pulls/list-review-comments" reviews::comments;
    "POST" "repos/{owner}/{repo}/pulls/{pull_number}/comments" "pulls/create-review-comment" reviews::comment;
    "POST" "repos/{owner}/{repo}/pulls/{pull_number}/comments/{comment_id}/replies" "pulls/create-reply-for-review-comment" reviews::reply;
    "GET" "repos/{owner}/{repo}/pulls/comments/{comment_id}" "pulls/get-review-comment" reviews::get_comment;
    "PATCH" "repos/{owner}/{repo}/pulls/comments/{comment_id}" "pulls/update-review-comment" reviews::edit_comment;
    "DELETE" "repos/{owner}/{repo}/pulls/comments/{comment_id}" "pulls/delete-review-comment" reviews::delete_comment;
    "POST" "repos/{owner}/{repo}/pulls/comments/{comment_id}/reactions" "reactions/create-for-pull-request-review-comment" remarks::react_to_comment;
    "DELETE" "repos/{owner}/{repo}/pulls/comments/{comment_id}/reactions/{reaction_id}" "reactions/delete-for-pull-request-comment" remarks::unreact_to_comment;
    "POST" "repos/{owner}/{repo}/issues/{issue_number}/comments" "issues/create-comment" remarks::create;
    "GET" "repos/{owner}/{repo}/issues/{issue_number}/comments" "issues/list-comments" remarks::list;
    "POST" "repos/{owner}/{repo}/issues/{issue_number}/reactions" "reactions/create-for-issue" remarks::react_to_pull;
    "GET" "repos/{owner}/{repo}/issues/comments/{comment_id}" "issues/get-comment" remarks::get;
    "PATCH" "repos/{owner}/{repo}/issues/comments/{comment_id}" "issues/update-comment" remarks::edit;
    "DELETE" "repos/{owner}/{repo}/issues/comments/{comment_id}" "issues/delete-comment" remarks::delete;
    "POST" "repos/{owner}/{repo}/issues/comments/{comment_id}/reactions" "reactions/create-for-issue-comment" remarks::react_to_remark;
    "DELETE" "repos/{owner}/{repo}/issues/comments/{comment_id}/reactions/{reaction_id}" "reactions/delete-for-issue-comment" remarks::unreact_to_remark;
    "POST" "graphql" "graphql" graphql::answer;
    "POST" "api/graphql" "graphql/enterprise" graphql::answer;
    "GET" "rate_limit" "rate-limit/get" people::rate_limit;
};

/// The call of a method and a path, and the path's parts by their names.
pub(crate) fn find(
    method: &str,
    segments: &[String],
) -> Option<(&'static Route, BTreeMap<&'static str, String>)> {
    let of_method = ROUTES.iter().filter(|route| route.method == method);
    of_method.filter_map(|route| Some((route, parts(route.path, segments)?))).next()
}

fn parts(path: &'static str, segments: &[String]) -> Option<BTreeMap<&'static str, String>> {
    let mut found = BTreeMap::new();
    let mut rest = segments;
    for word in path.split('/') {
        let (first, others) = rest.split_first()?;
        let name = word.strip_prefix('{').and_then(|word| word.strip_suffix('}'));
        match name.map(|name| (name.strip_suffix("..."), name)) {
            None if word == first => rest = others,
            None => return None,
            Some((Some(name), _)) => {
                found.insert(name, rest.join("/"));
                rest = &[];
            }
            Some((None, _)) if first.is_empty() => return None,
            Some((None, name)) => {
                found.insert(name, first.clone());
                rest = others;
            }
        }
    }
    rest.is_empty().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(method: &str, path: &str) -> Option<(&'static str, Vec<String>)> {
        let segments: Vec<String> = path.split('/').map(str::to_owned).collect();
        let (route, parts) = find(method, &segments)?;
        Some((route.operation, parts.into_values().collect()))
    }

    #[test]
    fn paths_find_their_calls() {
        let parts = |parts: &[&str]| parts.iter().map(|part| (*part).to_owned()).collect();
        let branch = Some(("repos/get-branch", parts(&["a/b", "o", "r"])));
        assert_eq!(found("GET", "repos/o/r/branches/a/b"), branch);
        let protection = Some(("repos/get-branch-protection", parts(&["main", "o", "r"])));
        assert_eq!(found("GET", "repos/o/r/branches/main/protection"), protection);
        assert_eq!(found("PUT", "repos/o/r"), None);
        assert_eq!(found("GET", "repos/o"), None);
        assert_eq!(found("GET", "repos/o/"), None);
        assert_eq!(found("GET", "app").map(|(name, _)| name), Some("apps/get-authenticated"));
    }

    #[test]
    fn every_call_has_its_own_name() {
        let mut names: Vec<_> = ROUTES.iter().map(|route| route.operation).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
