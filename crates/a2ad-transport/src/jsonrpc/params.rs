//! From an envelope to a request.

use a2ad_proto::{
    DeleteTaskPushNotificationConfigRequest, GetTaskPushNotificationConfigRequest,
    ListTaskPushNotificationConfigsRequest, TaskPushNotificationConfig, from_json,
};

use super::envelope::Envelope;
use crate::call::Request;
use crate::errors::{Fault, Refusal};
use crate::method::Method;

/// What a request asks for.
pub(super) fn read(method: Option<Method>, envelope: &Envelope<'_>) -> Result<Request, Fault> {
    let method = method.ok_or(Refusal::UnknownMethod)?;
    let params = envelope.params()?;
    Ok(match method {
        Method::SendMessage => Request::Send(Box::new(from_json(params)?)),
        Method::SendStreamingMessage => Request::Stream(Box::new(from_json(params)?)),
        Method::GetTask => Request::Get(from_json(params)?),
        Method::ListTasks => Request::List(from_json(params)?),
        Method::CancelTask => Request::Cancel(from_json(params)?),
        Method::SubscribeToTask => Request::Subscribe(from_json(params)?),
        Method::CreateTaskPushNotificationConfig => {
            let request: TaskPushNotificationConfig = from_json(params)?;
            Request::push(request.tenant, request.task_id)
        }
        Method::GetTaskPushNotificationConfig => {
            let request: GetTaskPushNotificationConfigRequest = from_json(params)?;
            Request::push(request.tenant, request.task_id)
        }
        Method::ListTaskPushNotificationConfigs => {
            let request: ListTaskPushNotificationConfigsRequest = from_json(params)?;
            Request::push(request.tenant, request.task_id)
        }
        Method::DeleteTaskPushNotificationConfig => {
            let request: DeleteTaskPushNotificationConfigRequest = from_json(params)?;
            Request::push(request.tenant, request.task_id)
        }
        Method::GetExtendedAgentCard => Request::ExtendedCard(from_json(params)?),
    })
}
