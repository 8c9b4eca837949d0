//! Protocol 0.3, line by line.

mod answers;
mod cards;
mod generations;
mod requests;
mod roundtrip;

use a2ad_proto::v03::Dialect;
use a2ad_proto::{Message, SendMessageRequest, Violations};

const BOTH: [Dialect; 2] = [Dialect::Kinds, Dialect::Proto];

/// The path and the description of the only thing wrong.
#[track_caller]
fn wrong<T: std::fmt::Debug>(read: Result<T, Violations>) -> (String, String) {
    let Violations(found) = read.unwrap_err();
    let [violation] = found.try_into().unwrap();
    (violation.field, violation.description)
}

#[track_caller]
fn message(request: SendMessageRequest) -> Message {
    request.message.unwrap()
}

fn text(json: Vec<u8>) -> String {
    String::from_utf8(json).unwrap()
}
