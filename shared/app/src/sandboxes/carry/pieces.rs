//! Puts packs into a sandbox, file by file, while the next bytes come.

use std::sync::Arc;

use async_trait::async_trait;
use bobbin_core::base::failure::Failure;
use bobbin_forge::git::{Fetch, Fetched, ObjectId, PackSink};
use bobbin_forge::{Forge, ForgeError, RepositoryAt};
use bobbin_sandbox::{Provider, Sandbox};
use tokio::task::JoinSet;

/// Folder of the files, in the sandbox's working directory.
const FOLDER: &str = ".bobbin/carried";
/// Bytes of a file. Two are in memory: one that is sent, and one that fills meanwhile.
const PIECE_BYTES: usize = 4 * 1024 * 1024;

/// The files of some packs.
pub(super) struct Pieces<'a> {
    provider: &'a Arc<dyn Provider>,
    sandbox: &'a Sandbox,
    /// Number of files of each pack that is there.
    counts: Vec<usize>,
    /// Files of the pack that comes.
    count: usize,
    held: Vec<u8>,
    /// The file that is sent; it ends with this value.
    sent: JoinSet<Result<(), Failure>>,
}

impl<'a> Pieces<'a> {
    pub(super) fn new(provider: &'a Arc<dyn Provider>, sandbox: &'a Sandbox) -> Self {
        let (counts, held, sent) = (Vec::new(), Vec::new(), JoinSet::new());
        Self { provider, sandbox, counts, count: 0, held, sent }
    }

    /// Adds a pack. After an error it is as if it had not been asked for.
    ///
    /// # Errors
    /// The forge's, or what the sandbox's provider says as one.
    pub(super) async fn fetch(
        &mut self,
        forge: &dyn Forge,
        at: &RepositoryAt,
        what: &Fetch,
    ) -> Result<Fetched, ForgeError> {
        self.count = 0;
        self.held.clear();
        let fetched = forge.fetch(at, what, self).await;
        let last = match &fetched {
            Ok(_) => self.send().await,
            Err(_) => Ok(()),
        };
        let all = self.arrived().await;
        let fetched = fetched?;
        last.and(all)?;
        self.counts.push(self.count);
        Ok(fetched)
    }

    /// Names the commits that came without those that they follow.
    pub(super) async fn end_at(&mut self, commits: &[ObjectId]) -> Result<(), Failure> {
        let lines: String = commits.iter().map(|commit| format!("{commit}\n")).collect();
        let file = (format!("{FOLDER}/shallow"), lines.into_bytes());
        let put = self.provider.put_files(self.sandbox, vec![file]).await;
        put.map_err(|error| error.failure)
    }

    /// What `unpack.sh` has to know of them.
    pub(super) fn counts(&self) -> String {
        let counts: Vec<String> = self.counts.iter().map(ToString::to_string).collect();
        counts.join(" ")
    }

    async fn send(&mut self) -> Result<(), Failure> {
        self.arrived().await?;
        if self.held.is_empty() {
            return Ok(());
        }
        let path = format!("{FOLDER}/{}.{}", self.counts.len(), self.count);
        let file = (path, std::mem::take(&mut self.held));
        let (provider, sandbox) = (Arc::clone(self.provider), self.sandbox.clone());
        self.sent.spawn(async move {
            let put = provider.put_files(&sandbox, vec![file]).await;
            put.map_err(|error| error.failure)
        });
        self.count += 1;
        Ok(())
    }

    async fn arrived(&mut self) -> Result<(), Failure> {
        match self.sent.join_next().await {
            None => Ok(()),
            Some(Ok(put)) => put,
            Some(Err(error)) => {
                Err(Failure::Wait { after_ms: 0, seen: format!("a file was not sent: {error}") })
            }
        }
    }
}

#[async_trait]
impl PackSink for Pieces<'_> {
    async fn take(&mut self, piece: &[u8]) -> Result<(), Failure> {
        if self.held.len() + piece.len() > PIECE_BYTES {
            self.send().await?;
        }
        if self.held.capacity() == 0 {
            self.held.reserve_exact(PIECE_BYTES);
        }
        self.held.extend_from_slice(piece);
        Ok(())
    }
}
