//! Newer display features that a tenant has refused: remembered for the life of the process, so that a workspace
//! without them costs one refused call, not one per card.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use super::Slack;
use crate::slack::render::CardStyle;

/// Maximum number of tenants remembered.
const TENANTS_MAX: usize = 256;

/// Features that a tenant has refused.
#[derive(Debug, Clone, Copy, Default)]
struct RefusedStyles {
    plans: bool,
    streams: bool,
}

/// Refused features of each tenant.
#[derive(Debug, Default)]
pub(super) struct Styles {
    refused: BTreeMap<String, RefusedStyles>,
}

impl Slack {
    /// The style of cards for a tenant.
    pub(super) fn card_style(&self, tenant: &str) -> CardStyle {
        let styles = self.styles.lock().unwrap_or_else(PoisonError::into_inner);
        if styles.refused.get(tenant).is_some_and(|refused| refused.plans) {
            CardStyle::Lines
        } else {
            CardStyle::Plan
        }
    }

    /// Whether answers are streamed to a tenant.
    pub(super) fn may_stream(&self, tenant: &str) -> bool {
        let styles = self.styles.lock().unwrap_or_else(PoisonError::into_inner);
        self.streams && !styles.refused.get(tenant).is_some_and(|refused| refused.streams)
    }

    /// Records that the tenant does not take plans.
    pub(super) fn no_plans(&self, tenant: &str) {
        self.remember(tenant, |refused| refused.plans = true);
    }

    /// Records that the tenant does not take streams.
    pub(super) fn no_streams(&self, tenant: &str) {
        self.remember(tenant, |refused| refused.streams = true);
    }

    fn remember(&self, tenant: &str, what: impl FnOnce(&mut RefusedStyles)) {
        let mut styles = self.styles.lock().unwrap_or_else(PoisonError::into_inner);
        if styles.refused.len() >= TENANTS_MAX {
            styles.refused.clear();
        }
        what(styles.refused.entry(tenant.to_owned()).or_default());
    }
}
