//! The JSON of every verb: one object, `{"h5i":1,"ok":…}`.

use std::io::{self, Write};

use serde::Serialize;

use crate::failure::Failure;

/// The version of the envelope and of what it holds.
pub const VERSION: u32 = 1;

/// What a verb answers with `--json`.
///
/// `ok` says whether h5i did what was asked; a program in the box that failed is `ok` with its exit
/// code in the data.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct Envelope<'a, T: Serialize> {
    h5i: u32,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Failure>,
}

impl<T: Serialize> Envelope<'static, T> {
    /// The answer of a verb that did what was asked.
    pub const fn success(data: T) -> Self {
        Self { h5i: VERSION, ok: true, data: Some(data), error: None }
    }
}

impl<'a> Envelope<'a, ()> {
    /// The answer of a verb that did not.
    #[must_use]
    pub const fn failure(failure: &'a Failure) -> Self {
        Self { h5i: VERSION, ok: false, data: None, error: Some(failure) }
    }
}

impl<T: Serialize> Envelope<'_, T> {
    /// Writes the object and a line end.
    ///
    /// # Errors
    /// What writing says.
    pub fn write_to(&self, out: &mut dyn Write) -> io::Result<()> {
        serde_json::to_writer(&mut *out, self)?;
        out.write_all(b"\n")
    }
}

#[cfg(test)]
mod tests {
    use serde::Serialize;

    use super::Envelope;
    use crate::failure::Failure;
    use crate::store::{BoxName, DraftError};

    fn text<T: Serialize>(envelope: &Envelope<'_, T>) -> String {
        let mut out = Vec::new();
        envelope.write_to(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn success_has_data_and_no_error() {
        let answer = Envelope::success([("name", "a")].map(|(k, v)| format!("{k}={v}")));
        assert_eq!(text(&answer), "{\"h5i\":1,\"ok\":true,\"data\":[\"name=a\"]}\n");
    }

    #[test]
    fn failure_has_kind_message_hint_and_details() {
        let failure = Failure::from(DraftError::Exists { name: BoxName::new("a").unwrap() });
        assert_eq!(
            text(&Envelope::failure(&failure)),
            "{\"h5i\":1,\"ok\":false,\"error\":{\"kind\":\"exists\",\"message\":\"box `a` exists\",\
             \"hint\":\"another name, or h5i box rm a\",\"details\":{\"name\":\"a\"}}}\n"
        );
    }
}
