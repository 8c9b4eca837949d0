//! The wire format, rule by rule. Tests are named after the entries of the protocol checklist they show.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod arbitrary;
mod bounds;
mod card;
mod check;
mod errors;
mod ids;
mod json_rules;
mod json_text;
mod model;
#[cfg(feature = "protobuf")]
mod protobuf;
mod roundtrip;
#[cfg(feature = "protobuf")]
mod schema;
mod time;
mod v03;
#[cfg(feature = "protobuf")]
mod vectors;

use a2ad_proto::{Violations, from_json, to_json};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Reads `text` as a `T` and writes it again.
fn rewrite<T: DeserializeOwned + Serialize>(text: &str) -> String {
    let value: T = from_json(text.as_bytes()).unwrap();
    String::from_utf8(to_json(&value)).unwrap()
}

/// Checks that `text` is written as it was read.
#[track_caller]
fn unchanged<T: DeserializeOwned + Serialize>(text: &str) {
    assert_eq!(rewrite::<T>(text), text);
}

/// The path and the description of what is wrong with `text` as a `T`.
#[track_caller]
fn refused<T: DeserializeOwned>(text: &str) -> (String, String) {
    let Err(Violations(found)) = from_json::<T>(text.as_bytes()) else {
        panic!("accepted {text}");
    };
    let [violation] = found.try_into().unwrap();
    (violation.field, violation.description)
}
