//! What 0.3 calls resources, and what a request's checks are about.

use super::raw::Read;
use crate::Violations;

/// What lies between the two ids of a configuration's name.
const BETWEEN: &str = "/pushNotificationConfigs/";

/// The id in `tasks/{id}`.
pub(super) fn task_id(name: &str) -> Read<String> {
    let id = name.strip_prefix("tasks/").filter(|id| !id.contains('/'));
    id.map(str::to_owned)
        .ok_or_else(|| Violations::one("", "expected tasks/{id}"))
}

/// The ids in `tasks/{task}/pushNotificationConfigs/{id}`, either of which may be missing: clients leave out what
/// has no name yet.
pub(super) fn config_id(name: &str) -> Read<(String, String)> {
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

/// The name of a task.
pub(super) fn task_name(id: &str) -> String {
    format!("tasks/{id}")
}

/// The name of a configuration.
pub(super) fn config_name(task: &str, id: &str) -> String {
    format!("tasks/{task}{BETWEEN}{id}")
}

/// What the client calls what the checks of a send are about.
pub(super) struct SendNames {
    pub(super) message: &'static str,
    pub(super) parts: &'static str,
    pub(super) push: &'static str,
}

impl SendNames {
    /// The names in the schema's JSON.
    pub(super) const PROTO: Self = Self {
        message: "message",
        parts: "content",
        push: "pushNotification",
    };

    /// The names in JSON-RPC.
    pub(super) const KINDS: Self = Self {
        message: "message",
        parts: "parts",
        push: "pushNotificationConfig",
    };

    /// Puts them in place of those of 1.0.
    pub(super) fn put_into(&self, mut wrong: Violations) -> Violations {
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

/// Puts the names of 0.3 in place of those that the checks of a configuration have. `around` is the member that it
/// is in.
pub(super) fn push_names(around: &str, mut wrong: Violations) -> Violations {
    for violation in &mut wrong.0 {
        let field = violation.field.replace(".scheme", ".schemes");
        if field != "taskId" {
            violation.field = format!("{around}.{field}");
        }
    }
    wrong
}
