//! A server's or workspace's own keys: entered on a page, tried, used for its sandboxes, shown and removed; and links
//! and stored keys that somebody has tampered with.

use std::collections::BTreeSet;

use bobbin_core::base::ids::ThreadKey;
use bobbin_core::records::outcome::Outcome;
use bobbin_core::tenant::settings::Settings;
use bobbin_tests::chat::Platform;
use bobbin_tests::http;
use bobbin_tests::limits::VISIBLE_MS_MAX;
use bobbin_tests::provider::Provider;
use bobbin_tests::stack::{Options, Stack, quick};
use bobbin_tests::talk::Talk;
use bobbin_tests::wait::eventually;
use bobbin_tests::world::World;
use libtest_mimic::Trial;
use reqwest::Client;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};

use crate::run::trial;

/// Keys of an organisation other than the stack's, and of a third one.
const OWN: &str = "dtn_own_key_of_this_tenant_1";
const ROTATED: &str = "dtn_own_key_of_this_tenant_2";
const ELSEWHERE: &str = "dtn_key_of_somebody_elses_account";

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for platform in Platform::ALL {
        let name = |what: &str| format!("embedded::own_keys::{}::{what}", platform.word());
        trials
            .push(trial(&name("tenant_manages_its_own_key"), async move || lived(platform).await));
    }
    trials.push(trial("embedded::own_keys::sealed_key_opens_only_for_tenant", tampered));
    trials.push(trial("embedded::own_keys::expired_setup_link_takes_no_key", late));
    trials.push(trial("embedded::own_keys::discord_form_can_take_key", by_form));
    trials
}

/// A page of ingress as a browser gets it.
#[derive(Debug)]
pub struct Page {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
}

/// One platform of the stack, with a browser for the page that its links lead to.
pub struct KeySetup<'a> {
    world: &'a World,
    platform: Platform,
    browser: Client,
}

impl<'a> KeySetup<'a> {
    pub fn new(world: &'a World, platform: Platform) -> Self {
        Self { world, platform, browser: http::client() }
    }

    /// Sends the command as somebody and waits for the answer that only they see.
    async fn said(&self, user: &str, provider: Option<&str>, remove: bool, wanted: &str) -> String {
        let mut options = json!({});
        if let Some(provider) = provider {
            options["provider"] = json!(provider);
        }
        let mut text = format!("setup {}", provider.unwrap_or_default());
        if remove {
            options["remove"] = json!(true);
            text.push_str(" remove");
        }
        self.typed(user, ("sandbox-setup", &options), &text, wanted).await
    }

    /// Types a command as somebody, with its name and options on Discord and its words on Slack, and waits for the
    /// answer that only they see.
    pub async fn typed(
        &self,
        user: &str,
        (name, options): (&str, &Value),
        words: &str,
        wanted: &str,
    ) -> String {
        let World { discord, slack, .. } = self.world;
        let before = self.told(user).await.unwrap().len();
        match self.platform {
            Platform::Discord => {
                let act =
                    json!({"type": "command", "name": name, "options": options, "user_id": user});
                discord.act(&act).await.unwrap();
            }
            Platform::Slack => {
                let act =
                    json!({"type": "slash", "command": "/bobbin", "text": words, "user_id": user});
                let done = slack.act(&act).await.unwrap();
                assert_eq!(done["status"], 200, "{done}");
            }
        }
        self.heard_after(user, before, wanted).await
    }

    /// The private answers to somebody so far.
    pub async fn told(&self, user: &str) -> Result<Vec<String>, String> {
        let World { discord, slack, ready, .. } = self.world;
        match self.platform {
            Platform::Discord => discord.whispered(&ready.discord_channel_id, user).await,
            Platform::Slack => slack.told(&ready.slack_channel_id, user).await,
        }
    }

    /// The last private answer to somebody, once it contains this.
    pub async fn heard(&self, user: &str, wanted: &str) -> String {
        self.heard_after(user, 0, wanted).await
    }

    /// The same among those after the first `before`.
    pub async fn heard_after(&self, user: &str, before: usize, wanted: &str) -> String {
        eventually(VISIBLE_MS_MAX, &format!("{wanted:?} is told"), async || {
            let told = self.told(user).await?;
            let last = told.iter().skip(before).next_back();
            let last = last.filter(|one| one.contains(wanted)).cloned();
            last.ok_or_else(|| format!("{told:?}"))
        })
        .await
    }

    pub fn manager(&self) -> String {
        match self.platform {
            Platform::Discord => self.world.ready.discord_user_id.clone(),
            Platform::Slack => self.world.ready.slack_user_id.clone(),
        }
    }

    /// A link for a key, as the manager gets it.
    async fn link(&self, provider: &str) -> String {
        let words = self.said(&self.manager(), Some(provider), false, "works once").await;
        self.address(&words)
    }

    /// The address of a page in a chat's text.
    pub fn address(&self, words: &str) -> String {
        let at = words.find("/setup/").unwrap_or_else(|| panic!("{words}"));
        let path: String =
            words[at..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '/').collect();
        format!("{}{path}", self.world.deployment.ingress.trim_end_matches('/'))
    }

    pub async fn open(&self, link: &str) -> Page {
        page(self.browser.get(link)).await
    }

    /// Sends the form as a browser does.
    pub async fn enter(&self, link: &str, key: &str) -> Page {
        page(self.browser.post(link).form(&[("key", key)])).await
    }

    /// Enters a key and waits for its result.
    async fn stored(&self, key: &str, wanted: &str) -> String {
        let link = self.link("daytona").await;
        let page = self.enter(&link, key).await;
        assert_eq!(page.status, 200, "{page:?}");
        self.heard(&self.manager(), wanted).await
    }

    fn thread(&self) -> ThreadKey {
        let ready = &self.world.ready;
        match self.platform {
            Platform::Discord => ThreadKey::discord(&ready.discord_guild_id, "1"),
            Platform::Slack => {
                ThreadKey::slack(&ready.slack_team_id, &ready.slack_channel_id, "1700000000.000100")
            }
        }
        .unwrap()
    }

    fn settings_key(&self) -> Value {
        json!({"thread": {"S": format!("tenant:{}", self.thread().tenant())}, "item": {"S": "settings"}})
    }

    pub async fn settings(&self) -> Settings {
        let body = json!({"TableName": self.world.deployment.table, "ConsistentRead": true, "Key": self.settings_key()});
        let answer =
            self.world.aws.call("dynamodb", "DynamoDB_20120810.GetItem", &body).await.unwrap();
        match answer["Item"]["settings"]["S"].as_str() {
            Some(text) => serde_json::from_str(text).unwrap(),
            None => Settings::default(),
        }
    }

    /// Stores settings directly.
    async fn put(&self, settings: &Settings) {
        let mut item = self.settings_key();
        item["settings"] = json!({"S": serde_json::to_string(settings).unwrap()});
        item["version"] = json!({"N": settings.version.to_string()});
        let body = json!({"TableName": self.world.deployment.table, "Item": item});
        self.world.aws.call("dynamodb", "DynamoDB_20120810.PutItem", &body).await.unwrap();
    }
}

pub async fn page(request: reqwest::RequestBuilder) -> Page {
    let answer = request.send().await.unwrap();
    Page {
        status: answer.status().as_u16(),
        headers: answer.headers().clone(),
        text: answer.text().await.unwrap(),
    }
}

/// A thread's live sandboxes in the account of a key.
async fn live(world: &World, key: &str, thread: &ThreadKey) -> usize {
    let provider = Provider::new(&http::client(), &world.ready.daytona_api, key);
    let found = provider.of(thread).await.unwrap();
    found.iter().filter(|one| one.live()).count()
}

async fn answered(talk: &Talk<'_>, turn: &str) {
    let ended = talk.ended(turn).await;
    assert_eq!(ended.outcome, Outcome::Answered, "{ended:?}");
}

async fn lived(platform: Platform) {
    let stack = Stack::start(&Options::lean(quick()));
    let world = World::of(&stack);
    let place = KeySetup::new(&world, platform);
    let (ada, sam) = (place.manager(), world.colleague(platform).await.id);
    for (key, account) in [(OWN, 2), (ROTATED, 2), (ELSEWHERE, 3)] {
        world.provider.add_key(key, account).await.unwrap();
    }
    place.said(&ada, None, false, "This server or workspace has no keys of its own").await;
    for (provider, remove) in [(None, false), (Some("daytona"), false), (Some("daytona"), true)] {
        place
            .said(&sam, provider, remove, "Only people who may manage this server or workspace")
            .await;
    }
    place.said(&ada, Some("daytona"), true, "has no Daytona key").await;

    // The page: opening it changes nothing, and it loads and sends nothing.
    let link = place.link("daytona").await;
    for _ in 0..2 {
        let shown = place.open(&link).await;
        assert_eq!(shown.status, 200, "{shown:?}");
        harmless(&shown);
        assert!(
            shown.text.contains("<form method=\"post\">")
                && shown.text.contains("type=\"password\"")
        );
        let thread = place.thread();
        let tenant = thread.tenant();
        let (_, id) = tenant.as_str().split_once(':').unwrap();
        let named = format!("<b>Bobbin Workshop</b> ({id})");
        assert!(shown.text.contains(&named), "{}", shown.text);
    }
    let odd = place.enter(&link, "two words").await;
    assert_eq!(odd.status, 422, "{odd:?}");
    let elsewhere =
        format!("{}{}", &link[..link.len() - 1], if link.ends_with('0') { '1' } else { '0' });
    assert_eq!(place.open(&elsewhere).await.status, 410);
    assert_eq!(place.enter(&elsewhere, OWN).await.status, 410);

    // Two people submit it: one is first, and the other one's key is stored nowhere.
    let (one, two) = tokio::join!(place.enter(&link, OWN), place.enter(&link, ELSEWHERE));
    let statuses = BTreeSet::from([one.status, two.status]);
    assert_eq!(statuses, BTreeSet::from([200, 410]), "{one:?} {two:?}");
    for told in [&one, &two] {
        harmless(told);
    }
    place.heard(&ada, "Done: Daytona accepts the key").await;
    let used = place.open(&link).await;
    assert_eq!(used.status, 410, "{used:?}");
    assert!(used.text.contains("Ask for a new one in the chat"), "{}", used.text);
    if one.status == 410 {
        // The third account's key was first; nothing lives there yet, so it can be replaced.
        place.stored(OWN, "Done: Daytona accepts the key").await;
    }
    let first = place.settings().await.own_keys["daytona"].fingerprint.clone();
    let listed = place.said(&ada, None, false, "Daytona: ").await;
    assert!(listed.contains(&format!("`{first}` is in use (stored ")), "{listed}");
    assert!(
        listed.contains("ago by ") && listed.contains("use only your own model keys"),
        "{listed}"
    );

    // New sandboxes are created in that account and stay there.
    let (mut talk, turn) = world.begin(platform, "write: kept.txt kept").await;
    answered(&talk, &turn).await;
    let thread = talk.thread.key.clone();
    assert_eq!(live(&world, OWN, &thread).await, 1);
    assert_eq!(live(&world, &world.ready.daytona_api_key, &thread).await, 0);
    let record = world.session(&thread).await.unwrap();
    assert_eq!(
        (record.sandbox.generation, record.sandbox.spec.credentials.as_deref()),
        (1, Some(first.as_str()))
    );
    place.said(&ada, Some("daytona"), true, "may still use the Daytona key, so it stays").await;

    // A refused key, or one of another account, changes nothing.
    place.stored("dtn_nobody_knows_this_key", "Daytona does not accept this key").await;
    place.stored(ELSEWHERE, "This key belongs to another Daytona account").await;
    assert_eq!(place.settings().await.own_keys["daytona"].fingerprint, first);
    let turn = talk.say("run: cat kept.txt").await;
    answered(&talk, &turn).await;

    // Another key of the same account replaces it, and the sandbox continues.
    place.stored(ROTATED, "Done: Daytona accepts the key").await;
    world.provider.revoke_key(OWN).await.unwrap();
    let second = place.settings().await.own_keys["daytona"].fingerprint.clone();
    assert_ne!(first, second);
    let turn = talk.say("run: cat kept.txt").await;
    answered(&talk, &turn).await;
    assert!(talk.answer(&turn).await.contains("kept"));
    assert_eq!(world.session(&thread).await.unwrap().sandbox.generation, 1);

    // A key that stopped working is reported as such; with another one the thread continues.
    world.provider.revoke_key(ROTATED).await.unwrap();
    place.said(&ada, None, false, "is refused by the provider: store another one").await;
    world.provider.add_key(OWN, 2).await.unwrap();
    place.stored(OWN, "Done: Daytona accepts the key").await;
    let turn = talk.say("run: cat kept.txt").await;
    answered(&talk, &turn).await;
    assert_eq!(world.session(&thread).await.unwrap().sandbox.generation, 1);

    // Nothing lives there any more: the key can be removed, and the stack's is used.
    talk.reset().await;
    eventually(VISIBLE_MS_MAX, "its sandbox is gone", async || {
        match live(&world, OWN, &thread).await {
            0 => Ok(()),
            left => Err(format!("{left} are left")),
        }
    })
    .await;
    place.said(&ada, Some("daytona"), true, "Done: the Daytona key is removed").await;
    let turn = talk.say("echo: in the stack's account").await;
    answered(&talk, &turn).await;
    assert_eq!(live(&world, &world.ready.daytona_api_key, &thread).await, 1);
    let record = world.session(&thread).await.unwrap();
    assert_eq!((record.sandbox.generation, record.sandbox.spec.credentials), (2, None));
    talk.finish().await;
    drop(world);
    stack.end().unwrap();
}

/// On both platforms a key is entered on the page, wrong and right, is tried and listed.
pub async fn enter_and_list(world: &World, key: &str) {
    for platform in Platform::ALL {
        let place = KeySetup::new(world, platform);
        let link = place.link("daytona").await;
        assert_eq!(place.enter(&link, &format!("two words {key}")).await.status, 422);
        assert_eq!(place.enter(&link, key).await.status, 200);
        assert_eq!(place.enter(&link, key).await.status, 410);
        place.heard(&place.manager(), "Done: Daytona accepts the key").await;
        place.said(&place.manager(), None, false, "Daytona: ").await;
    }
}

/// Loads nothing from elsewhere, sends nothing elsewhere, stores nothing, and shows nothing that was entered.
pub fn harmless(page: &Page) {
    let header = |name: &str| {
        page.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    };
    let policy = header("content-security-policy");
    for part in
        ["default-src 'none'", "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"]
    {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("unsafe") && !policy.contains("script-src"), "{policy}");
    assert_eq!(header("referrer-policy"), "no-referrer");
    assert_eq!(header("cache-control"), "no-store");
    assert_eq!(header("content-type"), "text/html; charset=utf-8");
    assert!(
        !page.text.contains("<script")
            && !page.text.contains("src=")
            && !page.text.contains("dtn_"),
        "{}",
        page.text
    );
}

async fn tampered() {
    let stack = Stack::start(&Options::lean(quick()));
    let world = World::of(&stack);
    let (here, there) =
        (KeySetup::new(&world, Platform::Discord), KeySetup::new(&world, Platform::Slack));
    for (key, account) in [(OWN, 2), (ELSEWHERE, 3)] {
        world.provider.add_key(key, account).await.unwrap();
    }
    here.stored(OWN, "Done: Daytona accepts the key").await;
    there.stored(ELSEWHERE, "Done: Daytona accepts the key").await;
    let (own, others) = (here.settings().await, there.settings().await);

    // The other tenant's item in this one's place; this one's under another provider; and each byte changed.
    let copied = Settings { version: own.version, ..others.clone() };
    let mut renamed = own.clone();
    let daytona = renamed.own_keys["daytona"].clone();
    renamed.own_keys.insert("openai".to_owned(), daytona);
    let mut flipped = own.clone();
    flipped.own_keys.get_mut("daytona").unwrap().sealed = changed(&own.own_keys["daytona"].sealed);
    for (what, wrong, brand) in [
        ("copied", copied, "Daytona"),
        ("renamed", renamed, "OpenAI"),
        ("flipped", flipped, "Daytona"),
    ] {
        here.put(&wrong).await;
        let listed = here.said(&here.manager(), None, false, "cannot be unsealed").await;
        assert!(listed.contains(&format!("{brand}: ")), "{what}: {listed}");
        let (talk, turn) = world.begin(Platform::Discord, "echo: hello").await;
        let ended = talk.ended(&turn).await;
        let Outcome::Failed { reason, .. } = &ended.outcome else {
            panic!("{what}: {:?}", ended.outcome);
        };
        assert!(
            reason.contains(&format!(
                "The {brand} key of this server or workspace cannot be decrypted"
            )) && reason.contains("`/sandbox-setup`"),
            "{what}: {reason}"
        );
        let thread = &talk.thread.key;
        for key in [&world.ready.daytona_api_key, OWN, ELSEWHERE] {
            assert_eq!(live(&world, key, thread).await, 0, "{what}");
        }
    }
    // Storing it again repairs it; the other tenant was never affected.
    let mut mended = here.settings().await;
    mended.own_keys.remove("openai");
    here.put(&mended).await;
    here.stored(OWN, "Done: Daytona accepts the key").await;
    for (platform, key) in [(Platform::Discord, OWN), (Platform::Slack, ELSEWHERE)] {
        let (talk, turn) = world.begin(platform, "echo: hello").await;
        answered(&talk, &turn).await;
        assert_eq!(live(&world, key, &talk.thread.key).await, 1);
    }
    drop(world);
    stack.end().unwrap();
}

/// The same base64 text with another letter in its middle.
fn changed(sealed: &str) -> String {
    let at = sealed.len() / 2;
    let other = if &sealed[at..=at] == "A" { "B" } else { "A" };
    format!("{}{other}{}", &sealed[..at], &sealed[at + 1..])
}

async fn late() {
    let mut limits = quick();
    limits["setup_link_ms"] = json!(2_000);
    let stack = Stack::start(&Options::lean(limits));
    let world = World::of(&stack);
    let place = KeySetup::new(&world, Platform::Discord);
    world.provider.add_key(OWN, 2).await.unwrap();
    let link = place.link("daytona").await;
    assert_eq!(place.open(&link).await.status, 200);
    let over =
        eventually(VISIBLE_MS_MAX, "the link is over", async || match place.open(&link).await {
            over @ Page { status: 410, .. } => Ok(over),
            page => Err(format!("{page:?}")),
        })
        .await;
    assert!(over.text.contains("has expired"), "{}", over.text);
    assert_eq!(place.enter(&link, OWN).await.status, 410);
    assert_eq!(place.settings().await.own_keys.len(), 0);

    // The provider is down: the entered key waits for it.
    let away = json!({"fault": "answer", "operation": "list", "status": 500, "for_ms": 3_000});
    world.provider.arm(&away).await.unwrap();
    place.stored(OWN, "Done: Daytona accepts the key").await;
    let own = &place.settings().await.own_keys["daytona"];
    assert!(own.checked_at_ms >= own.since_ms + 1_000, "{own:?}");
    drop(world);
    stack.end().unwrap();
}

async fn by_form() {
    let stack = Stack::start(&Options {
        parameters: json!({"Overrides": r#"{"keys_by_form": true}"#}),
        ..Options::lean(quick())
    });
    let world = World::of(&stack);
    let place = KeySetup::new(&world, Platform::Discord);
    world.provider.add_key(OWN, 2).await.unwrap();
    let sam = world.colleague(Platform::Discord).await.id;
    let setup = |user: &str| json!({"type": "command", "name": "sandbox-setup", "options": {"provider": "daytona"}, "user_id": user});
    world.discord.act(&setup(&sam)).await.unwrap();
    place.heard(&sam, "Only people who may manage this server").await;
    let opened = world.discord.act(&setup(&place.manager())).await.unwrap();
    assert_eq!(opened.outcome["modal"]["custom_id"], "v1:key:daytona", "{}", opened.outcome);
    let send = |key: &str| json!({"type": "modal", "channel_id": world.ready.discord_channel_id, "custom_id": "v1:key:daytona", "fields": {"key": key}});
    world.discord.act(&send("two words")).await.unwrap();
    place.heard(&place.manager(), "That is not a key").await;
    world.discord.act(&setup(&place.manager())).await.unwrap();
    world.discord.act(&send(OWN)).await.unwrap();
    place.heard(&place.manager(), "Done: Daytona accepts the key").await;
    let (talk, turn) = world.begin(Platform::Discord, "echo: hello").await;
    answered(&talk, &turn).await;
    assert_eq!(live(&world, OWN, &talk.thread.key).await, 1);
    drop(world);
    stack.end().unwrap();
}
