//! HTTP/1.1 of a client that blocks, on one connection that is kept; answers must have a length.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

const HEADERS_MAX: usize = 32;

/// A connection to a server.
pub(crate) struct Client {
    stream: TcpStream,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream })
    }

    /// Posts a body; the answer's status and body.
    pub(crate) fn post(
        &mut self,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<(u16, Vec<u8>)> {
        let mut request = b"POST / HTTP/1.1\r\nhost: localhost\r\n".to_vec();
        for (name, value) in headers {
            request.extend(format!("{name}: {value}\r\n").into_bytes());
        }
        request.extend(format!("content-length: {}\r\n\r\n", body.len()).into_bytes());
        request.extend(body);
        self.stream.write_all(&request)?;

        let mut read = Vec::new();
        let (status, head, length) = loop {
            self.more(&mut read)?;
            if let Some(known) = head(&read)? {
                break known;
            }
        };
        while read.len() < head + length {
            self.more(&mut read)?;
        }
        Ok((status, read.split_off(head)))
    }

    fn more(&mut self, read: &mut Vec<u8>) -> io::Result<()> {
        let mut buffer = [0; 64 * 1024];
        match self.stream.read(&mut buffer)? {
            0 => Err(io::Error::other(
                "the server left in the middle of an answer",
            )),
            bytes => {
                read.extend(&buffer[..bytes]);
                Ok(())
            }
        }
    }
}

/// Status, length of the head and of the body, once the head is there.
fn head(read: &[u8]) -> io::Result<Option<(u16, usize, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Response::new(&mut headers);
    let status = parsed.parse(read).map_err(io::Error::other)?;
    let httparse::Status::Complete(head) = status else {
        return Ok(None);
    };
    let length = parsed
        .headers
        .iter()
        .find(|header| header.name.eq_ignore_ascii_case("content-length"))
        .and_then(|header| std::str::from_utf8(header.value).ok()?.trim().parse().ok())
        .ok_or_else(|| io::Error::other("an answer without a length"))?;
    Ok(Some((parsed.code.unwrap_or_default(), head, length)))
}
