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

/// Variables by which every program finds other programs, files or people, or runs code of somebody
/// else at its start. A grant gives its variable an address or a token, which changes with each run:
/// in one of these it would break whatever reads it, or have it load what it should not.
const STEERING: &[&str] = &[
    // Shells and the C library.
    "BASH_ENV",
    "CDPATH",
    "ENV",
    "GCONV_PATH",
    "GLIBC_TUNABLES",
    "HOME",
    "IFS",
    "LOGNAME",
    "MALLOC_CONF",
    "NLSPATH",
    "OLDPWD",
    "PATH",
    "PROMPT_COMMAND",
    "PS1",
    "PS2",
    "PS4",
    "PWD",
    "SHELL",
    "SHELLOPTS",
    "BASHOPTS",
    "TEMP",
    "TERM",
    "TERMINFO",
    "TMP",
    "TMPDIR",
    "TZ",
    "USER",
    "ZDOTDIR",
    // Language runtimes and compilers.
    "CC",
    "CXX",
    "CLASSPATH",
    "GEM_HOME",
    "GEM_PATH",
    "GOFLAGS",
    "GOROOT",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
    "LUA_INIT",
    "MAKEFLAGS",
    "NODE_EXTRA_CA_CERTS",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PERL5DB",
    "PERL5LIB",
    "PERL5OPT",
    "PHPRC",
    "PYTHONHOME",
    "PYTHONINSPECT",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PYTHONUSERBASE",
    "RUBYLIB",
    "RUBYOPT",
    "RUSTC",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTDOC",
    "RUSTFLAGS",
    "VIRTUAL_ENV",
    // Programs that are started by name.
    "BROWSER",
    "EDITOR",
    "PAGER",
    "VISUAL",
    // Whom programs trust; for a grant by `intercept` h5i sets these.
    "AWS_CA_BUNDLE",
    "CARGO_HTTP_CAINFO",
    "CURL_CA_BUNDLE",
    "DENO_CERT",
    "OPENSSL_CONF",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
];

/// The same of whole families: git, the loaders of Linux and macOS, the locale, and what h5i itself
/// tells a run.
const STEERING_FAMILIES: &[&str] = &["GIT_", "LD_", "DYLD_", "LC_", "XDG_", "H5I_"];

/// Whether a variable steers programs, so that no grant may put its address or token there.
pub(crate) fn steers_programs(name: &str) -> bool {
    STEERING.contains(&name)
        || matches!(name, "LANG" | "LANGUAGE")
        || STEERING_FAMILIES.iter().any(|family| name.starts_with(family))
        || is_never_passed(name)
}

#[cfg(test)]
mod tests {
    use super::{is_env_name, is_never_passed, steers_programs};

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

    #[test]
    fn what_steers_programs_is_told_from_what_programs_ask_a_service_by() {
        for name in [
            "PATH",
            "HOME",
            "IFS",
            "ENV",
            "BASH_ENV",
            "LD_PRELOAD",
            "LD_LIBRARY_PATH",
            "GIT_DIR",
            "GIT_SSH_COMMAND",
            "NODE_OPTIONS",
            "PYTHONPATH",
            "LANG",
            "LC_ALL",
            "HTTPS_PROXY",
            "all_proxy",
            "SSL_CERT_FILE",
            "H5I_ARTIFACT_DIGEST",
        ] {
            assert!(steers_programs(name), "{name}");
        }
        for name in [
            "ANTHROPIC_BASE_URL",
            "ANTHROPIC_AUTH_TOKEN",
            "OPENAI_API_KEY",
            "API_URL",
            "GH_TOKEN",
            "GITHUB_TOKEN",
            "NPM_CONFIG_REGISTRY",
            "HOMEPAGE_URL",
            "PATHS",
            "MY_PATH",
            "path",
        ] {
            assert!(!steers_programs(name), "{name}");
        }
    }
}
