//! What a load counts while it runs. All of it is on one thread.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use crate::histogram::Histogram;

/// More errors than this, and there is no point in going on.
const ERRORS_MAX: u64 = 100;
/// As many are kept to be shown.
const ERRORS_SHOWN: usize = 3;

#[derive(Debug, Default)]
pub(crate) struct Meter {
    over: Cell<bool>,
    /// How many requests may still begin.
    left: Cell<Option<u64>>,
    errors: Cell<u64>,
    first_errors: RefCell<Vec<String>>,
    latencies: RefCell<Histogram>,
}

impl Meter {
    pub(crate) fn new(requests_max: Option<u64>) -> Self {
        let meter = Self::default();
        meter.left.set(requests_max);
        meter
    }

    /// Whether another request is to begin; counts it.
    pub(crate) fn begins(&self) -> bool {
        if self.over.get() {
            return false;
        }
        match self.left.get() {
            None => true,
            Some(0) => false,
            Some(left) => {
                self.left.set(Some(left - 1));
                true
            }
        }
    }

    pub(crate) fn succeeded(&self, took: Duration) {
        self.latencies.borrow_mut().record(took);
    }

    pub(crate) fn failed(&self, error: &anyhow::Error) {
        self.errors.set(self.errors.get() + 1);
        let mut first = self.first_errors.borrow_mut();
        if first.len() < ERRORS_SHOWN {
            first.push(format!("{error:#}"));
        }
        if self.errors.get() > ERRORS_MAX {
            self.over.set(true);
        }
    }

    /// Nothing begins any more.
    pub(crate) fn end(&self) {
        self.over.set(true);
    }

    /// Counts from here. Errors stay: one while warming up is one too.
    pub(crate) fn restart(&self) {
        self.latencies.borrow_mut().clear();
    }

    /// What was counted so far.
    pub(crate) fn latencies(&self) -> Histogram {
        self.latencies.borrow().clone()
    }

    pub(crate) fn errors(&self) -> (u64, Vec<String>) {
        (self.errors.get(), self.first_errors.borrow().clone())
    }
}
