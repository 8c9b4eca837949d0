//! `a2ad doctor`: looks whether a server could serve here, and how well.

use a2ad_server::{Finding, Level, doctor};
use serde_json::json;

use crate::arguments::Doctor;
use crate::failure::{Exit, Failure};
use crate::{block_on, logs, settings, tell};

pub(crate) fn run(arguments: &Doctor) -> Result<(), Failure> {
    let read = settings::read_to_serve(&arguments.serve)
        .and_then(|settings| logs::filter(&settings.config.log).map(|_| settings));
    let found = match read {
        Ok(settings) => block_on(async { Ok(doctor(&settings.config).await) })?,
        Err(failure) => vec![Finding::problem("configuration", failure.to_string())],
    };
    let problems = found.iter().filter(|it| it.level == Level::Problem).count();
    if arguments.json {
        tell(&for_programs(&found, problems == 0));
    } else {
        found.iter().for_each(|it| tell(&for_people(it)));
    }
    match problems {
        0 => Ok(()),
        1 => Err(unusable("1 problem")),
        _ => Err(unusable(&format!("{problems} problems"))),
    }
}

fn unusable(count: &str) -> Failure {
    let error = anyhow::anyhow!("{count} found: a server could not serve like this");
    Failure::new(Exit::Failure, error)
}

const fn name(level: Level) -> &'static str {
    match level {
        Level::Ok => "ok",
        Level::Warning => "warning",
        Level::Problem => "problem",
    }
}

fn for_people(finding: &Finding) -> String {
    let Finding {
        level,
        subject,
        text,
        advice,
        ..
    } = finding;
    let advice = advice
        .as_ref()
        .map_or_else(String::new, |it| format!(": {it}"));
    crate::failure::one_line(&format!("{:8} {subject:15} {text}{advice}", name(*level)))
}

fn for_programs(found: &[Finding], usable: bool) -> String {
    let findings: Vec<_> = found
        .iter()
        .map(|it| {
            json!({
                "level": name(it.level), "subject": it.subject, "text": it.text,
                "advice": it.advice,
            })
        })
        .collect();
    json!({"usable": usable, "findings": findings}).to_string()
}
