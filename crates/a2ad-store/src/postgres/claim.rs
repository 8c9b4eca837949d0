//! Leasing turns, and finding those whose holder is gone.

use std::sync::Arc;

use a2ad_core::keys::{Attempt, HolderId, Number, TaskKey, TurnRef};
use a2ad_core::store::{Claimed, Claims};
use a2ad_proto::{AgentId, Timestamp};
use futures_util::future::join;
use tokio::sync::Mutex;
use tokio_postgres::Row;

use super::fail::Failure;
use super::holders::time;
use super::read::Reader;
use super::session::{Backend, Ground, Parameter};
use super::sessions::Slot;
use super::truth;

/// Whoever finds a lost turn has so long to rescue it before another instance tries.
const RESCUE_MS: i64 = 5_000;

/// When to look for due turns if it could not be found out when the next one is.
const LOOK_AGAIN_MS: i64 = 500;

/// The database's time, or what a test takes for it.
macro_rules! now {
    () => {
        "coalesce($1::int8, (extract(epoch FROM statement_timestamp()) * 1000)::int8)"
    };
}

/// Ready turns that are due, for each agent the one that came due first; but not those that
/// somebody else is just looking at.
const CLAIM: &str = concat!(
    "WITH due AS (
         SELECT t.seq FROM unnest($2::int8[], $3::int8[]) AS w (agent, count)
         CROSS JOIN LATERAL (
             SELECT seq FROM turns WHERE agent = w.agent AND state = 1 AND due <= ",
    now!(),
    "        ORDER BY due, seq LIMIT w.count FOR UPDATE SKIP LOCKED) t
         WHERE EXISTS (SELECT 1 FROM holders WHERE id = $4 AND lease_until > ",
    now!(),
    "))
     UPDATE turns t SET state = 2, attempt = t.attempt + 1, holder = $4,
         rescuer = NULL, rescue_until = NULL
     FROM due WHERE t.seq = due.seq
     RETURNING t.task, t.number, t.agent, t.attempt, t.due, t.seq"
);

const NEXT_DUE: &str = concat!(
    "SELECT min(t.due) - ",
    now!(),
    " FROM unnest($2::int8[]) AS w (agent) CROSS JOIN LATERAL (
         SELECT due FROM turns WHERE agent = w.agent AND state = 1 ORDER BY due, seq LIMIT 1) t
      WHERE t.due > ",
    now!()
);

const IS_ALIVE: &str = concat!(
    "SELECT 1 FROM holders WHERE id = $2 AND lease_until > ",
    now!()
);

/// Leased turns whose holder's lease is over, unless another instance is at it.
const ORPHANS: &str = concat!(
    "WITH lost AS (
         SELECT t.seq FROM turns t WHERE t.state = 2
             AND NOT EXISTS (SELECT 1 FROM holders h
                 WHERE h.id = t.holder AND h.lease_until > ",
    now!(),
    ")
             AND (t.rescuer IS NULL OR t.rescuer = $2 OR t.rescue_until <= ",
    now!(),
    ")
         ORDER BY t.seq LIMIT $3 FOR UPDATE OF t SKIP LOCKED)
     UPDATE turns t SET rescuer = $2, rescue_until = $4 + ",
    now!(),
    " FROM lost WHERE t.seq = lost.seq
     RETURNING t.task, t.number, t.agent, t.attempt, t.due, t.seq"
);

/// Whether a claim whose answer was lost was carried out.
const IS_CLAIMED: &str = "SELECT 1 FROM turns WHERE seq = ANY($1::int8[]) AND holder = $2";

/// Claims, one after the other on a connection of their own: if it is lost, it has to be found out
/// whether the turns were leased, or they would have a holder who knows nothing of them.
#[derive(Debug)]
pub(super) struct Claimer {
    slot: Slot,
    turn: Mutex<()>,
    ground: Arc<Ground>,
    reader: Arc<Reader>,
}

impl Claimer {
    pub(super) fn new(ground: &Arc<Ground>, reader: &Arc<Reader>) -> Self {
        Self {
            slot: Slot::new(Arc::clone(ground), &[CLAIM]),
            turn: Mutex::default(),
            ground: Arc::clone(ground),
            reader: Arc::clone(reader),
        }
    }

    /// Leases ready turns that are due. Not cancel-safe: whoever calls it has to see it through.
    pub(super) async fn claim(
        &self,
        holder: HolderId,
        wanted: Vec<(AgentId, u32)>,
    ) -> Result<Claims, Failure> {
        let Reader {
            names, sessions, ..
        } = &*self.reader;
        let mut agents = Vec::with_capacity(wanted.len());
        let mut counts = Vec::with_capacity(wanted.len());
        for (agent, count) in &wanted {
            if let Some(key) = names.agent_key(sessions, agent).await? {
                agents.push(key);
                counts.push(i64::from(*count));
            }
        }
        if agents.is_empty() {
            return Ok(Claims::default());
        }
        let options = &self.ground.options;
        let time = time(options);
        let rows = {
            let _turn = self.turn.lock().await;
            self.transact(time, holder, &agents, &counts).await?
        };
        if rows.is_empty() {
            self.reader.check_alive(time, holder).await?;
        }
        let turns = self.reader.claimed(rows, &agents).await?;
        // An agent with more due turns than it may have will ask again by itself.
        let wait: Option<i64> = match sessions.read(NEXT_DUE, &[&time, &agents]).await {
            Ok(rows) => rows
                .first()
                .map(|row| row.try_get(0))
                .transpose()?
                .flatten(),
            // What is leased by now must not be forgotten over this.
            Err(_) if !turns.is_empty() => Some(LOOK_AGAIN_MS),
            Err(failure) => return Err(failure),
        };
        let now = options.surroundings.clock.now().as_millis();
        Ok(Claims {
            turns,
            // The time until then is the same by both clocks.
            next_due: wait.map(|wait| Timestamp::from_millis(now + wait)),
        })
    }

    async fn transact(
        &self,
        time: Option<i64>,
        holder: HolderId,
        agents: &Vec<i64>,
        counts: &Vec<i64>,
    ) -> Result<Vec<Row>, Failure> {
        let session = self.slot.session().await?;
        let (begun, claimed) = join(
            session.run("BEGIN"),
            session.query(CLAIM, &[&time, agents, counts, &holder.0]),
        )
        .await;
        let ended = match begun.and(claimed) {
            Ok(rows) if rows.is_empty() => session.run("ROLLBACK").await.map(|()| rows),
            Ok(rows) => match session.run("COMMIT").await {
                Ok(()) => Ok(rows),
                Err(failure) => {
                    self.slot.drop_session(&session).await;
                    if self.is_claimed(&session.backend, &rows, holder).await == Some(true) {
                        return Ok(rows);
                    }
                    Err(failure)
                }
            },
            Err(failure) => Err(failure),
        };
        if ended.is_err() {
            // Whatever state it is in, the next one does not want to know.
            self.slot.drop_session(&session).await;
        }
        ended
    }

    /// Whether the turns of these rows have become the holder's. If none is there any more, it does
    /// not matter.
    async fn is_claimed(&self, backend: &Backend, rows: &[Row], holder: HolderId) -> Option<bool> {
        let seqs: Vec<i64> = rows.iter().filter_map(|row| row.try_get(5).ok()).collect();
        let parameters: [Parameter<'_>; 2] = [&seqs, &holder.0];
        let stop = &self.ground.stop;
        let found = truth::find(&self.slot, stop, backend, IS_CLAIMED, &parameters, |_| {});
        found.await.map(|rows| !rows.is_empty())
    }
}

impl Reader {
    /// A holder whose lease is over gets nothing, and has to know why.
    async fn check_alive(&self, time: Option<i64>, holder: HolderId) -> Result<(), Failure> {
        let rows = self.sessions.read(IS_ALIVE, &[&time, &holder.0]).await?;
        if rows.is_empty() {
            return Err(Failure::Away(Arc::from("the holder's lease is over")));
        }
        Ok(())
    }

    /// Leased turns whose holder is gone; they are `instance`'s to rescue for a while.
    pub(crate) async fn orphans(
        &self,
        time: Option<i64>,
        instance: i64,
        limit: u32,
    ) -> Result<Vec<Claimed>, Failure> {
        let mut rows = self
            .sessions
            .write(ORPHANS, &[&time, &instance, &i64::from(limit), &RESCUE_MS])
            .await?;
        // In the order in which they were opened.
        rows.sort_by_key(|row| row.try_get::<_, i64>(5).unwrap_or(i64::MAX));
        self.turns_of(&rows).await
    }

    /// In the order of the agents asked for, and for each in the order of their turns.
    async fn claimed(&self, mut rows: Vec<Row>, agents: &[i64]) -> Result<Vec<Claimed>, Failure> {
        rows.sort_by_key(|row| {
            let number = |column| row.try_get::<_, i64>(column).unwrap_or(i64::MAX);
            let agent = number(2);
            let place = agents.iter().position(|it| *it == agent);
            (place, number(4), number(5))
        });
        self.turns_of(&rows).await
    }

    async fn turns_of(&self, rows: &[Row]) -> Result<Vec<Claimed>, Failure> {
        let mut turns = Vec::with_capacity(rows.len());
        for row in rows {
            turns.push(Claimed {
                turn: TurnRef {
                    task: TaskKey(row.try_get(0)?),
                    number: Number(row.try_get::<_, i64>(1)?.unsigned_abs()),
                },
                agent: self.names.agent(&self.sessions, row.try_get(2)?).await?,
                attempt: Attempt(row.try_get::<_, i32>(3)?.unsigned_abs()),
            });
        }
        Ok(turns)
    }
}
