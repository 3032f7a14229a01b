mod processes;
mod resume;
mod schedule;
mod tuning;
