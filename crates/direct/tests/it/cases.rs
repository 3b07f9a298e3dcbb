//! The cases of `cases.json`, which the Node and Python bindings run, too: the three languages agree on them.
#![cfg(unix)]

use crate::support;

use serde_json::Value;
use std::io::{IoSlice, IoSliceMut};
use std::ops::ControlFlow;
use std::path::Path;
use trueio_direct::{
    AlignedBuffer, CopyError, CopyOptions, DirectFile, FlushLevel, LockError, LockMode, OpenOptions, Policy,
    TransferError, copy_file, preallocate, try_lock, try_lock_range, unlock, unlock_range,
};

/// What a step came to: a number, a word, or an error's name and how much was done before it.
#[derive(Debug, PartialEq)]
enum Outcome {
    Gives(Value),
    Fails(&'static str, Option<u64>),
}

fn policy(case: &Value) -> Policy {
    if case["policy"] == "off" { Policy::Off } else { Policy::Prefer }
}

fn open(path: &Path, case: &Value) -> DirectFile {
    let options = OpenOptions::new().read(true).write(case["mode"] == "read-write").policy(policy(case));
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

/// Copies the file `data` of `folder` to `copy`, or looks at `copy`; [`None`] for another call.
fn copied(folder: &Path, case: &Value, step: &Value) -> Option<Outcome> {
    let (from, to) = (folder.join("data"), folder.join("copy"));
    let call = step["call"].as_str().unwrap();
    let to = match call {
        "copy_size" => return Some(Outcome::Gives(std::fs::metadata(&to).map_or(Value::Null, |to| to.len().into()))),
        "copy_sevens" => {
            let sevens = std::fs::read(&to).unwrap().iter().filter(|byte| **byte == 7).count();
            return Some(Outcome::Gives(sevens.into()));
        }
        "copy_file" | "copy_file_stopped" => &to,
        "copy_file_onto_itself" => &from,
        _ => return None,
    };
    let mut options = CopyOptions::new().policy(policy(case)).overwrite(step["overwrite"] == true);
    if let Some(offset) = step["destination_offset"].as_u64() {
        options = options.destination_offset(offset);
    }
    if let Some(range) = step["range"].as_array() {
        options = options.range(range[0].as_u64().unwrap()..range[1].as_u64().unwrap());
    }
    let mut last = (0, 0);
    let copied = copy_file(&from, to, &options, |progress| {
        last = (progress.done_bytes, progress.total_bytes);
        if call == "copy_file_stopped" { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    Some(match copied {
        Ok(copied) => {
            let bytes = copied.data_bytes + copied.hole_bytes;
            assert_eq!(last, (bytes, bytes));
            Outcome::Gives(bytes.into())
        }
        Err(CopyError::Exists { .. }) => Outcome::Fails("exists", None),
        Err(CopyError::SameFile { .. }) => Outcome::Fails("same-file", None),
        Err(CopyError::TooShort { .. }) => Outcome::Fails("too-short", None),
        Err(CopyError::Stopped { .. }) => Outcome::Fails("stopped", None),
        Err(error) => panic!("{error:?}"),
    })
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
    let cases: Value = serde_json::from_str(include_str!("../cases.json")).unwrap();
    for case in cases.as_array().unwrap() {
        let folder = support::folder();
        let path = folder.path().join("data");
        std::fs::write(&path, vec![7; case["length"].as_u64().unwrap() as usize]).unwrap();
        let (file, other) = (open(&path, case), open(&path, case));
        for step in case["steps"].as_array().unwrap() {
            let expected = match step["fails"].as_str() {
                Some("end-of-file") => Outcome::Fails("end-of-file", step["done"].as_u64()),
                Some("held") => Outcome::Fails("held", None),
                Some("exists") => Outcome::Fails("exists", None),
                Some("same-file") => Outcome::Fails("same-file", None),
                Some("too-short") => Outcome::Fails("too-short", None),
                Some("stopped") => Outcome::Fails("stopped", None),
                Some(other) => panic!("cases.json names an unknown failure, {other}"),
                None => Outcome::Gives(step["gives"].clone()),
            };
            let outcome = copied(folder.path(), case, step).unwrap_or_else(|| carry_out(&file, &other, step));
            assert_eq!(outcome, expected, "{}: {step}", case["name"]);
        }
    }
}
