//! A deployed stack, found by its name from a person's terminal: its outputs and parameters from `CloudFormation`'s
//! `DescribeStacks`, and through those its keys, queues and table. Deliberately absent: every call that changes a
//! stack.

mod keyring;
mod receive;

use std::collections::BTreeMap;

use aws_sdk_cloudformation::types::Stack;
use bobbin_core::records::message::Body;

pub use self::keyring::Keyring;
pub use self::receive::ReceivedMessage;
use crate::aws::{Aws, CallError, FailureCause, NO_CREDENTIALS};
use crate::config::stack_id;
use crate::store::Store;

/// Bound of a call, retries included: the person can repeat the command.
const CALL_MS_MAX: u64 = 20_000;

/// A stack as `CloudFormation` describes it.
#[derive(Debug, Clone)]
pub struct Deployed {
    aws: Aws,
    name: String,
    id: String,
    status: String,
    outputs: BTreeMap<String, String>,
    parameters: BTreeMap<String, String>,
}

impl Deployed {
    /// Finds a stack in the account and region of the person's terminal. `endpoint` replaces AWS's own address (with
    /// the laptop stack's, or an emulator's), and takes precedence over `AWS_ENDPOINT_URL`.
    ///
    /// # Errors
    /// What is missing and what to do: no credentials, no region, no such stack, no permission, no answer.
    pub async fn find(stack_name: &str, endpoint: Option<&str>) -> Result<Self, String> {
        Self::find_in(Aws::of_person(endpoint).await?, stack_name).await
    }

    /// Finds the laptop stack with its key (id and secret); needs nothing from the person's environment.
    ///
    /// # Errors
    /// As [`Deployed::find`].
    pub async fn find_laptop(
        stack_name: &str,
        endpoint: &str,
        key: (&str, &str),
    ) -> Result<Self, String> {
        Self::find_in(Aws::of_laptop(endpoint, key)?, stack_name).await
    }

    async fn find_in(aws: Aws, stack_name: &str) -> Result<Self, String> {
        let cloudformation = aws.cloudformation(CALL_MS_MAX);
        let describe = cloudformation.client.describe_stacks();
        let described = describe.stack_name(stack_name).send().await;
        let described = described.map_err(|e| {
            let error = cloudformation.failed(e);
            match &error {
                CallError::Refused { code, message, .. }
                    if code == "ValidationError" && message.contains("does not exist") =>
                {
                    not_there(&aws, stack_name)
                }
                _ => told(&error, "cloudformation:DescribeStacks"),
            }
        })?;
        let stack = described.stacks.unwrap_or_default().into_iter().next();
        let stack = stack.ok_or_else(|| told(&cloudformation.unreadable("Stacks"), ""))?;
        Ok(Self {
            name: stack.stack_name().unwrap_or(stack_name).to_owned(),
            id: stack_id(stack.stack_id().unwrap_or_default()).to_owned(),
            status: stack
                .stack_status()
                .map(|status| status.as_str().to_owned())
                .unwrap_or_default(),
            outputs: outputs(&stack),
            parameters: parameters(&stack),
            aws,
        })
    }

    /// The name of the stack.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The stack's unique id, as in the labels of its sandboxes.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// `CloudFormation`'s status, such as `UPDATE_COMPLETE`.
    #[must_use]
    pub fn status(&self) -> &str {
        &self.status
    }

    /// The AWS configuration with which it was found: its services are in the same region, or at the same endpoint.
    #[must_use]
    pub const fn aws(&self) -> &Aws {
        &self.aws
    }

    /// Its region.
    #[must_use]
    pub fn region(&self) -> &str {
        self.aws.region()
    }

    /// The table of its sessions.
    ///
    /// # Errors
    /// The stack does not name its table.
    pub fn store(&self) -> Result<Store, String> {
        Ok(Store::new(&self.aws, self.output("TableName")?))
    }

    /// Sends a body to its queue, as ingress does.
    ///
    /// # Errors
    /// What is missing and what to do. A repeat with the same id is harmless.
    pub async fn send(&self, body: &Body) -> Result<(), String> {
        let output = if body.is_control() { "ControlQueueUrl" } else { "MessagesQueueUrl" };
        let sqs = self.aws.sqs(CALL_MS_MAX);
        let send = sqs.client.send_message();
        let send = send
            .queue_url(self.output(output)?)
            .message_body(body.encode())
            .message_group_id(body.group())
            .message_deduplication_id(body.id());
        match send.send().await {
            Ok(_) => Ok(()),
            Err(error) => Err(told(&sqs.failed(error), "sqs:SendMessage on the stack's queues")),
        }
    }

    /// The account's limit of concurrent functions in the stack's region (`ConcurrentExecutions` of Lambda's
    /// `GetAccountSettings`).
    ///
    /// # Errors
    /// What is missing and what to do.
    pub async fn concurrency(&self) -> Result<u64, String> {
        let lambda = self.aws.lambda(CALL_MS_MAX);
        let settings = lambda.client.get_account_settings().send().await;
        let settings =
            settings.map_err(|e| told(&lambda.failed(e), "lambda:GetAccountSettings"))?;
        let limit = settings.account_limit.map(|limit| limit.concurrent_executions);
        let limit = limit.and_then(|limit| u64::try_from(limit).ok());
        limit.ok_or_else(|| told(&lambda.unreadable("AccountLimit"), ""))
    }

    /// An output.
    ///
    /// # Errors
    /// It does not exist; includes the state of the stack.
    pub fn output(&self, name: &str) -> Result<&str, String> {
        let found = self.outputs.get(name).map(String::as_str);
        found.ok_or_else(|| {
            format!(
                "The stack {} ({}) has no output {name}: deploy the template.yaml of this version into it with sam deploy, and wait for it to be complete.",
                self.name, self.status
            )
        })
    }

    /// A parameter's current value; hidden values are returned as asterisks.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }
}

fn outputs(stack: &Stack) -> BTreeMap<String, String> {
    let pairs = stack.outputs().iter().filter_map(|output| {
        let (key, value) = (output.output_key()?, output.output_value()?);
        Some((key.to_owned(), value.to_owned()))
    });
    pairs.collect()
}

fn parameters(stack: &Stack) -> BTreeMap<String, String> {
    let pairs = stack.parameters().iter().filter_map(|parameter| {
        let value = parameter.parameter_value().unwrap_or_default();
        Some((parameter.parameter_key()?.to_owned(), value.to_owned()))
    });
    pairs.collect()
}

fn not_there(aws: &Aws, stack: &str) -> String {
    format!(
        "There is no stack {stack} in {}. Deploy it first (sam build && sam deploy --guided), or name yours with --stack, and its region with AWS_REGION.",
        aws.region()
    )
}

fn capitalised(words: &str) -> String {
    let mut rest = words.chars();
    let first = rest.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(rest).collect()
}

/// What the person has to do; `action` is the permission that their credentials would need.
fn told(error: &CallError, action: &str) -> String {
    match (error, error.cause()) {
        (CallError::Unsigned { why, .. }, _) => format!("{}. {NO_CREDENTIALS}", capitalised(why)),
        (CallError::Unreachable { .. } | CallError::Late { .. }, _) => format!(
            "{error}. Check the network, AWS_REGION, and with a proxy HTTPS_PROXY and NO_PROXY."
        ),
        (CallError::Unreadable { .. }, _) => format!(
            "{error}. The server that answered is not AWS: check AWS_ENDPOINT_URL, AWS_REGION and any proxy."
        ),
        (_, FailureCause::NotAllowed) => format!("{error}. The credentials need {action}."),
        (_, FailureCause::Expired) => "The AWS credentials have expired: sign in again (aws sso login), or renew the variables AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN.".to_owned(),
        (_, FailureCause::Unknown) => format!(
            "{error}. AWS does not know these credentials, or the clock of this machine is off by more than five minutes: check AWS_PROFILE or the variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, then the clock."
        ),
        (_, FailureCause::Passing | FailureCause::Contended) => format!("{error}. Try again in a minute."),
        (_, FailureCause::Missing | FailureCause::Wrong) => error.to_string(),
    }
}

#[cfg(test)]
mod tests;
