//! Records as GitHub's JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, SecondsFormat};
use serde_json::{Map, Value, json};

use crate::git::commits::{CommitShown, Signer};
use crate::git::diff::Change;
use crate::permission::Level;
use crate::pulls::Numbers;
use crate::record::{
    App, ForgeAccount, HookDelivery, Installation, Kind, Pull, PullState, RepositoryRecord, Role,
};
use crate::state::{Addresses, ForgeState};

/// The state, and the addresses under which it is told.
#[derive(Clone, Copy)]
pub(crate) struct Show<'a> {
    pub(crate) inner: &'a ForgeState,
    pub(crate) at: &'a Addresses,
}

/// Adds fields to an object.
fn with<const N: usize>(mut object: Value, more: [(&str, Value); N]) -> Value {
    for (field, value) in more {
        object[field] = value;
    }
    object
}

/// Addresses below a base, by field.
fn below(base: &str, rests: &[(&str, &str)]) -> Map<String, Value> {
    let pairs =
        rests.iter().map(|(field, rest)| ((*field).to_owned(), format!("{base}{rest}").into()));
    pairs.collect()
}

const USER: [(&str, &str); 11] = [
    ("url", ""),
    ("followers_url", "/followers"),
    ("following_url", "/following{/other_user}"),
    ("gists_url", "/gists{/gist_id}"),
    ("starred_url", "/starred{/owner}{/repo}"),
    ("subscriptions_url", "/subscriptions"),
    ("organizations_url", "/orgs"),
    ("repos_url", "/repos"),
    ("events_url", "/events{/privacy}"),
    ("received_events_url", "/received_events"),
    ("avatar_url", "/avatar"),
];

const REPOSITORY: [(&str, &str); 38] = [
    ("url", ""),
    ("archive_url", "/{archive_format}{/ref}"),
    ("assignees_url", "/assignees{/user}"),
    ("blobs_url", "/git/blobs{/sha}"),
    ("branches_url", "/branches{/branch}"),
    ("collaborators_url", "/collaborators{/collaborator}"),
    ("comments_url", "/comments{/number}"),
    ("commits_url", "/commits{/sha}"),
    ("compare_url", "/compare/{base}...{head}"),
    ("contents_url", "/contents/{+path}"),
    ("contributors_url", "/contributors"),
    ("deployments_url", "/deployments"),
    ("downloads_url", "/downloads"),
    ("events_url", "/events"),
    ("forks_url", "/forks"),
    ("git_commits_url", "/git/commits{/sha}"),
    ("git_refs_url", "/git/refs{/sha}"),
    ("git_tags_url", "/git/tags{/sha}"),
    ("hooks_url", "/hooks"),
    ("issue_comment_url", "/issues/comments{/number}"),
    ("issue_events_url", "/issues/events{/number}"),
    ("issues_url", "/issues{/number}"),
    ("keys_url", "/keys{/key_id}"),
    ("labels_url", "/labels{/name}"),
    ("languages_url", "/languages"),
    ("merges_url", "/merges"),
    ("milestones_url", "/milestones{/number}"),
    ("notifications_url", "/notifications{?since,all,participating}"),
    ("pulls_url", "/pulls{/number}"),
    ("releases_url", "/releases{/id}"),
    ("stargazers_url", "/stargazers"),
    ("statuses_url", "/statuses/{sha}"),
    ("subscribers_url", "/subscribers"),
    ("subscription_url", "/subscription"),
    ("tags_url", "/tags"),
    ("teams_url", "/teams"),
    ("trees_url", "/git/trees{/sha}"),
    ("branch_rules_url", "/rules/branches{/branch}"),
];

impl Show<'_> {
    /// Seconds, as everywhere at GitHub.
    pub(crate) fn time(&self, ms: i64) -> String {
        let time = DateTime::from_timestamp_millis(ms).unwrap_or_default();
        time.to_rfc3339_opts(SecondsFormat::Secs, true)
    }

    pub(crate) fn time_of(&self, ms: Option<i64>) -> Value {
        ms.map_or(Value::Null, |ms| self.time(ms).into())
    }

    pub(crate) fn node(&self, kind: &str, id: impl std::fmt::Display) -> String {
        STANDARD.encode(format!("{kind}:{id}"))
    }

    /// An account in short.
    pub(crate) fn user(&self, account: &ForgeAccount) -> Value {
        let base = format!("{}/users/{}", self.at.api, account.login);
        let page = match account.kind {
            Kind::Bot => {
                format!("{}/apps/{}", self.at.web, account.login.trim_end_matches("[bot]"))
            }
            _ => format!("{}/{}", self.at.web, account.login),
        };
        with(
            Value::Object(below(&base, &USER)),
            [
                ("login", account.login.as_str().into()),
                ("id", account.id.into()),
                ("node_id", self.node("User", account.id).into()),
                ("gravatar_id", "".into()),
                ("html_url", page.into()),
                ("type", account.kind.word().into()),
                ("site_admin", false.into()),
            ],
        )
    }

    /// The same by id; GitHub's ghost if it is gone.
    pub(crate) fn user_of(&self, id: u64) -> Value {
        self.inner.accounts.get(&id).map_or(Value::Null, |account| self.user(account))
    }

    /// An account as everybody may see it.
    pub(crate) fn profile(&self, account: &ForgeAccount) -> Value {
        let empty = ["name", "company", "location", "email", "hireable", "bio"];
        let mut profile = with(
            self.user(account),
            [
                ("blog", "".into()),
                ("public_repos", 0.into()),
                ("public_gists", 0.into()),
                ("followers", 0.into()),
                ("following", 0.into()),
                ("created_at", self.time(account.created_at).into()),
                ("updated_at", self.time(account.created_at).into()),
            ],
        );
        for field in empty {
            profile[field] = Value::Null;
        }
        profile
    }

    /// An account as its owner sees it.
    pub(crate) fn own_profile(&self, account: &ForgeAccount) -> Value {
        let numbers = [
            "private_gists",
            "total_private_repos",
            "owned_private_repos",
            "disk_usage",
            "collaborators",
        ];
        let mut profile = self.profile(account);
        for field in numbers {
            profile[field] = 0.into();
        }
        with(profile, [("two_factor_authentication", true.into())])
    }

    pub(crate) fn organization(&self, account: &ForgeAccount) -> Value {
        let base = format!("{}/orgs/{}", self.at.api, account.login);
        let rests = [
            ("url", ""),
            ("repos_url", "/repos"),
            ("events_url", "/events"),
            ("hooks_url", "/hooks"),
            ("issues_url", "/issues"),
            ("members_url", "/members{/member}"),
            ("public_members_url", "/public_members{/member}"),
            ("avatar_url", "/avatar"),
        ];
        with(
            Value::Object(below(&base, &rests)),
            [
                ("login", account.login.as_str().into()),
                ("id", account.id.into()),
                ("node_id", self.node("Organization", account.id).into()),
                ("description", Value::Null),
            ],
        )
    }

    pub(crate) fn membership(
        &self,
        organization: &ForgeAccount,
        person: &ForgeAccount,
        role: Role,
    ) -> Value {
        let base = format!("{}/orgs/{}", self.at.api, organization.login);
        json!({
            "url": format!("{base}/memberships/{}", person.login), "state": "active", "role": role,
            "organization_url": base, "organization": self.organization(organization), "user": self.user(person),
            "direct_membership": true, "enterprise_teams_providing_indirect_membership": [],
        })
    }

    /// A repository in whole. `level` is the caller's, where there is one.
    pub(crate) fn repository(&self, repository: &RepositoryRecord, level: Option<Level>) -> Value {
        let full_name = self.inner.full_name(repository);
        let base = format!("{}/repos/{full_name}", self.at.api);
        let page = format!("{}/{full_name}", self.at.web);
        let open = self.inner.open_pulls(repository.id).count();
        let mut told = with(
            Value::Object(below(&base, &REPOSITORY)),
            [
                ("id", repository.id.into()),
                ("node_id", self.node("Repository", repository.id).into()),
                ("name", repository.name.as_str().into()),
                ("full_name", full_name.as_str().into()),
                ("owner", self.user_of(repository.owner)),
                ("private", repository.is_private.into()),
                ("visibility", if repository.is_private { "private" } else { "public" }.into()),
                ("html_url", page.as_str().into()),
                ("description", repository.description.as_deref().into()),
                ("clone_url", format!("{page}.git").into()),
                ("git_url", format!("{}.git", page.replacen("http://", "git://", 1)).into()),
                ("ssh_url", format!("git@127.0.0.1:{full_name}.git").into()),
                ("svn_url", page.into()),
                ("default_branch", repository.default_branch.as_str().into()),
                ("archived", repository.is_archived.into()),
                ("size", repository.size_kb.into()),
                ("open_issues", open.into()),
                ("open_issues_count", open.into()),
                ("topics", json!([])),
                ("created_at", self.time(repository.created_at).into()),
                ("updated_at", self.time(repository.updated_at).into()),
                ("pushed_at", self.time(repository.pushed_at).into()),
            ],
        );
        for field in ["homepage", "language", "license", "mirror_url"] {
            told[field] = Value::Null;
        }
        let counted = [
            "forks",
            "forks_count",
            "stargazers_count",
            "watchers",
            "watchers_count",
            "network_count",
            "subscribers_count",
        ];
        for field in counted {
            told[field] = 0.into();
        }
        for field in [
            "fork",
            "disabled",
            "has_issues",
            "has_projects",
            "has_wiki",
            "has_pages",
            "has_discussions",
            "is_template",
        ] {
            told[field] = false.into();
        }
        for field in [
            "allow_forking",
            "allow_merge_commit",
            "allow_squash_merge",
            "allow_rebase_merge",
            "has_downloads",
        ] {
            told[field] = true.into();
        }
        told["delete_branch_on_merge"] = repository.deletes_heads.into();
        if let Some(level) = level {
            let has = |least: Level| Value::from(level >= least);
            told["permissions"] = json!({
                "admin": has(Level::Admin), "maintain": has(Level::Admin), "push": has(Level::Write),
                "triage": has(Level::Write), "pull": has(Level::Read),
            });
        }
        told
    }

    /// A repository as webhooks of installations name it.
    pub(crate) fn short(&self, repository: &RepositoryRecord) -> Value {
        json!({
            "id": repository.id, "node_id": self.node("Repository", repository.id), "name": repository.name,
            "full_name": self.inner.full_name(repository), "private": repository.is_private,
        })
    }

    pub(crate) fn app(&self, app: &App) -> Value {
        let installed = self.inner.installations.values().filter(|one| one.app == app.id).count();
        json!({
            "id": app.id, "slug": app.slug, "node_id": self.node("App", app.id), "client_id": app.client_id,
            "owner": self.user_of(app.owner), "name": app.name, "description": null, "external_url": app.homepage,
            "html_url": format!("{}/apps/{}", self.at.web, app.slug), "created_at": self.time(app.created_at),
            "updated_at": self.time(app.created_at), "permissions": app.permissions, "events": app.events,
            "installations_count": installed,
        })
    }

    pub(crate) fn hook_config(&self, app: &App) -> Value {
        let secret = app.webhook_secret.as_ref().map(|_| "********");
        let url = app.webhook.as_deref().unwrap_or_default();
        let mut config = json!({ "content_type": "json", "insecure_ssl": "0", "url": url });
        if let Some(secret) = secret {
            config["secret"] = secret.into();
        }
        config
    }

    /// The page on which an installation's owner changes it.
    pub(crate) fn installation_page(&self, installation: &Installation) -> String {
        let (web, id) = (&self.at.web, installation.id);
        match self.inner.accounts.get(&installation.account) {
            Some(account) if account.kind == Kind::Organization => {
                format!("{web}/organizations/{}/settings/installations/{id}", account.login)
            }
            _ => format!("{web}/settings/installations/{id}"),
        }
    }

    pub(crate) fn installation(&self, installation: &Installation) -> Value {
        let api = &self.at.api;
        let app = self.inner.apps.get(&installation.app);
        let account = self.inner.accounts.get(&installation.account);
        json!({
            "id": installation.id, "app_id": installation.app, "app_slug": app.map(|app| &app.slug),
            "client_id": app.map(|app| &app.client_id), "target_id": installation.account,
            "target_type": account.map(|one| one.kind.word()), "account": self.user_of(installation.account),
            "repository_selection": if installation.selected.is_none() { "all" } else { "selected" },
            "access_tokens_url": format!("{api}/app/installations/{}/access_tokens", installation.id),
            "repositories_url": format!("{api}/installation/repositories"),
            "html_url": self.installation_page(installation),
            "permissions": installation.permissions, "events": installation.events,
            "created_at": self.time(installation.created_at), "updated_at": self.time(installation.updated_at),
            "single_file_name": null, "has_multiple_single_files": false, "single_file_paths": [],
            "suspended_by": installation.suspended_by.map(|id| self.user_of(id)),
            "suspended_at": self.time_of(installation.suspended_at),
        })
    }

    fn signer(&self, signer: &Signer) -> Value {
        json!({ "name": signer.name, "email": signer.mail, "date": self.time(signer.at_ms) })
    }

    /// The account whose address for commits this is: `id+login@users.noreply.github.com`.
    fn account_of_mail(&self, mail: &str) -> Value {
        let id =
            mail.strip_suffix("@users.noreply.github.com").and_then(|rest| rest.split_once('+'));
        id.and_then(|(id, _)| id.parse().ok()).map_or(Value::Null, |id| self.user_of(id))
    }

    fn verification(&self, commit: &CommitShown) -> Value {
        let reason = if commit.is_signed { "valid" } else { "unsigned" };
        json!({
            "verified": commit.is_signed, "reason": reason, "signature": null, "payload": null, "verified_at": null,
        })
    }

    pub(crate) fn commit(&self, full_name: &str, commit: &CommitShown) -> Value {
        let base = format!("{}/repos/{full_name}", self.at.api);
        let page = format!("{}/{full_name}/commit/{}", self.at.web, commit.sha);
        let at = format!("{base}/commits/{}", commit.sha);
        let parents = commit.parents.iter().map(|sha| {
            json!({
                "sha": sha, "url": format!("{base}/commits/{sha}"),
                "html_url": format!("{}/{full_name}/commit/{sha}", self.at.web),
            })
        });
        json!({
            "sha": commit.sha, "node_id": self.node("Commit", &commit.sha), "url": at, "html_url": page,
            "comments_url": format!("{at}/comments"),
            "commit": {
                "url": format!("{base}/git/commits/{}", commit.sha), "message": commit.message,
                "author": self.signer(&commit.author), "committer": self.signer(&commit.committer),
                "tree": { "sha": commit.tree, "url": format!("{base}/git/trees/{}", commit.tree) },
                "comment_count": 0, "verification": self.verification(commit),
            },
            "author": self.account_of_mail(&commit.author.mail),
            "committer": self.account_of_mail(&commit.committer.mail),
            "parents": parents.collect::<Vec<_>>(),
        })
    }

    /// A commit as git's own calls tell it.
    pub(crate) fn git_commit(&self, full_name: &str, commit: &CommitShown) -> Value {
        let base = format!("{}/repos/{full_name}/git", self.at.api);
        let page = |sha: &str| format!("{}/{full_name}/commit/{sha}", self.at.web);
        let parents = commit.parents.iter().map(|sha| {
            json!({ "sha": sha, "url": format!("{base}/commits/{sha}"), "html_url": page(sha) })
        });
        json!({
            "sha": commit.sha, "node_id": self.node("Commit", &commit.sha),
            "url": format!("{base}/commits/{}", commit.sha), "html_url": page(&commit.sha),
            "author": self.signer(&commit.author), "committer": self.signer(&commit.committer),
            "tree": { "sha": commit.tree, "url": format!("{base}/trees/{}", commit.tree) },
            "message": commit.message, "parents": parents.collect::<Vec<_>>(),
            "verification": self.verification(commit),
        })
    }

    pub(crate) fn change(&self, full_name: &str, head: &str, change: &Change) -> Value {
        let path = crate::rest::encoded(&change.path);
        let mut told = json!({
            "sha": change.sha, "filename": change.path, "status": change.status, "additions": change.additions,
            "deletions": change.deletions, "changes": change.additions + change.deletions,
            "blob_url": format!("{}/{full_name}/blob/{head}/{path}", self.at.web),
            "raw_url": format!("{}/{full_name}/raw/{head}/{path}", self.at.web),
            "contents_url": format!("{}/repos/{full_name}/contents/{path}?ref={head}", self.at.api),
        });
        if let Some(patch) = &change.patch {
            told["patch"] = patch.as_str().into();
        }
        if let Some(former) = &change.former_path {
            told["previous_filename"] = former.as_str().into();
        }
        told
    }

    /// A pull request; in whole with its numbers.
    pub(crate) fn pull(&self, pull: &Pull, numbers: Option<&Numbers>) -> Value {
        let Some(repository) = self.inner.repositories.get(&pull.repository) else {
            return Value::Null;
        };
        let full_name = self.inner.full_name(repository);
        let owner = full_name.split('/').next().unwrap_or_default();
        let base = format!("{}/repos/{full_name}", self.at.api);
        let at = format!("{base}/pulls/{}", pull.number);
        let issue = format!("{base}/issues/{}", pull.number);
        let page = format!("{}/{full_name}/pull/{}", self.at.web, pull.number);
        let statuses = format!("{base}/statuses/{}", pull.head_sha);
        let side = |branch: &str, sha: &str| {
            json!({
                "label": format!("{owner}:{branch}"), "ref": branch, "sha": sha,
                "user": self.user_of(repository.owner), "repo": self.repository(repository, None),
            })
        };
        let is_merged = pull.state == PullState::Merged;
        let merged_at = self.time_of(pull.closed_at.filter(|_| is_merged));
        let link = |href: &str| json!({ "href": href });
        let reviewers: Vec<Value> = pull.reviewers.iter().map(|id| self.user_of(*id)).collect();
        let mut told = json!({
            "url": at, "id": pull.id, "node_id": self.node("PullRequest", pull.id), "html_url": page,
            "diff_url": format!("{page}.diff"), "patch_url": format!("{page}.patch"), "issue_url": issue,
            "commits_url": format!("{at}/commits"), "review_comments_url": format!("{at}/comments"),
            "review_comment_url": format!("{base}/pulls/comments{{/number}}"),
            "comments_url": format!("{issue}/comments"), "statuses_url": statuses, "number": pull.number,
            "state": if pull.state == PullState::Open { "open" } else { "closed" }, "locked": false,
            "title": pull.title, "user": self.user_of(pull.author), "body": pull.body, "labels": [],
            "milestone": null, "active_lock_reason": null, "created_at": self.time(pull.created_at),
            "updated_at": self.time(pull.updated_at), "closed_at": self.time_of(pull.closed_at),
            "merged_at": merged_at, "merge_commit_sha": pull.merge_sha, "assignee": null, "assignees": [],
            "requested_reviewers": reviewers, "requested_teams": [], "head": side(&pull.head, &pull.head_sha),
            "base": side(&pull.base, &pull.base_sha), "author_association": self.association(repository, pull.author),
            "auto_merge": null, "draft": pull.is_draft,
        });
        told["_links"] = json!({
            "self": link(&at), "html": link(&page), "issue": link(&issue),
            "comments": link(&format!("{issue}/comments")), "review_comments": link(&format!("{at}/comments")),
            "review_comment": link(&format!("{base}/pulls/comments{{/number}}")),
            "commits": link(&format!("{at}/commits")), "statuses": link(&statuses),
        });
        if let Some(numbers) = numbers {
            let is_open = pull.state == PullState::Open;
            let state = match numbers.mergeable.filter(|_| is_open) {
                None => "unknown",
                Some(false) => "dirty",
                Some(true) if pull.is_draft => "draft",
                Some(true) if numbers.is_blocked => "blocked",
                Some(true) if numbers.is_behind => "behind",
                Some(true) if numbers.is_unstable => "unstable",
                Some(true) => "clean",
            };
            let all = &self.inner.talk.remarks;
            let remarks = all.iter().filter(|one| one.pull == pull.id).count();
            let more = json!({
                "merged": is_merged, "mergeable": numbers.mergeable.filter(|_| is_open),
                "rebaseable": numbers.mergeable.filter(|_| is_open), "mergeable_state": state,
                "merged_by": pull.merged_by.map(|id| self.user_of(id)), "comments": remarks,
                "review_comments": self.inner.talk.comments_of(pull.id).len(),
                "maintainer_can_modify": pull.maintainer_can_modify, "commits": numbers.commits,
                "additions": numbers.additions, "deletions": numbers.deletions, "changed_files": numbers.files,
            });
            if let (Value::Object(told), Value::Object(more)) = (&mut told, more) {
                told.extend(more);
            }
        }
        told
    }

    /// What an account is to a repository.
    pub(crate) fn association(&self, repository: &RepositoryRecord, account: u64) -> &'static str {
        let owner = self.inner.accounts.get(&repository.owner);
        let mut pulls = self.inner.pulls.iter().filter(|one| one.repository == repository.id);
        match owner {
            Some(owner) if owner.id == account => "OWNER",
            Some(owner) if owner.members.contains_key(&account) => "MEMBER",
            _ if repository.collaborators.contains_key(&account) => "COLLABORATOR",
            _ if pulls.any(|one| one.author == account) => "CONTRIBUTOR",
            _ => "NONE",
        }
    }

    /// A sent webhook in short.
    pub(crate) fn delivery(&self, delivery: &HookDelivery) -> Value {
        json!({
            "id": delivery.id, "guid": delivery.guid, "delivered_at": self.time(delivery.delivered_at),
            "redelivery": delivery.is_again,
            "duration": std::time::Duration::from_millis(delivery.duration_ms).as_secs_f64(),
            "status": delivery.status, "status_code": delivery.status_code, "event": delivery.event,
            "action": delivery.action, "installation_id": delivery.installation,
            "repository_id": delivery.repository, "throttled_at": null,
        })
    }

    /// The same with what was sent and answered.
    pub(crate) fn delivery_whole(&self, delivery: &HookDelivery) -> Value {
        with(
            self.delivery(delivery),
            [
                ("url", delivery.url.as_str().into()),
                (
                    "request",
                    json!({ "headers": delivery.request_headers, "payload": delivery.payload }),
                ),
                (
                    "response",
                    json!({ "headers": delivery.response_headers, "payload": delivery.response }),
                ),
            ],
        )
    }
}
