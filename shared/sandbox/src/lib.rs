//! What runs sandboxes: a folder a provider, with its types and its client.

pub mod daytona;
