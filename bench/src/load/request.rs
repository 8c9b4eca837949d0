//! The bytes of requests over HTTP/1.1, made once and sent many times.

use anyhow::{Context as _, Result};
use memchr::memmem;
use serde_json::{Value, json};

use super::random::{MARK_LENGTH, Random, UUID_LENGTH};
use super::{Binding, ListFilter, Made, PAGE, Target};

/// What stands in a template where a message id goes.
pub(crate) const ID: &str = "00000000-0000-4000-8000-000000000000";
/// What stands there where a mark goes.
pub(crate) const MARK: &str = "----------------";

/// A request with a message, to be sent with another id and another text each time.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    bytes: Vec<u8>,
    id_at: usize,
    mark_at: usize,
}

impl Template {
    /// Of bytes that have [`ID`] and [`MARK`] in them.
    pub(crate) fn new(bytes: Vec<u8>) -> Result<Self> {
        let place = |what: &str| {
            memmem::find(&bytes, what.as_bytes())
                .context("a template has room for an id and a mark")
        };
        Ok(Self {
            id_at: place(ID)?,
            mark_at: place(MARK)?,
            bytes,
        })
    }

    /// Makes it another request, with a mark that is in its text.
    pub(crate) fn refresh(&mut self, random: &mut Random) -> [u8; MARK_LENGTH] {
        let mark = random.mark();
        self.bytes[self.id_at..][..UUID_LENGTH].copy_from_slice(&random.uuid());
        self.bytes[self.mark_at..][..MARK_LENGTH].copy_from_slice(&mark);
        mark
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// A message with places for an id and a mark.
pub(crate) fn message(
    target: &Target,
    binding: Binding,
    word: &str,
    context_id: Option<&str>,
    streams: bool,
) -> Vec<u8> {
    let text = format!("{word} {MARK}");
    let mut message = json!({"messageId": ID, "role": "ROLE_USER", "parts": [{"text": text}]});
    if let Some(context_id) = context_id {
        message["contextId"] = context_id.into();
    }
    let params = json!({"message": message});
    let (method, action) = match streams {
        true => ("SendStreamingMessage", "/message:stream"),
        false => ("SendMessage", "/message:send"),
    };
    match binding {
        Binding::JsonRpc => call(target, method, &params, &[]),
        _ => post(target, action, &params),
    }
}

pub(crate) fn get(target: &Target, binding: Binding, made: &Made) -> Vec<u8> {
    match binding {
        Binding::JsonRpc => call(target, "GetTask", &json!({"id": made.id}), &[]),
        _ => fetch(target, &format!("/tasks/{}", made.id), &[]),
    }
}

pub(crate) fn list(target: &Target, binding: Binding, filter: &ListFilter) -> Vec<u8> {
    let mut params = json!({"pageSize": PAGE});
    let mut query = format!("/tasks?pageSize={PAGE}");
    for (name, value) in [
        ("contextId", &filter.context_id),
        ("status", &filter.status),
    ] {
        if let Some(value) = value {
            params[name] = Value::from(value.as_str());
            query.push_str(&format!("&{name}={value}"));
        }
    }
    match binding {
        Binding::JsonRpc => call(target, "ListTasks", &params, &[]),
        _ => fetch(target, &query, &[]),
    }
}

/// Follows a task; with a cursor, from there on.
pub(crate) fn subscribe(
    target: &Target,
    binding: Binding,
    task: &str,
    cursor: Option<&str>,
) -> Vec<u8> {
    let cursor = cursor.map(|cursor| ("Last-Event-ID", cursor));
    match binding {
        Binding::JsonRpc => {
            let params = json!({"id": task});
            call(target, "SubscribeToTask", &params, cursor.as_slice())
        }
        _ => fetch(
            target,
            &format!("/tasks/{task}:subscribe"),
            cursor.as_slice(),
        ),
    }
}

pub(crate) fn cancel(target: &Target, task: &str) -> Vec<u8> {
    call(target, "CancelTask", &json!({"id": task}), &[])
}

fn call(target: &Target, method: &str, params: &Value, headers: &[(&str, &str)]) -> Vec<u8> {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    // An agent's own address has no slash at the end; that of a server alone is nothing else.
    let path = if target.path.is_empty() {
        "/"
    } else {
        &target.path
    };
    whole(target, "POST", path, headers, Some(&body))
}

fn post(target: &Target, action: &str, body: &Value) -> Vec<u8> {
    let path = format!("{}{action}", target.path);
    whole(target, "POST", &path, &[], Some(body))
}

fn fetch(target: &Target, action: &str, headers: &[(&str, &str)]) -> Vec<u8> {
    let path = format!("{}{action}", target.path);
    whole(target, "GET", &path, headers, None)
}

fn whole(
    target: &Target,
    verb: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Option<&Value>,
) -> Vec<u8> {
    let mut head = format!(
        "{verb} {path} HTTP/1.1\r\nHost: {}\r\nA2A-Version: 1.0\r\n",
        target.address
    );
    if let Some(token) = &target.token {
        head.push_str(&format!("Authorization: Bearer {token}\r\n"));
    }
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let body = body.map(Value::to_string).unwrap_or_default();
    if !body.is_empty() {
        let length = body.len();
        head.push_str(&format!(
            "Content-Type: application/json\r\nContent-Length: {length}\r\n"
        ));
    }
    format!("{head}\r\n{body}").into_bytes()
}
