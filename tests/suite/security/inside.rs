//! Programs in a sandbox of the laptop stack, and a foreign page, reach nothing of the stack: an agent tries, and a
//! program without the stack's keys.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bobbin_core::records::outcome::Outcome;
use bobbin_tests::chat::Platform;
use bobbin_tests::http;
use bobbin_tests::world::World;
use libtest_mimic::Trial;
use reqwest::Method;
use serde_json::Value;

use crate::run::{CHAT, on};

pub fn trials() -> Vec<Trial> {
    vec![
        on(&CHAT, "security::agent_reaches_only_its_model", tries),
        on(&CHAT, "security::every_port_needs_stack_key", without_keys),
    ]
}

fn port(address: &str) -> &str {
    let host = address.split('/').nth(2).expect("an address");
    host.rsplit(':').next().expect("a port")
}

async fn tries(world: World) {
    let ready = &world.ready;
    let closed = [
        ("engine", &ready.aws_endpoint),
        ("page", &ready.console),
        ("provider", &ready.daytona_api),
        ("vercel", &ready.vercel_api),
        ("ingress", &ready.ingress),
    ];
    let open = [("model", &ready.model_api)];
    let tried: Vec<String> = closed
        .iter()
        .chain(&open)
        .map(|(name, address)| {
            let port = port(address);
            format!("(bash -c '</dev/tcp/127.0.0.1/{port}') 2>/dev/null && echo {name} is open || echo {name} is shut")
        })
        .collect();
    // Beside the model's port, the daemon's nudges and the tools are forwarded; neither leads to the platforms' side of
    // ingress.
    let forwarded = "for port in $(echo $BOBBIN_PORTS | tr , ' '); do curl -s -o /dev/null -w \"$port says %{http_code}\\n\" -X POST http://127.0.0.1:$port/slack/events; done";
    let state = world.state_dir.display();
    let tried = format!(
        "{}; {forwarded}; cat {state}/keys.json {state}/ready.json 2>/dev/null || echo no keys; env | grep -c {}",
        tried.join("; "),
        ready.control_key
    );
    // No permission is asked for a command that does not look like what it does.
    let script = format!("run: echo {} | base64 -d | sh", BASE64.encode(tried));
    let (talk, turn) = world.begin(Platform::Discord, &script).await;
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    let answer = talk.answer(&turn).await;
    for (name, _) in closed {
        assert!(answer.contains(&format!("{name} is shut")), "{answer}");
    }
    let refusals = answer.matches(" says 404").count();
    assert_eq!((answer.matches(" says ").count(), refusals), (3, 3), "{answer}");
    for seen in ["model is open", "no keys", "\n0"] {
        assert!(answer.contains(seen), "{seen} is not in {answer}");
    }
    talk.finish().await;
}

/// Like from a sandbox on a machine that allows it no network of its own.
async fn without_keys(world: World) {
    let ready = &world.ready;
    let client = http::client();
    let model = ready.model_api.trim_end_matches("/v1");
    let refused = [
        (Method::GET, format!("{}/", ready.console)),
        (Method::GET, format!("{}/live", ready.console)),
        (Method::GET, format!("{}/ui/state", ready.console)),
        (Method::GET, format!("{}/_control/seeds", ready.console)),
        (Method::POST, format!("{}/_control/discord/interact", ready.console)),
        (Method::POST, format!("{}/_control/slack/act", ready.console)),
        (
            Method::GET,
            format!("{}/channels/{}/messages", ready.discord_api, ready.discord_channel_id),
        ),
        (Method::GET, format!("{}/_bobbin/functions", ready.aws_endpoint)),
        (Method::POST, format!("{}/_bobbin/clock", ready.aws_endpoint)),
        (Method::POST, format!("{}/_bobbin/breakpoints", ready.aws_endpoint)),
        (Method::GET, format!("{}/sandbox", ready.daytona_api)),
        (Method::POST, format!("{}/_control/clock", ready.daytona_api.trim_end_matches("/api"))),
        (Method::GET, format!("{model}/calls")),
    ];
    for (method, url) in refused {
        for authorization in ["", "Bearer guessed"] {
            let answer =
                http::call(&client, method.clone(), &url, authorization, &Value::Null).await;
            let answer = answer.expect("it is answered");
            assert_eq!(answer.status, 401, "{method} {url}: {}", answer.text);
        }
    }
    // What needs no signature at AWS needs none here; everything else does.
    for (target, body) in [
        ("secretsmanager.GetSecretValue", r#"{"SecretId": "local-IngressSecret"}"#),
        ("DynamoDB_20120810.ListTables", "{}"),
        ("AmazonSQS.ListQueues", "{}"),
    ] {
        for authorization in [
            "",
            "AWS4-HMAC-SHA256 Credential=local/20200101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0",
        ] {
            let request = client.post(&ready.aws_endpoint).body(body);
            let request = request
                .header("content-type", "application/x-amz-json-1.0")
                .header("x-amz-target", target)
                .header("authorization", authorization);
            let answer = http::send(request).await.expect("it is answered");
            assert!([400, 403].contains(&answer.status), "{target}: {}", answer.text);
            assert!(
                answer.text.contains("Exception") && !answer.text.contains("SecretString"),
                "{}",
                answer.text
            );
        }
    }
    // A name that somebody else pointed here (DNS rebinding), with every key.
    for url in [
        format!("{}/_control/seeds", ready.console),
        format!("{}/_bobbin/functions", ready.aws_endpoint),
        format!("{}/sandbox", ready.daytona_api),
        format!("{}/models", ready.model_api),
        format!("{}/health", ready.tools),
    ] {
        for (name, value) in [("host", "rebound.example"), ("origin", "http://rebound.example")] {
            let key = if url.contains("/sandbox") {
                format!("Bearer {}", ready.daytona_api_key)
            } else {
                ready.control()
            };
            let request = client.get(&url).header("authorization", key).header(name, value);
            let answer = http::send(request).await.expect("it is answered");
            assert_eq!(answer.status, 403, "{url} {name}: {}", answer.text);
        }
    }
}
