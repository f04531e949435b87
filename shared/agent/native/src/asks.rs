//! Names of asks.

use bobbin_core::base::ids::{AskId, digest};

/// Digits of a name: as many as the ids of OpenCode's own asks may have in a button.
const DIGITS: usize = 26;

/// The name of an ask outside its session: agents count asks anew in each session, and a button has little room.
pub(crate) fn name(session: &str, ask: &str) -> AskId {
    let digits = digest(&["native-ask", session, ask]);
    format!("ask_{}", &digits[..DIGITS]).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ask_name_depends_on_session() {
        let named = name("s", "0-7");
        assert!(named.starts_with("ask_") && named.len() == 30, "{named}");
        assert_ne!(named, name("another session", "0-7"));
    }
}
