//! Addresses of this host that other hosts may reach.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns the addresses of the interfaces that are up: IPv4 first, loopback last (for ranks of this host). Link-local
/// addresses of IPv6 are left out, because they need the name of an interface of the other host.
pub fn of_this_host() -> Vec<IpAddr> {
    let mut found = Vec::new();
    let mut list: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: the call fills `list` or fails; entries are valid until `freeifaddrs`, and each address is read as its family
    // says.
    unsafe {
        if libc::getifaddrs(&raw mut list) != 0 {
            return vec![IpAddr::V4(Ipv4Addr::LOCALHOST)];
        }
        let mut at = list;
        while let Some(entry) = at.as_ref() {
            at = entry.ifa_next;
            if entry.ifa_addr.is_null() || entry.ifa_flags & libc::IFF_UP as u32 == 0 {
                continue;
            }
            match i32::from((*entry.ifa_addr).sa_family) {
                libc::AF_INET => {
                    let address = entry.ifa_addr.cast::<libc::sockaddr_in>().read_unaligned();
                    found.push(IpAddr::V4(Ipv4Addr::from(address.sin_addr.s_addr.to_ne_bytes())));
                }
                libc::AF_INET6 => {
                    let address = entry.ifa_addr.cast::<libc::sockaddr_in6>().read_unaligned();
                    let address = Ipv6Addr::from(address.sin6_addr.s6_addr);
                    if address.segments()[0] & 0xffc0 != 0xfe80 {
                        found.push(IpAddr::V6(address));
                    }
                }
                _ => {}
            }
        }
        libc::freeifaddrs(list);
    }
    found.sort_by_key(|address| (address.is_loopback(), address.is_ipv6()));
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_comes_last() {
        let found = of_this_host();
        let first_loopback = found.iter().position(IpAddr::is_loopback).expect("a host has a loopback address");
        assert!(found[first_loopback..].iter().all(IpAddr::is_loopback), "{found:?}");
    }
}
