//! The key, the organisation and its quota.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::Answer;
use crate::clock::iso;
use crate::fail::Fail;
use crate::limits::{SANDBOXES_MAX, SNAPSHOTS_MAX};
use crate::record::ORGANIZATION;
use crate::shared::Context;

type Shared = State<Context>;

/// GiB of one sandbox's memory and disk, where this provider has to name a bound that it does not enforce.
const SANDBOX_GIB_MAX: usize = 10;

/// The key that was sent; there is one.
pub(super) async fn current_key(State(shared): Shared) -> Response {
    let at = iso(shared.clock.now_ms());
    Json(json!({
        "name": "laptop", "value": "dtn_********************", "createdAt": at,
        "permissions": shared.key_permissions, "lastUsedAt": at, "expiresAt": null, "userId": ORGANIZATION,
    }))
    .into_response()
}

/// The organisations of the key's owner: one.
pub(super) async fn organizations(State(shared): Shared) -> Response {
    let at = iso(shared.clock.now_ms());
    Json(json!([{
        "id": ORGANIZATION, "name": "Laptop", "createdBy": ORGANIZATION, "personal": true, "createdAt": at, "updatedAt": at,
        "suspended": false, "suspendedAt": at, "suspensionReason": "", "suspendedUntil": at,
        "suspensionCleanupGracePeriodHours": 0, "maxCpuPerSandbox": 4, "maxMemoryPerSandbox": 8,
        "maxDiskPerSandbox": SANDBOX_GIB_MAX, "secretQuota": 100, "maxSecretsPerSandbox": 10,
        "snapshotDeactivationTimeoutMinutes": 20160, "sandboxLimitedNetworkEgress": false, "previewWarningEnabled": false,
        "ssoEnabled": false, "authenticatedRateLimit": null, "sandboxCreateRateLimit": null,
        "sandboxLifecycleRateLimit": null, "experimentalConfig": {}, "otelConfig": null,
        "authenticatedRateLimitTtlSeconds": null, "sandboxCreateRateLimitTtlSeconds": null,
        "sandboxLifecycleRateLimitTtlSeconds": null,
    }]))
    .into_response()
}

/// What is used, and what may be.
pub(super) async fn usage(State(shared): Shared, Path(organization): Path<String>) -> Answer {
    if organization != ORGANIZATION {
        return Err(Fail::new(404, "Organization not found"));
    }
    let inner = shared.store.lock();
    let all = || inner.sandboxes.values().map(|entry| &entry.record);
    let snapshots = inner.shelf.snapshots.len();
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
