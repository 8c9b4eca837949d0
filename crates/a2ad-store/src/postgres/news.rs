//! What instances tell each other: which tasks have changed, which agents have turns to work on.
//!
//! Not within the commits: a transaction that notifies makes all others that do wait for its sync.
//! So it is told afterwards, on a connection of its own, and what comes within a few milliseconds
//! is told together. News may get lost; [`watch`](super::watch) finds out in the end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use a2ad_core::keys::{Number, TaskKey};
use a2ad_core::store::Wake;
use a2ad_proto::AgentId;
use tokio::sync::{Notify, mpsc};

use super::fail::Failure;
use super::read::Reader;
use super::session::{Ground, Session};
use super::sessions::Slot;

/// How long news wait for more of them.
const GATHER: Duration = Duration::from_millis(3);
/// No more than so many tasks wait to be told; those beyond are found by watching.
const TASKS_MAX: usize = 16_384;
/// The server takes less than 8000 bytes at a time.
const PAYLOAD_MAX: usize = 7_900;
/// How many messages of others may wait here; then the connection is not read for a while.
const HEARD_MAX: usize = 1_024;

/// Nothing here has to survive anything, so nobody waits for a sync.
const TELL: &str = "
    SELECT set_config('synchronous_commit', 'off', false), pg_notify('a2ad_news', payload)
    FROM unnest($1::text[]) AS w (payload)";

/// Where lanes leave what is to be told.
#[derive(Clone, Debug, Default)]
pub(super) struct News(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    pending: Mutex<Pending>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct Pending {
    tasks: BTreeMap<TaskKey, Number>,
    agents: BTreeSet<AgentId>,
}

impl News {
    /// Leaves what a commit has changed.
    pub(super) fn committed(&self, task: TaskKey, version: Number, ready: &[AgentId]) {
        let mut pending = self
            .0
            .pending
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if pending.tasks.len() < TASKS_MAX {
            pending.tasks.insert(task, version);
        }
        pending.agents.extend(ready.iter().cloned());
    }

    /// Has it told.
    pub(super) fn go(&self) {
        self.0.arrived.notify_one();
    }

    fn take(&self) -> Pending {
        let mut pending = self
            .0
            .pending
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *pending)
    }

    /// Tells the others until the store is closed.
    pub(super) async fn tell(self, ground: Arc<Ground>, reader: Arc<Reader>, instance: i64) {
        let slot = Slot::new(Arc::clone(&ground), &[]);
        loop {
            tokio::select! {
                () = self.0.arrived.notified() => {}
                () = ground.stop.cancelled() => return,
            }
            tokio::time::sleep(GATHER).await;
            let pending = self.take();
            if let Err(failure) = tell(&slot, &reader, instance, &pending).await {
                let error = failure.store_error();
                tracing::debug!(%error, "news could not be told");
            }
        }
    }
}

async fn tell(
    slot: &Slot,
    reader: &Reader,
    instance: i64,
    pending: &Pending,
) -> Result<(), Failure> {
    let mut agents = Vec::with_capacity(pending.agents.len());
    for id in &pending.agents {
        agents.extend(reader.names.agent_key(&reader.sessions, id).await?);
    }
    let payloads = payloads(instance, &pending.tasks, &agents);
    if payloads.is_empty() {
        return Ok(());
    }
    slot.query(TELL, &[&payloads]).await.map(drop)
}

/// Messages: the sender, then `key:version` of tasks and `@key` of agents.
fn payloads(instance: i64, tasks: &BTreeMap<TaskKey, Number>, agents: &[i64]) -> Vec<String> {
    let tasks = tasks
        .iter()
        .map(|(key, version)| format!(" {}:{version}", key.0));
    let words = tasks.chain(agents.iter().map(|agent| format!(" @{agent}")));
    let mut payloads: Vec<String> = Vec::new();
    for word in words {
        match payloads.last_mut() {
            Some(last) if last.len() + word.len() <= PAYLOAD_MAX => last.push_str(&word),
            _ => payloads.push(format!("{instance}{word}")),
        }
    }
    payloads
}

/// What a message says; nothing if we sent it ourselves or do not understand it.
fn read(payload: &str, instance: i64) -> (Vec<(TaskKey, Number)>, Vec<i64>) {
    let mut words = payload.split(' ');
    let sender = words.next().and_then(|word| word.parse::<i64>().ok());
    let mut tasks = Vec::new();
    let mut agents = Vec::new();
    if sender.is_none_or(|sender| sender == instance) {
        return (tasks, agents);
    }
    for word in words {
        if let Some(agent) = word.strip_prefix('@') {
            agents.extend(agent.parse::<i64>().ok());
        } else if let Some((key, version)) = word.split_once(':')
            && let (Ok(key), Ok(version)) = (key.parse(), version.parse())
        {
            tasks.push((TaskKey(key), Number(version)));
        }
    }
    (tasks, agents)
}

/// Hears what others tell until the store is closed. After each time of deafness `missed` is told,
/// so that somebody looks for what was not heard.
pub(super) async fn hear(
    ground: Arc<Ground>,
    reader: Arc<Reader>,
    wake: Arc<dyn Wake>,
    instance: i64,
    missed: Arc<Notify>,
) {
    let mut pause = Duration::from_millis(50);
    while !ground.stop.is_cancelled() {
        let (sender, mut heard) = mpsc::channel(HEARD_MAX);
        let listening = async {
            let session = Session::connect(&ground, Some(sender)).await?;
            session.run("LISTEN a2ad_news").await?;
            Ok::<_, Failure>(session)
        };
        match listening.await {
            Ok(_session) => {
                pause = Duration::from_millis(50);
                missed.notify_one();
                while let Some(payload) = heard.recv().await {
                    let mut news = read(&payload, instance);
                    // What has arrived meanwhile is passed on in one go.
                    while let Ok(more) = heard.try_recv() {
                        let (tasks, agents) = read(&more, instance);
                        news.0.extend(tasks);
                        news.1.extend(agents);
                    }
                    pass_on(&reader, &*wake, news).await;
                }
            }
            Err(failure) => {
                let error = failure.store_error();
                tracing::debug!(%error, "news of others cannot be heard");
            }
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = ground.stop.cancelled() => return,
        }
        pause = (pause * 2).min(Duration::from_secs(2));
    }
}

async fn pass_on(
    reader: &Reader,
    wake: &dyn Wake,
    (tasks, mut agents): (Vec<(TaskKey, Number)>, Vec<i64>),
) {
    if !tasks.is_empty() {
        wake.changed(&tasks);
    }
    agents.sort_unstable();
    agents.dedup();
    let mut ready = Vec::with_capacity(agents.len());
    for agent in agents {
        match reader.names.agent(&reader.sessions, agent).await {
            Ok(id) => ready.push(id),
            Err(failure) => {
                let error = failure.store_error();
                tracing::debug!(%error, agent, "an agent in the news is not known");
            }
        }
    }
    if !ready.is_empty() {
        wake.ready(&ready);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_heard_by_others_in_messages_that_fit() {
        let tasks: BTreeMap<_, _> = (1..3_000)
            .map(|key| (TaskKey(key << 30), Number(7)))
            .collect();
        let messages = payloads(4, &tasks, &[8, 9]);
        assert!(messages.len() > 1);
        assert!(messages.iter().all(|message| message.len() < 8_000));
        let mut heard = (Vec::new(), Vec::new());
        for message in &messages {
            let (tasks, agents) = read(message, 5);
            heard.0.extend(tasks);
            heard.1.extend(agents);
            assert_eq!(read(message, 4), (vec![], vec![]));
        }
        assert_eq!(heard.0, tasks.into_iter().collect::<Vec<_>>());
        assert_eq!(heard.1, [8, 9]);
        assert_eq!(read("", 5), (vec![], vec![]));
        assert_eq!(read("1 x:y 2: @z", 5), (vec![], vec![]));
    }
}
