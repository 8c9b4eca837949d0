//! From a method's message to what it asks for.

use a2ad_proto::pb::{DecodeError, Message};
use a2ad_proto::{
    DeleteTaskPushNotificationConfigRequest, GetTaskPushNotificationConfigRequest,
    ListTaskPushNotificationConfigsRequest, TaskPushNotificationConfig,
};

use crate::call::Request;
use crate::errors::{Fault, Refusal};
use crate::method::Method;

/// Reads the message of a method.
pub(super) fn decode(method: Method, message: &[u8]) -> Result<Request, Fault> {
    fn read<T: Message>(message: &[u8]) -> Result<T, Fault> {
        T::decode(message).map_err(|error| match error {
            DecodeError::Malformed(_) => Refusal::NotProtobuf.into(),
            DecodeError::Invalid(violations) => violations.into(),
        })
    }
    Ok(match method {
        Method::SendMessage => Request::Send(Box::new(read(message)?)),
        Method::SendStreamingMessage => Request::Stream(Box::new(read(message)?)),
        Method::GetTask => Request::Get(read(message)?),
        Method::ListTasks => Request::List(read(message)?),
        Method::CancelTask => Request::Cancel(read(message)?),
        Method::SubscribeToTask => Request::Subscribe(read(message)?, None),
        Method::CreateTaskPushNotificationConfig => {
            let request: TaskPushNotificationConfig = read(message)?;
            Request::push(request.tenant, request.task_id)
        }
        Method::GetTaskPushNotificationConfig => {
            let request: GetTaskPushNotificationConfigRequest = read(message)?;
            Request::push(request.tenant, request.task_id)
        }
        Method::ListTaskPushNotificationConfigs => {
            let request: ListTaskPushNotificationConfigsRequest = read(message)?;
            Request::push(request.tenant, request.task_id)
        }
        Method::DeleteTaskPushNotificationConfig => {
            let request: DeleteTaskPushNotificationConfigRequest = read(message)?;
            Request::push(request.tenant, request.task_id)
        }
        Method::GetExtendedAgentCard => Request::ExtendedCard(read(message)?),
    })
}
