use super::*;

/// The whole table as text; `table.txt` is what it must be. A change there is a change of the wire.
fn table() -> String {
    use std::fmt::Write as _;
    let mut text = String::from(
        "kind: JSON-RPC code, HTTP status over JSON-RPC, HTTP status, gRPC, reason, retry\n",
    );
    for kind in ErrorKind::ALL {
        let retry = if is_transient(kind) { "retry" } else { "-" };
        writeln!(
            text,
            "{kind:?}: {} {} {} {} {} {retry}",
            kind.json_rpc_code(),
            json_rpc_status(kind).as_u16(),
            kind.http_status(),
            kind.grpc_status_name(),
            kind.reason(),
        )
        .unwrap();
    }
    text.push_str("\nrefusal of the edge: kind, HTTP status over JSON-RPC, HTTP status, connection, message\n");
    for refusal in Refusal::ALL {
        let fault = Fault::from(refusal);
        writeln!(
            text,
            "{refusal:?}: {:?} {} {} {} {:?}",
            fault.kind,
            fault.json_rpc_status().as_u16(),
            fault.http_status().as_u16(),
            if fault.close { "close" } else { "keep" },
            fault.message,
        )
        .unwrap();
    }
    text.push_str("\nerror of the engine: kind, JSON-RPC response\n");
    for error in engine_errors() {
        let name = format!("{error:?}");
        let name = name.split([' ', '(', '{']).next().unwrap().to_owned();
        let mut fault = Fault::from(error);
        for (key, value) in &mut fault.metadata {
            if *key == "errorId" {
                assert_eq!(value.len(), 8);
                *value = "********".to_owned();
            }
        }
        let response = String::from_utf8(fault.json_rpc(RawValue::NULL)).unwrap();
        writeln!(text, "{name}: {:?} {response}", fault.kind).unwrap();
    }
    text
}

fn engine_errors() -> Vec<EngineError> {
    vec![
        EngineError::TaskNotFound { id: "t".to_owned() },
        EngineError::NotCancelable { id: "t".to_owned() },
        EngineError::Unsupported("It has ended".to_owned()),
        EngineError::InvalidParams(Violations(vec![FieldViolation {
            field: "message.parts".to_owned(),
            description: "must not be empty".to_owned(),
        }])),
        EngineError::ContentTypeNotSupported(Violations::one(
            "message.parts[1].mediaType",
            "This agent does not take image/png, but text/plain",
        )),
        EngineError::PushNotSupported,
        EngineError::Exhausted("turns"),
        EngineError::Unavailable(None),
        EngineError::Internal("a cause that must not show".into()),
    ]
}

/// ERR-02, ERR-08.
#[test]
fn the_table_is_as_agreed() {
    let table = table();
    let agreed = include_str!("table.txt");
    assert!(table == agreed, "the table is now\n{table}");
}

/// ERR-05.
#[test]
fn outside_json_rpc_an_error_has_the_protocols_shape() {
    let fault = Fault::from(Refusal::NoSuchPath).with("hint", "x");
    assert_eq!(
        String::from_utf8(fault.http_json(Generation::V10)).unwrap(),
        r#"{"error":{"code":404,"status":"UNIMPLEMENTED","message":"There is nothing at this path","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"METHOD_NOT_FOUND","domain":"a2a-protocol.org","metadata":{"hint":"x"}}]}}"#
    );
}

#[test]
fn causes_are_listed_from_the_outside_in() {
    let inner = std::io::Error::other("disk on fire");
    let error = EngineError::Internal(Box::new(inner));
    assert_eq!(Causes(&error).to_string(), "disk on fire");
}
