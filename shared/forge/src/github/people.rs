//! GitHub as a person who signed in on its pages.

use async_trait::async_trait;
use bobbin_core::base::secret::Secret;
use bobbin_http::Method;
use serde::Deserialize;
use serde_json::json;

use super::client::{GitHub, PAGE_ITEMS};
use super::repositories::{AccountBody, InstallationBody};
use super::rest::{Call, RestClient, RestCredential, RestError};
use super::token::Right;
use crate::error::{ForgeError, ForgeErrorKind, ForgeResult};
use crate::forge::{Installation, Owner, RepositoryAt, RepositoryName};
use crate::people::{OrganizationMembership, People, Permission, Person, SignIn};

/// An answer of the sign-in: tokens, or an error.
#[derive(Deserialize)]
struct SignInBody {
    #[serde(default)]
    access_token: Secret,
    expires_in: Option<u64>,
    refresh_token: Option<Secret>,
    refresh_token_expires_in: Option<u64>,
    #[serde(default)]
    error: String,
    #[serde(default)]
    error_description: String,
}

#[derive(Deserialize)]
struct InstallationsPage {
    installations: Vec<InstallationBody>,
}

#[derive(Deserialize)]
struct MembershipBody {
    #[serde(default)]
    state: String,
    #[serde(default)]
    role: String,
    organization: Option<AccountBody>,
}

#[derive(Deserialize)]
struct PermissionBody {
    #[serde(default)]
    permission: String,
    user: Option<AccountBody>,
}

impl SignInBody {
    fn tokens(self) -> ForgeResult<SignIn> {
        if self.error.is_empty() && !self.access_token.is_empty() {
            return Ok(SignIn {
                access: self.access_token,
                access_s: self.expires_in,
                refresh: self.refresh_token,
                refresh_s: self.refresh_token_expires_in,
            });
        }
        Err(match self.error.as_str() {
            "bad_verification_code" | "bad_refresh_token" | "unverified_user_email" => {
                let seen =
                    format!("GitHub did not accept the sign-in ({}). Sign in again.", self.error);
                ForgeError::lasting(ForgeErrorKind::SignInEnded, seen)
            }
            error => {
                let seen = format!(
                    "GitHub refused the sign-in ({error}): {}. The operator has to check the app's client id, secret and callback address.",
                    self.error_description
                );
                ForgeError::lasting(ForgeErrorKind::Refused { why: error.to_owned() }, seen)
            }
        })
    }
}

impl PermissionBody {
    fn permission(&self) -> Permission {
        match self.permission.as_str() {
            "admin" => Permission::Admin,
            // Maintainers are told as this.
            "write" => Permission::Write,
            "read" => Permission::Read,
            _ => Permission::None,
        }
    }
}

/// Those of these accounts that may write to the repository.
pub(super) async fn writers(
    rest: &RestClient,
    by: RestCredential<'_>,
    name: &RepositoryName,
    logins: &[String],
) -> Result<Vec<String>, RestError> {
    let mut writers = Vec::new();
    for login in logins {
        let path = ["repos", name.owner(), name.name(), "collaborators", login, "permission"];
        let body: PermissionBody = match rest.read(Call::get(by, &path)).await {
            Ok(body) => body,
            Err(error) if error.status() == Some(404) => continue,
            Err(error) => return Err(error),
        };
        if body.permission() >= Permission::Write {
            writers.push(login.clone());
        }
    }
    Ok(writers)
}

impl GitHub {
    async fn end_of_client(&self, what: &str, access: &Secret) -> ForgeResult<()> {
        let settings = &self.settings;
        let by = RestCredential::Client(&settings.client_id, &settings.client_secret);
        let path = ["applications", &settings.client_id, what];
        let body = json!({"access_token": access.expose()});
        match self.rest.send(Call::sending(by, Method::DELETE, &path, &body)).await {
            Ok(_) => Ok(()),
            // It is not one of the app's any more.
            Err(error) if matches!(error.status(), Some(404 | 422)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

#[async_trait]
impl People for GitHub {
    fn sign_in_page(&self, redirect: &str) -> String {
        let query = [
            ("client_id", self.settings.client_id.as_str()),
            ("redirect_uri", redirect),
            ("allow_signup", "false"),
        ];
        self.rest.page(&["login", "oauth", "authorize"], &query)
    }

    async fn sign_in(&self, code: &str, redirect: &str) -> ForgeResult<SignIn> {
        let form = [
            ("client_id", self.settings.client_id.as_str()),
            ("client_secret", self.settings.client_secret.expose()),
            ("code", code),
            ("redirect_uri", redirect),
        ];
        self.rest.sign_in::<SignInBody>(&form).await?.tokens()
    }

    async fn renew(&self, refresh: &Secret) -> ForgeResult<SignIn> {
        let form = [
            ("client_id", self.settings.client_id.as_str()),
            ("client_secret", self.settings.client_secret.expose()),
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh.expose()),
        ];
        self.rest.sign_in::<SignInBody>(&form).await?.tokens()
    }

    async fn person(&self, access: &Secret) -> ForgeResult<Person> {
        let body: AccountBody =
            self.rest.read(Call::get(RestCredential::Person(access), &["user"])).await?;
        Ok(Person { id: body.id, login: body.login })
    }

    async fn visible_installations(&self, access: &Secret) -> ForgeResult<Vec<Installation>> {
        let call = Call::get(RestCredential::Person(access), &["user", "installations"]);
        let page: InstallationsPage =
            self.rest.read(call.with(&[("per_page", PAGE_ITEMS)])).await?;
        Ok(page.installations.into_iter().map(Installation::from).collect())
    }

    async fn membership(
        &self,
        access: &Secret,
        organization: &Owner,
    ) -> ForgeResult<OrganizationMembership> {
        let path = ["user", "memberships", "orgs", &organization.login];
        let body: MembershipBody =
            match self.rest.read(Call::get(RestCredential::Person(access), &path)).await {
                Ok(body) => body,
                Err(error) if error.status() == Some(404) => {
                    return Ok(OrganizationMembership::None);
                }
                Err(error) => return Err(error.into()),
            };
        // The name may be another organisation's by now.
        if body.organization.is_none_or(|found| found.id != organization.id) {
            return Ok(OrganizationMembership::None);
        }
        Ok(match (body.state.as_str(), body.role.as_str()) {
            ("active", "admin") => OrganizationMembership::Admin,
            ("active", _) => OrganizationMembership::Member,
            _ => OrganizationMembership::None,
        })
    }

    async fn permission(&self, at: &RepositoryAt, person: &Person) -> ForgeResult<Permission> {
        let token = self.token(at, Right::Metadata).await?;
        let name = token.name.as_ref().unwrap_or(&at.name);
        let path =
            ["repos", name.owner(), name.name(), "collaborators", &person.login, "permission"];
        let read = self.rest.read(Call::get(token.by(), &path)).await;
        token.end().await;
        let body: PermissionBody = match read {
            Ok(body) => body,
            Err(error) if error.status() == Some(404) => return Ok(Permission::None),
            Err(error) => return Err(self.told(at, error.into())),
        };
        let permission = body.permission();
        // The name may be another person's by now.
        if body.user.is_none_or(|user| user.id != person.id) {
            return Ok(Permission::None);
        }
        Ok(permission)
    }

    async fn revoke(&self, access: &Secret) -> ForgeResult<()> {
        self.end_of_client("token", access).await
    }

    async fn disconnect(&self, access: &Secret) -> ForgeResult<()> {
        self.end_of_client("grant", access).await
    }
}
