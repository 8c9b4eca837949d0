//! Streams of frames as the server gives them.

use a2ad_proto::{Metadata, StreamResponse};
use bytes::{Buf as _, Bytes, BytesMut};
use http::HeaderMap;

use super::grpc::Status;
use super::jsonrpc::Envelope;
use super::wire::{Answer as _, Form};
use super::{Line, read_error};
use crate::credentials::Credentials;
use crate::dial::{Body, DialError};
use crate::error::{Error, Refusal};
use crate::sse::{SseEvent, SseParser};
use crate::{Event, REPLAY};

/// What stands around a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrap {
    JsonRpc,
    Bare,
}

/// One stream as the server gives it: it ends when the server ends it, and breaks when the connection breaks.
///
/// [`EventStream`](crate::EventStream) is the one that heals.
#[derive(Debug)]
pub struct Frames {
    source: Source,
    /// Whether the agent numbers its frames.
    numbered: bool,
    credentials: Credentials,
    host: String,
    /// How large the last frame was.
    pub(crate) bytes: u64,
}

#[derive(Debug)]
enum Source {
    Sse {
        body: Box<Body>,
        parser: SseParser,
        chunk: Bytes,
        wrap: Wrap,
        form: Form,
    },
    Grpc {
        body: Box<Body>,
        buffer: BytesMut,
        event_bytes_max: usize,
        form: Form,
    },
    /// The answer was one object.
    One(Box<StreamResponse>),
    Over,
}

impl Frames {
    pub(super) fn sse(line: &Line, body: Body, wrap: Wrap) -> Self {
        let source = Source::Sse {
            body: Box::new(body),
            parser: SseParser::new(line.event_bytes_max),
            chunk: Bytes::new(),
            wrap,
            form: match wrap {
                Wrap::JsonRpc => line.wire.json_rpc(),
                Wrap::Bare => line.wire.http_json(),
            },
        };
        Self::new(line, source)
    }

    pub(super) fn grpc(line: &Line, body: Body) -> Self {
        let source = Source::Grpc {
            body: Box::new(body),
            buffer: BytesMut::new(),
            event_bytes_max: line.event_bytes_max,
            form: line.wire.grpc(),
        };
        Self::new(line, source)
    }

    pub(super) fn one(line: &Line, response: StreamResponse) -> Self {
        Self::new(line, Source::One(Box::new(response)))
    }

    fn new(line: &Line, source: Source) -> Self {
        Self {
            source,
            numbered: line.replay,
            credentials: line.credentials.clone(),
            host: line.host(),
            bytes: 0,
        }
    }

    /// The next frame; `None` when the server ended the stream in good order. After an error there is nothing more.
    ///
    /// Cancel safe.
    ///
    /// # Errors
    /// When the server reports one, the connection breaks, or what comes is not A2A.
    pub async fn next(&mut self) -> Result<Option<Event>, Error> {
        let next = self.read().await;
        if !matches!(next, Ok(Some(_))) {
            self.source = Source::Over;
        }
        next.map_err(|error| error.map_text(|text| self.credentials.conceal(text)))
    }

    async fn read(&mut self) -> Result<Option<Event>, Error> {
        match &mut self.source {
            Source::Over => Ok(None),
            Source::One(_) => {
                let Source::One(response) = std::mem::replace(&mut self.source, Source::Over)
                else {
                    return Ok(None);
                };
                Ok(Some(Event::new(*response, None)))
            }
            Source::Sse {
                body,
                parser,
                chunk,
                wrap,
                form,
            } => {
                let Some(event) = next_event(&self.host, body, parser, chunk).await? else {
                    return Ok(None);
                };
                self.bytes = event.data.len() as u64;
                let number = event.id.as_deref().and_then(|id| id.parse().ok());
                let number = number.filter(|_| self.numbered);
                Ok(Some(Event::new(wrap.read(&event, *form)?, number)))
            }
            Source::Grpc {
                body,
                buffer,
                event_bytes_max,
                form,
            } => {
                let Some(message) =
                    next_message(&self.host, body, buffer, *event_bytes_max).await?
                else {
                    return match Status::read_all(&HeaderMap::new(), body.trailers()) {
                        Some(status) if status.is_ok() => Ok(None),
                        Some(status) => Err(status.into_error()),
                        // Every call ends with a status: without one, it did not end but break.
                        None => Err(broken(&self.host)),
                    };
                };
                self.bytes = message.len() as u64;
                let mut response = StreamResponse::read(&message, *form, "a frame")?;
                let number = self.numbered.then(|| take_number(&mut response)).flatten();
                Ok(Some(Event::new(response, number)))
            }
        }
    }
}

pub(super) fn broken(host: &str) -> Error {
    Error::Network(DialError::Broken {
        host: host.to_owned(),
    })
}

async fn next_event(
    host: &str,
    body: &mut Body,
    parser: &mut SseParser,
    chunk: &mut Bytes,
) -> Result<Option<SseEvent>, Error> {
    loop {
        let mut input = &chunk[..];
        let event = parser.next(&mut input);
        let read = chunk.len() - input.len();
        chunk.advance(read);
        let event = event.map_err(|too_large| Error::TooLarge {
            what: "an event",
            bytes_max: too_large.max as u64,
        })?;
        if event.is_some() {
            return Ok(event);
        }
        match body.chunk().await? {
            Some(more) => *chunk = more,
            None if parser.is_between() => return Ok(None),
            None => return Err(broken(host)),
        }
    }
}

impl Wrap {
    /// What an event says. An error may stand in any event, whatever its name (RPC-08, REST-10).
    fn read(self, event: &SseEvent, form: Form) -> Result<StreamResponse, Error> {
        let bytes = event.data.as_bytes();
        let not_json = || Error::not_a2a("an event is no JSON object", &event.data);
        let frame = match self {
            Self::JsonRpc => {
                let envelope = Envelope::read(bytes).ok_or_else(not_json)?;
                let result = envelope.into_result(200)?;
                result.ok_or_else(|| Error::not_a2a("an event without a result", &event.data))?
            }
            Self::Bare => {
                if let Some(error) = bare_error(bytes, 500) {
                    return Err(error);
                }
                Bytes::copy_from_slice(bytes)
            }
        };
        StreamResponse::read(&frame, form, "an event")
    }
}

/// The error in an HTTP+JSON frame. A frame has one member, so a look at its name is enough.
pub(super) fn bare_error(frame: &[u8], status: u16) -> Option<Error> {
    #[derive(serde::Deserialize)]
    struct Frame<'a> {
        #[serde(borrow)]
        error: Option<&'a serde_json::value::RawValue>,
    }
    let error = serde_json::from_slice::<Frame<'_>>(frame).ok()?.error?;
    let refusal = read_error(error).map(|error| {
        let body = serde_json::json!({ "error": error });
        Error::refused(Refusal::of_http_error(status, &body))
    });
    Some(refusal.unwrap_or_else(|too_large| too_large))
}

/// The next message of a gRPC call.
pub(super) async fn next_message(
    host: &str,
    body: &mut Body,
    buffer: &mut BytesMut,
    bytes_max: usize,
) -> Result<Option<Bytes>, Error> {
    loop {
        if let Some([flag, length @ ..]) = buffer.first_chunk::<5>() {
            if *flag != 0 {
                return Err(Error::not_a2a(
                    "a compressed message, which was not asked for",
                    "",
                ));
            }
            let length = u32::from_be_bytes(*length) as usize;
            if length > bytes_max {
                return Err(Error::TooLarge {
                    what: "a message",
                    bytes_max: bytes_max as u64,
                });
            }
            if buffer.len() >= 5 + length {
                buffer.advance(5);
                return Ok(Some(buffer.split_to(length).freeze()));
            }
        }
        match body.chunk().await? {
            Some(more) => buffer.extend_from_slice(&more),
            None if buffer.is_empty() => return Ok(None),
            None => return Err(broken(host)),
        }
    }
}

/// Takes out of a frame what the replay extension put there.
fn take_number(response: &mut StreamResponse) -> Option<u64> {
    let metadata = match response {
        StreamResponse::Task(task) => &mut task.metadata,
        StreamResponse::Message(message) => &mut message.metadata,
        StreamResponse::StatusUpdate(update) => &mut update.metadata,
        StreamResponse::ArtifactUpdate(update) => &mut update.metadata,
    };
    let mut map = metadata.as_ref()?.to_map();
    let number = map.remove(REPLAY)?;
    *metadata = (!map.is_empty()).then(|| Metadata::from_map(&map));
    let number = number.get("seq")?;
    // Numbers are doubles in a protobuf struct.
    let whole = number.as_f64().filter(|number| number.fract() == 0.0);
    number.as_u64().or(whole.map(|number| number as u64))
}
