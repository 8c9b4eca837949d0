//! Puts a task together from its events, as the server does (MODEL-07, ART-01, ART-02).

use std::collections::BTreeSet;

use a2ad_proto::{
    Artifact, Message, Metadata, StreamResponse, Task, TaskArtifactUpdateEvent, TaskState,
    TaskStatusUpdateEvent,
};

/// A task as its events tell it so far.
///
/// ```
/// use a2ad_client::assemble::Assembly;
/// use a2ad_proto::{Artifact, Part, StreamResponse, TaskArtifactUpdateEvent};
/// let chunk = |text: &str, append| {
///     let artifact = Artifact { artifact_id: "a".into(), parts: vec![Part::text(text)], ..Artifact::default() };
///     StreamResponse::ArtifactUpdate(TaskArtifactUpdateEvent { artifact, append, ..Default::default() })
/// };
/// let mut assembly = Assembly::default();
/// assembly.apply(&chunk("Hel", false));
/// assembly.apply(&chunk("lo", true));
/// assert_eq!(assembly.text(), "Hello");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Assembly {
    task: Option<Task>,
    reply: Option<Message>,
    whole: BTreeSet<String>,
}

/// How an event fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// It goes on where the events before it ended.
    Fits,
    /// It adds to an artifact that was never begun: events before it were missed (ART-03). It is taken as the
    /// beginning, for want of a better one.
    Orphan,
}

impl Assembly {
    /// Takes in the next event.
    pub fn apply(&mut self, event: &StreamResponse) -> Applied {
        match event {
            StreamResponse::Task(task) => {
                self.task = Some(task.clone());
                self.whole.clear();
            }
            StreamResponse::Message(message) => self.reply = Some(message.clone()),
            StreamResponse::StatusUpdate(update) => {
                let task = self.task_of(&update.task_id, &update.context_id);
                apply_status(task, update);
            }
            StreamResponse::ArtifactUpdate(update) => {
                let task = self.task_of(&update.task_id, &update.context_id);
                let applied = apply_artifact(&mut task.artifacts, update);
                let id = &update.artifact.artifact_id;
                if update.last_chunk {
                    self.whole.insert(id.clone());
                } else if !update.append {
                    self.whole.remove(id);
                }
                return applied;
            }
        }
        Applied::Fits
    }

    /// The task, once an event told of it.
    #[must_use]
    pub fn task(&self) -> Option<&Task> {
        self.task.as_ref()
    }

    /// The agent's direct reply, if that is how it answered.
    #[must_use]
    pub fn reply(&self) -> Option<&Message> {
        self.reply.as_ref()
    }

    /// The task's state.
    #[must_use]
    pub fn state(&self) -> Option<TaskState> {
        Some(self.task.as_ref()?.status.state)
    }

    /// Whether nothing more comes for this artifact: it was said so, or the task has ended (ART-04).
    #[must_use]
    pub fn is_whole(&self, artifact_id: &str) -> bool {
        self.whole.contains(artifact_id) || self.state().is_some_and(TaskState::is_terminal)
    }

    /// All text of the artifacts in their order, or that of the reply.
    #[must_use]
    pub fn text(&self) -> String {
        let artifacts = self.task.iter().flat_map(|task| &task.artifacts);
        let parts = artifacts.flat_map(|artifact| &artifact.parts);
        let reply = self.reply.iter().flat_map(|reply| &reply.parts);
        let text = parts.chain(reply).filter_map(a2ad_proto::Part::as_text);
        text.collect()
    }

    /// The events after which this is `now`: what was missed of a task of which a snapshot came.
    ///
    /// An artifact that grew becomes a chunk with what is new, one that changed becomes a whole one. What events
    /// cannot say, such as messages missed, is said by the snapshot itself, as the last one.
    #[must_use]
    pub fn difference(&self, now: &Task) -> Vec<StreamResponse> {
        let whole = || StreamResponse::Task(now.clone());
        let Some(was) = &self.task else {
            return vec![whole()];
        };
        let ids = |task: &Task| -> Vec<String> {
            let ids = task.artifacts.iter();
            ids.map(|artifact| artifact.artifact_id.clone()).collect()
        };
        // Artifacts are never taken back or moved by events.
        if was.id != now.id || !ids(now).starts_with(&ids(was)) {
            return vec![whole()];
        }
        let mut events = Vec::new();
        for (index, artifact) in now.artifacts.iter().enumerate() {
            let (artifact, append) = match was.artifacts.get(index) {
                Some(old) if old == artifact => continue,
                Some(old) => match growth(old, artifact) {
                    Some(chunk) => (chunk, true),
                    None => (artifact.clone(), false),
                },
                None => (artifact.clone(), false),
            };
            events.push(StreamResponse::ArtifactUpdate(TaskArtifactUpdateEvent {
                task_id: now.id.clone(),
                context_id: now.context_id.clone(),
                artifact,
                append,
                ..TaskArtifactUpdateEvent::default()
            }));
        }
        if was.status != now.status {
            events.push(StreamResponse::StatusUpdate(TaskStatusUpdateEvent {
                task_id: now.id.clone(),
                context_id: now.context_id.clone(),
                status: now.status.clone(),
                metadata: (was.metadata != now.metadata)
                    .then(|| now.metadata.clone())
                    .flatten(),
            }));
        }
        let mut then = Self {
            task: Some(was.clone()),
            ..Self::default()
        };
        for event in &events {
            then.apply(event);
        }
        if then.task.as_ref() != Some(now) {
            events.push(whole());
        }
        events
    }

    fn task_of(&mut self, task_id: &str, context_id: &str) -> &mut Task {
        self.task.get_or_insert_with(|| Task {
            id: task_id.to_owned(),
            context_id: context_id.to_owned(),
            ..Task::default()
        })
    }
}

fn apply_status(task: &mut Task, update: &TaskStatusUpdateEvent) {
    task.history.extend(task.status.message.take());
    task.status = update.status.clone();
    merge(&mut task.metadata, update.metadata.as_ref());
}

fn apply_artifact(artifacts: &mut Vec<Artifact>, update: &TaskArtifactUpdateEvent) -> Applied {
    let new = &update.artifact;
    let known = artifacts
        .iter_mut()
        .find(|known| known.artifact_id == new.artifact_id);
    match known {
        None => {
            artifacts.push(new.clone());
            if update.append {
                return Applied::Orphan;
            }
        }
        Some(known) if !update.append => *known = new.clone(),
        Some(known) => append(known, new),
    }
    Applied::Fits
}

fn append(known: &mut Artifact, new: &Artifact) {
    known.parts.extend(new.parts.iter().cloned());
    merge(&mut known.metadata, new.metadata.as_ref());
    for uri in &new.extensions {
        if !known.extensions.contains(uri) {
            known.extensions.push(uri.clone());
        }
    }
}

fn merge(into: &mut Option<Metadata>, new: Option<&Metadata>) {
    if let Some(new) = new {
        *into = Some(match into {
            Some(old) => old.merged(new),
            None => new.clone(),
        });
    }
}

/// The chunk that makes `new` out of `old`, if there is one.
fn growth(old: &Artifact, new: &Artifact) -> Option<Artifact> {
    let chunk = Artifact {
        artifact_id: new.artifact_id.clone(),
        parts: new.parts.strip_prefix(&old.parts[..])?.to_vec(),
        metadata: (old.metadata != new.metadata)
            .then(|| new.metadata.clone())
            .flatten(),
        extensions: new.extensions.strip_prefix(&old.extensions[..])?.to_vec(),
        ..Artifact::default()
    };
    let mut grown = old.clone();
    append(&mut grown, &chunk);
    // A chunk without parts is not A2A.
    (grown == *new && !chunk.parts.is_empty()).then_some(chunk)
}

#[cfg(test)]
mod tests {
    use a2ad_core::task::{Fold, Record, apply};
    use a2ad_proto::{Part, Role, TaskStatus};
    use proptest::prelude::*;

    use super::*;

    fn metadata() -> impl Strategy<Value = Option<Metadata>> {
        let member = ("[ab]", 0..3_u8);
        prop::option::of(prop::collection::btree_map(member.0, member.1, 0..3)).prop_map(|map| {
            map.map(|map| Metadata::parse(&serde_json::to_string(&map).unwrap()).unwrap())
        })
    }

    fn artifact() -> impl Strategy<Value = Artifact> {
        let id = prop::sample::select(vec!["a", "b", "c"]);
        let parts = prop::collection::vec("[xy]", 1..3);
        let extensions = prop::collection::btree_set("urn:[12]", 0..2);
        (id, parts, metadata(), extensions, "[n]?").prop_map(
            |(id, parts, metadata, extensions, name)| Artifact {
                artifact_id: id.to_owned(),
                name,
                parts: parts.into_iter().map(Part::text).collect(),
                metadata,
                extensions: extensions.into_iter().collect(),
                ..Artifact::default()
            },
        )
    }

    fn said() -> impl Strategy<Value = Option<Message>> {
        prop::option::of("[m-p]").prop_map(|said| {
            said.map(|said| Message {
                message_id: said.clone(),
                role: Role::Agent,
                parts: vec![Part::text(said)],
                ..Message::default()
            })
        })
    }

    fn update() -> impl Strategy<Value = Record> {
        let status = (0..9_i32, said(), metadata()).prop_map(|(state, message, metadata)| {
            let state = TaskState::from_number(state).unwrap();
            Record::Status(TaskStatusUpdateEvent {
                task_id: "t".to_owned(),
                context_id: "c".to_owned(),
                status: TaskStatus {
                    state,
                    message,
                    timestamp: None,
                },
                metadata,
            })
        });
        let piece = (artifact(), any::<bool>(), any::<bool>());
        let piece = piece.prop_map(|(artifact, append, last_chunk)| {
            Record::Artifact(TaskArtifactUpdateEvent {
                task_id: "t".to_owned(),
                context_id: "c".to_owned(),
                artifact,
                append,
                last_chunk,
                metadata: None,
            })
        });
        prop_oneof![1 => status, 3 => piece]
    }

    fn event(record: &Record) -> StreamResponse {
        match record {
            Record::Submitted(task) => StreamResponse::Task(task.clone()),
            Record::Status(update) => StreamResponse::StatusUpdate(update.clone()),
            Record::Artifact(update) => StreamResponse::ArtifactUpdate(update.clone()),
            Record::Hidden(_) => unreachable!("nobody sees these"),
        }
    }

    fn begun() -> Record {
        Record::Submitted(Task {
            id: "t".to_owned(),
            context_id: "c".to_owned(),
            ..Task::default()
        })
    }

    fn assemble(records: &[Record]) -> Assembly {
        let mut assembly = Assembly::default();
        for record in records {
            assembly.apply(&event(record));
        }
        assembly
    }

    /// What a reader has who prints chunks as they come, and starts over when told to.
    fn printed(events: &[StreamResponse], onto: &mut std::collections::BTreeMap<String, String>) {
        for event in events {
            if let StreamResponse::ArtifactUpdate(update) = event {
                let text = onto.entry(update.artifact.artifact_id.clone()).or_default();
                if !update.append {
                    text.clear();
                }
                text.extend(update.artifact.parts.iter().filter_map(Part::as_text));
            }
        }
    }

    proptest! {
        #[test]
        fn model_07_it_folds_as_the_server_does(updates in prop::collection::vec(update(), 0..24)) {
            let records: Vec<Record> = [begun()].into_iter().chain(updates).collect();
            let mut fold = Fold::default();
            for record in &records {
                apply(&mut fold, record.clone());
            }
            let assembly = assemble(&records);
            prop_assert_eq!(assembly.task(), Some(&fold.task));
        }

        #[test]
        fn a_difference_is_all_that_was_missed_and_nothing_twice(
            updates in prop::collection::vec(update(), 0..24),
            cut in any::<prop::sample::Index>(),
        ) {
            let records: Vec<Record> = [begun()].into_iter().chain(updates).collect();
            let cut = cut.index(records.len() + 1);
            let now = assemble(&records);
            let mut healed = assemble(&records[..cut]);
            let missed = healed.difference(now.task().unwrap());
            let (mut live, mut mended) = (Default::default(), Default::default());
            let events: Vec<_> = records.iter().map(event).collect();
            printed(&events, &mut live);
            printed(&events[..cut], &mut mended);
            printed(&missed, &mut mended);
            if cut > 0 {
                prop_assert_eq!(live, mended);
            }
            for event in &missed {
                healed.apply(event);
            }
            prop_assert_eq!(healed.task(), now.task());
            prop_assert!(healed.difference(now.task().unwrap()).is_empty());
        }
    }

    #[test]
    fn art_03_a_chunk_of_nothing_is_noticed() {
        let mut assembly = assemble(&[begun()]);
        let update = |append| {
            StreamResponse::ArtifactUpdate(TaskArtifactUpdateEvent {
                artifact: Artifact {
                    artifact_id: "a".to_owned(),
                    parts: vec![Part::text("x")],
                    ..Artifact::default()
                },
                append,
                ..TaskArtifactUpdateEvent::default()
            })
        };
        assert_eq!(assembly.apply(&update(true)), Applied::Orphan);
        assert_eq!(assembly.apply(&update(true)), Applied::Fits);
        assert_eq!(assembly.apply(&update(false)), Applied::Fits);
        assert_eq!(assembly.text(), "x");
    }

    #[test]
    fn art_04_the_last_chunk_or_the_end_makes_an_artifact_whole() {
        let mut assembly = assemble(&[begun()]);
        let chunk = |append, last_chunk| {
            StreamResponse::ArtifactUpdate(TaskArtifactUpdateEvent {
                artifact: Artifact {
                    artifact_id: "a".to_owned(),
                    ..Artifact::default()
                },
                append,
                last_chunk,
                ..TaskArtifactUpdateEvent::default()
            })
        };
        assembly.apply(&chunk(false, false));
        assert!(!assembly.is_whole("a"));
        assembly.apply(&chunk(true, true));
        assert!(assembly.is_whole("a"));
        assembly.apply(&chunk(false, false));
        assert!(!assembly.is_whole("a"), "it began anew");
        assembly.apply(&StreamResponse::StatusUpdate(TaskStatusUpdateEvent {
            status: TaskStatus {
                state: TaskState::Failed,
                ..TaskStatus::default()
            },
            ..TaskStatusUpdateEvent::default()
        }));
        assert!(assembly.is_whole("a"));
    }
}
