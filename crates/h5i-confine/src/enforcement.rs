//! What is really enforced, mechanism by mechanism.

/// Whether a mechanism stands between the box and the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// It is enforced.
    On,
    /// The policy chose to do without it.
    OffByChoice,
    /// The host does not have it, and the policy allows that.
    Absent,
}

impl State {
    /// The word for receipts.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::OffByChoice => "off-by-choice",
            Self::Absent => "absent",
        }
    }
}

/// One mechanism of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mechanism {
    /// Name: `user namespace`, `landlock`, `system-call filter`, ….
    pub name: &'static str,
    /// Whether it is enforced.
    pub state: State,
    /// Its extent in a few words: `ABI 7`, `62 refused, 5 absent`.
    pub detail: String,
}

/// What is really enforced in a session. Every mechanism is listed, also the ones that are off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Enforcement {
    /// The mechanisms, in the order in which they are set up.
    pub mechanisms: Vec<Mechanism>,
}

impl Enforcement {
    /// Adds a mechanism: one that the caller holds, who lets nothing run without it.
    pub fn add(&mut self, name: &'static str, state: State, detail: impl Into<String>) {
        self.mechanisms.push(Mechanism { name, state, detail: detail.into() });
    }

    pub(crate) fn set(&mut self, name: &str, state: State, detail: &str) {
        for mechanism in self.mechanisms.iter_mut().filter(|mechanism| mechanism.name == name) {
            mechanism.state = state;
            detail.clone_into(&mut mechanism.detail);
        }
    }

    /// The mechanisms that do not stand between the box and the host.
    pub fn missing(&self) -> impl Iterator<Item = &Mechanism> {
        self.mechanisms.iter().filter(|m| m.state != State::On)
    }
}
