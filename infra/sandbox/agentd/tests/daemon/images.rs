//! Images that come with a prompt.

use std::process::Command;

use serde_json::json;

use crate::world::{Daemon, stand_in};

/// An image of one pixel.
pub const PNG: &str = "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d4944415478da6364f8cf500f00038601805a347d6b0000000049454e44ae426082";

pub fn png() -> Vec<u8> {
    let digits = PNG.as_bytes().chunks(2);
    let bytes = digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16));
    bytes.map(Result::unwrap).collect()
}

/// Sends a prompt with an image.
pub async fn look(daemon: &Daemon, turn: &str) {
    std::fs::write(daemon.project().join("dot.png"), png()).unwrap();
    let body = json!({
        "message": "look", "turn": turn, "attachments": [{"path": "dot.png", "mime": "image/png"}],
    });
    let sent = daemon.post("/v1/sessions/s/messages", body).await;
    assert_eq!(sent.status, 204, "{}", sent.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn images_go_only_to_capable_agents() {
    for (sees, environment) in [(true, vec![("STANDIN_SEES", "1")]), (false, Vec::new())] {
        let daemon = Daemon::start_with(&["--acp", &stand_in()], &environment).await;
        let project = daemon.project().canonicalize().unwrap();
        std::fs::create_dir(project.join("files")).unwrap();
        std::fs::write(project.join("files/dot.png"), png()).unwrap();
        std::fs::write(project.join("no.png"), "no image").unwrap();
        daemon.create("s").await;
        let attached = |path: &str, mime: &str| json!({"path": path, "mime": mime});
        // By its path in the session's directory; what is no image, or is not there, stays a file.
        let body = json!({"message": "images", "turn": "t", "attachments": [
            attached("files/dot.png", "image/png"), attached("no.png", "image/png"),
            attached("/gone.png", "image/png"), attached("a.txt", "text/plain"),
        ]});
        let sent = daemon.post("/v1/sessions/s/messages", body).await;
        assert_eq!(sent.status, 204, "{}", sent.body);
        daemon.until("s", "t", "done").await;
        let said = daemon.said("s", "t").await;
        let at = |name: &str| format!("file://{}", project.join(name).display());
        let image = "\"image/png\" \"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==\"";
        let (no, gone, text, dot) =
            (at("no.png"), at("/gone.png"), at("a.txt"), at("files/dot.png"));
        let expected = if sees {
            format!("images: {image}; links: {no}, {gone}, {text}")
        } else {
            format!("images: ; links: {no}, {gone}, {text}, {dot}")
        };
        assert_eq!(said, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn special_or_huge_files_stay_links() {
    let daemon = Daemon::start_with(&["--acp", &stand_in()], &[("STANDIN_SEES", "1")]).await;
    let project = daemon.project();
    let made = Command::new("mkfifo").arg(project.join("fifo.png")).status();
    assert!(made.unwrap().success());
    std::os::unix::fs::symlink("/dev/zero", project.join("endless.png")).unwrap();
    let sparse = std::fs::File::create(project.join("sparse.png")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    daemon.create("s").await;
    let attached = |path: &str| json!({"path": path, "mime": "image/png"});
    let all = ["fifo.png", "endless.png", "/dev/zero", "sparse.png"].map(attached);
    let body = json!({"message": "images", "turn": "t", "attachments": all});
    let sent = daemon.post("/v1/sessions/s/messages", body).await;
    assert_eq!(sent.status, 204, "{}", sent.body);
    daemon.until("s", "t", "done").await;
    let said = daemon.said("s", "t").await;
    assert!(said.starts_with("images: ; links: "), "{said}");
}
