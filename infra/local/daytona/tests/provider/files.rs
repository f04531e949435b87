use reqwest::Method;
use reqwest::multipart::{Form, Part};
use serde_json::json;

use crate::world::{Specification, World};

#[tokio::test]
async fn files_round_trip_unchanged() {
    let world = World::start("files").await;
    let tools = Specification::read("daytona-toolbox.json");
    let id = world.sandbox("files").await;
    let base = format!("/toolbox/{id}/files");
    let bytes: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    let form = Form::new()
        .text("files[0].path", "a/one.bin")
        .part("files[0].file", Part::bytes(bytes.clone()).file_name("one.bin"))
        .text("files[1].path", "a/two.txt")
        .part("files[1].file", Part::bytes(b"needle here\n".to_vec()).file_name("x/two.txt"));
    let (status, answer) = world
        .send(world.request(Method::POST, &format!("{base}/bulk-upload")).multipart(form))
        .await;
    assert_eq!((status.as_u16(), &answer["files"][0]["bytes"]), (200, &json!(300_000)));
    let home = world.provider.sandboxes()[0].dir.clone();
    assert_eq!(std::fs::read(home.join("a/one.bin")).unwrap(), bytes);

    let got = world
        .request(Method::GET, &format!("{base}/download?path=a/one.bin"))
        .send()
        .await
        .unwrap();
    assert_eq!(got.headers()["content-type"], "application/octet-stream");
    assert_eq!(got.bytes().await.unwrap(), bytes);
    let bulk = world
        .request(Method::POST, &format!("{base}/bulk-download"))
        .json(&json!({ "paths": ["a/two.txt", "none"] }));
    let bulk = bulk.send().await.unwrap().text().await.unwrap();
    assert!(
        bulk.contains("name=\"file\"; filename=\"a/two.txt\"") && bulk.contains("needle here"),
        "{bulk}"
    );
    assert!(
        bulk.contains("name=\"error\"; filename=\"none\"") && bulk.contains("FILE_NOT_FOUND"),
        "{bulk}"
    );

    let raw = world.request(Method::POST, &format!("{base}/upload-v2?path=b/raw.txt")).body("raw");
    let (status, written) = world.send(raw).await;
    assert_eq!(status, 200);
    tools.check("UploadedFile", &written);
    let form = Form::new().part("file", Part::bytes(b"form".to_vec()).file_name("f"));
    assert_eq!(
        world
            .send(
                world
                    .request(Method::POST, &format!("{base}/upload-v2?path=b/form.txt"))
                    .multipart(form)
            )
            .await
            .0,
        200
    );
    assert_eq!(std::fs::read_to_string(home.join("b/form.txt")).unwrap(), "form");

    let (_, list) = world.get(&format!("{base}?path=b")).await;
    assert_eq!(list.as_array().unwrap().len(), 2);
    tools.check("FileInfo", &list[0]);
    let (_, info) = world.get(&format!("{base}/info?path=a")).await;
    tools.check("FileInfo", &info);
    assert_eq!(info["isDir"], true);
    let (_, found) = world.get(&format!("{base}/search?path=.&pattern=*.txt")).await;
    tools.check("SearchFilesResponse", &found);
    assert_eq!(found["files"].as_array().unwrap().len(), 3);
    let (_, found) = world.get(&format!("{base}/find?path=.&pattern=needle")).await;
    tools.check("Match", &found[0]);
    assert_eq!(found[0]["line"], 1);

    assert_eq!(
        world.send(world.request(Method::POST, &format!("{base}/folder?path=c&mode=0755"))).await.0,
        201
    );
    assert_eq!(
        world
            .send(
                world.request(Method::POST, &format!("{base}/move?source=b/raw.txt&destination=c"))
            )
            .await
            .0,
        200
    );
    assert_eq!(world.delete(&format!("{base}?path=c")).await, 400);
    assert_eq!(world.delete(&format!("{base}?path=c&recursive=true")).await, 204);
    assert_eq!(world.get(&format!("{base}/info?path=c/raw.txt")).await.0, 404);
    world.end().await;
}

#[tokio::test]
async fn file_calls_stay_inside_sandbox() {
    let world = World::start("escape").await;
    let id = world.sandbox("escape").await;
    let base = format!("/toolbox/{id}/files");
    let confined = matches!(
        world.provider.confinement(),
        bobbin_local_daytona::Confinement::Bubblewrap
            | bobbin_local_daytona::Confinement::SharedNetwork { .. }
    );
    let download = async |path: &str| world.get(&format!("{base}/download?path={path}")).await.0;
    assert_eq!(download("/proc/self/environ").await, 400);
    // What the sandbox's own processes see at such a path, and no more.
    assert_eq!(download("../init.log").await, if confined { 404 } else { 400 });
    if confined {
        world.exec(&id, "echo inside > /tmp/absolute.txt").await;
        assert_eq!(download("/tmp/absolute.txt").await, 200);
    }
    assert!(!std::path::Path::new("/tmp/absolute.txt").exists());
    let secret = world.folder.join("secret");
    std::fs::write(&secret, "of the host").unwrap();
    world.exec(&id, &format!("ln -s {} link", secret.display())).await;
    let (status, _) = world.get(&format!("{base}/download?path=link")).await;
    if world.provider.confinement() == &bobbin_local_daytona::Confinement::Bubblewrap {
        assert_eq!(
            status, 404,
            "a link leads where the sandbox's own processes may go, and nowhere else"
        );
    } else {
        eprintln!("SKIPPED: without bubblewrap a link leads anywhere");
    }
    world.end().await;
}
