//! What a stop leaves behind: nothing.

use std::io::Write as _;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use bobbin_local_aws::Engine;
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

use crate::support::{Folder, SMALL, SMALLS, Stack, settings};

/// Copies of every descriptor that this program has of a file, as a process has them that was just forked off and has
/// not begun its own program yet.
fn copies(file: &Path) -> Vec<OwnedFd> {
    let this = pidfd_open(getpid(), PidfdFlags::empty()).unwrap();
    // All are looked at before the first copy: it may get the number of one that was listed and is closed since, and
    // would be found there.
    let held: Vec<_> = std::fs::read_dir("/proc/self/fd")
        .unwrap()
        .flatten()
        .filter(|entry| std::fs::read_link(entry.path()).is_ok_and(|target| target == file))
        .collect();
    held.iter()
        .map(|entry| {
            let number = entry.file_name().to_str().unwrap().parse().unwrap();
            pidfd_getfd(&this, number, PidfdGetfdFlags::empty()).unwrap()
        })
        .collect()
}

#[tokio::test]
async fn stop_frees_folder_despite_inherited_lock() {
    let folder = Arc::new(Folder::new());
    let first = Stack::start_in(folder.clone()).await;
    let held = copies(&folder.0.join("state/lock"));
    assert!(!held.is_empty(), "the engine holds its lock");
    let wanted = || settings(&folder, SMALL, &SMALLS);
    let refused = Engine::start(wanted()).await.err().unwrap().to_string();
    assert!(
        refused
            .ends_with("another stack is running on it; stop that one, or choose another folder")
    );
    first.engine.stop().await;
    let second = Engine::start(wanted()).await.unwrap();
    drop(held);
    second.stop().await;
}

#[tokio::test]
async fn stop_breaks_off_unfinished_requests() {
    let stack = Stack::start().await;
    let address = stack.engine.endpoint().strip_prefix("http://").unwrap().to_owned();
    let state = stack.folder.0.join("state").canonicalize().unwrap();
    let mut half = TcpStream::connect(&address).unwrap();
    half.write_all(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\nhalf").unwrap();
    // A whole request after it: when that is answered, the half one has been taken, too.
    assert_eq!(stack.call("GET", "/_bobbin/clock", None).await.0, 200);
    stack.engine.stop().await;
    for file in ["aws.sqlite", "lock"] {
        assert!(copies(&state.join(file)).is_empty(), "{file} is still open");
    }
    assert!(TcpStream::connect(&address).is_err(), "the port is still open");
}
