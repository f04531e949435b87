//! GitHub: whether the key is the app's, what its installations lack, and whether its webhooks come to this stack. Lost
//! ones are sent again.

use bobbin_cloud::secrets::Secret;
use bobbin_forge::Installation;
use bobbin_forge::github::{Addresses, App, GitHub, GitHubSettings, NotTheApp, webhook};

use crate::setup::report::Report;
use crate::target::{FoundSecret, StackTarget};

/// Most installations that are named one by one.
const NAMED_MAX: usize = 20;
/// Most webhooks that one check has sent again: what they hint at is found out by polls too.
const SENT_AGAIN_MAX: usize = 50;

pub async fn check(target: &StackTarget, report: &mut Report) {
    let key = target.key("github_private_key").await;
    let id = target.parameter("GitHubAppId").map(str::to_owned);
    let (key, id) = match (key, id) {
        (None, None) => {
            return report.note("GitHub: no app, so private repositories and pull requests are off; bobbin github app makes one");
        }
        (Some(_), None) => {
            return report.note("GitHub: there is an app's key, and the stack does not name the app: deploy it with GitHubAppId, the app's client id");
        }
        (None, Some(_)) => {
            return report.wrong(
                "GitHub: the stack names an app, but its key is missing",
                "Make a key in the app's settings at GitHub, General, Private keys, and set GITHUB_PRIVATE_KEY to base64 -w0 of the file; or make another app: bobbin github app --anew.",
            );
        }
        (Some(key), Some(id)) => (key, id),
    };
    let overrides = target.overrides().forge;
    let settings = GitHubSettings {
        addresses: Addresses::of(&overrides.github_api).with_pages(&overrides.github_git),
        issuer: id.clone(),
        private_key: key.value.clone(),
        slug: overrides.github_app.clone(),
        client_id: id.clone(),
        client_secret: Secret::default(),
    };
    let github = match GitHub::new(settings) {
        Ok(github) => github,
        Err(why) => {
            return report.wrong(
                &format!("GitHub: github_api of the parameter Overrides: {why}"),
                "Deploy it with another one.",
            );
        }
    };
    match github.app().await {
        Ok(app) => the_app(report, &app, &key, &overrides.github_app),
        Err(why) => return not_the_app(target, report, &why, &key, &id),
    }
    installations(report, &github).await;
    hook(target, report, &github).await;
    secrets(target, report, &id).await;
}

fn not_the_app(
    target: &StackTarget,
    report: &mut Report,
    why: &NotTheApp,
    key: &FoundSecret,
    id: &str,
) {
    let source = key.source;
    match why {
        NotTheApp::Clock => report.wrong(
            "GitHub: it refuses signatures of this machine, because the clock is wrong here",
            "Set the clock by the network, and check again. The functions have Amazon's clock.",
        ),
        NotTheApp::Key => report.wrong(
            &format!("GitHub: the key of {source} is not one of the app {id}"),
            "Make a key in the settings of that app, General, Private keys, and set GITHUB_PRIVATE_KEY to base64 -w0 of the file; or deploy with the GitHubAppId of the key's app.",
        ),
        NotTheApp::Id => report.wrong(
            &format!("GitHub: there is no app {id}"),
            &format!(
                "Deploy with the client id from the app's settings: {}\nOn a GitHub Enterprise Server, check github_api of the parameter Overrides.",
                target.sam_deploy("GitHubAppId=CLIENT_ID")
            ),
        ),
        NotTheApp::Failed(error) => report.wrong(
            &format!("GitHub: the key of {source} could not be tried: {error}"),
            "Try again; check github_api of the parameter Overrides if you set it.",
        ),
    }
}

fn the_app(report: &mut Report, app: &App, key: &FoundSecret, slug: &str) {
    report.right(&format!(
        "GitHub: the key of {} is that of the app {} ({}) of {}",
        key.source,
        app.name,
        app.slug,
        app.owner()
    ));
    let lacks = app.lacks();
    if !lacks.is_empty() {
        report.wrong(
            &format!("GitHub: the app does not ask for {}", lacks.join(", ")),
            "Add them in the app's settings, Permissions & events; each owner has to accept them then.",
        );
    }
    let surplus = app.surplus();
    if !surplus.is_empty() {
        report.note(&format!(
            "GitHub: the app asks for more than needed: {}; remove it in the app's settings, Permissions & events",
            surplus.join(", ")
        ));
    }
    if slug != app.slug {
        report.note(&format!(
            "GitHub: links to the app need its name; deploy with github_app {} in the parameter Overrides",
            app.slug
        ));
    }
}

async fn installations(report: &mut Report, github: &GitHub) {
    let all = match github.installations().await {
        Ok(all) => all,
        Err(error) => {
            return report.wrong(
                &format!("GitHub: the installations could not be listed: {error}"),
                "Try again.",
            );
        }
    };
    if all.is_empty() {
        let install = bobbin_forge::Forge::facts(github).install.to_owned();
        return report.wrong(
            "GitHub: the app is installed nowhere, so it reaches no repository",
            &format!("Install it for the repositories that agents may see: {install}"),
        );
    }
    for one in all.iter().take(NAMED_MAX) {
        installation(report, one);
    }
    if all.len() > NAMED_MAX {
        report.note(&format!("GitHub: {} more installations", all.len() - NAMED_MAX));
    }
}

fn installation(report: &mut Report, one: &Installation) {
    let login = &one.owner.login;
    if one.is_suspended {
        return report.wrong(
            &format!("GitHub: {login} has suspended the installation {}", one.id),
            &format!("Its owner lets it work again: {}", one.page),
        );
    }
    if !one.missing.is_empty() {
        return report.wrong(
            &format!("GitHub: {login} has not granted {}", one.missing.join(", ")),
            &format!("Its owner accepts the app's new permissions: {}", one.page),
        );
    }
    let which = if one.has_all { "all its repositories" } else { "chosen repositories" };
    report.right(&format!("GitHub: it is installed at {login}, for {which}"));
}

async fn hook(target: &StackTarget, report: &mut Report, github: &GitHub) {
    let hook = match github.hook().await {
        Ok(hook) => hook,
        Err(error) => {
            return report
                .note(&format!("GitHub: where the app's webhooks go could not be read: {error}"));
        }
    };
    let Ok(here) = target.ingress().await else { return };
    let here = format!("{}{}", here.trim_end_matches('/'), webhook::PATH);
    let set =
        format!("In the app's settings, General, Webhook, set it active, with the URL {here}.");
    if hook.url.is_empty() {
        return report.note(&format!(
            "GitHub: the app has no webhook, so Bobbin learns late of what changes there. {set}"
        ));
    }
    if hook.url != here {
        return report.wrong(&format!("GitHub: the app's webhooks go to {}", hook.url), &set);
    }
    if !hook.is_json {
        report.wrong(
            "GitHub: the app's webhooks are sent as forms, which Bobbin does not read",
            "In the app's settings, General, Webhook, choose application/json.",
        );
    }
    let is_stored = target.key("github_webhook_secret").await.is_some();
    match (hook.is_signed, is_stored) {
        (true, true) => {
            report.right(&format!("GitHub: the app's webhooks go to {here}"));
            lost_webhooks(report, github).await;
        }
        (false, _) => report.wrong(
            "GitHub: the app's webhooks are not signed, and Bobbin refuses them",
            "Set a secret in the app's settings, General, Webhook, and GITHUB_WEBHOOK_SECRET to the same.",
        ),
        (true, false) => report.wrong(
            "GitHub: there is no webhook secret, so Bobbin refuses the app's webhooks",
            "Set GITHUB_WEBHOOK_SECRET to the secret in the app's settings, General, Webhook; if it is lost, set a new one there.",
        ),
    }
}

/// GitHub sends a webhook once: those of the last three days that did not arrive are sent again.
async fn lost_webhooks(report: &mut Report, github: &GitHub) {
    let lost = match github.lost_webhooks().await {
        Ok(lost) => lost,
        Err(error) => {
            return report.note(&format!("GitHub: lost webhooks could not be listed: {error}"));
        }
    };
    let Some(newest) = lost.first() else {
        return report.right("GitHub: no webhook of the last three days was lost");
    };
    let mut sent = 0;
    for one in lost.iter().take(SENT_AGAIN_MAX) {
        if let Err(error) = github.send_again(one).await {
            report.note(&format!("GitHub: a lost webhook could not be sent again: {error}"));
            break;
        }
        sent += 1;
    }
    report.note(&format!(
        "GitHub: webhooks that were lost: {}, the newest of the event {} ({}); GitHub sends {sent} of them again now",
        lost.len(),
        newest.event,
        newest.why
    ));
}

/// What signing in from the chat needs.
async fn secrets(target: &StackTarget, report: &mut Report, id: &str) {
    if target.key("github_client_secret").await.is_none() {
        report.note("GitHub: there is no client secret (GITHUB_CLIENT_SECRET), so nobody can sign in from the chat");
    } else if id.bytes().all(|byte| byte.is_ascii_digit()) {
        report.note("GitHub: GitHubAppId is the app's id; signing in from the chat needs its client id there");
    }
}
