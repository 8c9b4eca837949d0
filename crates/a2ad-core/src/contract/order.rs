//! Whatever happens in whatever order, a context is worked on one turn at a time, in order.

use std::sync::atomic::{AtomicU32, Ordering};

use a2ad_proto::{Role, Timestamp};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::Harness;
use super::sample::{finish, follow_up, said, scope};
use super::world::World;
use crate::keys::{Attempt, HolderId, Number, Scope, TaskKey};
use crate::store::ChangeError;
use crate::task::{Broken, Command, Outcome, RetryRule, TurnState};

#[derive(Clone, Debug)]
enum Step {
    Submit {
        context: u8,
        leased: bool,
    },
    Continue {
        task: u8,
        leased: bool,
    },
    Claim {
        limit: u32,
    },
    Finish {
        task: u8,
        completes: bool,
    },
    Requeue {
        task: u8,
        wait_ms: i64,
        returned: bool,
    },
    Cancel {
        task: u8,
    },
    Wait {
        ms: i64,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..3_u8, any::<bool>())
            .prop_map(|(context, leased)| Step::Submit { context, leased }),
        3 => (any::<u8>(), any::<bool>())
            .prop_map(|(task, leased)| Step::Continue { task, leased }),
        4 => (1..4_u32).prop_map(|limit| Step::Claim { limit }),
        4 => (any::<u8>(), any::<bool>())
            .prop_map(|(task, completes)| Step::Finish { task, completes }),
        3 => (any::<u8>(), 0..50_i64, any::<bool>())
            .prop_map(|(task, wait_ms, returned)| Step::Requeue { task, wait_ms, returned }),
        1 => any::<u8>().prop_map(|task| Step::Cancel { task }),
        2 => (1..60_i64).prop_map(|ms| Step::Wait { ms }),
    ];
    prop::collection::vec(step, 1..30)
}

/// An accepted message, in the order of acceptance.
#[derive(Debug)]
struct Accepted {
    context: u8,
    task: TaskKey,
    number: Number,
    attempt: Attempt,
}

/// One random history in contexts of its own.
struct History<'a> {
    world: &'a World<'a>,
    scope: Scope,
    holder: HolderId,
    tasks: Vec<(u8, TaskKey)>,
    accepted: Vec<Accepted>,
}

/// Never two leased turns in one context; never one that overtakes another.
pub async fn in_a_context_nothing_overtakes_and_only_one_works(harness: &dyn Harness) {
    let world = World::open(harness).await;
    let round = AtomicU32::new(0);
    let config = Config {
        cases: 100,
        failure_persistence: None,
        ..Config::default()
    };
    let handle = tokio::runtime::Handle::current();
    tokio::task::block_in_place(|| {
        TestRunner::new(config)
            .run(&steps(), |steps| {
                // An agent and an owner of its own keep each history apart from the others.
                let round = round.fetch_add(1, Ordering::Relaxed);
                let scope = scope("token:alice", &format!("agent-{round}"));
                handle.block_on(play(&world, scope, steps));
                Ok(())
            })
            .unwrap_or_else(|failure| panic!("{failure}"));
    });
}

async fn play(world: &World<'_>, scope: Scope, steps: Vec<Step>) {
    let mut history = History {
        world,
        scope,
        holder: world.store.open_holder().await.unwrap(),
        tasks: Vec::new(),
        accepted: Vec::new(),
    };
    for step in steps {
        history.take(step).await;
        history.check().await;
    }
}

impl History<'_> {
    fn pick(&self, task: u8) -> Option<(u8, TaskKey)> {
        let count = self.tasks.len();
        (count > 0).then(|| self.tasks[usize::from(task) % count])
    }

    async fn take(&mut self, step: Step) {
        let world = self.world;
        match step {
            Step::Submit { context, leased } => {
                let name = format!("context-{context}");
                let mut change = world.submission_in(&self.scope, &name).await;
                change.lease_to = leased.then_some(self.holder);
                let head = world.commit(change).await.head;
                self.tasks.push((context, head.identity.key));
                self.accept(context, head.identity.key, Number(1));
            }
            Step::Continue { task, leased } => {
                let Some((context, key)) = self.pick(task) else {
                    return;
                };
                let head = world.head(key).await;
                if head.state.is_terminal() {
                    return;
                }
                let mut change = world.decide(&head, &[follow_up("more")]);
                change.lease_to = leased.then_some(self.holder);
                let number = change.entries[0].number;
                world.commit(change).await;
                self.accept(context, key, number);
            }
            Step::Claim { limit } => self.claim(limit).await,
            Step::Finish { task, completes } => {
                let Some((_, key)) = self.pick(task) else {
                    return;
                };
                let head = world.head(key).await;
                if head
                    .turns
                    .first()
                    .is_some_and(|turn| turn.state == TurnState::Leased)
                {
                    let outcome = if completes {
                        Outcome::Completed(None)
                    } else {
                        Outcome::InputRequired(None)
                    };
                    world
                        .commit(world.decide(&head, &[finish(&head, outcome)]))
                        .await;
                }
            }
            Step::Requeue {
                task,
                wait_ms,
                returned,
            } => {
                let Some((_, key)) = self.pick(task) else {
                    return;
                };
                let head = world.head(key).await;
                let Some(turn) = head.turns.first() else {
                    return;
                };
                if turn.state != TurnState::Leased {
                    return;
                }
                let command = Command::Break {
                    turn: turn.number,
                    attempt: turn.attempt,
                    reason: if returned {
                        Broken::Released
                    } else {
                        Broken::Failed
                    },
                    retry: Some(RetryRule {
                        tries_max: 3,
                        due: Timestamp::from_millis(world.now().as_millis() + wait_ms),
                    }),
                    failure: said(Role::Agent, "no"),
                };
                world.commit(world.decide(&head, &[command])).await;
            }
            Step::Cancel { task } => {
                let Some((_, key)) = self.pick(task) else {
                    return;
                };
                let head = world.head(key).await;
                if !head.state.is_terminal() && !head.cancel_requested {
                    let change = world.decide(&head, &[Command::Cancel { metadata: None }]);
                    world.commit(change).await;
                }
            }
            Step::Wait { ms } => world.clock.step(ms),
        }
    }

    fn accept(&mut self, context: u8, task: TaskKey, number: Number) {
        self.accepted.push(Accepted {
            context,
            task,
            number,
            attempt: Attempt::NONE,
        });
    }

    async fn claim(&mut self, limit: u32) {
        let wanted = vec![(self.scope.agent.clone(), limit)];
        let claims = self.world.store.claim(self.holder, wanted).await.unwrap();
        assert!(claims.turns.len() <= limit as usize);
        for claimed in claims.turns {
            let turn = self
                .accepted
                .iter()
                .find(|turn| turn.task == claimed.turn.task && turn.number == claimed.turn.number)
                .expect("only what was accepted is claimed");
            assert!(claimed.attempt > turn.attempt, "attempts rise");
        }
    }

    /// The first open turn of each context is ready or leased; all behind it wait, never leased.
    async fn check(&mut self) {
        for context in 0..3 {
            let mut first = true;
            for turn in self
                .accepted
                .iter_mut()
                .filter(|turn| turn.context == context)
            {
                let head = self.world.head(turn.task).await;
                let Some(open) = head.turn(turn.number) else {
                    continue;
                };
                assert!(open.attempt >= turn.attempt, "attempts never fall");
                turn.attempt = open.attempt;
                if first {
                    assert_ne!(open.state, TurnState::Waiting, "nobody is before it");
                } else {
                    assert_eq!(open.state, TurnState::Waiting, "nothing overtakes");
                    assert_eq!(open.attempt, Attempt::NONE, "nothing has overtaken");
                }
                first = false;
            }
        }
        // A lease that was never given opens nothing.
        if let Some((_, key)) = self.tasks.first() {
            let head = self.world.head(*key).await;
            let mut change = self.world.decide(
                &crate::task::Head {
                    state: a2ad_proto::TaskState::Working,
                    ..(*head).clone()
                },
                &[follow_up("zombie")],
            );
            change.fence = Some((Number(1), Attempt(1_000)));
            let refused = self.world.refusal(change).await;
            assert!(matches!(refused, ChangeError::Fenced));
        }
    }
}
