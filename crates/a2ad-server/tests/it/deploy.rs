//! The files for deployment agree with the program, and with each other.

use std::time::Duration;

use a2ad_server::config::{Config, Database, Source};
use serde_json::Value;

use crate::documents::{as_json, root};

/// What the program reads from the environment besides its settings.
const OTHERS: [&str; 5] = [
    "A2AD_CONFIG",
    "A2AD_TOKEN",
    "A2AD_BASIC_USERNAME",
    "A2AD_BASIC_PASSWORD",
    "A2AD_API_KEY",
];

/// How long a server takes to stop besides `drain`: the notice, connections, the last commits.
const BESIDES_DRAIN: Duration = Duration::from_secs(5);

fn read(name: &str) -> String {
    std::fs::read_to_string(root().join("deploy").join(name)).unwrap()
}

fn compose() -> Value {
    as_json(&filled(&read("compose.yaml")))
}

/// The text with `word` in place of every `${NAME…}`.
fn filled(text: &str) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        filled.push_str(before);
        filled.push_str("word");
        rest = after.split_once('}').unwrap().1;
    }
    filled + rest
}

/// A configuration file with settings from the environment laid over it, as the program does.
fn configured(file: &str, environment: &[(String, String)]) -> Config {
    let mut source = Source::yaml("a2ad.yaml", file);
    for (name, value) in environment {
        let path = Config::SETTINGS
            .iter()
            .find(|path| *name == format!("A2AD_{}", path.join("_").to_uppercase()));
        match path {
            Some(path) => source = source.set(path, value, name),
            None => assert!(OTHERS.contains(&name.as_str()), "{name} is no setting"),
        }
    }
    source.read(&|_| None).unwrap()
}

/// `NAME=value` words of a file that begin with `A2AD_`.
fn variables(text: &str) -> Vec<(String, String)> {
    text.split_whitespace()
        .map(|word| word.trim_start_matches("Environment="))
        .filter(|word| word.starts_with("A2AD_"))
        .filter_map(|word| word.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

fn in_service(service: &Value) -> Vec<(String, String)> {
    let mut all = variables(&read("Dockerfile"));
    assert_eq!(all.len(), 3, "{all:?}");
    for (name, value) in service["environment"].as_object().unwrap() {
        all.push((name.clone(), value.as_str().unwrap().to_owned()));
    }
    all
}

fn seconds(text: &Value) -> Duration {
    let text = text.as_str().unwrap();
    Duration::from_secs(text.strip_suffix('s').unwrap().parse().unwrap())
}

#[test]
fn both_instances_read_what_they_are_told() {
    let compose = compose();
    let (one, other) = (
        &compose["services"]["a2ad-1"],
        &compose["services"]["a2ad-2"],
    );
    assert_eq!(one["environment"], other["environment"]);
    for service in [one, other] {
        let config = configured(&read("a2ad.yaml"), &in_service(service));
        assert!(matches!(config.database_url, Database::Postgres(_)));
        assert_eq!(config.listen.port, 41240);
        assert_eq!(config.data_dir.to_str(), Some("/data"));
        assert!(config.public_url.is_some());
        assert!(seconds(&service["stop_grace_period"]) > config.drain + BESIDES_DRAIN);
        assert_eq!(service["read_only"], true);
        let volumes = service["volumes"].as_array().unwrap();
        assert!(volumes.contains(&"a2ad:/data".into()));
        assert!(volumes.contains(&"./a2ad.yaml:/etc/a2ad/a2ad.yaml:ro".into()));
    }
}

#[test]
fn the_proxy_finds_the_instances_and_does_not_cut_their_calls() {
    let proxy = read("haproxy.cfg");
    let compose = compose();
    for name in ["a2ad-1", "a2ad-2"] {
        assert_eq!(compose["services"][name]["hostname"], name);
        let server = format!("server {name} {name}:41240");
        assert_eq!(proxy.matches(&server).count(), 2, "for HTTP and for gRPC");
    }
    assert!(proxy.contains("uri /readyz"));
    let published = &compose["services"]["proxy"]["ports"][0];
    assert_eq!(published, "127.0.0.1:41240:8080");
    assert!(proxy.contains("bind :8080"));
    let minutes = |name: &str| {
        let (_, value) = proxy.split_once(name).unwrap();
        let value = value.split_whitespace().next().unwrap();
        Duration::from_secs(60 * value.strip_suffix('m').unwrap().parse::<u64>().unwrap())
    };
    let config = Config::default();
    let deadline = config.agents[0].limits.deadline;
    assert!(minutes("timeout server") > deadline);
    assert!(minutes("timeout client") > deadline);
    assert!(proxy.contains("timeout http-keep-alive 50s"));
    assert!(config.limits.idle > Duration::from_secs(50));
    // Only what was not sent may be sent elsewhere.
    assert!(proxy.contains("retry-on conn-failure\n"));
}

#[test]
fn the_database_takes_the_connections_that_instances_need() {
    let compose = compose();
    let command = compose["services"]["postgres"]["command"].to_string();
    let (_, most) = command.split_once("max_connections=").unwrap();
    let most: u64 = most.split('"').next().unwrap().parse().unwrap();
    let needed = a2ad_store::PostgresOptions::at("").connections();
    assert_eq!(needed, 13, "the documentation says so");
    assert!(most >= 3 * needed + 10);
}

#[test]
fn the_unit_gives_the_server_its_folder_and_its_time() {
    let unit = read("a2ad.service");
    let config = configured(&read("a2ad.yaml"), &variables(&unit));
    assert_eq!(config.data_dir.to_str(), Some("/var/lib/a2ad"));
    let value = |key: &str| {
        let mut lines = unit.lines();
        let found = lines.find_map(|line| line.strip_prefix(&format!("{key}=")));
        found.unwrap_or_else(|| panic!("{key} is missing"))
    };
    let stop = Duration::from_secs(value("TimeoutStopSec").parse().unwrap());
    assert!(stop > config.drain + BESIDES_DRAIN);
    let files: u32 = value("LimitNOFILE").parse().unwrap();
    assert!(files > config.limits.connections + 1024);
    for (key, wanted) in [
        ("StateDirectory", "a2ad"),
        ("StateDirectoryMode", "0700"),
        ("ProtectSystem", "strict"),
        ("NoNewPrivileges", "yes"),
        ("RestartPreventExitStatus", "2"),
        ("ExecStart", "/usr/local/bin/a2ad serve"),
    ] {
        assert_eq!(value(key), wanted, "{key}");
    }
}

#[test]
fn the_image_is_built_with_the_compiler_that_is_needed_and_runs_as_nobody() {
    let image = read("Dockerfile");
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let (_, version) = manifest.split_once("rust-version = \"").unwrap();
    let version = version.split('"').next().unwrap();
    assert!(image.contains(&format!("FROM rust:{version}-")));
    assert!(image.contains("\nUSER 10001:10001\n"));
    assert!(image.contains("-o 10001 -g 10001 -m 0700 /data"));
    assert!(image.contains("\nVOLUME /data\n"));
}
