//! What a box that is alive has used, beside what it may.

use h5i_policy::{Bytes, Limits, Millis};
use serde_json::{Value, json};

use super::status::rough;
use crate::session::Live;
use crate::timestamp::Timestamp;

/// One budget, or what has none.
struct Row {
    name: &'static str,
    unit: Unit,
    used: Option<u64>,
    allowed: Option<u64>,
}

#[derive(Clone, Copy)]
enum Unit {
    Bytes,
    Millis,
    Number,
}

/// `memory 312 MiB of 8 GiB · disk 1.2 GiB of 20 GiB · processes 21 of 1024 · …`
pub(super) fn words(live: &Live, limits: &Limits) -> String {
    let shown = |row: &Row| {
        let of = row.allowed.map(|allowed| format!(" of {}", row.unit.words(allowed)));
        match row.used {
            Some(used) => {
                format!("{} {}{}", row.name, row.unit.words(used), of.unwrap_or_default())
            }
            None => {
                let most = row.allowed.map(|most| format!(", at most {}", row.unit.words(most)));
                format!("{} not counted yet{}", row.name, most.unwrap_or_default())
            }
        }
    };
    let rows = rows(live, limits);
    let told = rows.iter().filter(|row| row.used.is_some() || row.allowed.is_some());
    told.map(shown).collect::<Vec<_>>().join(" · ")
}

/// The same for programs: `used` and `allowed` in bytes, milliseconds or numbers; null where it is
/// not known or there is no budget.
pub(super) fn data(live: &Live, limits: &Limits) -> Value {
    let rows = rows(live, limits).into_iter();
    rows.map(|row| (row.name.to_owned(), json!({ "used": row.used, "allowed": row.allowed })))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn rows(live: &Live, limits: &Limits) -> [Row; 6] {
    let bytes = |limit: Option<Bytes>| limit.map(Bytes::count);
    let millis = |limit: Option<Millis>| limit.map(Millis::count);
    let now = Timestamp::now().millis();
    let longest = live.runs.iter().map(|run| now.saturating_sub(run.since_ms)).max();
    let row = |name, unit, used, allowed| Row { name, unit, used, allowed };
    [
        row("wall", Unit::Millis, longest, millis(limits.wall)),
        row(
            "session",
            Unit::Millis,
            Some(now.saturating_sub(live.since_ms)),
            millis(limits.session),
        ),
        row("cpu", Unit::Millis, Some(live.cpu_ms), millis(limits.cpu)),
        row("memory", Unit::Bytes, Some(super::live::memory(live)), bytes(limits.memory)),
        row(
            "processes",
            Unit::Number,
            Some(live.processes.len() as u64),
            limits.processes.map(u64::from),
        ),
        row("disk", Unit::Bytes, live.disk_bytes, bytes(limits.disk)),
    ]
}

impl Unit {
    fn words(self, n: u64) -> String {
        match self {
            Self::Bytes => size(n),
            Self::Millis => rough(n),
            Self::Number => n.to_string(),
        }
    }
}

/// `312 MiB`, `1.2 GiB`: three digits at most, the last one cut off.
pub(super) fn size(bytes: u64) -> String {
    let mut unit = ("B", 1u64);
    for larger in [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)] {
        if bytes >= larger.1 {
            unit = larger;
        }
    }
    let (name, one) = unit;
    let tenths = bytes.saturating_mul(10) / one;
    if tenths < 100 && !tenths.is_multiple_of(10) {
        return format!("{}.{} {name}", tenths / 10, tenths % 10);
    }
    format!("{} {name}", bytes / one)
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_are_told_in_their_largest_unit() {
        let told = [0, 1023, 1024, 1536, 10 << 20, 312 << 20, 5 << 28, 20 << 30].map(size);
        let words = ["0 B", "1023 B", "1 KiB", "1.5 KiB", "10 MiB", "312 MiB", "1.2 GiB", "20 GiB"];
        assert_eq!(told, words);
    }
}
