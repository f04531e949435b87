//! Why a schedule is refused.

/// What the API refuses, by its names.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ScheduleError {
    #[error("{0}")]
    Validation(String),
    #[error("{0}")]
    Conflict(String),
    #[error("{0}")]
    NotFound(String),
    #[error("{0}")]
    UnknownOperation(String),
    #[error(
        "the schedules' file could not be used ({0}); check free space and rights of the state folder"
    )]
    Store(#[from] rusqlite::Error),
}
