//! Starting the binary and talking to it, with nothing but the standard library.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Longer than anything here takes, even on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A folder for one test.
pub(crate) fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// The binary in `folder`, with an environment that holds nothing of ours.
pub(crate) fn a2ad(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_a2ad"));
    command.current_dir(folder).args(words);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let ours = ["A2AD_", "IACCODE_A2A_", "SB_SERVE_", "LECTIC_A2A_"];
        let ours = ours.iter().any(|prefix| text.starts_with(prefix));
        if ours || name == "HOST" || name == "PORT" || name == "RUST_LOG" {
            command.env_remove(name);
        }
    }
    command
}

/// Runs the binary to its end.
pub(crate) fn run(folder: &Path, words: &[&str]) -> Output {
    finish(&mut a2ad(folder, words))
}

/// Runs a command whose output fits into a pipe, and gives up on one that does not end.
fn finish(command: &mut Command) -> Output {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begin = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begin.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("it does not end: {:?}", child.wait_with_output().unwrap());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    child.wait_with_output().unwrap()
}

/// Runs the binary, which has to fail with `code` and one line; returns the line.
pub(crate) fn fails(command: &mut Command, code: i32) -> String {
    let output = finish(command);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{error}");
    let ours: Vec<&str> = error
        .lines()
        .filter(|line| line.starts_with("a2ad: "))
        .collect();
    assert_eq!(ours.len(), 1, "{error}");
    assert!(error.ends_with(&format!("{}\n", ours[0])), "{error}");
    ours[0].to_owned()
}

/// A running server. Killed when dropped.
pub(crate) struct Daemon {
    pub(crate) child: Child,
    pub(crate) banner: Vec<String>,
    /// `127.0.0.1:port`.
    pub(crate) address: String,
}

impl Daemon {
    /// Starts `a2ad serve` on any port and waits for its banner.
    pub(crate) fn start(folder: &Path, words: &[&str]) -> Self {
        let words: Vec<&str> = ["serve", "--port", "0"]
            .iter()
            .chain(words)
            .copied()
            .collect();
        Self::spawn(&mut a2ad(folder, &words))
    }

    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let banner: Vec<String> = out.lines().take(4).map(Result::unwrap).collect();
        if banner.len() < 4 {
            let mut error = String::new();
            let mut stderr = child.stderr.take().unwrap();
            stderr.read_to_string(&mut error).unwrap();
            child.wait().unwrap();
            panic!("no banner: {banner:?} {error}");
        }
        let address = banner[0].split("http://").nth(1).unwrap().to_owned();
        Self {
            child,
            banner,
            address,
        }
    }

    /// One request on a connection of its own; answers the status and the body.
    pub(crate) fn http(&self, request: &str, headers: &str, body: &str) -> (u16, String) {
        let mut stream = self.send(request, headers, body);
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, body.to_owned())
    }

    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        self.http(&format!("GET {path}"), "", "")
    }

    /// Sends a request and leaves the answer to be read.
    pub(crate) fn send(&self, request: &str, headers: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let length = body.len();
        write!(
            stream,
            "{request} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nA2A-Version: 1.0\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
        )
        .unwrap();
        stream
    }

    /// Calls a method and returns its result.
    pub(crate) fn call(&self, method: &str, params: &Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let (status, answer) = self.http("POST /", "", &body.to_string());
        assert_eq!(status, 200, "{answer}");
        let answer: Value = serde_json::from_str(&answer).unwrap();
        answer
            .get("result")
            .unwrap_or_else(|| panic!("{answer}"))
            .clone()
    }

    /// Opens a stream that answers `text`.
    pub(crate) fn stream(&self, text: &str) -> TcpStream {
        let body = json!({
            "jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": message(text)
        });
        self.send("POST /", "", &body.to_string())
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        // The shell's own: not every machine has a program of that name.
        let kill = format!("kill {name} {pid}");
        let status = Command::new("sh").args(["-c", &kill]).status().unwrap();
        assert!(status.success());
    }

    /// Waits for the end; answers the exit code and what went to the standard error.
    pub(crate) fn wait(mut self) -> (Option<i32>, String) {
        let begin = Instant::now();
        let mut stderr = self.child.stderr.take().unwrap();
        let reader = std::thread::spawn(move || {
            let mut error = String::new();
            stderr.read_to_string(&mut error).unwrap();
            error
        });
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return (status.code(), reader.join().unwrap());
            }
            assert!(begin.elapsed() < PATIENCE, "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Ends it without any warning.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

pub(crate) fn message(text: &str) -> Value {
    json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}]}})
}
