//! Rows of turns, open and dead.

use a2ad_core::task::TurnState;

use super::super::batch::Batch;
use super::super::fail::Failure;
use super::super::transact::Place;

pub(super) const INSERT_TURNS: &str = "
    INSERT INTO turns (task, number, context, agent, holder, due, created_at, attempt, returned,
        state)
    SELECT * FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::int8[], $5::int8[], $6::int8[],
        $7::int8[], $8::int4[], $9::int4[], $10::int2[])";

pub(super) const UPDATE_TURNS: &str = "
    UPDATE turns t SET state = w.state, holder = w.holder, due = w.due, returned = w.returned,
        rescuer = NULL, rescue_until = NULL
    FROM unnest($1::int8[], $2::int2[], $3::int8[], $4::int8[], $5::int4[])
        AS w (seq, state, holder, due, returned)
    WHERE t.seq = w.seq";

pub(super) const DELETE_TURNS: &str = "DELETE FROM turns WHERE seq = ANY($1::int8[])";

pub(super) const INSERT_DEAD: &str = "
    INSERT INTO dead_turns (task, number, context, agent, created_at, died_at, attempt, returned,
        reason)
    SELECT task, number, context, agent, created_at, $6::int8, attempt, returned, reason
    FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::int8[], $5::int8[], $7::int4[], $8::int4[],
        $9::text[])
        AS w (task, number, context, agent, created_at, attempt, returned, reason)";

/// The rows of turns, in columns.
#[derive(Debug, Default)]
pub(super) struct Turns {
    new: Columns,
    old: Columns,
}

#[derive(Debug, Default)]
struct Columns {
    seqs: Vec<i64>,
    tasks: Vec<i64>,
    numbers: Vec<i64>,
    contexts: Vec<i64>,
    agents: Vec<i64>,
    holders: Vec<Option<i64>>,
    dues: Vec<i64>,
    created_at: Vec<i64>,
    attempts: Vec<i32>,
    returned: Vec<i32>,
    states: Vec<i16>,
}

impl Turns {
    pub(super) fn new(batch: &Batch) -> Self {
        let mut turns = Self::default();
        for (context, open) in &batch.contexts {
            for turn in open.iter().filter(|turn| turn.changed) {
                let columns = if turn.seq > 0 {
                    &mut turns.old
                } else {
                    &mut turns.new
                };
                columns.seqs.push(turn.seq);
                columns.tasks.push(turn.task.0);
                columns.numbers.push(turn.head.number.0.cast_signed());
                columns.contexts.push(*context);
                columns.agents.push(turn.agent);
                columns.holders.push(turn.holder);
                columns.dues.push(turn.due);
                columns.created_at.push(turn.created_at);
                columns.attempts.push(turn.head.attempt.0.cast_signed());
                columns.returned.push(turn.head.returned.cast_signed());
                columns.states.push(turn_state_number(turn.head.state));
            }
        }
        turns
    }

    pub(super) async fn delete(&self, place: &Place<'_>, batch: &Batch) -> Result<(), Failure> {
        let ended = &batch.ended;
        place
            .session
            .query_if(!ended.is_empty(), DELETE_TURNS, &[ended])
            .await
            .map(drop)
    }

    pub(super) async fn update(&self, place: &Place<'_>) -> Result<(), Failure> {
        let it = &self.old;
        place
            .session
            .query_if(
                !it.seqs.is_empty(),
                UPDATE_TURNS,
                &[&it.seqs, &it.states, &it.holders, &it.dues, &it.returned],
            )
            .await
            .map(drop)
    }

    pub(super) async fn insert(&self, place: &Place<'_>) -> Result<(), Failure> {
        let it = &self.new;
        place
            .session
            .query_if(
                !it.tasks.is_empty(),
                INSERT_TURNS,
                &[
                    &it.tasks,
                    &it.numbers,
                    &it.contexts,
                    &it.agents,
                    &it.holders,
                    &it.dues,
                    &it.created_at,
                    &it.attempts,
                    &it.returned,
                    &it.states,
                ],
            )
            .await
            .map(drop)
    }
}

/// Keeps turns that ran out of tries. What was sealed in them is not kept.
pub(super) async fn bury(place: &Place<'_>, batch: &Batch) -> Result<(), Failure> {
    let mut columns = Columns::default();
    let mut reasons: Vec<Option<&str>> = Vec::new();
    for dead in &batch.dead {
        columns.tasks.push(dead.turn.task.0);
        columns.numbers.push(dead.turn.head.number.0.cast_signed());
        columns.contexts.push(dead.context);
        columns.agents.push(dead.turn.agent);
        columns.created_at.push(dead.turn.created_at);
        columns
            .attempts
            .push(dead.turn.head.attempt.0.cast_signed());
        columns.returned.push(dead.turn.head.returned.cast_signed());
        reasons.push(dead.reason.as_deref());
    }
    place
        .session
        .query_if(
            !columns.tasks.is_empty(),
            INSERT_DEAD,
            &[
                &columns.tasks,
                &columns.numbers,
                &columns.contexts,
                &columns.agents,
                &columns.created_at,
                &batch.now_ms,
                &columns.attempts,
                &columns.returned,
                &reasons,
            ],
        )
        .await
        .map(drop)
}

/// The state of a turn in a column.
const fn turn_state_number(state: TurnState) -> i16 {
    match state {
        TurnState::Waiting => 0,
        TurnState::Ready => 1,
        TurnState::Leased => 2,
    }
}
