//! The laptop's forge, used as people use one: over its REST API and with git.

use std::path::Path;
use std::process::Command;

use reqwest::{Client, Method};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::ready::Ready;

/// The forge of a stack, as the person who administrates the organisation uses it.
pub struct TestForge {
    client: Client,
    api: String,
    git: String,
    owner: String,
    token: String,
    page: String,
    control: String,
}

/// A repository there.
pub struct TestRepository<'f> {
    forge: &'f TestForge,
    /// `owner/name`.
    pub name: String,
}

impl TestForge {
    /// The forge of the stack that said this.
    #[must_use]
    pub fn of(ready: &Ready) -> Self {
        Self {
            client: Client::new(),
            api: ready.github_api.clone(),
            git: ready.github_git.clone(),
            owner: ready.github_owner.clone(),
            token: ready.github_user_token.clone(),
            page: ready.console.clone(),
            control: ready.control(),
        }
    }

    /// A call, and its answer.
    ///
    /// # Panics
    /// When it is refused.
    pub async fn call(&self, method: Method, path: &str, body: &Value) -> Value {
        let mut request = self
            .client
            .request(method.clone(), format!("{}{path}", self.api))
            .bearer_auth(&self.token)
            .header("accept", "application/vnd.github+json")
            .header("user-agent", "bobbin-tests");
        if !body.is_null() {
            request = request.json(body);
        }
        let answer = request.send().await.expect("the forge answers");
        let status = answer.status();
        let text = answer.text().await.expect("a body");
        assert!(status.is_success(), "{method} {path}: {status} {text}");
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Reports a result of continuous integration for a repository's commit.
    ///
    /// # Panics
    /// When it is refused.
    pub async fn check(&self, repository: &str, sha: &str, conclusion: &str) {
        let said =
            json!({"repository": repository, "sha": sha, "name": "test", "conclusion": conclusion});
        self.control("checks", &said).await;
    }

    /// A test's own word to the forge.
    ///
    /// # Panics
    /// When it is refused.
    pub async fn control(&self, path: &str, body: &Value) {
        let request = self.client.post(format!("{}/_control/{path}", self.api));
        let request = request.header("authorization", &self.control).json(body);
        let answer = request.send().await.expect("the forge answers");
        let status = answer.status();
        let text = answer.text().await.expect("a body");
        assert!(status.is_success(), "{path}: {status} {text}");
    }

    /// An existing repository.
    #[must_use]
    pub fn made(&self, name: &str) -> TestRepository<'_> {
        TestRepository { forge: self, name: format!("{}/{name}", self.owner) }
    }

    /// Makes a private repository with these files.
    pub async fn private(&self, name: &str, files: &[(&str, &str)]) -> TestRepository<'_> {
        let path = format!("/orgs/{}/repos", self.owner);
        self.call(Method::POST, &path, &json!({"name": name, "private": true})).await;
        let made = self.made(name);
        if !files.is_empty() {
            let folder = TempDir::new().expect("a folder");
            git(folder.path(), &["init", "--quiet", "--initial-branch=main"]);
            for (file, content) in files {
                let file = folder.path().join(file);
                std::fs::create_dir_all(file.parent().expect("below the folder")).expect("made");
                std::fs::write(file, content).expect("written");
            }
            git(folder.path(), &["add", "--all"]);
            git(folder.path(), &["commit", "--quiet", "--message", "Begin"]);
            git(folder.path(), &["push", "--quiet", &made.address(), "main"]);
        }
        made
    }
}

impl TestRepository<'_> {
    /// Its clone address, with the person's token.
    #[must_use]
    pub fn address(&self) -> String {
        let (scheme, host) = self.forge.git.split_once("://").expect("an address");
        format!("{scheme}://x-access-token:{}@{host}/{}.git", self.forge.token, self.name)
    }

    /// A press in the page's forge pane, on a pull request, and its answer.
    ///
    /// # Panics
    /// When it is refused.
    pub async fn press(&self, button: &str, pull: &Value) -> Value {
        let body = json!({"do": button, "repository": self.name, "number": pull["number"], "seen_sha": pull["head"]["sha"]});
        let request = self.forge.client.post(format!("{}/ui/forge", self.forge.page));
        let request = request.header("authorization", &self.forge.control).json(&body);
        let answer = request.send().await.expect("the page answers");
        let status = answer.status();
        let text = answer.text().await.expect("a body");
        assert!(status.is_success(), "{button}: {status} {text}");
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Makes a branch with a file, and a draft of a pull request for it.
    pub async fn draft(&self, branch: &str, file: (&str, &str), title: &str, text: &str) -> Value {
        let folder = TempDir::new().expect("a folder");
        let at = folder.path();
        git(at, &["clone", "--quiet", &self.address(), "there"]);
        let at = at.join("there");
        git(&at, &["checkout", "--quiet", "-b", branch]);
        std::fs::write(at.join(file.0), file.1).expect("written");
        git(&at, &["add", "--all"]);
        git(&at, &["commit", "--quiet", "--message", title]);
        git(&at, &["push", "--quiet", "origin", branch]);
        let body =
            json!({"title": title, "body": text, "head": branch, "base": "main", "draft": true});
        self.call(Method::POST, "/pulls", &body).await
    }

    /// A call below the repository.
    pub async fn call(&self, method: Method, path: &str, body: &Value) -> Value {
        self.forge.call(method, &format!("/repos/{}{path}", self.name), body).await
    }

    /// Its pull requests, oldest first.
    pub async fn pulls(&self) -> Vec<Value> {
        let all = self.call(Method::GET, "/pulls?state=all&direction=asc", &Value::Null).await;
        all.as_array().cloned().unwrap_or_default()
    }

    /// Its branches and where they are, without the default one.
    pub async fn branches(&self) -> Vec<(String, String)> {
        let all = self.call(Method::GET, "/branches", &Value::Null).await;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let all = all.as_array().cloned().unwrap_or_default().into_iter();
        let named = all.map(|one| (text(&one["name"]), text(&one["commit"]["sha"])));
        named.filter(|(name, _)| name != "main").collect()
    }

    /// A person pushes a file to a branch.
    ///
    /// # Panics
    /// When git cannot.
    pub fn push(&self, branch: &str, file: &str, content: &str) {
        let folder = TempDir::new().expect("a folder");
        let at = folder.path();
        git(at, &["clone", "--quiet", "--branch", branch, &self.address(), "there"]);
        let there = at.join("there");
        let path = there.join(file);
        std::fs::create_dir_all(path.parent().expect("below the folder")).expect("made");
        std::fs::write(path, content).expect("written");
        git(&there, &["add", "--all"]);
        git(&there, &["commit", "--quiet", "--message", "By a person"]);
        git(&there, &["push", "--quiet"]);
    }

    /// The content of a file of a branch.
    ///
    /// # Panics
    /// When git cannot read it.
    #[must_use]
    pub fn file(&self, branch: &str, file: &str) -> String {
        let folder = TempDir::new().expect("a folder");
        let at = folder.path();
        git(at, &["clone", "--quiet", "--branch", branch, &self.address(), "there"]);
        std::fs::read_to_string(at.join("there").join(file)).expect("the file")
    }
}

/// Runs git as a person would, without this machine's configuration.
///
/// # Panics
/// When it fails.
pub fn git(folder: &Path, arguments: &[&str]) {
    let ran = Command::new("git")
        .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.com"])
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        .output()
        .expect("git runs");
    assert!(ran.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
}
