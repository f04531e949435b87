//! Public configuration, key, organisation and quota.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::accounts::{FIRST, caller, organization};
use crate::api_error::ApiError;
use crate::clock::iso;
use crate::http::{ApiResult, EngineState};
use crate::limits::{
    AUTO_ARCHIVE_MINUTES_MAX, SANDBOXES_MAX, SECRETS_OF_SANDBOX_MAX, SNAPSHOTS_MAX,
};
use crate::record::ORGANIZATION;

/// Reported bound of a sandbox's memory and disk in GiB; not enforced.
const SANDBOX_GIB_MAX: usize = 10;

/// The public configuration, before a client has a key.
pub(super) async fn config(State(engine): EngineState) -> Response {
    Json(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "oidc": { "issuer": "", "clientId": "", "audience": "" },
        "linkedAccountsEnabled": false, "announcements": {}, "environment": "local", "maintananceMode": false,
        "proxyTemplateUrl": "http://127.0.0.1:{{PORT}}", "proxyToolboxUrl": engine.toolbox_url,
        "defaultSnapshot": engine.default_snapshot, "dashboardUrl": "",
        "maxAutoArchiveInterval": AUTO_ARCHIVE_MINUTES_MAX, "rateLimit": {},
    }))
    .into_response()
}

/// The key that was sent; there is one.
pub(super) async fn current_key(State(engine): EngineState) -> Response {
    let at = iso(engine.clock.now_ms());
    Json(json!({
        "name": "laptop", "value": "dtn_********************", "createdAt": at,
        "permissions": engine.key_permissions, "lastUsedAt": at, "expiresAt": null, "userId": ORGANIZATION,
    }))
    .into_response()
}

/// The organisations of the key's owner: one.
pub(super) async fn organizations(State(engine): EngineState) -> Response {
    let at = iso(engine.clock.now_ms());
    Json(json!([{
        "id": ORGANIZATION, "name": "Laptop", "createdBy": ORGANIZATION, "personal": true, "createdAt": at, "updatedAt": at,
        "suspended": false, "suspendedAt": at, "suspensionReason": "", "suspendedUntil": at,
        "suspensionCleanupGracePeriodHours": 0, "maxCpuPerSandbox": 4, "maxMemoryPerSandbox": 8,
        "maxDiskPerSandbox": SANDBOX_GIB_MAX, "secretQuota": 100, "maxSecretsPerSandbox": SECRETS_OF_SANDBOX_MAX,
        "snapshotDeactivationTimeoutMinutes": 20160, "sandboxLimitedNetworkEgress": false, "previewWarningEnabled": false,
        "ssoEnabled": false, "authenticatedRateLimit": null, "sandboxCreateRateLimit": null,
        "sandboxLifecycleRateLimit": null, "experimentalConfig": {}, "otelConfig": null,
        "authenticatedRateLimitTtlSeconds": null, "sandboxCreateRateLimitTtlSeconds": null,
        "sandboxLifecycleRateLimitTtlSeconds": null,
    }]))
    .into_response()
}

/// Access to a storage that nobody writes to here; only the organisation in it is real.
pub(super) async fn push_access() -> Response {
    let organization = organization(caller().unwrap_or(FIRST));
    Json(json!({
        "accessKey": "none", "secret": "none", "sessionToken": "none", "storageUrl": "http://127.0.0.1:9",
        "organizationId": organization, "bucket": "none", "region": "us-east-1",
    }))
    .into_response()
}

/// Usage and quota.
pub(super) async fn usage(
    State(engine): EngineState,
    Path(organization): Path<String>,
) -> ApiResult {
    if organization != ORGANIZATION {
        return Err(ApiError::new(404, "Organization not found"));
    }
    let inner = engine.store.lock();
    let all = || inner.sandboxes.values().map(|entry| &entry.record);
    let snapshots = inner.snapshots.len();
    let mut region = json!({
        "regionId": "us", "sandboxClass": "container", "totalGpuQuota": 0, "currentGpuUsage": 0,
        "totalCpuQuota": SANDBOXES_MAX * 4, "currentCpuUsage": all().map(|one| one.cpu).sum::<i64>(),
        "totalMemoryQuota": SANDBOXES_MAX * 8, "currentMemoryUsage": all().map(|one| one.memory).sum::<i64>(),
        "totalDiskQuota": SANDBOXES_MAX * SANDBOX_GIB_MAX, "currentDiskUsage": all().map(|one| one.disk).sum::<i64>(),
    });
    for unbounded in [
        "maxCpuPerSandbox",
        "maxMemoryPerSandbox",
        "maxDiskPerSandbox",
        "maxDiskPerNonEphemeralSandbox",
        "maxCpuPerGpu",
        "maxMemoryPerGpu",
        "maxDiskPerGpu",
    ] {
        region[unbounded] = Value::Null;
    }
    Ok(Json(json!({
        "regionUsage": [region], "totalSnapshotQuota": SNAPSHOTS_MAX, "currentSnapshotUsage": snapshots,
        "totalVolumeQuota": 0, "currentVolumeUsage": 0,
    }))
    .into_response())
}
