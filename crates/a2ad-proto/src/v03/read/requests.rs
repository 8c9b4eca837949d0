//! What clients ask for.

use serde_json::value::RawValue;

use super::Reader;
use super::content::Found;
use crate::v03::Dialect;
use crate::v03::raw::{Read, free, integer, members, modern, read, text, texts, time, value};
use crate::v03::words::AnyState;
use crate::{
    CancelTaskRequest, GetTaskRequest, ListTasksRequest, SendMessageConfiguration,
    SendMessageRequest, SubscribeToTaskRequest, Violations,
};

/// Reads the parameters of `message/send` and `message/stream`, or the body of their HTTP+JSON twins, and checks
/// them.
///
/// # Errors
/// With every violation found, under the names that the client used.
pub fn read_send(json: &[u8], dialect: Dialect) -> Result<SendMessageRequest, Violations> {
    let reader = Reader::of_requests(dialect);
    let proto = dialect.without_presence();
    let mut request = SendMessageRequest::default();
    let mut names = Names {
        message: "message",
        parts: if proto { "content" } else { "parts" },
        push: if proto {
            "pushNotification"
        } else {
            "pushNotificationConfig"
        },
    };
    members(value(json)?, |name, value| {
        Ok(Some(match name {
            "message" | "request" => {
                names.message = if name == "message" {
                    "message"
                } else {
                    "request"
                };
                let Found { message, parts } = reader.message(value)?;
                names.parts = parts;
                request.message = Some(message);
                "message"
            }
            "configuration" => {
                request.configuration = Some(reader.configuration(value, &mut names)?);
                "configuration"
            }
            "metadata" => {
                request.metadata = free(value)?;
                "metadata"
            }
            "tenant" => tenant(value)?,
            _ => return Ok(None),
        }))
    })?;
    request.check().map_err(|wrong| names.put_into(wrong))?;
    Ok(request)
}

/// Another agent than the one that the address means would have to do without being asked.
fn tenant(value: &RawValue) -> Read<&'static str> {
    if text(value)?.is_empty() {
        return Ok("tenant");
    }
    modern("no tenants: the address says which agent is meant")
}

/// What the client calls what the checks are about.
struct Names {
    message: &'static str,
    parts: &'static str,
    push: &'static str,
}

impl Names {
    fn put_into(&self, mut wrong: Violations) -> Violations {
        for violation in &mut wrong.0 {
            let field = &violation.field;
            violation.field = if let Some(rest) = field.strip_prefix("message") {
                let rest = if rest == ".parts" {
                    &format!(".{}", self.parts)
                } else {
                    rest
                };
                format!("{}{rest}", self.message)
            } else if let Some(rest) =
                field.strip_prefix("configuration.taskPushNotificationConfig")
            {
                let rest = rest.replace(".scheme", ".schemes");
                format!("configuration.{}{rest}", self.push)
            } else {
                continue;
            };
            if violation.description == "must be ROLE_USER" {
                "must be user".clone_into(&mut violation.description);
            }
        }
        wrong
    }
}

impl Reader {
    fn configuration(self, value: &RawValue, names: &mut Names) -> Read<SendMessageConfiguration> {
        let mut configuration = SendMessageConfiguration::default();
        let mut blocking = None;
        members(value, |name, value| {
            Ok(Some(match name {
                "acceptedOutputModes" | "accepted_output_modes" => {
                    let most = self.bounds.most(SendMessageConfiguration::OUTPUT_MODES_MAX);
                    configuration.accepted_output_modes = texts(value, most)?;
                    "acceptedOutputModes"
                }
                "historyLength" | "history_length" => {
                    configuration.history_length = self.history_length(value)?;
                    "historyLength"
                }
                "blocking" => {
                    blocking = Some(read(value)?);
                    "blocking"
                }
                "pushNotificationConfig" | "push_notification_config" => {
                    names.push = "pushNotificationConfig";
                    configuration.task_push_notification_config = Some(self.push_config(value)?);
                    "pushNotificationConfig"
                }
                "pushNotification" | "push_notification" => {
                    names.push = "pushNotification";
                    configuration.task_push_notification_config = Some(self.push_config(value)?);
                    "pushNotificationConfig"
                }
                "returnImmediately" | "return_immediately" => {
                    return modern("`blocking`, which says the opposite");
                }
                "taskPushNotificationConfig" | "task_push_notification_config" => {
                    return modern("`pushNotificationConfig`");
                }
                _ => return Ok(None),
            }))
        })?;
        // Where flags have no presence, none is `false` (V03-09).
        let waits = blocking.unwrap_or(!self.dialect.without_presence());
        configuration.return_immediately = !waits;
        Ok(configuration)
    }

    /// Where numbers have no presence, zero is none at all (V03-10).
    pub(super) fn history_length(self, value: &RawValue) -> Read<Option<i32>> {
        let length = integer(value)?;
        let unset = length == 0 && self.dialect.without_presence();
        Ok((!unset).then_some(length))
    }
}

/// Reads the parameters of `tasks/get` and checks them.
///
/// # Errors
/// With every violation found.
pub fn read_get(json: &[u8], dialect: Dialect) -> Result<GetTaskRequest, Violations> {
    let reader = Reader::of_requests(dialect);
    let mut request = GetTaskRequest::default();
    members(value(json)?, |name, value| {
        Ok(Some(match name {
            "id" | "name" => {
                request.id = task_id(name, value)?;
                "id"
            }
            "historyLength" | "history_length" => {
                request.history_length = reader.history_length(value)?;
                "historyLength"
            }
            "tenant" => tenant(value)?,
            _ => return Ok(None),
        }))
    })?;
    request.check()?;
    Ok(request)
}

/// Reads the parameters of `tasks/cancel` and checks them.
///
/// # Errors
/// With every violation found.
pub fn read_cancel(json: &[u8]) -> Result<CancelTaskRequest, Violations> {
    let mut request = CancelTaskRequest::default();
    members(value(json)?, |name, value| {
        Ok(Some(match name {
            "id" | "name" => {
                request.id = task_id(name, value)?;
                "id"
            }
            "metadata" => {
                request.metadata = free(value)?;
                "metadata"
            }
            "tenant" => tenant(value)?,
            _ => return Ok(None),
        }))
    })?;
    request.check()?;
    Ok(request)
}

/// Reads the parameters of `tasks/resubscribe` and checks them.
///
/// # Errors
/// With every violation found.
pub fn read_subscribe(json: &[u8]) -> Result<SubscribeToTaskRequest, Violations> {
    let mut request = SubscribeToTaskRequest::default();
    members(value(json)?, |name, value| {
        Ok(Some(match name {
            "id" | "name" => {
                request.id = task_id(name, value)?;
                "id"
            }
            "tenant" => tenant(value)?,
            _ => return Ok(None),
        }))
    })?;
    request.check()?;
    Ok(request)
}

/// A task by its id or as the resource `tasks/{id}`.
pub(super) fn task_id(name: &str, value: &RawValue) -> Read<String> {
    let text = text(value)?;
    if name != "name" && name != "parent" {
        return Ok(text);
    }
    let id = text.strip_prefix("tasks/").filter(|id| !id.contains('/'));
    id.map(str::to_owned)
        .ok_or_else(|| Violations::one("", "expected tasks/{id}"))
}

/// Reads the parameters of `tasks/list`, which 0.3 does not have and we do (V03-01): those of 1.0, with states and
/// times as 0.3 writes them.
///
/// # Errors
/// With every violation found.
pub fn read_list(json: &[u8], dialect: Dialect) -> Result<ListTasksRequest, Violations> {
    let reader = Reader::of_requests(dialect);
    let mut request = ListTasksRequest::default();
    members(value(json)?, |name, value| {
        Ok(Some(match name {
            "contextId" | "context_id" => {
                request.context_id = text(value)?;
                "contextId"
            }
            "status" => {
                request.status = read::<AnyState>(value)?.0;
                "status"
            }
            "pageSize" | "page_size" => {
                request.page_size = Some(integer(value)?);
                "pageSize"
            }
            "pageToken" | "page_token" => {
                request.page_token = text(value)?;
                "pageToken"
            }
            "historyLength" | "history_length" => {
                request.history_length = reader.history_length(value)?;
                "historyLength"
            }
            "statusTimestampAfter"
            | "status_timestamp_after"
            | "lastUpdatedAfter"
            | "last_updated_after" => {
                request.status_timestamp_after = Some(time(value)?);
                "statusTimestampAfter"
            }
            "includeArtifacts" | "include_artifacts" => {
                request.include_artifacts = Some(read(value)?);
                "includeArtifacts"
            }
            "tenant" => tenant(value)?,
            _ => return Ok(None),
        }))
    })?;
    request.check()?;
    Ok(request)
}
