//! What a failed call comes to, in words that keep its cause, and whether a repeat can help.

use std::error::Error;

use aws_credential_types::provider::error::CredentialsError;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use aws_types::request_id::RequestId;

/// Characters of a service's own words, or of a cause, that an error keeps.
const WORDS_CHARS_MAX: usize = 400;
/// A certificate that nobody vouches for, as rustls says it.
const BAD_CERTIFICATE: &str = "invalid peer certificate";
/// Codes of calls that nothing is wrong with but their time (the SDK's own list, and each service's "Common errors").
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
/// The code of a write that met a transaction on the same item. Nothing was written, and nothing is wrong with the table.
pub(crate) const CONTENDED: &str = "TransactionConflictException";
/// Codes of a service that is in trouble itself, whatever the status.
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

/// A call that did not succeed. Holds nothing of the answer but AWS's own code, sentence and request id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The service answered that it does not.
    #[error("{place} answered {code}: {message} (status {status}, request id {request_id})")]
    Refused {
        /// Service and region, or address.
        place: String,
        /// AWS's code for it, such as `AccessDeniedException`.
        code: String,
        /// The service's own sentence, without anything of a signed request.
        message: String,
        /// HTTP status of the answer.
        status: u16,
        /// By which AWS's support finds the call; `none` where the answer had none.
        request_id: String,
    },
    /// There are no credentials to sign with, or the request cannot be written down: what to do.
    #[error("{place} was not asked: {why}")]
    Unsigned {
        /// Service and region, or address.
        place: String,
        /// What the call lacks: credentials, a region.
        why: String,
    },
    /// No connection, or it broke before the answer was there.
    #[error("{place} cannot be reached: {why}")]
    Unreachable {
        /// Service and region, or address.
        place: String,
        /// What stood in the way, by its innermost cause.
        why: String,
    },
    /// Whether the call had its effect is unknown.
    #[error("{place} has not answered within {ms} ms")]
    Late {
        /// Service and region, or address.
        place: String,
        /// The milliseconds that the call was given.
        ms: u64,
    },
    /// The answer is not what the service's protocol says.
    #[error("the answer of {place} could not be read: {why}")]
    Unreadable {
        /// Service and region, or address.
        place: String,
        /// What is wrong with it.
        why: String,
    },
    /// A part of what was asked for did not come, however often it was asked for.
    #[error("{place} answers only a part: it is throttled")]
    Partial {
        /// Service and region, or address.
        place: String,
    },
}

/// Why a call failed, by what is to be done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Time mends it: throttled, late, in trouble, not reached.
    Passing,
    /// Another write was under way: a moment mends it, and the service is well.
    Contended,
    /// The role or the person may not.
    NotAllowed,
    /// The credentials have ended.
    Expired,
    /// The signature is wrong, or nobody knows the key: wrong credentials, or a clock that is off.
    Unknown,
    /// What is asked for is not there.
    Missing,
    /// The request itself is wrong.
    Wrong,
}

impl Cause {
    /// What an operator has to do; none where time mends it.
    #[must_use]
    pub const fn remedy(self) -> Option<&'static str> {
        match self {
            Self::Passing | Self::Contended => None,
            Self::NotAllowed => Some(
                "The role may not do that: deploy template.yaml again, which says what each function may.",
            ),
            Self::Expired => Some(
                "The credentials have ended: a function gets new ones with its next process; where they are a person's, sign in again.",
            ),
            Self::Unknown => Some(
                "AWS does not accept the credentials: check that they are of this account, and that the clock of this machine is right (five minutes are too many).",
            ),
            Self::Missing => Some(
                "It does not exist: deploy template.yaml, or correct the variable that names it.",
            ),
            Self::Wrong => Some(
                "AWS does not take such a request: this is a defect of Bobbin; the request id helps to find it.",
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

    /// What the failure comes from, and so what is to be done about it.
    #[must_use]
    pub fn cause(&self) -> Cause {
        match self {
            Self::Refused { code, status, .. } => cause(code, *status),
            Self::Unsigned { .. } => Cause::Unknown,
            _ => Cause::Passing,
        }
    }

    /// The error, and what an operator has to do where that is known.
    #[must_use]
    pub fn with_remedy(&self) -> String {
        match self.cause().remedy() {
            Some(remedy) => format!("{self}. {remedy}"),
            None => self.to_string(),
        }
    }
}

fn cause(code: &str, status: u16) -> Cause {
    // The queues' codes have had a first name: `AWS.SimpleQueueService.NonExistentQueue`.
    match code.rsplit('.').next().unwrap_or(code) {
        code if THROTTLED.contains(&code) || PASSING.contains(&code) => Cause::Passing,
        CONTENDED => Cause::Contended,
        "AccessDenied"
        | "AccessDeniedException"
        | "UnauthorizedOperation"
        | "NotAuthorized"
        | "OptInRequired"
        | "KmsAccessDenied"
        | "KMSAccessDeniedException" => Cause::NotAllowed,
        "ExpiredToken" | "ExpiredTokenException" | "RequestExpired" => Cause::Expired,
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
        | "InvalidSecurity" => Cause::Unknown,
        "ResourceNotFoundException" | "QueueDoesNotExist" | "NonExistentQueue" => Cause::Missing,
        _ => match status {
            408 | 425 | 429 | 500.. => Cause::Passing,
            401 | 403 => Cause::NotAllowed,
            _ => Cause::Wrong,
        },
    }
}

/// An error of the SDK, told in our words.
pub(crate) trait IntoCallError {
    /// Of a call to this place that may take so long.
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
                // The SDK calls an answer a refusal that it could not read, too.
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

/// A service's sentence. One about a signature quotes the request that was signed, the session token with it.
fn words<'a>(code: &str, status: u16, message: Option<&'a str>) -> &'a str {
    match cause(code, status) {
        Cause::Unknown | Cause::Expired => "the credentials or the signature were not accepted",
        _ => message.unwrap_or("no message"),
    }
}

fn unread(status: u16, why: &str, request_id: &str) -> String {
    kept(&format!("status {status}, request id {request_id}, {why}"))
}

fn unreached(why: &str) -> String {
    if why.contains(BAD_CERTIFICATE) {
        kept(&format!(
            "{why}; where a proxy looks into TLS, name its certificates with AWS_CA_BUNDLE to the command line, and let functions reach AWS without it"
        ))
    } else {
        kept(why)
    }
}

/// What the provider of credentials says, where it is what failed.
fn credentials_missing(error: &(dyn Error + 'static)) -> Option<String> {
    let found = sources(error).find_map(|source| source.downcast_ref::<CredentialsError>())?;
    Some(match found {
        CredentialsError::CredentialsNotLoaded(_) => "no AWS credentials were found".to_owned(),
        CredentialsError::ProviderTimedOut(_) => {
            "AWS credentials were not given in time".to_owned()
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

/// The last cause: the outer ones of a connection or of credentials say nothing.
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
            ("ThrottlingException", 400, Cause::Passing),
            (CONTENDED, 400, Cause::Contended),
            ("ProvisionedThroughputExceededException", 400, Cause::Passing),
            ("RequestThrottled", 403, Cause::Passing),
            ("RequestTimeout", 400, Cause::Passing),
            ("InternalServerError", 500, Cause::Passing),
            ("AnythingAtAll", 503, Cause::Passing),
            ("AnythingAtAll", 429, Cause::Passing),
            ("AccessDeniedException", 400, Cause::NotAllowed),
            ("KMSAccessDeniedException", 400, Cause::NotAllowed),
            ("AnythingAtAll", 403, Cause::NotAllowed),
            ("ExpiredTokenException", 400, Cause::Expired),
            ("ExpiredToken", 403, Cause::Expired),
            ("InvalidSignatureException", 400, Cause::Unknown),
            ("SignatureDoesNotMatch", 403, Cause::Unknown),
            ("UnrecognizedClientException", 400, Cause::Unknown),
            ("InvalidClientTokenId", 403, Cause::Unknown),
            ("AWS.SimpleQueueService.NonExistentQueue", 400, Cause::Missing),
            ("QueueDoesNotExist", 400, Cause::Missing),
            ("ResourceNotFoundException", 400, Cause::Missing),
            ("ValidationException", 400, Cause::Wrong),
        ];
        for (code, status, expected) in table {
            assert_eq!(cause(code, status), expected, "{code} {status}");
            let is_of_time = matches!(expected, Cause::Passing | Cause::Contended);
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
