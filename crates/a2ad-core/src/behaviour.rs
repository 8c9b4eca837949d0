//! The choices that an agent's owner has where A2A systems differ. `docs/policies.md` has them all.

use std::time::Duration;

/// How an agent behaves where that is its owner's to choose. The default is what the protocol
/// suggests, and costs nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Behaviour {
    /// What a blocking SendMessage is answered with.
    pub reply: Reply,
    /// How long a blocking SendMessage waits at most. What is done by then is answered with the
    /// final message, all else with the task as it is.
    pub fast_path: Option<Duration>,
    /// What a message means in a context whose agent is at work.
    pub on_busy: OnBusy,
    /// How a task stands after a turn that went well.
    pub end_state: EndState,
    /// Into how many events an agent's text is cut.
    pub granularity: Granularity,
    /// Where an agent's text goes.
    pub surface: Surface,
    /// What comes of a message in which there is nothing.
    pub empty_input: EmptyInput,
    /// What happens to parts of a media type that the agent does not take.
    pub unsupported_input: UnsupportedInput,
    /// What whoever follows a task that has ended gets.
    pub finished: Finished,
    /// Whether clients may write to a task that exists.
    pub continuation: Continuation,
    /// What happens to a turn that a crash or a restart cut off.
    pub on_restart: OnRestart,
}

/// What a blocking SendMessage is answered with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reply {
    /// The task.
    #[default]
    Task,
    /// The final message, if the task is completed and made no artifacts beside its text.
    Message,
}

/// What a message means in a context whose agent is at work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnBusy {
    /// It waits its turn.
    #[default]
    Queue,
    /// It makes a task that has failed.
    Reject,
    /// Other tasks of the context that are open are canceled, and it is next.
    Interrupt,
}

/// How a task stands after a turn that went well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EndState {
    /// It is done.
    #[default]
    Completed,
    /// It waits for what its client says next.
    InputRequired,
}

/// Into how many events an agent's text is cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Granularity {
    /// As it comes; only what waits for the disk together goes together.
    #[default]
    Delta,
    /// One event for a pass: what is said up to a flush, a status, an artifact or the end.
    Pass,
    /// One event at the end.
    Final,
}

/// Where an agent's text goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Surface {
    /// To the artifact `response`.
    #[default]
    Artifact,
    /// To status messages; that of the end repeats the last pass.
    Status,
    /// To the artifact, and as a whole to the status message of the end.
    Both,
}

/// What comes of a message in which there is nothing but blank text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EmptyInput {
    /// A task that asks for input.
    #[default]
    InputRequired,
    /// A task that has failed.
    Failed,
    /// The agent gets it like any other.
    Run,
}

/// What happens to parts of a media type that the agent does not take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnsupportedInput {
    /// The message is refused.
    #[default]
    Error,
    /// The agent does not get them.
    Ignore,
    /// The agent gets a description in their place.
    Manifest,
}

/// What whoever follows a task that has ended gets, if it names no entry to go on after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Finished {
    /// What the specification of its generation says.
    #[default]
    Spec,
    /// All its events again.
    Replay,
    /// The same as for a task that is not there; also if the task waits for its client.
    NotFound,
}

/// Whether clients may write to a task that exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Continuation {
    /// They may, until it has ended.
    #[default]
    Allow,
    /// They may not; a conversation goes on by its context alone.
    Deny,
}

/// What happens to a turn that a crash or a restart cut off. Only the agent's owner knows whether it
/// is safe to run it again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnRestart {
    /// It runs again, as another try.
    #[default]
    Requeue,
    /// Its task fails.
    Fail,
    /// Its task waits for what its client says.
    InputRequired,
}
