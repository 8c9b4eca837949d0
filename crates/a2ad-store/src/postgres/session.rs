//! One connection to the database.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{AsyncMessage, Client, Row, Statement};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::fail::Failure;
use super::open::OpenError;
use super::options::{PostgresOptions, Target, parse};
use super::tls::Tls;

/// A parameter of a statement.
pub(crate) type Parameter<'a> = &'a (dyn ToSql + Sync);

/// What every connection is made with.
#[derive(Debug)]
pub(crate) struct Ground {
    pub(crate) options: PostgresOptions,
    pub(crate) target: Target,
    pub(crate) tls: Tls,
    /// Everything that runs beside the callers; the store waits for it when it is closed.
    pub(crate) tracker: TaskTracker,
    /// The store is being closed.
    pub(crate) stop: CancellationToken,
    /// When a connection was made the last time: what failed before that is worth another try.
    connected: Mutex<Option<Instant>>,
    /// When the server last had no connection left for us.
    crowded: Mutex<Option<Instant>>,
}

/// For so long a server that had no connection left is taken to have none. Whoever is turned away tries again sooner.
const CROWDED: Duration = Duration::from_secs(3);

impl Ground {
    /// What connections with these options are made with.
    pub(crate) fn new(options: PostgresOptions) -> Result<Self, OpenError> {
        let target = parse(&options.url)?;
        let tls = Tls::new(&target)?;
        Ok(Self {
            options,
            target,
            tls,
            tracker: TaskTracker::new(),
            stop: CancellationToken::new(),
            connected: Mutex::default(),
            crowded: Mutex::default(),
        })
    }

    /// Whether somebody has got through since then.
    pub(crate) fn is_back_since(&self, then: Instant) -> bool {
        let connected = self
            .connected
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        connected.is_some_and(|connected| connected > then)
    }

    /// Notes that the server had no connection left for us.
    pub(crate) fn note_crowded(&self) {
        let mut crowded = self.crowded.lock().unwrap_or_else(PoisonError::into_inner);
        *crowded = Some(Instant::now());
    }

    /// Whether some of our connections could not be made of late: then some callers are turned away.
    pub(crate) fn is_crowded(&self) -> bool {
        let crowded = self.crowded.lock().unwrap_or_else(PoisonError::into_inner);
        crowded.is_some_and(|then| then.elapsed() < CROWDED)
    }

    /// Ends all connections.
    pub(crate) async fn close(&self) {
        self.stop.cancel();
        self.tracker.close();
        self.tracker.wait().await;
    }

    /// The longest that an answer can take, with some time for its way.
    pub(crate) fn deadline(&self) -> Duration {
        self.options.statement_timeout + Duration::from_secs(5)
    }
}

/// A process of the server: its id, and since when, because ids are given again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Backend {
    pub(crate) pid: i32,
    pub(crate) since: String,
}

const WHO: &str = "SELECT pid, backend_start::text FROM pg_stat_activity
     WHERE pid = pg_backend_pid()";

/// A connection. Statements that are sent without waiting for the answers of those before run in
/// the order in which they were sent.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) client: Client,
    /// What the server says it is.
    pub(crate) version: String,
    /// Who serves us there.
    pub(crate) backend: Backend,
    deadline: Duration,
    statements: Mutex<HashMap<&'static str, Statement>>,
}

/// Who talks while others wait cannot be left alone with the defaults: no statement may hang
/// forever, nobody may fall asleep in a transaction, and an answered commit is on the disk. Every
/// statement here has its index; a plan that was made while the tables were small would go on
/// without it, and planning each time anew takes longer than most statements do.
fn settings(options: &PostgresOptions) -> String {
    format!(
        "SET search_path = a2ad;
         SET statement_timeout = {};
         SET lock_timeout = {};
         SET idle_in_transaction_session_timeout = {};
         SET synchronous_commit = on;
         SET default_transaction_isolation = 'read committed';
         SET default_transaction_read_only = off;
         SET enable_seqscan = off;
         SET enable_hashjoin = off;
         SET enable_mergejoin = off;
         SET plan_cache_mode = force_generic_plan;
         SET jit = off;
         SET timezone = 'UTC';
         SET client_min_messages = warning",
        options.statement_timeout.as_millis(),
        options.lock_timeout.as_millis(),
        // Whoever is frozen or cut off in mid-transaction must lose its locks well before those who
        // wait for them give up. There is nothing to wait for between two statements of ours.
        options.lock_timeout.as_millis() / 4,
    )
}

impl Session {
    /// Connects. What other sessions `NOTIFY` this one goes to `heard`, if anybody listens.
    pub(crate) async fn connect(
        ground: &Ground,
        heard: Option<mpsc::Sender<String>>,
    ) -> Result<Self, Failure> {
        let options = &ground.options;
        let mut config = ground.target.config.clone();
        config.application_name(&options.name);
        config.connect_timeout(options.connect_timeout);
        let connecting = config.connect(ground.tls.clone());
        let (client, mut connection) = tokio::time::timeout(options.connect_timeout, connecting)
            .await
            .map_err(|_| Failure::Silent)??;
        let version = connection.parameter("server_version").unwrap_or_default();
        let version = version.to_owned();
        // Ends when the client is dropped or the connection is lost.
        let stop = ground.stop.clone();
        ground.tracker.spawn(async move {
            loop {
                let next = tokio::select! {
                    next = std::future::poll_fn(|cx| connection.poll_message(cx)) => next,
                    () = stop.cancelled() => None,
                };
                match next {
                    Some(Ok(AsyncMessage::Notification(told))) => {
                        if let Some(heard) = &heard
                            && heard.send(told.payload().to_owned()).await.is_err()
                        {
                            break;
                        }
                    }
                    Some(Ok(_)) => {}
                    Some(Err(_)) | None => break,
                }
            }
        });
        let mut session = Self {
            client,
            version,
            backend: Backend::default(),
            deadline: ground.deadline(),
            statements: Mutex::default(),
        };
        let set = settings(options);
        session.within(session.client.batch_execute(&set)).await?;
        let rows = session.query(WHO, &[]).await?;
        if let Some(row) = rows.first() {
            session.backend = Backend {
                pid: row.try_get(0)?,
                since: row.try_get(1)?,
            };
        }
        let mut connected = ground
            .connected
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *connected = Some(Instant::now());
        drop(connected);
        Ok(session)
    }

    /// Whether it is known to be lost.
    pub(crate) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Waits for an answer, but not forever: a server that is cut off says nothing at all.
    pub(crate) async fn within<T>(
        &self,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, Failure> {
        match tokio::time::timeout(self.deadline, answer).await {
            Ok(answered) => Ok(answered?),
            Err(_) => Err(Failure::Silent),
        }
    }

    /// A statement, prepared once per connection.
    pub(crate) async fn statement(&self, sql: &'static str) -> Result<Statement, Failure> {
        if let Some(statement) = self.known(sql) {
            return Ok(statement);
        }
        let statement = self.within(self.client.prepare(sql)).await?;
        let mut statements = self
            .statements
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        statements.insert(sql, statement.clone());
        Ok(statement)
    }

    fn known(&self, sql: &'static str) -> Option<Statement> {
        let statements = self
            .statements
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        statements.get(sql).cloned()
    }

    /// Prepares statements, so that later ones are sent as soon as they are asked for.
    pub(crate) async fn prepare(&self, all: &[&'static str]) -> Result<(), Failure> {
        for sql in all {
            self.statement(sql).await?;
        }
        Ok(())
    }

    /// Runs a statement. If it was prepared before, it is sent at the first poll.
    pub(crate) fn query<'a>(
        &'a self,
        sql: &'static str,
        parameters: &'a [Parameter<'a>],
    ) -> BoxFuture<'a, Result<Vec<Row>, Failure>> {
        Box::pin(async move {
            let statement = self.statement(sql).await?;
            self.within(self.client.query(&statement, parameters)).await
        })
    }

    /// The same, unless there is nothing to ask.
    pub(crate) fn query_if<'a>(
        &'a self,
        needed: bool,
        sql: &'static str,
        parameters: &'a [Parameter<'a>],
    ) -> BoxFuture<'a, Result<Vec<Row>, Failure>> {
        if needed {
            self.query(sql, parameters)
        } else {
            Box::pin(std::future::ready(Ok(Vec::new())))
        }
    }

    /// Runs statements that take no parameters and answer nothing.
    pub(crate) fn run<'a>(&'a self, sql: &'a str) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(self.within(self.client.batch_execute(sql)))
    }
}

/// The session that a store's part uses at the moment.
pub(crate) type Shared = Arc<Session>;

/// Sixteen bytes in a column of type `uuid`: ids, hashes and request keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Sixteen(pub(crate) [u8; 16]);

impl ToSql for Sixteen {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut bytes::BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        out.extend_from_slice(&self.0);
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::UUID
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Sixteen {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(raw.try_into()?))
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::UUID
    }
}
