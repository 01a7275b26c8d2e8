//! The forms of what a box may put into its spool.

/// Begins a remark: the rest of the file is its text.
const NOTE: &[u8] = b"h5i-note 1\n";
/// Begins a reported command: lines of a name and a value, and behind an empty one the command.
const COMMAND: &[u8] = b"h5i-command 1\n";

/// What a box says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// A remark.
    Note(Vec<u8>),
    /// A shell begins with a command.
    Begun {
        /// The shell, as the box numbers it.
        shell: u32,
        /// The command's number in its shell.
        number: u64,
        /// The command as it was typed or passed.
        command: Vec<u8>,
        /// Its program, where the shell took its first word for the name of a file.
        program: Option<Vec<u8>>,
    },
    /// A shell is through with one.
    Ended {
        /// The shell, as the box numbers it.
        shell: u32,
        /// The command's number in its shell.
        number: u64,
        /// Its exit code.
        status: i32,
        /// How it ran.
        form: Form,
    },
    /// A program reports a command that is over.
    Ran {
        /// The command.
        command: Vec<u8>,
        /// Its program.
        program: Vec<u8>,
        /// Its exit code.
        status: i32,
    },
}

/// What the exit code of a command is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// One program, in the foreground: the code is its own.
    Program,
    /// The whole life of the shell: the code is the shell's own.
    Shell,
    /// More than one, a builtin, a job: of nothing that the host could compare with.
    Other,
}

/// The lines before a command.
#[derive(Default)]
struct Head {
    shell: Option<u32>,
    number: Option<u64>,
    status: Option<i32>,
    form: Option<Form>,
    found: Option<bool>,
    program: Option<Vec<u8>>,
}

impl Claim {
    /// Reads a file of the spool; `None` for what has no known form.
    pub(crate) fn parse(file: &[u8]) -> Option<Self> {
        if let Some(text) = file.strip_prefix(NOTE) {
            return (!text.is_empty()).then(|| Self::Note(text.to_vec()));
        }
        let rest = file.strip_prefix(COMMAND)?;
        let mut head = Head::default();
        let mut lines = rest.split_inclusive(|byte| *byte == b'\n');
        let mut length = 0;
        for line in lines.by_ref() {
            length += line.len();
            match line.strip_suffix(b"\n")? {
                [] => break,
                line => head.take(line)?,
            }
        }
        let command = rest.get(length..)?.to_vec();
        match head {
            Head { shell: Some(shell), number: Some(number), status: None, form: None, .. } => {
                let program = head.program.filter(|_| head.found == Some(true));
                (!command.is_empty()).then_some(Self::Begun { shell, number, command, program })
            }
            Head {
                shell: Some(shell), number: Some(number), status: Some(status), form, ..
            } => {
                let form = form.unwrap_or(Form::Other);
                command.is_empty().then_some(Self::Ended { shell, number, status, form })
            }
            Head { shell: None, program: Some(program), status: Some(status), .. } => {
                (!command.is_empty()).then_some(Self::Ran { command, program, status })
            }
            _ => None,
        }
    }

    /// The file of a remark.
    pub(crate) fn note(text: &[u8]) -> Vec<u8> {
        [NOTE, text].concat()
    }

    /// The file of a command that is over.
    pub(crate) fn ran(words: &[Vec<u8>], status: i32) -> Vec<u8> {
        let program = words.first().map(Vec::as_slice).unwrap_or_default();
        let plain: Vec<u8> = program.iter().copied().filter(|byte| *byte != b'\n').collect();
        let head = format!("status {status}\nprogram ");
        [COMMAND, head.as_bytes(), &plain, b"\n\n", &words.join(&b' ')].concat()
    }
}

impl Head {
    /// Takes a line; `None` for one that is not known, or comes again.
    fn take(&mut self, line: &[u8]) -> Option<()> {
        let at = line.iter().position(|byte| *byte == b' ')?;
        let (name, value) = (&line[..at], &line[at + 1..]);
        let text = || std::str::from_utf8(value).ok();
        let new = match name {
            b"shell" => self.shell.replace(text()?.parse().ok()?).is_none(),
            b"number" => self.number.replace(text()?.parse().ok()?).is_none(),
            b"status" => self.status.replace(text()?.parse().ok()?).is_none(),
            b"form" => {
                let form = match value {
                    b"program" => Form::Program,
                    b"shell" => Form::Shell,
                    b"other" => Form::Other,
                    _ => return None,
                };
                self.form.replace(form).is_none()
            }
            // What a shell calls a word: `file` in bash, `command` in zsh.
            b"kind" => self.found.replace(matches!(value, b"file" | b"command")).is_none(),
            b"program" if !value.is_empty() => self.program.replace(value.to_vec()).is_none(),
            b"program" => true,
            _ => return None,
        };
        new.then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Claim, Form};

    fn begun(program: Option<&[u8]>) -> Option<Claim> {
        let program = program.map(<[u8]>::to_vec);
        Some(Claim::Begun { shell: 7, number: 2, command: b"npm test\n".to_vec(), program })
    }

    #[test]
    fn every_form_is_read_as_it_is_written() {
        let note = Claim::note(b"a\n\xff");
        assert_eq!(Claim::parse(&note), Some(Claim::Note(b"a\n\xff".to_vec())));
        let words = [b"npm".to_vec(), b"run\nx".to_vec()];
        let (command, program) = (b"npm run\nx".to_vec(), b"npm".to_vec());
        let ran = Claim::Ran { command, program, status: -1 };
        assert_eq!(Claim::parse(&Claim::ran(&words, -1)), Some(ran));
        let head = "h5i-command 1\nshell 7\nnumber 2\n";
        for (kind, program) in
            [("file", Some(&b"npm"[..])), ("command", Some(b"npm")), ("builtin", None), ("", None)]
        {
            let file = format!("{head}program npm\nkind {kind}\n\nnpm test\n");
            assert_eq!(Claim::parse(file.as_bytes()), begun(program), "{kind}");
        }
        for (word, form) in
            [("program", Form::Program), ("shell", Form::Shell), ("other", Form::Other)]
        {
            let file = format!("{head}status 130\nform {word}\n");
            let ended = Claim::Ended { shell: 7, number: 2, status: 130, form };
            assert_eq!(Claim::parse(file.as_bytes()), Some(ended));
        }
    }

    #[test]
    fn what_has_no_known_form_is_nothing() {
        for wrong in [
            "",
            "h5i-note 1\n",
            "h5i-note 2\nx",
            "h5i-command 1\n",
            "h5i-command 1\n\n",
            "h5i-command 1\n\nls",
            "h5i-command 1\nshell 7\n\nls",
            "h5i-command 1\nshell 7\nnumber 1\n\n",
            "h5i-command 1\nshell 7\nnumber 1\nshell 7\n\nls",
            "h5i-command 1\nshell -7\nnumber 1\n\nls",
            "h5i-command 1\nshell 4294967296\nnumber 1\n\nls",
            "h5i-command 1\nshell 7\nnumber 1\nnonsense 1\n\nls",
            "h5i-command 1\nshell 7\nnumber 1\nstatus 0\nform x\n",
            "h5i-command 1\nshell 7\nnumber 1\nstatus 0\n\nls",
            "h5i-command 1\nshell 7\nnumber 1\nstatus 0",
            "h5i-command 1\nstatus 0\n\nls",
            "{\"v\":1,\"seq\":0,\"lane\":\"host\",\"kind\":\"session-end\"}\n",
        ] {
            assert_eq!(Claim::parse(wrong.as_bytes()), None, "{wrong:?}");
        }
    }
}
