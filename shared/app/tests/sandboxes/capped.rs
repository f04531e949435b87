//! Capped keys at the stand-in of their vendor, for a server of the real OpenCode.

use bobbin_agent::openrouter::{KeyMaker, ListedKey};
use bobbin_app::capped::CappedKeys;
use bobbin_core::tenant::budgets::MicroUsd;
use bobbin_core::tenant::capped_keys::{CappedKeyName, KeyLimit};

use super::*;

const DOLLAR: MicroUsd = 1_000_000;
/// 2099-11-22T20:00:00Z.
const ENDS_MS: Ms = 4_099_060_800_000;

struct Vendor {
    maker: KeyMaker,
    base: String,
}

impl Vendor {
    fn of(scene: &Scene) -> Self {
        let base = scene.model.base_url();
        let maker = KeyMaker::new(&base, Secret::from("canary-manager".to_owned())).unwrap();
        Self { maker, base }
    }

    /// The keys of this sandbox.
    async fn keys(&self, scene: &Scene) -> Vec<ListedKey> {
        let mut all = self.maker.list().await.unwrap();
        all.retain(|key| {
            let name = CappedKeyName::parse(STACK_ID, &key.name);
            name.is_some_and(|name| name.sandbox == scene.sandbox)
        });
        all
    }

    async fn only(&self, scene: &Scene) -> ListedKey {
        let keys = self.keys(scene).await;
        assert_eq!(keys.len(), 1, "{keys:?}");
        keys.into_iter().next().unwrap()
    }

    async fn price(&self, usd_per_million: f64) {
        let http = Http::new(&self.base, AllowedHosts::Public).unwrap();
        let address = format!("{}/price", self.base.trim_end_matches("/v1"));
        let request = http.request(reqwest::Method::PUT, &address).unwrap();
        let body = json!({ "usd_per_million": usd_per_million });
        assert!(http.send(request.json(&body)).await.unwrap().ok());
    }
}

async fn started(scene: &Scene, restart: bool, cap: Option<MicroUsd>) -> Event {
    scene
        .perform(Effect::Sandbox(SandboxEffect::EnsureServer {
            is_new: false,
            restart,
            cap,
            within_ms: 60_000,
            watch: None,
        }))
        .await
}

/// A prompt that gives the key of its server this limit.
async fn sent(scene: &Scene, turn: &str, text: &str, limit: KeyLimit) -> RunAnswer {
    let ids = PromptIds::mint(&scene.thread, &turn.into(), now_ms());
    assert_eq!(tried(scene, (turn, &ids), text, limit).await, Event::Prompted);
    scene.finished(scene.follow(&ids)).await
}

async fn tried(
    scene: &Scene,
    (turn, ids): (&str, &PromptIds),
    text: &str,
    limit: KeyLimit,
) -> Event {
    scene
        .perform(Effect::Agent(AgentEffect::SendPrompt {
            turn: turn.into(),
            run_of: turn.into(),
            agent_session: scene.session.clone().into(),
            ids: ids.clone(),
            text: text.to_owned(),
            model: scene.model_name.clone(),
            agent: None,
            images: Vec::new(),
            sending: FIRST,
            limit: Some(limit),
        }))
        .await
}

pub(super) async fn a_capped_key_lives_and_ends_with_its_servers(scene: &mut Scene) {
    let vendor = Vendor::of(scene);
    let of_stack = |stack_id: &str| {
        let key = Secret::from("canary-manager".to_owned());
        CappedKeys::new(&vendor.base, &key, stack_id).unwrap().map(Arc::new)
    };
    let capping = with_key(scene, &vendor.base, "sk-of-stack").capping(of_stack(STACK_ID));
    let own = std::mem::replace(&mut scene.sandboxes, capping);
    let own_name = std::mem::replace(&mut scene.model_name, format!("openai/{MODEL_ID}"));
    let foreign = CappedKeyName::new(&scene.sandbox, GENERATION, 1).text("another-one");
    vendor.maker.make(&foreign, DOLLAR, ENDS_MS).await.unwrap();

    // Made with its limit, placed, and used.
    scene.perform(Effect::Sandbox(SandboxEffect::Create { snapshot: None, prebuild: None })).await;
    scene.until(SandboxState::Running).await;
    let Event::Capped { until_ms } = started(scene, false, Some(2 * DOLLAR)).await else {
        panic!("it is not capped")
    };
    let first = vendor.only(scene).await;
    assert_eq!(first.limit, Some(2.0));
    is_answered(scene, "capped-1").await;
    assert_eq!(keys_at_the_model(scene).await.last().unwrap(), &first.hash[..16]);
    let inside = environments(scene);
    assert!(!inside.contains("canary-manager") && !inside.contains("sk-of-stack"), "{inside}");
    if scene.provider.confinement() == &Confinement::Bubblewrap {
        assert!(inside.contains("OPENAI_API_KEY=dtn_secret_"), "{inside}");
        assert!(!inside.contains("sk-or-v1-"), "the key is in the sandbox");
    }
    // Nothing is made for a server that runs, and its key is known again.
    assert_eq!(started(scene, false, Some(DOLLAR)).await, Event::Capped { until_ms });
    assert_eq!(vendor.only(scene).await, first);

    // Each turn gets its limit once, beyond what was spent before.
    let answer = sent(scene, "capped-2", "echo: heard", KeyLimit::Dollars(DOLLAR)).await;
    assert_eq!(answer.end, RunEnd::Completed);
    let given = vendor.only(scene).await;
    assert_eq!((given.hash, given.limit), (first.hash.clone(), Some(1.0)));
    vendor.price(1_000_000.0).await;
    let steps = "run: echo one\nrun: echo two\necho: done";
    let answer = sent(scene, "capped-2", steps, KeyLimit::Dollars(DOLLAR)).await;
    assert!(matches!(answer.end, RunEnd::OverBudget { of_key: true, .. }), "{answer:?}");
    let spent = vendor.only(scene).await;
    assert!(spent.limit == Some(1.0) && spent.usage > 1.0, "{spent:?}");
    vendor.price(0.0).await;
    let answer = sent(scene, "capped-3", "echo: goes on", KeyLimit::Dollars(DOLLAR)).await;
    assert_eq!(answer.end, RunEnd::Completed);
    assert_eq!(vendor.only(scene).await.limit, Some(spent.usage + 1.0));
    let answer = sent(scene, "capped-4", "echo: no budget", KeyLimit::Unlimited).await;
    assert_eq!((answer.end, vendor.only(scene).await.limit), (RunEnd::Completed, None));

    // A prompt whose limit cannot be given is not sent.
    let key = Secret::from("canary-manager".to_owned());
    let away = CappedKeys::new("http://127.0.0.1:1/v1", &key, STACK_ID).unwrap().map(Arc::new);
    let without_limits = with_key(scene, &vendor.base, "sk-of-stack").capping(away);
    let limiting = std::mem::replace(&mut scene.sandboxes, without_limits);
    let ids = PromptIds::mint(&scene.thread, &"capped-away".into(), now_ms());
    let limit = KeyLimit::Dollars(DOLLAR);
    let refused = tried(scene, ("capped-away", &ids), "echo: too early", limit).await;
    assert!(matches!(refused, Event::NotSent(Failure::Wait { .. })), "{refused:?}");
    scene.sandboxes = limiting;

    // A worker died between making a key and starting with it: the next start ends that key as well.
    let lost = CappedKeyName::new(&scene.sandbox, GENERATION, now_ms()).text(STACK_ID);
    vendor.maker.make(&lost, DOLLAR, ENDS_MS).await.unwrap();
    assert!(matches!(started(scene, true, Some(DOLLAR)).await, Event::Capped { .. }));
    let second = vendor.only(scene).await;
    assert_ne!(second.hash, first.hash);
    is_answered(scene, "capped-5").await;
    assert_eq!(keys_at_the_model(scene).await.last().unwrap(), &second.hash[..16]);

    // Where there is no room for it, the stack's key is used, and nothing is left.
    if scene.provider.confinement() == &Confinement::Bubblewrap {
        let said = "Secret limit exceeded. Maximum allowed: 100";
        let full =
            json!({"fault": "answer", "operation": "secret", "status": 400, "message": said});
        scene.control("faults", json!({ "faults": [full] })).await;
        assert_eq!(started(scene, true, Some(DOLLAR)).await, Event::Healthy);
        assert!(scene.faults_happened().await);
        assert_eq!(vendor.keys(scene).await, []);
        is_answered(scene, "capped-6").await;
        assert_eq!(keys_at_the_model(scene).await.last(), Some(&digits("sk-of-stack")));
        assert!(matches!(started(scene, true, Some(DOLLAR)).await, Event::Capped { .. }));
    }

    // It ends with its sandbox, and nobody else's does.
    scene.perform(Effect::Sandbox(SandboxEffect::Delete)).await;
    let left: Vec<String> =
        vendor.maker.list().await.unwrap().into_iter().map(|key| key.name).collect();
    assert_eq!(left, [foreign]);
    scene.sandboxes = own;
    scene.model_name = own_name;
}
