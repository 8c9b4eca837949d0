use std::net::{Ipv4Addr, Ipv6Addr};

use super::super::address::special;

/// Some host of every /16.
fn every_v4() -> impl Iterator<Item = Ipv4Addr> {
    (0..=0xffff_u32).flat_map(|network| {
        [0, 1, 0x0102, 0x7131, 0xffff].map(|host| Ipv4Addr::from(network << 16 | host))
    })
}

#[test]
fn what_the_standard_library_calls_special_is_refused() {
    for ip in every_v4() {
        let known = ip.is_private()
            || ip.is_loopback()
            || ip.is_link_local()
            || ip.is_broadcast()
            || ip.is_documentation()
            || ip.is_multicast()
            || ip.is_unspecified();
        assert!(!known || special(ip.into()).is_some(), "{ip}");
    }
}

#[test]
fn an_ipv4_address_inside_an_ipv6_address_is_judged_like_itself() {
    for ip in every_v4() {
        let alone = special(ip.into());
        assert_eq!(special(ip.to_ipv6_mapped().into()), alone, "{ip}");
        let [a, b] = [(u32::from(ip) >> 16) as u16, u32::from(ip) as u16];
        let nat64 = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, a, b);
        assert_eq!(special(nat64.into()), alone, "{ip}");
        for obsolete in [
            Ipv6Addr::new(0, 0, 0, 0, 0, 0, a, b),
            Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, a, b),
            Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, a, b),
            Ipv6Addr::new(0x2002, a, b, 0, 0, 0, 0, 1),
            Ipv6Addr::new(0x2001, 0, a, b, 0, 0, 0, 1),
        ] {
            assert!(special(obsolete.into()).is_some(), "{obsolete}");
        }
    }
}

#[test]
fn only_global_unicast_is_public_in_ipv6() {
    for first in 0..=0xffff_u16 {
        let public = special(Ipv6Addr::new(first, 0x4700, 0, 0, 0, 0, 0, 1).into()).is_none();
        // 6to4 and the place for documents lie inside; 3fff:4700:: is past the latter.
        let expected = (0x2000..=0x3fff).contains(&first) && first != 0x2002;
        assert_eq!(public, expected, "{first:x}");
    }
}
