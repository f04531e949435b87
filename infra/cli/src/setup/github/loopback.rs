//! An address of this machine alone, for one page and for the browser's way back.
//!
//! Promised: the page has a name that nobody can guess, so that other people on this machine do not see it; a request
//! under another host's name is refused; what comes back counts only with the state of this run.

use std::sync::Arc;
use std::time::Duration;

use bobbin_cloud::secrets::Secret;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::page;

/// Most bytes of a request's head that are read.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Longest time for one request.
const REQUEST_MS_MAX: u64 = 10_000;
/// Most requests at once; a browser opens a few connections ahead.
const REQUESTS_MAX: usize = 16;
/// Path to which the browser comes back.
const BACK: &str = "/made";

/// A text that nobody can guess.
pub fn random() -> String {
    hex::encode(rand::random::<[u8; 16]>())
}

/// The code in the query of the address to which the browser came back; `None` if it has another state.
pub fn code_in(query: &str, state: &str) -> Option<Secret> {
    let value = |name: &str| {
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        pairs.find(|(named, _)| named == name).map(|(_, value)| value.into_owned())
    };
    if value("state")? != state {
        return None;
    }
    value("code").filter(|code| !code.is_empty()).map(Secret::from)
}

/// The listener.
pub struct Loopback {
    listener: TcpListener,
    /// Address and port.
    host: String,
    /// The page's path.
    path: String,
}

/// What a request is answered from.
struct Served {
    host: String,
    path: String,
    page: String,
    state: String,
}

impl Loopback {
    /// Listens on a free port.
    ///
    /// # Errors
    /// No port is free; with advice.
    pub async fn open() -> Result<Self, String> {
        let failed = |e: std::io::Error| {
            format!(
                "No port of this machine can be opened for the browser: {e}. Use bobbin github app --page FILE."
            )
        };
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(failed)?;
        let host = listener.local_addr().map_err(failed)?.to_string();
        Ok(Self { listener, host, path: format!("/{}", random()) })
    }

    /// The page's address.
    pub fn page(&self) -> String {
        format!("http://{}{}", self.host, self.path)
    }

    /// The address to which the browser comes back.
    pub fn back(&self) -> String {
        format!("http://{}{BACK}", self.host)
    }

    /// Serves the page until the browser comes back with a code.
    ///
    /// # Errors
    /// It did not within these minutes; with advice.
    pub async fn code(self, page: &str, state: &str, minutes: u64) -> Result<Secret, String> {
        let served = Arc::new(Served {
            host: self.host,
            path: self.path,
            page: page.to_owned(),
            state: state.to_owned(),
        });
        let (sender, mut codes) = mpsc::channel(1);
        let serving = async {
            let mut requests = JoinSet::new();
            loop {
                if requests.len() >= REQUESTS_MAX {
                    requests.join_next().await;
                }
                if let Ok((stream, _)) = self.listener.accept().await {
                    let (served, sender) = (Arc::clone(&served), sender.clone());
                    requests.spawn(async move {
                        let within = Duration::from_millis(REQUEST_MS_MAX);
                        if let Ok(Some(code)) = timeout(within, answer(stream, &served)).await {
                            // The first one counts.
                            let _ = sender.try_send(code);
                        }
                    });
                }
            }
        };
        let within = Duration::from_secs(minutes * 60);
        tokio::select! {
            code = codes.recv() => code.ok_or_else(|| "The browser's answer was lost. Begin again.".to_owned()),
            () = tokio::time::sleep(within) => Err(format!(
                "No browser came back within {minutes} minutes, and nothing is stored. If an app was made, delete it on its settings page and begin again; --wait MINUTES waits longer."
            )),
            () = serving => Err("The page is not served any more. Begin again.".to_owned()),
        }
    }
}

/// Answers one request; the code, if it brought one.
async fn answer(mut stream: TcpStream, served: &Served) -> Option<Secret> {
    let head = head(&mut stream).await?;
    let (status, page, code) = served.answer(&head);
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\ncache-control: no-store\r\nreferrer-policy: no-referrer\r\ncontent-security-policy: default-src 'none'\r\nx-content-type-options: nosniff\r\nconnection: close\r\n\r\n{page}",
        page.len()
    );
    // The code is here, whether the browser sees the last page or not.
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
    code
}

/// The head of a request; `None` if it is too long or ends early.
async fn head(stream: &mut TcpStream) -> Option<String> {
    let (mut head, mut piece) = (Vec::new(), [0; 2048]);
    while !head.windows(4).any(|four| four == b"\r\n\r\n") {
        let read = stream.read(&mut piece).await.ok()?;
        head.extend_from_slice(&piece[..read]);
        if read == 0 || head.len() > HEAD_BYTES_MAX {
            return None;
        }
    }
    String::from_utf8(head).ok()
}

impl Served {
    fn answer(&self, head: &str) -> (&'static str, String, Option<Secret>) {
        let mut lines = head.split("\r\n");
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let is_own_host = lines.any(|line| {
            let (name, value) = line.split_once(':').unwrap_or_default();
            name.eq_ignore_ascii_case("host") && value.trim() == self.host
        });
        let nothing = ("404 Not Found", page::saying("Nothing is here."), None);
        if method != "GET" || !is_own_host {
            return nothing;
        }
        match target.split_once('?') {
            None if target == self.path => ("200 OK", self.page.clone(), None),
            Some((BACK, query)) => match code_in(query, &self.state) {
                Some(code) => {
                    let words = "GitHub has made the app. Go back to the terminal.";
                    ("200 OK", page::saying(words), Some(code))
                }
                None => {
                    let words = "This answer does not belong to this set-up. Open the page that the terminal names.";
                    ("400 Bad Request", page::saying(words), None)
                }
            },
            _ => nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_own_page_and_state_count() {
        let served = Served {
            host: "127.0.0.1:1".to_owned(),
            path: "/secret".to_owned(),
            page: "the page".to_owned(),
            state: "s".to_owned(),
        };
        let answered = |line: &str, host: &str| {
            let head = format!("{line} HTTP/1.1\r\naccept: */*\r\nHost: {host}\r\n\r\n");
            let (status, page, code) = served.answer(&head);
            (&status[..3], page == "the page", code.map(|code| code.expose().to_owned()))
        };
        let here = "127.0.0.1:1";
        assert_eq!(answered("GET /secret", here), ("200", true, None));
        let code = Some("c".to_owned());
        assert_eq!(answered("GET /made?code=c&state=s", here), ("200", false, code));
        assert_eq!(answered("GET /made?code=c&state=t", here), ("400", false, None));
        assert_eq!(answered("GET /made?code=c", here), ("400", false, None));
        for (line, host) in [
            ("GET /", here),
            ("POST /secret", here),
            ("GET /secret", "evil.example"),
            ("GET /made?code=c&state=s", "evil.example:1"),
        ] {
            assert_eq!(answered(line, host), ("404", false, None), "{line} {host}");
        }
    }
}
