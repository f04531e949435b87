//! Signing in at the laptop's forge: managers bind owners of repositories, people connect their own accounts, and a
//! stolen link, state or page is worthless.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bobbin_core::records::control::{Control, ControlAction};
use bobbin_core::records::message::Body;
use bobbin_core::records::outcome::Outcome;
use bobbin_core::schema::{self, Shape, UnknownFields};
use bobbin_core::tenant::setup_link::SetupLink;
use bobbin_core::tenant::sign_in::ForgeRequest;
use bobbin_tests::chat::{ChatMessage, Platform};
use bobbin_tests::forge::TestForge;
use bobbin_tests::http;
use bobbin_tests::limits::{ANSWER_MS_MAX, VISIBLE_MS_MAX};
use bobbin_tests::stack::{Options, Stack, quick};
use bobbin_tests::talk::Talk;
use bobbin_tests::wait::eventually;
use bobbin_tests::world::World;
use libtest_mimic::Trial;
use reqwest::{Client, Method, Url};
use serde_json::{Value, json};

use crate::forge::{a_name, card_offers, is_review, offered, opened};
use crate::own_keys::{KeySetup, Page, harmless, page};
use crate::run::trial;
use crate::webhooks::{deleted, delivered, is_logged_again, is_logged_of, signature, times_logged};

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for platform in Platform::ALL {
        let name = |what: &str| format!("embedded::forge_accounts::{}::{what}", platform.word());
        trials.push(trial(&name("manager_binds_an_owner"), async move || bound(platform).await));
        trials.push(trial(&name("person_connects_an_account"), async move || {
            connected(platform).await;
        }));
    }
    trials.push(trial(
        "embedded::forge_accounts::operators_list_counts_below_a_pull_request",
        shut_out,
    ));
    trials.push(trial("embedded::forge_accounts::only_the_signed_in_browser_presses", refused));
    trials.push(trial("embedded::forge_accounts::expired_link_takes_no_sign_in", late));
    trials
}

/// Somebody's browser, signed in at the forge.
struct Browser {
    client: Client,
    web: String,
    cookie: String,
    /// The codes with which the forge sent it back.
    codes: Mutex<Vec<String>>,
}

impl Browser {
    async fn of(world: &World, login: &str) -> Self {
        let (client, web) = (http::client(), world.ready.github_git.clone());
        let password = forge_state(world)["identity"]["password"].as_str().unwrap().to_owned();
        let fields = [("login", login), ("password", &password), ("return_to", "/")];
        let answer = client.post(format!("{web}/login")).form(&fields).send().await.unwrap();
        let cookie = answer.headers()["set-cookie"].to_str().unwrap();
        let cookie = cookie.split(';').next().unwrap().to_owned();
        Self { client, web, cookie, codes: Mutex::default() }
    }

    /// Sends a form to the forge; returns the address to which it leads.
    async fn press(&self, path: &str, fields: &[(&str, &str)]) -> String {
        let request =
            self.client.post(format!("{}{path}", self.web)).header("cookie", &self.cookie);
        let answer = request.form(fields).send().await.unwrap();
        let status = answer.status();
        let location = answer.headers().get("location");
        let location = location.unwrap_or_else(|| panic!("{path}: {status}"));
        location.to_str().unwrap().to_owned()
    }

    /// Follows the page of a link to the forge and answers there; returns the address to which that leads.
    async fn answered(&self, link: &str, answer: &str) -> String {
        let shown = page(self.client.get(link)).await;
        assert_eq!(shown.status, 200, "{shown:?}");
        harmless(&shown);
        let there = between(&shown.text, "<a href=\"", "\"").replace("&amp;", "&");
        let asked: BTreeMap<String, String> =
            Url::parse(&there).unwrap().query_pairs().into_owned().collect();
        let fields = ["client_id", "redirect_uri", "state"].map(|name| (name, &*asked[name]));
        let fields = [&fields[..], &[("authorize", answer)]].concat();
        let location = self.press("/login/oauth/authorize", &fields).await;
        let query = Url::parse(&location).unwrap();
        let code = query.query_pairs().find(|(name, _)| name == "code");
        self.codes.lock().unwrap().extend(code.map(|(_, code)| code.into_owned()));
        location
    }

    /// Comes back from the forge; returns the address of the page for this browser alone.
    async fn back(&self, location: &str) -> String {
        let shown = page(self.client.get(location)).await;
        assert_eq!(shown.status, 200, "{shown:?}");
        harmless(&shown);
        let path = between(&shown.text, "url=", "\"").to_owned();
        Url::parse(location).unwrap().join(&path).unwrap().to_string()
    }

    /// Signs in through a link; returns the address of the page for this browser alone.
    async fn signed_in(&self, link: &str) -> String {
        let location = self.answered(link, "1").await;
        self.back(&location).await
    }

    /// What the page says once the worker has asked the forge.
    async fn found(&self, at: &str) -> Page {
        eventually(VISIBLE_MS_MAX, "the sign-in is looked at", async || {
            let shown = page(self.client.get(at)).await;
            harmless(&shown);
            let is_done = !shown.text.contains("Asking GitHub");
            if is_done { Ok(shown) } else { Err(format!("{shown:?}")) }
        })
        .await
    }

    /// Presses on that page.
    async fn choose(&self, at: &str, choice: &str) -> Page {
        page(self.client.post(at).form(&[("choice", choice)])).await
    }
}

fn forge_state(world: &World) -> Value {
    let state = std::fs::read(world.state_dir.join("forge/state.json")).unwrap();
    serde_json::from_slice(&state).unwrap()
}

fn between<'t>(text: &'t str, before: &str, after: &str) -> &'t str {
    let rest = text.split_once(before).unwrap_or_else(|| panic!("{before}: {text}")).1;
    rest.split_once(after).unwrap().0
}

/// The value of the only button.
fn only_choice(shown: &Page) -> String {
    assert_eq!(shown.text.matches("<button").count(), 1, "{}", shown.text);
    between(&shown.text, "value=\"", "\"").to_owned()
}

impl KeySetup<'_> {
    /// How often the manager was told this.
    async fn times_told(&self, wanted: &str) -> Result<usize, String> {
        let told = self.told(&self.manager()).await?;
        Ok(told.iter().filter(|one| one.contains(wanted)).count())
    }

    /// Waits until the manager is told this once more.
    async fn told_again(&self, before: usize, wanted: &str) {
        eventually(VISIBLE_MS_MAX, wanted, async || match self.times_told(wanted).await? {
            times if times > before => Ok(()),
            times => Err(format!("{times} times")),
        })
        .await;
    }

    async fn bind_link(&self) -> String {
        let github = json!({"provider": "github"});
        let words = self
            .typed(&self.manager(), ("sandbox-setup", &github), "setup github", "works once")
            .await;
        self.address(&words)
    }

    async fn listed(&self, wanted: &str) -> String {
        self.typed(&self.manager(), ("sandbox-setup", &json!({})), "setup", wanted).await
    }

    async fn configured(&self, name: &str, options: &Value, words: &str) {
        let name = format!("sandbox-config {name}");
        self.typed(&self.manager(), (&name, options), &format!("config {words}"), "Done: ").await;
    }

    async fn account(&self, word: &str, wanted: &str) -> String {
        let name = format!("github {word}");
        self.typed(&self.manager(), (&name, &json!({})), &name, wanted).await
    }
}

/// Said once the laptop's organisation is bound.
const BOUND: &str = "Done: laptop is bound to this server or workspace";

/// Binds the laptop's organisation as its administrator.
async fn bind(place: &KeySetup<'_>, ada: &Browser) {
    let before = place.times_told(BOUND).await.unwrap();
    let at = ada.signed_in(&place.bind_link().await).await;
    let choice = only_choice(&ada.found(&at).await);
    let pressed = ada.choose(&at, &choice).await;
    assert!(pressed.text.contains("Done here"), "{pressed:?}");
    place.told_again(before, BOUND).await;
}

/// A task's answer about a private repository.
async fn looked(world: &World, platform: Platform, repository: &str) -> Result<String, String> {
    let choices = [("repo", repository)];
    let (talk, turn) = world.begin_with(platform, &choices, "run: cat README.md").await;
    let outcome = talk.ended(&turn).await.outcome;
    match outcome {
        Outcome::Answered => Ok(talk.answer(&turn).await),
        other => Err(format!("{other:?}")),
    }
}

/// Delivers every processed press again, in a message that no queue knows; returns their number.
async fn presses_come_again(world: &World) -> usize {
    let queue = &world.deployment.control_queue_url;
    let mut presses = 0;
    for item in world.aws.scan(&world.deployment.table).await.unwrap() {
        let text = |name: &str| item[name]["S"].as_str();
        let link = text("thread").and_then(|thread| thread.strip_prefix("setup:"));
        let (Some(link), Some(setup), Some(_)) = (link, text("setup"), text("pressed")) else {
            continue;
        };
        let (made, _) = schema::read::<SetupLink>(Shape::Setup, setup).unwrap();
        let control = Control {
            id: format!("again-{}", &link[..16]),
            thread: made.thread,
            by: made.by,
            reply: made.reply,
            membership: made.membership,
            want: ControlAction::Forge { forge: ForgeRequest::Pressed { link: link.to_owned() } },
        };
        let group = control.thread.to_string();
        let body = Body::Control(control);
        let body = schema::write(Shape::Body, &body, &UnknownFields::default()).unwrap();
        let message = json!({"QueueUrl": queue, "MessageBody": body, "MessageGroupId": group});
        world.aws.call("sqs", "AmazonSQS.SendMessage", &message).await.unwrap();
        presses += 1;
    }
    eventually(VISIBLE_MS_MAX, "they are delivered", async || {
        match world.aws.queued(queue).await? {
            0 => Ok(()),
            left => Err(format!("{left} wait")),
        }
    })
    .await;
    presses
}

async fn bound(platform: Platform) {
    let stack = Stack::start(&Options {
        parameters: json!({"GitHubOwners": ""}),
        ..Options::lean(quick())
    });
    let world = World::of(&stack);
    let forge = TestForge::of(&world.ready);
    let repository = forge.private(&a_name(), &[("README.md", "the secret plan\n")]).await;
    let place = KeySetup::new(&world, platform);
    let sam = world.colleague(platform).await.id;
    let github = json!({"provider": "github"});
    let managers = "Only people who may manage this server or workspace";
    place.typed(&sam, ("sandbox-setup", &github), "setup github", managers).await;
    let all = json!({"repository": "all"});
    place.configured("close", &all, "close all").await;

    let ada = Browser::of(&world, "ada").await;
    bind(&place, &ada).await;
    let bound = place.settings().await.bindings;
    let (owner, binding) = bound.iter().next().unwrap();
    assert_eq!((bound.len(), &*binding.login, binding.is_organization), (1, "laptop", true));
    place.listed("GitHub, laptop (bound ").await;

    // That alone opens nothing.
    let refused = looked(&world, platform, &repository.name).await.unwrap_err();
    assert!(refused.contains("no manager has opened it here"), "{refused}");
    let open = json!({"repository": repository.name});
    place.configured("open", &open, &format!("open {}", repository.name)).await;
    assert!(looked(&world, platform, &repository.name).await.unwrap().contains("the secret plan"));

    // It ends with its installation; a later installation is another one.
    let page = |id: u64| format!("/organizations/laptop/settings/installations/{id}");
    let present = |place: &str| forge_state(&world)["installations"][place]["id"].as_u64();
    assert!(present(&binding.installation.to_string()).is_some());
    ada.press(&page(binding.installation), &[("action", "suspend")]).await;
    place.listed("is suspended by its owner").await;
    ada.press(&page(binding.installation), &[("action", "uninstall")]).await;
    eventually(VISIBLE_MS_MAX, "the binding ends", async || {
        match place.settings().await.bindings.len() {
            0 => Ok(()),
            left => Err(format!("{left} bindings")),
        }
    })
    .await;
    let owner = owner.to_string();
    let install = [("target_id", &*owner), ("selection", "all"), ("install", "1")];
    ada.press("/apps/bobbin-laptop/installations/new", &install).await;
    assert_eq!(place.settings().await.bindings.len(), 0, "another installation is not bound");
    looked(&world, platform, &repository.name).await.unwrap_err();
    bind(&place, &ada).await;
    assert_eq!(place.settings().await.bindings.len(), 1, "replaced, and not doubled");
    place.listed("is usable").await;
    assert!(looked(&world, platform, &repository.name).await.unwrap().contains("the secret plan"));

    // A webhook is only a hint: its claim is false here, and one check without a result ends no binding.
    let bound = place.settings().await.bindings;
    let installation = bound.values().next().unwrap().installation;
    let body = deleted(installation);
    let signature = signature(&world.ready.github_webhook_secret, &body);
    let of = format!("\"installation\":{installation}");
    let seen = ("forge.installation_seen", &*of);
    let before = times_logged(&world, seen.0, seen.1);
    let lost = json!({"fault": "answer", "operation": "apps/get-installation", "status": 404});
    forge.control("faults", &json!({"faults": [lost]})).await;
    for _ in 0..2 {
        assert_eq!(delivered(&world, "installation", &body, &signature).await, 202);
    }
    is_logged_again(&world, seen, before).await;
    assert_eq!(place.settings().await.bindings, bound);

    // A binding that cannot be used is reported with the link that fixes it, and a new name is noticed.
    let id = installation.to_string();
    let rights = forge_state(&world)["installations"][&id]["permissions"].clone();
    let grant = async |permissions: &Value| {
        forge
            .control("installation", &json!({"id": installation, "permissions": permissions}))
            .await;
    };
    grant(&json!({"contents": "read", "metadata": "read"})).await;
    let lacks = place.listed("lacks contents: write, pull_requests: write").await;
    assert!(lacks.contains(&page(installation)), "{lacks}");
    grant(&rights).await;
    forge.control("renamed", &json!({"login": "laptop", "to": "laptop-inc"})).await;
    place.listed("GitHub, laptop-inc (bound ").await;
    let renamed = repository.name.replace("laptop/", "laptop-inc/");
    let open = json!({"repository": renamed});
    place.configured("open", &open, &format!("open {renamed}")).await;
    assert!(looked(&world, platform, &renamed).await.unwrap().contains("the secret plan"));
    forge.control("renamed", &json!({"login": "laptop-inc", "to": "laptop"})).await;
    place.listed("GitHub, laptop (bound ").await;

    // Taken back.
    let remove = json!({"provider": "github", "remove": true, "owner": "Laptop"});
    let words = "setup github remove Laptop";
    place.typed(&sam, ("sandbox-setup", &remove), words, managers).await;
    let removed = "Done: laptop is no longer bound here";
    place.typed(&place.manager(), ("sandbox-setup", &remove), words, removed).await;
    assert_eq!(place.settings().await.bindings.len(), 0);
    looked(&world, platform, &repository.name).await.unwrap_err();
    assert_eq!(presses_come_again(&world).await, 2, "it was pressed before and after");
    assert_eq!(place.settings().await.bindings.len(), 0, "a repeat of a press binds nothing");
    drop(world);
    stack.end().unwrap();
}

async fn refused() {
    let stack = Stack::start(&Options {
        parameters: json!({"GitHubOwners": ""}),
        ..Options::lean(quick())
    });
    let world = World::of(&stack);
    let place = KeySetup::new(&world, Platform::Discord);
    let (ada, grace) = (Browser::of(&world, "ada").await, Browser::of(&world, "grace").await);
    let stranger = http::client();
    let base = world.deployment.ingress.trim_end_matches('/').to_owned();

    // A person who says no at the forge can come again.
    let link = place.bind_link().await;
    let token = link.rsplit('/').next().unwrap();
    let denied = page(stranger.get(ada.answered(&link, "0").await)).await;
    assert!(denied.text.contains("You did not sign in"), "{denied:?}");

    // A member of the organisation is offered nothing, and cannot press what was not offered.
    let at = grace.signed_in(&link).await;
    let shown = grace.found(&at).await;
    assert!(shown.text.contains("signed in as <b>grace</b>"), "{shown:?}");
    assert!(!shown.text.contains("<button"), "{shown:?}");
    let state = forge_state(&world);
    let mut accounts = state["accounts"].as_object().unwrap().values();
    let laptop = accounts.find(|one| one["login"] == "laptop").unwrap()["id"].to_string();
    assert_eq!(grace.choose(&at, &laptop).await.status, 422);

    // The next sign-in through the link replaces that one. A code counts once.
    let location = ada.answered(&link, "1").await;
    let mine = ada.back(&location).await;
    assert_eq!(page(stranger.get(&location)).await.status, 410);
    assert_eq!(only_choice(&ada.found(&mine).await), laptop);
    assert_eq!(grace.choose(&at, &laptop).await.status, 410);

    // The link, its state or a guess lets nobody press on another browser's page.
    let (way, press) = mine.rsplit_once('/').unwrap();
    let other = if press.starts_with('0') { "1" } else { "0" };
    for at in [
        link.clone(),
        format!("{way}/{token}"),
        format!("{way}/{other}{}", &press[1..]),
        format!("{way}/"),
        format!("{base}/setup/{token}/{press}"),
    ] {
        let refused = page(stranger.post(&at).form(&[("choice", &laptop)])).await;
        assert_eq!(refused.status, 410, "{at}");
        assert!(!page(stranger.get(&at)).await.text.contains("Bind laptop"), "{at}");
    }
    for query in [
        format!("code=abc&state={}", "0".repeat(64)),
        "code=abc".to_owned(),
        format!("state={token}"),
        format!("code={}&state={token}", "x".repeat(300)),
    ] {
        let refused = page(stranger.get(format!("{base}/github/signed-in?{query}"))).await;
        assert_eq!(refused.status, 410, "{query}");
    }
    assert_eq!(place.settings().await.bindings.len(), 0);

    // The forge refuses a made-up code.
    let at = place.bind_link().await;
    let state = at.rsplit('/').next().unwrap();
    let made_up = format!("{base}/github/signed-in?code=made-up&state={state}");
    let shown = grace.found(&grace.back(&made_up).await).await;
    assert!(shown.text.contains("That did not work"), "{shown:?}");

    // Another chat's link leads to a page that names that chat and its person.
    let elsewhere = KeySetup::new(&world, Platform::Slack);
    let theirs = ada.signed_in(&elsewhere.bind_link().await).await;
    let shown = ada.found(&theirs).await;
    assert!(shown.text.contains("To the Slack workspace <b>"), "{shown:?}");
    assert!(shown.text.contains(&format!("({})", world.ready.slack_team_id)), "{shown:?}");
    assert_eq!(elsewhere.settings().await.bindings.len(), 0);

    // Pressed once, the link is over.
    let pressed = ada.choose(&mine, &laptop).await;
    assert!(pressed.text.contains("Done here"), "{pressed:?}");
    place.told_again(0, BOUND).await;
    assert!(ada.choose(&mine, &laptop).await.text.contains("Done here"));
    assert_eq!(page(stranger.get(&link)).await.status, 410);
    let late = page(stranger.get(format!("{base}/github/signed-in?code=late&state={token}"))).await;
    assert_eq!(late.status, 410);
    assert_eq!(place.settings().await.bindings.len(), 1);
    drop(world);
    stack.end().unwrap();
}

async fn late() {
    let mut limits = quick();
    limits["setup_link_ms"] = json!(3_000);
    let stack = Stack::start(&Options::lean(limits));
    let world = World::of(&stack);
    let place = KeySetup::new(&world, Platform::Discord);
    let ada = Browser::of(&world, "ada").await;
    let link = place.bind_link().await;
    let location = ada.answered(&link, "1").await;
    eventually(VISIBLE_MS_MAX, "the link is over", async || match place.open(&link).await {
        Page { status: 410, .. } => Ok(()),
        shown => Err(format!("{shown:?}")),
    })
    .await;
    assert_eq!(page(ada.client.get(&location)).await.status, 410);
    assert_eq!(place.settings().await.bindings.len(), 0);
    drop(world);
    stack.end().unwrap();
}

async fn connected(platform: Platform) {
    let stack = Stack::start(&Options::limits(quick()));
    let world = World::of(&stack);
    let forge = TestForge::of(&world.ready);
    let repository = forge.private(&a_name(), &[("README.md", "begin\n")]).await;
    let place = KeySetup::new(&world, platform);
    let linked = json!({"what": "pull-requests-by", "value": "linked"});
    place.configured("default", &linked, "default pull-requests-by linked").await;

    // Without an account nothing is pushed.
    let choices = [("repo", &*repository.name)];
    let (talk, turn) = world.begin_with(platform, &choices, "write: page.txt hello").await;
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    let card = offered(&talk, &turn, "Open pull request").await;
    talk.press(&card, "Open pull request").await;
    let shown = talk.see(ANSWER_MS_MAX, "what would be published is shown", is_review).await;
    talk.press(&shown, "Open draft pull request").await;
    let wanted = "you need a GitHub account of your own";
    talk.see(ANSWER_MS_MAX, wanted, |one| one.text.contains(wanted)).await;
    assert_eq!(repository.pulls().await.len(), 0);

    place.account("show", "You have connected no GitHub account here").await;
    let ada = Browser::of(&world, "ada").await;
    let link = place.address(&place.account("connect", "works once").await);
    connect(&place, &ada, &link).await;
    place.account("show", "Your GitHub account ada is connected").await;
    let reviewed = async |before: &[&str]| {
        talk.press(&card, "Open pull request").await;
        let is_new = |one: &ChatMessage| is_review(one) && !before.contains(&&*one.id);
        talk.see(ANSWER_MS_MAX, "it is shown again", is_new).await
    };
    // One person's account is no other's.
    let again = reviewed(&[&shown.id]).await;
    let refusals = async || {
        let all = talk.messages().await.unwrap();
        all.iter().filter(|one| one.text.contains(wanted)).count()
    };
    let before = refusals().await;
    pressed_by(&world, &talk, &again, "Open draft pull request").await;
    eventually(ANSWER_MS_MAX, "somebody else is refused", async || match refusals().await {
        count if count > before => Ok(()),
        _ => Err("not told".to_owned()),
    })
    .await;
    assert_eq!(repository.pulls().await.len(), 0);
    let last = reviewed(&[&shown.id, &again.id]).await;
    talk.press(&last, "Open draft pull request").await;
    let pull = eventually(ANSWER_MS_MAX, "the pull request is there", async || {
        repository.pulls().await.pop().ok_or_else(|| "none".to_owned())
    })
    .await;
    assert_eq!(pull["user"]["login"], "ada", "{pull}");

    // A webhook says that the person revoked it: the forge is asked.
    if platform == Platform::Discord {
        let people = forge_state(&world)["accounts"].clone();
        let mut people = people.as_object().unwrap().values();
        let person = people.find(|one| one["login"] == "ada").unwrap()["id"].as_u64().unwrap();
        let sender = json!({"id": person, "login": "ada", "type": "User"});
        let body = json!({"action": "revoked", "sender": sender}).to_string();
        let signature = signature(&world.ready.github_webhook_secret, &body);
        let event = "github_app_authorization";
        assert_eq!(delivered(&world, event, &body, &signature).await, 202);
        is_logged_of(&world, "forge.authorization_seen", &format!("\"person\":{person}")).await;
    } else {
        let apps = ada.client.get(format!("{}/settings/apps/authorizations", ada.web));
        let apps = page(apps.header("cookie", &ada.cookie)).await.text;
        let app = between(&apps, "name=\"app\" value=\"", "\"");
        ada.press("/settings/apps/authorizations", &[("app", app)]).await;
        is_logged_of(&world, "linked.ended", "").await;
        place.account("show", "You have connected no GitHub account here").await;
        let before = place.told(&place.manager()).await.unwrap().len();
        world.slack.mention(None, "github connect").await.unwrap();
        let words = place.heard_after(&place.manager(), before, "works once").await;
        connect(&place, &ada, &place.address(&words)).await;
    }
    place.account("show", "Your GitHub account ada is connected").await;

    // A task that she writes below the pull request belongs to the thread.
    let comments = format!("/repos/{}/issues/1/comments", repository.name);
    let body = json!({"body": "/bobbin write: asked.txt yes"});
    let comment = forge.call(Method::POST, &comments, &body).await;
    let asked = "ada asks below pull request #1";
    eventually(ANSWER_MS_MAX, asked, async || {
        world.sweep().await?;
        let all = talk.messages().await?;
        let is_told = all.iter().any(|one| one.text.contains(asked));
        if is_told { Ok(()) } else { Err("not told".to_owned()) }
    })
    .await;
    let task = format!("remark-whole-{}", comment["id"]);
    assert_eq!(talk.ended(&task).await.outcome, Outcome::Answered);
    let seen = format!("/repos/{}/issues/comments/{}", repository.name, comment["id"]);
    eventually(ANSWER_MS_MAX, "the comment is marked as seen", async || {
        world.sweep().await?;
        let now = forge.call(Method::GET, &seen, &Value::Null).await;
        if now["reactions"]["eyes"] == 1 { Ok(()) } else { Err(now.to_string()) }
    })
    .await;

    // Later actions use her account too.
    talk.press(&card_offers(&world, &talk, "Ready for review").await, "Ready for review").await;
    let ready = "marked pull request #1 as ready for review.";
    talk.see(ANSWER_MS_MAX, ready, |one| one.text.contains(ready)).await;
    talk.press(&card_offers(&world, &talk, "Merge").await, "Merge").await;
    let merged = "Pull request #1 was merged";
    talk.see(ANSWER_MS_MAX, merged, |one| one.text.contains(merged)).await;
    let path = format!("/repos/{}/pulls/1", repository.name);
    let pull = forge.call(Method::GET, &path, &Value::Null).await;
    assert_eq!((&pull["merged"], &pull["merged_by"]["login"]), (&json!(true), &json!("ada")));

    place.account("disconnect", "Done: Bobbin has forgotten your GitHub account ada").await;
    place.account("disconnect", "You have connected no GitHub account here").await;
    let allowed = ada.client.get(format!("{}/settings/apps/authorizations", ada.web));
    let allowed = page(allowed.header("cookie", &ada.cookie)).await;
    assert!(allowed.text.contains("You allowed no app to act for you"), "{allowed:?}");
    talk.finish().await;
    drop(world);
    stack.end().unwrap();
}

/// A person who connected an account and was removed from the operator's list starts no task below a pull request.
async fn shut_out() {
    let stack = Stack::start(&Options::lean(quick()));
    let folder = Arc::clone(stack.folder());
    let world = World::of(&stack);
    let forge = TestForge::of(&world.ready);
    let ada = Browser::of(&world, "ada").await;
    let (mut talks, mut others) = (Vec::new(), Vec::new());
    for platform in Platform::ALL {
        let repository = forge.private(&a_name(), &[("README.md", "begin\n")]).await;
        let place = KeySetup::new(&world, platform);
        let link = place.address(&place.account("connect", "works once").await);
        connect(&place, &ada, &link).await;
        let choices = [("repo", &*repository.name)];
        let (talk, turn) = world.begin_with(platform, &choices, "write: page.txt hello").await;
        assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
        let card = offered(&talk, &turn, "Open pull request").await;
        talk.press(&card, "Open pull request").await;
        let shown = talk.see(ANSWER_MS_MAX, "what would be published is shown", is_review).await;
        talk.press(&shown, "Open draft pull request").await;
        opened(&repository, 0).await;
        let task = ask_below(&forge, &repository.name, "write: first.txt yes").await;
        eventually(ANSWER_MS_MAX, "the task is one of the thread", async || {
            world.sweep().await?;
            if talk.has_ended(&task).await { Ok(()) } else { Err("not ended".to_owned()) }
        })
        .await;
        others.push(world.colleague(platform).await.id);
        talks.push((talk, repository.name.clone()));
    }
    stack.end().unwrap();

    let parameters = json!({"AllowedUsers": others.join(",")});
    let stack = Stack::start_in(&folder, &Options { parameters, ..Options::lean(quick()) });
    let world = World::of(&stack);
    let forge = TestForge::of(&world.ready);
    for (talk, repository) in talks {
        let talk = talk.again(&world);
        let task = ask_below(&forge, &repository, "write: second.txt yes").await;
        let path = format!("/repos/{repository}/issues/1/comments");
        let refused = "Bobbin takes tasks here from people who have connected this account";
        eventually(ANSWER_MS_MAX, "the comment is answered", async || {
            world.sweep().await?;
            let all = forge.call(Method::GET, &path, &Value::Null).await.to_string();
            if all.contains(refused) { Ok(()) } else { Err(all) }
        })
        .await;
        assert!(!talk.has_ended(&task).await);
        let told = talk.messages().await.unwrap();
        let told = told.iter().filter(|one| one.text.contains("asks below pull request #1"));
        assert_eq!(told.count(), 1, "the second task was begun");
    }
    stack.end().unwrap();
}

/// Writes a task below the only pull request; returns the turn that it would be.
async fn ask_below(forge: &TestForge, repository: &str, task: &str) -> String {
    let path = format!("/repos/{repository}/issues/1/comments");
    let body = json!({"body": format!("/bobbin {task}")});
    format!("remark-whole-{}", forge.call(Method::POST, &path, &body).await["id"])
}

/// Everything that signing in is for, on both platforms; returns the forge's codes.
pub async fn sign_in_everywhere(world: &World) -> Vec<String> {
    let ada = Browser::of(world, "ada").await;
    for platform in Platform::ALL {
        let place = KeySetup::new(world, platform);
        bind(&place, &ada).await;
        let link = place.address(&place.account("connect", "works once").await);
        connect(&place, &ada, &link).await;
    }
    ada.codes.into_inner().unwrap()
}

/// Connects a browser's account to the place's manager.
async fn connect(place: &KeySetup<'_>, browser: &Browser, link: &str) {
    let connected = "Done: your GitHub account ada is connected";
    let before = place.times_told(connected).await.unwrap();
    let at = browser.signed_in(link).await;
    let shown = browser.found(&at).await;
    assert!(shown.text.contains("Pull requests that <b>"), "{shown:?}");
    assert_eq!(only_choice(&shown), "connect");
    let pressed = browser.choose(&at, "connect").await;
    assert!(pressed.text.contains("Done here"), "{pressed:?}");
    place.told_again(before, connected).await;
}

/// A press by a colleague without a connected account.
async fn pressed_by(world: &World, talk: &Talk<'_>, message: &ChatMessage, label: &str) {
    let (thread, button) = (&talk.thread, message.button(label).unwrap());
    let sam = world.colleague(talk.platform).await.id;
    match talk.platform {
        Platform::Discord => {
            let act = json!({"type": "component", "channel_id": thread.channel, "message_id": message.id, "custom_id": button.id, "user_id": sam});
            world.discord.act(&act).await.unwrap();
        }
        Platform::Slack => {
            let act = json!({"type": "block_action", "channel_id": thread.channel, "message_ts": message.id, "action_id": button.id, "user_id": sam});
            world.slack.act(&act).await.unwrap();
        }
    }
}
