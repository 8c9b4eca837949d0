//! `a2ad serve`: starts the server, says where it is, and stops it when told to.

use std::time::Duration;

use a2ad_server::config::Durability;
use a2ad_server::{Config, Handle, Server};
use anyhow::Context as _;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::arguments::Serve;
use crate::failure::{Exit, Failure};
use crate::{block_on, logs, settings, tell};

/// How long a balancer gets to notice that we are going, before we do.
const NOTICE: Duration = Duration::from_secs(1);

/// How long after a signal another of its kind is taken for the same.
const ECHO: Duration = Duration::from_millis(250);

pub(crate) fn run(arguments: &Serve) -> Result<(), Failure> {
    let settings = settings::read_to_serve(arguments)?;
    logs::start(&settings.config.log)?;
    block_on(serve(settings.config))
}

async fn serve(config: Config) -> Result<(), Failure> {
    // Before anything is said to be running, so that a signal right after the banner counts.
    let mut terminate = listen_for(SignalKind::terminate())?;
    let mut interrupt = listen_for(SignalKind::interrupt())?;
    let mut handle = Server::start(config.clone()).await?;
    tell(&banner(&config, &handle));

    tokio::select! {
        ended = handle.wait() => return Ok(ended?),
        _ = interrupt.recv() => tracing::info!("interrupted; stopping"),
        _ = terminate.recv() => {
            tracing::info!("asked to stop");
            handle.announce_stop();
            tokio::select! {
                () = tokio::time::sleep(NOTICE.min(config.drain)) => {}
                _ = interrupt.recv() => {}
                () = once_more(&mut terminate) => {}
            }
            // One that came during the notice has shortened it, or was the echo of the first.
            forget_pending(&mut terminate).await;
        }
    }
    handle.stop();
    tokio::select! {
        ended = handle.wait() => Ok(ended?),
        _ = interrupt.recv() => Err(hurried()),
        _ = terminate.recv() => Err(hurried()),
    }
}

/// Resolves at a second request to stop. Some supervisors signal the process and its group, so what
/// follows within a moment is the same request.
async fn once_more(signal: &mut Signal) {
    tokio::time::sleep(ECHO).await;
    forget_pending(signal).await;
    signal.recv().await;
}

async fn forget_pending(signal: &mut Signal) {
    while tokio::time::timeout(Duration::ZERO, signal.recv())
        .await
        .is_ok()
    {}
}

fn listen_for(kind: SignalKind) -> Result<Signal, Failure> {
    signal(kind)
        .context("listen for signals")
        .map_err(|error| Failure::new(Exit::Failure, error))
}

fn hurried() -> Failure {
    Failure::new(
        Exit::Failure,
        anyhow::anyhow!("stopped by a second signal; the next start takes up what was running"),
    )
}

fn banner(config: &Config, handle: &Handle) -> String {
    let agents: Vec<&str> = handle.agents().iter().map(|id| id.as_str()).collect();
    let agents = match agents.as_slice() {
        [only] => format!("agent  {only}"),
        [first, rest @ ..] => format!("agents {first} at /, and {} at /agents/…", rest.join(", ")),
        [] => String::new(),
    };
    let grpc = handle.grpc_addr();
    let grpc = grpc.map_or_else(String::new, |addr| format!("\n  grpc   {addr}"));
    let survives = match config.durability {
        Durability::Full => "survives crashes and power cuts",
        Durability::Os => "survives crashes; a power cut can lose the last answers",
    };
    let data = match config.database_path() {
        Some(path) => format!("{} ({survives})", path.display()),
        None => format!("{} (other instances may share it)", config.database_url),
    };
    format!(
        "a2ad {} listening on http://{}\n  {agents}\n  card   {}{grpc}\n  data   {data}",
        env!("CARGO_PKG_VERSION"),
        handle.addr(),
        handle.card_url(),
    )
}
