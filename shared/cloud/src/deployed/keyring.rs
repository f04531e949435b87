//! The keys in the stack's secrets: read, set and removed one by one. Other content of a secret stays unchanged.
//!
//! If two people change the same secret at the same moment, the earlier change can be lost: Secrets Manager has no
//! conditional write.

use aws_sdk_secretsmanager::Client;
use serde_json::{Map, Value};

use super::{CALL_MS_MAX, Deployed, told};
use crate::aws::Bounded;
use crate::secrets::Secret;

/// Content of one of the stack's secrets: a flat object.
pub struct Keyring {
    aws: Bounded<Client>,
    arn: String,
    values: Map<String, Value>,
}

impl std::fmt::Debug for Keyring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keyring").field("arn", &self.arn).finish_non_exhaustive()
    }
}

impl Deployed {
    /// Reads the secret that an output of the stack names.
    ///
    /// # Errors
    /// What is missing and what to do; never a part of a value.
    pub async fn keyring(&self, output: &str) -> Result<Keyring, String> {
        let arn = self.output(output)?.to_owned();
        let aws = self.aws.secrets(CALL_MS_MAX);
        let got = aws.client.get_secret_value().secret_id(&arn).send().await;
        let got = got.map_err(|e| {
            let told = told(&aws.failed(e), "secretsmanager:GetSecretValue on it");
            format!("The secret {arn} cannot be read. {told}")
        })?;
        let text = got
            .secret_string
            .ok_or_else(|| format!("The secret {arn} holds no text: put {{}} into it."))?;
        // The decoder's message could quote a value.
        let values = serde_json::from_str(&text)
            .map_err(|_| format!("The secret {arn} is not a JSON object: put {{}} into it."))?;
        Ok(Keyring { aws, arn, values })
    }
}

impl Keyring {
    /// A key; `None` if missing or empty.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Secret> {
        let value = self.values.get(name)?.as_str()?;
        (!value.is_empty()).then(|| Secret::from(value.to_owned()))
    }

    /// Sets a key; true if that changes anything. Nothing is written yet.
    pub fn set(&mut self, name: &str, value: &Secret) -> bool {
        let value = Value::String(value.expose().to_owned());
        self.values.insert(name.to_owned(), value.clone()) != Some(value)
    }

    /// Removes a key; true if it existed. Nothing is written yet.
    pub fn forget(&mut self, name: &str) -> bool {
        self.values.remove(name).is_some()
    }

    /// Writes the changes.
    ///
    /// # Errors
    /// What is missing and what to do; never a part of a value.
    pub async fn save(&self) -> Result<(), String> {
        let text = Value::Object(self.values.clone()).to_string();
        // A repeat of the command must not create a second version, as the SDK's own token would.
        let token = bobbin_core::base::ids::digest(&["keyring", &self.arn, &text])[..32].to_owned();
        let put = self.aws.client.put_secret_value();
        let put = put.secret_id(&self.arn).secret_string(text).client_request_token(token);
        match put.send().await {
            Ok(_) => Ok(()),
            Err(error) => Err(format!(
                "The secret {} cannot be written. {}",
                self.arn,
                told(&self.aws.failed(error), "secretsmanager:PutSecretValue on it")
            )),
        }
    }
}
