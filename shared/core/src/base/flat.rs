//! Reads one flat JSON object into a struct whose fields are in groups: the groups exist only in the code, and people
//! type only the names. serde's `flatten` does that too, but cannot reject a name that no group has.

use std::collections::BTreeSet;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeOwned, Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// A struct of groups. Fields that the object leaves out keep their defaults.
pub trait Flat: Default {
    /// Describes the whole object in an error.
    const EXPECTED: &'static str;

    /// Offers an entry to each group until one takes it. Returns whether one did.
    ///
    /// # Errors
    /// The value has the wrong type.
    fn take<'de, A: MapAccess<'de>>(
        &mut self,
        entry: &mut FlatEntry<'_, A>,
    ) -> Result<bool, A::Error>;
}

/// A name of the object; its value is not read yet.
#[derive(Debug)]
pub struct FlatEntry<'a, A> {
    name: &'a str,
    rest: &'a mut A,
    /// The valid names seen so far, for the error.
    known: Vec<String>,
}

impl<'de, A: MapAccess<'de>> FlatEntry<'_, A> {
    /// Reads the value into the group's field with the entry's name. Returns whether the group has one.
    ///
    /// # Errors
    /// The value has the wrong type.
    pub fn into_group<T>(&mut self, group: &mut T) -> Result<bool, A::Error>
    where
        T: Serialize + DeserializeOwned,
    {
        let mut whole = serde_json::to_value(&*group).map_err(Error::custom)?;
        let Some(value) = whole.get_mut(self.name) else {
            let names = whole.as_object().into_iter().flat_map(serde_json::Map::keys);
            self.known.extend(names.cloned());
            return Ok(false);
        };
        *value = self.rest.next_value::<Value>()?;
        *group = serde_json::from_value(whole).map_err(Error::custom)?;
        Ok(true)
    }

    /// Reads the value into a field outside of all groups, if the entry has this name. Returns whether it has.
    ///
    /// # Errors
    /// The value has the wrong type.
    pub fn into_field<T>(&mut self, name: &str, field: &mut T) -> Result<bool, A::Error>
    where
        T: Deserialize<'de>,
    {
        if self.name != name {
            self.known.push(name.to_owned());
            return Ok(false);
        }
        *field = self.rest.next_value()?;
        Ok(true)
    }
}

/// Reads the object.
///
/// # Errors
/// A name that no group has, or that is repeated; a value of the wrong type.
pub fn deserialize<'de, T: Flat, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_map(Entries(PhantomData))
}

struct Entries<T>(PhantomData<T>);

impl<'de, T: Flat> Visitor<'de> for Entries<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<T, A::Error> {
        let (mut read, mut seen) = (T::default(), BTreeSet::new());
        while let Some(name) = entries.next_key::<String>()? {
            if seen.contains(&name) {
                return Err(Error::custom(format_args!("duplicate field `{name}`")));
            }
            let mut entry = FlatEntry { name: &name, rest: &mut entries, known: Vec::new() };
            if !read.take(&mut entry)? {
                let known = entry.known.join("`, `");
                return Err(Error::custom(format_args!(
                    "unknown field `{name}`, expected one of `{known}`"
                )));
            }
            seen.insert(name);
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fields of [`Grouped`], as serde's own derive reads them.
    #[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Plain {
        first: String,
        second: u32,
        third: bool,
    }

    #[derive(Debug, Default, PartialEq, Serialize)]
    struct Grouped {
        first: String,
        #[serde(flatten)]
        numbers: Numbers,
        #[serde(flatten)]
        switches: Switches,
    }

    #[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
    struct Numbers {
        second: u32,
    }

    #[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
    struct Switches {
        #[serde(rename = "third")]
        is_on: bool,
    }

    impl Flat for Grouped {
        const EXPECTED: &'static str = "struct Plain";

        fn take<'de, A: MapAccess<'de>>(
            &mut self,
            entry: &mut FlatEntry<'_, A>,
        ) -> Result<bool, A::Error> {
            Ok(entry.into_field("first", &mut self.first)?
                || entry.into_group(&mut self.numbers)?
                || entry.into_group(&mut self.switches)?)
        }
    }

    impl<'de> Deserialize<'de> for Grouped {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserialize(deserializer)
        }
    }

    fn plain(text: &str) -> Result<String, String> {
        let read: Plain = serde_json::from_str(text).map_err(|e| e.to_string())?;
        Ok(serde_json::to_string(&read).expect("JSON"))
    }

    fn grouped(text: &str) -> Result<String, String> {
        let read: Grouped = serde_json::from_str(text).map_err(|e| e.to_string())?;
        Ok(serde_json::to_string(&read).expect("JSON"))
    }

    #[test]
    fn groups_read_and_write_like_flat_fields() {
        for text in [
            "{}",
            r#"{"second": 7}"#,
            r#"{"third": true, "second": 7, "first": "a"}"#,
            r#"{"second": 7, "secnod": 8}"#,
            r#"{"numbers": {"second": 7}}"#,
            r#"{"second": 7, "second": 8}"#,
            r#"{"first": 1, "third": true}"#,
            r#"{"second": "7", "third": true}"#,
            r#"{"second": 5000000000, "third": true}"#,
            r#"{"third": true, "second": -1, "first": ""}"#,
            r#"{"second": 1.5, "third": true}"#,
            r#"{"third": null, "second": 1}"#,
            r#"{"second": 7"#,
            r#"{"second": 7,}"#,
            "7",
            "",
        ] {
            assert_eq!(grouped(text), plain(text), "{text}");
        }
    }
}
