//! Whether a push keeps a repository's rules, read from its objects before they belong to the repository.

use std::collections::BTreeMap;

use super::commits::CommitShown;
use super::refusal::{Refusal, Violation};
use super::{Git, ZEROS};
use crate::api_error::ApiError;
use crate::limits::{FILE_BYTES_ADVISED, FILE_BYTES_MAX, PUSHED_OBJECTS_MAX, SCANNED_BYTES_MAX};
use crate::record::{BranchRule, RepositoryRecord};

/// A branch that a push moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Move {
    pub(crate) old: String,
    pub(crate) new: String,
    /// The full name.
    pub(crate) name: String,
}

/// What is known of a push beside its objects.
pub(crate) struct Push<'a> {
    pub(crate) repository: &'a RepositoryRecord,
    pub(crate) moves: &'a [Move],
    pub(crate) lacks_workflows: bool,
    /// Rules of the older kind may not bind an administrator.
    pub(crate) is_administrator: bool,
    /// Page with the repository's rules.
    pub(crate) rules_page: String,
    pub(crate) trace: String,
}

/// A new file of a push.
struct PushedBlob {
    sha: String,
    path: String,
    bytes: u64,
}

/// Pointers of large file storage are shorter than this.
const POINTER_BYTES_MAX: u64 = 1_024;
const POINTER: &[u8] = b"version https://git-lfs.github.com/spec/v1\n";
const WORKFLOWS: &str = ".github/workflows/";
/// GitHub's own kind of secret, which it looks for in every push that is protected.
const SECRET: &str = "ghp_";
const SECRET_CHARS: usize = 36;

impl Push<'_> {
    /// The refusal, and a warning. A pack that lacks something is left to git's own refusal.
    pub(crate) async fn check(&self, git: &Git) -> Result<(Refusal, String), ApiError> {
        let mut refusal = Refusal::default();
        let Some(blobs) = self.new_files(git).await? else {
            return Ok((refusal, String::new()));
        };
        let large: Vec<_> = blobs.iter().filter(|one| one.bytes > FILE_BYTES_MAX).collect();
        if !large.is_empty() {
            let files: Vec<_> = large.iter().map(|one| (one.path.clone(), one.bytes)).collect();
            refusal.large_files(&files, FILE_BYTES_MAX, &self.trace);
            return Ok((refusal, String::new()));
        }
        let searched = |one: &&PushedBlob| {
            let is_searched = self.repository.protects_pushes && one.bytes <= SCANNED_BYTES_MAX;
            is_searched || one.bytes <= POINTER_BYTES_MAX
        };
        let shas: Vec<String> = blobs.iter().filter(searched).map(|one| one.sha.clone()).collect();
        let contents: BTreeMap<String, Vec<u8>> =
            git.objects(&shas).await?.into_iter().map(|one| (one.sha, one.content)).collect();
        let mut pointers: Vec<String> = contents.values().filter_map(|one| pointer(one)).collect();
        if !pointers.is_empty() {
            pointers.sort();
            pointers.dedup();
            refusal.unknown_objects(&pointers);
            return Ok((refusal, String::new()));
        }
        for one in self.moves {
            self.check_branch(git, one, &blobs, &contents, &mut refusal).await?;
        }
        Ok((refusal, warning(&blobs)))
    }

    /// `None` if the objects are not all there.
    async fn new_files(&self, git: &Git) -> Result<Option<Vec<PushedBlob>>, ApiError> {
        let new = self.moves.iter().map(|one| one.new.as_str()).filter(|new| *new != ZEROS);
        let new: Vec<&str> = new.collect();
        if new.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let arguments = ["rev-list", "--objects"].into_iter().chain(new);
        let arguments: Vec<&str> = arguments.chain(["--not", "--all", "--"]).collect();
        let said = git.run(&arguments).await?;
        if !said.is_ok() {
            return Ok(None);
        }
        if said.out.iter().filter(|byte| **byte == b'\n').count() > PUSHED_OBJECTS_MAX {
            return Err(ApiError::full("objects of one push"));
        }
        let format = "--batch-check=%(objecttype) %(objectsize) %(objectname) %(rest)";
        let said = git.run_with(&["cat-file", format], said.out).await?;
        let text = String::from_utf8_lossy(&said.out).into_owned();
        let read = |line: &str| {
            let parts: Vec<&str> = line.splitn(4, ' ').collect();
            let ["blob", bytes, sha, path] = parts.as_slice() else { return None };
            let bytes = bytes.parse().ok()?;
            Some(PushedBlob { sha: (*sha).to_owned(), path: (*path).to_owned(), bytes })
        };
        Ok(Some(text.lines().filter_map(read).collect()))
    }

    async fn check_branch(
        &self,
        git: &Git,
        one: &Move,
        blobs: &[PushedBlob],
        contents: &BTreeMap<String, Vec<u8>>,
        refusal: &mut Refusal,
    ) -> Result<(), ApiError> {
        let Some(branch) = one.name.strip_prefix("refs/heads/") else { return Ok(()) };
        if self.lacks_workflows
            && let Some(path) = workflow(git, one).await?
        {
            refusal.workflow(&one.name, &path);
            return Ok(());
        }
        if self.repository.protects_pushes {
            let places = self.secrets(git, one, blobs, contents).await?;
            if !places.is_empty() {
                refusal.secret(&one.name, "GitHub Personal Access Token", &places);
                return Ok(());
            }
        }
        let protection = self.repository.protections.get(branch);
        let protection = protection.filter(|it| it.binds_administrators || !self.is_administrator);
        if let Some(protection) = protection {
            let found = self.violations(git, one, &protection.rules, blobs).await?;
            if !found.is_empty() {
                refusal.protected(&one.name, &found);
                return Ok(());
            }
        }
        let rules = rules_of(self.repository, branch);
        let found = self.violations(git, one, &rules, blobs).await?;
        if !found.is_empty() {
            let encoded: String = form_urlencoded::byte_serialize(one.name.as_bytes()).collect();
            let page = format!("{}?ref={encoded}", self.rules_page);
            refusal.ruleset(&one.name, &page, &found);
        }
        Ok(())
    }

    async fn violations(
        &self,
        git: &Git,
        one: &Move,
        rules: &[BranchRule],
        blobs: &[PushedBlob],
    ) -> Result<Vec<Violation>, ApiError> {
        let mut found = Vec::new();
        let (is_new, is_end) = (one.old == ZEROS, one.new == ZEROS);
        for rule in rules {
            let violation = match rule {
                BranchRule::PullRequest { .. } if !is_end => {
                    Some(Violation::new("Changes must be made through a pull request."))
                }
                BranchRule::RequiredSignatures if !is_end => {
                    let commits = new_commits(git, &one.new).await?;
                    let unsigned = commits.into_iter().filter(|one| !one.is_signed);
                    let unsigned: Vec<String> = unsigned.map(|one| one.sha).collect();
                    let sentence = "Commits must have verified signatures.".to_owned();
                    (!unsigned.is_empty()).then_some(Violation { sentence, found: unsigned })
                }
                BranchRule::RequiredStatusChecks { required_status_checks: checks, .. }
                    if !is_end =>
                {
                    let count = checks.len();
                    Some(Violation::new(match checks.as_slice() {
                        [one] => format!("Required status check \"{}\" is expected.", one.context),
                        _ => format!("{count} of {count} required status checks are expected."),
                    }))
                }
                BranchRule::NonFastForward if !is_new && !is_end => {
                    let is_forward = git.is_ancestor(&one.old, &one.new).await?;
                    (!is_forward).then(|| Violation::new("Cannot force-push to this branch"))
                }
                BranchRule::Deletion if is_end => Some(Violation::new("Cannot delete this branch")),
                BranchRule::Creation if is_new => {
                    Some(Violation::new("Cannot create ref due to creations being restricted."))
                }
                BranchRule::FilePathRestriction { restricted_file_paths: patterns } if !is_end => {
                    let is_restricted =
                        |path: &&str| patterns.iter().any(|pattern| fits(pattern, path));
                    let paths = blobs.iter().map(|one| one.path.as_str());
                    let paths: Vec<String> =
                        paths.filter(is_restricted).map(str::to_owned).collect();
                    let sentence = "File paths are restricted.".to_owned();
                    (!paths.is_empty()).then_some(Violation { sentence, found: paths })
                }
                BranchRule::MaxFileSize { max_file_size: max } if !is_end => {
                    let bytes = max.saturating_mul(1024 * 1024);
                    let large = blobs.iter().filter(|one| one.bytes > bytes);
                    let large: Vec<String> = large.map(|one| one.path.clone()).collect();
                    let sentence = format!("File size exceeds the limit of {max} MB.");
                    (!large.is_empty()).then_some(Violation { sentence, found: large })
                }
                _ => None,
            };
            found.extend(violation);
        }
        Ok(found)
    }

    /// Commit, path and line of every secret.
    async fn secrets(
        &self,
        git: &Git,
        one: &Move,
        blobs: &[PushedBlob],
        contents: &BTreeMap<String, Vec<u8>>,
    ) -> Result<Vec<(String, String, usize)>, ApiError> {
        let mut places = Vec::new();
        for blob in blobs {
            let text = contents.get(&blob.sha).map(|bytes| String::from_utf8_lossy(bytes));
            let Some(line) = text.as_deref().and_then(secret_line) else { continue };
            let object = format!("--find-object={}", blob.sha);
            let range = ["log", "-1", "--format=%H", &object, &one.new, "--not", "--all", "--"];
            places.push((git.text(&range).await?, blob.path.clone(), line));
        }
        Ok(places)
    }
}

/// The rules of rulesets that hold for a branch.
pub(crate) fn rules_of(repository: &RepositoryRecord, branch: &str) -> Vec<BranchRule> {
    let full = format!("refs/heads/{branch}");
    let is_meant = |pattern: &String| match pattern.as_str() {
        "~ALL" => true,
        "~DEFAULT_BRANCH" => branch == repository.default_branch,
        pattern => fits(pattern, &full),
    };
    let holding = repository
        .rulesets
        .iter()
        .filter(|set| set.include.iter().any(is_meant) && !set.exclude.iter().any(is_meant));
    holding.flat_map(|set| set.rules.iter().cloned()).collect()
}

/// Whether a name fits a pattern: `*` stands for anything but a slash, `**` for anything.
pub(crate) fn fits(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    match pattern {
        [] => name.is_empty(),
        [b'*', b'*', rest @ ..] => {
            let rest = rest.strip_prefix(b"/").unwrap_or(rest);
            (0..=name.len()).any(|at| fits_bytes(rest, &name[at..]))
        }
        _ => fits_bytes(pattern, name),
    }
}

fn fits_bytes(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern, name) {
        ([], []) => true,
        ([b'*', b'*', ..], _) => {
            fits(&String::from_utf8_lossy(pattern), &String::from_utf8_lossy(name))
        }
        ([b'*', rest @ ..], _) => {
            let end = name.iter().position(|byte| *byte == b'/').unwrap_or(name.len());
            (0..=end).any(|at| fits_bytes(rest, &name[at..]))
        }
        ([one, rest @ ..], [other, others @ ..]) => one == other && fits_bytes(rest, others),
        _ => false,
    }
}

async fn new_commits(git: &Git, new: &str) -> Result<Vec<CommitShown>, ApiError> {
    git.log(&[new, "--not", "--all"], PUSHED_OBJECTS_MAX).await
}

/// The first workflow that a push's commits touch.
async fn workflow(git: &Git, one: &Move) -> Result<Option<String>, ApiError> {
    if one.new == ZEROS {
        return Ok(None);
    }
    let arguments =
        ["log", "--format=", "--name-only", "--no-renames", &one.new, "--not", "--all", "--"];
    let arguments: Vec<&str> = arguments.into_iter().chain([WORKFLOWS]).collect();
    let text = git.text(&arguments).await?;
    Ok(text.lines().find(|line| !line.is_empty()).map(str::to_owned))
}

fn pointer(content: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(content.strip_prefix(POINTER)?).ok()?;
    let oid = text.lines().find_map(|line| line.strip_prefix("oid sha256:"))?;
    Some(oid.trim().to_owned())
}

/// The line, from 1, of a file's first secret.
fn secret_line(text: &str) -> Option<usize> {
    let has_secret = |line: &str| {
        line.match_indices(SECRET).any(|(at, _)| {
            let rest = line[at + SECRET.len()..].chars();
            rest.take_while(char::is_ascii_alphanumeric).count() >= SECRET_CHARS
        })
    };
    text.lines().position(has_secret).map(|index| index + 1)
}

fn warning(blobs: &[PushedBlob]) -> String {
    let large: Vec<&PushedBlob> =
        blobs.iter().filter(|one| one.bytes > FILE_BYTES_ADVISED).collect();
    if large.is_empty() {
        return String::new();
    }
    let mut text = "warning: See https://gh.io/lfs for more information.\n".to_owned();
    for one in large {
        text.push_str(&format!(
            "warning: File {} is {}; this is larger than GitHub's recommended maximum file size of {}\n",
            one.path,
            super::refusal::megabytes(one.bytes),
            super::refusal::megabytes(FILE_BYTES_ADVISED)
        ));
    }
    text.push_str("warning: GH001: Large files detected. You may want to try Git Large File Storage - https://git-lfs.github.com.\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_stop_at_slashes() {
        assert!(fits("refs/heads/main", "refs/heads/main"));
        assert!(fits("refs/heads/release/*", "refs/heads/release/1"));
        assert!(!fits("refs/heads/release/*", "refs/heads/release/1/2"));
        assert!(fits("refs/heads/**/*", "refs/heads/a/b/c"));
        assert!(fits("**/*.pem", "keys/deep/a.pem") && fits("**/*.pem", "a.pem"));
        assert!(!fits("*.pem", "keys/a.pem"));
    }

    #[test]
    fn secrets_and_pointers_are_recognised() {
        let token = format!("{SECRET}{}", "a1B2".repeat(9));
        assert_eq!(secret_line(&format!("one\nkey = \"{token}\"\n")), Some(2));
        assert_eq!(secret_line(&token[..30]), None);
        let text = [POINTER, b"oid sha256:abc\nsize 1\n"].concat();
        assert_eq!(pointer(&text).as_deref(), Some("abc"));
        assert_eq!(pointer(b"oid sha256:abc\n"), None);
    }
}
