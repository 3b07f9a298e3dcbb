//! Results of fio in the history.

use trueio_fio::results::parse;
use trueio_store::{Source, Store, StoreError};

#[test]
fn a_result_of_fio_is_stored_once_and_read_back_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    let text = include_str!("../results/cli_global_two_jobs.json");
    let run = parse(text).unwrap();
    let id = store.insert_fio(&run).unwrap();
    let stored = store.get(&id).unwrap();
    assert_eq!(parse(&stored.json).unwrap(), run);
    assert_eq!((stored.entry.source, stored.entry.kind.as_str()), (Source::Fio, "fio"));
    assert_eq!((stored.entry.verdict.as_str(), stored.entry.devices.len()), ("", 0), "no evidence was collected");
    assert!(stored.entry.summary.starts_with("fio-3.33, 2 jobs, up to "), "{}", stored.entry.summary);
    assert!(matches!(store.insert_fio(&run), Err(StoreError::AlreadyThere { .. })));
    let failed = parse(include_str!("../results/err_enospc.json")).unwrap();
    let id = store.insert_fio(&failed).unwrap();
    assert_eq!(store.get(&id).unwrap().entry.outcome, "failed");
}
