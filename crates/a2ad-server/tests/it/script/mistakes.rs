//! What is wrong with a script is said with its line.

use a2ad_server::Config;
use a2ad_server::config::{Backend, Script, Source};

fn read(text: &str) -> Result<Config, a2ad_server::ConfigError> {
    Source::yaml("a.yaml", text).read(&|_| None)
}

/// The error of a script whose first line is line 4.
fn error(script: &str) -> String {
    let script = script.trim_matches('\n').replace('\n', "\n      ");
    let text = format!("agents:\n  - id: a\n    script:\n      {script}\n");
    read(&text).unwrap_err().to_string()
}

#[test]
fn each_mistake_is_named_with_its_line() {
    for (script, expected) in [
        (
            "otherwise:\n  - complete: Done\n  - wait: 1s",
            "a.yaml:6: agents[0].script.otherwise[1]: nothing can come after `complete`, which ends the turn",
        ),
        (
            "otherwise:\n  - compleet: Done",
            "a.yaml:5: agents[0].script.otherwise[0]: unknown key `compleet`; did you mean `complete`?",
        ),
        (
            "otherwise:\n  - answer: Hi",
            "a.yaml:5: agents[0].script.otherwise[0]: unknown key `answer`; known here: status, text, artifact, wait, ask, auth, message, complete, fail, reject, hold",
        ),
        (
            "otherwise:\n  - message: Hi\n  - complete:",
            "a.yaml:6: agents[0].script.otherwise[1]: nothing can come after `message`, which ends the turn",
        ),
        (
            "otherwise:\n  - message:",
            "a.yaml:5: agents[0].script.otherwise[0].message: a message has to say something; `complete:` ends without a word",
        ),
        (
            "otherwise:\n  - message: []",
            "a.yaml:5: agents[0].script.otherwise[0].message: a message has to say something; `complete:` ends without a word",
        ),
        (
            "otherwise:\n\n  - text: a\n    every: 1s",
            "a.yaml:6: agents[0].script.otherwise[0]: a step has exactly one key, so `every` is one too many; begin each step with a dash",
        ),
        (
            "otherwise:\n  - {}",
            "a.yaml:5: agents[0].script.otherwise[0]: a step has exactly one key",
        ),
        (
            "otherwise:\n  - complete",
            "a.yaml:5: agents[0].script.otherwise[0]: expected a mapping with one key, such as `complete: Done`, found string \"complete\"",
        ),
        (
            "otherwise:\n  - artifact:\n      id: a\n      parts:\n        - text: a\n        - filename: x",
            "a.yaml:9: agents[0].script.otherwise[0].artifact.parts[1]: a part needs one of text, raw, url, data",
        ),
        (
            "otherwise:\n  - complete:\n      - {text: a, url: b}",
            "a.yaml:6: agents[0].script.otherwise[0].complete[0]: a part has only one of text, raw, url, data",
        ),
        (
            "otherwise:\n  - complete:\n      - media-type: x/y\n        raw: '%'",
            "a.yaml:7: agents[0].script.otherwise[0].complete[0].raw: not base64; `base64 <file>` writes it, and `text` needs none",
        ),
        (
            "otherwise:\n  - wait: 2",
            "a.yaml:5: agents[0].script.otherwise[0].wait: `2` is not a duration; write it like 500ms, 5s, 10m, 1h30m or 30d",
        ),
        (
            "otherwise:\n  - text:\n      deltas: [a]\n      every: often",
            "a.yaml:7: agents[0].script.otherwise[0].text.every: `often` is not a duration; write it like 500ms, 5s, 10m, 1h30m or 30d",
        ),
        (
            "otherwise:\n  - text: {every: 1s}",
            "a.yaml:5: agents[0].script.otherwise[0].text: either `deltas` or `words` has to say the text",
        ),
        (
            "otherwise:\n  - text: {text}",
            "a.yaml:5: agents[0].script.otherwise[0].text: unknown key `text`; known here: deltas, words, every, flush",
        ),
        (
            "otherwise:\n  - artifact: {id: a}",
            "a.yaml:5: agents[0].script.otherwise[0].artifact: an artifact needs `parts` or `chunks`",
        ),
        (
            "otherwise:\n  - artifact: {id: a, parts: [x], chunks: [[y]]}",
            "a.yaml:5: agents[0].script.otherwise[0].artifact: an artifact has either `parts` or `chunks`",
        ),
        (
            "otherwise:\n  - artifact: {id: a, chunks: [[x], []]}",
            "a.yaml:5: agents[0].script.otherwise[0].artifact: an artifact needs at least one part, and so does each chunk",
        ),
        (
            "otherwise:\n  - artifact: {parts: [x]}",
            "a.yaml:5: agents[0].script.otherwise[0].artifact: the key `id` is missing",
        ),
        (
            "otherwise:\n  - hold: false",
            "a.yaml:5: agents[0].script.otherwise[0].hold: `hold` can only be true",
        ),
        (
            "otherwise: []",
            "a.yaml:4: agents[0].script.otherwise: there is no step; `- complete:` completes without a word",
        ),
        (
            "rules: []\notherwise: [complete: ]",
            "a.yaml:4: agents[0].script.rules: there is no rule; leave out `rules` if `otherwise` says it all",
        ),
        (
            "{}",
            "a.yaml:4: agents[0].script: a script needs `rules` or `otherwise`",
        ),
        (
            "ruels: []",
            "a.yaml:4: agents[0].script: unknown key `ruels`; did you mean `rules`?",
        ),
        (
            "rules:\n  - when: {}\n    steps: [complete: ]",
            "a.yaml:5: agents[0].script.rules[0].when: there is no condition; `otherwise` is for all messages that no rule fits",
        ),
        (
            "rules:\n  - steps: [complete: ]",
            "a.yaml:5: agents[0].script.rules[0]: the key `when` is missing",
        ),
        (
            "rules:\n  - when: {text: x}",
            "a.yaml:5: agents[0].script.rules[0]: the key `steps` is missing",
        ),
        (
            "rules:\n  - when:\n      mesage-id: x\n    steps: [complete: ]",
            "a.yaml:6: agents[0].script.rules[0].when: unknown key `mesage_id`; did you mean `message_id`?",
        ),
        (
            "rules:\n  - when: {turn: last}\n    steps: [complete: ]",
            "a.yaml:5: agents[0].script.rules[0].when.turn: unknown value `last`; known here: first, later",
        ),
        (
            "rules:\n  - when: {text: []}\n    steps: [complete: ]",
            "a.yaml:5: agents[0].script.rules[0].when.text: the list is empty",
        ),
        (
            "rules:\n  - when: [x]\n    steps: [complete: ]",
            "a.yaml:5: agents[0].script.rules[0].when[0]: expected a mapping, found a text",
        ),
        (
            "rules:\n  - name: one\n    when: {after: two}\n    steps: [complete: ]",
            "a.yaml:4: agents[0].script: rules[0].when.after: no rule is named `two`; named are: one",
        ),
        (
            "rules:\n  - {name: one, when: {text: a}, steps: [complete: ]}\n  - {name: one, when: {text: b}, steps: [complete: ]}",
            "a.yaml:4: agents[0].script: rules[1].name: rules[0] is named `one` too",
        ),
    ] {
        assert_eq!(error(script), expected);
    }
}

#[test]
fn an_agent_has_one_back_end() {
    let text = "agents:\n  - id: a\n    echo:\n    script: {otherwise: [complete: ]}\n";
    assert_eq!(
        read(text).unwrap_err().to_string(),
        "a.yaml:2: agents[0]: the agent `a` needs exactly one back end; known: echo, script"
    );
}

#[test]
fn a_script_is_not_endless() {
    let steps = "  - status:\n".repeat(Script::STEPS_MAX + 1);
    assert!(
        error(&format!("otherwise:\n{steps}"))
            .ends_with("1001 steps are too many; 1000 are allowed")
    );
    let rules = "  - {when: {text: x}, steps: [complete: ]}\n".repeat(Script::RULES_MAX + 1);
    assert!(
        error(&format!("rules:\n{rules}")).ends_with("1001 rules are too many; 1000 are allowed")
    );
    let text = "x".repeat(Script::BYTES_MAX);
    assert!(error(&format!("otherwise: [complete: {text}]")).contains("more than the 8388608"));
}

#[test]
fn a_script_is_written_as_it_was_read() {
    let text = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/mock.yaml"
    ))
    .unwrap();
    let config = read(&text).unwrap();
    assert!(matches!(config.agents[0].backend, Some(Backend::Script(_))));
    // JSON is YAML.
    let written = serde_json::to_string_pretty(&config).unwrap();
    assert_eq!(read(&written).unwrap(), config);
}
