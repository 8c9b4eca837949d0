use serde_json::Value;

use crate::daemon::{Daemon, a2ad, fails, folder, run};

fn bearer(token: &str) -> String {
    format!("A2A-Version: 1.0\r\nAuthorization: Bearer {token}\r\n")
}

fn status(daemon: &Daemon, headers: &str) -> u16 {
    daemon.http("GET /tasks", headers, "").0
}

#[test]
fn tokens_are_made_listed_and_taken_back() {
    let folder = folder();
    let made = run(folder.path(), &["token", "create", "alice"]);
    assert!(made.status.success(), "{made:?}");
    let token = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    assert!(token.starts_with("a2ad_"));
    let words = [
        "token",
        "create",
        "ci",
        "--scope",
        "agents:echo",
        "--scope",
        "monitor",
        "--json",
    ];
    let made = run(folder.path(), &words);
    let made: Value = serde_json::from_slice(&made.stdout).unwrap();
    assert_eq!(made["name"], "ci");
    let listed = run(folder.path(), &["token", "list", "--json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(
        listed["tokens"][1]["scopes"],
        serde_json::json!(["agents:echo", "monitor"])
    );
    assert!(!listed.to_string().contains(&token[5..]));
    let listed = run(folder.path(), &["token", "list"]);
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.starts_with("alice\tagents\t20"), "{listed}");

    let daemon = Daemon::start(folder.path(), &[]);
    assert_eq!(status(&daemon, &bearer(&token)), 200);
    assert_eq!(status(&daemon, &bearer("a2ad_wrong")), 401);
    assert_eq!(status(&daemon, "A2A-Version: 1.0\r\n"), 401);

    let error = fails(&mut a2ad(folder.path(), &["token", "create", "alice"]), 1);
    assert!(error.contains("revoke it first"), "{error}");
    let error = fails(&mut a2ad(folder.path(), &["token", "revoke", "bob"]), 1);
    assert!(error.contains("there is no token `bob`"), "{error}");
    let error = fails(&mut a2ad(folder.path(), &["token", "create", "a b"]), 2);
    assert!(error.contains("is no name"), "{error}");
    let words = ["token", "create", "x", "--scope", "root"];
    let error = fails(&mut a2ad(folder.path(), &words), 2);
    assert!(error.contains("is no scope"), "{error}");
    assert!(
        run(folder.path(), &["token", "revoke", "alice"])
            .status
            .success()
    );
}

#[test]
fn credentials_come_from_flags_files_and_the_environment() {
    let flags = |words: &'static [&str]| (words, [("", ""); 2]);
    let one = |name, value| (&[][..], [(name, value), ("", "")]);
    let two = |first, second| (&[][..], [first, second]);
    let header = |line: &str| format!("A2A-Version: 1.0\r\n{line}\r\n");
    let cases = [
        (flags(&["--token", "hush"]), bearer("hush")),
        (flags(&["--token-file", "secret"]), bearer("hush")),
        (one("A2AD_TOKEN", "hush"), bearer("hush")),
        (one("IACCODE_A2A_HTTP_TOKEN", "hush"), bearer("hush")),
        (one("LECTIC_A2A_TOKEN", "hush"), bearer("hush")),
        (one("SB_SERVE_TOKEN", "hush"), header("X-SB-Token: hush")),
        (one("A2AD_API_KEY", "hush"), header("X-API-Key: hush")),
        (
            two(
                ("IACCODE_A2A_API_KEY", "hush"),
                ("IACCODE_A2A_API_KEY_HEADER", "X-Mine"),
            ),
            header("X-Mine: hush"),
        ),
        (
            two(
                ("A2AD_BASIC_USERNAME", "bob"),
                ("A2AD_BASIC_PASSWORD", "hush"),
            ),
            header("Authorization: Basic Ym9iOmh1c2g="),
        ),
    ];
    for ((words, variables), headers) in cases {
        let folder = folder();
        std::fs::write(folder.path().join("secret"), "hush\n").unwrap();
        let mut command = a2ad(folder.path(), &["serve", "--port", "0"]);
        command.args(words);
        for (name, value) in variables.into_iter().filter(|(name, _)| !name.is_empty()) {
            command.env(name, value);
        }
        let daemon = Daemon::spawn(&mut command);
        assert_eq!(status(&daemon, &headers), 200, "{command:?}");
        assert_eq!(status(&daemon, "A2A-Version: 1.0\r\n"), 401, "{command:?}");
    }
    let folder = folder();
    let mut half = a2ad(folder.path(), &["serve", "--port", "0"]);
    let error = fails(half.env("A2AD_BASIC_PASSWORD", "hush"), 2);
    assert!(
        error.contains("both a name and a password") && !error.contains("hush"),
        "{error}"
    );
}

/// Nothing is listened on, and nothing is begun.
#[test]
fn an_address_for_others_needs_authentication_or_a_word() {
    let folder = folder();
    let words = ["serve", "--listen", "0.0.0.0:0"];
    let error = fails(&mut a2ad(folder.path(), &words), 2);
    assert_eq!(
        error,
        "a2ad: refusing to listen on 0.0.0.0:0 without authentication: whoever can reach it could use the agents; make a token with `a2ad token create NAME`, or say --allow-unauthenticated"
    );
    assert!(!folder.path().join("a2ad-data").exists());
    // An address for documents, which no machine has: that it cannot be listened on shows that it was tried.
    let listen = ["serve", "--listen", "192.0.2.1:0"];
    for more in [&["--allow-unauthenticated"][..], &["--token", "hush"]] {
        let words: Vec<&str> = listen.iter().chain(more).copied().collect();
        let output = run(folder.path(), &words);
        let log = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{log}");
        let warned = log.contains("192.0.2.1:0 can use the agents: there is no authentication");
        assert_eq!(warned, more.len() == 1, "{log}");
    }
}

#[test]
fn a_secret_that_cannot_be_read_is_not_none() {
    use std::os::unix::ffi::OsStrExt as _;
    let folder = folder();
    for name in ["A2AD_TOKEN", "SB_SERVE_TOKEN", "A2AD_API_KEY"] {
        let mut serve = a2ad(folder.path(), &["serve", "--port", "0"]);
        serve.env(name, std::ffi::OsStr::from_bytes(b"hush\xff"));
        let error = fails(&mut serve, 2);
        assert!(
            error.contains(&format!("{name}: it is not UTF-8")),
            "{error}"
        );
        assert!(!error.contains("hush"), "{error}");
    }
}
