//! What a sandbox reaches, and by what it is reached.

use bobbin_local_daytona::Confinement;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use crate::world::{World, fresh_folder, settings, wait_for};

/// One where sandboxes have networks of their own, with this port led across; nothing where the machine does not allow it.
async fn world(name: &str, reachable: Option<u16>) -> Option<World> {
    let mut settings = settings(&fresh_folder(name));
    settings.reachable = reachable.into_iter().collect();
    let world = World::with(settings).await;
    if world.provider.confinement() == &Confinement::Bubblewrap {
        return Some(world);
    }
    eprintln!("SKIPPED: {:?}", world.provider.confinement());
    world.end().await;
    None
}

/// Greets everybody.
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
async fn a_sandbox_reaches_the_named_ports_of_this_machine_and_no_other_by_no_way() {
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
    for host in [
        "127.0.0.1",
        "localhost",
        "0.0.0.0",
        "[::ffff:127.0.0.1]",
        "169.254.169.254",
    ] {
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
async fn sandboxes_listen_on_the_same_port_and_each_is_reached_by_its_own_preview() {
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
        wait_for("the server", async || {
            world.get(&in_use).await.1 == json!({ "isInUse": true })
        })
        .await;
        let ports = world.get(&format!("/toolbox/{id}/port")).await.1;
        assert_eq!(ports, json!({ "ports": [3000] }));
        let (_, link) = world
            .get(&format!("/api/sandbox/{id}/ports/3000/preview-url"))
            .await;
        let shown = reqwest::Client::new()
            .get(link["url"].as_str().unwrap())
            .header("x-daytona-preview-token", link["token"].as_str().unwrap());
        let shown = shown.send().await.unwrap().text().await.unwrap();
        assert_eq!(shown, format!("{name}\n"));
    }
    world.end().await;
}
