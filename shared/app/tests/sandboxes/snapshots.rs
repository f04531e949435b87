//! Snapshots at a provider that has no room for more.

use std::os::unix::fs::PermissionsExt as _;

use bobbin_core::protocol::effect::PrebuildShare;
use bobbin_core::records::sandbox::SnapshotSeen;
use bobbin_sandbox::SnapshotName;
use bobbin_sandbox::labels::StackIdentity;

use super::*;

/// Time for a snapshot, in looks.
const LOOKS_MAX: usize = 200;
/// More than the provider keeps.
const IMAGES_MAX: usize = 100;

/// The name of the snapshot, once it is there.
async fn made(scene: &Scene, at_ms: Ms, share: Option<&PrebuildShare>) -> String {
    for look in 0..LOOKS_MAX {
        let snapshot = SandboxEffect::Snapshot {
            at_ms,
            after_ms: if look == 0 { 0 } else { 100 },
            services: Vec::new(),
            share: share.cloned(),
        };
        match scene.perform(Effect::Sandbox(snapshot)).await {
            Event::SnapshotSeen { seen: SnapshotSeen::UnderWay, .. } => {}
            Event::SnapshotSeen { name, seen: SnapshotSeen::Ready } => return name,
            other => panic!("{other:?}"),
        }
    }
    panic!("the snapshot is never there");
}

/// Fills the provider with images of others.
async fn fill(scene: &Scene) {
    let base = scene.provider.api_url();
    let http = Http::new(&base, AllowedHosts::Public).unwrap();
    for nth in 0..IMAGES_MAX {
        let body = json!({"name": format!("image-{nth}"), "imageName": "debian:12"});
        let request = http.request(reqwest::Method::POST, &format!("{base}/snapshots")).unwrap();
        let request = request.bearer_auth(scene.provider.api_key()).json(&body);
        if !http.send(request).await.unwrap().ok() {
            return;
        }
    }
    panic!("the provider has room for {IMAGES_MAX} images");
}

async fn listed(scene: &Scene) -> Vec<String> {
    let provider = at(&scene.provider, STACK, STACK_ID);
    let snapshots = provider.facts().snapshots.unwrap_or_else(|why| panic!("{why}"));
    snapshots.list().await.unwrap().iter().map(|one| one.name.to_string()).collect()
}

/// Whatever is asked for, nothing begins with what another tenant's builder has made.
pub async fn a_prebuild_of_another_tenant_begins_nothing(scene: &mut Scene) {
    scene.in_a_new_thread();
    let theirs = ThreadKey::discord("2", "1").unwrap().sandbox();
    let stack = StackIdentity { name: STACK, id: STACK_ID };
    let prebuild = SnapshotName::prebuild(stack, &theirs, 1, 1_000).to_string();
    let create = SandboxEffect::Create { snapshot: None, prebuild: Some(prebuild) };
    let refused = Failure::TurnFailed { reason: "There is no such prebuild.".to_owned() };
    assert_eq!(scene.perform(Effect::Sandbox(create)).await, Event::Failed(refused));
    assert_eq!(scene.count(), 0);
}

pub async fn a_persons_snapshot_takes_the_place_of_a_prebuild(scene: &mut Scene) {
    scene.in_a_new_thread();
    let create = SandboxEffect::Create { snapshot: None, prebuild: None };
    scene.perform(Effect::Sandbox(create)).await;
    scene.until(SandboxState::Running).await;
    // What a set-up leaves, writable for the sandbox's own user.
    let folder = scene.home().join(".bobbin");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).unwrap();
    let share = PrebuildShare { most: 5, keeps: Vec::new() };
    let prebuild = made(scene, 1_000, Some(&share)).await;
    fill(scene).await;
    let own = made(scene, 2_000, None).await;
    let there = listed(scene).await;
    assert!(there.contains(&own) && !there.contains(&prebuild), "{there:?}");
    scene.perform(Effect::Sandbox(SandboxEffect::Delete)).await;
}
