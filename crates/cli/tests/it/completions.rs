//! Completion in real shells: bash, zsh and elvish at a terminal, with a TAB that is typed, and fish by its own `complete -C`. PowerShell is
//! not there: only what its script would receive is tested.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use trueio_testkit::{Sandbox, skip, tool};

/// Returns true, after a skip, if the shell is not installed.
fn lacks_shell(shell: &str) -> bool {
    tool(shell, &["-c", "exit"]).inspect_err(|reason| skip(shell, reason)).is_err()
}

/// A sandbox whose history has one record, with the script of a shell; and the short ID of the record.
fn sandbox_with_record(shell: &str) -> (Sandbox, String) {
    let sandbox = Sandbox::new();
    let ran = sandbox.run(&[
        "run",
        "--ioengine",
        "null",
        "--size",
        "1m",
        "--rw",
        "read",
        "--number_ios",
        "10",
        "--no-evidence",
    ]);
    ran.assert_code(0);
    let script = sandbox.run(&["completions", shell]);
    script.assert_code(0);
    std::fs::write(sandbox.aside("script"), script.out).expect("the script");
    let list = sandbox.run(&["history", "--json"]).out;
    let list: serde_json::Value = serde_json::from_str(&list).expect("a list");
    let id = list.pointer("/0/id").or_else(|| list.pointer("/runs/0/id")).and_then(|id| id.as_str()).expect("an ID");
    (sandbox, id[..8].to_owned())
}

/// A shell in a sandbox, with no start-up files of the user.
fn shell(sandbox: &Sandbox, program: &str, arguments: &[&str]) -> Command {
    // The environment of the program, and its history, without the program.
    let program_command = sandbox.command(&[]);
    let mut command = Command::new(program);
    command.args(arguments).current_dir(sandbox.root());
    for (name, value) in program_command.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.env("HOME", sandbox.aside("")).env("SCRIPT", sandbox.aside("script")).env("TERM", "dumb");
    command
}

/// Types `keys` at a shell on a terminal, and returns what it wrote. The keys end the shell.
fn typed(mut shell: Command, keys: &str) -> String {
    let (mut master, mut slave) = (-1, -1);
    let size = libc::winsize { ws_row: 50, ws_col: 200, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the two numbers and the size are ours; null pointers skip the name and settings.
    let result =
        unsafe { libc::openpty(&mut master, &mut slave, std::ptr::null_mut(), std::ptr::null(), &raw const size) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: openpty made both descriptors, and nothing else owns them.
    let (master, slave) = unsafe { (OwnedFd::from_raw_fd(master), OwnedFd::from_raw_fd(slave)) };
    // SAFETY: a plain call on our own descriptor.
    unsafe { libc::fcntl(master.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC) };
    let copy = || Stdio::from(slave.try_clone().expect("a descriptor"));
    shell.stdin(copy()).stdout(copy()).stderr(copy());
    // SAFETY: the closure makes only system calls, which are async-signal-safe.
    unsafe {
        shell.pre_exec(|| {
            libc::setsid();
            libc::ioctl(0, libc::TIOCSCTTY, 0);
            Ok(())
        });
    }
    let mut child = shell.spawn().expect("the shell starts");
    drop((shell, slave));
    let mut terminal = File::from(master);
    let (mut text, mut piece, mut is_typed) = (Vec::new(), [0; 4096], false);
    while let Ok(count) = terminal.read(&mut piece) {
        if count == 0 {
            break;
        }
        text.extend_from_slice(&piece[..count]);
        // The prompt appears once the set-up is done: earlier keys would be read by the set-up.
        if !is_typed && String::from_utf8_lossy(&text).contains("READY>") {
            is_typed = true;
            terminal.write_all(keys.as_bytes()).expect("the terminal");
        }
    }
    child.wait().expect("the shell's end");
    String::from_utf8_lossy(&text).into_owned()
}

/// Goal: a TAB at a prompt completes a word.
/// Method: the line is typed with a TAB; then Ctrl-A and `echo G''OT:` turn it into a command that prints it.
fn assert_completed(command: impl Fn() -> Command, cases: &[(String, String)]) {
    for (line, expected) in cases {
        let text = typed(command(), &format!("{line}\t\u{1}echo G''OT: \nexit\n"));
        let found = text.split("GOT: ").nth(1).unwrap_or_else(|| panic!("`{line}` was not printed: {text:?}"));
        let found = found.lines().next().unwrap_or_default().trim_end();
        assert_eq!(found, expected, "{line}\n{text:?}");
    }
}

/// Lines, and what a TAB makes of them.
fn cases(id: &str) -> Vec<(String, String)> {
    [
        ("trueio basel", "trueio baseline"),
        ("trueio study acc", "trueio study access-pattern"),
        ("trueio run --ioengine io_u", "trueio run --ioengine io_uring"),
        ("trueio run --sync-file-r", "trueio run --sync-file-range"),
        ("trueio fio --rwmixr", "trueio fio --rwmixread"),
        ("trueio man basel", "trueio man baseline"),
        ("trueio man jo", "trueio man job"),
        ("trueio man history tre", "trueio man history trend"),
        (&format!("trueio report {}", &id[..5]), &format!("trueio report {id}")),
        (&format!("trueio history show {}", &id[..5]), &format!("trueio history show {id}")),
    ]
    .map(|(line, expected)| (line.to_owned(), expected.to_owned()))
    .into()
}

#[test]
fn bash_completes_commands_options_words_studies_and_records() {
    if lacks_shell("bash") {
        return;
    }
    let (sandbox, id) = sandbox_with_record("bash");
    std::fs::write(sandbox.aside("rc"), "bind 'set enable-bracketed-paste off'\nsource \"$SCRIPT\"\nPS1='REA''DY>'\n")
        .expect("a file");
    let rc = sandbox.aside("rc").to_string_lossy().into_owned();
    let command = || shell(&sandbox, "bash", &["--noprofile", "--rcfile", &rc, "-i"]);
    let mut cases = cases(&id);
    // bash splits the word at `=`.
    cases.push(("trueio run --ioengine=io_u".into(), "trueio run --ioengine=io_uring".into()));
    assert_completed(command, &cases);
}

#[test]
fn zsh_completes_commands_options_words_studies_and_records() {
    if lacks_shell("zsh") {
        return;
    }
    let (sandbox, id) = sandbox_with_record("zsh");
    std::fs::write(
        sandbox.aside(".zshrc"),
        "autoload -U compinit; compinit -u -D\nunsetopt zle_bracketed_paste PROMPT_SP\nsource \"$SCRIPT\"\nPS1='REA''DY>'\n",
    )
    .expect("a file");
    let command = || {
        let mut command = shell(&sandbox, "zsh", &["-o", "NO_GLOBAL_RCS", "-i"]);
        command.env("ZDOTDIR", sandbox.aside(""));
        command
    };
    assert_completed(command, &cases(&id));
}

#[test]
fn fish_completes_commands_options_words_studies_and_records() {
    if lacks_shell("fish") {
        return;
    }
    let (sandbox, id) = sandbox_with_record("fish");
    for (line, expected) in cases(&id) {
        let script = format!("source $SCRIPT; complete -C '{line}'");
        let output = shell(&sandbox, "fish", &["--no-config", "--private", "-c", &script]).output().expect("fish");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let expected = expected.rsplit(' ').next().expect("a word");
        let found = text.lines().map(|candidate| candidate.split('\t').next().unwrap_or_default());
        assert!(found.clone().any(|candidate| candidate == expected), "{line}: {text}");
    }
    // A candidate has its description.
    let script = "source $SCRIPT; complete -C 'trueio study acc'";
    let output = shell(&sandbox, "fish", &["--no-config", "--private", "-c", script]).output().expect("fish");
    assert!(String::from_utf8_lossy(&output.stdout).contains('\t'), "{output:?}");
}

#[test]
fn elvish_completes_commands_options_words_studies_and_records() {
    if lacks_shell("elvish") {
        return;
    }
    let (sandbox, id) = sandbox_with_record("elvish");
    // The key that the other shells have for the beginning of a line.
    let rc = "eval (slurp < $E:SCRIPT)\nset edit:insert:binding[Ctrl-A] = $edit:move-dot-sol~\n\
              set edit:rprompt = { }\nset edit:prompt = { put REA'DY>' }\n";
    std::fs::write(sandbox.aside("rc.elv"), rc).expect("a file");
    let rc = sandbox.aside("rc.elv").to_string_lossy().into_owned();
    let command = || {
        let mut command = shell(&sandbox, "elvish", &["-rc", &rc]);
        command.env("TERM", "xterm").env("XDG_RUNTIME_DIR", sandbox.aside("")).env("XDG_STATE_HOME", sandbox.aside(""));
        command
    };
    assert_completed(command, &cases(&id));
}

/// Goal: PowerShell gets candidates with their descriptions, also for an empty word that it did not pass.
/// Method: the program is called as its script does.
#[test]
fn the_program_answers_powershell_words_with_descriptions() {
    let (sandbox, id) = sandbox_with_record("powershell");
    let answer = |words: &[&str], index: usize| {
        let mut command = sandbox.command(&[&["--"], words].concat());
        command.env("TRUEIO_COMPLETE", "powershell").env("_CLAP_COMPLETE_INDEX", index.to_string());
        String::from_utf8(command.output().expect("an answer").stdout).expect("UTF-8")
    };
    for (line, expected) in cases(&id) {
        let words: Vec<&str> = line.split(' ').collect();
        let expected = expected.rsplit(' ').next().expect("a word");
        let found = answer(&words, words.len() - 1);
        assert!(found.lines().any(|line| line.split('\t').next() == Some(expected)), "{line}: {found}");
    }
    let studies = answer(&["trueio", "study"], 2);
    assert!(studies.lines().any(|line| line.starts_with("access-pattern\t")), "{studies}");
}

/// Goal: a TAB changes nothing.
/// Method: a sandbox without a history is completed for records; afterwards it still has none.
#[test]
fn a_completion_of_records_does_not_create_a_history() {
    let sandbox = Sandbox::new();
    let answer =
        sandbox.command(&["--", "trueio", "report", ""]).env("TRUEIO_COMPLETE", "fish").output().expect("an answer");
    assert!(answer.status.success(), "{answer:?}");
    assert!(!sandbox.aside("trueio").exists());
}

#[test]
fn devices_are_candidates_of_a_target_with_their_size() {
    let sandbox = Sandbox::new();
    let disks = std::fs::read_dir("/sys/block").map(|entries| entries.flatten().count()).unwrap_or(0);
    if disks == 0 {
        return skip("disk", "there is no block device");
    }
    let answer = sandbox
        .command(&["--", "trueio", "device", "/dev/"])
        .env("TRUEIO_COMPLETE", "fish")
        .output()
        .expect("an answer");
    let text = String::from_utf8_lossy(&answer.stdout).into_owned();
    let disk = text.lines().find(|line| line.contains("iB"));
    assert!(disk.is_some_and(|line| line.starts_with("/dev/") && line.contains('\t')), "{text}");
}

#[test]
fn an_unknown_shell_is_refused_in_one_sentence() {
    let sandbox = Sandbox::new();
    let ran = sandbox.run(&["completions", "tcsh"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("possible values: bash, elvish, fish, powershell, zsh"), "{ran:?}");
}
