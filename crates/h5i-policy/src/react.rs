//! What a violation does beyond the record.

use serde::{Deserialize, Serialize};

use crate::word::words;

/// What a violation does beyond the record, by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[non_exhaustive]
pub struct React {
    /// A connection or a name was refused.
    pub refused_connect: Reaction,
    /// A system call was refused.
    pub refused_call: Reaction,
    /// A budget ran out.
    pub budget: Reaction,
    /// A planted credential was read or sent.
    pub canary_read: Reaction,
    /// What the host saw and what the box reported differ.
    pub gap: Reaction,
}

/// What happens with the box, mildest first.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Reaction {
    /// Nothing beyond the record.
    #[default]
    Continue,
    /// Every process of the box is stopped until a person lets it go on.
    Freeze,
    /// `Freeze`, and export is refused until a person lets it pass.
    FreezeExport,
    /// Every process of the box is killed.
    Kill,
}
words!(Reaction {
    Continue => "continue",
    Freeze => "freeze",
    FreezeExport => "freeze-export",
    Kill => "kill",
});

impl React {
    /// Each kind with its key in a policy document and its reaction.
    #[must_use]
    pub const fn kinds(&self) -> [(&'static str, Reaction); 5] {
        [
            ("refused-connect", self.refused_connect),
            ("refused-call", self.refused_call),
            ("budget", self.budget),
            ("canary-read", self.canary_read),
            ("gap", self.gap),
        ]
    }
}
