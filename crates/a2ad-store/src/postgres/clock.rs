//! The database's time of day, told here.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use a2ad_core::clock::{Clock, SystemClock};
use a2ad_proto::Timestamp;

/// The machine's clock, put right by the database's with every beat: instances agree on the time,
/// whatever their machines say.
#[derive(Debug)]
pub struct DatabaseClock {
    machine: Arc<dyn Clock>,
    /// By so many milliseconds the database is ahead of the machine.
    ahead: AtomicI64,
}

impl Default for DatabaseClock {
    fn default() -> Self {
        Self::on(Arc::new(SystemClock))
    }
}

impl DatabaseClock {
    /// A clock that goes by `machine` between two looks at the database.
    #[must_use]
    pub fn on(machine: Arc<dyn Clock>) -> Self {
        Self {
            machine,
            ahead: AtomicI64::new(0),
        }
    }

    /// What the machine says, to be remembered when the database is asked.
    pub(super) fn machine(&self) -> i64 {
        self.machine.now().as_millis()
    }

    /// Hears that the database said `theirs` to a question that was sent when the machine said
    /// `sent` and is answered now.
    pub(super) fn hear(&self, sent: i64, theirs: i64) {
        let took = self.machine().saturating_sub(sent);
        let ahead = theirs.saturating_sub(sent.saturating_add(took / 2));
        let known = self.ahead.load(Ordering::Relaxed);
        // Within what the way there and back may have taken, nothing new was learned; and if the
        // machine's clock was set meanwhile, nothing at all.
        let doubt = took / 2 + 1;
        if took >= 0 && known.abs_diff(ahead) > doubt.unsigned_abs() {
            self.ahead.store(ahead, Ordering::Relaxed);
        }
    }
}

impl Clock for DatabaseClock {
    fn now(&self) -> Timestamp {
        let ahead = self.ahead.load(Ordering::Relaxed);
        Timestamp::from_millis(self.machine().saturating_add(ahead))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default)]
    struct Hands(AtomicI64);

    impl Clock for Hands {
        fn now(&self) -> Timestamp {
            Timestamp::from_millis(self.0.load(Ordering::Relaxed))
        }
    }

    #[test]
    fn it_goes_by_the_database_and_not_by_the_way_there() {
        let hands = Arc::new(Hands::default());
        let clock = DatabaseClock::on(Arc::<Hands>::clone(&hands));
        let turn = |to| hands.0.store(to, Ordering::Relaxed);
        turn(10_000);
        assert_eq!(clock.now().as_millis(), 10_000);

        // An hour behind; the answer took 20 ms.
        let sent = clock.machine();
        turn(10_020);
        clock.hear(sent, 3_610_010);
        assert_eq!(clock.now().as_millis(), 3_610_020);

        // A slow answer says nothing more exact.
        let sent = clock.machine();
        turn(10_420);
        clock.hear(sent, 3_610_400);
        assert_eq!(clock.now().as_millis(), 3_610_420);

        // The machine's clock is put right.
        turn(3_610_500);
        let sent = clock.machine();
        clock.hear(sent, 3_610_500);
        assert_eq!(clock.now().as_millis(), 3_610_500);

        // It was set back while the question was on its way.
        turn(0);
        clock.hear(sent, 3_610_600);
        turn(3_610_700);
        assert_eq!(clock.now().as_millis(), 3_610_700);
    }
}
