mod processes;
mod resume;
mod schedule;
