//! Checkouts that go on to the newest commit once the pull request of their work has ended.

use bobbin_app::sandboxes::Moving;
use bobbin_core::protocol::event::Event;
use bobbin_core::records::carried::Carried;
use bobbin_core::records::publication::Outgoing;

use super::carried;
use super::forge::Place;
use super::sandbox::Carrier;

/// A sandbox whose work was pushed and merged as one commit, after which main went on.
struct Merged {
    place: Place,
    carrier: Carrier,
    there: Carried,
    pushed: String,
}

impl Merged {
    async fn new(work: &str) -> Self {
        let place = Place::small().await.filled(3, 100);
        let carrier = Carrier::new();
        let (there, _) = carried(carrier.carry(&place).await);
        carrier.sh(work);
        // Bobbin's own files beside it are nobody's work.
        carrier.sh("mkdir -p .bobbin/set-up && echo x >.bobbin/set-up/1.log");
        let (sandboxes, target) = (&carrier.sandboxes, carrier.target());
        let read = sandboxes.read_outgoing(&place.forge, target, &there, (0, None)).await;
        let Event::OutgoingRead(Outgoing::Ready { commit: pushed, .. }) = read.unwrap() else {
            panic!("no work");
        };
        let moving = Moving { branch: "bobbin/work-1", old: None, new: &pushed, follows: None };
        sandboxes.push_outgoing(&place.forge, target, &there, moving).await.unwrap();
        place.pull("bobbin/work-1");
        place.sh("git checkout -q main && git merge -q --squash FETCH_HEAD");
        place.commit("Work, as one commit");
        place.sh("echo later >later.txt && mkdir link && echo x >link/x");
        place.commit("By a person");
        place.push("main");
        Self { place, carrier, there, pushed }
    }

    async fn go_on(&self) -> Option<String> {
        let (sandboxes, target) = (&self.carrier.sandboxes, self.carrier.target());
        let pushed = Some(&*self.pushed);
        match sandboxes.move_checkout(&self.place.forge, target, &self.there, pushed).await {
            Ok(Event::CheckoutMoved { base }) => base,
            other => panic!("{other:?}"),
        }
    }

    /// Branch, files and what is beyond the branch's newest commit.
    fn stand(&self) -> String {
        self.carrier.sh("git status --porcelain --branch && git log -1 --format=%s && cat work.txt later.txt 2>&1; true")
    }

    fn newest(&self) -> Option<String> {
        Some(self.place.sh("git rev-parse main").trim().to_owned())
    }
}

const MOVED: &str = "## main...origin/main\nBy a person\nwork\nlater\n";

#[tokio::test(flavor = "multi_thread")]
async fn next_work_starts_from_the_merge() {
    for work in [
        "echo work >work.txt && git add . && git commit -q -m Work",
        "echo work >work.txt",
        "echo work >work.txt && git add .",
        "git checkout -q -b feature && echo work >work.txt && git add . && git commit -q -m Work",
        "git checkout -q --detach && echo work >work.txt",
    ] {
        let merged = Merged::new(work).await;
        assert_eq!(merged.go_on().await, merged.newest(), "{work}");
        assert_eq!(merged.stand(), MOVED, "{work}");
        // A delivery that died with the answer comes again.
        assert_eq!(merged.go_on().await, merged.newest(), "{work}");
        assert_eq!(merged.stand(), MOVED, "{work}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unpushed_work_stays_as_it_is() {
    for more in [
        "echo more >more.txt",
        "echo more >>work.txt",
        "rm README.md",
        "git commit -q --allow-empty -m Kept",
        "git branch -f main HEAD && git checkout -q main && git commit -q --allow-empty -m Kept && git checkout -q HEAD~1",
        "echo staged >new.txt && git add new.txt && rm new.txt",
        "git worktree add -q ../other main",
        "mkdir ../data && echo link >>.git/info/exclude && ln -s ../data link",
        "printf later.txt >>.git/info/exclude && echo mine >later.txt",
        "git merge -q --no-commit --no-ff -s ours HEAD~1 2>&1; git rev-parse HEAD~1 >.git/MERGE_HEAD",
    ] {
        let merged = Merged::new(
            "git checkout -q -b work && echo work >work.txt && git add . && git commit -q -m Work",
        )
        .await;
        merged.carrier.sh(more);
        let look = "git status --porcelain --branch; git for-each-ref --format='%(refname) %(objectname)' refs/heads; git diff --cached --stat; ls -l; md5sum * 2>/dev/null || true";
        let before = merged.carrier.sh(look);
        assert_eq!(merged.go_on().await, None, "{more}");
        assert_eq!(merged.carrier.sh(look), before, "{more}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupted_move_is_finished() {
    let merged = Merged::new("echo work >work.txt && git add . && git commit -q -m Work").await;
    // The files are there, and the branch is not.
    assert_eq!(merged.go_on().await, merged.newest());
    merged.carrier.sh(&format!(
        "git update-ref refs/worktree/bobbin/going HEAD && git update-ref refs/heads/main {}",
        merged.pushed
    ));
    merged.place.sh("echo newer >newer.txt");
    merged.place.commit("By another");
    merged.place.push("main");
    assert_eq!(merged.go_on().await, merged.newest());
    assert_eq!(merged.stand(), "## main...origin/main\nBy another\nwork\nlater\n");
}
