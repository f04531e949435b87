//! Placeholder for the real agent.
