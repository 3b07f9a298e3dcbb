//! The history as its users meet it, on a real file.

use rusqlite::Connection;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use trueio_model::{Mark, Outcome, RunRecord, Verdict, run_words};
use trueio_store::{FILE_NAME, Filter, SCHEMA_VERSION, Store, StoreError};

/// The kept record of version 1, with another id and time.
fn record(id: &str, started_unix_s: u64) -> RunRecord {
    let mut record: RunRecord = serde_json::from_str(include_str!("../records/v1.json")).unwrap();
    record.id = id.to_owned();
    record.started_unix_s = started_unix_s;
    record
}

const ALL: Filter =
    Filter { device: None, tags: Vec::new(), kind: None, since_unix_s: None, before: None, limit: None };

fn id(n: u32) -> String {
    format!("{:032x}", u128::from(n).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835))
}

#[test]
fn a_record_comes_back_as_it_went_in() {
    let folder = tempfile::tempdir().unwrap();
    let one = record(&id(1), 1_000);
    Store::open(folder.path()).unwrap().insert(&one).unwrap();
    let stored = Store::open(folder.path()).unwrap().get(&id(1)).unwrap();
    assert_eq!(serde_json::from_str::<RunRecord>(&stored.json).unwrap(), one);
    assert_eq!(stored.entry.kind, "baseline");
    assert_eq!(stored.entry.target, "/mnt/data");
    assert_eq!(stored.entry.disk, "nvme0n1 (Example NVMe SSD 1TB)");
    assert_eq!((stored.entry.verdict.as_str(), stored.entry.outcome.as_str()), ("suspect", "complete"));
    assert_eq!(stored.entry.words, run_words(&one.phases));
    assert!(Mark::of_words(&stored.entry.words).is_some(), "{}", stored.entry.words);
    assert_eq!(stored.entry.summary, "7 phases, up to 3.21 GiB/s and 370,924 IOPS");
}

#[test]
fn a_list_is_newest_first_and_as_long_as_asked() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    assert_eq!(store.list(&ALL).unwrap(), []);
    for (n, started) in [(1, 300), (2, 100), (3, 200)] {
        store.insert(&record(&id(n), started)).unwrap();
    }
    let starts =
        |limit| store.list(&Filter { limit, ..ALL }).unwrap().iter().map(|e| e.started_unix_s).collect::<Vec<_>>();
    assert_eq!(starts(None), [300, 200, 100]);
    assert_eq!(starts(Some(2)), [300, 200]);
}

#[test]
fn a_summary_of_few_ios_has_their_number() {
    let of = |count: u64| {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(folder.path()).unwrap();
        let mut record = record(&id(1), 1);
        for op in record.phases.iter_mut().flat_map(|phase| &mut phase.jobs).flat_map(|job| &mut job.ops) {
            op.io_count = count;
        }
        store.insert(&record).unwrap();
        store.list(&ALL).unwrap()[0].summary.clone()
    };
    assert!(of(1).ends_with(" IOPS, 1 I/O") && of(37).ends_with(" IOPS, 37 I/Os"), "{} {}", of(1), of(37));
    assert!(of(1_000).ends_with(" IOPS"), "{}", of(1_000));
}

#[test]
fn a_summary_holds_no_contradicted_figure() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    let mut troubled = record(&id(1), 1);
    troubled.phases.iter_mut().for_each(|p| p.verdict = Verdict::Contradicted);
    troubled.outcome = Outcome::Interrupted { signal: "SIGINT".into() };
    store.insert(&troubled).unwrap();
    troubled.id = id(2);
    troubled.phases.clear();
    store.insert(&troubled).unwrap();
    let entry = store.get(&id(1)).unwrap().entry;
    assert_eq!(entry.summary, "7 phases, 7 withheld");
    assert_eq!((entry.verdict.as_str(), entry.outcome.as_str()), ("contradicted", "interrupted"));
    let entry = store.get(&id(2)).unwrap().entry;
    assert_eq!((entry.summary.as_str(), entry.verdict.as_str()), ("0 phases", ""));
}

#[test]
fn a_beginning_of_an_id_is_enough_if_it_is_unique() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    for id in ["abcd0000", "abce0000", "abcd00001"] {
        store.insert(&record(id, 1)).unwrap();
    }
    assert_eq!(store.get("abce").unwrap().entry.id, "abce0000");
    assert_eq!(store.get(" ABCE ").unwrap().entry.id, "abce0000");
    assert_eq!(store.get("abcd0000").unwrap().entry.id, "abcd0000", "a whole id is never ambiguous");
    let error = store.get("abc").unwrap_err().to_string();
    assert!(error.contains("abcd0000") && error.contains("abce0000"), "{error}");
    for missing in ["", "f", "abcd000011", "%", "abc_", "'"] {
        assert!(matches!(store.get(missing), Err(StoreError::NotFound { .. })), "{missing}");
    }
}

#[test]
fn the_same_record_is_not_stored_twice_and_the_first_stays() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    store.insert(&record("aa", 1)).unwrap();
    assert!(matches!(store.insert(&record("aa", 2)), Err(StoreError::AlreadyThere { .. })));
    assert_eq!(store.list(&ALL).unwrap().len(), 1);
    assert_eq!(store.get("aa").unwrap().entry.started_unix_s, 1);
}

/// Opens a history that must be refused, and checks that the file is left as it was.
fn refusal(folder: &Path) -> StoreError {
    let path = folder.join(FILE_NAME);
    let before = std::fs::read(&path).unwrap();
    let error = Store::open(folder).unwrap_err();
    assert!(error.to_string().contains(path.to_str().unwrap()), "the path is named: {error}");
    assert_eq!(std::fs::read(&path).unwrap(), before, "the file is left as it was");
    error
}

#[test]
fn a_history_of_a_newer_version_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    Store::open(folder.path()).unwrap().insert(&record("aa", 1)).unwrap();
    let raw = Connection::open(folder.path().join(FILE_NAME)).unwrap();
    raw.pragma_update(None, "user_version", SCHEMA_VERSION + 1).unwrap();
    drop(raw);
    let error = refusal(folder.path());
    assert!(matches!(error, StoreError::Newer { found, .. } if found == SCHEMA_VERSION + 1));
    assert!(error.to_string().contains("use the newer trueio"));
}

#[test]
fn a_file_that_is_no_database_is_refused_with_what_to_do_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(FILE_NAME), "this is my shopping list, not a database".repeat(40)).unwrap();
    let error = refusal(folder.path());
    assert!(matches!(error, StoreError::Damaged { .. }) && error.to_string().contains("mv "), "{error}");
}

#[test]
fn a_database_with_a_damaged_page_is_an_error_and_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    for n in 0..5 {
        store.insert(&record(&id(n), u64::from(n))).unwrap();
    }
    drop(store);
    let path = folder.path().join(FILE_NAME);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[4096..4096 * 4].fill(0xa5);
    std::fs::write(&path, &bytes).unwrap();
    let outcome = Store::open(folder.path()).and_then(|s| s.list(&ALL));
    assert!(matches!(outcome, Err(StoreError::Damaged { .. })), "{outcome:?}");
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
}

#[test]
fn a_database_of_another_program_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let raw = Connection::open(folder.path().join(FILE_NAME)).unwrap();
    raw.execute_batch("CREATE TABLE recipes (name TEXT); INSERT INTO recipes VALUES ('soup');").unwrap();
    drop(raw);
    assert!(matches!(refusal(folder.path()), StoreError::Foreign { .. }));
}

#[test]
fn a_history_that_another_process_writes_to_is_named_as_locked() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    let other = Connection::open(folder.path().join(FILE_NAME)).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let begin = Instant::now();
    let error = store.insert(&record("aa", 1)).unwrap_err();
    assert!(begin.elapsed() >= Duration::from_secs(4), "it waits for the other first");
    assert!(matches!(error, StoreError::Locked { .. }), "{error}");
    other.execute_batch("ROLLBACK").unwrap();
    store.insert(&record("aa", 1)).unwrap();
}

#[test]
fn two_programs_that_open_a_new_history_at_once_both_succeed() {
    for _ in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for n in 0..4 {
                let path = folder.path();
                scope.spawn(move || Store::open(path).unwrap().insert(&record(&id(n), 1)).unwrap());
            }
        });
        assert_eq!(Store::open(folder.path()).unwrap().list(&ALL).unwrap().len(), 4);
    }
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let error = Store::open(&folder.path().join("file/below")).unwrap_err();
    assert!(matches!(error, StoreError::Directory { .. }) && error.to_string().contains("file/below"), "{error}");
}

/// The histories that each schema version left behind, `tests/histories/vN.sqlite3`.
fn kept_history(version: u32) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/histories/v{version}.sqlite3"))
}

/// The tables and indexes of a database, and its two numbers.
fn schema_of(path: &Path) -> (Vec<String>, i64, i64) {
    let raw = Connection::open(path).unwrap();
    let mut statement = raw.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name").unwrap();
    let tables = statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<Vec<_>, _>>().unwrap();
    let number = |name: &str| raw.pragma_query_value(None, name, |row| row.get(0)).unwrap();
    (tables, number("application_id"), number("user_version"))
}

/// Goal: a history of any released version becomes one of today, and loses nothing.
/// Method: one small history of each version is kept. It holds four runs (a disk; the same disk under
/// another name; another disk under the first name; a disk without a serial number), a run without a
/// target, and a record that is cut off. Each is opened, and must then have the tables of a new
/// history, the same records, and the devices that the records tell of.
#[test]
fn a_history_of_every_earlier_version_becomes_one_of_today() {
    let fresh = tempfile::tempdir().unwrap();
    drop(Store::open(fresh.path()).unwrap());
    let today = schema_of(&fresh.path().join(FILE_NAME));
    for version in 1..=SCHEMA_VERSION {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE_NAME);
        std::fs::copy(kept_history(version), &path).unwrap();
        assert_eq!(schema_of(&path).2, i64::from(version), "tests/histories/v{version}.sqlite3");
        let texts = |path: &Path| {
            let raw = Connection::open(path).unwrap();
            let mut statement = raw.prepare("SELECT id, record FROM runs ORDER BY id").unwrap();
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
            rows.collect::<Result<Vec<(String, String)>, _>>().unwrap()
        };
        let before = texts(&path);
        let mut store = Store::open(folder.path()).unwrap();
        assert_eq!(texts(&path), before, "version {version}: a record changed");
        let (mut migrated, mut expected) = (schema_of(&path), today.clone());
        // What a column was added to is written in another order, but has the same columns.
        let columns = |sql: &String| {
            let mut words: Vec<String> =
                sql.lines().map(|l| l.split("--").next().unwrap().trim().trim_end_matches(',').to_owned()).collect();
            words.sort();
            words.join(" ")
        };
        migrated.0.iter_mut().chain(expected.0.iter_mut()).for_each(|sql| *sql = columns(sql));
        assert_eq!(migrated, expected, "version {version}");
        let entries = store.list(&ALL).unwrap();
        for entry in &entries {
            let record = serde_json::from_str::<RunRecord>(&store.get(&entry.id).unwrap().json);
            let words = record.map_or_else(
                |_| String::new(),
                |mut record| {
                    record.upgrade();
                    run_words(&record.phases)
                },
            );
            assert_eq!(entry.words, words, "version {version}, run {}", entry.id);
        }
        assert!(entries.iter().any(|entry| !entry.words.is_empty()), "version {version}");
        let devices: Vec<&[i64]> = entries.iter().rev().map(|e| e.devices.as_slice()).collect();
        assert_eq!(devices, [&[1][..], &[1], &[2], &[], &[], &[]], "version {version}");
        assert_eq!(store.devices().unwrap().iter().map(|d| (d.id, d.run_count)).collect::<Vec<_>>(), [(2, 1), (1, 2)]);
        store.insert(&record(&id(1), 1_800_000_000)).unwrap();
        store.tag(&id(1), "after").unwrap();
        drop(store);
        assert_eq!(Store::open(folder.path()).unwrap().list(&ALL).unwrap().len(), entries.len() + 1);
    }
}

#[test]
fn a_migration_that_fails_half_way_leaves_the_earlier_version_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE_NAME);
    std::fs::copy(kept_history(1), &path).unwrap();
    // The last table that the step would make is there already: everything before it is done by then.
    let raw = Connection::open(&path).unwrap();
    raw.execute_batch("CREATE TABLE run_devices (x)").unwrap();
    drop(raw);
    let before = schema_of(&path);
    assert!(matches!(Store::open(folder.path()), Err(StoreError::Unusable { .. })));
    assert_eq!(schema_of(&path), before);
    Connection::open(&path).unwrap().execute_batch("DROP TABLE run_devices").unwrap();
    assert_eq!(Store::open(folder.path()).unwrap().list(&ALL).unwrap().len(), 6);
}

#[test]
fn a_history_that_may_not_be_written_can_be_read_and_says_so_when_written() {
    let folder = tempfile::tempdir().unwrap();
    Store::open(folder.path()).unwrap().insert(&record("aa", 1)).unwrap();
    let uri = format!("file:{}?mode=ro", folder.path().join(FILE_NAME).display());
    let raw = Connection::open(uri).unwrap();
    assert!(raw.is_readonly("main").unwrap());
    drop(raw);
    // Root may write to any file; what is asked here is what another user would get.
    // SAFETY: a plain call without arguments.
    if unsafe { libc::geteuid() } == 0 {
        return eprintln!("skipped: root may write where others may not; crates/cli tests a read-only mount");
    }
    std::fs::set_permissions(folder.path().join(FILE_NAME), std::os::unix::fs::PermissionsExt::from_mode(0o400))
        .unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    assert_eq!(store.list(&ALL).unwrap().len(), 1);
    assert!(matches!(store.insert(&record("bb", 1)), Err(StoreError::ReadOnly { .. })));
}

#[test]
fn tags_and_notes_stay_with_their_run_and_go_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    for n in ["aa", "bb"] {
        store.insert(&record(n, 1)).unwrap();
    }
    for tag in ["new-cable", "firmware-2", "new-cable"] {
        store.tag("aa", tag).unwrap();
    }
    store.note("aa", "after the update;\nit was hot").unwrap();
    let entry = store.get("aa").unwrap().entry;
    assert_eq!(
        (entry.tags, entry.note.as_str()),
        (vec!["firmware-2".into(), "new-cable".into()], "after the update;\nit was hot")
    );
    for bad in ["", "two words", "a,b", "line\n", "\u{1f}", &"x".repeat(65)] {
        assert!(matches!(store.tag("aa", bad), Err(StoreError::Tag { .. })), "{bad}");
    }
    let tagged = |store: &Store, tags: &[&str]| {
        let filter = Filter { tags: tags.iter().map(|t| (*t).to_owned()).collect(), ..ALL };
        store.list(&filter).unwrap().len()
    };
    assert_eq!((tagged(&store, &["new-cable"]), tagged(&store, &["new-cable", "firmware-2"])), (1, 1));
    assert!(store.untag("aa", "firmware-2").unwrap() && !store.untag("aa", "firmware-2").unwrap());
    assert_eq!((tagged(&store, &["new-cable", "firmware-2"]), tagged(&store, &["'"])), (0, 0));
    assert_eq!(store.delete(&["aa".into(), "zz".into()]).unwrap(), 1);
    store.insert(&record("aa", 2)).unwrap();
    let again = store.get("aa").unwrap().entry;
    assert_eq!((again.tags, again.note), (vec![], String::new()), "tags of a deleted run came back");
}

#[test]
fn a_digest_belongs_to_its_run_and_to_the_rules_that_made_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    let [a, b, absent] = [id(1), id(2), id(3)];
    store.insert(&record(&a, 1_800_000_000)).unwrap();
    store.insert(&record(&b, 1_800_000_001)).unwrap();
    let all = || [a.as_str(), b.as_str(), absent.as_str()];
    assert!(store.digests(1, all()).unwrap().is_empty());
    let pair = |id: &str, text: &str| (id.to_owned(), text.to_owned());
    store.add_digests(1, &[pair(&a, "first"), pair(&absent, "of no run")]).unwrap();
    assert_eq!(store.digests(1, all()).unwrap().into_iter().collect::<Vec<_>>(), [(a.as_str(), "first".to_owned())]);
    assert!(store.digests(2, all()).unwrap().is_empty(), "other rules");
    store.add_digests(2, &[pair(&a, "second"), pair(&b, "other")]).unwrap();
    assert_eq!(store.digests(2, all()).unwrap()[a.as_str()], "second");
    assert!(store.digests(1, all()).unwrap().is_empty(), "replaced");
    store.delete(std::slice::from_ref(&a)).unwrap();
    assert_eq!(store.digests(2, all()).unwrap().into_keys().collect::<Vec<_>>(), [b.as_str()]);
}

#[test]
fn a_list_can_be_by_kind_and_since() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    for (n, kind) in [(1, "run"), (2, "baseline"), (3, "run")] {
        let mut record = record(&id(n), u64::from(n) * 100);
        record.kind = kind.into();
        store.insert(&record).unwrap();
    }
    let starts = |filter| store.list(&filter).unwrap().iter().map(|e| e.started_unix_s).collect::<Vec<_>>();
    assert_eq!(starts(Filter { kind: Some("run".into()), ..ALL }), [300, 100]);
    assert_eq!(starts(Filter { since_unix_s: Some(200), ..ALL }), [300, 200]);
    assert_eq!(starts(Filter { since_unix_s: Some(200), kind: Some("run".into()), limit: Some(1), ..ALL }), [300]);
    assert_eq!(starts(Filter { since_unix_s: Some(u64::MAX), ..ALL }), [0u64; 0]);
}

const INSERTED: &str = "one more record is on the disk";
const CHILD_FOLDER: &str = "TRUEIO_STORE_TEST_CHILD_FOLDER";
/// Which of several processes it is: their ids must differ.
const CHILD_NUMBER: &str = "TRUEIO_STORE_TEST_CHILD_NUMBER";

/// Not a test by itself: the process that the next test kills. Without its variable it does nothing.
#[test]
fn child_inserts_until_it_is_killed() {
    let Some(folder) = std::env::var_os(CHILD_FOLDER) else { return };
    let mut store = Store::open(Path::new(&folder)).unwrap();
    let number: Option<u32> = std::env::var(CHILD_NUMBER).ok().map(|text| text.parse().unwrap());
    let begin = number.map_or_else(|| store.list(&ALL).unwrap().len() as u32, |number| (number + 1) << 24);
    for n in begin.. {
        store.insert(&record(&id(n), u64::from(n))).unwrap();
        println!("{INSERTED}");
    }
}

/// Goal: a killed program leaves the history whole: every record in it complete, none half written.
/// Method: a child process inserts without pause and is killed (SIGKILL) 25 times, each time 0.7 ms
/// later after its first insert, so that kills fall inside transactions; at least one must have left
/// a journal behind to roll back, or there are more kills. After each, SQLite's own check, the schema and every
/// record's JSON are verified.
/// Cannot see: what a loss of power does; the kernel's cache survives a kill.
#[test]
fn a_kill_in_the_middle_of_an_insert_leaves_every_record_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE_NAME);
    let journal = folder.path().join(format!("{FILE_NAME}-journal"));
    let (mut count, mut journal_count) = (0, 0);
    for round in 0..1000 {
        if round >= 25 && journal_count > 0 {
            break;
        }
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "history::child_inserts_until_it_is_killed", "--nocapture"])
            .env(CHILD_FOLDER, folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(output.any(|line| line.unwrap().contains(INSERTED)), "the child inserted nothing");
        std::thread::sleep(Duration::from_micros(700 * (round % 25)));
        child.kill().unwrap();
        child.wait().unwrap();
        journal_count += u32::from(journal.metadata().is_ok_and(|m| m.len() > 0));

        let store = Store::open(folder.path()).unwrap();
        let raw = Connection::open(&path).unwrap();
        let check: String = raw.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(check, "ok", "round {round}");
        let entries = store.list(&ALL).unwrap();
        assert!(entries.len() >= count, "round {round}: a record that was there is gone");
        for entry in &entries[..entries.len() - count] {
            let record: RunRecord = serde_json::from_str(&store.get(&entry.id).unwrap().json).unwrap();
            assert_eq!(record.phases.len(), 7);
        }
        count = entries.len();
    }
    assert!(count >= 25, "an insert that had returned is gone: {count}");
    assert!(journal_count > 0, "no kill fell inside a transaction");
}

/// Fills a new history with copies of one record, in one transaction.
fn fill(folder: &Path, count: u32) {
    let mut store = Store::open(folder).unwrap();
    store.insert(&record(&id(0), 0)).unwrap();
    drop(store);
    let mut raw = Connection::open(folder.join(FILE_NAME)).unwrap();
    let transaction = raw.transaction().unwrap();
    {
        let mut copy = transaction
            .prepare(
                "INSERT INTO runs (id, started_unix_s, started_at, kind, target, disk, verdict, outcome, summary, source, \
                 record_version, record) SELECT ?1, ?2, started_at, kind, target, disk, verdict, outcome, summary, source, \
                 record_version, record FROM runs WHERE id = ?3",
            )
            .unwrap();
        for n in 1..count {
            copy.execute(rusqlite::params![id(n), n, id(0)]).unwrap();
        }
    }
    transaction.commit().unwrap();
}

/// Makes the history of `folder` one of schema 3, as a program of then would have left it.
fn bring_back_to_version_3(folder: &Path) {
    let raw = Connection::open(folder.join(FILE_NAME)).unwrap();
    raw.execute_batch("DROP TABLE run_words; PRAGMA user_version = 3").unwrap();
}

const BEGINS: &str = "the history is opened now";
const MIGRATION_FOLDER: &str = "TRUEIO_STORE_TEST_MIGRATION_FOLDER";

/// Not a test by itself: the process that the next test kills. Without its variable it does nothing.
#[test]
fn child_migrates_until_it_is_killed() {
    let Some(folder) = std::env::var_os(MIGRATION_FOLDER) else { return };
    println!("{BEGINS}");
    Store::open(Path::new(&folder)).unwrap();
}

/// Goal: a program that is killed while it brings an old history to this version loses nothing: the history is whole, of either version, and
/// the next program finishes.
/// Method: a history of schema 3 with 60 records, whose migration takes long enough to be hit. A child process opens it and is killed (SIGKILL)
/// at times spread over the duration of a whole migration, measured first. At least one kill must fall inside of it. After each, SQLite's own
/// check and every record are compared, through a connection that migrates nothing.
#[test]
fn a_kill_in_the_middle_of_a_migration_loses_no_record() {
    const COUNT: u32 = 60;
    let folder = tempfile::tempdir().unwrap();
    fill(folder.path(), COUNT);
    let words = Store::open(folder.path()).unwrap().get(&id(0)).unwrap().entry.words;
    bring_back_to_version_3(folder.path());
    let child = || {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "history::child_migrates_until_it_is_killed", "--nocapture"])
            .env(MIGRATION_FOLDER, folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(output.any(|line| line.unwrap().contains(BEGINS)), "the child opened nothing");
        (child, output)
    };
    let raw = || Connection::open(folder.path().join(FILE_NAME)).unwrap();
    let text_of = |connection: &Connection| -> Vec<(String, String)> {
        let mut statement = connection.prepare("SELECT id, record FROM runs ORDER BY id").unwrap();
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
    };
    let before = text_of(&raw());
    let begin = Instant::now();
    let (mut whole, output) = child();
    output.for_each(drop);
    assert!(whole.wait().unwrap().success());
    let took = begin.elapsed();
    bring_back_to_version_3(folder.path());
    let mut inside_count = 0;
    for round in 0..200 {
        if round >= 20 && inside_count > 0 {
            break;
        }
        let (mut child, _output) = child();
        std::thread::sleep(took * (round % 20) / 20);
        child.kill().unwrap();
        let status = child.wait().unwrap();
        let connection = raw();
        let check: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        let version: u32 = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
        assert_eq!(check, "ok", "round {round}");
        assert!([3, SCHEMA_VERSION].contains(&version), "round {round}: version {version}");
        assert_eq!(text_of(&connection), before, "round {round}");
        if version == 3 {
            inside_count += u32::from(!status.success());
        } else {
            let words: u32 = connection.query_row("SELECT count(*) FROM run_words", [], |row| row.get(0)).unwrap();
            assert_eq!(words, COUNT, "round {round}: the new version is there, so all of it is");
            drop(connection);
            bring_back_to_version_3(folder.path());
        }
    }
    assert!(inside_count > 0, "no kill fell inside a migration");
    let store = Store::open(folder.path()).unwrap();
    let entries = store.list(&ALL).unwrap();
    assert_eq!(entries.len(), COUNT as usize);
    assert!(entries.iter().all(|entry| entry.words == words));
}

/// Goal: many processes that write at once lose no record, and agree on which devices there are.
/// Method: eight processes insert without pause for a second and are killed; each insert that had
/// returned must be there. All their records are of one disk: there must be one device.
#[test]
fn many_processes_that_write_at_once_lose_nothing_and_know_one_device() {
    let folder = tempfile::tempdir().unwrap();
    drop(Store::open(folder.path()).unwrap());
    let children: Vec<_> = (0..8)
        .map(|n| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "history::child_inserts_until_it_is_killed", "--nocapture"])
                .env(CHILD_FOLDER, folder.path())
                .env(CHILD_NUMBER, n.to_string())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    std::thread::sleep(Duration::from_secs(1));
    let mut returned = 0;
    for mut child in children {
        child.kill().unwrap();
        let mut output = String::new();
        std::io::Read::read_to_string(&mut child.stdout.take().unwrap(), &mut output).unwrap();
        child.wait().unwrap();
        returned += output.matches(INSERTED).count();
        assert!(!output.contains("panicked"), "{output}");
    }
    let store = Store::open(folder.path()).unwrap();
    let count = store.list(&ALL).unwrap().len();
    assert!(returned >= 8, "the processes wrote hardly anything: {returned}");
    assert!(count >= returned, "{returned} inserts had returned, {count} are there");
    let devices = store.devices().unwrap();
    assert_eq!(devices.iter().map(|d| d.run_count).collect::<Vec<_>>(), [count as u64]);
}
