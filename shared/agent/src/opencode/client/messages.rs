//! Messages of a session: one, all from a prompt on, or the newest.

use reqwest::Method;

use super::error::{CallKind, OpenCodeError, not_an_answer};
use super::{OpenCode, OpenCodeResult};
use crate::opencode::order::{in_order, is_whole};
use crate::opencode::types::OpenCodeMessage;

/// Newest messages that are checked for an answer in progress: prompts that were sent into a run come after the message
/// that it is writing.
const NEWEST_MESSAGES: u32 = 20;
/// Messages per page.
const PAGE_MESSAGES: u32 = 50;
/// Most pages that are read to find a prompt.
const PAGES_MAX: usize = 10;

impl OpenCode {
    /// Reads a message; `None` when OpenCode does not have it.
    ///
    /// # Errors
    /// [`OpenCodeError`].
    pub async fn message(
        &self,
        session: &str,
        message: &str,
    ) -> OpenCodeResult<Option<OpenCodeMessage>> {
        match self
            .get(&format!("/session/{session}/message/{message}"), &[], CallKind::Session)
            .await
        {
            Ok(found) => Ok(Some(found)),
            Err(OpenCodeError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether the server has this message.
    ///
    /// # Errors
    /// [`OpenCodeError`].
    pub async fn has(&self, session: &str, message: &str) -> OpenCodeResult<bool> {
        Ok(self.message(session, message).await?.is_some())
    }

    /// The messages of a session from a prompt on, oldest first; the newest page if the prompt is not found.
    ///
    /// # Errors
    /// [`OpenCodeError`].
    pub async fn messages_since(
        &self,
        session: &str,
        prompt: &str,
    ) -> OpenCodeResult<Vec<OpenCodeMessage>> {
        let mut messages = PAGE_MESSAGES;
        loop {
            match self.pages_since(session, prompt, messages).await {
                Err(OpenCodeError::TooLarge { .. }) if messages > 1 => messages = fewer(messages),
                other => return other,
            }
        }
    }

    async fn pages_since(
        &self,
        session: &str,
        prompt: &str,
        messages: u32,
    ) -> OpenCodeResult<Vec<OpenCodeMessage>> {
        let path = format!("/session/{session}/message");
        let limit = messages.to_string();
        let mut found: Vec<OpenCodeMessage> = Vec::new();
        let mut cursor: Option<String> = None;
        for _ in 0..PAGES_MAX {
            let mut query = vec![("limit", limit.as_str())];
            query.extend(cursor.as_deref().map(|cursor| ("before", cursor)));
            let answer = self.call(Method::GET, &path, &query, None, CallKind::Session).await?;
            let mut page: Vec<OpenCodeMessage> =
                answer.json().ok_or_else(|| not_an_answer(&answer))?;
            page.append(&mut found);
            found = page;
            let next = answer.headers.get("x-next-cursor").and_then(|value| value.to_str().ok());
            cursor = next.filter(|next| !next.is_empty()).map(str::to_owned);
            if cursor.is_none() || is_whole(&in_order(&found), prompt) {
                break;
            }
        }
        Ok(in_order(&found).into_owned())
    }

    /// The newest messages of a session, oldest first.
    ///
    /// # Errors
    /// [`OpenCodeError`].
    pub async fn newest(&self, session: &str) -> OpenCodeResult<Vec<OpenCodeMessage>> {
        self.last(session, NEWEST_MESSAGES).await
    }

    /// The last message of a session.
    ///
    /// # Errors
    /// [`OpenCodeError`].
    pub async fn last_message(&self, session: &str) -> OpenCodeResult<Option<OpenCodeMessage>> {
        Ok(self.last(session, 1).await?.pop())
    }

    async fn last(&self, session: &str, mut messages: u32) -> OpenCodeResult<Vec<OpenCodeMessage>> {
        let path = format!("/session/{session}/message");
        loop {
            let limit = messages.to_string();
            let query = [("limit", limit.as_str())];
            match self.get(&path, &query, CallKind::Session).await {
                Err(OpenCodeError::TooLarge { .. }) if messages > 1 => messages = fewer(messages),
                other => return other,
            }
        }
    }
}

/// Messages with images are large: if this many exceed the bound of an answer, the returned number is requested
/// instead.
const fn fewer(messages: u32) -> u32 {
    if messages > 5 { messages / 5 } else { 1 }
}
