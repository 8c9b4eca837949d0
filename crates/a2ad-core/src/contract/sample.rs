//! Changes to try a store with, made by the real task machine.

use a2ad_proto::{Artifact, Message, Part, Role, Timestamp};

use crate::clock::Random;
use crate::keys::{Attempt, ContextKey, Number, PublicIds, Scope, TaskKey};
use crate::store::{Change, ContextChoice, Once};
use crate::task::{Command, Entry, Head, Identity, Outcome, Output, decide};

/// The head of a task that is about to begin, in a context of its own.
#[must_use]
pub fn unborn(ids: &PublicIds, key: i64, random: &dyn Random, scope: &Scope) -> Head {
    Head::unborn(Identity {
        key: TaskKey(key),
        id: ids.task_id(TaskKey(key), random.bits()),
        context: ContextKey(key),
        context_id: ids.context_id(ContextKey(key), random.bits()),
        scope: scope.clone(),
    })
}

/// What `commands`, one after the other, mean for the task with this head.
///
/// # Panics
/// If the task machine refuses one of them.
#[must_use]
pub fn change(head: &Head, commands: &[Command], now: Timestamp) -> Change {
    let mut next = head.clone();
    let mut entries = Vec::new();
    let mut turns = Vec::new();
    let mut fence = None;
    for command in commands {
        let decision = decide(&next, command.clone(), now).expect("it is allowed");
        for record in &decision.records {
            let number = Number(head.version.0 + entries.len() as u64 + 1);
            let entry = Entry::encode(number, record);
            next.bytes += entry.bytes.len() as u64;
            entries.push(entry);
        }
        next.advance(&decision);
        turns.extend(decision.turns);
        fence = decision.by.or(fence);
    }
    Change {
        head: next,
        expected: head.version,
        context: ContextChoice::Minted,
        entries,
        turns,
        lease_to: None,
        fence,
        once: None,
        snapshot: None,
        context_turns_max: 100,
        context_tasks_max: None,
        agent_turns_max: 100_000,
    }
}

/// Whose tasks with which agent.
#[must_use]
pub fn scope(owner: &str, agent: &str) -> Scope {
    Scope {
        owner: owner.parse().unwrap(),
        agent: agent.parse().unwrap(),
    }
}

/// Somebody's tasks with an agent.
#[must_use]
pub fn alice() -> Scope {
    scope("token:alice", "echo")
}

/// A short message.
#[must_use]
pub fn said(role: Role, text: &str) -> Message {
    Message {
        message_id: "m".to_owned(),
        role,
        parts: vec![Part::text(text)],
        ..Message::default()
    }
}

/// A client's first message.
#[must_use]
pub fn submit(text: &str) -> Command {
    Command::Submit {
        message: said(Role::User, text),
        metadata: None,
        accepted_output_modes: Vec::new(),
    }
}

/// A client's further message.
#[must_use]
pub fn follow_up(text: &str) -> Command {
    Command::Continue {
        message: said(Role::User, text),
        metadata: None,
        accepted_output_modes: Vec::new(),
    }
}

/// The end of the task's first open turn, under its newest lease.
#[must_use]
pub fn finish(head: &Head, outcome: Outcome) -> Command {
    Command::Finish {
        turn: head.turns[0].number,
        attempt: head.turns[0].attempt,
        outcome,
    }
}

/// A status message of the agent.
#[must_use]
pub fn say(turn: Number, attempt: Attempt, text: &str) -> Command {
    Command::Emit {
        turn,
        attempt,
        output: Output::Status {
            message: Some(said(Role::Agent, text)),
            metadata: None,
        },
    }
}

/// A whole artifact.
#[must_use]
pub fn write_artifact(turn: Number, attempt: Attempt, id: &str, text: &str) -> Command {
    Command::Emit {
        turn,
        attempt,
        output: Output::Artifact {
            artifact: Artifact {
                artifact_id: id.to_owned(),
                parts: vec![Part::text(text)],
                ..Artifact::default()
            },
            append: false,
            last_chunk: true,
        },
    }
}

/// What makes a request recognisable.
#[must_use]
pub fn once(key: u8, body: u8, number: u64) -> Once {
    Once {
        key: [key; 16],
        body: [body; 16],
        number: Number(number),
    }
}
