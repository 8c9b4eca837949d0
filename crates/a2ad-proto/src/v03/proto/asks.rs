//! Requests that name resources. On the other bindings their content is elsewhere.

use crate::wire::message;

message! {
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct GetTaskRequest of V03 {
        pub name: String = 1 "name",
        pub history_length: i32 = 2 "historyLength",
    }
}

message! {
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct CancelTaskRequest of V03 {
        pub name: String = 1 "name",
    }
}

message! {
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct TaskSubscriptionRequest of V03 {
        pub name: String = 1 "name",
    }
}

message! {
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct GetTaskPushNotificationConfigRequest of V03 {
        pub name: String = 1 "name",
    }
}

message! {
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct DeleteTaskPushNotificationConfigRequest of V03 {
        pub name: String = 1 "name",
    }
}

message! {
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct ListTaskPushNotificationConfigRequest of V03 {
        pub parent: String = 1 "parent",
        pub page_size: i32 = 2 "pageSize",
        pub page_token: String = 3 "pageToken",
    }
}
