//! A prompt on its way to the agent: a snapshot of the files is taken before anything changes them, and attached images
//! are read.

use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bobbin_core::records::images::media_type;

use super::AgentLaunch;
use crate::agents::AgentKind;
use crate::host::Host;
use crate::limits::{IMAGE_MS_MAX, IMAGES_BYTES_MAX};
use crate::plain;
use crate::state::{PromptAttachment, TurnPrompt};

/// A turn's prompt.
#[derive(Debug, Clone)]
pub(crate) struct Handed {
    pub(crate) turn: String,
    pub(crate) prompt: TurnPrompt,
    /// The prompt's attachments that the model is to see.
    pub(crate) images: Vec<HandedImage>,
    /// It was queued behind the previous turn.
    pub(crate) follows: bool,
}

/// An image's data.
#[derive(Debug, Clone)]
pub(crate) struct HandedImage {
    pub(crate) file: PromptAttachment,
    /// Media type detected from its bytes.
    pub(crate) media_type: &'static str,
    pub(crate) base64: String,
}

impl Handed {
    /// Prepares the prompt of a turn about to begin.
    pub(super) async fn prepared(mut self, launch: &AgentLaunch, host: &Host) -> Self {
        let directory = launch.created.directory.as_str();
        host.changes.begin(&launch.session, &self.turn, directory, self.follows).await;
        let mut left = IMAGES_BYTES_MAX;
        for mut file in std::mem::take(&mut self.prompt.attachments) {
            let path = Path::new(directory).join(&file.path);
            if let Some(path) = path.to_str() {
                path.clone_into(&mut file.path);
            }
            let is_image = file.mime.as_deref().is_some_and(|mime| mime.starts_with("image/"));
            let image = match launch.agent.kind {
                AgentKind::Amp => None,
                _ if is_image => read(file.clone(), &mut left).await,
                _ => None,
            };
            match image {
                Some(image) => self.images.push(image),
                None => self.prompt.attachments.push(file),
            }
        }
        self
    }

    /// The same prompt with its images only named, like files.
    pub(super) fn without_images(mut self) -> Self {
        let files = self.images.drain(..).map(|image| image.file);
        self.prompt.attachments.extend(files);
        self
    }
}

/// Reads an image; `None` if it is unreadable, not an image, or larger than the remaining budget.
async fn read(file: PromptAttachment, left: &mut u64) -> Option<HandedImage> {
    let (path, bytes_max) = (PathBuf::from(&file.path), *left);
    let read = tokio::task::spawn_blocking(move || plain::read(&path, bytes_max));
    let read = tokio::time::timeout(Duration::from_millis(IMAGE_MS_MAX), read).await;
    let bytes = read.ok()?.ok()?.ok()?;
    let rest = left.checked_sub(bytes.len() as u64)?;
    let media_type = media_type(&bytes)?;
    *left = rest;
    Some(HandedImage { file, media_type, base64: STANDARD.encode(&bytes) })
}
