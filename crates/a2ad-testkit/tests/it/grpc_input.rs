//! What may come over gRPC and what may not: sizes, empty ids, malformed and foreign requests.

use a2ad_proto::ListTasksRequest;
use a2ad_proto::pb::Message as _;
use a2ad_testkit::client::text;
use a2ad_testkit::grpc::{framed, open, path};
use a2ad_testkit::http;
use hyper::Method;

use crate::grpc::{
    INVALID_ARGUMENT, PROTO, UNIMPLEMENTED, call, raw, refused, server, subscribe, task_of,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grpc_06_an_empty_id_is_a_missing_one() {
    let server = server().await;
    for method in ["GetTask", "CancelTask", "SubscribeToTask"] {
        for message in [&b""[..], b"\x12\x00"] {
            let answer = call(&server, method, &[], message).await;
            refused(&answer, INVALID_ARGUMENT, "INVALID_PARAMS");
            let details = answer.status().details.unwrap();
            assert_eq!(details["details"][1]["fieldViolations"][0]["field"], "id");
        }
    }
    let mut request = text("echo x");
    request.message.as_mut().unwrap().task_id = String::new();
    assert_eq!(
        call(&server, "SendMessage", &[], &request.encode_to_vec())
            .await
            .status()
            .code,
        0
    );
}

/// Whatever is sent, the server answers with a status, stays up, and writes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_input() {
    let server = server().await;
    let send = text("echo hi").encode_to_vec();
    let framed_send = framed(&send);
    let mut two = framed_send.clone();
    two.extend_from_slice(&framed_send);
    let mut flagged = framed_send.clone();
    flagged[0] = 2;
    let bodies: Vec<Vec<u8>> = vec![
        Vec::new(),
        b"\0".to_vec(),
        framed_send[..framed_send.len() - 1].to_vec(),
        [&framed_send[..], b"x"].concat(),
        two,
        flagged,
        b"\0\xff\xff\xff\xff".to_vec(),
        framed(b"\xff\xff"),
        framed(b"\x12\x03\x0a\x05x"),
        framed(b"\x12\x03\x0a\x01\xff"),
        framed(br#"{"message":{}}"#),
    ];
    for method in ["SendMessage", "SendStreamingMessage"] {
        for body in &bodies {
            let answer = raw(&server, method, &[PROTO], body.clone()).await;
            refused(&answer, INVALID_ARGUMENT, "PARSE_ERROR");
        }
        // Well-formed, but a part says nothing, or a role is nobody's.
        for (message, field) in [
            (
                &b"\x12\x07\x0a\x01m\x20\x01\x2a\x00"[..],
                "message.parts[0]",
            ),
            (b"\x12\x05\x0a\x01m\x20\x09", "message.role"),
        ] {
            let answer = call(&server, method, &[], message).await;
            refused(&answer, INVALID_ARGUMENT, "INVALID_PARAMS");
            let details = answer.status().details.unwrap();
            assert_eq!(details["details"][1]["fieldViolations"][0]["field"], field);
        }
    }
    let mut compressed = framed_send.clone();
    compressed[0] = 1;
    for (header, body) in [
        (("grpc-encoding", "identity"), &compressed),
        (("grpc-encoding", "gzip"), &compressed),
        (("grpc-encoding", "gzip"), &framed_send),
        (("content-encoding", "gzip"), &framed_send),
    ] {
        let answer = raw(&server, "SendMessage", &[PROTO, header], body.clone()).await;
        refused(&answer, UNIMPLEMENTED, "CONTENT_TYPE_NOT_SUPPORTED");
        assert_eq!(answer.headers["grpc-accept-encoding"], "identity");
    }
    let json = [("content-type", "application/grpc+json")];
    let answer = raw(&server, "SendMessage", &json, framed_send.clone()).await;
    refused(&answer, INVALID_ARGUMENT, "CONTENT_TYPE_NOT_SUPPORTED");

    let list = server.client.list(ListTasksRequest::default()).await;
    assert_eq!(list.unwrap().total_size, 0, "nothing was written");
    assert_eq!(server.agent_begun(), 0, "nothing was started");
    let proto = [("content-type", "Application/GRPC+proto; charset=x")];
    let answer = raw(&server, "SendMessage", &proto, framed_send).await;
    assert_eq!(answer.status().code, 0);
}

/// What is no gRPC gets an answer that needs none to be read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_protocols_are_told_apart() {
    let server = server().await;
    let path = path("GetTask");
    for kind in [
        "application/grpc-web",
        "application/grpc-web+proto",
        "text/plain",
    ] {
        let headers = [("content-type", kind)];
        let answer = open(server.addr(), &path, &headers, framed(b""))
            .await
            .unwrap();
        assert_eq!(answer.response.status(), 404, "{kind}");
        assert_eq!(
            answer.response.headers()["content-type"],
            "application/json"
        );
    }
    let answer = http::call(server.addr(), Method::POST, &path, &[PROTO], framed(b""))
        .await
        .unwrap();
    assert_eq!(answer.status, 505, "HTTP/1");
    assert_eq!(answer.json()["error"]["message"], "gRPC needs HTTP/2");
    assert_eq!(
        answer.json()["error"]["details"][0]["reason"],
        "INVALID_REQUEST"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grpc_05_messages_may_be_large_both_ways() {
    let server = server().await;
    let said = "x".repeat(5 << 20);
    let message = text(&format!("echo {said}")).encode_to_vec();
    let answer = call(&server, "SendMessage", &[], &message).await;
    assert_eq!(answer.status().code, 0);
    assert!(
        answer.messages[0].len() > 10 << 20,
        "the question and the answer"
    );
    let task = task_of(&answer);
    assert_eq!(task.artifacts[0].parts[0].as_text(), Some(said.as_str()));
    let metadata = [("last-event-id", "0")];
    let stream = call(&server, "SubscribeToTask", &metadata, &subscribe(&task.id)).await;
    assert!(
        stream
            .messages
            .iter()
            .any(|message| message.len() > 5 << 20)
    );
    assert_eq!(stream.status().code, 0);

    let huge = text(&"x".repeat(16 << 20)).encode_to_vec();
    let answer = call(&server, "SendMessage", &[], &huge).await;
    refused(&answer, INVALID_ARGUMENT, "INVALID_REQUEST");
    assert_eq!(answer.status().message, "The request body is too large");
}
