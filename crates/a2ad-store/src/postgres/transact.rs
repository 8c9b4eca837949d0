//! One transaction of a lane: lock, read, decide, write, commit.
//!
//! The locks are taken in one order everywhere, so that nobody waits in a circle: contexts by key,
//! ready turns by place (a claim never waits for one), request keys by scope and key, agents that
//! are nearly full by key, and counters at last.

use a2ad_core::keys::{Number, PublicIds, TaskKey};
use a2ad_core::store::{Applied, Change, ChangeError, Committed, ContextChoice};
use a2ad_proto::Timestamp;

use super::batch::{Named, Refusal};
use super::fail::Failure;
use super::gather::gather;
use super::names::{self, Names, Wanted};
use super::session::{Session, Sixteen};
use super::write;

/// What a transaction needs besides its changes.
#[derive(Debug)]
pub(super) struct Place<'a> {
    pub(super) session: &'a Session,
    pub(super) names: &'a Names,
    pub(super) ids: &'a PublicIds,
    /// Where this lane counts.
    pub(super) shard: i16,
    pub(super) instance: i64,
    pub(super) lane: i16,
    /// What this transaction leaves, and no other.
    pub(super) mark: Sixteen,
    /// Our own time.
    pub(super) now: Timestamp,
    /// What is taken for the database's time, in tests.
    pub(super) time: Option<i64>,
}

/// What came of a transaction.
#[derive(Debug)]
pub(super) struct Done {
    /// Per change, in order.
    pub(super) outcomes: Vec<Result<Applied, Refusal>>,
    pub(super) committed: Vec<Committed>,
    /// Tasks that were deleted because their contexts have too many.
    pub(super) deleted: Vec<TaskKey>,
}

/// Why there is no outcome.
#[derive(Debug)]
pub(super) enum Trouble {
    /// Nothing was committed.
    Failed(Failure),
    /// The connection was lost while committing. Whether this was done or not, the mark will tell.
    Unknown { done: Box<Done>, failure: Failure },
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Applies all changes that can be applied and commits them together.
pub(super) async fn transact(place: &Place<'_>, changes: &[Change]) -> Result<Done, Trouble> {
    let named = name(place, changes).await?;
    let outcome = within(place, &named).await;
    if let Err(Trouble::Failed(failure)) = &outcome
        && !failure.is_lost()
    {
        place.session.run("ROLLBACK").await?;
    }
    outcome
}

/// Looks up the numbers of scopes and contexts.
async fn name<'a>(place: &Place<'_>, changes: &'a [Change]) -> Result<Vec<Named<'a>>, Failure> {
    let mut named = Vec::with_capacity(changes.len());
    for change in changes {
        let identity = &change.head.identity;
        let scope = match place.names.known(&identity.scope) {
            Some(scope) => scope,
            None => {
                place
                    .names
                    .find_or_create(place.session, &identity.scope)
                    .await?
            }
        };
        named.push(Named {
            change,
            scope,
            context: identity.context.0,
        });
    }
    let mut wanted = Vec::new();
    let mut places = Vec::new();
    for (at, named) in named.iter().enumerate() {
        if named.change.expected == Number::ZERO
            && let ContextChoice::Named(id) = &named.change.context
        {
            places.push(at);
            wanted.push(Wanted {
                key_in_id: place.ids.key_of(id.as_str()),
                scope: named.scope.scope,
                id,
                new: named.context,
            });
        }
    }
    if !wanted.is_empty() {
        let found = names::find_or_create_contexts(place.session, &wanted).await?;
        for (at, context) in places.into_iter().zip(found) {
            named[at].context = context;
        }
    }
    Ok(named)
}

async fn within(place: &Place<'_>, named: &[Named<'_>]) -> Result<Done, Trouble> {
    let mut batch = gather(place, named).await?;
    let outcomes: Vec<_> = named.iter().map(|one| batch.apply(one)).collect();
    let written = write::flush(place, &batch).await;
    let mut done = Done {
        outcomes,
        committed: batch.committed,
        // If the connection is lost it is not known which. Nobody has to hear of them: what is
        // shared is asked for.
        deleted: Vec::new(),
    };
    match written {
        Ok(deleted) => {
            done.deleted = deleted;
            Ok(done)
        }
        Err(failure) if failure.is_lost() => Err(Trouble::Unknown {
            done: Box::new(done),
            failure,
        }),
        Err(failure) => Err(Trouble::Failed(failure)),
    }
}

/// The same refusal for all changes of a batch.
pub(super) fn refused(failure: &Failure) -> ChangeError {
    ChangeError::Store(failure.store_error())
}
