//! `a2ad verify`: walks the database and says whether it is sound.

use std::path::Path;

use a2ad_server::{VerifyReport, verify};
use serde_json::json;

use crate::arguments::Verify;
use crate::failure::{Exit, Failure};
use crate::{settings, tell};

pub(crate) fn run(arguments: &Verify) -> Result<(), Failure> {
    let config = settings::read(&arguments.place)?.config;
    let Some(path) = config.database_path() else {
        let database = &config.database_url;
        return Err(Failure::new(
            Exit::Usage,
            anyhow::anyhow!("{database} is no SQLite file, and only those can be verified"),
        ));
    };
    let report = verify(&path)?;
    tell(&if arguments.json {
        for_programs(&path, &report)
    } else {
        for_people(&path, &report)
    });
    if report.is_sound() {
        Ok(())
    } else {
        let count = report.problem_count;
        let path = path.display();
        Err(Failure::new(
            Exit::Failure,
            anyhow::anyhow!("{path} is not sound ({count} found): restore a backup"),
        ))
    }
}

fn for_people(path: &Path, report: &VerifyReport) -> String {
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
        "{}: {verdict}; {tasks} tasks, {entries} entries, {bytes} bytes, {snapshots} snapshots, {turns} open turns",
        path.display()
    ));
    text
}

fn for_programs(path: &Path, report: &VerifyReport) -> String {
    let problems: Vec<_> = report
        .problems
        .iter()
        .map(|problem| json!({"task": problem.task, "entry": problem.entry, "what": problem.what}))
        .collect();
    json!({
        "database": path.display().to_string(),
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
