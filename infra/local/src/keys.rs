//! Development identities: generated once, kept in the state folder, worthless outside this machine.

use std::fs;
use std::path::Path;

use ed25519_dalek::SigningKey;
use rand::Rng;
use serde::{Deserialize, Serialize};

/// Keys and ids of the local platforms and provider.
#[derive(Clone, Serialize, Deserialize)]
pub struct StackKeys {
    /// Seed of the key that signs Discord interactions, 64 hex digits.
    pub discord_seed: String,
    /// Snowflake of the Discord application.
    pub discord_application_id: String,
    /// The bot's token at the local Discord.
    pub discord_bot_token: String,
    /// The local Slack's signing secret.
    pub slack_signing_secret: String,
    /// The bot's token at the local Slack.
    pub slack_bot_token: String,
    /// The bot's user in the Slack team.
    pub slack_bot_user_id: String,
    /// The Slack app's id, in events and commands.
    pub slack_app_id: String,
    /// API key of the local provider.
    pub daytona_api_key: String,
    /// Access token of the Vercel-compatible provider.
    #[serde(default)]
    pub vercel_token: String,
    /// Id of a person's access key for the embedded AWS.
    #[serde(default)]
    pub aws_access_key_id: String,
    /// Secret of that access key.
    #[serde(default)]
    pub aws_secret_access_key: String,
    /// Key of the chat page and every test call.
    #[serde(default)]
    pub control_key: String,
}

impl StackKeys {
    /// Reads the keys of this state folder, or generates them.
    ///
    /// # Errors
    /// A sentence that names the file.
    pub fn load_or_create(state_dir: &Path) -> Result<Self, String> {
        let file = state_dir.join("keys.json");
        let keys = match fs::read_to_string(&file) {
            Ok(text) => serde_json::from_str::<Self>(&text)
                .map_err(|e| {
                    format!("{} cannot be read ({e}); `--fresh` creates new ones.", file.display())
                })?
                .completed(),
            Err(_) => Self::make(),
        };
        let text = serde_json::to_string_pretty(&keys).map_err(|e| e.to_string())?;
        private(&file, &text).map_err(|e| format!("{} cannot be written: {e}", file.display()))?;
        Ok(keys)
    }

    fn make() -> Self {
        let hex = |bytes: usize| {
            hex::encode((0..bytes).map(|_| rand::rng().random::<u8>()).collect::<Vec<_>>())
        };
        let id = |prefix: char| format!("{prefix}{}", hex(5).to_uppercase());
        Self {
            discord_seed: hex(32),
            discord_application_id: (rand::rng().random_range(1_u64 << 60..1 << 61)).to_string(),
            discord_bot_token: format!("dev.{}", hex(24)),
            slack_signing_secret: hex(16),
            slack_bot_token: format!("xoxb-dev-{}", hex(16)),
            slack_bot_user_id: id('U'),
            slack_app_id: id('A'),
            daytona_api_key: format!("dtn_dev_{}", hex(24)),
            vercel_token: String::new(),
            aws_access_key_id: String::new(),
            aws_secret_access_key: String::new(),
            control_key: String::new(),
        }
        .completed()
    }

    /// Adds keys that a folder from an earlier version lacks.
    fn completed(mut self) -> Self {
        if self.control_key.is_empty() {
            let new = bobbin_local_aws::EngineKeys::generate();
            self.aws_access_key_id = new.person.id;
            self.aws_secret_access_key = new.person.secret;
            self.control_key = new.control;
        }
        if self.vercel_token.is_empty() {
            let random: [u8; 24] = rand::rng().random();
            self.vercel_token = format!("vercel_dev_{}", hex::encode(random));
        }
        self
    }

    /// Keys of the embedded AWS. Functions get new ones at each start.
    #[must_use]
    pub fn aws(&self) -> bobbin_local_aws::EngineKeys {
        let mut keys = bobbin_local_aws::EngineKeys::generate();
        keys.person.id.clone_from(&self.aws_access_key_id);
        keys.person.secret.clone_from(&self.aws_secret_access_key);
        keys.control.clone_from(&self.control_key);
        keys
    }

    /// Public key of the Discord application, 64 hex digits.
    ///
    /// # Errors
    /// The stored seed is invalid.
    pub fn discord_public_key(&self) -> Result<String, String> {
        let mut seed = [0_u8; 32];
        hex::decode_to_slice(&self.discord_seed, &mut seed).map_err(|_| {
            "discord_seed in keys.json is not 64 hex digits; `--fresh` creates a new one."
                .to_owned()
        })?;
        Ok(hex::encode(SigningKey::from_bytes(&seed).verifying_key().to_bytes()))
    }
}

/// Writes a file that only its owner can read, even if an earlier one was open to others.
///
/// # Errors
/// The system's error.
pub fn private(file: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
    let mut opened =
        fs::OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(file)?;
    opened.set_permissions(fs::Permissions::from_mode(0o600))?;
    opened.write_all(text.as_bytes())
}
