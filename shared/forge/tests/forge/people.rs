//! Signing in, and what a person may do.

use bobbin_core::base::secret::Secret;
use bobbin_forge::{
    ForgeErrorKind, OrganizationMembership, Owner, OwnerKind, People as _, Permission, Person,
};
use serde_json::{Value, json};

use crate::world::{CLIENT_SECRET, World, at, reply};

const ACCESS: &str = "ghu_0123456789abcdef";
const REFRESH: &str = "ghr_0123456789abcdef";
const TOKENS: &str = "POST /login/oauth/access_token";

fn access() -> Secret {
    ACCESS.to_owned().into()
}

#[tokio::test]
async fn person_signs_in_on_githubs_page() {
    let world = World::start().await;
    let github = world.github();
    let redirect = "https://bobbin.example/github/back?a=b";
    assert_eq!(
        github.sign_in_page(redirect),
        format!(
            "{}/login/oauth/authorize?client_id=Iv23abc&redirect_uri=https%3A%2F%2Fbobbin.example%2Fgithub%2Fback%3Fa%3Db&allow_signup=false",
            world.base()
        )
    );
    let body = json!({
        "access_token": ACCESS, "expires_in": 28_800, "refresh_token": REFRESH,
        "refresh_token_expires_in": 15_897_600, "scope": "", "token_type": "bearer",
    });
    world.on(TOKENS, reply(200, body));
    world.on(TOKENS, reply(200, json!({"access_token": ACCESS, "token_type": "bearer"})));
    let signed_in = github.sign_in("c0de", redirect).await.unwrap();
    assert_eq!(signed_in.access.expose(), ACCESS);
    assert_eq!(signed_in.refresh.as_ref().unwrap().expose(), REFRESH);
    assert_eq!((signed_in.access_s, signed_in.refresh_s), (Some(28_800), Some(15_897_600)));
    assert!(!format!("{signed_in:?}").contains("0123456789"));
    let seen = world.one(TOKENS);
    assert_eq!(
        seen.form,
        format!(
            "client_id=Iv23abc&client_secret={CLIENT_SECRET}&code=c0de&redirect_uri=https%3A%2F%2Fbobbin.example%2Fgithub%2Fback%3Fa%3Db"
        )
    );
    assert_eq!(seen.headers["accept"], "application/json");
    let renewed = github.renew(&REFRESH.to_owned().into()).await.unwrap();
    assert_eq!(
        (renewed.access_s, renewed.refresh),
        (None, None),
        "an app whose tokens do not expire"
    );
    let form = &world.seen()[1].form;
    assert!(form.ends_with(&format!("grant_type=refresh_token&refresh_token={REFRESH}")), "{form}");
}

#[tokio::test]
async fn refused_sign_ins_are_told_apart() {
    for (code, kind) in [
        ("bad_verification_code", ForgeErrorKind::SignInEnded),
        ("bad_refresh_token", ForgeErrorKind::SignInEnded),
        (
            "incorrect_client_credentials",
            ForgeErrorKind::Refused { why: "incorrect_client_credentials".to_owned() },
        ),
        (
            "redirect_uri_mismatch",
            ForgeErrorKind::Refused { why: "redirect_uri_mismatch".to_owned() },
        ),
        ("", ForgeErrorKind::Refused { why: String::new() }),
    ] {
        let world = World::start().await;
        world.on(TOKENS, reply(200, json!({"error": code, "error_description": "Because."})));
        let error = world.github().sign_in("c0de", "https://bobbin.example").await.unwrap_err();
        assert_eq!(error.kind, kind);
        assert!(error.seen.contains(code), "{error}");
    }
}

#[tokio::test]
async fn person_and_membership_are_read() {
    let world = World::start().await;
    world.on("GET /user", reply(200, json!({"id": 3, "login": "ada", "type": "User"})));
    world.on("GET /user", reply(401, json!({"message": "Bad credentials"})));
    let github = world.github();
    let ada = Person { id: 3, login: "ada".to_owned() };
    assert_eq!(github.person(&access()).await.unwrap(), ada);
    assert_eq!(world.one("GET /user").bearer(), ACCESS);
    let error = github.person(&access()).await.unwrap_err();
    assert_eq!(error.kind, ForgeErrorKind::SignInEnded);

    let acme = Owner { id: 9, login: "acme".to_owned(), kind: OwnerKind::Organization };
    for (status, state, role, id, membership) in [
        (200, "active", "admin", 9, OrganizationMembership::Admin),
        (200, "active", "member", 9, OrganizationMembership::Member),
        (200, "active", "billing_manager", 9, OrganizationMembership::Member),
        (200, "pending", "admin", 9, OrganizationMembership::None),
        // Another organisation has the name by now.
        (200, "active", "admin", 10, OrganizationMembership::None),
        (404, "", "", 9, OrganizationMembership::None),
    ] {
        let world = World::start().await;
        let organization = json!({"id": id, "login": "acme"});
        let body = json!({"state": state, "role": role, "organization": organization, "message": "Not Found"});
        world.on("GET /user/memberships/orgs/acme", reply(status, body));
        assert_eq!(world.github().membership(&access(), &acme).await.unwrap(), membership);
    }
}

#[tokio::test]
async fn installations_that_a_person_sees_are_listed() {
    let world = World::start().await;
    let account = json!({"id": 9, "login": "acme", "type": "Organization"});
    let one = json!({
        "id": 7, "account": account, "permissions": {"metadata": "read"},
        "suspended_at": "2026-01-01T00:00:00Z", "html_url": "https://there.example/7",
    });
    let page = json!({"total_count": 1, "installations": [one]});
    world.on("GET /user/installations", reply(200, page));
    let found = world.github().visible_installations(&access()).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].id, found[0].owner.id, found[0].is_suspended), (7, 9, true));
    assert!(found[0].missing.contains(&"members: read".to_owned()), "{:?}", found[0].missing);
}

#[tokio::test]
async fn permission_is_that_of_the_same_person() {
    let ada = Person { id: 3, login: "ada".to_owned() };
    for (id, permission, may) in [
        (3, "admin", Permission::Admin),
        (3, "write", Permission::Write),
        (3, "read", Permission::Read),
        (3, "none", Permission::None),
        (3, "owner", Permission::None),
        // Somebody else has the name by now.
        (4, "admin", Permission::None),
    ] {
        let world = World::start().await;
        world.minting();
        let user = json!({"id": id, "login": "ada", "type": "User"});
        let body = json!({"permission": permission, "role_name": permission, "user": user});
        world.on("GET /repos/acme/web/collaborators/ada/permission", reply(200, body));
        assert_eq!(world.github().permission(&at(), &ada).await.unwrap(), may);
        let minted = world.one("POST /app/installations/7/access_tokens").body;
        assert_eq!(minted, json!({"repository_ids": [42], "permissions": {"metadata": "read"}}));
        assert_eq!(world.lines().last().unwrap(), "DELETE /installation/token");
    }
    let world = World::start().await;
    world.minting();
    assert_eq!(world.github().permission(&at(), &ada).await.unwrap(), Permission::None);
    assert!(Permission::Write >= Permission::Write && Permission::Read < Permission::Write);
}

#[tokio::test]
async fn tokens_of_a_person_end() {
    let world = World::start().await;
    for status in [204, 422, 404] {
        let body = if status == 204 { Value::Null } else { json!({"message": "No"}) };
        world.on("DELETE /applications/Iv23abc/token", reply(status, body.clone()));
        world.on("DELETE /applications/Iv23abc/grant", reply(status, body));
    }
    let github = world.github();
    for _ in 0..3 {
        github.revoke(&access()).await.unwrap();
        github.disconnect(&access()).await.unwrap();
    }
    for seen in world.seen() {
        assert_eq!(seen.body, json!({"access_token": ACCESS}));
        assert!(seen.headers["authorization"].to_str().unwrap().starts_with("Basic "));
    }
}
