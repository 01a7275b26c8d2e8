//! Quantities of a policy, each with its unit in the type.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(u64);

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

impl fmt::Display for Bytes {
    /// Prints the largest binary unit that divides the number: `8GiB`, `1536B`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, shift) in [("GiB", 30), ("MiB", 20), ("KiB", 10)] {
            if self.0 != 0 && self.0.trailing_zeros() >= shift {
                return write!(f, "{}{unit}", self.0 >> shift);
            }
        }
        write!(f, "{}B", self.0)
    }
}

/// A span of time in whole milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(u64);

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

impl fmt::Display for Millis {
    /// Prints the largest unit that divides the number: `2h`, `90s`, `1500ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, size) in [("h", 3_600_000), ("m", 60_000), ("s", 1000)] {
            if self.0 != 0 && self.0.is_multiple_of(size) {
                return write!(f, "{}{unit}", self.0 / size);
            }
        }
        write!(f, "{}ms", self.0)
    }
}
