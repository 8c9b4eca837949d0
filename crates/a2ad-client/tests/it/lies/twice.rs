//! No message is sent twice, whatever becomes of the first.

use a2ad_client::{Binding, text};
use a2ad_proto::ErrorKind;

use super::{Asked, Liar, Lie, answer, replay, soon, unchanged};

const BOTH: &[&str] = &["JSONRPC", "HTTP+JSON"];

/// A gateway that gave up may have passed the message on before.
#[tokio::test]
async fn a_message_that_a_gateway_may_have_passed_on_is_not_sent_again() {
    for status in [
        "502 Bad Gateway",
        "503 Service Unavailable",
        "504 Gateway Timeout",
    ] {
        for binding in [Binding::JsonRpc, Binding::HttpJson] {
            let lie = move |_: &Asked| Lie::Say(answer(status, "", "<html>"));
            let liar = Liar::with_card(BOTH, unchanged, lie).await;
            let client = soon(liar.builder().binding(binding).connect());
            let client = client.await.unwrap();
            let error = soon(client.stream(text("x")).next()).await.unwrap();
            let error = error.unwrap_err();
            assert_eq!(error.kind(), Some(ErrorKind::Unavailable), "{error}");
            assert_eq!(liar.calls().len(), 1, "{status}");
        }
    }
    // Who recognises it may get it again, and who was turned away at the door was not let in.
    let busy = |_: &Asked| Lie::Say(answer("429 Too Many Requests", "", ""));
    let gone = |_: &Asked| Lie::Say(answer("503 Service Unavailable", "", ""));
    for liar in [
        Liar::with_card(BOTH, unchanged, busy).await,
        Liar::with_card(BOTH, replay, gone).await,
    ] {
        let client = liar.client().await;
        let first = soon(client.stream(text("x")).next()).await;
        assert!(first.unwrap().is_err());
        assert_eq!(liar.calls().len(), 11);
    }
}
