//! Files: attachments of a prompt, and files that a turn shows.

use serde::{Deserialize, Serialize};

use super::all_hold;

/// The bounds of files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileLimits {
    /// Attachments of one prompt.
    pub attachments: usize,
    /// Bytes of one attachment.
    pub attachment_bytes: u64,
    /// Images of one prompt that are passed to the model.
    pub prompt_images: usize,
    /// Bytes of those images together: they stay in the agent's history, which is read again and again.
    pub prompt_images_bytes: u64,
    /// Files that one turn shows in the thread.
    pub artifacts: usize,
    /// Bytes of one shown file; Discord accepts 10 MiB.
    pub artifact_bytes: u64,
    /// Bytes of all files that one turn shows.
    pub artifacts_bytes: u64,
    /// Shown files that the session remembers, so that each is shown once.
    pub artifacts_known: usize,
}

/// A response of the agent contains a prompt with its images in base64, and may have 16 MiB at most.
const PROMPT_IMAGES_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// A forwarded file is held in memory while it is sent.
const HELD_BYTES_MAX: u64 = 20 * 1024 * 1024;

impl FileLimits {
    /// The design's defaults.
    pub const DEFAULT: Self = Self {
        attachments: 10,
        attachment_bytes: 10 * 1024 * 1024,
        prompt_images: 5,
        prompt_images_bytes: 5 * 1024 * 1024,
        artifacts: 10,
        artifact_bytes: 10 * 1024 * 1024,
        artifacts_bytes: 50 * 1024 * 1024,
        artifacts_known: 200,
    };

    pub(super) fn check(&self) -> Result<(), String> {
        all_hold(&[
            (
                self.prompt_images_bytes <= PROMPT_IMAGES_BYTES_MAX,
                "prompt_images_bytes must be at most 8388608: one response of the agent holds them all",
            ),
            (
                self.attachment_bytes <= HELD_BYTES_MAX && self.artifact_bytes <= HELD_BYTES_MAX,
                "attachment_bytes and artifact_bytes must be at most 20971520: a worker holds a file twice in its 128 MB",
            ),
        ])
    }
}

const _: () = {
    let l = FileLimits::DEFAULT;
    assert!(l.prompt_images_bytes <= PROMPT_IMAGES_BYTES_MAX);
    assert!(l.attachment_bytes <= HELD_BYTES_MAX && l.artifact_bytes <= HELD_BYTES_MAX);
};
