//! Connections that come back when they are lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, RwLock, Semaphore, SemaphorePermit};
use tokio::time::Instant;
use tokio_postgres::Row;

use super::fail::Failure;
use super::session::{Ground, Parameter, Session, Shared};

/// After a failed attempt, how long until the next: from this …
const PAUSE_MIN: Duration = Duration::from_millis(50);
/// … doubled each time up to this.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// A place for one connection.
#[derive(Debug)]
pub(crate) struct Slot {
    ground: Arc<Ground>,
    /// Prepared before anybody else gets to use it.
    statements: &'static [&'static str],
    current: RwLock<Option<Shared>>,
    trying: Mutex<Trying>,
}

#[derive(Debug)]
struct Trying {
    failed: Instant,
    next: Instant,
    pause: Duration,
    why: Arc<str>,
}

impl Slot {
    pub(crate) fn new(ground: Arc<Ground>, statements: &'static [&'static str]) -> Self {
        Self {
            ground,
            statements,
            current: RwLock::default(),
            trying: Mutex::new(Trying {
                failed: Instant::now(),
                next: Instant::now(),
                pause: PAUSE_MIN,
                why: Arc::from("not connected yet"),
            }),
        }
    }

    /// The connection, made anew if it is lost. Right after a failed attempt nothing is tried: who
    /// asks is told what was wrong, instead of waiting for the same; unless another connection has
    /// got through since.
    pub(crate) async fn session(&self) -> Result<Shared, Failure> {
        if let Some(session) = self.live().await {
            return Ok(session);
        }
        let mut trying = self.trying.lock().await;
        if let Some(session) = self.live().await {
            return Ok(session);
        }
        if self.ground.stop.is_cancelled() {
            return Err(Failure::Away(Arc::from("it was closed")));
        }
        if Instant::now() < trying.next && !self.ground.is_back_since(trying.failed) {
            return Err(Failure::Away(Arc::clone(&trying.why)));
        }
        match self.connect().await {
            Ok(session) => {
                trying.pause = PAUSE_MIN;
                *self.current.write().await = Some(Arc::clone(&session));
                Ok(session)
            }
            Err(failure) => {
                if failure.is_crowded() {
                    self.ground.note_crowded();
                }
                trying.why = failure.reason();
                trying.failed = Instant::now();
                trying.next = trying.failed + trying.pause;
                trying.pause = (trying.pause * 2).min(PAUSE_MAX);
                Err(failure)
            }
        }
    }

    /// Gives a connection up that nobody answers on.
    pub(crate) async fn drop_session(&self, session: &Shared) {
        let mut current = self.current.write().await;
        if current.as_ref().is_some_and(|it| Arc::ptr_eq(it, session)) {
            *current = None;
        }
    }

    /// Gives up whatever connection there is.
    pub(crate) async fn forget(&self) {
        *self.current.write().await = None;
    }

    async fn live(&self) -> Option<Shared> {
        let current = self.current.read().await;
        current.as_ref().filter(|it| !it.is_closed()).cloned()
    }

    async fn connect(&self) -> Result<Shared, Failure> {
        let session = Session::connect(&self.ground, None).await?;
        session.prepare(self.statements).await?;
        Ok(Arc::new(session))
    }

    /// Runs one statement on whatever connection there is.
    pub(crate) async fn query(
        &self,
        sql: &'static str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, Failure> {
        let session = self.session().await?;
        let answer = session.query(sql, parameters).await;
        if let Err(failure) = &answer
            && failure.is_lost()
        {
            self.drop_session(&session).await;
        }
        answer
    }
}

/// A few connections for statements that stand for themselves. Nobody has one for himself: answers
/// come in the order of the questions, so many can ask on one connection.
#[derive(Debug)]
pub(crate) struct Sessions {
    slots: Vec<Slot>,
    next: AtomicUsize,
    /// How many may ask at a time; the others wait in line, for no longer than an answer may take.
    places: Semaphore,
    deadline: Duration,
}

/// So many questions may be under way on each connection.
const IN_LINE_MAX: usize = 256;

impl Sessions {
    pub(crate) fn new(ground: &Arc<Ground>, count: usize) -> Self {
        Self {
            slots: (0..count.max(1))
                .map(|_| Slot::new(Arc::clone(ground), &[]))
                .collect(),
            next: AtomicUsize::new(0),
            places: Semaphore::new(count.max(1) * IN_LINE_MAX),
            deadline: ground.deadline(),
        }
    }

    async fn place(&self) -> Result<SemaphorePermit<'_>, Failure> {
        match tokio::time::timeout(self.deadline, self.places.acquire()).await {
            Ok(Ok(place)) => Ok(place),
            Ok(Err(_)) | Err(_) => Err(Failure::Away(Arc::from(
                "too many questions to the database are waiting",
            ))),
        }
    }

    fn slot(&self) -> &Slot {
        let at = self.next.fetch_add(1, Ordering::Relaxed);
        &self.slots[at % self.slots.len()]
    }

    /// Runs a statement that only reads. If the connection is lost meanwhile, or was and is not back
    /// yet, the others are tried.
    pub(crate) async fn read(
        &self,
        sql: &'static str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, Failure> {
        let _place = self.place().await?;
        let mut tries = self.slots.len();
        loop {
            tries -= 1;
            match self.slot().query(sql, parameters).await {
                Err(failure) if failure.is_lost() && tries > 0 => {}
                answer => return answer,
            }
        }
    }

    /// Runs a statement that writes: once, whatever happens.
    pub(crate) async fn write(
        &self,
        sql: &'static str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, Failure> {
        let _place = self.place().await?;
        self.slot().query(sql, parameters).await
    }
}
