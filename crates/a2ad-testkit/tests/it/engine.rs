//! The engine on a real store, with a clock that moves only when told, and crashes.

mod away;
mod idle;
mod leaving;
mod modes;
mod monitor;
mod owners;
mod policies;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use a2ad_core::agent::AgentPolicy;
use a2ad_core::behaviour::{Behaviour, OnRestart};
use a2ad_core::clock::Surroundings;
use a2ad_core::clock::manual::{ManualClock, Seeded};
use a2ad_core::engine::{AgentSpec, Caller, Engine, EngineError, EngineOptions, Hub, Retention};
use a2ad_core::keys::{Owner, Scope};
use a2ad_core::store::Store as _;
use a2ad_proto::{
    GetTaskRequest, ListTasksRequest, Part, SendMessageRequest, SendMessageResponse,
    StreamResponse, SubscribeToTaskRequest, Task, TaskState,
};
use a2ad_store::{SqliteOptions, SqliteStore};
use a2ad_testkit::agents::{Obedient, obedient};
use a2ad_testkit::client::{at_once, text};
use tempfile::TempDir;

const DAY: i64 = 24 * 3600 * 1000;

/// A folder, a clock and an agent that outlive the engines that run on them.
struct World {
    folder: TempDir,
    clock: Arc<ManualClock>,
    agent: Arc<Obedient>,
    policy: AgentPolicy,
}

/// One life of an engine. Dropping it is a crash: nothing is handed back.
struct Life {
    engine: Engine,
    hub: Arc<Hub>,
    runtime: Option<tokio::runtime::Runtime>,
    store: Arc<SqliteStore>,
}

impl World {
    fn new(policy: AgentPolicy) -> Self {
        Self {
            folder: TempDir::new().unwrap(),
            clock: Arc::new(ManualClock::at(1_800_000_000_000)),
            agent: obedient(),
            policy,
        }
    }

    fn live(&self) -> Life {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let surroundings = Surroundings {
            clock: Arc::clone(&self.clock) as _,
            random: Arc::new(Seeded::new(7)),
        };
        let hub = Hub::new();
        let options = SqliteOptions {
            surroundings: surroundings.clone(),
            ..SqliteOptions::at(self.path())
        };
        let store = Arc::new(SqliteStore::open(options, Arc::clone(&hub) as _).unwrap());
        let mut options = EngineOptions::new(vec![AgentSpec {
            id: "obedient".parse().unwrap(),
            agent: Arc::clone(&self.agent) as _,
            policy: self.policy.clone(),
        }]);
        options.surroundings = surroundings;
        options.retention = Retention {
            every: Duration::from_millis(10),
            ..Retention::default()
        };
        let engine = runtime
            .block_on(Engine::start(
                options,
                Arc::clone(&store) as _,
                Arc::clone(&hub),
            ))
            .unwrap();
        Life {
            engine,
            hub,
            runtime: Some(runtime),
            store,
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("a2ad.db")
    }

    fn begun(&self) -> u32 {
        self.agent.begun.load(Ordering::SeqCst)
    }
}

fn caller() -> Caller {
    Caller {
        scope: Scope {
            owner: Owner::anonymous(),
            agent: "obedient".parse().unwrap(),
        },
        idempotency_key: None,
    }
}

impl Life {
    fn run<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.as_ref().unwrap().block_on(work)
    }

    fn send_any(&self, request: SendMessageRequest) -> SendMessageResponse {
        let answer = self.run(self.engine.send(&caller(), request)).unwrap();
        serde_json::from_slice(&answer).unwrap()
    }

    fn send(&self, request: SendMessageRequest) -> Task {
        match self.send_any(request) {
            SendMessageResponse::Task(task) => task,
            SendMessageResponse::Message(reply) => panic!("a task was expected: {reply:?}"),
        }
    }

    fn get(&self, id: &str) -> Result<Task, EngineError> {
        let request = GetTaskRequest {
            id: id.to_owned(),
            ..GetTaskRequest::default()
        };
        let answer = self.run(self.engine.get(&caller(), request))?;
        Ok(serde_json::from_slice(&answer).unwrap())
    }

    /// How many tasks are kept: in this state, or in all if it is unspecified.
    fn count(&self, state: TaskState) -> u64 {
        let request = ListTasksRequest {
            status: state,
            ..ListTasksRequest::default()
        };
        let answer = self.run(self.engine.list(&caller(), request)).unwrap();
        let answer: serde_json::Value = serde_json::from_slice(&answer).unwrap();
        answer["totalSize"].as_u64().unwrap()
    }

    /// Looks until what is wanted is seen.
    fn until<T>(&self, mut look: impl FnMut() -> Option<T>) -> T {
        let give_up = std::time::Instant::now() + Duration::from_secs(20);
        loop {
            if let Some(seen) = look() {
                return seen;
            }
            assert!(std::time::Instant::now() < give_up, "never happened");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn until_state(&self, id: &str, state: TaskState) -> Task {
        self.until(|| {
            let task = self.get(id).unwrap();
            (task.status.state == state).then_some(task)
        })
    }

    fn crash(mut self) {
        // Closed first, so that nothing of this life is written any more.
        self.store.close();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_secs(5));
        }
    }
}

/// Lets the engine do what it must not do, before looking that it did not.
fn give_it_a_chance() {
    std::thread::sleep(Duration::from_millis(50));
}

fn unique(mut request: SendMessageRequest) -> SendMessageRequest {
    if let Some(message) = &mut request.message {
        "0198a5b2-7c1e-7f3a-9d2e-3b1f5c7a9e10".clone_into(&mut message.message_id);
    }
    request
}

fn said(task: &Task) -> String {
    let message = task.status.message.as_ref();
    message
        .into_iter()
        .flat_map(|message| &message.parts)
        .filter_map(Part::as_text)
        .collect()
}

/// GET-02.
#[test]
fn ended_tasks_are_kept_for_thirty_days() {
    let world = World::new(AgentPolicy::default());
    let life = world.live();
    let old = life.send(text("echo old"));
    world.clock.step(29 * DAY);
    let young = life.send(text("echo young"));
    assert!(life.get(&old.id).is_ok());
    world.clock.step(DAY + 1);
    life.until(|| match life.get(&old.id) {
        Err(EngineError::TaskNotFound { .. }) => Some(()),
        _ => None,
    });
    assert!(life.get(&young.id).is_ok());
}

#[test]
fn a_question_that_nobody_answers_expires_after_seven_days() {
    let world = World::new(AgentPolicy::default());
    let life = world.live();
    let asked = life.send(text("ask what?"));
    world.clock.step(7 * DAY - 1000);
    give_it_a_chance();
    assert_eq!(
        life.get(&asked.id).unwrap().status.state,
        TaskState::InputRequired
    );
    world.clock.step(2000);
    let expired = life.until_state(&asked.id, TaskState::Canceled);
    assert!(said(&expired).contains("expired"), "{expired:?}");
}

#[test]
fn a_turn_that_takes_too_long_fails() {
    let world = World::new(AgentPolicy {
        deadline: Some(Duration::from_millis(30)),
        ..AgentPolicy::default()
    });
    let life = world.live();
    let task = life.send(text("stubborn"));
    assert_eq!(task.status.state, TaskState::Failed);
    assert!(said(&task).contains("The agent took too long"), "{task:?}");
}

#[test]
fn a_retry_waits_for_its_time() {
    let world = World::new(AgentPolicy {
        backoff: Duration::from_secs(60),
        backoff_max: Duration::from_secs(600),
        ..AgentPolicy::default()
    });
    let life = world.live();
    let task = life.send(at_once(text("flaky 3")));
    life.until(|| (world.begun() == 1).then_some(()));
    for (tries, wait) in [(1, 60_000), (2, 120_000)] {
        // The wait counts from when the failure is on record, so that must be before the clock moves.
        life.until(|| {
            let [_, ready, _] = life.run(life.store.stats()).unwrap().turns;
            (ready == 1).then_some(())
        });
        // Within a fifth either way of the wait, doubled each time.
        world.clock.step(wait * 8 / 10 - 1);
        give_it_a_chance();
        assert_eq!(world.begun(), tries, "tried again too early");
        world.clock.step(wait * 4 / 10 + 1);
        life.until(|| (world.begun() == tries + 1).then_some(()));
    }
    life.until_state(&task.id, TaskState::Completed);
}

#[test]
fn turns_beyond_the_slots_wait_and_then_run() {
    let world = World::new(AgentPolicy {
        running_max: 2,
        ..AgentPolicy::default()
    });
    let life = world.live();
    let tasks: Vec<Task> = (0..12)
        .map(|n| life.send(at_once(text(&format!("words a b {n}")))))
        .collect();
    for task in &tasks {
        life.until_state(&task.id, TaskState::Completed);
    }
    assert!(world.agent.most.load(Ordering::SeqCst) <= 2);
}

#[test]
fn after_a_crash_the_turn_runs_again() {
    let world = World::new(AgentPolicy::default());
    let life = world.live();
    let task = life.send(at_once(text("gate")));
    life.until(|| {
        let task = life.get(&task.id).unwrap();
        (!task.artifacts.is_empty()).then_some(())
    });
    life.crash();
    let life = world.live();
    let done = life.until(|| {
        world.agent.open_gate();
        let task = life.get(&task.id).unwrap();
        task.status.state.is_terminal().then_some(task)
    });
    assert_eq!(done.status.state, TaskState::Completed);
    let text: String = done.artifacts[0]
        .parts
        .iter()
        .filter_map(Part::as_text)
        .collect();
    assert_eq!(text, "waiting passed");
    assert_eq!(world.begun(), 2);
}

#[test]
fn a_direct_reply_is_the_same_after_a_crash() {
    for pure in [false, true] {
        let world = World::new(AgentPolicy::default());
        world.agent.pure.store(pure, Ordering::SeqCst);
        let life = world.live();
        let request = unique(text("reply hi"));
        let first = life.send_any(request.clone());
        assert!(
            matches!(first, SendMessageResponse::Message(_)),
            "{first:?}"
        );
        life.crash();
        let life = world.live();
        assert_eq!(life.send_any(request), first);
        // A pure agent may be asked again in vain, before the message is known for a repeat.
        assert!(pure || world.begun() == 1);
    }
}

#[test]
fn a_turn_that_a_crash_cut_off_can_still_reply_directly() {
    let world = World::new(AgentPolicy::default());
    let life = world.live();
    let request = unique(at_once(text("gate-reply hi")));
    let task = life.send(request.clone());
    life.until_state(&task.id, TaskState::Working);
    life.crash();
    let life = world.live();
    let done = life.until(|| {
        world.agent.open_gate();
        let task = life.get(&task.id).unwrap();
        task.status.state.is_terminal().then_some(task)
    });
    let reply = done.status.message.unwrap();
    assert_eq!(reply.parts, [Part::text("hi")]);
    assert_eq!(life.send_any(request), SendMessageResponse::Message(reply));
    assert_eq!(world.begun(), 2);
}

#[test]
fn a_task_that_kills_its_process_dies_after_its_last_try() {
    let world = World::new(AgentPolicy {
        backoff: Duration::ZERO,
        ..AgentPolicy::default()
    });
    let mut life = world.live();
    let task = life.send(at_once(text("stubborn")));
    for tries in 1..=5 {
        life.until(|| (world.begun() == tries).then_some(()));
        // Only a try that is in the journal shows that it was begun.
        life.until_state(&task.id, TaskState::Working);
        life.crash();
        life = world.live();
    }
    let dead = life.until_state(&task.id, TaskState::Failed);
    assert!(said(&dead).contains("restarted"), "{dead:?}");
    assert_eq!(world.begun(), 5);
}

/// CF-27.
#[test]
fn an_agent_that_must_not_run_twice_fails_instead() {
    let world = World::new(AgentPolicy {
        behaviour: Behaviour {
            on_restart: OnRestart::Fail,
            ..Behaviour::default()
        },
        ..AgentPolicy::default()
    });
    let life = world.live();
    let task = life.send(at_once(text("stubborn")));
    life.until_state(&task.id, TaskState::Working);
    life.crash();
    let life = world.live();
    let failed = life.until_state(&task.id, TaskState::Failed);
    let told = "Task was interrupted by process exit and cannot be revived automatically.";
    assert_eq!(said(&failed), told);
    assert_eq!(world.begun(), 1);
}

#[test]
fn a_cancel_that_a_crash_cut_off_still_wins() {
    let world = World::new(AgentPolicy {
        cancel_grace: Duration::from_secs(600),
        ..AgentPolicy::default()
    });
    let life = world.live();
    let task = life.send(at_once(text("stubborn")));
    life.until_state(&task.id, TaskState::Working);
    let engine = life.engine.clone();
    let cancel = a2ad_proto::CancelTaskRequest {
        id: task.id.clone(),
        ..a2ad_proto::CancelTaskRequest::default()
    };
    // It answers after its wait with the task as it is, or not at all if the crash comes first.
    let asked = life.run(async {
        tokio::time::timeout(Duration::from_millis(200), engine.cancel(&caller(), cancel)).await
    });
    assert!(asked.is_err(), "the agent does not stop, so the call waits");
    life.crash();
    let life = world.live();
    life.until_state(&task.id, TaskState::Canceled);
    assert_eq!(world.begun(), 1);
}

#[test]
fn a_full_agent_takes_no_more() {
    let world = World::new(AgentPolicy {
        queue_max: 3,
        ..AgentPolicy::default()
    });
    let life = world.live();
    for _ in 0..3 {
        life.send(at_once(text("stubborn")));
    }
    let refused = life.run(life.engine.send(&caller(), at_once(text("echo x"))));
    assert!(
        matches!(refused, Err(EngineError::Exhausted(_))),
        "{refused:?}"
    );
}

#[test]
fn send_18_a_caller_that_goes_away_leaves_its_task_running() {
    let world = World::new(AgentPolicy::default());
    let life = world.live();
    let caller = caller();
    for n in 0..20 {
        let mut sent = Box::pin(life.engine.send(&caller, text(&format!("echo {n}"))));
        // One poll is enough to hand the message in; then the connection is lost.
        let answered = life.run(async { futures_util::poll!(&mut sent) });
        assert!(answered.is_pending());
    }
    life.until(|| (life.count(TaskState::Completed) == 20).then_some(()));
}

#[test]
fn a_cursor_at_the_end_of_an_ended_task_ends_also_while_others_watch() {
    let world = World::new(AgentPolicy::default());
    let life = world.live();
    let caller = caller();
    let opened = life.engine.stream(&caller, text("echo x"), None);
    let mut first = life.run(opened).unwrap();
    let mut last = None;
    let mut id = String::new();
    while let Some(frames) = life.run(first.next()) {
        for frame in frames.unwrap() {
            if let StreamResponse::Task(task) = serde_json::from_slice(&frame.bytes).unwrap() {
                id = task.id;
            }
            last = Some(frame.number);
        }
    }
    // The first stream has ended, but whoever reads it has not yet gone.
    let request = SubscribeToTaskRequest {
        id,
        ..SubscribeToTaskRequest::default()
    };
    let opened = life.engine.subscribe(&caller, request, last);
    let mut second = life.run(opened).unwrap();
    let ended = async { tokio::time::timeout(Duration::from_secs(20), second.next()).await };
    assert!(life.run(ended).expect("the stream ends").is_none());
    drop(first);
}

#[test]
fn a_cancel_whose_caller_goes_away_still_stops_the_agent() {
    let world = World::new(AgentPolicy {
        cancel_grace: Duration::from_secs(600),
        ..AgentPolicy::default()
    });
    let life = world.live();
    let task = life.send(at_once(text("hold")));
    life.until_state(&task.id, TaskState::Working);
    let caller = caller();
    let request = a2ad_proto::CancelTaskRequest {
        id: task.id.clone(),
        ..a2ad_proto::CancelTaskRequest::default()
    };
    let mut asked = Box::pin(life.engine.cancel(&caller, request));
    let answered = life.run(async { futures_util::poll!(&mut asked) });
    assert!(answered.is_pending());
    drop(asked);
    life.until_state(&task.id, TaskState::Canceled);
}
