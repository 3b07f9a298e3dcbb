//! Command lines of clients and servers: the job files of each client, and refused options.

use trueio_fio::language::{Action, Client, FioRequest, Serve, Surroundings, read, read_job_file};

/// Whom a server reads for; there are no files.
struct World(Option<&'static str>);

impl Surroundings for World {
    fn read_file(&self, path: &str) -> Result<String, String> {
        panic!("`{path}` is read by the sender")
    }
    fn files_below(&self, _: &str) -> Result<(Vec<String>, u64), String> {
        Err("no such directory".to_owned())
    }
    fn variable(&self, _name: &str) -> Option<String> {
        None
    }
    fn page_bytes(&self) -> u64 {
        4096
    }
    fn memory_bytes(&self) -> u64 {
        8 << 30
    }
    fn processors(&self) -> u64 {
        4
    }
    fn client(&self) -> Option<String> {
        self.0.map(str::to_owned)
    }
}

fn line(text: &str) -> FioRequest {
    let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    read(&words, &World(None)).unwrap_or_else(|error| panic!("{text}\n{}", error.render()))
}

fn wrong(text: &str) -> String {
    let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    match read(&words, &World(None)) {
        Err(error) => error.render(),
        Ok(request) => panic!("{text} was accepted: {request:?}"),
    }
}

fn client(host: &str, files: &[&str], files_there: &[&str]) -> Client {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Client { host: host.to_owned(), files: owned(files), files_there: owned(files_there), token: None }
}

/// Goal: as in fio 3.33, files directly after a client are its own; all others are for every client and come after its
/// own.
#[test]
fn a_job_file_belongs_to_the_preceding_client_or_to_all() {
    let clients = |text: &str| match line(text).action {
        Action::Clients(clients) => clients,
        other => panic!("{text}: {other:?}"),
    };
    assert_eq!(clients("--client=a x y"), [client("a", &["x", "y"], &[])]);
    assert_eq!(clients("--client a x --client b y"), [client("a", &["x"], &[]), client("b", &["y"], &[])]);
    assert_eq!(clients("x --client=a --client=b"), [client("a", &["x"], &[]), client("b", &["x"], &[])]);
    let all = [client("a", &["x"], &[]), client("b", &["x"], &[])];
    assert_eq!(clients("--client=a --client=b --output-format=json x"), all);
    assert_eq!(clients("--client=a y --minimal x"), [client("a", &["y", "x"], &[])]);
    assert_eq!(clients("--client=a --remote-config=r"), [client("a", &[], &["r"])]);
    let both = [client("a", &["x"], &["r"]), client("b", &["y"], &[])];
    assert_eq!(clients("--client=a x --remote-config r --client=b y"), both);
}

/// Goal: a token belongs to the preceding client, or, before the first client, to all that have none of their own.
#[test]
fn a_token_belongs_to_the_preceding_client_or_to_all() {
    let tokens = |text: &str| match line(text).action {
        Action::Clients(clients) => clients.into_iter().map(|client| client.token).collect::<Vec<_>>(),
        other => panic!("{text}: {other:?}"),
    };
    let some = |name: &str| Some(name.to_owned());
    assert_eq!(tokens("--client=a x"), [None]);
    assert_eq!(tokens("--token t x --client=a --client=b"), [some("t"), some("t")]);
    assert_eq!(tokens("--token=t x --client=a --client=b --token=u"), [some("t"), some("u")]);
    assert_eq!(tokens("x --client=a --token=t --client=b"), [some("t"), None]);
}

#[test]
fn a_client_without_a_job_file_is_named_and_not_left_out() {
    let text = wrong("--client=a --client=b x");
    assert!(text.contains("there is no job file for the server `a`") && text.contains("for all"), "{text}");
    assert!(!text.contains("server `b`"), "{text}");
}

#[test]
fn a_server_takes_what_permits_and_no_jobs() {
    let serve = |text: &str| match line(text).action {
        Action::Serve(serve) => serve,
        other => panic!("{text}: {other:?}"),
    };
    assert_eq!(serve("--server"), Serve::default());
    let full = Serve {
        address: Some("sock:/s".to_owned()),
        token: Some("/t".to_owned()),
        pid_file: Some("p".to_owned()),
        writable: vec!["/a".to_owned(), "b".to_owned()],
        readable: vec!["/r".to_owned()],
        users: vec!["1000".to_owned()],
        sends_contents: true,
        allows_priority: true,
        is_unconfined: true,
        permits: vec!["--overwrite_signature=ext4".to_owned()],
    };
    assert_eq!(
        serve(
            "--server=sock:/s --allow-write=/a --daemonize=p --overwrite_signature=ext4 --allow-write b --allow-read=/r --no-sandbox --token /t --allow-user 1000 --allow-contents --allow-priority"
        ),
        full
    );
    let request = line("--server --readonly --allow-exec");
    assert!(request.settings.is_readonly && request.settings.allows_exec);
    for (text, word) in [
        ("--server --name=x --rw=read", "a server's jobs come from its clients"),
        ("--server x", "on the client: `--client=HOST x`"),
        ("--server --client=a x", "a server is not a client"),
        ("--server --showcmd", "without clients and servers"),
        ("--client=a --name=x --size=1m", "come from job files"),
        ("--client=a --overwrite_signature=ext4 x", "come from job files"),
        ("--client=a --daemonize=p x", "this is a client"),
        ("--client=a --allow-write=/ x", "this is a client"),
        ("--allow-write=/ --name=x", "is an option of servers"),
        ("--client=a --allow-read=/ x", "`--allow-read` is an option of servers, and this is a client"),
        ("--client=a --allow-contents x", "`--allow-contents` is an option of servers, and this is a client"),
        ("--client=a --allow-priority x", "`--allow-priority` is an option of servers, and this is a client"),
        ("--token=t --name=x", "`--token` is an option of servers and clients"),
        ("--no-sandbox --name=x", "`--no-sandbox` is an option of servers"),
        ("--server --overwrite_existing=x", "a server's jobs come from its clients"),
        ("--daemonize=p --name=x", "is an option of servers"),
        ("--remote-config=r --client=a x", "there is none"),
        ("--remote-config=r --name=x", "is an option of clients"),
        ("--client", "needs a value"),
    ] {
        let error = wrong(text);
        assert!(error.contains(word), "{text}: {error}");
    }
    assert!(matches!(line("--version --server").action, Action::Version));
}

/// Goal: two clients of one server do not use each other's files.
/// Method: names as fio 3.33 made them for a client at 127.0.0.1.
#[test]
fn files_in_a_directory_have_the_clients_address_before_their_names() {
    let names = |around: &World, options: &str| {
        let request = read_job_file("j", &format!("[u]\nrw=write\nsize=64k\n{options}\n"), around);
        let request = request.unwrap_or_else(|error| panic!("{options}\n{}", error.render()));
        request.jobs[0].options["filename"].text.clone()
    };
    let remote = World(Some("127.0.0.1"));
    for (around, options, expected) in [
        (&remote, "directory=dd", "127.0.0.1.u.0.0"),
        (&remote, "directory=dd\nunique_filename=1", "127.0.0.1.u.0.0"),
        (&remote, "directory=dd\nunique_filename=0", "u.0.0"),
        (&remote, "", "u.0.0"),
        (&remote, "directory=dd\nfilename=x", "x"),
        (&remote, "filename_format=$clientuid-$jobname", "127.0.0.1-u"),
        (&World(None), "directory=dd", "u.0.0"),
        (&World(None), "filename_format=$clientuid-$jobname", "-u"),
    ] {
        assert_eq!(names(around, options), expected, "{options}");
    }
}
