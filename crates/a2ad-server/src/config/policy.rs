//! What an agent's owner chooses where A2A systems differ: `docs/policies.md`.

use std::time::Duration;

use a2ad_core::behaviour::{self, Behaviour};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::units;

/// Words of the configuration that stand for values of the engine.
macro_rules! choices {
    ($(
        $(#[$doc:meta])*
        $name:ident { $($(#[$of:meta])* $value:ident),+ $(,)? }
    )+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$of])* $value),+ }

        impl From<$name> for behaviour::$name {
            fn from(chosen: $name) -> Self {
                match chosen { $($name::$value => Self::$value),+ }
            }
        }
    )+};
}

choices! {
    /// What a blocking SendMessage is answered with.
    Reply {
        /// The task.
        Task,
        /// The final message, if the task is completed and made no artifacts beside its text.
        Message,
    }
    /// What a message means in a conversation in which the agent is at work.
    OnBusy {
        /// It waits its turn.
        Queue,
        /// It makes a task that has failed.
        Reject,
        /// What is under way is canceled, and it is next.
        Interrupt,
    }
    /// How a task stands after a turn that went well.
    EndState {
        /// It is done.
        Completed,
        /// It waits for what its client says next.
        InputRequired,
    }
    /// Into how many events the agent's text is cut.
    Granularity {
        /// As it comes.
        Delta,
        /// One event for a pass.
        Pass,
        /// One event at the end.
        Final,
    }
    /// Where the agent's text goes.
    Surface {
        /// To the artifact `response`.
        Artifact,
        /// To status messages.
        Status,
        /// To the artifact, and as a whole to the message of the last status.
        Both,
    }
    /// What comes of a message in which there is nothing but blank text.
    EmptyInput {
        /// A task that asks for input.
        InputRequired,
        /// A task that has failed.
        Failed,
        /// The agent gets it like any other.
        Run,
    }
    /// What happens to parts of a media type that the agent does not take.
    UnsupportedInput {
        /// The message is refused.
        Error,
        /// The agent does not get them.
        Ignore,
        /// The agent gets a description in their place.
        Manifest,
    }
    /// What whoever follows a task that has ended gets.
    Finished {
        /// What the specification says.
        Spec,
        /// All its events again.
        Replay,
        /// An error, as if it were not there; also if the task waits for its client.
        NotFound,
    }
    /// Whether clients may write to a task that exists.
    Continuation {
        /// They may, until it has ended.
        Allow,
        /// They may not.
        Deny,
    }
    /// What happens to a turn that a crash or a restart cut off.
    OnRestart {
        /// It runs again, as another attempt.
        Requeue,
        /// Its task fails.
        Fail,
        /// Its task waits for what its client says.
        InputRequired,
    }
}

/// How agents behave where their owner may choose. What is not said is as the policy for all agents
/// says, or as the protocol suggests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Policy {
    /// What a blocking SendMessage is answered with. By default, `task`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply: Option<Reply>,
    /// How long a blocking SendMessage waits at most: what is done by then is answered with its final
    /// message, all else with the task as it is. By default, or with 0s, it waits to the end.
    #[serde(with = "window", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<units::DurationText>")]
    pub fast_path: Option<Duration>,
    /// What a message means in a conversation in which the agent is at work. By default, `queue`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_busy: Option<OnBusy>,
    /// How a task stands after a turn that went well. By default, `completed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_state: Option<EndState>,
    /// Into how many events the agent's text is cut. By default, `delta`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub granularity: Option<Granularity>,
    /// Where the agent's text goes. By default, `artifact`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub surface: Option<Surface>,
    /// What comes of a message with nothing in it. By default, `input_required`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub empty_input: Option<EmptyInput>,
    /// What happens to parts of a media type that the agent does not take. By default, `error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsupported_input: Option<UnsupportedInput>,
    /// What whoever follows a task that has ended gets. By default, `spec`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished: Option<Finished>,
    /// Whether clients may write to a task that exists. By default, `allow`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continuation: Option<Continuation>,
    /// What happens to a turn that a crash or a restart cut off. By default, `requeue`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_restart: Option<OnRestart>,
}

impl Policy {
    /// What the engine has to know: what this says, then what `all` says, then the defaults.
    #[must_use]
    pub fn behaviour(&self, all: &Self) -> Behaviour {
        fn of<T: Copy + Into<U>, U: Default>(own: Option<T>, all: Option<T>) -> U {
            own.or(all).map(Into::into).unwrap_or_default()
        }
        let window = self.fast_path.or(all.fast_path);
        Behaviour {
            reply: of(self.reply, all.reply),
            fast_path: window.filter(|window| !window.is_zero()),
            on_busy: of(self.on_busy, all.on_busy),
            end_state: of(self.end_state, all.end_state),
            granularity: of(self.granularity, all.granularity),
            surface: of(self.surface, all.surface),
            empty_input: of(self.empty_input, all.empty_input),
            unsupported_input: of(self.unsupported_input, all.unsupported_input),
            finished: of(self.finished, all.finished),
            continuation: of(self.continuation, all.continuation),
            on_restart: of(self.on_restart, all.on_restart),
        }
    }
}

/// A duration that may be left out.
mod window {
    use std::time::Duration;

    use serde::{Deserialize as _, Deserializer, Serializer};
    use serde_json::Value;

    use super::units::duration;

    pub(super) fn serialize<S: Serializer>(
        window: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match window {
            Some(window) => duration::serialize(window, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        // YAML has `off` as a word, and as a flag.
        match Value::deserialize(deserializer)? {
            Value::Bool(false) => Ok(Some(Duration::ZERO)),
            Value::String(text) if text == "off" => Ok(Some(Duration::ZERO)),
            other => duration::deserialize(other)
                .map(Some)
                .map_err(serde::de::Error::custom),
        }
    }
}
