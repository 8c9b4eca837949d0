//! What gRPC's tools ask of a server: its health and its schema.

use a2ad_testkit::grpc::{Answer, framed, open};
use a2ad_testkit::harness::{Binding, Harness, StoreKind};
use prost::Message as _;

const PROTO: (&str, &str) = ("content-type", "application/grpc");
const SERVICE: &str = "lf.a2a.v1.A2AService";

async fn server() -> Harness {
    Harness::start(Binding::Grpc, StoreKind::Sqlite).await
}

async fn call(server: &Harness, path: &str, message: &[u8]) -> Answer {
    let answer = open(server.addr(), path, &[PROTO], framed(message)).await;
    answer.unwrap().whole().await.unwrap()
}

/// `HealthCheckRequest` and its answer, and reflection's, as far as they matter here.
#[derive(Clone, PartialEq, prost::Message)]
struct HealthRequest {
    #[prost(string, tag = "1")]
    service: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct HealthAnswer {
    #[prost(int32, tag = "1")]
    status: i32,
}

const SERVING: i32 = 1;
const NOT_SERVING: i32 = 2;
const SERVICE_UNKNOWN: i32 = 3;

fn of(service: &str) -> Vec<u8> {
    HealthRequest {
        service: service.to_owned(),
    }
    .encode_to_vec()
}

fn status(message: &[u8]) -> i32 {
    HealthAnswer::decode(message).unwrap().status
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_is_readiness() {
    let server = server().await;
    const CHECK: &str = "/grpc.health.v1.Health/Check";
    for service in ["", SERVICE, "a2a.v1.A2AService"] {
        let answer = call(&server, CHECK, &of(service)).await;
        assert_eq!(
            (answer.status().code, status(&answer.messages[0])),
            (0, SERVING)
        );
    }
    assert_eq!(call(&server, CHECK, &of("x")).await.status().code, 5);
    let unknown = call(&server, "/grpc.health.v1.Health/Cure", b"").await;
    assert_eq!(unknown.status().code, 12);
    server.announce_stop();
    for service in ["", SERVICE] {
        let answer = call(&server, CHECK, &of(service)).await;
        assert_eq!(
            (answer.status().code, status(&answer.messages[0])),
            (0, NOT_SERVING)
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_is_watched_until_the_server_stops() {
    let server = server().await;
    const WATCH: &str = "/grpc.health.v1.Health/Watch";
    let mut streams = Vec::new();
    for (service, first) in [("", SERVING), (SERVICE, SERVING), ("x", SERVICE_UNKNOWN)] {
        let mut stream = open(server.addr(), WATCH, &[PROTO], framed(&of(service)))
            .await
            .unwrap();
        assert_eq!(status(&stream.next().await.unwrap().unwrap()), first);
        streams.push((service, stream));
    }
    server.announce_stop();
    for (_, stream) in &mut streams[..2] {
        assert_eq!(status(&stream.next().await.unwrap().unwrap()), NOT_SERVING);
    }
    server.handle_stop();
    for (service, mut stream) in streams {
        assert_eq!(stream.next().await.unwrap(), None, "{service}");
        assert_eq!(stream.status().unwrap().code, 14);
    }
}

#[derive(Clone, PartialEq, prost::Message)]
struct Question {
    #[prost(string, optional, tag = "3")]
    file: Option<String>,
    #[prost(string, optional, tag = "4")]
    symbol: Option<String>,
    #[prost(string, optional, tag = "7")]
    services: Option<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Reflected {
    #[prost(message, optional, tag = "4")]
    files: Option<Files>,
    #[prost(message, optional, tag = "6")]
    services: Option<Services>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Files {
    #[prost(message, repeated, tag = "1")]
    files: Vec<File>,
}

/// The head of a `FileDescriptorProto`.
#[derive(Clone, PartialEq, prost::Message)]
struct File {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, repeated, tag = "3")]
    needs: Vec<String>,
    #[prost(message, repeated, tag = "4")]
    messages: Vec<Named>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Services {
    #[prost(message, repeated, tag = "1")]
    services: Vec<Named>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Named {
    #[prost(string, tag = "1")]
    name: String,
}

fn names(named: &[Named]) -> Vec<&str> {
    named.iter().map(|it| it.name.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reflection_tells_the_schema() {
    let server = server().await;
    for version in ["v1", "v1alpha"] {
        let path = format!("/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo");
        let ask = async |question: Question| {
            let answer = call(&server, &path, &question.encode_to_vec()).await;
            assert_eq!(answer.status().code, 0);
            Reflected::decode(&*answer.messages[0]).unwrap()
        };
        let listed = ask(Question {
            services: Some(String::new()),
            ..Question::default()
        })
        .await;
        let listed = listed.services.unwrap();
        let mut listed = names(&listed.services);
        listed.sort_unstable();
        let itself = format!("grpc.reflection.{version}.ServerReflection");
        let older = "a2a.v1.A2AService";
        assert_eq!(listed, [older, "grpc.health.v1.Health", &itself, SERVICE]);

        // As a tool does it: the file of the service, then what that needs.
        let symbol = |symbol: &str| Question {
            symbol: Some(symbol.to_owned()),
            ..Question::default()
        };
        let found = ask(symbol(SERVICE)).await.files.unwrap().files.remove(0);
        assert_eq!(found.name, "a2a.proto");
        assert_eq!(found.messages.len(), 44);
        assert!(names(&found.messages).contains(&"SendMessageRequest"));
        let method = ask(symbol("lf.a2a.v1.A2AService.GetTask"))
            .await
            .files
            .unwrap();
        assert_eq!(method.files[0], found);
        assert_eq!(found.needs.len(), 3);
        for needed in &found.needs {
            let question = Question {
                file: Some(needed.clone()),
                ..Question::default()
            };
            let file = ask(question).await.files.unwrap().files.remove(0);
            assert_eq!(&file.name, needed);
        }
        let answer = call(&server, &path, &symbol("lf.a2a.v1.Nothing").encode_to_vec()).await;
        assert_eq!(answer.status().code, 5);
    }
}
