//! What goes over the wire: the protocol's generation decides, and nobody above notices.

use a2ad_proto::pb::{DecodeError, Message};
use a2ad_proto::v03::{self, Dialect};
use a2ad_proto::{
    AgentCard, CancelTaskRequest, DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest, GetTaskPushNotificationConfigRequest, GetTaskRequest,
    ListTaskPushNotificationConfigsRequest, ListTaskPushNotificationConfigsResponse,
    ListTasksRequest, ListTasksResponse, SendMessageRequest, SendMessageResponse, StreamResponse,
    SubscribeToTaskRequest, Task, TaskPushNotificationConfig, Violations, from_json, to_json,
};
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Operation;
use crate::card::read_card;
use crate::error::Error;

/// What an interface speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    /// 1.0.
    Modern,
    /// 0.3; with the dialect that it has where JSON-RPC is not spoken.
    Old(Dialect),
}

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Json,
    Protobuf,
    OldJson(Dialect),
    OldProtobuf(Dialect),
}

impl Wire {
    /// The method's name on JSON-RPC.
    pub(super) const fn method(self, operation: Operation) -> &'static str {
        match (self, operation) {
            (Self::Modern, operation) => operation.name(),
            (Self::Old(_), Operation::SendMessage) => "message/send",
            (Self::Old(_), Operation::SendStreamingMessage) => "message/stream",
            (Self::Old(_), Operation::GetTask) => "tasks/get",
            // 0.3 does not have it; agents may, as ours do.
            (Self::Old(_), Operation::ListTasks) => "tasks/list",
            (Self::Old(_), Operation::CancelTask) => "tasks/cancel",
            (Self::Old(_), Operation::SubscribeToTask) => "tasks/resubscribe",
            (Self::Old(_), Operation::CreatePushConfig) => "tasks/pushNotificationConfig/set",
            (Self::Old(_), Operation::GetPushConfig) => "tasks/pushNotificationConfig/get",
            (Self::Old(_), Operation::ListPushConfigs) => "tasks/pushNotificationConfig/list",
            (Self::Old(_), Operation::DeletePushConfig) => "tasks/pushNotificationConfig/delete",
            (Self::Old(_), Operation::GetExtendedCard) => "agent/getAuthenticatedExtendedCard",
        }
    }

    /// The method's name on gRPC, behind that of the service.
    pub(super) const fn rpc(self, operation: Operation) -> Result<&'static str, Error> {
        match (self, operation) {
            (Self::Old(_), Operation::ListTasks) => {
                Err(Error::invalid("a list of tasks over gRPC of protocol 0.3"))
            }
            (Self::Old(_), Operation::SubscribeToTask) => Ok("TaskSubscription"),
            (Self::Old(_), Operation::ListPushConfigs) => Ok("ListTaskPushNotificationConfig"),
            (Self::Old(_), Operation::GetExtendedCard) => Ok("GetAgentCard"),
            (Self::Modern | Self::Old(_), operation) => Ok(operation.name()),
        }
    }

    /// The service's name on gRPC.
    pub(super) const fn service(self) -> &'static str {
        match self {
            Self::Modern => a2ad_proto::pb::SERVICE,
            Self::Old(_) => v03::pb::SERVICE,
        }
    }

    /// The version as requests name it.
    pub(super) const fn version(self) -> &'static str {
        match self {
            Self::Modern => crate::VERSION,
            Self::Old(_) => v03::VERSION,
        }
    }

    /// The form of what comes over JSON-RPC.
    pub(super) const fn json_rpc(self) -> Form {
        match self {
            Self::Modern => Form::Json,
            Self::Old(_) => Form::OldJson(Dialect::Kinds),
        }
    }

    /// The form of what comes over HTTP+JSON.
    pub(super) const fn http_json(self) -> Form {
        match self {
            Self::Modern => Form::Json,
            Self::Old(dialect) => Form::OldJson(dialect),
        }
    }

    /// The form of what comes over gRPC.
    pub(super) const fn grpc(self) -> Form {
        match self {
            Self::Modern => Form::Protobuf,
            Self::Old(dialect) => Form::OldProtobuf(dialect),
        }
    }
}

/// A request, in whatever form it is asked for.
pub(crate) trait Params: Send + Sync {
    fn write(&self, form: Form) -> Vec<u8>;
}

impl<T: Question> Params for T {
    fn write(&self, form: Form) -> Vec<u8> {
        match form {
            Form::Json => to_json(self),
            Form::Protobuf => self.encode_to_vec(),
            Form::OldJson(dialect) => self.old_json(dialect),
            Form::OldProtobuf(dialect) => self.old_protobuf(dialect),
        }
    }
}

/// What can be asked.
pub(crate) trait Question: Clone + Serialize + Message + Send + Sync {
    fn tenant(&mut self) -> &mut String;
    fn old_json(&self, dialect: Dialect) -> Vec<u8>;
    fn old_protobuf(&self, dialect: Dialect) -> Vec<u8>;
}

macro_rules! questions {
    ($($name:ident: |$it:pat_param, $dialect:pat_param| $json:expr, |$same:pat_param, $form:pat_param| $protobuf:expr;)+) => {$(
        impl Question for $name {
            fn tenant(&mut self) -> &mut String {
                &mut self.tenant
            }

            fn old_json(&self, $dialect: Dialect) -> Vec<u8> {
                let $it = self;
                $json
            }

            fn old_protobuf(&self, $form: Dialect) -> Vec<u8> {
                let $same = self;
                $protobuf
            }
        }
    )+};
}

questions! {
    SendMessageRequest: |it, dialect| v03::ask_send(it, dialect), |it, dialect| v03::pb::ask_send(it, dialect);
    GetTaskRequest: |it, _| v03::ask_get(it), |it, _| v03::pb::ask_get(it);
    // Not asked for over gRPC.
    ListTasksRequest: |it, _| v03::ask_list(it), |_, _| Vec::new();
    CancelTaskRequest: |it, _| v03::ask_cancel(it), |it, _| v03::pb::ask_cancel(it);
    SubscribeToTaskRequest: |it, _| v03::ask_subscribe(it), |it, _| v03::pb::ask_subscribe(it);
    TaskPushNotificationConfig: |it, dialect| v03::ask_push_create(it, dialect), |it, _| v03::pb::ask_push_create(it);
    GetTaskPushNotificationConfigRequest: |it, _| v03::ask_push_get(it), |it, _| v03::pb::ask_push_get(it);
    ListTaskPushNotificationConfigsRequest: |it, _| v03::ask_push_list(it), |it, _| v03::pb::ask_push_list(it);
    DeleteTaskPushNotificationConfigRequest: |it, _| v03::ask_push_delete(it), |it, _| v03::pb::ask_push_delete(it);
    // 0.3 asks for the card without a word.
    GetExtendedAgentCardRequest: |_, _| Vec::new(), |_, _| Vec::new();
}

/// What a call came to.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(super) bytes: Bytes,
    pub(super) form: Form,
}

impl Reply {
    pub(crate) fn read<T: Answer>(&self, what: &str) -> Result<T, Error> {
        T::read(&self.bytes, self.form, what)
    }
}

/// What can be answered.
pub(crate) trait Answer: Sized {
    fn json(bytes: &[u8]) -> Result<Self, Violations>;
    fn protobuf(bytes: &[u8]) -> Result<Self, DecodeError>;
    fn old_json(bytes: &[u8], dialect: Dialect) -> Result<Self, Violations>;
    fn old_protobuf(bytes: &[u8], dialect: Dialect) -> Result<Self, DecodeError>;

    fn read(bytes: &[u8], form: Form, what: &str) -> Result<Self, Error> {
        let json = |read: Result<Self, _>| read.map_err(|why| Error::unexpected(what, &why, bytes));
        let protobuf = |read: Result<Self, _>| {
            read.map_err(|why| Error::not_a2a(format!("{what}: {why}"), ""))
        };
        match form {
            Form::Json => json(Self::json(bytes)),
            Form::Protobuf => protobuf(Self::protobuf(bytes)),
            Form::OldJson(dialect) => json(Self::old_json(bytes, dialect)),
            Form::OldProtobuf(dialect) => protobuf(Self::old_protobuf(bytes, dialect)),
        }
    }
}

fn modern_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Violations> {
    from_json(bytes)
}

macro_rules! answers {
    ($($name:ident: |$bytes:pat_param, $dialect:pat_param| $json:expr, |$same:pat_param, $form:pat_param| $protobuf:expr;)+) => {$(
        impl Answer for $name {
            fn json(bytes: &[u8]) -> Result<Self, Violations> {
                modern_json(bytes)
            }

            fn protobuf(bytes: &[u8]) -> Result<Self, DecodeError> {
                Self::decode(bytes)
            }

            fn old_json($bytes: &[u8], $dialect: Dialect) -> Result<Self, Violations> {
                $json
            }

            fn old_protobuf($same: &[u8], $form: Dialect) -> Result<Self, DecodeError> {
                $protobuf
            }
        }
    )+};
}

answers! {
    Task: |bytes, dialect| v03::read_task(bytes, dialect), |bytes, dialect| v03::pb::read_task(bytes, dialect);
    SendMessageResponse: |bytes, dialect| v03::read_sent(bytes, dialect), |bytes, dialect| v03::pb::read_sent(bytes, dialect);
    // Whether the agent says that nothing follows does not matter: the stream shows it.
    StreamResponse: |bytes, dialect| v03::read_event(bytes, dialect).map(|it| it.0),
        |bytes, dialect| v03::pb::read_event(bytes, dialect).map(|it| it.0);
    ListTasksResponse: |bytes, dialect| v03::read_page(bytes, dialect),
        |_, _| Err(DecodeError::Malformed("a list of tasks, which was not asked for"));
    TaskPushNotificationConfig: |bytes, _| v03::read_push(bytes), |bytes, _| v03::pb::read_push(bytes);
    ListTaskPushNotificationConfigsResponse: |bytes, _| v03::read_pushes(bytes), |bytes, _| v03::pb::read_pushes(bytes);
}

impl Reply {
    /// A card, which is read with good will.
    pub(crate) fn read_card(&self) -> Result<AgentCard, Error> {
        let wrong = |why: DecodeError| Error::not_a2a(format!("the extended card: {why}"), "");
        match self.form {
            Form::Json | Form::OldJson(_) => read_card(&self.bytes),
            Form::Protobuf => AgentCard::decode(&self.bytes).map_err(wrong),
            Form::OldProtobuf(_) => v03::pb::read_card(&self.bytes).map_err(wrong),
        }
    }
}
