//! Where PostgreSQL lies, and a data folder to begin with.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use crate::{GUARDED_USER, PASSWORD, USER, process, target_folder};

/// How long another test may take to prepare what both need.
const PREPARE: Duration = Duration::from_secs(300);

/// The folder with `bin` and `lib`, if `cargo xtask postgres` has put it there.
#[must_use]
pub fn installed(target: &Path) -> Option<PathBuf> {
    let place = fs::read_to_string(target.join("tools/postgres/installed")).ok()?;
    let folder = PathBuf::from(place.lines().next()?);
    folder.join("bin/postgres").exists().then_some(folder)
}

/// The folder with `bin` and `lib`, installed if need be.
pub(crate) fn folder() -> PathBuf {
    let target = target_folder();
    if let Some(folder) = installed(&target) {
        return folder;
    }
    one_at_a_time(&target.join("postgres-install.lock"), || {
        if installed(&target).is_none() {
            let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
            let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
            let mut command = Command::new(cargo);
            command.args(["run", "--quiet", "--package", "xtask", "--", "postgres"]);
            let status = command.current_dir(workspace).status();
            assert!(
                status.is_ok_and(|status| status.success()),
                "PostgreSQL is missing; run `cargo xtask postgres`"
            );
        }
    });
    installed(&target).expect("PostgreSQL is missing; run `cargo xtask postgres`")
}

/// A fresh data folder, made once and then copied.
pub(crate) fn template() -> PathBuf {
    let folder = folder();
    let place = target_folder().join("tools/postgres-data");
    let template = place.join("template");
    if template.exists() {
        return template;
    }
    fs::create_dir_all(&place).expect("a folder for data");
    one_at_a_time(&place.join("lock"), || {
        if template.exists() {
            return;
        }
        let made = place.join(format!("made-{}", std::process::id()));
        fs::create_dir_all(&made).expect("a folder for data");
        process::give_away(&made);
        let data = made.join("data");
        let password = made.join("password");
        fs::write(&password, PASSWORD).expect("a file");
        let mut command = process::command(folder.join("bin/initdb"));
        command.arg("-D").arg(&data);
        command.args(["--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C"]);
        command.arg(format!("--username={USER}"));
        command.arg(format!("--pwfile={}", password.display()));
        let done = command.output().expect("initdb runs");
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
        // The one user is let in, the other has to say the word. SCRAM is what people have.
        let rules = format!(
            "host all {GUARDED_USER} 127.0.0.1/32 scram-sha-256\n\
             host all all 127.0.0.1/32 trust\n\
             host replication all 127.0.0.1/32 trust\n"
        );
        fs::write(data.join("pg_hba.conf"), rules).expect("a file");
        fs::rename(&data, &template).expect("the data is moved");
        fs::remove_dir_all(&made).expect("the rest is removed");
    });
    template
}

/// Does something while no other test does, by a folder that only one can make.
fn one_at_a_time(lock: &Path, action: impl FnOnce()) {
    struct Unlock<'a>(&'a Path);
    impl Drop for Unlock<'_> {
        fn drop(&mut self) {
            if fs::remove_dir(self.0).is_err() {
                // Somebody has cleaned up before us.
            }
        }
    }
    let begin = std::time::Instant::now();
    while fs::create_dir(lock).is_err() {
        assert!(
            begin.elapsed() < PREPARE,
            "{} is in the way",
            lock.display()
        );
        // A test that was killed leaves it behind.
        let made = fs::metadata(lock).and_then(|it| it.modified());
        #[expect(
            clippy::disallowed_methods,
            reason = "the age of a file is what is asked for"
        )]
        let now = SystemTime::now();
        if made.is_ok_and(|made| now.duration_since(made).is_ok_and(|age| age > PREPARE)) {
            fs::remove_dir(lock).ok();
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let _unlock = Unlock(lock);
    action();
}
