//! From what the engine answers to messages. The engine speaks JSON, which is what it stores.

use std::time::Duration;

use a2ad_core::engine::{EngineError, Frame};
use a2ad_core::keys::Number;
use a2ad_proto::pb::Message;
use a2ad_proto::v03::{self, Dialect};
use a2ad_proto::{ListTasksResponse, Metadata, REPLAY, SendMessageResponse, StreamResponse, Task};
use bytes::Bytes;
use futures_util::stream::unfold;
use serde::de::DeserializeOwned;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::message::PREFIX;
use super::messages::{Messages, append};
use super::within;
use crate::errors::{Fault, Refusal};
use crate::follow::{Fetched, Follow};
use crate::method::Method;
use crate::tongue::{Tongue, parse};

/// What a call is counted as whose caller stopped waiting.
pub(super) const TOO_LATE: &str = "DEADLINE_EXCEEDED";

/// The answer to such a call. It is gRPC's own, no error of the protocol.
pub(super) fn too_late() -> Status {
    Status::deadline_exceeded("The deadline passed; the task, if there is one, goes on")
}

/// From how much on what is ready is sent.
const CHUNK_BYTES: usize = 32 * 1024;

/// The result of a method that gives one.
pub(super) fn result(method: Method, tongue: Tongue, json: &[u8]) -> Result<Bytes, Fault> {
    if let Tongue::V03(dialect) = tongue {
        return result_v03(method, dialect, json);
    }
    match method {
        Method::SendMessage => encode::<SendMessageResponse>(json),
        Method::ListTasks => encode::<ListTasksResponse>(json),
        Method::GetTask | Method::CancelTask => encode::<Task>(json),
        Method::SendStreamingMessage
        | Method::SubscribeToTask
        | Method::CreateTaskPushNotificationConfig
        | Method::GetTaskPushNotificationConfig
        | Method::ListTaskPushNotificationConfigs
        | Method::DeleteTaskPushNotificationConfig
        | Method::GetExtendedAgentCard => Err(no_result(method)),
    }
}

fn result_v03(method: Method, dialect: Dialect, json: &[u8]) -> Result<Bytes, Fault> {
    let message = match method {
        Method::SendMessage => v03::pb::write_sent(&parse(json)?, dialect),
        Method::GetTask | Method::CancelTask => v03::pb::write_task(&parse(json)?, dialect),
        Method::GetExtendedAgentCard => {
            v03::pb::write_card(&parse(json)?).ok_or_else(|| no_result(method))?
        }
        _ => return Err(no_result(method)),
    };
    let mut out = Vec::with_capacity(message.len() + PREFIX);
    append(&mut out, |out| out.extend_from_slice(&message));
    Ok(out.into())
}

fn no_result(method: Method) -> Fault {
    let what = format!("{} has no result", method.name());
    EngineError::Internal(what.into()).into()
}

fn encode<T: DeserializeOwned + Message>(json: &[u8]) -> Result<Bytes, Fault> {
    let message = parse::<T>(json)?;
    // It is shorter than JSON, nearly always.
    let mut out = Vec::with_capacity(json.len());
    append(&mut out, |out| message.encode(out));
    Ok(out.into())
}

/// A stream being written.
pub(super) struct Writing {
    pub(super) follow: Follow,
    pub(super) replay: bool,
    pub(super) tongue: Tongue,
    pub(super) deadline: Option<Instant>,
    /// Either says that the server leaves; which one is first depends on where the stream stood.
    pub(super) leaving: [CancellationToken; 2],
    pub(super) retry_after: Duration,
    /// Why there is no further message, to be said behind those before.
    pub(super) failed: Option<Fault>,
}

impl Writing {
    /// Its messages, the last of which may be a status that is not OK.
    pub(super) fn into_messages(self) -> Messages {
        let stream = unfold(Some(self), |writing| async {
            let mut writing = writing?;
            match writing.next().await? {
                Ok(chunk) => Some((Ok(chunk), Some(writing))),
                Err(status) => Some((Err(status), None)),
            }
        });
        Messages::Many(Box::pin(stream))
    }

    /// All messages at hand in one piece.
    async fn next(&mut self) -> Option<Result<Bytes, Status>> {
        loop {
            if let Some(fault) = self.failed.take() {
                let generation = self.tongue.generation();
                return Some(Err(fault.status_in(generation, self.retry_after)));
            }
            let mut chunk = Vec::new();
            while chunk.len() < CHUNK_BYTES
                && let Some(frame) = self.follow.ready.next()
            {
                match (self.message(&frame), self.tongue) {
                    (Ok(message), Tongue::V10) => append(&mut chunk, |out| message.encode(out)),
                    (Ok(message), Tongue::V03(dialect)) => {
                        let last = self.follow.ends_with(&frame);
                        let message = v03::pb::write_event(&message, last, dialect);
                        append(&mut chunk, |out| out.extend_from_slice(&message));
                    }
                    (Err(fault), _) => {
                        self.failed = Some(fault);
                        break;
                    }
                }
            }
            if !chunk.is_empty() {
                return Some(Ok(chunk.into()));
            }
            if self.failed.is_some() {
                continue;
            }
            let Some(fetched) = within(self.deadline, self.follow.fetch()).await else {
                return Some(Err(too_late()));
            };
            self.failed = match fetched {
                Fetched::Frames => None,
                Fetched::End { early: true } if self.is_leaving() => Some(Refusal::Stopping.into()),
                Fetched::End { .. } => return None,
                Fetched::Failed(fault) => Some(fault),
            };
        }
    }

    fn is_leaving(&self) -> bool {
        self.leaving.iter().any(CancellationToken::is_cancelled)
    }

    fn message(&self, frame: &Frame) -> Result<StreamResponse, Fault> {
        let mut response = parse::<StreamResponse>(&frame.bytes)?;
        if self.replay {
            number(&mut response, frame.number);
        }
        Ok(response)
    }
}

/// Puts a frame's number where its reader finds it.
fn number(response: &mut StreamResponse, number: Number) {
    let metadata = match response {
        StreamResponse::Task(task) => &mut task.metadata,
        StreamResponse::Message(message) => &mut message.metadata,
        StreamResponse::StatusUpdate(update) => &mut update.metadata,
        StreamResponse::ArtifactUpdate(update) => &mut update.metadata,
    };
    let mut map = serde_json::Map::new();
    map.insert(REPLAY.to_owned(), serde_json::json!({ "seq": number.0 }));
    let added = Metadata::from_map(&map);
    *metadata = Some(match metadata {
        Some(metadata) => metadata.merged(&added),
        None => added,
    });
}
