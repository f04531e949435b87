//! What runs an agent in a sandbox: a folder a runtime, with its types, pure folds over them, and its client.

pub mod opencode;
