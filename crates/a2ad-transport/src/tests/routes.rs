use std::sync::atomic::Ordering;

use super::wire::{call, plain, rpc};
use super::*;

#[tokio::test]
async fn an_unrouted_path_is_a_404_in_the_protocols_shape() {
    let server = Server::start(Limits::default()).await;
    for path in ["/nope", "/livez/", "//", "/.well-known/", "/a2a/../livez"] {
        let reply = server.ask(plain("GET", path, "")).await;
        assert_eq!(reply.status, 404, "{path}");
        assert_eq!(reply.header("content-type"), Some("application/json"));
        let error = &reply.json()["error"];
        assert_eq!(error["code"], 404);
        assert_eq!(error["details"][0]["reason"], "METHOD_NOT_FOUND");
        assert_eq!(error["details"][0]["domain"], "a2a-protocol.org");
    }
}

#[tokio::test]
async fn the_wrong_verb_is_a_405_that_names_the_right_ones() {
    let server = Server::start(Limits::default()).await;
    for (verb, path, allow) in [
        ("GET", "/", "POST"),
        ("HEAD", "/", "POST"),
        ("DELETE", "/", "POST"),
        ("POST", "/livez", "GET, HEAD"),
        ("PUT", "/.well-known/agent-card.json", "GET, HEAD, OPTIONS"),
        ("OPTIONS", "/metrics", "GET, HEAD"),
    ] {
        let mut wire = server.connect().await;
        wire.send(plain(verb, path, "Connection: close\r\n")).await;
        let head = wire.until("\r\n\r\n").await;
        assert!(head.starts_with("HTTP/1.1 405 "), "{verb} {path}: {head}");
        assert!(
            head.contains(&format!("allow: {allow}\r\n")),
            "{verb} {path}: {head}"
        );
        if verb != "HEAD" {
            assert!(wire.rest().await.contains("METHOD_NOT_FOUND"));
        }
    }
}

#[tokio::test]
async fn the_probes_answer() {
    let server = Server::start(Limits::default()).await;
    for (path, body) in [
        ("/livez", "ok\n"),
        ("/readyz", "ok\n"),
        ("/healthz", "ok\n"),
        (
            "/health",
            r#"{"status":"healthy","service":"a2ad","version":"9.9.9","#,
        ),
        ("/metrics", "a2ad_up 1\n"),
    ] {
        let reply = server.ask(plain("GET", path, "")).await;
        assert_eq!(reply.status, 200, "{path}");
        assert!(reply.text().starts_with(body), "{path}: {}", reply.text());
        let mut wire = server.connect().await;
        wire.send(plain("HEAD", path, "Connection: close\r\n"))
            .await;
        let answer = wire.rest().await;
        assert!(
            answer.ends_with("\r\n\r\n"),
            "a body after HEAD: {answer:?}"
        );
        assert!(
            answer.contains(&format!("content-length: {}\r\n", reply.text().len())),
            "{answer:?}"
        );
    }
}

#[tokio::test]
async fn readiness_follows_the_engine_and_goes_when_draining() {
    let server = Server::start(Limits::default()).await;
    server.engine.unready.store(true, Ordering::SeqCst);
    assert_eq!(server.ask(plain("GET", "/readyz", "")).await.status, 503);
    assert_eq!(server.ask(plain("GET", "/livez", "")).await.status, 200);
    server.engine.unready.store(false, Ordering::SeqCst);
    assert_eq!(server.ask(plain("GET", "/readyz", "")).await.status, 200);

    server.draining.cancel();
    let reply = server.ask(plain("GET", "/readyz", "")).await;
    assert_eq!((reply.status, reply.closes()), (503, true));
    let reply = server.ask(rpc(&call("GetTask", r#"{"id":"t1"}"#))).await;
    assert_eq!((reply.status, reply.closes()), (200, true), "still served");
}

#[tokio::test]
async fn the_card_is_served_with_its_tag_and_not_twice_to_the_same_caller() {
    let server = Server::start(Limits::default()).await;
    let path = crate::card::PATHS[0];
    let reply = server.ask(plain("GET", path, "")).await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!(reply.header("access-control-allow-origin"), Some("*"));
    assert!(reply.header("cache-control").is_some());
    assert_eq!(reply.json()["name"], "Echo");
    let tag = reply.header("etag").unwrap().to_owned();
    assert!(tag.starts_with("W/\"sha256-") && tag.ends_with('"'));
    let bare = tag.trim_start_matches("W/").to_owned();

    for given in [tag.clone(), bare, format!("\"x\", {tag}"), "*".to_owned()] {
        let headers = format!("If-None-Match: {given}\r\n");
        let reply = server.ask(plain("GET", path, &headers)).await;
        assert_eq!((reply.status, reply.text()), (304, ""), "{given}");
        assert_eq!(reply.header("etag"), Some(tag.as_str()));
    }
    let other = server
        .ask(plain("GET", path, "If-None-Match: \"x\"\r\n"))
        .await;
    assert_eq!(other.status, 200);
}
