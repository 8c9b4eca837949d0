//! In which words answers are written: the engine's own, or those of protocol 0.3 (DUAL-01).

use a2ad_core::engine::EngineError;
use a2ad_proto::v03::{self, Dialect};
use a2ad_proto::{ListTasksResponse, SendMessageResponse, StreamResponse, Task, from_json};
use bytes::Bytes;
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
    /// That of a generation, which in 0.3 has one for each binding.
    pub(crate) const fn new(generation: Generation, dialect: Dialect) -> Self {
        match generation {
            Generation::V10 => Self::V10,
            Generation::V03 => Self::V03(dialect),
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

/// What the engine wrote, for bindings that write it in another way.
pub(crate) fn parse<T: DeserializeOwned>(json: &[u8]) -> Result<T, Fault> {
    from_json(json).map_err(|violations| EngineError::Internal(Box::new(violations)).into())
}
