//! Webhooks: whose they are, and what is read in them.

use bobbin_forge::github::webhook::{
    Event, HookedBy, InstallationAction, UnreadableHook, UnverifiedHook, parse, signature, verify,
};
use bobbin_forge::{OwnerKind, RepositoryId};
use serde_json::{Value, json};

/// The example of GitHub's documentation ("Validating webhook deliveries").
const SECRET: &str = "It's a Secret to Everybody";
const BODY: &[u8] = b"Hello, World!";
const SIGNATURE: &str = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

#[test]
fn signature_is_githubs() {
    assert_eq!(signature(SECRET, BODY), SIGNATURE);
    assert_eq!(verify(&[SECRET], SIGNATURE, BODY), Ok(()));
    assert_eq!(verify(&["next", SECRET], SIGNATURE, BODY), Ok(()), "one of two secrets");
    assert_eq!(verify(&[SECRET, ""], SIGNATURE, BODY), Ok(()));
    let upper = SIGNATURE.to_uppercase().replace("SHA", "sha");
    assert_eq!(verify(&[SECRET], &upper, BODY), Ok(()), "hex in either case");
    assert_eq!(verify(&[], SIGNATURE, BODY), Err(UnverifiedHook::NoSecret));
    assert_eq!(verify(&["", ""], SIGNATURE, BODY), Err(UnverifiedHook::NoSecret));
    for (secret, signature, body) in [
        ("other", SIGNATURE, BODY),
        (SECRET, SIGNATURE, b"Hello, World?"),
        (SECRET, &SIGNATURE[..SIGNATURE.len() - 2], BODY),
        (SECRET, &SIGNATURE.replace("sha256=", "sha1="), BODY),
        (SECRET, &SIGNATURE.replace("757", "75g"), BODY),
        (SECRET, "sha256=", BODY),
        (SECRET, "", BODY),
    ] {
        assert_eq!(
            verify(&[secret], signature, body),
            Err(UnverifiedHook::Signature),
            "{signature}"
        );
    }
}

fn read(event: &str, body: &Value) -> Result<Event, UnreadableHook> {
    parse(event, body.to_string().as_bytes())
}

#[test]
fn events_are_read_openly() {
    let account = json!({"id": 9, "login": "acme", "type": "Organization", "new": {}});
    for (action, read_as) in [
        ("created", InstallationAction::Created),
        ("deleted", InstallationAction::Deleted),
        ("suspend", InstallationAction::Suspended),
        ("unsuspend", InstallationAction::Unsuspended),
        ("new_permissions_accepted", InstallationAction::PermissionsAccepted),
        ("whatever", InstallationAction::Other),
    ] {
        let body = json!({"action": action, "installation": {"id": 7, "account": account}});
        let Ok(Event::Installation { action, installation: 7, owner }) =
            read("installation", &body)
        else {
            panic!("{body}");
        };
        assert_eq!(action, read_as);
        assert_eq!(
            (owner.id, owner.login.as_str(), owner.kind),
            (9, "acme", OwnerKind::Organization)
        );
    }
    let body = json!({
        "action": "added", "installation": {"id": 7}, "repositories_added": [{"id": 42}, {"id": 43}],
        "repositories_removed": [],
    });
    let added = Event::Repositories {
        installation: 7,
        added: vec![RepositoryId(42), RepositoryId(43)],
        removed: Vec::new(),
    };
    assert_eq!(read("installation_repositories", &body), Ok(added));
    assert_eq!(read("github_app_authorization", &json!({"action": "granted"})), Ok(Event::Other));
    assert_eq!(parse("push", b"not even JSON"), Ok(Event::Other));
    assert_eq!(parse("ping", b"{}"), Ok(Event::Ping));
    for (event, body) in [
        ("installation", json!({"action": "created"})),
        ("installation", json!({"action": "created", "installation": {"id": 7}})),
        ("installation_repositories", json!({"action": "added"})),
        ("github_app_authorization", json!({"action": "revoked"})),
        ("installation", json!([])),
    ] {
        assert_eq!(read(event, &body), Err(UnreadableHook), "{event} {body}");
    }
}

#[test]
fn only_endings_and_changes_are_hints() {
    let hint = |event: &str, body: Value| read(event, &body).unwrap().hint().map(|hint| hint.id);
    let account = json!({"id": 9, "login": "acme", "type": "Organization"});
    let installation = |action: &str| {
        let body = json!({"action": action, "installation": {"id": 7, "account": account}});
        hint("installation", body)
    };
    assert_eq!(installation("deleted").as_deref(), Some("forge-installation-7-deleted"));
    assert_eq!(installation("suspend").as_deref(), Some("forge-installation-7-suspended"));
    for action in ["created", "unsuspend", "new_permissions_accepted", "whatever"] {
        assert_eq!(installation(action), None, "{action}");
    }
    let body = json!({"action": "removed", "installation": {"id": 7}});
    let named = "forge-installation-7-repositories";
    assert_eq!(hint("installation_repositories", body).as_deref(), Some(named));
    let body = json!({"action": "revoked", "sender": {"id": 9, "login": "ada"}});
    let named = "forge-person-9-revoked";
    assert_eq!(hint("github_app_authorization", body).as_deref(), Some(named));
    assert_eq!(hint("push", json!({})), None);
    assert_eq!(hint("ping", json!({})), None);
}

#[test]
fn event_says_only_which_pull_request() {
    let head = |name: &str, id: u64| json!({"ref": name, "sha": "aaaa", "repo": {"id": id}});
    let pull = |head: Value| json!({"repository": {"id": 42}, "pull_request": {"head": head}});
    let suite = |branch: Value| json!({"head_branch": branch, "pull_requests": []});
    let branch = |name: &str, sha: &str| json!({"name": name, "commit": {"sha": sha}});
    let ours = Some(HookedBy::Branch("bobbin/add-a".to_owned()));
    let with = |name: &str, value: Value| {
        let mut body = json!({"repository": {"id": 42}});
        body[name] = value;
        body
    };
    let status =
        |branches: &[Value]| json!({"repository": {"id": 42}, "sha": "aaaa", "branches": branches});
    for (event, body, by) in [
        ("pull_request", pull(head("bobbin/add-a", 42)), &ours),
        ("pull_request_review", pull(head("bobbin/add-a", 42)), &ours),
        ("pull_request_review_comment", pull(head("bobbin/add-a", 42)), &ours),
        ("pull_request_review_thread", pull(head("bobbin/add-a", 42)), &ours),
        ("pull_request", pull(head("add-a", 42)), &None),
        // A fork's branch may have any name, and a fork may be gone.
        ("pull_request", pull(head("bobbin/add-a", 43)), &None),
        ("pull_request", pull(json!({"ref": "bobbin/add-a", "repo": null})), &None),
        ("check_suite", with("check_suite", suite(json!("bobbin/add-a"))), &ours),
        ("check_suite", with("check_suite", suite(Value::Null)), &None),
        (
            "check_run",
            with("check_run", json!({"check_suite": suite(json!("bobbin/add-a"))})),
            &ours,
        ),
        ("workflow_run", with("workflow_run", json!({"head_branch": "bobbin/add-a"})), &ours),
        ("workflow_run", with("workflow_run", json!({"head_branch": "main"})), &None),
        ("status", status(&[branch("main", "aaaa"), branch("bobbin/add-a", "aaaa")]), &ours),
        // The commit is in a branch's history, and is not its head.
        ("status", status(&[branch("bobbin/add-a", "bbbb")]), &None),
        ("status", status(&[]), &None),
        (
            "issue_comment",
            with("issue", json!({"number": 5, "pull_request": {"url": "x"}})),
            &Some(HookedBy::Number(5)),
        ),
        ("issue_comment", with("issue", json!({"number": 5})), &None),
    ] {
        let found = match read(event, &body).unwrap() {
            Event::PullRequest(hooked) => {
                assert_eq!(hooked.repository, RepositoryId(42));
                Some(hooked.by)
            }
            Event::Other => None,
            found => panic!("{event}: {found:?}"),
        };
        assert_eq!(found, *by, "{event} {body}");
    }
    assert_eq!(read("check_run", &json!({"repository": {"id": 42}})), Err(UnreadableHook));
    assert_eq!(read("pull_request", &json!({})), Err(UnreadableHook));
}

/// GitHub's own examples, from the folder beside the one that `BOBBIN_SPECS` names.
#[test]
fn published_examples_are_read() {
    let Some(folder) = bobbin_rules::outside("payloads/github") else { return };
    let mut read = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let Some((_, rest)) = name.split_once('-') else { continue };
        let event = rest.split(['-', '.']).next().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let whole: Value = serde_json::from_str(&text).unwrap();
        let payload = if whole["payload"].is_object() { &whole["payload"] } else { &whole };
        let found = parse(event, payload.to_string().as_bytes());
        let found = found.unwrap_or_else(|error| panic!("{name}: {error}"));
        let id = payload["installation"]["id"].as_u64().unwrap_or_default();
        match (event, found) {
            ("ping", Event::Ping) => {}
            ("installation", Event::Installation { action, installation, owner }) => {
                assert_ne!(action, InstallationAction::Other, "{name}");
                assert_eq!(installation, id);
                assert_eq!(payload["installation"]["account"]["login"], owner.login);
            }
            ("installation_repositories", Event::Repositories { installation, added, removed }) => {
                assert_eq!(installation, id);
                assert!(!added.is_empty() || !removed.is_empty(), "{name}");
            }
            ("github_app_authorization", Event::AuthorizationRevoked { person }) => {
                assert_eq!(payload["sender"]["id"], person.id);
            }
            (_, found) => assert_eq!(found, Event::Other, "{name}"),
        }
        read += 1;
    }
    assert_eq!(read, 24);
}
