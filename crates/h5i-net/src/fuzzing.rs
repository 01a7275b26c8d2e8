//! What a fuzzer asks of this crate. Not part of its interface.

use crate::relay::{First, Requests, tell};
use crate::resolver::read_packet;

/// Reads bytes as what a program of a box sends first, and as a question to the resolver. Whatever
/// they are, it answers; how they were cut on the way changes nothing; what passes is what came; and
/// what was told apart is not told otherwise when more comes.
///
/// # Panics
/// When it does not.
pub fn box_words(data: &[u8]) {
    read_packet(data);
    for port in [80, 443] {
        let told = tell(data, port);
        let early = tell(&data[..data.len() / 2], port);
        if !matches!(early, First::Incomplete | First::Tls(_)) {
            let same = std::mem::discriminant(&early) == std::mem::discriminant(&told);
            assert!(same, "{early:?} {told:?}");
        }
    }
    // Like the relay, which lets nobody speak on before the answer to an upgrade.
    let feed = |step: usize| -> Option<Vec<u8>> {
        let mut requests = Requests::new(80);
        let mut out = Vec::new();
        for part in data.chunks(step) {
            let read = requests.read(part, &mut out, |name| name.as_str() == "a.example").ok()?;
            if read < part.len() {
                return None;
            }
        }
        Some(out)
    };
    let whole = feed(data.len().max(1));
    assert!(whole.as_ref().is_none_or(|out| data.starts_with(out)));
    assert_eq!(feed(1), whole);
}
