//! Finds the process of a connection: `/proc` names the socket by both addresses, and the process by the socket.

use std::net::SocketAddr;
use std::path::Path;

use axum::extract::Request;

use crate::Invocation;

/// The invocation whose process made this request's connection from `peer`.
pub(crate) fn behind(
    peer: SocketAddr,
    request: &Request,
    invocations: &[Invocation],
) -> Option<Invocation> {
    // Our port distinguishes two connections from the same remote port.
    let host = request.headers().get("host")?.to_str().ok()?;
    let ours = host.rsplit_once(':')?.1.parse::<u16>().ok()?;
    let table = std::fs::read_to_string("/proc/net/tcp").ok()?;
    let socket = format!("socket:[{}]", inode(&table, peer.port(), ours)?);
    let holds = |process: u32| {
        let entries = std::fs::read_dir(format!("/proc/{process}/fd"));
        entries.into_iter().flatten().flatten().any(|entry| {
            std::fs::read_link(entry.path()).is_ok_and(|link| link == Path::new(&socket))
        })
    };
    invocations.iter().find(|one| holds(one.process)).cloned()
}

/// The client's socket of the connection from port `theirs` to port `ours` (proc(5): columns 2, 3 and 10).
fn inode(table: &str, theirs: u16, ours: u16) -> Option<&str> {
    let port = |address: &str| u16::from_str_radix(address.rsplit_once(':')?.1, 16).ok();
    table.lines().skip(1).find_map(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let (local, remote) = (port(columns.get(1)?)?, port(columns.get(2)?)?);
        let inode = columns.get(9).filter(|inode| **inode != "0")?;
        ((local, remote) == (theirs, ours)).then_some(*inode)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn socket_is_found_by_both_ports() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:1F90 0100007F:C001 01 00000000:00000000 00:00000000 00000000  1000        0 11 1 0 20 4 30 10 -1\n\
            1: 0100007F:C001 0100007F:1F91 01 00000000:00000000 00:00000000 00000000  1000        0 12 1 0 20 4 30 10 -1\n\
            2: 0100007F:C001 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 13 1 0 20 4 30 10 -1\n";
        assert_eq!(inode(table, 0xC001, 0x1F90), Some("13"));
        assert_eq!(inode(table, 0xC002, 0x1F90), None);
    }
}
