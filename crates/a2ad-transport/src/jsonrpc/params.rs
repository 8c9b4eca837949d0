//! From an envelope to a request.

use a2ad_proto::{TaskPushNotificationConfig, from_json};
use serde::Deserialize;

use super::envelope::Envelope;
use crate::call::{PushRequest, Request};
use crate::errors::{Fault, Refusal};
use crate::method::Method;

/// What the last three methods of push configurations have in common.
#[derive(Default, Deserialize)]
#[serde(default)]
struct OfTask {
    tenant: String,
    #[serde(alias = "task_id", rename = "taskId")]
    task_id: String,
}

/// What a request asks for.
pub(super) fn read(method: Option<Method>, envelope: &Envelope<'_>) -> Result<Request, Fault> {
    let method = method.ok_or(Refusal::UnknownMethod)?;
    let params = envelope.params()?;
    Ok(match method {
        Method::SendMessage => Request::Send(from_json(params)?),
        Method::SendStreamingMessage => Request::Stream(from_json(params)?),
        Method::GetTask => Request::Get(from_json(params)?),
        Method::ListTasks => Request::List(from_json(params)?),
        Method::CancelTask => Request::Cancel(from_json(params)?),
        Method::SubscribeToTask => Request::Subscribe(from_json(params)?),
        Method::CreateTaskPushNotificationConfig => {
            let config: TaskPushNotificationConfig = from_json(params)?;
            Request::Push(PushRequest {
                tenant: config.tenant,
                task_id: config.task_id,
            })
        }
        Method::GetTaskPushNotificationConfig
        | Method::ListTaskPushNotificationConfigs
        | Method::DeleteTaskPushNotificationConfig => {
            let OfTask { tenant, task_id } = from_json(params)?;
            Request::Push(PushRequest { tenant, task_id })
        }
        Method::GetExtendedAgentCard => Request::ExtendedCard(from_json(params)?),
    })
}
