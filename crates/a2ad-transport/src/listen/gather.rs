//! Writes of an HTTP/2 connection, put together.
//!
//! h2 writes nearly every frame by itself, and a short answer has three. The kernel takes far longer for a write than we
//! take for the answer, so frames are gathered here until everybody who has something to say at the moment has said it.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::http::BoxError;

/// From how much on bytes are written at once.
const GATHER_BYTES: usize = 16 * 1024;

/// A socket for whoever drives the connection to write to. What is written stays here until [`Gather::drive`] sends it.
#[derive(Debug)]
pub(super) struct Gather<S>(Arc<Mutex<Gathered<S>>>);

#[derive(Debug)]
struct Gathered<S> {
    socket: S,
    held: BytesMut,
    /// The others had their turn since bytes are held.
    waited: bool,
}

impl<S> Clone for Gather<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Gather<S> {
    pub(super) fn new(socket: S) -> Self {
        Self(Arc::new(Mutex::new(Gathered {
            socket,
            held: BytesMut::new(),
            waited: false,
        })))
    }

    /// Runs `connection`, which writes to this socket, and sends what it has written whenever it waits.
    pub(super) async fn drive<T, E: Into<BoxError>>(
        &self,
        mut connection: Pin<&mut impl Future<Output = Result<T, E>>>,
    ) -> Result<T, BoxError> {
        poll_fn(|cx| {
            // It ends with a shutdown of the socket, which sends the rest.
            if let Poll::Ready(ended) = connection.as_mut().poll(cx) {
                return Poll::Ready(ended.map_err(Into::into));
            }
            match self.lock().poll_send(cx) {
                Poll::Ready(Err(error)) => Poll::Ready(Err(error.into())),
                Poll::Ready(Ok(())) | Poll::Pending => Poll::Pending,
            }
        })
        .await
    }

    /// One task has it all: there is nobody to wait for.
    fn lock(&self) -> MutexGuard<'_, Gathered<S>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: AsyncWrite + Unpin> Gathered<S> {
    /// Sends what is held, once the other requests of the connection had their turn to add to it.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.held.is_empty() && !self.waited {
            self.waited = true;
            // Behind all that is ready to run by now.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.poll_drain(cx)
    }

    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.held.is_empty() {
            let sent = ready!(Pin::new(&mut self.socket).poll_write(cx, &self.held))?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.held.advance(sent);
        }
        self.waited = false;
        // Most connections are quiet most of the time.
        self.held = BytesMut::new();
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Gather<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.lock().socket).poll_read(cx, buf)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Gather<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[io::IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut this = self.lock();
        let size: usize = bufs.iter().map(|buf| buf.len()).sum();
        if this.held.len() + size > GATHER_BYTES {
            ready!(this.poll_drain(cx))?;
        }
        if size > GATHER_BYTES {
            return Pin::new(&mut this.socket).poll_write_vectored(cx, bufs);
        }
        for buf in bufs {
            this.held.extend_from_slice(buf);
        }
        Poll::Ready(Ok(size))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Nothing is sent: h2 flushes after every few frames.
    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut this = self.lock();
        ready!(this.poll_drain(cx))?;
        Pin::new(&mut this.socket).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;
    use std::pin::pin;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    #[tokio::test]
    async fn what_is_written_in_one_go_is_sent_in_one_go() {
        let (ours, mut theirs) = duplex(1024);
        let mut gather = Gather::new(ours);
        let driver = gather.clone();
        let connection = pin!(async {
            gather.write_all(b"one ").await?;
            gather.flush().await?;
            gather.write_all(b"two").await?;
            gather.flush().await?;
            assert!(
                theirs.read_u8().now_or_never().is_none(),
                "nothing is sent yet"
            );
            tokio::task::yield_now().await;
            let mut seen = [0; 7];
            theirs.read_exact(&mut seen).await?;
            assert_eq!(&seen, b"one two");
            io::Result::Ok(())
        });
        driver.drive(connection).await.unwrap();
    }

    #[tokio::test]
    async fn a_shutdown_sends_the_rest() {
        let (ours, mut theirs) = duplex(1024);
        let mut gather = Gather::new(ours);
        gather.write_all(b"farewell").await.unwrap();
        gather.shutdown().await.unwrap();
        let mut seen = Vec::new();
        theirs.read_to_end(&mut seen).await.unwrap();
        assert_eq!(seen, b"farewell");
    }

    #[tokio::test]
    async fn more_than_is_gathered_waits_for_its_reader() {
        let (ours, mut theirs) = duplex(1000);
        let mut gather = Gather::new(ours);
        let all: Vec<u8> = (0..100_000_u32).map(|at| at.to_le_bytes()[0]).collect();
        let driver = gather.clone();
        let expected = all.clone();
        let reading = async move {
            let mut seen = Vec::new();
            theirs.read_to_end(&mut seen).await.unwrap();
            assert!(seen == expected);
        };
        let connection = pin!(async {
            for piece in all.chunks(7_000).chain([&all[..0]]) {
                gather.write_all(piece).await?;
            }
            gather.shutdown().await?;
            io::Result::Ok(())
        });
        let (ended, ()) = tokio::join!(driver.drive(connection), reading);
        ended.unwrap();
    }

    #[tokio::test]
    async fn a_socket_that_broke_ends_the_connection() {
        let (ours, theirs) = duplex(1024);
        drop(theirs);
        let mut gather = Gather::new(ours);
        let driver = gather.clone();
        let connection = pin!(async {
            gather.write_all(b"to nobody").await?;
            std::future::pending::<io::Result<()>>().await
        });
        let error = driver.drive(connection).await.unwrap_err();
        let error = error.downcast::<io::Error>().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
