//! The command `github app`, and what `check` says of the app, against the laptop's forge.

use std::process::Stdio;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bobbin_local_forge::{ForgeSettings, LocalForge};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::Child;

use crate::support::{Options, World, client};

/// Longest time for anything that a test waits for.
const WAIT_MS_MAX: u64 = 60_000;

/// A stack and a forge.
struct Place {
    world: World,
    forge: LocalForge,
    _folder: TempDir,
}

impl Place {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let settings = ForgeSettings::new(folder.path().to_owned(), "control".to_owned().into());
        let forge = LocalForge::start(settings).await.unwrap();
        let world = Self::world(&forge, vec![]).await;
        Self { world, forge, _folder: folder }
    }

    async fn world(forge: &LocalForge, parameters: Vec<(&'static str, String)>) -> World {
        World::with(Options {
            parameters,
            github: Some([forge.api(), forge.git()]),
            ..Options::default()
        })
        .await
    }

    fn begun(&self, arguments: &[&str]) -> Child {
        let mut command = self.world.command(&[&["github", "app"], arguments].concat(), &[]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        tokio::process::Command::from(command).kill_on_drop(true).spawn().unwrap()
    }

    /// Presses through the pages; the address to which the forge leads the browser at the end.
    async fn pressed(&self, page: &str) -> String {
        let field = |name: &str| between(page, &format!("name=\"{name}\" value=\""));
        let (action, manifest) = (between(page, "action=\""), field("manifest"));
        let browser = reqwest::Client::builder().no_proxy();
        let browser = browser.redirect(reqwest::redirect::Policy::none()).build().unwrap();
        // As a browser that comes from another page does.
        let sent = browser.post(&action).header("origin", "http://127.0.0.1:1");
        let shown = sent.form(&[("manifest", &manifest)]).send().await.unwrap();
        assert_eq!(shown.status(), 200);
        let shown = shown.text().await.unwrap();
        assert!(shown.contains("Create GitHub App on laptop"), "{shown}");
        let state = action.split_once("state=").unwrap().1;
        let password = self.forge.identity().password;
        let fields = [
            ("manifest", manifest.as_str()),
            ("state", state),
            ("owner", "laptop"),
            ("name", "Bobbin of ours"),
            ("login", "ada"),
            ("password", &password),
        ];
        let at = format!("{}/settings/apps/manifest", self.forge.git());
        let made = browser.post(at).form(&fields).send().await.unwrap();
        assert_eq!(made.status(), 303);
        made.headers()["location"].to_str().unwrap().to_owned()
    }

    /// The keys that are stored, by their names.
    async fn keys(&self) -> (Value, Value) {
        (self.world.secret("WorkerSecret").await, self.world.secret("IngressSecret").await)
    }
}

/// The text after this, to the next quotation mark.
fn between(page: &str, before: &str) -> String {
    let (_, rest) = page.split_once(before).unwrap_or_else(|| panic!("no {before}: {page}"));
    rest.split('"').next().unwrap().replace("&quot;", "\"").replace("&amp;", "&")
}

/// What it says until its end, beside what was read already.
async fn ended(mut child: Child, mut said: String) -> (i32, String, String) {
    let mut err = String::new();
    let rest = async {
        let mut out = child.stdout.take().unwrap();
        out.read_to_string(&mut said).await.unwrap();
        child.stderr.take().unwrap().read_to_string(&mut err).await.unwrap();
        child.wait().await.unwrap().code().unwrap()
    };
    let code = tokio::time::timeout(Duration::from_millis(WAIT_MS_MAX), rest).await.unwrap();
    (code, said, err)
}

#[tokio::test(flavor = "multi_thread")]
async fn app_is_made_in_the_browser() {
    let place = Place::start().await;
    let mut child = place.begun(&["--organization", "laptop"]);
    let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    let mut page = String::new();
    while page.is_empty() {
        let line = lines.next_line().await.unwrap().expect("the address is told");
        if line.trim().starts_with("http://127.0.0.1:") {
            page = line.trim().to_owned();
        }
    }
    drop(lines);
    let shown = client().get(&page).send().await.unwrap();
    assert_eq!(shown.headers()["content-security-policy"], "default-src 'none'");
    let shown = shown.text().await.unwrap();
    assert!(shown.contains("the organisation laptop"), "{shown}");
    let back = place.pressed(&shown).await;

    // Somebody else's answer does not count.
    let (there, _) = back.split_once("state=").unwrap();
    let foreign = client().get(format!("{there}state=another")).send().await.unwrap();
    assert_eq!(foreign.status(), 400);
    let own = client().get(&back).send().await.unwrap();
    assert_eq!(own.status(), 200);

    let (code, out, err) = ended(child, String::new()).await;
    assert_eq!((code, err.as_str()), (3, ""), "{out}");
    let (worker, ingress) = place.keys().await;
    let stored = [
        &worker["github_private_key"],
        &worker["github_client_secret"],
        &ingress["github_webhook_secret"],
    ];
    for secret in stored.map(|secret| secret.as_str().unwrap()) {
        assert!(!out.contains(secret) && secret.len() >= 40, "{out}");
    }
    let pem = STANDARD.decode(stored[0].as_str().unwrap()).unwrap();
    assert!(pem.starts_with(b"-----BEGIN RSA PRIVATE KEY-----"));
    assert_eq!(worker["kept"], "as it is");
    assert!(
        out.contains("  ok    The GitHub App Bobbin of ours (bobbin-of-ours) of laptop is made: "),
        "{out}"
    );
    assert!(
        out.contains(
            "sam deploy --stack-name bobbin --region us-east-1 --parameter-overrides GitHubAppId=Iv"
        ),
        "{out}"
    );
    assert!(out.contains("\\\"github_app\\\":\\\"bobbin-of-ours\\\""), "{out}");
    assert!(out.contains("/apps/bobbin-of-ours/installations/new"), "{out}");

    let again = place.world.run(&["github", "app", "--organization", "laptop"], &[]).await;
    again
        .is(0, "  ok    The stack has the key of a GitHub App already; --anew makes another one\n");
    let setup = place.world.run(&["setup", "--from-env"], &[]).await;
    setup.holds("[3/9] The GitHub App\n  ok    There is already an app's key\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn code_can_be_brought_from_elsewhere() {
    let place = Place::start().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("app.html");
    let file = file.to_str().unwrap();
    let arguments = ["--organization", "laptop", "--page", file];
    let mut child = place.begun(&arguments);
    let mut first = [0; 1];
    child.stdout.as_mut().unwrap().read_exact(&mut first).await.unwrap();
    let back = place.pressed(&std::fs::read_to_string(file).unwrap()).await;
    assert!(back.starts_with("http://127.0.0.1:4180/made?code="), "{back}");
    let typed = format!("{back}\n");
    child.stdin.take().unwrap().write_all(typed.as_bytes()).await.unwrap();
    let (code, out, err) = ended(child, String::new()).await;
    assert_eq!((code, err.as_str()), (3, ""), "{out}");
    assert!(place.keys().await.0["github_private_key"].is_string());

    // A code is good once, and one of another run is not taken.
    for (typed, words) in [
        (back, "it has another state"),
        ("used-up".to_owned(), "GitHub does not know this code."),
        (String::new(), "No code was given"),
    ] {
        let mut child = place.begun(&[&arguments[..], &["--anew"]].concat());
        child.stdin.take().unwrap().write_all(format!("{typed}\n").as_bytes()).await.unwrap();
        let (code, _, err) = ended(child, String::new()).await;
        assert_eq!(code, 1);
        assert!(err.contains(words), "{err}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_made_without_need() {
    let place = Place::start().await;
    let dry = place.world.run(&["github", "app", "--dry-run"], &[]).await;
    dry.is(3, &format!("  to do A GitHub App would be made in your own account at {}, with the permissions contents: write, pull_requests: write, metadata: read, checks: read, statuses: read, actions: read, issues: read, members: read; its webhooks go to {}/; nothing was made\n", place.forge.git(), place.world.ingress));
    let stackless = place.world.run(&["github", "app", "--stack", "other"], &[]).await;
    stackless.refused("There is no stack other in us-east-1.");
    let odd = place.world.run(&["github", "app", "--organization", "a/b"], &[]).await;
    assert_eq!(odd.code, 2, "{}", odd.err);
    // The real GitHub reaches no stack on this machine.
    let real = World::start().await;
    real.run(&["github", "app"], &[]).await.refused("bobbin github app --address https://TUNNEL");
}

#[tokio::test(flavor = "multi_thread")]
async fn check_says_what_the_app_lacks() {
    let place = Place::start().await;
    let identity = place.forge.identity();
    let parameters = vec![("GitHubAppId", identity.client_id.clone())];
    let world = Place::world(&place.forge, parameters.clone()).await;
    let hook = format!("{}/github/webhooks", world.ingress);
    place.forge.set_app_addresses(Some(hook.clone()), vec![], None).unwrap();
    let key = STANDARD.encode(&identity.private_key);
    let keyed = [
        ("GITHUB_PRIVATE_KEY", key.as_str()),
        ("GITHUB_CLIENT_SECRET", &identity.client_secret),
        ("GITHUB_WEBHOOK_SECRET", &identity.webhook_secret),
    ];
    let said = world.run(&["check"], &keyed).await;
    said.holds(&format!(
        "  ok    GitHub: the key of GITHUB_PRIVATE_KEY is that of the app bobbin-laptop (bobbin-laptop) of laptop
  note  GitHub: links to the app need its name; deploy with github_app bobbin-laptop in the parameter Overrides
  ok    GitHub: it is installed at laptop, for all its repositories
  ok    GitHub: the app's webhooks go to {hook}
  ok    GitHub: no webhook of the last three days was lost
"
    ));

    // Of the next event nobody hears.
    let hooks = format!("{}/_control/hooks", place.forge.api());
    let lost = json!({"faults": [{"fault": "lost"}]});
    let armed = client().request(Method::POST, hooks).bearer_auth("control").json(&lost);
    assert!(armed.send().await.unwrap().status().is_success());
    let control = format!("{}/_control/installation", place.forge.api());
    let less = json!({"id": identity.installation, "permissions": {"contents": "read", "metadata": "read"}});
    let granted = client().request(Method::POST, control).bearer_auth("control").json(&less);
    assert!(granted.send().await.unwrap().status().is_success());
    let again = "  note  GitHub: webhooks that were lost: 1, the newest of the event installation (timed out); GitHub sends 1 of them again now\n";
    let deadline = Instant::now() + Duration::from_millis(WAIT_MS_MAX);
    while !world.run(&["check"], &keyed).await.out.contains(again) {
        assert!(Instant::now() < deadline, "the lost webhook is not listed");
    }
    place.forge.set_app_addresses(Some("http://127.0.0.1:9/x".to_owned()), vec![], None).unwrap();
    let said = world.run(&["check"], &keyed[..1]).await;
    said.holds("  WRONG GitHub: laptop has not granted contents: write, pull_requests: write, checks: read, statuses: read, actions: read, issues: read, members: read\n");
    said.holds(&format!("  WRONG GitHub: the app's webhooks go to http://127.0.0.1:9/x\n        In the app's settings, General, Webhook, set it active, with the URL {hook}.\n"));
    said.holds("  note  GitHub: there is no client secret");

    let other = place.world.run(&["check"], &keyed).await;
    other.holds("  note  GitHub: there is an app's key, and the stack does not name the app");
    let keyless = world.run(&["check"], &[]).await;
    keyless.holds("  WRONG GitHub: the stack names an app, but its key is missing\n");
    let unreadable = world.run(&["check"], &[("GITHUB_PRIVATE_KEY", "not-one")]).await;
    unreadable.holds("  WRONG GitHub: the key of GITHUB_PRIVATE_KEY could not be tried: The private key of the GitHub app is missing or cannot be read.");
    let unknown = Place::world(&place.forge, vec![("GitHubAppId", "999".to_owned())]).await;
    unknown.run(&["check"], &keyed).await.holds("  WRONG GitHub: there is no app 999\n");
    place.forge.stop().await;
}
