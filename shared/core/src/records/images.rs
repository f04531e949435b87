//! Images that come with a prompt: which of the attached files are passed to the model.

/// An image in the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Image {
    /// Path below the agent's working directory.
    pub path: String,
    /// Its name as given.
    pub name: String,
}

/// Image types that models accept (Anthropic's, OpenAI's and Google's documentation agree on these).
const KINDS: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Whether a file counts as such an image, by the platform's media type, else by its name.
#[must_use]
pub fn is_image(name: &str, media_type: Option<&str>) -> bool {
    if let Some(kind) = media_type.filter(|kind| !kind.is_empty()) {
        let kind = kind.split(';').next().unwrap_or_default().trim();
        return KINDS.iter().any(|known| known.eq_ignore_ascii_case(kind));
    }
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    ["png", "jpg", "jpeg", "gif", "webp"].iter().any(|known| known.eq_ignore_ascii_case(ending))
}

/// The media type of an image by its first bytes; `None` if it is none of those types.
#[must_use]
pub fn media_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, ..] => Some(KINDS[0]),
        [0xff, 0xd8, 0xff, ..] => Some(KINDS[1]),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(KINDS[2]),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(KINDS[3]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_type_outranks_image_extension() {
        assert!(is_image("a.bin", Some("image/PNG")));
        assert!(is_image("a.JPG", None) && is_image("a.webp", Some("")));
        assert!(!is_image("a.png", Some("text/plain")));
        assert!(!is_image("a.svg", None) && !is_image("a.svg", Some("image/svg+xml")));
    }

    #[test]
    fn image_type_is_read_from_bytes() {
        assert_eq!(media_type(b"\x89PNG\r\n\x1a\n..."), Some("image/png"));
        assert_eq!(media_type(b"\xff\xd8\xff\xe0"), Some("image/jpeg"));
        assert_eq!(media_type(b"GIF89a"), Some("image/gif"));
        assert_eq!(media_type(b"RIFF1234WEBPVP8 "), Some("image/webp"));
        assert_eq!(media_type(b"<html>"), None);
        assert_eq!(media_type(b""), None);
    }
}
