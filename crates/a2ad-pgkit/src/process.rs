//! Running PostgreSQL's programs, which refuse to run as root.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::{USER, binaries};

/// Who runs them if we are root: nobody.
const NOBODY: u32 = 65_534;

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|us| us.uid() == 0)
}

/// Gives a file or folder to whoever runs the server.
pub(crate) fn give_away(folder: &Path) {
    if is_root() {
        chown(folder, Some(NOBODY), Some(NOBODY)).expect("the folder is given away");
    }
}

/// Writes a file that only whoever runs the server can read.
pub(crate) fn write_private(file: &Path, text: &str) {
    fs::write(file, text).expect("a file");
    let mode = fs::Permissions::from_mode(0o600);
    fs::set_permissions(file, mode).expect("the file is private");
    give_away(file);
}

/// A program, run by somebody who is not root.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    for variable in [
        "PGHOST",
        "PGPORT",
        "PGUSER",
        "PGDATABASE",
        "PGPASSWORD",
        "PGOPTIONS",
    ] {
        command.env_remove(variable);
    }
    command.current_dir("/");
    command
}

/// Copies a folder, for whoever runs the server.
pub(crate) fn copy(from: &Path, to: &Path) {
    let status = command("cp").arg("-R").arg(from).arg(to).status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "data is copied"
    );
    let status = command("chmod").arg("700").arg(to).status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "data is private"
    );
}

/// Starts what its arguments say, tells its process id, and ends it when the input ends; ends with
/// it. Its first argument is a folder that goes then, or empty.
const WATCH: &str = r#"
folder=$1
shift
exec 3<&0 </dev/null
"$@" 3<&- & server=$!
trap '' INT TERM HUP
echo "$server"
exec >&-
{ read -r _ <&3; kill -INT "$server"; } 2>/dev/null & reader=$!
exec 3<&-
wait "$server"
kill -KILL "$reader" 2>/dev/null
[ -z "$folder" ] || rm -rf "$folder"
"#;

/// A running server. It does not outlive us, however we end.
#[derive(Debug)]
pub(crate) struct Server {
    watch: Child,
    pid: u32,
}

impl Server {
    /// Starts one. When it ends, `folder` is removed.
    pub(crate) fn start(arguments: Vec<String>, log: &Path, folder: Option<&Path>) -> Self {
        let log = fs::File::options().create(true).append(true).open(log);
        let mut command = command("sh");
        command.args(["-c", WATCH, "watch"]);
        command.arg(folder.unwrap_or(Path::new("")));
        command.arg(binaries::folder().join("bin/postgres"));
        command.args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(log.expect("a log"));
        let mut watch = command.spawn().expect("a shell");
        let output = watch.stdout.take().expect("its output");
        let mut line = String::new();
        let read = BufReader::new(output).read_line(&mut line);
        read.expect("the server's process id");
        Self {
            pid: line.trim().parse().expect("the server's process id"),
            watch,
        }
    }

    /// Waits until it takes questions; `false` if it will not.
    pub(crate) fn is_up(&mut self, port: u16, until: Instant) -> bool {
        let alive = |watch: &mut Child| matches!(watch.try_wait(), Ok(None));
        while Instant::now() < until && alive(&mut self.watch) {
            if simple_query(port, "postgres", "SELECT 1").is_ok() {
                // It could be another one's, if ours found the port taken.
                return alive(&mut self.watch);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    }

    /// Ends it with this signal, and waits for that.
    pub(crate) fn end(mut self, signal: &str) {
        let mut command = Command::new("kill");
        command.args(["-s", signal, &self.pid.to_string()]);
        let sent = command.stderr(Stdio::null()).status();
        sent.expect("kill runs");
        drop(self.watch.stdin.take());
        self.watch.wait().expect("the server ends");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.watch.stdin.take());
        self.watch.wait().ok();
    }
}

/// Asks the server something in its own protocol, version 3.0, and waits for the end of the answer.
pub(crate) fn simple_query(port: u16, database: &str, sql: &str) -> Result<(), String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).map_err(|it| it.to_string())?;
    let timeout = Some(Duration::from_secs(60));
    stream
        .set_read_timeout(timeout)
        .map_err(|it| it.to_string())?;
    let startup = format!("user\0{USER}\0database\0{database}\0\0");
    let mut message = 196_608_u32.to_be_bytes().to_vec();
    message.extend(startup.as_bytes());
    let mut bytes = (message.len() as u32 + 4).to_be_bytes().to_vec();
    bytes.extend(message);
    stream.write_all(&bytes).map_err(|it| it.to_string())?;
    until_ready(&mut stream)?;
    let mut bytes = vec![b'Q'];
    bytes.extend((sql.len() as u32 + 5).to_be_bytes());
    bytes.extend(sql.as_bytes());
    bytes.push(0);
    stream.write_all(&bytes).map_err(|it| it.to_string())?;
    until_ready(&mut stream)
}

fn until_ready(stream: &mut TcpStream) -> Result<(), String> {
    let mut wrong = None;
    loop {
        let mut head = [0; 5];
        if let Err(error) = stream.read_exact(&mut head) {
            return Err(wrong.unwrap_or_else(|| error.to_string()));
        }
        let [kind, length @ ..] = head;
        let length = (u32::from_be_bytes(length) as usize).saturating_sub(4);
        let mut body = vec![0; length];
        stream.read_exact(&mut body).map_err(|it| it.to_string())?;
        match kind {
            b'E' => wrong = Some(String::from_utf8_lossy(&body).replace('\0', " ")),
            b'Z' => return wrong.map_or(Ok(()), Err),
            _ => {}
        }
    }
}
