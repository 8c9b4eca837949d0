//! The methods of the protocol, and what each generation calls them.

use crate::version::Spoken;

/// A method, by its name in protocol 1.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    SendMessage,
    SendStreamingMessage,
    GetTask,
    ListTasks,
    CancelTask,
    SubscribeToTask,
    CreateTaskPushNotificationConfig,
    GetTaskPushNotificationConfig,
    ListTaskPushNotificationConfigs,
    DeleteTaskPushNotificationConfig,
    GetExtendedAgentCard,
}

impl Method {
    pub(crate) const ALL: [Self; 11] = [
        Self::SendMessage,
        Self::SendStreamingMessage,
        Self::GetTask,
        Self::ListTasks,
        Self::CancelTask,
        Self::SubscribeToTask,
        Self::CreateTaskPushNotificationConfig,
        Self::GetTaskPushNotificationConfig,
        Self::ListTaskPushNotificationConfigs,
        Self::DeleteTaskPushNotificationConfig,
        Self::GetExtendedAgentCard,
    ];

    /// The method of that name in 1.0; names are case-sensitive.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }

    /// The method of that name over JSON-RPC, and which generation speaks so (DUAL-02).
    pub(crate) fn spoken(name: &str) -> Option<(Self, Spoken)> {
        if let Some(method) = Self::named(name) {
            return Some((method, Spoken::V10));
        }
        let method = match name {
            "message/send" => Self::SendMessage,
            // The second is in the documents of servers that we stand in for.
            "message/stream" | "message/sendStream" => Self::SendStreamingMessage,
            "tasks/get" => Self::GetTask,
            // 0.3 has it over HTTP+JSON alone.
            "tasks/list" => Self::ListTasks,
            "tasks/cancel" => Self::CancelTask,
            "tasks/resubscribe" => Self::SubscribeToTask,
            "tasks/pushNotificationConfig/set" => Self::CreateTaskPushNotificationConfig,
            "tasks/pushNotificationConfig/get" => Self::GetTaskPushNotificationConfig,
            "tasks/pushNotificationConfig/list" => Self::ListTaskPushNotificationConfigs,
            "tasks/pushNotificationConfig/delete" => Self::DeleteTaskPushNotificationConfig,
            "agent/getAuthenticatedExtendedCard" | "agent/authenticatedExtendedCard" => {
                Self::GetExtendedAgentCard
            }
            // From between the generations.
            "StreamMessage" => return Some((Self::SendStreamingMessage, Spoken::Both)),
            _ => return None,
        };
        Some((method, Spoken::V03))
    }

    /// The method of that name of the gRPC service of 0.3, which has no list of tasks.
    pub(crate) fn named_in_v03_service(name: &str) -> Option<Self> {
        match name {
            "TaskSubscription" => Some(Self::SubscribeToTask),
            "ListTaskPushNotificationConfig" => Some(Self::ListTaskPushNotificationConfigs),
            "GetAgentCard" => Some(Self::GetExtendedAgentCard),
            _ => Self::named(name).filter(|method| {
                !matches!(
                    method,
                    Self::SubscribeToTask
                        | Self::ListTaskPushNotificationConfigs
                        | Self::GetExtendedAgentCard
                        | Self::ListTasks
                )
            }),
        }
    }

    /// Its name on the wire, in 1.0.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::SendMessage => "SendMessage",
            Self::SendStreamingMessage => "SendStreamingMessage",
            Self::GetTask => "GetTask",
            Self::ListTasks => "ListTasks",
            Self::CancelTask => "CancelTask",
            Self::SubscribeToTask => "SubscribeToTask",
            Self::CreateTaskPushNotificationConfig => "CreateTaskPushNotificationConfig",
            Self::GetTaskPushNotificationConfig => "GetTaskPushNotificationConfig",
            Self::ListTaskPushNotificationConfigs => "ListTaskPushNotificationConfigs",
            Self::DeleteTaskPushNotificationConfig => "DeleteTaskPushNotificationConfig",
            Self::GetExtendedAgentCard => "GetExtendedAgentCard",
        }
    }

    /// Whether it answers with a stream.
    pub(crate) const fn streams(self) -> bool {
        matches!(self, Self::SendStreamingMessage | Self::SubscribeToTask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_is_found_by_its_name_only() {
        for method in Method::ALL {
            assert_eq!(Method::named(method.name()), Some(method));
            assert_eq!(Method::spoken(method.name()), Some((method, Spoken::V10)));
            assert_eq!(Method::named(&method.name().to_lowercase()), None);
        }
        assert_eq!(Method::named(""), None);
        for name in [
            "",
            "message/",
            "Message/send",
            "tasks/get ",
            "tasks/pushNotificationConfig",
        ] {
            assert_eq!(Method::spoken(name), None, "{name}");
        }
    }

    /// V03-01, C-01: every method has a name with a slash, some two.
    #[test]
    fn a_slash_is_of_0_3() {
        use Method as M;
        for (name, method) in [
            ("message/send", M::SendMessage),
            ("message/stream", M::SendStreamingMessage),
            ("message/sendStream", M::SendStreamingMessage),
            ("tasks/get", M::GetTask),
            ("tasks/list", M::ListTasks),
            ("tasks/cancel", M::CancelTask),
            ("tasks/resubscribe", M::SubscribeToTask),
            (
                "tasks/pushNotificationConfig/set",
                M::CreateTaskPushNotificationConfig,
            ),
            (
                "tasks/pushNotificationConfig/get",
                M::GetTaskPushNotificationConfig,
            ),
            (
                "tasks/pushNotificationConfig/list",
                M::ListTaskPushNotificationConfigs,
            ),
            (
                "tasks/pushNotificationConfig/delete",
                M::DeleteTaskPushNotificationConfig,
            ),
            (
                "agent/getAuthenticatedExtendedCard",
                M::GetExtendedAgentCard,
            ),
            ("agent/authenticatedExtendedCard", M::GetExtendedAgentCard),
        ] {
            assert_eq!(Method::spoken(name), Some((method, Spoken::V03)), "{name}");
        }
        let between = Some((M::SendStreamingMessage, Spoken::Both));
        assert_eq!(Method::spoken("StreamMessage"), between);
    }

    /// DUAL-04.
    #[test]
    fn the_service_of_0_3_has_ten_methods_under_its_own_names() {
        let names = [
            "SendMessage",
            "SendStreamingMessage",
            "GetTask",
            "CancelTask",
            "TaskSubscription",
            "CreateTaskPushNotificationConfig",
            "GetTaskPushNotificationConfig",
            "ListTaskPushNotificationConfig",
            "GetAgentCard",
            "DeleteTaskPushNotificationConfig",
        ];
        for name in names {
            assert!(Method::named_in_v03_service(name).is_some(), "{name}");
        }
        for name in [
            "ListTasks",
            "SubscribeToTask",
            "ListTaskPushNotificationConfigs",
            "GetExtendedAgentCard",
            "message/send",
        ] {
            assert_eq!(Method::named_in_v03_service(name), None, "{name}");
        }
    }
}
