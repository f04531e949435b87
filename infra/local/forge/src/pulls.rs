//! Pull requests: opened, changed, merged, closed, and moved by pushes.

use serde_json::{Value, json};

use crate::access::Caller;
use crate::api_error::ApiError;
use crate::checks::{self, Passed, passed};
use crate::git::commits::Signer;
use crate::git::merge::Method;
use crate::git::rules::{Move, rules_of};
use crate::git::{Git, ZEROS};
use crate::limits::{PULLS_MAX, TEXT_CHARS_MAX, TITLE_CHARS_MAX};
use crate::permission::{Level, of_person};
use crate::record::{BranchRule, Pull, PullState, StatusCheck};
use crate::reviews::{Verdict, threads};
use crate::state::{ForgeState, SharedEngine};
use crate::webhooks;

/// A pull request to be opened.
pub(crate) struct New {
    pub(crate) title: String,
    pub(crate) body: Option<String>,
    /// A branch, with or without its owner.
    pub(crate) head: String,
    pub(crate) base: String,
    pub(crate) is_draft: bool,
    pub(crate) maintainer_can_modify: bool,
}

/// What is computed of a pull request.
#[derive(Default)]
pub(crate) struct Numbers {
    pub(crate) commits: usize,
    pub(crate) files: usize,
    pub(crate) additions: u64,
    pub(crate) deletions: u64,
    /// `None`: not computed yet.
    pub(crate) mergeable: Option<bool>,
    /// Commit of the base's branch.
    pub(crate) target: Option<String>,
    /// A rule wants what the base has since got.
    pub(crate) is_behind: bool,
    /// A rule of the base forbids it for now.
    pub(crate) is_blocked: bool,
    /// A check of the head has not passed.
    pub(crate) is_unstable: bool,
}

/// Both ends of what a pull request changes.
pub(crate) async fn range(git: &Git, pull: &Pull) -> Result<(String, String), ApiError> {
    let base = match pull.state {
        PullState::Open => git.branch(&pull.base).await?.unwrap_or_else(|| pull.base_sha.clone()),
        _ => pull.base_sha.clone(),
    };
    let common = git.merge_base(&base, &pull.head_sha).await?;
    Ok((common.unwrap_or(base), pull.head_sha.clone()))
}

/// Counts, and tries the merge.
pub(crate) async fn numbers(engine: &SharedEngine, pull: &Pull) -> Result<Numbers, ApiError> {
    let git = Git::new(engine, pull.repository);
    let (base, head) = range(&git, pull).await?;
    let changes = git.changes(&base, &head).await?;
    let (commits, _) = git.ahead_behind(&base, &head).await?;
    let target = git.branch(&pull.base).await?;
    let target = target.filter(|_| pull.state == PullState::Open);
    let (mergeable, has_base) = match &target {
        Some(target) => (
            Some(git.merged_tree(target, &head).await?.is_some()),
            git.is_ancestor(target, &head).await?,
        ),
        None => (None, true),
    };
    let inner = engine.lock();
    Ok(Numbers {
        commits,
        files: changes.len(),
        additions: changes.iter().map(|one| one.additions).sum(),
        deletions: changes.iter().map(|one| one.deletions).sum(),
        mergeable,
        target,
        is_behind: !has_base && is_strict(&inner, pull),
        is_blocked: blocked(&inner, pull).is_some(),
        is_unstable: inner.checks.has_other(pull.repository, &pull.head_sha),
    })
}

/// The same for who looks: the first looks find the merge not tried yet.
pub(crate) async fn looked_at(engine: &SharedEngine, pull: &Pull) -> Result<Numbers, ApiError> {
    let numbers = numbers(engine, pull).await?;
    let Some(target) = numbers.target.clone() else { return Ok(numbers) };
    let unknown = engine.lock().repository(pull.repository)?.unknown_looks;
    let before = engine.look(pull.id, format!("{target} {}", pull.head_sha));
    Ok(Numbers { mergeable: numbers.mergeable.filter(|_| before >= unknown), ..numbers })
}

fn check_texts(title: Option<&str>, body: Option<&str>) -> Result<(), ApiError> {
    if title.is_some_and(|title| title.trim().is_empty()) {
        return Err(ApiError::field("PullRequest", "title", "missing_field"));
    }
    if title.is_some_and(|title| title.chars().count() > TITLE_CHARS_MAX) {
        return Err(ApiError::custom(
            "PullRequest",
            "title is too long (maximum is 256 characters)",
        ));
    }
    if body.is_some_and(|body| body.chars().count() > TEXT_CHARS_MAX) {
        return Err(ApiError::custom(
            "PullRequest",
            "body is too long (maximum is 65536 characters)",
        ));
    }
    Ok(())
}

/// Opens a pull request.
///
/// # Errors
/// As GitHub refuses it.
pub(crate) async fn open(
    engine: &SharedEngine,
    repository: u64,
    author: u64,
    new: New,
) -> Result<Pull, ApiError> {
    let (record, owner) = {
        let inner = engine.lock();
        let record = inner.repository(repository)?.clone();
        let owner = inner.account(record.owner)?.login.clone();
        (record, owner)
    };
    if record.is_archived {
        return Err(ApiError::archived());
    }
    check_texts(Some(&new.title), new.body.as_deref())?;
    let git = Git::new(engine, repository);
    let head = match new.head.split_once(':') {
        Some((named, branch)) if named.eq_ignore_ascii_case(&owner) => branch.to_owned(),
        Some(_) => return Err(ApiError::field("PullRequest", "head", "invalid")),
        None => new.head.clone(),
    };
    let base_sha = git.branch(&new.base).await?;
    let base_sha = base_sha.ok_or_else(|| ApiError::field("PullRequest", "base", "invalid"))?;
    let head_sha = git.branch(&head).await?;
    let head_sha = head_sha.ok_or_else(|| ApiError::field("PullRequest", "head", "invalid"))?;
    if git.merge_base(&base_sha, &head_sha).await?.is_none() {
        let told = format!("The {head} branch has no history in common with {}", new.base);
        return Err(ApiError::custom("PullRequest", &told));
    }
    if git.ahead_behind(&base_sha, &head_sha).await?.0 == 0 {
        let told = format!("No commits between {} and {head}", new.base);
        return Err(ApiError::custom("PullRequest", &told));
    }
    if new.is_draft && record.has_no_drafts {
        return Err(ApiError::unprocessable(
            "Draft pull requests are not supported in this repository.",
        ));
    }
    let now = engine.clock.now_ms();
    let pull = engine.change(|inner| {
        let same = |one: &&Pull| one.head == head && one.base == new.base;
        if inner.open_pulls(repository).any(|one| same(&one)) {
            let told = format!("A pull request already exists for {owner}:{head}.");
            return Err(ApiError::custom("PullRequest", &told));
        }
        if inner.pulls.len() >= PULLS_MAX {
            return Err(ApiError::full("pull requests"));
        }
        let id = inner.new_id();
        let record = inner.repository_mut(repository)?;
        let number = record.next_number;
        record.next_number += 1;
        let pull = Pull {
            id,
            repository,
            number,
            title: new.title,
            body: new.body.filter(|body| !body.is_empty()),
            head,
            head_sha,
            base: new.base,
            base_sha,
            state: PullState::Open,
            is_draft: new.is_draft,
            author,
            maintainer_can_modify: new.maintainer_can_modify,
            reviewers: Vec::new(),
            merge_sha: None,
            merged_by: None,
            queued_at: None,
            created_at: now,
            updated_at: now,
            closed_at: None,
        };
        inner.pulls.push(pull.clone());
        Ok(pull)
    })?;
    git.set(&format!("refs/pull/{}/head", pull.number), &pull.head_sha).await?;
    tell(engine, &pull, author, "opened", &[]).await;
    Ok(pull)
}

/// What is changed of a pull request.
#[derive(Default)]
pub(crate) struct Changed {
    pub(crate) title: Option<String>,
    pub(crate) body: Option<String>,
    pub(crate) is_open: Option<bool>,
    pub(crate) base: Option<String>,
    pub(crate) is_draft: Option<bool>,
    pub(crate) maintainer_can_modify: Option<bool>,
}

/// Changes a pull request.
///
/// # Errors
/// As GitHub refuses it.
pub(crate) async fn update(
    engine: &SharedEngine,
    repository: u64,
    number: u64,
    actor: u64,
    changed: Changed,
) -> Result<Pull, ApiError> {
    check_texts(changed.title.as_deref(), changed.body.as_deref())?;
    let git = Git::new(engine, repository);
    let before = engine.lock().pull(repository, number)?.clone();
    if engine.lock().repository(repository)?.is_archived {
        return Err(ApiError::archived());
    }
    let base_sha = match &changed.base {
        Some(base) => {
            let found = git.branch(base).await?;
            Some(found.ok_or_else(|| ApiError::field("PullRequest", "base", "invalid"))?)
        }
        None => None,
    };
    if changed.is_open == Some(true) && before.state == PullState::Merged {
        return Err(ApiError::custom(
            "PullRequest",
            "state cannot be changed. The pull request has been merged.",
        ));
    }
    let reopens = changed.is_open == Some(true) && before.state == PullState::Closed;
    if reopens && git.branch(&before.head).await?.is_none() {
        let told = format!("state cannot be changed. The {} branch has been deleted.", before.head);
        return Err(ApiError::custom("PullRequest", &told));
    }
    let now = engine.clock.now_ms();
    let pull = engine.change(|inner| {
        let pull = inner.pull_mut(repository, number)?;
        if let Some(title) = changed.title {
            pull.title = title;
        }
        if let Some(body) = changed.body {
            pull.body = Some(body).filter(|body| !body.is_empty());
        }
        if let (Some(base), Some(sha)) = (changed.base, base_sha) {
            (pull.base, pull.base_sha) = (base, sha);
        }
        if let Some(is_draft) = changed.is_draft {
            pull.is_draft = is_draft;
        }
        if let Some(may) = changed.maintainer_can_modify {
            pull.maintainer_can_modify = may;
        }
        match changed.is_open {
            Some(true) if reopens => (pull.state, pull.closed_at) = (PullState::Open, None),
            Some(false) if pull.state == PullState::Open => {
                (pull.state, pull.closed_at) = (PullState::Closed, Some(now));
            }
            _ => {}
        }
        pull.updated_at = now;
        Ok(pull.clone())
    })?;
    let mut changes = json!({});
    if before.title != pull.title {
        changes["title"] = json!({ "from": before.title });
    }
    if before.body != pull.body {
        changes["body"] = json!({ "from": before.body });
    }
    if before.base != pull.base {
        let (name, sha) = (json!({ "from": before.base }), json!({ "from": before.base_sha }));
        changes["base"] = json!({ "ref": name, "sha": sha });
    }
    let action = match (before.state, pull.state) {
        (PullState::Open, PullState::Closed) => "closed",
        (PullState::Closed, PullState::Open) => "reopened",
        _ if before.is_draft && !pull.is_draft => "ready_for_review",
        _ if !before.is_draft && pull.is_draft => "converted_to_draft",
        _ => "edited",
    };
    let more = [("changes", changes)];
    tell(engine, &pull, actor, action, if action == "edited" { &more } else { &[] }).await;
    Ok(pull)
}

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
            let show = crate::rest::show::Show { inner: &inner, at: &engine.addresses };
            show.user_of(person)
        };
        tell(engine, &pull, actor, action, &[("requested_reviewer", told)]).await;
    }
    Ok(pull)
}

/// How a pull request is merged.
pub(crate) struct Merge {
    /// The head that was seen.
    pub(crate) sha: Option<String>,
    pub(crate) method: Method,
    pub(crate) title: Option<String>,
    pub(crate) message: Option<String>,
}

/// The rules of both kinds that hold for a pull request.
pub(crate) fn rules_for(inner: &ForgeState, pull: &Pull) -> Vec<BranchRule> {
    let Ok(repository) = inner.repository(pull.repository) else { return Vec::new() };
    let protected = repository.protections.get(&pull.base).map(|it| it.rules.clone());
    protected.unwrap_or_default().into_iter().chain(rules_of(repository, &pull.base)).collect()
}

fn is_strict(inner: &ForgeState, pull: &Pull) -> bool {
    let strict = |rule: &BranchRule| {
        matches!(
            rule,
            BranchRule::RequiredStatusChecks { strict_required_status_checks_policy: true, .. }
        )
    };
    rules_for(inner, pull).iter().any(strict)
}

/// The sentence of a rule that forbids a merge for now.
fn blocked(inner: &ForgeState, pull: &Pull) -> Option<String> {
    rules_for(inner, pull).into_iter().find_map(|rule| match rule {
        BranchRule::PullRequest { required_approving_review_count: count }
            if u64::try_from(inner.counting(pull, Verdict::Approved)).unwrap_or(0) < count =>
        {
            let noun = if count == 1 { "review is" } else { "reviews are" };
            Some(format!(
                "At least {count} approving {noun} required by reviewers with write access."
            ))
        }
        BranchRule::RequiredStatusChecks { required_status_checks: checks, .. } => {
            unpassed(inner, pull, &checks)
        }
        BranchRule::MergeQueue {} => {
            Some("Changes must be made through the merge queue".to_owned())
        }
        _ => None,
    })
}

fn unpassed(inner: &ForgeState, pull: &Pull, required: &[StatusCheck]) -> Option<String> {
    let all = required.iter().map(|one| {
        let passed = passed(&inner.checks, pull.repository, &pull.head_sha, one);
        (passed, &one.context)
    });
    let open: Vec<(Passed, &String)> = all.filter(|(passed, _)| *passed != Passed::Yes).collect();
    let word = |passed: Passed| match passed {
        Passed::Failing => "failing",
        Passed::Running => "in progress",
        _ => "expected",
    };
    match open.as_slice() {
        [] => None,
        [(passed, name)] => Some(format!("Required status check \"{name}\" is {}.", word(*passed))),
        _ => {
            let worst = open.iter().map(|(passed, _)| *passed).max().unwrap_or(Passed::Expected);
            let (open, all) = (open.len(), required.len());
            Some(format!("{open} of {all} required status checks are {}.", word(worst)))
        }
    }
}

/// Merges a pull request, and answers the merge's commit.
///
/// # Errors
/// As GitHub refuses it.
pub(crate) async fn merge(
    engine: &SharedEngine,
    repository: u64,
    number: u64,
    actor: u64,
    how: Merge,
) -> Result<String, ApiError> {
    let writer = engine.writer(repository);
    let held = writer.lock().await;
    let (record, pull, login, full_name) = {
        let inner = engine.lock();
        let record = inner.repository(repository)?.clone();
        let full_name = inner.full_name(&record);
        let login = inner.account(actor)?.login.clone();
        (record, inner.pull(repository, number)?.clone(), login, full_name)
    };
    if record.is_archived {
        return Err(ApiError::archived());
    }
    if pull.state != PullState::Open {
        return Err(ApiError::not_allowed("Pull Request is not mergeable"));
    }
    if pull.is_draft {
        return Err(ApiError::not_allowed("Pull Request is still a draft"));
    }
    if how.sha.as_ref().is_some_and(|sha| *sha != pull.head_sha) {
        return Err(ApiError::conflict(
            "Head branch was modified. Review and try the merge again.",
        ));
    }
    if let Some(told) = blocked(&engine.lock(), &pull) {
        return Err(ApiError::not_allowed(told));
    }
    let git = Git::new(engine, repository);
    let base = git.branch(&pull.base).await?;
    let base = base.ok_or_else(|| ApiError::not_allowed("Pull Request is not mergeable"))?;
    let now = engine.clock.now_ms();
    let owner = full_name.split('/').next().unwrap_or_default();
    let title = how.title.unwrap_or_else(|| match how.method {
        Method::Squash => format!("{} (#{number})", pull.title),
        _ => format!("Merge pull request #{number} from {owner}/{}", pull.head),
    });
    let message = how.message.unwrap_or_else(|| match how.method {
        Method::Squash => String::new(),
        _ => pull.title.clone(),
    });
    let text = format!("{title}\n\n{message}");
    let mail = format!("{actor}+{login}@users.noreply.github.com");
    let author = Signer { name: login, mail, at_ms: now };
    let made = git.merge(&base, &pull.head_sha, how.method, &author, text.trim_end()).await?;
    let made = made.ok_or_else(|| ApiError::not_allowed("Pull Request is not mergeable"))?;
    let branch = format!("refs/heads/{}", pull.base);
    if !git.update(&branch, &made, &base).await? {
        let told = "Base branch was modified. Review and try the merge again.";
        return Err(ApiError::not_allowed(told));
    }
    let merged = engine.change(|inner| {
        let pull = inner.pull_mut(repository, number)?;
        (pull.state, pull.closed_at, pull.updated_at) = (PullState::Merged, Some(now), now);
        (pull.merge_sha, pull.merged_by) = (Some(made.clone()), Some(actor));
        pull.base_sha.clone_from(&base);
        let pull = pull.clone();
        inner.repository_mut(repository)?.pushed_at = now;
        Ok(pull)
    })?;
    drop(held);
    tell(engine, &merged, actor, "closed", &[]).await;
    let onto = Move { old: base, new: made.clone(), name: branch };
    told_push(engine, repository, actor, &onto).await;
    checks::told::pushed(engine, repository, actor, &merged.base, (&onto.old, &onto.new)).await?;
    if record.deletes_heads && merged.head != record.default_branch {
        let name = format!("refs/heads/{}", merged.head);
        if git.update(&name, ZEROS, &merged.head_sha).await? {
            let gone = Move { old: merged.head_sha.clone(), new: ZEROS.to_owned(), name };
            follow_all(engine, repository, actor, &[gone]).await?;
        }
    }
    Ok(made)
}

/// Merges the base into the head of a pull request, if the head is still the one that was seen.
///
/// # Errors
/// As GitHub refuses it.
pub(crate) async fn update_branch(
    engine: &SharedEngine,
    pull: &Pull,
    caller: &Caller,
    seen: Option<String>,
) -> Result<(), ApiError> {
    let writer = engine.writer(pull.repository);
    let held = writer.lock().await;
    let (pull, actor, login) = {
        let inner = engine.lock();
        let actor = caller.account(&inner).unwrap_or_default();
        let login = inner.account(actor)?.login.clone();
        (inner.pull(pull.repository, pull.number)?.clone(), actor, login)
    };
    if seen.is_some_and(|sha| sha != pull.head_sha) {
        return Err(ApiError::unprocessable("expected head sha didn’t match current head ref."));
    }
    let git = Git::new(engine, pull.repository);
    let base = git.branch(&pull.base).await?.filter(|_| pull.state == PullState::Open);
    let base = base.ok_or_else(|| ApiError::unprocessable("The pull request is closed."))?;
    if git.is_ancestor(&base, &pull.head_sha).await? {
        let told = "There are no new commits on the base branch.";
        return Err(ApiError::unprocessable(told));
    }
    let mail = format!("{actor}+{login}@users.noreply.github.com");
    let author = Signer { name: login, mail, at_ms: engine.clock.now_ms() };
    let text = format!("Merge branch '{}' into {}", pull.base, pull.head);
    let made = git.merge(&pull.head_sha, &base, Method::Merge, &author, &text).await?;
    let made =
        made.ok_or_else(|| ApiError::unprocessable("merge conflict between base and head"))?;
    let name = format!("refs/heads/{}", pull.head);
    if !git.update(&name, &made, &pull.head_sha).await? {
        return Err(ApiError::unprocessable("expected head sha didn’t match current head ref."));
    }
    drop(held);
    let moves = [Move { old: pull.head_sha, new: made, name }];
    after_push(engine, pull.repository, caller, &moves).await
}

/// Tells apps. Whether it can be merged is never known at that moment.
async fn tell(
    engine: &SharedEngine,
    pull: &Pull,
    actor: u64,
    action: &str,
    more: &[(&'static str, Value)],
) {
    let numbers = numbers(engine, pull).await.unwrap_or_default();
    let numbers = Numbers { mergeable: None, ..numbers };
    webhooks::tell_all(engine, pull.repository, Some(actor), "pull_request", |show, _| {
        let mut payload = json!({
            "action": action, "number": pull.number, "pull_request": show.pull(pull, Some(&numbers)),
        });
        for (field, value) in more {
            payload[*field] = value.clone();
        }
        payload
    });
}

async fn told_push(engine: &SharedEngine, repository: u64, actor: u64, one: &Move) {
    let is_kept = one.old == ZEROS || one.new == ZEROS;
    let git = Git::new(engine, repository);
    let is_forced = !is_kept && !git.is_ancestor(&one.old, &one.new).await.unwrap_or(true);
    webhooks::tell_all(engine, repository, Some(actor), "push", |show, record| {
        let login = show.user_of(actor)["login"].clone();
        let compare = format!(
            "{}/{}/compare/{}...{}",
            show.at.web,
            show.inner.full_name(record),
            one.old,
            one.new
        );
        json!({
            "ref": one.name, "before": one.old, "after": one.new, "created": one.old == ZEROS,
            "deleted": one.new == ZEROS, "forced": is_forced, "base_ref": null, "compare": compare, "commits": [],
            "head_commit": null, "pusher": { "name": login },
        })
    });
}

/// What follows from a push: sizes, the first default branch, pull requests, webhooks.
///
/// # Errors
/// Git or the state failed.
pub(crate) async fn after_push(
    engine: &SharedEngine,
    repository: u64,
    caller: &Caller,
    moves: &[Move],
) -> Result<(), ApiError> {
    if moves.is_empty() {
        return Ok(());
    }
    let git = Git::new(engine, repository);
    let size_kb = git.size_kb().await?;
    let default_branch = engine.lock().repository(repository)?.default_branch.clone();
    let first = moves.iter().filter(|one| one.new != ZEROS);
    let first = first.filter_map(|one| one.name.strip_prefix("refs/heads/")).next();
    let first = match first {
        Some(first) if git.branch(&default_branch).await?.is_none() => {
            git.point(first).await?;
            Some(first.to_owned())
        }
        _ => None,
    };
    let now = engine.clock.now_ms();
    let actor = engine.change(|inner| {
        let record = inner.repository_mut(repository)?;
        (record.size_kb, record.pushed_at, record.updated_at) = (size_kb, now, now);
        if let Some(first) = first {
            record.default_branch = first;
        }
        Ok(caller.account(inner).unwrap_or_default())
    })?;
    follow_all(engine, repository, actor, moves).await
}

/// What follows from branches that moved.
async fn follow_all(
    engine: &SharedEngine,
    repository: u64,
    actor: u64,
    moves: &[Move],
) -> Result<(), ApiError> {
    let git = Git::new(engine, repository);
    for one in moves {
        if let Some(branch) = one.name.strip_prefix("refs/heads/") {
            follow(engine, &git, repository, actor, branch, one).await?;
        }
        told_push(engine, repository, actor, one).await;
        let branch = one.name.strip_prefix("refs/heads/").filter(|_| one.new != ZEROS);
        if let Some(branch) = branch {
            checks::told::pushed(engine, repository, actor, branch, (&one.old, &one.new)).await?;
        }
    }
    Ok(())
}

/// Moves the open pull requests that have this branch as head or base.
async fn follow(
    engine: &SharedEngine,
    git: &Git,
    repository: u64,
    actor: u64,
    branch: &str,
    one: &Move,
) -> Result<(), ApiError> {
    let open: Vec<Pull> = engine.lock().open_pulls(repository).cloned().collect();
    let now = engine.clock.now_ms();
    for pull in open {
        let is_gone = one.new == ZEROS;
        if is_gone && (pull.head == branch || pull.base == branch) {
            let changed = Changed { is_open: Some(false), ..Changed::default() };
            update(engine, repository, pull.number, actor, changed).await?;
        } else if pull.head == branch {
            let moved = engine.change(|inner| {
                let pull = inner.pull_mut(repository, pull.number)?;
                pull.head_sha.clone_from(&one.new);
                pull.updated_at = now;
                Ok(pull.clone())
            })?;
            git.set(&format!("refs/pull/{}/head", pull.number), &one.new).await?;
            threads::follow(engine, &moved, (&one.old, &one.new)).await?;
            let more = [("before", one.old.as_str().into()), ("after", one.new.as_str().into())];
            tell(engine, &moved, actor, "synchronize", &more).await;
        } else if pull.base == branch && git.is_ancestor(&pull.head_sha, &one.new).await? {
            let merged = engine.change(|inner| {
                let pull = inner.pull_mut(repository, pull.number)?;
                (pull.state, pull.closed_at, pull.updated_at) = (PullState::Merged, Some(now), now);
                (pull.merge_sha, pull.merged_by) = (Some(one.new.clone()), Some(actor));
                if one.old != ZEROS {
                    pull.base_sha.clone_from(&one.old);
                }
                Ok(pull.clone())
            })?;
            tell(engine, &merged, actor, "closed", &[]).await;
        }
    }
    Ok(())
}
