//! The port to agents: whoever implements [`Agent`] can be served.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use a2ad_proto::{AgentId, Artifact, ContextId, Message, Metadata, Part, TaskId, Timestamp};
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::behaviour::Behaviour;
use crate::keys::{Attempt, ContextKey, Owner, PublicIds};
use crate::modes::Modes;
use crate::said::Speaker;

/// Something that can work on a turn.
pub trait Agent: Send + Sync + std::fmt::Debug {
    /// Works on one turn; what it returns ends the turn.
    ///
    /// The future may be dropped at any await point: when the task is canceled and the agent does
    /// not stop in time, at its deadline, or when the server stops. After a crash the turn runs
    /// again with a higher [`Turn::attempt`], unless the agent's policy says otherwise.
    fn run(&self, turn: Turn) -> BoxFuture<'_, Result<Ending, AgentError>>;

    /// Whether polling a turn for the first time changes nothing outside of it.
    ///
    /// The engine may then make the first poll before the message is durable, and a turn that ends
    /// at once costs one commit instead of two. For an agent that calls a model or starts a program
    /// this must be false: a message that turns out to be a repeat would do it again.
    fn is_pure(&self) -> bool {
        false
    }
}

/// How an agent ends a turn.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    /// The work is done.
    Completed(Vec<Part>),
    /// A direct answer: the work is done, and whoever sent the message that made the task gets
    /// this message instead of the task. On a later turn, or once the agent has said anything
    /// else, it is [`Completed`](Self::Completed): the client knows of a task by then.
    Reply(Vec<Part>),
    /// A question to the client.
    InputRequired(Vec<Part>),
    /// An authorisation is needed; the parts say which.
    AuthRequired(Vec<Part>),
    /// The agent does not take this on.
    Rejected(Vec<Part>),
    /// It could not be done; the parts are for the client to read.
    Failed(Vec<Part>),
}

/// An agent's failure. The client reads `public`; the log gets the rest.
#[derive(Debug, thiserror::Error)]
#[error("{public}")]
pub struct AgentError {
    /// For the client: no paths, names of hosts, secrets.
    pub public: String,
    /// Whether trying again may help.
    pub retryable: bool,
    /// For the log.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// What an agent says while it works.
#[derive(Clone, Debug, PartialEq)]
pub enum Say {
    /// A piece of the answer's text, added to the turn's `response` artifact.
    Text(String),
    /// A piece of an artifact.
    Artifact {
        /// The artifact, or the part of it that is new.
        artifact: Artifact,
        /// Adds to what is there; otherwise it replaces.
        append: bool,
        /// Nothing more will be added.
        last_chunk: bool,
    },
    /// A word about progress.
    Status {
        /// For the client to read; may be empty.
        parts: Vec<Part>,
        /// For the client's programs.
        metadata: Option<Metadata>,
    },
}

/// Nobody listens any more: the lease is over. The agent should stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the turn is over")]
pub struct TurnOver;

/// One message to work on, and the way to speak about it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Turn {
    pub(crate) shared: Arc<TurnShared>,
}

/// What an agent is asked, and what came with it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    pub(crate) message: Message,
    pub(crate) metadata: Option<Metadata>,
    pub(crate) accepted_output_modes: Vec<String>,
    /// The task's messages before it.
    pub(crate) history: Vec<Message>,
}

#[derive(Debug)]
pub(crate) struct TurnShared {
    pub(crate) task_id: TaskId,
    pub(crate) context_id: ContextId,
    pub(crate) context: ContextKey,
    pub(crate) context_key: OnceLock<String>,
    pub(crate) ids: PublicIds,
    pub(crate) agent: AgentId,
    pub(crate) owner: Owner,
    pub(crate) attempt: Attempt,
    pub(crate) asked: Asked,
    /// The message as the agent gets it, if that is not as it was sent.
    pub(crate) shown: Option<Message>,
    pub(crate) deadline: Option<Timestamp>,
    pub(crate) speaker: Speaker,
    pub(crate) stop: CancellationToken,
}

impl Turn {
    /// The message to work on. Parts that the agent does not take are left out of it or described,
    /// if its owner chose so.
    #[must_use]
    pub fn message(&self) -> &Message {
        let shared = &*self.shared;
        shared.shown.as_ref().unwrap_or(&shared.asked.message)
    }

    /// The text of the message: its text parts, joined by line breaks.
    #[must_use]
    pub fn text(&self) -> String {
        let parts = &self.message().parts;
        let texts: Vec<&str> = parts.iter().filter_map(Part::as_text).collect();
        texts.join("\n")
    }

    /// The task's messages before this one, oldest first.
    #[must_use]
    pub fn history(&self) -> &[Message] {
        &self.shared.asked.history
    }

    /// The metadata of the request that brought the message.
    #[must_use]
    pub fn request_metadata(&self) -> Option<&Metadata> {
        self.shared.asked.metadata.as_ref()
    }

    /// The media types the client can take; empty means any.
    #[must_use]
    pub fn accepted_output_modes(&self) -> &[String] {
        &self.shared.asked.accepted_output_modes
    }

    /// The task's public id.
    #[must_use]
    pub fn task_id(&self) -> &TaskId {
        &self.shared.task_id
    }

    /// The conversation's public id, as the client knows it. Not unique across owners: state is
    /// kept under [`context_key`](Self::context_key).
    #[must_use]
    pub fn context_id(&self) -> &ContextId {
        &self.shared.context_id
    }

    /// An opaque name of the conversation that no other owner's can equal.
    #[must_use]
    pub fn context_key(&self) -> &str {
        let shared = &*self.shared;
        // Not all agents keep anything, so it is made when asked for.
        shared.context_key.get_or_init(|| {
            let tag = shared.ids.tag(&[
                b"context",
                &shared.context.0.to_le_bytes(),
                shared.owner.as_str().as_bytes(),
                shared.agent.as_str().as_bytes(),
            ]);
            tag.iter().map(|byte| format!("{byte:02x}")).collect()
        })
    }

    /// The agent addressed.
    #[must_use]
    pub fn agent(&self) -> &AgentId {
        &self.shared.agent
    }

    /// Who asks.
    #[must_use]
    pub fn owner(&self) -> &Owner {
        &self.shared.owner
    }

    /// Which lease of the turn this is. Above 1, somebody began before and may have acted.
    #[must_use]
    pub fn attempt(&self) -> Attempt {
        self.shared.attempt
    }

    /// When the turn is taken away.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        self.shared.deadline
    }

    /// Says something. Waits while what was said before is still being written and the buffer is
    /// full. Cancel-safe: if dropped, nothing was said.
    pub async fn say(&self, say: Say) -> Result<(), TurnOver> {
        self.shared.speaker.say(say).await
    }

    /// Adds to the answer's text.
    pub async fn say_text(&self, text: impl Into<String>) -> Result<(), TurnOver> {
        self.say(Say::Text(text.into())).await
    }

    /// Waits until all that was said so far is written down, and so told to whoever listens. Agents
    /// need not: what they say gathers while the disk works, which is faster. Cancel-safe.
    pub async fn flush(&self) -> Result<(), TurnOver> {
        self.shared.speaker.flush().await
    }

    /// Resolves when it is time to stop: the task was canceled, or the lease is over.
    pub async fn cancelled(&self) {
        self.shared.stop.cancelled().await;
    }
}

/// What the engine has to know about an agent besides how to run it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentPolicy {
    /// Turns that run at once in this process.
    pub running_max: u32,
    /// Open turns in one context; beyond, messages are refused.
    pub context_turns_max: u32,
    /// Open turns in all; beyond, messages are refused.
    pub queue_max: u32,
    /// Tasks that are kept of one context; beyond, those that ended first are deleted. By default
    /// only their age counts.
    pub context_tasks_max: Option<u32>,
    /// How long a turn may take.
    pub deadline: Option<Duration>,
    /// How long a canceled turn may take to stop in good order.
    pub cancel_grace: Duration,
    /// How often a turn is tried.
    pub tries_max: u32,
    /// The wait before the second try; it doubles from there.
    pub backoff: Duration,
    /// The longest wait between tries.
    pub backoff_max: Duration,
    /// Recognise repeated messages by any id, not only by UUIDs and ULIDs.
    pub idempotency: Idempotency,
    /// The media types that messages to it may have.
    pub input_modes: Modes,
    /// The media types that it answers with.
    pub output_modes: Modes,
    /// What its owner has chosen where systems differ.
    pub behaviour: Behaviour,
}

impl Default for AgentPolicy {
    fn default() -> Self {
        Self {
            running_max: 1024,
            context_turns_max: 100,
            queue_max: 100_000,
            context_tasks_max: None,
            deadline: Some(Duration::from_secs(3600)),
            cancel_grace: Duration::from_secs(10),
            tries_max: 5,
            backoff: Duration::from_secs(1),
            backoff_max: Duration::from_secs(60),
            idempotency: Idempotency::UniqueIds,
            input_modes: Modes::default(),
            output_modes: Modes::default(),
            behaviour: Behaviour::default(),
        }
    }
}

/// Which message ids name a message for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idempotency {
    /// UUIDs and ULIDs; people type others by hand and use them again.
    UniqueIds,
    /// All.
    Always,
}
