//! A socket with deadlines: for the first byte, for a head, between requests, and for a peer that does not read.
//!
//! hyper's own head deadline starts when it begins to wait, so it cannot tell a slow head from an idle connection,
//! and there is none for a peer that stops reading. Here both follow from what the socket sees.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::connection::Connection;
use super::scan::HeadScan;
use super::timer::Timer;
use crate::limits::Limits;

const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Which protocol a peer opened with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    /// HTTP/1.0 or 1.1, or something that is not HTTP at all.
    Http1,
    /// HTTP/2 with prior knowledge.
    Http2,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Nothing was ever read.
    Fresh,
    /// A head is coming in since then.
    Head(Instant),
    /// A request was answered and no further one has begun.
    Idle,
    /// HTTP/2: whoever drives the connection watches it.
    Unwatched,
}

/// A socket that fails with [`io::ErrorKind::TimedOut`] when its peer takes too long.
#[derive(Debug)]
pub(super) struct Guard<S> {
    socket: S,
    connection: Arc<Connection>,
    head: Duration,
    keep_alive: Duration,
    stall: Duration,
    phase: Phase,
    /// How many requests had begun when the phase began.
    begun: usize,
    read_by: Option<Instant>,
    write_by: Option<Instant>,
    timer: Timer,
    scan: HeadScan,
    /// What was read to learn the protocol and is still to be handed on.
    opening: [u8; PREFACE.len()],
    opening_len: usize,
    opening_taken: usize,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Guard<S> {
    /// Guards a socket just opened.
    pub(super) fn new(socket: S, connection: Arc<Connection>, limits: &Limits) -> Self {
        Self {
            socket,
            connection,
            head: limits.head,
            keep_alive: limits.keep_alive,
            stall: limits.stall,
            phase: Phase::Fresh,
            begun: 0,
            read_by: Some(Instant::now() + limits.first_byte),
            write_by: None,
            timer: Timer::default(),
            scan: HeadScan::default(),
            opening: [0; PREFACE.len()],
            opening_len: 0,
            opening_taken: 0,
        }
    }

    /// Reads just enough to know the protocol; the bytes are handed on by later reads.
    ///
    /// # Errors
    /// If the peer goes away, says nothing, or dawdles.
    pub(super) async fn protocol(&mut self) -> io::Result<Protocol> {
        std::future::poll_fn(|cx| self.poll_protocol(cx)).await
    }

    fn poll_protocol(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Protocol>> {
        loop {
            let known = &self.opening[..self.opening_len];
            if !PREFACE.starts_with(known) {
                return Poll::Ready(Ok(Protocol::Http1));
            }
            if known.len() == PREFACE.len() {
                self.phase = Phase::Unwatched;
                self.read_by = None;
                return Poll::Ready(Ok(Protocol::Http2));
            }
            let mut opening = self.opening;
            let mut room = ReadBuf::new(&mut opening[self.opening_len..]);
            ready!(self.poll_socket(cx, &mut room))?;
            let read = room.filled().len();
            if read == 0 {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
            self.opening = opening;
            self.opening_len += read;
        }
    }

    fn poll_socket(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        match Pin::new(&mut self.socket).poll_read(cx, buf) {
            Poll::Ready(Ok(())) => {
                self.heard(&buf.filled()[before..]);
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => {
                self.expect_more();
                self.poll_late(cx)
            }
        }
    }

    fn heard(&mut self, bytes: &[u8]) {
        // While a request is answered, what comes is its body or a request sent ahead of its turn.
        if matches!(self.phase, Phase::Unwatched) || self.connection.is_busy() {
            return;
        }
        let begun = self.connection.begun();
        if !matches!(self.phase, Phase::Head(_)) || self.begun != begun {
            self.phase = Phase::Head(Instant::now());
            self.begun = begun;
            self.scan = HeadScan::default();
        }
        self.connection.note_length(self.scan.feed(bytes));
    }

    /// Sets the deadline for the next bytes.
    fn expect_more(&mut self) {
        if matches!(self.phase, Phase::Unwatched) || self.connection.is_busy() {
            self.read_by = None;
            return;
        }
        let begun = self.connection.begun();
        match self.phase {
            Phase::Head(since) if self.begun == begun => self.read_by = Some(since + self.head),
            Phase::Fresh | Phase::Idle if self.begun == begun && self.read_by.is_some() => {}
            Phase::Fresh | Phase::Head(_) | Phase::Idle | Phase::Unwatched => {
                self.phase = Phase::Idle;
                self.begun = begun;
                self.read_by = Some(Instant::now() + self.keep_alive);
            }
        }
    }

    /// Fails if a deadline has passed; otherwise sees to it that the task is woken when one does.
    fn poll_late<T>(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        // The deadline of an idle read outlives its purpose when a request begins: hyper need not read meanwhile.
        let read_by = self.read_by.filter(|_| !self.connection.is_busy());
        let by = match (read_by, self.write_by) {
            (Some(read), Some(write)) => read.min(write),
            (Some(by), None) | (None, Some(by)) => by,
            (None, None) => return Poll::Pending,
        };
        ready!(self.timer.poll_until(by, cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    fn poll_wrote(
        &mut self,
        cx: &mut Context<'_>,
        wrote: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if wrote.is_ready() {
            self.write_by = None;
            return wrote;
        }
        let stall = self.stall;
        self.write_by.get_or_insert_with(|| Instant::now() + stall);
        self.poll_late(cx)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Guard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let opening = &this.opening[this.opening_taken..this.opening_len];
        if opening.is_empty() {
            return this.poll_socket(cx, buf);
        }
        let taken = opening.len().min(buf.remaining());
        buf.put_slice(&opening[..taken]);
        this.opening_taken += taken;
        // Together with what came behind them: given the first few bytes alone, hyper would double its buffer to have
        // room for as much again. An error will be there at the next read, too.
        if buf.remaining() > 0 {
            let _more: Poll<io::Result<()>> = this.poll_socket(cx, buf);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Guard<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.socket).poll_write(cx, buf);
        self.poll_wrote(cx, wrote)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.socket).poll_write_vectored(cx, bufs);
        self.poll_wrote(cx, wrote)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.socket).poll_flush(cx))?;
        // hyper may have asked for the next request while it still answered the last one, and will not ask again
        // until something comes: the flush after an answer is where a connection is seen to fall idle.
        self.expect_more();
        match self.poll_late(cx) {
            Poll::Ready(late) => Poll::Ready(late),
            Poll::Pending => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
    use tokio_util::sync::CancellationToken;

    fn guarded(buffer: usize) -> (Guard<DuplexStream>, DuplexStream, Arc<Connection>) {
        let connection = Connection::new(
            std::net::Ipv4Addr::LOCALHOST.into(),
            CancellationToken::new(),
        );
        let (ours, theirs) = duplex(buffer);
        let guard = Guard::new(ours, Arc::clone(&connection), &Limits::default());
        (guard, theirs, connection)
    }

    /// Writes more than fits and says whether that was given up, and after how many seconds.
    async fn overfill(guard: &mut Guard<DuplexStream>) -> (io::ErrorKind, u64) {
        let began = Instant::now();
        let writing = tokio::time::timeout(Duration::from_secs(3600), guard.write_all(&[0; 100]));
        let error = writing
            .await
            .expect("is given up")
            .expect_err("does not fit");
        (error.kind(), began.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_takes_nothing_is_given_up_after_a_minute() {
        let (mut guard, _peer, connection) = guarded(64);
        let _answering = connection.begin();
        assert_eq!(overfill(&mut guard).await, (io::ErrorKind::TimedOut, 60));
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_takes_a_little_now_and_then_is_not_given_up() {
        let (mut guard, mut peer, connection) = guarded(64);
        let _answering = connection.begin();
        let mut little = [0; 10];
        let reading = async {
            for _ in 0..20 {
                tokio::time::sleep(Duration::from_secs(50)).await;
                peer.read_exact(&mut little).await.unwrap();
            }
        };
        let both = async { tokio::join!(reading, guard.write_all(&[0; 250])) };
        let both = tokio::time::timeout(Duration::from_secs(3600), both).await;
        let ((), written) = both.expect("both come to an end");
        written.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn the_deadline_of_a_wait_that_is_over_does_not_end_a_slow_write() {
        let (mut guard, _peer, connection) = guarded(64);
        let waiting = tokio::time::timeout(Duration::from_secs(9), guard.read_u8());
        assert!(waiting.await.is_err(), "still waits for the first byte");
        let _answering = connection.begin();
        assert_eq!(overfill(&mut guard).await, (io::ErrorKind::TimedOut, 60));
    }

    #[tokio::test(start_paused = true)]
    async fn the_protocol_is_known_from_the_first_bytes_which_are_not_lost() {
        for (opening, expected) in [
            ("POST / HTTP/1.1", Protocol::Http1),
            ("PRI * HTTP/1.1\r\n and more of it", Protocol::Http1),
            ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nframes", Protocol::Http2),
        ] {
            let (mut guard, mut peer, _) = guarded(64);
            peer.write_all(opening.as_bytes()).await.unwrap();
            assert_eq!(guard.protocol().await.unwrap(), expected, "{opening}");
            let mut seen = vec![0; opening.len()];
            guard.read_exact(&mut seen).await.unwrap();
            assert_eq!(seen, opening.as_bytes());
        }
    }
}
