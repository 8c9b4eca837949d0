//! Requests of 0.3 that came where 1.0 is spoken.

use serde_json::value::RawValue;

use super::raw::{Read, list, members, text, value};

/// What in a request that 1.0 could not read looks like protocol 0.3, in words for its sender.
#[must_use]
pub fn looks_like_v03(json: &[u8]) -> Option<&'static str> {
    let mut hint = None;
    // A request that cannot be read to the end may have shown what it is before.
    let seen = value(json).and_then(|request| look(request, &mut hint));
    drop(seen);
    hint
}

fn look(request: &RawValue, hint: &mut Option<&'static str>) -> Read<()> {
    members(request, |name, value| {
        match name {
            "message" => message(value, hint)?,
            "request" => {
                hint.get_or_insert("`request` is of protocol 0.3; 1.0 has `message`");
            }
            "configuration" => members(value, |name, _| {
                match name {
                    "blocking" => {
                        hint.get_or_insert(
                            "`configuration.blocking` is of protocol 0.3; 1.0 has `returnImmediately`, which says the opposite",
                        );
                    }
                    "pushNotificationConfig" => {
                        hint.get_or_insert(
                            "`configuration.pushNotificationConfig` is of protocol 0.3; 1.0 has `taskPushNotificationConfig`",
                        );
                    }
                    _ => {}
                }
                Ok(None)
            })?,
            "pushNotificationConfig" => {
                hint.get_or_insert(
                    "`pushNotificationConfig` is of protocol 0.3; 1.0 has its members beside `taskId`",
                );
            }
            "pushNotificationConfigId" => {
                hint.get_or_insert(
                    "`pushNotificationConfigId` is of protocol 0.3; 1.0 has `taskId` and `id`",
                );
            }
            _ => {}
        }
        Ok(None)
    })
}

fn message(value: &RawValue, hint: &mut Option<&'static str>) -> Read<()> {
    members(value, |name, value| {
        match name {
            "kind" => {
                hint.get_or_insert("`message.kind` is of protocol 0.3; 1.0 has no such member");
            }
            "role" if matches!(&*text(value)?, "user" | "agent") => {
                hint.get_or_insert("`message.role` is a word of protocol 0.3; 1.0 has `ROLE_USER`");
            }
            "parts" => parts(value, hint)?,
            "content" => {
                hint.get_or_insert("`message.content` is of protocol 0.3; 1.0 has `parts`");
            }
            _ => {}
        }
        Ok(None)
    })
}

/// The first part is as good as any.
fn parts(value: &RawValue, hint: &mut Option<&'static str>) -> Read<()> {
    let mut first = true;
    list(value, usize::MAX, |part| {
        if !std::mem::take(&mut first) {
            return Ok(());
        }
        members(part, |name, _| {
            match name {
                "kind" | "type" => {
                    hint.get_or_insert(
                        "parts with `kind` are of protocol 0.3; 1.0 has just their `text`, `raw`, `url` or `data`",
                    );
                }
                "file" => {
                    hint.get_or_insert(
                        "parts with `file` are of protocol 0.3; 1.0 has `raw` or `url`, with `filename` and `mediaType`",
                    );
                }
                _ => {}
            }
            Ok(None)
        })
    })
    .map(drop)
}
