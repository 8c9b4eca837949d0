//! What clients ask for.

use super::message::Message;
use super::push::PushNotificationConfig;
use crate::Metadata;
use crate::v03::Dialect;
use crate::wire::message;

message! {
    #[derive(Clone, Default, PartialEq, Eq)]
    pub struct SendMessageRequest from Request of V03 {
        pub request: Option<Message> = 1 "message",
        pub configuration: Option<SendMessageConfiguration> = 2 "configuration",
        pub metadata: Option<Metadata> = 3 "metadata",
    }
}

message! {
    #[derive(Clone, Default, PartialEq, Eq)]
    pub struct SendMessageConfiguration of V03 {
        pub accepted_output_modes: Vec<String> = 1 "acceptedOutputModes" [crate::SendMessageConfiguration::OUTPUT_MODES_MAX],
        pub push_notification: Option<PushNotificationConfig> = 2 "pushNotification",
        pub history_length: i32 = 3 "historyLength",
        pub blocking: bool = 4 "blocking",
    }
}

impl SendMessageRequest {
    pub(in crate::v03) fn of(request: &crate::SendMessageRequest, dialect: Dialect) -> Self {
        let message = request.message.as_ref();
        // Always there: without it some agents do not wait.
        let default = crate::SendMessageConfiguration::default();
        let configuration = request.configuration.as_ref().unwrap_or(&default);
        Self {
            request: message.map(|message| Message::of(message, dialect)),
            configuration: Some(SendMessageConfiguration::of(configuration)),
            metadata: request.metadata.clone(),
        }
    }
}

impl SendMessageConfiguration {
    fn of(configuration: &crate::SendMessageConfiguration) -> Self {
        let push = configuration.task_push_notification_config.as_ref();
        Self {
            accepted_output_modes: configuration.accepted_output_modes.clone(),
            push_notification: push.map(PushNotificationConfig::of),
            history_length: configuration.history_length.unwrap_or_default(),
            blocking: !configuration.return_immediately,
        }
    }
}
