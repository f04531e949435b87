//! Errors of AWS calls: messages that keep the cause, and whether a retry can help.

use std::error::Error;

use aws_credential_types::provider::error::CredentialsError;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use aws_types::request_id::RequestId;

/// Longest part of a service's message, or of a cause, that an error keeps, in characters.
const WORDS_CHARS_MAX: usize = 400;
/// How rustls reports a certificate that no trusted root has signed.
const BAD_CERTIFICATE: &str = "invalid peer certificate";
/// Throttling codes: the SDK's own list, and each service's "Common errors".
const THROTTLED: [&str; 14] = [
    "Throttling",
    "ThrottlingException",
    "ThrottledException",
    "RequestThrottled",
    "RequestThrottledException",
    "TooManyRequestsException",
    "ProvisionedThroughputExceededException",
    "TransactionInProgressException",
    "RequestLimitExceeded",
    "BandwidthLimitExceeded",
    "LimitExceededException",
    "SlowDown",
    "PriorRequestNotComplete",
    "KmsThrottled",
];
/// The code of a write that met a transaction on the same item. Nothing was written, and the table is healthy.
pub(crate) const CONTENDED: &str = "TransactionConflictException";
/// Codes of a service that has trouble itself, regardless of the status.
const PASSING: [&str; 8] = [
    "RequestTimeout",
    "RequestTimeoutException",
    "InternalFailure",
    "InternalServerError",
    "InternalServiceError",
    "InternalError",
    "ServiceUnavailable",
    "ServiceUnavailableException",
];

/// A failed call. Of the answer it holds only AWS's code, message and request id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The service refused the call.
    #[error("{place} answered {code}: {message} (status {status}, request id {request_id})")]
    Refused {
        /// Service and region, or address.
        place: String,
        /// AWS's error code, such as `AccessDeniedException`.
        code: String,
        /// The service's own message, without any part of a signed request.
        message: String,
        /// HTTP status.
        status: u16,
        /// Request id for AWS's support; `none` if the answer had none.
        request_id: String,
    },
    /// There are no credentials to sign with, or the request cannot be built.
    #[error("{place} was not asked: {why}")]
    Unsigned {
        /// Service and region, or address.
        place: String,
        /// What is missing: credentials, a region.
        why: String,
    },
    /// No connection, or it broke before the answer arrived.
    #[error("{place} cannot be reached: {why}")]
    Unreachable {
        /// Service and region, or address.
        place: String,
        /// The innermost cause.
        why: String,
    },
    /// The call timed out; whether it had its effect is unknown.
    #[error("{place} has not answered within {ms} ms")]
    Late {
        /// Service and region, or address.
        place: String,
        /// The bound of the call, in milliseconds.
        ms: u64,
    },
    /// The answer does not follow the service's protocol.
    #[error("the answer of {place} could not be read: {why}")]
    Unreadable {
        /// Service and region, or address.
        place: String,
        /// What is wrong with it.
        why: String,
    },
    /// A part of what was requested did not arrive, despite retries.
    #[error("{place} answered only in part: it is throttled")]
    Partial {
        /// Service and region, or address.
        place: String,
    },
}

/// Why a call failed, classified by what to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureCause {
    /// Transient: throttled, timed out, service in trouble, not reached.
    Passing,
    /// Another write was in progress; the service is healthy, and a retry helps soon.
    Contended,
    /// The role or the person lacks the permission.
    NotAllowed,
    /// The credentials have expired.
    Expired,
    /// The signature is wrong or the key is unknown: wrong credentials, or a clock that is off.
    Unknown,
    /// The requested resource does not exist.
    Missing,
    /// The request itself is wrong.
    Wrong,
}

impl FailureCause {
    /// What an operator has to do; `None` if it passes without action.
    #[must_use]
    pub const fn remedy(self) -> Option<&'static str> {
        match self {
            Self::Passing | Self::Contended => None,
            Self::NotAllowed => Some(
                "The role may not do that: deploy template.yaml again, which sets the permissions of each function.",
            ),
            Self::Expired => Some(
                "The credentials have expired: a function gets new ones with its next process; a person has to sign in again.",
            ),
            Self::Unknown => Some(
                "AWS does not accept the credentials: check that they belong to this account, and that this machine's clock is less than five minutes off.",
            ),
            Self::Missing => Some(
                "It does not exist: deploy template.yaml, or correct the variable that names it.",
            ),
            Self::Wrong => Some(
                "AWS does not accept such a request: this is a bug in Bobbin; the request id helps to find it.",
            ),
        }
    }
}

impl CallError {
    /// The service's code, if it answered with one.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Refused { code, .. } => Some(code),
            _ => None,
        }
    }

    /// The cause of the failure, which decides what to do about it.
    #[must_use]
    pub fn cause(&self) -> FailureCause {
        match self {
            Self::Refused { code, status, .. } => cause(code, *status),
            Self::Unsigned { .. } => FailureCause::Unknown,
            _ => FailureCause::Passing,
        }
    }

    /// The error, followed by what an operator has to do, if known.
    #[must_use]
    pub fn with_remedy(&self) -> String {
        match self.cause().remedy() {
            Some(remedy) => format!("{self}. {remedy}"),
            None => self.to_string(),
        }
    }
}

fn cause(code: &str, status: u16) -> FailureCause {
    // The queues' codes have a prefix: `AWS.SimpleQueueService.NonExistentQueue`.
    match code.rsplit('.').next().unwrap_or(code) {
        code if THROTTLED.contains(&code) || PASSING.contains(&code) => FailureCause::Passing,
        CONTENDED => FailureCause::Contended,
        "AccessDenied"
        | "AccessDeniedException"
        | "UnauthorizedOperation"
        | "NotAuthorized"
        | "OptInRequired"
        | "KmsAccessDenied"
        | "KMSAccessDeniedException" => FailureCause::NotAllowed,
        "ExpiredToken" | "ExpiredTokenException" | "RequestExpired" => FailureCause::Expired,
        "UnrecognizedClientException"
        | "InvalidClientTokenId"
        | "InvalidAccessKeyId"
        | "InvalidSignatureException"
        | "SignatureDoesNotMatch"
        | "InvalidSignature"
        | "IncompleteSignature"
        | "IncompleteSignatureException"
        | "MissingAuthenticationToken"
        | "MissingAuthenticationTokenException"
        | "AuthFailure"
        | "InvalidSecurity" => FailureCause::Unknown,
        "ResourceNotFoundException" | "QueueDoesNotExist" | "NonExistentQueue" => {
            FailureCause::Missing
        }
        _ => match status {
            408 | 425 | 429 | 500.. => FailureCause::Passing,
            401 | 403 => FailureCause::NotAllowed,
            _ => FailureCause::Wrong,
        },
    }
}

/// Conversion of an SDK error into [`CallError`].
pub(crate) trait IntoCallError {
    /// Converts the error of a call to `place` that had `ms_max` milliseconds.
    fn told(self, place: &str, ms_max: u64) -> CallError;
}

impl<E> IntoCallError for SdkError<E, HttpResponse>
where
    E: ProvideErrorMetadata + Error + 'static,
{
    fn told(self, place: &str, ms_max: u64) -> CallError {
        let place = place.to_owned();
        if let Some(why) = credentials_missing(&self) {
            return CallError::Unsigned { place, why };
        }
        let request_id = self.request_id().unwrap_or("none").to_owned();
        match &self {
            SdkError::ServiceError(refused) => {
                let (error, status) = (refused.err(), refused.raw().status().as_u16());
                // The SDK also reports an answer that it could not read as a service error.
                let Some(code) = error.code() else {
                    let why = unread(status, &innermost(error), &request_id);
                    return CallError::Unreadable { place, why };
                };
                CallError::Refused {
                    place,
                    message: kept(words(code, status, error.message())),
                    code: kept(code),
                    status,
                    request_id,
                }
            }
            SdkError::TimeoutError(_) => CallError::Late { place, ms: ms_max },
            SdkError::ResponseError(answer) => {
                let status = answer.raw().status().as_u16();
                let why = unread(status, &innermost(&self), &request_id);
                CallError::Unreadable { place, why }
            }
            SdkError::DispatchFailure(failure) if failure.is_timeout() => {
                CallError::Late { place, ms: ms_max }
            }
            SdkError::ConstructionFailure(_) => {
                CallError::Unsigned { place, why: kept(&innermost(&self)) }
            }
            _ => CallError::Unreachable { place, why: unreached(&innermost(&self)) },
        }
    }
}

/// The service's message. One about a signature is withheld: it quotes the signed request, including the session token.
fn words<'a>(code: &str, status: u16, message: Option<&'a str>) -> &'a str {
    match cause(code, status) {
        FailureCause::Unknown | FailureCause::Expired => {
            "the credentials or the signature were not accepted"
        }
        _ => message.unwrap_or("no message"),
    }
}

fn unread(status: u16, why: &str, request_id: &str) -> String {
    kept(&format!("status {status}, request id {request_id}, {why}"))
}

fn unreached(why: &str) -> String {
    if why.contains(BAD_CERTIFICATE) {
        kept(&format!(
            "{why}; if a proxy intercepts TLS, name its certificates with AWS_CA_BUNDLE for the command line, and let functions reach AWS without the proxy"
        ))
    } else {
        kept(why)
    }
}

/// The message of the credentials provider, if that is what failed.
fn credentials_missing(error: &(dyn Error + 'static)) -> Option<String> {
    let found = sources(error).find_map(|source| source.downcast_ref::<CredentialsError>())?;
    Some(match found {
        CredentialsError::CredentialsNotLoaded(_) => "no AWS credentials were found".to_owned(),
        CredentialsError::ProviderTimedOut(_) => {
            "AWS credentials did not arrive in time".to_owned()
        }
        other => format!(
            "AWS credentials are configured but cannot be used ({})",
            kept(&innermost(other))
        ),
    })
}

fn sources<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// The last cause: the outer causes of a connection or credentials error say nothing.
fn innermost(error: &(dyn Error + 'static)) -> String {
    sources(error).last().map_or_else(|| error.to_string(), ToString::to_string)
}

fn kept(words: &str) -> String {
    bobbin_core::text::shorten(words.trim(), WORDS_CHARS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lasting_errors_have_remedies() {
        let table = [
            ("ThrottlingException", 400, FailureCause::Passing),
            (CONTENDED, 400, FailureCause::Contended),
            ("ProvisionedThroughputExceededException", 400, FailureCause::Passing),
            ("RequestThrottled", 403, FailureCause::Passing),
            ("RequestTimeout", 400, FailureCause::Passing),
            ("InternalServerError", 500, FailureCause::Passing),
            ("AnythingAtAll", 503, FailureCause::Passing),
            ("AnythingAtAll", 429, FailureCause::Passing),
            ("AccessDeniedException", 400, FailureCause::NotAllowed),
            ("KMSAccessDeniedException", 400, FailureCause::NotAllowed),
            ("AnythingAtAll", 403, FailureCause::NotAllowed),
            ("ExpiredTokenException", 400, FailureCause::Expired),
            ("ExpiredToken", 403, FailureCause::Expired),
            ("InvalidSignatureException", 400, FailureCause::Unknown),
            ("SignatureDoesNotMatch", 403, FailureCause::Unknown),
            ("UnrecognizedClientException", 400, FailureCause::Unknown),
            ("InvalidClientTokenId", 403, FailureCause::Unknown),
            ("AWS.SimpleQueueService.NonExistentQueue", 400, FailureCause::Missing),
            ("QueueDoesNotExist", 400, FailureCause::Missing),
            ("ResourceNotFoundException", 400, FailureCause::Missing),
            ("ValidationException", 400, FailureCause::Wrong),
        ];
        for (code, status, expected) in table {
            assert_eq!(cause(code, status), expected, "{code} {status}");
            let is_of_time = matches!(expected, FailureCause::Passing | FailureCause::Contended);
            assert_eq!(expected.remedy().is_none(), is_of_time);
        }
    }

    #[test]
    fn signature_error_text_is_dropped() {
        let quoting = "The Canonical String should have been 'x-amz-security-token:canary'";
        for code in ["InvalidSignatureException", "SignatureDoesNotMatch", "ExpiredToken"] {
            assert!(!words(code, 403, Some(quoting)).contains("canary"), "{code}");
        }
        assert_eq!(words("ValidationException", 400, Some("x is y")), "x is y");
    }

    #[test]
    fn unknown_issuer_error_mentions_ca_bundle() {
        let told = unreached("invalid peer certificate: UnknownIssuer");
        assert!(told.contains("AWS_CA_BUNDLE"), "{told}");
        assert_eq!(unreached("Connection refused"), "Connection refused");
    }
}
