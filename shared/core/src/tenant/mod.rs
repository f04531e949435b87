//! What a tenant may and chooses: commands, settings, access, keys, ways to run agents.

pub mod access;
pub mod commands;
pub mod glance;
pub mod keys;
pub mod overrides;
pub mod own_keys;
pub mod runtime_mode;
pub mod selection;
pub mod settings;
