//! Discord's rate limits as far as this process knows them: what is left of a bucket and until when, and the number of
//! invalid requests. A bucket is what `X-RateLimit-Bucket` names, for one channel or one token; routes share buckets,
//! and which ones is learnt from the answers. Pure: the caller passes the time.

use std::collections::HashMap;
use std::time::Duration;

use reqwest::header::HeaderMap;
use serde_json::Value;
use tokio::time::Instant;

use super::call::Call;

/// Maximum number of buckets remembered.
const BUCKETS_MAX: usize = 512;
/// Maximum number of routes whose bucket is remembered; there are about a dozen.
const ROUTES_MAX: usize = 64;
/// Discord bans an address for a while after 10,000 invalid requests in ten minutes. A process stops far below that:
/// others may share its address.
const INVALID_MAX: u32 = 1_000;
/// Window in which invalid requests are counted.
const INVALID_WINDOW: Duration = Duration::from_secs(600);
/// Longest refusal that is trusted; then Discord is asked again.
const REFUSED_MS_MAX: u64 = 3_600_000;
/// Assumed duration of a refusal that gives none.
const UNKNOWN_MS: u64 = 2_000;

/// All known limits.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// The bucket of each route.
    routes: HashMap<&'static str, String>,
    buckets: HashMap<String, Bucket>,
    invalid: Option<(Instant, u32)>,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    left: u64,
    until: Instant,
}

/// The scope of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// This bucket, used up by us.
    User,
    /// This bucket, used up by others as well: not our fault.
    Shared,
    /// Every route of the bot.
    Global,
}

impl Pace {
    /// Takes one request from the call's buckets, or returns when it can be made.
    pub(super) fn take(&mut self, call: &Call, now: Instant) -> Result<(), Instant> {
        if let Some((since, count)) = self.invalid {
            if now >= since + INVALID_WINDOW {
                self.invalid = None;
            } else if count >= INVALID_MAX {
                return Err(since + INVALID_WINDOW);
            }
        }
        let keys = [everything(call), self.key(call)];
        let busy = |key: &String| {
            let bucket = self.buckets.get(key)?;
            (bucket.left == 0 && bucket.until > now).then_some(bucket.until)
        };
        if let Some(until) = keys.iter().filter_map(busy).max() {
            return Err(until);
        }
        for key in &keys {
            if let Some(bucket) = self.buckets.get_mut(key) {
                bucket.left = bucket.left.saturating_sub(1);
            }
        }
        Ok(())
    }

    /// Learns from an answer's headers, and counts it if it was invalid.
    pub(super) fn note(&mut self, call: &Call, status: u16, headers: &HeaderMap, now: Instant) {
        if let Some(bucket) = text(headers, "x-ratelimit-bucket")
            && (self.routes.len() < ROUTES_MAX || self.routes.contains_key(call.name))
        {
            self.routes.insert(call.name, bucket.to_owned());
        }
        let left = number(headers, "x-ratelimit-remaining");
        let seconds = number(headers, "x-ratelimit-reset-after");
        if let (Some(left), Some(seconds)) = (left, seconds) {
            // Another call in flight may not be included in this answer, but the next one will include it.
            self.set(self.key(call), left as u64, milliseconds(seconds), now);
        }
        let shared = text(headers, "x-ratelimit-scope") == Some("shared");
        let counted = match status {
            401 | 403 => true,
            429 => !shared,
            // Deleted webhooks that are requested again and again.
            404 => call.by_token,
            _ => false,
        };
        if counted {
            let (since, count) = self.invalid.unwrap_or((now, 0));
            self.invalid = Some((since, count.saturating_add(1)));
            if count + 1 == INVALID_MAX {
                tracing::error!(
                    event = "discord.halted",
                    route = call.name,
                    "discord: too many requests were invalid; none is made for ten minutes"
                );
            }
        }
    }

    /// Learns from a 429; returns how long it lasts, in milliseconds, and its scope.
    pub(super) fn refused(
        &mut self,
        call: &Call,
        said: &Value,
        headers: &HeaderMap,
        now: Instant,
    ) -> (u64, Scope) {
        let scope = match text(headers, "x-ratelimit-scope") {
            Some("shared") => Scope::Shared,
            Some("global") => Scope::Global,
            _ if said["global"] == true => Scope::Global,
            _ if text(headers, "x-ratelimit-global") == Some("true") => Scope::Global,
            _ => Scope::User,
        };
        let in_body = said["retry_after"].as_f64().filter(|s| usable(*s));
        let in_header = number(headers, "retry-after");
        let seconds = in_body.into_iter().chain(in_header).reduce(f64::max);
        let after_ms = seconds.map_or(UNKNOWN_MS, milliseconds).min(REFUSED_MS_MAX);
        let key = match scope {
            Scope::Global => everything(call),
            Scope::User | Scope::Shared => self.key(call),
        };
        self.set(key, 0, after_ms, now);
        (after_ms, scope)
    }

    fn key(&self, call: &Call) -> String {
        let bucket = self.routes.get(call.name).map_or(call.name, String::as_str);
        format!("{bucket} {}", call.major)
    }

    fn set(&mut self, key: String, left: u64, after_ms: u64, now: Instant) {
        if self.buckets.len() >= BUCKETS_MAX {
            self.buckets.retain(|_, bucket| bucket.until > now);
        }
        if self.buckets.len() >= BUCKETS_MAX {
            self.buckets.clear();
        }
        if let Some(until) = now.checked_add(Duration::from_millis(after_ms)) {
            self.buckets.insert(key, Bucket { left, until });
        }
    }
}

/// The limit over all routes; calls by token do not count towards the bot's.
fn everything(call: &Call) -> String {
    if call.by_token {
        "all routes of tokens".to_owned()
    } else {
        "all routes of the bot".to_owned()
    }
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

fn number(headers: &HeaderMap, name: &str) -> Option<f64> {
    text(headers, name)?.parse().ok().filter(|n| usable(*n))
}

fn usable(number: f64) -> bool {
    number.is_finite() && number >= 0.0
}

fn milliseconds(seconds: f64) -> u64 {
    (seconds * 1000.0).ceil() as u64
}

#[cfg(test)]
mod tests {
    use reqwest::Method;
    use serde_json::json;

    use super::*;

    fn call(name: &'static str, major: &str, by_token: bool) -> Call {
        Call { name, method: Method::POST, path: String::new(), major: major.to_owned(), by_token }
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let parsed = pairs
            .iter()
            .map(|(name, value)| (name.parse().expect("a name"), value.parse().expect("a value")));
        parsed.collect()
    }

    fn left(remaining: &str, seconds: &str) -> HeaderMap {
        headers(&[
            ("x-ratelimit-bucket", "abcd"),
            ("x-ratelimit-remaining", remaining),
            ("x-ratelimit-reset-after", seconds),
        ])
    }

    #[test]
    fn bucket_routes_share_limit_per_channel() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        let (make, edit) = (call("make", "30", false), call("edit", "30", false));
        pace.note(&make, 200, &left("1", "2.5"), now);
        pace.note(&edit, 200, &left("1", "2.5"), now);
        assert_eq!(pace.take(&edit, now), Ok(()));
        let until = now + Duration::from_millis(2_500);
        assert_eq!(pace.take(&make, now), Err(until));
        assert_eq!(pace.take(&call("make", "31", false), now), Ok(()));
        assert_eq!(pace.take(&make, until), Ok(()));
    }

    #[test]
    fn global_limit_holds_only_bot_routes() {
        for (said, given) in [
            (json!({"retry_after": 1.5, "global": true}), headers(&[])),
            (json!({"retry_after": 1.5}), headers(&[("x-ratelimit-scope", "global")])),
            (Value::Null, headers(&[("x-ratelimit-global", "true"), ("retry-after", "1.5")])),
        ] {
            let (mut pace, now) = (Pace::default(), Instant::now());
            let refused = pace.refused(&call("make", "30", false), &said, &given, now);
            assert_eq!(refused, (1_500, Scope::Global));
            assert!(pace.take(&call("other", "31", false), now).is_err());
            assert_eq!(pace.take(&call("answer", "t", true), now), Ok(()));
        }
    }

    #[test]
    fn rate_limit_without_time_still_waits() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        let make = call("make", "30", false);
        for odd in [Value::Null, json!({"retry_after": -1}), json!({"retry_after": "soon"})] {
            let (after_ms, scope) = pace.refused(&make, &odd, &headers(&[]), now);
            assert_eq!((after_ms, scope), (UNKNOWN_MS, Scope::User));
            assert!(pace.take(&make, now).is_err());
        }
    }

    #[test]
    fn too_many_invalid_requests_pause_calls() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        let (bot, token) = (call("make", "30", false), call("answer", "t", true));
        let shared = headers(&[("x-ratelimit-scope", "shared")]);
        for _ in 0..2 * INVALID_MAX {
            // Not counted by Discord.
            pace.note(&bot, 429, &shared, now);
            pace.note(&bot, 404, &headers(&[]), now);
            pace.note(&bot, 400, &headers(&[]), now);
        }
        assert_eq!(pace.take(&bot, now), Ok(()));
        for _ in 0..INVALID_MAX / 4 {
            pace.note(&bot, 403, &headers(&[]), now);
            pace.note(&bot, 429, &headers(&[]), now);
            pace.note(&token, 401, &headers(&[]), now);
            pace.note(&token, 404, &headers(&[]), now);
        }
        assert_eq!(pace.take(&token, now), Err(now + INVALID_WINDOW));
        assert_eq!(pace.take(&bot, now + INVALID_WINDOW), Ok(()));
    }

    #[test]
    fn remembered_buckets_are_bounded() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        for channel in 0..3 * BUCKETS_MAX {
            let call = call("make", &channel.to_string(), false);
            pace.note(&call, 200, &left("0", "60"), now);
        }
        assert!(pace.buckets.len() <= BUCKETS_MAX);
    }
}
