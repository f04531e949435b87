//! A press on a page of ingress, when the table or the queue fails in between.

use bobbin_core::base::person::{Membership, Person};
use bobbin_core::base::reply::Reply;
use bobbin_core::schema::{Shape, UnknownFields, write};
use bobbin_core::tenant::setup_link::{Purpose, SetupLink};
use bobbin_core::tenant::sign_in::{OwnerChoice, SignInFound, press_id};
use bobbin_tests::function::{Called, Function, Started};
use serde_json::{Value, json};

use super::events::stored;
use super::secret;

const GET: &str = "DynamoDB_20120810.GetItem";
const UPDATE: &str = "DynamoDB_20120810.UpdateItem";
const SEND: &str = "AmazonSQS.SendMessage";
const ID: &str = "1111111111111111111111111111111111111111111111111111111111111111";
const TOKEN: &str = "2222222222222222222222222222222222222222222222222222222222222222";

async fn start() -> Function {
    let started = Function::start("ingress", secret(), |environment| {
        let key = "arn:aws:kms:us-east-1:123456789012:key/an-example";
        environment.push(("CREDENTIALS_KEY_ARN".to_owned(), key.to_owned()));
    });
    match started.await {
        Started::Ready(function) => *function,
        Started::Refused(refused) => panic!("{refused:?}"),
    }
}

/// The item of a link through which somebody has signed in.
fn item(pressed: bool, is_pending: bool) -> Value {
    let link = SetupLink {
        purpose: Purpose::BindOwner,
        thread: "slack:T0BOBBIN01:C0BUILD0001:1790000000.000100".parse().unwrap(),
        place: None,
        by: Person { id: "U0ANNA00001".to_owned(), name: "Anna".to_owned() },
        membership: Membership::default(),
        reply: Reply::Nobody,
        until_ms: 4_000_000_000_000,
        sign_in: Some("https://github.example/authorize?client_id=1".to_owned()),
        secret: None,
    };
    let owner = OwnerChoice {
        id: 7,
        login: "acme".to_owned(),
        is_organization: true,
        installation: 9,
        is_suspended: false,
        page: "https://github.example/installations/9".to_owned(),
    };
    let found = SignInFound::Owners {
        login: "anna".to_owned(),
        owners: vec![owner],
        unsaid: Vec::new(),
        install: "https://github.example/install".to_owned(),
    };
    let none = UnknownFields::default();
    let mut item = json!({
        "setup": {"S": write(Shape::Setup, &link, &none).unwrap()},
        "until_ms": {"N": "4000000000000"}, "press": {"S": press_id(TOKEN)}, "code": {"S": "sealed"},
    });
    if is_pending {
        item["found"] = json!({"S": write(Shape::SignIn, &found, &none).unwrap()});
    }
    if pressed {
        item["pressed"] = json!({"S": "7"});
        item["pressed_at_ms"] = json!({"N": "1795168800000"});
    }
    json!({"Item": item})
}

/// A visit of the page that the sign-in leads to; with a body a press.
fn visit(body: Option<&str>) -> Value {
    let mut event = stored("ingress").into_iter().find(|(name, _)| name == "not-found").unwrap().1;
    let path = format!("/setup/{ID}/{TOKEN}");
    event["rawPath"] = json!(path);
    event["requestContext"]["http"]["path"] = json!(path);
    event["requestContext"]["http"]["method"] = json!(body.map_or("GET", |_| "POST"));
    event["headers"]["content-type"] = json!("application/x-www-form-urlencoded");
    event["body"] = json!(body.unwrap_or_default());
    event
}

/// The deduplication ids of what was sent.
fn sent(calls: &[Called]) -> Vec<String> {
    let sends = calls.iter().filter(|call| call.what == SEND);
    sends.map(|call| call.body["MessageDeduplicationId"].as_str().unwrap().to_owned()).collect()
}

pub async fn pressed_again() {
    let mut function = start().await;
    function.answer(GET, 200, item(true, true));
    let mut ids = Vec::new();
    for body in [None, Some("choice=7")] {
        let shown = function.invoke(&visit(body)).await.unwrap();
        assert_eq!(shown["statusCode"], 200, "{shown}");
        assert!(shown["body"].as_str().unwrap().contains("Done here"), "{shown}");
        ids.extend(sent(&function.calls()));
    }
    assert!(ids.len() == 2 && ids[0] == ids[1], "the worker hears of one press: {ids:?}");

    let gone =
        json!({"__type": "com.amazonaws.sqs#QueueDoesNotExist", "message": "It does not exist."});
    function.answer(SEND, 400, gone);
    let unsent = function.invoke(&visit(None)).await.unwrap();
    assert_eq!(unsent["statusCode"], 503, "{unsent}");
    let _ = function.calls();
    function.answer(GET, 200, item(true, false));
    let over = function.invoke(&visit(None)).await.unwrap();
    assert_eq!((&over["statusCode"], sent(&function.calls())), (&json!(200), Vec::new()));
    function.end().await;
}

pub async fn unknown_press() {
    let mut function = start().await;
    function.answer(GET, 200, item(false, true));
    let failed = json!({"__type": "com.amazonaws.dynamodb.v20120810#InternalServerError", "message": "Try again."});
    function.answer(UPDATE, 500, failed);
    let shown = function.invoke(&visit(Some("choice=7"))).await.unwrap();
    assert_eq!(shown["statusCode"], 503, "{shown}");
    let calls = function.calls();
    assert_eq!(sent(&calls), Vec::<String>::new());
    let last = calls.iter().rfind(|call| call.what == UPDATE).unwrap();
    assert_eq!(last.body["UpdateExpression"], "REMOVE #pressed, #at", "it is taken back");
    function.end().await;
}
