//! HTTP/1.1 from the client's side, on any stream: a request goes out whole, its answer comes back whole.
//!
//! Promised: the answer is the same however its bytes are cut; its body ends where its head says (a length, chunks, or the
//! end of the connection) or it is [`Broken`]; nothing is read beyond the caller's bound; a stream is reported as usable
//! again only if nothing is left on it. Deliberately absent: time limits, which callers have; pipelining, upgrades,
//! `HEAD`, and bodies that are streamed. `hyper` does all of that, with a task beside each connection
//! (docs/PERFORMANCE.md says what that costs a request).

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};

/// Largest head of an answer, and largest trailers.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Headers of one answer, and trailers.
const HEADERS_MAX: usize = 100;
/// Interim answers (`100 Continue`) before the one that counts.
const INTERIM_MAX: u32 = 8;
/// The line before a chunk, extensions included.
const CHUNK_LINE_BYTES_MAX: usize = 1_024;
/// What the head of a request usually fits into.
const REQUEST_BYTES: usize = 2 * 1024;
/// What is asked of the stream at once, at least.
const READ_BYTES: usize = 8 * 1024;

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Broken {
    /// Not reached, not trusted, gone, or no HTTP.
    #[error("the connection failed")]
    Lost,
    /// Longer than is taken.
    #[error("the answer is too long")]
    TooLarge,
}

/// A request as it goes over the wire; its length is said if it has a body. None, if a part of its head cannot stand in
/// its line.
pub(crate) fn request(
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Option<&[u8]>,
) -> Option<Vec<u8>> {
    let is_text = |byte: u8| byte == b'\t' || (byte >= b' ' && byte != 0x7f);
    let is_fit = |(name, value): &(&str, &str)| {
        name.bytes().all(|byte| byte.is_ascii_graphic()) && value.bytes().all(is_text)
    };
    if !path.bytes().all(|byte| byte.is_ascii_graphic()) || !headers.iter().all(is_fit) {
        return None;
    }
    let length = body.map(|body| body.len().to_string());
    let length = length
        .iter()
        .map(|length| ("content-length", length.as_str()));
    let mut request = Vec::with_capacity(REQUEST_BYTES + body.map_or(0, <[u8]>::len));
    for part in [method, " ", path, " HTTP/1.1"] {
        request.extend_from_slice(part.as_bytes());
    }
    for (name, value) in headers.iter().copied().chain(length) {
        for part in ["\r\n", name, ": ", value] {
            request.extend_from_slice(part.as_bytes());
        }
    }
    request.extend_from_slice(b"\r\n\r\n");
    request.extend_from_slice(body.unwrap_or_default());
    Some(request)
}

/// A whole answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Its status.
    pub(crate) status: u16,
    /// Its body.
    pub(crate) body: Vec<u8>,
    head: Vec<u8>,
    is_last: bool,
}

impl Answer {
    /// The first value of a header; none too if it is no text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut named = self
            .headers()
            .filter(|(found, _)| found.eq_ignore_ascii_case(name));
        named.next().map(|(_, value)| value)
    }

    /// The headers whose values are text. The head has been read as HTTP, so that each line is one header.
    pub(crate) fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let lines = self.head.split(|byte| *byte == b'\n').skip(1);
        lines.filter_map(|line| {
            let (name, value) = std::str::from_utf8(line).ok()?.split_once(':')?;
            Some((name, value.trim()))
        })
    }

    /// Whether its sender, or the way in which it ended, allows another request on the stream.
    pub(crate) const fn is_last(&self) -> bool {
        self.is_last
    }
}

/// A stream with HTTP on it.
#[derive(Debug)]
pub(crate) struct Http1<S> {
    stream: S,
    /// Read, and not used yet.
    unread: Vec<u8>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Http1<S> {
    /// On a stream on which nothing was said yet.
    pub(crate) const fn new(stream: S) -> Self {
        Self {
            stream,
            unread: Vec::new(),
        }
    }

    /// Whether another request can be sent, as far as can be told without sending one: the other side has not closed the
    /// stream, and has said nothing unasked.
    pub(crate) async fn is_open(&mut self) -> bool {
        let mut byte = [0];
        let mut read = ReadBuf::new(&mut byte);
        let look = poll_fn(|context| {
            let read = Pin::new(&mut self.stream).poll_read(context, &mut read);
            Poll::Ready(read.is_pending())
        });
        look.await && self.unread.is_empty()
    }

    /// Writes a request, head and body, and reads its answer. Whoever drops this before it is done, or gets an error or
    /// the last answer, must not use the stream again.
    pub(crate) async fn exchange(
        &mut self,
        request: &[u8],
        bytes_max: usize,
    ) -> Result<Answer, Broken> {
        // One that does not want to read all of it may have answered nevertheless.
        let written = match self.stream.write_all(request).await {
            Ok(()) => self.stream.flush().await,
            refused => refused,
        };
        let Head {
            status,
            framing,
            is_last,
            bytes,
        } = self.head().await?;
        let head: Vec<u8> = self.unread.drain(..bytes).collect();
        let body = match framing {
            Framing::Length(length) if length > bytes_max => return Err(Broken::TooLarge),
            Framing::Length(length) => self.exactly(length).await?,
            Framing::Chunks => self.chunks(bytes_max).await?,
            Framing::Rest => self.rest(bytes_max).await?,
        };
        Ok(Answer {
            status,
            body,
            head,
            is_last: is_last
                || written.is_err()
                || framing == Framing::Rest
                || !self.unread.is_empty(),
        })
    }

    /// Reads more, at least one byte.
    async fn fill(&mut self) -> Result<(), Broken> {
        match self.read().await? {
            0 => Err(Broken::Lost),
            _ => Ok(()),
        }
    }

    /// Reads more; 0 is the end.
    async fn read(&mut self) -> Result<usize, Broken> {
        self.unread.reserve(READ_BYTES);
        let read = self.stream.read_buf(&mut self.unread).await;
        read.map_err(|_| Broken::Lost)
    }

    async fn head(&mut self) -> Result<Head, Broken> {
        let mut interim = 0;
        loop {
            let bytes = self.unread.len().min(HEAD_BYTES_MAX);
            match Head::read(&self.unread[..bytes])? {
                Some(head) if head.status >= 200 => return Ok(head),
                Some(_) if interim == INTERIM_MAX => return Err(Broken::Lost),
                Some(head) => {
                    interim += 1;
                    self.unread.drain(..head.bytes);
                }
                None if bytes == HEAD_BYTES_MAX => return Err(Broken::Lost),
                None => self.fill().await?,
            }
        }
    }

    async fn exactly(&mut self, length: usize) -> Result<Vec<u8>, Broken> {
        self.unread
            .reserve(length.saturating_sub(self.unread.len()));
        while self.unread.len() < length {
            self.fill().await?;
        }
        let more = self.unread.split_off(length);
        Ok(std::mem::replace(&mut self.unread, more))
    }

    async fn chunks(&mut self, bytes_max: usize) -> Result<Vec<u8>, Broken> {
        let mut body = Vec::new();
        loop {
            let (line, length) = match httparse::parse_chunk_size(&self.unread) {
                Ok(httparse::Status::Complete(found)) => found,
                Ok(httparse::Status::Partial) if self.unread.len() <= CHUNK_LINE_BYTES_MAX => {
                    self.fill().await?;
                    continue;
                }
                _ => return Err(Broken::Lost),
            };
            self.unread.drain(..line);
            if length == 0 {
                self.trailers().await?;
                return Ok(body);
            }
            let length = usize::try_from(length).map_err(|_| Broken::TooLarge)?;
            if length > bytes_max - body.len() {
                return Err(Broken::TooLarge);
            }
            body.append(&mut self.exactly(length).await?);
            if self.exactly(2).await? != b"\r\n" {
                return Err(Broken::Lost);
            }
        }
    }

    /// What may stand after the last chunk, and is not used.
    async fn trailers(&mut self) -> Result<(), Broken> {
        loop {
            let mut trailers = [httparse::EMPTY_HEADER; HEADERS_MAX];
            let bytes = self.unread.len().min(HEAD_BYTES_MAX);
            match httparse::parse_headers(&self.unread[..bytes], &mut trailers) {
                Ok(httparse::Status::Complete((bytes, _))) => {
                    self.unread.drain(..bytes);
                    return Ok(());
                }
                Ok(httparse::Status::Partial) if bytes < HEAD_BYTES_MAX => {
                    self.fill().await?;
                }
                _ => return Err(Broken::Lost),
            }
        }
    }

    async fn rest(&mut self, bytes_max: usize) -> Result<Vec<u8>, Broken> {
        while self.unread.len() <= bytes_max {
            if self.read().await? == 0 {
                return Ok(std::mem::take(&mut self.unread));
            }
        }
        Err(Broken::TooLarge)
    }
}

/// Where a body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    /// After so many bytes.
    Length(usize),
    /// After the last of its chunks.
    Chunks,
    /// Where the stream ends.
    Rest,
}

/// What the head of an answer says.
struct Head {
    status: u16,
    framing: Framing,
    is_last: bool,
    bytes: usize,
}

impl Head {
    /// Reads it as RFC 9112 says (section 6.3: how long a body is); none if it is not whole yet.
    fn read(bytes: &[u8]) -> Result<Option<Self>, Broken> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut read = httparse::Response::new(&mut headers);
        let bytes = match read.parse(bytes).map_err(|_| Broken::Lost)? {
            httparse::Status::Complete(bytes) => bytes,
            httparse::Status::Partial => return Ok(None),
        };
        let status = read.code.ok_or(Broken::Lost)?;
        // HTTP/1.0 closes unless it says otherwise, which is nothing that anybody here needs.
        let mut is_last = read.version != Some(1);
        let (mut length, mut is_chunked) = (None, false);
        for header in read.headers.iter() {
            let is = |name| header.name.eq_ignore_ascii_case(name);
            if is("content-length") {
                let value = std::str::from_utf8(header.value).map_err(|_| Broken::Lost)?;
                let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
                let value: usize = value.parse().map_err(|_| Broken::Lost)?;
                // Two that differ are how one answer is smuggled into another.
                if !is_number || length.is_some_and(|length| length != value) {
                    return Err(Broken::Lost);
                }
                length = Some(value);
            } else if is("transfer-encoding") {
                // Others would have to be asked for.
                if is_chunked || !header.value.eq_ignore_ascii_case(b"chunked") {
                    return Err(Broken::Lost);
                }
                is_chunked = true;
            } else if is("connection") {
                let mut words = header.value.split(|byte| *byte == b',');
                is_last |= words.any(|word| word.trim_ascii().eq_ignore_ascii_case(b"close"));
            }
        }
        let framing = match (status, is_chunked, length) {
            (..200 | 204 | 304, _, _) => Framing::Length(0),
            (_, true, Some(_)) => return Err(Broken::Lost),
            (_, true, None) => Framing::Chunks,
            (_, false, Some(length)) => Framing::Length(length),
            (_, false, None) => Framing::Rest,
        };
        Ok(Some(Self {
            status,
            framing,
            is_last,
            bytes,
        }))
    }
}

#[cfg(test)]
mod tests;
