//! What an agent says when it says no, whichever binding it says it over.

use std::fmt;
use std::time::Duration;

use a2ad_proto::{ErrorKind, FieldViolation, Violations, v03};
use base64::Engine as _;
use serde_json::{Map, Value, json};

use crate::transport::Operation;

/// How much of an agent's words is kept.
const MESSAGE_CHARS_MAX: usize = 2_000;
/// How many details and violations are kept.
const DETAILS_MAX: usize = 64;

/// The agent's refusal of a request.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Refusal {
    /// Which error of the protocol it is: by the reason it gives, else by its code, else by the status (ERR-04).
    pub kind: Option<ErrorKind>,
    /// `ErrorInfo.reason` as it came; that of the kind if none did.
    pub reason: String,
    /// The binding's own code: of JSON-RPC, an HTTP status, or a gRPC status.
    pub code: i64,
    /// The agent's words. They are a stranger's: show them, do not act on them.
    pub message: String,
    /// The fields to blame.
    pub violations: Violations,
    /// All details as JSON, of whatever type.
    pub details: Vec<Value>,
    /// When to try again, if the agent says so.
    pub retry_after: Option<Duration>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = if self.reason.is_empty() {
            "error"
        } else {
            &self.reason
        };
        write!(f, "{reason} ({}): {}", self.code, self.message)?;
        if !self.violations.0.is_empty() {
            write!(f, " [{}]", self.violations)?;
        }
        Ok(())
    }
}

impl Refusal {
    /// The `error` of a JSON-RPC response.
    pub(crate) fn of_json_rpc(error: &Value, http: u16) -> Self {
        // 0.3 and hand-made servers put an object or a text where 1.0 has a list.
        let details = match error.get("data") {
            Some(Value::Array(list)) => list.clone(),
            Some(Value::Null) | None => Vec::new(),
            Some(one) => vec![one.clone()],
        };
        let code = error.get("code").and_then(number).unwrap_or_default();
        let by_code = i32::try_from(code).ok().and_then(|code| {
            // An internal error under a telling status is what the status tells.
            let told = ErrorKind::from_json_rpc_code(code)?;
            match of_http_status(http) {
                Some(kind) if told == ErrorKind::Internal && http != 200 => Some(kind),
                _ => Some(told),
            }
        });
        let status = if code == 0 { http.into() } else { code };
        Self::new(status, text(error, &["message"]), details, || {
            by_code.or_else(|| of_http_status(http))
        })
    }

    /// An error answer of HTTP+JSON, or of whatever stands before the agent.
    pub(crate) fn of_http(status: u16, body: &[u8]) -> Self {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        Self::of_http_error(status, &body)
    }

    /// The same of a body that is read, and of an event in a stream.
    pub(crate) fn of_http_error(status: u16, body: &Value) -> Self {
        let error = match body.get("error") {
            Some(error @ Value::Object(_)) => error,
            _ => body,
        };
        let details = error.get("details").and_then(Value::as_array);
        let code = error.get("code").and_then(number).unwrap_or(status.into());
        let grpc_name = error.get("status").and_then(Value::as_str);
        let mut message = text(error, &["message", "detail", "title"]);
        if message.is_empty() {
            message = match body.get("error").and_then(Value::as_str) {
                Some(words) => words.to_owned(),
                None => format!("HTTP status {status}"),
            };
        }
        // Problem details and older servers name the error by its type (ERR-05).
        let named = error.get("type").and_then(Value::as_str);
        let named = named.and_then(|name| {
            let by_reason = || ErrorKind::from_reason(&reason_of(name));
            v03::kind_of_error_name(name).or_else(by_reason)
        });
        let details = details.cloned().unwrap_or_default();
        let mut refusal = Self::new(code, message, details, || {
            let by_code = i32::try_from(code).ok().filter(|code| *code < 0);
            named
                .or_else(|| by_code.and_then(ErrorKind::from_json_rpc_code))
                .or_else(|| grpc_name.and_then(of_grpc_name))
                .or_else(|| u16::try_from(code).ok().and_then(of_http_status))
                .or_else(|| of_http_status(status))
        });
        refusal.code = code;
        refusal
    }

    /// A gRPC status that is not OK. The details are those of `grpc-status-details-bin`, still in base64.
    pub(crate) fn of_grpc(code: i32, message: &str, details: Option<&[u8]>) -> Self {
        let details = details.map(grpc::details).unwrap_or_default();
        Self::new(code.into(), message.to_owned(), details, || {
            // Agents of 0.3 begin with the name of the error (V03-24).
            let name = message.split(':').next().unwrap_or_default();
            v03::kind_of_error_name(name.trim()).or_else(|| of_grpc_code(code))
        })
    }

    /// The same from an agent of 0.3, where statuses beside a few words mean something else (V03-24).
    pub(crate) fn of_old_http(status: u16, body: &[u8]) -> Self {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let mut refusal = Self::of_http_error(status, &body);
        let says_kind = body.get("type").is_some() || body.get("error").is_some();
        let words = body.get("message").and_then(Value::as_str);
        let kind = match status {
            404 if words.is_some_and(|words| words != "Not Found") => ErrorKind::TaskNotFound,
            501 => ErrorKind::UnsupportedOperation,
            _ => return refusal,
        };
        if !says_kind {
            refusal.kind = Some(kind);
            kind.reason().clone_into(&mut refusal.reason);
        }
        refusal
    }

    /// What an agent of 0.3 means by not doing this: it says so by statuses that many errors have in common (V03-24).
    pub(crate) fn of_old(mut self, operation: Operation) -> Self {
        let kind = match operation {
            Operation::CreatePushConfig
            | Operation::GetPushConfig
            | Operation::ListPushConfigs
            | Operation::DeletePushConfig => ErrorKind::PushNotificationNotSupported,
            Operation::GetExtendedCard => ErrorKind::UnsupportedOperation,
            _ => return self,
        };
        let not_done = [ErrorKind::MethodNotFound, ErrorKind::UnsupportedOperation];
        if self.kind.is_some_and(|kind| not_done.contains(&kind)) {
            self.kind = Some(kind);
            kind.reason().clone_into(&mut self.reason);
        }
        self
    }

    fn new(
        code: i64,
        message: String,
        mut details: Vec<Value>,
        by_code: impl FnOnce() -> Option<ErrorKind>,
    ) -> Self {
        details.truncate(DETAILS_MAX);
        let of_type = |name: &str| {
            details.iter().find(|detail| {
                let kind = detail.get("@type").and_then(Value::as_str);
                kind.is_some_and(|kind| kind.ends_with(name))
            })
        };
        let reason = of_type("google.rpc.ErrorInfo")
            .or_else(|| details.iter().find(|detail| detail.get("reason").is_some()))
            .map(|info| text(info, &["reason"]))
            .unwrap_or_default();
        let kind = ErrorKind::from_reason(&reason).or_else(by_code);
        let mut violations = Violations::default();
        let blamed = of_type("google.rpc.BadRequest")
            .and_then(|it| it.get("fieldViolations").or(it.get("field_violations")))
            .and_then(Value::as_array);
        for blamed in blamed.into_iter().flatten().take(DETAILS_MAX) {
            violations.0.push(FieldViolation {
                field: clip(&text(blamed, &["field"])),
                description: clip(&text(blamed, &["description"])),
            });
        }
        let delay = of_type("google.rpc.RetryInfo").and_then(|info| {
            let delay = info.get("retryDelay").or(info.get("retry_delay"))?;
            let seconds = delay.as_str()?.strip_suffix('s')?.parse::<f64>().ok()?;
            Duration::try_from_secs_f64(seconds).ok()
        });
        Self {
            kind,
            reason: match kind {
                Some(kind) if reason.is_empty() => kind.reason().to_owned(),
                _ => clip(&reason),
            },
            code,
            message: clip(&message),
            violations,
            retry_after: delay,
            details,
        }
    }
}

/// A type that names an error, as its reason: `TaskNotFoundError` and `…/errors/task-not-found` alike.
fn reason_of(name: &str) -> String {
    let last = name.rsplit(['/', ':', '#']).next().unwrap_or(name);
    let last = last.strip_suffix("Error").unwrap_or(last);
    let mut reason = String::new();
    for c in last.chars() {
        if c.is_ascii_uppercase() && !reason.is_empty() && !reason.ends_with('_') {
            reason.push('_');
        }
        reason.push(if c == '-' {
            '_'
        } else {
            c.to_ascii_uppercase()
        });
    }
    reason
}

/// The kind that an HTTP status means where nothing else is said, by the tables of 1.0.1 and 1.0.0.
fn of_http_status(status: u16) -> Option<ErrorKind> {
    Some(match status {
        400 | 408 | 411 | 413 | 414 | 431 => ErrorKind::InvalidRequest,
        401 => ErrorKind::Unauthenticated,
        403 => ErrorKind::PermissionDenied,
        404 | 405 | 501 => ErrorKind::MethodNotFound,
        409 => ErrorKind::TaskNotCancelable,
        415 => ErrorKind::ContentTypeNotSupported,
        422 => ErrorKind::InvalidParams,
        429 => ErrorKind::ResourceExhausted,
        502..=504 => ErrorKind::Unavailable,
        500..=599 => ErrorKind::Internal,
        _ => return None,
    })
}

/// The kind behind the name of a gRPC status in the body of an HTTP+JSON error.
fn of_grpc_name(name: &str) -> Option<ErrorKind> {
    let code = match name {
        "INVALID_ARGUMENT" => 3,
        "NOT_FOUND" => 5,
        "PERMISSION_DENIED" => 7,
        "RESOURCE_EXHAUSTED" => 8,
        "FAILED_PRECONDITION" => 9,
        "UNIMPLEMENTED" => 12,
        "INTERNAL" => 13,
        "UNAVAILABLE" => 14,
        "UNAUTHENTICATED" => 16,
        _ => return None,
    };
    of_grpc_code(code)
}

/// The kind that a gRPC code means where nothing else is said. Several share FAILED_PRECONDITION (GRPC-04); the most
/// general of them is that the agent does not do this.
fn of_grpc_code(code: i32) -> Option<ErrorKind> {
    Some(match code {
        3 => ErrorKind::InvalidParams,
        5 => ErrorKind::TaskNotFound,
        7 => ErrorKind::PermissionDenied,
        8 => ErrorKind::ResourceExhausted,
        9 => ErrorKind::UnsupportedOperation,
        12 => ErrorKind::MethodNotFound,
        13 => ErrorKind::Internal,
        14 => ErrorKind::Unavailable,
        16 => ErrorKind::Unauthenticated,
        _ => return None,
    })
}

fn number(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}

fn text(object: &Value, names: &[&str]) -> String {
    let found = names.iter().find_map(|name| object.get(name)?.as_str());
    found.unwrap_or_default().to_owned()
}

/// No more than is worth keeping, in one line, and nothing that a terminal would act on.
pub(crate) fn clip(text: &str) -> String {
    let shown = text.chars().take(MESSAGE_CHARS_MAX);
    let mut clipped = String::new();
    for c in shown {
        if c.is_control() && c != '\t' {
            clipped.push(' ');
        } else {
            clipped.push(c);
        }
    }
    if text.chars().nth(MESSAGE_CHARS_MAX).is_some() {
        clipped.push('…');
    }
    clipped
}

mod grpc {
    use a2ad_proto::rpc::{Any, BadRequest, ErrorInfo, RetryInfo, Status, Violation};
    use prost::Message as _;

    use super::*;

    /// The details in the form that the other bindings give them. Those that cannot be read are left out: the code
    /// still says something.
    pub(super) fn details(base64: &[u8]) -> Vec<Value> {
        let config = base64::engine::general_purpose::NO_PAD
            .with_decode_padding_mode(base64::engine::DecodePaddingMode::Indifferent);
        let engine = base64::engine::GeneralPurpose::new(&base64::alphabet::STANDARD, config);
        let status = engine.decode(base64).ok();
        let status = status.and_then(|bytes| Status::decode(&*bytes).ok());
        let details = status.map(|status| status.details).unwrap_or_default();
        details.iter().take(DETAILS_MAX).map(detail).collect()
    }

    fn detail(any: &Any) -> Value {
        let mut detail = Map::new();
        detail.insert("@type".to_owned(), any.type_url.clone().into());
        let bytes = &any.value[..];
        match any.type_url.rsplit('/').next() {
            Some("google.rpc.ErrorInfo") => {
                let info = ErrorInfo::decode(bytes).unwrap_or_default();
                detail.insert("reason".to_owned(), info.reason.into());
                detail.insert("domain".to_owned(), info.domain.into());
                if !info.metadata.is_empty() {
                    detail.insert("metadata".to_owned(), json!(info.metadata));
                }
            }
            Some("google.rpc.BadRequest") => {
                let blamed = BadRequest::decode(bytes).unwrap_or_default();
                let one =
                    |it: &Violation| json!({"field": it.field, "description": it.description});
                let all = blamed.field_violations.iter().map(one).collect();
                detail.insert("fieldViolations".to_owned(), Value::Array(all));
            }
            Some("google.rpc.RetryInfo") => {
                let info = RetryInfo::decode(bytes).unwrap_or_default();
                let delay = info.delay.unwrap_or_default();
                let seconds = format!("{}.{:09}s", delay.seconds, delay.nanos.max(0));
                detail.insert("retryDelay".to_owned(), seconds.into());
            }
            _ => {}
        }
        Value::Object(detail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn err_04_the_reason_wins_over_the_code_and_the_code_over_the_status() {
        let info = |reason: &str| {
            json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason,
                "domain": "a2a-protocol.org", "metadata": {"n": 5}}])
        };
        let kind = |error: Value, http| Refusal::of_json_rpc(&error, http).kind;
        let by_reason = json!({"code": -32603, "message": "x", "data": info("TASK_NOT_FOUND")});
        assert_eq!(kind(by_reason, 200), Some(ErrorKind::TaskNotFound));
        let by_code = json!({"code": -32004, "message": "x", "data": info("OF_ANOTHER_WORLD")});
        assert_eq!(kind(by_code, 500), Some(ErrorKind::UnsupportedOperation));
        let by_status = json!({"code": -1, "message": "x"});
        assert_eq!(kind(by_status, 401), Some(ErrorKind::Unauthenticated));
        let go = json!({"code": -31401, "message": "x"});
        assert_eq!(kind(go, 200), Some(ErrorKind::Unauthenticated));
        let busy = json!({"code": -32603, "message": "x"});
        assert_eq!(kind(busy.clone(), 429), Some(ErrorKind::ResourceExhausted));
        assert_eq!(kind(busy, 200), Some(ErrorKind::Internal));
        assert_eq!(kind(json!({"code": 5}), 200), None);
    }

    #[test]
    fn err_04_data_may_be_anything() {
        for data in [
            json!("why"),
            json!({"a": 1}),
            json!(null),
            json!([1, "x", null]),
            json!(7),
        ] {
            let error = json!({"code": -32001, "message": "gone", "data": data});
            let refusal = Refusal::of_json_rpc(&error, 200);
            assert_eq!(refusal.kind, Some(ErrorKind::TaskNotFound));
            assert_eq!(refusal.reason, "TASK_NOT_FOUND");
            assert_eq!(refusal.message, "gone");
        }
        for error in [
            json!(null),
            json!("x"),
            json!([]),
            json!({"code": "-32001"}),
        ] {
            let _nothing_panics = Refusal::of_json_rpc(&error, 200);
        }
    }

    #[test]
    fn err_05_other_shapes_of_http_errors_are_understood() {
        let kind = |status, body: Value| Refusal::of_http(status, body.to_string().as_bytes()).kind;
        let not_found = json!({"error": {"code": 404, "status": "NOT_FOUND", "message": "x"}});
        assert_eq!(kind(404, not_found), Some(ErrorKind::TaskNotFound));
        let problem =
            json!({"type": "https://a2a-protocol.org/errors/task-not-cancelable", "status": 409});
        assert_eq!(kind(409, problem), Some(ErrorKind::TaskNotCancelable));
        let old = json!({"type": "VersionNotSupportedError", "message": "x"});
        assert_eq!(kind(400, old), Some(ErrorKind::VersionNotSupported));
        assert_eq!(
            kind(404, json!({"detail": "Not Found"})),
            Some(ErrorKind::MethodNotFound)
        );
        assert_eq!(kind(502, json!("<html>")), Some(ErrorKind::Unavailable));
        let refusal = Refusal::of_http(503, b"<html>busy</html>");
        assert_eq!((refusal.code, &*refusal.message), (503, "HTTP status 503"));
        let refusal = Refusal::of_http(400, br#"{"error":"bad thing"}"#);
        assert_eq!(refusal.message, "bad thing");
    }

    #[test]
    fn v03_24_errors_of_0_3_are_understood_in_all_their_forms() {
        let old =
            |status, body: Value| Refusal::of_old_http(status, body.to_string().as_bytes()).kind;
        let said = |text: &str| json!({ "message": text });
        let nothing = json!({});
        assert_eq!(
            old(404, said("Task not found")),
            Some(ErrorKind::TaskNotFound)
        );
        assert_eq!(old(404, said("Not Found")), Some(ErrorKind::MethodNotFound));
        assert_eq!(old(404, nothing), Some(ErrorKind::MethodNotFound));
        assert_eq!(old(409, said("x")), Some(ErrorKind::TaskNotCancelable));
        assert_eq!(
            old(415, said("x")),
            Some(ErrorKind::ContentTypeNotSupported)
        );
        assert_eq!(old(422, said("x")), Some(ErrorKind::InvalidParams));
        assert_eq!(old(501, said("x")), Some(ErrorKind::UnsupportedOperation));
        for kind in ErrorKind::ALL {
            let named = json!({"type": v03::error_name(kind), "message": "x"});
            assert_eq!(old(404, named), Some(kind));
            let message = format!("{}: words", v03::error_name(kind));
            assert_eq!(Refusal::of_grpc(2, &message, None).kind, Some(kind));
        }
        let status = json!({"error": {"code": 404, "status": "NOT_FOUND", "message": "x"}});
        assert_eq!(old(404, status), Some(ErrorKind::TaskNotFound));
        let kind = |code| Refusal::of_grpc(code, "words", None).kind;
        assert_eq!(kind(12), Some(ErrorKind::MethodNotFound));
        assert_eq!(kind(5), Some(ErrorKind::TaskNotFound));
        let push = Operation::CreatePushConfig;
        let of_push = |code| Refusal::of_grpc(code, "words", None).of_old(push).kind;
        let no_push = Some(ErrorKind::PushNotificationNotSupported);
        assert_eq!(of_push(12), no_push);
        assert_eq!(of_push(5), Some(ErrorKind::TaskNotFound));
        let get = Refusal::of_grpc(12, "words", None).of_old(Operation::GetTask);
        assert_eq!(get.kind, Some(ErrorKind::MethodNotFound));
        // Everything is an internal error to some (AMB-32).
        let internal = json!({"code": -32603, "message": "Task not found"});
        assert_eq!(
            Refusal::of_json_rpc(&internal, 200).kind,
            Some(ErrorKind::Internal)
        );
    }

    #[test]
    fn a_strangers_words_are_short_and_on_one_line() {
        let long = "x".repeat(5_000);
        let error = json!({"code": -32001, "message": format!("a\u{1b}[31m\r\n{long}")});
        let refusal = Refusal::of_json_rpc(&error, 200);
        assert!(refusal.message.starts_with("a [31m  xxx"));
        assert!(refusal.message.chars().count() <= MESSAGE_CHARS_MAX + 1);
    }

    #[test]
    fn violations_and_delays_are_read() {
        let error = json!({"code": -32602, "message": "x", "data": [
            {"@type": "type.googleapis.com/google.rpc.BadRequest",
             "fieldViolations": [{"field": "message.parts", "description": "is required"}]},
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1.5s"},
        ]});
        let refusal = Refusal::of_json_rpc(&error, 200);
        assert_eq!(
            refusal.violations,
            Violations::one("message.parts", "is required")
        );
        assert_eq!(refusal.retry_after, Some(Duration::from_millis(1500)));
        assert!(refusal.to_string().contains("message.parts: is required"));
    }
}
