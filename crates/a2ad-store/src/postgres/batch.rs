//! What one transaction gathers before it writes: the tasks, turns and requests concerned, as they
//! are after everything so far. Deciding needs no further question to the database, so a change
//! that cannot be applied leaves the others in its batch alone.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use a2ad_core::keys::{HolderId, Number, TaskKey, uuid_bits};
use a2ad_core::store::{
    Applied, Change, ChangeError, Committed, ContextChoice, Once, OnceHit, SHORT_JOURNAL,
    StoreError,
};
use a2ad_core::task::{Head, Snapshot, TurnHead, TurnState};
use a2ad_proto::Timestamp;

use super::names::ScopeKey;
use crate::hash::Hash;
use crate::plan::{self, OpenTurn, Plan, Step, cause_of_death, settle_identity, well_formed};
use crate::run::{NO_HASH, NewRun};

/// A change with the numbers of its names.
#[derive(Debug)]
pub(super) struct Named<'a> {
    pub(super) change: &'a Change,
    pub(super) scope: ScopeKey,
    /// The context that it has to have locked.
    pub(super) context: i64,
}

/// Why a change was not applied.
#[derive(Debug)]
pub(super) enum Refusal {
    /// For good.
    Change(ChangeError),
    /// Its context was deleted after it was looked up. It has to be looked up again.
    Again,
}

impl From<ChangeError> for Refusal {
    fn from(error: ChangeError) -> Self {
        Self::Change(error)
    }
}

/// A task that the batch may touch.
#[derive(Debug)]
pub(super) struct TaskInBatch {
    pub(super) scope: i64,
    pub(super) context: i64,
    pub(super) version: Number,
    /// The state in the table, which its counter counts; `None` for a task that has no row yet.
    pub(super) stored_state: Option<i16>,
    /// The hash of its newest run in the table.
    pub(super) chain: Hash,
    /// Its newest head; `None` if nothing has happened to it.
    pub(super) head: Option<Arc<Head>>,
    pub(super) run: NewRun,
    pub(super) snapshot: Option<Snapshot>,
}

impl TaskInBatch {
    /// A task as the table has it.
    pub(super) fn stored(
        scope: i64,
        context: i64,
        version: Number,
        state: i16,
        chain: Hash,
    ) -> Self {
        Self {
            version,
            stored_state: Some(state),
            chain,
            ..Self::unborn(scope, context)
        }
    }

    fn unborn(scope: i64, context: i64) -> Self {
        Self {
            scope,
            context,
            version: Number::ZERO,
            stored_state: None,
            chain: NO_HASH,
            head: None,
            run: NewRun::default(),
            snapshot: None,
        }
    }

    fn advance(&mut self, head: &Arc<Head>, change: &Change) {
        self.version = head.version;
        self.run.extend(&change.entries);
        if let Some(once) = &change.once {
            self.run.request(once);
        }
        if let Some(snapshot) = &change.snapshot
            && head.bytes > SHORT_JOURNAL
        {
            self.snapshot = Some(snapshot.clone());
        }
        self.head = Some(Arc::clone(head));
    }
}

/// An open turn. Those that have no row yet have a negative place.
#[derive(Clone, Copy, Debug)]
pub(super) struct TurnInBatch {
    pub(super) seq: i64,
    pub(super) task: TaskKey,
    pub(super) agent: i64,
    pub(super) head: TurnHead,
    pub(super) holder: Option<i64>,
    pub(super) due: i64,
    pub(super) created_at: i64,
    pub(super) changed: bool,
}

/// A turn that ran out of tries.
#[derive(Debug)]
pub(super) struct DeadTurn {
    pub(super) turn: TurnInBatch,
    pub(super) context: i64,
    pub(super) reason: Option<String>,
}

/// What is known of a request key.
#[derive(Clone, Copy, Debug)]
pub(super) enum Request {
    /// It has a row, from before.
    Stored(OnceHit),
    /// It got a row at the beginning of this transaction, with what this says.
    Made(OnceHit),
}

/// The key of a request in its scope.
pub(super) type RequestKey = (i64, [u8; 16]);

/// The work of one transaction.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// The database's time.
    pub(super) now_ms: i64,
    /// How far that is ahead of our own, in which changes say when turns are due.
    pub(super) ahead_ms: i64,
    pub(super) tasks: BTreeMap<TaskKey, TaskInBatch>,
    /// The contexts that are locked, with their open turns in order.
    pub(super) contexts: BTreeMap<i64, Vec<TurnInBatch>>,
    pub(super) requests: HashMap<RequestKey, Request>,
    /// Requests that were carried out in this batch.
    pub(super) carried_out: HashMap<RequestKey, OnceHit>,
    /// How many turns an agent has open.
    pub(super) open_of_agent: HashMap<i64, i64>,
    /// Holders whose lease is not over.
    pub(super) holders: HashSet<i64>,
    /// What to tell once it is durable.
    pub(super) committed: Vec<Committed>,
    /// Contexts that may have too many tasks: how many they may keep, and the task that stays in any
    /// case.
    pub(super) trims: BTreeMap<i64, (u32, TaskKey)>,
    /// Contexts to be added: key, scope, id.
    pub(super) minted: Vec<(i64, i64, u128)>,
    /// Rows of turns that are over.
    pub(super) ended: Vec<i64>,
    pub(super) dead: Vec<DeadTurn>,
    /// By how many the open turns of an agent become more.
    pub(super) opened: BTreeMap<i64, i64>,
    newest_place: i64,
}

impl Batch {
    /// Applies a change, or says why not; then nothing of it was.
    pub(super) fn apply(&mut self, named: &Named<'_>) -> Result<Applied, Refusal> {
        let Named {
            change,
            scope,
            context,
        } = *named;
        if let Err(what) = well_formed(change) {
            return Err(ChangeError::from(StoreError::Corrupt(Arc::from(what))).into());
        }
        let key = change.head.identity.key;
        // Ids that we mint are UUIDs, and stored as such.
        if uuid_bits(change.head.identity.id.as_str()).is_none() {
            let what = Arc::from("a change's task id is not one that this store has minted");
            return Err(ChangeError::from(StoreError::Corrupt(what)).into());
        }
        // First of all: a repeat would otherwise look like a conflict with its own first time.
        if let Some(request) = &change.once
            && let Some(hit) = self.earlier((scope.scope, request.key))
        {
            return Err(ChangeError::Repeated(hit).into());
        }
        let stored = self.tasks.get(&key);
        if let Some(task) = stored
            && (task.scope != scope.scope || task.context != context)
        {
            // Another scope's key: not yours is not there. And what is not locked is not touched.
            return Err(ChangeError::Conflict.into());
        }
        let open = match stored {
            Some(_) => self.open_turns(context, key),
            None => Vec::new(),
        };
        if let Some((number, attempt)) = change.fence
            && !plan::opens(&change.turns, number)
            && !plan::is_held(&open, number, attempt)
        {
            return Err(ChangeError::Fenced.into());
        }
        if stored.map_or(Number::ZERO, |task| task.version) != change.expected {
            return Err(ChangeError::Conflict.into());
        }
        let is_new = stored.is_none();
        let named_anew = is_new && matches!(change.context, ContextChoice::Named(_));
        if named_anew && !self.contexts.contains_key(&context) {
            return Err(Refusal::Again);
        }
        let lease_to = change.lease_to.filter(|it| self.holders.contains(&it.0));
        let in_context = self.contexts.get(&context).map_or(0, Vec::len);
        let of_agent = self.open_of_agent.get(&scope.agent).copied().unwrap_or(0);
        let plan = Plan::make(
            change,
            lease_to,
            open,
            u32::try_from(in_context).unwrap_or(u32::MAX),
            u32::try_from(of_agent.max(0)).unwrap_or(u32::MAX),
        )
        .map_err(Refusal::Change)?;
        // Nothing can refuse the change any more.
        if is_new {
            self.tasks
                .insert(key, TaskInBatch::unborn(scope.scope, context));
            if !named_anew {
                let id = change.head.identity.context_id.as_str();
                let bits = uuid_bits(id).unwrap_or_default();
                self.minted.push((context, scope.scope, bits));
                self.contexts.insert(context, Vec::new());
            }
        }
        Ok(self.carry_out(named, plan, lease_to))
    }

    fn earlier(&self, key: RequestKey) -> Option<OnceHit> {
        let here = self.carried_out.get(&key).copied();
        here.or_else(|| match self.requests.get(&key) {
            Some(Request::Stored(hit)) => Some(*hit),
            Some(Request::Made(_)) | None => None,
        })
    }

    fn open_turns(&self, context: i64, task: TaskKey) -> Vec<OpenTurn> {
        let turns = self.contexts.get(&context).into_iter().flatten();
        turns
            .filter(|turn| turn.task == task)
            .map(|turn| OpenTurn {
                seq: turn.seq,
                head: turn.head,
                created_at: turn.created_at,
            })
            .collect()
    }

    fn carry_out(&mut self, named: &Named<'_>, plan: Plan, lease_to: Option<HolderId>) -> Applied {
        let Named {
            change,
            scope,
            context,
        } = *named;
        let key = change.head.identity.key;
        let (turns, made_ready) = self.turn(named, plan, lease_to);
        let ready = if made_ready {
            vec![change.head.identity.scope.agent.clone()]
        } else {
            Vec::new()
        };
        let head = Arc::new(Head {
            identity: settle_identity(change, context),
            // What is read back later has milliseconds; nobody should see a time change.
            status_at: Timestamp::from_millis(change.head.status_at.as_millis()),
            turns,
            ..change.head.clone()
        });
        if let Some(task) = self.tasks.get_mut(&key) {
            task.advance(&head, change);
        }
        if let Some(once) = &change.once {
            self.carried_out
                .insert((scope.scope, once.key), hit(key, once));
        }
        if let Some(keep) = change.trims_context_to() {
            self.trims.insert(context, (keep, key));
        }
        self.committed.push(Committed {
            head: Arc::clone(&head),
            entries: change.entries.clone(),
            snapshot: change.snapshot.clone(),
            ready: ready.clone(),
        });
        Applied { head, ready }
    }

    /// Does to the turns what the plan says, and lets the context's oldest turn go ahead. Returns
    /// the task's turns and whether any became ready.
    fn turn(
        &mut self,
        named: &Named<'_>,
        plan: Plan,
        lease_to: Option<HolderId>,
    ) -> (Vec<TurnHead>, bool) {
        let task = named.change.head.identity.key;
        let agent = named.scope.agent;
        let (now_ms, ahead_ms) = (self.now_ms, self.ahead_ms);
        let in_context = self.contexts.entry(named.context).or_default();
        let mut made_ready = false;
        let mut closed = false;
        let mut opened = 0;
        for (turn, step) in plan.steps {
            let at = in_context.iter().position(|it| it.seq == turn.seq);
            match (step, at) {
                (Step::Keep, _) => {}
                (Step::Insert { due }, _) => {
                    self.newest_place -= 1;
                    opened += 1;
                    made_ready |= turn.head.state == TurnState::Ready;
                    in_context.push(TurnInBatch {
                        seq: self.newest_place,
                        task,
                        agent,
                        head: turn.head,
                        holder: match turn.head.state {
                            TurnState::Leased => lease_to.map(|holder| holder.0),
                            TurnState::Waiting | TurnState::Ready => None,
                        },
                        due: due.map_or(now_ms, |due| due + ahead_ms),
                        created_at: now_ms,
                        changed: true,
                    });
                }
                (Step::Requeue { due }, Some(at)) => {
                    let stored = &mut in_context[at];
                    stored.head = turn.head;
                    stored.holder = None;
                    stored.due = due + ahead_ms;
                    stored.changed = true;
                    made_ready = true;
                }
                (Step::End | Step::Die, at) => {
                    if matches!(step, Step::Die) {
                        self.dead.push(DeadTurn {
                            turn: TurnInBatch {
                                seq: turn.seq,
                                task,
                                agent,
                                head: turn.head,
                                holder: None,
                                due: now_ms,
                                created_at: match at {
                                    Some(_) => turn.created_at,
                                    None => now_ms,
                                },
                                changed: false,
                            },
                            context: named.context,
                            reason: cause_of_death(&named.change.entries, turn.head.number),
                        });
                    }
                    if let Some(at) = at {
                        in_context.remove(at);
                        opened -= 1;
                        closed = true;
                        if turn.seq > 0 {
                            self.ended.push(turn.seq);
                        }
                    }
                }
                // A turn of the plan that is stored was found in the context.
                (Step::Requeue { .. }, None) => {}
            }
        }
        if closed
            && let Some(oldest) = in_context.first_mut()
            && oldest.head.state == TurnState::Waiting
        {
            // It stays due since it was born, which puts it ahead of turns that came later.
            oldest.head.state = TurnState::Ready;
            oldest.changed = true;
            made_ready = true;
        }
        let turns = in_context.iter().filter(|turn| turn.task == task);
        let turns = turns.map(|turn| turn.head).collect();
        *self.opened.entry(agent).or_default() += opened;
        *self.open_of_agent.entry(agent).or_default() += opened;
        (turns, made_ready)
    }

    /// Whether anything is to be written.
    pub(super) fn is_idle(&self) -> bool {
        self.committed.is_empty()
    }

    /// By how much the counters of tasks move: scope and state.
    pub(super) fn counters(&self) -> BTreeMap<(i64, i16), i64> {
        let mut counters: BTreeMap<(i64, i16), i64> = BTreeMap::new();
        for task in self.tasks.values() {
            let state = task.head.as_ref().map(|head| head.state as i16);
            if let Some(state) = state.filter(|state| task.stored_state != Some(*state)) {
                *counters.entry((task.scope, state)).or_default() += 1;
                if let Some(before) = task.stored_state {
                    *counters.entry((task.scope, before)).or_default() -= 1;
                }
            }
        }
        counters.retain(|_, by| *by != 0);
        counters
    }
}

/// What a repeat of this request is told.
pub(super) fn hit(task: TaskKey, once: &Once) -> OnceHit {
    OnceHit {
        task,
        number: once.number,
        body: once.body,
    }
}
