//! An error over gRPC: a status whose details are a `google.rpc.Status` (GRPC-03).

use std::time::Duration;

use a2ad_proto::rpc::{self, Any, BadRequest, Delay, ErrorInfo, RetryInfo, Violation};
use a2ad_proto::{ERROR_DOMAIN, ErrorKind, v03};
use prost::Message as _;
use tonic::{Code, Status};

use super::{Fault, is_transient};
use crate::version::Generation;

/// How long a status's message may be. It travels as a header, three bytes for each that is not ASCII, and twice:
/// clients give up on heads of more than some 8 KiB.
const MESSAGE_BYTES_MAX: usize = 1024;
/// How large a status's details may be before their encoding as text.
const DETAILS_BYTES_MAX: usize = 3 * 1024;
/// How much of a value in `ErrorInfo` is shown.
const VALUE_BYTES_MAX: usize = 512;

impl Fault {
    /// The status of this error. If it passes by itself, the caller may try again after `retry_after`.
    pub(crate) fn status(&self, retry_after: Duration) -> Status {
        self.status_as(Code::from_i32(self.kind.grpc_code()), retry_after)
    }

    /// The same in a generation. In 0.3 its message begins with the error's name (V03-25), and what is not supported
    /// is not implemented, which is what its clients go by.
    pub(crate) fn status_in(&self, generation: Generation, retry_after: Duration) -> Status {
        if generation == Generation::V10 {
            return self.status(retry_after);
        }
        let name = v03::error_name(self.kind);
        let message = format!("{name}: {}", self.message).into();
        let code = match self.kind {
            ErrorKind::PushNotificationNotSupported | ErrorKind::UnsupportedOperation => {
                Code::Unimplemented
            }
            kind => Code::from_i32(kind.grpc_code()),
        };
        let named = Self {
            message,
            ..self.clone()
        };
        named.status_as(code, retry_after)
    }

    /// The same under another code.
    pub(crate) fn status_as(&self, code: Code, retry_after: Duration) -> Status {
        let message = cut(&self.message, MESSAGE_BYTES_MAX);
        let mut details = vec![Any::of(
            "ErrorInfo",
            &ErrorInfo {
                reason: self.kind.reason().to_owned(),
                domain: ERROR_DOMAIN.to_owned(),
                metadata: self
                    .metadata
                    .iter()
                    .map(|(name, value)| {
                        ((*name).to_owned(), cut(value, VALUE_BYTES_MAX).to_owned())
                    })
                    .collect(),
            },
        )];
        let retry = is_transient(self.kind);
        if retry {
            details.push(Any::of(
                "RetryInfo",
                &RetryInfo {
                    delay: Some(Delay {
                        seconds: i64::try_from(retry_after.as_secs()).unwrap_or(i64::MAX),
                        nanos: i32::try_from(retry_after.subsec_nanos()).unwrap_or_default(),
                    }),
                },
            ));
        }
        let spent: usize = details.iter().map(prost::Message::encoded_len).sum();
        let room = DETAILS_BYTES_MAX.saturating_sub(spent + message.len());
        details.extend(self.bad_request(room));
        let encoded = rpc::Status {
            code: code.into(),
            message: message.to_owned(),
            details,
        };
        let details = encoded.encode_to_vec().into();
        let mut status = Status::with_details(code, message, details);
        if retry {
            // What clients that retry by themselves go by.
            let pushback = retry_after.as_millis().to_string();
            if let Ok(pushback) = pushback.parse() {
                let metadata = status.metadata_mut();
                metadata.insert("grpc-retry-pushback-ms", pushback);
            }
        }
        status
    }

    /// The fields to blame, as many as there is room for.
    fn bad_request(&self, mut room: usize) -> Option<Any> {
        let mut field_violations = Vec::new();
        for violation in &self.violations.0 {
            let violation = Violation {
                field: cut(&violation.field, VALUE_BYTES_MAX).to_owned(),
                description: cut(&violation.description, VALUE_BYTES_MAX).to_owned(),
            };
            // With the key and length of the violation itself.
            room = match room.checked_sub(violation.encoded_len() + 4) {
                Some(rest) => rest,
                None => break,
            };
            field_violations.push(violation);
        }
        (!field_violations.is_empty())
            .then(|| Any::of("BadRequest", &BadRequest { field_violations }))
    }
}

fn cut(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2ad_core::engine::EngineError;
    use a2ad_proto::{ErrorKind, Violations};

    fn read(status: &Status) -> rpc::Status {
        rpc::Status::decode(status.details()).unwrap()
    }

    #[test]
    fn grpc_03_every_kind_has_its_code_and_details() {
        for kind in ErrorKind::ALL {
            let fault = Fault::new(kind, "No").with("hint", "x");
            let status = fault.status(Duration::from_secs(1));
            assert_eq!(status.code() as i32, kind.grpc_code(), "{kind:?}");
            assert_eq!(status.message(), "No");
            let details = read(&status);
            assert_eq!(
                (details.code, details.message.as_str()),
                (kind.grpc_code(), "No")
            );
            let info = &details.details[0];
            assert_eq!(info.type_url, "type.googleapis.com/google.rpc.ErrorInfo");
            let info = ErrorInfo::decode(&*info.value).unwrap();
            assert_eq!(info.reason, kind.reason());
            assert_eq!(info.domain, "a2a-protocol.org");
            assert_eq!(info.metadata["hint"], "x");
            let retry = details.details.get(1).map(|it| it.type_url.as_str());
            let expected = is_transient(kind).then_some("type.googleapis.com/google.rpc.RetryInfo");
            assert_eq!(retry, expected);
            let pushback = status.metadata().get("grpc-retry-pushback-ms");
            assert_eq!(pushback.is_some(), is_transient(kind));
        }
    }

    /// Whatever a request blames or repeats, its error fits into the head of an answer.
    #[test]
    fn an_error_stays_small() {
        let mut violations = Violations::default();
        for n in 0..1_000 {
            violations.add(format!("message.parts[{n}]"), "\u{e4}".repeat(120));
        }
        let wide = Fault::from(violations).status(Duration::from_secs(1));
        let long = EngineError::TaskNotFound {
            id: "\u{e4}".repeat(100_000),
        };
        let long = Fault::from(long).status(Duration::from_secs(1));
        for status in [&wide, &long] {
            let head = status.clone().into_http::<()>().headers().clone();
            let size: usize = head
                .iter()
                .map(|(name, value)| name.as_str().len() + value.len() + 32)
                .sum();
            assert!(size < 8 * 1024, "{size}");
            assert!(!read(status).details.is_empty());
        }
        let blamed = BadRequest::decode(&*read(&wide).details[1].value).unwrap();
        assert!(
            blamed.field_violations.len() > 3,
            "{}",
            blamed.field_violations.len()
        );
        assert_eq!(blamed.field_violations[0].field, "message.parts[0]");
    }
}
