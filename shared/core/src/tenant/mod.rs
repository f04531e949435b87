//! A tenant's choices: commands, settings, access, keys, runtime modes.

pub mod access;
pub mod commands;
pub mod glance;
pub mod keys;
pub mod linked;
pub mod overrides;
pub mod own_keys;
pub mod repositories;
pub mod runtime_mode;
pub mod selection;
pub mod settings;
