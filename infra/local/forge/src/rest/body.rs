//! Bodies of requests, refused as GitHub does.

use serde::de::DeserializeOwned;
use serde_json::error::Category;

use crate::api_error::ApiError;

/// Reads a body; an empty one counts as an empty object.
pub(crate) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    let text: &[u8] = if body.iter().all(u8::is_ascii_whitespace) { b"{}" } else { body };
    serde_json::from_slice(text).map_err(|error| refusal(&error))
}

fn refusal(error: &serde_json::Error) -> ApiError {
    if error.classify() != Category::Data {
        return ApiError::bad("Problems parsing JSON");
    }
    let said = error.to_string();
    let name = said.split('`').nth(1).unwrap_or_default();
    ApiError::unprocessable(if said.starts_with("unknown field") {
        format!("Invalid request.\n\n\"{name}\" is not a permitted key.")
    } else if said.starts_with("missing field") {
        format!("Invalid request.\n\n\"{name}\" wasn't supplied.")
    } else {
        format!("Invalid request.\n\n{said}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct NameBody {
        name: String,
    }

    #[test]
    fn refusals_name_the_key() {
        let refused = |text: &str| {
            let error = read::<NameBody>(text.as_bytes()).expect_err("refused");
            (error.status.as_u16(), error.message)
        };
        assert_eq!(read::<NameBody>(br#"{"name":"a"}"#).expect("read").name, "a");
        let sentence = |text: &str| (422, format!("Invalid request.\n\n{text}"));
        assert_eq!(refused("{"), (400, "Problems parsing JSON".to_owned()));
        assert_eq!(refused(""), sentence("\"name\" wasn't supplied."));
        assert_eq!(refused(r#"{"name":"a","nam":1}"#), sentence("\"nam\" is not a permitted key."));
    }
}
