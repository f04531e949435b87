//! Hosts of the world that a test serves itself, as sandboxes of the local provider see them; test programs that need
//! some include this file by its path.

use std::net::SocketAddr;
use std::sync::Arc;

use bobbin_local_daytona::StandIn;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

#[path = "certified.rs"]
pub mod certified;

/// A service that is spoken to by TLS only.
struct OverTls {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl axum::serve::Listener for OverTls {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (stream, from) = self.listener.accept().await.unwrap();
            // One that does not trust it hangs up.
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, from);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

/// Serves hosts of these names at one address, by one certificate.
pub async fn stand_ins(names: &[&str], routes: axum::Router) -> Vec<StandIn> {
    let (config, authority) = certified::certified(names).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let over = OverTls { listener, acceptor: TlsAcceptor::from(Arc::new(config)) };
    tokio::spawn(async move { axum::serve(over, routes).await.unwrap() });
    let one =
        |name: &&str| StandIn { host: (*name).to_owned(), address, authority: authority.clone() };
    names.iter().map(one).collect()
}
