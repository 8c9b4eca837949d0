use std::sync::atomic::{AtomicU64, Ordering};

use a2ad_client::dial::{DialError, Wait};
use http::header::LOCATION;

use super::*;

/// What comes of reading the whole answer of `host`, which has to be soon.
async fn read(host: &Host) -> Result<Bytes, DialError> {
    let exchange = async {
        let answer = open().send(get(&host.url()), &short()).await?;
        answer.into_body().bytes().await
    };
    tokio::time::timeout(Duration::from_secs(5), exchange)
        .await
        .unwrap()
}

fn timed_out(read: &Result<Bytes, DialError>) -> Option<Wait> {
    match read {
        Err(DialError::TimedOut { wait, .. }) => Some(*wait),
        _ => None,
    }
}

#[tokio::test]
async fn a_redirect_is_an_answer() {
    for status in [301, 302, 303, 307, 308] {
        let sink = Sink::new();
        let target = format!("http://127.0.0.1:{}/elsewhere", sink.port());
        let host = Host::fixed(format!(
            "HTTP/1.1 {status} Moved\r\nlocation: {target}\r\ncontent-length: 0\r\n\r\n"
        ));
        let request = Request::post(host.url())
            .header("x-a2a-notification-token", "secret")
            .body(Bytes::from_static(b"{}"))
            .unwrap();
        for dialer in [open(), dialer_to("127.0.0.1", host.address.port())] {
            let answer = dialer.send(request.clone(), &short()).await.unwrap();
            assert_eq!(answer.status(), status);
            assert_eq!(answer.headers()[LOCATION], target);
        }
        sink.saw_nothing();
    }
}

#[tokio::test]
async fn a_good_answer_is_given_whole() {
    let host = Host::fixed("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello");
    assert_eq!(read(&host).await.unwrap(), "hello");
    let host = Host::fixed(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\nx-sum: 5\r\n\r\n",
    );
    assert_eq!(read(&host).await.unwrap(), "hello");
}

#[tokio::test]
async fn what_is_said_to_be_too_long_is_not_read() {
    let host = Host::fixed("HTTP/1.1 200 OK\r\ncontent-length: 9999999999\r\n\r\n");
    let answer = open().send(get(&host.url()), &short()).await;
    assert!(
        matches!(answer, Err(DialError::TooLarge { .. })),
        "{answer:?}"
    );
}

#[tokio::test]
async fn the_limit_is_what_may_be_read() {
    for (length, fits) in [(64 * 1024, true), (64 * 1024 + 1, false)] {
        let body = "x".repeat(length);
        for answer in [
            format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}"),
            format!("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{body}"),
            format!(
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{length:x}\r\n{body}\r\n0\r\n\r\n"
            ),
        ] {
            let got = read(&Host::closing(answer)).await;
            match got {
                Ok(bytes) => assert!(fits && bytes.len() == length),
                Err(error) => {
                    assert!(
                        !fits && matches!(error, DialError::TooLarge { .. }),
                        "{error}"
                    );
                }
            }
        }
    }
}

#[tokio::test]
async fn an_endless_answer_is_given_up() {
    let written = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&written);
    let host = Host::new(move |stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")?;
        let chunk = [b"1000\r\n".as_slice(), &[b'x'; 0x1000], b"\r\n"].concat();
        loop {
            stream.write_all(&chunk)?;
            count.fetch_add(chunk.len() as u64, Ordering::SeqCst);
        }
    });
    let got = read(&host).await;
    assert!(matches!(got, Err(DialError::TooLarge { .. })), "{got:?}");
    // Whatever the sockets hold, it stops.
    let mut before = u64::MAX;
    while before != written.load(Ordering::SeqCst) {
        before = written.load(Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(before < 32 * 1024 * 1024, "{before}");
}

#[tokio::test]
async fn nobody_reads_ahead_of_a_slow_reader() {
    let written = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&written);
    let host = Host::new(move |stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n")?;
        loop {
            stream.write_all(&[b'x'; 0x1000])?;
            count.fetch_add(0x1000, Ordering::SeqCst);
        }
    });
    let limits = Limits::stream(Duration::from_secs(5));
    let mut answer = open().send(get(&host.url()), &limits).await.unwrap();
    answer.body_mut().chunk().await.unwrap().unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    let before = written.load(Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(written.load(Ordering::SeqCst), before);
    // Having waited is no silence of the other side.
    answer.body_mut().chunk().await.unwrap().unwrap();
}

#[tokio::test]
async fn a_dripping_answer_ends_with_the_total_time() {
    let host = Host::new(|stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n")?;
        loop {
            stream.write_all(b"x")?;
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    assert_eq!(timed_out(&read(&host).await), Some(Wait::Total));
}

#[tokio::test]
async fn a_dripping_head_ends_with_its_time() {
    let host = Host::new(|stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nx: ")?;
        loop {
            stream.write_all(b"x")?;
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    assert_eq!(timed_out(&read(&host).await), Some(Wait::Head));
    let host = Host::new(|stream| {
        loop {
            stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    assert_eq!(timed_out(&read(&host).await), Some(Wait::Head));
}

#[tokio::test]
async fn silence_ends_the_answer() {
    let host = Host::new(|stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc")?;
        std::thread::sleep(Duration::from_secs(10));
        Ok(())
    });
    let mut answer = open().send(get(&host.url()), &short()).await.unwrap();
    let body = answer.body_mut();
    assert_eq!(body.chunk().await.unwrap().unwrap(), "abc");
    let silent = body.chunk().await;
    assert!(
        matches!(
            silent,
            Err(DialError::TimedOut {
                wait: Wait::Silence,
                ..
            })
        ),
        "{silent:?}"
    );
    // And that was all.
    assert_eq!(body.chunk().await, Ok(None));
}

#[tokio::test]
async fn no_head_is_not_waited_for() {
    let host = Host::new(|_| {
        std::thread::sleep(Duration::from_secs(10));
        Ok(())
    });
    assert_eq!(timed_out(&read(&host).await), Some(Wait::Head));
    let limits = Limits {
        total: Some(Duration::from_millis(50)),
        ..short()
    };
    let answer = open().send(get(&host.url()), &limits).await;
    assert!(
        matches!(
            answer,
            Err(DialError::TimedOut {
                wait: Wait::Total,
                ..
            })
        ),
        "{answer:?}"
    );
}

#[tokio::test]
async fn heads_are_bounded() {
    let many = |count| {
        let fields: String = (0..count).map(|n| format!("x-{n}: y\r\n")).collect();
        Host::closing(format!("HTTP/1.1 204 No Content\r\n{fields}\r\n"))
    };
    assert!(read(&many(100)).await.is_ok());
    let broken = |read: Result<_, _>| matches!(read, Err(DialError::Broken { .. }));
    assert!(broken(read(&many(200)).await));
    let long = format!(
        "HTTP/1.1 204 No Content\r\nx: {}\r\n\r\n",
        "y".repeat(1 << 20)
    );
    assert!(broken(read(&Host::closing(long)).await));

    let endless = Host::new(|stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\n")?;
        loop {
            stream.write_all(&[b"x: ".as_slice(), &[b'y'; 1000], b"\r\n"].concat())?;
        }
    });
    assert!(broken(read(&endless).await));
    let endless = Host::new(|stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n")?;
        loop {
            stream.write_all(b"x-trailer: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n")?;
        }
    });
    assert!(broken(read(&endless).await));
    let endless = Host::new(|stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;x=")?;
        loop {
            stream.write_all(&[b'y'; 1000])?;
        }
    });
    assert!(broken(read(&endless).await));
}

#[tokio::test]
async fn broken_answers_are_errors() {
    for answer in [
        "",
        "hello",
        "SSH-2.0-OpenSSH_9.2\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\nabcd",
        "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nabc",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabcdef\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\nabc",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
        "HTTP/1.1 999999 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nx: y\0z\r\ncontent-length: 0\r\n\r\n",
    ] {
        let got = read(&Host::closing(answer)).await;
        assert!(
            matches!(got, Err(DialError::Broken { .. })),
            "{answer:?}: {got:?}"
        );
    }
}

#[tokio::test]
async fn an_answer_is_not_unpacked() {
    for coding in ["gzip", "deflate", "br", "zstd"] {
        let host = Host::fixed(format!(
            "HTTP/1.1 200 OK\r\ncontent-encoding: {coding}\r\ncontent-length: 4\r\n\r\nbomb"
        ));
        let answer = open().send(get(&host.url()), &short()).await.unwrap();
        assert_eq!(answer.headers()["content-encoding"], coding);
        assert_eq!(answer.into_body().bytes().await.unwrap(), "bomb");
        assert!(!host.seen()[0].to_lowercase().contains("accept-encoding"));
    }
}

#[tokio::test]
async fn no_cookie_is_kept() {
    let host = Host::fixed("HTTP/1.1 200 OK\r\nset-cookie: a=b\r\ncontent-length: 0\r\n\r\n");
    let dialer = open();
    for _ in 0..2 {
        let answer = dialer.send(get(&host.url()), &short()).await.unwrap();
        answer.into_body().bytes().await.unwrap();
    }
    assert_eq!(host.seen().len(), 2);
    assert!(!host.seen().concat().to_lowercase().contains("cookie"));
}

#[tokio::test]
async fn an_error_tells_nothing_of_the_exchange() {
    let secret_answers = [
        "secret\r\n\r\n",
        "HTTP/1.1 200 secret\r\nsecret\r\n\r\n",
        "HTTP/1.1 200 OK\r\nx: secret\r\ncontent-length: 99\r\n\r\nsecret",
        "HTTP/1.1 200 OK\r\ncontent-length: 999999\r\n\r\nsecret",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nsecret",
    ];
    for answer in secret_answers {
        let host = Host::closing(answer);
        let request = Request::post(format!("{}secret?token=secret", host.url()))
            .header("authorization", "Bearer secret")
            .body(Bytes::from_static(b"secret"))
            .unwrap();
        let error = match open().send(request, &short()).await {
            Err(error) => error,
            Ok(answer) => answer.into_body().bytes().await.unwrap_err(),
        };
        let text = format!("{error} {error:?}");
        assert!(!text.contains("secret"), "{text}");
        assert!(text.contains("127.0.0.1"), "{text}");
        assert!(std::error::Error::source(&error).is_none());
    }
}
