//! fio's job files.

use super::{World, text, words, wrong_file};
use trueio_fio::language::{read, read_job_file};
use trueio_model::Origin;

#[test]
fn sections_globals_comments_includes_and_variables_are_read_as_in_fio() {
    let mut world = World::with(&[
        (
            "dir/job.fio",
            "; a comment\n[global]\nsize=1m ; to the end of the line\ninclude common.inc\n\n[a]\nbs=${BS}\n\
          [global_too]\nrw=write\n[b]\nnumjobs=$ncpus*2\n[b]\nname=c\nthinktime=3*$ncpus\nstonewall\ndirect = 1\n",
        ),
        ("dir/common.inc", "iodepth=8\ninclude deeper.inc\n"),
        ("dir/deeper.inc", "ioengine=libaio\n"),
    ]);
    world.variables.insert("BS".into(), "64k".into());
    let text_of = world.files["dir/job.fio"].clone();
    let request = read_job_file("dir/job.fio", &text_of, &world).unwrap_or_else(|e| panic!("{}", e.render()));
    let names: Vec<&str> = request.jobs.iter().map(|job| job.fio.as_ref().unwrap().name.as_str()).collect();
    assert_eq!(names.len(), 10);
    assert_eq!((names[0], names[1], names[8], names[9]), ("a", "b", "b", "c"));
    let a = &request.jobs[0];
    assert_eq!((text(a, "bs"), text(a, "iodepth"), text(a, "ioengine")), ("64k", "8", "libaio"));
    assert_eq!(text(a, "rw"), "", "a later section for all does not reach back");
    assert_eq!(text(&request.jobs[1], "rw"), "write");
    let c = &request.jobs[9];
    assert_eq!((text(c, "thinktime"), text(c, "stonewall"), text(c, "direct")), ("12us", "true", "require"));
    assert_eq!(a.options["ioengine"].origin, Origin::File { path: "dir/deeper.inc".into(), line: 1 });
    assert_eq!(a.fio.as_ref().unwrap().word("bs").unwrap().text, "64k");
}

/// Goal: in a job file `kb_base` applies to its whole section, wherever it is there, and to later sections.
#[test]
fn in_a_file_kb_base_applies_to_its_whole_section() {
    let file = "[global]\nsize=1m\nkb_base=1000\n[a]\nio_size=4k\n[b]\nkb_base=1024\n[c]\nio_size=4k\nkb_base=1024\n";
    let request = read_job_file("job.fio", file, &World::with(&[])).unwrap_or_else(|e| panic!("{}", e.render()));
    let sizes: Vec<[&str; 2]> = request.jobs.iter().map(|job| [text(job, "size"), text(job, "io_size")]).collect();
    assert_eq!(sizes, [["1000000", "4000"], ["1000000", ""], ["1000000", "4k"]]);
}

#[test]
fn errors_in_a_file_have_line_column_and_a_suggestion() {
    assert_eq!(
        wrong_file("[a]\nsize=1m\nbfs=4k\n[global\n"),
        "\
error: `bfs` is not an option
 --> job.fio:3:1
  |
3 | bfs=4k
  | ^^^ did you mean `bs`?

error: a section's name has no closing bracket
 --> job.fio:4:1
  |
4 | [global
  | ^^^^^^^ write `[name]`
"
    );
    let error = wrong_file("[a]\nsize = 1m\n  iodepth = 4kfoo\n");
    assert!(error.contains("--> job.fio:3:15\n"), "{error}");
    assert!(error.contains("  |               ^^^"), "{error}");
    assert!(wrong_file("bs=4k\n").contains("is before the first section"));
    assert!(wrong_file("[a]\nbs\n").contains("`bs` has no value"));
    assert!(wrong_file("[a]\nbs=4k\u{1b}[31m\n").contains("a control character"));
    let mut world = World::default();
    world.variables.insert("X".into(), "1m\nfilename=/etc/passwd".into());
    let error = read_job_file("job.fio", "[a]\nsize=${X}\n", &world).unwrap_err().render();
    assert!(error.contains("a variable brings a control character"), "{error}");
    assert!(wrong_file("[a] x=1\n").contains("`x=1` follows a section's name"));
    assert!(wrong_file("[a]rw=read\n").contains("--> job.fio:1:4"));
    assert!(wrong_file("[a\nsize=1m\n").contains("no closing bracket"), "no name is left");
    assert!(wrong_file("# nothing\n").contains("defines no job"));
    // An option of an engine that does not exist here is recognized, whether the engine is set before or after it.
    for file in ["[a]\nnfs_url=nfs://x/y\nioengine=nfs\n", "[a]\nioengine=nfs\nnfs_url=nfs://x/y\n"] {
        let error = wrong_file(file);
        assert!(error.contains("`nfs_url` belongs to an engine that is not here: storage across a network"), "{error}");
        assert!(error.contains("instead: mount or map it") && !error.contains("is not an option"), "{error}");
    }
    assert!(wrong_file("[a]\nsize=${X\n").contains("no closing brace"));
}

#[test]
fn a_file_that_includes_itself_is_refused() {
    let world = World::with(&[("a.fio", "[a]\nsize=1m\ninclude a.inc\n"), ("a.inc", "include a.inc\ninclude a.inc\n")]);
    let error = read(&words("a.fio"), &world).unwrap_err().render();
    assert!(error.contains("does a file include itself?"), "{error}");
}

/// Goal: a further job file does what it says by itself, as in fio: options of the command line for all jobs, and those of `[global]` in
/// a file before it, do not make it write.
#[test]
fn global_options_do_not_reach_a_further_job_file() {
    let world = World::with(&[("a.fio", "[global]\nbs=16k\nsize=64k\n[a]\n"), ("b.fio", "[b]\nsize=64k\n")]);
    let jobs = read(&words("--rw=write a.fio b.fio"), &world).expect("jobs").jobs;
    let of = |option: &str| [text(&jobs[0], option).to_owned(), text(&jobs[1], option).to_owned()];
    assert_eq!((of("rw"), of("bs")), (["write", ""].map(str::to_owned), ["16k", ""].map(str::to_owned)));
    assert_eq!(of("stonewall"), ["", "true"]);
}

/// Goal: a missing `include` ends its section, as in fio 3.42: options after it fail, those of further sections do not.
#[test]
fn a_missing_include_ends_its_section() {
    let read = |text| read_job_file("job.fio", text, &World::default());
    let request = read("[global]\nsize=1m\ninclude none.inc\n[a]\nrw=read\n").unwrap();
    assert_eq!((request.jobs.len(), text(&request.jobs[0], "size")), (1, "1m"));
    assert!(request.notes[0].starts_with("job.fio:3: `none.inc` is not included"), "{:?}", request.notes);
    assert_eq!(request.warnings.len(), 1, "{:?}", request.warnings);
    let error = read("include none.inc\n[a]\nsize=1m\n").unwrap_err().render();
    assert!(error.contains("`none.inc` cannot be included"), "outside of a section, as in fio: {error}");
    let error = read("[a]\ninclude none.inc\nsize=1m\n").unwrap_err().render();
    assert!(error.contains("`size=1m` follows the include of `none.inc`, which is missing"), "{error}");
}

/// Goal: `name` of a section names its first clone; files, `$jobname` and further clones have the name of the section, as in fio.
#[test]
fn a_section_with_another_name_keeps_its_own_for_files_and_clones() {
    let file = "[global]\nsize=64k\n[sec]\nname=other\nnumjobs=3\n[sec2]\nname=other\n[sec3]\nname=x\nfilename_format=$jobname.f\n";
    let request = read_job_file("job.fio", file, &World::with(&[])).unwrap_or_else(|e| panic!("{}", e.render()));
    let names: Vec<&str> = request.jobs.iter().map(|job| job.fio.as_ref().unwrap().name.as_str()).collect();
    assert_eq!(names, ["other", "sec", "sec", "other", "x"]);
    let files: Vec<&str> = request.jobs.iter().map(|job| text(job, "filename")).collect();
    assert_eq!(files, ["sec.0.0", "sec.2.0", "sec.1.0", "sec2.0.0", "sec3.f"]);
}

/// Goal: only what `--section` names runs, in job files and on the command line, where it selects among the jobs after it.
#[test]
fn only_selected_jobs_of_files_and_of_the_command_line_are_read() {
    let world = World::with(&[("k.fio", "[reads]\nsize=1m\n[writes]\nsize=1m\nrw=write\n")]);
    let of = |line: &str| {
        let request = read(&words(line), &world).unwrap_or_else(|e| panic!("{line}\n{}", e.render()));
        request.jobs.iter().map(|job| job.fio.as_ref().unwrap().name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(of("--section=reads k.fio --name=w --size=1m --rw=write"), ["reads"]);
    assert_eq!(of("--section=w k.fio --name=w --size=1m --rw=write"), ["w"]);
    assert_eq!(of("--section=w --section=writes k.fio --name=v --size=1m --name=w --size=1m"), ["w", "writes"]);
    assert_eq!(of("--name=w --size=1m --section=reads k.fio --name=v --size=1m"), ["w", "reads"], "as in fio");
    assert_eq!(of("k.fio --name=w --size=1m"), ["w", "reads", "writes"]);
    let reads = read(&words("--section=reads --name=w --rw=write --filename=precious k.fio"), &world).unwrap();
    assert_eq!((text(&reads.jobs[0], "rw"), text(&reads.jobs[0], "filename")), ("", "reads.0.0"));
    let none = read(&words("--section=q --name=w --size=1m"), &world).unwrap_err();
    assert!(none.render().contains("no job is defined"), "{}", none.render());
}

/// Goal: logs without a name have fio's names: the first clone's that of the job, the others' that of the section.
#[test]
fn an_unnamed_log_of_a_further_clone_has_the_name_of_the_section() {
    for file in [
        "[sec]\nname=o\nnumjobs=3\nsize=1m\nwrite_bw_log\nwrite_lat_log=l\n",
        "[global]\nwrite_bw_log=\nwrite_lat_log=l\n[sec]\nname=o\nnumjobs=3\nsize=1m\n",
    ] {
        let jobs = read_job_file("job.fio", file, &World::default()).expect("jobs").jobs;
        let names: Vec<_> = jobs.iter().map(|job| (text(job, "write_bw_log"), text(job, "write_lat_log"))).collect();
        assert_eq!(names, [("o", "l"), ("sec", "l"), ("sec", "l")], "{file}");
    }
}
