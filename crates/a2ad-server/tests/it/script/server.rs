//! A server with a script, and just enough of a client.

use std::time::Duration;

use a2ad_server::config::Source;
use a2ad_server::{Handle, Server};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

pub(super) struct Scripted {
    handle: Handle,
    yaml: String,
    folder: TempDir,
}

impl Scripted {
    /// A server whose only agent has this script.
    pub(super) async fn script(script: &str) -> Self {
        let script = script.trim_matches('\n').replace('\n', "\n      ");
        Self::start(&format!(
            "drain: 0s\nagents:\n  - id: scripted\n    script:\n      {script}\n"
        ))
        .await
    }

    /// A server with this configuration, somewhere free.
    pub(super) async fn start(yaml: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            handle: serve(yaml, &folder).await,
            yaml: yaml.to_owned(),
            folder,
        }
    }

    /// Stops the server in good order and starts it on the same database.
    pub(super) async fn restart(&mut self) {
        self.handle.stop();
        self.handle.wait().await.unwrap();
        self.handle = serve(&self.yaml, &self.folder).await;
    }

    /// Sends a message and gives the whole answer.
    pub(super) async fn answer(&self, message: Message) -> Value {
        self.rpc("SendMessage", json!({"message": message.0})).await
    }

    /// Sends a message and gives the task once it is settled.
    pub(super) async fn send(&self, message: Message) -> Value {
        self.answer(message).await["task"].clone()
    }

    /// Sends a message and gives the task as it is then.
    pub(super) async fn begin(&self, message: Message) -> Value {
        let params = json!({"message": message.0, "configuration": {"returnImmediately": true}});
        self.rpc("SendMessage", params).await["task"].clone()
    }

    /// Sends a message and gives all events of the stream.
    pub(super) async fn stream(&self, message: Message) -> Vec<Value> {
        let answer = self
            .call("SendStreamingMessage", json!({"message": message.0}))
            .await;
        answer
            .lines()
            .filter_map(|line| line.strip_prefix("data:"))
            .map(|data| serde_json::from_str::<Value>(data).unwrap()["result"].clone())
            .collect()
    }

    pub(super) async fn get(&self, task: &Value) -> Value {
        self.rpc("GetTask", json!({"id": task["id"]})).await
    }

    pub(super) async fn cancel(&self, task: &Value) -> Value {
        self.rpc("CancelTask", json!({"id": task["id"]})).await
    }

    /// Asks for the task until it is as wanted.
    pub(super) async fn until(&self, task: &Value, wanted: impl Fn(&Value) -> bool) -> Value {
        let waiting = async {
            loop {
                let now = self.get(task).await;
                if wanted(&now) {
                    return now;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), waiting)
            .await
            .unwrap()
    }

    async fn rpc(&self, method: &str, params: Value) -> Value {
        let answer = self.call(method, params).await;
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        let answer: Value = serde_json::from_str(body).unwrap();
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    async fn call(&self, method: &str, params: Value) -> String {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let body = body.to_string();
        let request = format!(
            "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nA2A-Version: 1.0\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut stream = tokio::net::TcpStream::connect(self.handle.addr())
            .await
            .unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        if head
            .to_ascii_lowercase()
            .contains("transfer-encoding: chunked")
        {
            return format!("{head}\r\n\r\n{}", unchunked(body));
        }
        answer
    }
}

async fn serve(yaml: &str, folder: &TempDir) -> Handle {
    let mut config = Source::yaml("test.yaml", yaml).read(&|_| None).unwrap();
    config.listen.port = 0;
    config.data_dir = folder.path().join("data");
    config.look_in(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples").as_ref());
    Server::start(config).await.unwrap()
}

fn unchunked(mut rest: &str) -> String {
    let mut body = String::new();
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap();
        body.push_str(&after[..size]);
        rest = after[size..].trim_start_matches("\r\n");
    }
    body
}

/// A message to send.
pub(super) struct Message(Value);

/// A message of one text.
pub(super) fn text(text: &str) -> Message {
    parts(json!([{"text": text}]))
}

/// A message of these parts.
pub(super) fn parts(parts: Value) -> Message {
    Message(json!({"messageId": "m", "role": "ROLE_USER", "parts": parts}))
}

impl Message {
    /// In a conversation.
    pub(super) fn within(mut self, context_id: &str) -> Self {
        self.0["contextId"] = context_id.into();
        self
    }

    pub(super) fn id(mut self, id: &str) -> Self {
        self.0["messageId"] = id.into();
        self
    }

    /// As an answer in a task.
    pub(super) fn to(mut self, task: &Value) -> Self {
        self.0["taskId"] = task["id"].clone();
        self.0["contextId"] = task["contextId"].clone();
        self
    }
}

/// The state, without its common beginning.
pub(super) fn state(task: &Value) -> &str {
    let state = task["status"]["state"].as_str().unwrap();
    state.strip_prefix("TASK_STATE_").unwrap()
}

/// The text of the status message.
pub(super) fn said(task: &Value) -> &str {
    let parts = &task["status"]["message"]["parts"];
    parts[0]["text"].as_str().unwrap_or_default()
}

/// The text of an artifact.
pub(super) fn artifact_text(task: &Value, index: usize) -> String {
    task["artifacts"][index]["parts"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|part| part["text"].as_str())
        .collect()
}
