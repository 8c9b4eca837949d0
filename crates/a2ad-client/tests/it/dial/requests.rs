use a2ad_client::dial::{DialError, Range, Reason, Refused};
use http::HeaderValue;

use super::*;

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

#[tokio::test]
async fn a_header_cannot_end_its_line() {
    for value in ["a\r\nb: c", "a\nb", "a\rb", "a\0b"] {
        HeaderValue::from_bytes(value.as_bytes()).unwrap_err();
    }
}

#[tokio::test]
async fn how_a_message_is_framed_and_where_it_goes_is_not_the_callers_to_say() {
    let host = Host::fixed(OK);
    for name in [
        "Host",
        "Connection",
        "Content-Length",
        "Transfer-Encoding",
        "Upgrade",
        "Trailer",
        "Keep-Alive",
        "Proxy-Authorization",
        "Proxy-Connection",
    ] {
        let mut request = get(&host.url());
        let name: http::HeaderName = name.parse().unwrap();
        request
            .headers_mut()
            .insert(name, HeaderValue::from_static("5"));
        let answer = open().send(request, &short()).await;
        assert!(matches!(answer, Err(DialError::Request(_))), "{answer:?}");
    }
    let mut connect = get(&host.url());
    *connect.method_mut() = http::Method::CONNECT;
    let answer = open().send(connect, &short()).await;
    assert!(matches!(answer, Err(DialError::Request(_))), "{answer:?}");
    assert!(host.seen().is_empty());
}

#[tokio::test]
async fn a_request_goes_out_as_it_was_given() {
    let host = Host::fixed(OK);
    let port = host.address.port();
    let dialer = dialer_to("agent.example", port);
    let request = Request::put(format!("http://agent.example:{port}/a%2Fb/?c=d%20e&f"))
        .header("a2a-version", "1.0")
        .header("authorization", "Bearer abc")
        .body(Bytes::new())
        .unwrap();
    dialer.send(request, &short()).await.unwrap();
    let seen = &host.seen()[0];
    assert!(
        seen.starts_with("PUT /a%2Fb/?c=d%20e&f HTTP/1.1\r\n"),
        "{seen}"
    );
    for line in [
        "a2a-version: 1.0",
        "authorization: Bearer abc",
        &format!("host: agent.example:{port}"),
        "content-length: 0",
    ] {
        assert!(seen.contains(&format!("\r\n{line}\r\n")), "{seen}");
    }
    for none in [
        "cookie",
        "referer",
        "user-agent",
        "accept-encoding",
        "proxy",
    ] {
        assert!(!seen.contains(none), "{seen}");
    }
}

#[tokio::test]
async fn loopback_in_every_spelling_sees_nobody() {
    let sink = Sink::new();
    let port = sink.port();
    let dialer = Builder::guarded(Rules::default()).resolver(Arc::new(Here));
    let dialer = dialer.build().unwrap();
    for host in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f.1",
        "0177.0.0.1",
        "127.0.0.1.",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "localhost",
        "localhost.",
        "a.localhost",
        "public.example",
    ] {
        for scheme in ["http", "https"] {
            let request = get(&format!("{scheme}://{host}:{port}/"));
            let answer = dialer.send(request.clone(), &short()).await;
            assert!(
                matches!(answer, Err(DialError::Refused(_))),
                "{host}: {answer:?}"
            );
            let answer = dialer.send_h2(request, &short()).await;
            assert!(
                matches!(answer, Err(DialError::Refused(_))),
                "{host}: {answer:?}"
            );
            sink.saw_nothing();
        }
    }
}

#[tokio::test]
async fn a_refusal_names_the_host_and_the_reason() {
    let dialer = Builder::guarded(Rules::default()).resolver(Arc::new(Here));
    let request = get("http://public.example/secret?token=secret");
    let error = dialer
        .build()
        .unwrap()
        .send(request, &short())
        .await
        .unwrap_err();
    let refused = Refused {
        host: "public.example".into(),
        reason: Reason::Resolved(Range::Loopback),
    };
    assert_eq!(error, DialError::Refused(refused));
    assert!(error.is_unsent());
    assert_eq!(
        error.to_string(),
        "public.example: the name leads to an address that is not public (loopback)"
    );
}
