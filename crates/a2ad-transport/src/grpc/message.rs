//! A request's body: one message behind its length.

use http::HeaderMap;

use crate::errors::Refusal;

/// A flag, and four bytes of length.
pub(super) const PREFIX: usize = 5;

/// Looks whether a body is exactly one message that is not compressed, which is all that our methods take. tonic
/// would answer otherwise as if the fault were ours.
pub(super) fn check<'a>(headers: &HeaderMap, body: &'a [u8]) -> Result<&'a [u8], Refusal> {
    let encoding = headers.get("grpc-encoding");
    if encoding.is_some_and(|encoding| encoding != "identity") {
        return Err(Refusal::CompressedMessage);
    }
    let Some(([flag, length @ ..], message)) = body.split_first_chunk::<PREFIX>() else {
        return Err(Refusal::NotOneMessage);
    };
    if *flag == 1 {
        return Err(Refusal::CompressedMessage);
    }
    let length = usize::try_from(u32::from_be_bytes(*length));
    if *flag > 1 || length != Ok(message.len()) {
        return Err(Refusal::NotOneMessage);
    }
    Ok(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_one_message_to_the_last_byte() {
        let none = HeaderMap::new();
        let check = |body: &[u8]| check(&none, body).err();
        assert_eq!(check(b"\0\0\0\0\0"), None);
        assert_eq!(check(b"\0\0\0\0\x02ab"), None);
        let broken = [
            &b""[..],
            b"\0",
            b"\0\0\0\0",
            b"\0\0\0\0\x01",
            b"\0\0\0\0\x01ab",
            b"\0\0\0\0\0\0\0\0\0\0",
            b"\0\xff\xff\xff\xffab",
            b"\x02\0\0\0\0",
            b"\xff\0\0\0\0",
        ];
        for body in broken {
            assert_eq!(check(body), Some(Refusal::NotOneMessage), "{body:?}");
        }
        assert_eq!(check(b"\x01\0\0\0\0"), Some(Refusal::CompressedMessage));
    }

    #[test]
    fn an_encoding_is_refused_even_if_not_used() {
        let mut headers = HeaderMap::new();
        headers.insert("grpc-encoding", http::HeaderValue::from_static("identity"));
        assert!(check(&headers, b"\0\0\0\0\0").is_ok());
        headers.insert("grpc-encoding", http::HeaderValue::from_static("gzip"));
        let refused = check(&headers, b"\0\0\0\0\0");
        assert_eq!(refused, Err(Refusal::CompressedMessage));
    }
}
