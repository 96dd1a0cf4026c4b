//! Who is at the other end of a socket.

use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use crate::target::Target;

/// Sockets by their inode, as the network namespace of the process lists them.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    known: HashMap<u64, Option<String>>,
}

impl Peers {
    /// The other end of a socket in words; `None`: it is not known.
    pub(crate) fn of(&mut self, inode: u64, target: &Target) -> Option<String> {
        if !self.known.contains_key(&inode) {
            self.read(target);
            self.known.entry(inode).or_insert(None);
        }
        self.known.get(&inode).cloned().flatten()
    }

    /// Reads all sockets.
    fn read(&mut self, target: &Target) {
        for (file, protocol) in [
            ("net/tcp", "tcp"),
            ("net/tcp6", "tcp"),
            ("net/udp", "udp"),
            ("net/udp6", "udp"),
        ] {
            let text = target.text(file).unwrap_or_default();
            let lines = text.lines().skip(1);
            self.known
                .extend(lines.filter_map(|line| internet(line, protocol)));
        }
        let text = target.text("net/unix").unwrap_or_default();
        self.known.extend(text.lines().skip(1).filter_map(unix));
    }
}

/// A line of `/proc/net/tcp` and the like: the inode, and the socket in words.
fn internet(line: &str, protocol: &str) -> Option<(u64, Option<String>)> {
    let words: Vec<_> = line.split_ascii_whitespace().collect();
    let inode = words.get(9)?.parse().ok()?;
    let (local, remote) = (place(words.get(1)?)?, place(words.get(2)?)?);
    let text = match remote.ends_with(":0") {
        true => format!("{protocol} {local}"),
        false => format!("{protocol} {local} to {remote}"),
    };
    Some((inode, Some(text)))
}

/// A line of `/proc/net/unix`.
fn unix(line: &str) -> Option<(u64, Option<String>)> {
    let mut words = line.split_ascii_whitespace().skip(6);
    let inode = words.next()?.parse().ok()?;
    let text = match words.next() {
        Some(path) => format!("unix socket {path}"),
        None => "unix socket".to_owned(),
    };
    Some((inode, Some(text)))
}

/// `0100007F:1F90` as `127.0.0.1:8080`. The kernel writes the address as words of the processor, all of which here have
/// the least byte first.
fn place(text: &str) -> Option<String> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let words: Option<Vec<u8>> = (0..address.len() / 8)
        .map(|n| u32::from_str_radix(address.get(8 * n..8 * n + 8)?, 16).ok())
        .map(|word| word.map(u32::to_le_bytes))
        .collect::<Option<Vec<_>>>()
        .map(|words| words.concat());
    match <[u8; 4]>::try_from(words.as_deref()?) {
        Ok(bytes) => Some(format!("{}:{port}", Ipv4Addr::from(bytes))),
        Err(_) => {
            let bytes = <[u8; 16]>::try_from(words?).ok()?;
            Some(format!("[{}]:{port}", Ipv6Addr::from(bytes)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{internet, unix};

    #[test]
    fn lines_of_the_kernel() {
        let line = "   0: 0100007F:1F90 0200007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 4711 1 x";
        let text = "tcp 127.0.0.1:8080 to 127.0.0.2:50000".to_owned();
        assert_eq!(internet(line, "tcp"), Some((4711, Some(text))));
        let line = "   0: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A 0 0 0 0 0 12 1 x";
        assert_eq!(
            internet(line, "tcp"),
            Some((12, Some("tcp [::1]:80".to_owned())))
        );
        let line = "0000000000000000: 00000002 00000000 00010000 0001 01 777 /run/x.sock";
        let text = "unix socket /run/x.sock".to_owned();
        assert_eq!(unix(line), Some((777, Some(text))));
        assert_eq!(internet("", "tcp"), None);
    }
}
