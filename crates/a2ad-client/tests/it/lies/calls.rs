use a2ad_client::{Binding, CallOptions, Error, text};
use a2ad_proto::ErrorKind;
use serde_json::json;

use super::{Asked, Liar, Lie, answer, ok, replay, rpc, soon, task, unchanged};

const BOTH: &[&str] = &["JSONRPC", "HTTP+JSON"];

async fn get(lie: impl Fn(&Asked) -> Lie + Send + Sync + 'static, binding: Binding) -> Error {
    let liar = Liar::with_card(BOTH, unchanged, lie).await;
    let client = liar.builder().binding(binding);
    let client = client.timeouts(|it| it.call = std::time::Duration::from_millis(300));
    let client = soon(client.connect()).await.unwrap();
    soon(client.get("t")).await.unwrap_err()
}

#[tokio::test]
async fn answers_that_are_none_are_errors() {
    for binding in [Binding::JsonRpc, Binding::HttpJson] {
        let html = |_: &Asked| Lie::Say(answer("200 OK", "content-type: text/html\r\n", "<html>"));
        let error = get(html, binding).await;
        assert!(matches!(error, Error::NotA2a { .. }), "{error:?}");
        let wrong = |_: &Asked| ok(&json!({"result": {"id": 7}, "id": 7}));
        assert!(matches!(get(wrong, binding).await, Error::NotA2a { .. }));
        let gone = |_: &Asked| Lie::Say(Vec::new());
        assert!(matches!(get(gone, binding).await, Error::Network(_)));
        let half =
            |_: &Asked| Lie::Say(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{".to_vec());
        assert!(matches!(get(half, binding).await, Error::Network(_)));
        let silent =
            |_: &Asked| Lie::Hang(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{".to_vec());
        assert!(matches!(get(silent, binding).await, Error::Timeout { .. }));
        let deep = |_: &Asked| Lie::Say(answer("200 OK", "", &"[".repeat(100_000)));
        assert!(matches!(get(deep, binding).await, Error::NotA2a { .. }));
        let busy = |_: &Asked| Lie::Say(answer("503 Busy", "retry-after: 0\r\n", "<html>"));
        assert_eq!(
            get(busy, binding).await.kind(),
            Some(ErrorKind::Unavailable)
        );
        let page = |_: &Asked| Lie::Say(answer("404 Not Found", "", "<html>"));
        assert_eq!(
            get(page, binding).await.kind(),
            Some(ErrorKind::MethodNotFound)
        );
    }
}

#[tokio::test]
async fn an_answer_without_end_is_refused() {
    let head = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{\"result\":{\"id\":\"";
    for binding in [Binding::JsonRpc, Binding::HttpJson] {
        let liar = Liar::with_card(BOTH, unchanged, move |_| {
            Lie::Forever(head.into(), vec![b'x'; 65_536])
        })
        .await;
        let client = liar
            .builder()
            .binding(binding)
            .sizes(|it| it.answer_bytes = 1 << 20);
        let client = soon(client.connect()).await.unwrap();
        let error = soon(client.get("t")).await.unwrap_err();
        assert!(matches!(error, Error::TooLarge { .. }), "{error:?}");
    }
}

/// Two bytes of JSON may take sixteen times as much once they are read.
#[tokio::test]
async fn an_error_without_end_is_refused() {
    let data = "0,".repeat(1 << 20);
    let error =
        format!("{{\"error\":{{\"code\":-32001,\"data\":[{data}0],\"details\":[{data}0]}}}}");
    let event = format!("{}data: {error}\n\n", super::EVENTS);
    for binding in [Binding::JsonRpc, Binding::HttpJson] {
        let (error, event) = (error.clone(), event.clone());
        let liar = Liar::with_card(BOTH, unchanged, move |asked| {
            match asked.line.contains(":subscribe") || asked.body.contains("SubscribeToTask") {
                true => Lie::Say(event.clone().into()),
                false => Lie::Say(answer("200 OK", "", &error)),
            }
        })
        .await;
        let client = liar.builder().binding(binding);
        let client = client.timeouts(|it| it.silence = std::time::Duration::from_secs(5));
        let client = soon(client.connect()).await.unwrap();
        let mut errors = vec![
            soon(client.subscribe("t").next()).await.unwrap().err(),
            soon(client.stream(text("x")).next()).await.unwrap().err(),
        ];
        if binding == Binding::JsonRpc {
            errors.push(soon(client.get("t")).await.err());
        }
        for error in errors {
            assert!(
                matches!(error, Some(Error::TooLarge { .. })),
                "{binding}: {error:?}"
            );
        }
    }
}

#[tokio::test]
async fn err_04_an_error_is_found_whatever_the_status_and_type() {
    let error = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32001, "message": "gone"}});
    for status in ["200 OK", "404 Not Found", "500 Oops"] {
        for kind in [
            "application/json",
            "application/a2a+json; charset=utf-8",
            "text/plain",
        ] {
            let (headers, body) = (format!("content-type: {kind}\r\n"), error.to_string());
            let lie = move |_: &Asked| Lie::Say(answer(status, &headers, &body));
            let refused = get(lie, Binding::JsonRpc).await;
            assert_eq!(
                refused.kind(),
                Some(ErrorKind::TaskNotFound),
                "{status} {kind}"
            );
        }
    }
}

#[tokio::test]
async fn nothing_is_an_answer_where_nothing_is_to_be_said() {
    let rpc_answers = [
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}",
        "{\"result\":null}",
        "{\"id\":1}",
    ];
    for body in rpc_answers {
        let liar = Liar::with_card(BOTH, unchanged, move |_| {
            Lie::Say(answer("200 OK", "", body))
        });
        let liar = liar.await;
        soon(liar.client().await.delete_push_config("t", "c"))
            .await
            .unwrap();
    }
    for (status, body) in [
        ("200 OK", "{}"),
        ("200 OK", ""),
        ("204 No Content", ""),
        ("201 Created", "{}"),
    ] {
        let liar = Liar::with_card(BOTH, unchanged, move |_| Lie::Say(answer(status, "", body)));
        let liar = liar.await;
        let client = soon(liar.builder().binding(Binding::HttpJson).connect())
            .await
            .unwrap();
        soon(client.delete_push_config("t", "c")).await.unwrap();
        assert!(
            liar.calls()[0]
                .line
                .starts_with("DELETE /at/tasks/t/pushNotificationConfigs/c ")
        );
    }
}

#[tokio::test]
async fn who_does_not_take_a_post_is_asked_with_get() {
    let liar = Liar::with_card(&["HTTP+JSON"], unchanged, |asked| {
        if asked.line.starts_with("POST") {
            return Lie::Say(answer("405 Method Not Allowed", "", ""));
        }
        super::events(&[(
            None,
            json!({"task": task("t", "TASK_STATE_COMPLETED", &["x"])}),
        )])
    })
    .await;
    let assembly = soon(liar.client().await.subscribe("t").finish())
        .await
        .unwrap();
    assert_eq!(assembly.text(), "x");
    let lines: Vec<_> = liar.calls().into_iter().map(|it| it.line).collect();
    assert_eq!(
        lines,
        [
            "POST /at/tasks/t:subscribe HTTP/1.1",
            "GET /at/tasks/t:subscribe HTTP/1.1"
        ]
    );
}

#[tokio::test]
async fn a_message_is_sent_again_only_where_that_does_no_harm() {
    // It may have arrived, and nothing says that the agent would recognise it.
    let liar = Liar::with_card(BOTH, unchanged, |_| Lie::Say(Vec::new())).await;
    let client = liar.client().await;
    assert!(soon(client.send(text("x"))).await.is_err());
    assert_eq!(liar.calls().len(), 1);
    assert!(
        soon(client.stream(text("x")).next())
            .await
            .unwrap()
            .is_err()
    );
    assert_eq!(liar.calls().len(), 2);

    // This one would. It gets the same message each time.
    let liar = Liar::with_card(BOTH, replay, |_| Lie::Say(Vec::new())).await;
    let client = liar.client().await;
    assert!(soon(client.send(text("x"))).await.is_err());
    let calls = liar.calls();
    assert_eq!(calls.len(), 4);
    let id = |asked: &Asked| asked.json()["params"]["message"]["messageId"].clone();
    assert!(
        calls
            .iter()
            .all(|it| id(it) == id(&calls[0]) && id(it).is_string())
    );

    // But not under an id that is not unique.
    let mut request = text("x");
    request.message.as_mut().unwrap().message_id = "hello".to_owned();
    assert!(soon(client.send(request)).await.is_err());
    assert_eq!(liar.calls().len(), 5);
}

#[tokio::test]
async fn cancel_03_a_cancel_whose_answer_was_lost_has_succeeded() {
    let count = std::sync::atomic::AtomicU32::new(0);
    let liar = Liar::with_card(BOTH, unchanged, move |asked| {
        if asked.body.contains("GetTask") {
            return ok(&rpc(&task("t", "TASK_STATE_CANCELED", &[])));
        }
        match count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            0 => Lie::Say(Vec::new()),
            _ => ok(&json!({"error": {"code": -32002, "message": "too late"}})),
        }
    })
    .await;
    let task = soon(liar.client().await.cancel("t")).await.unwrap();
    assert_eq!(task.status.state, a2ad_proto::TaskState::Canceled);
}

#[tokio::test]
async fn ver_01_ext_02_ten_01_requests_say_what_they_must() {
    let tenant = |card: &mut serde_json::Value| {
        for interface in card["supportedInterfaces"].as_array_mut().unwrap() {
            interface["tenant"] = json!("a b/c");
        }
    };
    let liar = Liar::with_card(BOTH, tenant, |asked| {
        let task = task("t", "TASK_STATE_COMPLETED", &[]);
        match asked.line.contains("POST /at HTTP") {
            true => ok(&rpc(&json!({ "task": task }))),
            false => ok(&json!({ "task": task })),
        }
    })
    .await;
    let mut options = CallOptions::default();
    options.extensions = vec!["urn:x:1".to_owned(), "urn:x:2".to_owned()];
    options.idempotency_key = Some("once".to_owned());
    options.traceparent = Some("00-aa-bb-01".to_owned());
    for binding in [Binding::JsonRpc, Binding::HttpJson] {
        let client = liar.builder().binding(binding).extension("urn:x:1");
        let client = soon(client.connect()).await.unwrap();
        soon(client.send_with(text("x"), &options)).await.unwrap();
    }
    let calls = liar.calls();
    for call in &calls {
        assert_eq!(call.header("a2a-version"), Some("1.0"));
        assert_eq!(call.header("a2a-extensions"), Some("urn:x:1,urn:x:2"));
        assert_eq!(call.header("idempotency-key"), Some("once"));
        assert_eq!(call.header("traceparent"), Some("00-aa-bb-01"));
    }
    assert_eq!(calls[0].json()["params"]["tenant"], "a b/c");
    assert_eq!(calls[0].json()["id"], "1");
    assert!(
        calls[1]
            .line
            .starts_with("POST /at/a%20b%2Fc/message:send "),
        "{}",
        calls[1].line
    );
    assert!(calls[1].json().get("tenant").is_none());
}

#[tokio::test]
async fn a_limit_may_be_no_limit() {
    let forever = std::time::Duration::MAX;
    let busy = std::sync::atomic::AtomicBool::new(true);
    let liar = Liar::with_card(BOTH, unchanged, move |asked| {
        if busy.swap(false, std::sync::atomic::Ordering::SeqCst) {
            return Lie::Say(answer("429 Busy", "retry-after: 0\r\n", ""));
        }
        let done = task("t", "TASK_STATE_COMPLETED", &["x"]);
        match asked.body.contains("GetTask") {
            true => ok(&rpc(&done)),
            false => ok(&rpc(&json!({ "task": done }))),
        }
    })
    .await;
    let client = liar
        .builder()
        .retries(|it| it.longest = forever)
        .timeouts(|it| {
            (it.connect, it.call, it.send) = (forever, forever, forever);
            (it.silence, it.follow) = (forever, forever);
        });
    let client = soon(client.connect()).await.unwrap();
    soon(client.get("t")).await.unwrap();
    soon(client.send(text("x"))).await.unwrap();
    assert_eq!(
        soon(client.stream(text("x")).finish())
            .await
            .unwrap()
            .text(),
        "x"
    );
}

/// Who stops waiting for a page has not come to the end of the list.
#[tokio::test]
async fn list_04_a_page_that_is_not_waited_for_is_still_to_come() {
    let liar = Liar::with_card(BOTH, unchanged, |_| {
        let page = json!({"tasks": [task("t", "TASK_STATE_WORKING", &[])], "nextPageToken": ""});
        let answer = answer("200 OK", "", &rpc(&page).to_string());
        Lie::Later(std::time::Duration::from_millis(100), answer)
    })
    .await;
    let mut tasks = liar.client().await.list_all(Default::default());
    let patience = std::time::Duration::from_millis(20);
    assert!(tokio::time::timeout(patience, tasks.next()).await.is_err());
    assert!(matches!(soon(tasks.next()).await, Some(Ok(_))));
    assert!(soon(tasks.next()).await.is_none());
}

/// A token may lead back to an earlier page than its own.
#[tokio::test]
async fn list_04_a_list_that_goes_round_has_an_end() {
    let liar = Liar::with_card(BOTH, unchanged, |asked| {
        let next = match asked.json()["params"]["pageToken"].as_str() {
            Some("one") => "two",
            Some("two") => "three",
            _ => "one",
        };
        let tasks = [task("t", "TASK_STATE_WORKING", &[])];
        let page = json!({"tasks": tasks, "nextPageToken": next, "pageSize": 1, "totalSize": 1});
        ok(&rpc(&page))
    })
    .await;
    let mut tasks = liar.client().await.list_all(Default::default());
    for _ in 0..3 {
        assert!(matches!(soon(tasks.next()).await, Some(Ok(_))));
    }
    let error = soon(tasks.next()).await;
    assert!(
        matches!(error, Some(Err(Error::NotA2a { .. }))),
        "{error:?}"
    );
    assert_eq!(liar.calls().len(), 4);
}

#[tokio::test]
async fn list_04_a_list_has_an_end() {
    let liar = Liar::with_card(BOTH, unchanged, |asked| {
        let token = &asked.json()["params"]["pageToken"];
        let next = if token.is_null() {
            "x"
        } else {
            token.as_str().unwrap()
        };
        ok(&rpc(
            &json!({"tasks": [], "nextPageToken": next, "pageSize": 1, "totalSize": 1}),
        ))
    })
    .await;
    let mut tasks = liar.client().await.list_all(Default::default());
    assert!(matches!(
        soon(tasks.next()).await,
        Some(Err(Error::NotA2a { .. }))
    ));
    assert!(soon(tasks.next()).await.is_none());
    assert_eq!(liar.calls().len(), 2);
}
