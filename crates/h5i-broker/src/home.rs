//! What of a person's home goes into a box: configuration without credentials.
//!
//! [`strip`] takes credentials out of a file, [`seed`] copies the files of the tools that are known,
//! [`set_up`] makes a runtime start without a login.

mod beneath;
mod contents;
mod git;
mod ini;
mod json;
mod names;
mod netrc;
mod outline;
mod placeholder;
mod plain;
mod seed;
mod shell;
mod table;
mod toml;
mod yaml;

pub use placeholder::{Runtime, SetUpError, set_up};
pub use seed::{Copied, NotCopied, SeedError, Seeded, seed};
pub use table::{SeedFile, Tool, seeds_of};

use table::Keep;

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Format {
    /// JSON, without comments. RFC 8259.
    Json,
    /// TOML 1.0; Cargo's credentials, too.
    Toml,
    /// YAML 1.2.
    Yaml,
    /// Git's configuration.
    GitConfig,
    /// npm's `.npmrc`.
    Npmrc,
    /// Sections of `name = value`, whose values go on in indented lines: `pip.conf`, `.pypirc`.
    Ini,
    /// `.netrc`.
    Netrc,
    /// A shell's start-up file.
    Shell,
    /// Prose, Markdown.
    Text,
}

/// A file without its credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stripped {
    /// What is left, byte for byte as it was; all of it where nothing was removed.
    pub bytes: Vec<u8>,
    /// What was removed, in the order of the file.
    pub removed: Vec<Removed>,
}

/// Something that was removed. It has no part of the value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Removed {
    /// Where it stood: names joined by dots, or a line's number.
    pub place: String,
    /// Why.
    pub why: &'static str,
}

/// Why a file is not copied at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StripError {
    /// It is no UTF-8, or has a byte order mark.
    #[error("it is no plain UTF-8")]
    NotText,
    /// It is not of its format, as far as that is understood here.
    #[error("it is not understood")]
    NotUnderstood,
    /// A credential would be left in it.
    #[error("it can't be freed from credentials")]
    NotClean,
}

/// Takes credentials out of a file, at any depth.
///
/// A credential is known by its name (`token`, `password`, `apiKey`; what is below such a name goes
/// with it), or by itself: the shapes that issuers publish, private keys, passwords in URLs, an
/// assignment to such a name inside of another value or a comment, and, where the name is
/// suspicious, 32 characters that look random. A secret that has neither a name nor a shape is not
/// found.
///
/// # Errors
/// [`StripError`]; nothing of the file is to be copied then.
pub fn strip(format: Format, bytes: &[u8]) -> Result<Stripped, StripError> {
    strip_to(format, Keep::All, bytes)
}

/// Takes credentials out, and whatever is not to be kept.
fn strip_to(format: Format, keep: Keep, bytes: &[u8]) -> Result<Stripped, StripError> {
    let text = std::str::from_utf8(bytes).ok().filter(|text| !text.starts_with('\u{feff}'));
    let text = text.ok_or(StripError::NotText)?;
    let once = |text: &str| match format {
        Format::Json => json::strip(text, keep),
        Format::Toml => toml::strip(text, keep),
        Format::Yaml => yaml::strip(text),
        Format::GitConfig => git::strip(text, keep),
        Format::Npmrc => ini::strip(text, ini::Dialect::Npm),
        Format::Ini => ini::strip(text, ini::Dialect::Indented),
        Format::Netrc => netrc::strip(text),
        Format::Shell => shell::strip(text),
        Format::Text => Ok(plain::strip(text)),
    };
    checked(text, once)
}

/// What `once` makes of a text, if it finds nothing to do in that again.
fn checked(
    text: &str,
    once: impl Fn(&str) -> Result<(String, Vec<Removed>), StripError>,
) -> Result<Stripped, StripError> {
    let (clean, removed) = once(text)?;
    if !removed.is_empty() {
        // What a removal makes of its surroundings is looked at as if it came from outside.
        let (again, left) = once(&clean).map_err(|_cause| StripError::NotClean)?;
        if !left.is_empty() || again != clean {
            return Err(StripError::NotClean);
        }
    }
    // Whatever the reader of a format may have passed over.
    if contents::shape(&clean).is_some() {
        return Err(StripError::NotClean);
    }
    Ok(Stripped { bytes: clean.into_bytes(), removed })
}

impl Removed {
    /// Names come from the file, and are shown to a person.
    fn at(place: &str, why: &'static str) -> Self {
        Self { place: h5i_policy::Escaped(place).to_string(), why }
    }

    fn line(number: usize, why: &'static str) -> Self {
        Self { place: format!("line {number}"), why }
    }
}

#[cfg(test)]
mod tests {
    use super::{Removed, StripError, checked};

    #[test]
    fn what_a_removal_uncovers_is_not_given() {
        let removed = || vec![Removed::line(1, "a test")];
        // The second time it finds something, makes something else, or does not understand.
        for second in [Ok((String::from("b"), removed())), Ok((String::from("c"), Vec::new()))] {
            let once = |text: &str| match text {
                "a" => Ok((String::from("b"), removed())),
                _ => second.clone(),
            };
            assert_eq!(checked("a", once), Err(StripError::NotClean));
        }
        let once = |text: &str| match text {
            "a" => Ok((String::from("b"), removed())),
            _ => Err(StripError::NotUnderstood),
        };
        assert_eq!(checked("a", once), Err(StripError::NotClean));
        let once = |text: &str| match text {
            "a" => Ok((String::from("b"), removed())),
            same => Ok((same.to_owned(), Vec::new())),
        };
        assert_eq!(checked("a", once).map(|clean| clean.bytes), Ok(b"b".to_vec()));
    }
}
