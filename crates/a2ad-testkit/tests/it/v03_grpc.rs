//! gRPC of protocol 0.3 beside that of 1.0.

use a2ad_proto::v03::{self, Dialect};
use a2ad_proto::{
    CancelTaskRequest, GetTaskRequest, Part, PartContent, SendMessageRequest, SendMessageResponse,
    StreamResponse, SubscribeToTaskRequest, Task, TaskState,
};
use a2ad_testkit::client::{at_once, text};
use a2ad_testkit::grpc::{Answer, framed, open};
use a2ad_testkit::harness::{Binding, Harness, StoreKind};

const PROTO: (&str, &str) = ("content-type", "application/grpc");
const DIALECT: Dialect = Dialect::Proto;

async fn server() -> Harness {
    Harness::start(Binding::Grpc, StoreKind::Sqlite).await
}

async fn call(server: &Harness, method: &str, metadata: &[(&str, &str)], body: &[u8]) -> Answer {
    let path = format!("/a2a.v1.A2AService/{method}");
    let metadata = [&[PROTO], metadata].concat();
    let answer = open(server.addr(), &path, &metadata, framed(body)).await;
    answer.unwrap().whole().await.unwrap()
}

fn one(answer: &Answer) -> &[u8] {
    assert_eq!(answer.status().code, 0, "{:?}", answer.status());
    assert_eq!(answer.messages.len(), 1);
    &answer.messages[0]
}

/// A send that waits: over gRPC it has to say so, once it says anything (V03-09).
async fn send(server: &Harness, request: SendMessageRequest) -> Task {
    let body = v03::pb::ask_send(&request, DIALECT);
    let answer = call(server, "SendMessage", &[], &body).await;
    match v03::pb::read_sent(one(&answer), DIALECT).unwrap() {
        SendMessageResponse::Task(task) => task,
        SendMessageResponse::Message(message) => panic!("a task was expected: {message:?}"),
    }
}

/// V03-17, DUAL-04, DUAL-08: both services are there, over the same tasks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dual_04_both_services_are_at_one_port() {
    let server = server().await;
    let older = send(&server, text("echo hi")).await;
    assert_eq!(older.status.state, TaskState::Completed);
    let by_id = GetTaskRequest {
        id: older.id.clone(),
        ..GetTaskRequest::default()
    };
    let newer = server.client.get(by_id.clone()).await.unwrap();
    assert_eq!(newer, older);
    let got = call(&server, "GetTask", &[], &v03::pb::ask_get(&by_id)).await;
    assert_eq!(v03::pb::read_task(one(&got), DIALECT).unwrap(), older);

    let held = server.client.send(at_once(text("hold"))).await.unwrap();
    let cancel = CancelTaskRequest {
        id: held.id.clone(),
        ..CancelTaskRequest::default()
    };
    let canceled = call(&server, "CancelTask", &[], &v03::pb::ask_cancel(&cancel)).await;
    let canceled = v03::pb::read_task(one(&canceled), DIALECT).unwrap();
    assert_eq!(
        (canceled.id, canceled.status.state),
        (held.id, TaskState::Canceled)
    );
}

/// V03-06: `final` is true on the last event and on no other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn v03_06_the_last_message_of_a_stream_says_that_it_is() {
    let server = server().await;
    for (said, end) in [
        ("words one two", TaskState::Completed),
        ("ask what?", TaskState::InputRequired),
    ] {
        let body = v03::pb::ask_send(&text(said), DIALECT);
        let answer = call(&server, "SendStreamingMessage", &[], &body).await;
        assert_eq!(answer.status().code, 0);
        let events: Vec<(StreamResponse, bool)> = answer
            .messages
            .iter()
            .map(|message| v03::pb::read_event(message, DIALECT).unwrap())
            .collect();
        assert!(matches!(events[0], (StreamResponse::Task(_), false)));
        let (last, before) = events.split_last().unwrap();
        let (StreamResponse::StatusUpdate(update), true) = last else {
            panic!("a stream ends with a status: {last:?}");
        };
        assert_eq!(update.status.state, end);
        assert!(before.iter().all(|(_, last)| !last));
    }
}

/// V03-16: the bytes of a file as each SDK has them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn v03_16_bytes_of_files_are_as_the_caller_has_them() {
    let server = server().await;
    let file = Part::from(PartContent::Raw(bytes::Bytes::from_static(
        b"\x00\x01\xfe\xff",
    )));
    for (agent, dialect) in [
        ("grpc-python-asyncio/1.85.1", Dialect::Proto),
        ("grpc-node-js/1.14.0", Dialect::ProtoPlain),
    ] {
        let mut request = text("echo hi");
        let message = request.message.as_mut().unwrap();
        message.parts.push(file.clone());
        let body = v03::pb::ask_send(&request, dialect);
        let answer = call(&server, "SendMessage", &[("user-agent", agent)], &body).await;
        let sent = v03::pb::read_sent(one(&answer), dialect).unwrap();
        let SendMessageResponse::Task(task) = sent else {
            panic!("a task was expected");
        };
        let kept = server.client.get(GetTaskRequest {
            id: task.id.clone(),
            ..GetTaskRequest::default()
        });
        // What is kept is what was meant, and so is what came back.
        for shown in [kept.await.unwrap(), task] {
            assert_eq!(shown.history[0].parts[1].content, file.content, "{agent}");
        }
    }
}

/// V03-12, V03-25: errors by their names, and what is not supported as not implemented.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn v03_25_errors_begin_with_their_names() {
    const INVALID_ARGUMENT: i32 = 3;
    const NOT_FOUND: i32 = 5;
    const FAILED_PRECONDITION: i32 = 9;
    const UNIMPLEMENTED: i32 = 12;
    let server = server().await;
    let ended = send(&server, text("echo hi")).await;
    let task = |id: &str| GetTaskRequest {
        id: id.to_owned(),
        ..GetTaskRequest::default()
    };
    let cancel = CancelTaskRequest {
        id: ended.id.clone(),
        ..CancelTaskRequest::default()
    };
    let subscribe = SubscribeToTaskRequest {
        id: "nobody".to_owned(),
        ..SubscribeToTaskRequest::default()
    };
    let mut more = text("echo more");
    more.message.as_mut().unwrap().task_id.clone_from(&ended.id);
    let mut none = text("");
    none.message.as_mut().unwrap().parts.clear();
    for (method, body, code, name) in [
        (
            "GetTask",
            v03::pb::ask_get(&task("nobody")),
            NOT_FOUND,
            "TaskNotFoundError: ",
        ),
        (
            "CancelTask",
            v03::pb::ask_cancel(&cancel),
            FAILED_PRECONDITION,
            "TaskNotCancelableError: ",
        ),
        (
            "TaskSubscription",
            v03::pb::ask_subscribe(&subscribe),
            NOT_FOUND,
            "TaskNotFoundError: ",
        ),
        (
            "SendMessage",
            v03::pb::ask_send(&more, DIALECT),
            INVALID_ARGUMENT,
            "InvalidParamsError: ",
        ),
        (
            "SendStreamingMessage",
            v03::pb::ask_send(&none, DIALECT),
            INVALID_ARGUMENT,
            "InvalidParamsError: ",
        ),
        (
            "ListTaskPushNotificationConfig",
            {
                let list = a2ad_proto::ListTaskPushNotificationConfigsRequest {
                    task_id: ended.id.clone(),
                    ..Default::default()
                };
                v03::pb::ask_push_list(&list)
            },
            UNIMPLEMENTED,
            "PushNotificationNotSupportedError: ",
        ),
        (
            "GetTask",
            b"\xff".to_vec(),
            INVALID_ARGUMENT,
            "JSONParseError: ",
        ),
    ] {
        let answer = call(&server, method, &[], &body).await;
        let status = answer.status();
        assert_eq!(status.code, code, "{method}: {status:?}");
        assert!(status.message.starts_with(name), "{method}: {status:?}");
        assert!(answer.messages.is_empty(), "{method}");
    }
}

/// The card is a method of the service.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_card_is_asked_for_by_a_method() {
    let server = server().await;
    let answer = call(&server, "GetAgentCard", &[], b"").await;
    let card = v03::pb::read_card(one(&answer)).unwrap();
    assert_eq!(card.name, "obedient");
    let bindings: Vec<&str> = card
        .supported_interfaces
        .iter()
        .map(|interface| interface.protocol_binding.as_str())
        .collect();
    assert_eq!(bindings, ["JSONRPC", "HTTP+JSON", "GRPC"]);
}

/// VER-03, DUAL-02: a version that is not served is refused here too, in the words of 0.3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dual_02_the_service_decides() {
    let server = server().await;
    for version in ["", "0.3", "1.0"] {
        let answer = call(&server, "GetAgentCard", &[("a2a-version", version)], b"").await;
        assert_eq!(answer.status().code, 0, "{version}");
    }
    let answer = call(&server, "GetAgentCard", &[("a2a-version", "2.0")], b"").await;
    let message = answer.status().message;
    assert!(
        message.starts_with("VersionNotSupportedError: "),
        "{message}"
    );
}
