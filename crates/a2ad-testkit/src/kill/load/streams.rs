//! Streams that are read over as many cuts as come, each part wherever there is a server.

use std::net::SocketAddr;
use std::time::Duration;

use a2ad_proto::TaskState;
use hyper::Method;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep, timeout};

use super::super::history::{Frame, Opened, Part, Stream};
use super::shared::{Shared, Up};
use super::{ANSWER_MAX, Client, TRIES_MAX, at_once};
use crate::http::{self, Broken, SseReader};

/// How one part of a stream came to its end.
#[derive(Debug)]
pub(super) enum PartEnd {
    /// In good order.
    Ended,
    /// By a kill, or by the client.
    Cut,
    /// The server refused.
    Refused(String),
    /// Nothing came for too long.
    Stalled,
}

impl PartEnd {
    /// What the end of a part means to a client that bears what it bears. `over`: the end of the
    /// task was shown by an earlier part.
    pub(super) fn for_client(self, shared: &Shared, frames: &[Frame], over: bool) -> Self {
        let bears = shared.bears;
        match self {
            Self::Cut if !bears.broken => Self::Refused("broken".to_owned()),
            Self::Refused(refusal) if bears.unavailable && refusal.starts_with("UNAVAILABLE") => {
                Self::Cut
            }
            Self::Ended if bears.early_ends && !frames.last().map_or(over, tells_the_end) => {
                Self::Cut
            }
            end => end,
        }
    }
}

impl Client {
    /// A streaming send, read to its end over as many cuts as come.
    pub(super) async fn stream(&mut self) {
        let words = if self.dice.chance(30) {
            20 + self.dice.below(40)
        } else {
            self.short()
        };
        let (id, request) = self.new_message(words);
        let mut stream = Stream::default();
        let mut own_cuts = self.dice.below(3);
        let mut cut: Option<Instant> = None;
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
            let asking = Asking::on(method, &params, seen).up_to(frames_max);
            let (frames, end) = asking.read(&self.shared, up).await;
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
                    if let Some(cut) = cut {
                        self.shared.resumed(up, cut);
                    }
                    break;
                }
                PartEnd::Cut => {
                    if frames_max == usize::MAX {
                        cut.get_or_insert_with(Instant::now);
                        self.shared.pause(up).await;
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

    pub(super) fn keep(&mut self, stream: Stream) {
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
    pub(super) async fn watch(&mut self) {
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
            let asking = Asking::on("SubscribeToTask", &params, seen);
            let (frames, end) = asking.read(&self.shared, up).await;
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
                PartEnd::Cut => self.shared.pause(up).await,
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
    pub(super) async fn replay(&mut self) {
        let Some(own) = self.some_own() else { return };
        let up = self.shared.up().await;
        // Every task has at least its first entry.
        let after = self.dice.below(2);
        let params = json!({"id": own.id});
        let asking = Asking::new("SubscribeToTask", &params, Some(after));
        let (frames, end) = asking.read(&self.shared, up).await;
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

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// What is asked for by opening a stream.
pub(super) struct Asking<'a> {
    method: &'a str,
    params: &'a serde_json::Value,
    after: Option<u64>,
    /// The end of the task has been shown by then.
    over: bool,
    frames_max: usize,
}

impl<'a> Asking<'a> {
    pub(super) fn new(method: &'a str, params: &'a serde_json::Value, after: Option<u64>) -> Self {
        Self {
            method,
            params,
            after,
            over: false,
            frames_max: usize::MAX,
        }
    }

    /// To be read on after the last frame that was seen, if there was one.
    pub(super) fn on(method: &'a str, params: &'a serde_json::Value, seen: Option<&Frame>) -> Self {
        Self {
            over: seen.is_some_and(tells_the_end),
            ..Self::new(method, params, seen.map(|frame| frame.number))
        }
    }

    pub(super) fn up_to(self, frames_max: usize) -> Self {
        Self { frames_max, ..self }
    }

    /// Opens the stream and reads it, keeping the frames' bytes as they came.
    async fn read(&self, shared: &Shared, up: Up) -> (Vec<Frame>, PartEnd) {
        self.read_until(shared, up, |_| false).await
    }

    /// The same, but leaves it after a frame that is enough.
    pub(super) async fn read_until(
        &self,
        shared: &Shared,
        up: Up,
        mut enough: impl FnMut(&Frame) -> bool,
    ) -> (Vec<Frame>, PartEnd) {
        let mut frames = Vec::new();
        let reading = self.read_into(up.to, &mut frames, &mut enough);
        let end = shared.while_up(up, reading).await;
        let end = end.unwrap_or(PartEnd::Cut);
        let end = match end {
            PartEnd::Cut if self.was_left(&frames) => PartEnd::Cut,
            end => end.for_client(shared, &frames, self.over),
        };
        (frames, end)
    }

    /// It was the client who had enough.
    fn was_left(&self, frames: &[Frame]) -> bool {
        frames.len() >= self.frames_max
    }

    async fn read_into(
        &self,
        to: SocketAddr,
        frames: &mut Vec<Frame>,
        enough: &mut impl FnMut(&Frame) -> bool,
    ) -> PartEnd {
        let mut sse = match timeout(ANSWER_MAX, self.open(to)).await {
            Err(_) => return PartEnd::Stalled,
            Ok(Err(_)) => return PartEnd::Cut,
            Ok(Ok(sse)) => sse,
        };
        loop {
            if self.was_left(frames) {
                return PartEnd::Cut;
            }
            let event = match timeout(ANSWER_MAX, sse.next()).await {
                Err(_) => return PartEnd::Stalled,
                Ok(Err(_)) => return PartEnd::Cut,
                Ok(Ok(None)) => return PartEnd::Ended,
                Ok(Ok(Some(event))) => event,
            };
            let envelope: Envelope<'_> = match serde_json::from_str(&event.data) {
                Ok(envelope) => envelope,
                Err(error) => return PartEnd::Refused(format!("no envelope: {error}")),
            };
            let number = event.id.as_deref().and_then(|id| id.parse().ok());
            match (envelope.result, number) {
                (Some(result), Some(number)) => {
                    let frame = Frame {
                        number,
                        json: result.get().to_owned(),
                    };
                    let is_enough = enough(&frame);
                    frames.push(frame);
                    if is_enough {
                        return PartEnd::Cut;
                    }
                }
                _ => return PartEnd::Refused(refusal(envelope.error, &event.data)),
            }
        }
    }

    async fn open(&self, to: SocketAddr) -> Result<SseReader, Broken> {
        let after = self.after.map(|after| after.to_string());
        let mut headers = vec![
            ("content-type", "application/json"),
            ("a2a-version", "1.0"),
            ("accept", "text/event-stream"),
        ];
        if let Some(after) = &after {
            headers.push(("last-event-id", after));
        }
        let body =
            json!({"jsonrpc": "2.0", "id": "r1", "method": self.method, "params": self.params});
        let open = http::open(to, Method::POST, "/", &headers, body.to_string()).await?;
        Ok(SseReader::new(open))
    }
}

pub(super) fn tells_the_end(frame: &Frame) -> bool {
    state(&frame.json).is_some_and(TaskState::is_terminal)
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

/// The task and context that a frame is about.
pub(super) fn names(json: &str) -> Option<(String, String)> {
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
pub(super) fn state(json: &str) -> Option<TaskState> {
    match serde_json::from_str(json).ok()? {
        a2ad_proto::StreamResponse::Task(task) => Some(task.status.state),
        a2ad_proto::StreamResponse::StatusUpdate(update) => Some(update.status.state),
        a2ad_proto::StreamResponse::ArtifactUpdate(_) | a2ad_proto::StreamResponse::Message(_) => {
            None
        }
    }
}
