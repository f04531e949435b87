//! The MD5 sums that SDKs verify.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

/// A message attribute, as in the JSON protocol.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct MessageAttribute {
    pub(crate) data_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) string_value: Option<String>,
    /// The value's bytes in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) binary_value: Option<String>,
}

impl MessageAttribute {
    /// Bytes of a binary value; `None` if it is text or invalid base64.
    pub(crate) fn bytes(&self) -> Option<Vec<u8>> {
        STANDARD.decode(self.binary_value.as_deref()?).ok()
    }

    fn value_bytes(&self) -> Vec<u8> {
        match &self.string_value {
            Some(text) => text.clone().into_bytes(),
            None => self.bytes().unwrap_or_default(),
        }
    }

    /// Size counted towards the message limit, without its name.
    pub(crate) fn size_bytes(&self) -> usize {
        self.data_type.len() + self.value_bytes().len()
    }
}

/// MD5 of a body, in hex.
pub(crate) fn of_body(body: &str) -> String {
    format!("{:x}", md5::compute(body))
}

/// MD5 of attributes: each name, type and value prefixed with its length, sorted by name.
pub(crate) fn of_attributes(attributes: &BTreeMap<String, MessageAttribute>) -> Option<String> {
    if attributes.is_empty() {
        return None;
    }
    let mut encoded = Vec::new();
    let part = |bytes: &[u8], encoded: &mut Vec<u8>| {
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        encoded.extend_from_slice(&length.to_be_bytes());
        encoded.extend_from_slice(bytes);
    };
    for (name, attribute) in attributes {
        part(name.as_bytes(), &mut encoded);
        part(attribute.data_type.as_bytes(), &mut encoded);
        encoded.push(if attribute.string_value.is_some() { 1 } else { 2 });
        part(&attribute.value_bytes(), &mut encoded);
    }
    Some(format!("{:x}", md5::compute(encoded)))
}
