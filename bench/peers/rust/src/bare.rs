//! A2A as one would write it by hand: typed requests and answers, a map of tasks, and nothing else.
//!
//! Both bare servers use this, so that they differ in nothing but what carries it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::{PIECES, Wish, piece_text};

/// How many tasks are kept, the newest: a yardstick must not get slower by what it remembers.
const KEPT: usize = 16_384;

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    method: &'a str,
    #[serde(borrow)]
    params: &'a RawValue,
}

#[derive(Deserialize)]
struct SendParams {
    message: Message,
}

#[derive(Deserialize)]
struct TaskParams {
    id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListParams {
    page_size: Option<usize>,
}

#[derive(Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    message_id: String,
    role: String,
    parts: Vec<Part>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_id: Option<String>,
}

#[derive(Clone, Deserialize, Serialize)]
struct Part {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Data>,
}

#[derive(Clone, Deserialize, Serialize)]
struct Data {
    n: usize,
    text: String,
}

#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Artifact {
    artifact_id: String,
    parts: Vec<Part>,
}

#[derive(Clone, Serialize)]
struct Status {
    state: &'static str,
    timestamp: String,
}

#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Task {
    id: String,
    context_id: String,
    status: Status,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    artifacts: Vec<Artifact>,
    history: Vec<Message>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StatusUpdate {
    task_id: String,
    context_id: String,
    status: Status,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ArtifactUpdate {
    task_id: String,
    context_id: String,
    artifact: Artifact,
    append: bool,
    last_chunk: bool,
}

/// What `SendMessage` answers, and what the events of a stream are.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Sent<'a> {
    Task(&'a Task),
    StatusUpdate(StatusUpdate),
    ArtifactUpdate(ArtifactUpdate),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    tasks: Vec<Task>,
    next_page_token: String,
    page_size: usize,
    total_size: usize,
}

#[derive(Serialize)]
struct Answer<'a, T> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    result: T,
}

#[derive(Serialize)]
struct Failure<'a> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    error: Problem,
}

#[derive(Serialize)]
struct Problem {
    code: i32,
    message: &'static str,
}

/// The newest tasks.
#[derive(Default)]
struct Kept {
    tasks: HashMap<String, Arc<Task>>,
    order: VecDeque<String>,
}

#[derive(Clone, Default)]
pub struct Agent {
    kept: Arc<Mutex<Kept>>,
}

/// What a request is answered with.
pub enum Reply {
    /// One JSON document.
    Json(Vec<u8>),
    /// The data of server-sent events.
    Events { events: Vec<Vec<u8>>, wish: Wish },
    /// Not JSON-RPC.
    Malformed,
}

impl Agent {
    pub fn call(&self, body: &[u8]) -> Reply {
        let Ok(Call { id, method, params }) = serde_json::from_slice(body) else {
            return Reply::Malformed;
        };
        let params = params.get();
        match method {
            "SendMessage" => match serde_json::from_str(params) {
                Ok(SendParams { message }) => self.send(id, message),
                Err(_) => invalid(id),
            },
            "SendStreamingMessage" => match serde_json::from_str(params) {
                Ok(SendParams { message }) => self.stream(id, message),
                Err(_) => invalid(id),
            },
            "GetTask" => match serde_json::from_str(params) {
                Ok(TaskParams { id: task }) => match self.task(&task) {
                    Some(task) => answer(id, &*task),
                    None => not_found(id),
                },
                Err(_) => invalid(id),
            },
            "ListTasks" => match serde_json::from_str(params) {
                Ok(ListParams { page_size }) => answer(id, self.page(page_size.unwrap_or(50))),
                Err(_) => invalid(id),
            },
            "SubscribeToTask" => match serde_json::from_str(params) {
                Ok(TaskParams { id: task }) => match self.task(&task) {
                    Some(task) => Reply::Events {
                        events: vec![json(id, Sent::Task(&task))],
                        wish: Wish::Hold,
                    },
                    None => not_found(id),
                },
                Err(_) => invalid(id),
            },
            _ => failure(id, -32601, "Method not found"),
        }
    }

    fn send(&self, id: &RawValue, message: Message) -> Reply {
        let parts = message.parts.clone();
        let mut task = begin(message);
        task.status = status("TASK_STATE_COMPLETED");
        task.artifacts.push(Artifact {
            artifact_id: "response".to_owned(),
            parts,
        });
        let reply = answer(id, Sent::Task(&task));
        self.keep(task);
        reply
    }

    fn stream(&self, id: &RawValue, message: Message) -> Reply {
        let text = message.parts.first().and_then(|part| part.text.as_deref());
        let wish = Wish::of(text.unwrap_or_default());
        let mut task = begin(message);
        let mut events = vec![json(id, Sent::Task(&task))];
        let told = |task: &Task, state| {
            Sent::StatusUpdate(StatusUpdate {
                task_id: task.id.clone(),
                context_id: task.context_id.clone(),
                status: status(state),
            })
        };
        events.push(json(id, told(&task, "TASK_STATE_WORKING")));
        task.status = status("TASK_STATE_WORKING");
        if wish != Wish::Hold {
            let mut parts = Vec::with_capacity(PIECES);
            for number in 0..PIECES {
                let part = Part {
                    text: None,
                    data: Some(Data {
                        n: number,
                        text: piece_text(number),
                    }),
                };
                parts.push(part.clone());
                let update = ArtifactUpdate {
                    task_id: task.id.clone(),
                    context_id: task.context_id.clone(),
                    artifact: Artifact {
                        artifact_id: "answer".to_owned(),
                        parts: vec![part],
                    },
                    append: number > 0,
                    last_chunk: number + 1 == PIECES,
                };
                events.push(json(id, Sent::ArtifactUpdate(update)));
            }
            events.push(json(id, told(&task, "TASK_STATE_COMPLETED")));
            task.status = status("TASK_STATE_COMPLETED");
            task.artifacts.push(Artifact {
                artifact_id: "answer".to_owned(),
                parts,
            });
        }
        self.keep(task);
        Reply::Events { events, wish }
    }

    fn task(&self, id: &str) -> Option<Arc<Task>> {
        self.kept().tasks.get(id).cloned()
    }

    /// The newest tasks, without their artifacts, as `ListTasks` has them by default.
    fn page(&self, page_size: usize) -> Page {
        let kept = self.kept();
        let newest = kept.order.iter().rev().take(page_size);
        let tasks = newest.filter_map(|id| kept.tasks.get(id));
        let short = |task: &Arc<Task>| Task {
            id: task.id.clone(),
            context_id: task.context_id.clone(),
            status: task.status.clone(),
            artifacts: Vec::new(),
            history: task.history.clone(),
        };
        Page {
            tasks: tasks.map(short).collect(),
            next_page_token: kept.order.front().cloned().unwrap_or_default(),
            page_size,
            total_size: kept.order.len(),
        }
    }

    fn keep(&self, task: Task) {
        let mut kept = self.kept();
        if kept.order.len() >= KEPT
            && let Some(oldest) = kept.order.pop_front()
        {
            kept.tasks.remove(&oldest);
        }
        kept.order.push_back(task.id.clone());
        kept.tasks.insert(task.id.clone(), Arc::new(task));
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn begin(mut message: Message) -> Task {
    let id = Uuid::new_v4().to_string();
    let context_id = match message.context_id.take() {
        Some(context) => context,
        None => Uuid::new_v4().to_string(),
    };
    message.task_id = Some(id.clone());
    message.context_id = Some(context_id.clone());
    Task {
        id,
        context_id,
        status: status("TASK_STATE_SUBMITTED"),
        artifacts: Vec::new(),
        history: vec![message],
    }
}

fn status(state: &'static str) -> Status {
    Status {
        state,
        timestamp: format!("{:.3}", jiff::Timestamp::now()),
    }
}

fn json<T: Serialize>(id: &RawValue, result: T) -> Vec<u8> {
    let answer = Answer {
        jsonrpc: "2.0",
        id,
        result,
    };
    serde_json::to_vec(&answer).expect("these types always serialise")
}

fn answer<T: Serialize>(id: &RawValue, result: T) -> Reply {
    Reply::Json(json(id, result))
}

fn invalid(id: &RawValue) -> Reply {
    failure(id, -32602, "Invalid parameters")
}

fn not_found(id: &RawValue) -> Reply {
    failure(id, -32001, "Task not found")
}

fn failure(id: &RawValue, code: i32, message: &'static str) -> Reply {
    let failure = Failure {
        jsonrpc: "2.0",
        id,
        error: Problem { code, message },
    };
    Reply::Json(serde_json::to_vec(&failure).expect("these types always serialise"))
}
