//! `git http-backend`: who may fetch and push, and the program behind it.

use std::process::Stdio;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::Request as HttpRequest;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio_util::io::ReaderStream;

use super::Git;
use super::receive::{Request, Spooled};
use crate::access::Caller;
use crate::api_error::ApiError;
use crate::limits::{BODY_BYTES_MAX, GIT_MS_MAX, REPORT_BYTES_MAX};
use crate::permission::Level;
use crate::state::SharedEngine;

/// What is asked of a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    Fetch,
    Push,
}

impl Service {
    /// The name of its calls, for faults.
    pub(crate) const fn operation(self) -> &'static str {
        match self {
            Self::Fetch => "git/upload-pack",
            Self::Push => "git/receive-pack",
        }
    }

    fn of(word: &str) -> Option<Self> {
        match word {
            "git-upload-pack" => Some(Self::Fetch),
            "git-receive-pack" => Some(Self::Push),
            _ => None,
        }
    }
}

/// A call of git's.
pub(crate) struct Call {
    pub(crate) owner: String,
    pub(crate) name: String,
    /// Below the repository: `info/refs`, `git-upload-pack` or `git-receive-pack`.
    rest: &'static str,
    /// `None` for the old protocol, which nobody serves.
    pub(crate) service: Option<Service>,
}

impl Call {
    /// What a request asks for, if it is git's.
    pub(crate) fn of(path: &str, query: Option<&str>) -> Option<Self> {
        let parts: Vec<&str> = path.trim_start_matches('/').splitn(3, '/').collect();
        let [owner, name, rest] = parts.as_slice() else { return None };
        let rests = ["info/refs", "git-upload-pack", "git-receive-pack"];
        let rest = rests.into_iter().find(|one| one == rest)?;
        let query = query.unwrap_or_default();
        let asked = form_urlencoded::parse(query.as_bytes())
            .find(|(name, _)| name == "service")
            .map(|(_, value)| value.into_owned());
        let service = if rest == "info/refs" {
            asked.as_deref().and_then(Service::of)
        } else {
            Service::of(rest)
        };
        let name = name.strip_suffix(".git").unwrap_or(name);
        Some(Self { owner: (*owner).to_owned(), name: name.to_owned(), rest, service })
    }
}

/// What git prints for its user as `remote: …`.
fn told(status: StatusCode, text: impl Into<String>) -> Response {
    (status, [(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text.into()).into_response()
}

fn asked_for_password(text: &'static str) -> Response {
    let mut response = told(StatusCode::UNAUTHORIZED, text);
    let basic = HeaderValue::from_static("Basic realm=\"GitHub\"");
    response.headers_mut().insert(header::WWW_AUTHENTICATE, basic);
    response
}

/// The token of a request: the password of Basic, or its user if there is no password.
fn token(headers: &HeaderMap) -> Option<String> {
    let said = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    if let Some(token) = said.strip_prefix("Bearer ") {
        return Some(token.trim().to_owned());
    }
    let pair = said.split_once(' ').filter(|(kind, _)| kind.eq_ignore_ascii_case("basic"))?.1;
    let pair = String::from_utf8(STANDARD.decode(pair.trim()).ok()?).ok()?;
    let (user, password) = pair.split_once(':')?;
    let token = if ["", "x-oauth-basic"].contains(&password) { user } else { password };
    Some(token.to_owned())
}

/// Answers a call.
pub(crate) async fn answer(engine: &SharedEngine, call: Call, request: HttpRequest) -> Response {
    let Some(service) = call.service else {
        return told(StatusCode::FORBIDDEN, "Please upgrade your git client.\n");
    };
    let caller = match token(request.headers()).map(|token| Caller::of(engine, &token)) {
        None => Caller::Nobody,
        Some(Ok(caller)) => caller,
        Some(Err(_)) => {
            return asked_for_password(
                "Invalid username or token. Password authentication is not supported for Git operations.\n",
            );
        }
    };
    let repository = match admit(engine, &call, service, &caller) {
        Ok(repository) => repository,
        Err(refusal) => return *refusal,
    };
    let ran = match service {
        Service::Push if call.rest != "info/refs" => {
            push(engine, repository, &caller, request).await
        }
        _ => serve(engine, repository, call.rest, &caller, request).await,
    };
    ran.unwrap_or_else(|error| told(error.status, error.message))
}

/// The repository's id, if this caller may do this with it.
fn admit(
    engine: &SharedEngine,
    call: &Call,
    service: Service,
    caller: &Caller,
) -> Result<u64, Box<Response>> {
    let inner = engine.lock();
    let is_nobody = matches!(caller, Caller::Nobody);
    let unknown = || {
        Box::new(if is_nobody {
            asked_for_password("Repository not found.\n")
        } else {
            told(StatusCode::NOT_FOUND, "Repository not found.\n")
        })
    };
    let here = inner.named(&call.owner, &call.name);
    let repository = here.or_else(|| inner.formerly_named(&call.owner, &call.name));
    let repository = repository.ok_or_else(unknown)?;
    let full_name = inner.full_name(repository);
    let level = caller.level(&inner, repository, "contents").map_err(|error| {
        let is_address = error.message.contains("IP allow list");
        Box::new(told(error.status, if is_address {
            format!("The '{}' organization has an IP allow list enabled, and 127.0.0.1 is not permitted to access this repository.\n", call.owner)
        } else {
            format!("{}\n", error.message)
        }))
    })?;
    if level == Level::None {
        return Err(unknown());
    }
    if here.is_none() {
        let service = match service {
            Service::Fetch => "git-upload-pack",
            Service::Push => "git-receive-pack",
        };
        let query =
            if call.rest == "info/refs" { format!("?service={service}") } else { String::new() };
        let web = &engine.addresses.web;
        let at = format!("{web}/{full_name}.git/{}{query}", call.rest);
        let mut moved = told(StatusCode::MOVED_PERMANENTLY, "");
        if let Ok(at) = HeaderValue::from_str(&at) {
            moved.headers_mut().insert(header::LOCATION, at);
        }
        return Err(Box::new(moved));
    }
    if service == Service::Push {
        if is_nobody {
            return Err(Box::new(asked_for_password("No anonymous write access.\n")));
        }
        if repository.is_archived {
            let text = "This repository was archived so it is read-only.\n";
            return Err(Box::new(told(StatusCode::FORBIDDEN, text)));
        }
        if level < Level::Write {
            let text = match caller {
                Caller::Person { app: None, id, .. } => {
                    let login = inner.accounts.get(id).map_or("ghost", |one| &one.login);
                    format!("Permission to {full_name}.git denied to {login}.\n")
                }
                _ => "Write access to repository not granted.\n".to_owned(),
            };
            return Err(Box::new(told(StatusCode::FORBIDDEN, text)));
        }
    }
    Ok(repository.id)
}

/// What is told to the program of a request.
struct Input {
    method: String,
    query: String,
    headers: HeaderMap,
    bytes: u64,
}

/// Hands a call other than a push to git, and its answer on as it comes.
async fn serve(
    engine: &SharedEngine,
    repository: u64,
    rest: &str,
    caller: &Caller,
    request: HttpRequest,
) -> Result<Response, ApiError> {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, BODY_BYTES_MAX).await;
    let status = StatusCode::PAYLOAD_TOO_LARGE;
    let body =
        body.map_err(|_| ApiError::new(status, "The request is larger than this forge takes\n"))?;
    let input = Input {
        method: head.method.to_string(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        headers: head.headers,
        bytes: u64::try_from(body.len()).unwrap_or(u64::MAX),
    };
    let mut command = backend(engine, repository, rest, caller, &input);
    let mut child = command.stdin(Stdio::piped()).spawn().map_err(ApiError::internal)?;
    if let Some(mut stdin) = child.stdin.take() {
        tokio::spawn(async move {
            use tokio::io::AsyncWriteExt as _;
            // A program that refuses does not read everything.
            let _ = stdin.write_all(&body).await;
        });
    }
    let stdout = child.stdout.take().ok_or_else(|| ApiError::internal("no output of git"))?;
    let mut output = BufReader::new(stdout);
    let bound = Duration::from_millis(GIT_MS_MAX);
    let headers = tokio::time::timeout(bound, cgi_headers(&mut output)).await;
    let mut response = headers.map_err(ApiError::internal)??;
    let body = Body::from_stream(ReaderStream::new(output));
    tokio::spawn(async move {
        // The program ends with its output; if nobody reads that, with its time.
        if tokio::time::timeout(bound, child.wait()).await.is_err() {
            let _ = child.kill().await;
        }
    });
    *response.body_mut() = body;
    Ok(response)
}

/// Receives a push, and answers when its effects are there.
async fn push(
    engine: &SharedEngine,
    repository: u64,
    caller: &Caller,
    request: HttpRequest,
) -> Result<Response, ApiError> {
    let (head, body) = request.into_parts();
    if head.headers.contains_key(header::CONTENT_ENCODING) {
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return Err(ApiError::new(status, "A push is not encoded\n"));
    }
    let spooled = Spooled::write(engine, body).await?;
    let writer = engine.writer(repository);
    let held = writer.lock().await;
    let asked = Request::read(&spooled).await?;
    let before = match asked.check(engine, repository, caller, &spooled).await? {
        Ok(warning) => warning,
        Err(refused) => return Ok(report(refused)),
    };
    let input = Input {
        method: head.method.to_string(),
        query: String::new(),
        headers: head.headers,
        bytes: spooled.bytes,
    };
    let mut command = backend(engine, repository, "git-receive-pack", caller, &input);
    let body = spooled.open().await?.into_std().await;
    let mut child = command.stdin(Stdio::from(body)).spawn().map_err(ApiError::internal)?;
    let stdout = child.stdout.take().ok_or_else(|| ApiError::internal("no output of git"))?;
    let mut output = BufReader::new(stdout);
    let mut answered = Vec::new();
    let all = async {
        let response = cgi_headers(&mut output).await?;
        let bound = u64::try_from(REPORT_BYTES_MAX).unwrap_or(u64::MAX);
        output.take(bound).read_to_end(&mut answered).await.map_err(ApiError::internal)?;
        child.wait().await.map_err(ApiError::internal)?;
        Ok::<_, ApiError>(response)
    };
    let bound = Duration::from_millis(GIT_MS_MAX);
    let mut response = tokio::time::timeout(bound, all).await.map_err(ApiError::internal)??;
    let moved = asked.moved(&Git::new(engine, repository)).await?;
    drop(held);
    crate::pulls::after_push(engine, repository, caller, &moved).await?;
    *response.body_mut() = Body::from([before, answered].concat());
    Ok(response)
}

fn report(body: Vec<u8>) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "application/x-git-receive-pack-result"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (StatusCode::OK, headers, body).into_response()
}

fn backend(
    engine: &SharedEngine,
    repository: u64,
    rest: &str,
    caller: &Caller,
    input: &Input,
) -> tokio::process::Command {
    let mut command = Git::new(engine, repository).command();
    let text = |name: HeaderName| {
        input.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
    };
    command
        .arg("http-backend")
        .env_remove("GIT_DIR")
        .env("GIT_PROJECT_ROOT", engine.repositories_dir())
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("PATH_INFO", format!("/{repository}.git/{rest}"))
        .env("REQUEST_METHOD", &input.method)
        .env("QUERY_STRING", &input.query)
        .env("REMOTE_ADDR", "127.0.0.1")
        .env("CONTENT_TYPE", text(header::CONTENT_TYPE))
        .env("CONTENT_LENGTH", input.bytes.to_string())
        .env("HTTP_CONTENT_ENCODING", text(header::CONTENT_ENCODING))
        .env("GIT_PROTOCOL", text(HeaderName::from_static("git-protocol")))
        .stderr(Stdio::null());
    if !matches!(caller, Caller::Nobody) {
        command.env("REMOTE_USER", caller.counted_as());
    }
    command
}

/// Status and headers as a program prints them.
async fn cgi_headers(
    output: &mut (impl tokio::io::AsyncBufRead + Unpin),
) -> Result<Response, ApiError> {
    let mut response = Response::new(Body::empty());
    loop {
        let mut line = String::new();
        let read = output.read_line(&mut line).await.map_err(ApiError::internal)?;
        if read == 0 {
            return Err(ApiError::internal("git ended without an answer"));
        }
        let Some((name, value)) = line.trim_end().split_once(':') else {
            return Ok(response);
        };
        let value = value.trim();
        if name.eq_ignore_ascii_case("status") {
            let code = value.split(' ').next().and_then(|code| code.parse().ok());
            *response.status_mut() = code.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        } else if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.parse()) {
            response.headers_mut().append(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_gits_own_paths_are_its_calls() {
        let of = |path: &str, query: &str| Call::of(path, Some(query)).map(|call| call.service);
        assert_eq!(of("/o/r.git/info/refs", "service=git-upload-pack"), Some(Some(Service::Fetch)));
        assert_eq!(of("/o/r/git-receive-pack", ""), Some(Some(Service::Push)));
        assert_eq!(of("/o/r.git/info/refs", ""), Some(None));
        assert_eq!(of("/o/r.git/HEAD", ""), None);
        assert_eq!(of("/o/r.git/objects/info/packs", ""), None);
        assert_eq!(of("/o/r/../x.git/info/refs", "service=git-upload-pack"), None);
        assert_eq!(of("/o", ""), None);
    }

    #[test]
    fn tokens_are_passwords_or_users() {
        let basic = |pair: &str| {
            let mut headers = HeaderMap::new();
            let value = format!("Basic {}", STANDARD.encode(pair));
            headers.insert(header::AUTHORIZATION, value.parse().expect("a value"));
            token(&headers)
        };
        assert_eq!(basic("x-access-token:ghs_1").as_deref(), Some("ghs_1"));
        assert_eq!(basic("ghp_1:x-oauth-basic").as_deref(), Some("ghp_1"));
        assert_eq!(basic("ghp_1:").as_deref(), Some("ghp_1"));
        assert_eq!(token(&HeaderMap::new()), None);
    }
}
