//! Every check from numbers alone: a false result that it must detect, and correct phases that it must not
//! flag.

mod bytes;
mod disk;
mod durability;
mod failures;
mod load;
mod machine;
mod origin;
mod page_cache;
mod phase;
mod steadiness;
mod trace;
