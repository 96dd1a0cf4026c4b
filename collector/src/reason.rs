//! Why a peer is refused: what figures and the log count by. What the peer says has no part in it.

use ringmark_format::stream::refusal;

macro_rules! reasons {
    ($($(#[$meta:meta])* $variant:ident $name:literal $code:ident,)*) => {
        /// Why a peer is refused.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Reason {
            $($(#[$meta])* $variant,)*
        }

        impl Reason {
            /// All of them.
            pub(crate) const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Its name in figures and in the log.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// The code that the streamer is told, of the specification's table
            /// `stream::refusal`.
            #[must_use]
            pub const fn code(self) -> u32 {
                match self {
                    $(Self::$variant => refusal::$code,)*
                }
            }
        }
    };
}

reasons! {
    /// It does not speak TLS where TLS is spoken.
    NotTls "not_tls" DENIED,
    /// The TLS handshake failed, or took too long.
    Handshake "handshake" DENIED,
    /// The name of its host is too long.
    HostName "host_name" DENIED,
    /// Its certificate is for another host.
    OtherHost "other_host" DENIED,
    /// It showed no token.
    NoToken "no_token" DENIED,
    /// It showed another token.
    WrongToken "wrong_token" DENIED,
    /// Its host is denied.
    DeniedHost "denied_host" DENIED,
    /// Its certificate is denied.
    DeniedCertificate "denied_certificate" DENIED,
    /// Its certificate, or the collector's, has ended.
    CertificateEnded "certificate_ended" DENIED,
    /// It speaks a later version of the protocol.
    Version "version" VERSION,
    /// It broke the protocol, or sent damaged blocks.
    Protocol "protocol" PROTOCOL,
    /// It announced a session of another host.
    Foreign "foreign" FOREIGN,
    /// The store cannot be written.
    Store "store" STORE,
    /// There are too many connections.
    Connections "connections" BUSY,
    /// There are too many connections of its host.
    HostConnections "host_connections" BUSY,
    /// Sessions take too much memory.
    SessionMemory "session_memory" BUSY,
    /// It held memory for a block that came slowly, and others waited.
    SlowBlock "slow_block" BUSY,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_has_a_name_of_its_own() {
        let names: BTreeSet<_> = Reason::ALL.iter().map(|reason| reason.name()).collect();
        assert_eq!(names.len(), Reason::ALL.len());
    }
}
