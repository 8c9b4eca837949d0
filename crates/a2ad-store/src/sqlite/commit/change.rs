//! One change: checked whole before anything of it is written, so that a change that cannot be
//! applied leaves the others in its batch alone.

use std::sync::Arc;

use a2ad_core::keys::{Number, TaskKey};
use a2ad_core::store::{
    Applied, Change, ChangeError, Committed, ContextChoice, OnceHit, StoreError,
};
use a2ad_core::task::Head;
use a2ad_proto::Timestamp;

use super::Core;
use super::batch::{Batch, TaskInBatch};
use super::turns;
use crate::plan::{self, Plan, settle_identity, well_formed};
use crate::sqlite::fail::Failure;
use crate::sqlite::names::{Context, ScopeKey, create_context, find_context};

impl Core {
    /// Applies `change` within the open transaction. The outer error spoils the transaction, the
    /// inner one only the change.
    pub(super) fn apply(
        &mut self,
        batch: &mut Batch,
        change: Change,
    ) -> Result<Result<Applied, ChangeError>, Failure> {
        if let Err(what) = well_formed(&change) {
            return Ok(Err(StoreError::Corrupt(Arc::from(what)).into()));
        }
        let identity = &change.head.identity;
        let key = identity.key;
        let known_scope = self.names.find(&self.db, &identity.scope)?;
        // First of all: a repeat would otherwise look like a conflict with its own first time.
        if let (Some(scope), Some(request)) = (known_scope, &change.once)
            && let Some(hit) = self.earlier(batch, scope.scope, &request.key)?
        {
            return Ok(Err(ChangeError::Repeated(hit)));
        }
        let stored = batch.task(&self.db, key)?;
        let place = stored.map(|task| (task.version, task.scope, task.context));
        if let Some((_, scope, _)) = place
            && known_scope.map(|known| known.scope) != Some(scope)
        {
            // Another scope's key: not yours is not there.
            return Ok(Err(ChangeError::Conflict));
        }
        let open = match place {
            Some(_) => turns::of_task(&self.db, key)?,
            None => Vec::new(),
        };
        if let Some((number, attempt)) = change.fence
            && !plan::opens(&change.turns, number)
            && !plan::is_held(&open, number, attempt)
        {
            return Ok(Err(ChangeError::Fenced));
        }
        if place.map_or(Number::ZERO, |(version, _, _)| version) != change.expected {
            return Ok(Err(ChangeError::Conflict));
        }
        let context = match place {
            Some((_, _, context)) => Some(context),
            None => self.existing_context(batch, known_scope, &change)?,
        };
        let open_in_context = match context {
            Some(context) => turns::count_in_context(&self.db, context.key)?,
            None => 0,
        };
        let open_of_agent = known_scope
            .and_then(|scope| self.open_turns.get(&scope.agent).copied())
            .unwrap_or(0);
        let plan = match Plan::make(
            &change,
            change.lease_to,
            open,
            open_in_context,
            open_of_agent,
        ) {
            Ok(plan) => plan,
            Err(refused) => return Ok(Err(refused)),
        };
        // Nothing can refuse the change any more.
        let scope = match known_scope {
            Some(scope) => scope,
            None => self.names.find_or_create(&self.db, &identity.scope)?,
        };
        let context = match context {
            Some(context) => context,
            None => self.create_context(scope, &change)?,
        };
        if place.is_none() {
            batch.add(key, TaskInBatch::unborn(scope.scope, context));
        }
        self.write(batch, change, scope, context.key, plan).map(Ok)
    }

    /// The request that had this key before, in this batch or any other.
    fn earlier(
        &mut self,
        batch: &mut Batch,
        scope: i64,
        key: &[u8; 16],
    ) -> Result<Option<OnceHit>, Failure> {
        match batch.request(&self.db, scope, key)? {
            Some(hit) => Ok(Some(hit)),
            None => self.once.find(&self.db, scope, key),
        }
    }

    fn existing_context(
        &self,
        batch: &Batch,
        scope: Option<ScopeKey>,
        change: &Change,
    ) -> Result<Option<Context>, Failure> {
        let (ContextChoice::Named(id), Some(scope)) = (&change.context, scope) else {
            return Ok(None);
        };
        // The task that opened the context may not be in the tables yet.
        if let Some(key) = self.ids.key_of(id.as_str())
            && batch.has_minted(TaskKey(key), scope.scope, id)
        {
            return Ok(Some(Context { key, minted: true }));
        }
        find_context(&self.db, &self.ids, scope.scope, id)
    }

    fn create_context(&self, scope: ScopeKey, change: &Change) -> Result<Context, Failure> {
        let key = change.head.identity.context.0;
        let minted = match &change.context {
            ContextChoice::Named(id) => {
                create_context(&self.db, key, scope.scope, id)?;
                false
            }
            ContextChoice::Minted => true,
        };
        Ok(Context { key, minted })
    }

    fn write(
        &mut self,
        batch: &mut Batch,
        change: Change,
        scope: ScopeKey,
        context: i64,
        plan: Plan,
    ) -> Result<Applied, Failure> {
        let key = change.head.identity.key;
        let keep = change.trims_context_to();
        let written = turns::write(
            plan,
            &self.db,
            &turns::Place {
                task: key,
                context,
                agent: scope.agent,
                holder: change.lease_to,
                now_ms: batch.now_ms,
            },
            &mut self.next_seq,
            &change.entries,
        )?;
        let open = self.open_turns.entry(scope.agent).or_default();
        *open = (*open + written.opened).saturating_sub(written.closed);
        let ready = if written.made_ready {
            vec![change.head.identity.scope.agent.clone()]
        } else {
            Vec::new()
        };
        let head = Arc::new(Head {
            identity: settle_identity(&change, context),
            // What is read back later has milliseconds; nobody should see a time change.
            status_at: Timestamp::from_millis(change.head.status_at.as_millis()),
            turns: written.turns,
            ..change.head
        });
        let snapshot = change.snapshot.clone();
        batch.advance(&head, &change.entries, change.once, change.snapshot);
        batch.committed.push(Committed {
            head: Arc::clone(&head),
            entries: change.entries,
            snapshot,
            ready: ready.clone(),
        });
        if let Some(keep) = keep {
            self.trim(batch, context, keep, key)?;
        }
        Ok(Applied { head, ready })
    }
}
