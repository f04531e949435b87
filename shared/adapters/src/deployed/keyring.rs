//! The keys in the stack's secrets: read, changed one by one, taken out again. What else is in a secret stays as it is.
//!
//! Two people who change the same secret at the same moment can lose the earlier change: Secrets Manager has no
//! condition on a write.

use serde_json::{Map, Value, json};

use super::Deployed;
use super::call::{self, Service};
use crate::secrets::Secret;

const SERVICE: Service = Service {
    name: "secretsmanager",
    title: "Secrets Manager",
};
const KIND: &str = "application/x-amz-json-1.1";

/// What one of the stack's secrets holds: a flat object.
pub struct Keyring<'a> {
    deployed: &'a Deployed,
    arn: String,
    values: Map<String, Value>,
}

impl std::fmt::Debug for Keyring<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keyring")
            .field("arn", &self.arn)
            .finish_non_exhaustive()
    }
}

impl Deployed {
    /// Reads the secret that an output of the stack names.
    ///
    /// # Errors
    /// What is missing and what to do; never a part of a value.
    pub async fn keyring(&self, output: &str) -> Result<Keyring<'_>, String> {
        let arn = self.output(output)?.to_owned();
        let asked = json!({ "SecretId": arn });
        let target = "secretsmanager.GetSecretValue";
        let read = call::json(&self.account, SERVICE, KIND, target, &asked).await?;
        let mut said = read.map_err(|refusal| {
            format!(
                "The secret {arn} cannot be read. {}",
                refusal.told(SERVICE, "secretsmanager:GetSecretValue on it")
            )
        })?;
        let Value::String(text) = said["SecretString"].take() else {
            return Err(format!("The secret {arn} holds no text: put {{}} into it."));
        };
        // The decoder's message could quote a value.
        let values = serde_json::from_str(&text)
            .map_err(|_| format!("The secret {arn} is not a JSON object: put {{}} into it."))?;
        Ok(Keyring {
            deployed: self,
            arn,
            values,
        })
    }
}

impl Keyring<'_> {
    /// A key; nothing if it is not there or empty.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Secret> {
        let value = self.values.get(name)?.as_str()?;
        (!value.is_empty()).then(|| Secret::from(value.to_owned()))
    }

    /// Puts a key in; true if that changes something. Nothing is written yet.
    pub fn set(&mut self, name: &str, value: &Secret) -> bool {
        let value = Value::String(value.expose().to_owned());
        self.values.insert(name.to_owned(), value.clone()) != Some(value)
    }

    /// Takes a key out; true if it was there. Nothing is written yet.
    pub fn forget(&mut self, name: &str) -> bool {
        self.values.remove(name).is_some()
    }

    /// Writes what was changed.
    ///
    /// # Errors
    /// What is missing and what to do; never a part of a value.
    pub async fn save(&self) -> Result<(), String> {
        let text = Value::Object(self.values.clone()).to_string();
        // A repeat of the call must not make a second version; the service demands this token.
        let token = bobbin_core::ids::digest(&["keyring", &self.arn, &text])[..32].to_owned();
        let asked =
            json!({ "SecretId": self.arn, "SecretString": text, "ClientRequestToken": token });
        let target = "secretsmanager.PutSecretValue";
        let account = &self.deployed.account;
        let written = call::json(account, SERVICE, KIND, target, &asked).await?;
        match written {
            Ok(_) => Ok(()),
            Err(refusal) => Err(format!(
                "The secret {} cannot be written. {}",
                self.arn,
                refusal.told(SERVICE, "secretsmanager:PutSecretValue on it")
            )),
        }
    }
}
