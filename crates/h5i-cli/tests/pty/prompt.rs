//! The shell that `box shell` starts, and its prompt.

use h5i_testkit::{Need, have};

use crate::seat::{Seat, with_box};
use crate::stand::H5I;

#[test]
fn each_shell_starts_with_a_prompt_and_without_a_question() {
    let stand = with_box();
    for (shell, prompt) in [
        ("/bin/bash", "box@a:/work$ "),
        ("/usr/bin/zsh", "box@a:/work%"),
        ("/bin/sh", "$ "),
        ("/nonexistent/fish", "box@a:/work$ "),
        ("/bin/false", "box@a:/work$ "),
    ] {
        let there = shell != "/usr/bin/zsh" || have("each_shell_starts", Need::Program(shell));
        if !there {
            continue;
        }
        let mut seat = Seat::with(&stand, H5I, &["box", "shell", "a"], &[("SHELL", shell)]);
        let before = seat.expect(prompt);
        let before = String::from_utf8_lossy(&before).into_owned();
        assert!(!before.contains("configuration"), "{shell}: {before}");
        seat.line("exit 5");
        assert_eq!(seat.end().0, 5, "{shell}");
        assert!(seat.is_restored(), "{shell}");
    }
}

#[test]
fn settings_in_the_home_of_the_box_hold() {
    let stand = with_box();
    stand.sh("a", "echo \"PS1='mine> '\" > ~/.bashrc; cp ~/.bashrc ~/.zshrc");
    for shell in ["/bin/bash", "/usr/bin/zsh"] {
        if shell == "/bin/bash" || have("settings_in_the_home", Need::Program(shell)) {
            let mut seat = Seat::with(&stand, H5I, &["box", "shell", "a"], &[("SHELL", shell)]);
            seat.expect("mine> ");
            seat.line("exit");
            assert_eq!(seat.end().0, 0, "{shell}");
        }
    }
}
