//! A real browser, headless, through its driver's documented protocol (W3C WebDriver): a dozen calls, so no client
//! library is needed.

use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::{Client, Method};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::http::{call, client};
use crate::limits::{BROWSER_MS_MAX, STOP_MS_MAX};
use crate::processes;
use crate::wait::{eventually, within_blocking};

/// How WebDriver names an element in JSON.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";
/// The key that ends a line.
pub const ENTER: &str = "\u{e007}";
/// The key that, held, makes [`ENTER`] a new line.
pub const SHIFT: &str = "\u{e008}";

/// The programs that are needed, or the name of the one that is missing.
///
/// # Errors
/// The name of the missing program.
pub fn programs() -> Result<[PathBuf; 2], &'static str> {
    let on_path = |name: &str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
    };
    Ok([on_path("chromium").ok_or("chromium")?, on_path("chromedriver").ok_or("chromedriver")?])
}

/// An open window with its own profile. It ends completely when this is dropped.
pub struct Browser {
    driver: Child,
    profile: TempDir,
    client: Client,
    session: String,
}

impl Browser {
    /// Opens one.
    ///
    /// # Panics
    /// When the driver or the browser does not start within its bound.
    pub async fn open(programs: &[PathBuf; 2]) -> Self {
        let [chromium, chromedriver] = programs;
        let profile = tempfile::Builder::new()
            .prefix("bobbin-browser-")
            .tempdir()
            .expect("the system has a folder for temporary files");
        let port = TcpListener::bind(("127.0.0.1", 0))
            .and_then(|free| free.local_addr())
            .expect("a loopback port is free")
            .port();
        let driver = Command::new(chromedriver)
            .arg(format!("--port={port}"))
            .env("TMPDIR", profile.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("chromedriver can be started");
        let client = client();
        let base = format!("http://127.0.0.1:{port}");
        let mut browser = Self { driver, profile, client, session: String::new() };
        let data = format!("--user-data-dir={}", browser.profile.path().join("profile").display());
        let flags = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            "--window-size=1440,900",
            "--force-device-scale-factor=1",
            &data,
        ];
        let wanted = json!({"capabilities": {"alwaysMatch": {"browserName": "chrome", "goog:chromeOptions": {"binary": chromium, "args": flags}}}});
        let id = eventually(BROWSER_MS_MAX, "the browser opens", async || {
            let answer =
                call(&browser.client, Method::POST, &format!("{base}/session"), "", &wanted)
                    .await?
                    .ok()?;
            answer["value"]["sessionId"]
                .as_str()
                .map(str::to_owned)
                .ok_or_else(|| answer.to_string())
        })
        .await;
        browser.session = format!("{base}/session/{id}");
        browser
    }

    async fn ask(&self, method: Method, path: &str, body: &Value) -> Result<Value, String> {
        Ok(call(
            &self.client,
            method,
            &format!("{}{path}", self.session),
            "",
            body,
        )
        .await?
        .ok()?["value"]
            .clone())
    }

    /// Goes to a page.
    ///
    /// # Panics
    /// When it does not load.
    pub async fn go(&self, url: &str) {
        self.ask(Method::POST, "/url", &json!({"url": url}))
            .await
            .unwrap_or_else(|why| panic!("{url} does not load: {why}"));
    }

    /// The last element that a selector finds, because the newest is last.
    async fn element(&self, css: &str) -> Result<String, String> {
        let found = self
            .ask(Method::POST, "/elements", &json!({"using": "css selector", "value": css}))
            .await?;
        let last =
            found.as_array().and_then(|list| list.last()).and_then(|one| one[ELEMENT].as_str());
        last.map(|id| format!("/element/{id}")).ok_or_else(|| format!("nothing matches {css}"))
    }

    /// Presses an element, once it is there and can be pressed.
    ///
    /// # Panics
    /// When it cannot be pressed within its bound.
    pub async fn press(&self, css: &str) {
        eventually(BROWSER_MS_MAX, &format!("{css} can be pressed"), async || {
            self.ask(Method::POST, &format!("{}/click", self.element(css).await?), &json!({})).await
        })
        .await;
    }

    /// Types into an element, once it is there and can be typed into.
    ///
    /// # Panics
    /// When it cannot be typed into within its bound.
    pub async fn write(&self, css: &str, text: &str) {
        eventually(BROWSER_MS_MAX, &format!("{css} can be typed into"), async || {
            self.ask(
                Method::POST,
                &format!("{}/value", self.element(css).await?),
                &json!({"text": text}),
            )
            .await
        })
        .await;
    }

    /// The readable text of a selector's last element.
    ///
    /// # Errors
    /// When there is none.
    pub async fn text(&self, css: &str) -> Result<String, String> {
        let text = self
            .ask(Method::GET, &format!("{}/text", self.element(css).await?), &Value::Null)
            .await?;
        Ok(text.as_str().unwrap_or_default().to_owned())
    }

    /// Waits until the last element of a selector shows some words.
    ///
    /// # Panics
    /// When it does not within `within_ms`.
    pub async fn reads(&self, within_ms: u64, css: &str, words: &str) -> String {
        eventually(within_ms, &format!("{css} shows {words:?}"), async || {
            let text = self.text(css).await?;
            if text.contains(words) { Ok(text) } else { Err(text) }
        })
        .await
    }

    /// Runs a script in the page and returns its result.
    ///
    /// # Panics
    /// When it throws.
    pub async fn run(&self, script: &str) -> Value {
        let body = json!({"script": script, "args": []});
        self.ask(Method::POST, "/execute/sync", &body)
            .await
            .unwrap_or_else(|why| panic!("{script}: {why}"))
    }

    /// Gives the page the width of another screen, or its own again.
    ///
    /// # Panics
    /// When the browser does not.
    pub async fn wide(&self, width: Option<u32>) {
        // A window has a minimum width, an emulated screen has none.
        let (command, params) = match width {
            Some(width) => (
                "Emulation.setDeviceMetricsOverride",
                json!({"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": false}),
            ),
            None => ("Emulation.clearDeviceMetricsOverride", json!({})),
        };
        let body = json!({"cmd": command, "params": params});
        let done = self.ask(Method::POST, "/goog/cdp/execute", &body).await;
        done.unwrap_or_else(|why| panic!("{command}: {why}"));
    }

    /// Presses a key, wherever the focus is.
    ///
    /// # Panics
    /// When the browser does not.
    pub async fn key(&self, pressed: &str) {
        let key = |kind: &str| json!({"type": kind, "value": pressed});
        let actions = json!({"actions": [{"type": "key", "id": "keys", "actions": [key("keyDown"), key("keyUp")]}]});
        let done = self.ask(Method::POST, "/actions", &actions).await;
        done.unwrap_or_else(|why| panic!("{pressed:?}: {why}"));
    }

    /// The window, as a PNG.
    ///
    /// # Panics
    /// When no picture can be taken.
    pub async fn picture(&self) -> Vec<u8> {
        self.pictured("/screenshot").await
    }

    /// A selector's last element, as a PNG.
    ///
    /// # Panics
    /// When no picture can be taken.
    pub async fn picture_of(&self, css: &str) -> Vec<u8> {
        let element = self.element(css).await;
        let element = element.unwrap_or_else(|why| panic!("no picture: {why}"));
        self.pictured(&format!("{element}/screenshot")).await
    }

    async fn pictured(&self, path: &str) -> Vec<u8> {
        let text = self
            .ask(Method::GET, path, &Value::Null)
            .await
            .unwrap_or_else(|why| panic!("no picture: {why}"));
        STANDARD.decode(text.as_str().unwrap_or_default()).expect("WebDriver sends Base64")
    }

    /// Closes it and checks for leftovers.
    ///
    /// # Errors
    /// When the window does not close, or processes of it stay.
    pub async fn close(self) -> Result<(), String> {
        self.ask(Method::DELETE, "", &Value::Null).await?;
        let own = self.driver.id();
        let folder = self.profile.path();
        let left = || {
            processes::marked(folder).into_iter().filter(|(pid, _)| *pid != own).collect::<Vec<_>>()
        };
        within_blocking(STOP_MS_MAX, || {
            if left().is_empty() {
                Ok(())
            } else {
                Err(format!("processes of the browser stay: {:?}", left()))
            }
        })
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        processes::kill_group(self.driver.id());
        let _ = self.driver.wait();
        for (pid, _) in processes::marked(self.profile.path()) {
            processes::kill(pid);
        }
    }
}
