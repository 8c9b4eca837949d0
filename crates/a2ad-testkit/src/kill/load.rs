//! Clients that ask for everything, believe nothing, and write down what they were told.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use a2ad_client::Binding;
use a2ad_client::dial::Dialer;
use a2ad_proto::{
    GetTaskRequest, ListTasksRequest, SendMessageConfiguration, SendMessageRequest, Task, TaskState,
};
use futures_util::future::{BoxFuture, join};
use hyper::Method;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::history::{Frame, History, Opened, Part, Stream};
use super::plan::Dice;
use crate::client::{self, Client as _, Driven, Failure};
use crate::http::{self, Broken, SseReader};

/// How long an answer or a frame may take while the server lives. A turn that was cut several
/// times waits for up to a minute before it is tried again.
const ANSWER_MAX: Duration = Duration::from_secs(100);
/// How often one operation is tried again at most.
const TRIES_MAX: usize = 10_000;
/// How many of its own tasks a client remembers to ask about.
const REMEMBERED: usize = 100;

/// A server that is up.
#[derive(Clone, Copy, Debug)]
pub struct Up {
    /// Where it listens.
    pub to: SocketAddr,
    /// Since when it is ready.
    pub since: Instant,
    /// Its how manyeth life this is.
    pub life: u32,
}

/// What all clients share.
#[derive(Debug)]
pub struct Shared {
    /// The server, while it is up.
    pub server: watch::Receiver<Option<Up>>,
    /// What they were told.
    pub history: Mutex<History>,
    /// Begin nothing new.
    pub enough: CancellationToken,
    /// How calls go out.
    pub dialer: Dialer,
}

impl Shared {
    /// The history.
    pub fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the server to be up.
    async fn up(&self) -> Up {
        let mut server = self.server.clone();
        let up = server.wait_for(Option::is_some).await.map(|up| *up);
        match up {
            Ok(up) => up.expect("waited for"),
            // The run is over; whoever runs it ends us.
            Err(_) => std::future::pending().await,
        }
    }

    /// Calls until the server answers, over as many of its lives as that takes.
    async fn answered<T>(
        &self,
        what: &str,
        call: impl Fn(Driven) -> BoxFuture<'static, Result<T, Failure>>,
    ) -> Result<T, String> {
        let mut cut = false;
        for _ in 0..TRIES_MAX {
            let up = self.up().await;
            let client = Driven::at(up.to, Binding::JsonRpc, self.dialer.clone());
            match timeout(ANSWER_MAX, call(client)).await {
                Ok(Ok(value)) => {
                    if cut {
                        self.resumed(up);
                    }
                    return Ok(value);
                }
                Ok(Err(Failure::Refused {
                    reason, message, ..
                })) => return Err(format!("{reason}: {message}")),
                Ok(Err(Failure::Broken(_))) => {
                    cut = true;
                    self.history().tried.retries += 1;
                    self.next_life(up).await;
                }
                Err(_) => {
                    let surprise = format!("{what}: no answer in {ANSWER_MAX:?}");
                    self.history().surprise(surprise);
                    return Err("no answer".to_owned());
                }
            }
        }
        Err("tried too often".to_owned())
    }

    fn resumed(&self, up: Up) {
        let millis = u64::try_from(up.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.history().resumed_ms.push(millis);
    }

    /// Waits for the life after the one that broke; not for long, should it still live.
    async fn next_life(&self, broken: Up) {
        let mut server = self.server.clone();
        let next = server.wait_for(|up| up.is_some_and(|up| up.life != broken.life));
        let _in_time = timeout(Duration::from_millis(250), next).await.is_ok();
    }
}

/// One client.
#[derive(Debug)]
pub struct Client {
    shared: Arc<Shared>,
    dice: Dice,
    rest_max: Duration,
    own: VecDeque<Own>,
}

/// A task that the client began.
#[derive(Clone, Debug)]
struct Own {
    id: String,
    context_id: String,
}

/// How one part of a stream came to its end.
enum PartEnd {
    /// In good order.
    Ended,
    /// By a kill, or by the client.
    Cut,
    /// The server refused.
    Refused(String),
    /// Nothing came for too long.
    Stalled,
}

impl Client {
    /// Client number `number` of the run with this `seed`.
    #[must_use]
    pub fn new(shared: Arc<Shared>, seed: u64, number: usize, rest_max: Duration) -> Self {
        Self {
            shared,
            dice: Dice::new(seed).fork(0x636c_6965_0000_0000 | number as u64),
            rest_max,
            own: VecDeque::new(),
        }
    }

    /// Asks for this and that until it is enough.
    pub async fn run(mut self, operations_max: usize) {
        for _ in 0..operations_max {
            if self.shared.enough.is_cancelled() {
                return;
            }
            match self.dice.below(100) {
                0..22 => self.send().await,
                22..40 => self.send_and_leave().await,
                40..62 => self.stream().await,
                62..72 => self.converse().await,
                72..78 => self.follow_up().await,
                78..84 => self.cancel().await,
                84..88 => self.watch().await,
                88..92 => self.replay().await,
                92..97 => self.get().await,
                _ => self.list().await,
            }
            let rest_max = u64::try_from(self.rest_max.as_micros()).unwrap_or(0).max(1);
            let rest = Duration::from_micros(self.dice.below(rest_max));
            tokio::select! {
                () = sleep(rest) => {}
                () = self.shared.enough.cancelled() => {}
            }
        }
    }

    fn short(&mut self) -> u64 {
        1 + self.dice.below(12)
    }

    /// A message that the server can recognise, written down before it is sent.
    fn message(&mut self, mut request: SendMessageRequest) -> (String, SendMessageRequest) {
        let id = self.dice.uuid();
        let message = request.message.get_or_insert_default();
        message.message_id.clone_from(&id);
        let said: String = message
            .parts
            .iter()
            .filter_map(|part| part.as_text())
            .collect();
        self.shared.history().sending(&id, &said);
        (id, request)
    }

    fn new_message(&mut self, words: u64) -> (String, SendMessageRequest) {
        let said = self.dice.text(words);
        self.message(client::text(&said))
    }

    /// Sends until acknowledged.
    async fn acknowledged(&mut self, id: &str, request: &SendMessageRequest) -> Option<Task> {
        let answer = self
            .shared
            .answered("SendMessage", |rpc| {
                let request = request.clone();
                Box::pin(async move { rpc.send(request).await })
            })
            .await;
        match answer {
            Ok(task) => {
                self.note_task(id, &task);
                Some(task)
            }
            Err(refusal) => {
                let surprise = format!("message {id} was refused: {refusal}");
                self.shared.history().surprise(surprise);
                None
            }
        }
    }

    fn note_task(&mut self, message_id: &str, task: &Task) {
        let mut history = self.shared.history();
        history.acknowledged(message_id, &task.id, &task.context_id);
        history.shown(task, true);
        drop(history);
        self.remember(&task.id, &task.context_id);
    }

    fn remember(&mut self, id: &str, context_id: &str) {
        if self.own.len() >= REMEMBERED {
            self.own.pop_front();
        }
        self.own.push_back(Own {
            id: id.to_owned(),
            context_id: context_id.to_owned(),
        });
    }

    fn some_own(&mut self) -> Option<Own> {
        let own: Vec<_> = self.own.iter().cloned().collect();
        self.dice.pick(&own).cloned()
    }

    /// A blocking send, often repeated, sometimes twice at once.
    async fn send(&mut self) {
        let words = self.short();
        let (id, request) = self.new_message(words);
        if self.dice.chance(15) {
            let call = || {
                self.shared.answered("SendMessage twice at once", |rpc| {
                    let request = request.clone();
                    Box::pin(async move { rpc.send(request).await })
                })
            };
            let (one, two) = join(call(), call()).await;
            self.shared.history().tried.repeats += 1;
            for answer in [one, two] {
                match answer {
                    Ok(task) => self.note_task(&id, &task),
                    Err(refusal) => {
                        let surprise = format!("message {id}, sent twice, was refused: {refusal}");
                        self.shared.history().surprise(surprise);
                    }
                }
            }
        } else if let Some(task) = self.acknowledged(&id, &request).await
            && !task.status.state.is_terminal()
        {
            let surprise = format!("a blocking send of {id} answered {:?}", task.status.state);
            self.shared.history().surprise(surprise);
        }
        for _ in 0..2 {
            if self.dice.chance(25) {
                self.shared.history().tried.repeats += 1;
                self.acknowledged(&id, &request).await;
            }
        }
    }

    /// Returns at once; the task goes on without anybody looking.
    async fn send_and_leave(&mut self) {
        let words = self.short();
        let (id, request) = self.new_message(words);
        let request = at_once(request);
        self.acknowledged(&id, &request).await;
        if self.dice.chance(20) {
            self.shared.history().tried.repeats += 1;
            self.acknowledged(&id, &request).await;
        }
    }

    /// Several messages in one context, each acknowledged before the next is sent.
    async fn converse(&mut self) {
        let mut context_id = if self.dice.chance(50) {
            self.dice.uuid()
        } else {
            String::new()
        };
        let count = 2 + self.dice.below(4);
        let mut tasks = Vec::new();
        for at in 0..count {
            let words = self.short();
            let said = self.dice.text(words);
            let (id, request) = self.message(client::text_in(&context_id, &said));
            // The last one waits, and with it for all before.
            let request = if at + 1 < count {
                at_once(request)
            } else {
                request
            };
            let Some(task) = self.acknowledged(&id, &request).await else {
                break;
            };
            context_id = task.context_id;
            tasks.push(task.id);
        }
        let cancel = tasks.get(1).filter(|_| self.dice.chance(20)).cloned();
        self.shared.history().contexts.insert(context_id, tasks);
        if let Some(id) = cancel {
            // By now it has ended or waits in line.
            self.cancel_task(&id).await;
        }
    }

    /// A further message to a task that may still run.
    async fn follow_up(&mut self) {
        let (id, request) = self.new_message(20);
        let Some(task) = self.acknowledged(&id, &at_once(request)).await else {
            return;
        };
        for _ in 0..=self.dice.below(2) {
            let words = self.short();
            let said = self.dice.text(words);
            let (id, request) = self.message(client::text_to(&task, &said));
            let request = if self.dice.chance(50) {
                at_once(request)
            } else {
                request
            };
            let answer = self
                .shared
                .answered("SendMessage to a task", |rpc| {
                    let request = request.clone();
                    Box::pin(async move { rpc.send(request).await })
                })
                .await;
            match answer {
                Ok(task) => {
                    self.note_task(&id, &task);
                    self.shared.history().tried.follow_ups += 1;
                }
                // It has ended meanwhile.
                Err(refusal) if refusal.starts_with("UNSUPPORTED_OPERATION") => {
                    self.shared.history().refused(&id, &refusal);
                }
                Err(refusal) => {
                    let surprise = format!("follow-up {id} was refused: {refusal}");
                    self.shared.history().surprise(surprise);
                }
            }
        }
    }

    /// A long task, and a cancel somewhere on its way.
    async fn cancel(&mut self) {
        let words = 30 + self.dice.below(60);
        let (id, request) = self.new_message(words);
        let Some(task) = self.acknowledged(&id, &at_once(request)).await else {
            return;
        };
        sleep(Duration::from_millis(self.dice.below(200))).await;
        self.cancel_task(&task.id).await;
    }

    async fn cancel_task(&mut self, id: &str) {
        let answer = self
            .shared
            .answered("CancelTask", |rpc| {
                let id = id.to_owned();
                Box::pin(async move { rpc.cancel(&id).await })
            })
            .await;
        match answer {
            Ok(task) => {
                let mut history = self.shared.history();
                history.cancel_taken(&task.id);
                history.shown(&task, true);
            }
            // It was faster, or an earlier try of ours was heard.
            Err(refusal) if refusal.starts_with("TASK_NOT_CANCELABLE") => {
                if let Some(task) = self.get_task(id).await
                    && !task.status.state.is_terminal()
                {
                    let surprise = format!("{id} is {:?}, not cancelable", task.status.state);
                    self.shared.history().surprise(surprise);
                }
            }
            Err(refusal) => {
                let surprise = format!("the cancel of {id} was refused: {refusal}");
                self.shared.history().surprise(surprise);
            }
        }
    }

    async fn get(&mut self) {
        if let Some(own) = self.some_own() {
            self.get_task(&own.id).await;
        }
    }

    async fn get_task(&mut self, id: &str) -> Option<Task> {
        get_task(&self.shared, id).await
    }

    /// Lists a context of the client's; what it was told of must be there.
    async fn list(&mut self) {
        let Some(own) = self.some_own() else { return };
        let request = ListTasksRequest {
            context_id: own.context_id.clone(),
            include_artifacts: Some(true),
            page_size: Some(100),
            ..ListTasksRequest::default()
        };
        let answer = self
            .shared
            .answered("ListTasks", |rpc| {
                let request = request.clone();
                Box::pin(async move { rpc.list(request).await })
            })
            .await;
        let mut history = self.shared.history();
        history.tried.reads += 1;
        match answer {
            Ok(page) => {
                if !page.tasks.iter().any(|task| task.id == own.id) {
                    history.surprise(format!("a list of its context leaves out {}", own.id));
                }
                for task in &page.tasks {
                    history.shown(task, true);
                }
            }
            Err(refusal) => history.surprise(format!("a list was refused: {refusal}")),
        }
    }

    /// A streaming send, read to its end over as many cuts as come.
    async fn stream(&mut self) {
        let words = if self.dice.chance(30) {
            20 + self.dice.below(40)
        } else {
            self.short()
        };
        let (id, request) = self.new_message(words);
        let mut stream = Stream::default();
        let mut own_cuts = self.dice.below(3);
        let mut cut_life: Option<Up> = None;
        for _ in 0..TRIES_MAX {
            let seen = stream
                .parts
                .iter()
                .rev()
                .find_map(|part| part.frames.last());
            let after = seen.map(|frame| frame.number);
            let task = stream.parts.first().map(|part| part.task.clone());
            let (method, params) = match &task {
                Some(task) if self.dice.chance(75) => ("SubscribeToTask", json!({"id": task})),
                _ => ("SendStreamingMessage", json!(request)),
            };
            let frames_max = if own_cuts > 0 && self.dice.chance(60) {
                own_cuts -= 1;
                usize::try_from(1 + self.dice.below(8)).unwrap_or(1)
            } else {
                usize::MAX
            };
            let up = self.shared.up().await;
            let (frames, end) = read_part(up.to, method, &params, after, frames_max).await;
            if after.is_some() {
                self.shared.history().tried.resumes += 1;
            }
            let named = frames.first().and_then(|frame| names(&frame.json));
            if let Some((task_id, context_id)) = &named {
                let known = task.as_ref().is_none_or(|task| task == task_id);
                let mut history = self.shared.history();
                history.acknowledged(&id, task_id, context_id);
                if !known {
                    history.surprise(format!("the stream of {task:?} went on with {task_id}"));
                }
                drop(history);
                if task.is_none() {
                    self.remember(task_id, context_id);
                }
            }
            if let Some(task) = task.or(named.map(|(task_id, _)| task_id)) {
                stream.parts.push(Part {
                    task,
                    opened: after.map_or(Opened::FromStart, Opened::After),
                    frames,
                    ended: matches!(end, PartEnd::Ended),
                });
            }
            match end {
                PartEnd::Ended => {
                    if cut_life.is_some() {
                        self.shared.resumed(up);
                    }
                    break;
                }
                PartEnd::Cut => {
                    if frames_max == usize::MAX {
                        cut_life = Some(up);
                        self.shared.next_life(up).await;
                    }
                }
                PartEnd::Refused(refusal) => {
                    let surprise = format!("{method} of {id} after {after:?}: {refusal}");
                    self.shared.history().surprise(surprise);
                    break;
                }
                PartEnd::Stalled => {
                    let surprise = format!("{method} of {id} after {after:?}: nothing comes");
                    self.shared.history().surprise(surprise);
                    break;
                }
            }
        }
        self.keep(stream);
    }

    fn keep(&mut self, stream: Stream) {
        let Some(last) = stream.parts.last() else {
            return;
        };
        let end = last.frames.last().and_then(|frame| state(&frame.json));
        let mut history = self.shared.history();
        if last.ended
            && let Some(state) = end
            && state.is_terminal()
        {
            history.ended(&last.task, state, None);
        }
        history.streamed(stream);
    }

    /// Subscribes to a task that somebody else's message began.
    async fn watch(&mut self) {
        let words = 10 + self.dice.below(20);
        let (id, request) = self.new_message(words);
        let Some(task) = self.acknowledged(&id, &at_once(request)).await else {
            return;
        };
        sleep(Duration::from_millis(self.dice.below(60))).await;
        let mut stream = Stream::default();
        for _ in 0..TRIES_MAX {
            let seen = stream
                .parts
                .iter()
                .rev()
                .find_map(|part| part.frames.last());
            let after = seen.map(|frame| frame.number);
            let up = self.shared.up().await;
            let params = json!({"id": task.id});
            let (frames, end) =
                read_part(up.to, "SubscribeToTask", &params, after, usize::MAX).await;
            if after.is_some() {
                self.shared.history().tried.resumes += 1;
            }
            stream.parts.push(Part {
                task: task.id.clone(),
                opened: after.map_or(Opened::Now, Opened::After),
                frames,
                ended: matches!(end, PartEnd::Ended),
            });
            match end {
                PartEnd::Ended => break,
                PartEnd::Cut => self.shared.next_life(up).await,
                // It ended before we came.
                PartEnd::Refused(refusal)
                    if after.is_none() && refusal.starts_with("UNSUPPORTED_OPERATION") =>
                {
                    break;
                }
                PartEnd::Refused(refusal) => {
                    let surprise = format!("a subscription to {}: {refusal}", task.id);
                    self.shared.history().surprise(surprise);
                    break;
                }
                PartEnd::Stalled => {
                    let surprise = format!("a subscription to {}: nothing comes", task.id);
                    self.shared.history().surprise(surprise);
                    break;
                }
            }
        }
        self.keep(stream);
    }

    /// Reads a task's stream again from somewhere in its middle.
    async fn replay(&mut self) {
        let Some(own) = self.some_own() else { return };
        let up = self.shared.up().await;
        // Every task has at least its first entry.
        let after = self.dice.below(2);
        let params = json!({"id": own.id});
        let (frames, end) =
            read_part(up.to, "SubscribeToTask", &params, Some(after), usize::MAX).await;
        if let PartEnd::Refused(refusal) = &end {
            let surprise = format!("a replay of {} after {after}: {refusal}", own.id);
            self.shared.history().surprise(surprise);
        }
        self.shared.history().tried.resumes += 1;
        self.keep(Stream {
            parts: vec![Part {
                task: own.id,
                opened: Opened::After(after),
                frames,
                ended: matches!(end, PartEnd::Ended),
            }],
        });
    }
}

/// GetTask until answered; what it shows is written down.
pub async fn get_task(shared: &Shared, id: &str) -> Option<Task> {
    let request = GetTaskRequest {
        id: id.to_owned(),
        ..GetTaskRequest::default()
    };
    let answer = shared
        .answered("GetTask", |rpc| {
            let request = request.clone();
            Box::pin(async move { rpc.get(request).await })
        })
        .await;
    let mut history = shared.history();
    history.tried.reads += 1;
    match answer {
        Ok(task) => {
            history.shown(&task, true);
            Some(task)
        }
        Err(refusal) => {
            history.surprise(format!("task {id} cannot be had: {refusal}"));
            None
        }
    }
}

fn at_once(mut request: SendMessageRequest) -> SendMessageRequest {
    request.configuration = Some(SendMessageConfiguration {
        return_immediately: true,
        ..SendMessageConfiguration::default()
    });
    request
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// Opens a stream and reads up to `frames_max` frames of it, keeping their bytes as they came.
async fn read_part(
    to: SocketAddr,
    method: &str,
    params: &serde_json::Value,
    after: Option<u64>,
    frames_max: usize,
) -> (Vec<Frame>, PartEnd) {
    let mut frames = Vec::new();
    let end = match timeout(ANSWER_MAX, open_stream(to, method, params, after)).await {
        Err(_) => PartEnd::Stalled,
        Ok(Err(_)) => PartEnd::Cut,
        Ok(Ok(mut sse)) => loop {
            if frames.len() >= frames_max {
                break PartEnd::Cut;
            }
            let event = match timeout(ANSWER_MAX, sse.next()).await {
                Err(_) => break PartEnd::Stalled,
                Ok(Err(_)) => break PartEnd::Cut,
                Ok(Ok(None)) => break PartEnd::Ended,
                Ok(Ok(Some(event))) => event,
            };
            let envelope: Envelope<'_> = match serde_json::from_str(&event.data) {
                Ok(envelope) => envelope,
                Err(error) => break PartEnd::Refused(format!("no envelope: {error}")),
            };
            let number = event.id.as_deref().and_then(|id| id.parse().ok());
            match (envelope.result, number) {
                (Some(result), Some(number)) => frames.push(Frame {
                    number,
                    json: result.get().to_owned(),
                }),
                _ => break PartEnd::Refused(refusal(envelope.error, &event.data)),
            }
        },
    };
    (frames, end)
}

fn refusal(error: Option<&RawValue>, whole: &str) -> String {
    let error: Option<serde_json::Value> =
        error.and_then(|error| serde_json::from_str(error.get()).ok());
    match error {
        Some(error) => format!(
            "{}: {}",
            error["data"][0]["reason"].as_str().unwrap_or("?"),
            error["message"].as_str().unwrap_or("?")
        ),
        None => format!("a frame without result or number: {whole}"),
    }
}

async fn open_stream(
    to: SocketAddr,
    method: &str,
    params: &serde_json::Value,
    after: Option<u64>,
) -> Result<SseReader, Broken> {
    let after = after.map(|after| after.to_string());
    let mut headers = vec![
        ("content-type", "application/json"),
        ("a2a-version", "1.0"),
        ("accept", "text/event-stream"),
    ];
    if let Some(after) = &after {
        headers.push(("last-event-id", after));
    }
    let body = json!({"jsonrpc": "2.0", "id": "r1", "method": method, "params": params});
    let body = body.to_string();
    let open = http::open(to, Method::POST, "/", &headers, body).await?;
    Ok(SseReader::new(open))
}

/// The task and context that a frame is about.
fn names(json: &str) -> Option<(String, String)> {
    let frame: serde_json::Value = serde_json::from_str(json).ok()?;
    let (id, about) = match frame.get("task") {
        Some(task) => (task.get("id")?, task),
        None => {
            let update = frame.get("statusUpdate").or(frame.get("artifactUpdate"))?;
            (update.get("taskId")?, update)
        }
    };
    let context_id = about.get("contextId")?;
    Some((id.as_str()?.to_owned(), context_id.as_str()?.to_owned()))
}

/// The state that a frame tells.
fn state(json: &str) -> Option<TaskState> {
    match serde_json::from_str(json).ok()? {
        a2ad_proto::StreamResponse::Task(task) => Some(task.status.state),
        a2ad_proto::StreamResponse::StatusUpdate(update) => Some(update.status.state),
        a2ad_proto::StreamResponse::ArtifactUpdate(_) | a2ad_proto::StreamResponse::Message(_) => {
            None
        }
    }
}
