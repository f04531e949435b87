//! Installing an app on an account, and changing that.

use std::collections::BTreeMap;

use axum::response::Response;

use super::{PageAnswer, PageRequest, html, see, with_parameters};
use crate::api_error::ApiError;
use crate::limits::ACCOUNTS_MAX;
use crate::record::{App, Installation, TokenOf};
use crate::rest::administrates;
use crate::rest::show::Show;
use crate::rest::tell_of_repositories;
use crate::state::{ForgeState, SharedEngine};
use crate::webhooks::tell_of_installation;

fn by_slug(inner: &ForgeState, slug: &str) -> Result<App, ApiError> {
    let found = inner.apps.values().find(|app| app.slug == slug);
    found.cloned().ok_or_else(ApiError::not_found)
}

/// An app's own page.
pub(super) fn app(visit: &PageRequest, slug: &str) -> PageAnswer {
    let app = by_slug(&visit.engine.lock(), slug)?;
    let at = format!("/apps/{slug}/installations/new");
    let content = format!(
        "<p>{}</p><p>{}</p>",
        html::link(&app.homepage, "Homepage of the app"),
        html::link(&at, &format!("Install {}", app.name))
    );
    Ok(html::page(&app.name, &content))
}

/// What an app may, as a list.
fn rights(app: &App) -> String {
    let rows = app.permissions.iter().map(|(name, level)| {
        format!("<li>{}: {}</li>", html::text(&name.replace('_', " ")), html::text(level))
    });
    format!("<ul>{}</ul>", rows.collect::<String>())
}

/// The repositories of an account, for choosing from.
fn choice(inner: &ForgeState, account: u64, selected: Option<&Vec<u64>>) -> String {
    let own = inner.repositories.values().filter(|one| one.owner == account);
    let boxes = own.map(|one| {
        let is_chosen = selected.is_some_and(|all| all.contains(&one.id));
        format!(
            "<label><input type=\"checkbox\" name=\"repository_ids\" value=\"{}\"{}> {}</label>",
            one.id,
            if is_chosen { " checked" } else { "" },
            html::text(&inner.full_name(one))
        )
    });
    let (all, some) = if selected.is_none() { (" checked", "") } else { ("", " checked") };
    format!(
        "<fieldset><legend>Repositories</legend><label><input type=\"radio\" name=\"selection\" value=\"all\"{all}> All repositories, those to come too</label><label><input type=\"radio\" name=\"selection\" value=\"selected\"{some}> Only these:</label>{}</fieldset>",
        boxes.collect::<String>()
    )
}

pub(super) fn page(visit: &PageRequest, slug: &str) -> PageAnswer {
    let person = match visit.signed_in() {
        Ok(person) => person,
        Err(elsewhere) => return Ok(*elsewhere),
    };
    let inner = visit.engine.lock();
    let app = by_slug(&inner, slug)?;
    let at = format!("/apps/{slug}/installations/new");
    let state = visit.asked("state").unwrap_or_default();
    let own = inner.accounts.values().filter(|one| administrates(&inner, person, one.id));
    let mut content =
        format!("<p>{} asks for these rights:</p>{}", html::text(&app.name), rights(&app));
    for account in own {
        let name = html::text(&account.login);
        content.push_str(&format!("<section aria-label=\"{name}\"><h2>{name}</h2>"));
        if let Some(installed) = inner.installed(app.id, account.id) {
            let show = Show { inner: &inner, at: &visit.engine.addresses };
            let link = html::link(&show.installation_page(installed), "Configure");
            content.push_str(&format!("<p>Installed. {link}</p></section>"));
            continue;
        }
        let fields = [
            html::hidden("target_id", &account.id.to_string()),
            html::hidden("state", state),
            choice(&inner, account.id, None),
            html::button("install", "1", &format!("Install on {}", account.login)),
        ];
        content.push_str(&html::form(&at, &fields.concat()));
        content.push_str("</section>");
    }
    Ok(html::page(&format!("Install {}", app.name), &content))
}

/// The chosen repositories; `None` for all.
fn chosen(
    visit: &PageRequest,
    inner: &ForgeState,
    account: u64,
) -> Result<Option<Vec<u64>>, ApiError> {
    if visit.field("selection") == Some("all") {
        return Ok(None);
    }
    let ids = visit.fields("repository_ids");
    let ids: Vec<u64> = ids.into_iter().filter_map(|id| id.parse().ok()).collect();
    for id in &ids {
        if inner.repository(*id)?.owner != account {
            return Err(ApiError::not_found());
        }
    }
    Ok(Some(ids))
}

pub(super) fn install(visit: &PageRequest, slug: &str) -> PageAnswer {
    let person = match visit.signed_in() {
        Ok(person) => person,
        Err(elsewhere) => return Ok(*elsewhere),
    };
    let engine = &visit.engine;
    let target = visit.field("target_id").and_then(|id| id.parse().ok());
    let target: u64 = target.ok_or_else(ApiError::not_found)?;
    let (app, chosen) = {
        let inner = engine.lock();
        if !administrates(&inner, person, target) {
            return Err(ApiError::not_found());
        }
        (by_slug(&inner, slug)?, chosen(visit, &inner, target)?)
    };
    let id = make(engine, &app, target, person, chosen)?;
    let setup = app.setup.as_ref().map(|setup| {
        let (id, state) = (id.to_string(), visit.field("state").unwrap_or_default());
        let mut more =
            BTreeMap::from([("installation_id", id.as_str()), ("setup_action", "install")]);
        if !state.is_empty() {
            more.insert("state", state);
        }
        with_parameters(setup, &more)
    });
    let at = match setup {
        Some(setup) => setup,
        None => {
            let inner = engine.lock();
            let show = Show { inner: &inner, at: &engine.addresses };
            show.installation_page(inner.installation(id)?)
        }
    };
    Ok(see(&at))
}

/// Installs an app.
pub(crate) fn add(
    inner: &mut ForgeState,
    app: &App,
    account: u64,
    selected: Option<Vec<u64>>,
    now: i64,
) -> Result<u64, ApiError> {
    if inner.installed(app.id, account).is_some() {
        return Err(ApiError::unprocessable("The app is installed on this account"));
    }
    if inner.installations.len() >= ACCOUNTS_MAX {
        return Err(ApiError::full("installations"));
    }
    let id = inner.new_id();
    let installation = Installation {
        id,
        app: app.id,
        account,
        selected,
        permissions: app.permissions.clone(),
        events: app.events.clone(),
        suspended_at: None,
        suspended_by: None,
        created_at: now,
        updated_at: now,
    };
    inner.installations.insert(id, installation);
    Ok(id)
}

/// Installs an app, and tells it.
fn make(
    engine: &SharedEngine,
    app: &App,
    account: u64,
    sender: u64,
    selected: Option<Vec<u64>>,
) -> Result<u64, ApiError> {
    let now = engine.clock.now_ms();
    let id = engine.change(|inner| add(inner, app, account, selected, now))?;
    tell_of_installation(engine, id, sender, "installation", "created", |show, inner| {
        let Ok(installation) = inner.installation(id) else { return Vec::new() };
        let held = inner.repositories.values().filter(|one| installation.holds(one));
        let held: serde_json::Value = held.map(|one| show.short(one)).collect();
        vec![("repositories", held), ("requester", serde_json::Value::Null)]
    });
    Ok(id)
}

/// Ends an installation with its tokens, and tells its app.
pub(crate) fn uninstall(engine: &SharedEngine, id: u64, sender: u64) -> Result<(), ApiError> {
    tell_of_installation(engine, id, sender, "installation", "deleted", |_, _| Vec::new());
    engine.change(|inner| {
        inner.installations.remove(&id).ok_or_else(ApiError::not_found)?;
        let is_its = |of: &TokenOf| matches!(of, TokenOf::Installation { installation, .. } if *installation == id);
        inner.tokens.retain(|_, token| !is_its(&token.of));
        Ok(())
    })
}

/// Suspends an installation or ends the suspension, and tells its app.
pub(crate) fn suspend(
    engine: &SharedEngine,
    id: u64,
    sender: u64,
    is_suspended: bool,
) -> Result<(), ApiError> {
    let now = engine.clock.now_ms();
    engine.change(|inner| {
        let one = inner.installations.get_mut(&id).ok_or_else(ApiError::not_found)?;
        one.suspended_at = is_suspended.then_some(now);
        one.suspended_by = is_suspended.then_some(sender);
        one.updated_at = now;
        Ok(())
    })?;
    let action = if is_suspended { "suspend" } else { "unsuspend" };
    tell_of_installation(engine, id, sender, "installation", action, |_, _| Vec::new());
    Ok(())
}

/// The installation of a page, for a visitor who administrates its account.
fn own(
    visit: &PageRequest,
    id: &str,
) -> Result<Result<(u64, Installation), Box<Response>>, ApiError> {
    let person = match visit.signed_in() {
        Ok(person) => person,
        Err(elsewhere) => return Ok(Err(elsewhere)),
    };
    let inner = visit.engine.lock();
    let found = inner.installation(id.parse().map_err(|_| ApiError::not_found())?)?;
    if !administrates(&inner, person, found.account) {
        return Err(ApiError::not_found());
    }
    Ok(Ok((person, found.clone())))
}

pub(super) fn settings(visit: &PageRequest, id: &str) -> PageAnswer {
    let (_, found) = match own(visit, id)? {
        Ok(own) => own,
        Err(elsewhere) => return Ok(*elsewhere),
    };
    let inner = visit.engine.lock();
    let app = inner.app(found.app)?;
    let login = &inner.account(found.account)?.login;
    let show = Show { inner: &inner, at: &visit.engine.addresses };
    let at = show.installation_page(&found);
    let is_suspended = found.suspended_at.is_some();
    let (word, label) =
        if is_suspended { ("unsuspend", "Unsuspend") } else { ("suspend", "Suspend") };
    let save = html::button("action", "repositories", "Save the choice");
    let content = format!(
        "<p>{} is installed on <strong>{}</strong>{}.</p>{}{}<h2>Danger zone</h2>{}",
        html::text(&app.name),
        html::text(login),
        if is_suspended { ", and suspended" } else { "" },
        rights(app),
        html::form(
            &at,
            &format!("{}{save}", choice(&inner, found.account, found.selected.as_ref()))
        ),
        html::form(
            &at,
            &format!(
                "{}{}",
                html::button("action", word, &format!("{label} this installation")),
                html::button("action", "uninstall", "Uninstall")
            )
        )
    );
    Ok(html::page(&format!("Installation of {}", app.name), &content))
}

pub(super) fn change(visit: &PageRequest, id: &str) -> PageAnswer {
    let (person, found) = match own(visit, id)? {
        Ok(own) => own,
        Err(elsewhere) => return Ok(*elsewhere),
    };
    let engine = &visit.engine;
    match visit.field("action") {
        Some("suspend") => suspend(engine, found.id, person, true)?,
        Some("unsuspend") => suspend(engine, found.id, person, false)?,
        Some("uninstall") => {
            uninstall(engine, found.id, person)?;
            return Ok(see("/"));
        }
        Some("repositories") => choose(visit, &found, person)?,
        _ => return Err(ApiError::bad("The form lacks what to do")),
    }
    Ok(see(&visit.target))
}

fn choose(visit: &PageRequest, found: &Installation, person: u64) -> Result<(), ApiError> {
    let engine = &visit.engine;
    let selected = chosen(visit, &engine.lock(), found.account)?;
    let now = engine.clock.now_ms();
    let (before, after) = engine.change(|inner| {
        let held = |inner: &ForgeState, one: &Installation| -> Vec<u64> {
            let held = inner.repositories.values().filter(|it| one.holds(it));
            held.map(|it| it.id).collect()
        };
        let before = held(inner, found);
        let one = inner.installations.get_mut(&found.id).ok_or_else(ApiError::not_found)?;
        (one.selected, one.updated_at) = (selected, now);
        let one = one.clone();
        Ok((before, held(inner, &one)))
    })?;
    let less = |from: &[u64], other: &[u64]| -> Vec<u64> {
        from.iter().filter(|id| !other.contains(id)).copied().collect()
    };
    for (action, ids) in [("added", less(&after, &before)), ("removed", less(&before, &after))] {
        if !ids.is_empty() {
            tell_of_repositories(engine, found.id, person, action, &ids);
        }
    }
    Ok(())
}
