//! Push notification configurations.

use serde_json::value::RawValue;

use super::Reader;
use super::requests::task_id;
use crate::v03::raw::{Read, integer, members, modern, text, texts, value};
use crate::v03::{Dialect, SCHEMES_MAX};
use crate::{
    AuthenticationInfo, DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest, ListTaskPushNotificationConfigsRequest,
    TaskPushNotificationConfig, Violations,
};

/// What lies between the two ids of a configuration's resource name.
const BETWEEN: &str = "/pushNotificationConfigs/";

impl Reader {
    /// A webhook, whose task is named elsewhere.
    pub(super) fn push_config(self, value: &RawValue) -> Read<TaskPushNotificationConfig> {
        let mut config = TaskPushNotificationConfig::default();
        members(value, |name, value| {
            Ok(Some(match name {
                "id" => {
                    config.id = text(value)?;
                    "id"
                }
                "url" => {
                    config.url = text(value)?;
                    "url"
                }
                "token" => {
                    config.token = text(value)?;
                    "token"
                }
                "authentication" => {
                    config.authentication = authentication(value)?;
                    "authentication"
                }
                _ => return Ok(None),
            }))
        })?;
        Ok(config)
    }

    /// A task and its webhook, in the form of JSON-RPC or of the schema.
    pub(super) fn task_push_config(self, value: &RawValue) -> Read<TaskPushNotificationConfig> {
        let mut config = TaskPushNotificationConfig::default();
        let (mut task, mut id) = (String::new(), String::new());
        let mut named = (String::new(), String::new());
        members(value, |name, value| {
            Ok(Some(match name {
                "taskId" | "task_id" | "parent" => {
                    task = task_id(name, value)?;
                    "taskId"
                }
                "configId" | "config_id" => {
                    id = text(value)?;
                    "configId"
                }
                "name" => {
                    named = resource(&text(value)?)?;
                    "name"
                }
                "pushNotificationConfig" | "push_notification_config" => {
                    config = self.push_config(value)?;
                    "pushNotificationConfig"
                }
                "config" => {
                    config = self.task_push_config(value)?;
                    "pushNotificationConfig"
                }
                "url" => return modern("it inside `pushNotificationConfig`"),
                _ => return Ok(None),
            }))
        })?;
        // The outermost name of the task counts, and the innermost of the configuration.
        for said in [named.0, task] {
            if !said.is_empty() {
                config.task_id = said;
            }
        }
        for said in [named.1, id] {
            if config.id.is_empty() {
                config.id = said;
            }
        }
        Ok(config)
    }
}

/// 0.3 lists schemes; 1.0 has room for one.
fn authentication(value: &RawValue) -> Read<Option<AuthenticationInfo>> {
    let mut info = AuthenticationInfo::default();
    members(value, |name, value| {
        Ok(Some(match name {
            "schemes" => {
                let schemes = texts(value, SCHEMES_MAX)?;
                info.scheme = schemes.into_iter().next().unwrap_or_default();
                "schemes"
            }
            "scheme" => return modern("the list `schemes`"),
            "credentials" => {
                info.credentials = text(value)?;
                "credentials"
            }
            _ => return Ok(None),
        }))
    })?;
    Ok((info != AuthenticationInfo::default()).then_some(info))
}

/// The ids in `tasks/{task}/pushNotificationConfigs/{id}`, either of which may be missing.
fn resource(name: &str) -> Read<(String, String)> {
    if name.is_empty() {
        return Ok(Default::default());
    }
    let ids = name.strip_prefix("tasks/").map(|rest| {
        let (task, id) = rest.split_once(BETWEEN).unwrap_or((rest, ""));
        (task.to_owned(), id.to_owned())
    });
    let ids = ids.filter(|(task, id)| !task.contains('/') && !id.contains('/'));
    let expected = "expected tasks/{id}/pushNotificationConfigs/{id}";
    ids.ok_or_else(|| Violations::one("", expected))
}

/// Reads the parameters of `tasks/pushNotificationConfig/set`, or the body of its HTTP+JSON twin, and checks them.
/// `task` is the task that the path names; the body may name it too, but no other.
///
/// # Errors
/// With every violation found, under the names of 0.3.
pub fn read_push_create(
    json: &[u8],
    dialect: Dialect,
    task: Option<&str>,
) -> Result<TaskPushNotificationConfig, Violations> {
    let reader = Reader::of_requests(dialect);
    let mut config = reader.task_push_config(value(json)?)?;
    if let Some(task) = task {
        if !config.task_id.is_empty() && config.task_id != task {
            return Err(Violations::one("taskId", "is not the one in the path"));
        }
        task.clone_into(&mut config.task_id);
    }
    config.check().map_err(|mut wrong| {
        for violation in &mut wrong.0 {
            let field = violation.field.replace(".scheme", ".schemes");
            if field != "taskId" {
                violation.field = format!("pushNotificationConfig.{field}");
            }
        }
        wrong
    })?;
    Ok(config)
}

/// Reads the parameters of `tasks/pushNotificationConfig/get` and checks them. The configuration's id is empty if
/// the client gives none: it wants the only one there is (V03-11).
///
/// # Errors
/// With every violation found, under the names of 0.3.
pub fn read_push_get(json: &[u8]) -> Result<GetTaskPushNotificationConfigRequest, Violations> {
    let (task_id, id) = named(json)?;
    Ok(GetTaskPushNotificationConfigRequest {
        task_id,
        id,
        ..Default::default()
    })
}

/// Reads the parameters of `tasks/pushNotificationConfig/delete` and checks them.
///
/// # Errors
/// With every violation found, under the names of 0.3.
pub fn read_push_delete(
    json: &[u8],
) -> Result<DeleteTaskPushNotificationConfigRequest, Violations> {
    let (task_id, id) = named(json)?;
    if id.is_empty() {
        return Err(Violations::one("pushNotificationConfigId", "is required"));
    }
    Ok(DeleteTaskPushNotificationConfigRequest {
        task_id,
        id,
        ..Default::default()
    })
}

/// The ids of a task and of its configuration.
fn named(json: &[u8]) -> Read<(String, String)> {
    let (mut task, mut id) = (String::new(), String::new());
    members(value(json)?, |name, value| {
        Ok(Some(match name {
            "id" => {
                task = text(value)?;
                "id"
            }
            "pushNotificationConfigId" | "push_notification_config_id" => {
                id = text(value)?;
                "pushNotificationConfigId"
            }
            "name" => {
                (task, id) = resource(&text(value)?)?;
                "id"
            }
            "taskId" | "task_id" => {
                return modern("`id` for the task and `pushNotificationConfigId`");
            }
            _ => return Ok(None),
        }))
    })?;
    if task.is_empty() {
        return Err(Violations::one("id", "is required"));
    }
    Ok((task, id))
}

/// Reads the parameters of `tasks/pushNotificationConfig/list` and checks them.
///
/// # Errors
/// With every violation found, under the names of 0.3.
pub fn read_push_list(json: &[u8]) -> Result<ListTaskPushNotificationConfigsRequest, Violations> {
    let mut request = ListTaskPushNotificationConfigsRequest::default();
    members(value(json)?, |name, value| {
        Ok(Some(match name {
            "id" | "parent" => {
                request.task_id = task_id(name, value)?;
                "id"
            }
            "pageSize" | "page_size" => {
                request.page_size = integer(value)?;
                "pageSize"
            }
            "pageToken" | "page_token" => {
                request.page_token = text(value)?;
                "pageToken"
            }
            "taskId" | "task_id" => return modern("`id` for the task"),
            _ => return Ok(None),
        }))
    })?;
    if request.task_id.is_empty() {
        return Err(Violations::one("id", "is required"));
    }
    request.check()?;
    Ok(request)
}
