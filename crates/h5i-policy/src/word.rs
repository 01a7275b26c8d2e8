//! Choices that a policy document writes as one word.

/// A choice that is written as one word, the same in documents, JSON and messages.
pub(crate) trait Word: Copy + 'static {
    /// Every word with its value, in the order in which they are offered to a person.
    const WORDS: &'static [(&'static str, Self)];
}

/// Gives an enum its words: [`Word`], `name`, `Display`.
macro_rules! words {
    ($type:ident { $($variant:ident => $word:literal),+ $(,)? }) => {
        impl $crate::word::Word for $type {
            const WORDS: &'static [(&'static str, Self)] = &[$(($word, $type::$variant)),+];
        }

        impl $type {
            /// The word as it is written in a policy document.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $($type::$variant => $word),+ }
            }
        }

        impl ::std::fmt::Display for $type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}
pub(crate) use words;
