//! `a2ad context`: shows what was said in a conversation.

use a2ad_server::{ExportError, export_context};

use crate::arguments::{ContextCommand, Export};
use crate::failure::Failure;
use crate::{block_on, settings, tell};

pub(crate) fn run(command: &ContextCommand) -> Result<(), Failure> {
    match command {
        ContextCommand::Export(arguments) => export(arguments),
    }
}

fn export(arguments: &Export) -> Result<(), Failure> {
    let config = settings::read(&arguments.place)?.config;
    let Export {
        agent,
        context,
        owner,
        json,
        ..
    } = arguments;
    let exported = block_on(async {
        let exported = export_context(&config, agent, context, owner.as_deref()).await;
        exported.map_err(|error| match error {
            ExportError::Database(error) => error.into(),
            ExportError::Name(_) | ExportError::Several(_) => Failure::usage(error.to_string()),
            other => Failure::new(crate::failure::Exit::Failure, other.into()),
        })
    })?;
    tell(&if *json {
        exported.json().to_string()
    } else {
        exported.markdown().trim_end().to_owned()
    });
    Ok(())
}
