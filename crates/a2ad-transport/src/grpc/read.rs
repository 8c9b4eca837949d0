//! From a method's message to what it asks for.

use a2ad_proto::pb::{DecodeError, Message};
use a2ad_proto::{
    CancelTaskRequest, DeleteTaskPushNotificationConfigRequest, GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest, GetTaskRequest, ListTaskPushNotificationConfigsRequest,
    ListTasksRequest, SendMessageRequest, SubscribeToTaskRequest, TaskPushNotificationConfig,
};
use http::request::Parts;

use crate::call::{Request, opening};
use crate::edge::Mount;
use crate::errors::{Fault, Refusal};
use crate::method::Method;

/// A message read.
pub(super) enum Asked {
    Send(SendMessageRequest),
    Stream(SendMessageRequest),
    Get(GetTaskRequest),
    List(ListTasksRequest),
    Cancel(CancelTaskRequest),
    Subscribe(SubscribeToTaskRequest),
    /// Something that is not offered, to this tenant.
    Gated(Refusal, String),
}

/// Reads the message of a method.
pub(super) fn decode(method: Method, message: &[u8]) -> Result<Asked, Fault> {
    fn read<T: Message>(message: &[u8]) -> Result<T, Fault> {
        T::decode(message).map_err(|error| match error {
            DecodeError::Malformed(_) => Refusal::NotProtobuf.into(),
            DecodeError::Invalid(violations) => violations.into(),
        })
    }
    use Refusal::{NoExtendedCard, NoPush};
    Ok(match method {
        Method::SendMessage => Asked::Send(read(message)?),
        Method::SendStreamingMessage => Asked::Stream(read(message)?),
        Method::GetTask => Asked::Get(read(message)?),
        Method::ListTasks => Asked::List(read(message)?),
        Method::CancelTask => Asked::Cancel(read(message)?),
        Method::SubscribeToTask => Asked::Subscribe(read(message)?),
        Method::CreateTaskPushNotificationConfig => {
            let request: TaskPushNotificationConfig = read(message)?;
            Asked::Gated(NoPush, request.tenant)
        }
        Method::GetTaskPushNotificationConfig => {
            let request: GetTaskPushNotificationConfigRequest = read(message)?;
            Asked::Gated(NoPush, request.tenant)
        }
        Method::ListTaskPushNotificationConfigs => {
            let request: ListTaskPushNotificationConfigsRequest = read(message)?;
            Asked::Gated(NoPush, request.tenant)
        }
        Method::DeleteTaskPushNotificationConfig => {
            let request: DeleteTaskPushNotificationConfigRequest = read(message)?;
            Asked::Gated(NoPush, request.tenant)
        }
        Method::GetExtendedAgentCard => {
            let request: GetExtendedAgentCardRequest = read(message)?;
            Asked::Gated(NoExtendedCard, request.tenant)
        }
    })
}

impl Asked {
    /// The tenant addressed.
    pub(super) fn tenant(&self) -> &str {
        match self {
            Self::Send(request) | Self::Stream(request) => &request.tenant,
            Self::Get(request) => &request.tenant,
            Self::List(request) => &request.tenant,
            Self::Cancel(request) => &request.tenant,
            Self::Subscribe(request) => &request.tenant,
            Self::Gated(_, tenant) => tenant,
        }
    }

    /// The same as a request to the agent at `mount`.
    pub(super) fn into_request(self, mount: &Mount, head: &Parts) -> Result<Request, Fault> {
        Ok(match self {
            Self::Send(request) => Request::Send(request),
            Self::Stream(request) => Request::Stream(request, opening(mount, head)?),
            Self::Get(request) => Request::Get(request),
            Self::List(request) => Request::List(request),
            Self::Cancel(request) => Request::Cancel(request),
            Self::Subscribe(request) => Request::Subscribe(request, opening(mount, head)?),
            Self::Gated(refusal, _) => return Err(refusal.into()),
        })
    }
}
