//! The same test for boxes of either back end.

use h5i_testkit::{Need, have};

/// How the boxes of a test are laid out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Layout {
    /// As h5i chooses.
    #[default]
    Auto,
    Checkout,
    Overlay,
}

impl Layout {
    /// The words with this layout in those that make a box.
    pub(crate) fn words<'a>(self, words: &[&'a str]) -> Vec<&'a str> {
        let mut all = words.to_vec();
        let at = match words {
            ["box", "create", ..] => 2,
            ["run", ..] => 1,
            _ => return all,
        };
        let kind = match self {
            Self::Auto => return all,
            Self::Checkout => "checkout",
            Self::Overlay => "overlay",
        };
        all.splice(at..at, ["--workspace", kind]);
        all
    }

    /// Whether the host can lay out boxes like that for the test of this name.
    pub(crate) fn is_had(self, test: &str) -> bool {
        self != Self::Overlay || have(test, Need::Overlay)
    }
}

/// Makes a test `name::checkout` and a test `name::overlay` of each named function, which is given
/// a ground with boxes of that layout.
macro_rules! on_both_back_ends {
    ($ground:ident: $($name:ident),+ $(,)?) => {$(
        mod $name {
            use crate::back_ends::Layout;

            #[test]
            fn checkout() {
                super::$name(&super::$ground::laid_out(Layout::Checkout));
            }

            #[test]
            fn overlay() {
                if Layout::Overlay.is_had(concat!(stringify!($name), "::overlay")) {
                    super::$name(&super::$ground::laid_out(Layout::Overlay));
                }
            }
        }
    )+};
}
