use std::time::Duration;

/// How long and how much one exchange may take.
///
/// A large request and a slow reader are the caller's own: the first counts towards `head`, the second towards `total`
/// alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Resolving, connecting and the TLS handshake together. More than [`Limits::CONNECT_MAX`] is taken as that.
    pub connect: Duration,
    /// From the call to the head of the answer, connecting included.
    pub head: Duration,
    /// From asking for a piece of the body to its arrival. Pieces without a byte do not count.
    pub silence: Duration,
    /// From the call to the end of the body; none for streams that may stay open.
    pub total: Option<Duration>,
    /// Bytes of the body.
    pub answer_bytes_max: u64,
}

impl Limits {
    /// The longest that connecting ever takes.
    pub const CONNECT_MAX: Duration = Duration::from_secs(10);

    /// For a stream of events: no end in time or bytes, but no silence longer than `silence`.
    pub fn stream(silence: Duration) -> Self {
        Self {
            silence,
            total: None,
            answer_bytes_max: u64::MAX,
            ..Self::default()
        }
    }
}

/// For a call with a short answer: 10 s to connect, 30 s to the head and between pieces, 60 s in all, 1 MiB.
impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Self::CONNECT_MAX,
            head: Duration::from_secs(30),
            silence: Duration::from_secs(30),
            total: Some(Duration::from_secs(60)),
            answer_bytes_max: 1024 * 1024,
        }
    }
}
