//! From an envelope to a call.

use a2ad_proto::from_json;
use http::request::Parts;

use super::envelope::Envelope;
use crate::call::{Call, Request, opening};
use crate::edge::Mount;
use crate::errors::{Fault, Refusal};
use crate::limits::Limits;
use crate::method::Method;
use crate::{caller, version};

/// Finds out what a request asks for, in the order of OPS-04.
pub(super) fn read(
    mount: &Mount,
    head: &Parts,
    method: Option<Method>,
    envelope: &Envelope<'_>,
    limits: &Limits,
) -> Result<Call, Fault> {
    let caller = caller::identify(head, &mount.agent, limits)?;
    let version::Version::V1 = version::negotiate(&head.headers, head.uri.query())?;
    let method = method.ok_or(Refusal::UnknownMethod)?;
    let params = envelope.params()?;
    let request = match method {
        Method::SendMessage => Request::Send(from_json(params)?),
        Method::SendStreamingMessage => Request::Stream(from_json(params)?, opening(mount, head)?),
        Method::GetTask => Request::Get(from_json(params)?),
        Method::ListTasks => Request::List(from_json(params)?),
        Method::CancelTask => Request::Cancel(from_json(params)?),
        Method::SubscribeToTask => Request::Subscribe(from_json(params)?, opening(mount, head)?),
        Method::CreateTaskPushNotificationConfig
        | Method::GetTaskPushNotificationConfig
        | Method::ListTaskPushNotificationConfigs
        | Method::DeleteTaskPushNotificationConfig => return Err(Refusal::NoPush.into()),
        Method::GetExtendedAgentCard => return Err(Refusal::NoExtendedCard.into()),
    };
    request.note();
    Ok(Call { caller, request })
}
