//! In which words answers are written: the engine's own, or those of protocol 0.3 (DUAL-01).

use a2ad_core::engine::EngineError;
use a2ad_proto::v03::{self, Dialect};
use a2ad_proto::{ListTasksResponse, SendMessageResponse, StreamResponse, Task, from_json};
use bytes::Bytes;
use http::header::USER_AGENT;
use http::{HeaderMap, HeaderValue};
use serde::de::DeserializeOwned;

use crate::errors::Fault;
use crate::method::Method;
use crate::version::Generation;

/// How JSON is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tongue {
    /// As the engine does.
    V10,
    V03(Dialect),
}

impl Tongue {
    /// That of a generation over JSON-RPC.
    pub(crate) const fn of_json_rpc(generation: Generation) -> Self {
        match generation {
            Generation::V10 => Self::V10,
            Generation::V03 => Self::V03(Dialect::Kinds),
        }
    }

    /// That of a generation over the bindings that go by the schema, for whoever sent these headers.
    pub(crate) fn of_schema(generation: Generation, files: FileBytes, headers: &HeaderMap) -> Self {
        match generation {
            Generation::V10 => Self::V10,
            Generation::V03 => Self::V03(files.dialect(headers)),
        }
    }

    pub(crate) const fn generation(self) -> Generation {
        match self {
            Self::V10 => Generation::V10,
            Self::V03(_) => Generation::V03,
        }
    }

    /// What the engine answered to `method`.
    pub(crate) fn result(self, method: Option<Method>, json: Bytes) -> Result<Bytes, Fault> {
        let Self::V03(dialect) = self else {
            return Ok(json);
        };
        let written = match method {
            Some(Method::SendMessage) => {
                v03::write_sent(&parse::<SendMessageResponse>(&json)?, dialect)
            }
            Some(Method::GetTask | Method::CancelTask) => {
                v03::write_task(&parse::<Task>(&json)?, dialect)
            }
            Some(Method::ListTasks) => {
                v03::write_list(&parse::<ListTasksResponse>(&json)?, dialect)
            }
            other => {
                let what = format!("{other:?} has no result");
                return Err(EngineError::Internal(what.into()).into());
            }
        };
        Ok(written.into())
    }

    /// An event of a stream. `last` says that none comes after it.
    pub(crate) fn event(self, json: &Bytes, last: bool) -> Result<Bytes, Fault> {
        match self {
            Self::V10 => Ok(json.clone()),
            Self::V03(dialect) => {
                let event = parse::<StreamResponse>(json)?;
                Ok(v03::write_event(&event, last, dialect).into())
            }
        }
    }
}

/// How callers of 0.3 have the bytes of files over HTTP+JSON and gRPC. The schema says that they are bytes; the SDKs for
/// Python and Go put base64 text there, and that for JavaScript does not, so that no one way serves them all (V03-16).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileBytes {
    /// As the SDK has them that `User-Agent` tells of; base64 text for those that it does not tell.
    #[default]
    Auto,
    /// Always as base64 text. What is none after one decoding is read as it is.
    Base64,
    /// Always as they are.
    Plain,
}

impl FileBytes {
    /// The dialect of whoever sent these headers.
    fn dialect(self, headers: &HeaderMap) -> Dialect {
        // Node by itself, its gRPC, and browsers.
        const PLAIN: [&[u8]; 4] = [b"node", b"grpc-node", b"undici", b"mozilla"];
        let is_plain = match self {
            Self::Base64 => false,
            Self::Plain => true,
            Self::Auto => {
                let agent = headers.get(USER_AGENT).map(HeaderValue::as_bytes);
                let begins = |name: &&[u8]| {
                    let start = agent.and_then(|agent| agent.get(..name.len()));
                    start.is_some_and(|start| start.eq_ignore_ascii_case(name))
                };
                PLAIN.iter().any(begins)
            }
        };
        if is_plain {
            Dialect::ProtoPlain
        } else {
            Dialect::Proto
        }
    }
}

/// What the engine wrote, for bindings that write it in another way.
pub(crate) fn parse<T: DeserializeOwned>(json: &[u8]) -> Result<T, Fault> {
    from_json(json).map_err(|violations| EngineError::Internal(Box::new(violations)).into())
}
