//! Names of environment variables.

/// Whether `text` can name a variable: letters, digits and `_`, no digit first.
pub(crate) fn is_env_name(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && text.bytes().next().is_some_and(|b| !b.is_ascii_digit())
}

/// Whether the host's value of this variable must never enter a box: it steers git, the loader, or
/// the way out.
pub(crate) fn is_never_passed(name: &str) -> bool {
    name.starts_with("GIT_")
        || name.starts_with("LD_")
        || name.to_ascii_uppercase().ends_with("_PROXY")
}

#[cfg(test)]
mod tests {
    use super::{is_env_name, is_never_passed};

    #[test]
    fn names_are_told_from_other_text() {
        for name in ["A", "_", "LANG", "npm_config_x", "A1"] {
            assert!(is_env_name(name), "{name}");
        }
        for text in ["", "1A", "A=B", "A B", "A\0", "É"] {
            assert!(!is_env_name(text), "{text:?}");
        }
    }

    #[test]
    fn variables_that_steer_git_the_loader_or_proxies_never_pass() {
        for name in ["GIT_DIR", "LD_PRELOAD", "HTTPS_PROXY", "https_proxy", "NO_PROXY"] {
            assert!(is_never_passed(name), "{name}");
        }
        for name in ["LANG", "LDFLAGS", "GITHUB_ACTIONS", "PROXY"] {
            assert!(!is_never_passed(name), "{name}");
        }
    }
}
