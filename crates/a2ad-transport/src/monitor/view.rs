//! How things look in the monitor.

use std::collections::BTreeSet;

use a2ad_core::engine::{Seen, SeenPage, Sight, Sighting};
use a2ad_core::texts;
use a2ad_proto::{AgentCard, AgentId, Role, TaskState, Timestamp};
use serde::Serialize;

use crate::card;

/// A task, in the terms of Lectic's monitor.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Snapshot<'a> {
    task_id: &'a str,
    context_id: &'a str,
    state: &'static str,
    created_at: Option<Timestamp>,
    updated_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<Timestamp>,
    user_text: String,
    user_message_id: &'a str,
    message_chunks: Vec<String>,
    agent_message_ids: Vec<&'a str>,
    final_message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl<'a> Snapshot<'a> {
    fn of(seen: &'a Seen) -> Self {
        let task = &seen.task;
        let status = &task.status;
        let asked = task.history.iter().find(|said| said.role == Role::User);
        let (ids, chunks) = texts::chunks(task)
            .into_iter()
            .map(|chunk| (chunk.id, chunk.text))
            .unzip();
        Self {
            task_id: &task.id,
            context_id: &task.context_id,
            state: state(status.state),
            created_at: seen.created_at,
            updated_at: status.timestamp,
            started_at: seen.started_at,
            ended_at: status.timestamp.filter(|_| status.state.is_terminal()),
            user_text: asked.map(texts::message_text).unwrap_or_default(),
            user_message_id: asked.map_or("", |said| &said.message_id),
            message_chunks: chunks,
            agent_message_ids: ids,
            final_message: texts::answer(task).unwrap_or_default(),
            error: texts::error_text(task),
        }
    }
}

/// A state as protocol 0.3 spells it.
const fn state(state: TaskState) -> &'static str {
    match state {
        TaskState::Unspecified => "unknown",
        TaskState::Submitted => "submitted",
        TaskState::Working => "working",
        TaskState::Completed => "completed",
        TaskState::Failed => "failed",
        TaskState::Canceled => "canceled",
        TaskState::InputRequired => "input-required",
        TaskState::Rejected => "rejected",
        TaskState::AuthRequired => "auth-required",
    }
}

/// The agents that somebody may call. `base` is where clients reach us.
pub(super) fn agents<'a>(
    base: &str,
    agents: impl Iterator<Item = (&'a AgentId, &'a AgentCard)>,
) -> Vec<u8> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Agent<'a> {
        agent_id: &'a str,
        name: &'a str,
        description: &'a str,
        card_url: String,
        /// Every agent can be looked at; Lectic has some that cannot.
        monitoring: bool,
    }
    #[derive(Serialize)]
    struct Agents<'a> {
        agents: Vec<Agent<'a>>,
    }
    let agents = agents.map(|(id, shown)| Agent {
        agent_id: id.as_str(),
        name: &shown.name,
        description: &shown.description,
        card_url: format!("{base}/agents/{id}{}", card::PATHS[0]),
        monitoring: true,
    });
    a2ad_proto::to_json(&Agents {
        agents: agents.collect(),
    })
}

/// A page of tasks. Below an agent's own path it stands once whose they are; elsewhere with each.
pub(super) fn tasks(
    sight: &Sight,
    agent: Option<&AgentId>,
    within_agent: bool,
    page: &SeenPage,
) -> Vec<u8> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Task<'a> {
        #[serde(skip_serializing_if = "Option::is_none")]
        agent_id: Option<&'a str>,
        #[serde(flatten)]
        snapshot: Snapshot<'a>,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Tasks<'a> {
        #[serde(skip_serializing_if = "Option::is_none")]
        agent_id: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        context_id: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        agents: Option<Vec<&'a str>>,
        contexts: BTreeSet<&'a str>,
        tasks: Vec<Task<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        next_page_token: Option<&'a str>,
    }
    let seen = page.tasks.iter();
    a2ad_proto::to_json(&Tasks {
        agent_id: agent.map(AgentId::as_str),
        context_id: sight.context_id.as_ref().map(|id| id.as_str()),
        agents: (!within_agent).then(|| ids(sight)),
        contexts: seen.clone().map(|it| it.task.context_id.as_str()).collect(),
        tasks: seen
            .map(|it| Task {
                agent_id: (!within_agent).then(|| it.agent.as_str()),
                snapshot: Snapshot::of(it),
            })
            .collect(),
        next_page_token: page.next_page_token.as_deref(),
    })
}

fn ids(sight: &Sight) -> Vec<&str> {
    sight.agents.iter().map(AgentId::as_str).collect()
}

/// One task.
pub(super) fn task(seen: &Seen) -> Vec<u8> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct One<'a> {
        agent_id: &'a str,
        snapshot: Snapshot<'a>,
    }
    a2ad_proto::to_json(&One {
        agent_id: seen.agent.as_str(),
        snapshot: Snapshot::of(seen),
    })
}

/// What a stream tells, one object each.
#[derive(Serialize)]
#[serde(
    tag = "kind",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
enum Frame<'a> {
    Hello {
        agents: Vec<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        agent_id: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        context_id: Option<&'a str>,
    },
    Snapshot {
        agent_id: &'a str,
        snapshot: Snapshot<'a>,
    },
    Event {
        agent_id: &'a str,
        event: Event<'a>,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    kind: &'static str,
    snapshot: Snapshot<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prev_state: Option<&'static str>,
    state_changed: bool,
}

/// What a stream begins with.
pub(super) fn hello(sight: &Sight, agent: Option<&AgentId>) -> Vec<u8> {
    a2ad_proto::to_json(&Frame::Hello {
        agents: ids(sight),
        agent_id: agent.map(AgentId::as_str),
        context_id: sight.context_id.as_ref().map(|id| id.as_str()),
    })
}

/// One frame of a stream.
pub(super) fn sighting(sighting: &Sighting) -> Vec<u8> {
    let seen = sighting.seen();
    let agent_id = seen.agent.as_str();
    let snapshot = Snapshot::of(seen);
    let frame = match sighting {
        Sighting::There(_) => Frame::Snapshot { agent_id, snapshot },
        Sighting::Created(_) => Frame::Event {
            agent_id,
            event: Event {
                kind: "created",
                snapshot,
                prev_state: None,
                state_changed: true,
            },
        },
        Sighting::Updated { before, .. } => Frame::Event {
            agent_id,
            event: Event {
                kind: "updated",
                snapshot,
                prev_state: before.map(state),
                state_changed: *before != Some(seen.task.status.state),
            },
        },
    };
    a2ad_proto::to_json(&frame)
}
