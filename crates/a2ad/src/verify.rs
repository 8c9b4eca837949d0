//! `a2ad verify`: walks the database and says whether it is sound.

use a2ad_server::{VerifyReport, verify_database};
use serde_json::json;

use crate::arguments::Verify;
use crate::failure::{Exit, Failure};
use crate::{block_on, settings, tell};

pub(crate) fn run(arguments: &Verify) -> Result<(), Failure> {
    let config = settings::read(&arguments.place)?.config;
    let report = block_on(async { Ok(verify_database(&config).await?) })?;
    let database = match config.database_path() {
        Some(path) => path.display().to_string(),
        None => config.database_url.to_string(),
    };
    tell(&if arguments.json {
        for_programs(&database, &report)
    } else {
        for_people(&database, &report)
    });
    if report.is_sound() {
        Ok(())
    } else {
        let count = report.problem_count;
        Err(Failure::new(
            Exit::Failure,
            anyhow::anyhow!(
                "{database} is not sound ({count} found): restore a backup, unless what is found says otherwise"
            ),
        ))
    }
}

fn for_people(database: &str, report: &VerifyReport) -> String {
    let VerifyReport {
        tasks,
        entries,
        bytes,
        snapshots,
        turns,
        problems,
        problem_count,
        ..
    } = report;
    let mut text: String = problems
        .iter()
        .map(|problem| format!("{problem}\n"))
        .collect();
    let listed = problems.len() as u64;
    if *problem_count > listed {
        text.push_str(&format!("and {} more\n", problem_count - listed));
    }
    let verdict = if report.is_sound() {
        "sound".to_owned()
    } else {
        format!("{problem_count} wrong")
    };
    text.push_str(&format!(
        "{database}: {verdict}; {tasks} tasks, {entries} entries, {bytes} bytes, {snapshots} snapshots, {turns} open turns"
    ));
    text
}

fn for_programs(database: &str, report: &VerifyReport) -> String {
    let problems: Vec<_> = report
        .problems
        .iter()
        .map(|problem| json!({"task": problem.task, "entry": problem.entry, "what": problem.what}))
        .collect();
    json!({
        "database": database,
        "sound": report.is_sound(),
        "tasks": report.tasks,
        "runs": report.runs,
        "entries": report.entries,
        "bytes": report.bytes,
        "snapshots": report.snapshots,
        "turns": report.turns,
        "problemCount": report.problem_count,
        "problems": problems,
    })
    .to_string()
}
