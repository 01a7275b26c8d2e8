//! What a budget measures, in its unit.

use super::budget_use::size;

/// `1.002 s of 1 s`, `262 MiB of 256 MiB`, `11 of 10 connections`: what was used of a budget, by the
/// name of its limit.
pub(in crate::verbs) fn used_of(limit: &str, used: u64, allowed: u64) -> String {
    match limit {
        "wall" | "session" | "cpu" => format!("{} of {}", span(used), span(allowed)),
        "output" | "file_size" | "memory" | "disk" => bytes(used, allowed),
        "keep_free" if size(used) == size(allowed) => {
            format!("{used} B free, {allowed} B to be kept")
        }
        "keep_free" => format!("{} free, {} to be kept", size(used), size(allowed)),
        "processes" => format!("{used} of {allowed} processes"),
        "open_files" => format!("{used} of {allowed} open files"),
        _ => format!("{used} of {allowed}"),
    }
}

/// The same for a budget of the network, which is known by the reason that it gives.
pub(in crate::verbs) fn network_used_of(reason: &str, used: u64, allowed: u64) -> String {
    match reason {
        reason if reason.contains("bytes") => bytes(used, allowed),
        reason if reason.contains("a second") => {
            format!("{used} of {allowed} connections a second")
        }
        _ => format!("{used} of {allowed} connections"),
    }
}

/// In the largest unit, unless that can't tell the two apart.
fn bytes(used: u64, allowed: u64) -> String {
    let (words, most) = (size(used), size(allowed));
    if words == most && used != allowed {
        return format!("{used} B of {allowed} B");
    }
    format!("{words} of {most}")
}

/// `12 ms`, `1.002 s`, `2 h 3.5 s`: all of it, down to the millisecond.
fn span(millis: u64) -> String {
    if millis < 1000 {
        return format!("{millis} ms");
    }
    let (hours, minutes) = (millis / 3_600_000, millis / 60_000 % 60);
    let (seconds, rest) = (millis / 1000 % 60, millis % 1000);
    let mut parts = Vec::new();
    if hours > 0 {
        parts.push(format!("{hours} h"));
    }
    if minutes > 0 {
        parts.push(format!("{minutes} min"));
    }
    if rest > 0 {
        let fraction = format!("{rest:03}");
        parts.push(format!("{seconds}.{} s", fraction.trim_end_matches('0')));
    } else if seconds > 0 {
        parts.push(format!("{seconds} s"));
    }
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::{network_used_of, used_of};

    #[test]
    fn a_budget_is_told_in_its_unit() {
        for (limit, used, allowed, words) in [
            ("wall", 1002, 1000, "1.002 s of 1 s"),
            ("cpu", 7_203_500, 7_200_000, "2 h 3.5 s of 2 h"),
            ("session", 999, 60_000, "999 ms of 1 min"),
            ("memory", 275_174_400, 256 << 20, "262 MiB of 256 MiB"),
            ("disk", (64 << 20) + 1, 64 << 20, "67108865 B of 67108864 B"),
            ("output", 64 << 20, 64 << 20, "64 MiB of 64 MiB"),
            ("keep_free", 900 << 20, 1 << 30, "900 MiB free, 1 GiB to be kept"),
            ("processes", 5, 4, "5 of 4 processes"),
        ] {
            assert_eq!(used_of(limit, used, allowed), words);
        }
        let spent = network_used_of("the budget of bytes is spent", 2048, 1024);
        assert_eq!(spent, "2 KiB of 1 KiB");
        let spent = network_used_of("the budget of connections is spent", 11, 10);
        assert_eq!(spent, "11 of 10 connections");
        let spent = network_used_of("more connections a second than the budget has", 11, 10);
        assert_eq!(spent, "11 of 10 connections a second");
    }
}
