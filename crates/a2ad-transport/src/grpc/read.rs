//! From a method's message to what it asks for.

use a2ad_proto::pb::{DecodeError, Message};
use a2ad_proto::v03::Dialect;
use a2ad_proto::{
    DeleteTaskPushNotificationConfigRequest, GetTaskPushNotificationConfigRequest,
    ListTaskPushNotificationConfigsRequest, TaskPushNotificationConfig,
};

use crate::call::Request;
use crate::errors::{Fault, Refusal};
use crate::method::Method;
use crate::tongue::Tongue;

/// Reads the message of a method.
pub(super) fn decode(method: Method, tongue: Tongue, message: &[u8]) -> Result<Request, Fault> {
    let read = match tongue {
        Tongue::V10 => decode_v10(method, message),
        Tongue::V03(dialect) => decode_v03(method, dialect, message),
    };
    read.map_err(|error| match error {
        DecodeError::Malformed(_) => Refusal::NotProtobuf.into(),
        DecodeError::Invalid(violations) => violations.into(),
    })
}

fn decode_v03(method: Method, dialect: Dialect, message: &[u8]) -> Result<Request, DecodeError> {
    use a2ad_proto::v03::pb as read;
    Ok(match method {
        Method::SendMessage => Request::Send(Box::new(read::read_send(message, dialect)?)),
        Method::SendStreamingMessage => {
            Request::Stream(Box::new(read::read_send(message, dialect)?))
        }
        Method::GetTask => Request::Get(read::read_get(message)?),
        Method::CancelTask => Request::Cancel(read::read_cancel(message)?),
        Method::SubscribeToTask => Request::Subscribe(read::read_subscribe(message)?, None),
        Method::CreateTaskPushNotificationConfig => {
            let request = read::read_push_create(message)?;
            Request::push(request.tenant, request.task_id)
        }
        Method::GetTaskPushNotificationConfig => {
            let request = read::read_push_get(message)?;
            Request::push(request.tenant, request.task_id)
        }
        Method::ListTaskPushNotificationConfigs => {
            let request = read::read_push_list(message)?;
            Request::push(request.tenant, request.task_id)
        }
        Method::DeleteTaskPushNotificationConfig => {
            let request = read::read_push_delete(message)?;
            Request::push(request.tenant, request.task_id)
        }
        // It has no parameters; and the service has no list to ask for.
        Method::GetExtendedAgentCard | Method::ListTasks => Request::PublicCard,
    })
}

fn decode_v10(method: Method, message: &[u8]) -> Result<Request, DecodeError> {
    fn read<T: Message>(message: &[u8]) -> Result<T, DecodeError> {
        T::decode(message)
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
