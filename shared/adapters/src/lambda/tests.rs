use std::sync::Mutex;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;

/// What the Runtime API does next.
enum Step {
    /// Answers the next request with this: status, further headers, body.
    Answer(&'static str, String, String),
    /// Closes the connection; what comes next comes on another.
    Close,
}

fn event(id: u32, headers: &str, payload: &Value) -> Step {
    let headers = format!(
        "Lambda-Runtime-Aws-Request-Id: id-{id}\r\nLambda-Runtime-Deadline-Ms: {id}000\r\n{headers}"
    );
    Step::Answer("200 OK", headers, payload.to_string())
}

fn acknowledged() -> Step {
    status("202 Accepted")
}

fn gone() -> Step {
    status("410 Gone")
}

fn status(status: &'static str) -> Step {
    Step::Answer(status, String::new(), "{}".to_owned())
}

/// Serves requests by these steps, and answers with what was asked: the first line, the error's kind and the invocation's
/// id if they are told, and the body.
async fn api(listener: TcpListener, steps: Vec<Step>) -> Vec<String> {
    let mut asked = Vec::new();
    let mut open = None;
    for step in steps {
        let Step::Answer(status, headers, body) = step else {
            open = None;
            continue;
        };
        let stream = match &mut open {
            Some(stream) => stream,
            None => open.insert(listener.accept().await.expect("a connection").0),
        };
        asked.push(request(stream).await);
        let length = body.len();
        let answer =
            format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\n\r\n{body}");
        stream.write_all(answer.as_bytes()).await.expect("room");
    }
    asked
}

async fn request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let header = |name: &str| {
                let mut lines = head.lines();
                lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
            };
            let length =
                header("content-length").map_or(0, |length| length.parse().expect("a number"));
            if body.len() >= length {
                assert!(header("host").is_some());
                let line = head.lines().next().unwrap_or_default();
                let line = line.trim_end_matches(" HTTP/1.1").replace(BASE, "");
                let told = [header(ERROR_TYPE), header(INVOCATION_ID), Some(body)];
                let told = told.into_iter().flatten().filter(|told| !told.is_empty());
                return [line.as_str()]
                    .into_iter()
                    .chain(told)
                    .collect::<Vec<_>>()
                    .join(" ");
            }
        }
        assert!(
            stream.read_buf(&mut bytes).await.expect("readable") > 0,
            "closed in {text:?}"
        );
    }
}

/// What a handler answers by these steps, and how it ended.
async fn served<A: Serialize>(
    steps: Vec<Step>,
    handler: impl AsyncFn(&Invocation) -> Result<A, Failure>,
) -> (Vec<String>, Lost) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let address = listener.local_addr().expect("bound").to_string();
    tokio::join!(api(listener, steps), serve(&address, handler))
}

const GONE: fn() -> Lost = || refused(410, "invocation/next");

#[tokio::test]
async fn each_event_is_answered_before_the_next_is_asked_for() {
    let steps = vec![
        event(1, "", &json!({"number": 1})),
        acknowledged(),
        event(
            2,
            "Lambda-Runtime-Invocation-Id: again-2\r\n",
            &json!({"number": 2}),
        ),
        acknowledged(),
        gone(),
    ];
    let (asked, lost) = served(steps, async |invocation: &Invocation| {
        let event: Value = invocation.event()?;
        Ok(json!([event["number"], invocation.deadline_ms]))
    })
    .await;
    assert_eq!(
        asked,
        [
            "GET invocation/next",
            "POST invocation/id-1/response [1,1000]",
            "GET invocation/next",
            "POST invocation/id-2/response again-2 [2,2000]",
            "GET invocation/next",
        ]
    );
    assert_eq!(lost, GONE());
}

#[tokio::test]
async fn the_trace_of_an_invocation_is_there_while_it_lasts() {
    // The only test of this program in which traces begin.
    let trace = "Lambda-Runtime-Trace-Id: Root=1-5-6;Parent=7;Sampled=1\r\n";
    let steps = vec![
        event(1, trace, &json!({})),
        acknowledged(),
        event(2, "", &json!({})),
        acknowledged(),
        gone(),
    ];
    let seen = Mutex::new(Vec::new());
    let (asked, _) = served(steps, async |_: &Invocation| {
        seen.lock().expect("whole").push(spans::header());
        Ok(json!(null))
    })
    .await;
    assert_eq!(asked.len(), 5);
    assert_eq!(
        *seen.lock().expect("whole"),
        [Some("Root=1-5-6;Parent=7;Sampled=1".to_owned()), None]
    );
}

#[tokio::test]
async fn what_goes_wrong_is_an_error_of_its_invocation_alone() {
    let mut steps = Vec::new();
    for (id, payload) in [json!("fail"), json!("panic"), json!(3), json!("go on")]
        .iter()
        .enumerate()
    {
        steps.extend([
            event(u32::try_from(id).expect("small"), "", payload),
            acknowledged(),
        ]);
    }
    steps.push(gone());
    let (asked, lost) = served(steps, async |invocation: &Invocation| {
        match invocation.event::<String>()?.as_str() {
            "fail" => Err(Failure::from("the queue is full".to_owned())),
            "panic" => panic!("out of {}", "order"),
            word => Ok(word.to_owned()),
        }
    })
    .await;
    let told: Vec<&str> = asked
        .iter()
        .map(String::as_str)
        .filter(|line| line.starts_with("POST"))
        .collect();
    assert_eq!(
        told,
        [
            r#"POST invocation/id-0/error Bobbin.Failed {"errorMessage":"the queue is full","errorType":"Bobbin.Failed"}"#,
            r#"POST invocation/id-1/error Bobbin.Panic {"errorMessage":"out of order","errorType":"Bobbin.Panic"}"#,
            r#"POST invocation/id-2/error Bobbin.Event {"errorMessage":"the event cannot be read: Data at line 1 column 1","errorType":"Bobbin.Event"}"#,
            r#"POST invocation/id-3/response "go on""#,
        ]
    );
    assert_eq!(lost, GONE());
}

#[tokio::test]
async fn a_connection_that_lambda_has_closed_is_opened_again() {
    let steps = vec![
        event(1, "", &json!(1)),
        Step::Close,
        acknowledged(),
        Step::Close,
        event(2, "Connection: close\r\n", &json!(2)),
        Step::Close,
        acknowledged(),
        gone(),
    ];
    let (asked, lost) = served(steps, async |invocation: &Invocation| {
        invocation.event::<u32>()
    })
    .await;
    let posts: Vec<_> = asked
        .iter()
        .filter(|line| line.starts_with("POST"))
        .collect();
    assert_eq!(
        posts,
        [
            "POST invocation/id-1/response 1",
            "POST invocation/id-2/response 2"
        ]
    );
    assert_eq!(lost, GONE());
}

#[tokio::test]
async fn an_answer_that_lambda_does_not_take_ends_the_process_only_if_lambda_says_so() {
    for (refusal, is_over) in [
        ("400 Bad Request", false),
        ("413 Payload Too Large", false),
        ("403 Forbidden", true),
        ("500 Internal Server Error", true),
    ] {
        let mut steps = vec![event(1, "", &json!(1)), status(refusal)];
        if !is_over {
            steps.push(gone());
        }
        let (asked, lost) = served(steps, async |_: &Invocation| Ok(1)).await;
        assert_eq!(asked.len(), if is_over { 2 } else { 3 }, "{refusal}");
        assert_eq!(lost != GONE(), is_over, "{refusal}: {lost}");
    }
}

#[tokio::test]
async fn an_event_that_cannot_be_answered_ends_the_process() {
    for (headers, missing) in [
        (
            "Lambda-Runtime-Deadline-Ms: 1\r\n",
            "lambda-runtime-aws-request-id",
        ),
        (
            "Lambda-Runtime-Aws-Request-Id: a b\r\nLambda-Runtime-Deadline-Ms: 1\r\n",
            "lambda-runtime-aws-request-id",
        ),
        (
            "Lambda-Runtime-Aws-Request-Id: 1\r\nLambda-Runtime-Deadline-Ms: soon\r\n",
            "lambda-runtime-deadline-ms",
        ),
    ] {
        let steps = vec![Step::Answer("200 OK", headers.to_owned(), "{}".to_owned())];
        let (_, lost) = served(steps, async |_: &Invocation| Ok(1)).await;
        assert_eq!(lost, Lost::Headless(missing));
    }
}

#[tokio::test]
async fn without_lambda_there_is_no_work() {
    let lost = serve("127.0.0.1:1", async |_: &Invocation| Ok(1)).await;
    assert!(matches!(lost, Lost::Silent { .. }), "{lost:?}");
    assert!(refuse("127.0.0.1:1", "Kind", "why").await.is_err());
}

#[tokio::test]
async fn a_start_that_is_refused_is_told_in_lambdas_words() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let address = listener.local_addr().expect("bound").to_string();
    let (asked, told) = tokio::join!(
        api(listener, vec![acknowledged()]),
        refuse(&address, "Bobbin.Configuration", "TABLE is not set")
    );
    assert_eq!(
        asked,
        [
            r#"POST init/error Bobbin.Configuration {"errorMessage":"TABLE is not set","errorType":"Bobbin.Configuration","stackTrace":[]}"#
        ]
    );
    assert_eq!(told, Ok(()));
}
