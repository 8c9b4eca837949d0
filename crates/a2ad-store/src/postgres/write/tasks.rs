//! Rows of contexts, tasks, runs and snapshots.

use a2ad_core::keys::{TaskKey, uuid_bits};
use a2ad_core::task::{FORMAT, Snapshot};

use super::super::batch::Batch;
use super::super::fail::Failure;
use super::super::session::Sixteen;
use super::super::transact::Place;
use crate::hash::hash_bytes;
use crate::packed::pack_artifacts;
use crate::run::Sealed;
use crate::snapshot::hash_body;

pub(super) const INSERT_CONTEXTS: &str = "INSERT INTO contexts (key, scope, minted)
     SELECT * FROM unnest($1::int8[], $2::int8[], $3::uuid[])";

pub(super) const INSERT_TASKS: &str = "
    INSERT INTO tasks (key, scope, context, version, status_at, bytes, state, cancel, id, chain,
        artifacts)
    SELECT * FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::int8[], $5::int8[], $6::int8[],
        $7::int2[], $8::bool[], $9::uuid[], $10::uuid[], $11::bytea[])";

pub(super) const UPDATE_TASKS: &str = "
    UPDATE tasks t SET version = w.version, status_at = w.status_at, bytes = w.bytes,
        state = w.state, cancel = w.cancel, chain = w.chain, artifacts = w.artifacts
    FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::int8[], $5::int2[], $6::bool[], $7::uuid[],
        $8::bytea[]) AS w (key, version, status_at, bytes, state, cancel, chain, artifacts)
    WHERE t.key = w.key";

pub(super) const INSERT_RUNS: &str = "
    INSERT INTO runs (id, count, format, prev, hash, once, bytes)
    SELECT id, count, $3::int2, prev, hash, once, bytes
    FROM unnest($1::int8[], $2::int8[], $4::uuid[], $5::uuid[], $6::bytea[], $7::bytea[])
        AS w (id, count, prev, hash, once, bytes)";

/// Keeps snapshots as their tasks' newest, unless newer ones are there.
pub(super) const PUT_SNAPSHOTS: &str = "
    INSERT INTO snapshots (task, version, hash, artifacts_hash, marks, body, artifacts)
    SELECT * FROM unnest($1::int8[], $2::int8[], $3::uuid[], $4::uuid[], $5::bytea[], $6::bytea[],
        $7::bytea[])
    ON CONFLICT (task) DO UPDATE SET
        version = excluded.version, hash = excluded.hash,
        artifacts_hash = excluded.artifacts_hash, marks = excluded.marks,
        body = excluded.body, artifacts = excluded.artifacts
    WHERE excluded.version >= snapshots.version";

/// The rows of tasks, in columns.
#[derive(Debug, Default)]
pub(super) struct Tasks<'a> {
    new: Heads,
    old: Heads,
    runs: Vec<(Sealed<'a>, Sixteen)>,
    snapshots: Vec<(TaskKey, &'a Snapshot)>,
}

#[derive(Debug, Default)]
struct Heads {
    keys: Vec<i64>,
    scopes: Vec<i64>,
    contexts: Vec<i64>,
    versions: Vec<i64>,
    status_at: Vec<i64>,
    bytes: Vec<i64>,
    states: Vec<i16>,
    cancels: Vec<bool>,
    ids: Vec<Sixteen>,
    chains: Vec<Sixteen>,
    artifacts: Vec<Vec<u8>>,
}

impl<'a> Tasks<'a> {
    pub(super) fn new(batch: &'a Batch) -> Self {
        let mut tasks = Self::default();
        for (key, task) in &batch.tasks {
            let Some(head) = &task.head else { continue };
            let mut chain = task.chain;
            if !task.run.is_empty() {
                let sealed = task.run.seal(*key, task.chain);
                chain = sealed.hash;
                tasks.runs.push((sealed, Sixteen(task.chain)));
            }
            tasks
                .snapshots
                .extend(task.snapshot.as_ref().map(|it| (*key, it)));
            let heads = match task.stored_state {
                Some(_) => &mut tasks.old,
                None => &mut tasks.new,
            };
            let id = uuid_bits(head.identity.id.as_str()).unwrap_or_default();
            heads.keys.push(key.0);
            heads.scopes.push(task.scope);
            heads.contexts.push(task.context);
            heads.versions.push(head.version.0.cast_signed());
            heads.status_at.push(head.status_at.as_millis());
            heads
                .bytes
                .push(i64::try_from(head.bytes).unwrap_or(i64::MAX));
            heads.states.push(head.state as i16);
            heads.cancels.push(head.cancel_requested);
            heads.ids.push(Sixteen(id.to_be_bytes()));
            heads.chains.push(Sixteen(chain));
            heads.artifacts.push(pack_artifacts(&head.artifacts));
        }
        tasks
    }

    pub(super) async fn insert_contexts(
        &self,
        place: &Place<'_>,
        batch: &Batch,
    ) -> Result<(), Failure> {
        let keys: Vec<i64> = batch.minted.iter().map(|(key, _, _)| *key).collect();
        let scopes: Vec<i64> = batch.minted.iter().map(|(_, scope, _)| *scope).collect();
        let ids = batch.minted.iter();
        let ids: Vec<Sixteen> = ids.map(|(_, _, id)| Sixteen(id.to_be_bytes())).collect();
        let needed = !keys.is_empty();
        place
            .session
            .query_if(needed, INSERT_CONTEXTS, &[&keys, &scopes, &ids])
            .await
            .map(drop)
    }

    pub(super) async fn insert(&self, place: &Place<'_>) -> Result<(), Failure> {
        let it = &self.new;
        place
            .session
            .query_if(
                !it.keys.is_empty(),
                INSERT_TASKS,
                &[
                    &it.keys,
                    &it.scopes,
                    &it.contexts,
                    &it.versions,
                    &it.status_at,
                    &it.bytes,
                    &it.states,
                    &it.cancels,
                    &it.ids,
                    &it.chains,
                    &it.artifacts,
                ],
            )
            .await
            .map(drop)
    }

    pub(super) async fn update(&self, place: &Place<'_>) -> Result<(), Failure> {
        let it = &self.old;
        place
            .session
            .query_if(
                !it.keys.is_empty(),
                UPDATE_TASKS,
                &[
                    &it.keys,
                    &it.versions,
                    &it.status_at,
                    &it.bytes,
                    &it.states,
                    &it.cancels,
                    &it.chains,
                    &it.artifacts,
                ],
            )
            .await
            .map(drop)
    }

    pub(super) async fn insert_runs(&self, place: &Place<'_>) -> Result<(), Failure> {
        let runs = || self.runs.iter().map(|(run, _)| run);
        let ids: Vec<i64> = runs().map(|run| run.id).collect();
        let counts: Vec<i64> = runs().map(|run| run.count.cast_signed()).collect();
        let prevs: Vec<Sixteen> = self.runs.iter().map(|(_, prev)| *prev).collect();
        let hashes: Vec<Sixteen> = runs().map(|run| Sixteen(run.hash)).collect();
        let once: Vec<Option<&[u8]>> = runs().map(|run| run.once).collect();
        let bytes: Vec<&[u8]> = runs().map(|run| run.bytes).collect();
        let format = i16::from(FORMAT);
        place
            .session
            .query_if(
                !ids.is_empty(),
                INSERT_RUNS,
                &[&ids, &counts, &format, &prevs, &hashes, &once, &bytes],
            )
            .await
            .map(drop)
    }

    pub(super) async fn put_snapshots(&self, place: &Place<'_>) -> Result<(), Failure> {
        let mut keys = Vec::new();
        let mut versions = Vec::new();
        let mut hashes = Vec::new();
        let mut artifacts_hashes = Vec::new();
        let mut marks: Vec<&[u8]> = Vec::new();
        let mut bodies: Vec<&[u8]> = Vec::new();
        let mut artifacts: Vec<&[u8]> = Vec::new();
        for (key, snapshot) in &self.snapshots {
            let artifacts_hash = hash_bytes(&snapshot.artifacts);
            keys.push(key.0);
            versions.push(snapshot.version.0.cast_signed());
            hashes.push(Sixteen(hash_body(*key, snapshot, artifacts_hash)));
            artifacts_hashes.push(Sixteen(artifacts_hash));
            marks.push(&snapshot.marks);
            bodies.push(&snapshot.body);
            artifacts.push(&snapshot.artifacts);
        }
        place
            .session
            .query_if(
                !keys.is_empty(),
                PUT_SNAPSHOTS,
                &[
                    &keys,
                    &versions,
                    &hashes,
                    &artifacts_hashes,
                    &marks,
                    &bodies,
                    &artifacts,
                ],
            )
            .await
            .map(drop)
    }
}
