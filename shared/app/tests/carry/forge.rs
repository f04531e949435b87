//! The laptop's forge, whose bounds of a pack are a thousandth, and that remembers what was fetched.

use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use async_trait::async_trait;
use bobbin_core::records::carried::ForgeRepository;
use bobbin_core::records::checks::RequiredCheck;
use bobbin_core::records::given_pull::GivenPull;
use bobbin_core::records::pull_request::PolledPullRequest;
use bobbin_forge::git::{Fetch, Fetched, ObjectId, PackSink, Push, Pushed, Refs, TreeEntry};
use bobbin_forge::github::{Addresses, GitHub, GitHubSettings};
use bobbin_forge::{
    Forge, ForgeError, ForgeErrorKind, ForgeFacts, ForgeResult, Installation, NewPullRequest,
    OwnerKind, PullRequest, PullRequestChange, PullRequests as _, Repository, RepositoryAt,
    RepositoryId, RepositoryList, RepositoryName,
};
use bobbin_local_forge::{ForgeSettings, LocalForge};
use reqwest::{Client, Method};
use serde_json::{Value, json};
use tempfile::TempDir;

/// 100 MB of the product are 100 kB here.
const SCALE: u64 = 1_024;

#[derive(Debug)]
pub struct SmallForge {
    inner: GitHub,
    scale: u64,
    fetched: Mutex<Vec<Fetch>>,
}

impl SmallForge {
    /// What was fetched since the last time: depth of the history, and whether something was there already.
    pub fn fetched(&self) -> Vec<(Option<u32>, bool)> {
        let fetched = std::mem::take(&mut *self.fetched.lock().unwrap());
        fetched.iter().map(|what| (what.depth, !what.haves.is_empty())).collect()
    }

    /// A pull request, and its head.
    pub async fn given(&self, at: &ForgeRepository, number: u64) -> Option<(GivenPull, String)> {
        let (owner, name) = at.name.split_once('/').unwrap();
        let at = RepositoryAt {
            installation: at.installation,
            repository: RepositoryId(at.id),
            name: RepositoryName::new(owner, name).unwrap(),
        };
        self.inner.given(&at, number).await.unwrap()
    }
}

#[async_trait]
impl Forge for SmallForge {
    fn facts(&self) -> ForgeFacts<'_> {
        self.inner.facts()
    }

    async fn installation(&self, login: &str, kind: OwnerKind) -> ForgeResult<Installation> {
        self.inner.installation(login, kind).await
    }

    async fn installation_by_id(&self, installation: u64) -> ForgeResult<Installation> {
        self.inner.installation_by_id(installation).await
    }

    async fn repositories(&self, installation: u64) -> ForgeResult<RepositoryList> {
        self.inner.repositories(installation).await
    }

    async fn repository(&self, name: &RepositoryName) -> ForgeResult<Repository> {
        self.inner.repository(name).await
    }

    async fn repository_by_id(&self, of: u64, id: RepositoryId) -> ForgeResult<Repository> {
        self.inner.repository_by_id(of, id).await
    }

    async fn refs(&self, at: &RepositoryAt, prefixes: &[String]) -> ForgeResult<Refs> {
        self.inner.refs(at, prefixes).await
    }

    async fn fetch(
        &self,
        at: &RepositoryAt,
        what: &Fetch,
        sink: &mut dyn PackSink,
    ) -> ForgeResult<Fetched> {
        self.fetched.lock().unwrap().push(what.clone());
        let bytes_max = what.bytes_max / self.scale;
        let fetched = self.inner.fetch(at, &Fetch { bytes_max, ..what.clone() }, sink).await;
        fetched.map_err(|error| match error.kind {
            ForgeErrorKind::TooLarge { .. } => {
                let kind = ForgeErrorKind::TooLarge { bytes_max: what.bytes_max };
                ForgeError { kind, ..error }
            }
            _ => error,
        })
    }

    async fn push(&self, at: &RepositoryAt, push: Push) -> ForgeResult<Pushed> {
        self.inner.push(at, push).await
    }

    async fn tree(&self, at: &RepositoryAt, tree: &ObjectId) -> ForgeResult<Vec<TreeEntry>> {
        self.inner.tree(at, tree).await
    }

    async fn merge_base(
        &self,
        at: &RepositoryAt,
        one: &ObjectId,
        other: &ObjectId,
    ) -> ForgeResult<ObjectId> {
        self.inner.merge_base(at, one, other).await
    }

    async fn pull_request(
        &self,
        at: &RepositoryAt,
        head: &str,
    ) -> ForgeResult<Option<PullRequest>> {
        self.inner.pull_request(at, head).await
    }

    async fn open_pull_request(
        &self,
        at: &RepositoryAt,
        new: &NewPullRequest,
    ) -> ForgeResult<PullRequest> {
        self.inner.open_pull_request(at, new).await
    }

    async fn required_checks(
        &self,
        at: &RepositoryAt,
        base: &str,
    ) -> ForgeResult<Vec<RequiredCheck>> {
        self.inner.required_checks(at, base).await
    }

    async fn writers(&self, at: &RepositoryAt, logins: &[String]) -> ForgeResult<Vec<String>> {
        self.inner.writers(at, logins).await
    }

    async fn poll_pull_request(
        &self,
        at: &RepositoryAt,
        number: u64,
    ) -> ForgeResult<PolledPullRequest> {
        self.inner.poll_pull_request(at, number).await
    }

    async fn update_pull_request(
        &self,
        at: &RepositoryAt,
        change: &PullRequestChange,
    ) -> ForgeResult<PullRequest> {
        self.inner.update_pull_request(at, change).await
    }
}

/// A repository of the laptop's forge, and a person's checkout of it.
pub struct Place {
    pub forge: SmallForge,
    /// As the core knows it.
    pub repository: ForgeRepository,
    /// The checkout.
    pub work: TempDir,
    address: String,
    server: LocalForge,
    state: TempDir,
}

impl Place {
    /// An empty repository, at a forge with small bounds.
    pub async fn small() -> Self {
        Self::with(SCALE).await
    }

    /// An empty repository, at a forge with the product's bounds.
    pub async fn full() -> Self {
        Self::with(1).await
    }

    async fn with(scale: u64) -> Self {
        let state = tempfile::tempdir().unwrap();
        let settings = ForgeSettings::new(state.path().join("state"), "control".to_owned().into());
        let server = LocalForge::start(settings).await.unwrap();
        let id = server.identity();
        let inner = GitHub::new(GitHubSettings {
            addresses: Addresses::of(&server.api()).with_pages(&server.git()),
            issuer: id.client_id.clone(),
            private_key: id.private_key.clone().into(),
            slug: id.app_slug.clone(),
            client_id: id.client_id.clone(),
            client_secret: id.client_secret.clone().into(),
        })
        .unwrap();
        let path = format!("/orgs/{}/repos", id.organization);
        let body = json!({"name": "api", "private": true});
        let made = ask(&server, Method::POST, &path, &body).await;
        let name = made["full_name"].as_str().unwrap().to_owned();
        let (scheme, host) =
            server.git().split_once("://").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
        let work = tempfile::tempdir().unwrap();
        let address = format!("{scheme}://x-access-token:{}@{host}/{name}.git", id.user_token);
        git(work.path(), &["init", "--quiet", "--initial-branch=main"]);
        // Noise gets no smaller.
        git(work.path(), &["config", "core.compression", "0"]);
        let repository = ForgeRepository {
            installation: id.installation,
            id: made["id"].as_u64().unwrap(),
            address: format!("https://github.com/{name}"),
            name,
            is_private: true,
            branch: "main".to_owned(),
        };
        let forge = SmallForge { inner, scale, fetched: Mutex::default() };
        Self { forge, repository, work, address, server, state }
    }

    /// Another repository of the same owner with so many commits; they are the branch with its name in the checkout.
    pub async fn beside(&self, name: &str, commits: usize) -> ForgeRepository {
        let owner = self.server.identity().organization;
        let path = format!("/orgs/{owner}/repos");
        let made =
            ask(&self.server, Method::POST, &path, &json!({"name": name, "private": true})).await;
        let whole = made["full_name"].as_str().unwrap().to_owned();
        self.sh(&format!("git checkout -q --orphan {name}"));
        for n in 0..commits {
            self.sh(&format!(
                "printf {n} >README.md && git add . && git commit -q -m 'Commit {n}'"
            ));
        }
        self.sh(&format!("git push -q '{}' +HEAD:refs/heads/main", self.address_of(name)));
        ForgeRepository {
            id: made["id"].as_u64().unwrap(),
            address: format!("https://github.com/{whole}"),
            name: whole,
            ..self.repository.clone()
        }
    }

    /// Where a person pushes to a repository beside this one.
    pub fn address_of(&self, name: &str) -> String {
        let (before, _) = self.address.rsplit_once('/').unwrap();
        format!("{before}/{name}.git")
    }

    /// Commits so many times, each time with a new `noise.bin` of so many bytes, and pushes that.
    pub fn filled(self, commits: usize, bytes: usize) -> Self {
        self.import(&format!(
            r"for n in $(seq 0 {}); do
                printf 'commit refs/heads/main\ncommitter Ada <ada@example.com> %s +0000\n' $((n + 1))
                printf 'data %s\nCommit %s\n' $((${{#n}} + 7)) $n
                printf 'M 644 inline README.md\ndata %s\n%s\n' $((${{#n}} + 1)) $n
                printf '\nM 644 inline noise.bin\ndata {bytes}\n'
                head -c {bytes} /dev/urandom
                printf '\n'
            done",
            commits - 1
        ));
        self
    }

    /// Commits what a script says to `git fast-import`, and pushes that.
    pub fn import(&self, script: &str) {
        self.sh(&format!("{{ {script}\n}} | git fast-import --quiet && git reset --quiet --hard"));
        self.push("main");
    }

    pub fn commit(&self, subject: &str) {
        git(self.work.path(), &["add", "--all"]);
        git(self.work.path(), &["commit", "--quiet", "--message", subject]);
    }

    /// Pushes the checkout's commit to a branch.
    pub fn push(&self, branch: &str) {
        let to = format!("+HEAD:refs/heads/{branch}");
        git(self.work.path(), &["push", "--quiet", &self.address, &to]);
    }

    /// Pushes these refs.
    pub fn push_refs(&self, refs: &str) {
        self.sh(&format!("git push --quiet '{}' {refs}", self.address));
    }

    /// The same as if the server had always had it: it looks at nothing.
    pub fn push_past_the_server(&self) {
        let there = format!("state/repositories/{}.git", self.repository.id);
        let there = self.state.path().join(there);
        self.sh(&format!("git push --quiet '{}' +HEAD:refs/heads/main", there.display()));
    }

    /// Checks out a branch of the forge.
    pub fn pull(&self, branch: &str) {
        git(self.work.path(), &["fetch", "--quiet", &self.address, branch]);
        git(self.work.path(), &["checkout", "--quiet", "--detach", "FETCH_HEAD"]);
    }

    /// A call below the repository by who administrates it.
    pub async fn ask(&self, method: Method, path: &str, body: Value) -> Value {
        let path = format!("/repos/{}{path}", self.repository.name);
        ask(&self.server, method, &path, &body).await
    }

    /// What a command prints in the checkout.
    pub fn sh(&self, command: &str) -> String {
        sh(self.work.path(), command)
    }
}

async fn ask(server: &LocalForge, method: Method, path: &str, body: &Value) -> Value {
    let request = Client::new().request(method, format!("{}{path}", server.api()));
    let request = request.bearer_auth(server.identity().user_token);
    let answer = request.header("user-agent", "bobbin-tests").json(body).send().await.unwrap();
    let status = answer.status();
    let text = answer.text().await.unwrap();
    assert!(status.is_success(), "{path}: {status} {text}");
    serde_json::from_str(&text).unwrap_or_default()
}

/// What a command prints in a folder, without this machine's configuration of git.
pub fn sh(folder: &Path, command: &str) -> String {
    let mut shell = Command::new("sh");
    shell.args(["-ec", command]).current_dir(folder);
    shell.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    let names = [("NAME", "Ada"), ("EMAIL", "ada@example.com")];
    for (what, value) in names {
        shell.env(format!("GIT_AUTHOR_{what}"), value);
        shell.env(format!("GIT_COMMITTER_{what}"), value);
    }
    let ran = shell.output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{command}: {said}");
    String::from_utf8(ran.stdout).unwrap()
}

fn git(folder: &Path, arguments: &[&str]) {
    let quoted: Vec<String> = arguments.iter().map(|one| format!("'{one}'")).collect();
    sh(folder, &format!("git {}", quoted.join(" ")));
}
