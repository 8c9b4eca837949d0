//! From a path, a query and a body to a request.

use a2ad_proto::v03::{self, Dialect};
use a2ad_proto::{
    CancelTaskRequest, GetExtendedAgentCardRequest, Metadata, SendMessageRequest,
    SubscribeToTaskRequest, TaskPushNotificationConfig, Violations, from_json, is_json,
};
use http::request::Parts;
use serde::de::DeserializeOwned;

use super::query;
use super::route::Route;
use crate::call::{Request, check_send, metadata_of};
use crate::errors::{Fault, Refusal};
use crate::method::Method;
use crate::percent::{Plus, decode};
use crate::tongue::Tongue;

/// What a request asks for. A tenant in the query is for the door to find.
pub(super) fn read(
    head: &Parts,
    target: (Route<'_>, Method),
    tongue: Tongue,
    body: &[u8],
) -> Result<Request, Fault> {
    let query = head.uri.query();
    match tongue {
        Tongue::V10 => read_v10(query, target, body)
            .map_err(|fault| fault.expecting_v10(v03::looks_like_v03(body))),
        Tongue::V03(dialect) => read_v03(query, target, dialect, body),
    }
}

fn read_v10(
    query: Option<&str>,
    (route, method): (Route<'_>, Method),
    body: &[u8],
) -> Result<Request, Fault> {
    Ok(match route {
        Route::Send => Request::Send(send(body)?),
        Route::Stream => Request::Stream(send(body)?),
        Route::Tasks => Request::List(query::list_tasks(query)?),
        Route::Task(task) => {
            let mut request = query::get_task(query)?;
            request.id = id("id", task)?;
            Request::Get(request)
        }
        Route::Cancel(task) => {
            let mut request: CancelTaskRequest = object_or_nothing(body)?;
            request.id = the_id(task, &request.id)?;
            Request::Cancel(request)
        }
        Route::Subscribe(task) => {
            let mut request: SubscribeToTaskRequest = object_or_nothing(body)?;
            request.id = the_id(task, &request.id)?;
            Request::Subscribe(request, metadata_of(body))
        }
        Route::PushConfigs(task) | Route::PushConfig(task, _) => {
            let mut tenant = String::new();
            if method == Method::CreateTaskPushNotificationConfig {
                tenant = object::<TaskPushNotificationConfig>(body)?.tenant;
            }
            Request::push(tenant, id("taskId", task)?)
        }
        Route::ExtendedCard => Request::ExtendedCard(GetExtendedAgentCardRequest::default()),
    })
}

fn send(body: &[u8]) -> Result<Box<SendMessageRequest>, Fault> {
    let request = Box::new(object(body)?);
    check_send(&request, body)?;
    Ok(request)
}

/// The same in 0.3, where most bodies say what the path has said already, or nothing (V03-14, V03-15).
fn read_v03(
    query: Option<&str>,
    (route, method): (Route<'_>, Method),
    dialect: Dialect,
    body: &[u8],
) -> Result<Request, Fault> {
    let wrong = |violations| not_object_or(body, violations);
    let send = || v03::read_send(body, dialect).map(Box::new).map_err(wrong);
    Ok(match route {
        Route::Send => Request::Send(send()?),
        Route::Stream => Request::Stream(send()?),
        Route::Tasks => Request::List(query::list_tasks_v03(query)?),
        Route::Task(task) => {
            let mut request = query::get_task(query)?;
            request.id = id("id", task)?;
            // There it has no presence, so that nothing is the same as none asked for (V03-10).
            request.history_length = request.history_length.filter(|&length| length != 0);
            Request::Get(request)
        }
        Route::Cancel(task) => {
            let (id, metadata) = about_task(task, body)?;
            Request::Cancel(CancelTaskRequest {
                id,
                metadata,
                ..CancelTaskRequest::default()
            })
        }
        Route::Subscribe(task) => {
            let (id, metadata) = about_task(task, body)?;
            let request = SubscribeToTaskRequest {
                id,
                ..SubscribeToTaskRequest::default()
            };
            Request::Subscribe(request, metadata)
        }
        Route::PushConfigs(task) | Route::PushConfig(task, _) => {
            let task = id("taskId", task)?;
            if method == Method::CreateTaskPushNotificationConfig {
                v03::read_push_create(body, dialect, Some(&task)).map_err(wrong)?;
            }
            Request::push(String::new(), task)
        }
        Route::ExtendedCard => Request::ExtendedCard(GetExtendedAgentCardRequest::default()),
    })
}

/// The task that a path of 0.3 names, and the metadata in the body, which may name it again, as itself or as a
/// resource.
fn about_task(segment: &str, body: &[u8]) -> Result<(String, Option<Metadata>), Fault> {
    let id = id("id", segment)?;
    if body.is_empty() {
        return Ok((id, None));
    }
    let named = ["id", "name"];
    let mut members: serde_json::Map<String, serde_json::Value> = object(body)?;
    if !named.iter().any(|name| members.contains_key(*name)) {
        members.insert("id".to_owned(), id.into());
    }
    let request = v03::read_cancel(&a2ad_proto::to_json(&members))?;
    let id = the_id(segment, &request.id)?;
    Ok((id, request.metadata))
}

/// An id in a path. Whether there is such a thing is for the engine to say, whatever the id is.
fn id(field: &str, segment: &str) -> Result<String, Violations> {
    match decode(segment, Plus::Plus) {
        Some(id) => Ok(id.into_owned()),
        None => Err(Violations::one(field, "expected percent-encoded UTF-8")),
    }
}

/// The id in the path, which a body may repeat but not contradict (REST-06).
fn the_id(segment: &str, in_body: &str) -> Result<String, Violations> {
    let id = id("id", segment)?;
    if in_body.is_empty() || in_body == id {
        return Ok(id);
    }
    Err(Violations::one("id", "differs from the id in the path"))
}

/// The body of a request that may do without one (CANCEL-05).
fn object_or_nothing<T: DeserializeOwned>(body: &[u8]) -> Result<T, Fault> {
    object(if body.is_empty() { b"{}" } else { body })
}

fn object<T: DeserializeOwned>(body: &[u8]) -> Result<T, Fault> {
    from_json(body).map_err(|violations| not_object_or(body, violations))
}

/// Why a body could not be read: it is no object, or `violations`. Only what cannot be read is worth this second look.
fn not_object_or(body: &[u8], violations: Violations) -> Fault {
    if std::str::from_utf8(body).is_err() {
        Refusal::NotUtf8.into()
    } else if !is_json(body) {
        Refusal::NotJson.into()
    } else if body.trim_ascii_start().first() != Some(&b'{') {
        Refusal::NotAnObject.into()
    } else {
        violations.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2ad_proto::ErrorKind;

    /// REST-06.
    #[test]
    fn a_body_repeats_the_id_or_says_nothing_of_it() {
        assert_eq!(the_id("a%20b", "").unwrap(), "a b");
        assert_eq!(the_id("a%20b", "a b").unwrap(), "a b");
        for (segment, in_body) in [("a", "b"), ("a%20b", "a%20b"), ("", "b")] {
            let violations = the_id(segment, in_body).unwrap_err();
            assert_eq!(violations.0[0].field, "id");
        }
        assert!(the_id("%zz", "").is_err());
    }

    #[test]
    fn a_body_is_an_object() {
        let kind = |body: &[u8]| object::<CancelTaskRequest>(body).map_err(|fault| fault.kind);
        assert!(kind(b" {} ").is_ok());
        assert_eq!(kind(b"").unwrap_err(), ErrorKind::Parse);
        assert_eq!(kind(b"{").unwrap_err(), ErrorKind::Parse);
        assert_eq!(kind(b"{\"id\":\"\xff\"}").unwrap_err(), ErrorKind::Parse);
        for body in [&b"[]"[..], b"null", b"5", b" \"x\""] {
            assert_eq!(kind(body).unwrap_err(), ErrorKind::InvalidRequest);
        }
        assert_eq!(kind(b"{\"id\":5}").unwrap_err(), ErrorKind::InvalidParams);
        assert!(object_or_nothing::<CancelTaskRequest>(b"").is_ok());
        assert!(object_or_nothing::<CancelTaskRequest>(b"x").is_err());
    }
}
