//! The integration tests of this crate: one program, one module a file.

mod boot;
mod common;
mod disks;
mod faults;
mod filesystems;
mod layers;
mod powercut_disk;
mod served;
mod uas_engine;
mod uas_serve;
mod uas_ublk;
mod usb_disks;
mod usb_explain;
mod usb_rules;
mod usb_study;
mod usb_switch;
mod zones;
