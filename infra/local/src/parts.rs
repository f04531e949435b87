//! The running parts of a stack.

use std::sync::Arc;

use bobbin_local_aws::Engine;
use bobbin_local_chat::LocalChat;
use bobbin_local_daytona::LocalDaytona;
use bobbin_local_forge::LocalForge;
use bobbin_local_model::Model;

use crate::containers::Relay;
use crate::ingress_proxy::IngressProxy;
use crate::nudge_gate::NudgeGate;

/// The parts started so far, to stop them later.
#[derive(Default)]
pub struct StartedParts {
    /// The scripted model, in place of a real one.
    pub model: Option<Model>,
    /// The provider with its sandboxes and their agents.
    pub provider: Option<Arc<LocalDaytona>>,
    /// The second provider.
    pub vercel: Option<Arc<bobbin_local_vercel::LocalVercel>>,
    /// The forge with its repositories.
    pub forge: Option<Arc<LocalForge>>,
    /// The local Discord and Slack, with the page.
    pub chat: Option<Arc<LocalChat>>,
    /// The embedded AWS with the functions.
    pub engine: Option<Engine>,
    /// The proxy in front of the ingress function.
    pub ingress_proxy: Option<IngressProxy>,
    /// Receives the sandbox daemons' nudges.
    pub nudge_gate: Option<NudgeGate>,
    /// Relays for containers.
    pub relays: Vec<Relay>,
}

impl StartedParts {
    /// Stops the parts, newest first.
    pub async fn stop(self) {
        if let Some(ingress_proxy) = self.ingress_proxy {
            ingress_proxy.stop();
        }
        if let Some(engine) = self.engine {
            engine.stop().await;
        }
        if let Some(chat) = self.chat
            && let Some(chat) = Arc::into_inner(chat)
        {
            chat.stop().await;
        }
        if let Some(provider) = self.provider
            && let Some(provider) = Arc::into_inner(provider)
        {
            provider.stop().await;
        }
        if let Some(vercel) = self.vercel
            && let Some(vercel) = Arc::into_inner(vercel)
        {
            vercel.stop().await;
        }
        if let Some(forge) = self.forge
            && let Some(forge) = Arc::into_inner(forge)
        {
            forge.stop().await;
        }
        if let Some(nudge_gate) = self.nudge_gate {
            nudge_gate.stop();
        }
        if let Some(model) = self.model {
            model.stop().await;
        }
    }
}
