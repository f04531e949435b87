//! Limits of this crate; each name contains its unit.

/// Bytes of a request's body, except of a push.
pub const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes of a push; GitHub's is four times this.
pub const PUSH_BYTES_MAX: u64 = 512 * 1024 * 1024;
/// Bytes of the answer to a push.
pub const REPORT_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of one file in a push.
pub const FILE_BYTES_MAX: u64 = 100 * 1024 * 1024;
/// Bytes of one file in a push without a warning.
pub const FILE_BYTES_ADVISED: u64 = 50 * 1024 * 1024;
/// Larger files are not searched for secrets.
pub const SCANNED_BYTES_MAX: u64 = 1024 * 1024;
/// Objects of a push that the rules look at.
pub const PUSHED_OBJECTS_MAX: usize = 200_000;
/// Output of one `git`.
pub const GIT_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Time of one `git`. A held call takes up to two minutes more than its work.
pub const GIT_MS_MAX: u64 = 300_000;
/// Repositories at once.
pub const REPOSITORIES_MAX: usize = 1_000;
/// Former names of a repository that are remembered.
pub const FORMER_NAMES_MAX: usize = 100;
/// Accounts, apps and installations at once, of each.
pub const ACCOUNTS_MAX: usize = 1_000;
/// Pull requests at once.
pub const PULLS_MAX: usize = 10_000;
/// Rules of a repository.
pub const RULES_MAX: usize = 100;
/// Tokens at once; the oldest end first.
pub const TOKENS_MAX: usize = 10_000;
/// Codes of sign-ins and manifests at once; the oldest end first.
pub const CODES_MAX: usize = 1_000;
/// Repositories that one token can name.
pub const TOKEN_REPOSITORIES_MAX: usize = 500;
/// Lifetime of an installation's token.
pub const INSTALLATION_TOKEN_MS: i64 = 60 * 60_000;
/// Lifetime of a person's token for an app.
pub const PERSON_TOKEN_MS: i64 = 8 * 60 * 60_000;
/// Lifetime of a refresh token.
pub const REFRESH_TOKEN_MS: i64 = 184 * 24 * 60 * 60_000;
/// Lifetime of a sign-in's code.
pub const CODE_MS: i64 = 10 * 60_000;
/// Lifetime of a manifest's code.
pub const MANIFEST_CODE_MS: i64 = 60 * 60_000;
/// Longest validity of an app's own token, and how far its clock may be ahead.
pub const APP_TOKEN_MS_MAX: i64 = 10 * 60_000;
/// Slack for clocks that differ.
pub const CLOCK_SKEW_MS: i64 = 60_000;
/// Requests of one caller in a window.
pub const REQUESTS_MAX: u64 = 5_000;
/// Requests without credentials in a window.
pub const ANONYMOUS_REQUESTS_MAX: u64 = 60;
/// Length of that window.
pub const WINDOW_MS: i64 = 60 * 60_000;
/// Callers whose requests are counted; the next one begins all windows anew.
pub const CALLERS_MAX: usize = 10_000;
/// Items of a page by default.
pub const PAGE_DEFAULT: usize = 30;
/// Most items of a page.
pub const PAGE_MAX: usize = 100;
/// Commits of a comparison or a pull request.
pub const COMMITS_MAX: usize = 250;
/// Files of a comparison or a pull request.
pub const FILES_MAX: usize = 3_000;
/// Characters of a file's patch.
pub const PATCH_CHARS_MAX: usize = 400_000;
/// Entries of a tree that is listed recursively.
pub const TREE_ENTRIES_MAX: usize = 100_000;
/// Characters of a pull request's title.
pub const TITLE_CHARS_MAX: usize = 256;
/// Characters of a pull request's body.
pub const TEXT_CHARS_MAX: usize = 65_536;
/// Characters of a name: account, repository, app.
pub const NAME_CHARS_MAX: usize = 100;
/// Deliveries of webhooks that are remembered.
pub const DELIVERIES_MAX: usize = 500;
/// Webhooks under way at once; further ones wait.
pub const DELIVERIES_AT_ONCE: usize = 16;
/// Time for the answer to a webhook.
pub const DELIVERY_MS_MAX: u64 = 10_000;
/// Bytes of a webhook's answer that are remembered.
pub const DELIVERY_ANSWER_BYTES_MAX: usize = 4_096;
/// Wait for requests and webhooks under way when the forge stops.
pub const STOP_MS_MAX: u64 = 3_000;
/// Check runs at once, and statuses.
pub const CHECKS_MAX: usize = 10_000;
/// Annotations of one report of a check run.
pub const ANNOTATIONS_MAX: usize = 50;
/// Bytes of a job's log.
pub const LOG_BYTES_MAX: usize = 1024 * 1024;
/// Lifetime of the address of a log.
pub const LOG_LINK_MS: i64 = 60_000;
/// Age of a workflow run that can still be run again.
pub const RERUN_MS_MAX: i64 = 30 * 24 * 60 * 60_000;
/// Faults of webhooks armed at once.
pub const HOOK_FAULTS_MAX: usize = 100;
/// Reviews, comments and reactions at once.
pub const TALK_MAX: usize = 20_000;
