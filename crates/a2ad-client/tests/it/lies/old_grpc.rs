//! Agents that know protocol 0.3 only, over gRPC.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use a2ad_client::{Binding, Client, text};
use a2ad_proto::v03::{self, Dialect};
use a2ad_proto::{
    AgentCard, AgentInterface, ErrorKind, ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse, ListTasksRequest, SendMessageResponse, StreamResponse,
    Task, TaskPushNotificationConfig, TaskState, TaskStatusUpdateEvent,
};
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

use super::soon;

type Seen = Arc<Mutex<Vec<(String, Vec<u8>)>>>;
/// Messages, and the status with its text.
type Answer = (Vec<Vec<u8>>, &'static str, &'static str);

/// A server of the 0.3 service that answers by the method's name.
async fn start(answer: fn(&str) -> Answer) -> (SocketAddr, Seen, AbortOnDropHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let to = listener.local_addr().unwrap();
    let seen = Seen::default();
    let kept = Arc::clone(&seen);
    let serve = async move {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            let kept = Arc::clone(&kept);
            connections.spawn(async move {
                let service = hyper::service::service_fn(move |request: Request<Incoming>| {
                    let kept = Arc::clone(&kept);
                    async move {
                        let path = request.uri().path().to_owned();
                        let body = request.into_body().collect().await.unwrap().to_bytes();
                        let method = path.rsplit('/').next().unwrap_or_default();
                        let (messages, status, words) = answer(method);
                        kept.lock()
                            .unwrap()
                            .push((path.clone(), body[5..].to_vec()));
                        let mut frames: Vec<Result<Frame<Bytes>, Infallible>> = Vec::new();
                        for message in messages {
                            let length = u32::try_from(message.len()).unwrap();
                            let framed = [&[0], &length.to_be_bytes()[..], &message].concat();
                            frames.push(Ok(Frame::data(framed.into())));
                        }
                        let mut trailers = HeaderMap::new();
                        trailers.insert("grpc-status", status.parse().unwrap());
                        trailers.insert("grpc-message", words.parse().unwrap());
                        frames.push(Ok(Frame::trailers(trailers)));
                        let body = StreamBody::new(futures_util::stream::iter(frames));
                        let response = Response::builder();
                        response
                            .header("content-type", "application/grpc")
                            .body(body)
                    }
                });
                let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                let _hung_up = builder
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    };
    #[expect(clippy::disallowed_methods, reason = "aborted when it is dropped")]
    let running = tokio::spawn(serve);
    (to, seen, AbortOnDropHandle::new(running))
}

fn client(to: SocketAddr) -> Client {
    let mut card = AgentCard {
        supported_interfaces: vec![AgentInterface {
            url: to.to_string(),
            protocol_binding: "GRPC".to_owned(),
            protocol_version: "0.3".to_owned(),
            ..Default::default()
        }],
        ..Default::default()
    };
    card.capabilities.streaming = Some(true);
    let builder = Client::builder(&format!("http://{to}")).binding(Binding::Grpc);
    let builder = builder.retries(|it| (it.calls, it.resumes) = (0, 0));
    builder.with_card(card).unwrap()
}

fn task() -> Task {
    let mut task = Task {
        id: "t".to_owned(),
        context_id: "c".to_owned(),
        ..Default::default()
    };
    task.status.state = TaskState::Canceled;
    task
}

fn config() -> TaskPushNotificationConfig {
    TaskPushNotificationConfig {
        id: "c1".to_owned(),
        task_id: "t".to_owned(),
        url: "https://h.example/".to_owned(),
        ..Default::default()
    }
}

/// An agent that does everything right.
fn right(method: &str) -> Answer {
    let mut done = TaskStatusUpdateEvent {
        task_id: "t".to_owned(),
        context_id: "c".to_owned(),
        ..Default::default()
    };
    done.status.state = TaskState::Completed;
    let mut working = task();
    working.status.state = TaskState::Working;
    let one = |bytes| (vec![bytes], "0", "");
    match method {
        "SendMessage" => one(v03::pb::write_sent(
            &SendMessageResponse::Task(task()),
            Dialect::Proto,
        )),
        "GetTask" => one(v03::pb::write_task(&working, Dialect::Proto)),
        "CancelTask" => one(v03::pb::write_task(&task(), Dialect::Proto)),
        "SendStreamingMessage" | "TaskSubscription" => {
            let frames = [
                (StreamResponse::Task(working), false),
                (StreamResponse::StatusUpdate(done), true),
            ];
            let write = |(event, last): &(StreamResponse, bool)| {
                v03::pb::write_event(event, *last, Dialect::Proto)
            };
            (frames.iter().map(write).collect(), "0", "")
        }
        "CreateTaskPushNotificationConfig" | "GetTaskPushNotificationConfig" => {
            one(v03::pb::write_push(&config()))
        }
        "ListTaskPushNotificationConfig" => {
            let page = ListTaskPushNotificationConfigsResponse {
                configs: vec![config()],
                ..Default::default()
            };
            one(v03::pb::write_push_list(&page))
        }
        "DeleteTaskPushNotificationConfig" => one(Vec::new()),
        "GetAgentCard" => {
            let mut card = AgentCard {
                name: "more".to_owned(),
                ..Default::default()
            };
            card.supported_interfaces.push(AgentInterface {
                url: "https://h.example/".to_owned(),
                protocol_binding: "GRPC".to_owned(),
                protocol_version: "0.3".to_owned(),
                ..Default::default()
            });
            one(v03::pb::write_card(&card).unwrap())
        }
        _ => (Vec::new(), "12", "there is no such method"),
    }
}

#[tokio::test]
async fn v03_17_every_operation_has_its_0_3_name_and_message() {
    let (to, seen, _running) = start(right).await;
    let client = client(to);
    let sent = soon(client.send(text("x"))).await.unwrap();
    assert_eq!(sent, SendMessageResponse::Task(task()));
    let state = soon(client.get("t")).await.unwrap().status.state;
    assert_eq!(state, TaskState::Working);
    assert_eq!(soon(client.cancel("t")).await.unwrap(), task());
    let assembly = soon(client.stream(text("x")).finish()).await.unwrap();
    let state = assembly.task().unwrap().status.state;
    assert_eq!(state, TaskState::Completed);
    let assembly = soon(client.subscribe("t").finish()).await.unwrap();
    let state = assembly.task().unwrap().status.state;
    assert_eq!(state, TaskState::Completed);
    let created = soon(client.create_push_config(config())).await.unwrap();
    assert_eq!(created, config());
    let read = soon(client.get_push_config("t", "c1")).await.unwrap();
    assert_eq!(read, config());
    let list = ListTaskPushNotificationConfigsRequest {
        task_id: "t".to_owned(),
        ..Default::default()
    };
    let list = soon(client.list_push_configs(list)).await.unwrap();
    assert_eq!(list.configs, [config()]);
    soon(client.delete_push_config("t", "c1")).await.unwrap();
    let card = soon(client.extended_card()).await.unwrap();
    assert_eq!(card.name, "more");

    let mut seen = seen.lock().unwrap().clone();
    // What is subscribed to is asked for as well.
    let mut got = 0;
    seen.retain(|(path, _)| {
        got += usize::from(path.ends_with("/GetTask"));
        got < 2 || !path.ends_with("/GetTask")
    });
    let paths: Vec<&str> = seen.iter().map(|(path, _)| &**path).collect();
    let methods = [
        "SendMessage",
        "GetTask",
        "CancelTask",
        "SendStreamingMessage",
        "TaskSubscription",
        "CreateTaskPushNotificationConfig",
        "GetTaskPushNotificationConfig",
        "ListTaskPushNotificationConfig",
        "DeleteTaskPushNotificationConfig",
        "GetAgentCard",
    ];
    let expected: Vec<String> = methods
        .iter()
        .map(|method| format!("/a2a.v1.A2AService/{method}"))
        .collect();
    assert_eq!(paths, expected);
    let request = v03::pb::read_send(&seen[0].1, Dialect::Proto).unwrap();
    let message = request.message.unwrap();
    assert_eq!(message.parts[0].as_text(), Some("x"));
    // Said, because agents differ in what they take silence for.
    assert!(!request.configuration.unwrap().return_immediately);
    assert_eq!(v03::pb::read_get(&seen[1].1).unwrap().id, "t");
    assert_eq!(v03::pb::read_push_delete(&seen[8].1).unwrap().id, "c1");
    assert_eq!(v03::pb::read_push_create(&seen[5].1).unwrap(), config());
}

/// V03-24: the name of the error stands before its words.
#[tokio::test]
async fn v03_24_the_words_of_a_status_name_the_error() {
    let (to, _seen, _running) = start(|method| match method {
        "GetTask" => (Vec::new(), "5", "TaskNotFoundError: no such task"),
        "CancelTask" => (Vec::new(), "12", "TaskNotCancelableError: it has ended"),
        _ => (Vec::new(), "12", "not here"),
    })
    .await;
    let client = client(to);
    let kind = |error: a2ad_client::Error| error.kind();
    let got = soon(client.get("t")).await.map_err(kind);
    assert_eq!(got, Err(Some(ErrorKind::TaskNotFound)));
    let canceled = soon(client.cancel("t")).await.map_err(kind);
    assert_eq!(canceled, Err(Some(ErrorKind::TaskNotCancelable)));
    let card = soon(client.extended_card()).await.map_err(kind);
    assert_eq!(card, Err(Some(ErrorKind::UnsupportedOperation)));
    let push = soon(client.create_push_config(config()))
        .await
        .map_err(kind);
    assert_eq!(push, Err(Some(ErrorKind::PushNotificationNotSupported)));
}

/// V03-01: 0.3 lists no tasks over gRPC, and nothing is asked.
#[tokio::test]
async fn v03_01_tasks_are_not_listed_over_grpc() {
    let (to, seen, _running) = start(right).await;
    let error = soon(client(to).list(ListTasksRequest::default())).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("0.3"), "{error}");
    assert!(seen.lock().unwrap().is_empty());
}
