//! Two owners at one agent: not yours is not there.

use a2ad_core::agent::AgentPolicy;
use a2ad_core::engine::{Caller, EngineError};
use a2ad_core::keys::{Number, Scope};
use a2ad_proto::{
    CancelTaskRequest, GetTaskRequest, ListTasksRequest, SendMessageRequest,
    SubscribeToTaskRequest, Task, TaskState,
};
use a2ad_testkit::client::{text, text_in, text_to};
use serde_json::Value;

use super::{Life, World, unique};

fn owner(name: &str) -> Caller {
    Caller {
        scope: Scope {
            owner: name.parse().unwrap(),
            agent: "obedient".parse().unwrap(),
        },
        idempotency_key: None,
    }
}

fn send(life: &Life, caller: &Caller, request: SendMessageRequest) -> Result<Task, EngineError> {
    let answer = life.run(life.engine.send(caller, request))?;
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    Ok(serde_json::from_value(answer["task"].clone()).unwrap())
}

fn list(life: &Life, caller: &Caller, request: ListTasksRequest) -> Result<Value, EngineError> {
    let answer = life.run(life.engine.list(caller, request))?;
    Ok(serde_json::from_slice(&answer).unwrap())
}

/// What each operation on a task says to this caller.
fn told(life: &Life, caller: &Caller, id: &str) -> Vec<String> {
    let told = |result: Result<(), EngineError>| {
        let error = result.expect_err("refused");
        format!("{:?} {error}", error.kind()).replace(id, "<id>")
    };
    let engine = &life.engine;
    let mut follow_up = text("echo mine");
    follow_up.message.as_mut().unwrap().task_id = id.to_owned();
    let by_id = || GetTaskRequest {
        id: id.to_owned(),
        ..GetTaskRequest::default()
    };
    let cancel = CancelTaskRequest {
        id: id.to_owned(),
        ..CancelTaskRequest::default()
    };
    let subscribe = || SubscribeToTaskRequest {
        id: id.to_owned(),
        ..SubscribeToTaskRequest::default()
    };
    vec![
        told(life.run(engine.get(caller, by_id())).map(drop)),
        told(life.run(engine.cancel(caller, cancel)).map(drop)),
        told(
            life.run(engine.subscribe(caller, subscribe(), None))
                .map(drop),
        ),
        told(
            life.run(engine.subscribe(caller, subscribe(), Some(Number(0))))
                .map(drop),
        ),
        told(life.run(engine.send(caller, follow_up.clone())).map(drop)),
        told(life.run(engine.stream(caller, follow_up, None)).map(drop)),
    ]
}

/// GET-02, CTX-02: whatever the state of somebody else's task, it is as if it had never been.
#[test]
fn a_task_of_another_owner_is_not_found() {
    let world = World::new(AgentPolicy::default());
    let life = world.live();
    let (alice, bob) = (owner("token:alice"), owner("token:bob"));
    // He is known here, so that only whose task it is keeps him out.
    send(&life, &bob, text("echo hello")).unwrap();
    let never = told(&life, &bob, "11111111-1111-8111-8111-111111111111");
    assert!(never.iter().all(|it| it.starts_with("TaskNotFound ")));
    for verb in ["ask what?", "echo x", "auth"] {
        let task = send(&life, &alice, text(verb)).unwrap();
        assert_eq!(told(&life, &bob, &task.id), never, "{verb}");
    }
    let task = send(&life, &alice, text("ask what?")).unwrap();
    let mut guessed = text_to(&task, "echo mine");
    guessed.message.as_mut().unwrap().context_id = task.context_id.clone();
    let refused = send(&life, &bob, guessed).unwrap_err();
    assert!(matches!(refused, EngineError::TaskNotFound { .. }));
    let done = send(&life, &alice, text_to(&task, "echo mine")).unwrap();
    assert_eq!(done.status.state, TaskState::Completed);
}

/// CTX-10: the same name is another conversation.
#[test]
fn ctx_10_a_conversation_is_its_owners() {
    let world = World::new(AgentPolicy::default());
    let life = world.live();
    let (alice, bob) = (owner("token:alice"), owner("token:bob"));
    let asked = send(&life, &alice, text_in("holiday", "ask where?")).unwrap();
    let task = send(&life, &bob, text_in("holiday", "whoami")).unwrap();
    assert_eq!(task.context_id, "holiday");
    assert_ne!(task.id, asked.id);
    let said = task.artifacts[0].parts[0].as_text();
    assert_eq!(said, Some("token:bob none 0"), "no word of alice's");
    // So is a name that we made.
    let asked = send(&life, &alice, text("ask where?")).unwrap();
    let other = send(&life, &bob, text_in(&asked.context_id, "whoami")).unwrap();
    assert_eq!(other.context_id, asked.context_id);
    let made = ListTasksRequest {
        context_id: asked.context_id,
        ..ListTasksRequest::default()
    };
    for (caller, id) in [(&alice, &asked.id), (&bob, &other.id)] {
        let listed = list(&life, caller, made.clone()).unwrap();
        assert_eq!(listed["totalSize"], 1);
        assert_eq!(listed["tasks"][0]["id"], *id);
    }
    let context_id = "holiday".to_owned();
    let in_holiday = ListTasksRequest {
        context_id,
        ..ListTasksRequest::default()
    };
    let listed = list(&life, &bob, in_holiday).unwrap();
    assert_eq!(listed["totalSize"], 1);
    assert_eq!(listed["tasks"][0]["id"], task.id);
}

/// LIST-01: in every combination of filters; totals and tokens as well.
#[test]
fn list_01_a_list_is_of_ones_own_tasks() {
    let world = World::new(AgentPolicy::default());
    let life = world.live();
    let (alice, bob) = (owner("token:alice"), owner("token:bob"));
    for n in 0..3 {
        send(&life, &alice, text_in("talk", &format!("ask {n}"))).unwrap();
        send(&life, &alice, text_in("talk", &format!("echo {n}"))).unwrap();
    }
    let own = send(&life, &bob, text_in("talk", "ask me")).unwrap();
    for context in ["", "talk"] {
        for state in [TaskState::Unspecified, TaskState::InputRequired] {
            for since in [None, own.status.timestamp] {
                for page_size in [None, Some(1)] {
                    let request = ListTasksRequest {
                        context_id: context.to_owned(),
                        status: state,
                        status_timestamp_after: since,
                        page_size,
                        include_artifacts: Some(true),
                        ..ListTasksRequest::default()
                    };
                    let page = list(&life, &bob, request).unwrap();
                    assert_eq!(page["totalSize"], 1);
                    assert_eq!(page["tasks"][0]["id"], own.id);
                    assert_eq!(page["nextPageToken"], "");
                }
            }
        }
    }
    let done = ListTasksRequest {
        status: TaskState::Completed,
        ..ListTasksRequest::default()
    };
    assert_eq!(list(&life, &bob, done).unwrap()["totalSize"], 0);
    let paged = |token: &Value| ListTasksRequest {
        page_size: Some(1),
        page_token: token.as_str().unwrap().to_owned(),
        ..ListTasksRequest::default()
    };
    let first = list(&life, &alice, paged(&"".into())).unwrap();
    let token = &first["nextPageToken"];
    assert_eq!(list(&life, &alice, paged(token)).unwrap()["totalSize"], 6);
    let refused = list(&life, &bob, paged(token)).unwrap_err();
    assert!(matches!(refused, EngineError::InvalidParams(_)), "LIST-08");
}

/// SEND-17: the same id from somebody else is another message.
#[test]
fn repeats_are_known_to_their_owner_only() {
    let world = World::new(AgentPolicy::default());
    let life = world.live();
    let (alice, bob) = (owner("token:alice"), owner("token:bob"));
    let one = send(&life, &alice, unique(text("echo a"))).unwrap();
    let other = send(&life, &bob, unique(text("echo b"))).unwrap();
    assert_ne!(one.id, other.id);
    assert_eq!(world.begun(), 2);
}
