//! SQS's errors, with the texts and codes that SDKs branch on.

use axum::http::StatusCode;

/// A refusal. `shape` is the JSON protocol's name, `code` the older name that `x-amzn-query-error` carries and SDKs
/// report.
#[derive(Debug, thiserror::Error)]
#[error("{code}: {message}")]
pub(crate) struct SqsError {
    pub(crate) shape: &'static str,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) status: StatusCode,
}

impl SqsError {
    fn sender(shape: &'static str, code: &'static str, message: impl Into<String>) -> Self {
        Self { shape, code, message: message.into(), status: StatusCode::BAD_REQUEST }
    }

    /// Sets a status other than 400, where AWS's model has one.
    fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// Its name in the body, with AWS's namespace.
    pub(crate) fn type_name(&self) -> String {
        let namespace = match self.shape {
            "SerializationException" | "UnknownOperationException" => "com.amazon.coral.service",
            _ => "com.amazonaws.sqs",
        };
        format!("{namespace}#{}", self.shape)
    }

    pub(crate) fn no_such_queue() -> Self {
        Self::sender(
            "QueueDoesNotExist",
            "AWS.SimpleQueueService.NonExistentQueue",
            "The specified queue does not exist.",
        )
    }

    pub(crate) fn queue_exists(attribute: &str) -> Self {
        Self::sender(
            "QueueNameExists",
            "QueueAlreadyExists",
            format!(
                "A queue already exists with the same name and a different value for attribute {attribute}"
            ),
        )
    }

    pub(crate) fn attribute_name(name: &str) -> Self {
        Self::sender(
            "InvalidAttributeName",
            "InvalidAttributeName",
            format!("Unknown Attribute {name}."),
        )
    }

    pub(crate) fn attribute_value(name: &str, reason: &str) -> Self {
        Self::sender(
            "InvalidAttributeValue",
            "InvalidAttributeValue",
            format!("Invalid value for the parameter {name}. Reason: {reason}"),
        )
    }

    /// A parameter has an invalid value.
    pub(crate) fn value(parameter: &str, value: impl std::fmt::Display, reason: &str) -> Self {
        Self::parameter(format!(
            "Value {value} for parameter {parameter} is invalid. Reason: {reason}"
        ))
    }

    pub(crate) fn parameter(message: impl Into<String>) -> Self {
        Self::sender("InvalidParameterValueException", "InvalidParameterValue", message)
    }

    pub(crate) fn missing(parameter: &str) -> Self {
        Self::sender(
            "MissingRequiredParameterException",
            "MissingParameter",
            format!("The request must contain the parameter {parameter}."),
        )
    }

    pub(crate) fn contents() -> Self {
        Self::sender(
            "InvalidMessageContents",
            "InvalidMessageContents",
            "The message contains characters outside the allowed set.",
        )
    }

    pub(crate) fn malformed_receipt() -> Self {
        Self::sender(
            "ReceiptHandleIsInvalid",
            "ReceiptHandleIsInvalid",
            "The input receipt handle is invalid.",
        )
        .with_status(StatusCode::NOT_FOUND)
    }

    pub(crate) fn expired_receipt(handle: &str) -> Self {
        Self::value("ReceiptHandle", handle, "The receipt handle has expired.")
    }

    pub(crate) fn not_available(handle: &str) -> Self {
        Self::value(
            "ReceiptHandle",
            handle,
            "Message does not exist or is not available for visibility timeout change.",
        )
    }

    pub(crate) fn not_in_flight() -> Self {
        Self::sender(
            "MessageNotInflight",
            "AWS.SimpleQueueService.MessageNotInflight",
            // The model gives it no member, hence no message.
            "",
        )
    }

    pub(crate) fn empty_batch() -> Self {
        Self::sender(
            "EmptyBatchRequest",
            "AWS.SimpleQueueService.EmptyBatchRequest",
            "There should be at least one entry in the request.",
        )
    }

    pub(crate) fn batch_entries(count: usize, max: usize) -> Self {
        Self::sender(
            "TooManyEntriesInBatchRequest",
            "AWS.SimpleQueueService.TooManyEntriesInBatchRequest",
            format!("Maximum number of entries per request are {max}. You have sent {count}."),
        )
    }

    pub(crate) fn batch_ids(id: &str) -> Self {
        Self::sender(
            "BatchEntryIdsNotDistinct",
            "AWS.SimpleQueueService.BatchEntryIdsNotDistinct",
            format!("Id {id} repeated."),
        )
    }

    pub(crate) fn batch_id_format() -> Self {
        Self::sender(
            "InvalidBatchEntryId",
            "AWS.SimpleQueueService.InvalidBatchEntryId",
            "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long.",
        )
    }

    pub(crate) fn batch_bytes(bytes: usize, max: usize) -> Self {
        Self::sender(
            "BatchRequestTooLong",
            "AWS.SimpleQueueService.BatchRequestTooLong",
            format!(
                "Batch requests cannot be longer than {max} bytes. You have sent {bytes} bytes."
            ),
        )
    }

    pub(crate) fn purge_in_progress(queue: &str) -> Self {
        Self::sender(
            "PurgeQueueInProgress",
            "AWS.SimpleQueueService.PurgeQueueInProgress",
            format!("Only one PurgeQueue operation on {queue} is allowed every 60 seconds."),
        )
        .with_status(StatusCode::FORBIDDEN)
    }

    pub(crate) fn unknown_action(action: &str) -> Self {
        Self::sender(
            "UnknownOperationException",
            "InvalidAction",
            format!("The action {action} is not valid for this endpoint."),
        )
    }

    /// The request is not JSON, or a member has the wrong type.
    pub(crate) fn serialization(reason: impl std::fmt::Display) -> Self {
        Self::sender(
            "SerializationException",
            "MalformedInput",
            format!("The request could not be read: {reason}."),
        )
    }

    pub(crate) fn deleted_recently() -> Self {
        Self::sender(
            "QueueDeletedRecently",
            "AWS.SimpleQueueService.QueueDeletedRecently",
            "You must wait 60 seconds after deleting a queue before you can create another with the same name.",
        )
    }
}

impl From<rusqlite::Error> for SqsError {
    fn from(error: rusqlite::Error) -> Self {
        Self {
            shape: "InternalError",
            code: "InternalFailure",
            message: format!(
                "The queue's file could not be used ({error}). Check free space and rights of the state folder."
            ),
            status: StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}
