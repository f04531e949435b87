//! The parts of a stack that run.

use std::sync::Arc;

use bobbin_local_aws::Engine;
use bobbin_local_chat::Chat;
use bobbin_local_daytona::Provider;
use bobbin_local_model::Model;

use crate::containers::Relay;
use crate::ingress_proxy::IngressProxy;
use crate::nudge_gate::NudgeGate;

/// What was started so far, so that it can be ended.
#[derive(Default)]
pub struct Parts {
    /// The scripted model that agents ask in place of a real one.
    pub model: Option<Model>,
    /// The provider with its sandboxes and their agents.
    pub provider: Option<Arc<Provider>>,
    /// The second provider, likewise.
    pub vercel: Option<Arc<bobbin_local_vercel::Provider>>,
    /// The local Discord and Slack, with the page.
    pub chat: Option<Arc<Chat>>,
    /// The embedded AWS with the functions.
    pub engine: Option<Engine>,
    /// What stands before the ingress function.
    pub ingress_proxy: Option<IngressProxy>,
    /// Where the daemons of sandboxes call.
    pub nudge_gate: Option<NudgeGate>,
    /// What containers reach the stack through.
    pub relays: Vec<Relay>,
}

impl Parts {
    /// Ends what runs, the newest first.
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
        if let Some(nudge_gate) = self.nudge_gate {
            nudge_gate.stop();
        }
        if let Some(model) = self.model {
            model.stop().await;
        }
    }
}
