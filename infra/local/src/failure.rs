//! Start errors for a person: the step, the reason, and advice.

use bobbin_local_aws::TemplateError;

/// Advice for a blocked port or state folder.
pub const START_AGAIN: &str = "Start again; if that does not help, --fresh starts with an empty state folder, --state-dir with another one.";

/// Advice for a function that does not start.
pub const SHOW_THE_LOG: &str = "Start again with BOBBIN_LOG=info, which shows the functions' output: the line with start.refused says what is wrong.";

/// A sentence with the failed step, the reason, and advice.
pub fn failed(step: &str, why: &impl std::fmt::Display, advice: &str) -> String {
    format!("{step}: {why}.\n{advice}")
}

/// Like `failed`, for the embedded AWS, whose errors need different advice.
pub fn engine_failed(why: &bobbin_local_aws::EngineError) -> String {
    let advice = match why {
        bobbin_local_aws::EngineError::Template(TemplateError::Parameter(..)) => {
            "Correct it where it was given: in --parameters, or in the environment that names a real service."
        }
        bobbin_local_aws::EngineError::Template(_) => {
            "git diff template.yaml shows what has changed in it."
        }
        bobbin_local_aws::EngineError::Executable { .. } => {
            "Start without --no-build, so that the functions are built."
        }
        _ => START_AGAIN,
    };
    failed("AWS could not be started", why, advice)
}
