//! slack.
