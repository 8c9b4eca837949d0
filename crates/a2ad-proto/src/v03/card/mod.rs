//! Cards of 0.3, and of both versions at once.

mod read;
mod schemes;
mod write;

pub use read::read_card;
pub use write::{write_card, write_hybrid_card};

/// Whether an interface's protocol version is 0.3 or one of its patches.
#[must_use]
pub fn is_v03(version: &str) -> bool {
    version
        .strip_prefix(super::VERSION)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}
