//! The end of the program, as a person or the system asks for it.

use tokio::sync::watch;

/// Ctrl-C or SIGTERM came.
#[derive(Debug, Clone)]
pub struct Shutdown(watch::Receiver<bool>);

impl Shutdown {
    /// Listens from now on.
    ///
    /// # Errors
    /// What the system said.
    pub fn listen() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let (tell, told) = watch::channel(false);
        tokio::spawn(async move {
            tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
            tell.send_replace(true);
            tell.closed().await;
        });
        Ok(Self(told))
    }

    /// Waits until the signal comes.
    pub async fn wait(&self) {
        // An error means that nobody can tell any more, which is an end too.
        let _ = self.0.clone().wait_for(|ended| *ended).await;
    }

    /// Whether it has come already, in the words of a start that is given up.
    ///
    /// # Errors
    /// It has.
    pub fn check(&self) -> Result<(), String> {
        if *self.0.borrow() { Err("Stopped before everything was up.".to_owned()) } else { Ok(()) }
    }
}
