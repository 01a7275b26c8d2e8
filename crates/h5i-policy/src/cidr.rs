//! Address ranges.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A range of IPv4 or IPv6 addresses: a prefix and its length, no bits set below it.
///
/// A single address is a range of full length and is printed without it. An IPv4 address in IPv6
/// clothes (`::ffff:192.0.2.1`) is refused, so that each address has one spelling. RFC 4632.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cidr {
    family: Family,
    bits: u128,
    length: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Family {
    V4,
    V6,
}

/// Why a text is not a [`Cidr`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CidrError {
    /// What stands before the `/` is not an address in its usual form.
    #[error("not an IPv4 or IPv6 address in its usual form")]
    NotAnAddress,
    /// What stands after the `/` is not a length, or is longer than the address.
    #[error("the prefix length is not a number from 0 to {longest}")]
    BadLength {
        /// The number of bits of an address of this family.
        longest: u8,
    },
    /// Bits are set below the prefix.
    #[error("bits are set below the prefix")]
    BitsBelow {
        /// The range that was probably meant.
        meant: Cidr,
    },
    /// An IPv4 address written as IPv6.
    #[error("an IPv4 address is written as IPv6")]
    Mapped,
}

impl CidrError {
    /// What to do instead.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::NotAnAddress => "write 192.0.2.7, 192.0.2.0/24 or [2001:db8::/32]".into(),
            Self::BadLength { longest } => format!("write a length from 0 to {longest}"),
            Self::BitsBelow { meant } => format!("write {meant}"),
            Self::Mapped => "write the IPv4 address itself".into(),
        }
    }
}

/// Ranges that are not of the public network (IANA special-purpose registries, multicast, and the
/// ranges by which IPv6 reaches IPv4).
const SPECIAL: &[(&str, u8)] = &[
    ("0.0.0.0", 8),
    ("10.0.0.0", 8),
    ("100.64.0.0", 10),
    ("127.0.0.0", 8),
    ("169.254.0.0", 16),
    ("172.16.0.0", 12),
    ("192.0.0.0", 24),
    ("192.0.2.0", 24),
    ("192.88.99.0", 24),
    ("192.168.0.0", 16),
    ("198.18.0.0", 15),
    ("198.51.100.0", 24),
    ("203.0.113.0", 24),
    ("224.0.0.0", 3),
    // IPv6: everything outside of 2000::/3, and within it what is special.
    ("::", 3),
    ("4000::", 2),
    ("8000::", 1),
    ("2001::", 23),
    ("2001:db8::", 32),
    ("2002::", 16),
    ("3fff::", 20),
];

impl Cidr {
    /// Parses an address or a range.
    ///
    /// # Errors
    /// One variant of [`CidrError`] for each rule of the type.
    pub fn new(text: &str) -> Result<Self, CidrError> {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let Ok(address) = address.parse::<IpAddr>() else { return Err(CidrError::NotAnAddress) };
        let whole = Self::from(address);
        let longest = whole.family.width();
        let length = match length {
            None => longest,
            Some(digits) => {
                let plain = digits.bytes().all(|b| b.is_ascii_digit())
                    && (digits == "0" || !digits.starts_with('0'));
                match digits.parse::<u8>() {
                    Ok(length) if plain && length <= longest => length,
                    _ => return Err(CidrError::BadLength { longest }),
                }
            }
        };
        let cut = whole.shortened(length);
        if cut.bits != whole.bits {
            return Err(CidrError::BitsBelow { meant: cut });
        }
        if matches!(address, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some()) {
            return Err(CidrError::Mapped);
        }
        Ok(cut)
    }

    /// Whether it is a range of IPv6 addresses.
    #[must_use]
    pub const fn is_ipv6(&self) -> bool {
        matches!(self.family, Family::V6)
    }

    /// The first address of the range.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        match self.family {
            Family::V6 => IpAddr::V6(Ipv6Addr::from_bits(self.bits)),
            // IPv4 bits never exceed 32: every constructor takes them from an `Ipv4Addr`.
            Family::V4 => {
                IpAddr::V4(Ipv4Addr::from_bits(u32::try_from(self.bits).unwrap_or(u32::MAX)))
            }
        }
    }

    /// The length of the prefix in bits.
    #[must_use]
    pub const fn prefix_length(&self) -> u8 {
        self.length
    }

    /// Whether `address` is in the range. Families are never mixed.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        self.covers(&Self::from(address))
    }

    /// Whether every address of `other` is in the range.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        self.family == other.family
            && self.length <= other.length
            && other.shortened(self.length).bits == self.bits
    }

    /// The largest ranges within this one that hold public addresses only, in order.
    #[must_use]
    pub fn public_part(&self) -> Vec<Self> {
        let special: Vec<Self> = SPECIAL
            .iter()
            .filter_map(|(address, length)| {
                Some(Self::from(address.parse::<IpAddr>().ok()?).shortened(*length))
            })
            .collect();
        let mut public = Vec::new();
        self.collect_public(&special, &mut public);
        public
    }

    fn collect_public(&self, special: &[Self], public: &mut Vec<Self>) {
        if special.iter().any(|range| range.covers(self)) {
            return;
        }
        if !special.iter().any(|range| self.covers(range)) {
            public.push(*self);
            return;
        }
        for half in self.halves() {
            half.collect_public(special, public);
        }
    }

    /// The two halves of a range that is longer than one address.
    fn halves(&self) -> [Self; 2] {
        let length = self.length + 1;
        let lower = Self { length, ..*self };
        let bit = 1_u128 << (self.family.width() - length);
        [lower, Self { bits: self.bits | bit, ..lower }]
    }

    fn shortened(&self, length: u8) -> Self {
        let below = u32::from(self.family.width().saturating_sub(length));
        let mask = u128::MAX.checked_shl(below).unwrap_or(0);
        Self { bits: self.bits & mask, length, ..*self }
    }
}

impl Family {
    const fn width(self) -> u8 {
        match self {
            Self::V4 => 32,
            Self::V6 => 128,
        }
    }
}

impl From<IpAddr> for Cidr {
    /// The range of this one address.
    fn from(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(v4) => Self { family: Family::V4, bits: v4.to_bits().into(), length: 32 },
            IpAddr::V6(v6) => Self { family: Family::V6, bits: v6.to_bits(), length: 128 },
        }
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.address())?;
        if self.length == self.family.width() { Ok(()) } else { write!(f, "/{}", self.length) }
    }
}

#[cfg(test)]
mod tests {
    use super::{Cidr, CidrError, SPECIAL};

    fn cidr(text: &str) -> Cidr {
        Cidr::new(text).expect(text)
    }

    #[test]
    fn ranges_print_as_they_were_written() {
        for text in ["192.0.2.7", "10.0.0.0/8", "0.0.0.0/0", "2001:db8::/32", "::1", "::/0"] {
            assert_eq!(cidr(text).to_string(), text);
        }
        assert_eq!(cidr("192.0.2.7/32").to_string(), "192.0.2.7");
    }

    #[test]
    fn what_is_not_a_range_is_refused_by_its_reason() {
        for text in ["", "10", "10.0.0", "010.0.0.1", "1.2.3.4.5", "fe80::1%eth0", "0x7f.0.0.1"] {
            assert_eq!(Cidr::new(text), Err(CidrError::NotAnAddress), "{text:?}");
        }
        for text in ["10.0.0.0/33", "10.0.0.0/", "10.0.0.0/08", "10.0.0.0/+8", "10.0.0.0/300"] {
            assert_eq!(Cidr::new(text), Err(CidrError::BadLength { longest: 32 }), "{text:?}");
        }
        assert_eq!(Cidr::new("::/129"), Err(CidrError::BadLength { longest: 128 }));
        let meant = cidr("10.0.0.0/8");
        assert_eq!(Cidr::new("10.1.2.3/8"), Err(CidrError::BitsBelow { meant }));
        assert_eq!(Cidr::new("::ffff:10.0.0.1"), Err(CidrError::Mapped));
    }

    #[test]
    fn a_range_covers_what_lies_in_it_and_nothing_else() {
        for (outer, inner, covered) in [
            ("10.0.0.0/8", "10.1.0.0/16", true),
            ("10.0.0.0/8", "10.0.0.0/8", true),
            ("10.1.0.0/16", "10.0.0.0/8", false),
            ("10.0.0.0/8", "11.0.0.0/16", false),
            ("0.0.0.0/0", "255.1.2.3", true),
            ("::/0", "10.0.0.1", false),
            ("2001:db8::/32", "2001:db8:1::1", true),
        ] {
            assert_eq!(cidr(outer).covers(&cidr(inner)), covered, "{outer} {inner}");
        }
    }

    #[test]
    fn the_public_part_has_no_special_address_and_all_others() {
        assert_eq!(cidr("8.8.8.0/24").public_part(), [cidr("8.8.8.0/24")]);
        assert_eq!(cidr("10.1.0.0/16").public_part(), []);
        assert_eq!(cidr("fe80::/10").public_part(), []);
        assert_eq!(
            cidr("172.0.0.0/10").public_part(),
            [cidr("172.0.0.0/12"), cidr("172.32.0.0/11")]
        );
        for all in ["0.0.0.0/0", "::/0"] {
            let public = cidr(all).public_part();
            for (address, length) in SPECIAL {
                let special = cidr(&format!("{address}/{length}"));
                let overlaps = |range: &Cidr| range.covers(&special) || special.covers(range);
                assert!(!public.iter().any(overlaps), "{special}");
            }
        }
        let size: u64 = cidr("0.0.0.0/0").public_part().iter().map(|r| 1 << (32 - r.length)).sum();
        let special: u64 =
            SPECIAL.iter().filter(|(a, _)| !a.contains(':')).map(|(_, l)| 1 << (32 - l)).sum();
        assert_eq!(size + special, 1 << 32);
    }
}
