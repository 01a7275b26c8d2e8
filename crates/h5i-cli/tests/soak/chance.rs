//! Chance that can be repeated.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A sequence of numbers that a seed determines (xorshift64*).
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        // Zero would stay zero.
        Self(seed.wrapping_mul(2).wrapping_add(1))
    }

    pub(crate) fn any_seed() -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        u64::from(now.subsec_nanos()) ^ now.as_secs()
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16) % bound
    }

    pub(crate) fn of<'a, T>(&mut self, some: &'a [T]) -> &'a T {
        let count = u64::try_from(some.len()).unwrap();
        &some[usize::try_from(self.below(count)).unwrap()]
    }

    /// A time up to `longest`, short ones more often: most happens early in a life.
    pub(crate) fn time(&mut self, longest: Duration) -> Duration {
        let part = self.below(1000) * self.below(1000);
        longest.mul_f64(f64::from(u32::try_from(part).unwrap()) / 1_000_000.0)
    }
}
