use super::*;
use crate::errors::Fault;
use proptest::prelude::*;

fn check(body: impl AsRef<[u8]>, id: &str, expected: Refusal) {
    let body = body.as_ref();
    let shown = String::from_utf8_lossy(&body[..body.len().min(80)]).into_owned();
    let (given, refusal) = read(body).expect_err(&shown);
    assert_eq!((given.get(), refusal), (id, expected), "{shown}");
}

/// RPC-02.
#[test]
fn what_is_not_json_is_a_parse_error_without_an_id() {
    for body in [
        "",
        " ",
        "{",
        "nope",
        "{]",
        "[1",
        r#"{"jsonrpc":"2.0","id":1"#,
        "{} {}",
        "{'a':1}",
        r#"{"jsonrpc":"2.0","id":1,"method":"x",}"#,
        "\u{feff}{}",
        "NaN",
        r#"{"a\ud800":1}"#,
    ] {
        check(body, "null", Refusal::NotJson);
    }
    check(
        b"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\"}",
        "null",
        Refusal::NotUtf8,
    );
    check(b"{\"x\":\"\xc0\xaf\"}", "null", Refusal::NotUtf8);
}

/// RPC-03.
#[test]
fn only_an_object_is_a_request() {
    check("[]", "null", Refusal::Batch);
    check(
        r#"[{"jsonrpc":"2.0","id":1,"method":"GetTask"}]"#,
        "null",
        Refusal::Batch,
    );
    for body in ["1", "-1", "1.5", "true", "null", r#""text""#] {
        check(body, "null", Refusal::NotAnObject);
    }
}

/// RPC-02, RPC-03.
#[test]
fn the_envelope_must_be_right_and_the_id_is_echoed_where_it_is() {
    check("{}", "null", Refusal::NotJsonRpc2);
    check(
        r#"{"jsonrpc":"1.0","id":7,"method":"x"}"#,
        "7",
        Refusal::NotJsonRpc2,
    );
    check(
        r#"{"jsonrpc":2.0,"id":7,"method":"x"}"#,
        "7",
        Refusal::NotJsonRpc2,
    );
    check(r#"{"id":7,"method":"x"}"#, "7", Refusal::NotJsonRpc2);
    check(r#"{"jsonrpc":"2.0","method":"x"}"#, "null", Refusal::NoId);
    check(r#"{"jsonrpc":"2.0","id":"a"}"#, "\"a\"", Refusal::NoMethod);
    check(
        r#"{"jsonrpc":"2.0","id":"a","method":3}"#,
        "\"a\"",
        Refusal::NoMethod,
    );
    check(
        r#"{"jsonrpc":"2.0","id":"a","method":null}"#,
        "\"a\"",
        Refusal::NoMethod,
    );
}

/// RPC-02.
#[test]
fn ids_of_other_types_are_refused() {
    for id in [
        "1.0",
        "1e3",
        "1E3",
        "-0.5",
        "true",
        "[]",
        "{}",
        r#""\ud800""#,
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"x"}}"#);
        check(body, "null", Refusal::BadId);
    }
    let long = format!(
        r#"{{"jsonrpc":"2.0","id":"{}","method":"x"}}"#,
        "i".repeat(1023)
    );
    check(long, "null", Refusal::BadId);
}

/// RPC-02.
#[test]
fn ids_are_kept_as_they_were_written() {
    let digits = "9".repeat(1000);
    for id in [
        "null",
        "0",
        "-0",
        "-7",
        digits.as_str(),
        r#""""#,
        r#""\u0041\n""#,
        r#""ü""#,
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0", "id" : {id} ,"method":"x"}}"#);
        assert_eq!(read(body.as_bytes()).unwrap().id.get(), id);
    }
}

#[test]
fn a_member_that_appears_twice_is_refused_however_it_is_spelled() {
    check(
        r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}"#,
        "null",
        Refusal::RepeatedMember,
    );
    check(
        r#"{"jsonrpc":"2.0","id":1,"method":"x","m\u0065thod":"y"}"#,
        "null",
        Refusal::RepeatedMember,
    );
    check(
        r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{},"params":{}}"#,
        "null",
        Refusal::RepeatedMember,
    );
    assert!(read(br#"{"jsonrpc":"2.0","id":1,"method":"x","y":1,"y":2}"#).is_ok());
}

#[test]
fn params_are_an_object_or_nothing() {
    let params = |params: &str| {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x"{params}}}"#);
        read(body.as_bytes())
            .unwrap()
            .params()
            .map(|text| String::from_utf8(text.to_vec()).unwrap())
    };
    assert_eq!(params("").as_deref(), Ok("{}"));
    assert_eq!(params(r#","params":null"#).as_deref(), Ok("{}"));
    assert_eq!(
        params(r#","params": {"id":"t"}"#).as_deref(),
        Ok(r#"{"id":"t"}"#)
    );
    for wrong in ["[]", "1", "\"x\"", "true"] {
        assert_eq!(
            params(&format!(r#","params":{wrong}"#)),
            Err(Refusal::ParamsNotObject)
        );
    }
}

#[test]
fn bombs_are_errors() {
    check("[".repeat(10_000_000), "null", Refusal::NotJson);
    check("{\"a\":".repeat(1_000_000), "null", Refusal::NotJson);
    check(
        format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)),
        "null",
        Refusal::Batch,
    );
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let body = format!(r#"{{"jsonrpc":"2.0","id":{deep},"method":"x"}}"#);
    check(body, "null", Refusal::BadId);
    check("1e400", "null", Refusal::NotJson);
}

/// Whatever the request was, what it is answered with is a response.
fn answerable(body: &[u8]) -> bool {
    read(body).map_or_else(
        |(id, refusal)| {
            let response = Fault::from(refusal).json_rpc(id);
            serde_json::from_slice::<IgnoredAny>(&response).is_ok()
        },
        |envelope| is_id(envelope.id.get()),
    )
}

proptest! {
    #[test]
    fn any_bytes_get_an_answer(body: Vec<u8>) {
        prop_assert!(answerable(&body));
    }

    #[test]
    fn any_mutilated_request_gets_an_answer(cut in 0usize..90, at in 0usize..90, byte: u8) {
        let mut body =
            br#"{"jsonrpc":"2.0","id":"a\u00e4","method":"GetTask","params":{"id":"t","n":[1]}}"#.to_vec();
        if let Some(place) = body.get_mut(at) {
            *place = byte;
        }
        body.truncate(cut);
        prop_assert!(answerable(&body));
    }
}
