//! One measured run, in a child process. Nothing outside this module opens a device.

pub mod spec;
