//! The end of the program, requested by a person or the system.

use tokio::sync::watch;

/// Becomes true on Ctrl-C or SIGTERM.
#[derive(Debug, Clone)]
pub struct Shutdown(watch::Receiver<bool>);

impl Shutdown {
    /// Installs the signal handlers.
    ///
    /// # Errors
    /// The system's error.
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

    /// Waits for the signal.
    pub async fn wait(&self) {
        // An error means that the sender is gone, which is an end too.
        let _ = self.0.clone().wait_for(|ended| *ended).await;
    }

    /// Fails if the signal has already come, to abort a start.
    ///
    /// # Errors
    /// The signal has come.
    pub fn check(&self) -> Result<(), String> {
        if *self.0.borrow() { Err("Stopped before everything was up.".to_owned()) } else { Ok(()) }
    }
}
