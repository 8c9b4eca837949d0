//! Two instances behind the proxy of `deploy/`, where there is one: `HAPROXY` names it, or it is on the path.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use a2ad_pgkit::Cluster;
use a2ad_testkit::client::{Client as _, Driven, drain, text};
use a2ad_testkit::harness::Binding;
use serde_json::json;
use tempfile::TempDir;

use crate::daemon::{Daemon, PATIENCE, a2ad, folder};

const CONFIG: &str = "
agents:
  - id: echo
    echo: {}
  - id: slow
    echo: {words: true, delay: 300ms}
";

fn program() -> Option<String> {
    let named = std::env::var("HAPROXY").unwrap_or_else(|_| "haproxy".to_owned());
    let found = Command::new(&named).arg("-v").output();
    found.is_ok_and(|it| it.status.success()).then_some(named)
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

struct Proxy {
    child: Child,
    port: u16,
    _folder: TempDir,
}

impl Proxy {
    /// The proxy as it is deployed, but for the addresses.
    fn start(program: &str, port: u16, instances: [u16; 2]) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let text = std::fs::read_to_string(root.join("deploy/haproxy.cfg")).unwrap();
        let text = text
            .replace("bind :8080", &format!("bind 127.0.0.1:{port}"))
            .replace("a2ad-1:41240", &format!("127.0.0.1:{}", instances[0]))
            .replace("a2ad-2:41240", &format!("127.0.0.1:{}", instances[1]))
            .replace(" resolvers docker init-addr last,libc,none", "");
        let folder = folder();
        let file = folder.path().join("haproxy.cfg");
        std::fs::write(&file, text).unwrap();
        let child = Command::new(program)
            .arg("-f")
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let begin = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begin.elapsed() < PATIENCE, "the proxy does not come up");
            std::thread::sleep(Duration::from_millis(20));
        }
        Self {
            child,
            port,
            _folder: folder,
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

fn instance(url: &str, folder: &Path, port: u16, proxy: u16) -> Daemon {
    let port = port.to_string();
    let mut command = a2ad(folder, &["serve", "--port", &port]);
    command.env("A2AD_DATABASE_URL", url);
    command.env("A2AD_PUBLIC_URL", format!("http://127.0.0.1:{proxy}"));
    Daemon::spawn(&mut command)
}

/// Every binding, at the address that the card shows: that of the proxy.
async fn call(proxy: u16) {
    for binding in [Binding::JsonRpc, Binding::HttpJson, Binding::Grpc] {
        let address = ([127, 0, 0, 1], proxy).into();
        let client = Driven::connect(address, binding).await;
        let task = client.send(text("Say it again")).await.unwrap();
        let events = client.stream(text("And again"), None).await.unwrap();
        assert!(drain(events).await.unwrap().len() > 2, "{binding:?}");
        let listed = client.list(Default::default()).await.unwrap();
        assert!(listed.tasks.iter().any(|it| it.id == task.id));
    }
}

/// A client that keeps its connection, as most do.
struct Client {
    port: u16,
    open: Option<BufReader<TcpStream>>,
}

impl Client {
    fn send(&mut self, text: &str) -> (u16, String) {
        let body = json!({
            "jsonrpc": "2.0", "id": 1, "method": "SendMessage",
            "params": {"message": {
                "messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}],
            }},
        });
        let body = body.to_string();
        let length = body.len();
        let mut stream = self.open.take().unwrap_or_else(|| {
            let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            BufReader::new(stream)
        });
        write!(
            stream.get_mut(),
            "POST / HTTP/1.1\r\nHost: a\r\nA2A-Version: 1.0\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let (mut status, mut length, mut last) = (0, 0, false);
        for at in 0.. {
            let mut line = String::new();
            stream.read_line(&mut line).unwrap();
            let line = line.trim().to_lowercase();
            if at == 0 {
                status = line.split(' ').nth(1).map_or(0, |it| it.parse().unwrap());
            } else if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            } else if line == "connection: close" {
                last = true;
            } else if line.is_empty() {
                break;
            }
        }
        let mut answer = vec![0; length];
        stream.read_exact(&mut answer).unwrap();
        if !last {
            self.open = Some(stream);
        }
        (status, String::from_utf8(answer).unwrap())
    }
}

#[test]
fn instances_are_restarted_one_by_one_and_no_call_fails() {
    let Some(program) = program() else { return };
    let folders = [folder(), folder()];
    for folder in &folders {
        std::fs::write(folder.path().join("a2ad.yaml"), CONFIG).unwrap();
    }
    let url = Cluster::shared().create();
    let ports = [free_port(), free_port()];
    let front = free_port();
    let start = |at: usize| instance(&url, folders[at].path(), ports[at], front);
    let mut instances = [Some(start(0)), Some(start(1))];
    let proxy = Proxy::start(&program, front, ports);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(call(front));

    // Events come one by one, not all at the end.
    let body = json!({
        "jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage",
        "params": {"message": {
            "messageId": "m", "role": "ROLE_USER", "parts": [{"text": "one two three four five"}],
        }},
    });
    let body = body.to_string();
    let mut stream = TcpStream::connect(("127.0.0.1", proxy.port)).unwrap();
    let length = body.len();
    write!(
        stream,
        "POST /agents/slow HTTP/1.1\r\nHost: a\r\nConnection: close\r\nA2A-Version: 1.0\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut seen = Vec::new();
    for line in BufReader::new(stream).lines() {
        if line.unwrap().starts_with("id:") {
            seen.push(Instant::now());
        }
    }
    assert!(seen.len() > 5, "{seen:?}");
    assert!(*seen.last().unwrap() - seen[0] > Duration::from_millis(900));

    let (ended, sent) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut client = Client {
                    port: proxy.port,
                    open: None,
                };
                while !ended.load(Ordering::Relaxed) {
                    let (status, answer) = client.send("Say it again");
                    assert_eq!(status, 200, "{answer}");
                    assert!(answer.contains("TASK_STATE_COMPLETED"), "{answer}");
                    sent.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let restarted = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for round in 0..4 {
                let at = round % 2;
                let old = instances[at].take().unwrap();
                old.signal("-TERM");
                assert_eq!(old.wait().0, Some(0));
                instances[at] = Some(start(at));
                // Until the proxy has asked twice and found it ready.
                std::thread::sleep(Duration::from_millis(1_500));
            }
        }));
        ended.store(true, Ordering::Relaxed);
        restarted.unwrap();
    });
    assert!(sent.into_inner() > 100);
}
