//! Whether the provider puts secrets into the requests of a new sandbox: some it never does (reference: Daytona, 3 to 25 % of
//! fresh ones), and starting those again mends nothing.
//!
//! A model's provider is asked about its key from inside. That the answer is no proves nothing by itself: the key may be bad.
//! It is proof where the answer quotes what stands for the key, or where the same question with the key itself, asked from
//! here, is answered. What cannot be asked, or is open to everybody, is left to the first turn.

use std::collections::BTreeMap;
use std::time::Duration;

use bobbin_agent::ModelKey;
use bobbin_core::base::secret::Secret;
use bobbin_sandbox::Sandbox;
use tokio::time::{Instant, sleep};

use super::Sandboxes;
use crate::model_keys::{KeyState, Question};

/// One question takes no longer, inside and from here.
const ASK_MS_MAX: u64 = 12_000;
/// Between two of them: a secret that was changed a moment ago takes seconds to be put in.
const PAUSE_MS: u64 = 2_000;
/// Prints the end of the answer, and the status after it.
const SCRIPT: &str = r#"command -v curl >/dev/null || exit 0
curl -sS --max-time 10 -H "$ASK_HEADER" -H "anthropic-version: 2023-06-01" -w '\n%{http_code}' "$ASK_URL" 2>/dev/null | tail -c 4096"#;
/// So much of a placeholder is quoted by who shows only the beginning of a key.
const QUOTED_CHARS: usize = 8;

impl Sandboxes {
    /// False: what stands for secrets leaves this sandbox as it is, and did so for as long as a new one is given. `held` is what
    /// its processes have for keys.
    pub(super) async fn puts_secrets_in(
        &self,
        sandbox: &Sandbox,
        keys: &[ModelKey],
        held: &BTreeMap<String, String>,
    ) -> bool {
        let until = Instant::now() + Duration::from_millis(self.settings.limits.sandbox.put_in_ms);
        let asked = keys.iter().find_map(|key| {
            let placeholder = held.get(key.variable).filter(|text| **text != key.value)?;
            Some((key, placeholder, Question::about(key)?))
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
