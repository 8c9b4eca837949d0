//! Agents, scopes and contexts: the names that rows refer to by number.
//!
//! They get their rows before the transaction that needs them, each for itself, so that nobody in
//! the middle of a commit has to wait for another one's name. A name that nothing comes to refer
//! to does no harm.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use a2ad_core::keys::{Owner, Scope, uuid_bits};
use a2ad_proto::{AgentId, ContextId};
use futures_util::future::join3;

use super::fail::Failure;
use super::session::{Session, Sixteen};
use super::sessions::Sessions;

/// How many scopes are remembered. Owners come and go, so there is a bound; when it is reached all
/// are forgotten, and those in use are back after one lookup each.
const SCOPES_MAX: usize = 10_000;

/// The numbers of a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScopeKey {
    pub(crate) scope: i64,
    pub(crate) agent: i64,
}

/// What was looked up before. Names are never deleted or renumbered, so nothing here goes stale.
#[derive(Debug, Default)]
pub(crate) struct Names {
    known: RwLock<Known>,
}

#[derive(Debug, Default)]
struct Known {
    keys: HashMap<Scope, ScopeKey>,
    scopes: HashMap<i64, Scope>,
    agents: HashMap<i64, AgentId>,
    agent_keys: HashMap<AgentId, i64>,
}

impl Names {
    fn get<T>(&self, look: impl FnOnce(&Known) -> Option<T>) -> Option<T> {
        look(&self.known.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The numbers of a scope that was looked up before.
    pub(crate) fn known(&self, scope: &Scope) -> Option<ScopeKey> {
        self.get(|known| known.keys.get(scope).copied())
    }

    /// The numbers of `scope`, if anything was ever stored in it.
    pub(crate) async fn find(
        &self,
        sessions: &Sessions,
        scope: &Scope,
    ) -> Result<Option<ScopeKey>, Failure> {
        if let Some(key) = self.known(scope) {
            return Ok(Some(key));
        }
        let rows = sessions
            .read(
                "SELECT s.key, s.agent FROM agents a JOIN scopes s ON s.agent = a.key
                 WHERE a.id = $1 AND s.owner = $2",
                &[&scope.agent.as_str(), &scope.owner.as_str()],
            )
            .await?;
        let Some(row) = rows.first() else {
            return Ok(None);
        };
        let key = ScopeKey {
            scope: row.try_get(0)?,
            agent: row.try_get(1)?,
        };
        self.remember(scope, key);
        Ok(Some(key))
    }

    /// The numbers of `scope`, which get a row if they have none.
    pub(crate) async fn find_or_create(
        &self,
        session: &Session,
        scope: &Scope,
    ) -> Result<ScopeKey, Failure> {
        if let Some(key) = self.known(scope) {
            return Ok(key);
        }
        let agent = scope.agent.as_str();
        // Looking first: a sequence moves even if the row was there.
        let agent: i64 = one(
            session,
            "WITH made AS (
                 INSERT INTO agents (id) SELECT $1 WHERE NOT EXISTS
                     (SELECT 1 FROM agents WHERE id = $1)
                 ON CONFLICT DO NOTHING RETURNING key)
             SELECT key FROM made UNION ALL SELECT key FROM agents WHERE id = $1",
            &[&agent],
        )
        .await?;
        let owner = scope.owner.as_str();
        let key: i64 = one(
            session,
            "WITH made AS (
                 INSERT INTO scopes (owner, agent) SELECT $1, $2 WHERE NOT EXISTS
                     (SELECT 1 FROM scopes WHERE owner = $1 AND agent = $2)
                 ON CONFLICT DO NOTHING RETURNING key)
             SELECT key FROM made UNION ALL SELECT key FROM scopes WHERE owner = $1 AND agent = $2",
            &[&owner, &agent],
        )
        .await?;
        let key = ScopeKey { scope: key, agent };
        self.remember(scope, key);
        Ok(key)
    }

    /// The scope with this number.
    pub(crate) async fn scope(&self, sessions: &Sessions, key: i64) -> Result<Scope, Failure> {
        if let Some(scope) = self.get(|known| known.scopes.get(&key).cloned()) {
            return Ok(scope);
        }
        let damaged = || Failure::Damaged(format!("scope {key} is missing"));
        let rows = sessions
            .read(
                "SELECT s.owner, a.id, a.key FROM scopes s JOIN agents a ON a.key = s.agent
                 WHERE s.key = $1",
                &[&key],
            )
            .await?;
        let row = rows.first().ok_or_else(damaged)?;
        let owner: &str = row.try_get(0)?;
        let agent: &str = row.try_get(1)?;
        let scope = Scope {
            owner: owner.parse::<Owner>().map_err(|_| damaged())?,
            agent: agent.parse().map_err(|_| damaged())?,
        };
        let agent = row.try_get(2)?;
        self.remember(&scope, ScopeKey { scope: key, agent });
        Ok(scope)
    }

    /// The agent with this number.
    pub(crate) async fn agent(&self, sessions: &Sessions, key: i64) -> Result<AgentId, Failure> {
        if let Some(id) = self.get(|known| known.agents.get(&key).cloned()) {
            return Ok(id);
        }
        let rows = sessions
            .read("SELECT id FROM agents WHERE key = $1", &[&key])
            .await?;
        let id: AgentId = rows
            .first()
            .and_then(|row| row.try_get::<_, &str>(0).ok())
            .and_then(|id| id.parse().ok())
            .ok_or_else(|| Failure::Damaged(format!("agent {key} is missing")))?;
        self.remember_agent(&id, key);
        Ok(id)
    }

    /// The number of an agent, if it ever had a task.
    pub(crate) async fn agent_key(
        &self,
        sessions: &Sessions,
        id: &AgentId,
    ) -> Result<Option<i64>, Failure> {
        if let Some(key) = self.get(|known| known.agent_keys.get(id).copied()) {
            return Ok(Some(key));
        }
        let rows = sessions
            .read("SELECT key FROM agents WHERE id = $1", &[&id.as_str()])
            .await?;
        let Some(row) = rows.first() else {
            return Ok(None);
        };
        let key = row.try_get(0)?;
        self.remember_agent(id, key);
        Ok(Some(key))
    }

    fn remember(&self, scope: &Scope, key: ScopeKey) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.keys.len() >= SCOPES_MAX {
            known.keys.clear();
            known.scopes.clear();
        }
        known.keys.insert(scope.clone(), key);
        known.scopes.insert(key.scope, scope.clone());
        known.agents.insert(key.agent, scope.agent.clone());
        known.agent_keys.insert(scope.agent.clone(), key.agent);
    }

    fn remember_agent(&self, id: &AgentId, key: i64) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.agents.insert(key, id.clone());
        known.agent_keys.insert(id.clone(), key);
    }
}

/// The first column of a statement that has a row in the end. Somebody else may be about to commit
/// the same name: then the first try sees neither his row nor makes one, and the next one does.
async fn one(
    session: &Session,
    sql: &'static str,
    parameters: &[super::session::Parameter<'_>],
) -> Result<i64, Failure> {
    for _ in 0..5 {
        if let Some(row) = session.query(sql, parameters).await?.first() {
            return Ok(row.try_get(0)?);
        }
    }
    Err(Failure::Damaged("a name has no row".to_owned()))
}

/// The key of a scope's context: by the key that its id carries if we minted it, else by name.
pub(crate) const FIND_CONTEXT: &str = "
    SELECT key FROM contexts WHERE key = $1 AND scope = $2 AND minted = $3
    UNION ALL
    SELECT key FROM contexts WHERE scope = $2 AND name = $4
    LIMIT 1";

/// What [`FIND_CONTEXT`] takes besides the scope: the key in the id, its bits, and the name.
pub(crate) fn context_parameters(key: Option<i64>, id: &ContextId) -> (i64, Sixteen, &str) {
    let bits = uuid_bits(id.as_str()).unwrap_or_default();
    (key.unwrap_or(-1), Sixteen(bits.to_be_bytes()), id.as_str())
}

/// A context that a change names.
#[derive(Clone, Debug)]
pub(crate) struct Wanted<'a> {
    /// The key that the id carries if we minted it.
    pub(crate) key_in_id: Option<i64>,
    pub(crate) scope: i64,
    pub(crate) id: &'a ContextId,
    /// The key it gets if there is no such context yet.
    pub(crate) new: i64,
}

const FIND_CONTEXTS: &str = "
    SELECT coalesce(m.key, n.key)
    FROM unnest($1::int8[], $2::int8[], $3::uuid[], $4::text[]) WITH ORDINALITY
        AS w (key, scope, bits, name, place)
    LEFT JOIN contexts m ON m.key = w.key AND m.scope = w.scope AND m.minted = w.bits
    LEFT JOIN contexts n ON n.scope = w.scope AND n.name = w.name
    ORDER BY w.place";

const CREATE_CONTEXTS: &str = "
    INSERT INTO contexts (key, scope, name)
    SELECT key, scope, name FROM unnest($1::int8[], $2::int8[], $3::text[]) AS w (key, scope, name)
    ON CONFLICT DO NOTHING";

/// The keys of contexts; those that are not there yet get a row.
pub(crate) async fn find_or_create_contexts(
    session: &Session,
    wanted: &[Wanted<'_>],
) -> Result<Vec<i64>, Failure> {
    for _ in 0..5 {
        let found = find_contexts(session, wanted).await?;
        let mut missing: Vec<&Wanted<'_>> = wanted
            .iter()
            .zip(&found)
            .filter(|(_, found)| found.is_none())
            .map(|(wanted, _)| wanted)
            .collect();
        if missing.is_empty() {
            return Ok(found.into_iter().flatten().collect());
        }
        // In one order, so that two who name the same contexts do not wait for each other.
        missing.sort_unstable_by_key(|wanted| (wanted.scope, wanted.id.as_str()));
        missing.dedup_by_key(|wanted| (wanted.scope, wanted.id.as_str()));
        create_contexts(session, &missing).await?;
    }
    Err(Failure::Damaged("a context has no row".to_owned()))
}

async fn find_contexts(
    session: &Session,
    wanted: &[Wanted<'_>],
) -> Result<Vec<Option<i64>>, Failure> {
    let mut keys = Vec::with_capacity(wanted.len());
    let mut scopes = Vec::with_capacity(wanted.len());
    let mut bits = Vec::with_capacity(wanted.len());
    let mut names = Vec::with_capacity(wanted.len());
    for one in wanted {
        let (key, sixteen, name) = context_parameters(one.key_in_id, one.id);
        keys.push(key);
        scopes.push(one.scope);
        bits.push(sixteen);
        names.push(name);
    }
    let rows = session
        .query(FIND_CONTEXTS, &[&keys, &scopes, &bits, &names])
        .await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

/// Not synced by itself: the commit that needs them comes later in the same log.
async fn create_contexts(session: &Session, missing: &[&Wanted<'_>]) -> Result<(), Failure> {
    let keys: Vec<i64> = missing.iter().map(|one| one.new).collect();
    let scopes: Vec<i64> = missing.iter().map(|one| one.scope).collect();
    let names: Vec<&str> = missing.iter().map(|one| one.id.as_str()).collect();
    session.statement(CREATE_CONTEXTS).await?;
    let (begun, made, ended) = join3(
        session.run("BEGIN; SET LOCAL synchronous_commit = off"),
        session.query(CREATE_CONTEXTS, &[&keys, &scopes, &names]),
        session.run("COMMIT"),
    )
    .await;
    begun.and(made.map(drop)).and(ended)
}
