//! A deployed stack, found by its name from a person's terminal: its outputs and parameters, by one signed call of
//! `CloudFormation`'s `DescribeStacks`.
//!
//! That service has one client here, so no SDK crate is linked for it: the call is signed by `aws-sigv4`, goes out by
//! [`crate::http`] with its guard and bounds, and its XML is read by roxmltree. Deliberately absent: retries (a person is
//! there to repeat the command) and every other call, so nothing here can change a stack.

use std::collections::BTreeMap;
use std::time::SystemTime;

use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use roxmltree::{Document, Node, ParsingOptions};

use crate::aws::Account;
use crate::http::{Answer, Hosts, Http};

/// The version of `CloudFormation`'s query protocol; there is one.
const API_VERSION: &str = "2010-05-15";
/// Bytes of a description: 200 outputs and 200 parameters of 4 KiB each, and their descriptions, fit.
const DESCRIPTION_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Elements of a description.
const DESCRIPTION_NODES_MAX: u32 = 50_000;
/// Characters of AWS's own words that an error keeps.
const MESSAGE_CHARS_MAX: usize = 400;
/// The media type that the query protocol is sent in.
const FORM: &str = "application/x-www-form-urlencoded";

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
        Self::find_in(Account::of_laptop(endpoint), stack_name).await
    }

    async fn find_in(account: Account, stack_name: &str) -> Result<Self, String> {
        let answer = describe(&account, stack_name).await?;
        let text = String::from_utf8_lossy(&answer.body);
        let options = ParsingOptions {
            nodes_limit: DESCRIPTION_NODES_MAX,
            ..ParsingOptions::default()
        };
        let read = Document::parse_with_options(&text, options);
        let document = read.map_err(|_| unreadable(&account, answer.status))?;
        if !answer.ok() {
            return Err(refused(&account, stack_name, answer.status, &document));
        }
        let stack = child(document.root_element(), "DescribeStacksResult")
            .and_then(|result| child(result, "Stacks"))
            .and_then(|stacks| child(stacks, "member"))
            .ok_or_else(|| unreadable(&account, answer.status))?;
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
    let address = address(account);
    let body = format!(
        "Action=DescribeStacks&Version={API_VERSION}&StackName={}",
        escaped(stack)
    );
    let http = Http::new(&address, Hosts::Named(Vec::new())).map_err(|e| e.to_string())?;
    let http = http.with_body_bytes_max(DESCRIPTION_BYTES_MAX);
    let mut request = http
        .request(Method::POST, &address)
        .map_err(|e| e.to_string())?
        .header(CONTENT_TYPE, FORM)
        .body(body.clone());
    for (name, value) in signature(account, &address, &body).await? {
        request = request.header(name, value);
    }
    http.send(request).await.map_err(|e| {
        format!(
            "CloudFormation did not answer: {e}. Check the network and AWS_REGION ({}).",
            account.region()
        )
    })
}

/// Where the service answers: `CloudFormation` has one host a region, in China below another name.
fn address(account: &Account) -> String {
    if let Some(endpoint) = account.endpoint() {
        return format!("{}/", endpoint.trim_end_matches('/'));
    }
    let region = account.region();
    let suffix = if region.starts_with("cn-") { ".cn" } else { "" };
    format!("https://cloudformation.{region}.amazonaws.com{suffix}/")
}

/// The headers that sign the call.
async fn signature(
    account: &Account,
    address: &str,
    body: &str,
) -> Result<Vec<(String, String)>, String> {
    let unsigned = |e: &dyn std::error::Error| format!("The call to AWS could not be signed: {e}");
    let identity = account.credentials().await?.into();
    let parameters = v4::SigningParams::builder()
        .identity(&identity)
        .region(account.region())
        .name("cloudformation")
        .time(SystemTime::now())
        .settings(SigningSettings::default())
        .build()
        .map_err(|e| unsigned(&e))?;
    let headers = [(CONTENT_TYPE.as_str(), FORM)];
    let request = SignableRequest::new(
        "POST",
        address,
        headers.into_iter(),
        SignableBody::Bytes(body.as_bytes()),
    )
    .map_err(|e| unsigned(&e))?;
    let (instructions, _) = sign(request, &parameters.into())
        .map_err(|e| unsigned(&e))?
        .into_parts();
    let signed = instructions.headers();
    Ok(signed
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect())
}

fn refused(account: &Account, stack: &str, status: u16, document: &Document<'_>) -> String {
    let error = document
        .descendants()
        .find(|node| node.tag_name().name() == "Error");
    let Some(error) = error else {
        return unreadable(account, status);
    };
    let region = account.region();
    let said = text_of(error, "Message");
    let words = bobbin_core::text::shorten(said, MESSAGE_CHARS_MAX);
    match text_of(error, "Code") {
        "ValidationError" if said.contains("does not exist") => format!(
            "There is no stack {stack} in {region}. Deploy it first (sam build && sam deploy --guided), or name yours with --stack, and its region with AWS_REGION."
        ),
        "AccessDenied" | "AccessDeniedException" | "UnauthorizedOperation" => format!(
            "The credentials may not look at the stack {stack}: they need cloudformation:DescribeStacks. ({words})"
        ),
        "ExpiredToken" | "ExpiredTokenException" | "RequestExpired" => "The AWS credentials have expired: sign in again (aws sso login), or renew the variables AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN.".to_owned(),
        "InvalidClientTokenId" | "UnrecognizedClientException" | "SignatureDoesNotMatch"
        | "InvalidSignatureException" | "IncompleteSignature" => format!(
            "AWS does not know these credentials, or the clock of this machine is wrong: check AWS_PROFILE or the variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY. ({words})"
        ),
        "Throttling" | "ThrottlingException" => {
            "CloudFormation takes no more calls just now: try again in a minute.".to_owned()
        }
        code => format!("CloudFormation answered {status} {code}: {words}"),
    }
}

fn unreadable(account: &Account, status: u16) -> String {
    format!(
        "What answered at {} (status {status}) is not CloudFormation: check AWS_ENDPOINT_URL and AWS_REGION.",
        address(account)
    )
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

/// Percent-encoded as a form's value.
fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| match plain(byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
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
                "they need cloudformation:DescribeStacks",
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
        let large = "<a/>".repeat(DESCRIPTION_BYTES_MAX / 4 + 1);
        let told = find(&answering(200, &large).await, "bobbin")
            .await
            .unwrap_err();
        assert!(told.contains("more than 4194304 bytes"), "{told}");
    }

    #[test]
    fn each_region_has_its_address() {
        let at = |region| address(&Account::fixed(region, None));
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
