//! What stays in memory of what nobody talks about.

use super::*;

/// F-06: of a context that nobody uses nothing has to be in memory. What is there after ten thousand of them is what
/// caches may hold, and that is bounded, however many there are.
#[test]
fn f_06_idle_contexts_leave_memory() {
    const CONTEXTS: usize = 10_000;
    let world = World::new(AgentPolicy::default());
    let life = world.live();
    let caller = caller();
    let sending = async {
        for block in 0..CONTEXTS / 100 {
            let send = |n: usize| {
                let mut request = text("words a b");
                let message = request.message.as_mut().unwrap();
                message.context_id = format!("context-{}", block * 100 + n);
                life.engine.send(&caller, request)
            };
            let sent = futures_util::future::join_all((0..100).map(send)).await;
            assert!(sent.iter().all(Result::is_ok));
        }
    };
    life.run(sending);
    life.until(|| (life.engine.running() == 0).then_some(()));
    // Nobody follows anything, once those that did have gone.
    life.until(|| (life.hub.held()[2] == 0).then_some(()));
    let [heads, snapshots, _] = life.hub.held();
    let [heads_max, snapshots_max] = Hub::HELD_MAX;
    assert!(heads <= heads_max && snapshots <= snapshots_max);
    assert!(heads > 0, "the caches are looked at");

    // Once retention has removed the tasks, nothing at all is left of them.
    world.clock.step(31 * DAY);
    life.until(|| (life.count(TaskState::Unspecified) == 0).then_some(()));
    life.until(|| (life.hub.held() == [0, 0, 0]).then_some(()));
}
