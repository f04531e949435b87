//! The value of an attribute, as DynamoDB's JSON writes it: under the letter of its kind.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use serde::de::{Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// An item, or a key: attributes by their names.
pub type Item = HashMap<String, Attribute>;

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Attribute {
    /// A text.
    S(String),
    /// A number, in decimal.
    N(String),
    /// Of a kind that nothing here writes.
    #[serde(skip_serializing)]
    Other,
}

impl Attribute {
    /// The text, if it is one.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::S(text) => Some(text),
            Self::N(_) | Self::Other => None,
        }
    }

    /// The number, if it is one of this type.
    #[must_use]
    pub fn number<T: FromStr>(&self) -> Option<T> {
        match self {
            Self::N(number) => number.parse().ok(),
            Self::S(_) | Self::Other => None,
        }
    }
}

impl From<String> for Attribute {
    fn from(text: String) -> Self {
        Self::S(text)
    }
}

impl From<&str> for Attribute {
    fn from(text: &str) -> Self {
        Self::S(text.to_owned())
    }
}

impl From<u64> for Attribute {
    fn from(number: u64) -> Self {
        Self::N(number.to_string())
    }
}

impl<'de> Deserialize<'de> for Attribute {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Kind;
        impl<'de> Visitor<'de> for Kind {
            type Value = Attribute;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value by its kind")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Attribute, A::Error> {
                let value = match map.next_key::<String>()?.as_deref() {
                    Some("S") => Attribute::S(map.next_value()?),
                    Some("N") => Attribute::N(map.next_value()?),
                    Some(_) => map.next_value::<IgnoredAny>().map(|_| Attribute::Other)?,
                    None => return Err(A::Error::custom("a value without its kind")),
                };
                match map.next_key::<IgnoredAny>()? {
                    None => Ok(value),
                    Some(_) => Err(A::Error::custom("a value of two kinds")),
                }
            }
        }
        deserializer.deserialize_map(Kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_read_by_its_kind_and_one_of_a_strange_kind_is_not_mistaken() {
        let read = |text: &str| serde_json::from_str::<Attribute>(text).ok();
        assert_eq!(read(r#"{"S":"a\"ä"}"#), Some(Attribute::from("a\"ä")));
        assert_eq!(read(r#"{"N":"7"}"#), Some(Attribute::from(7)));
        for strange in [
            r#"{"BOOL":true}"#,
            r#"{"M":{"a":{"S":"b"}}}"#,
            r#"{"NULL":true}"#,
            r#"{"L":[]}"#,
        ] {
            assert_eq!(read(strange), Some(Attribute::Other), "{strange}");
        }
        for wrong in ["{}", "7", r#"{"S":7}"#, r#"{"S":"a","N":"7"}"#, "null"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        assert_eq!(Attribute::from(7).text(), None);
        assert_eq!(Attribute::from("7").number::<u64>(), None);
        assert_eq!(Attribute::N("-1".to_owned()).number::<u64>(), None);
        assert!(serde_json::to_string(&Attribute::Other).is_err());
    }
}
