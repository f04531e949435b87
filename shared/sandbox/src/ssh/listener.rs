//! Which user owns a port of a host's loopback, by the kernel's own list.
//!
//! Users of one host share its loopback: while a sandbox's agent is down, another sandbox's process could listen in its
//! place and receive its password. So before a byte is sent through a new connection, every socket at its far end must
//! belong to the slot's user, in any state: even a socket that has finished sending still reads. The connection is
//! established before the list is read, so its holder is in the list. The list is `/proc/net/tcp` and `/proc/net/tcp6`
//! (Linux, `Documentation/networking/proc_net_tcp.rst`).

/// The state of a listening socket in that list.
const LISTEN: &str = "0A";

/// Whether a process of this user, and of no other, answers at this port of 127.0.0.1.
pub(super) fn is_answered_by(list: &str, port: u16, user: u32) -> bool {
    let mut owners = list.lines().filter_map(|line| owner(line, port)).peekable();
    owners.peek().is_some() && owners.all(|owner| owner == user)
}

/// Owner of the socket in this line, if it is one that answers at the port.
fn owner(line: &str, port: u16) -> Option<u32> {
    let mut fields = line.split_whitespace();
    // The number of the line, then both addresses.
    let (address, at) = fields.nth(1)?.split_once(':')?;
    let state = fields.nth(1)?;
    // Queues, timer and retransmissions come between.
    let user = fields.nth(3)?.parse().ok()?;
    let inode = fields.nth(1)?;
    if u16::from_str_radix(at, 16).ok()? != port {
        return None;
    }
    // A socket without an inode is held by no process: it was not accepted yet, or is closed.
    let is_held = state == LISTEN || inode != "0";
    (is_held && (is_loopback(address) || is_any(address))).then_some(user)
}

/// 127.0.0.1, by itself or mapped into IPv6, as machines of either byte order write it.
fn is_loopback(address: &str) -> bool {
    matches!(
        address,
        "0100007F"
            | "7F000001"
            | "0000000000000000FFFF00000100007F"
            | "00000000000000000000FFFF7F000001"
    )
}

fn is_any(address: &str) -> bool {
    address.bytes().all(|digit| digit == b'0')
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";

    fn line(local: &str, state: &str, user: u32, inode: u32) -> String {
        format!(
            "   0: {local} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000 {user:>5}        0 {inode} 1 0000000000000000 100 0 0 10 0\n"
        )
    }

    #[test]
    fn port_needs_a_sole_owner() {
        // 21001 is 0x5209.
        const ESTABLISHED: &str = "01";
        let ours = line("0100007F:5209", LISTEN, 7, 900);
        let accepted = line("0100007F:5209", ESTABLISHED, 7, 901);
        let waiting = line("0100007F:5209", ESTABLISHED, 0, 0);
        let theirs = line("0100007F:5209", LISTEN, 8, 902);
        let theirs_anywhere = line("00000000:5209", LISTEN, 8, 903);
        let theirs_in_v6 = line("00000000000000000000000000000000:5209", LISTEN, 8, 904);
        let taken_by_them = line("0100007F:5209", ESTABLISHED, 8, 905);
        let taken_in_v6 = line("0000000000000000FFFF00000100007F:5209", ESTABLISHED, 8, 905);
        let elsewhere = line("0100007F:520A", LISTEN, 8, 906);
        let of_another_address = line("0200A8C0:5209", ESTABLISHED, 8, 907);
        let closing = line("0100007F:5209", "06", 0, 0);
        // Closed by its process, though the far end has not finished sending.
        let orphan = line("0100007F:5209", "05", 0, 0);
        let theirs_without_inode = line("0100007F:5209", LISTEN, 8, 0);
        for (lines, answers) in [
            (vec![&ours], true),
            (vec![&ours, &accepted, &waiting, &closing, &orphan], true),
            (vec![&ours, &elsewhere, &of_another_address], true),
            (vec![], false),
            (vec![&elsewhere], false),
            (vec![&waiting, &closing], false),
            (vec![&theirs], false),
            (vec![&theirs_anywhere], false),
            (vec![&theirs_in_v6], false),
            (vec![&ours, &taken_by_them], false),
            (vec![&ours, &taken_in_v6], false),
            (vec![&ours, &theirs_without_inode], false),
        ] {
            let list: String =
                std::iter::once(HEAD.to_owned()).chain(lines.into_iter().cloned()).collect();
            assert_eq!(is_answered_by(&list, 21001, 7), answers, "{list}");
        }
    }

    #[test]
    fn foreign_sockets_always_count() {
        let ours = line("0100007F:5209", LISTEN, 7, 900);
        // FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT, LAST_ACK, CLOSING, and states that a kernel may add.
        for state in ["01", "02", "03", "04", "05", "08", "09", "0B", "0C", "0D"] {
            for address in
                ["0100007F:5209", "00000000:5209", "0000000000000000FFFF00000100007F:5209"]
            {
                let taken = |by| format!("{HEAD}{ours}{}", line(address, state, by, 901));
                assert!(!is_answered_by(&taken(8), 21001, 7), "{state} {address}");
                assert!(is_answered_by(&taken(7), 21001, 7), "{state} {address}");
            }
        }
    }
}
