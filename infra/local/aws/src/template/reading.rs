//! Shared context for reading a template's resources.

use std::collections::BTreeMap;

use serde_json::Value;

use super::intrinsic::TemplateScope;
use crate::account::AwsAccount;

pub(super) const TABLE: &str = "AWS::DynamoDB::Table";
pub(super) const QUEUE: &str = "AWS::SQS::Queue";
pub(super) const SECRET: &str = "AWS::SecretsManager::Secret";
pub(super) const KEY: &str = "AWS::KMS::Key";
pub(super) const FUNCTION: &str = "AWS::Serverless::Function";
pub(super) const GROUP: &str = "AWS::Scheduler::ScheduleGroup";

/// The ARN of a function.
pub(super) fn function_arn(account: &AwsAccount, name: &str) -> String {
    account.arn("lambda", &format!("function:{name}"))
}

/// What is known before a resource is read.
pub(super) struct ResourceReader<'a> {
    pub(super) stack: &'a str,
    pub(super) account: &'a AwsAccount,
    pub(super) scope: &'a TemplateScope,
    pub(super) names: &'a BTreeMap<String, String>,
    pub(super) globals: &'a Value,
}

impl ResourceReader<'_> {
    /// The name of a resource by its logical id.
    pub(super) fn name_of(&self, id: &str) -> String {
        self.names.get(id).cloned().unwrap_or_default()
    }
}
