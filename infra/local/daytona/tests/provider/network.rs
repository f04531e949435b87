//! What a sandbox reaches, and by what it is reached.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Request, State};
use bobbin_local_daytona::Confinement;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use self::stand_in::stand_ins;
use crate::world::{World, fresh_folder, settings, wait_for};

#[path = "../../../../../tests/tls/stand_in.rs"]
mod stand_in;

/// One where sandboxes have networks of their own, with this port led across; nothing where the machine does not allow
/// it.
async fn world(name: &str, reachable: Option<u16>) -> Option<World> {
    let mut settings = settings(&fresh_folder(name));
    settings.run.reachable = reachable.into_iter().collect();
    let world = World::with(settings).await;
    if world.provider.confinement() == &Confinement::Bubblewrap {
        return Some(world);
    }
    eprintln!("SKIPPED: {:?}", world.provider.confinement());
    world.end().await;
    None
}

/// A server that says a word to everybody who connects.
async fn greeter(word: &'static str) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            stream.write_all(word.as_bytes()).await.unwrap();
        }
    });
    port
}

/// What a program inside hears from a port of its loopback, having said something.
async fn heard(world: &World, id: &str, port: u16, said: &str) -> String {
    let command = format!(
        "bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port} && printf \"{said}\" >&3 && head -c 300 <&3' 2>/dev/null"
    );
    let told = world.exec(id, &command).await;
    told["result"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn sandbox_reaches_only_named_host_ports() {
    let (named, other) = (greeter("the model").await, greeter("the engine").await);
    let Some(world) = world("reaches", Some(named)).await else {
        return;
    };
    let id = world.sandbox("reaches").await;
    assert_eq!(heard(&world, &id, named, "").await, "the model");
    assert_eq!(heard(&world, &id, other, "").await, "");
    let told = world.exec(&id, "echo $HTTPS_PROXY").await;
    let proxy = told["result"].as_str().unwrap().trim();
    let proxy: u16 = proxy.rsplit(':').next().unwrap().parse().unwrap();
    for host in ["127.0.0.1", "localhost", "0.0.0.0", "[::ffff:127.0.0.1]", "169.254.169.254"] {
        for ask in [
            format!(
                "CONNECT {host}:{other} HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n"
            ),
            format!(
                "GET http://{host}:{other}/ HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n"
            ),
        ] {
            let answer = heard(&world, &id, proxy, &ask).await;
            assert!(
                answer.starts_with("HTTP/1.1 403 ") && !answer.contains("the engine"),
                "{host}: {answer}"
            );
        }
    }
    world.end().await;
}

#[tokio::test]
async fn sandboxes_can_share_port_numbers() {
    let Some(world) = world("ports", None).await else {
        return;
    };
    for name in ["one", "two"] {
        let id = world.sandbox(name).await;
        let serve = format!(
            "mkdir site && echo {name} > site/index.html && (setsid python3 -m http.server 3000 --bind 127.0.0.1 --directory site >/dev/null 2>&1 </dev/null &)"
        );
        world.exec(&id, &serve).await;
        let in_use = format!("/toolbox/{id}/port/3000/in-use");
        wait_for("the server", async || world.get(&in_use).await.1 == json!({ "isInUse": true }))
            .await;
        let ports = world.get(&format!("/toolbox/{id}/port")).await.1;
        assert_eq!(ports, json!({ "ports": [3000] }));
        let (_, link) = world.get(&format!("/api/sandbox/{id}/ports/3000/preview-url")).await;
        let shown = reqwest::Client::new()
            .get(link["url"].as_str().unwrap())
            .header("x-daytona-preview-token", link["token"].as_str().unwrap());
        let shown = shown.send().await.unwrap().text().await.unwrap();
        assert_eq!(shown, format!("{name}\n"));
    }
    world.end().await;
}

#[tokio::test]
async fn planted_links_reach_no_other_sandbox() {
    let Some(world) = world("links", None).await else {
        return;
    };
    let one = world.sandbox("one").await;
    let other = world.sandbox("other").await;
    let serve = "mkdir site && echo private > site/index.html && (setsid python3 -m http.server 3000 --bind 127.0.0.1 --directory site >/dev/null 2>&1 </dev/null &)";
    world.exec(&other, serve).await;
    let in_use = format!("/toolbox/{other}/port/3000/in-use");
    wait_for("the server", async || world.get(&in_use).await.1 == json!({ "isInUse": true })).await;
    let sandboxes = world.provider.sandboxes();
    let theirs = sandboxes.iter().find(|it| it.id == other).unwrap();
    let theirs = theirs.dir.parent().unwrap().join("network");
    let plant = format!(
        "for name in in out x; do ln -sf {}/$name /run/bobbin/$name 2>/dev/null && echo planted; done; true",
        theirs.display()
    );
    assert_eq!(world.exec(&one, &plant).await["result"], "");
    let (_, link) = world.get(&format!("/api/sandbox/{one}/ports/3000/preview-url")).await;
    let shown = reqwest::Client::new()
        .get(link["url"].as_str().unwrap())
        .header("x-daytona-preview-token", link["token"].as_str().unwrap());
    let shown = shown.send().await.unwrap().text().await.unwrap();
    assert!(!shown.contains("private"), "{shown}");
    world.end().await;
}

/// What a host heard: the name that it was called by, and the key.
type Heard = Arc<Mutex<Vec<String>>>;

fn host(heard: &Heard) -> Router {
    async fn note(State(heard): State<Heard>, request: Request) -> &'static str {
        let header = |name: &str| {
            let value = request.headers().get(name);
            value.map_or("-", |value| value.to_str().unwrap()).to_owned()
        };
        let line = format!("{} {}", header("host"), header("authorization"));
        heard.lock().unwrap().push(line);
        "heard"
    }
    Router::new().fallback(note).with_state(Arc::clone(heard))
}

#[tokio::test]
async fn secret_is_injected_outside_sandbox() {
    let heard = Heard::default();
    let near = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = near.local_addr().unwrap().port();
    let plain = host(&heard);
    tokio::spawn(async move { axum::serve(near, plain).await.unwrap() });
    let mut settings = settings(&fresh_folder("secrets"));
    settings.run.reachable = [port].into_iter().collect();
    settings.run.stand_ins =
        stand_ins(&["models.example", "other.example", "a.wild.example"], host(&heard)).await;
    let world = World::with(settings).await;
    if world.provider.confinement() != &Confinement::Bubblewrap {
        eprintln!("SKIPPED: {:?}", world.provider.confinement());
        return world.end().await;
    }
    let body = json!({ "name": "model", "value": "sk-one", "hosts": ["models.example", "127.0.0.1", "*.wild.example"] });
    let (_, secret) = world.post("/api/secret", body).await;
    let placeholder = secret["placeholder"].as_str().unwrap().to_owned();
    let body = json!({ "name": "keeps", "secrets": [{ "MODEL_KEY": "model" }] });
    let id = world.create(body).await;
    // Python's own client reads proxy and certificates from the environment, as those of the agents do.
    let ask = async |url: &str, host: &str| {
        let script = format!(
            "import os, urllib.request, urllib.error
ask = urllib.request.Request('{url}')
ask.add_header('Authorization', 'Bearer ' + os.environ['MODEL_KEY'])
if '{host}': ask.add_header('Host', '{host}')
try: print(urllib.request.urlopen(ask, timeout=20).read().decode())
except urllib.error.HTTPError as error: print(error.code, error.read().decode())"
        );
        let told = world.exec(&id, &format!("/usr/bin/python3 -c \"{script}\"")).await;
        let last = std::mem::take(&mut *heard.lock().unwrap());
        (told["result"].as_str().unwrap().trim().to_owned(), last)
    };
    let was = |text: &str, line: String| (text.to_owned(), vec![line]);
    let near = format!("http://127.0.0.1:{port}/v1");
    assert_eq!(
        ask("https://models.example/v1", "").await,
        was("heard", "models.example Bearer sk-one".to_owned())
    );
    assert_eq!(
        ask("https://a.wild.example/v1", "").await,
        was("heard", "a.wild.example Bearer sk-one".to_owned())
    );
    assert_eq!(ask(&near, "").await, was("heard", format!("127.0.0.1:{port} Bearer sk-one")));
    // What it may reach can be changed while it runs; ports of this machine stay.
    let limit = async |body: Value| {
        let path = format!("/api/sandbox/{id}/network-settings");
        assert_eq!(world.post(&path, body).await.0, 200);
    };
    limit(json!({ "networkBlockAll": false, "domainAllowList": "*.wild.example" })).await;
    let refused = |told: &str| told.contains("403");
    assert_eq!(ask("https://a.wild.example/v1", "").await.0, "heard");
    assert!(refused(&ask("https://models.example/v1", "").await.0));
    limit(json!({ "networkBlockAll": true, "domainAllowList": "" })).await;
    assert!(refused(&ask("https://a.wild.example/v1", "").await.0));
    assert_eq!(ask(&near, "").await.0, "heard");
    limit(json!({ "networkBlockAll": false, "domainAllowList": "" })).await;
    // In clear nothing goes there at all.
    let (told, at_hosts) = ask("http://models.example/v1", "").await;
    assert_eq!(
        (told.as_str(), at_hosts.len()),
        ("403 Keys are sent to this host, so only https is allowed.", 0)
    );
    // Another host gets what stands for it, and a request cannot be led to one by a name inside.
    assert_eq!(
        ask("https://other.example/v1", "").await,
        was("heard", format!("other.example Bearer {placeholder}"))
    );
    let (told, at_hosts) = ask("https://models.example/v1", "other.example").await;
    assert_eq!(
        (told.as_str(), at_hosts.len()),
        ("421 The request names another host than its connection.", 0)
    );
    // A new value counts at once, and so does the end of the secret.
    let path = format!("/api/secret/{}", secret["id"].as_str().unwrap());
    let patch = world.request(Method::PATCH, &path);
    let renewed = world.send(patch.json(&json!({ "value": "sk-two" }))).await;
    assert_eq!(renewed.0, 200);
    assert_eq!(
        ask("https://models.example/v1", "").await,
        was("heard", "models.example Bearer sk-two".to_owned())
    );
    let inside = "cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'";
    let inside = world.exec(&id, inside).await["result"].clone();
    let inside = inside.as_str().unwrap();
    assert!(
        inside.contains(&format!("MODEL_KEY={placeholder}")) && !inside.contains("sk-"),
        "{inside}"
    );
    let files = "grep -rslE 'sk-(one|two)' $HOME /run /tmp /etc; echo searched";
    assert_eq!(world.exec(&id, files).await["result"], "searched\n");
    assert_eq!(world.delete(&path).await, 204);
    let gone = world.exec(&id, "echo \"[$MODEL_KEY]\"").await;
    assert_eq!(gone["result"], "[]\n");
    world.end().await;
}

#[tokio::test]
async fn shared_network_refuses_secrets() {
    let world = World::sharing("no-secrets").await;
    let body = json!({ "name": "model", "value": "sk-one", "hosts": ["models.example"] });
    let (status, told) = world.post("/api/secret", body).await;
    assert_eq!(status, 501);
    assert_eq!(
        told["message"],
        "Sandboxes have no network of their own on this machine, so no secret can be put into their requests"
    );
    assert_eq!(world.get("/api/secret/paginated?limit=1").await.0, 501);
    world.end().await;
}
