//! Arbitrary values survive JSON; arbitrary text does no harm.

use std::fmt::Debug;

use a2ad_proto::{AgentCard, Json, StreamResponse, Timestamp, from_json, to_json};
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::arbitrary as any;

/// Value to text to value, and text to value to text: both must be identities.
fn through_json<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) {
    let text = to_json(value);
    let read: T = from_json(&text).unwrap();
    assert_eq!(&read, value);
    assert_eq!(to_json(&read), text);
    assert!(!text.contains(&b'\n'));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn stream_responses(value in any::stream_response()) {
        through_json(&value);
    }

    #[test]
    fn tasks(value in any::task()) {
        through_json(&value);
    }

    #[test]
    fn requests(send in any::send_request(), list in any::list_request(), push in any::push_config()) {
        through_json(&send);
        through_json(&list);
        through_json(&push);
    }

    #[test]
    fn list_responses(value in any::list_response()) {
        through_json(&value);
    }

    #[test]
    fn cards(value in any::card()) {
        through_json(&value);
    }

    #[test]
    fn timestamps(value in any::timestamp()) {
        prop_assert_eq!(value.to_string().parse::<Timestamp>(), Ok(value));
    }

    #[test]
    fn snake_case_and_whitespace_change_nothing(value in any::task()) {
        let tree: Value = serde_json::from_slice(&to_json(&value)).unwrap();
        let spaced = serde_json::to_string_pretty(&snake(tree)).unwrap();
        let read: a2ad_proto::Task = from_json(spaced.as_bytes()).unwrap();
        // Going through a tree sorts the members of free objects; compare as trees.
        let tree = |task| serde_json::from_slice::<Value>(&to_json(task)).unwrap();
        prop_assert_eq!(tree(&read), tree(&value));
    }

    #[test]
    fn json_text_agrees_with_serde_json(text in "[\\[\\]{}\",:0-9eE.+tfnrualse \\\\-]{0,24}") {
        let ours = Json::parse(&text).map(|json| json.to_value());
        let theirs = serde_json::from_str::<Value>(&text);
        prop_assert_eq!(ours.ok(), theirs.ok());
    }

    #[test]
    fn json_text_is_a_fixed_point(tree in any::tree()) {
        let pretty = serde_json::to_string_pretty(&tree).unwrap();
        let json = Json::parse(&pretty).unwrap();
        prop_assert_eq!(json.as_str(), tree.to_string());
        prop_assert_eq!(Json::parse(json.as_str()).unwrap(), json);
    }

    #[test]
    fn malformed_text_never_panics(value in any::stream_response(), at in 0.0..1.0_f64, byte in any::<u8>()) {
        let mut text = to_json(&value);
        let at = (at * text.len() as f64) as usize;
        text[at] = byte;
        drop(from_json::<StreamResponse>(&text));
        drop(from_json::<AgentCard>(&text));
        drop(from_json::<StreamResponse>(&text[..at]));
    }
}

/// Renames the members of tasks, messages, parts and artifacts, leaving free objects alone.
fn snake(tree: Value) -> Value {
    match tree {
        Value::Object(map) => {
            let rename = |(name, value): (String, Value)| {
                let value = if name == "metadata" || name == "data" {
                    value
                } else {
                    snake(value)
                };
                let name = name.chars().fold(String::new(), |mut out, c| {
                    if c.is_ascii_uppercase() {
                        out.push('_');
                    }
                    out.push(c.to_ascii_lowercase());
                    out
                });
                (name, value)
            };
            Value::Object(map.into_iter().map(rename).collect())
        }
        Value::Array(list) => list.into_iter().map(snake).collect(),
        other => other,
    }
}
