//! What came with a call beside its body and its credentials.

use a2ad_core::keys::Number;
use a2ad_proto::{Metadata, Violations};
use http::request::Parts;
use http::{HeaderMap, HeaderName};

use crate::errors::{Fault, Refusal};
use crate::limits::Limits;
use crate::query;

/// What a position is called outside of headers.
const AFTER: &str = "afterSequence";
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The caller's own name for its request.
///
/// # Errors
/// If it is none that could be remembered.
pub(crate) fn idempotency_key(
    headers: &HeaderMap,
    limits: &Limits,
) -> Result<Option<String>, Fault> {
    let mut lines = headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(line) = lines.next() else {
        return Ok(None);
    };
    let is_key = |text: &&str| {
        (1..=limits.idempotency_key_bytes_max).contains(&text.len())
            && !text.chars().any(char::is_control)
    };
    let key = std::str::from_utf8(line.as_bytes()).ok().filter(is_key);
    match (key, lines.next()) {
        (Some(key), None) => Ok(Some(key.to_owned())),
        _ => Err(Fault::from(Refusal::IdempotencyKey).about("Idempotency-Key")),
    }
}

/// The last frame a caller has: `Last-Event-ID`, or `afterSequence` (`lastSequence`) in the query.
///
/// # Errors
/// If it is not one number that a frame could have.
pub(crate) fn cursor(head: &Parts, metadata: Option<&Metadata>) -> Result<Option<Number>, Fault> {
    const HEADER: &str = "Last-Event-ID";
    const QUERY: [&str; 2] = [AFTER, "lastSequence"];
    let mut lines = head.headers.get_all(HEADER).iter();
    let line = lines.next();
    if lines.any(|other| Some(other) != line) {
        return Err(Violations::one(HEADER, "given twice with different values").into());
    }
    if let Some(line) = line.filter(|line| !line.is_empty()) {
        return position(HEADER, line.as_bytes()).map(Some);
    }
    for name in QUERY {
        if let Some(text) = query::find(head.uri.query(), name)? {
            return position(name, text.as_bytes()).map(Some);
        }
    }
    cursor_in(metadata)
}

/// The same where a caller can set neither: `afterSequence` in the metadata of its request.
///
/// # Errors
/// If it is not one number that a frame could have.
fn cursor_in(metadata: Option<&Metadata>) -> Result<Option<Number>, Fault> {
    let Some(literal) = metadata.and_then(|metadata| metadata.get(AFTER)) else {
        return Ok(None);
    };
    let text = literal.as_str().trim_matches('"');
    position(AFTER, text.as_bytes()).map(Some)
}

fn position(name: &str, text: &[u8]) -> Result<Number, Fault> {
    number(text).ok_or_else(|| Fault::from(Refusal::Cursor).about(name))
}

fn number(text: &[u8]) -> Option<Number> {
    // `parse` would take a leading plus; stores keep numbers as signed.
    if !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number: i64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    u64::try_from(number).ok().map(Number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn head(uri: &str, headers: &[(&str, &[u8])]) -> Parts {
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn a_cursor_is_a_whole_number() {
        let ask = |text: &str| cursor(&head("/", &[("last-event-id", text.as_bytes())]), None);
        assert_eq!(ask("0").unwrap(), Some(Number(0)));
        assert_eq!(ask("17").unwrap(), Some(Number(17)));
        assert_eq!(ask("").unwrap(), None);
        for text in ["-1", "+1", "1.0", "x", "1 2", "9223372036854775808"] {
            assert!(ask(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn the_header_beats_the_query() {
        let both = head("/?afterSequence=3", &[("last-event-id", b"4")]);
        assert_eq!(cursor(&both, None).unwrap(), Some(Number(4)));
        for query in [
            "/?afterSequence=3",
            "/?lastSequence=3",
            "/?lastSequence=9&afterSequence=3",
        ] {
            let found = cursor(&head(query, &[]), None);
            assert_eq!(found.unwrap(), Some(Number(3)), "{query}");
        }
        assert!(cursor(&head("/?afterSequence=", &[]), None).is_err());
        assert!(cursor(&head("/", &[]), None).unwrap().is_none());
    }

    #[test]
    fn g_06_metadata_may_hold_the_cursor() {
        let ask = |json: &str| {
            let metadata: Metadata = a2ad_proto::from_json(json.as_bytes()).unwrap();
            cursor_in(Some(&metadata))
        };
        assert_eq!(
            ask(r#"{"afterSequence":7,"x":1}"#).unwrap(),
            Some(Number(7))
        );
        assert_eq!(ask(r#"{"afterSequence":"7"}"#).unwrap(), Some(Number(7)));
        assert_eq!(ask("{}").unwrap(), None);
        assert_eq!(cursor_in(None).unwrap(), None);
        for json in ["-1", "1.5", "true", "null", "[]", "\"x\""] {
            assert!(
                ask(&format!(r#"{{"afterSequence":{json}}}"#)).is_err(),
                "{json}"
            );
        }
    }

    #[test]
    fn repeated_cursors_must_agree() {
        let twice = head("/?afterSequence=3&aftersequence=3", &[]);
        assert_eq!(cursor(&twice, None).unwrap(), Some(Number(3)));
        let fault = cursor(&head("/?afterSequence=3&afterSequence=4", &[]), None).unwrap_err();
        assert_eq!(fault.kind, a2ad_proto::ErrorKind::InvalidParams);
        let lines = |second| [("last-event-id", &b"3"[..]), ("last-event-id", second)];
        let twice = head("/", &lines(b"3"));
        assert_eq!(cursor(&twice, None).unwrap(), Some(Number(3)));
        assert!(cursor(&head("/", &lines(b"4")), None).is_err());
    }

    #[test]
    fn an_idempotency_key_is_one_short_line() {
        let limits = Limits::default();
        let ask = |values: &[&[u8]]| {
            let lines: Vec<_> = values
                .iter()
                .map(|value| ("idempotency-key", *value))
                .collect();
            idempotency_key(&head("/", &lines).headers, &limits)
        };
        assert_eq!(ask(&[]).unwrap(), None);
        assert_eq!(ask(&[b"order 7"]).unwrap().as_deref(), Some("order 7"));
        assert_eq!(
            ask(&["größe".as_bytes()]).unwrap().as_deref(),
            Some("größe")
        );
        assert_eq!(
            ask(&[&[b'k'; 256]]).unwrap().map(|key| key.len()),
            Some(256)
        );
        assert!(ask(&[&[b'k'; 257]]).is_err());
        assert!(ask(&[b""]).is_err());
        assert!(ask(&[b"a\tb"]).is_err());
        assert!(ask(&[b"\xff"]).is_err());
        assert!(ask(&[b"a", b"a"]).is_err());
    }
}
