//! Rate limits: a request window per bucket, always in the headers, enforced only after a control call.

use crate::http::{ApiRequest, ApiResponse};
use crate::hub::{Hub, lock};
use crate::ids::now_ms;
use crate::limits::{RATE_WINDOW_MS, RATE_WINDOW_REQUESTS, RATE_WINDOWS_MAX};
use serde_json::json;
use std::sync::atomic::Ordering;

/// The bucket: method and route with its major parameter (channel, guild, webhook).
fn bucket(call: &ApiRequest, path: &[&str]) -> String {
    let shape = path.iter().enumerate().map(|(at, part)| {
        let minor = at > 1 && part.bytes().all(|b| b.is_ascii_digit());
        if minor { "*" } else { part }
    });
    format!("{} {}", call.method, shape.collect::<Vec<_>>().join("/"))
}

/// Counts the request in its window; returns a 429 only if limits are enforced (set by a control call).
pub fn limited(hub: &Hub, call: &ApiRequest, path: &[&str]) -> Option<ApiResponse> {
    let mut rates = lock(&hub.rates);
    if rates.len() > RATE_WINDOWS_MAX {
        rates.clear();
    }
    let window = rates.entry(bucket(call, path)).or_insert((now_ms(), 0));
    if now_ms() - window.0 >= RATE_WINDOW_MS {
        *window = (now_ms(), 0);
    }
    window.1 += 1;
    let over = window.1 > RATE_WINDOW_REQUESTS && hub.enforce_rates.load(Ordering::Relaxed);
    let wait_ms = RATE_WINDOW_MS.saturating_sub(now_ms() - window.0);
    over.then(|| too_many(f64::from(u32::try_from(wait_ms).unwrap_or(u32::MAX)) / 1_000.0))
}

/// The 429 answer.
pub fn too_many(retry_after: f64) -> ApiResponse {
    ApiResponse {
        status: 429,
        body: json!({"message": "You are being rate limited.", "retry_after": retry_after, "global": false}),
        headers: vec![
            ("retry-after", retry_after.ceil().to_string()),
            ("x-ratelimit-scope", "user".to_owned()),
        ],
    }
}

/// Rate-limit headers of an answer.
pub fn headers(hub: &Hub, call: &ApiRequest, path: &[&str]) -> Vec<(&'static str, String)> {
    let key = bucket(call, path);
    let (since, used) = lock(&hub.rates).get(&key).copied().unwrap_or((now_ms(), 1));
    // An unenforced bucket never reads empty: a careful client would wait for no reason.
    let floor = u64::from(!hub.enforce_rates.load(Ordering::Relaxed));
    let remaining = RATE_WINDOW_REQUESTS.saturating_sub(used).max(floor);
    let reset_ms = since + RATE_WINDOW_MS;
    let left_ms = reset_ms.saturating_sub(now_ms());
    let seconds = |ms: u64| format!("{}.{:03}", ms / 1_000, ms % 1_000);
    let name = key.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    vec![
        ("x-ratelimit-limit", RATE_WINDOW_REQUESTS.to_string()),
        ("x-ratelimit-remaining", remaining.to_string()),
        ("x-ratelimit-reset", seconds(reset_ms)),
        ("x-ratelimit-reset-after", seconds(left_ms)),
        ("x-ratelimit-bucket", format!("{name:016x}")),
    ]
}
