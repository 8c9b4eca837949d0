//! Bytes on a socket: tests say exactly what is sent, and see exactly what comes back.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::PATIENCE;

/// A connection.
pub(super) struct Wire {
    socket: TcpStream,
    seen: Vec<u8>,
}

/// An answer with a whole body.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

impl Reply {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    pub(super) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("not JSON: {self:?}"))
    }

    pub(super) fn closes(&self) -> bool {
        self.header("connection") == Some("close")
    }
}

impl Wire {
    pub(super) async fn open(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).await.unwrap();
        socket.set_nodelay(true).unwrap();
        Self {
            socket,
            seen: Vec::new(),
        }
    }

    pub(super) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.socket.write_all(bytes.as_ref()).await.unwrap();
    }

    /// Sends what the peer may no longer want to hear.
    pub(super) async fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.socket.write_all(bytes.as_ref()).await.is_ok()
    }

    /// Reads more; `false` at the end, however it came about.
    async fn more(&mut self) -> bool {
        let mut buffer = [0; 4096];
        let read = timeout(PATIENCE, self.socket.read(&mut buffer)).await;
        match read.expect("the server says something or closes") {
            Ok(0) | Err(_) => false,
            Ok(count) => {
                self.seen.extend_from_slice(&buffer[..count]);
                true
            }
        }
    }

    /// Reads until `mark` was seen and takes everything up to its end.
    pub(super) async fn until(&mut self, mark: &str) -> String {
        loop {
            let found = self
                .seen
                .windows(mark.len())
                .position(|at| at == mark.as_bytes());
            if let Some(at) = found {
                let taken: Vec<u8> = self.seen.drain(..at + mark.len()).collect();
                return String::from_utf8(taken).unwrap();
            }
            let shown = String::from_utf8_lossy(&self.seen).into_owned();
            assert!(self.more().await, "closed before {mark:?}; seen {shown:?}");
        }
    }

    /// One answer, its length given by `Content-Length`.
    pub(super) async fn reply(&mut self) -> Reply {
        let head = self.until("\r\n\r\n").await;
        let mut reply = Reply {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            head,
            body: Vec::new(),
        };
        let length: usize = reply
            .header("content-length")
            .map_or(0, |text| text.parse().unwrap());
        while self.seen.len() < length && self.more().await {}
        let length = length.min(self.seen.len());
        reply.body = self.seen.drain(..length).collect();
        reply
    }

    /// What comes until the connection is closed.
    pub(super) async fn rest(&mut self) -> String {
        while self.more().await {}
        String::from_utf8(std::mem::take(&mut self.seen)).unwrap()
    }

    /// Waits for the end, whatever comes before it.
    pub(super) async fn closed(&mut self) -> bool {
        while self.more().await {}
        true
    }

    /// One chunk of a chunked body, as it was framed.
    pub(super) async fn chunk(&mut self) -> String {
        let size = self.until("\r\n").await;
        let size = usize::from_str_radix(size.trim(), 16).unwrap();
        while self.seen.len() < size + 2 {
            assert!(self.more().await, "a chunk broke off");
        }
        let chunk = self.seen.drain(..size + 2).take(size).collect();
        String::from_utf8(chunk).unwrap()
    }
}

/// A GET or another request without a body.
pub(super) fn plain(verb: &str, path: &str, headers: &str) -> String {
    format!("{verb} {path} HTTP/1.1\r\nHost: test\r\n{headers}\r\n")
}

/// A POST to `/` with exactly these headers beside `Host` and `Content-Length`.
pub(super) fn post(headers: &str, body: &str) -> String {
    let length = body.len();
    format!("POST / HTTP/1.1\r\nHost: test\r\n{headers}Content-Length: {length}\r\n\r\n{body}")
}

/// A POST as clients send it.
pub(super) fn rpc(body: &str) -> String {
    post(
        "A2A-Version: 1.0\r\nContent-Type: application/json\r\n",
        body,
    )
}

/// A JSON-RPC request with id 1.
pub(super) fn call(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#)
}
