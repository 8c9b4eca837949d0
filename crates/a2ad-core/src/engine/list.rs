//! ListTasks: a page, in order, with a token for the next one.

use std::sync::Arc;

use a2ad_proto::{ContextId, ListTasksRequest, TaskState};
use bytes::Bytes;

use super::read::freeze;
use super::{Caller, Engine, EngineError, Inner};
use crate::keys::TaskKey;
use crate::store::{ListFilter, ListPlace, Listed};
use crate::task::Snapshot;

/// How many tasks a page has if the caller does not say.
const PAGE_SIZE: i32 = 50;
/// A page ends before it is longer than this, unless its first task is. A hundred large tasks with
/// their artifacts would be too much to hold for one answer.
const PAGE_BYTES: usize = 8 << 20;

impl Engine {
    /// ListTasks. Answers a `ListTasksResponse` as JSON.
    pub async fn list(
        &self,
        caller: &Caller,
        request: ListTasksRequest,
    ) -> Result<Bytes, EngineError> {
        request.check()?;
        let inner = &self.inner;
        let page_size = request.page_size.unwrap_or(PAGE_SIZE);
        let filter = ListFilter {
            context_id: parse_context(&request.context_id)?,
            state: (request.status != TaskState::Unspecified).then_some(request.status),
            status_at_least: request
                .status_timestamp_after
                .map(a2ad_proto::Timestamp::as_millis_ceil),
        };
        let after = match request.page_token.as_str() {
            "" => None,
            token => Some(
                inner
                    .read_token(caller, &filter, token)
                    .ok_or_else(|| EngineError::invalid("pageToken", "Invalid page token"))?,
            ),
        };
        let artifacts = request.include_artifacts.unwrap_or(false);
        let mut cached = Vec::new();
        let mut known = |task, version| {
            let found = inner.hub.cached_snapshot(task);
            let found = found.filter(|frozen| frozen.version == version);
            let is_known = found.is_some();
            cached.extend(found.map(|frozen| (task, frozen)));
            is_known
        };
        let page = inner
            .store
            .list(
                &caller.scope,
                &filter,
                after,
                usize::try_from(page_size).unwrap_or(0),
                PAGE_BYTES,
                artifacts,
                &mut known,
            )
            .await?;

        let mut json = Vec::with_capacity(1024 * page.tasks.len() + 128);
        json.extend_from_slice(b"{\"tasks\":[");
        let (mut first, mut more, mut last) = (true, page.more, None);
        let mut cached = cached.into_iter().peekable();
        for listed in &page.tasks {
            let found = cached.next_if(|(task, _)| *task == listed.place.key);
            let frozen = match found {
                Some((_, frozen)) => Ok(frozen),
                None => inner.listed(listed, artifacts).await,
            };
            let end = json.len();
            if !first {
                json.push(b',');
            }
            let written = frozen.and_then(|frozen| {
                write_task(&frozen, request.history_length, artifacts, &mut json)
            });
            match written {
                // One task alone may be longer.
                Ok(()) if !first && json.len() > PAGE_BYTES => {
                    json.truncate(end);
                    more = true;
                    break;
                }
                Ok(()) => first = false,
                // A page may be short (LIST-09); one damaged task must not hide the others.
                Err(error @ EngineError::Internal(_)) => {
                    json.truncate(end);
                    let task = listed.place.key.0;
                    let error = &error as &dyn std::error::Error;
                    tracing::error!(task, error, "a damaged task is left out of a list");
                }
                Err(error) => return Err(error),
            }
            last = Some(listed.place);
        }
        let token = match last {
            Some(last) if more => inner.write_token(caller, &filter, last),
            Some(_) | None => String::new(),
        };
        let total = i32::try_from(page.total).unwrap_or(i32::MAX);
        json.extend_from_slice(
            format!(
                "],\"nextPageToken\":\"{token}\",\"pageSize\":{page_size},\"totalSize\":{total}}}"
            )
            .as_bytes(),
        );
        Ok(json.into())
    }
}

fn parse_context(id: &str) -> Result<Option<ContextId>, EngineError> {
    if id.is_empty() {
        return Ok(None);
    }
    id.parse()
        .map(Some)
        .map_err(|error: a2ad_proto::IdError| EngineError::invalid("contextId", error.to_string()))
}

/// Adds one task to a list. `artifacts` is absent unless asked for, and present, even if empty,
/// when it was (LIST-05).
fn write_task(
    frozen: &Snapshot,
    history_length: Option<i32>,
    artifacts: bool,
    json: &mut Vec<u8>,
) -> Result<(), EngineError> {
    match history_length {
        None => json.extend_from_slice(&frozen.body),
        Some(length) => frozen
            .write_body(usize::try_from(length).unwrap_or(0), json)
            .map_err(|error| EngineError::Internal(Box::new(error)))?,
    }
    if artifacts {
        frozen.add_artifacts(json);
    }
    Ok(())
}

impl Inner {
    /// One task of a list that this process does not know by heart. Its artifacts count only if
    /// they were asked for.
    pub(super) async fn listed(
        &self,
        listed: &Listed,
        artifacts: bool,
    ) -> Result<Arc<Snapshot>, EngineError> {
        let key = listed.place.key;
        let is_newest = |frozen: &&Snapshot| frozen.version == listed.version;
        if let Some(frozen) = listed.snapshot.as_ref().filter(is_newest) {
            return Ok(Arc::new(frozen.clone()));
        }
        let frozen = if listed.entries.is_empty() {
            self.fold(key, None).await?.snapshot()
        } else {
            freeze(key, listed.snapshot.as_ref(), &listed.entries)?
        };
        let frozen = Arc::new(frozen);
        // A snapshot that was read without its artifacts stays without them.
        if artifacts || listed.snapshot.is_none() || listed.entries.is_empty() {
            self.hub.keep_snapshot(key, Arc::clone(&frozen));
        }
        Ok(frozen)
    }

    /// A token that stands for a place in this caller's list with this filter, and for no other.
    /// The place is masked: it holds a key, and keys tell how many tasks others have.
    fn write_token(&self, caller: &Caller, filter: &ListFilter, place: ListPlace) -> String {
        self.seal_place(place, self.token_tag(caller, filter, place))
    }

    fn read_token(&self, caller: &Caller, filter: &ListFilter, token: &str) -> Option<ListPlace> {
        let (place, tag) = self.open_place(token)?;
        (self.token_tag(caller, filter, place) == tag).then_some(place)
    }

    /// A place as a token, under a tag that says what list it is a place of.
    pub(super) fn seal_place(&self, place: ListPlace, tag: [u8; 16]) -> String {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&place.status_at.to_be_bytes());
        bytes[8..16].copy_from_slice(&place.key.0.to_be_bytes());
        bytes[16..].copy_from_slice(&tag);
        self.mask(&mut bytes);
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The place and the tag in a token. Whoever asks has to compare the tag.
    pub(super) fn open_place(&self, token: &str) -> Option<(ListPlace, [u8; 16])> {
        if token.len() != 64 || !token.is_ascii() {
            return None;
        }
        let mut bytes = [0; 32];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(token.get(2 * at..2 * at + 2)?, 16).ok()?;
        }
        self.mask(&mut bytes);
        let place = ListPlace {
            status_at: i64::from_be_bytes(bytes[..8].try_into().ok()?),
            key: TaskKey(i64::from_be_bytes(bytes[8..16].try_into().ok()?)),
        };
        Some((place, bytes[16..].try_into().ok()?))
    }

    /// Covers the first half by a pad that follows from the second; twice gives it back.
    fn mask(&self, token: &mut [u8; 32]) {
        let (place, tag) = token.split_at_mut(16);
        let pad = self.store.public_ids().tag(&[b"page-pad", tag]);
        for (byte, pad) in place.iter_mut().zip(pad) {
            *byte ^= pad;
        }
    }

    fn token_tag(&self, caller: &Caller, filter: &ListFilter, place: ListPlace) -> [u8; 16] {
        let ListFilter {
            context_id,
            state,
            status_at_least,
        } = filter;
        let context = context_id.as_ref().map_or("", |id| id.as_str());
        let state = state.map_or(0, |state| state as u8);
        let since = status_at_least.unwrap_or(i64::MIN);
        self.store.public_ids().tag(&[
            b"page",
            caller.scope.owner.as_str().as_bytes(),
            caller.scope.agent.as_str().as_bytes(),
            context.as_bytes(),
            &[state],
            &since.to_le_bytes(),
            &place.status_at.to_le_bytes(),
            &place.key.0.to_le_bytes(),
        ])
    }
}
