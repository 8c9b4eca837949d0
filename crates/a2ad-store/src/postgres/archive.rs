//! Reading a conversation out of a database that instances may be serving from.

use std::sync::Arc;

use a2ad_core::keys::{Number, Owner, PublicIds, TaskKey};
use a2ad_proto::{AgentId, ContextId};

use super::fail::Failure;
use super::migrate::{MIGRATIONS, meta, schemas};
use super::names::{FIND_CONTEXT, Names, context_parameters};
use super::open::{self, OpenError};
use super::options::PostgresOptions;
use super::read::Reader;
use super::session::Ground;
use super::sessions::Sessions;
use crate::archive::Archived;

const SCOPES: &str = "
    SELECT s.key, s.owner FROM agents a JOIN scopes s ON s.agent = a.key
    WHERE a.id = $1 AND ($2::text IS NULL OR s.owner = $2) ORDER BY s.owner";

const TASKS: &str = "
    SELECT key FROM tasks WHERE key = $1 AND context = $1
    UNION ALL
    SELECT key FROM tasks WHERE context = $1 AND context <> key";

/// The conversation of this name with this agent: of `owner`, or of whoever alone has one. Changes
/// nothing.
///
/// # Errors
/// If the database cannot be reached, or is none that we could use.
pub async fn read_context(
    options: PostgresOptions,
    agent: &AgentId,
    context: &ContextId,
    owner: Option<&Owner>,
) -> Result<Archived, OpenError> {
    let ground = Arc::new(Ground::new(options)?);
    let read = async {
        let server = ground.target.server.as_str();
        let failed = |failure: Failure| OpenError::from_failure(server, &failure);
        let session = open::connect(&ground).await?;
        let (schema, oldest_compatible) = schemas(server, &session).await?;
        let known = MIGRATIONS.last().map_or(0, |step| step.schema);
        if schema == 0 {
            return Ok(Archived::Nobodys);
        }
        if oldest_compatible > known {
            return Err(OpenError::Newer {
                server: server.to_owned(),
                found: schema,
                known,
            });
        }
        let secret = meta(&session, "secret").await.map_err(failed)?;
        let secret: Option<Vec<u8>> = secret.and_then(|row| row.try_get(1).ok());
        let secret = secret.and_then(|secret| secret.try_into().ok());
        let reader = Reader {
            sessions: Sessions::new(&ground, 1),
            names: Arc::new(Names::default()),
            ids: PublicIds::new(secret.ok_or_else(|| OpenError::Corrupt {
                server: server.to_owned(),
                detail: "the secret of its ids is missing".to_owned(),
            })?),
        };
        find(&reader, agent, context, owner).await.map_err(failed)
    };
    let read = read.await;
    ground.close().await;
    read
}

async fn find(
    reader: &Reader,
    agent: &AgentId,
    context: &ContextId,
    owner: Option<&Owner>,
) -> Result<Archived, Failure> {
    let owner = owner.map(Owner::as_str);
    let scopes = reader
        .sessions
        .read(SCOPES, &[&agent.as_str(), &owner])
        .await?;
    let (key, bits, name) = context_parameters(reader.ids.key_of(context.as_str()), context);
    let mut found: Vec<(Owner, i64)> = Vec::new();
    for scope in &scopes {
        let Ok(owner) = scope.try_get::<_, &str>(1)?.parse() else {
            continue;
        };
        let scope: i64 = scope.try_get(0)?;
        let rows = reader
            .sessions
            .read(FIND_CONTEXT, &[&key, &scope, &bits, &name])
            .await?;
        if let Some(row) = rows.first() {
            found.push((owner, row.try_get(0)?));
        }
    }
    match found.as_slice() {
        [] => Ok(Archived::Nobodys),
        [(owner, context)] => {
            let mut journals = Vec::new();
            for row in reader.sessions.read(TASKS, &[context]).await? {
                let task = TaskKey(row.try_get(0)?);
                let entries = reader.entries(task, Number::ZERO, usize::MAX).await?;
                journals.push((task, entries));
            }
            Ok(Archived::Found {
                owner: owner.clone(),
                journals,
            })
        }
        several => Ok(Archived::Several(
            several.iter().map(|(owner, _)| owner.clone()).collect(),
        )),
    }
}
