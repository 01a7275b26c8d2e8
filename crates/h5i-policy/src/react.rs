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

/// What a violation is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Violation {
    /// A connection or a name was refused.
    RefusedConnect,
    /// A system call was refused.
    RefusedCall,
    /// A budget ran out.
    Budget,
    /// A planted credential was read or sent.
    CanaryRead,
    /// What the host saw and what the box reported differ.
    Gap,
}
words!(Violation {
    RefusedConnect => "refused-connect",
    RefusedCall => "refused-call",
    Budget => "budget",
    CanaryRead => "canary-read",
    Gap => "gap",
});

impl Violation {
    /// Every kind, in the order of a policy document.
    pub const ALL: [Self; 5] =
        [Self::RefusedConnect, Self::RefusedCall, Self::Budget, Self::CanaryRead, Self::Gap];

    /// The kind with this key in a policy document.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl React {
    /// What a violation of this kind does.
    #[must_use]
    pub const fn to(&self, violation: Violation) -> Reaction {
        match violation {
            Violation::RefusedConnect => self.refused_connect,
            Violation::RefusedCall => self.refused_call,
            Violation::Budget => self.budget,
            Violation::CanaryRead => self.canary_read,
            Violation::Gap => self.gap,
        }
    }

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
