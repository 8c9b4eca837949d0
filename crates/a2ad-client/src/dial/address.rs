//! Which addresses are public.
//!
//! From the IANA registries of special-purpose addresses. Where a range carries another address inside (mapped, NAT64),
//! the address inside is judged, for that is what one would reach; where the carrier is obsolete (6to4, Teredo,
//! v4-compatible), the whole range is refused.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A range that is not dialled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Range {
    /// This machine: 127/8, `::1`.
    Loopback,
    /// A private network: 10/8, 172.16/12, 192.168/16, fc00::/7, fec0::/10.
    Private,
    /// A provider's network: 100.64/10.
    SharedSpace,
    /// The link: 169.254/16, fe80::/10.
    LinkLocal,
    /// Where clouds hand out credentials.
    Metadata,
    /// No address, or "this network": 0/8, `::`.
    Unspecified,
    /// Many at once.
    Multicast,
    /// For documents and benchmarks: 192.0.2/24, 198.51.100/24, 203.0.113/24, 198.18/15, 2001:db8::/32, 3fff::/20.
    Example,
    /// An obsolete way to carry IPv4 in IPv6.
    Transition,
    /// Not given out, or given out for other uses than hosts.
    Reserved,
}

impl Range {
    /// Whether [`Rules::allow_private`](super::Rules) opens it.
    pub(super) fn is_private(self) -> bool {
        matches!(self, Self::Loopback | Self::Private | Self::SharedSpace)
    }
}

impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Loopback => "loopback",
            Self::Private => "private",
            Self::SharedSpace => "shared address space",
            Self::LinkLocal => "link-local",
            Self::Metadata => "cloud metadata",
            Self::Unspecified => "unspecified",
            Self::Multicast => "multicast",
            Self::Example => "documentation or benchmark",
            Self::Transition => "transition",
            Self::Reserved => "reserved",
        })
    }
}

/// The range that keeps `ip` from being dialled; none if it is public.
pub(super) fn special(ip: IpAddr) -> Option<Range> {
    match ip {
        IpAddr::V4(ip) => special_v4(ip),
        IpAddr::V6(ip) => special_v6(ip),
    }
}

fn special_v4(ip: Ipv4Addr) -> Option<Range> {
    Some(match ip.octets() {
        // Azure's is public by its number, Alibaba's lies in the shared space.
        [169, 254, 169, 254] | [168, 63, 129, 16] | [100, 100, 100, 200] => Range::Metadata,
        [0, ..] => Range::Unspecified,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Range::Private,
        [100, 64..=127, ..] => Range::SharedSpace,
        [127, ..] => Range::Loopback,
        [169, 254, ..] => Range::LinkLocal,
        [192, 0, 0, _] => Range::Reserved,
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] | [198, 18..=19, ..] => {
            Range::Example
        }
        [192, 88, 99, _] => Range::Transition,
        [224..=239, ..] => Range::Multicast,
        [240..=255, ..] => Range::Reserved,
        _ => return None,
    })
}

fn special_v6(ip: Ipv6Addr) -> Option<Range> {
    let segments = ip.segments();
    if let Some(inside) = ip.to_ipv4_mapped() {
        return special_v4(inside);
    }
    Some(match segments {
        // NAT64: the way to all of IPv4 on networks that have IPv6 only.
        [0x64, 0xff9b, 0, 0, 0, 0, ..] => {
            let [.., a, b, c, d] = ip.octets();
            return special_v4(Ipv4Addr::new(a, b, c, d));
        }
        [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254] | [0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254] => {
            Range::Metadata
        }
        [0, 0, 0, 0, 0, 0, 0, 0] => Range::Unspecified,
        [0, 0, 0, 0, 0, 0, 0, 1] => Range::Loopback,
        // v4-compatible; v4-translated; NAT64 of a private kind; 6to4; Teredo.
        [0, 0, 0, 0, 0, 0, ..]
        | [0, 0, 0, 0, 0xffff, 0, ..]
        | [0x64, 0xff9b, 1, ..]
        | [0x2002, ..]
        | [0x2001, 0, ..]
        // ISATAP, under any prefix.
        | [_, _, _, _, 0 | 0x200, 0x5efe, ..] => Range::Transition,
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => Range::Private,
        [0xfe80..=0xfebf, ..] => Range::LinkLocal,
        [0xff00..=0xffff, ..] => Range::Multicast,
        [0x2001, 0xdb8, ..] | [0x2001, 2, 0, ..] | [0x3fff, 0..=0xfff, ..] => Range::Example,
        // The protocol assignments, 2001::/23.
        [0x2001, 0..=0x1ff, ..] => Range::Reserved,
        [0x2000..=0x3fff, ..] => return None,
        // Nothing else is given out to hosts: discard, SRv6 and all that comes.
        _ => Range::Reserved,
    })
}
