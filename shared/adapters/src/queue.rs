//! queue.
