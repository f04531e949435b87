//! A tenant's choices: commands, settings, access, keys, bindings, runtime modes.

pub mod access;
pub mod bindings;
pub mod budgets;
pub mod capped_keys;
pub mod catalogue;
pub mod commands;
pub mod environments;
pub mod keys;
pub mod linked;
pub mod overrides;
pub mod own_keys;
pub mod prices;
pub mod project_networks;
pub mod project_secrets;
pub mod repositories;
pub mod repositories_beside;
pub mod runtime_mode;
pub mod sandbox_hint;
pub mod selection;
pub mod settings;
pub mod setup_link;
pub mod sign_in;
