//! The receipt log: appended by one writer, chained by digest, read as what it is.

mod chain;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub(crate) use chain::Follow;
pub use chain::{ChainError, ChainFault, ChainHead, verify_chain};
pub use reader::{Line, LogReader, ReadError};
pub use writer::{AppendError, LogWriter, OpenError, Opened};

/// The longest line of a log, in bytes, without its newline.
pub const MAX_LINE: usize = 1 << 20;
