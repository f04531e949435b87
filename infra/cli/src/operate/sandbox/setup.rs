//! `sandbox setup`: a tenant's own keys, like `/sandbox-setup` in the chat: shown, entered on ingress's page through a
//! one-time link, and removed by the worker. No key value passes through this program.

use std::time::{Duration, Instant};

use bobbin_cloud::clock::now_ms;
use bobbin_core::base::ids::{Ms, SandboxKey, Tenant, ThreadKey};
use bobbin_core::base::person::{Membership, Person};
use bobbin_core::records::control::{Control, ControlAction};
use bobbin_core::records::message::{Body, Reply};
use bobbin_core::tenant::keys::Key;
use bobbin_core::tenant::own_keys::{KeyState, OwnKey, OwnKeyRequest};
use bobbin_core::tenant::settings::Settings;
use bobbin_core::tenant::setup_link::{Purpose, SetupLink, link_id, link_token};
use serde::Serialize;

use super::super::arguments::SetupKey;
use super::super::request;
use super::super::stack::Stack;
use crate::operate::named::unread;
use crate::output::{CommandError, ExitStatus, Output};
use crate::table::{Style, table};
use crate::time::{pause, span, when};

/// Poll interval.
const LOOK_MS: u64 = 1_000;
/// How long a new key may take to count, if its provider accepts it.
const TRIED_MS: u64 = 30_000;

#[derive(Serialize)]
struct KeysAnswer {
    tenant: String,
    keys: Vec<KeyLine>,
    /// One-time page for entering a key, if requested.
    link: Option<String>,
    /// `shown`, `done`, `failed`, or `waiting` (not finished within the wait).
    result: &'static str,
}

/// A key in JSON, without its value.
#[derive(Serialize)]
struct KeyLine {
    provider: String,
    /// Distinguishes it from other keys.
    fingerprint: String,
    /// `valid`, `refused` or `unreadable`.
    state: KeyState,
    by: String,
    since_ms: Ms,
    checked_at_ms: Ms,
}

pub async fn run(stack: &Stack, what: &SetupKey) -> Result<Output, CommandError> {
    let tenant = &what.tenant;
    let page = stack.keys_page()?.ok_or_else(|| {
        format!(
            "Tenants cannot store their own keys in this stack. To switch that on: {}",
            stack.sam_deploy("TenantCredentials=yes")
        )
    })?;
    let settings = settings(stack, tenant).await?;
    let Some(provider) = &what.provider else {
        let (text, status) = if settings.own_keys.is_empty() {
            let text = format!(
                "{tenant} has no keys of its own: its sandboxes and models use the operator's."
            );
            (text, ExitStatus::Notice)
        } else {
            (shown(&settings), ExitStatus::Done)
        };
        return output(text, tenant, &settings, None, "shown", status);
    };
    let key = Key::of_tenant(provider).ok_or("There is no such provider.")?;
    if what.remove {
        remove(stack, what, provider, &settings).await
    } else {
        enter(stack, what, key, &page).await
    }
}

async fn settings(stack: &Stack, tenant: &Tenant) -> Result<Settings, CommandError> {
    let settings = stack.store.settings(tenant).await;
    settings.map_err(|e| unread(&e))
}

/// The requester: no platform user.
fn asker(tenant: &Tenant, request: &str) -> (ThreadKey, Person, Membership) {
    let nowhere = SandboxKey::without_thread(tenant, &request.into());
    let (by, membership) = request::operator();
    (nowhere.thread().clone(), by, membership)
}

async fn enter(
    stack: &Stack,
    what: &SetupKey,
    key: Key,
    page: &str,
) -> Result<Output, CommandError> {
    let tenant = &what.tenant;
    let began_ms = now_ms();
    let request = format!("setup-{began_ms}");
    let (thread, by, membership) = asker(tenant, &request);
    let stack_key = stack.stack_key().await?;
    let token = link_token(stack_key.expose(), tenant, &by.name, Purpose::Key(key), &request);
    let id = link_id(&token);
    let link = SetupLink {
        purpose: Purpose::Key(key),
        thread,
        place: None,
        by,
        membership,
        reply: Reply::Nobody,
        until_ms: began_ms + stack.limits.tenant.setup_link_ms,
        sign_in: None,
        secret: None,
    };
    let stored = stack.store.make_link(&id, &link, None).await;
    stored.map_err(|e| unread(&e))?;
    let address = format!("{page}{token}");
    tell!(
        "Enter the {} key on this page within {}. The link works once, for anybody who has it, so do not pass it on.\n{address}",
        key.brand(),
        span(stack.limits.tenant.setup_link_ms)
    );
    let until = Instant::now() + Duration::from_millis(what.wait_ms);
    loop {
        let settings = settings(stack, tenant).await?;
        let own = settings.own_key(key).filter(|own| own.since_ms >= began_ms);
        let entered = stack.store.link(&id).await.map_err(|e| unread(&e))?;
        let entered_at_ms = entered.as_ref().and_then(|link| link.entered_at_ms);
        let is_ours = |own: &&OwnKey| {
            entered.as_ref().and_then(|link| link.sealed.as_ref()) == Some(&own.sealed)
        };
        if let Some(own) = own.filter(is_ours) {
            let text = format!("The {} key is used from now on: {}", key.brand(), own.fingerprint);
            return output(text, tenant, &settings, Some(address), "done", ExitStatus::Done);
        }
        let now_ms = now_ms();
        if entered_at_ms.is_some_and(|at_ms| now_ms >= at_ms + TRIED_MS) {
            let text = format!(
                "A {} key was entered but is not used: its provider does not accept it or does not answer, or it belongs to another account than existing sandboxes. The key used until now stays in use; the worker's log says why.",
                key.brand()
            );
            return output(text, tenant, &settings, Some(address), "failed", ExitStatus::Failed);
        }
        if entered_at_ms.is_none() && (Instant::now() >= until || now_ms >= link.until_ms) {
            let text = format!(
                "No key was entered yet. Check again with: bobbin {} sandbox setup --tenant {tenant}",
                stack.said
            );
            return output(text, tenant, &settings, Some(address), "waiting", ExitStatus::Notice);
        }
        pause(LOOK_MS).await;
    }
}

async fn remove(
    stack: &Stack,
    what: &SetupKey,
    provider: &str,
    settings_before: &Settings,
) -> Result<Output, CommandError> {
    let tenant = &what.tenant;
    if !settings_before.own_keys.contains_key(provider) {
        return Err(CommandError::not_found(format!(
            "{tenant} has no key for {provider}, so nothing was done."
        )));
    }
    let id = format!("setup-{provider}-{}", now_ms());
    let (thread, by, membership) = asker(tenant, &id);
    let control = Control {
        id,
        thread,
        by,
        reply: Reply::Nobody,
        membership,
        want: ControlAction::OwnKey {
            key: OwnKeyRequest::Remove { provider: provider.to_owned() },
        },
    };
    let sent = stack.queues()?.send(&Body::Control(control)).await;
    sent.map_err(|e| format!("{e}. It is unknown whether this was requested: check again."))?;
    let until = Instant::now() + Duration::from_millis(what.wait_ms.min(TRIED_MS));
    loop {
        let settings = settings(stack, tenant).await?;
        if !settings.own_keys.contains_key(provider) {
            let text = "It is removed, and the operator's key is used from now on. Revoke it at its provider too, if nothing else uses it.";
            return output(text.to_owned(), tenant, &settings, None, "done", ExitStatus::Done);
        }
        if Instant::now() >= until {
            let text = format!(
                "It is still there: sandboxes of {tenant} may use it. Destroy them first (bobbin {} sandbox list --tenant {tenant}), then repeat this.",
                stack.said
            );
            return output(text, tenant, &settings, None, "failed", ExitStatus::Failed);
        }
        pause(LOOK_MS).await;
    }
}

fn shown(settings: &Settings) -> String {
    let now_ms = now_ms();
    let row = |(provider, own): (&String, &OwnKey)| {
        [
            provider.clone(),
            own.fingerprint.clone(),
            match own.state {
                KeyState::Valid => "counts",
                KeyState::Refused => "refused: store another one",
                KeyState::Unreadable => "unreadable: store it again",
            }
            .to_owned(),
            when(own.since_ms, now_ms),
            own.by.name.clone(),
            when(own.checked_at_ms, now_ms),
        ]
    };
    let rows: Vec<[String; 6]> = settings.own_keys.iter().map(row).collect();
    let heads = ["PROVIDER", "KEY", "STATE", "STORED", "BY", "CHECKED"];
    table(heads, &rows, Style::of_output())
}

fn output(
    text: String,
    tenant: &Tenant,
    settings: &Settings,
    link: Option<String>,
    result: &'static str,
    status: ExitStatus,
) -> Result<Output, CommandError> {
    let line = |(provider, own): (&String, &OwnKey)| KeyLine {
        provider: provider.clone(),
        fingerprint: own.fingerprint.clone(),
        state: own.state,
        by: own.by.name.clone(),
        since_ms: own.since_ms,
        checked_at_ms: own.checked_at_ms,
    };
    let answer = KeysAnswer {
        tenant: tenant.to_string(),
        keys: settings.own_keys.iter().map(line).collect(),
        link,
        result,
    };
    Output::new(text, &answer, status)
}
