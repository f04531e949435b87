//! The inner end of a sandbox's own network ([`crate::network`]).

use std::io;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream, UnixStream};

use crate::arrivals::ARRIVAL;
use crate::limits::POLL_MS;
use crate::network::{INSIDE, OUTWARD, PORTS_VARIABLE};
use crate::outbound::PROXY_PORT;

/// Forwards outgoing connections of programs, if the sandbox has its own network.
///
/// # Errors
/// The system's error for a socket or a port.
pub(super) async fn forward_ports() -> io::Result<()> {
    let Ok(named) = std::env::var(PORTS_VARIABLE) else {
        return Ok(());
    };
    let ports = named.split(',').filter_map(|port| port.parse().ok());
    for port in ports.chain([PROXY_PORT]) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        tokio::spawn(async move {
            loop {
                match listener.accept().await {
                    Ok((inner, _)) => drop(tokio::spawn(forward_outbound(inner, port))),
                    Err(_) => pause().await,
                }
            }
        });
    }
    Ok(())
}

/// Pauses after errors such as too many open files, which pass when some are closed.
async fn pause() {
    tokio::time::sleep(Duration::from_millis(POLL_MS)).await;
}

async fn forward_outbound(mut inner: TcpStream, port: u16) {
    // Small events must not be delayed.
    let _ = inner.set_nodelay(true);
    if let Ok(mut outer) = outward().await
        && outer.write_u16(port).await.is_ok()
    {
        // Either side may hang up.
        let _ = copy_bidirectional(&mut inner, &mut outer).await;
    }
}

async fn outward() -> io::Result<UnixStream> {
    UnixStream::connect(Path::new(INSIDE).join(OUTWARD)).await
}

/// Connects a port to the provider.
///
/// # Errors
/// Nobody listens there, or the provider is gone.
pub(super) async fn connect(port: u16, ticket: u64) -> io::Result<()> {
    let mut inner = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
    let _ = inner.set_nodelay(true);
    let mut outer = outward().await?;
    outer.write_u16(ARRIVAL).await?;
    outer.write_u64(ticket).await?;
    tokio::spawn(async move {
        // Either side may hang up.
        let _ = copy_bidirectional(&mut outer, &mut inner).await;
    });
    Ok(())
}
