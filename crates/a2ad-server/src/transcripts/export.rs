//! One conversation, out of the database.

use a2ad_core::keys::{Number, Owner};
use a2ad_core::task::{Entry, Fold, apply};
use a2ad_core::transcript::{self, Said};
use a2ad_proto::{AgentId, ContextId, IdError, Task, Timestamp};
use a2ad_store::Archived;
use serde_json::{Value, json};

use crate::config::Config;
use crate::maintenance::{DatabaseError, read_context};

/// Why a conversation cannot be shown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// What was given cannot be a name.
    #[error("{0}")]
    Name(#[from] IdError),
    /// There is none.
    #[error(
        "there is no conversation `{context}` with the agent `{agent}`: check both names, and --owner"
    )]
    Nobodys {
        /// The agent's id.
        agent: AgentId,
        /// The conversation's id.
        context: ContextId,
    },
    /// There are several.
    #[error("several have a conversation of this name; say whose with --owner: {}", .0.join(", "))]
    Several(Vec<String>),
    /// The database cannot be read.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// What was read is not what was written.
    #[error("a journal cannot be read; `a2ad verify` says what is wrong with the database")]
    Damaged(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// A conversation as it is stored.
#[derive(Clone, Debug)]
pub struct Exported {
    agent: AgentId,
    context: ContextId,
    owner: Owner,
    /// In the order in which they were made.
    tasks: Vec<(Option<Timestamp>, Task, Number)>,
}

/// Reads a conversation: that of `owner`, or of whoever alone has one of this name with this agent.
///
/// # Errors
/// See [`ExportError`].
pub async fn export_context(
    config: &Config,
    agent: &str,
    context: &str,
    owner: Option<&str>,
) -> Result<Exported, ExportError> {
    let agent: AgentId = agent.parse()?;
    let context: ContextId = context.parse()?;
    let named = match owner.map(str::parse::<Owner>) {
        Some(Err(_)) => return Err(ExportError::Nobodys { agent, context }),
        Some(Ok(owner)) => Some(owner),
        None => None,
    };
    let found = read_context(config, &agent, &context, named.as_ref()).await?;
    let (owner, journals) = match found {
        Archived::Nobodys => return Err(ExportError::Nobodys { agent, context }),
        Archived::Several(owners) => {
            let names = owners.iter().map(|owner| owner.as_str().to_owned());
            return Err(ExportError::Several(names.collect()));
        }
        Archived::Found { owner, journals } => (owner, journals),
    };
    let mut tasks = Vec::with_capacity(journals.len());
    for (key, entries) in journals {
        let (created, fold) = fold(&entries)?;
        tasks.push((created, key, fold.task, fold.version));
    }
    tasks.sort_by_key(|(created, key, ..)| (created.map(Timestamp::as_millis), *key));
    let tasks = tasks.into_iter();
    Ok(Exported {
        agent,
        context,
        owner,
        tasks: tasks
            .map(|(created, _, task, at)| (created, task, at))
            .collect(),
    })
}

/// The task that a journal tells of, and when it began.
fn fold(entries: &[Entry]) -> Result<(Option<Timestamp>, Fold), ExportError> {
    let mut fold = Fold::default();
    let mut created = None;
    for entry in entries {
        let record = entry.record();
        apply(
            &mut fold,
            record.map_err(|error| ExportError::Damaged(error.into()))?,
        );
        if entry.number == Number::FIRST {
            created = fold.task.status.timestamp;
        }
    }
    Ok((created, fold))
}

impl Exported {
    /// As Markdown; see [`a2ad_core::transcript`].
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut text = transcript::header(&self.agent, &self.context);
        for (_, task, version) in &self.tasks {
            text.push_str(&transcript::block(&self.agent, task, *version));
        }
        text
    }

    /// For programs.
    #[must_use]
    pub fn json(&self) -> Value {
        let turn = |said: Said| match said {
            Said::User(text) => json!({"role": "user", "text": text}),
            Said::Agent(text) => json!({"role": "agent", "text": text}),
            Said::Error(text) => json!({"role": "agent", "error": text}),
        };
        let tasks = self.tasks.iter().map(|(created, task, _)| {
            json!({
                "taskId": task.id,
                "state": task.status.state.as_str(),
                "createdAt": created.map(|at| at.to_string()),
                "updatedAt": task.status.timestamp.map(|at| at.to_string()),
                "turns": transcript::said(task).into_iter().map(turn).collect::<Vec<_>>(),
            })
        });
        json!({
            "agentId": self.agent.as_str(),
            "contextId": self.context.as_str(),
            "owner": self.owner.as_str(),
            "tasks": tasks.collect::<Vec<_>>(),
        })
    }
}
