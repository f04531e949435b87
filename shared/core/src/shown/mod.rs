//! Presentation: status, lists, asks, commands.

pub mod asks;
pub mod commands;
pub mod overview;
pub mod sandboxes;
pub mod status;
pub mod tools;
