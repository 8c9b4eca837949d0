//! `a2ad config`: reads the configuration, prints its schema.

use a2ad_server::{Config, Server};

use crate::arguments::Place;
use crate::failure::{Exit, Failure};
use crate::{logs, settings, tell};

pub(crate) fn run(place: &Place) -> Result<(), Failure> {
    let settings = settings::read(place)?;
    logs::filter(&settings.config.log)?;
    let agents: Vec<String> = settings
        .config
        .agents
        .iter()
        .map(|agent| agent.id.to_string())
        .collect();
    Server::new(settings.config).check()?;
    let what = settings.file.map_or_else(
        || "no configuration file".to_owned(),
        |file| file.display().to_string(),
    );
    tell(&format!("{what}: ok, serves {}", agents.join(", ")));
    Ok(())
}

pub(crate) fn schema() -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(&Config::schema())
        .map_err(|error| Failure::new(Exit::Internal, error.into()))?;
    tell(&text);
    Ok(())
}
