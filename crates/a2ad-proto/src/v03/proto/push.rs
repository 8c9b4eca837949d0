//! Push notification configurations.

use crate::wire::message;

message! {
    #[derive(Clone, Default, PartialEq, Eq)]
    pub struct PushNotificationConfig of V03 {
        pub id: String = 1 "id",
        pub url: String = 2 "url",
        pub token: String = 3 "token",
        pub authentication: Option<AuthenticationInfo> = 4 "authentication",
    }
}

message! {
    #[derive(Clone, Default, PartialEq, Eq)]
    pub struct AuthenticationInfo of V03 {
        pub schemes: Vec<String> = 1 "schemes" [super::super::SCHEMES_MAX],
        pub credentials: String = 2 "credentials",
    }
}

message! {
    #[derive(Clone, Default, PartialEq, Eq)]
    pub struct TaskPushNotificationConfig of V03 {
        pub name: String = 1 "name",
        pub push_notification_config: Option<PushNotificationConfig> = 2 "pushNotificationConfig",
    }
}

message! {
    #[derive(Clone, Default, PartialEq, Eq)]
    pub struct CreateTaskPushNotificationConfigRequest from Request of V03 {
        pub parent: String = 1 "parent",
        pub config_id: String = 2 "configId",
        pub config: Option<TaskPushNotificationConfig> = 3 "config",
    }
}

message! {
    #[derive(Clone, Default, PartialEq, Eq)]
    pub struct ListTaskPushNotificationConfigResponse of V03 {
        pub configs: Vec<TaskPushNotificationConfig> = 1 "configs",
        pub next_page_token: String = 2 "nextPageToken",
    }
}

impl PushNotificationConfig {
    pub(super) fn of(config: &crate::TaskPushNotificationConfig) -> Self {
        let authentication = config.authentication.as_ref();
        Self {
            id: config.id.clone(),
            url: config.url.clone(),
            token: config.token.clone(),
            authentication: authentication.map(|info| AuthenticationInfo {
                schemes: vec![info.scheme.clone()],
                credentials: info.credentials.clone(),
            }),
        }
    }
}

impl TaskPushNotificationConfig {
    pub(in crate::v03) fn of(config: &crate::TaskPushNotificationConfig) -> Self {
        Self {
            name: format!(
                "tasks/{}/pushNotificationConfigs/{}",
                config.task_id, config.id
            ),
            push_notification_config: Some(PushNotificationConfig::of(config)),
        }
    }
}

impl CreateTaskPushNotificationConfigRequest {
    pub(in crate::v03) fn of(config: &crate::TaskPushNotificationConfig) -> Self {
        Self {
            parent: format!("tasks/{}", config.task_id),
            config_id: config.id.clone(),
            config: Some(TaskPushNotificationConfig::of(config)),
        }
    }
}

impl ListTaskPushNotificationConfigResponse {
    pub(in crate::v03) fn of(page: &crate::ListTaskPushNotificationConfigsResponse) -> Self {
        let configs = page.configs.iter().map(TaskPushNotificationConfig::of);
        Self {
            configs: configs.collect(),
            next_page_token: page.next_page_token.clone(),
        }
    }
}
