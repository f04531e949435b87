//! A thread's work on its way to a pull request: what a person is shown, what is pushed, and how it ended.

use serde::{Deserialize, Serialize};

use crate::base::ids::{Ms, TurnId};
use crate::base::person::Person;
use crate::records::watch::{HeardRemarks, Watch};

/// Begins the name of every branch that Bobbin makes.
pub const BRANCHES: &str = "bobbin/";
/// Longest subject of a pull request, in characters.
pub const SUBJECT_CHARS_MAX: usize = 120;
/// Longest text of a pull request, in characters.
pub const BODY_CHARS_MAX: usize = 2_000;
/// Changed files of one pull request.
pub const FILES_MAX: usize = 500;

/// A thread's branch at the forge, and its pull request.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Publication {
    /// Short name of the branch. Bobbin pushes no other.
    pub branch: String,
    /// The forge's id of its repository; 0 if it is unknown.
    #[serde(default, skip_serializing_if = "is_unknown")]
    pub repository: u64,
    /// The commit to which Bobbin moved it last; `None` before the first push.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pushed: Option<String>,
    /// Commits to which a push of Bobbin's may have moved it: nobody has heard the end of those pushes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unheard: Vec<String>,
    /// The newest commit that somebody else put there: only work that follows it is pushed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theirs: Option<String>,
    /// The proposal that a person was shown last; nothing else can be pushed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<Proposal>,
    /// A press whose push or pull request is not known to have ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pressed: Option<Pressed>,
    /// Its pull request, once open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<PullRequestRef>,
    /// The watch of that, until it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch: Option<Watch>,
    /// Comments that its earlier watches have heard: nothing is begun for them again.
    #[serde(default, skip_serializing_if = "HeardRemarks::is_empty")]
    pub heard: HeardRemarks,
    /// It is merged or closed: the thread's next turn starts from the newest commit of the branch that it went into.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_ended: bool,
    /// The last merge of its base into it that a person had Bobbin ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated: Option<BranchUpdate>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_unknown(repository: &u64) -> bool {
    *repository == 0
}

/// The base is merged into a branch by the forge, which takes its time.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BranchUpdate {
    /// When it was asked for.
    pub at_ms: Ms,
    /// The branch's commit before.
    pub from: String,
    /// Its commit since, once it was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

/// The branches and pull requests of a thread's repositories.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Published {
    /// Of its own repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publication: Option<Publication>,
    /// Of those beside it.
    #[serde(default, rename = "published_beside", skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<PublishedBeside>,
    /// The last message about one of them that has waited, or was delivered again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited: Option<WaitedMessage>,
}

/// A message that has waited, or was delivered again.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct WaitedMessage {
    /// The message.
    pub id: TurnId,
    /// Its deliveries that have not failed: they waited, or could not even read and write the record.
    pub deliveries: u32,
    /// The last of its deliveries that is on record.
    #[serde(default)]
    pub last: u32,
    /// Since when a service that it needs does not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_since_ms: Option<Ms>,
    /// The thread was told that it waits for turns of other threads.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_told: bool,
}

/// Branch and pull request of a repository beside the thread's.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PublishedBeside {
    /// The forge's id of the repository.
    pub repository: u64,
    /// Its branch and pull request.
    pub publication: Publication,
}

impl Published {
    /// That of a repository beside the thread's; `None`: of the thread's own.
    #[must_use]
    pub fn of(&self, beside: Option<u64>) -> Option<&Publication> {
        let Some(id) = beside else {
            return self.publication.as_ref();
        };
        self.beside.iter().find(|one| one.repository == id).map(|one| &one.publication)
    }

    /// The same, to be changed.
    pub fn of_mut(&mut self, beside: Option<u64>) -> Option<&mut Publication> {
        let Some(id) = beside else {
            return self.publication.as_mut();
        };
        self.beside.iter_mut().find(|one| one.repository == id).map(|one| &mut one.publication)
    }

    /// The same, which begins with this.
    pub fn of_or(
        &mut self,
        beside: Option<u64>,
        new: impl FnOnce() -> Publication,
    ) -> &mut Publication {
        let Some(repository) = beside else {
            return self.publication.get_or_insert_with(new);
        };
        let known = self.beside.iter().position(|one| one.repository == repository);
        let place = known.unwrap_or_else(|| {
            self.beside.push(PublishedBeside { repository, publication: new() });
            self.beside.len() - 1
        });
        &mut self.beside[place].publication
    }

    /// The thread's own repository is this one from now on: what was published of the one before goes on beside it, and
    /// what was published of this one goes on as the thread's own.
    pub fn turn_own_to(&mut self, repository: u64) {
        if let Some(own) = &mut self.publication {
            // An older worker does not know the field, and may have left that of another repository.
            let watched = own.watch.as_ref().map(|watch| watch.repository.id);
            let known = Some(own.repository).filter(|known| !is_unknown(known));
            own.repository = watched.or(known).unwrap_or(repository);
            if own.repository == repository {
                return;
            }
        }
        if let Some(before) = self.publication.take().filter(Publication::is_at_forge) {
            let id = before.repository;
            let has_watch = |one: &PublishedBeside| one.publication.watch.is_some();
            // Of two from before they were one, the watched one goes on.
            let is_other_kept = before.watch.is_none()
                && self.beside.iter().any(|one| one.repository == id && has_watch(one));
            if !is_other_kept {
                self.beside.retain(|one| one.repository != id);
                // Its checkout is gone: nothing of what was shown can be pushed any more.
                let publication = Publication { shown: None, ..before };
                self.beside.push(PublishedBeside { repository: id, publication });
            }
        }
        let known = self.beside.iter().position(|one| one.repository == repository);
        let own = known.map(|place| self.beside.remove(place).publication);
        self.publication = own.map(|own| Publication { repository, ..own });
    }

    /// What comes next begins a new branch.
    pub fn forget(&mut self, beside: Option<u64>) {
        match beside {
            None => self.publication = None,
            Some(id) => self.beside.retain(|one| one.repository != id),
        }
    }

    /// All of them in order, with their repositories.
    pub fn all(&self) -> impl Iterator<Item = (Option<u64>, &Publication)> {
        let own = self.publication.iter().map(|publication| (None, publication));
        let beside = self.beside.iter().map(|one| (Some(one.repository), &one.publication));
        own.chain(beside)
    }

    /// Their watches, to be changed.
    pub fn watches_mut(&mut self) -> impl Iterator<Item = &mut Watch> {
        let beside = self.beside.iter_mut().map(|one| &mut one.publication);
        self.publication.iter_mut().chain(beside).filter_map(|one| one.watch.as_mut())
    }

    /// How often this message was tried, with this delivery of it.
    pub fn tries(&mut self, id: &TurnId, receive: u32) -> u32 {
        if receive <= 1 {
            return receive;
        }
        let waited = self.delivered(id);
        let known = waited.last.max(waited.deliveries);
        waited.deliveries += receive.saturating_sub(known + 1);
        waited.last = receive;
        receive.saturating_sub(waited.deliveries)
    }

    /// This delivery of the message waits: none of its deliveries so far counts as a try.
    pub fn waits(&mut self, id: &TurnId, receive: u32) -> &mut WaitedMessage {
        let waited = self.delivered(id);
        (waited.deliveries, waited.last) = (receive, receive);
        waited
    }

    fn delivered(&mut self, id: &TurnId) -> &mut WaitedMessage {
        self.waited.take_if(|waited| waited.id != *id);
        self.waited.get_or_insert_with(|| WaitedMessage {
            id: id.clone(),
            deliveries: 0,
            last: 1,
            out_since_ms: None,
            is_told: false,
        })
    }
}

/// What a person does with an open pull request, in their own name at the forge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PullRequestAct {
    /// A draft becomes ready for review.
    MarkReady,
    /// It is merged, or put into the merge queue.
    Merge,
    /// Its base is merged into its branch.
    UpdateBranch,
}

impl PullRequestAct {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::MarkReady, Self::Merge, Self::UpdateBranch];

    /// Its word in the names of buttons.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::MarkReady => "ready",
            Self::Merge => "merge",
            Self::UpdateBranch => "update",
        }
    }

    /// The one with this word.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|act| act.word() == word)
    }

    /// Label of its button.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::MarkReady => "Ready for review",
            Self::Merge => "Merge",
            Self::UpdateBranch => "Update branch",
        }
    }
}

/// How a person's act ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ActEnd {
    /// It is done.
    Done,
    /// It waits in the merge queue.
    Queued,
    /// The head is another than the one that the person saw.
    HeadMoved,
    /// Base and branch have changed the same lines.
    Conflicts,
    /// The person has no account at the forge here that works.
    NotLinked {
        /// The reason, for them.
        why: String,
    },
    /// The forge refuses it.
    Refused {
        /// The reason, in its own words.
        why: String,
    },
}

/// What would be published.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Proposal {
    /// The commit that would be pushed, 40 hex digits.
    pub commit: String,
    /// Subject of the pull request.
    pub subject: String,
    /// Its text, in the forge's Markdown.
    pub body: String,
}

/// Longest texts of a proposal that every chat shows whole, in units of [`Proposal::is_surely_shown`].
const SURELY_SHOWN_UNITS_MAX: usize = 2_000;
/// The most units of a character that is shown escaped.
const ODD_UNITS: usize = 10;

impl Proposal {
    /// Whether every chat shows subject and text whole, however it writes them.
    #[must_use]
    pub fn is_surely_shown(&self) -> bool {
        let units = |c: char| match c {
            '\n' | ' ' => 1,
            c if c.is_alphanumeric() && c.is_ascii() => 1,
            '`' => 3,
            c if c.is_alphanumeric() || (c.is_ascii_punctuation() && c != '\\') => 2,
            _ => ODD_UNITS,
        };
        let texts = self.subject.chars().chain(self.body.chars());
        texts.map(units).sum::<usize>() <= SURELY_SHOWN_UNITS_MAX
    }
}

/// A person's press on a proposal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Pressed {
    /// The message of the press.
    pub id: TurnId,
    /// Who pressed.
    pub by: Person,
    /// What they were shown.
    pub proposal: Proposal,
    /// The branch is there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_pushed: bool,
}

/// A pull request, as far as a thread keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PullRequestRef {
    /// Its number in the repository.
    pub number: u64,
    /// Its page.
    pub page: String,
}

/// State of a pull request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PullRequestState {
    /// Open, perhaps as a draft.
    Open,
    /// Closed and not merged.
    Closed,
    /// Merged.
    Merged,
}

/// A pull request as one look saw it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PullRequestSeen {
    /// Which one.
    pub at: PullRequestRef,
    /// Its state.
    pub state: PullRequestState,
    /// It is a draft.
    pub is_draft: bool,
}

/// The work in a sandbox, read by the worker: nothing that the sandbox says about it is believed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Outgoing {
    /// It can be pushed.
    Ready {
        /// The newest commit, which holds everything.
        commit: String,
        /// Subject of the agent's first commit; empty if only uncommitted work is there.
        subject: String,
        /// The changed files, by path.
        files: Vec<OutgoingFile>,
        /// Those of them that have changed since what was pushed; empty: nothing was, or they are too many.
        since: Vec<OutgoingFile>,
        /// Number of the repository's workflows that a push may start.
        workflows: u32,
        /// The branch into which it is to go does not have all commits that were brought.
        has_others: bool,
    },
    /// It has the files that the forge has.
    Unchanged,
    /// It cannot be pushed.
    Refused {
        /// The reason and what to do, for people.
        why: String,
    },
}

/// A file that a push would change.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OutgoingFile {
    /// Its path, without control characters.
    pub path: String,
    /// How it changes.
    pub how: OutgoingChange,
}

/// How a push would change a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutgoingChange {
    /// It is new.
    Added,
    /// Its content or mode is another.
    Modified,
    /// It goes.
    Deleted,
}

impl OutgoingChange {
    /// The sign in lists, as git has it.
    #[must_use]
    pub const fn sign(self) -> char {
        match self {
            Self::Added => 'A',
            Self::Modified => 'M',
            Self::Deleted => 'D',
        }
    }
}

/// End of a push.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PushEnd {
    /// The branch is at the commit.
    Done {
        /// What the push has changed on the branch; empty if an earlier one had moved it.
        changed: Vec<OutgoingFile>,
    },
    /// The sandbox has other files than those that were shown: nothing was pushed.
    Changed,
    /// Somebody else has moved the branch to this commit, which is beside the checkout now: nothing was pushed.
    Theirs {
        /// The commit.
        at: String,
    },
    /// Somebody else has moved the branch: nothing was pushed.
    Moved {
        /// Where it is; `None`: it does not exist.
        at: Option<String>,
    },
    /// The forge refused, or the work cannot be pushed any more.
    Refused {
        /// The reason, for people.
        why: String,
    },
}

/// Whether a person's own account may push to a repository.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Presser {
    /// It may.
    MayPush,
    /// It may only read it.
    MayRead {
        /// The account's name.
        login: String,
    },
    /// It may not.
    MayNotPush {
        /// The account's name.
        login: String,
    },
    /// The person has linked none.
    NotLinked,
}

/// End of the call that opens a pull request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Opened {
    /// It is there: new, or found by its branch.
    There(PullRequestSeen),
    /// The forge refused.
    Refused {
        /// The reason, for people.
        why: String,
    },
}

impl Publication {
    /// Whether its pull request has ended, and the thread was told.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.has_ended && self.watch.is_none()
    }

    /// Whether something of it is, or may be, at the forge.
    const fn is_at_forge(&self) -> bool {
        self.pushed.is_some()
            || !self.unheard.is_empty()
            || self.pull_request.is_some()
            || self.watch.is_some()
    }

    /// A publication of this repository on this branch, with nothing pushed yet.
    #[must_use]
    pub const fn new(repository: u64, branch: String) -> Self {
        Self {
            branch,
            repository,
            pushed: None,
            unheard: Vec::new(),
            theirs: None,
            shown: None,
            pressed: None,
            pull_request: None,
            watch: None,
            heard: HeardRemarks::NONE,
            has_ended: false,
            updated: None,
        }
    }
}

/// Whether a change of this file decides what runs, what is fetched, or who decides: such a change is shown to a person
/// before every push.
#[must_use]
pub fn is_protected(path: &str) -> bool {
    const FILES: [&str; 81] = [
        "action.yaml",
        "action.yml",
        "agents.md",
        "appveyor.yml",
        "azure-pipelines.yaml",
        "azure-pipelines.yml",
        "bitbucket-pipelines.yml",
        "bitrise.yml",
        "build.bazel",
        "build.gradle",
        "build.gradle.kts",
        "build.rs",
        "build.sbt",
        "buildspec.yaml",
        "buildspec.yml",
        "bun.lock",
        "bun.lockb",
        "cargo.lock",
        "cargo.toml",
        "claude.md",
        "cloudbuild.yaml",
        "cloudbuild.yml",
        "cmakelists.txt",
        "codeowners",
        "composer.json",
        "composer.lock",
        "conftest.py",
        "constraints.txt",
        "deno.json",
        "deno.lock",
        "dockerfile",
        "flake.lock",
        "flake.nix",
        "gemfile",
        "gemfile.lock",
        "gemini.md",
        "gnumakefile",
        "go.mod",
        "go.sum",
        "go.work",
        "gradle.lockfile",
        "gradlew",
        "gradlew.bat",
        "jenkinsfile",
        "justfile",
        "libs.versions.toml",
        "makefile",
        "meson.build",
        "mise.toml",
        "mix.exs",
        "mix.lock",
        "module.bazel",
        "mvnw",
        "noxfile.py",
        "npm-shrinkwrap.json",
        "opencode.json",
        "opencode.jsonc",
        "package-lock.json",
        "package.json",
        "package.swift",
        "packages.lock.json",
        "pipfile",
        "pipfile.lock",
        "pnpm-lock.yaml",
        "pnpm-workspace.yaml",
        "poetry.lock",
        "pom.xml",
        "pubspec.lock",
        "pubspec.yaml",
        "pyproject.toml",
        "rakefile",
        "rust-toolchain",
        "settings.gradle",
        "settings.gradle.kts",
        "setup.cfg",
        "setup.py",
        "taskfile.yaml",
        "taskfile.yml",
        "tox.ini",
        "uv.lock",
        "yarn.lock",
    ];
    /// Ends of sources, which may be about such files.
    const SOURCES: [&str; 7] = [".go", ".js", ".md", ".py", ".rb", ".rs", ".ts"];
    /// Beginnings and ends of names.
    const NAMES: [(&str, &str); 8] = [
        ("", ".csproj"),
        ("", ".dockerfile"),
        ("", ".mk"),
        ("compose", ".yaml"),
        ("compose", ".yml"),
        ("docker-compose", ".yaml"),
        ("docker-compose", ".yml"),
        ("requirements", ".txt"),
    ];
    let path = path.to_ascii_lowercase();
    let name = path.rsplit('/').next().unwrap_or_default();
    path.split('/').any(|part| part.starts_with('.'))
        || FILES.contains(&name)
        || NAMES.iter().any(|(start, end)| name.starts_with(start) && name.ends_with(end))
        || format!("/{path}").contains("/gradle/wrapper/")
        || (path.rsplit('/').nth(1) == Some("requirements") && name.ends_with(".txt"))
        || (name.starts_with("dockerfile") && !SOURCES.iter().any(|end| name.ends_with(end)))
}

/// A subject of a pull request: one line within the bound.
#[must_use]
pub fn subject(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default().trim();
    let plain = line.chars().filter(|c| !c.is_control());
    if line.chars().count() > SUBJECT_CHARS_MAX {
        plain.take(SUBJECT_CHARS_MAX - 1).chain(['…']).collect()
    } else {
        plain.collect()
    }
}

/// Somebody's words, quoted for a pull request: at the forge they mention nobody, name no issue and hide nothing.
#[must_use]
pub fn quoted(text: &str, chars_max: usize) -> String {
    let (cut, more) = cut(text, chars_max);
    let lines: Vec<String> =
        harmless(&cut).lines().map(|line| format!("> {line}").trim_end().to_owned()).collect();
    format!("{}{more}", lines.join("\n"))
}

/// Somebody's words as part of a text for a forge, by the rules of [`quoted`], and not as a quotation.
#[must_use]
pub fn inert(text: &str, chars_max: usize) -> String {
    // A suggestion, which a press on GitHub's page commits, must be exactly what was written; this text no longer is.
    let plain = |line: &str| {
        let fence = line.trim_start_matches([' ', '\t', '>']).trim_start_matches(['`', '~']);
        let is_fence = fence.len() < line.len()
            && fence.trim_start().to_ascii_lowercase().starts_with("suggestion");
        if is_fence { line[..line.len() - fence.len()].to_owned() } else { line.to_owned() }
    };
    let (cut, more) = cut(text, chars_max);
    let lines: Vec<String> = cut.lines().map(plain).collect();
    format!("{}{more}", harmless(&lines.join("\n")))
}

fn cut(text: &str, chars_max: usize) -> (String, &'static str) {
    let text = text.trim();
    let more = if text.chars().count() > chars_max { " …" } else { "" };
    (text.chars().take(chars_max).collect(), more)
}

fn harmless(text: &str) -> String {
    let text: Vec<char> = text.chars().filter(|c| *c == '\n' || !c.is_control()).collect();
    let mut out = String::with_capacity(text.len());
    for (at, c) in text.iter().enumerate() {
        match c {
            '@' => out.push_str("@\u{200b}"),
            '#' => out.push_str("#\u{200b}"),
            '<' => out.push_str("&lt;"),
            '&' if begins_entity(&text[at + 1..]) => out.push_str("&amp;"),
            // Everybody who reads it would fetch the image.
            '[' if text[..at].last() == Some(&'!') => out.push_str("\u{200b}["),
            '-' | '/' if begins_reference(&text[..=at], text.get(at + 1)) => {
                out.push(*c);
                out.push('\u{200b}');
            }
            c => out.push(*c),
        }
    }
    out
}

/// Whether this, after an `&`, stands for a character: `commat;` for one that mentions people.
fn begins_entity(after: &[char]) -> bool {
    let name = after.iter().take_while(|c| c.is_ascii_alphanumeric()).count();
    name > 0 && after.get(name) == Some(&';')
}

/// Whether what comes next would name an issue: as in `GH-12`, or in its address.
fn begins_reference(before: &[char], next: Option<&char>) -> bool {
    // Longer than each of these.
    const END_CHARS: usize = 16;
    // A backslash is not shown.
    let end = before.iter().rev().filter(|c| **c != '\\').take(END_CHARS);
    let end: Vec<char> = end.map(char::to_ascii_lowercase).collect();
    let end: String = end.into_iter().rev().collect();
    let word = end.strip_suffix("gh-");
    let is_short = word.is_some_and(|before| !before.ends_with(char::is_alphanumeric));
    let is_address = ["/issues/", "/pull/", "/discussions/"].iter().any(|one| end.ends_with(one));
    let is_number = next.is_some_and(char::is_ascii_digit);
    end.ends_with("github.com/") || (is_number && (is_short || is_address))
}

/// The branch of a thread's work: `bobbin/` with words of the subject, and a hash of thread and message.
#[must_use]
pub fn branch(subject: &str, hash: &str) -> String {
    const SLUG_CHARS_MAX: usize = 40;
    let words = subject
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase);
    let mut slug = String::new();
    for word in words {
        if slug.len() + word.len() >= SLUG_CHARS_MAX {
            break;
        }
        if !slug.is_empty() {
            slug.push('-');
        }
        slug.push_str(&word);
    }
    let hash: String = hash.chars().take(8).collect();
    if slug.is_empty() { format!("{BRANCHES}{hash}") } else { format!("{BRANCHES}{slug}-{hash}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::carried::ForgeRepository;

    #[test]
    fn deliveries_that_waited_are_no_tries() {
        let (mut published, id) = (Published::default(), TurnId::from("p-1"));
        let mut tries = |receive| published.tries(&id, receive);
        assert_eq!([1, 2, 2, 3].map(&mut tries), [1, 2, 2, 3]);
        // Meanwhile nobody could read or write the record.
        assert_eq!([20, 21].map(&mut tries), [4, 5]);
        published.waits(&id, 22);
        assert_eq!([23, 24].map(|receive| published.tries(&id, receive)), [1, 2]);
        assert_eq!(published.tries(&"p-2".into(), 7), 2);
    }

    #[test]
    fn publication_goes_on_with_its_repository() {
        let pushed = |repository, branch: &str| Publication {
            pushed: Some("a".repeat(40)),
            shown: Some(Proposal {
                commit: "b".repeat(40),
                subject: String::new(),
                body: String::new(),
            }),
            ..Publication::new(repository, branch.to_owned())
        };
        let branch = |published: &Published, beside| {
            published.of(beside).map(|publication| publication.branch.clone())
        };
        let api = Some(pushed(0, "bobbin/api"));
        let mut published = Published { publication: api, ..Published::default() };
        published.turn_own_to(42);
        assert_eq!(published.publication.as_ref().map(|own| own.repository), Some(42));
        published.turn_own_to(43);
        assert_eq!(published.publication, None);
        assert_eq!(published.of(Some(42)).map(|api| api.shown.is_some()), Some(false));
        published.publication = Some(pushed(43, "bobbin/web"));
        published.turn_own_to(42);
        assert_eq!(branch(&published, None).as_deref(), Some("bobbin/api"));
        assert_eq!(branch(&published, Some(43)).as_deref(), Some("bobbin/web"));
        assert_eq!(published.beside.len(), 1);
        // The repository of its watch is the one that is known.
        let watched = |id, branch: &str| {
            let repository = ForgeRepository {
                installation: 1,
                id,
                name: "acme/lib".to_owned(),
                address: String::new(),
                is_private: true,
                branch: "main".to_owned(),
            };
            let watch = Watch::new("p-1".into(), repository, None, 1);
            Publication { watch: Some(watch), ..pushed(99, branch) }
        };
        let own = Some(watched(45, "bobbin/watched"));
        let mut mixed = Published { publication: own, ..Published::default() };
        mixed.turn_own_to(99);
        assert_eq!(branch(&mixed, Some(45)).as_deref(), Some("bobbin/watched"));
        // Of two of one repository, the one that is watched is kept.
        mixed.publication = Some(pushed(45, "bobbin/another"));
        mixed.turn_own_to(99);
        assert_eq!(branch(&mixed, Some(45)).as_deref(), Some("bobbin/watched"));
        mixed.publication = Some(watched(45, "bobbin/another"));
        mixed.turn_own_to(99);
        assert_eq!((mixed.beside.len(), branch(&mixed, None)), (1, None));
        assert_eq!(branch(&mixed, Some(45)).as_deref(), Some("bobbin/another"));
        // What was only shown is nothing to go on with.
        published.publication = Some(Publication::new(42, "bobbin/shown".to_owned()));
        published.turn_own_to(44);
        assert_eq!((published.publication.is_none(), published.beside.len()), (true, 1));
    }

    #[test]
    fn quoted_words_mention_nobody() {
        assert_eq!(
            quoted("Fixes #12 for @anna\n<!-- hidden -->\u{7}", 100),
            "> Fixes #\u{200b}12 for @\u{200b}anna\n> &lt;!-- hidden -->"
        );
        assert_eq!(quoted("12345", 3), "> 123 …");
        assert_eq!(quoted("![a](https://x)", 100), "> !\u{200b}[a](https://x)");
    }

    #[test]
    fn quoted_words_name_no_issue() {
        for (said, shown) in [
            ("&commat;team", "&amp;commat;team"),
            ("&com\u{7}mat;team", "&amp;commat;team"),
            ("&#64;team &num;12", "&#\u{200b}64;team &amp;num;12"),
            ("a && b; &str; &amp;", "a && b; &amp;str; &amp;amp;"),
            ("GH-12, gh-1 (GH\\-3)", "GH-\u{200b}12, gh-\u{200b}1 (GH\\-\u{200b}3)"),
            ("high-5 GH-x", "high-5 GH-x"),
            ("https://GitHub.com/acme/api", "https://GitHub.com/\u{200b}acme/api"),
            ("https://git.acme.dev/a/b/pull/12", "https://git.acme.dev/a/b/pull/\u{200b}12"),
            ("docs/issues/list and src/main.rs", "docs/issues/list and src/main.rs"),
        ] {
            assert_eq!(inert(said, 100), shown, "{said}");
        }
    }

    #[test]
    fn inert_words_suggest_no_commit() {
        let said = "Use `a`:\n```suggestion\nb @c\n```\n> ~~~ Suggestion\n12345";
        assert_eq!(inert(said, 100), "Use `a`:\n```\nb @\u{200b}c\n```\n> ~~~\n12345");
        assert_eq!(inert("Suggestion: do it\n![x](y)", 10), "Suggestion …");
        assert_eq!(inert("!\u{7}[x](y)", 99), "!\u{200b}[x](y)");
    }

    #[test]
    fn files_that_decide_are_protected() {
        for path in [
            "package.json",
            "web/Cargo.lock",
            ".github/dependabot.yml",
            "docs/.claude/a",
            "CODEOWNERS",
            "AGENTS.md",
            "requirements-dev.txt",
            "Jenkinsfile",
            "azure-pipelines.yml",
            "tools/setup/action.yml",
            "gradlew",
            "app/gradle/wrapper/gradle-wrapper.properties",
            "native/build.rs",
            "tests/conftest.py",
            "docker-compose.test.yml",
            "Dockerfile.ci",
            "images/web.Dockerfile",
            "Dockerfile",
            "requirements/base.txt",
            "app/App.csproj",
            "Package.swift",
            "gradle/libs.versions.toml",
            "build/rules.mk",
            "BUILD.bazel",
        ] {
            assert!(is_protected(path), "{path}");
        }
        for path in [
            "src/main.rs",
            "package.json.md",
            "github/a.yml",
            "docs/agents.rs",
            "docs/gradle/wrapper.md",
            "src/build.rs.md",
            "src/dockerfile_parser.py",
            "requirements/base.md",
            "requirements/old/notes.txt",
        ] {
            assert!(!is_protected(path), "{path}");
        }
    }

    #[test]
    fn branch_is_words_and_a_hash() {
        assert_eq!(branch("Add a login page!", "0123456789"), "bobbin/add-a-login-page-01234567");
        assert_eq!(branch("テスト", "0123456789"), "bobbin/01234567");
        let long = branch(&"word ".repeat(40), "0123456789");
        assert!(long.len() < 64 && long.ends_with("-01234567"), "{long}");
    }
}
