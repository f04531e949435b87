//! Fetching and pushing, against real git.

use async_trait::async_trait;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::secret::Secret;
use bobbin_forge::git::{
    Fetch, Fetched, Filter, GitError, ObjectId, PackSink, Push, Pushed, RefName, Remote,
    bundle_header,
};
use bobbin_http::{AllowedHosts, Http};

use crate::git::{MAIN, ObjectPlace, git, raw};
use crate::world::{TOKEN, World};

const MIB: u64 = 1024 * 1024;

/// Keeps a pack.
#[derive(Default)]
pub struct Kept(pub Vec<u8>);

#[async_trait]
impl PackSink for Kept {
    async fn take(&mut self, piece: &[u8]) -> Result<(), Failure> {
        assert!((1..=65_515).contains(&piece.len()), "a piece of {} bytes", piece.len());
        self.0.extend_from_slice(piece);
        Ok(())
    }
}

/// A served place, and what is needed to speak to it.
struct Served {
    place: ObjectPlace,
    world: World,
    http: Http,
    secret: Secret,
}

impl Served {
    async fn of(place: ObjectPlace) -> Self {
        let world = World::serving(&place).await;
        let http = Http::new(world.base(), AllowedHosts::Named(Vec::new())).unwrap();
        Self { place, world, http, secret: TOKEN.to_owned().into() }
    }

    fn remote(&self) -> Remote<'_> {
        self.named("acme/web.git")
    }

    fn named(&self, name: &str) -> Remote<'_> {
        let address = format!("{}/git/{name}", self.world.base());
        Remote { http: &self.http, address, user: "x-access-token", secret: &self.secret }
    }

    async fn fetch(&self, what: Fetch) -> (Vec<u8>, Fetched) {
        let mut kept = Kept::default();
        let what = Fetch { bytes_max: MIB, ..what };
        let fetched = self.remote().fetch(&what, &mut kept).await.unwrap();
        assert_eq!(fetched.bytes, kept.0.len() as u64);
        (kept.0, fetched)
    }

    async fn push(&self, branch: &str, old: Option<ObjectId>, new: ObjectId) -> Pushed {
        let name = RefName::branch(branch).unwrap();
        let pack = self.place.pack(old, new);
        self.remote().push(Push { name, old, new, pack }).await.unwrap()
    }
}

fn of(wants: &[ObjectId]) -> Fetch {
    Fetch { wants: wants.to_vec(), ..Fetch::default() }
}

fn main() -> RefName {
    MAIN.parse().unwrap()
}

#[tokio::test]
async fn whole_history_clones_as_a_bundle() {
    let served = Served::of(ObjectPlace::filled()).await;
    let refs = served.remote().refs(&[MAIN.to_owned()]).await.unwrap();
    assert_eq!(refs.default_branch.as_deref(), Some(MAIN));
    let tip = refs.refs[MAIN].commit();
    assert_eq!(tip, served.place.at("HEAD"));
    assert_eq!(refs.refs["HEAD"].id, tip);

    let (pack, fetched) = served.fetch(of(&[tip])).await;
    assert_eq!(fetched.shallow, []);
    let folder = tempfile::tempdir().unwrap();
    let bundle = [bundle_header(&[], &[(main(), tip)]), pack].concat();
    std::fs::write(folder.path().join("base.bundle"), bundle).unwrap();
    git(folder.path(), &["clone", "--quiet", "--branch", "main", "base.bundle", "repo"]);
    let repo = folder.path().join("repo");
    assert_eq!(git(&repo, &["rev-parse", "HEAD"]), tip.to_string());
    assert_eq!(git(&repo, &["rev-list", "--count", "HEAD"]), "2");
    git(&repo, &["fsck", "--strict"]);

    // What came since is a bundle that rests on what is there.
    let next = served.place.commit("src/b.txt", "three\n");
    served.place.publish("main");
    let (pack, _) = served.fetch(Fetch { haves: vec![tip], ..of(&[next]) }).await;
    assert!(pack.len() < 600, "{} bytes for one small commit", pack.len());
    let bundle = [bundle_header(&[tip], &[(main(), next)]), pack].concat();
    std::fs::write(folder.path().join("next.bundle"), bundle).unwrap();
    git(&repo, &["fetch", "--quiet", "../next.bundle", "refs/heads/main:refs/remotes/origin/main"]);
    assert_eq!(git(&repo, &["rev-parse", "origin/main"]), next.to_string());
    assert_eq!(git(&repo, &["show", "origin/main:src/b.txt"]), "three");
}

#[tokio::test]
async fn shallow_history_names_its_ends() {
    let served = Served::of(ObjectPlace::filled()).await;
    let tip = served.place.at("HEAD");
    let (pack, fetched) = served.fetch(Fetch { depth: Some(1), ..of(&[tip]) }).await;
    assert_eq!(fetched.shallow, [tip]);
    let folder = tempfile::tempdir().unwrap();
    git(folder.path(), &["init", "--quiet"]);
    std::fs::write(folder.path().join(".git/shallow"), format!("{tip}\n")).unwrap();
    raw(folder.path(), &["index-pack", "--stdin"], &pack);
    git(folder.path(), &["update-ref", MAIN, &tip.to_string()]);
    assert_eq!(git(folder.path(), &["rev-list", "--count", MAIN]), "1");
    git(folder.path(), &["fsck", "--strict"]);

    // From there the rest of the history can be fetched.
    let deeper = Fetch { depth: Some(5), shallow: vec![tip], haves: vec![tip], ..of(&[tip]) };
    let (pack, fetched) = served.fetch(deeper).await;
    assert_eq!((fetched.unshallow, fetched.shallow), (vec![tip], vec![]));
    raw(folder.path(), &["index-pack", "--stdin", "--fix-thin"], &pack);
    std::fs::remove_file(folder.path().join(".git/shallow")).unwrap();
    assert_eq!(git(folder.path(), &["rev-list", "--count", MAIN]), "2");
}

#[tokio::test]
async fn files_can_be_left_out_and_follow() {
    let served = Served::of(ObjectPlace::filled()).await;
    let tip = served.place.at("HEAD");
    let folder = tempfile::tempdir().unwrap();
    git(folder.path(), &["init", "--quiet"]);
    let history = Fetch { depth: Some(50), filter: Filter::Blobs, ..of(&[tip]) };
    let (pack, fetched) = served.fetch(history).await;
    assert_eq!(fetched.shallow, []);
    raw(folder.path(), &["index-pack", "--stdin"], &pack);
    let kinds = ["cat-file", "--batch-all-objects", "--batch-check=%(objecttype)"];
    assert!(!git(folder.path(), &kinds).contains("blob"));
    let (pack, _) = served.fetch(Fetch { depth: Some(1), ..of(&[tip]) }).await;
    raw(folder.path(), &["index-pack", "--stdin"], &pack);
    let shown = git(folder.path(), &["show", &format!("{tip}:src/a.txt")]);
    assert_eq!(shown, "two");

    git(&served.place.bare, &["config", "uploadpack.allowFilter", "false"]);
    let what = Fetch { filter: Filter::Blobs, bytes_max: MIB, ..of(&[tip]) };
    let error = served.remote().fetch(&what, &mut Kept::default()).await.unwrap_err();
    assert_eq!(error.to_string(), "The server sends no history without files.");
}

#[tokio::test]
async fn empty_repository_has_a_default_branch() {
    let served = Served::of(ObjectPlace::empty()).await;
    let refs = served.remote().refs(&[]).await.unwrap();
    assert_eq!(refs.default_branch.as_deref(), Some(MAIN));
    assert!(refs.refs.is_empty());
    let first = served.place.commit("a.txt", "one\n");
    assert_eq!(served.push("main", None, first).await, Pushed::Done);
    assert_eq!(served.place.branch("main"), Some(first));
}

#[tokio::test]
async fn one_of_many_refs_is_found() {
    let served = Served::of(ObjectPlace::filled()).await;
    let tip = served.place.at("HEAD");
    git(&served.place.work, &["tag", "--annotate", "v1", "--message", "one"]);
    let work = served.place.work.to_str().unwrap();
    git(&served.place.bare, &["fetch", "--quiet", work, "refs/tags/v1:refs/tags/v1"]);
    let many = |count: usize| {
        let each = |number| format!("create refs/heads/b/{number} {tip}\n");
        let lines: String = (0..count).map(each).collect();
        raw(&served.place.bare, &["update-ref", "--stdin"], lines.as_bytes());
        git(&served.place.bare, &["pack-refs", "--all"]);
    };
    many(3_000);
    let remote = served.remote();
    let found = remote.refs(&["refs/heads/b/2999".to_owned()]).await.unwrap();
    assert_eq!(found.refs.keys().collect::<Vec<_>>(), ["HEAD", "refs/heads/b/2999"]);
    let tag = remote.refs(&["refs/tags/v1".to_owned()]).await.unwrap().refs["refs/tags/v1"];
    assert_eq!((tag.id, tag.commit()), (served.place.at("v1"), tip));
    assert_ne!(tag.id, tip);
    assert_eq!(remote.refs(&[]).await.unwrap().refs.len(), 3_003);

    // A push reads through them all, and finds its own.
    let next = served.place.commit("a.txt", "next\n");
    assert_eq!(served.push("b/1500", Some(tip), next).await, Pushed::Done);
    assert_eq!(served.place.branch("b/1500"), Some(next));
    assert_eq!(served.place.branch("b/1501"), Some(tip));
}

#[tokio::test]
async fn too_many_refs_are_an_error() {
    let served = Served::of(ObjectPlace::filled()).await;
    let tip = served.place.at("HEAD");
    let lines: String =
        (0..20_001).map(|number| format!("{tip} refs/heads/b/{number:05}\n")).collect();
    let head = "# pack-refs with: peeled fully-peeled sorted \n";
    std::fs::write(served.place.bare.join("packed-refs"), format!("{head}{lines}")).unwrap();
    let error = served.remote().refs(&["refs/heads/b/".to_owned()]).await.unwrap_err();
    assert!(matches!(error, GitError::TooLarge { .. }), "{error:?}");
}

#[tokio::test]
async fn fetch_ends_at_its_bound() {
    let served = Served::of(ObjectPlace::filled()).await;
    let noise: String = (0..40_000_u64)
        .map(|n| format!("{:016x}\n", n.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
        .collect();
    let tip = served.place.commit("noise.txt", &noise);
    served.place.publish("main");
    let mut kept = Kept::default();
    let what = Fetch { bytes_max: 100_000, ..of(&[tip]) };
    let error = served.remote().fetch(&what, &mut kept).await.unwrap_err();
    assert_eq!(error, GitError::TooLarge { bytes_max: 100_000 });
    assert!(kept.0.len() <= 100_000);
}

#[tokio::test]
async fn failed_fetches_say_why() {
    let served = Served::of(ObjectPlace::filled()).await;
    let nowhere: ObjectId = "00000000000000000000000000000000000000aa".parse().unwrap();
    let what = Fetch { bytes_max: MIB, ..of(&[nowhere]) };
    let error = served.remote().fetch(&what, &mut Kept::default()).await.unwrap_err();
    assert!(matches!(error, GitError::UnknownObject { .. }), "{error:?}");

    struct Full;
    #[async_trait]
    impl PackSink for Full {
        async fn take(&mut self, _piece: &[u8]) -> Result<(), Failure> {
            Err(Failure::SandboxGone)
        }
    }
    let what = Fetch { bytes_max: MIB, ..of(&[served.place.at("HEAD")]) };
    let error = served.remote().fetch(&what, &mut Full).await.unwrap_err();
    assert_eq!(error, GitError::Sink(Failure::SandboxGone));

    let error = served.named("acme/nothing.git").refs(&[]).await.unwrap_err();
    assert!(matches!(error, GitError::Status { status: 404, .. }), "{error:?}");
    let stranger = Secret::from("ghs_000000000000".to_owned());
    let remote = Remote { secret: &stranger, ..served.remote() };
    let error = remote.refs(&[]).await.unwrap_err();
    let said = "Bad credentials".to_owned();
    assert_eq!(error, GitError::Status { status: 401, said, after_ms: 0 });
}

#[tokio::test]
async fn sha256_repository_is_refused_in_words() {
    let place = ObjectPlace::with(&["--object-format=sha256"]);
    let served = Served::of(place).await;
    let words = "The repository uses SHA-256, which Bobbin does not support.";
    let error = served.remote().refs(&[]).await.unwrap_err();
    assert_eq!(error.to_string(), words);
    let new = "00000000000000000000000000000000000000aa".parse().unwrap();
    let push = Push { name: main(), old: None, new, pack: Vec::new() };
    assert_eq!(served.remote().push(push).await.unwrap_err().to_string(), words);
}

#[tokio::test]
async fn push_moves_one_ref_once() {
    let served = Served::of(ObjectPlace::filled()).await;
    let base = served.place.at("HEAD");
    let one = served.place.commit("src/a.txt", "three\n");
    assert_eq!(served.push("bobbin/x-1", None, one).await, Pushed::Done);
    assert_eq!(served.place.branch("bobbin/x-1"), Some(one));
    assert_eq!(served.place.branch("main"), Some(base));
    let sent = |served: &Served| {
        let lines = served.world.lines();
        lines.iter().filter(|line| line.starts_with("POST ")).count()
    };
    assert_eq!(sent(&served), 1);

    // A repeat finds it done, whatever it was told to find before.
    assert_eq!(served.push("bobbin/x-1", None, one).await, Pushed::Done);
    assert_eq!(served.push("bobbin/x-1", Some(base), one).await, Pushed::Done);
    assert_eq!(sent(&served), 1, "a repeat sends nothing");

    let two = served.place.commit("src/a.txt", "four\n");
    assert_eq!(served.push("bobbin/x-1", Some(one), two).await, Pushed::Done);
    assert_eq!(served.place.branch("bobbin/x-1"), Some(two));
}

#[tokio::test]
async fn person_on_the_branch_wins() {
    let served = Served::of(ObjectPlace::filled()).await;
    let base = served.place.at("HEAD");
    let ours = served.place.commit("src/a.txt", "ours\n");
    git(&served.place.work, &["checkout", "--quiet", "--detach", &base.to_string()]);
    let theirs = served.place.commit("src/a.txt", "theirs\n");
    served.place.publish("bobbin/x-1");
    let moved = Pushed::Moved { at: Some(theirs) };
    assert_eq!(served.push("bobbin/x-1", Some(base), ours).await, moved);
    assert_eq!(served.push("bobbin/x-1", None, ours).await, moved);
    // The branch was deleted after it was pushed to.
    assert_eq!(served.push("bobbin/x-2", Some(base), ours).await, Pushed::Moved { at: None });
    assert_eq!(served.place.branch("bobbin/x-1"), Some(theirs));

    // They come between the look and the push.
    let bare = served.place.bare.clone();
    served.world.before_push(move || {
        git(&bare, &["update-ref", "refs/heads/bobbin/x-3", &theirs.to_string()]);
    });
    assert_eq!(served.push("bobbin/x-3", None, ours).await, moved);
    assert_eq!(served.place.branch("bobbin/x-3"), Some(theirs));
}

#[tokio::test]
async fn refused_push_tells_the_joined_reason() {
    let served = Served::of(ObjectPlace::filled()).await;
    let base = served.place.at("HEAD");
    // Cut inside of words: each write is a piece of its own on the band.
    served.place.hook(
        "pre-receive",
        "#!/bin/sh\nprintf 'error: GH0' >&2; sleep 0.1; printf '06: Prot' >&2; sleep 0.1\nprintf 'ected branch update failed for refs/heads/main.  \\n\\nerror: At le' >&2; sleep 0.1; printf 'ast 1 review.\\n' >&2\nexit 1\n",
    );
    let next = served.place.commit("src/a.txt", "three\n");
    let Pushed::Refused { why } = served.push("main", Some(base), next).await else {
        panic!("it was not refused");
    };
    assert_eq!(
        why,
        "pre-receive hook declined\nerror: GH006: Protected branch update failed for refs/heads/main.\nerror: At least 1 review."
    );
    assert_eq!(served.place.branch("main"), Some(base));
}

#[tokio::test]
async fn incomplete_and_damaged_packs_are_refused() {
    let served = Served::of(ObjectPlace::filled()).await;
    let base = served.place.at("HEAD");
    let one = served.place.commit("src/a.txt", "three\n");
    let two = served.place.commit("src/a.txt", "four\n");
    let push = |pack: Vec<u8>| {
        let remote = served.remote();
        let name = RefName::branch("bobbin/x").unwrap();
        async move { remote.push(Push { name, old: None, new: two, pack }).await.unwrap() }
    };
    let lacking = push(served.place.pack(Some(one), two)).await;
    assert!(matches!(lacking, Pushed::Refused { .. }), "{lacking:?}");
    let mut cut = served.place.pack(Some(base), two);
    cut.truncate(cut.len() - 10);
    let cut = push(cut).await;
    assert!(matches!(cut, Pushed::Refused { .. }), "{cut:?}");
    assert_eq!(served.place.branch("bobbin/x"), None);
}

#[test]
fn ref_names_follow_git() {
    let place = ObjectPlace::empty();
    for name in [
        "refs/heads/main",
        "refs/heads/bobbin/fix-it-1a2b",
        "refs/heads/ä",
        "refs/heads/@",
        "refs/tags/v1.0",
        "refs/heads/",
        "refs/heads",
        "refs",
        "HEAD",
        "heads/main",
        "refs/heads/a..b",
        "refs/heads/.a",
        "refs/heads/a.",
        "refs/heads/a.lock",
        "refs/heads/a.lock/b",
        "refs/heads/a b",
        "refs/heads/a\nb",
        "refs/heads/a~1",
        "refs/heads/a^",
        "refs/heads/a:b",
        "refs/heads/a?",
        "refs/heads/a*",
        "refs/heads/a[",
        "refs/heads/a\\b",
        "refs/heads/a@{1}",
        "refs/heads//a",
        "refs/heads/a/",
        "refs/heads/\u{7f}",
    ] {
        let mut check = crate::git::command(&place.work);
        let is_ref = check.args(["check-ref-format", name]).status().unwrap().success();
        let is_below = name.strip_prefix("refs/").is_some_and(|rest| rest.contains('/'));
        assert_eq!(name.parse::<RefName>().is_ok(), is_ref && is_below, "{name:?}");
    }
    assert!(RefName::branch("").is_err());
    assert_eq!(RefName::branch("a/b").unwrap().short(), Some("a/b"));
}
