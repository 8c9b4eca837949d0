//! Agents, scopes and contexts: the names that rows refer to by number.

use std::collections::HashMap;

use a2ad_core::keys::{Owner, PublicIds, Scope};
use a2ad_proto::{AgentId, ContextId};
use rusqlite::{Connection, OptionalExtension};

use crate::sqlite::fail::Failure;
use crate::sqlite::ids::{PackedId, unpack_id};

/// How many scopes are remembered. Owners come and go, so there is a bound; when it is reached all
/// are forgotten, and those in use are back after one lookup each.
const SCOPES_MAX: usize = 10_000;

/// The numbers of a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScopeKey {
    pub(crate) scope: i64,
    pub(crate) agent: i64,
}

/// What was looked up before. Names are never deleted or renumbered, so nothing here goes stale;
/// but after a rollback the writer has to forget what it had just created.
#[derive(Debug, Default)]
pub(crate) struct Names {
    keys: HashMap<Scope, ScopeKey>,
    scopes: HashMap<i64, Scope>,
    agents: HashMap<i64, AgentId>,
}

impl Names {
    /// The numbers of `scope`, if anything was ever stored in it.
    pub(crate) fn find(
        &mut self,
        db: &Connection,
        scope: &Scope,
    ) -> Result<Option<ScopeKey>, Failure> {
        if let Some(key) = self.keys.get(scope) {
            return Ok(Some(*key));
        }
        let found = db
            .prepare_cached(
                "SELECT s.key, s.agent FROM agents a JOIN scopes s ON s.agent = a.key
                 WHERE a.id = ?1 AND s.owner = ?2",
            )?
            .query_row((scope.agent.as_str(), scope.owner.as_str()), |row| {
                Ok(ScopeKey {
                    scope: row.get(0)?,
                    agent: row.get(1)?,
                })
            })
            .optional()?;
        if let Some(key) = found {
            self.remember(scope, key);
        }
        Ok(found)
    }

    /// The numbers of `scope`, which get a row if they have none.
    pub(crate) fn find_or_create(
        &mut self,
        db: &Connection,
        scope: &Scope,
    ) -> Result<ScopeKey, Failure> {
        if let Some(key) = self.find(db, scope)? {
            return Ok(key);
        }
        db.prepare_cached("INSERT INTO agents (id) VALUES (?1) ON CONFLICT DO NOTHING")?
            .execute([scope.agent.as_str()])?;
        db.prepare_cached(
            "INSERT INTO scopes (owner, agent) SELECT ?1, key FROM agents WHERE id = ?2",
        )?
        .execute((scope.owner.as_str(), scope.agent.as_str()))?;
        self.find(db, scope)?
            .ok_or_else(|| Failure::Damaged(format!("no row for owner {}", scope.owner.as_str())))
    }

    /// The scope with this number.
    pub(crate) fn scope(&mut self, db: &Connection, key: i64) -> Result<Scope, Failure> {
        if let Some(scope) = self.scopes.get(&key) {
            return Ok(scope.clone());
        }
        let found: Option<(String, i64)> = db
            .prepare_cached("SELECT owner, agent FROM scopes WHERE key = ?1")?
            .query_row([key], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let damaged = || Failure::Damaged(format!("scope {key} is missing"));
        let (owner, agent) = found.ok_or_else(damaged)?;
        let scope = Scope {
            owner: owner.parse::<Owner>().map_err(|_| damaged())?,
            agent: self.agent(db, agent)?,
        };
        self.remember(&scope, ScopeKey { scope: key, agent });
        Ok(scope)
    }

    /// The agent with this number.
    pub(crate) fn agent(&mut self, db: &Connection, key: i64) -> Result<AgentId, Failure> {
        if let Some(id) = self.agents.get(&key) {
            return Ok(id.clone());
        }
        let id: Option<String> = db
            .prepare_cached("SELECT id FROM agents WHERE key = ?1")?
            .query_row([key], |row| row.get(0))
            .optional()?;
        let id: AgentId = id
            .and_then(|id| id.parse().ok())
            .ok_or_else(|| Failure::Damaged(format!("agent {key} is missing")))?;
        self.agents.insert(key, id.clone());
        Ok(id)
    }

    fn remember(&mut self, scope: &Scope, key: ScopeKey) {
        if self.keys.len() >= SCOPES_MAX {
            self.keys.clear();
            self.scopes.clear();
        }
        self.keys.insert(scope.clone(), key);
        self.scopes.insert(key.scope, scope.clone());
        self.agents.insert(key.agent, scope.agent.clone());
    }
}

/// The number of an agent, if it ever had a task.
pub(crate) fn agent_key(db: &Connection, id: &AgentId) -> Result<Option<i64>, Failure> {
    Ok(db
        .prepare_cached("SELECT key FROM agents WHERE id = ?1")?
        .query_row([id.as_str()], |row| row.get(0))
        .optional()?)
}

/// A context that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Context {
    pub(crate) key: i64,
    /// We gave it its id, which its tasks have; else a client did, and it has a row.
    pub(crate) minted: bool,
}

/// A scope's context: by the key that its id carries if we minted it, else by name.
pub(crate) fn find_context(
    db: &Connection,
    ids: &PublicIds,
    scope: i64,
    id: &ContextId,
) -> Result<Option<Context>, Failure> {
    if let Some(key) = ids.key_of(id.as_str()) {
        // The task that opened it, or if that is gone any other.
        let minted = db
            .prepare_cached(
                "SELECT scope, context_id FROM tasks WHERE key = ?1 AND context = ?1
                 UNION ALL
                 SELECT scope, context_id FROM tasks INDEXED BY tasks_in_context
                 WHERE context = ?1 AND context <> key
                 LIMIT 1",
            )?
            .query_row([key], |row| {
                Ok(row.get::<_, i64>(0)? == scope
                    && unpack_id(row.get_ref(1)?).as_deref() == Some(id.as_str()))
            })
            .optional()?;
        if minted == Some(true) {
            return Ok(Some(Context { key, minted: true }));
        }
    }
    let key = db
        .prepare_cached("SELECT key FROM contexts WHERE scope = ?1 AND id = ?2")?
        .query_row((scope, PackedId(id.as_str())), |row| row.get(0))
        .optional()?;
    Ok(key.map(|key| Context { key, minted: false }))
}

/// Adds a context that a client named.
pub(crate) fn create_context(
    db: &Connection,
    key: i64,
    scope: i64,
    id: &ContextId,
) -> Result<(), Failure> {
    db.prepare_cached("INSERT INTO contexts (key, scope, id) VALUES (?1, ?2, ?3)")?
        .execute((key, scope, PackedId(id.as_str())))?;
    Ok(())
}
