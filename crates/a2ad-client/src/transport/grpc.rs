//! gRPC, by hand: a message behind its length, and a status in the trailers.

use bytes::{Bytes, BytesMut};
use futures_util::future::BoxFuture;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, StatusCode};

use super::frames::{Frames, broken, next_message};
use super::{Call, Line, Reply, Transport, redirect, with_headers};
use crate::dial::Body;
use crate::error::{Error, Refusal};
use crate::interface::Interface;

/// The time that we gave the server is over.
const DEADLINE_EXCEEDED: i64 = 4;

#[derive(Debug)]
pub(super) struct Grpc(pub(super) Line);

/// How a call ended.
#[derive(Debug)]
pub(super) struct Status {
    code: i32,
    message: String,
    details: Option<Vec<u8>>,
}

impl Status {
    /// The status in the trailers, or in headers that are trailers too.
    pub(super) fn read_all(headers: &HeaderMap, trailers: Option<&HeaderMap>) -> Option<Self> {
        trailers
            .and_then(Self::read)
            .or_else(|| Self::read(headers))
    }

    fn read(headers: &HeaderMap) -> Option<Self> {
        let code = headers.get("grpc-status")?.to_str().ok()?;
        let message = headers.get("grpc-message");
        let details = headers.get("grpc-status-details-bin");
        Some(Self {
            code: code.trim().parse().unwrap_or(2),
            message: message.map(|it| decode(it.as_bytes())).unwrap_or_default(),
            details: details.map(|details| details.as_bytes().to_vec()),
        })
    }

    pub(super) fn is_ok(&self) -> bool {
        self.code == 0
    }

    pub(super) fn into_error(self) -> Error {
        let details = self.details.as_deref();
        Error::refused(Refusal::of_grpc(self.code, &self.message, details))
    }
}

/// Undoes the percent-encoding of a message.
fn decode(text: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, more)) = rest.split_first() {
        let escaped = more.first_chunk::<2>().filter(|_| first == b'%');
        let escaped = escaped.and_then(|digits| {
            let digits = std::str::from_utf8(digits).ok()?;
            u8::from_str_radix(digits, 16).ok()
        });
        bytes.push(escaped.unwrap_or(first));
        rest = if escaped.is_some() { &more[2..] } else { more };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Grpc {
    fn request(&self, call: &Call<'_>) -> Result<Request<Bytes>, Error> {
        let wire = self.0.wire;
        let (service, method) = (wire.service(), wire.rpc(call.operation)?);
        let message = call.params.write(wire.grpc());
        let length = u32::try_from(message.len()).map_err(|_| Error::invalid("the message"))?;
        let mut body = BytesMut::with_capacity(message.len() + 5);
        body.extend_from_slice(&[0]);
        body.extend_from_slice(&length.to_be_bytes());
        body.extend_from_slice(&message);
        let mut url = self.0.interface.url.clone();
        let base = url.path().trim_end_matches('/').to_owned();
        url.set_path(&format!("{base}/{service}/{method}"));
        let mut request = self.0.request(Method::POST, url, call, body.freeze())?;
        let headers = request.headers_mut();
        let kind = HeaderValue::from_static("application/grpc");
        headers.insert(header::CONTENT_TYPE, kind);
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
        if let Some(total) = call.limits.total {
            // Eight digits are the most that gRPC takes.
            let millis = total.as_millis().min(99_999_999);
            let millis = HeaderValue::from_str(&format!("{millis}m"));
            let millis = millis.map_err(|_| Error::invalid("the timeout"))?;
            headers.insert(HeaderName::from_static("grpc-timeout"), millis);
        }
        Ok(request)
    }

    /// The head of the answer, if it is one of gRPC.
    async fn start(&self, call: &Call<'_>) -> Result<(HeaderMap, Body), Error> {
        let request = self.request(call)?;
        let response = self.0.dialer.send_h2(request, &call.limits).await?;
        let (head, body) = response.into_parts();
        if head.status.is_redirection() {
            return Err(redirect(&head.headers));
        }
        let kind = head.headers.get(header::CONTENT_TYPE);
        let is_grpc = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"));
        let status = Status::read(&head.headers);
        if head.status != StatusCode::OK && status.is_none() {
            let refusal = Refusal::of_http(head.status.as_u16(), b"");
            return Err(with_headers(refusal, &head));
        }
        match status {
            Some(status) if !status.is_ok() => Err(status.into_error()),
            _ if !is_grpc => Err(Error::not_a2a("the answer is not gRPC", "")),
            _ => Ok((head.headers, body)),
        }
    }

    async fn exchange(&self, call: &Call<'_>) -> Result<Reply, Error> {
        let reply = self.exchange_once(call).await;
        reply.map_err(|error| match error {
            Error::Refused(refusal) if refusal.code == DEADLINE_EXCEEDED => Error::Timeout {
                what: "the agent's answer",
                limit: call.limits.total.unwrap_or_default(),
                sent: true,
            },
            other => other,
        })
    }

    async fn exchange_once(&self, call: &Call<'_>) -> Result<Reply, Error> {
        let (headers, mut body) = self.start(call).await?;
        let bytes_max = usize::try_from(call.limits.answer_bytes_max).unwrap_or(usize::MAX);
        let mut buffer = BytesMut::new();
        let message = next_message(&self.0.host(), &mut body, &mut buffer, bytes_max).await?;
        let second = match &message {
            Some(_) => next_message(&self.0.host(), &mut body, &mut buffer, bytes_max).await?,
            None => None,
        };
        match Status::read_all(&headers, body.trailers()) {
            Some(status) if !status.is_ok() => return Err(status.into_error()),
            Some(_) => {}
            None => return Err(broken(&self.0.host())),
        }
        match (message, second) {
            (Some(bytes), None) => Ok(Reply {
                bytes,
                form: self.0.wire.grpc(),
            }),
            _ => Err(Error::not_a2a("not one message but none or several", "")),
        }
    }

    async fn stream(&self, call: &Call<'_>) -> Result<Frames, Error> {
        let (_, body) = self.start(call).await?;
        Ok(Frames::grpc(&self.0, body))
    }
}

impl Transport for Grpc {
    fn interface(&self) -> &Interface {
        &self.0.interface
    }

    fn call<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Reply, Error>> {
        Box::pin(async move { self.exchange(&call).await.map_err(|it| self.0.conceal(it)) })
    }

    fn open<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Frames, Error>> {
        Box::pin(async move { self.stream(&call).await.map_err(|it| self.0.conceal(it)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_decoded_as_far_as_they_can_be() {
        assert_eq!(decode(b"a%20b%C3%A9"), "a b\u{e9}");
        assert_eq!(decode(b"100% of %zz %4"), "100% of %zz %4");
    }

    #[test]
    fn grpc_04_details_tell_errors_of_one_code_apart() {
        use base64::Engine as _;
        // google.rpc.Status{details: [Any{ErrorInfo{reason: "VERSION_NOT_SUPPORTED"}}]}, by hand.
        let info = b"\x0a\x15VERSION_NOT_SUPPORTED";
        let name = b"type.googleapis.com/google.rpc.ErrorInfo";
        let mut any = vec![0x0a, u8::try_from(name.len()).unwrap()];
        any.extend_from_slice(name);
        any.extend_from_slice(&[0x12, u8::try_from(info.len()).unwrap()]);
        any.extend_from_slice(info);
        let mut status = vec![0x1a, u8::try_from(any.len()).unwrap()];
        status.extend_from_slice(&any);
        let encoded = base64::engine::general_purpose::STANDARD.encode(status);
        let mut headers = HeaderMap::new();
        headers.insert("grpc-status", HeaderValue::from_static("9"));
        headers.insert("grpc-status-details-bin", encoded.parse().unwrap());
        let error = Status::read(&headers).unwrap().into_error();
        assert_eq!(
            error.kind(),
            Some(a2ad_proto::ErrorKind::VersionNotSupported)
        );
        headers.insert("grpc-status-details-bin", HeaderValue::from_static("***"));
        let error = Status::read(&headers).unwrap().into_error();
        assert_eq!(
            error.kind(),
            Some(a2ad_proto::ErrorKind::UnsupportedOperation)
        );
    }
}
