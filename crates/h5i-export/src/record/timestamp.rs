//! The time of a record.

use std::fmt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// A moment in UTC with microseconds, from 1970 to 9999.
///
/// Its text is RFC 3339 with exactly six digits of fraction and `Z`:
/// `2026-05-01T14:02:11.482913Z`. The order of texts is the order of time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Timestamp(u64);

/// The text is not a time as [`Timestamp`] writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a time is written as YYYY-MM-DDThh:mm:ss.uuuuuuZ")]
#[non_exhaustive]
pub struct TimestampFormError;

const MICROS: u64 = 1_000_000;
const DAY: u64 = 86_400;
/// 9999-12-31T23:59:59.999999Z.
const LAST: u64 = 253_402_300_800 * MICROS - 1;

impl Timestamp {
    /// The host's clock now; a clock outside the type's range gives its nearest end.
    #[must_use]
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(u64::try_from(since.as_micros()).unwrap_or(LAST).min(LAST))
    }

    /// `micros` microseconds after 1970-01-01T00:00:00Z; later than the year 9999 is its end.
    #[must_use]
    pub fn from_unix_micros(micros: u64) -> Self {
        Self(micros.min(LAST))
    }

    /// Microseconds since 1970-01-01T00:00:00Z.
    #[must_use]
    pub const fn unix_micros(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, micros) = (self.0 / MICROS, self.0 % MICROS);
        let (days, time) = (seconds / DAY, seconds % DAY);
        let (year, month, day) = civil(days);
        let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Timestamp {
    type Err = TimestampFormError;

    fn from_str(text: &str) -> Result<Self, TimestampFormError> {
        let number = |from: usize, to: usize| {
            let digits = text.as_bytes().get(from..to).ok_or(TimestampFormError)?;
            digits.iter().try_fold(0_u64, |sum, digit| match digit {
                b'0'..=b'9' => Ok(sum * 10 + u64::from(digit - b'0')),
                _ => Err(TimestampFormError),
            })
        };
        let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
        if year < 1970 || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
            return Err(TimestampFormError);
        }
        let time = number(11, 13)? * 3600 + number(14, 16)? * 60 + number(17, 19)?;
        let moment = Self((days(year, month, day) * DAY + time) * MICROS + number(20, 26)?);
        // Separators, length and ranges: whatever is not as printed does not come back the same.
        if moment.0 <= LAST && moment.to_string() == text {
            Ok(moment)
        } else {
            Err(TimestampFormError)
        }
    }
}

impl TryFrom<String> for Timestamp {
    type Error = TimestampFormError;
    fn try_from(text: String) -> Result<Self, TimestampFormError> {
        text.parse()
    }
}

impl From<Timestamp> for String {
    fn from(moment: Timestamp) -> Self {
        moment.to_string()
    }
}

/// Year, month and day of a day counted from 1970-01-01, in years that begin in March so that the
/// leap day is the last one.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year + era * 400 + u64::from(month <= 2), month, day)
}

/// The inverse of [`civil`] for years from 1970.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let year = year - u64::from(month <= 2);
    let (era, of_era) = (year / 400, year % 400);
    let shifted = if month > 2 { month - 3 } else { month + 9 };
    let of_year = (153 * shifted + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{LAST, Timestamp};

    #[test]
    fn known_moments_have_their_known_text() {
        let table = [
            (0, "1970-01-01T00:00:00.000000Z"),
            (951_782_400_000_000, "2000-02-29T00:00:00.000000Z"),
            (1_777_644_131_482_913, "2026-05-01T14:02:11.482913Z"),
            (LAST, "9999-12-31T23:59:59.999999Z"),
        ];
        for (micros, text) in table {
            assert_eq!(Timestamp::from_unix_micros(micros).to_string(), text);
        }
    }

    #[test]
    fn other_spellings_are_refused() {
        for wrong in [
            "2026-05-01T14:02:11Z",
            "2026-05-01T14:02:11.482913+00:00",
            "2026-02-30T00:00:00.000000Z",
            "2026-05-01 14:02:11.482913Z",
            "2026-05-01T24:00:00.000000Z",
            "1969-12-31T23:59:59.999999Z",
            "",
        ] {
            wrong.parse::<Timestamp>().expect_err(wrong);
        }
    }

    proptest! {
        #[test]
        fn any_moment_comes_back(micros in 0..=LAST) {
            let moment = Timestamp::from_unix_micros(micros);
            prop_assert_eq!(moment.to_string().parse::<Timestamp>(), Ok(moment));
        }
    }
}
