//! Every configuration that is shown anywhere is read, and the schema agrees.

use std::path::{Path, PathBuf};

use a2ad_server::Server;
use a2ad_server::config::{Config, Source};
use serde_json::Value;

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(root().join(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    files.sort();
    files
}

/// All examples, and all YAML blocks of the documentation, with names.
fn shown() -> Vec<(String, String)> {
    let mut shown: Vec<(String, String)> = files("examples", "yaml")
        .into_iter()
        .map(|path| {
            let text = std::fs::read_to_string(&path).unwrap();
            (path.display().to_string(), text)
        })
        .collect();
    let pages = files("docs", "md")
        .into_iter()
        .chain(files("docs/adr", "md"));
    for page in pages.chain([root().join("README.md")]) {
        let text = std::fs::read_to_string(&page).unwrap();
        for (index, block) in text.split("```yaml\n").skip(1).enumerate() {
            let block = block.split("```").next().unwrap().to_owned();
            shown.push((format!("{} block {}", page.display(), index + 1), block));
        }
    }
    shown
}

#[test]
fn every_configuration_shown_can_be_served() {
    let shown = shown();
    assert!(shown.len() >= 5, "{shown:?}");
    for (name, text) in shown {
        let mut config = Source::yaml(&name, &text).read(&|_| None).unwrap();
        config.look_in(&root().join("examples"));
        Server::new(config)
            .check()
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[test]
fn the_schema_accepts_every_configuration_shown() {
    let schema = Config::schema();
    for (name, text) in shown() {
        let value = as_json(&text);
        let wrong = violations(&schema, &schema, &value, "");
        assert!(wrong.is_empty(), "{name}: {wrong:?}");
    }
}

#[test]
fn the_schema_refuses_what_is_refused() {
    let schema = Config::schema();
    for text in [
        "lisetn: 127.0.0.1:1",
        "drain: soon",
        "durability: fully",
        "limits: {body: much}",
        "limits: {connections: -1}",
        "agents: [{id: a}]",
        "agents: [{id: a, echo: {}, card: 5}]",
        "agents: [{id: a, echo: {}, expose: maybe}]",
        "agents: [{echo: {}}]",
        "agents: [{id: a, echo: {colour: red}}]",
        "agents: [{id: a, echo: {}, limits: {attempts: 0}}]",
        "agents: [{id: a, echo: {}, script: {otherwise: [complete: ]}}]",
        "agents: [{id: a, script: }]",
        "agents: [{id: a, script: {}}]",
        "agents: [{id: a, script: {rules: []}}]",
        "agents: [{id: a, script: {rules: [{when: {text: x}}]}}]",
        "agents: [{id: a, script: {rules: [{when: {}, steps: [complete: ]}]}}]",
        "agents: [{id: a, script: {rules: [{when: {colour: x}, steps: [complete: ]}]}}]",
        "agents: [{id: a, script: {rules: [{when: {turn: last}, steps: [complete: ]}]}}]",
        "agents: [{id: a, script: {otherwise: []}}]",
        "agents: [{id: a, script: {otherwise: [jump: high]}}]",
        "agents: [{id: a, script: {otherwise: [complete]}}]",
        "agents: [{id: a, script: {otherwise: [{status: a, complete: b}]}}]",
        "agents: [{id: a, script: {otherwise: [wait: soon]}}]",
        "agents: [{id: a, script: {otherwise: [message: ]}}]",
        "agents: [{id: a, script: {otherwise: [message: []]}}]",
        "agents: [{id: a, script: {otherwise: [hold: false]}}]",
        "agents: [{id: a, script: {otherwise: [text: {every: 1s}]}}]",
        "agents: [{id: a, script: {otherwise: [artifact: {id: a}]}}]",
        "agents: [{id: a, script: {otherwise: [artifact: {id: a, parts: []}]}}]",
        "agents: [{id: a, script: {otherwise: [artifact: {id: a, chunks: [[]]}]}}]",
        "agents: [{id: a, script: {otherwise: [complete: [{filename: x}]]}}]",
        "agents: [{id: a, script: {otherwise: [complete: [{text: x, url: y}]]}}]",
    ] {
        assert!(
            !violations(&schema, &schema, &as_json(text), "").is_empty(),
            "the schema takes {text}"
        );
        let read = Source::yaml("test", text).read(&|_| None);
        assert!(read.is_err(), "the reader takes {text}");
    }
}

#[test]
fn the_table_of_keys_is_complete() {
    let page = std::fs::read_to_string(root().join("docs/configuration.md")).unwrap();
    for path in Config::SETTINGS {
        let key = path.join(".");
        assert!(page.contains(&format!("| `{key}` | ")), "{key}");
    }
    for key in [
        "id",
        "name",
        "description",
        "version",
        "skills[]",
        "card",
        "expose",
        "streaming",
        "push",
        "extended_card",
        "echo.words",
        "echo.delay",
        "script.rules[]",
        "script.otherwise",
        "limits.running",
        "limits.context_turns",
        "limits.queue",
        "limits.max_tasks_per_context",
        "limits.deadline",
        "limits.attempts",
        "limits.backoff",
        "limits.cancel_grace",
        "policy",
        "limits.idempotency",
    ] {
        assert!(page.contains(&format!("| `agents[].{key}` | ")), "{key}");
    }
}

/// Enough of YAML for the configurations shown: scalars are what YAML's core schema makes of them.
pub(crate) fn as_json(text: &str) -> Value {
    use saphyr_parser::{Event, Parser};
    // As the reader does, `${` is made harmless first.
    let text = text
        .replace("${", "S")
        .replace(":-", "")
        .replace("41240}", "41240");
    let mut stack: Vec<(Value, Option<String>)> = Vec::new();
    let mut root = Value::Null;
    for event in Parser::new_from_str(&text) {
        let (event, _) = event.unwrap();
        let value = match event {
            Event::Scalar(text, style, ..) => {
                let plain = style == saphyr_parser::ScalarStyle::Plain;
                scalar(&text, plain)
            }
            Event::SequenceStart(..) => {
                stack.push((Value::Array(Vec::new()), None));
                continue;
            }
            Event::MappingStart(..) => {
                stack.push((Value::Object(serde_json::Map::new()), None));
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => stack.pop().unwrap().0,
            _ => continue,
        };
        match stack.last_mut() {
            None => root = value,
            Some((Value::Array(items), _)) => items.push(value),
            Some((Value::Object(members), key)) => match key.take() {
                None => *key = Some(value.as_str().unwrap().to_owned()),
                Some(key) => {
                    members.insert(key, value);
                }
            },
            Some(_) => unreachable!(),
        }
    }
    root
}

fn scalar(text: &str, plain: bool) -> Value {
    if !plain {
        return text.into();
    }
    match text {
        "" | "~" | "null" => Value::Null,
        "true" => true.into(),
        "false" => false.into(),
        _ => text
            .parse::<i64>()
            .map_or_else(|_| text.into(), Value::from),
    }
}

/// The part of JSON Schema that our schema uses.
fn violations(root: &Value, schema: &Value, value: &Value, at: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut no = |what: &str| wrong.push(format!("{at}: {what}"));
    if let Some(reference) = schema["$ref"].as_str() {
        let target = root.pointer(reference.trim_start_matches('#')).unwrap();
        wrong.extend(violations(root, target, value, at));
        return wrong;
    }
    let is = |kind: &str| match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("the schema has a type {other}"),
    };
    match &schema["type"] {
        Value::String(kind) if !is(kind) => no("type"),
        Value::Array(kinds) if !kinds.iter().any(|kind| is(kind.as_str().unwrap())) => no("type"),
        _ => {}
    }
    if let (Some(minimum), Some(number)) = (schema["minimum"].as_i64(), value.as_i64())
        && number < minimum
    {
        no("minimum");
    }
    // A regular expression is too much to bring for this; ours for durations and sizes begin with
    // a digit, and the others are tried by the reader.
    if let (Some(pattern), Some(text)) = (schema["pattern"].as_str(), value.as_str())
        && (pattern.starts_with("^([0-9]") || pattern.starts_with("^[0-9]"))
        && !text.starts_with(|c: char| c.is_ascii_digit())
    {
        no("pattern");
    }
    if schema
        .get("const")
        .is_some_and(|constant| constant != value)
    {
        no("const");
    }
    if let Some(choices) = schema["enum"].as_array()
        && !choices.contains(value)
    {
        no("enum");
    }
    for keyword in ["oneOf", "anyOf"] {
        if let Some(choices) = schema[keyword].as_array() {
            let fitting = choices
                .iter()
                .filter(|choice| violations(root, choice, value, at).is_empty())
                .count();
            if fitting == 0 || (keyword == "oneOf" && fitting > 1) {
                no(keyword);
            }
        }
    }
    let size = value.as_object().map(serde_json::Map::len);
    for (keyword, size) in [
        ("minProperties", size),
        ("minItems", value.as_array().map(Vec::len)),
    ] {
        if let (Some(minimum), Some(size)) = (schema[keyword].as_u64(), size)
            && (size as u64) < minimum
        {
            no(keyword);
        }
    }
    if let Some(members) = value.as_object() {
        for name in schema["required"].as_array().into_iter().flatten() {
            if !members.contains_key(name.as_str().unwrap()) {
                no(&format!("{name} is missing"));
            }
        }
        for (name, member) in members {
            let at = format!("{at}/{name}");
            let dashed = format!("^{name}$");
            let property = schema["properties"].get(name);
            match property.or_else(|| schema["patternProperties"].get(&dashed)) {
                Some(schema) => wrong.extend(violations(root, schema, member, &at)),
                None if schema["additionalProperties"] == false => {
                    wrong.push(format!("{at}: unknown"));
                }
                None => {}
            }
        }
    }
    if let (Some(items), Some(values)) = (schema.get("items"), value.as_array()) {
        for (index, value) in values.iter().enumerate() {
            wrong.extend(violations(root, items, value, &format!("{at}/{index}")));
        }
    }
    wrong
}
