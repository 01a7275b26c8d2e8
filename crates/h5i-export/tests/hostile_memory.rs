//! The memory that a receipt takes to refuse is bounded, whatever it holds.
//!
//! What is allocated at one moment is counted, for the whole process: the one test here has it to itself.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::alloc::System;
use std::io::{Read, repeat};

use cap::Cap;
use h5i_export::{Digest, ReceiptError, VerifyError, verify_receipt};

#[global_allocator]
static ALLOCATED: Cap<System> = Cap::new(System, usize::MAX);

/// What a refusal may take, in bytes: a record as long as a line of a log can be, of nothing but numbers.
const MOST: usize = 48 << 20;

/// `before`, then 15 MB of a list's numbers, then `after`.
fn long(before: &str, after: &str) -> impl Read {
    const TIMES: usize = 7_500_000;
    let numbers = Numbers { left: 2 * TIMES };
    let (before, after) = (before.to_owned().into_bytes(), format!("0]{after}").into_bytes());
    std::io::Cursor::new(before).chain(numbers).chain(std::io::Cursor::new(after))
}

/// `0,` again and again, made as it is read.
struct Numbers {
    left: usize,
}

impl Read for Numbers {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let most = self.left.min(into.len());
        for byte in &mut into[..most] {
            *byte = if self.left.is_multiple_of(2) { b'0' } else { b',' };
            self.left -= 1;
        }
        Ok(most)
    }
}

#[test]
fn a_receipt_is_refused_in_bounded_memory() {
    let digest = Digest::of(b"");
    let begun = format!(
        "{{\"manifest\":\"{digest}\",\"head\":{{\"records\":1,\"last\":\"{digest}\"}},\"records\":["
    );
    let refused = |source: &mut dyn Read| match verify_receipt(source, |_| ()) {
        Err(VerifyError::Receipt(error)) => error,
        other => panic!("{other:?}"),
    };
    let unknown = refused(&mut long("{\"x\":[", ",").chain(long("\"y\":[", "}")));
    assert!(matches!(&unknown, ReceiptError::Unknown { field } if field == "x"), "{unknown:?}");
    let known = refused(&mut long("{\"name\":[", "}"));
    assert!(matches!(known, ReceiptError::Text(_)), "{known:?}");
    let record = refused(&mut long(&format!("{begun}{{\"v\":1,\"x\":["), "}]}"));
    assert!(matches!(record, ReceiptError::LongRecord { number: 0 }), "{record:?}");
    // As long as may be: it is read, and is no record.
    let within = format!("{begun}{{\"v\":1,\"x\":[{}0]}}]}}", "0,".repeat(500_000));
    let read = refused(&mut within.as_bytes());
    assert!(matches!(read, ReceiptError::Record { number: 0, .. }), "{read:?}");
    let most = ALLOCATED.max_allocated();
    assert!(most < MOST, "{most} bytes at most");
    // The twin: the count counts.
    let mut all = Vec::new();
    repeat(0).take(MOST as u64).read_to_end(&mut all).unwrap();
    assert!(ALLOCATED.max_allocated() > MOST);
}
