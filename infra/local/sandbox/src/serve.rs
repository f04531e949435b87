//! An HTTP server whose connections can be cut: from a handler, and all of them at the end.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::extract::connect_info::Connected;
use axum::http::Extensions;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use bobbin_local_breakpoint::own_only;

use crate::limits::DRAIN_MS_MAX;
use crate::machine::LocalMachine;
use crate::settings::{RunSettings, StartError};

/// A listener on the same port of a second address, if one is given.
pub async fn also_on(address: Option<IpAddr>, port: u16) -> io::Result<Option<TcpListener>> {
    match address {
        Some(address) => TcpListener::bind((address, port)).await.map(Some),
        None => Ok(None),
    }
}

/// A provider's listeners: loopback, and the same port of a second address if one is given.
pub struct Listeners {
    /// The port, on both addresses.
    pub port: u16,
    all: Vec<TcpListener>,
}

impl Listeners {
    /// Binds the requested port, or a free one.
    ///
    /// # Errors
    /// [`StartError::Listen`] and [`StartError::ListenAlso`].
    pub async fn open(settings: &RunSettings) -> Result<Self, StartError> {
        let port = settings.port;
        let refused = |source| StartError::Listen { port, source };
        let loopback = TcpListener::bind(("127.0.0.1", port)).await;
        let loopback = loopback.map_err(refused)?;
        let port = loopback.local_addr().map_err(refused)?.port();
        let also = also_on(settings.also_on, port).await;
        let also = also.map_err(|source| StartError::ListenAlso { port, source })?;
        let all = [Some(loopback), also].into_iter().flatten().collect();
        Ok(Self { port, all })
    }

    /// Serves the provider's API to this machine's own callers, as a task of the machine, until `stopping`.
    pub fn serve(
        self,
        settings: &RunSettings,
        router: Router,
        machine: &LocalMachine,
        stopping: &CancellationToken,
    ) {
        let router = own_only(router, settings.also_named.clone());
        let router = settings.breakpoints.before("provider", peer, router);
        for listener in self.all {
            let served = run(listener, router.clone(), stopping.clone());
            machine.tasks.spawn(served);
        }
    }
}

/// Repeats `work` until `stopping`.
pub async fn again_and_again(every_ms: u64, stopping: CancellationToken, mut work: impl FnMut()) {
    let mut tick = tokio::time::interval(Duration::from_millis(every_ms));
    loop {
        tokio::select! {
            _ = tick.tick() => work(),
            () = stopping.cancelled() => return,
        }
    }
}

/// Serves until `stopping`, then lets open connections finish for at most [`DRAIN_MS_MAX`].
pub async fn run(listener: TcpListener, router: Router, stopping: CancellationToken) {
    let service = router.into_make_service_with_connect_info::<ConnectionCut>();
    let server = axum::serve(Cuttable(listener), service)
        .with_graceful_shutdown(stopping.clone().cancelled_owned());
    let drained = async {
        stopping.cancelled().await;
        tokio::time::sleep(Duration::from_millis(DRAIN_MS_MAX)).await;
    };
    tokio::select! {
        result = server => if let Err(error) = result { tracing::error!(%error, "a server of the sandbox provider ended") },
        () = drained => {}
    }
}

/// Cuts a request's connection: its answer is not sent.
#[derive(Clone)]
pub struct ConnectionCut {
    is_cut: Arc<AtomicBool>,
    peer: SocketAddr,
}

impl ConnectionCut {
    /// Stops reading and writing.
    pub fn cut(&self) {
        self.is_cut.store(true, Ordering::Relaxed);
    }
}

/// Remote address of a request's connection.
pub fn peer(extensions: &Extensions) -> Option<SocketAddr> {
    Some(extensions.get::<ConnectInfo<ConnectionCut>>()?.0.peer)
}

impl Connected<IncomingStream<'_, Cuttable>> for ConnectionCut {
    fn connect_info(stream: IncomingStream<'_, Cuttable>) -> Self {
        stream.io().cut.clone()
    }
}

pub(crate) struct Cuttable(TcpListener);

impl Listener for Cuttable {
    type Io = CuttableStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        let (stream, address) = Listener::accept(&mut self.0).await;
        // Small events must not be delayed.
        let _ = stream.set_nodelay(true);
        (
            CuttableStream { stream, cut: ConnectionCut { is_cut: Arc::default(), peer: address } },
            address,
        )
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.0.local_addr()
    }
}

pub(crate) struct CuttableStream {
    stream: TcpStream,
    cut: ConnectionCut,
}

impl CuttableStream {
    fn check(&self) -> io::Result<()> {
        if self.cut.is_cut.load(Ordering::Relaxed) {
            Err(io::ErrorKind::ConnectionReset.into())
        } else {
            Ok(())
        }
    }
}

impl AsyncRead for CuttableStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for CuttableStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
