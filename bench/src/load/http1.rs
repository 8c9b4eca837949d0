//! As much of an HTTP/1.1 client as a load generator needs, and no more: it has to be cheaper than any server.

use std::net::SocketAddr;

use anyhow::{Context as _, Result, bail, ensure};
use memchr::{memchr, memmem};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// What is asked of the system at once.
const READ: usize = 16 * 1024;
/// The longest head of an answer.
const HEAD_MAX: usize = 16 * 1024;

/// A connection that is kept.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    /// What was read; all before `at` is used up.
    buffer: Vec<u8>,
    at: usize,
    rest: Rest,
    keeps: bool,
}

/// What is still to come of an answer's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    Nothing,
    Bytes(usize),
    /// The line with the size of the next chunk.
    ChunkSize,
    /// This much of a chunk.
    Chunk(usize),
    /// The end of the line after a chunk.
    ChunkEnd,
    /// The lines after the last chunk.
    Trailer,
    /// All until the connection is closed.
    UntilClose,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await;
        let stream = stream.with_context(|| format!("connect to {address}"))?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: Vec::with_capacity(READ),
            at: 0,
            rest: Rest::Nothing,
            keeps: true,
        })
    }

    /// Whether the last answer lets another request follow.
    pub(crate) fn is_reusable(&self) -> bool {
        self.keeps && self.rest == Rest::Nothing
    }

    /// Sends a whole request and returns the status of its answer.
    pub(crate) async fn ask(&mut self, request: &[u8]) -> Result<u16> {
        self.stream.write_all(request).await.context("send")?;
        loop {
            let unread = &self.buffer[self.at..];
            if let Some(length) = memmem::find(unread, b"\r\n\r\n") {
                let status = self.read_head(self.at + length + 2)?;
                self.at += length + 4;
                return Ok(status);
            }
            ensure!(
                unread.len() < HEAD_MAX,
                "the head of the answer is too long"
            );
            ensure!(self.read().await? > 0, "closed before the answer");
        }
    }

    /// Adds what has come of the body to `into`; false if that was all. Cancel safe.
    pub(crate) async fn body(&mut self, into: &mut Vec<u8>) -> Result<bool> {
        let before = into.len();
        loop {
            self.decode(into)?;
            if self.rest == Rest::Nothing {
                return Ok(false);
            }
            if into.len() > before {
                return Ok(true);
            }
            if self.read().await? == 0 {
                ensure!(self.rest == Rest::UntilClose, "closed within the answer");
                self.rest = Rest::Nothing;
                return Ok(false);
            }
        }
    }

    /// The whole body, in place of what is in `into`.
    pub(crate) async fn whole_body(&mut self, into: &mut Vec<u8>) -> Result<()> {
        into.clear();
        while self.body(into).await? {}
        Ok(())
    }

    async fn read(&mut self) -> Result<usize> {
        if self.at == self.buffer.len() {
            self.buffer.clear();
            self.at = 0;
        }
        self.buffer.reserve(READ);
        let read = self.stream.read_buf(&mut self.buffer).await;
        read.context("read the answer")
    }

    /// Takes from the head, which ends at `end`, what matters.
    fn read_head(&mut self, end: usize) -> Result<u16> {
        let head = &self.buffer[self.at..end];
        let status = head
            .strip_prefix(b"HTTP/1.1 ")
            .and_then(|rest| rest.get(..3));
        let status = status.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
        let status: u16 = status.context("the answer is not HTTP/1.1")?;
        self.keeps = true;
        self.rest = Rest::UntilClose;
        for line in head.split(|byte| *byte == b'\n').skip(1) {
            let Some(colon) = memchr(b':', line) else {
                continue;
            };
            let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
            if name.eq_ignore_ascii_case(b"content-length") {
                let length = std::str::from_utf8(value)?.parse();
                self.rest = Rest::Bytes(length.context("read the content length")?);
            } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
                ensure!(
                    value.eq_ignore_ascii_case(b"chunked"),
                    "an unknown encoding"
                );
                self.rest = Rest::ChunkSize;
            } else if name.eq_ignore_ascii_case(b"connection") {
                self.keeps = !value.eq_ignore_ascii_case(b"close");
            }
        }
        if matches!(self.rest, Rest::Bytes(0)) {
            self.rest = Rest::Nothing;
        }
        self.keeps &= self.rest != Rest::UntilClose;
        Ok(status)
    }

    /// Moves what is there of the body to `into`.
    fn decode(&mut self, into: &mut Vec<u8>) -> Result<()> {
        loop {
            let unread = &self.buffer[self.at..];
            match self.rest {
                Rest::Nothing => return Ok(()),
                Rest::UntilClose => {
                    into.extend_from_slice(unread);
                    self.at = self.buffer.len();
                    return Ok(());
                }
                Rest::Bytes(left) | Rest::Chunk(left) => {
                    let taken = left.min(unread.len());
                    into.extend_from_slice(&unread[..taken]);
                    self.at += taken;
                    let left = left - taken;
                    self.rest = match self.rest {
                        Rest::Bytes(_) if left == 0 => Rest::Nothing,
                        Rest::Bytes(_) => Rest::Bytes(left),
                        _ if left == 0 => Rest::ChunkEnd,
                        _ => Rest::Chunk(left),
                    };
                    if left > 0 {
                        return Ok(());
                    }
                }
                Rest::ChunkSize | Rest::ChunkEnd | Rest::Trailer => {
                    let Some(length) = memchr(b'\n', unread) else {
                        ensure!(unread.len() < HEAD_MAX, "a line without an end");
                        return Ok(());
                    };
                    let line = unread[..length].trim_ascii();
                    self.rest = match self.rest {
                        Rest::ChunkSize => match chunk_size(line)? {
                            0 => Rest::Trailer,
                            size => Rest::Chunk(size),
                        },
                        Rest::ChunkEnd if line.is_empty() => Rest::ChunkSize,
                        Rest::Trailer if line.is_empty() => Rest::Nothing,
                        Rest::Trailer => Rest::Trailer,
                        _ => bail!("a chunk is longer than it says"),
                    };
                    self.at += length + 1;
                }
            }
        }
    }
}

fn chunk_size(line: &[u8]) -> Result<usize> {
    let digits = line.split(|byte| *byte == b';').next().unwrap_or(line);
    let digits = std::str::from_utf8(digits.trim_ascii())?;
    usize::from_str_radix(digits, 16).context("read the size of a chunk")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\n\r\n";

    /// What comes of `answer` if it arrives in pieces of `piece` bytes.
    async fn received(answer: &[u8], piece: usize) -> Result<(u16, Vec<u8>, bool)> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let mut connection = Connection::open(listener.local_addr()?).await?;
        let serve = async {
            let (mut stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            // Closing a connection with something unread in it would reset it.
            stream.read_exact(&mut [0; REQUEST.len()]).await?;
            for piece in answer.chunks(piece) {
                stream.write_all(piece).await?;
                tokio::task::yield_now().await;
            }
            anyhow::Ok(())
        };
        let ask = async {
            let status = connection.ask(REQUEST).await?;
            let mut body = Vec::new();
            connection.whole_body(&mut body).await?;
            anyhow::Ok((status, body, connection.is_reusable()))
        };
        let (served, asked) = tokio::join!(serve, ask);
        served?;
        asked
    }

    async fn check(answer: &str, expected: Option<(u16, &str, bool)>) {
        for piece in [1, 2, 7, 1000] {
            let got = received(answer.as_bytes(), piece).await.ok();
            let got =
                got.map(|(status, body, keeps)| (status, String::from_utf8(body).unwrap(), keeps));
            let expected = expected.map(|(status, body, keeps)| (status, body.to_owned(), keeps));
            assert_eq!(got, expected, "in pieces of {piece}: {answer}");
        }
    }

    #[tokio::test]
    async fn answers_are_read_whatever_their_framing() {
        let length = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";
        check(length, Some((200, "hello", true))).await;
        let chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\nB;x=y\r\nlo, world!!\r\n0\r\n\r\n";
        check(chunks, Some((200, "hello, world!!", true))).await;
        let close = "HTTP/1.1 404 Not Found\r\nConnection: close\r\ncontent-length: 2\r\n\r\nno";
        check(close, Some((404, "no", false))).await;
        check("HTTP/1.1 200 OK\r\n\r\nall", Some((200, "all", false))).await;
    }

    #[tokio::test]
    async fn half_an_answer_is_an_error() {
        check("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhell", None).await;
        check(
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nhel\r\n",
            None,
        )
        .await;
        check("HTTP/1.1 200 OK\r\n", None).await;
        check("SSH-2.0-OpenSSH\r\n\r\n", None).await;
    }
}
