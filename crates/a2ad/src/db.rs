//! `a2ad db`: looks at a database, brings it up to date, moves it.

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use a2ad_server::config::{Config, Database, PostgresUrl};
use a2ad_server::{
    CopyProgress, CopyReport, InstanceStatus, Status, copy_database, database_status,
    migrate_database,
};
use serde_json::{Map, Value, json};

use crate::arguments::{Copy, DbCommand};
use crate::failure::Failure;
use crate::{block_on, settings, tell};

/// The file that there is where nothing is configured.
const FILE: &str = "a2ad.db";

/// How often it is said how far a copy is.
const OFTEN: Duration = Duration::from_millis(200);

pub(crate) fn run(command: &DbCommand) -> Result<(), Failure> {
    match command {
        DbCommand::Status(arguments) => {
            let config = settings::read(&arguments.place)?.config;
            let status = block_on(async { Ok(database_status(&config).await?) })?;
            tell(&if arguments.json {
                status_for_programs(&config, &status).to_string()
            } else {
                status_for_people(&config, &status)
            });
        }
        DbCommand::Migrate(arguments) => {
            let config = settings::read(&arguments.place)?.config;
            let migrated = block_on(async { Ok(migrate_database(&config).await?) })?;
            let (from, to) = (migrated.from, migrated.to);
            let database = shown(&config);
            tell(&if arguments.json {
                json!({"database": database, "from": from, "to": to, "changed": from != to})
                    .to_string()
            } else if from == to {
                format!("{database}: schema {to}, nothing to do")
            } else if from == 0 {
                format!("{database}: made, with schema {to}")
            } else {
                format!("{database}: schema {from} has become {to}")
            });
        }
        DbCommand::Copy(arguments) => copy(arguments)?,
    }
    Ok(())
}

/// What is configured, without a password.
fn shown(config: &Config) -> String {
    match config.database_path() {
        Some(path) => path.display().to_string(),
        None => config.database_url.to_string(),
    }
}

fn copy(arguments: &Copy) -> Result<(), Failure> {
    let config = settings::read(&arguments.place)?.config;
    let from = source(arguments, &config)?;
    let to = target(arguments, &config)?;
    let meter = Meter::new();
    let progress = |it| meter.show(it);
    let copied = block_on(async { Ok(copy_database(&config, &from, &to, &progress).await?) });
    meter.end();
    let report = copied?;
    tell(&if arguments.json {
        copy_for_programs(&from, &to, &report).to_string()
    } else {
        copy_for_people(&from, &to, &report)
    });
    Ok(())
}

/// The file that is named, configured, or there by default.
fn source(arguments: &Copy, config: &Config) -> Result<PathBuf, Failure> {
    let Some(text) = &arguments.from else {
        return Ok(config
            .database_path()
            .unwrap_or_else(|| config.data_dir.join(FILE)));
    };
    if !text.contains("://") {
        return Ok(PathBuf::from(text));
    }
    match text.parse::<Database>()? {
        Database::Sqlite(path) => Ok(config.data_dir.join(path)),
        _ => Err(Failure::usage(
            "--from: only SQLite files can be copied; write sqlite://FILE or FILE",
        )),
    }
}

/// The database that is named, or configured.
fn target(arguments: &Copy, config: &Config) -> Result<PostgresUrl, Failure> {
    let named = match &arguments.to {
        Some(text) => text.parse::<Database>()?,
        None => config.database_url.clone(),
    };
    match named {
        Database::Postgres(url) => Ok(url),
        _ => Err(Failure::usage(
            "--to: name a PostgreSQL database, as postgres://user@host/database, here or as `database_url`",
        )),
    }
}

/// Says on a terminal how far it is.
struct Meter {
    terminal: bool,
    last: Mutex<Option<Instant>>,
}

impl Meter {
    fn new() -> Self {
        Self {
            terminal: std::io::stderr().is_terminal(),
            last: Mutex::default(),
        }
    }

    fn show(&self, progress: CopyProgress) {
        if !self.terminal {
            return;
        }
        let CopyProgress {
            checking,
            tasks,
            of,
            ..
        } = progress;
        if let Ok(mut last) = self.last.lock() {
            let recent = last.is_some_and(|last| last.elapsed() < OFTEN);
            if recent && tasks < of {
                return;
            }
            *last = Some(Instant::now());
        }
        let done = if checking { "checked" } else { "copied" };
        let percent = (tasks * 100).checked_div(of).unwrap_or(100);
        eprint!("\r\x1b[K{tasks} of {of} tasks {done} ({percent} %)");
        let _unseen = std::io::stderr().flush();
    }

    fn end(&self) {
        if self.terminal {
            eprint!("\r\x1b[K");
        }
    }
}

fn copy_for_people(from: &Path, to: &PostgresUrl, report: &CopyReport) -> String {
    let CopyReport {
        tasks,
        tasks_before,
        runs,
        bytes,
        snapshots,
        turns,
        turns_leased,
        dead_turns,
        requests,
        ..
    } = report;
    let from = from.display();
    let mut text = format!(
        "{from} is now in {to}, every hash compared\n  tasks     {tasks}, of which {tasks_before} were there from a run before\n  journals  {runs} runs, {bytes} bytes; {snapshots} snapshots\n  turns     {turns} open, of which {turns_leased} were at work; {dead_turns} dead\n  requests  {requests}"
    );
    if report.snapshots_left_out > 0 {
        let count = report.snapshots_left_out;
        text.push_str(&format!(
            "\n  {count} damaged snapshots were left out; the journals tell the same"
        ));
    }
    text.push_str(&format!(
        "\nServe with this database_url from now on, and put {from} away: nothing goes back to it."
    ));
    text
}

fn copy_for_programs(from: &Path, to: &PostgresUrl, report: &CopyReport) -> Value {
    json!({
        "from": from.display().to_string(),
        "to": to.to_string(),
        "tasks": report.tasks,
        "tasksBefore": report.tasks_before,
        "runs": report.runs,
        "bytes": report.bytes,
        "snapshots": report.snapshots,
        "snapshotsLeftOut": report.snapshots_left_out,
        "turns": report.turns,
        "turnsLeased": report.turns_leased,
        "deadTurns": report.dead_turns,
        "requests": report.requests,
    })
}

fn status_for_people(config: &Config, status: &Status) -> String {
    let Status {
        server,
        schema,
        oldest_compatible,
        known,
        dead_turns,
        ..
    } = status;
    let mut lines = vec![
        format!("database   {}", shown(config)),
        format!("server     {server}"),
        match schema {
            0 => "schema     none yet: `a2ad db migrate` or `a2ad serve` makes it".to_owned(),
            _ => format!(
                "schema     {schema}, usable by a2ad that knows {oldest_compatible} or later; this one knows {known}"
            ),
        },
    ];
    if status.half_copied {
        lines.push("state      half a copy: run `a2ad db copy` again".to_owned());
    }
    if *schema > 0 && oldest_compatible <= known {
        let states = status.tasks.iter();
        let states = states.map(|(state, count)| format!("{count} {}", state_name(state.as_str())));
        let states: Vec<String> = states.collect();
        let total = status.task_count();
        let states = if states.is_empty() {
            String::new()
        } else {
            format!(": {}", states.join(", "))
        };
        lines.push(format!("tasks      {total}{states}"));
        let [waiting, ready, leased] = status.turns;
        lines.push(format!(
            "turns      {waiting} waiting, {ready} ready, {leased} leased, {dead_turns} dead"
        ));
    }
    lines.push(format!("size       {}", size(status.bytes)));
    if config.database_path().is_some() {
        let used = if status.in_use { "yes" } else { "no" };
        lines.push(format!("in use     {used}"));
    } else {
        lines.push(format!("instances  {}", status.instances.len()));
        lines.extend(status.instances.iter().map(instance_for_people));
    }
    let lines: Vec<String> = lines
        .iter()
        .map(|line| crate::failure::one_line(line))
        .collect();
    lines.join("\n")
}

fn instance_for_people(instance: &InstanceStatus) -> String {
    let InstanceStatus {
        name,
        opened_at,
        silent_ms,
        alive,
        ..
    } = instance;
    let seconds = silent_ms / 1_000;
    let state = if *alive { "alive" } else { "gone" };
    format!("  {name}  {state}, began {opened_at}, last heard of {seconds} s ago")
}

/// `TASK_STATE_INPUT_REQUIRED` as `input required`.
fn state_name(state: &str) -> String {
    let bare = state.strip_prefix("TASK_STATE_").unwrap_or(state);
    bare.to_lowercase().replace('_', " ")
}

fn size(bytes: u64) -> String {
    const STEP: u64 = 1 << 10;
    match bytes {
        0..STEP => format!("{bytes} bytes"),
        _ if bytes < STEP * STEP => format!("{} KiB", bytes / STEP),
        _ => format!("{} MiB", bytes / STEP / STEP),
    }
}

fn status_for_programs(config: &Config, status: &Status) -> Value {
    let tasks: Map<String, Value> = status
        .tasks
        .iter()
        .map(|(state, count)| (state.as_str().to_owned(), (*count).into()))
        .collect();
    let instances: Vec<Value> = status
        .instances
        .iter()
        .map(|it| {
            json!({
                "name": it.name, "openedAt": it.opened_at.to_string(),
                "beatAt": it.beat_at.to_string(), "silentMs": it.silent_ms, "alive": it.alive,
            })
        })
        .collect();
    let [waiting, ready, leased] = status.turns;
    json!({
        "database": shown(config),
        "server": status.server,
        "schema": status.schema,
        "oldestCompatible": status.oldest_compatible,
        "knownSchema": status.known,
        "usable": status.is_usable(),
        "halfCopied": status.half_copied,
        "taskCount": status.task_count(),
        "tasks": tasks,
        "turns": {
            "waiting": waiting, "ready": ready, "leased": leased, "dead": status.dead_turns,
        },
        "bytes": status.bytes,
        "inUse": status.in_use,
        "instances": instances,
    })
}
