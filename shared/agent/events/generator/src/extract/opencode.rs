//! OpenCode's server describes its own API.

use std::error::Error;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use bobbin_http::{AllowedHosts, Http, Method};
use tokio::process::Command;

use super::SelfDescription;

/// Time that a server gets to describe itself.
const SERVER_S_MAX: u64 = 60;
/// Time between two tries: it never answers a request that arrives while it starts.
const TRY_S: u64 = 2;
/// Maximum size of a description in bytes.
const DESCRIPTION_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Starts a server, asks it for `GET /doc`, and ends it.
///
/// # Errors
/// When it does not start or answers otherwise.
pub(super) async fn described(program: &Path) -> Result<SelfDescription, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
    let mut server = Command::new(program)
        .args(["serve", "--hostname", "127.0.0.1", "--port", &port.to_string()])
        .current_dir(folder.path())
        .env("HOME", folder.path())
        .env("XDG_DATA_HOME", folder.path())
        .env_remove("OPENCODE_SERVER_PASSWORD")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let base = format!("http://127.0.0.1:{port}");
    let http = Http::new(&base, AllowedHosts::Named(vec!["127.0.0.1".to_owned()]))?
        .with_body_bytes_max(DESCRIPTION_BYTES_MAX);
    let mut described = None;
    for _ in 0..SERVER_S_MAX / TRY_S {
        if let Some(status) = server.try_wait()? {
            return Err(format!("{} ended with {status}", program.display()).into());
        }
        let request = http.request(Method::GET, &format!("{base}/doc"))?;
        let request = request.timeout(Duration::from_secs(TRY_S));
        let answer = http.send(request).await;
        described = answer.ok().and_then(|answer| answer.json());
        if described.is_some() {
            break;
        }
        tokio::time::sleep(Duration::from_secs(TRY_S)).await;
    }
    server.kill().await?;
    let described = described.ok_or("the server did not describe itself in time")?;
    Ok(SelfDescription::Description(described))
}
