//! What the words of a command tell.

/// Commands that shells carry out themselves, for whoever reports without knowing.
const BUILTINS: [&str; 58] = [
    ".", ":", "[", "alias", "bg", "bind", "break", "builtin", "caller", "case", "cd", "command",
    "compgen", "complete", "continue", "declare", "dirs", "disown", "echo", "enable", "eval",
    "exec", "exit", "export", "false", "fc", "fg", "for", "function", "getopts", "hash", "help",
    "history", "if", "jobs", "kill", "let", "local", "logout", "mapfile", "popd", "printf",
    "pushd", "pwd", "read", "readonly", "return", "set", "shift", "shopt", "source", "test",
    "time", "trap", "true", "type", "ulimit", "umask",
];

/// Whether a shell carries out a command of this name itself.
pub(super) fn is_builtin(name: &[u8]) -> bool {
    BUILTINS.iter().any(|word| word.as_bytes() == name)
}

/// The last part of a path.
pub(super) fn base(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}

/// Whether nothing in a command starts another program on the way.
pub(super) fn is_plain(command: &[u8]) -> bool {
    !command.iter().any(|byte| matches!(byte, b'`' | b'(' | b'\n'))
}

/// The command of a `bash -c` that reads `BASH_ENV`.
pub(super) fn command_of(argv: &[Vec<u8>]) -> Option<&[u8]> {
    let (name, mut rest) = argv.split_first()?;
    let name = base(name);
    if name.strip_prefix(b"-").unwrap_or(name) != b"bash" {
        return None;
    }
    let mut takes_a_command = false;
    while let Some((word, after)) = rest.split_first() {
        match word.as_slice() {
            [b'-', b'-', ..] if word != b"--" => rest = after,
            [b'-' | b'+', options @ ..] if !options.is_empty() && word != b"--" => {
                // One that is interactive reads another file.
                if options.contains(&b'i') {
                    return None;
                }
                takes_a_command |= word[0] == b'-' && options.contains(&b'c');
                let has_value = options.iter().any(|option| matches!(option, b'o' | b'O'));
                rest = if has_value { after.get(1..).unwrap_or_default() } else { after };
            }
            _ if !takes_a_command => return None,
            _ if word == b"--" => return after.first().map(Vec::as_slice),
            _ => return Some(word),
        }
    }
    None
}
