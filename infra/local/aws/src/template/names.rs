//! Names of the template's resources, with their `Ref` and `GetAtt` values.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::error::TemplateError;
use super::intrinsic::TemplateScope;
use super::reading::{FUNCTION, GROUP, KEY, QUEUE, SECRET, TABLE, function_arn};
use crate::account::AwsAccount;
use crate::sqs::queue_arn;
use crate::{kms, secrets};

/// Names every resource and sets its `Ref` and `GetAtt` values. Returns the names by logical id.
pub(super) fn assign(
    resources: &BTreeMap<&String, &Value>,
    stack: &str,
    account: &AwsAccount,
    urls: &BTreeMap<String, String>,
    scope: &mut TemplateScope,
) -> Result<BTreeMap<String, String>, TemplateError> {
    let mut names = BTreeMap::new();
    for (id, resource) in resources {
        let kind = resource["Type"].as_str().unwrap_or_default();
        let own_name = match kind {
            TABLE => "TableName",
            QUEUE => "QueueName",
            FUNCTION => "FunctionName",
            SECRET | GROUP => "Name",
            _ => "",
        };
        let given = scope
            .resolve(&resource["Properties"][own_name])
            .map_err(|reason| TemplateError::Invalid(format!("resource {id}"), reason))?;
        let name = match given.as_str() {
            Some(name) => name.to_owned(),
            None if kind == QUEUE && resource["Properties"]["FifoQueue"] == json!(true) => {
                format!("{stack}-{id}.fifo")
            }
            None => format!("{stack}-{id}"),
        };
        let (reference, attributes) = addresses(kind, &name, account);
        for (attribute, value) in attributes {
            scope.attributes.insert(format!("{id}.{attribute}"), value);
        }
        if let Some(url) = urls.get(*id) {
            let path = format!("{id}Url.FunctionUrl");
            scope.attributes.insert(path, url.clone());
        }
        scope.references.insert((*id).clone(), reference);
        names.insert((*id).clone(), name);
    }
    Ok(names)
}

/// A resource's `Ref`, and its attributes for `GetAtt`.
fn addresses(
    kind: &str,
    name: &str,
    account: &AwsAccount,
) -> (String, Vec<(&'static str, String)>) {
    let arn = match kind {
        TABLE => account.arn("dynamodb", &format!("table/{name}")),
        QUEUE => queue_arn(&account.region, &account.id, name),
        SECRET => secrets::arn(account, name),
        KEY => kms::arn(account, &kms::key_id(account, name)),
        FUNCTION => function_arn(account, name),
        GROUP => account.arn("scheduler", &format!("schedule-group/{name}")),
        // Not set up here, but others may refer to it, for example to a role's ARN in an environment.
        _ => match kind.split("::").nth(1).unwrap_or("local") {
            "IAM" => format!("arn:aws:iam::{}:role/{name}", account.id),
            service => account.arn(&service.to_ascii_lowercase(), name),
        },
    };
    match kind {
        QUEUE => {
            let url = account.queue_url(name);
            let attributes =
                vec![("Arn", arn), ("QueueName", name.to_owned()), ("QueueUrl", url.clone())];
            (url, attributes)
        }
        SECRET => (arn.clone(), vec![("Id", arn)]),
        KEY => {
            let id = kms::key_id(account, name).to_string();
            (id.clone(), vec![("Arn", arn), ("KeyId", id)])
        }
        _ => (name.to_owned(), vec![("Arn", arn)]),
    }
}
