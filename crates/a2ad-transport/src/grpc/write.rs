//! From what the engine answers to messages. The engine speaks JSON, which is what it stores.

use std::time::Duration;

use a2ad_core::engine::{EngineError, Frame};
use a2ad_core::keys::Number;
use a2ad_proto::pb::Message;
use a2ad_proto::{
    ListTasksResponse, Metadata, REPLAY, SendMessageResponse, StreamResponse, Task, from_json,
};
use futures_util::stream::{StreamExt as _, unfold};
use serde::de::DeserializeOwned;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::{Messages, within};
use crate::errors::{Fault, Refusal};
use crate::follow::{Fetched, Follow};
use crate::method::Method;

/// What a call is counted as whose caller stopped waiting.
pub(super) const TOO_LATE: &str = "DEADLINE_EXCEEDED";

/// The answer to such a call. It is gRPC's own, no error of the protocol.
pub(super) fn too_late() -> Status {
    Status::deadline_exceeded("The deadline passed; the task, if there is one, goes on")
}

/// The result of a method that gives one.
pub(super) fn result(method: Method, json: &[u8]) -> Result<Vec<u8>, Fault> {
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
        | Method::GetExtendedAgentCard => {
            let what = format!("{} has no result", method.name());
            Err(EngineError::Internal(what.into()).into())
        }
    }
}

fn encode<T: DeserializeOwned + Message>(json: &[u8]) -> Result<Vec<u8>, Fault> {
    Ok(parse::<T>(json)?.encode_to_vec())
}

fn parse<T: DeserializeOwned>(json: &[u8]) -> Result<T, Fault> {
    from_json(json).map_err(|violations| EngineError::Internal(Box::new(violations)).into())
}

/// A stream being written.
pub(super) struct Writing {
    pub(super) follow: Follow,
    pub(super) replay: bool,
    pub(super) deadline: Option<Instant>,
    /// Either says that the server leaves; which one is first depends on where the stream stood.
    pub(super) leaving: [CancellationToken; 2],
    pub(super) retry_after: Duration,
}

impl Writing {
    /// Its messages, the last of which may be a status that is not OK.
    pub(super) fn into_messages(self) -> Messages {
        unfold(Some(self), |writing| async {
            let mut writing = writing?;
            match writing.next().await? {
                Ok(message) => Some((Ok(message), Some(writing))),
                Err(status) => Some((Err(status), None)),
            }
        })
        .boxed()
    }

    async fn next(&mut self) -> Option<Result<Vec<u8>, Status>> {
        loop {
            if let Some(frame) = self.follow.ready.next() {
                let message = self.message(&frame);
                return Some(message.map_err(|fault| fault.status(self.retry_after)));
            }
            let Some(fetched) = within(self.deadline, self.follow.fetch()).await else {
                return Some(Err(too_late()));
            };
            let fault = match fetched {
                Fetched::Frames => continue,
                Fetched::End { early: true } if self.is_leaving() => Refusal::Stopping.into(),
                Fetched::End { .. } => return None,
                Fetched::Failed(fault) => fault,
            };
            return Some(Err(fault.status(self.retry_after)));
        }
    }

    fn is_leaving(&self) -> bool {
        self.leaving.iter().any(CancellationToken::is_cancelled)
    }

    fn message(&self, frame: &Frame) -> Result<Vec<u8>, Fault> {
        let mut response = parse::<StreamResponse>(&frame.bytes)?;
        if self.replay {
            number(&mut response, frame.number);
        }
        Ok(response.encode_to_vec())
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
