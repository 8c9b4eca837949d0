//! The messages of `a2a.v1`, the schema of 0.3: its JSON on HTTP+JSON, its bytes on gRPC.
//!
//! These are nobody's types but this module's: values are made from those of 1.0 just before they are written, and
//! turned into them as soon as they are read. They have what later 0.3 stubs added to the schema of 0.3.0.
#![allow(
    unreachable_pub,
    reason = "the macros write types that everybody sees; these stay in here"
)]

mod blob;
mod enums;
mod message;
mod push;
mod requests;
mod task;

pub(super) use push::{
    CreateTaskPushNotificationConfigRequest, ListTaskPushNotificationConfigResponse,
    TaskPushNotificationConfig,
};
pub(super) use requests::SendMessageRequest;
pub(super) use task::{SendMessageResponse, StreamResponse, Task};
