//! What clients were told, in memory for the checker and in a file for people.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::time::Duration;

use a2ad_proto::{Task, TaskState};
use serde_json::{Value, json};

/// Everything that clients were told.
#[derive(Debug, Default)]
pub struct History {
    /// By message id: what was sent, and what became of it.
    pub messages: HashMap<String, Sent>,
    /// By task id.
    pub tasks: HashMap<String, Told>,
    /// Streams, each with all its parts.
    pub streams: Vec<Stream>,
    /// By context id: tasks in the order in which they were begun, each acknowledged before the
    /// next was sent.
    pub contexts: BTreeMap<String, Vec<String>>,
    /// Answers that should not have been given.
    pub surprises: Vec<String>,
    /// How often what was tried.
    pub tried: Tried,
    /// How long after the server was ready again the operations that a kill had cut were answered,
    /// in milliseconds.
    pub resumed_ms: Vec<u64>,
    /// How long calls took that came at a steady rate, in milliseconds.
    pub answered_ms: Vec<u64>,
    /// How soon tasks went on elsewhere after the instance that worked on them was struck.
    pub takeovers: Vec<Takeover>,
    file: Option<BufWriter<File>>,
}

/// A message that was sent.
#[derive(Clone, Debug, Default)]
pub struct Sent {
    /// Its text.
    pub text: String,
    /// The tasks it was acknowledged with; more than one is wrong.
    pub tasks: BTreeSet<String>,
    /// The server refused it for good.
    pub refused: bool,
}

/// What was said about a task.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// Its context.
    pub context_id: String,
    /// The ends that were told; more than one is wrong.
    pub ends: Vec<End>,
    /// A cancel was answered with the task, so it must end CANCELED.
    pub cancel_taken: bool,
}

/// The end of a task, as told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// The state.
    pub state: TaskState,
    /// The text of all its artifacts, by artifact id, where the answer held it.
    pub texts: Option<BTreeMap<String, String>>,
}

/// A stream, from its first frame to wherever it was read, over any number of connections.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// The parts, one per connection.
    pub parts: Vec<Part>,
}

/// What one connection brought.
#[derive(Clone, Debug)]
pub struct Part {
    /// The task.
    pub task: String,
    /// How it was asked for.
    pub opened: Opened,
    /// In the order in which they came.
    pub frames: Vec<Frame>,
    /// The server ended it in good order.
    pub ended: bool,
}

/// How a part of a stream was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opened {
    /// By the message that began the task: everything.
    FromStart,
    /// By SubscribeToTask: the task as it is, then everything after.
    Now,
    /// By `Last-Event-ID`.
    After(u64),
}

/// One frame as received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its number.
    pub number: u64,
    /// The `StreamResponse`, byte for byte.
    pub json: String,
}

/// A task that went on elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Takeover {
    /// The task.
    pub task: String,
    /// How long after its instance was struck.
    pub took: Duration,
    /// How long it may take.
    pub due: Duration,
}

/// How often what was tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tried {
    /// Messages sent again though they had been acknowledged, or twice at once.
    pub repeats: u64,
    /// Calls made again because a kill cut them.
    pub retries: u64,
    /// Streams resumed after a kill or a cut of the client's own.
    pub resumes: u64,
    /// Cancels answered with a task.
    pub cancels: u64,
    /// Further messages taken by a running task.
    pub follow_ups: u64,
    /// Answers to GetTask and ListTasks.
    pub reads: u64,
}

impl History {
    /// A history that is also written to `path`, line by line.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn in_file(path: &Path) -> std::io::Result<Self> {
        Ok(Self {
            file: Some(BufWriter::new(File::create(path)?)),
            ..Self::default()
        })
    }

    /// A message is about to be sent.
    pub fn sending(&mut self, message_id: &str, text: &str) {
        self.messages.insert(
            message_id.to_owned(),
            Sent {
                text: text.to_owned(),
                ..Sent::default()
            },
        );
        self.note(|| json!({"sending": message_id, "text": text}));
    }

    /// The server answered a message with a task.
    pub fn acknowledged(&mut self, message_id: &str, task_id: &str, context_id: &str) {
        let sent = self.messages.entry(message_id.to_owned()).or_default();
        sent.tasks.insert(task_id.to_owned());
        let told = self.tasks.entry(task_id.to_owned()).or_default();
        if told.context_id.is_empty() {
            context_id.clone_into(&mut told.context_id);
        } else if told.context_id != context_id {
            let before = told.context_id.clone();
            self.surprise(format!(
                "task {task_id} was in context {before}, now in {context_id}"
            ));
        }
        self.note(|| json!({"acknowledged": message_id, "task": task_id, "context": context_id}));
    }

    /// The server refused a message for good.
    pub fn refused(&mut self, message_id: &str, reason: &str) {
        self.messages
            .entry(message_id.to_owned())
            .or_default()
            .refused = true;
        self.note(|| json!({"refused": message_id, "reason": reason}));
    }

    /// The server showed a task.
    pub fn shown(&mut self, task: &Task, artifacts: bool) {
        let state = task.status.state;
        self.note(|| json!({"shown": task.id, "state": state.as_str()}));
        if state.is_terminal() {
            self.ended(&task.id, state, artifacts.then(|| texts(task)));
        }
    }

    /// The server said that a task has ended.
    pub fn ended(
        &mut self,
        task_id: &str,
        state: TaskState,
        texts: Option<BTreeMap<String, String>>,
    ) {
        self.note(|| json!({"ended": task_id, "state": state.as_str()}));
        let told = self.tasks.entry(task_id.to_owned()).or_default();
        let end = End { state, texts };
        if !told.ends.contains(&end) {
            told.ends.push(end);
        }
    }

    /// The server answered a cancel with the task.
    pub fn cancel_taken(&mut self, task_id: &str) {
        self.tasks
            .entry(task_id.to_owned())
            .or_default()
            .cancel_taken = true;
        self.tried.cancels += 1;
        self.note(|| json!({"cancel_taken": task_id}));
    }

    /// A client has read a stream as far as it wanted.
    pub fn streamed(&mut self, stream: Stream) {
        self.note(|| {
            let parts: Vec<Value> = stream.parts.iter().map(part_json).collect();
            json!({"stream": parts})
        });
        self.streams.push(stream);
    }

    /// A task goes on elsewhere.
    pub fn taken_over(&mut self, takeover: Takeover) {
        self.note(|| json!({"taken_over": takeover.task, "ms": takeover.took.as_millis()}));
        self.takeovers.push(takeover);
    }

    /// Something was answered that should not have been.
    pub fn surprise(&mut self, what: String) {
        self.note(|| json!({"surprise": what}));
        self.surprises.push(what);
    }

    /// Whether the task's end was told.
    #[must_use]
    pub fn has_ended(&self, task_id: &str) -> bool {
        self.tasks
            .get(task_id)
            .is_some_and(|told| !told.ends.is_empty())
    }

    /// Adds a line to the file.
    pub fn note(&mut self, line: impl FnOnce() -> Value) {
        if let Some(file) = &mut self.file {
            writeln!(file, "{}", line()).expect("the history can be written");
        }
    }

    /// Brings the file up to date.
    pub fn flush(&mut self) {
        if let Some(file) = &mut self.file {
            file.flush().expect("the history can be written");
        }
    }
}

fn part_json(part: &Part) -> Value {
    let frames: Vec<Value> = part
        .frames
        .iter()
        .map(|frame| json!([frame.number, frame.json]))
        .collect();
    json!({
        "task": part.task,
        "opened": format!("{:?}", part.opened),
        "ended": part.ended,
        "frames": frames,
    })
}

/// The text of each artifact of a task.
#[must_use]
pub fn texts(task: &Task) -> BTreeMap<String, String> {
    task.artifacts
        .iter()
        .map(|artifact| {
            let text = artifact
                .parts
                .iter()
                .filter_map(a2ad_proto::Part::as_text)
                .collect();
            (artifact.artifact_id.clone(), text)
        })
        .collect()
}
