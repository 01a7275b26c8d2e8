//! The report that a person reads before deciding.

mod canaries;
mod claims;
mod content;
mod findings;
mod flows;
mod grants;
mod history;
mod html;
mod markdown;
mod phrase;
mod programs;
mod refused_calls;
mod runs;
mod tally;
#[cfg(test)]
mod tests;
mod text;

use h5i_policy::Tier;
use serde::{Deserialize, Serialize};

pub use history::History;
pub use runs::Completeness;
pub(crate) use runs::Ends;

use crate::home::HomeFinding;
use crate::review::Reviewed;

/// All that a report is made from.
#[derive(Clone, Copy, Debug)]
pub struct ReportInput<'a> {
    /// The box's name.
    pub name: &'a str,
    /// What the base was called when the box was made, such as a branch.
    pub base_name: &'a str,
    /// The tier.
    pub tier: Tier,
    /// The profile's name.
    pub profile: &'a str,
    /// The digest of the resolved policy, as the policy gives it.
    pub policy: &'a str,
    /// What the box is for, as the person said it.
    pub purpose: Option<&'a str>,
    /// What the box could reach, in words that follow "the box could reach".
    pub network: &'a str,
    /// What in the box's home acts at the next start.
    pub home: &'a [HomeFinding],
    /// What every record of the log tells.
    pub history: &'a History,
    /// Each mechanism and whether it was on.
    pub enforcement: &'a [Mechanism],
    /// What was not enforced or not observed, a sentence each.
    pub not_enforced: &'a [String],
    /// What changed.
    pub reviewed: &'a Reviewed,
}

/// One mechanism of the boundary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mechanism {
    /// Its name.
    pub name: String,
    /// Whether it was on.
    pub state: MechanismState,
    /// Its size, version or the reason for its absence.
    pub detail: String,
}

/// Whether a mechanism was on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum MechanismState {
    /// It was on.
    On,
    /// A person chose to have it off.
    OffByChoice,
    /// The host does not have it.
    Absent,
}

impl ReportInput<'_> {
    /// The report as Markdown: most urgent first, everything from the box inert and redacted.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        markdown::write(&content::content(self))
    }

    /// The same as one HTML page with the patch at its end. It loads nothing and runs nothing; it is
    /// made for light and dark, for narrow screens and for paper. Of a large patch it shows a part
    /// and says so.
    #[must_use]
    pub fn to_html(&self) -> String {
        html::write(&content::content(self), self)
    }
}
