//! The origin of a request: the installed tenant, the actor's home, and the policy's decision.
//!
//! In a shared channel the envelope's `team_id` may be a foreign one; the tenant is the installation's
//! (`authorizations[0]`), and people of other organisations are refused.

use bobbin_core::tenant::access::{Policy, Refusal};

use super::types::{Authorization, EventPayload, InteractionPayload, SlackEvent};

/// Reply to somebody whose home is elsewhere, or in a channel that is shared with others.
pub(super) const EXTERNAL: &str = "Bobbin works only for members of its own workspace, in channels that are not shared with other \
organisations. Ask in a channel of your own workspace.";

/// The policy's decision.
pub(super) enum AccessDecision {
    /// The request may be carried out.
    Admitted,
    /// Not one of our tenants: no reply, and no call with a token that we do not have.
    Stranger,
    /// Refused, and the person is told this.
    Refused(String),
}

/// Checks tenant, home, channel and person, in this order.
pub(super) fn admission(
    policy: &Policy,
    tenant: &str,
    external: bool,
    channel: &str,
    user: &str,
) -> AccessDecision {
    match policy.slack(tenant, channel, user) {
        Err(Refusal::Tenant) => AccessDecision::Stranger,
        _ if external => AccessDecision::Refused(EXTERNAL.to_owned()),
        Err(refusal) => AccessDecision::Refused(refusal.to_string()),
        Ok(()) => AccessDecision::Admitted,
    }
}

fn some(id: Option<&String>) -> Option<&str> {
    id.map(String::as_str).filter(|id| !id.is_empty())
}

impl EventPayload {
    fn installation(&self) -> Option<&Authorization> {
        self.authorizations.first()
    }

    /// The installed team, or the enterprise of an organisation-wide installation. Falls back to the envelope's own
    /// team if the authorization names none (short envelopes): the policy still has to know it.
    pub(super) fn tenant(&self) -> Option<&str> {
        let of_installation = self.installation().and_then(|a| {
            let (team, enterprise) = (some(a.team_id.as_ref()), some(a.enterprise_id.as_ref()));
            if a.is_enterprise_install { enterprise } else { team.or(enterprise) }
        });
        of_installation.or_else(|| some(self.team_id.as_ref()))
    }

    /// Our own user id.
    pub(super) fn bot(&self) -> Option<&str> {
        self.installation().and_then(|a| some(a.user_id.as_ref()))
    }

    /// Whether the channel is shared with others or the actor's home is another organisation.
    ///
    /// An event that names no home counts as internal only because the channel is not shared: then nobody else can be
    /// in it.
    pub(super) fn external(&self, event: &SlackEvent) -> bool {
        if self.is_ext_shared_channel {
            return true;
        }
        let home = some(event.user_team.as_ref())
            .or(some(event.source_team.as_ref()))
            .or(some(event.team.as_ref()));
        home.is_some_and(|home| !self.is_ours(home))
    }

    fn is_ours(&self, home: &str) -> bool {
        let enterprise = self.installation().and_then(|a| some(a.enterprise_id.as_ref()));
        if self.tenant() == Some(home) || enterprise == Some(home) {
            return true;
        }
        // An organisation-wide installation serves every workspace of the enterprise: the envelope says which one.
        let org = self.installation().is_some_and(|a| a.is_enterprise_install);
        let same_enterprise =
            some(self.enterprise_id.as_ref()).is_none_or(|id| Some(id) == enterprise);
        org && same_enterprise
            && [some(self.team_id.as_ref()), some(self.context_team_id.as_ref())]
                .contains(&Some(home))
    }
}

impl InteractionPayload {
    /// The installed team or enterprise, as far as a click names it. A view that was opened across organisations names
    /// the installed team itself, while `team` and `enterprise` are those of the person's surface.
    pub(super) fn tenant(&self) -> Option<&str> {
        let installed = some(self.view.app_installed_team_id.as_ref());
        if installed.is_some() && !self.is_enterprise_install {
            return installed;
        }
        let enterprise = self.enterprise.get().or(some(self.team.enterprise_id.as_ref()));
        let team = some(self.team.id.as_ref());
        if self.is_enterprise_install { enterprise } else { team.or(enterprise) }
    }

    /// Whether the person's home is another organisation; undecidable counts as yes.
    pub(super) fn external(&self) -> bool {
        let home = some(self.user.team_id.as_ref()).or(some(self.team.id.as_ref()));
        // The enterprise of a foreign surface is not ours.
        let enterprise = some(self.team.enterprise_id.as_ref())
            .filter(|_| self.is_enterprise_install || self.tenant() == some(self.team.id.as_ref()));
        let ours = [self.tenant(), enterprise];
        let of_org = self.is_enterprise_install && home == some(self.team.id.as_ref());
        home.is_none() || !(ours.contains(&home) || of_org)
    }
}
