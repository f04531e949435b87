//! Files attached to a prompt: fetched from the platform, put into the sandbox, named to the agent.
//!
//! Promised: a file that cannot be fetched is listed with the reason and never fails the turn; a file comes only from
//! the platform's hosts, or from the exact origin of a local platform; the platform's token is sent only there as well;
//! a file's name cannot leave its folder.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use bobbin_agent::InlineImage;
use bobbin_chat::FileSource;
use bobbin_core::base::ids::{SandboxKey, TurnId, digest};
use bobbin_core::base::limits::FileLimits;
use bobbin_core::base::secret::Secret;
use bobbin_core::protocol::event::Event;
use bobbin_core::records::images::{Image, is_image, media_type};
use bobbin_core::records::message::Attachment;
use bobbin_core::records::workspace::ATTACHMENTS_FOLDER;
use bobbin_http::{AllowedHosts, Guard, Http, HttpError, covers, host_of, is_loopback};
use reqwest::Method;

use super::{SandboxSettings, Sandboxes, WorkTarget};

/// Bytes of files held in memory before they are put into the sandbox; may be exceeded by one file.
const LOAD_BYTES: usize = 4 * 1024 * 1024;
/// Maximum characters of a file's name in the sandbox.
const NAME_CHARS_MAX: usize = 80;
/// Maximum bytes of a file's name in the sandbox: file systems allow 255.
const NAME_BYTES_MAX: usize = 200;

/// Allowed sources of files.
pub(super) struct FileSources {
    http: Http,
    all: Vec<FileSource>,
}

impl FileSources {
    pub(super) fn new(settings: &SandboxSettings) -> Self {
        let all = settings.files.clone();
        let hosts = all.iter().flat_map(|source| source.hosts).map(|host| (*host).to_owned());
        let hosts = AllowedHosts::Named(hosts.collect());
        let has_local = all.iter().any(|source| is_loopback(&source.api));
        let bytes_max =
            usize::try_from(settings.limits.files.attachment_bytes).unwrap_or(usize::MAX);
        Self {
            http: Http::guarded(Guard::new(hosts, has_local)).with_body_bytes_max(bytes_max),
            all,
        }
    }

    fn sources_of(&self, url: &str) -> impl Iterator<Item = &FileSource> {
        self.all.iter().filter(move |source| is_of(source, url))
    }

    /// The token to send there.
    fn bearer(&self, url: &str) -> Option<&Secret> {
        self.sources_of(url).find_map(|source| source.bearer.as_ref())
    }

    /// The bytes, or why they cannot be fetched, in words that finish the sentence "it …".
    async fn fetch(&self, file: &Attachment) -> Result<Vec<u8>, String> {
        if file.url.is_empty() {
            return Err("has no address".to_owned());
        }
        const NOT_ALLOWED: &str = "is only a link to a place from which Bobbin does not fetch: download it and upload the file itself";
        if is_loopback(&file.url) && self.sources_of(&file.url).next().is_none() {
            return Err(NOT_ALLOWED.to_owned());
        }
        let mut request = self.http.request(Method::GET, &file.url).map_err(|_| NOT_ALLOWED)?;
        if let Some(token) = self.bearer(&file.url) {
            request = request.bearer_auth(token.expose());
        }
        let answer = self.http.send(request).await.map_err(|error| match error {
            HttpError::TooLarge { bytes_max, .. } => format!("is larger than {bytes_max} bytes"),
            HttpError::Timeout { .. } => "could not be fetched in time".to_owned(),
            _ => "could not be fetched".to_owned(),
        })?;
        let page = answer.media_type() == "text/html";
        let page_is_due =
            file.media_type.as_deref().is_none_or(|kind| kind.starts_with("text/html"));
        match answer.status {
            // A platform answers with its login page to a token that may not read files.
            200 if page && !page_is_due => {
                Err("could not be read: the platform showed a login page".to_owned())
            }
            200 if file.size > 0 && file.size != answer.body.len() as u64 => Err(format!(
                "arrived incomplete: {} bytes instead of {}",
                answer.body.len(),
                file.size
            )),
            200 => Ok(answer.body),
            404 | 410 => {
                Err("no longer exists on the platform, or its link has expired".to_owned())
            }
            300..=399 | 401 | 403 => {
                Err("could not be read: the platform refused access".to_owned())
            }
            status => Err(format!("could not be fetched (status {status})")),
        }
    }
}

/// Whether an address belongs to a platform: by its host, or on this machine by its exact origin, because other ports
/// belong to others.
fn is_of(source: &FileSource, url: &str) -> bool {
    if is_loopback(url) {
        return origin(url) == origin(&source.api);
    }
    let host = host_of(url);
    host.is_some_and(|host| source.hosts.iter().any(|name| covers(name, &host)))
}

fn origin(url: &str) -> Option<String> {
    let url = reqwest::Url::parse(url).ok()?;
    Some(url.origin().ascii_serialization())
}

impl Sandboxes {
    pub(super) async fn attach(
        &self,
        target: WorkTarget<'_>,
        turn: &TurnId,
        files: &[Attachment],
    ) -> Event {
        let limits = &self.settings.limits.files;
        let folder = format!("{ATTACHMENTS_FOLDER}/{}", &digest(&["attachments", turn])[..12]);
        let there = self.there(target, &folder).await;
        let mut taken = BTreeSet::new();
        let mut load = Load::default();
        let mut lines: Vec<(String, String, usize)> = Vec::new();
        let mut images = Images::new(limits);
        for (at, file) in files.iter().enumerate() {
            let shown = shown_name(&file.name);
            let name = free_name(&file.name, at, &mut taken);
            let path = format!("{folder}/{name}");
            // An earlier delivery of the message has fetched it: its link may have expired since.
            if let Some(bytes) =
                there.get(&name).filter(|bytes| file.size > 0 && **bytes == file.size)
            {
                images.offer(file, &path, *bytes);
                lines.push((path, shown, usize::try_from(*bytes).unwrap_or(usize::MAX)));
                continue;
            }
            let fetched = if at >= limits.attachments {
                Err(format!("was left out: at most {} files are accepted", limits.attachments))
            } else if file.size > limits.attachment_bytes {
                Err(format!("is larger than {} bytes", limits.attachment_bytes))
            } else {
                self.files.fetch(file).await
            };
            match fetched {
                Ok(bytes) => {
                    images.offer(file, &path, bytes.len() as u64);
                    load.bytes += bytes.len();
                    load.lines.push(lines.len());
                    lines.push((path.clone(), shown, bytes.len()));
                    load.files.push((format!("{}/{path}", target.workspace.path()), bytes));
                }
                Err(why) => lines.push((String::new(), format!("{shown} {why}"), 0)),
            }
            if load.bytes >= LOAD_BYTES {
                self.unload(
                    target.sandbox,
                    target.generation,
                    std::mem::take(&mut load),
                    &mut lines,
                )
                .await;
            }
        }
        self.unload(target.sandbox, target.generation, load, &mut lines).await;
        let has_come = |image: &Image| lines.iter().any(|(path, _, _)| *path == image.path);
        images.taken.retain(has_come);
        Event::Attached { note: note(&lines), missed: missed(&lines), images: images.taken }
    }

    /// Puts the fetched files into the sandbox. The lines name files that did not get there.
    async fn unload(
        &self,
        sandbox: &SandboxKey,
        generation: u32,
        load: Load,
        lines: &mut [(String, String, usize)],
    ) {
        if load.files.is_empty() || self.put(sandbox, generation, load.files).await {
            return;
        }
        not_copied(lines, &load.lines);
    }

    /// Files already in an attachment folder, with their sizes in bytes. Empty if it cannot be read.
    async fn there(&self, target: WorkTarget<'_>, folder: &str) -> BTreeMap<String, u64> {
        let Ok(sandbox) = self.find(target.sandbox, target.generation).await else {
            return BTreeMap::new();
        };
        let path = format!("{}/{folder}", target.workspace.path());
        let listed = self.provider.list_files(&sandbox, &path).await;
        listed.unwrap_or_default()
    }

    /// Images of a prompt, read from the sandbox: the same bytes on every send. An image that is not what its name
    /// says, or is gone, is treated as a normal file.
    pub(super) async fn inline(
        &self,
        target: WorkTarget<'_>,
        images: &[Image],
    ) -> Vec<InlineImage> {
        if images.is_empty() {
            return Vec::new();
        }
        let Ok(sandbox) = self.find(target.sandbox, target.generation).await else {
            return Vec::new();
        };
        let mut inline = Vec::new();
        let mut all = 0;
        for image in images {
            let path = format!("{}/{}", target.workspace.path(), image.path);
            let Ok(bytes) = self.provider.get_file(&sandbox, &path).await else {
                tracing::warn!(
                    event = "attachment.unread",
                    "an image could not be read from the sandbox"
                );
                continue;
            };
            // The agent may have replaced it with something larger.
            all += bytes.len() as u64;
            if all > self.settings.limits.files.prompt_images_bytes {
                tracing::warn!(
                    event = "attachment.unread",
                    "an image has grown beyond the limit for images, and stays a file"
                );
                break;
            }
            if let Some(media_type) = media_type(&bytes) {
                inline.push(InlineImage {
                    path: image.path.clone(),
                    name: image.name.clone(),
                    media_type,
                    base64: base64::engine::general_purpose::STANDARD.encode(&bytes),
                });
            }
        }
        inline
    }

    async fn put(
        &self,
        sandbox: &SandboxKey,
        generation: u32,
        uploads: Vec<(String, Vec<u8>)>,
    ) -> bool {
        let Ok(sandbox) = self.find(sandbox, generation).await else {
            return false;
        };
        let done = self.provider.put_files(&sandbox, uploads).await;
        if let Err(error) = &done {
            tracing::warn!(event = "attachment.uncopied", error = %error, "attachments could not be copied into the sandbox");
        }
        done.is_ok()
    }
}

/// Fetched files that are not in the sandbox yet: few at a time, because all are held in memory.
#[derive(Default)]
struct Load {
    files: Vec<(String, Vec<u8>)>,
    bytes: usize,
    /// Index of each file's line.
    lines: Vec<usize>,
}

/// The images for the model, within their bounds.
struct Images<'a> {
    limits: &'a FileLimits,
    bytes: u64,
    taken: Vec<Image>,
}

impl<'a> Images<'a> {
    fn new(limits: &'a FileLimits) -> Self {
        Self { limits, bytes: 0, taken: Vec::new() }
    }

    fn offer(&mut self, file: &Attachment, path: &str, bytes: u64) {
        let all = self.bytes.saturating_add(bytes);
        let fits = self.taken.len() < self.limits.prompt_images
            && all <= self.limits.prompt_images_bytes
            && bytes > 0;
        if fits && is_image(&file.name, file.media_type.as_deref()) {
            self.bytes = all;
            self.taken.push(Image {
                path: path.to_owned(),
                name: file.name.chars().filter(|c| !c.is_control()).take(NAME_CHARS_MAX).collect(),
            });
        }
    }
}

/// Marks these files as not copied into the sandbox.
fn not_copied(lines: &mut [(String, String, usize)], these: &[usize]) {
    for at in these {
        let (path, words, bytes) = &mut lines[*at];
        path.clear();
        words.push_str(" could not be copied into the sandbox");
        *bytes = 0;
    }
}

/// Note to the agent. A file without a path could not be fetched.
fn note(lines: &[(String, String, usize)]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let mut note = "Files that came with this message:".to_owned();
    for (path, words, bytes) in lines {
        note.push_str("\n- ");
        if path.is_empty() {
            note.push_str(words)
        } else {
            note.push_str(&format!("{path} ({words}, {bytes} bytes)"))
        }
    }
    note
}

/// Note to the thread: the files that the agent does not get.
fn missed(lines: &[(String, String, usize)]) -> Vec<String> {
    let could_not = |(path, _, _): &&(String, String, usize)| path.is_empty();
    let missed = lines.iter().filter(could_not);
    missed.map(|(_, words, _)| words.clone()).collect()
}

/// A file's own name for use in text: one short line in a code span, where neither links nor emphasis have an effect.
fn shown_name(name: &str) -> String {
    let line: String = name
        .chars()
        .filter(|c| !c.is_control())
        .take(NAME_CHARS_MAX)
        .map(|c| if c == '`' { '\'' } else { c })
        .collect();
    if line.trim().is_empty() { "A file without a name".to_owned() } else { format!("`{line}`") }
}

/// A name that is safe in any file system and not taken yet.
fn free_name(name: &str, at: usize, taken: &mut BTreeSet<String>) -> String {
    let safe: String = name
        .chars()
        .map(|c| {
            // Letters of any script are kept: a name without them tells nobody what the file is.
            if c.is_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '_' }
        })
        .collect();
    let safe = safe.trim_start_matches(['.', '-']);
    // The end of a long name is kept: it shows the file type.
    let mut safe = &safe[safe.ceil_char_boundary(safe.len().saturating_sub(NAME_BYTES_MAX))..];
    while safe.chars().count() > NAME_CHARS_MAX {
        let mut rest = safe.chars();
        rest.next();
        safe = rest.as_str();
    }
    let safe = safe.trim_start_matches(['.', '-']);
    let mut free = if safe.is_empty() { "file".to_owned() } else { safe.to_owned() };
    // Another file may already have the new name, so one round may not be enough; the name gets longer each time.
    while !taken.insert(free.clone()) {
        free = format!("{at}-{free}");
    }
    free
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use axum::extract::Path;
    use axum::http::HeaderMap;
    use axum::response::IntoResponse;
    use bobbin_chat::{ChatSettings, Chats};
    use bobbin_core::base::limits::Limits;
    use bobbin_core::tenant::overrides::ChatOverrides;

    use super::*;

    const TOKEN: &str = "xoxb-a-token-for-tests";

    /// Slack's file server as far as it matters: eight bytes, or its login page.
    async fn hand_out(Path(name): Path<String>, headers: HeaderMap) -> impl IntoResponse {
        let kind = if name == "login" { "text/html" } else { "image/png" };
        assert_eq!(headers["authorization"], format!("Bearer {TOKEN}"));
        ([("content-type", kind)], "12345678")
    }

    fn sources(slack_api: &str, attachment_bytes: u64) -> FileSources {
        let token = Secret::from(TOKEN.to_owned());
        FileSources::new(&SandboxSettings {
            stack: "test".to_owned(),
            stack_id: String::new(),
            project_config_of: Vec::new(),
            model_keys_inside: false,
            keys_of: None,
            nudge_url: String::new(),
            stack_key: String::new(),
            files: Chats::files(&ChatSettings {
                overrides: &ChatOverrides { slack_api: slack_api.to_owned(), ..Default::default() },
                variable: |_| String::new(),
                key: &|_| &token,
            }),
            limits: Limits {
                files: FileLimits { attachment_bytes, ..FileLimits::DEFAULT },
                ..Limits::DEFAULT
            },
        })
    }

    #[tokio::test]
    async fn attachment_fetch_rejects_login_pages() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let routes = axum::Router::new().route("/file/{name}", axum::routing::get(hand_out));
        let server = tokio::spawn(async move { axum::serve(listener, routes).await });
        let api = format!("{base}/api");
        let file = |url: &str, size: u64| Attachment {
            name: "a.png".to_owned(),
            url: url.to_owned(),
            size,
            media_type: Some("image/png".to_owned()),
        };
        let image = format!("{base}/file/a.png");
        let whole = sources(&api, 100).fetch(&file(&image, 8)).await;
        assert_eq!(whole.unwrap(), b"12345678");
        let unstated = sources(&api, 100).fetch(&file(&image, 0)).await;
        assert_eq!(unstated.unwrap(), b"12345678");
        let login = format!("{base}/file/login");
        for (url, size, max, why) in [
            (login.as_str(), 8, 100, "login page"),
            (&image, 9, 100, "8 bytes instead of 9"),
            (&image, 8, 4, "larger than 4 bytes"),
            ("", 8, 100, "no address"),
            ("https://evil.example/a.png", 8, 100, "only a link"),
            ("https://slack.com.evil.example/a.png", 8, 100, "only a link"),
        ] {
            let error = sources(&api, max).fetch(&file(url, size)).await.unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        let elsewhere = sources("https://slack.com/api", 100);
        let error = elsewhere.fetch(&file(&image, 8)).await.unwrap_err();
        assert!(error.contains("only a link"), "loopback from afar: {error}");
        server.abort();
    }

    #[test]
    fn token_goes_only_to_slack_hosts() {
        let real = sources("https://slack.com/api", 100);
        let table = [
            ("https://files.slack.com/files-pri/T1-F1/a.png", true),
            ("https://slack.com.evil.example/a.png", false),
            ("https://evilslack.com/a.png", false),
            ("https://cdn.discordapp.com/a.png", false),
            ("http://127.0.0.1:9/file/a.png", false),
        ];
        for (url, wanted) in table {
            assert_eq!(real.bearer(url).is_some(), wanted, "{url}");
        }
        let local = sources("http://127.0.0.1:9/api", 100);
        assert!(local.bearer("http://127.0.0.1:9/file/a.png").is_some());
        assert!(local.bearer("http://127.0.0.1:10/file/a.png").is_none());
    }

    #[test]
    fn attachment_names_cannot_escape_or_collide() {
        let mut taken = BTreeSet::new();
        let table = [
            ("../../etc/passwd", "_.._etc_passwd"),
            ("a b/ü.png", "a_b_ü.png"),
            ("図面 最終.pdf", "図面_最終.pdf"),
            ("", "file"),
            ("...", "4-file"),
            ("-rf", "rf"),
            ("notes.txt", "notes.txt"),
            ("notes.txt", "7-notes.txt"),
            ("10-notes.txt", "10-notes.txt"),
            ("x", "x"),
            ("notes.txt", "10-10-notes.txt"),
        ];
        for (at, (name, safe)) in table.iter().enumerate() {
            assert_eq!(free_name(name, at, &mut taken), *safe, "{name}");
        }
        let long = format!("{}.tar.gz", "x".repeat(300));
        assert!(free_name(&long, 9, &mut taken).ends_with(".tar.gz"));
        assert!(free_name(&long, 9, &mut taken).len() <= NAME_CHARS_MAX + 2);
        let wide = format!("{}.pdf", "図".repeat(300));
        let name = free_name(&wide, 9, &mut taken);
        assert!(name.ends_with("図.pdf") && name.len() <= NAME_BYTES_MAX, "{name}");
    }

    #[test]
    fn shown_name_stays_in_code_span() {
        let table = [
            ("notes.txt", "`notes.txt`"),
            ("[x](https://evil.test) ```.txt", "`[x](https://evil.test) \'\'\'.txt`"),
            ("two\nlines", "`twolines`"),
            ("\n", "A file without a name"),
        ];
        for (name, shown) in table {
            assert_eq!(shown_name(name), shown);
        }
    }

    #[test]
    fn missed_attachments_are_named_with_reason() {
        let mut lines = [
            (".bobbin/attachments/x/a.png".to_owned(), "a.png".to_owned(), 12),
            (String::new(), "b.zip is larger than 10 bytes".to_owned(), 0),
        ];
        let told = note(&lines);
        assert!(
            told.contains(
                "- .bobbin/attachments/x/a.png (a.png, 12 bytes)\n- b.zip is larger than 10 bytes"
            ),
            "{told}"
        );
        assert_eq!(note(&[]), "");
        assert_eq!(missed(&lines), ["b.zip is larger than 10 bytes"]);
        not_copied(&mut lines, &[0]);
        assert!(note(&lines).contains("- a.png could not be copied into the sandbox"));
        assert_eq!(
            missed(&lines),
            ["a.png could not be copied into the sandbox", "b.zip is larger than 10 bytes"]
        );
    }
}
