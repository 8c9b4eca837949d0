//! Requests whose content is in the query (REST-03, REST-04).
//!
//! A parameter is read as the member of the same name is in JSON, so that what is wrong with it is said in the same
//! words over every binding.

use std::fmt::Write as _;

use a2ad_proto::v03::{self, Dialect};
use a2ad_proto::{GetTaskRequest, ListTasksRequest, Violations, from_json};

use crate::percent::{Plus, decode};

/// A parameter: its name, and how its text becomes JSON.
type Parameter = (&'static str, Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Text, and times too.
    Text,
    Flag,
    /// A whole number in decimal digits.
    Number,
    /// The name or number of a value.
    Name,
}

const GET_TASK: [Parameter; 2] = [("tenant", Kind::Text), ("historyLength", Kind::Number)];

const LIST_TASKS: [Parameter; 8] = [
    ("tenant", Kind::Text),
    ("contextId", Kind::Text),
    ("status", Kind::Name),
    ("pageSize", Kind::Number),
    ("pageToken", Kind::Text),
    ("historyLength", Kind::Number),
    (AFTER, Kind::Text),
    ("includeArtifacts", Kind::Flag),
];

const AFTER: &str = "statusTimestampAfter";
/// What a client in use calls it.
const AFTER_ALIAS: &str = "lastUpdatedAfter";

/// The request for a task, but for its id.
///
/// # Errors
/// With every parameter that is malformed.
pub(super) fn get_task(query: Option<&str>) -> Result<GetTaskRequest, Violations> {
    read(query, &GET_TASK, from_json)
}

/// The request for a page of tasks.
///
/// # Errors
/// With every parameter that is malformed.
pub(super) fn list_tasks(query: Option<&str>) -> Result<ListTasksRequest, Violations> {
    read(query, &LIST_TASKS, from_json)
}

/// The same in the words of 0.3, which has none for a tenant: that is for the door to find.
///
/// # Errors
/// With every parameter that is malformed.
pub(super) fn list_tasks_v03(query: Option<&str>) -> Result<ListTasksRequest, Violations> {
    let parse = |json: &[u8]| v03::read_list(json, Dialect::Proto);
    let [_tenant, known @ ..] = &LIST_TASKS;
    read(query, known, parse)
}

fn read<T>(
    query: Option<&str>,
    known: &[Parameter],
    parse: impl Fn(&[u8]) -> Result<T, Violations>,
) -> Result<T, Violations> {
    let mut violations = Violations::default();
    let mut members = String::new();
    for parameter in known {
        match member(query.unwrap_or_default(), *parameter, &parse) {
            Ok(None) => {}
            Ok(Some(member)) => {
                let between = if members.is_empty() { "" } else { "," };
                let _infallible = write!(members, "{between}{member}");
            }
            Err(found) => violations.0.extend(found.0),
        }
    }
    if !violations.0.is_empty() {
        return Err(violations);
    }
    parse(format!("{{{members}}}").as_bytes())
}

/// A parameter as the member of an object, checked to be one that `T` takes; none if it is not given.
fn member<T>(
    query: &str,
    (name, kind): Parameter,
    parse: impl Fn(&[u8]) -> Result<T, Violations>,
) -> Result<Option<String>, Violations> {
    let mut given = values(query, name);
    let mut first = given.next();
    if given.next().is_some() {
        return Err(Violations::one(name, "given twice"));
    }
    if first.is_none() && name == AFTER {
        first = values(query, AFTER_ALIAS).next();
    }
    let Some(text) = first else {
        return Ok(None);
    };
    let Some(text) = decode(text, Plus::Space) else {
        return Err(Violations::one(name, "expected percent-encoded UTF-8"));
    };
    let member = format!("\"{name}\":{}", literal(&text, kind));
    match (kind, parse(format!("{{{member}}}").as_bytes())) {
        // JSON has more ways to write a whole number.
        (Kind::Number, Ok(_)) if !is_decimal(&text) => {
            Err(Violations::one(name, "expected a 32-bit integer"))
        }
        (_, Ok(_)) => Ok(Some(member)),
        (_, Err(violations)) => Err(violations),
    }
}

/// The raw values of a parameter. Names are compared as they are: none of ours needs encoding.
fn values<'a>(query: &'a str, name: &'static str) -> impl Iterator<Item = &'a str> {
    query
        .split('&')
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .filter(move |(key, _)| *key == name)
        .map(|(_, value)| value)
}

/// The JSON of a parameter. Text that is not what it should be becomes a string, which `T` then refuses.
fn literal(text: &str, kind: Kind) -> String {
    let is_literal = match kind {
        // ProtoJSON reads numbers from strings too, and there leading zeros are no error.
        Kind::Text | Kind::Number => false,
        Kind::Flag => matches!(text, "true" | "false"),
        Kind::Name => {
            text.len() < 10 && is_decimal(text) && (text == "0" || !text.starts_with('0'))
        }
    };
    if is_literal {
        text.to_owned()
    } else {
        serde_json::Value::from(text).to_string()
    }
}

fn is_decimal(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2ad_proto::TaskState;
    use proptest::prelude::*;

    fn list(query: &str) -> ListTasksRequest {
        list_tasks(Some(query)).unwrap_or_else(|error| panic!("{query}: {error}"))
    }

    fn wrong(query: &str) -> Vec<String> {
        let violations = list_tasks(Some(query)).expect_err(query);
        violations
            .0
            .into_iter()
            .map(|violation| violation.field)
            .collect()
    }

    /// REST-04.
    #[test]
    fn nothing_asked_is_nothing_set() {
        assert_eq!(list_tasks(None).unwrap(), ListTasksRequest::default());
        for query in [
            "",
            "&",
            "&&=&",
            "unknown=1",
            "page_size=x",
            "PageSize=x",
            "%zz=%zz",
            "tenant=",
        ] {
            assert_eq!(list(query), ListTasksRequest::default(), "{query}");
        }
        assert_eq!(
            get_task(Some("id=other")).unwrap(),
            GetTaskRequest::default()
        );
    }

    /// REST-03.
    #[test]
    fn every_parameter_is_read() {
        let query = "tenant=a&contextId=c%201+2&status=TASK_STATE_WORKING&pageSize=7&pageToken=%2B%3D&historyLength=0\
                     &statusTimestampAfter=2026-01-31T10%3A00%3A00%2B01:00&includeArtifacts=true&A2A-Version=1.0";
        let expected = ListTasksRequest {
            tenant: "a".to_owned(),
            context_id: "c 1 2".to_owned(),
            status: TaskState::Working,
            page_size: Some(7),
            page_token: "+=".to_owned(),
            history_length: Some(0),
            status_timestamp_after: Some("2026-01-31T09:00:00Z".parse().unwrap()),
            include_artifacts: Some(true),
        };
        assert_eq!(list(query), expected);
        assert_eq!(
            get_task(Some("historyLength=3")).unwrap().history_length,
            Some(3)
        );
        assert_eq!(list("status=3").status, TaskState::Completed);
        assert_eq!(list("status=0").status, TaskState::Unspecified);
        assert_eq!(list("pageSize=007").page_size, Some(7));
        // Whether that is too few is for the operation to say.
        assert_eq!(list("pageSize=-1").page_size, Some(-1));
        assert_eq!(
            list("includeArtifacts=false").include_artifacts,
            Some(false)
        );
    }

    /// REST-04.
    #[test]
    fn the_old_name_of_the_time_stands_in_for_the_new_one() {
        let time = Some("2026-01-31T09:00:00Z".parse().unwrap());
        let old = "lastUpdatedAfter=2026-01-31T09:00:00Z";
        assert_eq!(list(old).status_timestamp_after, time);
        let both = "lastUpdatedAfter=x&statusTimestampAfter=2026-01-31T09:00:00Z";
        assert_eq!(list(both).status_timestamp_after, time);
        assert_eq!(wrong("lastUpdatedAfter=x"), ["statusTimestampAfter"]);
    }

    /// REST-04.
    #[test]
    fn what_is_malformed_is_named() {
        for text in [
            "",
            "x",
            "1.0",
            "1e2",
            "+1",
            "%201",
            "2147483648",
            "0x1",
            "1,2",
            "٣",
        ] {
            assert_eq!(wrong(&format!("pageSize={text}")), ["pageSize"], "{text}");
        }
        assert_eq!(wrong("pageSize"), ["pageSize"]);
        for text in ["", "1", "TRUE", "yes", "\"true\""] {
            assert_eq!(
                wrong(&format!("includeArtifacts={text}")),
                ["includeArtifacts"],
                "{text}"
            );
        }
        for text in [
            "",
            "9",
            "-1",
            "00",
            "working",
            "task_state_working",
            "TASK_STATE_NONE",
        ] {
            assert_eq!(wrong(&format!("status={text}")), ["status"], "{text}");
        }
        for text in ["", "now", "2026-01-31", "2026-01-31T10:00:00+01:00"] {
            let query = format!("statusTimestampAfter={text}");
            assert_eq!(wrong(&query), ["statusTimestampAfter"], "{text}");
        }
        assert_eq!(wrong("contextId=%ff"), ["contextId"]);
        assert_eq!(wrong("pageToken=%"), ["pageToken"]);
        assert_eq!(wrong("pageSize=1&pageSize=1"), ["pageSize"]);
        // All of them at once.
        let query = "historyLength=x&status=y&unknown=z&pageSize=w";
        assert_eq!(wrong(query), ["status", "pageSize", "historyLength"]);
    }

    #[test]
    fn it_is_said_in_the_words_of_json() {
        for (query, json) in [
            ("pageSize=x", r#"{"pageSize":"x"}"#),
            ("status=NO", r#"{"status":"NO"}"#),
            ("includeArtifacts=1", r#"{"includeArtifacts":"1"}"#),
            ("statusTimestampAfter=x", r#"{"statusTimestampAfter":"x"}"#),
        ] {
            let other = from_json::<ListTasksRequest>(json.as_bytes()).unwrap_err();
            assert_eq!(list_tasks(Some(query)).unwrap_err(), other);
        }
    }

    proptest! {
        #[test]
        fn any_query_is_read_or_refused(query in "(&|=|%|[+]|status|pageSize|contextId|[0-9]|[^\0]){0,16}") {
            drop(list_tasks(Some(&query)));
            drop(get_task(Some(&query)));
        }

        /// REST-03.
        #[test]
        fn any_text_reaches_the_operation(text in any::<String>()) {
            let encoded: String = form_urlencoded::byte_serialize(text.as_bytes()).collect();
            prop_assert_eq!(list(&format!("contextId={encoded}")).context_id, text);
        }
    }
}
