//! Lines of git's protocol: four hexadecimal digits of length, themselves included, then the content.

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Bytes of a line's content that fit on a side band, its number included.
const BAND_BYTES_MAX: usize = 65_515;
/// GitHub's messages arrive in pieces that end anywhere; so do these.
const PIECE_BYTES: usize = 37;

/// A line.
pub(crate) fn line(content: &[u8]) -> Vec<u8> {
    [format!("{:04x}", content.len() + 4).as_bytes(), content].concat()
}

/// A line that ends a list.
pub(crate) const FLUSH: &[u8] = b"0000";

/// Lines of a side band.
pub(crate) fn band(number: u8, content: &[u8], piece: usize) -> Vec<u8> {
    let pieces = content.chunks(piece.min(BAND_BYTES_MAX));
    pieces.flat_map(|piece| line(&[&[number], piece].concat())).collect()
}

/// What a person reads, in pieces.
pub(crate) fn told(text: &str) -> Vec<u8> {
    band(2, text.as_bytes(), PIECE_BYTES)
}

/// What the client's program reads.
pub(crate) fn report(content: &[u8]) -> Vec<u8> {
    band(1, content, BAND_BYTES_MAX)
}

/// Reads a line; `Ok(None)` for one that ends a list.
///
/// # Errors
/// The input ended, or this is no line.
pub(crate) async fn read(input: &mut (impl AsyncRead + Unpin)) -> std::io::Result<Option<Vec<u8>>> {
    let mut head = [0; 4];
    input.read_exact(&mut head).await?;
    let wrong = || std::io::Error::other("no line of git's protocol");
    let text = std::str::from_utf8(&head).map_err(|_| wrong())?;
    let length = usize::from_str_radix(text, 16).map_err(|_| wrong())?;
    if length == 0 {
        return Ok(None);
    }
    let mut content = vec![0; length.checked_sub(4).ok_or_else(wrong)?];
    input.read_exact(&mut content).await?;
    Ok(Some(content))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_read_as_they_are_written() {
        let text = [line(b"one\n").as_slice(), FLUSH].concat();
        assert_eq!(text, b"0008one\n0000");
        let mut input = text.as_slice();
        assert_eq!(read(&mut input).await.expect("a line"), Some(b"one\n".to_vec()));
        assert_eq!(read(&mut input).await.expect("an end"), None);
        assert!(read(&mut input).await.is_err());
        assert!(read(&mut b"0002".as_slice()).await.is_err());
        assert!(read(&mut b"zzzz".as_slice()).await.is_err());
    }

    #[test]
    fn messages_come_in_pieces() {
        let told = told("error: GH013: Repository rule violations found");
        assert_eq!(told.iter().filter(|byte| **byte == 2).count(), 2);
        assert!(told.starts_with(b"002a\x02error: GH013"));
    }
}
