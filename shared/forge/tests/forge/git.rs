//! Real git, without the configuration of the person who runs the tests.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bobbin_forge::git::ObjectId;
use tempfile::TempDir;

/// What every repository of the tests starts with.
pub const MAIN: &str = "refs/heads/main";

/// Git in a folder, without a configuration from outside.
pub fn command(folder: &Path) -> Command {
    let mut git = Command::new("git");
    git.current_dir(folder)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_AUTHOR_NAME", "Ada")
        .env("GIT_AUTHOR_EMAIL", "ada@example.org")
        .env("GIT_COMMITTER_NAME", "Ada")
        .env("GIT_COMMITTER_EMAIL", "ada@example.org");
    git
}

/// Runs git, and answers what it printed.
pub fn git(folder: &Path, arguments: &[&str]) -> String {
    String::from_utf8(raw(folder, arguments, b"")).unwrap().trim_end().to_owned()
}

/// Runs git with this input, and answers the bytes that it printed.
pub fn raw(folder: &Path, arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let mut child = command(folder)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("git is installed");
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writing = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writing.join().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {arguments:?}: {said}");
    output.stdout
}

/// A bare repository below a folder that is served, and a checkout beside it.
pub struct ObjectPlace {
    _folder: TempDir,
    pub root: PathBuf,
    pub bare: PathBuf,
    pub work: PathBuf,
}

impl ObjectPlace {
    /// `acme/web.git`, without a commit.
    pub fn empty() -> Self {
        Self::with(&[])
    }

    pub fn with(options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("served");
        let bare = root.join("acme/web.git");
        let work = folder.path().join("work");
        std::fs::create_dir_all(&bare).unwrap();
        let init = [&["init", "--quiet", "--initial-branch=main"], options].concat();
        git(&bare, &[&init[..], &["--bare", "."]].concat());
        for (name, value) in [
            ("uploadpack.allowFilter", "true"),
            ("uploadpack.allowAnySHA1InWant", "true"),
            ("receive.fsckObjects", "true"),
        ] {
            git(&bare, &["config", name, value]);
        }
        std::fs::create_dir(&work).unwrap();
        git(&work, &init);
        Self { _folder: folder, root, bare, work }
    }

    /// With two commits on `main`, of a file in a folder.
    pub fn filled() -> Self {
        let place = Self::empty();
        place.commit("src/a.txt", "one\n");
        place.commit("src/a.txt", "two\n");
        place.publish("main");
        place
    }

    /// Commits a file, and answers the commit.
    pub fn commit(&self, path: &str, text: &str) -> ObjectId {
        let file = self.work.join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
        git(&self.work, &["add", "--all"]);
        git(&self.work, &["commit", "--quiet", "--message", "a change"]);
        self.at("HEAD")
    }

    /// Moves a branch of the served repository to the checkout's commit, past the server.
    pub fn publish(&self, branch: &str) {
        let to = format!("+HEAD:refs/heads/{branch}");
        git(&self.work, &["push", "--quiet", self.bare.to_str().unwrap(), &to]);
    }

    /// The object of a name in the checkout.
    pub fn at(&self, name: &str) -> ObjectId {
        git(&self.work, &["rev-parse", name]).parse().unwrap()
    }

    /// Where a branch of the served repository is.
    pub fn branch(&self, branch: &str) -> Option<ObjectId> {
        let name = format!("refs/heads/{branch}");
        let found = git(&self.bare, &["for-each-ref", "--format=%(objectname)", &name]);
        found.parse().ok()
    }

    /// A pack of whole objects: what leads from one commit to another.
    pub fn pack(&self, from: Option<ObjectId>, to: ObjectId) -> Vec<u8> {
        let mut wanted = format!("{to}\n");
        if let Some(from) = from {
            wanted += &format!("^{from}\n");
        }
        let arguments =
            ["pack-objects", "--revs", "--stdout", "-q", "--no-reuse-delta", "--window=0"];
        raw(&self.work, &arguments, wanted.as_bytes())
    }

    /// A hook of the served repository.
    pub fn hook(&self, name: &str, script: &str) {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.bare.join("hooks").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
}
