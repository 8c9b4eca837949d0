//! What every store has to do, as tests that any store can run.
//!
//! A store's crate implements [`Harness`] and writes one line,
//! `a2ad_core::store_contract!(|| MyHarness::new());`, which makes one `#[test]` of each fact below.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed expectation is what a test is for"
)]

mod journal;
mod lists;
mod order;
mod ownership;
mod retention;
pub mod sample;
mod turns;
mod world;

use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::clock::Surroundings;
use crate::store::{Store, Wake};

pub use journal::*;
pub use lists::*;
pub use order::*;
pub use ownership::*;
pub use retention::*;
pub use turns::*;
pub use world::Recorder;

/// A place where a store can be opened, closed and opened again. Each has a database of its own.
pub trait Harness: Send + Sync {
    /// Opens the store. What an earlier store in the same place has acknowledged is there.
    fn open(
        &self,
        surroundings: Surroundings,
        wake: Arc<dyn Wake>,
    ) -> BoxFuture<'_, Arc<dyn Store>>;

    /// Ends the store as a restart of the daemon would: its holders are gone afterwards.
    fn close(&self, store: Arc<dyn Store>) -> BoxFuture<'_, ()>;
}

/// Makes a `#[test]` of every fact. The argument is a closure that returns a fresh
/// [`Harness`](crate::contract::Harness).
#[macro_export]
macro_rules! store_contract {
    ($harness:expr) => {
        $crate::store_contract! { @each $harness;
            what_is_acknowledged_is_there_after_reopening
            a_head_read_back_is_the_head_that_was_answered
            a_change_on_an_old_version_is_a_conflict
            of_two_changes_on_one_version_exactly_one_wins
            a_refused_change_leaves_its_neighbours_alone
            changes_of_one_task_in_a_row_build_on_each_other
            numbers_have_no_gap
            the_engine_hears_of_commits_first_and_in_order
            pages_of_a_journal_join_without_a_seam
            large_entries_come_back_whole
            the_newest_snapshot_wins
            a_task_is_loaded_with_all_that_it_takes_to_fold_it
            many_committers_at_once_lose_nothing
            not_yours_is_not_there
            another_owners_task_cannot_be_changed
            a_repeated_request_is_found_and_changes_nothing
            request_keys_belong_to_owner_and_agent
            a_named_context_is_shared_by_its_owners_tasks_only
            a_minted_context_is_found_by_its_id
            a_write_under_a_lost_lease_is_fenced
            a_turn_change_under_an_old_attempt_is_a_conflict
            the_second_turn_of_a_context_waits_for_the_first
            ending_a_waiting_turn_wakes_nobody
            a_requeued_turn_keeps_its_place
            a_line_is_of_one_context_and_in_order
            contexts_do_not_wait_for_each_other
            a_full_context_takes_no_more_messages
            a_full_agent_takes_no_more_messages
            a_claim_respects_time_and_limit_and_agent
            attempts_rise_and_are_never_used_again
            leases_of_a_holder_that_is_gone_are_orphans
            a_turn_may_open_and_end_in_one_change
            a_dead_turn_is_kept_and_lets_the_next_one_go
            in_a_context_nothing_overtakes_and_only_one_works
            a_list_is_ordered_by_status_then_key
            pages_of_a_list_stay_in_order_while_tasks_change
            filters_combine_and_totals_agree
            artifacts_are_listed_only_when_asked_for
            what_the_caller_has_is_not_brought
            a_listed_task_comes_with_a_new_snapshot_or_with_the_entries_after_it
            a_page_ends_at_a_bound_of_bytes
            purging_removes_all_of_what_ended_before_and_nothing_else
            a_context_outlives_the_task_that_opened_it
            f_07_a_context_keeps_its_newest_tasks
            only_tasks_that_wait_for_their_client_are_idle
            what_rests_is_found_in_the_order_in_which_it_came_to_rest
            keys_grow_across_reopening
            a_working_store_says_so
        }
    };
    (@each $harness:expr; $($fact:ident)*) => {
        $(
            #[test]
            fn $fact() {
                let harness = ($harness)();
                $crate::contract::run(|| $crate::contract::$fact(&harness));
            }
        )*
    };
}

/// Runs a fact to its end, on two threads so that committers really meet.
pub fn run<F: Future<Output = ()>>(fact: impl FnOnce() -> F) {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(fact());
}
