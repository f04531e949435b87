//! The only crate of the functions that knows AWS and HTTP.
