//! Moments in the box's files.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// A moment in whole milliseconds since 1970, UTC, written as `2026-05-01T14:02:11.482Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Timestamp(u64);

/// A text is not a moment in the one format that [`Timestamp`] writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a moment is written as `2026-05-01T14:02:11.482Z`")]
pub struct TimestampError;

const DAY: u64 = 86_400_000;

impl Timestamp {
    /// `n` milliseconds after the start of 1970.
    #[must_use]
    pub const fn from_millis(n: u64) -> Self {
        Self(n)
    }

    /// Now, by the host's clock; a clock before 1970 counts as 1970.
    #[must_use]
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    /// Milliseconds since the start of 1970.
    #[must_use]
    pub const fn millis(self) -> u64 {
        self.0
    }

    /// This moment and `n` milliseconds; saturates.
    #[must_use]
    pub const fn plus_millis(self, n: u64) -> Self {
        Self(self.0.saturating_add(n))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, rest) = (self.0 / DAY, self.0 % DAY);
        let (year, month, day) = civil(days);
        let (hour, minute) = (rest / 3_600_000, rest / 60_000 % 60);
        let (second, milli) = (rest / 1000 % 60, rest % 1000);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
    }
}

/// The date of a day counted from 1970-01-01 in the proleptic Gregorian calendar.
///
/// Howard Hinnant's `civil_from_days`, for days that are not negative.
fn civil(days: u64) -> (u64, u64, u64) {
    let z = days + 719_468;
    let era = z / 146_097;
    let of_era = z % 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

/// The day, counted from 1970-01-01, of a date.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    let year = if month <= 2 { year.checked_sub(1)? } else { year };
    let of_era = year % 400;
    let shifted = if month > 2 { month - 3 } else { month + 9 };
    let of_year = (153 * shifted + 2) / 5 + day - 1;
    let day_of_era = of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    (year / 400 * 146_097 + day_of_era).checked_sub(719_468)
}

impl TryFrom<String> for Timestamp {
    type Error = TimestampError;

    fn try_from(text: String) -> Result<Self, TimestampError> {
        let field = |from: usize, to: usize| -> Result<u64, TimestampError> {
            let digits = text.get(from..to).ok_or(TimestampError)?;
            if !digits.bytes().all(|b| b.is_ascii_digit()) {
                return Err(TimestampError);
            }
            digits.parse().or(Err(TimestampError))
        };
        let (year, month, day) = (field(0, 4)?, field(5, 7)?, field(8, 10)?);
        let (hour, minute, second) = (field(11, 13)?, field(14, 16)?, field(17, 19)?);
        let milli = field(20, 23)?;
        if !(1..=12).contains(&month) || day == 0 {
            return Err(TimestampError);
        }
        let day = days(year, month, day).ok_or(TimestampError)?;
        let moment = Self(day * DAY + hour * 3_600_000 + minute * 60_000 + second * 1000 + milli);
        // What does not print back as it was read had a field out of range or another separator.
        if moment.to_string() == text { Ok(moment) } else { Err(TimestampError) }
    }
}

impl From<Timestamp> for String {
    fn from(moment: Timestamp) -> Self {
        moment.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::{Timestamp, TimestampError};

    #[test]
    fn known_moments_print_as_the_calendar_says() {
        assert_eq!(Timestamp::from_millis(0).to_string(), "1970-01-01T00:00:00.000Z");
        let leap = Timestamp::from_millis(951_782_400_123);
        assert_eq!(leap.to_string(), "2000-02-29T00:00:00.123Z");
    }

    #[test]
    fn parsing_undoes_printing_on_every_day_of_four_centuries() {
        for day in 0..146_097_u64 {
            let moment = Timestamp::from_millis(day * 86_400_000 + 45_296_789);
            assert_eq!(Timestamp::try_from(moment.to_string()), Ok(moment));
        }
    }

    #[test]
    fn dates_that_are_none_are_refused() {
        for text in
            ["", "2026-02-30T00:00:00.000Z", "2026-05-01 14:02:11.482Z", "+026-05-01T14:02:11.482Z"]
        {
            assert_eq!(Timestamp::try_from(text.to_owned()), Err(TimestampError), "{text}");
        }
    }
}
