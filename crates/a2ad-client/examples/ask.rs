//! Asks an agent something and prints its answer as it comes: `cargo run --example ask -- URL WORDS…`.
#![expect(clippy::print_stdout, reason = "it is a program")]

use a2ad_client::{Client, text};
use a2ad_proto::{Part, StreamResponse};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let url = words.next().ok_or("which agent?")?;
    let client = Client::connect(&url).await?;
    let mut events = client.stream(text(&words.collect::<Vec<_>>().join(" ")));
    while let Some(event) = events.next().await {
        if let StreamResponse::ArtifactUpdate(update) = event?.response {
            let parts = update.artifact.parts.iter();
            println!("{}", parts.filter_map(Part::as_text).collect::<String>());
        }
    }
    println!(
        "{:?}: {}",
        events.assembly().state(),
        events.assembly().text()
    );
    Ok(())
}
