//! What the peers have in common: the agent, described once, and how a peer is started.
//!
//! The first word of a message says what the agent does with it. Every peer, in every language,
//! emits the same events in the same order.

pub mod bare;


use tokio::net::TcpListener;

/// Everybody has the allocator that a2ad has.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Pieces of the artifact in a stream. With the task, `working` and `completed` it has 20 events.
pub const PIECES: usize = 17;

/// The task and `working` come at once in any case.
const UNPAUSED: usize = 2;

/// What a message asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// One artifact with the text of the message.
    Echo,
    /// An artifact in [`PIECES`] pieces, all at once.
    Burst,
    /// The same, but the agent lets others go on before each piece and before the end, so that each event may travel
    /// alone.
    Flush,
    /// To be worked on for good.
    Hold,
}

impl Wish {
    pub fn of(text: &str) -> Self {
        match text.split(' ').next() {
            Some("burst") => Self::Burst,
            Some("flush") => Self::Flush,
            Some("hold") => Self::Hold,
            _ => Self::Echo,
        }
    }

    /// Lets others go on, if that is wished for, before event `index` of a stream.
    pub async fn pause(self, index: usize) {
        if self == Self::Flush && index >= UNPAUSED {
            tokio::task::yield_now().await;
        }
    }
}

/// The text in piece `number` of the artifact; its `data` is `{"n": number, "text": …}`.
pub fn piece_text(number: usize) -> String {
    format!("piece {number:02} of the answer")
}

/// Listens where the first argument says, by default on any free port of the loopback interface.
pub async fn listen() -> std::io::Result<TcpListener> {
    let address = std::env::args().nth(1);
    TcpListener::bind(address.as_deref().unwrap_or("127.0.0.1:0")).await
}

/// Says where the JSON-RPC of this server is, which also says that it is ready.
pub fn say_ready(listener: &TcpListener, path: &str) -> std::io::Result<()> {
    println!("listening on http://{}{path}", listener.local_addr()?);
    Ok(())
}
