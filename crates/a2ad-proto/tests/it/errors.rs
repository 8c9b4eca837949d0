//! Section 10 of the checklist.

use std::collections::HashSet;

use a2ad_proto::ErrorKind;

#[test]
fn err_08_every_kind_has_a_reason_of_its_own() {
    let reasons: HashSet<_> = ErrorKind::ALL.iter().map(|kind| kind.reason()).collect();
    assert_eq!(reasons.len(), ErrorKind::ALL.len());
    for kind in ErrorKind::ALL {
        assert_eq!(ErrorKind::from_reason(kind.reason()), Some(kind));
    }
    assert_eq!(ErrorKind::from_reason("NO_SUCH"), None);
}

#[test]
fn err_07_protocol_errors_have_the_reserved_codes_in_order() {
    let codes: Vec<i32> = ErrorKind::ALL[..9]
        .iter()
        .map(|kind| kind.json_rpc_code())
        .collect();
    assert_eq!(codes, (-32009..=-32001).rev().collect::<Vec<_>>());
    for kind in &ErrorKind::ALL[..14] {
        assert_eq!(
            ErrorKind::from_json_rpc_code(kind.json_rpc_code()),
            Some(*kind)
        );
    }
    assert_eq!(ErrorKind::from_json_rpc_code(0), None);
}

#[test]
fn err_08_statuses_are_those_of_the_specification() {
    let shown: Vec<String> = (ErrorKind::ALL.iter())
        .map(|kind| {
            let (http, grpc) = (kind.http_status(), kind.grpc_code());
            format!(
                "{} {http} {grpc} {}",
                kind.json_rpc_code(),
                kind.grpc_status_name()
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            "-32001 404 5 NOT_FOUND",
            "-32002 400 9 FAILED_PRECONDITION",
            "-32003 400 9 FAILED_PRECONDITION",
            "-32004 400 9 FAILED_PRECONDITION",
            "-32005 400 3 INVALID_ARGUMENT",
            "-32006 500 13 INTERNAL",
            "-32007 400 9 FAILED_PRECONDITION",
            "-32008 400 9 FAILED_PRECONDITION",
            "-32009 400 9 FAILED_PRECONDITION",
            "-32700 400 3 INVALID_ARGUMENT",
            "-32600 400 3 INVALID_ARGUMENT",
            "-32601 404 12 UNIMPLEMENTED",
            "-32602 400 3 INVALID_ARGUMENT",
            "-32603 500 13 INTERNAL",
            "-31401 401 16 UNAUTHENTICATED",
            "-31403 403 7 PERMISSION_DENIED",
            "-32603 429 8 RESOURCE_EXHAUSTED",
            "-32603 503 14 UNAVAILABLE",
        ]
    );
}
