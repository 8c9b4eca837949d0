//! Every way not to start: one line, and the right code.

use std::path::Path;

use crate::daemon::{Daemon, a2ad, fails, folder, message};

/// What `serve` says about this configuration.
fn refused(config: &str) -> String {
    let folder = folder();
    std::fs::write(folder.path().join("a2ad.yaml"), config).unwrap();
    let serve = fails(&mut a2ad(folder.path(), &["serve", "--port", "0"]), 2);
    let check = fails(&mut a2ad(folder.path(), &["config", "check"]), 2);
    assert_eq!(serve, check);
    assert!(!folder.path().join("a2ad-data").exists());
    serve
}

#[test]
fn a_wrong_configuration_is_named_with_line_and_suggestion() {
    assert_eq!(
        refused("limits:\n  bdoy: 1MiB\nagents: [{id: a, echo: }]\n"),
        "a2ad: a2ad.yaml:2: limits: unknown key `bdoy`; did you mean `body`?"
    );
    assert_eq!(
        refused("drain: soon\nagents: [{id: a, echo: }]\n"),
        "a2ad: a2ad.yaml:1: drain: `soon` is not a duration; write it like 500ms, 5s, 10m, 1h30m or 30d"
    );
    assert_eq!(
        refused("public_url: ${A2AD_TEST_NOWHERE}\n"),
        "a2ad: a2ad.yaml:1: the environment variable `A2AD_TEST_NOWHERE` is not set; set it, or write ${A2AD_TEST_NOWHERE:-default}"
    );
    assert!(
        refused("log: {level: loud}\nagents: [{id: a, echo: }]\n").contains("log.level: `loud`")
    );
    assert!(refused("agents: [").starts_with("a2ad: a2ad.yaml:"));
}

#[test]
fn a_configuration_without_agents_is_an_error() {
    for config in ["", "agents: []\n", "listen: 127.0.0.1:0\n"] {
        let error = refused(config);
        assert!(
            error.starts_with("a2ad: No A2A agents configured"),
            "{error}"
        );
    }
    let error = refused("agents: [{id: a, echo: }, {id: a, echo: }]\n");
    assert_eq!(
        error,
        "a2ad: Duplicate agent id `a`: give every agent an id of its own"
    );
    let error = refused("agents: [{id: tasks, echo: }]\n");
    assert!(error.contains("`tasks` is reserved"), "{error}");
    let error = refused("agents: [{id: a, card: none.yaml, echo: }]\n");
    assert!(
        error.starts_with("a2ad: Unable to read agent card file 'none.yaml': "),
        "{error}"
    );
}

#[test]
fn a_configuration_that_is_not_there_is_an_error() {
    let folder = folder();
    let error = fails(&mut a2ad(folder.path(), &["serve", "-c", "none.yaml"]), 2);
    assert!(
        error.starts_with("a2ad: cannot read the configuration none.yaml: "),
        "{error}"
    );
}

#[test]
fn wrong_arguments_are_an_error() {
    let folder = folder();
    let error = fails(&mut a2ad(folder.path(), &["serve", "--prot", "1"]), 2);
    assert_eq!(
        error,
        "a2ad: unexpected argument '--prot' found; did you mean `--port`?"
    );
    assert!(fails(&mut a2ad(folder.path(), &[]), 2).contains("a command is needed"));
}

#[test]
fn a_taken_port_is_an_error() {
    let (first, second) = (folder(), folder());
    let daemon = Daemon::start(first.path(), &[]);
    let address = daemon.address.as_str();
    let error = fails(&mut a2ad(second.path(), &["serve", "--listen", address]), 3);
    assert!(
        error.starts_with(&format!("a2ad: cannot listen on {address} ("))
            && error.contains("--port"),
        "{error}"
    );
    assert!(!second.path().join("a2ad-data").exists());
}

#[test]
fn a_database_in_use_is_an_error() {
    let folder = folder();
    let daemon = Daemon::start(folder.path(), &[]);
    let error = fails(&mut a2ad(folder.path(), &["serve", "--port", "0"]), 4);
    assert!(error.contains("a2ad.db is in use"), "{error}");
    let error = fails(&mut a2ad(folder.path(), &["verify"]), 4);
    assert!(error.contains("a2ad.db is in use"), "{error}");
    // The first one has not noticed.
    daemon.call("SendMessage", &message("still there"));
}

/// Starts once, so that there is a database, and ends it.
fn used(folder: &Path) -> std::path::PathBuf {
    let daemon = Daemon::start(folder, &[]);
    daemon.call("SendMessage", &message("first"));
    daemon.signal("-INT");
    assert_eq!(daemon.wait().0, Some(0));
    folder.join("a2ad-data/a2ad.db")
}

#[test]
fn a_broken_database_is_an_error_and_left_alone() {
    let folder = folder();
    let path = used(folder.path());
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[..64].fill(b'!');
    std::fs::write(&path, &bytes).unwrap();
    let error = fails(&mut a2ad(folder.path(), &["serve", "--port", "0"]), 4);
    assert!(
        error.contains("a2ad.db is not a database of a2ad"),
        "{error}"
    );
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
}

#[test]
fn a_newer_database_is_an_error() {
    let folder = folder();
    let path = used(folder.path());
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute(
        "UPDATE meta SET value = 99 WHERE key IN ('schema', 'oldest_compatible')",
        [],
    )
    .unwrap();
    drop(db);
    let error = fails(&mut a2ad(folder.path(), &["serve", "--port", "0"]), 4);
    assert!(
        error.contains("schema 99") && error.contains("use a newer a2ad"),
        "{error}"
    );
}

#[test]
fn a_data_directory_that_cannot_be_made_is_an_error() {
    let folder = folder();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let words = ["serve", "--port", "0", "--data-dir", "file/data"];
    let error = fails(&mut a2ad(folder.path(), &words), 4);
    assert!(
        error.contains("cannot use the data directory file/data"),
        "{error}"
    );
}

#[cfg(unix)]
#[test]
fn a_read_only_database_is_an_error() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
    use std::os::unix::process::CommandExt as _;
    const NOBODY: u32 = 65534;
    let folder = folder();
    let path = used(folder.path());
    let mode = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let mut command = a2ad(folder.path(), &["serve", "--port", "0"]);
    // Permissions do not bind root, so somebody else has to try.
    if std::fs::metadata(folder.path()).unwrap().uid() == 0 {
        for path in [folder.path(), path.parent().unwrap(), &path] {
            chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        command.uid(NOBODY).gid(NOBODY);
        if command.arg("--help").output().is_err() {
            return; // Nobody may not even run the program where it was built.
        }
        command = a2ad(folder.path(), &["serve", "--port", "0"]);
        command.uid(NOBODY).gid(NOBODY);
    }
    std::fs::remove_file(path.with_extension("db.lock")).unwrap();
    mode(&path, 0o400);
    mode(path.parent().unwrap(), 0o500);
    let error = fails(&mut command, 4);
    mode(path.parent().unwrap(), 0o700);
    assert!(error.contains("a2ad.db cannot be written"), "{error}");
}
