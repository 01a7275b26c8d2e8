//! What a fuzzer asks of this crate. Not part of its interface.

use crate::{NetRule, Pattern, PolicyDocument, ResolvedPolicy};

/// Reads bytes as everything that this crate reads. Whatever they are, it answers; what it accepts
/// as a resolved policy comes back from its own text with the same digest; what it says of the rest
/// is inert.
///
/// # Panics
/// When it does not.
pub fn policy_document(data: &[u8]) {
    if let Err(error) = PolicyDocument::parse("policy.toml", data) {
        let text = error.to_string();
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(policy) = ResolvedPolicy::from_toml("policy.toml", text) {
        let written = policy.to_toml();
        let again = ResolvedPolicy::from_toml("policy.toml", &written);
        assert!(again.is_ok_and(|again| again.digest() == policy.digest()), "{written}");
    }
    for line in text.lines() {
        if let Ok(rule) = line.parse::<NetRule>() {
            let written = rule.to_string();
            assert!(written.parse::<NetRule>().is_ok_and(|again| again == rule), "{written}");
        }
        if let Ok(pattern) = line.parse::<Pattern>() {
            assert_eq!(pattern.matches(data, true), pattern.matches(data, true));
            assert!(pattern.to_string().parse::<Pattern>().is_ok_and(|again| again == pattern));
        }
    }
}
