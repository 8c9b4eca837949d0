//! `a2ad db` and `a2ad doctor`: from a file to a shared database, and what is said on the way.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use a2ad_pgkit::{Cluster, GUARDED_USER, PASSWORD};
use serde_json::{Value, json};

use crate::daemon::{Daemon, PATIENCE, a2ad, fails, folder, run};

const CONFIG: &str = "
agents:
  - id: parrot
    echo: {words: true}
  - id: slow
    echo: {delay: 3s}
  - id: mock
    script:
      rules:
        - when: {text: 'ask*'}
          steps: [ask: What for?]
        - when: {text: 'fail*'}
          steps: [fail: It did not work.]
      otherwise:
        - artifact: {id: a, parts: [{text: one}, {data: {two: 2}}]}
        - status: Nearly
        - complete: Done
";

fn on(url: &str, folder: &Path, words: &[&str]) -> Command {
    let mut command = a2ad(folder, words);
    command.env("A2AD_DATABASE_URL", url);
    command
}

fn output(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).output().unwrap()
}

fn serve(url: &str, folder: &Path) -> Daemon {
    Daemon::spawn(&mut on(url, folder, &["serve", "--port", "0"]))
}

fn answer(output: &Output) -> Value {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn post(daemon: &Daemon, agent: &str, headers: &str, method: &str, params: &Value) -> String {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let path = format!("POST /agents/{agent}");
    let (status, answer) = daemon.http(&path, headers, &body.to_string());
    assert_eq!(status, 200, "{answer}");
    answer
}

fn send(daemon: &Daemon, agent: &str, id: &str, text: &str, wait: bool) -> Value {
    let params = json!({
        "message": {"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}]},
        "configuration": {"returnImmediately": !wait},
    });
    let answer = post(daemon, agent, "", "SendMessage", &params);
    let answer: Value = serde_json::from_str(&answer).unwrap();
    answer["result"]["task"].clone()
}

/// The events of a stream without the chunks that HTTP makes of it.
fn events(stream: &str) -> Vec<&str> {
    let field = |line: &&str| line.starts_with("id:") || line.starts_with("data:");
    stream.lines().filter(field).collect()
}

/// All that a server says of these tasks.
fn told(daemon: &Daemon, tasks: &[(&str, String)]) -> Vec<String> {
    let mut told = Vec::new();
    for agent in ["parrot", "mock"] {
        let params = json!({"includeArtifacts": true, "historyLength": 10, "pageSize": 5});
        let page = post(daemon, agent, "", "ListTasks", &params);
        let read: Value = serde_json::from_str(&page).unwrap();
        told.push(page);
        let token = &read["result"]["nextPageToken"];
        let params = json!({"pageSize": 5, "pageToken": token});
        told.push(post(daemon, agent, "", "ListTasks", &params));
    }
    for (agent, id) in tasks {
        told.push(post(daemon, agent, "", "GetTask", &json!({"id": id})));
        let replay = "Last-Event-ID: 0\r\n";
        let params = json!({"id": id});
        let stream = post(daemon, agent, replay, "SubscribeToTask", &params);
        told.push(events(&stream).join("\n"));
    }
    told
}

#[test]
fn a_file_is_moved_to_a_shared_database_and_nobody_notices() {
    let folder = folder();
    std::fs::write(folder.path().join("a2ad.yaml"), CONFIG).unwrap();
    let daemon = Daemon::start(folder.path(), &[]);
    let mut tasks = Vec::new();
    for n in 0..8 {
        let task = send(&daemon, "parrot", &format!("p{n}"), "Say it again", true);
        tasks.push(("parrot", task["id"].as_str().unwrap().to_owned()));
        let words = ["ask", "fail", "go"][n % 3];
        let task = send(&daemon, "mock", &format!("m{n}"), words, true);
        if words != "ask" {
            tasks.push(("mock", task["id"].as_str().unwrap().to_owned()));
        }
    }
    let uuid = "0198a5b2-7c1e-7f3a-9d2e-3b1f5c7a9e10";
    let once = send(&daemon, "parrot", uuid, "Only once", true);
    let asked = send(&daemon, "mock", "q", "ask me", true);
    let before = told(&daemon, &tasks);
    // Two that are worked on when the server dies, and one in line behind the first.
    let slow = send(&daemon, "slow", "s", "Take your time", false);
    let context = &slow["contextId"];
    let params = json!({
        "message": {
            "messageId": "s2", "role": "ROLE_USER", "contextId": context,
            "parts": [{"text": "And again"}],
        },
        "configuration": {"returnImmediately": true},
    });
    let line: Value =
        serde_json::from_str(&post(&daemon, "slow", "", "SendMessage", &params)).unwrap();
    let line = line["result"]["task"]["id"].clone();
    // Nobody copies what a server has.
    let url = Cluster::shared().create();
    let error = fails(&mut on(&url, folder.path(), &["db", "copy"]), 4);
    assert!(error.contains("a2ad.db is in use"), "{error}");
    daemon.kill();

    let report = answer(&output(&mut on(
        &url,
        folder.path(),
        &["db", "copy", "--json"],
    )));
    assert_eq!(report["tasks"], 20, "{report}");
    assert_eq!(
        (&report["turns"], &report["turnsLeased"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(report["tasksBefore"], 0);
    let daemon = serve(&url, folder.path());
    let after = told(&daemon, &tasks);
    for (one, other) in before.iter().zip(&after) {
        assert_eq!(one, other);
    }
    // What is asked twice is carried out once.
    let again = send(&daemon, "parrot", uuid, "Only once", true);
    assert_eq!(again["id"], once["id"]);
    // A conversation goes on.
    let params = json!({
        "message": {
            "messageId": "q2", "role": "ROLE_USER", "taskId": asked["id"],
            "parts": [{"text": "for this"}],
        },
    });
    let went_on = post(&daemon, "mock", "", "SendMessage", &params);
    assert!(went_on.contains("TASK_STATE_COMPLETED"), "{went_on}");
    // And what was left is done.
    for id in [&slow["id"], &line] {
        let begin = Instant::now();
        loop {
            let task = post(&daemon, "slow", "", "GetTask", &json!({"id": id}));
            if task.contains("TASK_STATE_COMPLETED") {
                break;
            }
            assert!(begin.elapsed() < PATIENCE, "{task}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    // It may be looked at meanwhile.
    let verify = |words: &[&str]| output(&mut on(&url, folder.path(), words));
    let found = answer(&verify(&["verify", "--json"]));
    assert_eq!(found["sound"], true, "{found}");
    assert!(found["tasks"].as_u64() > Some(0), "{found}");
    // Not twice into the same, and not beside a server.
    let error = fails(&mut on(&url, folder.path(), &["db", "copy"]), 4);
    assert!(error.contains("has tasks already"), "{error}");
    daemon.signal("-INT");
    assert_eq!(daemon.wait().0, Some(0));
    // The file is as it was.
    let output = run(folder.path(), &["verify"]);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_copy_that_is_killed_goes_on_and_nobody_serves_from_half_of_it() {
    let folder = folder();
    std::fs::write(folder.path().join("a2ad.yaml"), CONFIG).unwrap();
    let daemon = Daemon::start(folder.path(), &[]);
    let long = "word ".repeat(400);
    for n in 0..700 {
        send(&daemon, "mock", &format!("m{n}"), &long, true);
    }
    let kept = send(&daemon, "parrot", "p", "Say it again", true);
    let kept = [("parrot", kept["id"].as_str().unwrap().to_owned())];
    let before = told(&daemon, &kept);
    daemon.signal("-INT");
    assert_eq!(daemon.wait().0, Some(0));

    let url = Cluster::shared().create();
    let mut halves = 0;
    for pause in 1..400 {
        let mut copying = on(&url, folder.path(), &["db", "copy"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(pause * 8));
        copying.kill().unwrap();
        copying.wait().unwrap();
        let status = answer(&output(&mut on(
            &url,
            folder.path(),
            &["db", "status", "--json"],
        )));
        if status["halfCopied"] == true {
            halves += 1;
            let error = fails(&mut on(&url, folder.path(), &["serve", "--port", "0"]), 4);
            assert!(error.contains("is half a copy"), "{error}");
            let words = ["doctor", "--json", "--port", "0"];
            let all = doctor(&mut on(&url, folder.path(), &words), 1);
            let (level, said) = found(&all, "database");
            assert!(level == "problem" && said.contains("run `a2ad db copy` again"));
        } else if status["taskCount"] != 0 {
            break;
        }
        if halves == 4 {
            break;
        }
    }
    assert!(halves > 0, "it was never killed in the middle");
    let copied = output(&mut on(&url, folder.path(), &["db", "copy"]));
    let error = String::from_utf8_lossy(&copied.stderr);
    if !error.contains("has tasks already") {
        assert!(copied.status.success(), "{error}");
        let text = String::from_utf8_lossy(&copied.stdout);
        assert!(
            text.contains("every hash compared\n  tasks     701, "),
            "{text}"
        );
    }
    let daemon = serve(&url, folder.path());
    assert_eq!(told(&daemon, &kept), before);
    daemon.kill();
    let status = answer(&output(&mut on(
        &url,
        folder.path(),
        &["db", "status", "--json"],
    )));
    assert_eq!(status["tasks"], json!({"TASK_STATE_COMPLETED": 701}));
    assert_eq!(status["halfCopied"], false);
}

#[test]
fn a_database_says_what_it_holds() {
    let folder = folder();
    fails(&mut a2ad(folder.path(), &["db", "status"]), 4);
    assert!(!folder.path().join("a2ad-data").exists());
    let daemon = Daemon::start(folder.path(), &[]);
    daemon.call("SendMessage", &crate::daemon::message("one"));
    let status = run(folder.path(), &["db", "status"]);
    let text = String::from_utf8(status.stdout).unwrap();
    assert!(
        text.starts_with("database   a2ad-data/a2ad.db\nserver     SQLite 3."),
        "{text}"
    );
    assert!(text.contains("\ntasks      1: 1 completed\n"), "{text}");
    assert!(text.contains("\nin use     yes"), "{text}");
    daemon.kill();
    let status = answer(&run(folder.path(), &["db", "status", "--json"]));
    assert_eq!(
        (&status["inUse"], &status["schema"]),
        (&json!(false), &json!(1))
    );

    let cluster = Cluster::shared();
    let url = cluster.create();
    let made = output(&mut on(&url, folder.path(), &["db", "migrate"]));
    let text = String::from_utf8(made.stdout).unwrap();
    assert!(text.ends_with(": made, with schema 1\n"), "{text}");
    let made = answer(&output(&mut on(
        &url,
        folder.path(),
        &["db", "migrate", "--json"],
    )));
    assert_eq!(
        (&made["from"], &made["changed"]),
        (&json!(1), &json!(false))
    );
    let daemon = serve(&url, folder.path());
    daemon.call("SendMessage", &crate::daemon::message("one"));
    let status = output(&mut on(&url, folder.path(), &["db", "status"]));
    let text = String::from_utf8(status.stdout).unwrap();
    assert!(text.contains("\nserver     PostgreSQL "), "{text}");
    assert!(text.contains("\ninstances  1\n  a2ad/"), "{text}");
    assert!(text.contains("  alive, began 20"), "{text}");
    daemon.kill();
}

#[test]
fn what_cannot_be_copied_is_said_without_a_password() {
    let folder = folder();
    let copy = |from: &str, to: &str, code| {
        let words = ["db", "copy", "--from", from, "--to", to];
        let error = fails(&mut a2ad(folder.path(), &words), code);
        assert!(!error.contains("sesame"), "{error}");
        error
    };
    let error = copy("none.db", "postgres://me:sesame@127.0.0.1:1/a", 4);
    assert!(error.contains("none.db"), "{error}");
    let error = copy("postgres://me:sesame@h/a", "postgres://me:sesame@h/b", 2);
    assert!(error.contains("--from: only SQLite files"), "{error}");
    let error = copy("none.db", "sqlite://b.db", 2);
    assert!(
        error.contains("--to: name a PostgreSQL database"),
        "{error}"
    );
    let error = fails(&mut a2ad(folder.path(), &["db", "copy"]), 2);
    assert!(
        error.contains("--to: name a PostgreSQL database"),
        "{error}"
    );
}

fn doctor(command: &mut Command, code: i32) -> Vec<(String, String, String)> {
    let output = output(command);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{output:?} {error}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["usable"], code == 0);
    let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
    let findings = report["findings"].as_array().unwrap().iter();
    findings
        .map(|it| {
            let said = format!("{} {}", text(&it["text"]), text(&it["advice"]));
            (text(&it["level"]), text(&it["subject"]), said)
        })
        .collect()
}

fn found<'a>(all: &'a [(String, String, String)], subject: &str) -> (&'a str, &'a str) {
    let one = all.iter().find(|it| it.1 == subject);
    let one = one.unwrap_or_else(|| panic!("nothing about {subject}: {all:?}"));
    (one.0.as_str(), one.2.as_str())
}

#[test]
fn the_doctor_finds_nothing_where_nothing_is_wrong_and_leaves_nothing_behind() {
    let folder = folder();
    let words = ["doctor", "--port", "0"];
    let output = run(folder.path(), &words);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(
        text.starts_with("ok       configuration   serves echo\n"),
        "{text}"
    );
    assert!(text.contains("ok       data directory  a2ad-data is made at the first start\n"));
    assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none());

    // With a server running, its address is its own.
    let daemon = Daemon::start(folder.path(), &[]);
    let address = daemon.address.clone();
    let words = ["doctor", "--json", "--listen", &address];
    let all = doctor(&mut a2ad(folder.path(), &words), 0);
    let (level, said) = found(&all, "address");
    assert!(
        level == "ok" && said.contains("by the server that runs here"),
        "{said}"
    );
    let (_, said) = found(&all, "database");
    assert!(said.contains("a server has it"), "{said}");
    daemon.kill();
}

#[test]
fn the_doctor_says_what_is_wrong() {
    let folder = folder();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let words = ["doctor", "--json", "--listen", &address];
    let all = doctor(&mut a2ad(folder.path(), &words), 1);
    let (level, said) = found(&all, "address");
    assert!(
        level == "problem" && said.contains("choose another with --port"),
        "{said}"
    );
    let error = fails(
        &mut a2ad(folder.path(), &["doctor", "--listen", &address]),
        1,
    );
    assert!(error.contains("1 problem found"), "{error}");

    let words = ["doctor", "--json", "--listen", "0.0.0.0:0"];
    let all = doctor(&mut a2ad(folder.path(), &words), 1);
    let problem = all.iter().find(|it| it.0 == "problem").unwrap();
    assert!(problem.2.contains("there is no authentication"), "{all:?}");

    std::fs::write(folder.path().join("a2ad.yaml"), "drain: soon\n").unwrap();
    let all = doctor(&mut a2ad(folder.path(), &["doctor", "--json"]), 1);
    let (level, said) = found(&all, "configuration");
    assert!(
        level == "problem" && said.contains("`soon` is not a duration"),
        "{said}"
    );
    std::fs::remove_file(folder.path().join("a2ad.yaml")).unwrap();

    std::fs::create_dir(folder.path().join("a2ad-data")).unwrap();
    std::fs::write(folder.path().join("a2ad-data/a2ad.db"), "something else").unwrap();
    let words = ["doctor", "--json", "--port", "0"];
    let all = doctor(&mut a2ad(folder.path(), &words), 1);
    let (level, said) = found(&all, "database");
    assert!(
        level == "problem" && said.contains("is not a database of a2ad"),
        "{said}"
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(folder.path().join("a2ad-data"), open).unwrap();
        let all = doctor(&mut a2ad(folder.path(), &words), 1);
        let (level, said) = found(&all, "data directory");
        assert!(level == "warning" && said.contains("chmod 700"), "{said}");
    }
}

#[test]
fn the_doctor_looks_at_a_shared_database() {
    let folder = folder();
    let cluster = Cluster::shared();
    let database = cluster.create_database();
    let url = cluster.url(&database);
    let words = ["doctor", "--json", "--port", "0"];
    let all = doctor(&mut on(&url, folder.path(), &words), 0);
    let (level, said) = found(&all, "database");
    assert!(
        level == "ok" && said.contains("they are made at the first start"),
        "{said}"
    );
    let daemon = serve(&url, folder.path());
    let address = daemon.address.clone();
    let words = ["doctor", "--json", "--listen", &address];
    let all = doctor(&mut on(&url, folder.path(), &words), 0);
    let (_, said) = found(&all, "database");
    assert!(said.contains("schema 1, 0 tasks, 1 instance"), "{said}");
    let (level, said) = found(&all, "connections");
    assert!(
        level == "ok" && said.contains("each instance needs 13"),
        "{said}"
    );
    assert!(found(&all, "clock").1.contains("that of the database"));
    assert!(found(&all, "latency").1.contains("an answer takes"));
    assert!(
        found(&all, "address")
            .1
            .contains("by the server that runs here")
    );
    // The tests' server is not one to trust.
    let (level, said) = found(&all, "settings");
    assert!(
        level == "warning" && said.contains("set fsync = on"),
        "{said}"
    );
    daemon.kill();

    let make = format!(
        "DO $$ BEGIN CREATE ROLE {GUARDED_USER} LOGIN PASSWORD '{PASSWORD}';
         EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"
    );
    cluster.sql("postgres", &make);
    let port = cluster.port();
    let wrong = format!(
        "postgres://{GUARDED_USER}:not%20sesame@127.0.0.1:{port}/{database}?sslmode=disable"
    );
    let words = ["doctor", "--json", "--port", "0"];
    let mut command = on(&wrong, folder.path(), &words);
    let said = output(&mut command);
    let said = format!("{said:?}");
    assert!(!said.contains("sesame"), "{said}");
    let all = doctor(&mut command, 1);
    let (level, said) = found(&all, "database");
    assert!(
        level == "problem" && said.contains("check user and password"),
        "{said}"
    );
}
