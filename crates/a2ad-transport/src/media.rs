//! Media types: what a body is said to be, and what the caller wants to read.

use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};

use crate::reply::{A2A_JSON, JSON};
use crate::version::Generation;

pub(crate) const JSON_NAME: &str = "application/json";
pub(crate) const A2A_JSON_NAME: &str = "application/a2a+json";
const EVENTS_NAME: &str = "text/event-stream";

/// Whether the body is one of these types, whatever its parameters, or nothing is said of it (AMB-29).
pub(crate) fn is_one_of(headers: &HeaderMap, names: &[&str]) -> bool {
    let mut lines = headers.get_all(CONTENT_TYPE).iter();
    match (lines.next(), lines.next()) {
        (None, _) => true,
        (Some(line), None) => line.to_str().is_ok_and(|text| {
            names
                .iter()
                .any(|name| essence(text).eq_ignore_ascii_case(name))
        }),
        (Some(_), Some(_)) => false,
    }
}

/// Whether the body is not compressed. Inflating is refused altogether rather than bounded.
pub(crate) fn is_plain(headers: &HeaderMap) -> bool {
    headers.get_all(CONTENT_ENCODING).iter().all(|line| {
        line.to_str().is_ok_and(|text| {
            text.split(',')
                .map(str::trim)
                .all(|coding| coding.is_empty() || coding.eq_ignore_ascii_case("identity"))
        })
    })
}

/// Whether the caller reads event streams.
pub(crate) fn accepts_events(headers: &HeaderMap) -> bool {
    accepts(headers, EVENTS_NAME)
}

/// The type of a result over HTTP+JSON: the protocol's own for whoever names it or takes anything, else plain JSON
/// (REST-01). Whoever says nothing may not know the protocol's type, and 0.3 has none (V03-14).
pub(crate) fn of_result(generation: Generation, headers: &HeaderMap) -> HeaderValue {
    if generation == Generation::V03 {
        return JSON;
    }
    let anything = || !accepts(headers, JSON_NAME) && accepts(headers, "*/*");
    if accepts(headers, A2A_JSON_NAME) || anything() {
        A2A_JSON
    } else {
        JSON
    }
}

/// The type of an error over HTTP+JSON. It is plain JSON for whoever names that, even beside the protocol's own type:
/// a client in use discards the body of any other error (REST-01, AMB-28).
pub(crate) fn of_error(generation: Generation, headers: &HeaderMap) -> HeaderValue {
    if accepts(headers, JSON_NAME) {
        JSON
    } else {
        of_result(generation, headers)
    }
}

/// Whether `Accept` names this range. Weights do not matter, except that zero means no.
fn accepts(headers: &HeaderMap, name: &str) -> bool {
    headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','))
        .any(|range| essence(range).eq_ignore_ascii_case(name) && !is_refused(range))
}

/// Whether a media range has the weight zero.
fn is_refused(range: &str) -> bool {
    range.split(';').skip(1).any(|parameter| {
        let Some((name, value)) = parameter.split_once('=') else {
            return false;
        };
        let zero = value
            .trim()
            .parse::<f32>()
            .is_ok_and(|weight| weight <= 0.0);
        name.trim().eq_ignore_ascii_case("q") && zero
    })
}

/// A media type without its parameters.
pub(crate) fn essence(media_type: &str) -> &str {
    let end = media_type.find(';').unwrap_or(media_type.len());
    media_type[..end].trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accept(lines: &[&'static str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(ACCEPT, HeaderValue::from_static(line));
        }
        headers
    }

    #[test]
    fn whoever_names_event_streams_reads_them() {
        let accepts = |lines: &[&'static str]| accepts_events(&accept(lines));
        assert!(accepts(&["text/event-stream"]));
        assert!(accepts(&[
            "application/json",
            "text/plain, TEXT/Event-Stream ; q=0.5"
        ]));
        assert!(!accepts(&[]));
        assert!(!accepts(&["*/*"]));
        assert!(!accepts(&["text/event-streams"]));
        assert!(!accepts(&["text/event-stream;q=0.0"]));
    }

    #[test]
    fn answers_have_the_type_the_caller_asks_for() {
        for (line, result, error) in [
            ("application/a2a+json", A2A_JSON, A2A_JSON),
            ("Application/A2A+JSON; charset=utf-8", A2A_JSON, A2A_JSON),
            ("*/*", A2A_JSON, A2A_JSON),
            ("text/event-stream, */*;q=0.1", A2A_JSON, A2A_JSON),
            ("application/json", JSON, JSON),
            ("application/json, text/plain, */*", JSON, JSON),
            ("application/a2a+json, application/json", A2A_JSON, JSON),
            ("application/a2a+json;q=0, application/json", JSON, JSON),
            ("text/event-stream", JSON, JSON),
            ("application/*", JSON, JSON),
            ("", JSON, JSON),
        ] {
            let headers = accept(&[line]);
            assert_eq!(of_result(Generation::V10, &headers), result, "{line}");
            assert_eq!(of_error(Generation::V10, &headers), error, "{line}");
            assert_eq!(of_result(Generation::V03, &headers), JSON, "{line}");
            assert_eq!(of_error(Generation::V03, &headers), JSON, "{line}");
        }
        assert_eq!(of_result(Generation::V10, &accept(&[])), JSON);
        assert_eq!(of_error(Generation::V10, &accept(&[])), JSON);
        let two = accept(&["application/json", "application/a2a+json"]);
        let of_two = (
            of_result(Generation::V10, &two),
            of_error(Generation::V10, &two),
        );
        assert_eq!(of_two, (A2A_JSON, JSON));
    }
}
