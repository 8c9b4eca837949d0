//! From the JSON of 0.3 to the types of 1.0.

mod answers;
mod content;
mod push;
mod requests;
mod task;

use super::Dialect;
use crate::wire::Bounds;

pub use answers::{read_event, read_page, read_push, read_pushes, read_sent, read_task};
pub use push::{read_push_create, read_push_delete, read_push_get, read_push_list};
pub use requests::{read_cancel, read_get, read_list, read_send, read_subscribe};

/// How what is read is to be taken.
#[derive(Clone, Copy)]
struct Reader {
    dialect: Dialect,
    bounds: Bounds,
}

impl Reader {
    /// Reads what clients send.
    const fn of_requests(dialect: Dialect) -> Self {
        let bounds = Bounds::Request;
        Self { dialect, bounds }
    }

    /// Reads what agents answer.
    const fn of_answers(dialect: Dialect) -> Self {
        let bounds = Bounds::None;
        Self { dialect, bounds }
    }
}
