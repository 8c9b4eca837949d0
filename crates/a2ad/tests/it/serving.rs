use std::io::BufRead as _;

use serde_json::{Value, json};

use crate::daemon::{Daemon, a2ad, folder, message};

#[test]
fn the_banner_says_where_everything_is() {
    let folder = folder();
    let daemon = Daemon::start(folder.path(), &[]);
    let address = &daemon.address;
    assert!(address.starts_with("127.0.0.1:"));
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        daemon.banner,
        [
            format!("a2ad {version} listening on http://{address}"),
            "  agent  echo".to_owned(),
            format!("  card   http://{address}/.well-known/agent-card.json"),
            "  data   a2ad-data/a2ad.db (survives crashes and power cuts)".to_owned(),
        ]
    );
    let (status, card) = daemon.get("/.well-known/agent-card.json");
    let card: Value = serde_json::from_str(&card).unwrap();
    assert_eq!((status, &card["name"]), (200, &json!("Echo")));
    assert_eq!(
        card["supportedInterfaces"][0],
        json!({"url": format!("http://{address}/"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"})
    );
    assert_eq!(daemon.get("/readyz").0, 200);
}

/// the log says where the server is, one line per agent, and who gets in; as text and as JSON.
#[test]
fn r_03_the_log_says_where_the_agents_are() {
    let folder = folder();
    let config = "agents: [{id: one, echo: {}}, {id: two, echo: {}}]\nauth: {tokens: [{name: a, token: s3cret}]}\n";
    std::fs::write(folder.path().join("a2ad.yaml"), config).unwrap();
    for format in ["text", "json"] {
        let mut serve = a2ad(folder.path(), &["serve", "--port", "0"]);
        let daemon = Daemon::spawn(serve.env("A2AD_LOG_FORMAT", format));
        let address = daemon.address.clone();
        daemon.signal("-INT");
        let (code, log) = daemon.wait();
        assert_eq!(code, Some(0), "{log}");
        let message = |line: &str| match format {
            "json" => {
                let line: Value = serde_json::from_str(line).unwrap();
                let ours = line["target"] == "a2ad_server::announce";
                ours.then(|| line["message"].as_str().unwrap().to_owned())
            }
            _ => {
                let ours = line.split_once("a2ad_server::announce: ");
                ours.map(|(_, said)| said.to_owned())
            }
        };
        let said: Vec<String> = log.lines().filter_map(message).collect();
        assert_eq!(
            said,
            [
                format!("a2ad A2A server running on http://{address} (2 agent(s))"),
                format!("  - http://{address}/agents/one/.well-known/agent-card.json"),
                format!("  - http://{address}/agents/two/.well-known/agent-card.json"),
                "Auth: bearer token required, but not for agent cards and health".to_owned(),
            ]
        );
        assert!(!log.contains("s3cret"));
    }
}

#[test]
fn the_echo_agent_answers_with_what_it_is_told() {
    let folder = folder();
    let daemon = Daemon::start(folder.path(), &[]);
    let task = &daemon.call("SendMessage", &message("hello"))["task"];
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(task["artifacts"][0]["artifactId"], "response");
    assert_eq!(task["artifacts"][0]["parts"], json!([{"text": "hello"}]));

    let parts =
        json!([{"text": "a"}, {"data": {"n": 1}}, {"raw": "AAE=", "filename": "f"}, {"text": "b"}]);
    let params = json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": parts}});
    let task = &daemon.call("SendMessage", &params)["task"];
    assert_eq!(task["artifacts"][0]["parts"], json!([{"text": "a\nb"}]));
    assert_eq!(
        task["artifacts"][1]["parts"],
        json!([{"data": {"n": 1}}, {"raw": "AAE=", "filename": "f"}])
    );

    let task = &daemon.call("SendMessage", &message(""))["task"];
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
}

#[test]
fn the_slow_echo_streams_word_by_word() {
    let folder = folder();
    let config = "agents: [{id: slow, echo: {words: true, delay: 20ms}}]\n";
    std::fs::write(folder.path().join("a2ad.yaml"), config).unwrap();
    let daemon = Daemon::start(folder.path(), &[]);
    let lines: Vec<String> = std::io::BufReader::new(daemon.stream("one two three"))
        .lines()
        .map_while(Result::ok)
        .collect();
    let words: Vec<String> = lines
        .iter()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str::<Value>(data).unwrap())
        .filter_map(|event| {
            let text = &event["result"]["artifactUpdate"]["artifact"]["parts"][0]["text"];
            text.as_str().map(str::to_owned)
        })
        .collect();
    assert_eq!(words.concat(), "one two three");
    // Two words may share a commit on a busy machine, all three hardly.
    assert!(words.len() > 1, "{words:?}");
}

#[cfg(unix)]
#[test]
fn the_data_directory_is_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = folder();
    let data = folder.path().join("deep/er");
    let _daemon = Daemon::start(folder.path(), &["--data-dir", "deep/er"]);
    let mode = std::fs::metadata(&data).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let mode = std::fs::metadata(data.join("a2ad.db"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o077, 0);
}

#[test]
fn what_was_answered_survives_kill_9() {
    let folder = folder();
    let daemon = Daemon::start(folder.path(), &[]);
    let task = daemon.call("SendMessage", &message("remember me"))["task"].clone();
    let ask = json!({"id": task["id"]});
    let before = daemon.call("GetTask", &ask);
    daemon.kill();

    let daemon = Daemon::start(folder.path(), &[]);
    assert_eq!(daemon.call("GetTask", &ask), before);
}

#[test]
fn the_environment_chooses_the_address_and_the_log() {
    let folder = folder();
    let mut command = a2ad(folder.path(), &["serve"]);
    command.env("HOST", "localhost").env("PORT", "0");
    command.env("A2AD_LOG_FORMAT", "json");
    command.env("A2AD_PUBLIC_URL", "https://agents.example.com/");
    let daemon = Daemon::spawn(&mut command);
    assert!(daemon.banner[2].ends_with("https://agents.example.com/.well-known/agent-card.json"));
    assert_eq!(daemon.get("/livez").0, 200);
    daemon.signal("-INT");
    let (code, log) = daemon.wait();
    assert_eq!(code, Some(0));
    assert!(log.lines().count() >= 2, "{log}");
    for line in log.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        assert!(
            line["timestamp"].is_string() && line["message"].is_string(),
            "{line}"
        );
    }
}

#[test]
fn metrics_count_what_happens() {
    let folder = folder();
    let daemon = Daemon::start(folder.path(), &[]);
    daemon.call("SendMessage", &message("count me"));
    let (status, text) = daemon.get("/metrics");
    assert_eq!(status, 200);
    for line in [
        "a2ad_requests_total{binding=\"jsonrpc\",method=\"SendMessage\",outcome=\"ok\"} 1",
        "a2ad_tasks_ended_total{state=\"TASK_STATE_COMPLETED\"} 1",
        "# TYPE a2ad_commit_seconds histogram",
        // What has not happened yet is there to rise.
        "a2ad_attempts_broken_total{reason=\"lost\"} 0",
        "a2ad_snapshots_damaged_total 0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
}
