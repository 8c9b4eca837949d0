//! Reading a file from beginning to end, each task checked against its hashes.

use std::path::{Path, PathBuf};

use a2ad_core::clock::{Clock as _, SystemClock};
use a2ad_core::keys::{Owner, Scope, TaskKey, uuid_bits};
use rusqlite::{Connection, Row};

use super::rows::{
    Batch, ContextRow, DeadRow, Key, PushRow, RequestRow, Rest, SnapshotRow, TaskRow, TurnRow,
};
use super::{CopyError, Keys};
use crate::hash::hash_bytes;
use crate::request;
use crate::run::{self, NO_HASH};
use crate::snapshot::hash_body;
use crate::sqlite::fail::Failure;
use crate::sqlite::ids::unpack_id;
use crate::sqlite::lock::FileLock;
use crate::sqlite::open::{MIGRATIONS, OpenError, meta, recognise, schema};
use crate::sqlite::runs::{self, Raw, hash_column};
use crate::sqlite::snapshots::{self, Stored};
use crate::sqlite::verify::open_read_only;

/// So many tasks, or so many bytes, are written together.
const TASKS_MAX: usize = 512;
const BYTES_MAX: usize = 4 << 20;

/// The file, which nobody else may use meanwhile.
#[derive(Debug)]
pub(super) struct Source {
    path: PathBuf,
    db: Connection,
    _lock: Option<FileLock>,
}

/// What belongs to the file as a whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct About {
    pub(super) secret: [u8; 16],
    pub(super) next_key: i64,
    pub(super) tasks: u64,
}

const HEADS: &str = "
    SELECT t.key, t.scope, t.context, t.version, t.status_at, t.bytes, t.state, t.cancel, t.id,
        t.chain, t.artifacts, t.context_id, c.id
    FROM tasks t LEFT JOIN contexts c ON c.key = t.context AND t.context_id IS NULL
    WHERE t.key > ?1 ORDER BY t.key LIMIT ?2";

impl Source {
    pub(super) fn open(path: &Path) -> Result<Self, CopyError> {
        if path.is_dir() {
            return Err(OpenError::NotADatabase {
                path: path.to_owned(),
            }
            .into());
        }
        // Looked for first, because taking the lock leaves a file beside it.
        let db = open_read_only(path)?;
        recognise(&db, path)?;
        let lock = match FileLock::exclusive(path) {
            Ok(lock) => Some(lock),
            // In a folder that cannot be written nobody else writes either.
            Err(OpenError::ReadOnly { .. }) => FileLock::shared(path)?,
            Err(error) => return Err(error.into()),
        };
        let known = MIGRATIONS.last().map_or(0, |step| step.schema);
        match schema(&db, path, known)? {
            0 => return Err(CopyError::Empty(path.display().to_string())),
            found if found < known => {
                return Err(CopyError::Outdated(path.display().to_string()));
            }
            _ => {}
        }
        let source = Self {
            path: path.to_owned(),
            db,
            _lock: lock,
        };
        // One transaction: one moment.
        source.told(source.db.execute_batch("BEGIN").map_err(Failure::from))?;
        Ok(source)
    }

    fn told<T>(&self, result: Result<T, Failure>) -> Result<T, CopyError> {
        result.map_err(|failure| match failure {
            Failure::Damaged(what) => self.damaged(what),
            Failure::Sql(error) => OpenError::from_sql(&self.path, &error).into(),
        })
    }

    fn damaged(&self, what: impl Into<String>) -> CopyError {
        CopyError::Damaged {
            path: self.path.display().to_string(),
            what: what.into(),
        }
    }

    pub(super) fn about(&self) -> Result<About, CopyError> {
        let read = || -> Result<_, Failure> {
            let missing = |what: &str| Failure::Damaged(format!("{what} is missing"));
            Ok(About {
                secret: meta(&self.db, "secret")?
                    .ok_or_else(|| missing("the secret of its ids"))?,
                next_key: meta(&self.db, "next_key")?.ok_or_else(|| missing("the next key"))?,
                tasks: self.count("SELECT count(*) FROM tasks WHERE key > ?1", i64::MIN)?,
            })
        };
        self.told(read())
    }

    fn count(&self, sql: &str, parameter: i64) -> Result<u64, Failure> {
        let count: i64 = self.db.query_row(sql, [parameter], |row| row.get(0))?;
        Ok(count.unsigned_abs())
    }

    /// How many tasks there are up to this key.
    pub(super) fn tasks_until(&self, key: i64) -> Result<u64, CopyError> {
        self.told(self.count("SELECT count(*) FROM tasks WHERE key <= ?1", key))
    }

    /// Every owner and agent, with their number.
    pub(super) fn scopes(&self) -> Result<Vec<(i64, Scope)>, CopyError> {
        let read = || -> Result<_, Failure> {
            let mut statement = self.db.prepare(
                "SELECT s.key, s.owner, a.id FROM scopes s JOIN agents a ON a.key = s.agent
                 ORDER BY s.key",
            )?;
            let mut rows = statement.query([])?;
            let mut scopes = Vec::new();
            while let Some(row) = rows.next()? {
                let key = row.get(0)?;
                let damaged = || Failure::Damaged(format!("scope {key} is malformed"));
                let owner: String = row.get(1)?;
                let agent: String = row.get(2)?;
                scopes.push((
                    key,
                    Scope {
                        owner: owner.parse::<Owner>().map_err(|_| damaged())?,
                        agent: agent.parse().map_err(|_| damaged())?,
                    },
                ));
            }
            Ok(scopes)
        };
        self.told(read())
    }

    /// Some heads after this key, as they are to be.
    pub(super) fn heads(&self, after: i64, keys: &Keys) -> Result<Vec<TaskRow>, CopyError> {
        let page = || -> Result<_, Failure> {
            let mut statement = self.db.prepare_cached(HEADS)?;
            let mut rows = statement.query((after, HEADS_MAX))?;
            let mut heads = Vec::new();
            while let Some(row) = rows.next()? {
                heads.push(head(row, keys)?);
            }
            Ok(heads)
        };
        self.told(page())
    }

    /// Reads all tasks after this key and gives them to `send`, until that does not want any more.
    pub(super) fn read(
        &self,
        after: i64,
        keys: &Keys,
        mut send: impl FnMut(Batch) -> bool,
    ) -> Result<(), CopyError> {
        let mut walk = || -> Result<(), Failure> {
            let mut statement = self.db.prepare(HEADS)?;
            let mut rows = statement.query((after, -1))?;
            let mut batch = Batch {
                through: after,
                ..Batch::default()
            };
            while let Some(row) = rows.next()? {
                let head = head(row, keys)?;
                batch.contexts.push(context(row, &head)?);
                if !self.journal(&head, &mut batch, &mut send)? {
                    return Ok(());
                }
                self.snapshot(head.key, &mut batch)?;
                batch.size += head.artifacts.len() + 256;
                batch.through = head.key;
                batch.tasks.push(head);
                let full = batch.tasks.len() >= TASKS_MAX || batch.size >= BYTES_MAX;
                if full && !send(take(&mut batch)) {
                    return Ok(());
                }
            }
            send(batch);
            Ok(())
        };
        self.told(walk())
    }

    /// Adds a journal, in which every run has to follow the one before. `false` if nobody wants it.
    fn journal(
        &self,
        head: &TaskRow,
        batch: &mut Batch,
        send: &mut impl FnMut(Batch) -> bool,
    ) -> Result<bool, Failure> {
        let mut statement = self.db.prepare_cached(runs::SELECT)?;
        let mut rows = statement.query(run::task_runs(head.key))?;
        let mut chain = NO_HASH;
        let mut last = 0;
        while let Some(row) = rows.next()? {
            let raw = Raw::read(&self.db, row)?;
            let run = raw.open()?;
            if run.first != last + 1 || run.prev != chain {
                let (key, first) = (head.key, run.first);
                let what = "what stands before it is missing or changed";
                return Err(Failure::Damaged(format!(
                    "task key {key}, entry {first}: {what}"
                )));
            }
            (last, chain) = (run.last(), run.hash);
            for once in request::unpack(&raw.once) {
                batch.requests.push(RequestRow {
                    scope: head.scope,
                    task: head.key,
                    number: once.number.0.cast_signed(),
                    key: once.key,
                    body: once.body,
                });
            }
            batch.size += raw.bytes.len();
            batch.runs.push(raw);
            // A long journal need not fit into one batch.
            if batch.size >= BYTES_MAX && !send(take(batch)) {
                return Ok(false);
            }
        }
        if last.cast_signed() != head.version || chain != head.chain {
            let (key, version) = (head.key, head.version);
            return Err(Failure::Damaged(format!(
                "task key {key}: its journal ends at entry {last}, its head says {version}, or the hashes differ"
            )));
        }
        Ok(true)
    }

    fn snapshot(&self, task: i64, batch: &mut Batch) -> Result<(), Failure> {
        match snapshots::read(&self.db, TaskKey(task), true)? {
            None => {}
            Some(Stored::Damaged) => batch.snapshots_left_out += 1,
            Some(Stored::Sound(it)) => {
                let artifacts_hash = hash_bytes(&it.artifacts);
                batch.size += it.marks.len() + it.body.len() + it.artifacts.len();
                batch.snapshots.push(SnapshotRow {
                    task,
                    version: it.version.0.cast_signed(),
                    hash: hash_body(TaskKey(task), &it, artifacts_hash),
                    artifacts_hash,
                    marks: it.marks,
                    body: it.body,
                    artifacts: it.artifacts,
                });
            }
        }
        Ok(())
    }

    /// How many snapshots match their hash, and how many do not.
    pub(super) fn sound_snapshots(&self) -> Result<(u64, u64), CopyError> {
        let read = || -> Result<_, Failure> {
            let mut statement = self.db.prepare(
                "SELECT task FROM snapshots
                 WHERE EXISTS (SELECT 1 FROM tasks WHERE key = task) ORDER BY task",
            )?;
            let mut rows = statement.query([])?;
            let mut counts = (0, 0);
            while let Some(row) = rows.next()? {
                match snapshots::read(&self.db, TaskKey(row.get(0)?), true)? {
                    Some(Stored::Sound(_)) => counts.0 += 1,
                    Some(Stored::Damaged) => counts.1 += 1,
                    None => {}
                }
            }
            Ok(counts)
        };
        self.told(read())
    }

    /// Turns and webhooks.
    pub(super) fn rest(&self, keys: &Keys) -> Result<Rest, CopyError> {
        let agents = self.agents(keys)?;
        let agent = |key: i64| {
            let found = agents.iter().find(|(old, _)| *old == key);
            found
                .map(|(_, new)| *new)
                .ok_or_else(|| Failure::Damaged(format!("agent {key} is missing")))
        };
        let read = || -> Result<_, Failure> {
            let mut rest = Rest {
                now: SystemClock.now().as_millis(),
                ..Rest::default()
            };
            let mut statement = self.db.prepare(
                "SELECT seq, task, number, context, agent, due, created_at, attempt, returned,
                     state, sealed FROM turns ORDER BY seq",
            )?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                rest.turns.push(TurnRow {
                    seq: row.get(0)?,
                    task: row.get(1)?,
                    number: row.get(2)?,
                    context: row.get(3)?,
                    agent: agent(row.get(4)?)?,
                    due: row.get(5)?,
                    created_at: row.get(6)?,
                    attempt: row.get(7)?,
                    returned: row.get(8)?,
                    state: row.get(9)?,
                    sealed: row.get(10)?,
                });
            }
            let mut statement = self.db.prepare(
                "SELECT task, number, context, agent, created_at, died_at, attempt, returned,
                     reason FROM dead_turns ORDER BY key",
            )?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                rest.dead.push(DeadRow {
                    task: row.get(0)?,
                    number: row.get(1)?,
                    context: row.get(2)?,
                    agent: agent(row.get(3)?)?,
                    created_at: row.get(4)?,
                    died_at: row.get(5)?,
                    attempt: row.get(6)?,
                    returned: row.get(7)?,
                    reason: row.get(8)?,
                });
            }
            let mut statement = self.db.prepare(
                "SELECT task, cursor, due, events, attempt, state, id, url, sealed
                 FROM push_configs ORDER BY key",
            )?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                rest.push.push(PushRow {
                    task: row.get(0)?,
                    cursor: row.get(1)?,
                    due: row.get(2)?,
                    events: row.get(3)?,
                    attempt: row.get(4)?,
                    state: row.get(5)?,
                    id: row.get(6)?,
                    url: row.get(7)?,
                    sealed: row.get(8)?,
                });
            }
            Ok(rest)
        };
        self.told(read())
    }

    /// The numbers of agents, old and new.
    fn agents(&self, keys: &Keys) -> Result<Vec<(i64, i64)>, CopyError> {
        let read = || -> Result<_, Failure> {
            let mut statement = self
                .db
                .prepare("SELECT agent, min(key) FROM scopes GROUP BY agent")?;
            let mut rows = statement.query([])?;
            let mut agents = Vec::new();
            while let Some(row) = rows.next()? {
                agents.push((row.get(0)?, key_of(keys, row.get(1)?)?.agent));
            }
            Ok(agents)
        };
        self.told(read())
    }
}

/// How many heads are compared at a time.
pub(crate) const HEADS_MAX: i64 = 512;

/// Gives the batch away; the next one goes on where it ends.
fn take(batch: &mut Batch) -> Batch {
    let next = Batch {
        through: batch.through,
        ..Batch::default()
    };
    std::mem::replace(batch, next)
}

fn key_of(keys: &Keys, scope: i64) -> Result<Key, Failure> {
    let key = keys.get(&scope).copied();
    key.ok_or_else(|| Failure::Damaged(format!("scope {scope} is missing")))
}

fn head(row: &Row<'_>, keys: &Keys) -> Result<TaskRow, Failure> {
    let key: i64 = row.get(0)?;
    let damaged = |what: &str| Failure::Damaged(format!("task key {key}: {what}"));
    let id = unpack_id(row.get_ref(8)?).and_then(|id| uuid_bits(&id));
    Ok(TaskRow {
        key,
        scope: key_of(keys, row.get(1)?)?.scope,
        context: row.get(2)?,
        version: row.get(3)?,
        status_at: row.get(4)?,
        bytes: row.get(5)?,
        state: row.get(6)?,
        cancel: row.get(7)?,
        id: id
            .ok_or_else(|| damaged("its id is malformed"))?
            .to_be_bytes(),
        chain: hash_column(row, 9).ok_or_else(|| damaged("its hash is malformed"))?,
        artifacts: row.get(10)?,
    })
}

fn context(row: &Row<'_>, head: &TaskRow) -> Result<ContextRow, Failure> {
    let minted = unpack_id(row.get_ref(11)?).and_then(|id| uuid_bits(&id));
    let name = unpack_id(row.get_ref(12)?);
    if minted.is_none() && name.is_none() {
        let what = format!("task key {}: its conversation is missing", head.key);
        return Err(Failure::Damaged(what));
    }
    Ok(ContextRow {
        key: head.context,
        scope: head.scope,
        minted: minted.map(u128::to_be_bytes),
        name: name.filter(|_| minted.is_none()),
    })
}
