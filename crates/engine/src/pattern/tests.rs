//! What the generator promises, on plans small enough to see.
