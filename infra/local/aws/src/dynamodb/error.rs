//! Errors of the tables.

/// Why the tables could not be opened, set up or reached.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DynamoError {
    #[error("{0}")]
    Engine(String),
    #[error("DynamoDB refused {action} of table {table}: {reason}")]
    Refused { action: &'static str, table: String, reason: String },
    #[error(
        "table {0} exists with another key schema than the template's; start with an empty state folder, or change the template back"
    )]
    KeySchema(String),
    #[error("the index lag could not be served: {0}")]
    Io(#[from] std::io::Error),
}

/// An error of dynoxide.
pub(super) fn engine(error: impl std::fmt::Display) -> DynamoError {
    DynamoError::Engine(format!("the tables' engine failed: {error}"))
}
