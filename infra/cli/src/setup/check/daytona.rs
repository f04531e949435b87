//! Daytona: whether the key is valid, its permissions, and the quota left for sandboxes.

use bobbin_app::providers::DOCKERFILE;
use bobbin_sandbox::daytona::prepared::{
    ApiKey, Readiness, RegionUsage, SECRETS_PERMISSION, snapshot_name,
};
use bobbin_sandbox::daytona::{Daytona, DaytonaError};

use crate::setup::report::Report;
use crate::target::StackTarget;

pub async fn check(target: &StackTarget, report: &mut Report) {
    let Some(found) = target.key("daytona_api_key").await else {
        if target.overrides().providers.provider != "daytona" {
            return;
        }
        report.wrong(
            "Daytona: no API key, so there can be no sandbox",
            "Set DAYTONA_API_KEY: https://app.daytona.io/dashboard/keys.",
        );
        return;
    };
    let source = found.source;
    let daytona = match target.daytona(&found.value) {
        Ok(daytona) => daytona,
        Err(why) => return report.wrong(&format!("Daytona: {why}"), ""),
    };
    match daytona.current_key().await {
        Ok(key) => permissions(report, &key, source),
        Err(DaytonaError::BadKey) => {
            return report.wrong(
                &format!("Daytona: the API key of {source} is refused"),
                "Create a new one at https://app.daytona.io/dashboard/keys; keys can expire.",
            );
        }
        Err(error) => {
            return report.wrong(
                &format!("Daytona: the API key could not be tried: {error}"),
                "Try again; check --daytona-api if you set it.",
            );
        }
    }
    organization(report, &daytona).await;
    snapshot(target, report, &daytona).await;
}

fn permissions(report: &mut Report, key: &ApiKey, source: &str) {
    let until = match key.expires_at.as_deref() {
        Some(at) => format!("until {at}"),
        None => "forever".to_owned(),
    };
    if !key.may_keep_secrets() {
        report.note(&format!(
            "Daytona: the API key of {source} lacks {SECRETS_PERMISSION}, so the model keys are in the sandboxes' environment, where the agent can read them; create a key with this permission at https://app.daytona.io/dashboard/keys"
        ));
    }
    let missing = key.missing();
    if missing.is_empty() {
        return report.right(&format!(
            "Daytona: the API key of {source} is \"{}\", valid {until}, and has the needed permissions",
            key.name
        ));
    }
    let lacks: Vec<String> = missing.iter().map(|(name, why)| format!("{name} ({why})")).collect();
    report.wrong(
        &format!("Daytona: the API key of {source} is \"{}\", valid {until}, and lacks {}", key.name, lacks.join(", ")),
        "Create one with these permissions at https://app.daytona.io/dashboard/keys; a key's permissions cannot be changed.",
    );
}

/// A key need not be allowed to read organisation and quota; that is no error.
async fn organization(report: &mut Report, daytona: &Daytona) {
    let organizations = match daytona.organizations().await {
        Ok(organizations) => organizations,
        Err(error) => {
            return report.note(&format!("Daytona: the organisation is unknown: {error}"));
        }
    };
    // A key belongs to one organisation, but its owner may be in several, and Daytona does not say which.
    let [organization] = organizations.as_slice() else {
        return report.note(&format!(
            "Daytona: the key's owner is in {} organisations; the dashboard shows the quota of the key's organisation",
            organizations.len()
        ));
    };
    let name = &organization.name;
    if organization.suspended {
        return report.wrong(
            &format!("Daytona: the organisation {name} is suspended, so there can be no sandbox"),
            "The dashboard says why: https://app.daytona.io/dashboard.",
        );
    }
    match daytona.usage(&organization.id).await {
        Ok(usage) => {
            let ours = |region: &&RegionUsage| region.sandbox_class == "container";
            for region in usage.region_usage.iter().filter(ours) {
                quota(report, name, region);
            }
        }
        Err(error) => report
            .note(&format!("Daytona: the organisation is {name}; its quota is unknown: {error}")),
    }
}

fn quota(report: &mut Report, name: &str, region: &RegionUsage) {
    let place = format!("Daytona: in the organisation {name}, region {},", region.region_id);
    match region.room() {
        (0, scarce) => report.wrong(
            &format!("{place} there is no room for another sandbox: {scarce} is used up"),
            "Delete or archive sandboxes, or raise the limits: https://app.daytona.io/dashboard/limits.",
        ),
        (room, scarce) => report.right(&format!("{place} there is room for {room} more sandboxes; {scarce} runs out first")),
    }
}

/// The stack's snapshot must exist.
async fn snapshot(target: &StackTarget, report: &mut Report, daytona: &Daytona) {
    let ours = snapshot_name(DOCKERFILE);
    let Some(named) = target.parameter("DaytonaSnapshot") else {
        if target.stack().await.is_ok() {
            report.note(&format!("Daytona: the stack names no snapshot, so the first sandbox of each day takes minutes to build; bobbin snapshot builds {ours}"));
        }
        return;
    };
    match daytona.observe_snapshot(named).await {
        Ok(Some(found)) if found.readiness() == Readiness::Ready => {
            report.right(&format!("Daytona: the stack's snapshot {named} is ready"));
            if named != ours
                && named.starts_with(bobbin_sandbox::daytona::prepared::SNAPSHOT_PREFIX)
            {
                report.note(&format!("Daytona: it belongs to another version of infra/sandbox, or was built with --daemon; bobbin snapshot builds {ours} without it"));
            }
        }
        Ok(Some(found)) => report.wrong(
            &format!("Daytona: the stack's snapshot {named} is {}", found.state),
            "bobbin snapshot builds or activates it.",
        ),
        Ok(None) => report.wrong(
            &format!("Daytona: the stack names the snapshot {named}, which does not exist"),
            "bobbin snapshot builds one and shows what to deploy.",
        ),
        Err(error) => {
            report.wrong(&format!("Daytona: the snapshot {named} could not be read: {error}"), "")
        }
    }
}
