use std::sync::Arc;

use a2ad_client::{Cards, Client, Error};
use serde_json::json;

use super::{Asked, Liar, Lie, answer, card, ok, soon, unchanged};

async fn connect(lie: impl Fn(&Asked) -> Lie + Send + Sync + 'static) -> Result<Client, Error> {
    let liar = Liar::start(move |asked, _| lie(asked)).await;
    soon(liar.builder().connect()).await
}

#[tokio::test]
async fn what_is_no_card_is_an_error_that_shows_it() {
    for body in [
        "",
        "<html>hello</html>",
        "[1]",
        "{}",
        "{\"supportedInterfaces\":\"x\"}",
        "{\"name\":",
    ] {
        let say = body.to_owned();
        let error = connect(move |_| Lie::Say(answer("200 OK", "", &say))).await;
        let error = error.unwrap_err();
        assert!(matches!(&error, Error::NotA2a { .. }), "{body}: {error:?}");
    }
    let error = connect(|_| Lie::Say(answer("200 OK", "", "<html>hello"))).await;
    assert!(error.unwrap_err().to_string().contains("<html>hello"));
    let error = connect(|_| Lie::Say(answer("404 Not Found", "", "nothing here"))).await;
    assert!(matches!(error.unwrap_err(), Error::Refused(refusal) if refusal.code == 404));
    let error = connect(|_| Lie::Say(b"SSH-2.0-OpenSSH\r\n".to_vec())).await;
    assert!(matches!(error.unwrap_err(), Error::Network(_)));
    let error = connect(|_| Lie::Hang(Vec::new())).await;
    assert!(matches!(error.unwrap_err(), Error::Timeout { .. }));
}

#[tokio::test]
async fn a_card_without_end_is_refused() {
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n{";
    let error = connect(|_| Lie::Hang(head.into())).await.unwrap_err();
    assert!(
        matches!(
            error,
            Error::TooLarge {
                what: "the card",
                ..
            }
        ),
        "{error:?}"
    );
    let head = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{\"name\":\"";
    let error = connect(|_| Lie::Forever(head.into(), vec![b'x'; 4096])).await;
    let error = error.unwrap_err();
    assert!(
        matches!(
            error,
            Error::TooLarge {
                what: "the card",
                ..
            }
        ),
        "{error:?}"
    );
}

#[tokio::test]
async fn dual_10_a_card_of_0_3_can_be_refused() {
    let old = json!({"name": "old", "protocolVersion": "0.3.0", "url": "http://127.0.0.1:1/",
        "preferredTransport": "JSONRPC", "capabilities": {}, "skills": []});
    let liar = Liar::start(move |_, _| ok(&old)).await;
    let error = soon(liar.builder().without_v03().connect()).await;
    let error = error.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::NoInterface { .. }));
    assert!(text.contains("JSONRPC 0.3: an old version"), "{text}");
    let client = soon(liar.builder().connect()).await.unwrap();
    assert!(client.interface().is_v03());
    assert_eq!(client.interface().version, "0.3");
}

#[tokio::test]
async fn card_01_the_old_path_will_do() {
    let liar = Liar::start(|asked, to| match asked.line.contains("/agent.json") {
        true => ok(&card(to, &["JSONRPC"])),
        false => Lie::Say(answer("404 Not Found", "", "")),
    })
    .await;
    soon(liar.builder().connect()).await.unwrap();
}

#[tokio::test]
async fn card_06_a_card_is_asked_for_again_when_it_is_stale() {
    for (control, requests) in [("max-age=600", 1), ("no-store", 3), ("max-age=0", 3)] {
        let liar = Liar::start(move |asked, to| {
            let headers = format!("cache-control: {control}\r\netag: \"one\"\r\n");
            if asked.header("if-none-match") == Some("\"one\"") {
                return Lie::Say(answer("304 Not Modified", &headers, ""));
            }
            Lie::Say(answer(
                "200 OK",
                &headers,
                &card(to, &["JSONRPC"]).to_string(),
            ))
        })
        .await;
        let cards = Arc::new(Cards::default());
        let client = liar.builder().cards(Arc::clone(&cards)).connect();
        let client = soon(client).await.unwrap();
        soon(client.refresh()).await.unwrap();
        soon(liar.builder().cards(cards).connect()).await.unwrap();
        let seen = liar.seen.lock().unwrap();
        assert_eq!(seen.len(), requests, "{control}");
        let asked_again = seen
            .iter()
            .filter(|it| it.header("if-none-match").is_some());
        let expected = if control == "max-age=0" { 2 } else { 0 };
        assert_eq!(asked_again.count(), expected, "{control}");
    }
}

#[tokio::test]
async fn a_server_that_knows_what_we_never_had_is_not_believed() {
    let error = connect(|_| Lie::Say(answer("304 Not Modified", "", ""))).await;
    assert!(matches!(error.unwrap_err(), Error::NotA2a { .. }));
}

#[tokio::test]
async fn card_03_an_interface_that_is_not_there_is_passed_over() {
    let liar = Liar::with_card(
        &["HTTP+JSON", "JSONRPC"],
        |card| {
            // Nobody listens on port 1.
            card["supportedInterfaces"][0]["url"] = json!("http://127.0.0.1:1/");
        },
        |_| ok(&super::rpc(&super::task("t", "TASK_STATE_WORKING", &[]))),
    )
    .await;
    let client = liar.client().await;
    let task = soon(client.get("t")).await.unwrap();
    assert_eq!(task.id, "t");
    assert_eq!(client.interface().binding, a2ad_client::Binding::JsonRpc);
    // But not if only the first was asked for.
    let pinned = liar.builder().binding(a2ad_client::Binding::HttpJson);
    let pinned = soon(pinned.connect()).await.unwrap();
    assert!(soon(pinned.get("t")).await.unwrap_err().is_unsent());
}

#[tokio::test]
async fn a_client_can_be_called_back() {
    let liar = Liar::with_card(&["JSONRPC"], unchanged, |_| Lie::Hang(Vec::new())).await;
    let token = tokio_util::sync::CancellationToken::new();
    let client = soon(liar.builder().cancel(token.clone()).connect())
        .await
        .unwrap();
    let waiting = client.get("t");
    token.cancel();
    assert!(matches!(soon(waiting).await.unwrap_err(), Error::Canceled));
    let mut events = client.stream(a2ad_client::text("x"));
    let first = soon(events.next()).await.unwrap();
    assert!(matches!(first.unwrap_err(), Error::Canceled));
    assert!(soon(events.next()).await.is_none());
}
