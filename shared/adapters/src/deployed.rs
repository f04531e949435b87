//! A deployed stack, found by its name from a person's terminal: its outputs and parameters, by one signed call of
//! `CloudFormation`'s `DescribeStacks`; its keys, its queues and its table by those.
//!
//! A person's call now and then needs no SDK crate: it is signed by [`crate::signing`], goes out by [`crate::http`] with its
//! guard and bounds, and the one answer that is XML is read by roxmltree. Deliberately absent: retries (a person is there
//! to repeat the command), and every call that changes a stack.

mod call;
mod keyring;

use std::collections::BTreeMap;

use bobbin_core::message::Body;
use reqwest::header::CONTENT_TYPE;
use roxmltree::{Document, Node, ParsingOptions};
use serde_json::json;

use self::call::{Refusal, Service};
pub use self::keyring::Keyring;
use crate::account::Account;
use crate::http::Answer;
use crate::signing::escaped;
use crate::store::Store;

/// The version of `CloudFormation`'s query protocol; there is one.
const API_VERSION: &str = "2010-05-15";
/// Elements of a description.
const DESCRIPTION_NODES_MAX: u32 = 50_000;
/// The media type that the query protocol is sent in.
const FORM: &str = "application/x-www-form-urlencoded";

const SERVICE: Service = Service {
    name: "cloudformation",
    title: "CloudFormation",
};
const QUEUES: Service = Service {
    name: "sqs",
    title: "SQS",
};

/// A stack as `CloudFormation` describes it.
#[derive(Debug, Clone)]
pub struct Deployed {
    account: Account,
    name: String,
    status: String,
    outputs: BTreeMap<String, String>,
    parameters: BTreeMap<String, String>,
}

impl Deployed {
    /// Finds a stack in the account and region of the person's terminal. `endpoint` stands for AWS's own address (the
    /// laptop stack's, an emulator's), and before `AWS_ENDPOINT_URL`.
    ///
    /// # Errors
    /// What is missing and what to do: no credentials, no region, no such stack, no permission, no answer.
    pub async fn find(stack_name: &str, endpoint: Option<&str>) -> Result<Self, String> {
        Self::find_in(Account::of_person(endpoint).await?, stack_name).await
    }

    /// Finds the laptop stack, which needs nothing of the person's environment.
    ///
    /// # Errors
    /// As [`Deployed::find`].
    pub async fn find_laptop(stack_name: &str, endpoint: &str) -> Result<Self, String> {
        Self::find_in(Account::of_laptop(endpoint)?, stack_name).await
    }

    async fn find_in(account: Account, stack_name: &str) -> Result<Self, String> {
        let answer = describe(&account, stack_name).await?;
        let text = String::from_utf8_lossy(&answer.body);
        let options = ParsingOptions {
            nodes_limit: DESCRIPTION_NODES_MAX,
            ..ParsingOptions::default()
        };
        let read = Document::parse_with_options(&text, options);
        let document = read.map_err(|_| call::unreadable(&account, SERVICE, answer.status))?;
        if !answer.ok() {
            return Err(refused(&account, stack_name, answer.status, &document));
        }
        let stack = child(document.root_element(), "DescribeStacksResult")
            .and_then(|result| child(result, "Stacks"))
            .and_then(|stacks| child(stacks, "member"))
            .ok_or_else(|| call::unreadable(&account, SERVICE, answer.status))?;
        let status = text_of(stack, "StackStatus").to_owned();
        let (outputs, parameters) = (
            pairs(stack, "Outputs", ["OutputKey", "OutputValue"]),
            pairs(stack, "Parameters", ["ParameterKey", "ParameterValue"]),
        );
        Ok(Self {
            name: text_of(stack, "StackName").to_owned(),
            account,
            status,
            outputs,
            parameters,
        })
    }

    /// The name of the stack.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `CloudFormation`'s word for its state, such as `UPDATE_COMPLETE`.
    #[must_use]
    pub fn status(&self) -> &str {
        &self.status
    }

    /// Where it was found: clients of this account reach the same region and endpoint.
    #[must_use]
    pub const fn account(&self) -> &Account {
        &self.account
    }

    /// The region that it is in.
    #[must_use]
    pub fn region(&self) -> &str {
        self.account.region()
    }

    /// The table of its sessions.
    ///
    /// # Errors
    /// That the stack does not name it.
    pub fn store(&self) -> Result<Store, String> {
        let table = self.output("TableName")?;
        Ok(Store::new(self.account.direct(), table))
    }

    /// Puts a body into its queue, as the ingress does.
    ///
    /// # Errors
    /// What is missing and what to do. A repeat under the same id is harmless.
    pub async fn send(&self, body: &Body) -> Result<(), String> {
        let output = match body {
            Body::Control(_) | Body::Announce(_) | Body::Overview(_) => "ControlQueueUrl",
            Body::Message(_) | Body::Open(_) => "MessagesQueueUrl",
        };
        let text = serde_json::to_string(body).map_err(|e| e.to_string())?;
        let asked = json!({
            "QueueUrl": self.output(output)?, "MessageBody": text,
            "MessageGroupId": body.group(), "MessageDeduplicationId": body.id(),
        });
        let kind = "application/x-amz-json-1.0";
        let sent = call::json(&self.account, QUEUES, kind, "AmazonSQS.SendMessage", &asked).await?;
        match sent {
            Ok(_) => Ok(()),
            Err(refusal) => Err(refusal.told(QUEUES, "sqs:SendMessage on the stack's queues")),
        }
    }

    /// An output.
    ///
    /// # Errors
    /// That there is none, with the state of the stack.
    pub fn output(&self, name: &str) -> Result<&str, String> {
        let found = self.outputs.get(name).map(String::as_str);
        found.ok_or_else(|| {
            format!(
                "The stack {} ({}) has no output {name}: deploy the template.yaml of this version into it with sam deploy, and wait for it to be complete.",
                self.name, self.status
            )
        })
    }

    /// A parameter's present value; a value that the template hides comes as asterisks.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }
}

async fn describe(account: &Account, stack: &str) -> Result<Answer, String> {
    let body = format!(
        "Action=DescribeStacks&Version={API_VERSION}&StackName={}",
        escaped(stack)
    );
    let headers = [(CONTENT_TYPE.as_str(), FORM)];
    call::post(account, SERVICE, &headers, body).await
}

fn refused(account: &Account, stack: &str, status: u16, document: &Document<'_>) -> String {
    let error = document
        .descendants()
        .find(|node| node.tag_name().name() == "Error");
    let Some(error) = error else {
        return call::unreadable(account, SERVICE, status);
    };
    let refusal = Refusal::new(status, text_of(error, "Code"), text_of(error, "Message"));
    if refusal.code == "ValidationError" && refusal.message.contains("does not exist") {
        let region = account.region();
        return format!(
            "There is no stack {stack} in {region}. Deploy it first (sam build && sam deploy --guided), or name yours with --stack, and its region with AWS_REGION."
        );
    }
    refusal.told(SERVICE, "cloudformation:DescribeStacks")
}

fn child<'a, 'i>(node: Node<'a, 'i>, name: &str) -> Option<Node<'a, 'i>> {
    node.children()
        .find(|child| child.tag_name().name() == name)
}

fn text_of<'a>(node: Node<'a, '_>, name: &str) -> &'a str {
    child(node, name)
        .and_then(|node| node.text())
        .unwrap_or_default()
        .trim()
}

fn pairs(stack: Node<'_, '_>, list: &str, [key, value]: [&str; 2]) -> BTreeMap<String, String> {
    let members = child(stack, list);
    let members = members.iter().flat_map(|list| list.children());
    members
        .filter(|member| member.tag_name().name() == "member")
        .map(|member| {
            (
                text_of(member, key).to_owned(),
                text_of(member, value).to_owned(),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::{Arc, Mutex};

    use axum::Router;
    use axum::http::{HeaderMap, StatusCode};

    use super::*;

    const STACK: &str = r#"<?xml version="1.0"?>
<DescribeStacksResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/">
  <DescribeStacksResult>
    <Stacks>
      <member>
        <StackName>bobbin</StackName>
        <StackStatus>UPDATE_COMPLETE</StackStatus>
        <Parameters>
          <member><ParameterKey>Model</ParameterKey><ParameterValue>a/b</ParameterValue></member>
          <member><ParameterKey>Empty</ParameterKey><ParameterValue/></member>
        </Parameters>
        <Outputs>
          <member>
            <Description>Not looked at</Description>
            <OutputKey>IngressAddress</OutputKey>
            <OutputValue>https://x.lambda-url.eu-central-1.on.aws/?a=1&amp;b=2</OutputValue>
          </member>
        </Outputs>
      </member>
    </Stacks>
  </DescribeStacksResult>
</DescribeStacksResponse>"#;

    struct Seen {
        endpoint: String,
        call: Arc<Mutex<Option<(HeaderMap, String)>>>,
    }

    /// An endpoint that answers alike, and what it was asked.
    async fn answering(status: u16, body: &str) -> Seen {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let call: Arc<Mutex<Option<(HeaderMap, String)>>> = Arc::default();
        let (seen, body) = (Arc::clone(&call), body.to_owned());
        let answer = move |headers: HeaderMap, asked: String| {
            *seen.lock().unwrap() = Some((headers, asked));
            std::future::ready((StatusCode::from_u16(status).unwrap(), body.clone()))
        };
        let app = Router::new().fallback(answer);
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Seen { endpoint, call }
    }

    async fn find(seen: &Seen, name: &str) -> Result<Deployed, String> {
        let account = Account::fixed("eu-central-1", Some(&seen.endpoint));
        Deployed::find_in(account, name).await
    }

    #[tokio::test]
    async fn a_stack_is_found_by_one_signed_call() {
        let seen = answering(200, STACK).await;
        let found = find(&seen, "bobbin & co").await.unwrap();
        assert_eq!(
            (found.name(), found.status()),
            ("bobbin", "UPDATE_COMPLETE")
        );
        assert_eq!(
            found.output("IngressAddress").unwrap(),
            "https://x.lambda-url.eu-central-1.on.aws/?a=1&b=2"
        );
        assert_eq!(found.parameter("Model"), Some("a/b"));
        assert_eq!(found.parameter("Empty"), Some(""));
        assert_eq!(found.parameter("Modell"), None);
        assert_eq!(
            found.output("WorkerSecretArn").unwrap_err(),
            "The stack bobbin (UPDATE_COMPLETE) has no output WorkerSecretArn: deploy the template.yaml of this version into it with sam deploy, and wait for it to be complete."
        );

        let (headers, asked) = seen.call.lock().unwrap().clone().unwrap();
        assert_eq!(
            asked,
            "Action=DescribeStacks&Version=2010-05-15&StackName=bobbin%20%26%20co"
        );
        let signed = headers["authorization"].to_str().unwrap();
        assert!(
            signed.starts_with("AWS4-HMAC-SHA256 Credential=an-id/"),
            "{signed}"
        );
        assert!(
            signed.contains("/eu-central-1/cloudformation/aws4_request, SignedHeaders=content-type;host;x-amz-date;x-amz-security-token,"),
            "{signed}"
        );
        assert_eq!(headers["x-amz-security-token"], "a-token");
    }

    #[tokio::test]
    async fn every_refusal_says_what_to_do() {
        let error = |code: &str, message: &str| {
            format!(
                "<ErrorResponse xmlns=\"x\"><Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message></Error></ErrorResponse>"
            )
        };
        let table = [
            (
                400,
                error("ValidationError", "Stack with id bobbin does not exist"),
                "There is no stack bobbin in eu-central-1. Deploy it first",
            ),
            (
                403,
                error("AccessDenied", "User: arn:x is not authorized"),
                "the credentials need cloudformation:DescribeStacks",
            ),
            (
                403,
                error("ExpiredToken", "The security token is expired"),
                "have expired: sign in again",
            ),
            (
                403,
                error("InvalidClientTokenId", "The token is invalid"),
                "check AWS_PROFILE",
            ),
            (
                400,
                error("Throttling", "Rate exceeded"),
                "try again in a minute",
            ),
            (
                500,
                error("InternalFailure", "Oops"),
                "CloudFormation answered 500 InternalFailure: Oops",
            ),
            (
                200,
                "<html>hello</html>".to_owned(),
                "is not CloudFormation: check AWS_ENDPOINT_URL",
            ),
            (
                200,
                "{}".to_owned(),
                "is not CloudFormation: check AWS_ENDPOINT_URL",
            ),
            (
                200,
                "<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>".to_owned(),
                "is not CloudFormation",
            ),
        ];
        for (status, body, words) in table {
            let seen = answering(status, &body).await;
            let told = find(&seen, "bobbin").await.unwrap_err();
            assert!(told.contains(words), "{body}: {told}");
        }
        let large = "<a/>".repeat(1024 * 1024 + 1);
        let told = find(&answering(200, &large).await, "bobbin")
            .await
            .unwrap_err();
        assert!(told.contains("more than 4194304 bytes"), "{told}");
    }

    #[test]
    fn each_region_has_its_address() {
        let at = |region| call::address(&Account::fixed(region, None), SERVICE);
        assert_eq!(
            at("eu-west-1"),
            "https://cloudformation.eu-west-1.amazonaws.com/"
        );
        assert_eq!(
            at("cn-north-1"),
            "https://cloudformation.cn-north-1.amazonaws.com.cn/"
        );
    }
}
