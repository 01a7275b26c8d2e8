//! Arguments of programs, bounded and redacted.

use super::ByteText;

/// Arguments made fit for a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Argv {
    /// The arguments that are kept.
    pub argv: Vec<ByteText>,
    /// How many were left out or cut.
    pub cut: u32,
}

impl Argv {
    /// The most bytes of one argument that are kept.
    pub const MAX_ARG: usize = 4096;
    /// The most bytes of all arguments together that are kept.
    pub const MAX_TOTAL: usize = 65_536;

    /// Keeps what fits the two bounds and redacts secrets of known shapes.
    pub fn bounded<'a>(args: impl IntoIterator<Item = &'a [u8]>) -> Self {
        Self::within(Self::MAX_TOTAL, args)
    }

    /// As [`Argv::bounded`], with `total` bytes for all arguments together.
    pub fn within<'a>(total: usize, args: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut kept = Self::default();
        let mut left = total;
        for arg in args {
            let fit = arg.len().min(Self::MAX_ARG);
            // Empty arguments cost as well, or a million of them would fit.
            if left <= fit {
                kept.cut = kept.cut.saturating_add(1);
                continue;
            }
            left -= fit + 1;
            kept.cut = kept.cut.saturating_add(u32::from(fit < arg.len()));
            kept.argv.push(ByteText::new(crate::secret::redact(&arg[..fit])));
        }
        kept
    }
}
