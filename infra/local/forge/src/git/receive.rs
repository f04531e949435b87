//! A push: received, checked by the repository's rules, handed to git, and what follows from it.

use std::io::SeekFrom;
use std::path::PathBuf;
use std::process::Stdio;

use axum::body::Body;
use bobbin_local_sandbox::random::uuid;
use futures::StreamExt as _;
use tokio::fs::File;
use tokio::io::{AsyncSeekExt as _, AsyncWriteExt as _, BufReader};

use super::rules::{Move, Push};
use super::{Git, ZEROS, packet};
use crate::access::Caller;
use crate::api_error::ApiError;
use crate::limits::PUSH_BYTES_MAX;
use crate::permission::Level;
use crate::state::SharedEngine;

/// Branches of one push.
const MOVES_MAX: usize = 1_000;

/// A body on the disk, removed with this value.
pub(crate) struct Spooled {
    folder: PathBuf,
    pub(crate) bytes: u64,
}

impl Spooled {
    /// Writes a body down.
    ///
    /// # Errors
    /// The body is larger than [`PUSH_BYTES_MAX`] (413), or did not come whole (400).
    pub(crate) async fn write(engine: &SharedEngine, body: Body) -> Result<Self, ApiError> {
        let folder = engine.spool_dir().join(uuid());
        tokio::fs::create_dir_all(folder.join("objects/pack")).await.map_err(ApiError::internal)?;
        let mut spooled = Self { folder, bytes: 0 };
        let mut file = File::create(spooled.file()).await.map_err(ApiError::internal)?;
        let mut stream = body.into_data_stream();
        while let Some(piece) = stream.next().await {
            let piece = piece.map_err(|_| ApiError::bad("The body did not come whole"))?;
            spooled.bytes += u64::try_from(piece.len()).unwrap_or(u64::MAX);
            if spooled.bytes > PUSH_BYTES_MAX {
                let status = axum::http::StatusCode::PAYLOAD_TOO_LARGE;
                return Err(ApiError::new(status, "The push is larger than this forge takes"));
            }
            file.write_all(&piece).await.map_err(ApiError::internal)?;
        }
        file.flush().await.map_err(ApiError::internal)?;
        Ok(spooled)
    }

    fn file(&self) -> PathBuf {
        self.folder.join("body")
    }

    /// Objects of the push, while they belong to no repository.
    fn objects(&self) -> PathBuf {
        self.folder.join("objects")
    }

    pub(crate) async fn open(&self) -> Result<File, ApiError> {
        File::open(self.file()).await.map_err(ApiError::internal)
    }
}

impl Drop for Spooled {
    fn drop(&mut self) {
        // What is left is removed at the next start.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// What a push asks for, in front of its pack.
pub(crate) struct Request {
    pub(crate) moves: Vec<Move>,
    has_side_band: bool,
    reports: bool,
    /// Where the pack begins.
    pack_at: u64,
}

impl Request {
    /// Reads what a client sent.
    ///
    /// # Errors
    /// It cannot be parsed: nothing unchecked is handed on.
    pub(crate) async fn read(spooled: &Spooled) -> Result<Self, ApiError> {
        let unknown = || ApiError::bad("This push is not understood\n");
        let mut input = BufReader::new(spooled.open().await?);
        let mut moves = Vec::new();
        let mut capabilities = String::new();
        let mut pack_at = 0;
        loop {
            let line = packet::read(&mut input).await.map_err(|_| unknown())?;
            pack_at += 4 + line.as_ref().map_or(0, |line| u64::try_from(line.len()).unwrap_or(0));
            let Some(line) = line else { break };
            let text = String::from_utf8_lossy(&line).into_owned();
            let (command, said) = text.split_once('\0').unwrap_or((&text, ""));
            if !said.is_empty() {
                capabilities = said.trim().to_owned();
            }
            let parts: Vec<&str> = command.trim_end().splitn(3, ' ').collect();
            match parts.as_slice() {
                [old, new, name] if is_id(old) && is_id(new) && moves.len() < MOVES_MAX => {
                    let [old, new, name] = [old, new, name].map(|part| (*part).to_owned());
                    moves.push(Move { old, new, name });
                }
                ["shallow", _] => {}
                _ => return Err(unknown()),
            }
        }
        let has = |word: &str| capabilities.split(' ').any(|one| one == word);
        if has("push-options") {
            return Err(unknown());
        }
        Ok(Self {
            has_side_band: has("side-band-64k") || has("side-band"),
            reports: has("report-status") || has("report-status-v2"),
            moves,
            pack_at,
        })
    }

    /// The refusal by the repository's rules, as an answer; else a warning in front of git's answer.
    pub(crate) async fn check(
        &self,
        engine: &SharedEngine,
        repository: u64,
        caller: &Caller,
        spooled: &Spooled,
    ) -> Result<Result<Vec<u8>, Vec<u8>>, ApiError> {
        let git = Git::new(engine, repository).with_quarantine(&spooled.objects());
        if !self.unpack(&git, spooled).await? {
            return Ok(Ok(Vec::new()));
        }
        let (record, lacks_workflows, is_administrator, rules_page) = {
            let inner = engine.lock();
            let record = inner.repository(repository)?.clone();
            let lacks = caller.lacks_workflows(&inner, &record);
            let is_person = matches!(caller, Caller::Person { app: None, .. });
            let level = caller.level(&inner, &record, "contents")?;
            let page = format!("{}/{}/rules", engine.addresses.web, inner.full_name(&record));
            (record, lacks, is_person && level == Level::Admin, page)
        };
        let push = Push {
            repository: &record,
            moves: &self.moves,
            lacks_workflows,
            is_administrator,
            rules_page,
            trace: crate::state::hash(&uuid()),
        };
        let (refusal, warning) = push.check(&git).await?;
        if refusal.is_none() {
            let told = if self.has_side_band { packet::told(&warning) } else { Vec::new() };
            return Ok(Ok(told));
        }
        let names: Vec<&str> = self.moves.iter().map(|one| one.name.as_str()).collect();
        Ok(Err(refusal.answer(&names, self.has_side_band, self.reports)))
    }

    /// Puts the pack's objects into the quarantine; `false` if git will refuse it anyway.
    async fn unpack(&self, git: &Git, spooled: &Spooled) -> Result<bool, ApiError> {
        if self.moves.iter().all(|one| one.new == ZEROS) {
            return Ok(true);
        }
        if self.pack_at >= spooled.bytes {
            return Ok(false);
        }
        let mut file = spooled.open().await?;
        file.seek(SeekFrom::Start(self.pack_at)).await.map_err(ApiError::internal)?;
        let mut command = git.command();
        command.args(["index-pack", "--stdin", "--fix-thin"]);
        command.stdin(Stdio::from(file.into_std().await)).stdout(Stdio::null());
        command.stderr(Stdio::null());
        let bound = std::time::Duration::from_millis(crate::limits::GIT_MS_MAX);
        let ran = tokio::time::timeout(bound, command.status()).await;
        Ok(ran.map_err(ApiError::internal)?.map_err(ApiError::internal)?.success())
    }

    /// The branches that are now where this push wanted them.
    pub(crate) async fn moved(&self, git: &Git) -> Result<Vec<Move>, ApiError> {
        let mut moved = Vec::new();
        for one in &self.moves {
            let at = git.object(&one.name).await?;
            if at.as_deref().unwrap_or(ZEROS) == one.new && one.old != one.new {
                moved.push(one.clone());
            }
        }
        Ok(moved)
    }
}

fn is_id(text: &str) -> bool {
    text.len() == ZEROS.len() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
