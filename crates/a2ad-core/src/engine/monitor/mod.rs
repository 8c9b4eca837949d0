//! Looking at tasks without touching them: what a monitor shows.
//!
//! A monitor sees what its owner could ask for anyway, of the agents that it may call, all in one
//! list and one stream. It takes nothing that running tasks need: it reads what is committed.

mod follow;

use a2ad_proto::{AgentId, ContextId, Task, TaskId, TaskState, Timestamp};

pub use follow::Sightings;

use super::read::{PAGE_BYTES, thaw_or_begin};
use super::{Engine, EngineError, Inner};
use crate::keys::{Number, Owner, Scope, TaskKey};
use crate::store::{Known, ListFilter, ListPlace, Listed};
use crate::task::{Entry, Identity, Record, Snapshot};

/// How much of the beginning of a journal is read at a time to find when the task began.
const BEGINNING_BYTES: usize = 16 << 10;
/// And how often: the first message may be long, then its task begins to be worked on.
const BEGINNING_READS: usize = 4;

/// Whose tasks somebody looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sight {
    /// Whose.
    pub owner: Owner,
    /// With which agents.
    pub agents: Vec<AgentId>,
    /// In which conversation, if not in all.
    pub context_id: Option<ContextId>,
}

impl Sight {
    pub(super) fn reaches(&self, task: &Identity) -> bool {
        let context = self.context_id.as_ref();
        task.scope.owner == self.owner
            && self.agents.contains(&task.scope.agent)
            && context.is_none_or(|id| *id == task.context_id)
    }
}

/// A task as a monitor sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// Whose work it is.
    pub agent: AgentId,
    /// The task, with its history and artifacts.
    pub task: Task,
    /// When it was submitted.
    pub created_at: Option<Timestamp>,
    /// When somebody first worked on it.
    pub started_at: Option<Timestamp>,
    version: Number,
    /// How many bytes it has, roughly.
    size: usize,
}

/// A page of tasks, newest status first.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenPage {
    /// The tasks.
    pub tasks: Vec<Seen>,
    /// What gives the next page; nothing if this is the last.
    pub next_page_token: Option<String>,
}

/// What a stream of sightings tells.
#[derive(Clone, Debug, PartialEq)]
pub enum Sighting {
    /// A task that was there when the stream began.
    There(Seen),
    /// A task that began since.
    Created(Seen),
    /// A task that has changed.
    Updated {
        /// The task as it is now.
        seen: Seen,
        /// The state in which it was last told, if it was.
        before: Option<TaskState>,
    },
}

impl Sighting {
    /// The task.
    #[must_use]
    pub const fn seen(&self) -> &Seen {
        match self {
            Self::There(seen) | Self::Created(seen) | Self::Updated { seen, .. } => seen,
        }
    }
}

impl Engine {
    /// The task with this id, if it is in sight.
    pub async fn look(&self, sight: &Sight, id: &str) -> Result<Option<Seen>, EngineError> {
        let inner = &self.inner;
        let Ok(id) = id.parse::<TaskId>() else {
            return Ok(None);
        };
        let Some(key) = inner.store.public_ids().key_of(id.as_str()) else {
            return Ok(None);
        };
        inner.look_at(sight, TaskKey(key), Some(&id)).await
    }

    /// Up to `limit` tasks in sight, and a token if there are more.
    pub async fn look_over(
        &self,
        sight: &Sight,
        page_token: Option<&str>,
        limit: usize,
    ) -> Result<SeenPage, EngineError> {
        let inner = &self.inner;
        let after = match page_token {
            None | Some("") => None,
            Some(token) => Some(
                inner
                    .open_place(token)
                    .filter(|(place, tag)| inner.sight_tag(sight, *place) == *tag)
                    .map(|(place, _)| place)
                    .ok_or_else(|| EngineError::invalid("pageToken", "Invalid page token"))?,
            ),
        };
        let page = inner
            .in_sight(sight, after, None, limit, &mut |_, _| false)
            .await?;
        let mut tasks = Vec::with_capacity(page.tasks.len());
        let last = page.tasks.last().map(|(_, listed)| listed.place);
        for (agent, listed) in &page.tasks {
            tasks.extend(inner.seen_in_list(agent, listed).await?);
        }
        let next = last.filter(|_| page.more);
        Ok(SeenPage {
            tasks,
            next_page_token: next.map(|at| inner.seal_place(at, inner.sight_tag(sight, at))),
        })
    }

    /// All tasks in sight, newest first and not more than some, then whatever happens to any.
    #[must_use]
    pub fn follow_all(&self, sight: Sight) -> Sightings {
        Sightings::new(&self.inner, sight)
    }
}

/// Tasks of several lists that are one.
struct InSight {
    /// In order.
    tasks: Vec<(AgentId, Listed)>,
    /// There are more after these.
    more: bool,
}

impl Inner {
    /// A page of what is in sight: the agents' lists, merged.
    async fn in_sight(
        &self,
        sight: &Sight,
        after: Option<ListPlace>,
        status_at_least: Option<i64>,
        limit: usize,
        known: &mut Known<'_>,
    ) -> Result<InSight, EngineError> {
        let filter = ListFilter {
            context_id: sight.context_id.clone(),
            state: None,
            status_at_least,
        };
        let bytes_max = PAGE_BYTES / sight.agents.len().max(1);
        let mut tasks = Vec::new();
        // Where the first list was cut off: what comes after it in the others may not be next.
        let mut cut: Option<ListPlace> = None;
        for agent in &sight.agents {
            let scope = Scope {
                owner: sight.owner.clone(),
                agent: agent.clone(),
            };
            let list = self
                .store
                .list(&scope, &filter, after, limit, bytes_max, true, &mut *known);
            let page = list.await?;
            if page.more {
                cut = cut.max(page.tasks.last().map(|listed| listed.place));
            }
            tasks.extend(page.tasks.into_iter().map(|it| (agent.clone(), it)));
        }
        tasks.sort_unstable_by_key(|(_, listed)| std::cmp::Reverse(listed.place));
        let found = tasks.len();
        tasks.retain(|(_, listed)| cut.is_none_or(|cut| listed.place >= cut));
        tasks.truncate(limit);
        let more = cut.is_some() || tasks.len() < found;
        Ok(InSight { tasks, more })
    }

    /// A task of a page. One that is damaged must not hide the others.
    async fn seen_in_list(
        &self,
        agent: &AgentId,
        listed: &Listed,
    ) -> Result<Option<Seen>, EngineError> {
        let task = listed.place.key;
        let whole = match &listed.snapshot {
            None => listed.entries.as_slice(),
            Some(_) => &[],
        };
        let seen = match self.listed(listed, true).await {
            Ok(frozen) => self.see(agent.clone(), task, &frozen, whole).await,
            Err(error) => Err(error),
        };
        match seen {
            Ok(seen) => Ok(seen),
            Err(error @ EngineError::Internal(_)) => {
                let error = &error as &dyn std::error::Error;
                tracing::error!(
                    task = task.0,
                    error,
                    "a damaged task is not shown to a monitor"
                );
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The task with this key as it is now, if it is in sight and has this id.
    async fn look_at(
        &self,
        sight: &Sight,
        task: TaskKey,
        id: Option<&TaskId>,
    ) -> Result<Option<Seen>, EngineError> {
        let Some(head) = self.head(task).await? else {
            return Ok(None);
        };
        let identity = &head.identity;
        if !sight.reaches(identity) || id.is_some_and(|id| *id != identity.id) {
            return Ok(None);
        }
        let frozen = self.frozen(&head).await?;
        let agent = identity.scope.agent.clone();
        self.see(agent, task, &frozen, &[]).await
    }

    /// `beginning` is the journal from its first entry on, as far as it is known. Nothing is seen
    /// of a task that was deleted a moment ago.
    async fn see(
        &self,
        agent: AgentId,
        task: TaskKey,
        frozen: &Snapshot,
        beginning: &[Entry],
    ) -> Result<Option<Seen>, EngineError> {
        if frozen.version == Number::ZERO {
            return Ok(None);
        }
        let times = Times::of(beginning);
        let is_whole = beginning.last().map(|entry| entry.number) == Some(frozen.version);
        let times = if is_whole || times.started.is_some() {
            times
        } else {
            self.times(task).await?
        };
        Ok(Some(Seen {
            agent,
            task: thaw_or_begin(task, Some(frozen)).task,
            created_at: times.created,
            started_at: times.started,
            version: frozen.version,
            size: frozen.size(),
        }))
    }

    async fn times(&self, task: TaskKey) -> Result<Times, EngineError> {
        let mut times = Times::default();
        let mut after = Number::ZERO;
        for _ in 0..BEGINNING_READS {
            let entries = self.store.read(task, after, BEGINNING_BYTES).await?;
            let Some(last) = entries.last() else { break };
            after = last.number;
            times = times.or(Times::of(&entries));
            if times.started.is_some() {
                break;
            }
        }
        Ok(times)
    }

    fn sight_tag(&self, sight: &Sight, place: ListPlace) -> [u8; 16] {
        let context = sight.context_id.as_ref().map_or("", |id| id.as_str());
        let agents: Vec<&str> = sight.agents.iter().map(AgentId::as_str).collect();
        self.store.public_ids().tag(&[
            b"monitor",
            sight.owner.as_str().as_bytes(),
            agents.join("/").as_bytes(),
            context.as_bytes(),
            &place.status_at.to_le_bytes(),
            &place.key.0.to_le_bytes(),
        ])
    }
}

/// When a task was submitted, and when somebody first worked on it.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    created: Option<Timestamp>,
    started: Option<Timestamp>,
}

impl Times {
    fn of(entries: &[Entry]) -> Self {
        let first = entries.first().filter(|it| it.number == Number::FIRST);
        let worked = |entry: &&Entry| entry.shape.state == Some(TaskState::Working);
        Self {
            created: first.and_then(status_time),
            started: entries.iter().find(worked).and_then(status_time),
        }
    }

    fn or(self, later: Self) -> Self {
        Self {
            created: self.created.or(later.created),
            started: self.started.or(later.started),
        }
    }
}

/// When the status was entered that an entry tells.
fn status_time(entry: &Entry) -> Option<Timestamp> {
    match entry.record().ok()? {
        Record::Submitted(task) => task.status.timestamp,
        Record::Status(update) => update.status.timestamp,
        Record::Artifact(_) | Record::Hidden(_) => None,
    }
}
