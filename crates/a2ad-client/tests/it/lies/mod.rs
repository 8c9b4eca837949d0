//! The client against servers that lie: it never hangs, never tells a secret, never fills the memory.

mod calls;
mod cards;
mod grpc;
mod old;
mod old_grpc;
mod secrets;
mod snapshots;
mod streams;
mod twice;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use a2ad_client::{Builder, Client};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

/// A request as it came.
#[derive(Clone, Debug)]
struct Asked {
    /// Verb, path and version.
    line: String,
    /// The whole head, in lower case but for its values.
    head: String,
    body: String,
}

impl Asked {
    fn header(&self, name: &str) -> Option<&str> {
        let line = self.head.lines().find(|line| {
            let found = line.split(':').next().unwrap_or_default();
            found.eq_ignore_ascii_case(name)
        })?;
        line.split_once(':').map(|(_, value)| value.trim())
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    fn is_card(&self) -> bool {
        self.line.contains("/.well-known/")
    }
}

/// What a liar does with a request.
enum Lie {
    /// Writes this and closes.
    Say(Vec<u8>),
    /// Writes this and then nothing, for as long as anyone listens.
    Hang(Vec<u8>),
    /// Writes this and closes, but takes its time.
    Later(Duration, Vec<u8>),
    /// Writes the first, and then the second again and again.
    Forever(Vec<u8>, Vec<u8>),
}

/// A server that answers as it likes. Every connection is for one request.
struct Liar {
    to: SocketAddr,
    seen: Arc<Mutex<Vec<Asked>>>,
    _running: AbortOnDropHandle<()>,
}

impl Liar {
    async fn start(lie: impl Fn(&Asked, SocketAddr) -> Lie + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let to = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (asked, lie) = (Arc::clone(&seen), Arc::new(lie));
        #[expect(clippy::disallowed_methods, reason = "aborted when it is dropped")]
        let running = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (asked, lie) = (Arc::clone(&asked), Arc::clone(&lie));
                connections.spawn(async move {
                    let mut stream = stream;
                    let Some(request) = read(&mut stream).await else {
                        return;
                    };
                    asked.lock().unwrap().push(request.clone());
                    let _hung_up = tell(&mut stream, lie(&request, to)).await;
                });
            }
        });
        Self {
            to,
            seen,
            _running: AbortOnDropHandle::new(running),
        }
    }

    /// One that has a card with these bindings, all at its own address, and answers the rest as it likes.
    async fn with_card(
        bindings: &'static [&'static str],
        change: impl Fn(&mut Value) + Send + Sync + 'static,
        lie: impl Fn(&Asked) -> Lie + Send + Sync + 'static,
    ) -> Self {
        Self::start(move |asked, to| {
            if asked.is_card() {
                let mut card = card(to, bindings);
                change(&mut card);
                return ok(&card);
            }
            lie(asked)
        })
        .await
    }

    fn url(&self) -> String {
        format!("http://{}", self.to)
    }

    fn builder(&self) -> Builder {
        Client::builder(&self.url())
            .retries(|retries| {
                retries.first = Duration::from_millis(1);
                retries.longest = Duration::from_millis(5);
                retries.poll = Duration::from_millis(1);
            })
            .timeouts(|timeouts| {
                timeouts.call = Duration::from_secs(2);
                timeouts.send = Duration::from_secs(2);
                timeouts.silence = Duration::from_millis(200);
            })
    }

    async fn client(&self) -> Client {
        self.builder().connect().await.unwrap()
    }

    /// All requests but those for cards.
    fn calls(&self) -> Vec<Asked> {
        let seen = self.seen.lock().unwrap();
        seen.iter().filter(|it| !it.is_card()).cloned().collect()
    }

    /// All that came, as one text.
    fn all(&self) -> String {
        let seen = self.seen.lock().unwrap();
        let one = |asked: &Asked| format!("{}\n{}\n", asked.head, asked.body);
        seen.iter().map(one).collect()
    }
}

async fn read(stream: &mut TcpStream) -> Option<Asked> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        let mut piece = [0; 4096];
        let length = stream.read(&mut piece).await.ok().filter(|it| *it > 0)?;
        bytes.extend_from_slice(&piece[..length]);
        if bytes.len() > 1 << 20 {
            return None;
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut asked = Asked {
        line: head.lines().next().unwrap_or_default().to_owned(),
        head,
        body: String::new(),
    };
    let length = asked.header("content-length").map_or("0", |it| it).parse();
    let mut rest = length.unwrap_or(0_usize).saturating_sub(bytes.len() - end);
    while rest > 0 {
        let mut piece = [0; 4096];
        let length = stream.read(&mut piece).await.ok().filter(|it| *it > 0)?;
        bytes.extend_from_slice(&piece[..length]);
        rest = rest.saturating_sub(length);
    }
    asked.body = String::from_utf8_lossy(&bytes[end..]).into_owned();
    Some(asked)
}

async fn tell(stream: &mut TcpStream, lie: Lie) -> std::io::Result<()> {
    match lie {
        Lie::Say(bytes) => {
            stream.write_all(&bytes).await?;
            stream.shutdown().await?;
            // The other side reads before it sees that we are gone.
            stream.read(&mut [0; 64]).await.map(drop)
        }
        Lie::Later(time, bytes) => {
            tokio::time::sleep(time).await;
            Box::pin(tell(stream, Lie::Say(bytes))).await
        }
        Lie::Hang(bytes) => {
            stream.write_all(&bytes).await?;
            stream.read(&mut [0; 64]).await.map(drop)
        }
        Lie::Forever(bytes, again) => {
            stream.write_all(&bytes).await?;
            loop {
                stream.write_all(&again).await?;
            }
        }
    }
}

/// An answer with a length.
fn answer(status: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\n{headers}connection: close\r\ncontent-length: {length}");
    format!("{head}\r\n\r\n{body}").into_bytes()
}

fn ok(body: &Value) -> Lie {
    let kind = "content-type: application/json\r\n";
    Lie::Say(answer("200 OK", kind, &body.to_string()))
}

/// The head of a stream of events, whose end is that of the connection.
const EVENTS: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

/// A whole stream of events, each with its number if it has one.
fn events(frames: &[(Option<u64>, Value)]) -> Lie {
    Lie::Say(events_text(frames).into_bytes())
}

fn events_text(frames: &[(Option<u64>, Value)]) -> String {
    let mut text = EVENTS.to_owned();
    for (number, frame) in frames {
        if let Some(number) = number {
            text += &format!("id: {number}\n");
        }
        text += &format!("data: {frame}\n\n");
    }
    text
}

fn rpc(result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": "1", "result": result})
}

fn task(id: &str, state: &str, text: &[&str]) -> Value {
    let parts: Vec<Value> = text.iter().map(|text| json!({ "text": text })).collect();
    let mut task = json!({"id": id, "contextId": "c", "status": {"state": state}});
    if !parts.is_empty() {
        task["artifacts"] = json!([{"artifactId": "a", "parts": parts}]);
    }
    task
}

fn chunk(text: &str, append: bool) -> Value {
    json!({"artifactUpdate": {"taskId": "t", "contextId": "c", "append": append,
        "artifact": {"artifactId": "a", "parts": [{"text": text}]}}})
}

fn status(state: &str) -> Value {
    json!({"statusUpdate": {"taskId": "t", "contextId": "c", "status": {"state": state}}})
}

fn card(to: SocketAddr, bindings: &[&str]) -> Value {
    let interface = |binding: &&str| json!({"url": format!("http://{to}/at"), "protocolBinding": binding, "protocolVersion": "1.0"});
    let interfaces: Vec<Value> = bindings.iter().map(interface).collect();
    json!({"name": "liar", "description": "", "version": "1", "skills": [],
        "capabilities": {"streaming": true}, "supportedInterfaces": interfaces})
}

/// Declares that events have numbers and messages are recognised.
fn replay(card: &mut Value) {
    card["capabilities"]["extensions"] = json!([{"uri": a2ad_client::REPLAY}]);
}

fn unchanged(_: &mut Value) {}

/// Nothing takes long here, whatever the server does.
async fn soon<T>(work: impl Future<Output = T>) -> T {
    let limit = Duration::from_secs(20);
    let done = tokio::time::timeout(limit, work).await;
    done.unwrap_or_else(|_| panic!("it never ended"))
}
