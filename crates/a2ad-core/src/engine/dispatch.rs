//! What goes on in the background: taking up ready turns, recovering what a dead process left,
//! and keeping house.

use std::sync::Arc;
use std::time::Duration;

use a2ad_proto::Timestamp;
use tokio::sync::OwnedSemaphorePermit;

use super::cancel::NotDone;
use super::draft::backoff_millis;
use super::failure;
use super::run::{Begin, Lease};
use super::{EngineError, Holding, Inner, lock};
use crate::agent::AgentPolicy;
use crate::behaviour::OnRestart;
use crate::keys::TurnRef;
use crate::store::{Claimed, Claims};
use crate::task::{Broken, Command, Outcome, RetryRule};

/// How many turns one claim takes for one agent.
const CLAIM_MAX: usize = 64;
/// How many tasks one step of recovery or housekeeping takes.
const STEP: u32 = 256;
/// How long to wait after the store refused.
const PAUSE: Duration = Duration::from_millis(500);
/// How long a changed clock may go unnoticed.
const CLOCK_STEP: Duration = Duration::from_millis(250);
/// How often to look for turns that another instance has left.
const RECOVER_EVERY: Duration = Duration::from_secs(1);
/// How often gauges are brought up to date.
const GAUGES_EVERY: Duration = Duration::from_secs(5);

/// Leases ready turns whenever there are some and slots are free.
pub(super) async fn claim_turns(inner: Arc<Inner>) {
    let mut next_due: Option<Timestamp> = None;
    loop {
        let due = async {
            let Some(due) = next_due else {
                return std::future::pending().await;
            };
            // In small steps, since the clock may be set meanwhile.
            loop {
                let left = due.as_millis().saturating_sub(inner.now().as_millis());
                match u64::try_from(left) {
                    Ok(left) if left > 0 => {
                        tokio::time::sleep(Duration::from_millis(left).min(CLOCK_STEP)).await;
                    }
                    Ok(_) | Err(_) => return,
                }
            }
        };
        tokio::select! {
            () = inner.life.closing.cancelled() => return,
            () = inner.hub.work() => {}
            () = due => {}
        }
        inner.hub.work_taken_up();
        match claim_once(&inner).await {
            Ok(Some(due)) => next_due = Some(due),
            Ok(None) => next_due = None,
            Err(error) => {
                tracing::warn!(%error, "ready turns could not be claimed");
                tokio::time::sleep(PAUSE).await;
                inner.hub.announce_work();
            }
        }
    }
}

async fn claim_once(inner: &Arc<Inner>) -> Result<Option<Timestamp>, EngineError> {
    let mut slots: Vec<(_, Vec<OwnedSemaphorePermit>)> = Vec::new();
    let mut used_up = Vec::new();
    for (id, served) in &inner.agents {
        let mut permits = Vec::new();
        while permits.len() < CLAIM_MAX
            && let Ok(permit) = Arc::clone(&served.slots).try_acquire_owned()
        {
            permits.push(permit);
        }
        if permits.is_empty() {
            used_up.push(id.clone());
        } else {
            slots.push((id.clone(), permits));
        }
    }
    let wanted = slots
        .iter()
        .map(|(id, permits)| (id.clone(), u32::try_from(permits.len()).unwrap_or(0)))
        .collect();
    let holding = inner.holding();
    let Claims { turns, next_due } = inner.store.claim(holding.id, wanted).await?;
    for Claimed {
        turn,
        agent,
        attempt,
    } in turns
    {
        // The claim changed the turn past the hub.
        inner.hub.forget(turn.task);
        let slot = slots
            .iter_mut()
            .find(|(id, _)| *id == agent)
            .and_then(|(_, permits)| permits.pop());
        let Some(slot) = slot else { continue };
        let lease = Lease {
            turn,
            agent,
            attempt,
            holding: Arc::clone(&holding),
        };
        inner.spawn_turn(lease, slot, Begin::Cold);
    }
    // Where every slot was used there may be more to do: look again when a slot is free.
    let all_used = slots.iter().filter(|(_, permits)| permits.is_empty());
    used_up.extend(all_used.map(|(id, _)| id.clone()));
    drop(slots);
    if !used_up.is_empty() {
        inner.hub.leave_work();
        // One that was given back before this was said has told nobody.
        let free = |id| inner.agents.get(id).map(|it| it.slots.available_permits());
        if used_up.iter().any(|id| free(id) > Some(0)) {
            inner.hub.announce_work();
        }
    }
    Ok(next_due)
}

/// Opens another holder whenever the one there is was lost.
pub(super) async fn keep_holding(inner: Arc<Inner>) {
    loop {
        let holding = inner.holding();
        tokio::select! {
            () = inner.life.closing.cancelled() => return,
            () = inner.hub.lost(holding.id) => {}
        }
        tracing::warn!("the database could not be reached for too long; turns are left to others");
        holding.lost.cancel();
        loop {
            match Holding::open(&*inner.store).await {
                Ok(another) => {
                    *lock(&inner.holding) = another;
                    break;
                }
                Err(error) => tracing::debug!(%error, "no holder could be opened"),
            }
            tokio::select! {
                () = inner.life.closing.cancelled() => return,
                () = tokio::time::sleep(PAUSE) => {}
            }
        }
        inner.hub.announce_work();
    }
}

/// Takes over the turns of holders that are gone: what an earlier run left, and, as long as others
/// share the store, what they leave.
pub(super) async fn recover(inner: Arc<Inner>) {
    loop {
        recover_once(&inner).await;
        if inner.store.exclusive() {
            return;
        }
        tokio::select! {
            () = inner.life.closing.cancelled() => return,
            () = tokio::time::sleep(RECOVER_EVERY) => {}
        }
    }
}

/// Takes over what there is now: each turn is tried again or fails, as its agent's owner chose.
async fn recover_once(inner: &Arc<Inner>) {
    let mut recovered: u64 = 0;
    let mut done: Vec<Claimed> = Vec::new();
    while !inner.life.closing.is_cancelled() {
        let orphans = match inner.store.orphans(STEP).await {
            Ok(orphans) => orphans,
            Err(error) => {
                tracing::warn!(%error, "turns of an earlier run could not be read");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        if orphans.is_empty() {
            break;
        }
        if orphans == done {
            let turns = orphans.len();
            tracing::error!(
                turns,
                "turns of an earlier run cannot be taken over; the database is damaged"
            );
            break;
        }
        done.clear();
        for orphan in orphans {
            match take_over(inner, &orphan).await {
                Ok(()) => {
                    recovered += 1;
                    done.push(orphan);
                }
                Err(error) => {
                    let task = orphan.turn.task.0;
                    tracing::warn!(task, %error, "a turn of an earlier run could not be taken over");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }
    if recovered > 0 {
        tracing::info!(turns = recovered, "took over turns of an earlier run");
    }
}

async fn take_over(inner: &Arc<Inner>, orphan: &Claimed) -> Result<(), EngineError> {
    let TurnRef { task, number } = orphan.turn;
    // An agent that is not configured any more keeps its turns for the day it comes back.
    if !inner.agents.contains_key(&orphan.agent) {
        tracing::warn!(agent = %orphan.agent, "a turn waits for an agent that is not configured");
    }
    let fallback = AgentPolicy::default();
    let policy = inner
        .agents
        .get(&orphan.agent)
        .map_or(&fallback, |served| &served.policy);
    let Some(head) = inner.store.head(task).await? else {
        return Ok(());
    };
    let tries = head.turn(number).map_or(0, |turn| turn.tries());
    if inner.is_superseded(policy, orphan.turn).await? {
        // Then the turn can only end as canceled.
        match inner
            .control(task, &Command::Cancel { metadata: None })
            .await
        {
            Ok(_) | Err(NotDone::Refused | NotDone::Gone) => {}
            Err(NotDone::Failed(error)) => return Err(error),
        }
    }
    let retry = match policy.behaviour.on_restart {
        OnRestart::Fail | OnRestart::InputRequired => None,
        OnRestart::Requeue => {
            // The first cut is most often nobody's fault; only repeated ones are made to wait.
            let wait = match tries {
                0 | 1 => 0,
                tries => backoff_millis(
                    tries - 1,
                    policy.backoff,
                    policy.backoff_max,
                    &inner.surroundings.random,
                ),
            };
            Some(RetryRule {
                tries_max: policy.tries_max,
                due: Timestamp::from_millis(inner.now().as_millis().saturating_add(wait)),
            })
        }
    };
    let attempt = orphan.attempt;
    let broken = |text| Command::Break {
        turn: number,
        attempt,
        reason: Broken::Lost,
        retry,
        failure: inner.notice(&head.identity, text),
    };
    let command = match policy.behaviour.on_restart {
        OnRestart::Requeue => {
            broken("The server was restarted while the agent was working on this")
        }
        OnRestart::Fail => broken(failure::CUT_OFF),
        OnRestart::InputRequired => Command::Finish {
            turn: number,
            attempt,
            outcome: Outcome::InputRequired(Some(inner.notice(&head.identity, failure::ASK_AGAIN))),
        },
    };
    match inner.control(task, &command).await {
        // Refused: it was taken over, canceled or ended meanwhile.
        Ok(_) | Err(NotDone::Refused | NotDone::Gone) => Ok(()),
        Err(NotDone::Failed(error)) => Err(error),
    }
}

/// Ends tasks that nobody answered, deletes old ones, and keeps the gauges true.
pub(super) async fn keep_house(inner: Arc<Inner>) {
    let mut sweep = tokio::time::interval(inner.retention.every.max(Duration::from_millis(10)));
    let mut gauges = tokio::time::interval(GAUGES_EVERY);
    sweep.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    gauges.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = inner.life.closing.cancelled() => return,
            _ = sweep.tick() => {
                if let Err(error) = sweep_once(&inner).await {
                    tracing::warn!(%error, "old tasks could not be removed");
                }
            }
            _ = gauges.tick() => observe(&inner).await,
        }
    }
}

async fn sweep_once(inner: &Arc<Inner>) -> Result<(), EngineError> {
    let ago = |age: Duration| {
        let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
        Timestamp::from_millis(inner.now().as_millis().saturating_sub(age))
    };
    while !inner.life.closing.is_cancelled() {
        let idle = inner
            .store
            .idle(ago(inner.retention.interrupted), STEP)
            .await?;
        let mut expired = 0;
        for task in &idle {
            let Some(head) = inner.store.head(*task).await? else {
                continue;
            };
            let text = "The task expired: it waited too long for an answer";
            let command = Command::Expire {
                message: inner.notice(&head.identity, text),
            };
            match inner.control(*task, &command).await {
                Ok(_) => expired += 1,
                Err(NotDone::Refused | NotDone::Gone) => {}
                Err(NotDone::Failed(error)) => return Err(error),
            }
        }
        if expired == 0 {
            break;
        }
    }
    while !inner.life.closing.is_cancelled() {
        let gone = inner
            .store
            .purge(ago(inner.retention.terminal), STEP)
            .await?;
        for task in &gone {
            inner.hub.bury(*task);
        }
        if gone.is_empty() {
            return Ok(());
        }
    }
    Ok(())
}

#[expect(
    clippy::cast_precision_loss,
    reason = "gauges are floats; counts stay far below 2^53"
)]
async fn observe(inner: &Arc<Inner>) {
    let Ok(stats) = inner.store.stats().await else {
        return;
    };
    let [waiting, ready, leased] = stats.turns;
    metrics::gauge!(super::run::TURNS, "state" => "waiting").set(waiting as f64);
    metrics::gauge!(super::run::TURNS, "state" => "ready").set(ready as f64);
    metrics::gauge!(super::run::TURNS, "state" => "leased").set(leased as f64);
    metrics::gauge!(super::run::TURNS, "state" => "dead").set(stats.dead as f64);
}
