//! Repositories that are renamed, transferred, archived, under rules or not whole: each is right or told.

use bobbin_app::sandboxes::Moving;
use bobbin_core::protocol::event::Event;
use bobbin_core::records::carried::{Carried, LeftOut};
use bobbin_core::records::publication::{Outgoing, PushEnd};
use reqwest::Method;
use serde_json::json;

use super::forge::Place;
use super::sandbox::Carrier;
use super::{carried, refused};

/// The end of a push of this work, which a script does in the checkout.
async fn pushed(place: &Place, carrier: &Carrier, carried: &Carried, work: &str) -> PushEnd {
    carrier.sh(&format!("{work} && git add . && git commit -q -m Work"));
    let (sandboxes, forge) = (&carrier.sandboxes, &place.forge);
    let read = sandboxes.read_outgoing(forge, carrier.target(), carried, (0, None)).await.unwrap();
    let Event::OutgoingRead(Outgoing::Ready { commit, .. }) = read else { panic!("{read:?}") };
    let moving = Moving { branch: "bobbin/work-1", old: None, new: &commit, follows: None };
    let pushed = sandboxes.push_outgoing(forge, carrier.target(), carried, moving).await.unwrap();
    let Event::Pushed(end) = pushed else { panic!("{pushed:?}") };
    end
}

/// The first line of a refusal.
fn why(end: PushEnd) -> String {
    match end {
        PushEnd::Refused { why } => why.lines().next().unwrap().to_owned(),
        other => panic!("{other:?}"),
    }
}

const WORK: &str = "echo work >work.txt";

#[tokio::test(flavor = "multi_thread")]
async fn renamed_repository_comes_and_is_pushed_to() {
    let place = Place::small().await.filled(1, 100);
    place.ask(Method::PATCH, "", json!({"name": "renamed"})).await;
    let carrier = Carrier::new();
    let (there, _) = carried(carrier.carry(&place).await);
    let end = pushed(&place, &carrier, &there, WORK).await;
    assert_eq!(end, PushEnd::Done { changed: Vec::new() });
}

#[tokio::test(flavor = "multi_thread")]
async fn transferred_repository_is_told() {
    let place = Place::small().await.filled(1, 100);
    let before = Carrier::new();
    let (there, _) = carried(before.carry(&place).await);
    place.ask(Method::POST, "/transfer", json!({"new_owner": "ada"})).await;
    let words = refused(Carrier::new().carry(&place).await);
    let seen = "Bobbin's installation at laptop does not include the repository: ";
    assert!(words.starts_with(seen), "{words}");
    // What a sandbox has, it keeps; nothing more comes out of it.
    before.sh(WORK);
    let read =
        before.sandboxes.read_outgoing(&place.forge, before.target(), &there, (0, None)).await;
    let Ok(Event::OutgoingRead(Outgoing::Refused { why })) = read else { panic!("{read:?}") };
    assert!(why.starts_with(seen), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn archived_repository_is_read_alone() {
    let place = Place::small().await.filled(1, 100);
    place.ask(Method::PATCH, "", json!({"archived": true})).await;
    let carrier = Carrier::new();
    let (there, _) = carried(carrier.carry(&place).await);
    assert_eq!(
        why(pushed(&place, &carrier, &there, WORK).await),
        "The repository is archived, so nothing can be changed in it."
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_refuse_a_push_in_words() {
    let path = json!({"restricted_file_paths": ["work.txt"]});
    let signed = "The repository accepts only signed commits, and an agent's are not signed.";
    for (rule, words) in [
        (json!({"type": "required_signatures"}), signed),
        (json!({"type": "pull_request"}), "A rule of the repository refuses it."),
        (
            json!({"type": "file_path_restriction", "parameters": path}),
            "A rule of the repository refuses it.",
        ),
    ] {
        let place = Place::small().await.filled(1, 100);
        let names = json!({"ref_name": {"include": ["~ALL"], "exclude": []}});
        let body = json!({
            "name": "r", "target": "branch", "enforcement": "active", "conditions": names, "rules": [rule],
        });
        place.ask(Method::POST, "/rulesets", body).await;
        let carrier = Carrier::new();
        let (there, _) = carried(carrier.carry(&place).await);
        assert_eq!(why(pushed(&place, &carrier, &there, WORK).await), words, "{rule}");
    }
}

/// Work goes to a branch of its own, so a protected one stands in no way.
#[tokio::test(flavor = "multi_thread")]
async fn protected_branch_stays_as_it_is() {
    let place = Place::small().await.filled(1, 100);
    let body = json!({
        "required_status_checks": null, "enforce_admins": true, "restrictions": null,
        "required_pull_request_reviews": {"required_approving_review_count": 1},
    });
    place.ask(Method::PUT, "/branches/main/protection", body).await;
    let carrier = Carrier::new();
    let (there, _) = carried(carrier.carry(&place).await);
    let end = pushed(&place, &carrier, &there, WORK).await;
    assert_eq!(end, PushEnd::Done { changed: Vec::new() });
}

#[tokio::test(flavor = "multi_thread")]
async fn pointers_and_submodules_are_named() {
    let place = Place::small().await;
    let oid = "9b439f0ad3b1e8e965955487b72e84045e85fb844392890c7d34ba45b3430c1e";
    let pointer = format!(
        "printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:{oid}\\nsize 12\\n'"
    );
    place.sh(&format!("echo '*.mp4 filter=lfs' >.gitattributes && {pointer} >video.mp4"));
    place.sh(&format!("git update-index --add --cacheinfo 160000,{},lib", "1".repeat(40)));
    // Without the submodule's folder, `git add --all` would take it out again.
    place.sh("git add .gitattributes video.mp4 && git commit -q -m Pointers");
    place.push_past_the_server();
    let carrier = Carrier::new();
    let event = carrier.carry(&place).await;
    let Event::Carried { carried, left_out } = event else { panic!("{event:?}") };
    let (submodules, large) = (vec!["lib".to_owned()], vec!["video.mp4".to_owned()]);
    assert_eq!(*left_out, LeftOut { submodules, large, is_new: true, ..LeftOut::default() });
    let work = format!("{pointer} | sed s/9b43/0000/ >other.mp4");
    assert_eq!(
        why(pushed(&place, &carrier, &carried, &work).await),
        "A file belongs to Git LFS, and Bobbin does not carry what is stored there."
    );
}
