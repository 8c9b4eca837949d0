//! What an agent's owner may choose: docs/policies.md.

mod answers;
mod busy;
mod ends;
mod finished;
mod input;
mod restarts;
mod text;

use a2ad_proto::{Message, Part, SendMessageRequest, StreamResponse, Task, TaskState};
use a2ad_testkit::client::Event;

/// The request under an id that makes a repeat recognisable.
fn unique(mut request: SendMessageRequest, last: u8) -> SendMessageRequest {
    if let Some(message) = &mut request.message {
        message.message_id = format!("0198a5b2-7c1e-7f3a-9d2e-3b1f5c7a9e{last:02x}");
    }
    request
}

fn words(parts: &[Part]) -> String {
    parts.iter().filter_map(Part::as_text).collect()
}

/// The text of the status message.
fn said(task: &Task) -> String {
    let message = task.status.message.as_ref();
    message.map(|it| words(&it.parts)).unwrap_or_default()
}

/// The text of all artifacts.
fn made(task: &Task) -> String {
    let parts = task.artifacts.iter().map(|artifact| words(&artifact.parts));
    parts.collect()
}

fn kinds(events: &[Event]) -> Vec<&'static str> {
    let kind = |event: &Event| match event.response {
        StreamResponse::Task(_) => "task",
        StreamResponse::Message(_) => "message",
        StreamResponse::StatusUpdate(_) => "status",
        StreamResponse::ArtifactUpdate(_) => "artifact",
    };
    events.iter().map(kind).collect()
}

fn states(events: &[Event]) -> Vec<TaskState> {
    let state = |event: &Event| match &event.response {
        StreamResponse::Task(task) => Some(task.status.state),
        StreamResponse::StatusUpdate(update) => Some(update.status.state),
        StreamResponse::Message(_) | StreamResponse::ArtifactUpdate(_) => None,
    };
    events.iter().filter_map(state).collect()
}

/// The messages of the statuses.
fn status_messages(events: &[Event]) -> Vec<&Message> {
    let message = |event| match event {
        &Event {
            response: StreamResponse::StatusUpdate(ref update),
            ..
        } => update.status.message.as_ref(),
        _ => None,
    };
    events.iter().filter_map(message).collect()
}

/// The text of each event of an artifact.
fn pieces(events: &[Event]) -> Vec<String> {
    let piece = |event: &Event| match &event.response {
        StreamResponse::ArtifactUpdate(update) => Some(words(&update.artifact.parts)),
        _ => None,
    };
    events.iter().filter_map(piece).collect()
}
