//! Quantities of a policy, each with its unit in the type.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A number of bytes.
///
/// Written as an integer and a unit, `B`, `KiB`, `MiB` or `GiB` (powers of 1024); printed with the
/// largest unit that divides it. Printing and parsing are inverse. It is text in JSON too, because
/// canonical JSON numbers are doubles and would merge quantities above 2^53.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Bytes(u64);

/// A span of time in whole milliseconds.
///
/// Written as an integer and a unit, `ms`, `s`, `m` or `h`; printed with the largest unit that
/// divides it. Printing and parsing are inverse. It is text in JSON too, as [`Bytes`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Millis(u64);

/// Why a text is not a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnitError {
    /// It does not start with a digit, or has a sign, a point or a blank.
    #[error("a quantity is an integer followed by its unit")]
    NotAnInteger,
    /// The number stands alone.
    #[error("a quantity needs a unit, one of {}", units.join(", "))]
    MissingUnit {
        /// The units of this kind of quantity.
        units: &'static [&'static str],
    },
    /// The unit is none of this kind of quantity.
    #[error("unknown unit; expected one of {}", units.join(", "))]
    UnknownUnit {
        /// The units of this kind of quantity.
        units: &'static [&'static str],
    },
    /// The quantity does not fit 64 bits of its base unit.
    #[error("the quantity is too large")]
    Overflow,
}

/// Units of one kind of quantity, largest first, with their size in the base unit.
struct Scale {
    names: &'static [&'static str],
    sizes: &'static [u64],
}

const BYTES: Scale =
    Scale { names: &["GiB", "MiB", "KiB", "B"], sizes: &[1 << 30, 1 << 20, 1 << 10, 1] };
const TIME: Scale = Scale { names: &["h", "m", "s", "ms"], sizes: &[3_600_000, 60_000, 1000, 1] };

impl Scale {
    fn parse(&self, text: &str) -> Result<u64, UnitError> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        if number.is_empty() {
            return Err(UnitError::NotAnInteger);
        }
        if unit.is_empty() {
            return Err(UnitError::MissingUnit { units: self.names });
        }
        if !unit.bytes().all(|b| b.is_ascii_alphabetic()) {
            return Err(UnitError::NotAnInteger);
        }
        let Some(at) = self.names.iter().position(|name| *name == unit) else {
            return Err(UnitError::UnknownUnit { units: self.names });
        };
        // Only digits are left, so the one way to fail is that there are too many of them.
        let Ok(number) = number.parse::<u64>() else { return Err(UnitError::Overflow) };
        number.checked_mul(self.sizes[at]).ok_or(UnitError::Overflow)
    }

    fn print(&self, n: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, size) in self.names.iter().zip(self.sizes) {
            if (n != 0 && n.is_multiple_of(*size)) || *size == 1 {
                return write!(f, "{}{name}", n / size);
            }
        }
        Ok(())
    }
}

impl Bytes {
    /// `n` bytes.
    #[must_use]
    pub const fn new(n: u64) -> Self {
        Self(n)
    }

    /// `n` times 2^20 bytes.
    #[must_use]
    pub const fn mebibytes(n: u32) -> Self {
        Self((n as u64) << 20)
    }

    /// The number of bytes.
    #[must_use]
    pub const fn count(self) -> u64 {
        self.0
    }
}

impl Millis {
    /// `n` milliseconds.
    #[must_use]
    pub const fn new(n: u64) -> Self {
        Self(n)
    }

    /// `n` seconds.
    #[must_use]
    pub const fn seconds(n: u32) -> Self {
        Self(n as u64 * 1000)
    }

    /// The number of milliseconds.
    #[must_use]
    pub const fn count(self) -> u64 {
        self.0
    }

    /// The same span as the standard library's type.
    #[must_use]
    pub const fn duration(self) -> Duration {
        Duration::from_millis(self.0)
    }
}

macro_rules! quantity {
    ($type:ident, $scale:ident) => {
        impl fmt::Display for $type {
            /// Prints the largest unit that divides the number.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                $scale.print(self.0, f)
            }
        }

        impl FromStr for $type {
            type Err = UnitError;
            fn from_str(text: &str) -> Result<Self, UnitError> {
                $scale.parse(text).map(Self)
            }
        }

        impl TryFrom<String> for $type {
            type Error = UnitError;
            fn try_from(text: String) -> Result<Self, UnitError> {
                text.parse()
            }
        }

        impl From<$type> for String {
            fn from(quantity: $type) -> Self {
                quantity.to_string()
            }
        }
    };
}
quantity!(Bytes, BYTES);
quantity!(Millis, TIME);

/// A budget in text: the quantity, or the word `none` for "no budget".
///
/// TOML has no null, and a budget that is absent must be written out, so both forms share the word.
pub(crate) mod budget {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::{Serialize, Serializer};

    /// The word for "no budget".
    pub(crate) const NONE: &str = "none";

    pub(crate) fn serialize<T: Serialize, S: Serializer>(
        budget: &Option<T>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match budget {
            Some(quantity) => quantity.serialize(to),
            None => to.serialize_str(NONE),
        }
    }

    pub(crate) fn deserialize<'de, T, D>(from: D) -> Result<Option<T>, D::Error>
    where
        T: FromStr<Err: Display>,
        D: Deserializer<'de>,
    {
        let text = String::deserialize(from)?;
        if text == NONE { Ok(None) } else { text.parse().map(Some).map_err(D::Error::custom) }
    }

    /// The same for plain counts, which are numbers in the text.
    pub(crate) mod count {
        use serde::de::{Deserialize, Deserializer, Error, Unexpected};

        pub(crate) use super::serialize;

        #[derive(serde::Deserialize)]
        #[serde(untagged)]
        enum Either {
            Number(u64),
            Word(String),
        }

        pub(crate) fn deserialize<'de, T, D>(from: D) -> Result<Option<T>, D::Error>
        where
            T: TryFrom<u64>,
            D: Deserializer<'de>,
        {
            const EXPECTED: &str = "a count or \"none\"";
            match Either::deserialize(from)? {
                Either::Word(word) if word == super::NONE => Ok(None),
                Either::Word(word) => {
                    Err(D::Error::invalid_value(Unexpected::Str(&word), &EXPECTED))
                }
                Either::Number(n) => match T::try_from(n) {
                    Ok(count) => Ok(Some(count)),
                    Err(_) => Err(D::Error::invalid_value(Unexpected::Unsigned(n), &EXPECTED)),
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Bytes, Millis, UnitError};

    #[test]
    fn quantities_print_the_largest_unit_that_divides_them() {
        assert_eq!(Bytes::new(8 << 30).to_string(), "8GiB");
        assert_eq!(Bytes::new(1536).to_string(), "1536B");
        assert_eq!(Bytes::new(0).to_string(), "0B");
        assert_eq!(Millis::new(7_200_000).to_string(), "2h");
        assert_eq!(Millis::new(90_000).to_string(), "90s");
        assert_eq!(Millis::new(1500).to_string(), "1500ms");
    }

    #[test]
    fn every_unit_is_read() {
        for (text, n) in [("3B", 3), ("3KiB", 3 << 10), ("3MiB", 3 << 20), ("3GiB", 3 << 30)] {
            assert_eq!(text.parse(), Ok(Bytes::new(n)), "{text}");
        }
        for (text, n) in [("3ms", 3), ("3s", 3000), ("3m", 180_000), ("3h", 10_800_000)] {
            assert_eq!(text.parse(), Ok(Millis::new(n)), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_quantity_is_refused_by_its_reason() {
        use UnitError::{MissingUnit, NotAnInteger, Overflow, UnknownUnit};
        let bytes = |text: &str| text.parse::<Bytes>().expect_err(text);
        for text in ["", "GiB", "-1B", "+1B", " 1B", "1.5GiB", "1 GiB", "1B ", "1_000B"] {
            assert_eq!(bytes(text), NotAnInteger, "{text:?}");
        }
        assert!(matches!(bytes("10"), MissingUnit { .. }));
        for text in ["1GB", "1gib", "1h", "1KB"] {
            assert!(matches!(bytes(text), UnknownUnit { .. }), "{text:?}");
        }
        for text in ["18446744073709551616B", "17179869184GiB", "99999999999999999999999GiB"] {
            assert_eq!(bytes(text), Overflow, "{text:?}");
        }
        assert_eq!("18446744073709551615B".parse(), Ok(Bytes::new(u64::MAX)));
        assert_eq!("5124095576031h".parse::<Millis>(), Err(Overflow));
        assert_eq!(
            "5124095576030h".parse().map(|t: Millis| t.to_string()),
            Ok("5124095576030h".into())
        );
    }

    proptest! {
        #[test]
        fn parsing_what_was_printed_gives_the_same_quantity(n: u64, shift in 0_u32..40) {
            for n in [n, n >> shift, (n >> shift) << shift] {
                prop_assert_eq!(Bytes::new(n).to_string().parse(), Ok(Bytes::new(n)));
                prop_assert_eq!(Millis::new(n).to_string().parse(), Ok(Millis::new(n)));
            }
        }
    }
}
