use std::path::Path;
use std::time::Duration;

use super::*;

fn read(text: &str) -> Result<Config, ConfigError> {
    Source::yaml("a2ad.yaml", text).read(&|name| match name {
        "SET" => Some("value".to_owned()),
        "PORT_OF_CHOICE" => Some("8080".to_owned()),
        "EMPTY" => Some(String::new()),
        "TRICKY" => Some("x\nagents: []".to_owned()),
        _ => None,
    })
}

fn error(text: &str) -> String {
    read(text).unwrap_err().to_string()
}

#[test]
fn everything_can_be_written() {
    let config = read(
        "
listen: '[::1]:8080'
public-url: https://agents.example.com/
data_dir: /var/lib/a2ad
database_url: sqlite://tasks.db
durability: os
drain: 1m30s
log: {format: json, level: debug}
limits: {connections: 100, body: 1MiB, idle: 30s, stall: 20s, keep-alive: 5s}
retention:
  terminal: 1d
  interrupted: 12h
agents:
  - id: parrot
    name: Parrot
    description: Repeats.
    version: 1.0
    skills: [{id: repeat, name: Repeat, description: Says it again., tags: [fun]}]
    echo: {words: true, delay: 50ms}
    limits:
      running: 2
      context_turns: 3
      deadline: 5m
      attempts: 1
      idempotency: always
    policy: {on-restart: fail, end-state: input-required, fast_path: 5s}
",
    )
    .unwrap();
    assert_eq!(config.listen.to_string(), "[::1]:8080");
    assert_eq!(
        config.public_url.as_ref().map(PublicUrl::as_str),
        Some("https://agents.example.com")
    );
    assert_eq!(
        config.database_path().as_deref(),
        Some(Path::new("/var/lib/a2ad/tasks.db"))
    );
    assert_eq!(config.durability, Durability::Os);
    assert_eq!(config.drain, Duration::from_secs(90));
    assert_eq!(config.log.format, LogFormat::Json);
    assert_eq!(config.limits.body, 1 << 20);
    assert_eq!(config.limits.keep_alive, Duration::from_secs(5));
    assert_eq!(config.retention.interrupted, Duration::from_secs(12 * 3600));
    let agent = &config.agents[0];
    assert_eq!(agent.version.as_deref(), Some("1.0"));
    assert_eq!(
        agent.backend,
        Some(Backend::Echo(Echo::words(Duration::from_millis(50))))
    );
    assert_eq!(agent.policy.on_restart, Some(OnRestart::Fail));
    assert_eq!(agent.for_engine(&config.policy).tries_max, 1);
}

#[test]
fn an_agents_policy_goes_before_the_one_for_all_and_that_before_the_default() {
    use a2ad_core::behaviour;
    let config = read(
        "
policy: {reply: message, fast_path: 5s, on_busy: reject}
agents:
  - {id: one, echo: , policy: {on_busy: interrupt, fast_path: 0s, empty_input: input-required}}
  - {id: two, echo: }
",
    )
    .unwrap();
    let of = |at: usize| config.agents[at].for_engine(&config.policy).behaviour;
    let one = behaviour::Behaviour {
        reply: behaviour::Reply::Message,
        on_busy: behaviour::OnBusy::Interrupt,
        ..behaviour::Behaviour::default()
    };
    assert_eq!(of(0), one);
    let two = behaviour::Behaviour {
        reply: behaviour::Reply::Message,
        fast_path: Some(Duration::from_secs(5)),
        on_busy: behaviour::OnBusy::Reject,
        ..behaviour::Behaviour::default()
    };
    assert_eq!(of(1), two);
    let wrong = error("agents: [{id: a, echo: , policy: {on_busy: wait}}]");
    assert!(wrong.contains("queue, reject, interrupt"), "{wrong}");
}

#[test]
fn what_is_left_out_has_its_default() {
    let config = read("agents: [{id: parrot, echo: }]").unwrap();
    let default = Config::default();
    assert_eq!(config.listen, default.listen);
    assert_eq!(config.limits, default.limits);
    assert_eq!(config.agents[0].name, None);
    assert!(config.agents[0].expose);
    assert_eq!(
        config.agents[0].backend,
        Some(Backend::Echo(Echo::default()))
    );
}

#[test]
fn no_file_serves_the_echo_agent_and_an_empty_one_none() {
    let config = Source::none().read(&|_| None).unwrap();
    assert_eq!(config, Config::default());
    assert_eq!(config.agents.len(), 1);
    for text in [
        "",
        "# nothing\n",
        "agents:\n",
        "agents: []\n",
        "listen: localhost:1\n",
    ] {
        assert_eq!(read(text).unwrap().agents, [], "{text:?}");
    }
}

#[test]
fn an_unknown_key_is_named_with_its_line_and_a_suggestion() {
    assert_eq!(
        error("listen: localhost:1\nlimits:\n  bdoy: 1MiB\n"),
        "a2ad.yaml:3: limits: unknown key `bdoy`; did you mean `body`?"
    );
    assert_eq!(
        error("agents:\n  - id: a\n    echo:\n      colour: red\n"),
        "a2ad.yaml:4: agents[0].echo: unknown key `colour`; known here: words, delay"
    );
    assert_eq!(
        error("data-dri: x\n"),
        "a2ad.yaml:1: unknown key `data_dri`; did you mean `data_dir`?"
    );
    assert_eq!(
        error("durability: fully\n"),
        "a2ad.yaml:1: durability: unknown value `fully`; did you mean `full`?"
    );
}

#[test]
fn a_wrong_value_is_named_with_its_line() {
    for (text, expected) in [
        (
            "drain: 5\n",
            "a2ad.yaml:1: drain: `5` is not a duration; write it like 500ms, 5s, 10m, 1h30m or 30d",
        ),
        (
            "\nlimits: {connections: many}\n",
            "a2ad.yaml:2: limits.connections: expected a whole number from 0 on, found string \"many\"",
        ),
        (
            "limits: 5\n",
            "a2ad.yaml:1: limits: expected a mapping, found a text",
        ),
        (
            "listen: 41240\n",
            "a2ad.yaml:1: listen: `41240` is not an address; write it like 127.0.0.1:41240 or [::1]:41240",
        ),
        (
            "database_url: mysql://me:secret@host/db\n",
            "a2ad.yaml:1: database_url: no database is known as `mysql://`; write it like sqlite://a2ad.db or postgres://user@host/database",
        ),
        (
            "public_url: ftp://x\n",
            "a2ad.yaml:1: public_url: `ftp://x` is not a public address; write it like https://agents.example.com",
        ),
        (
            "agents:\n  - echo: {}\n",
            "a2ad.yaml:2: agents[0]: the key `id` is missing",
        ),
        (
            "agents:\n  - id: ../etc\n    echo: {}\n",
            "a2ad.yaml:2: agents[0].id: agent id contains a character other than letters, digits, '.', '_' and '-'",
        ),
        (
            "agents:\n\n  - id: a\n",
            "a2ad.yaml:3: agents[0]: the agent `a` needs exactly one back end; known: echo, script",
        ),
        (
            "agents:\n  - id: a\n    echo:\n    limits: {attempts: 0}\n",
            "a2ad.yaml:4: agents[0].limits.attempts: 0 would let nothing through; set at least 1",
        ),
        (
            "limits:\n  connections: 10\n  keep_alive: 0s\n",
            "a2ad.yaml:3: limits.keep_alive: 0 would let nothing through; set at least 1ms",
        ),
        (
            "limits: {body: 0}\n",
            "a2ad.yaml:1: limits.body: 0 would let nothing through; set at least 1KiB",
        ),
        (
            "drain: 1s\ndrain: 2s\n",
            "a2ad.yaml:2: the key `drain` stands twice (first on line 1)",
        ),
    ] {
        assert_eq!(error(text), expected);
    }
}

#[test]
fn broken_yaml_is_an_error_with_a_line() {
    for text in [
        "a: [",
        "a: {b",
        "\ta: 1",
        "a: b: c",
        "'",
        "- 1\n- 2\na: 1",
        "a: 1\n---\nb: 1\n",
    ] {
        assert!(
            error(text).starts_with("a2ad.yaml:"),
            "{text:?}: {}",
            error(text)
        );
    }
    let deep = "[".repeat(10_000);
    assert!(error(&deep).contains("a2ad.yaml:"));
}

#[test]
fn variables_are_filled_in_but_never_become_structure() {
    let agent = |description: &str| {
        let text = format!("agents: [{{id: a, echo: , description: {description}}}]\n");
        read(&text).map(|config| config.agents[0].description.clone().unwrap_or_default())
    };
    assert_eq!(agent("${SET}").unwrap(), "value");
    assert_eq!(agent("'a ${SET} b ${SET}'").unwrap(), "a value b value");
    assert_eq!(agent("${UNSET:-else}").unwrap(), "else");
    assert_eq!(agent("${EMPTY:-else}").unwrap(), "else");
    assert_eq!(agent("\"${EMPTY}\"").unwrap(), "");
    assert_eq!(agent("'$${SET}'").unwrap(), "${SET}");
    assert_eq!(agent("${TRICKY}").unwrap(), "x\nagents: []");
    assert_eq!(
        read("listen: 127.0.0.1:${PORT_OF_CHOICE}")
            .unwrap()
            .listen
            .port,
        8080
    );
    assert_eq!(
        error("\nlisten: ${NOWHERE}"),
        "a2ad.yaml:2: the environment variable `NOWHERE` is not set; set it, or write ${NOWHERE:-default}"
    );
    assert!(error("listen: '${not a name}'").contains("begins a variable"));
    assert!(read("# ${NOWHERE} in a comment\n").is_ok());
}

#[test]
fn aliases_work_but_cannot_explode() {
    let config = read("drain: &time 7s\nlimits: {idle: *time}\n").unwrap();
    assert_eq!(config.limits.idle, Duration::from_secs(7));
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..10 {
        let before = format!("*a{}, ", level - 1).repeat(10);
        bomb.push_str(&format!("a{level}: &a{level} [{before}]\n"));
    }
    assert!(error(&bomb).contains("too much is repeated by aliases"));
}

#[test]
fn settings_lie_over_the_file() {
    let source = Source::yaml("a2ad.yaml", "limits: {idle: 1s}\nlog: {level: warn}\n")
        .set(&["limits", "stall"], "3s", "A2AD_LIMITS_STALL")
        .set(&["log", "level"], "debug", "A2AD_LOG_LEVEL")
        .set(&["data_dir"], "first", "A2AD_DATA_DIR")
        .set(&["data_dir"], "second", "--data-dir");
    let config = source.read(&|_| None).unwrap();
    assert_eq!(config.limits.idle, Duration::from_secs(1));
    assert_eq!(config.limits.stall, Duration::from_secs(3));
    assert_eq!(config.log.level, "debug");
    assert_eq!(config.data_dir, Path::new("second"));

    let wrong = source.set(&["limits", "body"], "much", "A2AD_LIMITS_BODY");
    assert_eq!(
        wrong.read(&|_| None).unwrap_err().to_string(),
        "A2AD_LIMITS_BODY: `much` is not a size; write it like 4096, 512KiB or 16MiB"
    );
}

#[test]
fn every_scalar_outside_agents_is_a_setting() {
    let schema = Config::schema();
    let mut found = Vec::new();
    let object = |value: &serde_json::Value| {
        let reference = value.pointer("/$ref").and_then(|r| r.as_str());
        let target = reference.map_or(value, |r| schema.pointer(&r[1..]).unwrap());
        target.get("properties").cloned()
    };
    for (key, value) in schema["properties"].as_object().unwrap() {
        match object(value) {
            Some(inner) => {
                for (name, member) in inner.as_object().unwrap() {
                    // Lists of credentials and their names are no scalars.
                    let is_list = member["type"] == "array" || object(member).is_some();
                    if !is_list {
                        found.push(format!("{key}.{name}"));
                    }
                }
            }
            None if key == "agents" => {}
            None => found.push(key.clone()),
        }
    }
    let mut known: Vec<String> = Config::SETTINGS.iter().map(|path| path.join(".")).collect();
    found.sort();
    known.sort();
    assert_eq!(known, found);
}

#[test]
fn a_written_configuration_is_read_back() {
    let config = Config {
        public_url: Some("https://a.example".parse().unwrap()),
        ..Config::default()
    };
    // JSON is YAML.
    let text = serde_json::to_string_pretty(&config).unwrap();
    assert_eq!(read(&text).unwrap(), config);
}

#[test]
fn the_password_of_the_database_is_never_shown() {
    let config =
        read("database_url: postgres://me:sec%40ret@host:5433/db?sslmode=require\n").unwrap();
    assert_eq!(config.database_url.to_string(), "postgres://host:5433/db");
    assert!(!format!("{config:?}").contains("ret@"));
    assert_eq!(config.database_path(), None);
}
