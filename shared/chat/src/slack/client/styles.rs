//! Which of the newer ways of showing something a tenant has refused: remembered for the life of the process, so that a
//! workspace without them costs one refused call, not one a card.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use super::Slack;
use crate::slack::render::CardStyle;

/// Tenants that are remembered.
const TENANTS_MAX: usize = 256;

/// What a tenant has refused.
#[derive(Debug, Clone, Copy, Default)]
struct Refused {
    plans: bool,
    streams: bool,
}

/// What each tenant has refused.
#[derive(Debug, Default)]
pub(super) struct Styles {
    refused: BTreeMap<String, Refused>,
}

impl Slack {
    /// How cards are shown to a tenant.
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

    /// The tenant does not take plans.
    pub(super) fn no_plans(&self, tenant: &str) {
        self.remember(tenant, |refused| refused.plans = true);
    }

    /// The tenant does not take streams.
    pub(super) fn no_streams(&self, tenant: &str) {
        self.remember(tenant, |refused| refused.streams = true);
    }

    fn remember(&self, tenant: &str, what: impl FnOnce(&mut Refused)) {
        let mut styles = self.styles.lock().unwrap_or_else(PoisonError::into_inner);
        if styles.refused.len() >= TENANTS_MAX {
            styles.refused.clear();
        }
        what(styles.refused.entry(tenant.to_owned()).or_default());
    }
}
