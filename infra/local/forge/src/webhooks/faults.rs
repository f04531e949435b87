//! Faults of webhooks, as a test arms them.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bobbin_local_sandbox::random::{token, uuid};
use serde::{Deserialize, Serialize};

use crate::api_error::ApiError;
use crate::limits::HOOK_FAULTS_MAX;
use crate::record::HookDelivery;

/// What goes wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "snake_case")]
pub(crate) enum HookFault {
    /// It comes when a test releases it.
    Late {},
    /// It comes after the one that follows it.
    OutOfOrder {},
    /// It comes twice, under one id or two.
    Twice {
        #[serde(default)]
        other_id: bool,
    },
    /// It never comes; the list of deliveries has it as failed.
    Lost {},
    /// It is signed with another secret.
    OtherSecret {},
    /// It is not signed.
    Unsigned {},
    /// It comes under another name, which no signature covers.
    Misnamed { event_as: String },
    /// It comes under another id, which no signature covers.
    Renumbered { id: String },
}

/// A fault of the next webhooks of an event.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ArmedHook {
    #[serde(flatten)]
    fault: HookFault,
    /// Of any event, if none is named.
    event: Option<String>,
    action: Option<String>,
    #[serde(default = "once")]
    times: u32,
}

const fn once() -> u32 {
    1
}

/// A webhook on its way, and what it is signed with.
#[derive(Clone)]
pub(crate) struct Outgoing {
    pub(crate) delivery: HookDelivery,
    /// Name and id as they are said beside the signature.
    pub(crate) event: String,
    pub(crate) guid: String,
    pub(crate) secret: Option<String>,
    /// It is only written down.
    pub(crate) is_lost: bool,
}

impl Outgoing {
    pub(crate) fn new(delivery: HookDelivery, secret: Option<String>) -> Self {
        let (event, guid) = (delivery.event.clone(), delivery.guid.clone());
        Self { delivery, event, guid, secret, is_lost: false }
    }
}

#[derive(Default)]
struct Armed {
    faults: Vec<ArmedHook>,
    /// Those that a test releases.
    held: VecDeque<Outgoing>,
    /// Those that wait for the next one.
    overtaken: VecDeque<Outgoing>,
}

/// Armed faults and held webhooks.
#[derive(Default)]
pub(crate) struct HookFaults {
    armed: Mutex<Armed>,
}

impl HookFaults {
    fn lock(&self) -> MutexGuard<'_, Armed> {
        self.armed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds faults; the oldest that fits comes first.
    ///
    /// # Errors
    /// There are too many.
    pub(crate) fn arm(&self, faults: Vec<ArmedHook>) -> Result<(), ApiError> {
        let mut armed = self.lock();
        if armed.faults.len() + faults.len() > HOOK_FAULTS_MAX {
            return Err(ApiError::full("faults of webhooks"));
        }
        armed.faults.extend(faults);
        Ok(())
    }

    pub(crate) fn list(&self) -> Vec<ArmedHook> {
        self.lock().faults.clone()
    }

    /// How many webhooks wait.
    pub(crate) fn waiting(&self) -> usize {
        let armed = self.lock();
        armed.held.len() + armed.overtaken.len()
    }

    /// Disarms everything, and releases what waits.
    pub(crate) fn clear(&self) -> Vec<Outgoing> {
        let mut armed = self.lock();
        armed.faults.clear();
        let held: Vec<Outgoing> = armed.held.drain(..).collect();
        held.into_iter().chain(armed.overtaken.drain(..)).collect()
    }

    /// Releases what is late, oldest first.
    pub(crate) fn release(&self) -> Vec<Outgoing> {
        self.lock().held.drain(..).collect()
    }

    /// What is sent in place of a webhook, in this order.
    pub(crate) fn sent(&self, mut one: Outgoing) -> Vec<Outgoing> {
        let mut armed = self.lock();
        let fits = |fault: &ArmedHook| {
            let is = |wanted: &Option<String>, said: Option<&str>| {
                wanted.as_deref().is_none_or(|wanted| Some(wanted) == said)
            };
            is(&fault.event, Some(&one.delivery.event))
                && is(&fault.action, one.delivery.action.as_deref())
        };
        let fault = armed.faults.iter().position(fits).map(|at| {
            let fault = armed.faults[at].fault.clone();
            armed.faults[at].times = armed.faults[at].times.saturating_sub(1);
            if armed.faults[at].times == 0 {
                armed.faults.remove(at);
            }
            fault
        });
        let mut all = Vec::new();
        match fault {
            Some(HookFault::Late {}) => {
                armed.held.push_back(one);
                return all;
            }
            Some(HookFault::OutOfOrder {}) => {
                armed.overtaken.push_back(one);
                return all;
            }
            Some(HookFault::Twice { other_id }) => {
                let mut again = one.clone();
                if other_id {
                    again.guid = uuid();
                    again.delivery.guid.clone_from(&again.guid);
                }
                all.push(again);
            }
            Some(HookFault::Lost {}) => one.is_lost = true,
            Some(HookFault::OtherSecret {}) => one.secret = Some(token(40)),
            Some(HookFault::Unsigned {}) => one.secret = None,
            Some(HookFault::Misnamed { event_as }) => one.event = event_as,
            Some(HookFault::Renumbered { id }) => one.guid = id,
            None => {}
        }
        all.insert(0, one);
        all.extend(armed.overtaken.drain(..));
        all
    }
}
