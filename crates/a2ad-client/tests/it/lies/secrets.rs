//! S13: credentials go where they are meant to go.

use a2ad_client::{Binding, Credentials, text};
use serde_json::{Value, json};

use super::{Asked, Liar, Lie, answer, card, ok, rpc, soon, task};

const SECRETS: [&str; 3] = ["t0ken-12345", "k3y-12345", "h3ader-12345"];

fn credentials() -> Credentials {
    Credentials::default()
        .bearer(SECRETS[0])
        .api_key("key", SECRETS[1])
        .header("x-mine", SECRETS[2])
        .unwrap()
}

fn with_scheme(card: &mut Value) {
    card["securitySchemes"] =
        json!({"key": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}}});
}

fn answers(_: &Asked) -> Lie {
    ok(&rpc(&task("t", "TASK_STATE_WORKING", &[])))
}

#[tokio::test]
async fn s13_the_agents_own_origin_sees_them() {
    let liar = Liar::with_card(&["JSONRPC"], with_scheme, answers).await;
    let client = liar.builder().credentials(credentials()).connect();
    let client = soon(client).await.unwrap();
    soon(client.get("t")).await.unwrap();
    let call = liar.calls().remove(0);
    assert_eq!(call.header("authorization"), Some("Bearer t0ken-12345"));
    assert_eq!(call.header("x-key"), Some("k3y-12345"));
    assert_eq!(call.header("x-mine"), Some("h3ader-12345"));
    // The card is public: nobody asked who we are.
    let seen = liar.seen.lock().unwrap();
    let of_card: Vec<_> = seen.iter().filter(|it| it.is_card()).collect();
    assert!(SECRETS.iter().all(|it| !of_card[0].head.contains(it)));
}

#[tokio::test]
async fn s13_another_origin_does_not() {
    let other = Liar::start(|asked, _| answers(asked)).await;
    for binding in ["JSONRPC", "HTTP+JSON", "GRPC"] {
        let elsewhere = other.url();
        let liar = Liar::start(move |_, to| {
            let mut card = card(to, &[binding]);
            with_scheme(&mut card);
            card["supportedInterfaces"][0]["url"] = json!(elsewhere);
            ok(&card)
        })
        .await;
        let client = liar.builder().credentials(credentials()).connect();
        let client = soon(client).await.unwrap();
        let _whatever = soon(client.get("t")).await;
        let _whatever = soon(client.send(text("hello"))).await;
        let _whatever = soon(client.stream(text("hello")).next()).await;
        assert!(!client.interface().trusted);
    }
    let all = other.all();
    assert!(all.contains("hello"), "it was called");
    assert!(SECRETS.iter().all(|it| !all.contains(it)), "{all}");
}

#[tokio::test]
async fn s13_unless_the_caller_says_so() {
    let other = Liar::start(|asked, _| answers(asked)).await;
    let elsewhere = other.url();
    let liar = Liar::start(move |_, to| {
        let mut card = card(to, &["JSONRPC"]);
        card["supportedInterfaces"][0]["url"] = json!(elsewhere);
        ok(&card)
    })
    .await;
    let client = liar.builder().credentials(credentials());
    let client = soon(client.allow_origin(&other.url()).connect())
        .await
        .unwrap();
    soon(client.get("t")).await.unwrap();
    assert!(other.all().contains(SECRETS[0]));
}

#[tokio::test]
async fn s13_a_redirect_is_not_followed() {
    let other = Liar::start(|asked, _| answers(asked)).await;
    let elsewhere = other.url();
    for status in [
        "301 Moved",
        "302 Found",
        "307 Temporary Redirect",
        "308 Permanent Redirect",
    ] {
        let to = format!("location: {elsewhere}/x?secret=1\r\n");
        let liar = Liar::with_card(&["JSONRPC", "HTTP+JSON"], with_scheme, move |_| {
            Lie::Say(answer(status, &to, ""))
        })
        .await;
        for binding in [Binding::JsonRpc, Binding::HttpJson] {
            let client = liar.builder().binding(binding).credentials(credentials());
            let client = soon(client.connect()).await.unwrap();
            let error = soon(client.get("t")).await.unwrap_err();
            let text = format!("{error} {error:?}");
            assert!(
                text.contains("redirect") && !text.contains("secret=1"),
                "{text}"
            );
            let first = soon(client.stream(text_of("hello")).next()).await;
            assert!(first.unwrap().is_err());
        }
        let to = format!("location: {elsewhere}/card.json\r\n");
        let liar = Liar::start(move |_, _| Lie::Say(answer(status, &to, ""))).await;
        let client = liar.builder().credentials(credentials()).connect();
        assert!(soon(client).await.is_err());
    }
    assert!(other.seen.lock().unwrap().is_empty());
}

fn text_of(said: &str) -> a2ad_proto::SendMessageRequest {
    text(said)
}

#[tokio::test]
async fn a_card_that_is_not_public_is_asked_for_by_name() {
    let liar = Liar::start(|asked, to| {
        if asked.header("authorization") == Some("Bearer t0ken-12345") {
            return ok(&card(to, &["JSONRPC"]));
        }
        Lie::Say(answer(
            "401 Unauthorized",
            "www-authenticate: Bearer\r\n",
            "",
        ))
    })
    .await;
    let error = soon(liar.builder().connect()).await.unwrap_err();
    assert_eq!(error.kind(), Some(a2ad_proto::ErrorKind::Unauthenticated));
    let client = liar.builder().credentials(credentials()).connect();
    soon(client).await.unwrap();
}

#[tokio::test]
async fn s23_an_agent_that_sends_our_secrets_back_is_not_quoted() {
    let bodies = [
        ("200 OK", format!("<html>{} {}", SECRETS[0], SECRETS[1])),
        ("401 No", json!({"error": {"code": 401, "message": SECRETS[0], "details": [SECRETS[1]]}}).to_string()),
        ("200 OK", json!({"jsonrpc": "2.0", "error": {"code": -32001, "message": SECRETS[2], "data": SECRETS}}).to_string()),
        ("200 OK", json!({"result": {"id": SECRETS}}).to_string()),
    ];
    for (status, body) in bodies {
        let liar = Liar::with_card(&["JSONRPC", "HTTP+JSON"], with_scheme, move |_| {
            Lie::Say(answer(status, "", &body))
        })
        .await;
        for binding in [Binding::JsonRpc, Binding::HttpJson] {
            let client = liar.builder().binding(binding).credentials(credentials());
            let client = soon(client.connect()).await.unwrap();
            for error in [
                soon(client.get("t")).await.err(),
                soon(client.stream(text("x")).next())
                    .await
                    .and_then(Result::err),
            ] {
                let told = format!("{error:?} {client:?}");
                assert!(SECRETS.iter().all(|it| !told.contains(it)), "{told}");
            }
        }
    }
}

#[tokio::test]
async fn a_key_in_the_query_is_no_part_of_an_error() {
    let liar = Liar::with_card(
        &["JSONRPC"],
        |card| {
            card["securitySchemes"] =
                json!({"key": {"type": "apiKey", "in": "query", "name": "k"}});
        },
        |_| Lie::Say(Vec::new()),
    )
    .await;
    let client = liar.builder().credentials(credentials()).connect();
    let client = soon(client).await.unwrap();
    let error = soon(client.get("t")).await.unwrap_err();
    assert!(liar.calls()[0].line.contains("k=k3y-12345"));
    assert!(!format!("{error} {error:?}").contains("k3y"), "{error:?}");
}

/// A client certificate belongs to its dialer, and the dialer to the origins that may see it.
#[tokio::test]
async fn s13_the_trusted_dialer_goes_to_trusted_origins_only() {
    use a2ad_client::dial::{Dialer, Rules};
    let only = |liar: &Liar| {
        let endpoints = vec![(liar.to.ip().to_string(), liar.to.port())];
        let rules = Rules {
            endpoints,
            ..Rules::default()
        };
        Dialer::guarded(rules).unwrap()
    };
    let other = Liar::start(|asked, _| answers(asked)).await;
    let elsewhere = other.url();
    let liar = Liar::start(move |asked, to| {
        if !asked.is_card() {
            return answers(asked);
        }
        let mut card = card(to, &["JSONRPC", "HTTP+JSON"]);
        card["supportedInterfaces"][0]["url"] = json!(elsewhere);
        ok(&card)
    })
    .await;
    let client = liar
        .builder()
        .trusted_dialer(only(&liar))
        .dialer(only(&other));
    for binding in [Binding::JsonRpc, Binding::HttpJson] {
        let client = soon(client.clone().binding(binding).connect())
            .await
            .unwrap();
        let got = soon(client.get("t")).await;
        assert!(
            !matches!(got, Err(a2ad_client::Error::Forbidden(_))),
            "{got:?}"
        );
    }
    assert_eq!((other.calls().len(), liar.calls().len()), (1, 1));
}

/// What is shown of an answer is short, and a token may be longer than that.
#[tokio::test]
async fn s23_not_even_the_beginning_of_a_secret_is_quoted() {
    let token: String = (0..400).map(|it| format!("{it:03}.")).collect();
    for echo in [
        format!("<html>Authorization: Bearer {token}"),
        json!({"error": {"code": -32001, "message": format!("{:>1000}{token}", "you said ")}})
            .to_string(),
        json!({"result": {"id": [format!("{token}")]}}).to_string(),
    ] {
        let told = echo.clone();
        let liar = Liar::with_card(&["JSONRPC"], with_scheme, move |_| {
            Lie::Say(answer("200 OK", "", &told))
        });
        let liar = liar.await;
        let client = liar
            .builder()
            .credentials(Credentials::default().bearer(&token));
        let client = soon(client.connect()).await.unwrap();
        let error = soon(client.get("t")).await.unwrap_err();
        let told = format!("{error:?} {error}");
        assert!(!told.contains(&token[..8]), "{echo}: {told}");
    }
}

#[tokio::test]
async fn s23_a_secret_is_not_quoted_in_another_form_either() {
    let query = |card: &mut Value| {
        card["securitySchemes"] = json!({"key": {"type": "apiKey", "in": "query", "name": "k"}});
    };
    // Says what many servers say.
    let liar = Liar::with_card(&["JSONRPC"], query, |asked| {
        let line = &asked.line;
        Lie::Say(answer(
            "200 OK",
            "",
            &format!("Cannot {line} for hunter2-hunter2"),
        ))
    })
    .await;
    let credentials = Credentials::default().api_key("key", "k3y/+=& 12345");
    let client = liar
        .builder()
        .credentials(credentials.basic("bob", "hunter2-hunter2"));
    let client = soon(client.connect()).await.unwrap();
    let error = soon(client.get("t")).await.unwrap_err();
    assert!(
        liar.calls()[0].line.contains("?k=k3y%2F"),
        "{:?}",
        liar.calls()
    );
    let told = format!("{error:?} {error}");
    assert!(told.contains("Cannot POST"), "{told}");
    assert!(!told.contains("k3y") && !told.contains("hunter2"), "{told}");
}

/// Who has to be asked for the card may put into it what it was asked with.
#[tokio::test]
async fn s23_a_card_that_sends_our_secrets_back_is_not_quoted() {
    let liar = Liar::start(|asked, to| {
        let Some(token) = asked.header("authorization") else {
            return Lie::Say(answer("401 No", "", ""));
        };
        let mut card = card(to, &["JSONRPC"]);
        card["supportedInterfaces"][0]["protocolBinding"] = json!(token);
        ok(&card)
    })
    .await;
    let client = liar.builder().credentials(credentials()).connect();
    let error = soon(client).await.unwrap_err();
    let told = format!("{error:?} {error}");
    assert!(
        told.contains("NoInterface") && !told.contains(SECRETS[0]),
        "{told}"
    );
}
