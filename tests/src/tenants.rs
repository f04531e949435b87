//! The promise that is about two tenants and not about one thread.

/// What one tenant owns, and what was said to it or done for it: the bot's calls in its threads, and the model's
/// requests from its sessions.
#[derive(Debug, Clone, Default)]
pub struct Tenant {
    /// The tenant's name in failures.
    pub name: String,
    /// Its words, sandboxes, sessions and credentials, which no other tenant may see.
    pub own: Vec<String>,
    /// Its calls, each as text.
    pub calls: Vec<String>,
}

/// Promise 7: nothing of one tenant shows up in another tenant's calls.
///
/// # Errors
/// Whose, and where; or that a tenant has nothing to look for or in, which would prove nothing.
pub fn tenants_apart(tenants: &[Tenant]) -> Result<(), String> {
    for one in tenants {
        if one.own.iter().all(String::is_empty) || one.calls.is_empty() {
            return Err(format!("nothing is known of {}", one.name));
        }
        for other in tenants.iter().filter(|other| other.name != one.name) {
            let seen = one.own.iter().filter(|own| !own.is_empty()).find_map(|own| {
                let call = other.calls.iter().find(|call| call.contains(own.as_str()))?;
                Some((own, call))
            });
            if let Some((own, call)) = seen {
                return Err(format!(
                    "{own:?} of {} shows up in a call of {}: {call}",
                    one.name, other.name
                ));
            }
        }
    }
    Ok(())
}
