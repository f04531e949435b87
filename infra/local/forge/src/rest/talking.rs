//! Who may comment on a pull request, and in whose name.

use super::Call;
use crate::access::Caller;
use crate::api_error::ApiError;
use crate::permission::{Level, level};
use crate::record::{Pull, RepositoryRecord};
use crate::reviews::Speaker;

impl Call {
    /// The repository, for a caller who may speak in it: a person who reads it, an app with one of these rights.
    pub(super) fn talkable(&self, rights: &[&str]) -> Result<RepositoryRecord, ApiError> {
        let found = match &self.caller {
            Caller::Person { app: None, .. } => self.repository("metadata", Level::Read)?,
            Caller::Person { app: Some(app), .. } => {
                let found = self.repository("metadata", Level::Read)?;
                let inner = self.engine.lock();
                let installed = inner.installed(*app, found.owner);
                let has = |right: &str| {
                    installed.is_some_and(|one| level(&one.permissions, right) >= Level::Write)
                };
                if !rights.iter().any(|right| has(right)) {
                    return Err(ApiError::integration());
                }
                found
            }
            _ => self.one_of(rights, Level::Write)?,
        };
        if found.is_archived { Err(ApiError::archived()) } else { Ok(found) }
    }

    /// The repository, for a caller with one of these rights.
    pub(super) fn one_of(
        &self,
        rights: &[&str],
        needed: Level,
    ) -> Result<RepositoryRecord, ApiError> {
        let mut refused = ApiError::not_found();
        for right in rights {
            match self.repository(right, needed) {
                Ok(found) => return Ok(found),
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }

    /// Who speaks, and through which app.
    pub(super) fn voice(&self) -> Result<Speaker, ApiError> {
        let via = match self.caller {
            Caller::Installation { id, .. } => Some(self.engine.lock().installation(id)?.app),
            Caller::Person { app, .. } => app,
            _ => None,
        };
        Ok(Speaker { author: self.actor()?, via })
    }

    /// Lets the author of something change it, and anybody who may write to the repository.
    pub(super) fn changes(
        &self,
        repository: &RepositoryRecord,
        author: u64,
    ) -> Result<u64, ApiError> {
        let actor = self.actor()?;
        let is_app = matches!(self.caller, Caller::Installation { .. });
        if is_app || actor == author || self.engine.lock().may_write(repository, actor) {
            return Ok(actor);
        }
        Err(ApiError::forbidden("Must have admin rights to Repository."))
    }

    /// The pull request of the path, under this name of its number.
    pub(super) fn pull_in(
        &self,
        repository: &RepositoryRecord,
        part: &str,
    ) -> Result<Pull, ApiError> {
        let number = self.number(part)?;
        self.engine.lock().pull(repository.id, number).cloned()
    }
}
