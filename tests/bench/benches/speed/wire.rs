//! HTTP/1.1 of a server that blocks: whole requests in, whole answers out.

use std::io::{self, Read, Write};

/// Largest head of a request.
const HEAD_BYTES_MAX: usize = 64 * 1024;
const HEADERS_MAX: usize = 64;

/// A request.
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// Of all of it, as it came.
    pub(crate) bytes: usize,
}

impl Request {
    /// The value of a header, empty if there is none.
    pub(crate) fn header(&self, name: &str) -> &str {
        let found = self
            .headers
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map_or("", |(_, value)| value)
    }
}

/// A whole answer, as it is written.
pub(crate) fn answer(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut answer = head(status, headers);
    answer.extend(format!("content-length: {}\r\n\r\n", body.len()).into_bytes());
    answer.extend(body);
    answer
}

/// The beginning of an answer without an end, which goes on with chunks.
pub(crate) fn endless(headers: &[(&str, &str)]) -> Vec<u8> {
    let mut answer = head(200, headers);
    answer.extend(b"transfer-encoding: chunked\r\n\r\n");
    answer
}

/// A chunk of such an answer.
pub(crate) fn chunk(bytes: &[u8]) -> Vec<u8> {
    let mut framed = format!("{:x}\r\n", bytes.len()).into_bytes();
    framed.extend(bytes);
    framed.extend(b"\r\n");
    framed
}

fn head(status: u16, headers: &[(&str, &str)]) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status} -\r\n").into_bytes();
    for (name, value) in headers {
        head.extend(format!("{name}: {value}\r\n").into_bytes());
    }
    head
}

/// One connection of a client.
pub(crate) struct Served<S> {
    stream: S,
    pending: Vec<u8>,
}

impl<S: Read + Write> Served<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self {
            stream,
            pending: Vec::new(),
        }
    }

    /// The next request; none when the client has gone.
    pub(crate) fn request(&mut self) -> io::Result<Option<Request>> {
        let (mut request, length) = loop {
            if let Some(head) = self.head()? {
                break head;
            }
            if self.pending.len() > HEAD_BYTES_MAX {
                return Err(io::Error::other("the head of a request is too long"));
            }
            if !self.more()? {
                return Ok(None);
            }
        };
        match length {
            Some(length) => {
                while self.pending.len() < length {
                    if !self.more()? {
                        return Ok(None);
                    }
                }
                request.bytes += length;
                let rest = self.pending.split_off(length);
                request.body = std::mem::replace(&mut self.pending, rest);
            }
            None => {
                while let Some((chunk, bytes)) = self.chunk()? {
                    request.bytes += bytes;
                    request.body.extend(chunk);
                }
            }
        }
        Ok(Some(request))
    }

    /// Answers it.
    pub(crate) fn answer(
        &mut self,
        status: u16,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<()> {
        self.write(&answer(status, headers, body))
    }

    /// Writes a piece of an answer as it is.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)?;
        self.stream.flush()
    }

    /// A request without its body, and the body's length (none: it comes in chunks).
    fn head(&mut self) -> io::Result<Option<(Request, Option<usize>)>> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut parsed = httparse::Request::new(&mut headers);
        let status = parsed.parse(&self.pending).map_err(io::Error::other)?;
        let httparse::Status::Complete(length) = status else {
            return Ok(None);
        };
        let header = |header: &httparse::Header<'_>| {
            let value = String::from_utf8_lossy(header.value).into_owned();
            (header.name.to_owned(), value)
        };
        let request = Request {
            method: parsed.method.unwrap_or_default().to_owned(),
            path: parsed.path.unwrap_or_default().to_owned(),
            headers: parsed.headers.iter().map(header).collect(),
            body: Vec::new(),
            bytes: length,
        };
        self.pending.drain(..length);
        let is_chunked = request
            .header("transfer-encoding")
            .eq_ignore_ascii_case("chunked");
        let length = (!is_chunked).then(|| request.header("content-length").parse().unwrap_or(0));
        Ok(Some((request, length)))
    }

    /// The next chunk, and the bytes that it came in; none after the last.
    fn chunk(&mut self) -> io::Result<Option<(Vec<u8>, usize)>> {
        let gone = || io::Error::other("the client left in the middle of a body");
        let (start, length) = loop {
            let parsed = httparse::parse_chunk_size(&self.pending);
            let parsed = parsed.map_err(|_| io::Error::other("a chunk without a size"))?;
            if let httparse::Status::Complete((start, length)) = parsed {
                break (start, usize::try_from(length).map_err(io::Error::other)?);
            }
            if !self.more()? {
                return Err(gone());
            }
        };
        while self.pending.len() < start + length + 2 {
            if !self.more()? {
                return Err(gone());
            }
        }
        let chunk = self.pending[start..start + length].to_vec();
        self.pending.drain(..start + length + 2);
        Ok((length > 0).then_some((chunk, start + length + 2)))
    }

    fn more(&mut self) -> io::Result<bool> {
        let mut buffer = [0; 16 * 1024];
        let bytes = self.stream.read(&mut buffer)?;
        self.pending.extend(&buffer[..bytes]);
        Ok(bytes > 0)
    }
}
