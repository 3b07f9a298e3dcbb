//! The manual pages, as `trueio man` prints them: mandoc finds nothing wrong with any of them.

use std::io::Write;
use std::process::{Command, Stdio};
use trueio_testkit::{Sandbox, skip, tool};

#[test]
fn every_page_that_is_listed_is_printed_and_is_valid_to_mandoc() {
    let has_mandoc = tool("sh", &["-c", "command -v mandoc"]).inspect_err(|reason| skip("mandoc", reason)).is_ok();
    let sandbox = Sandbox::new();
    let list = sandbox.run(&["man", "--list"]);
    list.assert_code(0);
    assert!(list.out.lines().count() > 20, "{list:?}");
    for line in list.out.lines() {
        let (file, words) = line.split_once('\t').expect("a file and its arguments");
        let mut arguments = vec!["man"];
        arguments.extend(words.split_whitespace());
        let page = sandbox.run(&arguments);
        page.assert_code(0);
        let (name, number) = file.rsplit_once('.').expect("a section");
        let title = format!(".TH {} {number}", name.to_uppercase());
        assert!(page.out.replace('"', "").starts_with(&title), "{file}: {page:?}");
        if has_mandoc {
            assert_eq!(mandoc(&page.out), "", "{file}");
        }
    }
}

/// Returns what mandoc reports: warnings and errors, without those about the date, which pages do not have so that their bytes
/// depend on nothing but the program, and about doubled blank lines between the words of an option (clap_mangen).
fn mandoc(page: &str) -> String {
    let mut child = Command::new("mandoc")
        .args(["-T", "lint", "-W", "warning"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("mandoc starts");
    child.stdin.take().expect("a pipe").write_all(page.as_bytes()).expect("mandoc reads");
    let output = child.wait_with_output().expect("its end");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let is_known = |line: &&str| line.contains("missing date") || line.contains("skipping paragraph macro: br");
    let findings = text.lines().filter(|line| !is_known(line));
    findings.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_page_that_does_not_exist_is_refused_with_the_way_to_the_list() {
    let sandbox = Sandbox::new();
    let ran = sandbox.run(&["man", "history", "sho"]);
    ran.assert_refused(&["there is no manual page for `history sho`", "`trueio man --list`"]);
}
