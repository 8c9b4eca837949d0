//! gRPC on the wire: statuses, details, metadata, deadlines, sizes, and the end of a server.

use a2ad_proto::pb::Message as _;
use a2ad_proto::{
    GetTaskRequest, ListTasksRequest, SendMessageResponse, StreamResponse, SubscribeToTaskRequest,
    Task, TaskState,
};
use a2ad_testkit::client::{at_once, drain, text};
use a2ad_testkit::grpc::{
    Answer, Grpc, Open, REPLAY, Status, UNAVAILABLE, framed, open, path, take_number,
};
use a2ad_testkit::harness::{Binding, Harness, StoreKind};
use a2ad_testkit::http;
use hyper::Method;

pub(crate) const PROTO: (&str, &str) = ("content-type", "application/grpc");
pub(crate) const INVALID_ARGUMENT: i32 = 3;
const DEADLINE_EXCEEDED: i32 = 4;
const NOT_FOUND: i32 = 5;
const FAILED_PRECONDITION: i32 = 9;
pub(crate) const UNIMPLEMENTED: i32 = 12;

pub(crate) async fn server() -> Harness {
    Harness::start(Binding::Grpc, StoreKind::Sqlite).await
}

pub(crate) async fn call(
    server: &Harness,
    method: &str,
    metadata: &[(&str, &str)],
    message: &[u8],
) -> Answer {
    let client = Grpc::new(server.addr());
    client.call(method, metadata, message).await.unwrap()
}

/// Calls with a body that may be anything.
pub(crate) async fn raw(
    server: &Harness,
    method: &str,
    headers: &[(&str, &str)],
    body: impl Into<bytes::Bytes>,
) -> Answer {
    let answer = open(server.addr(), &path(method), headers, body).await;
    answer.unwrap().whole().await.unwrap()
}

fn reason(status: &Status) -> &str {
    let details = status.details.as_ref().expect("an error has details");
    assert_eq!(details["details"][0]["domain"], "a2a-protocol.org");
    details["details"][0]["reason"].as_str().unwrap()
}

/// That an answer is nothing but this error, all of it in the head.
#[track_caller]
pub(crate) fn refused(answer: &Answer, code: i32, why: &str) {
    assert_eq!(answer.http, 200);
    assert_eq!(answer.headers["content-type"], "application/grpc");
    assert!(answer.messages.is_empty() && answer.trailers.is_none());
    let status = answer.status();
    assert_eq!((status.code, reason(&status)), (code, why), "{status:?}");
}

fn by_id(id: &str) -> Vec<u8> {
    GetTaskRequest {
        id: id.to_owned(),
        ..GetTaskRequest::default()
    }
    .encode_to_vec()
}

pub(crate) fn subscribe(id: &str) -> Vec<u8> {
    SubscribeToTaskRequest {
        id: id.to_owned(),
        ..SubscribeToTaskRequest::default()
    }
    .encode_to_vec()
}

pub(crate) fn task_of(answer: &Answer) -> Task {
    match SendMessageResponse::decode(&answer.messages[0]).unwrap() {
        SendMessageResponse::Task(task) => task,
        SendMessageResponse::Message(message) => panic!("{message:?}"),
    }
}

async fn frame(stream: &mut Open) -> StreamResponse {
    let message = stream.next().await.unwrap().expect("another frame");
    StreamResponse::decode(&message).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grpc_01_the_service_has_eleven_methods_and_no_other() {
    let server = server().await;
    for (method, code, why) in [
        ("SendMessage", INVALID_ARGUMENT, "INVALID_PARAMS"),
        ("SendStreamingMessage", INVALID_ARGUMENT, "INVALID_PARAMS"),
        ("GetTask", INVALID_ARGUMENT, "INVALID_PARAMS"),
        ("CancelTask", INVALID_ARGUMENT, "INVALID_PARAMS"),
        ("SubscribeToTask", INVALID_ARGUMENT, "INVALID_PARAMS"),
        (
            "CreateTaskPushNotificationConfig",
            FAILED_PRECONDITION,
            "PUSH_NOTIFICATION_NOT_SUPPORTED",
        ),
        (
            "GetTaskPushNotificationConfig",
            FAILED_PRECONDITION,
            "PUSH_NOTIFICATION_NOT_SUPPORTED",
        ),
        (
            "ListTaskPushNotificationConfigs",
            FAILED_PRECONDITION,
            "PUSH_NOTIFICATION_NOT_SUPPORTED",
        ),
        (
            "DeleteTaskPushNotificationConfig",
            FAILED_PRECONDITION,
            "PUSH_NOTIFICATION_NOT_SUPPORTED",
        ),
        (
            "GetExtendedAgentCard",
            FAILED_PRECONDITION,
            "UNSUPPORTED_OPERATION",
        ),
        ("getTask", UNIMPLEMENTED, "METHOD_NOT_FOUND"),
        ("Explode", UNIMPLEMENTED, "METHOD_NOT_FOUND"),
        ("", UNIMPLEMENTED, "METHOD_NOT_FOUND"),
    ] {
        refused(&call(&server, method, &[], b"").await, code, why);
    }
    let listed = call(&server, "ListTasks", &[], b"").await;
    assert_eq!(listed.status(), Status::default());
    assert_eq!(listed.messages.len(), 1);
    for path in [
        "/",
        "/x",
        "/a2a.v1.A2AService/ListTasks",
        "/lf.a2a.v1.A2AService",
        "/tasks",
    ] {
        let answer = open(server.addr(), path, &[PROTO], framed(b""))
            .await
            .unwrap();
        refused(
            &answer.whole().await.unwrap(),
            UNIMPLEMENTED,
            "METHOD_NOT_FOUND",
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grpc_01_a_stream_has_messages_and_then_a_status() {
    let server = server().await;
    let message = text("words one two").encode_to_vec();
    let answer = call(&server, "SendStreamingMessage", &[], &message).await;
    assert_eq!(answer.headers["content-type"], "application/grpc");
    assert!(!answer.headers.contains_key("grpc-status"));
    assert!(
        !answer.headers.contains_key("a2a-extensions"),
        "none was asked for"
    );
    assert_eq!(answer.trailers.as_ref().unwrap()["grpc-status"], "0");
    let frames: Vec<_> = answer
        .messages
        .iter()
        .map(|message| StreamResponse::decode(message).unwrap())
        .collect();
    assert!(matches!(frames[0], StreamResponse::Task(_)));
    let StreamResponse::StatusUpdate(last) = frames.last().unwrap() else {
        panic!("{frames:?}");
    };
    assert_eq!(last.status.state, TaskState::Completed);
    // Frames are the agent's own unless the caller asks for more.
    for mut frame in frames {
        assert_eq!(take_number(&mut frame), None);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grpc_03_an_error_is_a_status_with_details() {
    let server = server().await;
    let answer = call(&server, "GetTask", &[], &by_id("n\u{f6}pe")).await;
    refused(&answer, NOT_FOUND, "TASK_NOT_FOUND");
    // google.rpc.Status { 5, message, [Any(ErrorInfo { reason, domain, {"taskId": id} })] }
    let entry = b"\x0a\x06taskId\x12\x05n\xc3\xb6pe";
    let info = [
        &b"\x0a\x0eTASK_NOT_FOUND\x12\x10a2a-protocol.org\x1a\x0f"[..],
        entry,
    ]
    .concat();
    let any = [
        &b"\x0a\x28type.googleapis.com/google.rpc.ErrorInfo\x12\x33"[..],
        &info,
    ]
    .concat();
    let message = "Unknown taskId \"n\u{f6}pe\" (expired or never existed).";
    let expected = [
        &b"\x08\x05\x12\x32"[..],
        message.as_bytes(),
        b"\x1a\x5f",
        &any,
    ]
    .concat();
    let engine = base64::engine::general_purpose::STANDARD_NO_PAD;
    let encoded = base64::Engine::encode(&engine, expected);
    assert_eq!(answer.headers["grpc-status-details-bin"], encoded.as_str());
    assert_eq!(
        answer.headers["grpc-message"],
        "Unknown%20taskId%20%22n%C3%B6pe%22%20(expired%20or%20never%20existed)."
    );
    assert_eq!(answer.headers["grpc-status"], "5");
    // Where fields are to blame, they are named.
    let answer = call(&server, "SendMessage", &[], b"").await;
    let details = answer.status().details.unwrap();
    let violation = serde_json::json!({"field": "message", "description": "is required"});
    assert_eq!(details["details"][1]["fieldViolations"][0], violation);
}

/// One code for many conditions: the details tell them apart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grpc_04_errors_of_one_code_differ_in_their_details() {
    let server = server().await;
    let done = server.client.send(text("echo hi")).await.unwrap();
    let old = [("a2a-version", "0.3")];
    for (method, metadata, message, reason) in [
        (
            "GetTask",
            &old[..],
            by_id(&done.id),
            "VERSION_NOT_SUPPORTED",
        ),
        ("CancelTask", &[], by_id(&done.id), "TASK_NOT_CANCELABLE"),
        (
            "SubscribeToTask",
            &[],
            subscribe(&done.id),
            "UNSUPPORTED_OPERATION",
        ),
        (
            "ListTaskPushNotificationConfigs",
            &[],
            Vec::new(),
            "PUSH_NOTIFICATION_NOT_SUPPORTED",
        ),
    ] {
        let answer = call(&server, method, metadata, &message).await;
        refused(&answer, FAILED_PRECONDITION, reason);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stream_11_an_error_before_the_first_frame_is_no_stream() {
    let server = server().await;
    let done = server.client.send(text("echo x")).await.unwrap();
    let answer = call(&server, "SubscribeToTask", &[], &subscribe("nope")).await;
    refused(&answer, NOT_FOUND, "TASK_NOT_FOUND");
    let answer = call(&server, "SubscribeToTask", &[], &subscribe(&done.id)).await;
    refused(&answer, FAILED_PRECONDITION, "UNSUPPORTED_OPERATION");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ver_07_a_version_is_believed_but_not_required() {
    let server = server().await;
    for version in [None, Some(""), Some("1.0"), Some("1.0.7")] {
        let metadata: Vec<_> = version
            .map(|version| ("a2a-version", version))
            .into_iter()
            .collect();
        let answer = call(&server, "ListTasks", &metadata, b"").await;
        assert_eq!(answer.status().code, 0, "{version:?}");
    }
    for version in ["0.3", "1.1", "2.0", "one"] {
        let metadata = [("a2a-version", version)];
        let answer = call(&server, "ListTasks", &metadata, b"").await;
        refused(&answer, FAILED_PRECONDITION, "VERSION_NOT_SUPPORTED");
        let details = answer.status().details.unwrap();
        let supported = &details["details"][0]["metadata"]["supportedVersions"];
        assert_eq!(supported, "1.0, 0.3");
    }
    // Whoever speaks another version is told so, whatever the request looks like (OPS-04).
    let headers = [PROTO, ("a2a-version", "0.3")];
    for body in [&b"junk"[..], &framed(b"\xff"), &framed(b"")] {
        let answer = raw(&server, "GetTask", &headers, body.to_vec()).await;
        refused(&answer, FAILED_PRECONDITION, "VERSION_NOT_SUPPORTED");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ext_05_frames_carry_their_numbers_for_whoever_asks() {
    let server = server().await;
    let mut message = text("burst 3");
    message.metadata = None;
    let both = format!("urn:unknown, {REPLAY}");
    for (requested, numbered) in [
        (REPLAY, true),
        (both.as_str(), true),
        ("urn:unknown", false),
    ] {
        let metadata = [("a2a-extensions", requested)];
        let stream = call(
            &server,
            "SendStreamingMessage",
            &metadata,
            &message.encode_to_vec(),
        )
        .await;
        let echoed = stream
            .headers
            .get("a2a-extensions")
            .map(|it| it.to_str().unwrap());
        assert_eq!(echoed, numbered.then_some(REPLAY), "only what is in use");
        let numbers: Vec<_> = stream
            .messages
            .iter()
            .map(|message| take_number(&mut StreamResponse::decode(message).unwrap()))
            .collect();
        assert!(numbers.iter().all(|number| number.is_some() == numbered));
        assert!(
            !numbered || numbers[0] == Some(1),
            "the task is its first entry"
        );
        assert!(!numbered || numbers.is_sorted_by(|a, b| a < b));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grpc_02_metadata_is_read_like_headers() {
    let server = server().await;
    let message = text("echo hi").encode_to_vec();
    let key = [("idempotency-key", "order-7")];
    let first = task_of(&call(&server, "SendMessage", &key, &message).await);
    let again = task_of(&call(&server, "SendMessage", &key, &message).await);
    assert_eq!(first.id, again.id);
    assert_eq!(server.agent_begun(), 1);
    let answer = call(&server, "SendMessage", &[("idempotency-key", "")], &message).await;
    refused(&answer, INVALID_ARGUMENT, "INVALID_REQUEST");

    let replay = [("last-event-id", "1"), ("a2a-extensions", REPLAY)];
    let answer = call(&server, "SubscribeToTask", &replay, &subscribe(&first.id)).await;
    let mut frame = StreamResponse::decode(&answer.messages[0]).unwrap();
    assert!(take_number(&mut frame) > Some(1), "{frame:?}");
    let answer = call(
        &server,
        "SubscribeToTask",
        &[("last-event-id", "x")],
        &subscribe(&first.id),
    )
    .await;
    refused(&answer, INVALID_ARGUMENT, "INVALID_PARAMS");
    let details = answer.status().details.unwrap();
    assert_eq!(
        details["details"][1]["fieldViolations"][0]["field"],
        "Last-Event-ID"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grpc_05_a_deadline_ends_the_call_and_not_the_task() {
    let server = server().await;
    let late = [("grpc-timeout", "100m")];
    let answer = call(&server, "SendMessage", &late, &text("gate").encode_to_vec()).await;
    assert_eq!(answer.status().code, DEADLINE_EXCEEDED);
    assert!(answer.messages.is_empty() && answer.trailers.is_none());
    let tasks = server
        .client
        .list(ListTasksRequest::default())
        .await
        .unwrap()
        .tasks;
    let [task] = &tasks[..] else {
        panic!("{tasks:?}");
    };
    server.wait_at_gate(&task.id).await;

    let mut stream = Grpc::new(server.addr())
        .open("SubscribeToTask", &late, &subscribe(&task.id))
        .await
        .unwrap();
    assert!(matches!(frame(&mut stream).await, StreamResponse::Task(_)));
    assert_eq!(stream.next().await.unwrap(), None);
    assert_eq!(stream.status().unwrap().code, DEADLINE_EXCEEDED);

    server.agent.open_gate();
    let done = server
        .until(&task.id, |task| task.status.state.is_terminal())
        .await;
    assert_eq!(done.status.state, TaskState::Completed);

    for timeout in ["99999999H", "1M"] {
        let in_time = [("grpc-timeout", timeout)];
        assert_eq!(
            call(&server, "ListTasks", &in_time, b"")
                .await
                .status()
                .code,
            0
        );
    }
    for timeout in ["", "5", "soon", "123456789S"] {
        let answer = call(&server, "ListTasks", &[("grpc-timeout", timeout)], b"").await;
        refused(&answer, INVALID_ARGUMENT, "INVALID_REQUEST");
    }
}

/// When the server stops, a stream ends with a status that says so, and the client goes on after its last frame.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_ends_with_unavailable_when_the_server_stops() {
    let mut server = server().await;
    let task = server.client.send(at_once(text("gate"))).await.unwrap();
    server.wait_at_gate(&task.id).await;
    let metadata = [("a2a-extensions", REPLAY), ("last-event-id", "0")];
    let mut stream = Grpc::new(server.addr())
        .open("SubscribeToTask", &metadata, &subscribe(&task.id))
        .await
        .unwrap();
    let mut seen = vec![take_number(&mut frame(&mut stream).await).unwrap()];
    server.handle_stop();
    while let Some(message) = stream.next().await.unwrap() {
        let mut response = StreamResponse::decode(&message).unwrap();
        seen.push(take_number(&mut response).unwrap());
    }
    let status = stream.status().unwrap();
    assert_eq!((status.code, reason(&status)), (UNAVAILABLE, "UNAVAILABLE"));
    let details = &status.details.as_ref().unwrap()["details"];
    assert_eq!(
        details[1]["@type"],
        "type.googleapis.com/google.rpc.RetryInfo"
    );

    server.restart().await;
    let last = seen[seen.len() - 1];
    let rest = server.client.subscribe(&task.id, Some(last)).await.unwrap();
    server.client.cancel(&task.id).await.unwrap();
    let rest: Vec<_> = drain(rest)
        .await
        .unwrap()
        .iter()
        .map(|event| event.number)
        .collect();
    seen.extend(rest);
    assert!(seen.is_sorted_by(|a, b| a < b), "{seen:?}");
    let whole = server.client.subscribe(&task.id, Some(0)).await.unwrap();
    let whole: Vec<_> = drain(whole)
        .await
        .unwrap()
        .iter()
        .map(|event| event.number)
        .collect();
    assert_eq!(seen, whole, "nothing is lost and nothing comes twice");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_are_counted_by_binding() {
    let server = server().await;
    call(&server, "ListTasks", &[], b"").await;
    call(&server, "GetTask", &[], &by_id("nope")).await;
    call(&server, "Explode", &[], b"").await;
    let answer = http::call(server.addr(), Method::GET, "/metrics", &[], "")
        .await
        .unwrap();
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    for (method, outcome) in [
        ("ListTasks", "ok"),
        ("GetTask", "TASK_NOT_FOUND"),
        ("unknown", "METHOD_NOT_FOUND"),
    ] {
        let counted = text.lines().any(|line| {
            line.starts_with("a2ad_requests_total{")
                && line.contains(r#"binding="grpc""#)
                && line.contains(&format!(r#"method="{method}""#))
                && line.contains(&format!(r#"outcome="{outcome}""#))
        });
        assert!(counted, "{method} {outcome} in\n{text}");
    }
}
