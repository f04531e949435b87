//! Session ids as file names.

/// A session id as a file name: letters, digits, `-` and `_` unchanged, all else in hexadecimal.
pub(crate) fn file_name(session: &str) -> String {
    let mut name = String::with_capacity(session.len());
    for byte in session.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') {
            name.push(char::from(byte));
        } else {
            name.push_str(&format!("%{byte:02x}"));
        }
    }
    name
}

/// The session id of a file name.
pub(crate) fn session_of(name: &str) -> Option<String> {
    let name = name.strip_suffix(".log")?;
    let id = percent_encoding::percent_decode_str(name).decode_utf8().ok()?;
    (file_name(&id) == name).then(|| id.into_owned())
}
