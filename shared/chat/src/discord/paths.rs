//! The path at which Discord delivers. Its key is public, and so a parameter of the template.

use super::app::App;
use super::inbound::interactions;
use crate::HttpAnswer;
use crate::endpoints::{EndpointSettings, Endpoints, RawRequest, Verifier};
use crate::inbound::Inbound;

/// Discord's endpoints; without an application they say that it is switched off.
#[derive(Debug)]
pub(crate) struct DiscordEndpoints {
    app: Option<App>,
}

impl DiscordEndpoints {
    /// For the configured application.
    ///
    /// # Errors
    /// Names the variable that is wrong, and its parameter.
    pub(crate) fn configured(settings: &EndpointSettings<'_>) -> Result<Self, String> {
        let key = (settings.variable)("DISCORD_PUBLIC_KEY");
        if key.is_empty() {
            return Ok(Self { app: None });
        }
        let application = (settings.variable)("DISCORD_APPLICATION_ID");
        let (policy, limits) = (settings.policy.clone(), settings.limits.clone());
        let app = App::new(&key, &application, policy, limits)
            .map_err(|e| format!("DISCORD_PUBLIC_KEY (parameter DiscordPublicKey): {e}"))?;
        let keys_by_form = settings.overrides.keys_by_form && settings.takes_own_keys;
        Ok(Self { app: Some(App { keys_by_form, ..app }) })
    }
}

impl Endpoints for DiscordEndpoints {
    fn paths(&self) -> &'static [&'static str] {
        &["/discord/interactions"]
    }

    fn receive(&self, request: &RawRequest<'_>, _: Verifier<'_>) -> Inbound {
        let Some(app) = &self.app else {
            const OFF: &str = "Discord is switched off: set DiscordApplicationId and DiscordPublicKey of the template.";
            return Inbound::only(HttpAnswer::text(401, OFF), "platform switched off");
        };
        let signature = (request.header)("x-signature-ed25519");
        let timestamp = (request.header)("x-signature-timestamp");
        interactions(request.raw, signature, timestamp, app, request.now_ms)
    }
}
