//! From an envelope to a request.

use a2ad_proto::v03::{self, Dialect};
use a2ad_proto::{
    DeleteTaskPushNotificationConfigRequest, GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest, ListTaskPushNotificationConfigsRequest,
    SendMessageRequest, TaskPushNotificationConfig, from_json,
};

use super::envelope::Envelope;
use crate::call::{Request, check_send, metadata_of};
use crate::errors::{Fault, Refusal};
use crate::method::Method;
use crate::version::Generation;

/// What a request asks for.
pub(super) fn read(
    method: Option<Method>,
    generation: Generation,
    envelope: &Envelope<'_>,
) -> Result<Request, Fault> {
    let method = method.ok_or(Refusal::UnknownMethod)?;
    let params = envelope.params()?;
    match generation {
        Generation::V10 => read_v10(method, params)
            .map_err(|fault| fault.expecting_v10(v03::looks_like_v03(params))),
        Generation::V03 => read_v03(method, params),
    }
}

fn read_v10(method: Method, params: &[u8]) -> Result<Request, Fault> {
    Ok(match method {
        Method::SendMessage => Request::Send(send(params)?),
        Method::SendStreamingMessage => Request::Stream(send(params)?),
        Method::GetTask => Request::Get(from_json(params)?),
        Method::ListTasks => Request::List(from_json(params)?),
        Method::CancelTask => Request::Cancel(from_json(params)?),
        Method::SubscribeToTask => Request::Subscribe(from_json(params)?, metadata_of(params)),
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

fn send(params: &[u8]) -> Result<Box<SendMessageRequest>, Fault> {
    let request = Box::new(from_json(params)?);
    check_send(&request, params)?;
    Ok(request)
}

fn read_v03(method: Method, params: &[u8]) -> Result<Request, Fault> {
    const KINDS: Dialect = Dialect::Kinds;
    Ok(match method {
        Method::SendMessage => Request::Send(Box::new(v03::read_send(params, KINDS)?)),
        Method::SendStreamingMessage => Request::Stream(Box::new(v03::read_send(params, KINDS)?)),
        Method::GetTask => Request::Get(v03::read_get(params, KINDS)?),
        Method::ListTasks => Request::List(v03::read_list(params, KINDS)?),
        Method::CancelTask => Request::Cancel(v03::read_cancel(params)?),
        Method::SubscribeToTask => {
            Request::Subscribe(v03::read_subscribe(params)?, metadata_of(params))
        }
        Method::CreateTaskPushNotificationConfig => {
            let request = v03::read_push_create(params, KINDS, None)?;
            Request::push(request.tenant, request.task_id)
        }
        Method::GetTaskPushNotificationConfig => {
            let request = v03::read_push_get(params)?;
            Request::push(request.tenant, request.task_id)
        }
        Method::ListTaskPushNotificationConfigs => {
            let request = v03::read_push_list(params)?;
            Request::push(request.tenant, request.task_id)
        }
        Method::DeleteTaskPushNotificationConfig => {
            let request = v03::read_push_delete(params)?;
            Request::push(request.tenant, request.task_id)
        }
        // It has no parameters.
        Method::GetExtendedAgentCard => {
            Request::ExtendedCard(GetExtendedAgentCardRequest::default())
        }
    })
}
