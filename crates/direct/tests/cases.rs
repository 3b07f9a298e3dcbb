//! The cases of `cases.json`, which the Node and Python bindings run, too: the three languages agree on them.
#![cfg(unix)]

mod support;

use serde_json::Value;
use std::io::{IoSlice, IoSliceMut};
use std::path::Path;
use trueio_direct::{
    AlignedBuffer, DirectFile, FlushLevel, LockError, LockMode, OpenOptions, Policy, TransferError, preallocate,
    try_lock, try_lock_range, unlock, unlock_range,
};

/// What a step came to: a number, a word, or an error's name and how much was done before it.
#[derive(Debug, PartialEq)]
enum Outcome {
    Gives(Value),
    Fails(&'static str, Option<u64>),
}

fn open(path: &Path, case: &Value) -> DirectFile {
    let policy = if case["policy"] == "off" { Policy::Off } else { Policy::Prefer };
    let options = OpenOptions::new().read(true).write(case["mode"] == "read-write").policy(policy);
    options.open(path).unwrap()
}

fn transferred(result: Result<trueio_direct::Transfer, TransferError>) -> Outcome {
    match result {
        Ok(transfer) => Outcome::Gives(transfer.bytes.into()),
        Err(TransferError::EndOfFile { done, .. }) => Outcome::Fails("end-of-file", Some(done as u64)),
        Err(error) => panic!("{error:?}"),
    }
}

fn locked(result: Result<(), LockError>) -> Outcome {
    match result {
        Ok(()) => Outcome::Gives(0.into()),
        Err(LockError::Held(_)) => Outcome::Fails("held", None),
        Err(error) => panic!("{error:?}"),
    }
}

fn carry_out(file: &DirectFile, other: &DirectFile, step: &Value) -> Outcome {
    let offset = step["offset"].as_u64().unwrap_or(0);
    let bytes = step["bytes"].as_u64().unwrap_or(0);
    let mut memory = AlignedBuffer::new(bytes.max(1) as usize, 4096).unwrap();
    let buffer = &mut memory[..bytes as usize];
    let exclusive = LockMode::Exclusive;
    match step["call"].as_str().unwrap() {
        "read_at" => transferred(file.read_at(buffer, offset)),
        "read_exact_at" => transferred(file.read_exact_at(buffer, offset)),
        "write_all_at" => transferred(file.write_all_at(buffer, offset)),
        "read_vectored_at" | "write_vectored_at" => {
            let lengths: Vec<usize> =
                step["parts"].as_array().unwrap().iter().map(|part| part.as_u64().unwrap() as usize).collect();
            let mut memory: Vec<AlignedBuffer> =
                lengths.iter().map(|length| AlignedBuffer::new((*length).max(1), 4096).unwrap()).collect();
            let parts = memory.iter_mut().zip(&lengths).map(|(memory, length)| &mut memory[..*length]);
            if step["call"] == "read_vectored_at" {
                transferred(file.read_vectored_at(&mut parts.map(IoSliceMut::new).collect::<Vec<_>>(), offset))
            } else {
                transferred(
                    file.write_vectored_at(&mut parts.map(|part| IoSlice::new(part)).collect::<Vec<_>>(), offset),
                )
            }
        }
        #[cfg(target_os = "linux")]
        "adopt" => {
            let adopted = DirectFile::from_file(file.file().try_clone().unwrap()).unwrap();
            Outcome::Gives(format!("{:?}", adopted.granted()).to_lowercase().into())
        }
        "size" => Outcome::Gives(file.size().unwrap().into()),
        "flush_default" => {
            let level = file.flush(FlushLevel::default()).unwrap().level;
            Outcome::Gives(format!("{level:?}").to_lowercase().into())
        }
        "preallocate" => {
            preallocate(file.file(), offset, bytes).unwrap();
            Outcome::Gives(file.size().unwrap().into())
        }
        "try_lock" => locked(try_lock(file.file(), exclusive)),
        "try_lock_elsewhere" => locked(try_lock(other.file(), exclusive)),
        "unlock" => locked(unlock(file.file())),
        "try_lock_range" => locked(try_lock_range(file.file(), exclusive, offset, bytes)),
        "try_lock_range_elsewhere" => locked(try_lock_range(other.file(), exclusive, offset, bytes)),
        "unlock_range" => locked(unlock_range(file.file(), offset, bytes)),
        call => panic!("cases.json names an unknown call, {call}"),
    }
}

#[test]
fn the_cases_that_all_languages_share() {
    let cases: Value = serde_json::from_str(include_str!("cases.json")).unwrap();
    for case in cases.as_array().unwrap() {
        let folder = support::folder();
        let path = folder.path().join("data");
        std::fs::write(&path, vec![7; case["length"].as_u64().unwrap() as usize]).unwrap();
        let (file, other) = (open(&path, case), open(&path, case));
        for step in case["steps"].as_array().unwrap() {
            let expected = match step["fails"].as_str() {
                Some("end-of-file") => Outcome::Fails("end-of-file", step["done"].as_u64()),
                Some("held") => Outcome::Fails("held", None),
                Some(other) => panic!("cases.json names an unknown failure, {other}"),
                None => Outcome::Gives(step["gives"].clone()),
            };
            assert_eq!(carry_out(&file, &other, step), expected, "{}: {step}", case["name"]);
        }
    }
}
