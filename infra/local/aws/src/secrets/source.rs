//! Sources of the values of the template's secrets.

use rand::Rng as _;
use serde_json::Value;

use super::error::SecretError;

/// Source of a secret's value.
#[derive(Clone, Debug)]
pub(crate) enum SecretSource {
    /// The text of `SecretString`.
    Text(String),
    /// Generated once, by `GenerateSecretString`.
    Generated(Generate),
}

/// The supported parts of `GenerateSecretString`.
#[derive(Clone, Debug)]
pub(crate) struct Generate {
    pub(crate) secret_string_template: Option<String>,
    pub(crate) generate_string_key: Option<String>,
    pub(crate) password_length: usize,
    pub(crate) exclude_punctuation: bool,
}

/// Default of `PasswordLength` (AWS).
pub(crate) const PASSWORD_LENGTH_DEFAULT: usize = 32;

/// A secret's value, and its generated part; `present` is the part generated at an earlier start.
pub(super) fn compose(
    source: &SecretSource,
    present: Option<String>,
) -> Result<(String, Option<String>), SecretError> {
    let generate = match source {
        SecretSource::Text(text) => return Ok((text.clone(), None)),
        SecretSource::Generated(generate) => generate,
    };
    let generated = present.unwrap_or_else(|| password(generate));
    let value = match (&generate.secret_string_template, &generate.generate_string_key) {
        (Some(template), Some(key)) => {
            // A parse error would quote the text, which holds credentials.
            let mut object: serde_json::Map<String, Value> = serde_json::from_str(template)
                .map_err(|_| {
                    SecretError::Invalid(
                        "SecretStringTemplate is not a JSON object after its parameters were put in; look for quotation marks or backslashes in the parameters".to_owned(),
                    )
                })?;
            object.insert(key.clone(), Value::String(generated.clone()));
            Value::Object(object).to_string()
        }
        (None, None) => generated.clone(),
        _ => {
            return Err(SecretError::Invalid(
                "SecretStringTemplate and GenerateStringKey belong together".to_owned(),
            ));
        }
    };
    Ok((value, Some(generated)))
}

fn password(generate: &Generate) -> String {
    const PUNCTUATION: &str = "!#$%&'()*+,-./:;<=>?@[]^_`{|}~";
    let mut alphabet: Vec<char> = ('a'..='z').chain('A'..='Z').chain('0'..='9').collect();
    if !generate.exclude_punctuation {
        alphabet.extend(PUNCTUATION.chars());
    }
    let mut random = rand::rng();
    (0..generate.password_length)
        .map(|_| alphabet[random.random_range(0..alphabet.len())])
        .collect()
}
