//! A bare repository: made, read, and its branches moved.

use serde::Serialize;

use super::{Git, ZEROS};
use crate::api_error::ApiError;

/// A reference and its commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Reference {
    /// The full name.
    pub(crate) name: String,
    pub(crate) sha: String,
    /// `commit` or `tag`.
    pub(crate) kind: String,
    /// First line of its message.
    pub(crate) subject: String,
}

/// An entry of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) mode: String,
    pub(crate) kind: String,
    pub(crate) sha: String,
    pub(crate) size: Option<u64>,
    pub(crate) path: String,
}

/// An object and its content.
pub(crate) struct Object {
    pub(crate) sha: String,
    pub(crate) kind: String,
    pub(crate) content: Vec<u8>,
}

impl Git {
    /// Makes the repository.
    pub(crate) async fn init(&self, default_branch: &str) -> Result<(), ApiError> {
        let branch = format!("--initial-branch={default_branch}");
        self.bytes(&["init", "--quiet", "--bare", "--template=", &branch]).await.map(drop)
    }

    /// Makes a branch the default one.
    pub(crate) async fn point(&self, default_branch: &str) -> Result<(), ApiError> {
        let name = format!("refs/heads/{default_branch}");
        self.bytes(&["symbolic-ref", "HEAD", &name]).await.map(drop)
    }

    /// Whether this can be a branch's name.
    pub(crate) async fn is_branch_name(&self, name: &str) -> Result<bool, ApiError> {
        let full = format!("refs/heads/{name}");
        Ok(!name.starts_with('-') && self.run(&["check-ref-format", &full]).await?.is_ok())
    }

    /// The commit of a reference, by its full name, or of a commit's own id.
    pub(crate) async fn commit(&self, name: &str) -> Result<Option<String>, ApiError> {
        self.object(&format!("{name}^{{commit}}")).await
    }

    /// The commit of a branch.
    pub(crate) async fn branch(&self, name: &str) -> Result<Option<String>, ApiError> {
        self.commit(&format!("refs/heads/{name}")).await
    }

    /// The commit that somebody names: a branch, a tag, or an id.
    pub(crate) async fn named(&self, name: &str) -> Result<Option<String>, ApiError> {
        for full in [format!("refs/heads/{name}"), format!("refs/tags/{name}"), name.to_owned()] {
            if let Some(found) = self.commit(&full).await? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The id of an object that is there.
    pub(crate) async fn object(&self, name: &str) -> Result<Option<String>, ApiError> {
        let said =
            self.run(&["rev-parse", "--verify", "--quiet", "--end-of-options", name]).await?;
        Ok(said.is_ok().then(|| said.text()))
    }

    /// The references below a full name's beginning, by name.
    pub(crate) async fn references(&self, below: &str) -> Result<Vec<Reference>, ApiError> {
        let format = "--format=%(refname)%00%(objectname)%00%(objecttype)%00%(contents:subject)";
        let text = self.text(&["for-each-ref", format, "--", below]).await?;
        let read = |line: &str| {
            let mut parts = line.splitn(4, '\0').map(str::to_owned);
            Some(Reference {
                name: parts.next()?,
                sha: parts.next()?,
                kind: parts.next()?,
                subject: parts.next()?,
            })
        };
        Ok(text.lines().filter_map(read).collect())
    }

    /// Moves a reference if it is where it is believed to be; both may be zeros.
    pub(crate) async fn update(&self, name: &str, new: &str, old: &str) -> Result<bool, ApiError> {
        let said = if new == ZEROS {
            self.run(&["update-ref", "-d", name, old]).await?
        } else {
            self.run(&["update-ref", name, new, old]).await?
        };
        Ok(said.is_ok())
    }

    /// Sets a reference wherever it is.
    pub(crate) async fn set(&self, name: &str, new: &str) -> Result<(), ApiError> {
        self.bytes(&["update-ref", name, new]).await.map(drop)
    }

    /// The best common ancestor.
    pub(crate) async fn merge_base(
        &self,
        one: &str,
        other: &str,
    ) -> Result<Option<String>, ApiError> {
        let said = self.run(&["merge-base", one, other]).await?;
        Ok(said.is_ok().then(|| said.text()))
    }

    pub(crate) async fn is_ancestor(&self, one: &str, of: &str) -> Result<bool, ApiError> {
        Ok(self.run(&["merge-base", "--is-ancestor", one, of]).await?.is_ok())
    }

    /// Commits that only the head has, and that only the base has.
    pub(crate) async fn ahead_behind(
        &self,
        base: &str,
        head: &str,
    ) -> Result<(usize, usize), ApiError> {
        let range = format!("{base}...{head}");
        let text = self.text(&["rev-list", "--left-right", "--count", &range, "--"]).await?;
        let mut numbers = text.split_whitespace().filter_map(|part| part.parse().ok());
        let behind = numbers.next().unwrap_or_default();
        Ok((numbers.next().unwrap_or_default(), behind))
    }

    /// Entries of a tree.
    pub(crate) async fn tree(&self, sha: &str, recursive: bool) -> Result<Vec<Entry>, ApiError> {
        let mut arguments = vec!["ls-tree", "-z", "-l"];
        if recursive {
            arguments.extend(["-r", "-t"]);
        }
        arguments.push(sha);
        let text = String::from_utf8_lossy(&self.bytes(&arguments).await?).into_owned();
        let read = |line: &str| {
            let (head, path) = line.split_once('\t')?;
            let mut parts = head.split_whitespace().map(str::to_owned);
            Some(Entry {
                mode: parts.next()?,
                kind: parts.next()?,
                sha: parts.next()?,
                size: parts.next()?.parse().ok(),
                path: path.to_owned(),
            })
        };
        Ok(text.split('\0').filter_map(read).collect())
    }

    /// Objects with their content; those that are not there are left out.
    pub(crate) async fn objects(&self, shas: &[String]) -> Result<Vec<Object>, ApiError> {
        let input = shas.iter().flat_map(|sha| [sha.as_bytes(), b"\n"].concat()).collect();
        let said = self.run_with(&["cat-file", "--batch"], input).await?;
        let mut rest = said.out.as_slice();
        let mut found = Vec::new();
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line = String::from_utf8_lossy(&rest[..end]).into_owned();
            rest = &rest[end + 1..];
            let parts: Vec<&str> = line.split(' ').collect();
            let [sha, kind, size] = parts.as_slice() else { continue };
            let Ok(size) = size.parse::<usize>() else { continue };
            if rest.len() <= size {
                return Err(ApiError::internal("git told half an object"));
            }
            let content = rest[..size].to_vec();
            found.push(Object { sha: (*sha).to_owned(), kind: (*kind).to_owned(), content });
            rest = &rest[size + 1..];
        }
        Ok(found)
    }

    /// Size of all objects, in units of 1,024 bytes.
    pub(crate) async fn size_kb(&self) -> Result<u64, ApiError> {
        let text = self.text(&["count-objects", "-v"]).await?;
        let number = |line: &str| {
            let (name, value) = line.split_once(": ")?;
            ["size", "size-pack"].contains(&name).then(|| value.parse::<u64>().ok()).flatten()
        };
        Ok(text.lines().filter_map(number).sum())
    }
}
