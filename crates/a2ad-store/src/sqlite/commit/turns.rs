//! Turns: planned against the open ones, then written.
//!
//! In every context the oldest open turn is ready or leased and all others wait. Whatever ends a
//! turn restores that by looking at the oldest one left.

use std::collections::BTreeMap;

use a2ad_core::keys::{Attempt, HolderId, Number, TaskKey, TurnRef};
use a2ad_core::store::{Claimed, Claims};
use a2ad_core::task::{Entry, TurnHead, TurnState};
use a2ad_proto::{AgentId, Timestamp};
use rusqlite::{Connection, OptionalExtension};

use super::Core;
use super::batch::Batch;
use crate::plan::{NOT_STORED, OpenTurn, Plan, Step, cause_of_death};
use crate::sqlite::fail::Failure;
use crate::sqlite::names::agent_key;
use crate::sqlite::read::{turn_state, turn_state_number};

/// Where turns of a change go.
pub(super) struct Place {
    pub(super) task: TaskKey,
    pub(super) context: i64,
    pub(super) agent: i64,
    pub(super) holder: Option<HolderId>,
    pub(super) now_ms: i64,
}

/// What became of the turns of a change.
pub(super) struct Written {
    pub(super) turns: Vec<TurnHead>,
    pub(super) made_ready: bool,
    /// Rows added and removed.
    pub(super) opened: u32,
    pub(super) closed: u32,
}

/// The open turns of a task, in order.
pub(super) fn of_task(db: &Connection, task: TaskKey) -> Result<Vec<OpenTurn>, Failure> {
    let mut statement = db.prepare_cached(
        "SELECT seq, number, state, attempt, returned, created_at FROM turns
         WHERE task = ?1 ORDER BY seq",
    )?;
    let mut rows = statement.query([task.0])?;
    let mut open = Vec::new();
    while let Some(row) = rows.next()? {
        open.push(OpenTurn {
            seq: row.get(0)?,
            head: TurnHead {
                number: Number(row.get::<_, i64>(1)?.unsigned_abs()),
                state: turn_state(row.get(2)?)?,
                attempt: Attempt(row.get(3)?),
                returned: row.get(4)?,
            },
            created_at: row.get(5)?,
        });
    }
    Ok(open)
}

/// How many turns are open in a context.
pub(super) fn count_in_context(db: &Connection, context: i64) -> Result<u32, Failure> {
    Ok(db
        .prepare_cached("SELECT count(*) FROM turns WHERE context = ?1")?
        .query_row([context], |row| row.get(0))?)
}

/// How many turns each agent has open.
pub(super) fn count_by_agent(db: &Connection) -> rusqlite::Result<BTreeMap<i64, u32>> {
    db.prepare("SELECT agent, count(*) FROM turns GROUP BY agent")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect()
}

/// Writes the plan and lets the context's oldest turn go ahead.
pub(super) fn write(
    plan: Plan,
    db: &Connection,
    place: &Place,
    next_seq: &mut i64,
    entries: &[Entry],
) -> Result<Written, Failure> {
    let mut turns = Vec::new();
    let mut made_ready = false;
    let mut opened = 0;
    let mut closed = 0;
    for (turn, step) in plan.steps {
        match step {
            Step::Keep => turns.push(turn.head),
            Step::Insert { due } => {
                insert(db, place, next_seq, &turn.head, due)?;
                opened += 1;
                made_ready |= turn.head.state == TurnState::Ready;
                turns.push(turn.head);
            }
            Step::Requeue { due } => {
                requeue(db, &turn, due)?;
                made_ready = true;
                turns.push(turn.head);
            }
            Step::End | Step::Die => {
                if matches!(step, Step::Die) {
                    bury(db, place, &turn, entries)?;
                }
                if turn.seq != NOT_STORED {
                    db.prepare_cached("DELETE FROM turns WHERE seq = ?1")?
                        .execute([turn.seq])?;
                    closed += 1;
                }
            }
        }
    }
    if closed > 0
        && let Some(promoted) = promote(db, place.context)?
    {
        made_ready = true;
        for turn in &mut turns {
            if promoted.task == place.task && promoted.number == turn.number {
                turn.state = TurnState::Ready;
            }
        }
    }
    Ok(Written {
        turns,
        made_ready,
        opened,
        closed,
    })
}

fn insert(
    db: &Connection,
    place: &Place,
    next_seq: &mut i64,
    turn: &TurnHead,
    due: Option<i64>,
) -> Result<(), Failure> {
    let holder = match turn.state {
        TurnState::Leased => place.holder.map(|holder| holder.0),
        TurnState::Waiting | TurnState::Ready => None,
    };
    db.prepare_cached(
        "INSERT INTO turns
             (seq, task, number, context, agent, state, attempt, returned, holder, due, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    )?
    .execute((
        *next_seq,
        place.task.0,
        turn.number.0 as i64,
        place.context,
        place.agent,
        turn_state_number(turn.state),
        turn.attempt.0,
        turn.returned,
        holder,
        due.unwrap_or(place.now_ms),
        place.now_ms,
    ))?;
    *next_seq += 1;
    Ok(())
}

fn requeue(db: &Connection, turn: &OpenTurn, due: i64) -> Result<(), Failure> {
    db.prepare_cached(
        "UPDATE turns SET state = 1, holder = NULL, due = ?2, returned = ?3 WHERE seq = ?1",
    )?
    .execute((turn.seq, due, turn.head.returned))?;
    Ok(())
}

/// Keeps a turn that ran out of tries. What was sealed in it is not kept.
fn bury(db: &Connection, place: &Place, turn: &OpenTurn, entries: &[Entry]) -> Result<(), Failure> {
    db.prepare_cached(
        "INSERT INTO dead_turns
             (task, number, context, agent, attempt, returned, created_at, died_at, reason)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?
    .execute((
        place.task.0,
        turn.head.number.0 as i64,
        place.context,
        place.agent,
        turn.head.attempt.0,
        turn.head.returned,
        if turn.seq == NOT_STORED {
            place.now_ms
        } else {
            turn.created_at
        },
        place.now_ms,
        cause_of_death(entries, turn.head.number),
    ))?;
    Ok(())
}

/// Makes the oldest turn of a context ready if it was waiting.
fn promote(db: &Connection, context: i64) -> Result<Option<TurnRef>, Failure> {
    let oldest: Option<(i64, i64, i64, u8)> = db
        .prepare_cached(
            "SELECT seq, task, number, state FROM turns WHERE context = ?1 ORDER BY seq LIMIT 1",
        )?
        .query_row([context], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })
        .optional()?;
    let Some((seq, task, number, state)) = oldest else {
        return Ok(None);
    };
    if turn_state(state)? != TurnState::Waiting {
        return Ok(None);
    }
    // It stays due since it was born, which puts it ahead of turns that came later.
    db.prepare_cached("UPDATE turns SET state = 1 WHERE seq = ?1")?
        .execute([seq])?;
    Ok(Some(TurnRef {
        task: TaskKey(task),
        number: Number(number.unsigned_abs()),
    }))
}

impl Core {
    /// Leases ready turns that are due: for each agent the one that came due first goes first.
    pub(super) fn claim(
        &mut self,
        batch: &Batch,
        holder: HolderId,
        wanted: &[(AgentId, u32)],
    ) -> Result<Claims, Failure> {
        let mut claims = Claims::default();
        for (agent, limit) in wanted {
            let Some(key) = agent_key(&self.db, agent)? else {
                continue;
            };
            let due = due_turns(&self.db, key, batch.now_ms, *limit)?;
            for (seq, turn, attempt) in due {
                let attempt = attempt.next();
                self.db
                    .prepare_cached(
                        "UPDATE turns SET state = 2, attempt = ?2, holder = ?3 WHERE seq = ?1",
                    )?
                    .execute((seq, attempt.0, holder.0))?;
                claims.turns.push(Claimed {
                    turn,
                    agent: agent.clone(),
                    attempt,
                });
            }
            // An agent with more due turns than it may have will ask again by itself.
            if let Some(next) = next_due(&self.db, key)?
                && next > batch.now_ms
            {
                let next = Timestamp::from_millis(next);
                claims.next_due = Some(claims.next_due.map_or(next, |known| known.min(next)));
            }
        }
        Ok(claims)
    }
}

fn due_turns(
    db: &Connection,
    agent: i64,
    now_ms: i64,
    limit: u32,
) -> Result<Vec<(i64, TurnRef, Attempt)>, Failure> {
    let mut statement = db.prepare_cached(
        "SELECT seq, task, number, attempt FROM turns
         WHERE state = 1 AND agent = ?1 AND due <= ?2 ORDER BY due, seq LIMIT ?3",
    )?;
    let rows = statement.query_map((agent, now_ms, limit), |row| {
        let turn = TurnRef {
            task: TaskKey(row.get(1)?),
            number: Number(row.get::<_, i64>(2)?.unsigned_abs()),
        };
        Ok((row.get(0)?, turn, Attempt(row.get(3)?)))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn next_due(db: &Connection, agent: i64) -> Result<Option<i64>, Failure> {
    Ok(db
        .prepare_cached("SELECT min(due) FROM turns WHERE state = 1 AND agent = ?1")?
        .query_row([agent], |row| row.get(0))?)
}
