//! Programs of others that a job starts.

use super::*;

#[test]
fn a_command_gets_the_path_and_the_numbers_of_its_job() {
    let command = "dd if=/dev/zero of={file} bs={bs} count={count} conv=notrunc";
    let base = [("rw", "write"), ("bs", "512k"), ("size", "4m"), ("command", command)];
    let job = plan_one(&base).unwrap();
    let arguments = ["dd", "if=/dev/zero", "of={file}", "bs=524288", "count=8", "conv=notrunc"];
    assert_eq!(job.command.expect("a command").arguments, arguments);
    assert_eq!((job.engine, job.direct), (EngineKind::Command, DirectPolicy::Off));
    assert!(plan_one(&[&base[..], &[("fallocate", "truncate"), ("end_fsync", "1")]].concat()).is_ok());
    // The expected content is known; verification headers are not possible.
    let compared = plan_one(&[&base[..], &[("verify", "pattern"), ("verify_pattern", "0x00")]].concat()).unwrap();
    assert!(compared.verify.is_some_and(|verify| verify.pattern.is_some()));
    assert_eq!(rule_name(&[&base[..], &[("verify", "xxhash")]].concat()), "command_impossible");
}

#[test]
fn a_job_file_starts_no_program_without_permission() {
    for program in ["rm", "/bin/dd", "./dd", "sh"] {
        let command = format!("{program} {{file}}");
        let options = [("rw", "write"), ("size", "1m"), ("command", command.as_str())];
        assert_eq!(refused(&options), Rule::CommandNotAllowed { program: program.into() });
    }
    let without_programs = Machine { programs: Vec::new(), ..machine() };
    let job = spec("a", &[("rw", "write"), ("size", "1m"), ("command", "dd of={file}")]);
    assert_eq!(plan(&[job], &Described, &without_programs).unwrap_err().rule.name(), "command_not_allowed");
}

#[test]
fn exec_starts_no_program_without_permission() {
    let of = |program| [("ioengine", "exec"), ("program", program)];
    let allowed = plan_one(&of("dd if=/dev/zero")).unwrap().exec.expect("a program");
    assert_eq!(allowed.arguments, ["dd", "if=/dev/zero"]);
    assert_eq!((allowed.grace_ns, allowed.output.as_deref()), (1_000_000_000, Some("a")));
    for program in ["rm -rf /", "/bin/dd", "sh -c dd"] {
        let word = program.split(' ').next().unwrap().to_owned();
        assert_eq!(refused(&of(program)), Rule::ExecNotAllowed { program: word });
    }
    assert_eq!(rule_name(&[("ioengine", "exec")]), "incomplete");
}

#[test]
fn options_without_meaning_for_another_program_are_refused() {
    let base = [("rw", "write"), ("size", "1m"), ("command", "dd of={file}")];
    assert!(plan_one(&base).is_ok());
    for more in [
        ("rw", "read"),
        ("rw", "randwrite"),
        ("iodepth", "2"),
        ("ioengine", "sync"),
        ("direct", "require"),
        ("numjobs", "2"),
        ("runtime", "3s"),
        ("fsync", "1"),
        ("verify", "crc32c"),
        ("source", "http://known/"),
        ("filename", "/mnt/new:/mnt/new2"),
        ("command", "dd"),
        ("command", "dd of={path} {file}"),
    ] {
        let mut options: Vec<_> = base.into_iter().filter(|(name, _)| *name != more.0).collect();
        options.push(more);
        assert_eq!(rule_name(&options), "command_impossible", "{more:?}");
    }
    let uneven = [("rw", "write"), ("size", "1m"), ("bs", "48k"), ("command", "dd of={file} count={count}")];
    assert_eq!(rule_name(&uneven), "command_impossible");
}
