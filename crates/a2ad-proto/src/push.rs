//! Push notification configurations.

use std::fmt;

use crate::wire::message;

message! {
    /// A webhook for a task's events.
    #[derive(Clone, Default, PartialEq, Eq)]
    pub struct TaskPushNotificationConfig {
        /// The tenant addressed.
        pub tenant: String = 1 "tenant",
        /// Its name inside the task; the server mints one if empty.
        pub id: String = 2 "id",
        /// The task.
        pub task_id: String = 3 "taskId",
        /// Where to post.
        pub url: String = 4 "url" R,
        /// A secret to hand back with each notification.
        pub token: String = 5 "token",
        /// How to authenticate at the webhook.
        pub authentication: Option<AuthenticationInfo> = 6 "authentication",
    }
}

impl fmt::Debug for TaskPushNotificationConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskPushNotificationConfig")
            .field("tenant", &self.tenant)
            .field("id", &self.id)
            .field("task_id", &self.task_id)
            .field("url", &self.url)
            .field("token", &Masked(&self.token))
            .field("authentication", &self.authentication)
            .finish()
    }
}

message! {
    /// The `Authorization` header of a notification.
    #[derive(Clone, Default, PartialEq, Eq)]
    pub struct AuthenticationInfo {
        /// The scheme, such as `Bearer`.
        pub scheme: String = 1 "scheme" R,
        /// What follows the scheme.
        pub credentials: String = 2 "credentials",
    }
}

impl fmt::Debug for AuthenticationInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthenticationInfo")
            .field("scheme", &self.scheme)
            .field("credentials", &Masked(&self.credentials))
            .finish()
    }
}

/// Shows whether a secret is there, and no more.
struct Masked<'a>(&'a str);

impl fmt::Debug for Masked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "\"\"" } else { "***" })
    }
}

message! {
    /// Asks for one configuration.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct GetTaskPushNotificationConfigRequest {
        /// The tenant addressed.
        pub tenant: String = 1 "tenant",
        /// The task.
        pub task_id: String = 2 "taskId" R,
        /// The configuration.
        pub id: String = 3 "id" R,
    }
}

message! {
    /// Asks to remove one configuration.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct DeleteTaskPushNotificationConfigRequest {
        /// The tenant addressed.
        pub tenant: String = 1 "tenant",
        /// The task.
        pub task_id: String = 2 "taskId" R,
        /// The configuration.
        pub id: String = 3 "id" R,
    }
}

message! {
    /// Asks for all configurations of a task.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct ListTaskPushNotificationConfigsRequest {
        /// The task.
        pub task_id: String = 1 "taskId" R,
        /// How many at most; zero leaves it to the server (PUSH-05).
        pub page_size: i32 = 2 "pageSize",
        /// Where to go on, from the previous answer.
        pub page_token: String = 3 "pageToken",
        /// The tenant addressed.
        pub tenant: String = 4 "tenant",
    }
}

message! {
    /// A page of configurations.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct ListTaskPushNotificationConfigsResponse {
        /// The configurations.
        pub configs: Vec<TaskPushNotificationConfig> = 1 "configs",
        /// Where to go on; empty on the last page.
        pub next_page_token: String = 2 "nextPageToken",
    }
}
