//! Whether the provider puts secrets into the requests of a new sandbox: in some it never does (reference: Daytona, 3
//! to 25 % of fresh ones), and restarting those does not help.
//!
//! A vendor is asked about its key from inside the sandbox. A refusal alone proves nothing: the key may be bad. It is
//! proof if the answer quotes the placeholder, or if the same request with the real key succeeds from here. A key that
//! cannot be checked, or whose endpoint is public, is left to the first turn.

use std::collections::BTreeMap;
use std::time::Duration;

use bobbin_agent::ModelKey;
use bobbin_core::base::secret::Secret;
use bobbin_sandbox::Sandbox;
use tokio::time::{Instant, sleep};

use super::Sandboxes;
use crate::model_keys::{KeyCheck, KeyState};

/// Longest time for one request, from inside and from here.
const ASK_MS_MAX: u64 = 12_000;
/// Pause between two requests: a secret that was just changed takes seconds to be put in.
const PAUSE_MS: u64 = 2_000;
/// Prints the end of the answer, followed by the status.
const SCRIPT: &str = r#"command -v curl >/dev/null || exit 0
curl -sS --max-time 10 -H "$ASK_HEADER" -H "anthropic-version: 2023-06-01" -w '\n%{http_code}' "$ASK_URL" 2>/dev/null | tail -c 4096"#;
/// Characters of a placeholder that a server quotes if it shows only the beginning of a key.
const QUOTED_CHARS: usize = 8;

impl Sandboxes {
    /// False: placeholders leave this sandbox unreplaced, and still did when the time for a new sandbox was over.
    /// `held` are the keys in its processes' environment.
    pub(super) async fn puts_secrets_in(
        &self,
        sandbox: &Sandbox,
        keys: &[ModelKey],
        held: &BTreeMap<String, String>,
    ) -> bool {
        let until = Instant::now() + Duration::from_millis(self.settings.limits.sandbox.put_in_ms);
        let asked = keys.iter().find_map(|key| {
            let placeholder = held.get(key.variable).filter(|text| **text != key.value)?;
            Some((key, placeholder, KeyCheck::about(key)?))
        });
        let (true, Some((key, placeholder, question))) = (sandbox.has_placeholders(), asked) else {
            return true;
        };
        let environment = BTreeMap::from([
            ("ASK_URL".to_owned(), question.url()),
            ("ASK_HEADER".to_owned(), question.header(placeholder)),
        ]);
        let quoted = placeholder.get(..QUOTED_CHARS).unwrap_or(placeholder);
        let mut is_good = None;
        loop {
            let bound = Duration::from_millis(ASK_MS_MAX);
            let ran = self.provider.exec(sandbox, SCRIPT, &environment, bound).await;
            let Ok(ran) = ran else { return true };
            let (said, status) = ran.text.rsplit_once('\n').unwrap_or_default();
            if status.trim() != "401" {
                return true;
            }
            if !said.contains(quoted) {
                if is_good.is_none() {
                    let value = Secret::from(key.value.clone());
                    is_good = Some(matches!(question.asked(&value).await, KeyState::Valid(_)));
                }
                if is_good == Some(false) {
                    return true;
                }
            }
            if Instant::now() + Duration::from_millis(PAUSE_MS) >= until {
                tracing::warn!(event = "sandbox.secrets.missed", sandbox.name = %sandbox.name, host = question.host(), "the provider does not put secrets into the requests of a new sandbox");
                return false;
            }
            sleep(Duration::from_millis(PAUSE_MS)).await;
        }
    }
}
