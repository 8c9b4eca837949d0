//! Holders of leases, and the heart that beats for them.
//!
//! A lease is counted by the database's clock from the beat's arrival there, and by ours from
//! before the beat was sent. So we always know first that it is over, however the clocks differ and
//! however long the beat was on its way.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use a2ad_core::keys::HolderId;
use a2ad_core::store::Wake;

use super::fail::Failure;
use super::options::{PostgresOptions, TimeSource};
use super::session::{Ground, Parameter};
use super::sessions::Slot;

/// How long the row of a holder that is gone stays, for whoever wants to know what happened.
const KEPT_MS: i64 = 3_600_000;

const OPEN: &str = "
    INSERT INTO holders (opened_at, beat_at, lease_until, instance, name)
    SELECT now, now, now + $2, $3, $4
    FROM (SELECT coalesce($1::int8, (extract(epoch FROM statement_timestamp()) * 1000)::int8)
        AS now) AS clock
    RETURNING id, beat_at";

/// A lease that is over stays so: somebody may have taken its turns already. The instance itself
/// leases nothing, so its own row may come back.
const BEAT: &str = "
    UPDATE holders SET beat_at = clock.now, lease_until = clock.now + $2
    FROM (SELECT coalesce($1::int8, (extract(epoch FROM statement_timestamp()) * 1000)::int8)
        AS now) AS clock
    WHERE (id = ANY($3::int8[]) AND lease_until > clock.now) OR id = $4
    RETURNING id, beat_at";

/// Anything at all that is written.
const CHECK: &str = "UPDATE holders SET beat_at = beat_at WHERE id = $1 RETURNING id";

const CLOSE: &str = "DELETE FROM holders WHERE id = ANY($1::int8[])";

const SWEEP: &str = "
    DELETE FROM holders WHERE lease_until + CASE WHEN instance THEN 24 ELSE 1 END * $2::int8
        < coalesce($1::int8, (extract(epoch FROM statement_timestamp()) * 1000)::int8)";

const SWEEP_LANES: &str = "
    DELETE FROM lanes l WHERE NOT EXISTS (SELECT 1 FROM holders h WHERE h.id = l.instance)";

/// Those whose leases this instance keeps.
#[derive(Debug)]
pub(super) struct Holders {
    ground: Arc<Ground>,
    slot: Slot,
    wake: Arc<dyn Wake>,
    /// When the last beat that counted was sent, for each.
    held: Mutex<HashMap<i64, Instant>>,
}

/// What is taken for the database's time, in tests.
pub(super) fn time(options: &PostgresOptions) -> Option<i64> {
    match options.time {
        TimeSource::Database => None,
        TimeSource::Surroundings => Some(options.surroundings.clock.now().as_millis()),
    }
}

impl Holders {
    pub(super) fn new(ground: Arc<Ground>, wake: Arc<dyn Wake>) -> Self {
        Self {
            slot: Slot::new(Arc::clone(&ground), &[]),
            ground,
            wake,
            held: Mutex::default(),
        }
    }

    fn held(&self) -> MutexGuard<'_, HashMap<i64, Instant>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lease_ms(&self) -> i64 {
        i64::try_from(self.ground.options.lease.as_millis()).unwrap_or(i64::MAX)
    }

    /// What the machine's clock says as the database is asked.
    fn asked(&self) -> Option<i64> {
        let clock = self.ground.options.clock.as_ref()?;
        Some(clock.machine())
    }

    /// Puts the clock right by what the database has said.
    fn hear_time(&self, asked: Option<i64>, theirs: Option<i64>) {
        if let (Some(clock), Some(asked), Some(theirs)) =
            (&self.ground.options.clock, asked, theirs)
        {
            clock.hear(asked, theirs);
        }
    }

    /// Registers a holder of leases, or the instance itself.
    pub(super) async fn open(&self, instance: bool) -> Result<HolderId, Failure> {
        let options = &self.ground.options;
        let sent = Instant::now();
        let asked = self.asked();
        let rows = self
            .slot
            .query(
                OPEN,
                &[&time(options), &self.lease_ms(), &instance, &options.name],
            )
            .await?;
        let row = rows
            .first()
            .ok_or_else(|| Failure::Damaged("a holder has no row".to_owned()))?;
        let id: i64 = row.try_get(0)?;
        self.hear_time(asked, row.try_get(1).ok());
        if !instance {
            self.held().insert(id, sent);
        }
        Ok(HolderId(id))
    }

    /// Keeps the leases until the store is closed.
    pub(super) async fn beat(self: Arc<Self>, instance: HolderId) {
        let lease = self.ground.options.lease;
        let pace = lease / 3;
        let mut rounds = 0_u32;
        loop {
            let pause = if self.beat_once(pace, instance).await {
                pace
            } else {
                // As long as there is time left, every moment counts.
                (pace / 4).min(Duration::from_millis(500))
            };
            rounds += 1;
            if rounds.is_multiple_of(100) {
                self.sweep().await;
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.ground.stop.cancelled() => return,
            }
        }
    }

    /// Sends a beat and drops those for whom it came too late; whether it got through.
    async fn beat_once(&self, deadline: Duration, instance: HolderId) -> bool {
        let ids: Vec<i64> = self.held().keys().copied().collect();
        let sent = Instant::now();
        let asked = self.asked();
        let time = time(&self.ground.options);
        let lease = self.lease_ms();
        let parameters: [Parameter<'_>; 4] = [&time, &lease, &ids, &instance.0];
        let beat = self.slot.query(BEAT, &parameters);
        let answer = tokio::time::timeout(deadline, beat).await;
        let answered = match &answer {
            Ok(Ok(rows)) => {
                self.hear_time(asked, rows.first().and_then(|row| row.try_get(1).ok()));
                let alive: Vec<i64> = rows.iter().filter_map(|row| row.try_get(0).ok()).collect();
                let mut held = self.held();
                for id in &ids {
                    if alive.contains(id) {
                        held.insert(*id, sent);
                    } else {
                        // Over by the database's clock, whatever ours says.
                        held.remove(id);
                    }
                }
                drop(held);
                for id in ids.iter().filter(|id| !alive.contains(id)) {
                    self.lost(*id);
                }
                true
            }
            Ok(Err(failure)) => {
                let error = failure.store_error();
                tracing::warn!(%error, "the leases could not be extended");
                false
            }
            Err(_) => {
                tracing::warn!("the leases could not be extended in time");
                self.slot.forget().await;
                false
            }
        };
        let lease = self.ground.options.lease;
        let over: Vec<i64> = {
            let mut held = self.held();
            let over = held.iter().filter(|(_, sent)| sent.elapsed() >= lease);
            let over: Vec<i64> = over.map(|(id, _)| *id).collect();
            for id in &over {
                held.remove(id);
            }
            over
        };
        for id in over {
            self.lost(id);
        }
        answered
    }

    fn lost(&self, id: i64) {
        tracing::warn!(holder = id, "a holder's lease is over");
        self.wake.holder_lost(HolderId(id));
    }

    async fn sweep(&self) {
        let time = time(&self.ground.options);
        let swept = match self.slot.query(SWEEP, &[&time, &KEPT_MS]).await {
            Ok(_) => self.slot.query(SWEEP_LANES, &[]).await,
            Err(failure) => Err(failure),
        };
        if let Err(failure) = swept {
            let error = failure.store_error();
            tracing::warn!(%error, "old holders could not be deleted");
        }
    }

    /// Says that the instance is there, and that it can write.
    pub(super) async fn check(&self, instance: HolderId) -> Result<(), Failure> {
        let parameters: [Parameter<'_>; 1] = [&instance.0];
        let written = self.slot.query(CHECK, &parameters);
        // Readiness wants to know now, not when every last hope is gone.
        match tokio::time::timeout(self.ground.options.connect_timeout, written).await {
            Ok(Ok(rows)) if rows.is_empty() => {
                Err(Failure::Away(Arc::from("the instance is not registered")))
            }
            Ok(written) => written.map(drop),
            Err(_) => {
                self.slot.forget().await;
                Err(Failure::Silent)
            }
        }
    }

    /// Gives all leases up: their turns are anybody's to rescue at once.
    pub(super) async fn close(&self, instance: HolderId) {
        let mut ids: Vec<i64> = self.held().drain().map(|(id, _)| id).collect();
        ids.push(instance.0);
        if let Err(failure) = self.slot.query(CLOSE, &[&ids]).await {
            let error = failure.store_error();
            tracing::warn!(%error, "holders could not be signed off; their leases will run out");
        }
    }
}
