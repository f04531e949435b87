//! The laptop stack, found from a person's terminal: the description that it keeps in its state folder while it runs,
//! and the two operations that a person needs to invoke a function by hand.
//!
//! Promised: nothing is taken from the person's environment, and the stack's description contains no key. The folder's
//! own `keys.json` holds the keys; one is read there to sign as the local Discord does.

use std::path::{Path, PathBuf};

use bobbin_cloud::deployed::Deployed;
use bobbin_core::base::secret::Secret;
use bobbin_http::{AllowedHosts, Http, Method};
use serde::Deserialize;
use serde_json::{Value, json};

/// State folder of a checkout's laptop stack.
const STATE_DIR: &str = ".bobbin/state";
/// File with its description while it runs.
const READY: &str = "ready.json";
/// File with the keys that it generated.
const KEYS: &str = "keys.json";

/// A running laptop stack.
#[derive(Debug, Clone)]
pub struct Laptop {
    folder: PathBuf,
    /// Its name on a command line: `--laptop`, with its folder if that is not the checkout's.
    pub said: String,
    /// Its description.
    pub whereabouts: Whereabouts,
}

/// The description in the state folder.
#[derive(Debug, Clone, Deserialize)]
pub struct Whereabouts {
    /// Name of the stack.
    pub stack: String,
    /// Address of the embedded AWS.
    pub aws_endpoint: String,
    /// Address of ingress, as platforms would reach it.
    #[serde(default)]
    pub ingress: String,
    /// Address of the chat page.
    #[serde(default)]
    pub console: String,
    /// Name or address of this machine for containers, if the stack was started for them.
    #[serde(default)]
    pub container_host: Option<String>,
    /// Ids on its two platforms.
    #[serde(flatten)]
    pub ids: LaptopIds,
}

/// Ids that the laptop stack's policy admits.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct LaptopIds {
    /// Id of the Discord application.
    pub discord_application_id: String,
    /// Id of the guild.
    pub discord_guild_id: String,
    /// Id of a channel in the guild.
    pub discord_channel_id: String,
    /// Id of a member of the guild.
    pub discord_user_id: String,
    /// Id of the Slack team.
    pub slack_team_id: String,
    /// Id of a channel in the team.
    pub slack_channel_id: String,
    /// Id of a member of the team.
    pub slack_user_id: String,
    /// Id of the bot user in the team.
    pub slack_bot_user_id: String,
}

/// The generated keys that are needed here.
#[derive(Deserialize)]
struct GeneratedKeys {
    discord_seed: String,
    aws_access_key_id: String,
    aws_secret_access_key: String,
    control_key: String,
}

impl Laptop {
    /// Finds the stack with this state folder, or with the checkout's.
    ///
    /// # Errors
    /// None runs there; says how to start or name one.
    pub fn find(state_dir: Option<&Path>) -> Result<Self, String> {
        let (folder, said) = match state_dir {
            Some(folder) => {
                (folder.to_owned(), format!("--laptop --state-dir {}", folder.display()))
            }
            None => (checkout()?.join(STATE_DIR), "--laptop".to_owned()),
        };
        let file = folder.join(READY);
        let text = std::fs::read_to_string(&file).map_err(|_| {
            format!(
                "No laptop stack runs with the state folder {}: start it with cargo run, or name its folder with --state-dir.",
                folder.display()
            )
        })?;
        let whereabouts = serde_json::from_str(&text).map_err(|e| {
            format!(
                "{} cannot be read ({e}): start the laptop stack of this checkout again with cargo run.",
                file.display()
            )
        })?;
        Ok(Self { folder, said, whereabouts })
    }

    /// The stack itself.
    ///
    /// # Errors
    /// It does not answer any more.
    pub async fn deployed(&self) -> Result<Deployed, String> {
        let Whereabouts { stack, aws_endpoint, .. } = &self.whereabouts;
        let keys = self.keys()?;
        let key = (&*keys.aws_access_key_id, &*keys.aws_secret_access_key);
        Deployed::find_laptop(stack, aws_endpoint, key).await.map_err(|why| {
            format!(
                "The laptop stack does not answer at {aws_endpoint}: {why} Start it with cargo run."
            )
        })
    }

    /// Seed of the key with which the local Discord signs, 64 hex digits.
    ///
    /// # Errors
    /// Its keys cannot be read; never a part of one.
    pub fn discord_seed(&self) -> Result<Secret, String> {
        Ok(Secret::from(self.keys()?.discord_seed))
    }

    /// The key for calls to its AWS: id and secret.
    ///
    /// # Errors
    /// Its keys cannot be read; never a part of one.
    pub fn aws_key(&self) -> Result<(String, Secret), String> {
        let keys = self.keys()?;
        let secret = Secret::from(keys.aws_secret_access_key);
        Ok((keys.aws_access_key_id, secret))
    }

    /// The address of its chat page, including the key.
    ///
    /// # Errors
    /// Its keys cannot be read; never a part of one.
    pub fn page(&self) -> Result<Secret, String> {
        let base = self.whereabouts.console.trim_end_matches('/');
        let key = self.keys()?.control_key;
        Ok(Secret::from(format!("{base}/?key={key}")))
    }

    fn keys(&self) -> Result<GeneratedKeys, String> {
        let file = self.folder.join(KEYS);
        // The decoder's message could quote a key.
        let keys: Option<GeneratedKeys> =
            std::fs::read_to_string(&file).ok().and_then(|text| serde_json::from_str(&text).ok());
        keys.ok_or_else(|| {
            format!(
                "{} cannot be read: stop the laptop stack, and start it with cargo run -- --fresh.",
                file.display()
            )
        })
    }

    /// Registers a payload that bypasses the local `platform` (`discord` or `slack`) there, so that the answer finds
    /// its token or thread.
    ///
    /// # Errors
    /// It does not answer, or refuses.
    pub async fn announce(&self, platform: &str, payload: &Value) -> Result<(), String> {
        let base = &self.whereabouts.console;
        self.post(base, &format!("/_control/{platform}/announce"), payload).await
    }

    /// Enables or disables the stack's own functions as consumers of a queue.
    ///
    /// # Errors
    /// It does not answer, or has no such queue.
    pub async fn set_mapping(&self, queue: &str, enabled: bool) -> Result<(), String> {
        let base = &self.whereabouts.aws_endpoint;
        let path = format!("/_bobbin/queues/{queue}/mapping");
        self.post(base, &path, &json!({ "enabled": enabled })).await
    }

    async fn post(&self, base: &str, path: &str, body: &Value) -> Result<(), String> {
        let address = format!("{}{path}", base.trim_end_matches('/'));
        let http = Http::new(base, AllowedHosts::Named(Vec::new())).map_err(|e| e.to_string())?;
        let request = http
            .request(Method::POST, &address)
            .map_err(|e| e.to_string())?
            .bearer_auth(self.keys()?.control_key)
            .json(body);
        let answer = http.send(request).await.map_err(|e| {
            format!("The laptop stack does not answer: {e}. Start it with cargo run.")
        })?;
        if answer.ok() {
            Ok(())
        } else {
            Err(format!(
                "The laptop stack answers {} at {path}: {}",
                answer.status,
                String::from_utf8_lossy(&answer.body)
            ))
        }
    }
}

/// The checkout: the nearest parent folder that holds the template, else the one in which this program was built.
fn checkout() -> Result<PathBuf, String> {
    let here = std::env::current_dir()
        .map_err(|e| format!("The current folder cannot be read ({e}): go to another one."))?;
    let built_in = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    here.ancestors()
        .map(Path::to_owned)
        .chain(built_in.map(Path::to_owned))
        .find(|folder| folder.join("template.yaml").is_file())
        .ok_or_else(|| {
            "This folder is not a checkout of Bobbin: go to one, or name the stack's folder with --state-dir."
                .to_owned()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_laptop_stack_is_explained() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let find = || Laptop::find(Some(folder.path())).map(|found| found.whereabouts.stack);
        let told = find().expect_err("nothing is there");
        assert!(
            told.starts_with("No laptop stack runs with the state folder ")
                && told
                    .ends_with(": start it with cargo run, or name its folder with --state-dir."),
            "{told}"
        );
        let ready = folder.path().join(READY);
        std::fs::write(&ready, "{").expect("ours");
        let told = find().expect_err("half a file");
        assert!(told.contains("ready.json cannot be read"), "{told}");
        let words = r#"{"stack": "local", "console": "http://127.0.0.1:1", "aws_endpoint": "http://127.0.0.1:2"}"#;
        std::fs::write(&ready, words).expect("ours");
        assert_eq!(find().as_deref(), Ok("local"));
    }

    #[test]
    fn checkout_path_is_normalised() {
        let found = checkout().expect("this is one");
        assert!(found.join("template.yaml").is_file());
        assert!(!found.display().to_string().contains(".."), "{}", found.display());
        let built_in = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
        assert!(built_in.is_some_and(|root| root.join("template.yaml").is_file()));
    }

    #[test]
    fn unreadable_key_is_not_quoted() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let words = r#"{"stack": "local", "aws_endpoint": "http://127.0.0.1:2"}"#;
        std::fs::write(folder.path().join(READY), words).expect("ours");
        let laptop = Laptop::find(Some(folder.path())).expect("it is there");
        std::fs::write(folder.path().join(KEYS), r#"{"discord_seed": ["canary"]}"#).expect("ours");
        let told = laptop.discord_seed().expect_err("no text");
        assert!(told.contains("--fresh") && !told.contains("canary"), "{told}");
        let words = r#"{"discord_seed": "07", "aws_access_key_id": "", "aws_secret_access_key": "", "control_key": "k", "x": 1}"#;
        std::fs::write(folder.path().join(KEYS), words).expect("ours");
        let page = laptop.page();
        assert_eq!(page.as_ref().map(Secret::expose), Ok("/?key=k"));
        assert_eq!(laptop.discord_seed().as_ref().map(Secret::expose), Ok("07"));
    }
}
